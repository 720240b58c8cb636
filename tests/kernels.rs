//! The shipped kernels compile with the pinned compiler, and as their headers say.

use std::io::Write;
use std::process::Command;

/// True where nvcc is; otherwise says aloud, past the test harness's capture, what was skipped.
fn nvcc_is_here() -> bool {
    let found = Command::new("nvcc").arg("--version").output().is_ok();
    if !found {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: the kernels were not compiled, there is no nvcc on the PATH; \
             `ci/install-cuda.sh target/cuda && source target/cuda/env.sh` installs one"
        );
    }
    found
}

#[test]
fn every_shipped_kernel_compiles_without_spilling_registers() {
    if !nvcc_is_here() {
        return;
    }
    let root = env!("CARGO_MANIFEST_DIR");
    let work = tempfile::tempdir().unwrap();
    let config = std::fs::read_to_string(format!("{root}/config.toml")).unwrap();
    let copied = Command::new("cp")
        .args(["-r", &format!("{root}/kernels")])
        .arg(work.path())
        .status();
    assert!(copied.unwrap().success());
    std::fs::write(work.path().join("config.toml"), config).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_sparsek-gate"))
        .current_dir(work.path())
        .args(["build", "--experimental", "--format", "json"])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let variants = answer["variants"].as_array().unwrap();
    assert_eq!(variants.len(), 6);
    for variant in variants {
        let name = variant["variant"].as_str().unwrap();
        let kernels = variant["kernels"].as_object().unwrap();
        assert!(
            kernels.keys().any(|kernel| kernel.starts_with("bsr_gemm_")),
            "{name}"
        );
        for (kernel, resources) in kernels {
            assert_eq!(resources["spill_store_bytes"], 0, "{name}: {kernel}");
            assert_eq!(resources["spill_load_bytes"], 0, "{name}: {kernel}");
            assert!(
                resources["registers"]
                    .as_u64()
                    .is_some_and(|registers| registers > 0),
                "{name}: {kernel}"
            );
        }
    }
}
