//! What the quarantine says of one GPU.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::evidence::{SickGpu, Symptom};
use crate::files::bounded_json;
use crate::profile::{began, now};

/// Most symptoms that are stored of a GPU: there may be one of each variant.
const MOST_SYMPTOMS: usize = 50;
/// Most bytes of these as JSON. Names of kernels can be long, and the text repeats them.
const MOST_BYTES: usize = 20 << 10;

/// Why a GPU is in quarantine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Version of this format.
    pub schema: u32,
    /// The GPU, and what showed that it is sick, as far as it fits.
    pub gpu: SickGpu,
    /// What showed it, in words, with the number of the symptoms that are not stored.
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
        let kept = stored_of(gpu);
        let more = gpu.symptoms.len() - kept.symptoms.len();
        let more = (more > 0).then(|| format!("and {more} more"));
        let words = kept.symptoms.iter().map(Symptom::words).chain(more);
        Entry {
            schema: Entry::SCHEMA,
            text: words.collect::<Vec<_>>().join("; "),
            gpu: kept,
            since: now(),
            began: began().to_owned(),
            host: host.trim().to_owned(),
            run: run.display().to_string(),
        }
    }

    /// Whether it is of this GPU with these symptoms.
    pub fn is_of(&self, gpu: &SickGpu) -> bool {
        self.gpu == stored_of(gpu)
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

/// A GPU with the symptoms that its file has room for, the certain ones first.
fn stored_of(gpu: &SickGpu) -> SickGpu {
    let mut symptoms = gpu.symptoms.clone();
    symptoms.sort_by_key(|symptom| !symptom.is_certain());
    let mut bytes = 0;
    let fits = |symptom: &Symptom| {
        bytes += serde_json::to_vec(symptom).map_or(0, |text| text.len());
        bytes <= MOST_BYTES
    };
    let symptoms = symptoms.into_iter().take(MOST_SYMPTOMS).take_while(fits);
    SickGpu {
        symptoms: symptoms.collect(),
        ..gpu.clone()
    }
}
