//! Builds a variant by the command that its configuration names.

use std::collections::BTreeMap;
use std::fs;

use super::artifact::Artifact;
use super::run::{BUILD_TIMEOUT, run_build};
use crate::config::{Config, Variant};
use crate::files::create_work_folder;
use crate::finding::{Code, Error, Finding, Stop};
use crate::hash::sha256_file;
use crate::process::Invocation;

/// Runs the command `build`, where there is one, and hashes `inputs`.
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
    let mut sources = BTreeMap::new();
    for input in inputs {
        let hash = sha256_file(&config.root.join(input)).map_err(|error| {
            Finding::deny(
                Code::BuildFailed,
                &variant.id,
                format!("the input `{input}` cannot be read: {error}"),
                format!(
                    "check `inputs` of {} in {}",
                    variant.id,
                    config.path.display()
                ),
            )
        })?;
        sources.insert(input.clone(), hash);
    }
    let named = run.iter().map(|word| config.root.join(word));
    let started = named
        .filter(|path| path.is_file() && path.starts_with(&config.root))
        .filter_map(|path| Some((path.clone(), sha256_file(&path).ok()?)))
        .collect();
    Ok(Artifact {
        started,
        run: run.to_vec(),
        compiler: None,
        sha256: None,
        build_argv: build.map(<[String]>::to_vec).unwrap_or_default(),
        sources,
        compiled: None,
        cached: build.is_none(),
    })
}
