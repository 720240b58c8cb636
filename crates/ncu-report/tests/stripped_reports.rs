//! Copies of reports without sources, machine code, and names of machines and people.

mod common;

use std::collections::BTreeMap;

use ncu_report::{Launch, ReadError, report};

/// What the recordings contain and no copy may contain.
const FORBIDDEN: [&str; 4] = ["/opt/", "192.0.2.2", "#include <cuda_fp16.h>", "#1 SMP"];

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

/// The copy, how many parts of each kind were removed, and the host names that were found.
type Copy = (Vec<u8>, BTreeMap<&'static str, u64>, Vec<String>);

fn strip(bytes: &[u8], keep_machine_code: bool) -> Result<Copy, ReadError> {
    let mut removed = BTreeMap::new();
    let mut hosts = Vec::new();
    let mut stripping = report::Stripping {
        keep_machine_code,
        text: &mut |text| {
            let words = text.split(' ').map(|word| match word.rsplit_once('/') {
                Some((_, name)) => name,
                None => word,
            });
            Some(words.collect::<Vec<_>>().join(" "))
        },
        suspect: &|bytes| bytes.contains(&b'/'),
        command: &mut |_| "ncu".to_owned(),
        host: &mut |name| hosts.push(name.to_owned()),
        removed: &mut removed,
    };
    let copy = report::strip(bytes, &mut stripping)?;
    Ok((copy, removed, hosts))
}

/// A launch without what identifies the GPU, and without the source lines, which are read from
/// the machine code.
fn measured(mut launch: Launch) -> (Launch, Vec<String>) {
    let names: Vec<_> = launch.metrics.keys().cloned().collect();
    for name in names.iter().filter(|name| report::identifies_the_gpu(name)) {
        launch.metrics.remove(name);
    }
    let source = launch.source.take();
    let instructions = source.iter().flat_map(|source| &source.instructions);
    let counts = instructions
        .map(|one| {
            format!(
                "{:?}",
                (one.address, one.executed, one.samples, &one.stalls)
            )
        })
        .collect();
    (launch, counts)
}

#[test]
fn a_copy_has_every_number_and_nothing_that_is_forbidden() {
    if common::recordings_are_absent() {
        return;
    }
    for name in [
        "four_metrics",
        "full_set",
        "graph_as_one",
        "twenty_launches",
    ] {
        let original = common::bytes(&format!("{name}.ncu-rep"));
        let (copy, ..) = strip(&original, false).unwrap();
        for text in FORBIDDEN {
            assert!(!contains(&copy, text), "{name}: {text}");
        }
        assert!(copy.len() < original.len(), "{name}");
        let (original, copy) = (
            report::read(&original).unwrap(),
            report::read(&copy).unwrap(),
        );
        assert_eq!(copy.command_line.as_deref(), Some("ncu"), "{name}");
        assert_eq!(copy.profiler_version, original.profiler_version, "{name}");
        let measured =
            |launches: Vec<Launch>| -> Vec<_> { launches.into_iter().map(measured).collect() };
        assert!(
            measured(copy.launches) == measured(original.launches),
            "{name}"
        );
    }
    let full = common::bytes("full_set.ncu-rep");
    for text in FORBIDDEN {
        assert!(contains(&full, text), "{text}: the search proves nothing");
    }
}

#[test]
fn the_removed_parts_are_counted_by_kind() {
    if common::recordings_are_absent() {
        return;
    }
    let full = common::bytes("full_set.ncu-rep");
    let (copy, removed, hosts) = strip(&full, false).unwrap();
    assert_eq!(removed["source file"], 2);
    assert_eq!(removed["machine code"], 1);
    assert_eq!(removed["command line"], 1);
    assert_eq!(removed["network address"], 3);
    assert_eq!(removed["host name"], hosts.len() as u64);
    assert!(!contains(&copy, "\u{7f}ELF"));
    let (copy, removed, _) = strip(&full, true).unwrap();
    assert_eq!(removed["debug information"], 1);
    assert_eq!(removed.get("machine code"), None);
    assert!(contains(&copy, "\u{7f}ELF") && !contains(&copy, "/opt/"));
}

#[test]
fn a_report_of_an_unknown_format_version_is_rejected() {
    if common::recordings_are_absent() {
        return;
    }
    let mut bytes = common::bytes("nvtx_range.ncu-rep");
    assert_eq!(bytes[9], 7);
    bytes[9] = 8;
    let error = strip(&bytes, false).unwrap_err().to_string();
    assert!(error.starts_with("byte "), "{error}");
    assert!(strip(b"hello", false).is_err());
}
