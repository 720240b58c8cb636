//! The reader of reports on files that are truncated, corrupt, of another kind, or made by hand.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use common::wire::Message;
use ncu_report::{ReadError, Recording, ResultKind, Value, report};
use proptest::prelude::*;

fn recorded(name: &str) -> Vec<u8> {
    common::bytes(&format!("{name}.ncu-rep"))
}

fn message(bytes: &[u8]) -> String {
    report::read(bytes).unwrap_err().to_string()
}

/// A report with these blocks: the header without the size of the payload, and the results.
fn report(version: u64, blocks: &[(Message, Vec<Message>)]) -> Vec<u8> {
    let mut file = report::MAGIC.to_vec();
    file.extend(Message::default().integer(1, version).sized());
    for (header, results) in blocks {
        let payload: Vec<u8> = results.iter().flat_map(Message::sized).collect();
        file.extend(header.clone().integer(5, payload.len() as u64).sized());
        file.extend(payload);
    }
    file
}

fn strings(names: &[&str]) -> Vec<u8> {
    names
        .iter()
        .fold(Message::default(), |table, name| {
            table.bytes(1, name.as_bytes())
        })
        .0
}

fn metric(id: u64, value: Message) -> Vec<u8> {
    Message::default().integer(1, id).bytes(2, &value.0).0
}

#[test]
fn a_report_cut_at_any_offset_is_an_error_with_an_offset_or_has_fewer_launches() {
    if common::recordings_are_absent() {
        return;
    }
    for (name, step) in [
        ("four_metrics", 97),
        ("graph_as_one", 211),
        ("two_kernels_three_times", 499),
    ] {
        let whole = recorded(name);
        let launches = report::read(&whole).unwrap().launches;
        let ends = (0..400)
            .chain((400..whole.len()).step_by(step))
            .chain(whole.len() - 40..whole.len());
        let mut rejected = 0;
        for end in ends {
            match report::read(&whole[..end]) {
                Ok(recording) => {
                    // Only a cut between two blocks leaves a report.
                    let count = recording.launches.len();
                    assert_eq!(
                        recording.launches[..],
                        launches[..count],
                        "{name} cut at {end}"
                    );
                }
                Err(ReadError::Report { offset, .. }) => {
                    assert!(offset <= end);
                    rejected += 1;
                }
                Err(ReadError::NotAReport { .. }) => assert!(end < 4),
                Err(other) => panic!("{other}"),
            }
        }
        assert!(rejected > 800, "{name}: {rejected}");
    }
}

