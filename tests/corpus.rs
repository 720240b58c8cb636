//! Every reader of foreign bytes withstands the inputs of its fuzz target, and some that are changed
//! a little: the same in each run. `fuzz/run.sh` finds more, guided by coverage.

#![allow(dead_code, reason = "the program for libFuzzer uses the rest")]
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the targets are tests, and print what failed"
)]

#[path = "../fuzz/src/checks.rs"]
mod checks;
#[path = "../fuzz/src/edits.rs"]
mod edits;
#[path = "../fuzz/src/json.rs"]
mod json;
#[path = "../fuzz/src/limits.rs"]
mod limits;
#[path = "../fuzz/src/random.rs"]
mod random;
#[path = "../fuzz/src/targets.rs"]
mod targets;
#[path = "../fuzz/src/wire.rs"]
mod wire;

use std::collections::BTreeMap;
use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use random::Random;
use targets::{TARGETS, Target};

/// Changes of each input.
const CHANGES: usize = 8;

/// The inputs of each target, by its name.
#[expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]
fn corpus() -> BTreeMap<String, Vec<Vec<u8>>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let files = |folder: &Path| -> Vec<_> {
        let files = fs::read_dir(folder).unwrap();
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        files
    };
    let folders = files(&corpus).into_iter();
    let folders = folders.map(|folder| {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let inputs = files(&folder).into_iter();
        (name, inputs.map(|file| fs::read(file).unwrap()).collect())
    });
    folders.collect()
}

/// The input with one change: of its structure, of a byte, or at its end.
fn changed(target: &Target, input: &[u8], random: &mut Random) -> Vec<u8> {
    if let Some(changed) = target.mutation.changed(input, random) {
        return changed;
    }
    let mut changed = input.to_vec();
    let at = random.below(changed.len());
    match random.below(3) {
        0 => changed.truncate(at),
        1 => changed.insert(at, *random.pick(b"\0\n\",:-9\xff")),
        _ if changed.is_empty() => {}
        _ => changed[at] ^= 1 << random.below(8),
    }
    changed
}

#[test]
fn every_reader_withstands_the_inputs_of_its_target_and_changes_of_them() {
    let corpus = corpus();
    let named: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    let strange: Vec<_> = corpus
        .keys()
        .filter(|name| !named.contains(&name.as_str()))
        .collect();
    assert!(strange.is_empty(), "inputs without a target: {strange:?}");
    let mut random = Random::new(1);
    for target in &TARGETS {
        let inputs = &corpus[target.name];
        assert!(!inputs.is_empty(), "{} has no input", target.name);
        // What is read and compiled once, such as patterns, counts for no input.
        (target.run)(b"");
        (target.run)(b"{}");
        for input in inputs {
            let check = |input: &[u8]| {
                let run = || limits::checked(input.len(), || (target.run)(input));
                let shown = input.escape_ascii();
                assert!(catch_unwind(run).is_ok(), "{}: {shown}", target.name);
            };
            check(input);
            for _ in 0..CHANGES {
                check(&changed(target, input, &mut random));
            }
        }
    }
}

/// `fuzz/run.sh` does not build with another lock file. No test builds it.
#[test]
fn the_lock_file_of_the_fuzz_targets_has_the_dependencies_of_the_packages() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| -> toml::Table {
        let text = fs::read_to_string(root.join(path)).unwrap();
        text.parse().unwrap()
    };
    let lock = read("fuzz/Cargo.lock");
    for (package, manifest) in [
        ("sparsek-gate", "Cargo.toml"),
        ("ncu-report", "crates/ncu-report/Cargo.toml"),
    ] {
        let mut packages = lock["package"].as_array().unwrap().iter();
        let locked = packages.find(|one| one["name"].as_str() == Some(package));
        let locked = locked.unwrap()["dependencies"].as_array().unwrap().iter();
        // With its version, where there are two.
        let locked = locked.map(|name| name.as_str().unwrap().split(' ').next().unwrap());
        let manifest = read(manifest);
        let required = manifest["dependencies"].as_table().unwrap().keys();
        assert!(locked.eq(required.map(String::as_str)), "{package}");
    }
}
