//! Where the user states how a variant is measured.

use serde::Serialize;

/// Where the settings of a variant come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum StatedBy {
    /// The configuration file.
    Configuration,
    /// The arguments of `compare`.
    Compare,
    /// Nobody: `init -- PROGRAM` chooses them.
    Init,
}
