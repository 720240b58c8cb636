//! `sparsek-gate doctor`.

use std::path::Path;

use serde::Serialize;

use super::answer::{json, print};
use crate::cli::{DoctorArgs, Format};
use crate::config::{self, Config};
use crate::disk;
use crate::doctor::{self, Check, Setup, examine};
use crate::finding::{Error, ExitCode};
use crate::{process, report};

/// The JSON form.
#[derive(Serialize)]
struct Answer<'a> {
    schema: u32,
    checks: &'a [Check],
    exit_code: u8,
}

pub(super) fn run(path: &Path, arguments: &DoctorArgs) -> Result<ExitCode, Error> {
    // Only the default configuration file may be missing.
    let configured = disk::is_there(path) || path != Path::new(config::FILE_NAME);
    let scratch = process::scratch().map_err(Error::io("create", std::env::temp_dir()))?;
    let config = if configured {
        Config::load(path)?
    } else {
        Config {
            // Outside of a project nothing is left behind.
            work: scratch.path().to_path_buf(),
            ..Config::defaults(path)?
        }
    };
    process::pass(&config.env_pass);
    let checks = examine(&Setup {
        config: &config,
        configured,
    })?;
    let code = doctor::exit_code(&checks);
    print(&match arguments.format {
        Format::Text => report::checks_text(&checks),
        Format::Json => json(&Answer {
            schema: 1,
            checks: &checks,
            exit_code: code as u8,
        }),
    })?;
    Ok(code)
}
