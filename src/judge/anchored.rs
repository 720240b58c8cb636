//! How far a value is from that of an anchor, in reports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Tolerance;
use crate::verdict::Change;

/// A current value against the anchor: the value that all accepted changes are counted from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Anchored {
    /// When the anchor was locked, RFC 3339, UTC.
    pub since: String,
    /// Its value, in the counter's unit.
    pub value: f64,
    /// Current against it. The difference between the GPUs is part of it.
    pub change: Change,
    /// How much worse than it all accepted changes together may be.
    pub budget: Tolerance,
}
