//! The recorded effects of checks on the target branch: what each accepted change did, measured side
//! by side. `<variant>.effects.jsonl` has one line a check. Each line has the hash of the one before.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lock::Entry;
use crate::files::most;
use crate::hash::sha256_hex;
use crate::profile::Provenance;

/// What one check measured of a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffectEntry {
    /// When the change was measured, RFC 3339, UTC.
    pub time: String,
    /// The commit that was measured, with `+dirty` where files were changed.
    pub commit: Option<String>,
    /// The code before the change.
    pub before: CodeHash,
    /// The code with the change.
    pub after: CodeHash,
    /// Each judged metric of each kernel.
    pub effects: Vec<Effect>,
    /// sha256 of the line before; 64 zeros for the first.
    pub previous: String,
}

/// Which code was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeHash {
    /// sha256 over the paths and hashes of its sources.
    pub sources_sha256: String,
    /// sha256 of the program.
    pub program_sha256: Option<String>,
}

/// How a change moved one metric of one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// The kernel.
    pub kernel: String,
    /// The metric.
    pub metric: String,
    /// Whether it is the logarithm of a ratio, and otherwise a difference in the metric's unit.
    pub relative: bool,
    /// Current less base: the mean over the rounds.
    pub effect: f64,
    /// Rounds of two processes a side.
    pub rounds: usize,
    /// Variance of a process, from the pairs of one side in each round: twice as many degrees of
    /// freedom as rounds.
    pub variance: f64,
}

impl CodeHash {
    /// Of what a profile was measured from.
    pub fn of(provenance: &Provenance) -> CodeHash {
        let sources: &BTreeMap<String, String> = &provenance.sources;
        CodeHash {
            sources_sha256: sha256_hex(&serde_json::to_vec(sources).unwrap_or_default()),
            program_sha256: provenance.artifact_sha256.clone(),
        }
    }

    /// Whether both have the same sources, or are the same program.
    pub fn is_same(&self, other: &CodeHash) -> bool {
        let program = self.program_sha256.is_some() && self.program_sha256 == other.program_sha256;
        self.sources_sha256 == other.sources_sha256 || program
    }
}

/// As many rounds as a configuration can ask for.
const MOST_ROUNDS: usize = 10_000;

/// Reads the recorded effects, the oldest first.
///
/// # Errors
/// Says which line is wrong, and how.
pub fn parse_effects(text: &str) -> Result<Vec<EffectEntry>, String> {
    if text.len() as u64 > most::EFFECTS {
        return Err(format!("it is larger than {} MiB", most::EFFECTS >> 20));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("its last line has no end".to_owned());
    }
    let mut previous = Entry::GENESIS.to_owned();
    let mut entries = Vec::new();
    for (at, line) in (1..).zip(text.lines()) {
        let entry: EffectEntry =
            serde_json::from_str(line).map_err(|error| format!("line {at}: {error}"))?;
        if entry.previous != previous {
            return Err(format!(
                "line {at} does not follow the line before it: the file was edited"
            ));
        }
        let is_effect = |one: &Effect| {
            one.effect.is_finite()
                && one.variance.is_finite()
                && one.variance >= 0.0
                && (1..=MOST_ROUNDS).contains(&one.rounds)
        };
        if !entry.effects.iter().all(is_effect) {
            return Err(format!(
                "line {at} contains an effect that cannot be: its numbers must be finite, its variance not negative, and its rounds 1 to {MOST_ROUNDS}"
            ));
        }
        previous = sha256_hex(line.as_bytes());
        entries.push(entry);
    }
    Ok(entries)
}

/// The text with one more line; `previous` of the entry is set.
pub(super) fn with_entry(text: &str, mut entry: EffectEntry) -> String {
    let last = text.lines().last();
    entry.previous = last.map_or_else(
        || Entry::GENESIS.to_owned(),
        |line| sha256_hex(line.as_bytes()),
    );
    let line = serde_json::to_string(&entry).unwrap_or_default();
    format!("{text}{line}\n")
}

/// After which entries code changed of which no effect is recorded: the places of the entries whose
/// code before is not the code after the entry before, from 1.
pub fn gaps(entries: &[EffectEntry]) -> Vec<usize> {
    let pairs = (1..).zip(entries.windows(2));
    let unlike = pairs.filter(|(_, pair)| !pair[1].before.is_same(&pair[0].after));
    unlike.map(|(at, _)| at).collect()
}
