//! The recordings of real runs, which are part of the repository and not of the package.

#![allow(
    dead_code,
    reason = "every test binary uses another part of these helpers"
)]
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

pub mod wire;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The folder of the recordings; its `README.md` says how each was made.
pub fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/ncu"))
}

/// Whether the tests that read recordings must be skipped. The first call reports it on the
/// terminal, past the test harness, which hides the output of a test that passes.
pub fn recordings_are_absent() -> bool {
    static ABSENT: LazyLock<bool> = LazyLock::new(|| {
        let absent = !folder().is_dir();
        if absent {
            // cargo adds this file to every package.
            let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml.orig");
            assert!(
                Path::new(manifest).is_file(),
                "the recordings are missing from the repository: {} does not exist",
                folder().display()
            );
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: every test of this file that reads a recording. {} does not exist: \
                 the recordings are in the repository, not in the package.",
                folder().display()
            );
        }
        absent
    });
    *ABSENT
}

/// The bytes of a recorded file.
pub fn bytes(name: &str) -> Vec<u8> {
    fs::read(folder().join(name)).unwrap()
}

/// A recorded page.
pub fn text(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}
