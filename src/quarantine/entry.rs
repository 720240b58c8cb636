//! What the quarantine says of one GPU.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::evidence::SickGpu;
use crate::files::bounded_json;
use crate::profile::{began, now};

/// Why a GPU is in quarantine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Version of this format.
    pub schema: u32,
    /// The GPU, and what showed that it is sick.
    pub gpu: SickGpu,
    /// What showed it, in words.
    pub text: String,
    /// Since when, RFC 3339, UTC.
    pub since: String,
    /// When the run began that found it, RFC 3339, UTC: what the GPU measured from then on does not count.
    pub began: String,
    /// The machine that the run was on.
    pub host: String,
    /// The folder with the captures of the run.
    pub run: String,
}

/// How a quarantine ended: a line of the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lifting {
    /// UUID of the GPU.
    pub uuid: String,
    /// What was stored; `None` where the file could not be read.
    pub entry: Option<Entry>,
    /// When it was lifted, RFC 3339, UTC.
    pub lifted: String,
    /// By whom.
    pub who: String,
    /// Why.
    pub reason: String,
}

impl Lifting {
    /// Whether a measurement on the GPU at this time, RFC 3339, UTC, is of the run that found it to be sick,
    /// or of the time of the quarantine.
    pub fn covers(&self, time: &str) -> bool {
        let began = self.entry.as_ref().map(|entry| entry.began.as_str());
        began.is_none_or(|began| began <= time) && time <= self.lifted.as_str()
    }
}

impl Entry {
    /// Version of the format.
    pub const SCHEMA: u32 = 1;

    /// Of a GPU that a run found to be sick now; its captures are in the folder `run`.
    pub fn new(gpu: &SickGpu, run: &Path) -> Entry {
        let run = std::path::absolute(run).unwrap_or_else(|_| run.to_path_buf());
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Entry {
            schema: Entry::SCHEMA,
            text: gpu.words(),
            gpu: gpu.clone(),
            since: now(),
            began: began().to_owned(),
            host: host.trim().to_owned(),
            run: run.display().to_string(),
        }
    }

    /// Reads an entry from its JSON form.
    ///
    /// # Errors
    /// In words, what is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Entry, String> {
        bounded_json(bytes)?;
        let entry: Entry = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if entry.schema != Entry::SCHEMA {
            return Err(format!(
                "it has schema {}, and this version reads {}",
                entry.schema,
                Entry::SCHEMA
            ));
        }
        Ok(entry)
    }
}
