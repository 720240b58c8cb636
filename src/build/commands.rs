//! The `build` commands of a project: one at a time, and each once for all variants that share it.

use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::run::{BUILD_TIMEOUT, run_build};
use crate::config::{Config, Variant};
use crate::disk;
use crate::finding::{Error, Finding, Stop};
use crate::process::{Invocation, wait_for_lock};
use crate::terms::VariantId;

/// What was run: the command, and the variables that the variant adds to its environment.
type Command = (Vec<String>, BTreeMap<String, String>);

/// The build commands that one run of this tool has run. All run in the folder of the configuration,
/// where make and CMake do not work if two of them write at the same time.
#[derive(Debug, Default)]
pub(super) struct Commands {
    ended: Mutex<BTreeMap<Command, Result<(), Box<Finding>>>>,
}

impl Commands {
    /// Runs the command of a variant, unless it was run for another variant. Waits for the others.
    ///
    /// # Errors
    /// A finding where the command failed, for this variant or for another one; an error where the
    /// machine failed.
    pub fn run(&self, config: &Config, variant: &Variant, argv: &[String]) -> Result<(), Stop> {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let command = (argv.to_vec(), variant.env.clone());
        let answer = match ended.get(&command) {
            Some(answer) => answer.clone(),
            None => {
                let answer = match run(config, variant, argv) {
                    Ok(()) => Ok(()),
                    Err(stop) => Err(Box::new(stop.finding()?)),
                };
                ended.insert(command, answer.clone());
                answer
            }
        };
        answer.map_err(|failed| {
            let variant = Some(variant.id.clone());
            Finding { variant, ..*failed }.into()
        })
    }
}

/// What the command of a variant printed when it was run last.
pub fn build_log(config: &Config, id: &VariantId) -> PathBuf {
    let name = format!("{}.{}.log", id.suite, id.variant);
    config.work.join("builds").join(name)
}

fn run(config: &Config, variant: &Variant, argv: &[String]) -> Result<(), Stop> {
    let folder = config.work.join("builds");
    disk::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    let _lock = lock(&folder.join("commands.lock"))?;
    let log = build_log(config, &variant.id);
    let invocation = Invocation {
        argv: argv.to_vec(),
        dir: config.root.clone(),
        env: variant.env.clone(),
        timeout: BUILD_TIMEOUT,
        stdout: log.clone(),
        stderr: log,
    };
    run_build(config, variant, &invocation, argv)
}

/// Waits until no other run of this tool runs a build command in this project. The lock is released
/// when it is dropped, or when the process dies.
fn lock(path: &Path) -> Result<File, Error> {
    let file = disk::open_as(path, OFlags::WRONLY | OFlags::CREATE, 0o666);
    let file = file.map_err(Error::io("open", path))?;
    if wait_for_lock(|| file.try_lock(), path, BUILD_TIMEOUT, || ())? {
        return Ok(file);
    }
    Err(Error::environment(
        "another sparsek-gate has run a build command in this project for an hour",
        format!("find the process: fuser -v {}", path.display()),
    ))
}
