//! Copies of reports without sources, machine code, and names of machines and people.

use std::collections::BTreeMap;

use ncu_report::{Launch, Scrubber, report};

use crate::common;

/// What the recordings contain and no copy may contain.
const FORBIDDEN: [&str; 4] = ["/opt/", "192.0.2.2", "#include <cuda_fp16.h>", "#1 SMP"];

/// What also no copy may contain.
const ABSENT: [&str; 5] = [
    "/usr/",
    "/home",
    "fe80::",
    "NVIDIA Corporation.  All rights reserved",
    "GPU-c3ca41f9",
];

fn contains(bytes: &[u8], text: &str) -> bool {
    let mut parts = bytes.windows(text.len());
    parts.any(|part| part == text.as_bytes())
}

/// The copy, and how many parts of each kind were removed.
fn strip(bytes: &[u8], keep_machine_code: bool) -> (Vec<u8>, BTreeMap<&'static str, u64>) {
    let mut scrubber = Scrubber::default();
    let copy = report::strip(bytes, &mut scrubber, keep_machine_code).unwrap();
    (copy, scrubber.removed)
}

/// A launch without what identifies the GPU.
fn measured(mut launch: Launch) -> Launch {
    let metrics = launch.metrics.iter();
    let others = metrics.filter(|(name, _)| !report::identifies_the_gpu(name));
    let others = others.map(|(name, value)| (name.clone(), value.clone()));
    launch.metrics = others.collect();
    launch
}

#[test]
fn a_copy_has_every_number_and_nothing_that_is_forbidden() {
    for name in [
        "four_metrics", "full_set", "graph_as_one", "nvtx_range", "twenty_launches",
        "two_kernels_three_times",
    ] {
        let original = common::bytes(&format!("{name}.ncu-rep"));
        let (copy, _) = strip(&original, false);
        for text in FORBIDDEN.into_iter().chain(ABSENT) {
            assert!(!contains(&copy, text), "{name}: {text}");
        }
        assert!(copy.len() < original.len(), "{name}");
        let [original, copy] = [original, copy].map(|bytes| report::read(&bytes).unwrap());
        // Under which conditions it was measured is not lost.
        let command = copy.command_line.as_deref().unwrap();
        assert!(command.starts_with("ncu --"), "{name}: {command}");
        let states = command.contains("--clock-control none");
        assert!(states, "{name}: {command}");
        assert_eq!(copy.profiler_version, original.profiler_version, "{name}");
        let copied = copy.launches.into_iter().map(measured);
        let recorded = original.launches.into_iter().map(measured);
        assert!(copied.eq(recorded), "{name}");
    }
    let full = common::bytes("full_set.ncu-rep");
    for text in FORBIDDEN {
        assert!(contains(&full, text), "{text}: the search proves nothing");
    }
}

#[test]
fn the_removed_parts_are_counted_by_kind() {
    let full = common::bytes("full_set.ncu-rep");
    let (copy, removed) = strip(&full, false);
    assert_eq!(removed["source file"], 2);
    assert_eq!(removed["machine code"], 1);
    assert_eq!(removed["command line"], 1);
    assert_eq!(removed["network address"], 3);
    assert!(removed["host name"] > 0);
    assert!(!contains(&copy, "\u{7f}ELF"));
    let (copy, removed) = strip(&full, true);
    assert_eq!(removed["debug information"], 1);
    assert_eq!(removed.get("machine code"), None);
    assert!(contains(&copy, "\u{7f}ELF") && !contains(&copy, "/opt/"));
}

#[test]
fn a_report_of_an_unknown_format_version_is_rejected() {
    let mut bytes = common::bytes("nvtx_range.ncu-rep");
    assert_eq!(bytes[9], 7);
    bytes[9] = 8;
    let refused = |bytes: &[u8]| {
        let copy = report::strip(bytes, &mut Scrubber::default(), false);
        copy.unwrap_err().to_string()
    };
    let error = refused(&bytes);
    assert!(error.starts_with("byte "), "{error}");
    assert!(error.contains("a copy could contain what must be removed"));
    refused(b"hello");
}
