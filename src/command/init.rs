//! `sparsek-gate init`.

use std::path::Path;

use super::answer::answer;
use super::survey::{survey, template};
use crate::cli::{Format, InitArgs};
use crate::config::{Config, FILE_NAME};
use crate::device::Gpu;
use crate::disk::{self, folder_of};
use crate::files::write_named;
use crate::finding::{Error, ExitCode, with_files};

/// The schema that its first line names. A file beside it needs no network, and has the version that
/// wrote it.
const SCHEMA_NAME: &str = ".sparsek-gate.schema.json";

pub(super) fn run(config: &Path, arguments: &InitArgs) -> Result<ExitCode, Error> {
    if disk::is_dir(config) {
        let file = config.join(FILE_NAME);
        return Err(Error::Usage(format!(
            "{} is a folder: name the file: `-C {}`",
            config.display(),
            file.display()
        )));
    }
    if disk::is_there(config) && !arguments.force {
        return Err(Error::Usage(format!(
            "{} exists; --force replaces it, --config FILE names another",
            config.display()
        )));
    }
    let surveyed = match arguments.program.is_empty() {
        true => None,
        false => {
            let whole = std::path::absolute(config).map_err(Error::io("find", config))?;
            let folder = whole.parent().unwrap_or(&whole);
            Some(survey(folder, &arguments.program, arguments.gpu)?)
        }
    };
    let text = match &surveyed {
        None => template(Gpu::query(arguments.gpu).ok().as_ref(), arguments.all),
        Some(surveyed) => {
            let Some(text) = surveyed.configuration(arguments.all) else {
                // Nothing is written: the findings say why nothing was launched.
                return answer(Format::Text, (), &surveyed.findings, String::new);
            };
            Config::parse(config, &text)?;
            text
        }
    };
    let text = own_baselines(config, text);
    let schema = config.with_file_name(SCHEMA_NAME);
    let folder = folder_of(config);
    disk::create_dir_all(folder).map_err(Error::io("create", folder))?;
    for (path, text) in [(&*schema, &*crate::config::schema()), (config, &*text)] {
        write_named(path, |file| file.write_all(text.as_bytes()))
            .map_err(Error::io("write", path))?;
    }
    let first = match &surveyed {
        None => "point `source` (or `run`) at a program that launches your kernel",
        Some(_) => "read the suite that was made from the run, and add how its numbers are checked",
    };
    let text = format!(
        "wrote {}, and {} for editors\n\nnext:\n  1. {first}\n  \
         2. sparsek-gate profile (without a GPU: sparsek-gate check --static)\n  \
         3. sparsek-gate baseline --lock --reason 'first measurement' (without a GPU: --lock --static)\n  \
         4. commit the baselines, and run `sparsek-gate check` in CI\n",
        config.display(),
        schema.display()
    );
    // The configuration stands, whatever the run shows of this machine.
    let findings = surveyed.map_or_else(Vec::new, |surveyed| surveyed.findings);
    answer(Format::Text, (), &findings, || with_files(text))?;
    Ok(ExitCode::Pass)
}

/// The text of a configuration, with baselines of its own where it is the second one of a folder.
fn own_baselines(config: &Path, text: String) -> String {
    let name = config.file_stem().unwrap_or_default().to_string_lossy();
    match !config.ends_with(FILE_NAME) && disk::is_file(config.with_file_name(FILE_NAME)) {
        true => {
            let paths = format!(
                "[paths]\nbaselines = {:?}\n\n[toolchain]\n",
                format!("baselines-{name}")
            );
            text.replacen("[toolchain]\n", &paths, 1)
        }
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_names_every_key_that_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let tables = "toolchain toolchain.pins paths profile verify metric.x metric.x.tolerance \
                      metric.x.counts static.x suite.x suite.x.work \
                      suite.x.profile suite.x.variant.y trust [waiver]";
        for table in tables.split(' ') {
            std::fs::write(&path, format!("[{table}]\nno_such_key_by_far = 1\n")).unwrap();
            let complaint = Config::load(&path).map(drop).unwrap_err().to_string();
            let known = complaint.split("known are ").nth(1).unwrap();
            let keys: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
            assert!(!keys.is_empty(), "{complaint}");
            // A name in quotes stands for any variant.
            for key in keys.iter().filter(|key| !key.starts_with('"')) {
                // As a key is set, or listed: a word in a sentence does not show that it is a key.
                let set = regex::Regex::new(&format!(r"\b{key}( *=| {{2,}}|, |[].])")).unwrap();
                let named = set.is_match(&template(None, true));
                assert!(named, "`{key}` of [{table}] is not in the reference");
            }
        }
    }
}
