//! Builds a variant by the command that its configuration names.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::artifact::Artifact;
use super::run::{BUILD_TIMEOUT, run_build};
use crate::config::{Config, Variant};
use crate::files::create_work_folder;
use crate::finding::{Code, Error, Finding, Stop};
use crate::hash::sha256_file;
use crate::process::Invocation;

/// Runs the command `build`, where there is one, and hashes `inputs` and what `run` names.
pub(super) fn build_by_command(
    config: &Config,
    variant: &Variant,
    build: Option<&[String]>,
    run: &[String],
    inputs: &[String],
) -> Result<Artifact, Stop> {
    create_work_folder(&config.work)?;
    if let Some(argv) = build {
        let folder = config.work.join("builds");
        fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let log = folder.join(format!("{}.{}.log", variant.id.suite, variant.id.variant));
        let invocation = Invocation {
            argv: argv.to_vec(),
            dir: config.root.clone(),
            env: variant.env.clone(),
            timeout: BUILD_TIMEOUT,
            stdout: log.clone(),
            stderr: log,
        };
        run_build(variant, &invocation, argv)?;
    }
    let hash = |path: &Path, what: &str, key: &str| {
        sha256_file(path).map_err(|error| {
            Finding::deny(
                Code::BuildFailed,
                &variant.id,
                format!("the {what} cannot be read: {error}"),
                format!(
                    "check `{key}` of {} in {}",
                    variant.id,
                    config.path.display()
                ),
            )
        })
    };
    let mut sources = BTreeMap::new();
    for input in inputs {
        let path = config.root.join(input);
        let hash = hash(&path, &format!("input `{input}`"), "inputs")?;
        sources.insert(input.clone(), hash);
    }
    let mut programs = BTreeMap::new();
    for (at, word) in run.iter().enumerate() {
        let path = config.root.join(word);
        // A program that is found on the PATH is not part of the project.
        if path.is_file() && (at == 0 || path.starts_with(&config.root)) {
            let hash = hash(&path, &format!("program `{word}`"), "run")?;
            programs.insert(path, hash);
        }
    }
    Ok(Artifact {
        programs,
        run: run.to_vec(),
        compiler: None,
        sha256: None,
        build_argv: build.map(<[String]>::to_vec).unwrap_or_default(),
        sources,
        compiled: None,
        cached: build.is_none(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Recipe;

    #[test]
    fn what_runs_is_hashed_and_what_cannot_be_read_is_not_built() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let text = "[toolchain]\narch = \"sm_90a\"\n\
            [metric.duration]\ncounter = \"gpu__time_duration.sum\"\ndirection = \"lower\"\n\
            tolerance = { absolute = 1 }\n\
            [suite.s.variant.v]\nrun = [\"sh\", \"./bench.sh\", \"8192\"]\n";
        fs::write(&path, text).unwrap();
        let config = Config::load(&path).unwrap();
        let variant = config.variants().next().unwrap();
        let Recipe::Command { build, run, inputs } = &variant.recipe else {
            unreachable!("the variant names no source");
        };
        let built = || build_by_command(&config, variant, build.as_deref(), run, inputs);
        let bench = config.root.join("bench.sh");
        fs::write(&bench, "true\n").unwrap();
        let artifact = built().unwrap();
        assert_eq!(artifact.programs.keys().collect::<Vec<_>>(), [&bench]);
        assert!(artifact.check_unaltered(&variant.id).is_ok());
        // A regular file of which nobody can read the first byte.
        fs::remove_file(&bench).unwrap();
        std::os::unix::fs::symlink("/proc/self/mem", &bench).unwrap();
        assert!(artifact.check_unaltered(&variant.id).is_err());
        let finding = built().unwrap_err().finding().unwrap();
        assert_eq!(finding.code, Code::BuildFailed);
        assert!(
            finding.message.contains("`./bench.sh`"),
            "{}",
            finding.message
        );
    }
}