#[test]
fn a_flipped_byte_never_makes_the_reader_panic() {
    if common::recordings_are_absent() {
        return;
    }
    let whole = recorded("four_metrics");
    let large = recorded("two_kernels_three_times");
    // xorshift, so that a failure can be repeated.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    // The machine code in the first half is not read, so aim at the headers and the results.
    for round in 0..4000 {
        let mut bytes = if round % 8 == 0 {
            large.clone()
        } else {
            whole.clone()
        };
        let aim = [0..200, 59_185..bytes.len()][usize::from(round % 4 != 0)].clone();
        for _ in 0..=round % 3 {
            let at = aim.start + random() % aim.len();
            bytes[at] ^= 1 << (random() % 8);
        }
        if let Err(error) = report::read(&bytes) {
            let text = error.to_string();
            assert!(
                text.starts_with("byte ") || text.starts_with("not an .ncu-rep"),
                "{text}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_bytes_make_the_reader_panic(bytes: Vec<u8>) {
        let _ = report::read(&bytes);
        let _ = report::read(&[&report::MAGIC[..], &bytes].concat());
    }

    #[test]
    fn no_block_header_makes_the_reader_panic(
        counts in prop::array::uniform5(prop_oneof![0_u64..3, any::<u64>()]),
        size in prop_oneof![0_u64..64, any::<u64>()],
        payload in prop::collection::vec(prop_oneof![0_u8..8, any::<u8>()], 0..64),
    ) {
        let mut header = Message::default().bytes(4, &strings(&["a", "b"]));
        for (field, count) in [1, 2, 7, 8, 9].into_iter().zip(counts) {
            header = header.integer(field, count);
        }
        let mut file = report(7, &[]);
        file.extend(header.integer(5, size).sized());
        file.extend(payload);
        let _ = report::read(&file);
    }
}

#[test]
fn a_file_of_another_kind_is_described() {
    for (bytes, found) in [
        (&b""[..], "an empty file"),
        (b"\x7fELF\x02\x01\x01", "an ELF file"),
        (
            b"hello there\nsecond line",
            "a text that begins with \"hello there\"",
        ),
        (
            b"\"ID\",\"Process ID\",\"Process Name\"",
            "a CSV page of ncu",
        ),
        (
            b"==PROF== Connected to process 1",
            "the console output of ncu",
        ),
        (b"NVR", "a text that begins with \"NVR\""),
        (
            b"\xff\xfe\x00\x01",
            "4 bytes that begin with [ff, fe, 00, 01]",
        ),
    ] {
        let error = report::read(bytes).unwrap_err();
        assert!(matches!(error, ReadError::NotAReport { .. }));
        assert!(error.to_string().contains(found), "{error}");
    }
}

#[test]
fn an_error_states_the_offset_and_what_was_expected() {
    if common::recordings_are_absent() {
        return;
    }
    let whole = recorded("four_metrics");
    assert_eq!(
        message(&whole[..100]),
        "byte 14: the header of the block at byte 10 needs 127 bytes, only 86 are left"
    );
    assert_eq!(
        message(&whole[..60_000]),
        "byte 59189: the header of the block at byte 59185 needs 9720 bytes, only 811 are left"
    );
    assert_eq!(
        message(b"NVR\0"),
        "byte 4: expected the length of the file header in four bytes, only 0 bytes are left"
    );
    assert_eq!(
        message(&report(7, &[])),
        "byte 10: expected a block after the file header"
    );
    let miscounted = report(
        7,
        &[(Message::default().integer(2, 2), vec![Message::default()])],
    );
    assert!(
        message(&miscounted).ends_with(
            "expected the length of a kernel result in four bytes, only 0 bytes are left"
        )
    );
    let left_over = report(
        7,
        &[(Message::default(), vec![Message::default().integer(1, 1)])],
    );
    assert!(
        message(&left_over)
            .ends_with("6 bytes follow the last result that the block's header counts")
    );
    let nameless = Message::default().bytes(13, &metric(5, Message::default().integer(5, 1)));
    let file = report(
        7,
        &[(
            Message::default().integer(2, 1).bytes(4, &strings(&["a"])),
            vec![nameless],
        )],
    );
    assert!(message(&file).ends_with("a metric has the NameId 5, the string table ends at 1"));
    let mistyped = Message::default().bytes(13, &metric(0, Message::default().integer(3, 1)));
    let file = report(
        7,
        &[(
            Message::default().integer(2, 1).bytes(4, &strings(&["a"])),
            vec![mistyped],
        )],
    );
    assert!(message(&file).ends_with("expected a double in field 3, found an integer"));
}

/// A Zstandard frame of blocks that are not compressed: the header behind the magic number, and each
/// block as its type (0: as it is, 1: the byte repeated), its size and its content.
fn frame(header: &[u8], blocks: &[(u32, usize, &[u8])]) -> Vec<u8> {
    let mut frame = 0xFD2F_B528_u32.to_le_bytes().to_vec();
    frame.extend(header);
    for (at, (kind, size, content)) in (1..).zip(blocks) {
        let last = u32::from(at == blocks.len());
        frame.extend(&(last | kind << 1 | (*size as u32) << 3).to_le_bytes()[..3]);
        frame.extend(*content);
    }
    frame
}

/// Header of a frame with a window of 1 MiB, which does not state the size of its content.
const MIB: [u8; 2] = [0, 10 << 3];

#[test]
fn a_compressed_report_is_read_as_the_report_in_it() {
    let plain = report(7, &[(Message::default(), vec![])]);
    let whole = (0, plain.len(), &plain[..]);
    // One segment of a size that is stated in a byte.
    let stated = [0x20, plain.len() as u8];
    for compressed in [
        frame(&MIB, &[whole]),
        frame(&stated, &[whole]),
        report::compress(&plain),
    ] {
        assert_eq!(
            report::read(&compressed).unwrap(),
            report::read(&plain).unwrap()
        );
        assert_eq!(
            ncu_report::read(&compressed).unwrap(),
            report::read(&plain).unwrap()
        );
        assert_eq!(report::machine_code(&compressed).unwrap(), vec![]);
        for end in 4..compressed.len() {
            let text = message(&compressed[..end]);
            assert!(
                text.starts_with("byte 0: a Zstandard frame: "),
                "{end}: {text}"
            );
        }
    }
    if common::recordings_are_absent() {
        return;
    }
    for name in [
        "four_metrics",
        "full_set",
        "graph_as_one",
        "twenty_launches",
    ] {
        let plain = recorded(name);
        let compressed = report::compress(&plain);
        assert!(compressed.len() < plain.len());
        assert!(report::read(&compressed).unwrap() == report::read(&plain).unwrap());
        let codes = report::machine_code(&plain).unwrap();
        assert!(report::machine_code(&compressed).unwrap() == codes && !codes.is_empty());
    }
}

#[test]
fn a_compressed_report_that_is_damaged_or_takes_much_memory_is_rejected() {
    let plain = report(7, &[(Message::default(), vec![])]);
    let whole = (0, plain.len(), &plain[..]);
    let two = [frame(&MIB, &[whole]), frame(&MIB, &[whole])].concat();
    let much = vec![(1, 1 << 17, &b"N"[..]); 1000];
    let begun = [(0, 4, &plain[..4])]
        .into_iter()
        .chain(much.iter().copied());
    for (file, problem) in [
        (two, "bytes follow it"),
        (
            frame(&[0x20, 77], &[whole]),
            "it states 77 bytes and has 16",
        ),
        // A window of 256 MiB; a size of 2 GiB that is stated in four bytes; one that is not stated.
        (frame(&[0, 18 << 3], &[whole]), "window_size is too big"),
        (
            frame(&[0xa0, 0, 0, 0, 0x80], &[whole]),
            "window_size is too big",
        ),
        (frame(&[0x80, 80, 0, 0, 0, 0x80], &[whole]), "more than"),
        (frame(&MIB, &begun.collect::<Vec<_>>()), "more than"),
        (
            frame(&MIB, &much),
            "a Zstandard frame around a text that begins with \"NNNN",
        ),
        (frame(&MIB, &[(0, 0, b"")]), "found an empty file"),
        (frame(&[0x01, 80, 1], &[whole]), "dictionary"),
    ] {
        let text = message(&file);
        assert!(text.contains(problem), "{text}");
        assert!(text.len() < 400, "{text}");
    }
}

#[test]
fn a_file_of_empty_results_is_rejected_before_it_fills_the_memory() {
    let block = (
        Message::default().integer(2, 1_000_000),
        vec![Message::default(); 1_000_000],
    );
    assert!(message(&report(7, &[block])).contains("needs more memory than 4 times the file"));
}

#[test]
fn a_string_table_of_empty_names_is_rejected() {
    let names = vec![""; 100_000];
    let header = Message::default().bytes(4, &strings(&names));
    assert!(message(&report(7, &[(header, vec![])])).contains("as no real report has"));
}

#[test]
fn a_huge_count_or_size_is_rejected() {
    for field in [1, 2, 7, 8, 9] {
        let header = Message::default().integer(field, u64::MAX);
        assert!(message(&report(7, &[(header, vec![])])).contains("only 0 bytes are left"));
    }
    let mut file = report(7, &[]);
    file.extend(Message::default().integer(5, u64::MAX).sized());
    assert!(
        message(&file)
            .contains("the payload of the block at byte 10 needs 18446744073709551615 bytes")
    );
}

#[test]
fn a_string_table_names_the_results_of_earlier_blocks_and_an_empty_one_resets_nothing() {
    let result = || {
        let value = Message::default().integer(5, 7);
        Message::default()
            .bytes(6, b"k")
            .bytes(13, &metric(1, value))
    };
    let file = report(
        7,
        &[
            (Message::default().integer(2, 1), vec![result()]),
            (
                Message::default().bytes(4, &strings(&["a", "gpu__time_duration.sum"])),
                vec![],
            ),
            (
                Message::default().integer(2, 1).bytes(4, &[]),
                vec![result()],
            ),
        ],
    );
    let recording = report::read(&file).unwrap();
    assert_eq!(recording.launches.len(), 2);
    for launch in &recording.launches {
        assert_eq!(launch.number("gpu__time_duration.sum"), Some(7.0));
        // The file does not state the chip, and the unit is the same on all.
        let unit = launch.metrics["gpu__time_duration.sum"].unit;
        assert_eq!(unit.symbol(), Some("ns"));
    }
}

#[test]
fn a_later_string_table_continues_the_first_one_unless_it_repeats_it() {
    let name_of = |id: u64, second: &[&str]| {
        let value = Message::default().integer(5, 7);
        let result = Message::default()
            .bytes(6, b"k")
            .bytes(13, &metric(id, value));
        let blocks = [
            (Message::default().bytes(4, &strings(&["a", "b"])), vec![]),
            (
                Message::default().integer(2, 1).bytes(4, &strings(second)),
                vec![result],
            ),
        ];
        let recording = report::read(&report(7, &blocks)).unwrap();
        let names: Vec<String> = recording.launches[0]
            .metrics
            .keys()
            .map(|name| name.to_string())
            .collect();
        names.join(" ")
    };
    assert_eq!(name_of(2, &["c", "d"]), "c");
    assert_eq!(name_of(3, &["c", "d"]), "d");
    assert_eq!(name_of(2, &["a", "b", "c"]), "c");
}

#[test]
fn results_of_other_metrics_and_other_chips_keep_their_own_names_and_units() {
    let names = [
        "device__attribute_compute_capability_major",
        "device__attribute_compute_capability_minor",
        "gcc__xbar2gcc_sectors.sum",
        "gpu__time_duration.sum",
    ];
    let result = |major: u64, counter: u64| {
        [(0, major), (1, 0), (counter, 5)].into_iter().fold(
            Message::default(),
            |result, (id, value)| {
                result.bytes(13, &metric(id, Message::default().integer(5, value)))
            },
        )
    };
    let header = Message::default().integer(2, 3).bytes(4, &strings(&names));
    let file = report(
        7,
        &[(header, vec![result(9, 2), result(9, 3), result(8, 2)])],
    );
    let launches = report::read(&file).unwrap().launches;
    let counters = |index: usize| -> Vec<(&str, Option<&str>)> {
        let metrics = launches[index].metrics.iter().skip(2);
        metrics
            .map(|(name, found)| (&**name, found.unit.symbol()))
            .collect()
    };
    let sectors = "gcc__xbar2gcc_sectors.sum";
    assert_eq!(counters(0), [(sectors, Some(""))]);
    assert_eq!(counters(1), [("gpu__time_duration.sum", Some("ns"))]);
    assert_eq!(counters(2), [(sectors, Some("sector"))]);
    assert_eq!(launches[2].compute_capability, Some((8, 0)));
}

/// As in NVIDIA's `ncu_report` (2025.3.1 and 2026.3.1 agree).
#[test]
fn of_a_metric_that_stands_several_times_in_a_launch_only_the_last_one_counts() {
    let names = [
        "inst_executed",
        "inst_executed",
        "device__attribute_compute_capability_major",
        "device__attribute_compute_capability_minor",
    ];
    let number = |value| Message::default().integer(5, value).0;
    // A metric with its value, if it has one, and the counts of two instructions, if it has a list.
    let metric = |id: u64, value: Option<u64>, list: Option<[(u64, u64); 2]>| {
        let mut metric = Message::default().integer(1, id);
        if let Some(value) = value {
            metric = metric.bytes(2, &number(value));
        }
        for (address, count) in list.into_iter().flatten() {
            let one = Message::default().bytes(1, &number(address));
            metric = metric.bytes(3, &one.bytes(2, &number(count)).0);
        }
        metric
    };
    let launch = |metrics: Vec<Message>| {
        let result = Message::repeated(13, metrics);
        let header = Message::default().integer(2, 1).bytes(4, &strings(&names));
        let recording = report::read(&report(7, &[(header, vec![result])])).unwrap();
        recording.launches[0].clone()
    };
    let first = || metric(0, Some(5), Some([(16, 1), (32, 2)]));
    type Counts = Vec<(u64, u64)>;
    let read = |later: Message| -> (Value, Counts) {
        let launch = launch(vec![first(), later]);
        assert_eq!(launch.metrics.len(), 1);
        let source = launch.source.iter();
        let counts = source.flat_map(|source| &source.instructions);
        let counts = counts.map(|one| (one.address, one.executed.unwrap()));
        let value = launch.metrics["inst_executed"].value.clone();
        (value, counts.collect())
    };
    // The same name under another number is the same metric.
    for id in [0, 1] {
        assert_eq!(read(metric(id, Some(0), None)), (Value::Integer(0), vec![]));
        assert_eq!(read(metric(id, None, None)), (Value::Missing, vec![]));
        assert_eq!(
            read(metric(id, Some(6), Some([(32, 7), (48, 8)]))),
            (Value::Integer(6), vec![(32, 7), (48, 8)])
        );
        assert_eq!(
            read(metric(id, None, Some([(32, 7), (48, 8)]))),
            (Value::Missing, vec![(32, 7), (48, 8)])
        );
    }
    // Also of what says which chip it is.
    let capability = [(2, 8), (3, 0), (2, 9)].map(|(id, value)| metric(id, Some(value), None));
    assert_eq!(launch(capability.to_vec()).compute_capability, Some((9, 0)));
}

fn one_result(
    kind_field: u64,
    metrics_field: u64,
    names: &[&str],
    values: Vec<Message>,
) -> Recording {
    let mut result = Message::default();
    for (id, value) in (0..).zip(values) {
        result = result.bytes(metrics_field, &metric(id, value));
    }
    let header = Message::default()
        .integer(kind_field, 1)
        .bytes(4, &strings(names));
    report::read(&report(7, &[(header, vec![result])])).unwrap()
}

#[test]
fn each_type_of_value_keeps_its_full_precision() {
    let of = |value: Message| {
        one_result(2, 13, &["m"], vec![value]).launches[0].metrics["m"]
            .value
            .clone()
    };
    let empty = Message::default;
    assert_eq!(of(empty().bytes(1, b"text")), Value::Text("text".into()));
    assert_eq!(of(empty().float(2, 0.1)), Value::Float(f64::from(0.1_f32)));
    assert_eq!(of(empty().double(3, 0.1)), Value::Float(0.1));
    assert_eq!(
        of(empty().integer(4, 4_294_967_295)),
        Value::Integer(4_294_967_295)
    );
    assert_eq!(of(empty().integer(5, u64::MAX)), Value::Integer(u64::MAX));
    for missing in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(of(empty().double(3, missing)), Value::Missing);
        assert_eq!(of(empty().float(2, missing as f32)), Value::Missing);
    }
    assert_eq!(of(empty()), Value::Missing);
}

#[test]
fn a_text_of_16_mib_is_read_and_a_longer_one_is_rejected() {
    let longest = vec![b'x'; 1 << 24];
    let value = Message::default().bytes(1, &longest);
    let launches = one_result(2, 13, &["m"], vec![value]).launches;
    assert_eq!(
        launches[0].metrics["m"].value.text().map(str::len),
        Some(1 << 24)
    );
    let value = Message::default().bytes(1, &[longest, vec![b'x']].concat());
    let result = Message::default().bytes(13, &metric(0, value));
    let header = Message::default().integer(2, 1).bytes(4, &strings(&["m"]));
    let text = message(&report(7, &[(header, vec![result])]));
    assert!(
        text.ends_with("a text has 16777217 bytes, the limit is 16777216"),
        "{text}"
    );
}

#[test]
fn ranges_and_command_lists_are_results_too() {
    let names = [
        "launch__grid_dim_x",
        "launch__grid_dim_y",
        "launch__grid_dim_z",
        "launch__device_id",
    ];
    let numbers = |values: [u64; 4]| {
        values
            .map(|value| Message::default().integer(5, value))
            .to_vec()
    };
    for (field, kind, name) in [
        (7, ResultKind::Range, "range"),
        (8, ResultKind::CommandList, "cmdlist"),
        (9, ResultKind::Graph, "graph"),
    ] {
        let recording = one_result(field, 4, &names, numbers([8, 4, 2, 1]));
        let launch = &recording.launches[0];
        assert_eq!((launch.kind, launch.kernel.function.as_str()), (kind, name));
        assert_eq!((launch.grid, launch.device), ([8, 4, 2], Some(1)));
    }
}

#[test]
fn a_newer_format_version_is_stated_and_read() {
    if common::recordings_are_absent() {
        return;
    }
    let mut bytes = recorded("four_metrics");
    let known = report::read(&bytes).unwrap();
    assert_eq!(known.format_version, Some(report::KNOWN_FORMAT_VERSION));
    // Magic, length 2, field 1, then the version.
    assert_eq!(bytes[8..10], [0x08, 7]);
    bytes[9] = 8;
    let newer = report::read(&bytes).unwrap();
    assert_eq!(newer.format_version, Some(8));
    assert_eq!(newer.launches, known.launches);
    // Results of an unknown kind may follow the known ones.
    let unknown_kind = report(
        8,
        &[(Message::default(), vec![Message::default().integer(1, 1)])],
    );
    assert_eq!(report::read(&unknown_kind).unwrap().launches, []);
}

#[test]
fn the_session_and_the_launch_are_described() {
    if common::recordings_are_absent() {
        return;
    }
    let recording = report::read(&recorded("two_kernels_three_times")).unwrap();
    assert_eq!(recording.created_unix_s, Some(1_795_227_169));
    let version = recording.profiler_version.unwrap();
    assert!(version.starts_with("2025.3.1.0 "), "{version}");
    assert!(recording.command_line.unwrap().contains("/ncu"));
    assert_eq!(recording.launches.len(), 6);
    let launch = &recording.launches[1];
    assert_eq!(launch.kind, ResultKind::Kernel);
    assert_eq!(launch.kernel.function, "k2");
    assert_eq!(launch.kernel.mangled.as_deref(), Some("_Z2k2IfLi8EEvPT_i"));
    assert_eq!(
        launch.kernel.demangled.as_deref(),
        Some("void k2<float, (int)8>(T1 *, int)")
    );
    assert_eq!((launch.grid, launch.block), ([16384, 1, 1], [256, 1, 1]));
    assert_eq!((launch.process_id, launch.device), (Some(886), Some(0)));
    assert_eq!((launch.context, launch.stream), (Some(1), Some(13)));
    assert_eq!(launch.clock_locked, Some(false));
    let graph = report::read(&recorded("graph_as_one")).unwrap();
    let launch = &graph.launches[2];
    assert_eq!(
        (launch.kind, launch.kernel.mangled.as_deref()),
        (ResultKind::Graph, None)
    );
    assert_eq!((launch.context, launch.stream), (Some(1), Some(13)));
    assert_eq!(
        (launch.process_id, launch.clock_locked),
        (Some(2170), Some(false))
    );
}

#[test]
fn a_kernel_without_a_demangled_name_has_none() {
    let result = Message::default()
        .bytes(5, b"_Z1kv")
        .bytes(6, b"k")
        .bytes(7, b"");
    let recording = report::read(&report(
        7,
        &[(Message::default().integer(2, 1), vec![result])],
    ))
    .unwrap();
    assert_eq!(recording.launches[0].kernel.demangled, None);
    assert_eq!(
        recording.launches[0].kernel.mangled.as_deref(),
        Some("_Z1kv")
    );
}
