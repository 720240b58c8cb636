//! Verifications that earlier runs recorded, so that `check` need not repeat them.
//!
//! A record stands in for the separate verifying run alone. The measured processes must check their
//! own numbers, with a fresh seed, so a wrong program fails there whatever a record says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use object::ReadCache;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::binary::build_id;
use crate::config::{Recipe, SanitizerTool, Variant};
use crate::device::Gpu;
use crate::disk;
use crate::files::{json, most, read_regular_up_to, write_atomically};
use crate::hash::{sha256_file, sha256_hex};
use crate::profile::now;
use crate::terms::{Tier, VariantId};
use crate::verify::asks_for_result;

/// What a run does with the records of verifications: nothing, unless it is stated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordUse {
    /// Whether a record stands in for a verifying run.
    pub reads: bool,
    /// Whether verifying runs are recorded. A run of code under review records nothing.
    pub writes: bool,
}

/// A verification that was not repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReusedVerification {
    /// The variant.
    pub variant: VariantId,
    /// Whether it is the base's version of the variant.
    pub of_base: bool,
    /// What an earlier run found.
    #[serde(flatten)]
    pub record: VerificationRecord,
}

/// That a program was verified, with correct numbers and no finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerificationRecord {
    /// When, RFC 3339, UTC.
    pub verified: String,
    /// The version of this tool.
    pub tool: String,
    /// The model of the GPU.
    pub gpu: String,
    /// The version of compute-sanitizer, where it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sanitizer: Option<String>,
    /// Its tools, which found nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sanitizer_tools: Vec<SanitizerTool>,
}

impl VerificationRecord {
    /// Of a variant that was verified now.
    pub fn of(variant: &Variant, gpu: &Gpu, sanitizer: Option<&str>) -> VerificationRecord {
        let sanitizer = sanitizer.filter(|_| !variant.sanitizer.is_empty());
        VerificationRecord {
            verified: now(),
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            gpu: gpu.name.clone(),
            sanitizer: sanitizer.map(str::to_owned),
            sanitizer_tools: variant.sanitizer.clone(),
        }
    }

    /// Whether it says everything that another one says, apart from the time.
    fn covers(&self, other: &VerificationRecord) -> bool {
        let (own, others) = (&self.sanitizer_tools, &other.sanitizer_tools);
        others.is_empty()
            || self.sanitizer == other.sanitizer && others.iter().all(|tool| own.contains(tool))
    }

    /// One line about it.
    pub fn words(&self) -> String {
        format!(
            "reused: correct on {}, by sparsek-gate {} on {}",
            self.verified, self.tool, self.gpu
        )
    }
}

/// The records in a work folder, as they were before any program ran, and those to be added. If the
/// file is another one at the end of the run, however that ends, it is removed: a later run must not
/// read what a program wrote there.
#[derive(Debug)]
pub(in crate::measure) struct Records {
    path: PathBuf,
    /// sha256 of the file; `None` where there was none.
    file: Option<String>,
    known: BTreeMap<String, VerificationRecord>,
    new: Vec<(VariantId, String, VerificationRecord)>,
}

/// The file of [`Records`] in the work folder.
const FILE: &str = "verified.json";
/// The most records that are kept: the latest.
const MOST: usize = 1000;

impl Records {
    /// Those in a work folder. A file that cannot be read has none.
    pub fn of(work: &Path) -> Records {
        let mut records = Records {
            path: work.join(FILE),
            file: None,
            known: BTreeMap::new(),
            new: Vec::new(),
        };
        records.read_again();
        records
    }

    /// Reads the file again: what another run of this tool recorded meanwhile counts.
    pub fn read_again(&mut self) {
        self.file = sha256_file(&self.path).ok();
        let bytes = read_regular_up_to(&self.path, most::CONFIG).unwrap_or_default();
        self.known = json(&bytes).unwrap_or_default();
    }

    /// Their file.
    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// The record that covers a verification.
    pub fn covering(&self, key: &str, now: &VerificationRecord) -> Option<&VerificationRecord> {
        self.known.get(key).filter(|record| record.covers(now))
    }

    /// Keeps a record until [`Records::write`].
    pub fn add(&mut self, variant: &VariantId, key: String, record: VerificationRecord) {
        let mut new = self.new.iter();
        let is_new = !new.any(|(_, known, other)| *known == key && other.covers(&record));
        if is_new && self.covering(&key, &record).is_none() {
            self.new.push((variant.clone(), key, record));
        }
    }

    /// Adds the new records of variants that nothing was found about. Nothing depends on the file,
    /// so a failed write is ignored.
    pub fn write(&mut self, is_sound: impl Fn(&VariantId) -> bool) {
        let mut new = std::mem::take(&mut self.new);
        new.retain(|(variant, ..)| is_sound(variant));
        if new.is_empty() {
            return;
        }
        let mut all = self.known.clone();
        all.extend(new.into_iter().map(|(_, key, record)| (key, record)));
        let mut dates: Vec<&str> = all.values().map(|one| one.verified.as_str()).collect();
        dates.sort_unstable();
        let oldest = dates.len().checked_sub(MOST).and_then(|at| dates.get(at));
        if let Some(oldest) = oldest.map(|date| (*date).to_owned()) {
            all.retain(|_, record| record.verified >= oldest);
        }
        let text = serde_json::to_vec(&all).unwrap_or_default();
        if write_atomically(&self.path, &text).is_ok() {
            self.file = Some(sha256_hex(&text));
        }
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        if disk::is_there(&self.path) && sha256_file(&self.path).ok() != self.file {
            let _ = disk::remove_file(&self.path);
        }
    }
}

/// Whether verifications of a variant are recorded at all: the compiler makes its program, and each
/// process that may be measured must check its own numbers.
pub(in crate::measure) fn is_recordable(variant: &Variant) -> bool {
    matches!(variant.recipe, Recipe::Nvcc { .. })
        && asks_for_result(&variant.profile_args)
        && !variant.accepts(Tier::Static)
}

/// The ID of this build of the tool, because builds of one version may differ: the linker's build ID,
/// or else the sha256 of the file.
pub fn tool() -> Option<&'static str> {
    static TOOL: OnceLock<Option<String>> = OnceLock::new();
    let of_file = |path: &Path| {
        let file = disk::open(path).ok()?;
        build_id(&ReadCache::new(file)).or_else(|| sha256_file(path).ok())
    };
    let tool = TOOL.get_or_init(|| of_file(&std::env::current_exe().ok()?));
    tool.as_deref()
}
