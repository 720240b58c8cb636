//! The name of a variant.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Names a variant, `suite/variant`.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(into = "String", try_from = "String")]
#[schemars(with = "String")]
pub struct VariantId {
    /// The suite.
    pub suite: String,
    /// The variant within it.
    pub variant: String,
}

impl std::fmt::Display for VariantId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{}/{}", self.suite, self.variant))
    }
}

impl From<VariantId> for String {
    fn from(id: VariantId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for VariantId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.split_once('/') {
            Some((suite, variant)) if is_name(suite) && is_name(variant) => Ok(VariantId {
                suite: suite.to_owned(),
                variant: variant.to_owned(),
            }),
            _ => Err(format!("there is no variant `{text}`: write suite/variant")),
        }
    }
}

/// Whether a variable of the environment, or a constant of a compiler, can have this name.
pub(crate) fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A name becomes a folder or a file: it must not leave its place.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}
