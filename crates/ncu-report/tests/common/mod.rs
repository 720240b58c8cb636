//! The recordings of real runs.

#![allow(
    dead_code,
    reason = "every test binary uses another part of these helpers"
)]
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

pub mod wire;

use std::fs;
use std::path::PathBuf;

use ncu_report::Value;
use serde_json::Value as Json;

/// Recordings of which there are the report, its page, and what NVIDIA's module reads of it.
pub const IN_EVERY_FORM: [&str; 5] = [
    "four_metrics", "full_set", "graph_as_one", "twenty_launches", "two_kernels_three_times",
];

/// The folder of the recordings; its `README.md` says how each was made.
pub fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/ncu"))
}

/// The bytes of a recorded file.
pub fn bytes(name: &str) -> Vec<u8> {
    fs::read(folder().join(name)).unwrap()
}

/// A recorded page.
pub fn text(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

/// Whether a value is the one of NVIDIA's reader, bit for bit.
pub fn is_same(ours: &Value, theirs: &Json) -> bool {
    match (ours, theirs) {
        (Value::Missing, Json::Null) => true,
        (Value::Integer(ours), Json::Number(theirs)) => theirs.as_u64() == Some(*ours),
        (Value::Float(ours), Json::Number(theirs)) => {
            theirs.as_f64().map(f64::to_bits) == Some(ours.to_bits())
        }
        (Value::Text(ours), Json::String(theirs)) => **ours == **theirs,
        _ => false,
    }
}
