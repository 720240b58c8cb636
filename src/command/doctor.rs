//! `sparsek-gate doctor`.

use std::path::Path;

use super::answer::{answer_with, named, print};
use crate::cli::Format;
use crate::config::{self, Config};
use crate::disk;
use crate::doctor::{self, Setup, examine};
use crate::finding::{Error, ExitCode};
use crate::process;
use crate::report::{self, Detail};

/// The configuration where there is none: one without a metric is an error.
const LEAST: &str = "metric.duration = { direction = \"lower\", tolerance = '3 %' }";

pub(super) fn run(path: &Path, format: Format) -> Result<ExitCode, Error> {
    // Only the default configuration file may be missing.
    let configured = disk::is_there(path) || path != Path::new(config::FILE_NAME);
    let scratch = process::scratch()?;
    let config = if configured {
        Config::load(path)?
    } else {
        Config {
            // Outside of a project nothing is left behind.
            work: scratch.path().to_path_buf(),
            ..Config::parse(path, LEAST)?
        }
    };
    process::pass(&config.env_pass);
    let checks = examine(&Setup {
        config: &config,
        configured,
    })?;
    let code = doctor::exit_code(&checks);
    match format {
        Format::Text => print(&report::checks_text(&checks))?,
        Format::Json => {
            let content = named("checks", &checks);
            answer_with(code, Detail::All, format, content, &[], String::new)?;
        }
    }
    Ok(code)
}
