//! Whose rules a run judged by.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose baselines, locks, tolerances and waivers a run judged by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Authority {
    /// The files of the working tree, which the author of a change could have edited.
    #[default]
    WorkingTree,
    /// A revision before the change.
    Revision {
        /// The commit.
        commit: String,
        /// How it was found, such as `tip of refs/remotes/origin/main`.
        found_by: String,
        /// Whether it has no configuration: the change brings the first one, and is judged by that.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        begins: bool,
    },
}
