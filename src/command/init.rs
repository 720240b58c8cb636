//! `sparsek-gate init`.

use std::path::Path;

use super::answer::print;
use crate::cli::InitArgs;
use crate::files::write_named;
use crate::finding::{Error, ExitCode};

/// The annotated configuration of a new project.
const TEMPLATE: &str = include_str!("init.toml");
/// The schema that its first line names. A file beside it needs no network, and has the version that
/// wrote it.
const SCHEMA_NAME: &str = ".sparsek-gate.schema.json";

pub(super) fn run(config: &Path, arguments: &InitArgs) -> Result<ExitCode, Error> {
    if config.exists() && !arguments.force {
        return Err(Error::Usage(format!(
            "{} exists; --force replaces it, --config FILE names another",
            config.display()
        )));
    }
    let schema = config.with_file_name(SCHEMA_NAME);
    for (path, text) in [(&*schema, &*crate::config::schema()), (config, TEMPLATE)] {
        write_named(path, text.as_bytes()).map_err(Error::io("write", path))?;
    }
    print(&format!(
        "wrote {}, and {} for editors\n\nnext:\n  1. point `source` (or `run`) at a program that launches your kernel\n  \
         2. sparsek-gate profile (without a GPU: sparsek-gate check --static)\n  \
         3. sparsek-gate baseline --lock --reason 'first measurement' (without a GPU: --lock --static)\n  \
         4. commit the baselines, and run `sparsek-gate check` in CI\n",
        config.display(),
        schema.display()
    ))?;
    Ok(ExitCode::Pass)
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn the_template_is_a_valid_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, super::TEMPLATE).unwrap();
        let config = Config::load(&path)
            .map_err(|error| error.to_string())
            .unwrap();
        assert_eq!(config.variants().count(), 2);
    }

    #[test]
    fn the_template_names_every_key_that_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let tables = [
            "toolchain",
            "toolchain.pins",
            "paths",
            "gpu",
            "profile",
            "verify",
            "metric.x",
            "metric.x.tolerance",
            "metric.x.against",
            "metric.x.counts",
            "metric.x.plausible",
            "static.x",
            "suite.x",
            "suite.x.work",
            "suite.x.profile",
            "suite.x.variant.y",
            "trust",
            "[waiver]",
        ];
        for table in tables {
            std::fs::write(&path, format!("[{table}]\nno_such_key_by_far = 1\n")).unwrap();
            let complaint = Config::load(&path).map(drop).unwrap_err().to_string();
            let known = complaint.split("known are ").nth(1).unwrap();
            let keys: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
            assert!(!keys.is_empty(), "{complaint}");
            for key in keys {
                // As a key is set, or listed: a word in a sentence does not show that it is a key.
                let set = regex::Regex::new(&format!(r"\b{key}( *=| {{2,}}|, |[].])")).unwrap();
                let named = set.is_match(super::TEMPLATE);
                assert!(named, "`{key}` of [{table}] is not in the template");
            }
        }
    }
}
