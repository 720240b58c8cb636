//! The kinds of references.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Variant;
use crate::terms::Tier;

/// What a variant was compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Its locked baseline.
    Stored,
    /// The base revision, measured side by side.
    Against,
    /// Another program, measured side by side (`compare`). Nothing is locked of either.
    Programs,
    /// Nothing: there is neither a base of it nor a baseline.
    New,
}

impl Mode {
    /// What the reference is called.
    pub fn reference(self) -> &'static str {
        match self {
            Mode::Stored => "baseline",
            Mode::Against | Mode::Programs | Mode::New => "base",
        }
    }

    /// What to do where a kernel got worse.
    pub(crate) fn fix_or_accept(self, variant: &Variant, tier: Tier) -> String {
        match self {
            Mode::Stored => format!("fix the kernel, or accept it: {}", tier.lock_command(&variant.id)),
            Mode::Against | Mode::New => format!(
                "fix the kernel, or accept it: with a `[[waiver]]`, `variant = \"{}\"`, `metric`, `reason`, `who`, and `up_to`, a share such as `\"5 %\"`, or an amount in the metric's unit, `\"8\"`; where it is locked, a pull request can have a new lock accepted instead: {}",
                variant.id, tier.lock_command(&variant.id)
            ),
            Mode::Programs if tier == Tier::Static => {
                "compare the sources, flags and compilers of both".to_owned()
            }
            Mode::Programs => "keep the captures (--output DIR), and compare all metrics of two of them: sparsek-gate compare A B".to_owned(),
        }
    }
}
