//! `sparsek-gate quarantine`.

use std::path::Path;

use serde::Serialize;

use super::answer::answer;
use crate::cli::QuarantineArgs;
use crate::config::{self, Config};
use crate::evidence::Symptom;
use crate::finding::{Error, ExitCode};
use crate::git;
use crate::quarantine::{Lifting, Quarantine, Quarantined};
use crate::report::quarantine_text;

#[derive(Serialize)]
struct Content {
    gpus: Vec<Shown>,
    lifted: Option<Lifting>,
}

/// A GPU in quarantine, with what is null where its file cannot be read.
#[derive(Serialize)]
struct Shown {
    uuid: String,
    file: std::path::PathBuf,
    name: Option<String>,
    since: Option<String>,
    host: Option<String>,
    run: Option<String>,
    why: String,
    symptoms: Option<Vec<Symptom>>,
}

impl From<&Quarantined> for Shown {
    fn from(stored: &Quarantined) -> Shown {
        let entry = stored.entry.as_ref().ok();
        Shown {
            uuid: stored.uuid.clone(),
            file: stored.path.clone(),
            name: entry.map(|entry| entry.gpu.name.clone()),
            since: entry.map(|entry| entry.since.clone()),
            host: entry.map(|entry| entry.host.clone()),
            run: entry.map(|entry| entry.run.clone()),
            why: match &stored.entry {
                Ok(entry) => entry.text.clone(),
                Err(why) => format!("the file cannot be read, and counts: {why}"),
            },
            symptoms: entry.map(|entry| entry.gpu.symptoms.clone()),
        }
    }
}

pub(super) fn run(path: &Path, arguments: &QuarantineArgs) -> Result<ExitCode, Error> {
    // Only the default configuration file may be missing.
    let configured = path.exists() || path != Path::new(config::FILE_NAME);
    let config = configured.then(|| Config::load(path)).transpose()?;
    let quarantine = Quarantine::of(config.as_ref().map(|config| config.work.as_path()));
    let lifted = match (&arguments.lift, &arguments.reason) {
        (Some(uuid), Some(reason)) => {
            if reason.trim().is_empty() {
                return Err(Error::Usage(
                    "`--reason` is empty\n  next: say what was repaired or examined".to_owned(),
                ));
            }
            let who = match &arguments.who {
                Some(who) => who.clone(),
                None => git::person(Path::new(".")),
            };
            Some(quarantine.lift(uuid, reason, &who)?)
        }
        _ => None,
    };
    let stored = quarantine.all();
    let content = Content {
        gpus: stored.iter().map(Shown::from).collect(),
        lifted,
    };
    answer(arguments.format, &content, &[], || {
        let lifted = content.lifted.as_ref();
        quarantine_text(&stored, lifted)
    })
}
