//! The kinds of causes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Part of the added time from which on what changed is called its cause.
const LEAST_SHARE: f64 = 1.0 / 3.0;

/// One thing that moved with a regression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// What kind of thing.
    pub kind: CauseKind,
    /// What moved, with both numbers, for people.
    pub text: String,
    /// Part of the added time that it explains at most, from 0 to 1; left out where that is not known.
    /// From a third on it is named as a cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

impl Cause {
    /// Whether it is named as a cause.
    pub fn is_named(&self) -> bool {
        self.share.is_some_and(|share| share >= LEAST_SHARE)
    }

    /// The text with the share.
    pub(crate) fn words(&self) -> String {
        match self.share {
            Some(share) => {
                let percent = (share * 100.0).floor();
                format!("{}, up to {percent} % of the added time", self.text)
            }
            None => self.text.clone(),
        }
    }
}

/// The kinds of causes, the most specific first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CauseKind {
    /// Local memory is used, or is used more: registers do not suffice, or an array that is indexed
    /// lies there. These counters do not distinguish the two.
    RegisterSpills,
    /// What the tensor cores did is done elsewhere, or not at all.
    LostTensorCores,
    /// Fewer operations, or fewer sectors stored.
    LessWork,
    /// More operations, or more sectors stored.
    MoreWork,
    /// Threads of a warp wait for each other at the same bank of shared memory.
    BankConflicts,
    /// A load of a warp touches more sectors than it did.
    Uncoalesced,
    /// Warps wait for other warps at `__syncthreads` and the like.
    BarrierWaits,
    /// Warps wait longer for something else.
    Stalls,
    /// Fewer warps are there to hide the waiting of others.
    LowerOccupancy,
    /// More bytes from or to device memory.
    MoreDramTraffic,
    /// More traffic with the second-level cache.
    MoreL2Traffic,
    /// More instructions for whatever the work is.
    MoreInstructions,
    /// The machine ran slower, whatever the kernel does.
    LowerClock,
    /// The compiler made other machine code.
    OtherCode,
}
