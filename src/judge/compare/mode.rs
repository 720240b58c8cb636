//! The kinds of references.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
}
