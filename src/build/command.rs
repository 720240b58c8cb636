//! Builds a variant, by the command that its configuration names.

use std::collections::BTreeMap;
use std::path::Path;

use super::artifact::Artifact;
use super::builder::Builder;
use super::machine_code::compiled_in;
use crate::config::{Recipe, Variant, is_pattern};
use crate::disk;
use crate::files::create_work_folder;
use crate::finding::{Code, Finding, Stop};
use crate::git;

impl Builder<'_> {
    /// Builds a variant. Of one that nvcc does not compile, runs the command `build`, where there is one,
    /// hashes `inputs` and what `run` names, and reads the machine code of `program` and `libraries`.
    pub(super) fn build(&self, variant: &Variant) -> Result<Artifact, Stop> {
        let config = self.config;
        let Recipe::Command {
            build, run, code, ..
        } = &variant.recipe
        else {
            return self.by_nvcc(variant);
        };
        create_work_folder(&config.work)?;
        if let Some(argv) = build.as_deref().filter(|_| self.runs_commands) {
            self.commands.run(config, variant, argv)?;
            let program = run.first().filter(|program| program.contains('/'));
            let of_run = program.map(|file| (file, "program", "`run`"));
            let of_code = code.iter().filter(|file| !is_pattern(file));
            let of_code = of_code.map(|file| (file, "file", "`program` and `libraries`"));
            let mut made = of_run.into_iter().chain(of_code);
            if let Some((file, what, key)) =
                made.find(|(file, ..)| !disk::is_there(config.root.join(file)))
            {
                let message = format!("the build succeeded, but there is no {what} `{file}`");
                let next = format!("let `build` make it, or correct {key} of {}", variant.id);
                return Err(Finding::deny(Code::BuildFailed, &variant.id, message, next).into());
            }
        }
        let mut sources = BTreeMap::new();
        for input in config.own_files(variant)? {
            let path = config.root.join(&input);
            let hash = self.hash(variant, &path, &format!("input `{input}`"), "inputs")?;
            sources.insert(input, hash);
        }
        let mut programs = BTreeMap::new();
        for (at, word) in run.iter().enumerate() {
            let path = config.root.join(word);
            // A program that is found on the PATH is not part of the project.
            if git::is_input_file(&path) && (at == 0 || path.starts_with(&config.root)) {
                let hash = self.hash(variant, &path, &format!("program `{word}`"), "run")?;
                programs.insert(path, hash);
            }
        }
        let mut compiled = None;
        if !code.is_empty() {
            let nvdisasm = self.nvdisasm.as_ref();
            let (kernels, files) = compiled_in(config, variant, code, nvdisasm)?;
            for (file, sha256) in files {
                // What a command makes differs from machine to machine; its `inputs` are the source.
                if build.is_none() {
                    sources.insert(file.clone(), sha256.clone());
                }
                programs.insert(config.root.join(file), sha256);
            }
            compiled = Some(kernels);
        }
        Ok(Artifact {
            programs,
            run: run.clone(),
            compiler: None,
            sha256: None,
            build_argv: build.clone().unwrap_or_default(),
            sources,
            compiled,
            cached: build.is_none() || !self.runs_commands,
        })
    }

    fn hash(
        &self,
        variant: &Variant,
        path: &Path,
        what: &str,
        key: &str,
    ) -> Result<String, Finding> {
        git::sha256_of_input(path).map_err(|error| {
            let (id, config) = (&variant.id, self.config.path.display());
            let message = format!("the {what} cannot be read: {error}");
            let next = format!("check `{key}` of {id} in {config}");
            Finding::deny(Code::BuildFailed, id, message, next)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::Config;

    #[test]
    fn what_runs_is_hashed_and_what_cannot_be_read_is_not_built() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let text = "[toolchain]\narch = \"sm_90a\"\n\
            [metric.duration]\ncounter = \"gpu__time_duration.sum\"\ndirection = \"lower\"\n\
            tolerance = '1'\n\
            [suite.s.variant.v]\nrun = [\"sh\", \"./bench.sh\", \"8192\"]\n";
        let config = Config::parse(&path, text).unwrap();
        let variant = config.variants().next().unwrap();
        let builder = Builder::new(&config, &[], true).unwrap();
        let built = || builder.build(variant);
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
        assert!(finding.message.contains("`./bench.sh`"));
    }
}
