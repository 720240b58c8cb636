//! What is reported about a variant that needs no measurement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::terms::VariantId;

/// A variant whose program is the base's, byte for byte: nothing of it was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SameProgram {
    /// Which one.
    pub variant: VariantId,
    /// The commit of the base.
    pub base: String,
    /// sha256 of the program, where it is one file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub program: Option<String>,
    /// The locked values that its hard limits were judged on, in words.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub limits: Vec<String>,
}
