//! What becomes known of a finding after it was made: a value, which its message and its next step say
//! too.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing that became known of a finding after it was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Note {
    /// It is about the base revision, beside which the current one was measured.
    InBase,
    /// It is about a file that the change under review contains.
    InChange,
    /// It is about what this GPU measured.
    OnGpu(String),
    /// The kernel became faster by so many percent.
    Faster(f64),
    /// The duration was shown not to be worse.
    AsFast,
    /// The occupancy does not fall.
    SameOccupancy,
    /// It was found in each of so many tries.
    Tries(u32),
    /// An interrupted run found it, and it is not measured again.
    Earlier,
    /// It was accepted from outside the change.
    Accepted,
    /// The base has nothing that it could be compared with.
    New,
    /// The baseline that the change locks, and that was accepted, allows it.
    Locked,
    /// The change does something to its baseline that nobody accepted yet.
    Relocked,
    /// Its profile is of other code, and a lock of it would be refused.
    Stale,
    /// A waiver covers it.
    Waived {
        /// Its last day.
        until: String,
        /// Who is responsible for it.
        who: String,
        /// Why.
        reason: String,
    },
}

impl Note {
    /// A message that says this too.
    pub(super) fn in_message(&self, message: String) -> String {
        match self {
            Note::InBase => format!("in the base: {message}"),
            Note::InChange => format!("in this change: {message}"),
            Note::OnGpu(gpu) => format!("on {gpu}: {message}"),
            Note::Faster(percent) => {
                format!("{message}, while the kernel became {percent:.1} % faster")
            }
            Note::AsFast => format!("{message}, while the duration is not worse"),
            Note::SameOccupancy => format!("{message}, while the occupancy does not fall"),
            Note::Tries(tries) => format!("{message} (in each of {tries} tries)"),
            Note::Earlier => format!("{message} (in the interrupted run; not measured again)"),
            Note::Relocked | Note::Stale => message,
            Note::Accepted => format!("{message}; accepted"),
            Note::Locked => format!("{message}; the accepted baseline allows it"),
            Note::New => format!("{message}: it is new, and counts once this is merged"),
            Note::Waived { until, who, reason } => {
                format!("{message}; waived until {until} by {who}: {reason}")
            }
        }
    }

    /// The next step where this is known.
    pub(super) fn in_next_step(&self, next: String) -> String {
        match self {
            Note::Locked => "nothing: the new baseline counts once this is merged".to_owned(),
            Note::Relocked => "undo the change, or have what it does to the baseline accepted: `relocked` says how".to_owned(),
            Note::Stale => match next.starts_with("fix the kernel") {
                true => "fix the kernel, or record it again from this code, which can then be locked",
                false => "if that is meant, record it again from this code, which can then be locked",
            }
            .to_owned(),
            Note::Waived { until, .. } => format!("nothing, until {until}"),
            Note::Earlier => format!("{next}; to measure it anew, run without --resume"),
            _ => next,
        }
    }
}
