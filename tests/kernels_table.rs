//! docs/kernels.md shows of the kernels what was measured.

use crate::common::{aloud, repository};
use std::process::Command;

#[test]
fn the_table_of_the_kernels_is_what_the_record_gives() {
    if Command::new("python3").arg("--version").output().is_err() {
        aloud(
            "SKIPPED: the table of the kernels, there is no python3 on the PATH; \
             `apt-get install python3` installs one",
        );
        return;
    }
    let output = Command::new("python3")
        // Without a folder of byte code beside the scripts.
        .args(["-B", "ci/peers/picture.py", "--check"])
        .current_dir(repository())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
