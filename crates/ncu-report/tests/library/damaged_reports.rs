//! The reader of reports on files that are truncated, corrupt, of another kind, or made by hand.

use ncu_report::{Launch, ReadError, ResultKind, Value, report};

use crate::common;
use crate::common::wire::{self, Message, metric, number, report_of, result, strings};

fn recorded(name: &str) -> Vec<u8> {
    common::bytes(&format!("{name}.ncu-rep"))
}

fn message(bytes: &[u8]) -> String {
    report::read(bytes).unwrap_err().to_string()
}

/// A report of version 7.
fn made(blocks: &[(Message, Vec<Message>)]) -> Vec<u8> {
    wire::report(7, blocks)
}

/// The header of a block that has this many kernel results.
fn counting(results: u64) -> Message {
    Message::default().integer(2, results)
}

#[test]
fn a_report_cut_at_any_offset_is_an_error_with_an_offset_or_has_fewer_launches() {
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
fn a_file_of_another_kind_is_described() {
    let text = "a text of 23 bytes";
    for (bytes, found) in [
        (&b""[..], "an empty file"),
        (b"\x7fELF\x02\x01\x01", "an ELF file"),
        (b"hello there\nsecond line", text),
        (b"\"ID\",\"Process ID\"", "a CSV page of ncu"),
        (b"==PROF== Connected", "the console output of ncu"),
        (b"NVR", "a text of 3 bytes"),
        (b"\xff\xfe\x00", "3 bytes of another format"),
    ] {
        let error = report::read(bytes).unwrap_err();
        assert!(matches!(error, ReadError::NotAReport { .. }));
        assert!(error.to_string().contains(found), "{error}");
    }
}

#[test]
fn an_error_states_the_offset_and_what_was_expected() {
    let whole = recorded("four_metrics");
    let empty = Message::default;
    let unnamed = result([metric(5, number(1))]);
    let mistyped = result([metric(0, empty().integer(3, 1))]);
    let damaged = [
        whole[..100].to_vec(),
        whole[..60_000].to_vec(),
        b"NVR\0".to_vec(),
        made(&[(counting(2), vec![empty()])]),
        made(&[]),
        made(&[(empty(), vec![empty().integer(1, 1)])]),
        [&whole[..], &whole[..]].concat(),
        [&whole[..], b"behind it"].concat(),
        report_of(&[b"a"], &[], &[unnamed]),
        report_of(&[b"a"], &[], &[mistyped]),
    ];
    let problems = "\
        byte 14: the header of the block at byte 10 needs 127 bytes, only 86 are left: the file is cut, or has something else at its end: copy it again
        byte 59189: the header of the block at byte 59185 needs 9720 bytes, only 811 are left: the file is cut, or has something else at its end: copy it again
        byte 4: the length of the file header needs 4 bytes, only 0 are left: the file is cut, or has something else at its end: copy it again
        the length of a kernel result needs 4 bytes, only 0 are left: the file is cut, or has something else at its end: copy it again
        byte 10: expected a block after the file header: the file is cut, copy it again
        6 bytes follow the last result that the block's header counts
        another report begins here: two files were joined; import each of them
        the file is cut, or has something else at its end: copy it again
        a metric has the NameId 5, the string table ends at 1
        expected a double in field 3, found an integer";
    let problems: Vec<&str> = problems.lines().map(str::trim).collect();
    assert_eq!(problems.len(), damaged.len());
    for (bytes, problem) in damaged.iter().zip(problems) {
        let text = message(bytes);
        assert!(text.ends_with(problem), "{text}");
    }
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
    let plain = made(&[(Message::default(), vec![])]);
    let whole = (0, plain.len(), &plain[..]);
    // One segment of a size that is stated in a byte.
    let stated = [0x20, plain.len() as u8];
    for compressed in [
        frame(&MIB, &[whole]),
        frame(&stated, &[whole]),
        report::compress(&plain),
    ] {
        let expected = report::read(&plain).unwrap();
        assert_eq!(report::read(&compressed).unwrap(), expected);
        assert_eq!(ncu_report::read(&compressed).unwrap(), expected);
        assert_eq!(report::machine_code(&compressed).unwrap(), vec![]);
        for end in 4..compressed.len() {
            let text = message(&compressed[..end]);
            assert!(text.starts_with("byte 0: a Zstandard frame: "), "{text}");
        }
    }
    for name in ["four_metrics", "full_set", "graph_as_one"] {
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
    let plain = made(&[(Message::default(), vec![])]);
    let whole = (0, plain.len(), &plain[..]);
    let two = [frame(&MIB, &[whole]), frame(&MIB, &[whole])].concat();
    let much = vec![(1, 1 << 17, &b"N"[..]); 1000];
    let begun = [&[(0, 4, &plain[..4])], &much[..]].concat();
    let nothing = [(0, 0, &b""[..])];
    let stated = "it states 77 bytes and has 16";
    for (header, blocks, problem) in [
        (&[0x20, 77][..], &[whole][..], stated),
        // A window of 256 MiB; a size of 2 GiB that is stated in four bytes; one that is not stated.
        (&[0, 18 << 3], &[whole], "window_size is too big"),
        (&[0xa0, 0, 0, 0, 0x80], &[whole], "window_size is too big"),
        (&[0x80, 80, 0, 0, 0, 0x80], &[whole], "more than"),
        (&MIB, &begun, "more than"),
        (&MIB, &much, "around a text of "),
        (&MIB, &nothing, "found an empty file"),
        (&[0x01, 80, 1], &[whole], "dictionary"),
    ] {
        let text = message(&frame(header, blocks));
        assert!(text.contains(problem), "{text}");
        assert!(text.len() < 400, "{text}");
    }
    assert!(message(&two).contains("bytes follow it"));
}

#[test]
fn a_block_that_takes_much_memory_for_its_size_is_rejected() {
    let many = vec![Message::default(); 1_000_000];
    let text = message(&report_of(&[], &[], &many));
    assert!(text.contains("needs more memory than 4 times the file"));
    let names = vec![&b""[..]; 100_000];
    assert!(message(&report_of(&names, &[], &[])).contains("as no real report has"));
    for field in [1, 2, 7, 8, 9] {
        let header = Message::default().integer(field, u64::MAX);
        assert!(message(&made(&[(header, vec![])])).contains("only 0 are left"));
    }
    let mut file = made(&[]);
    file.extend(Message::default().integer(5, u64::MAX).sized());
    let problem = "the payload of the block at byte 10 needs 18446744073709551615 bytes";
    assert!(message(&file).contains(problem));
}

#[test]
fn a_string_table_names_the_results_of_earlier_blocks_and_an_empty_one_resets_nothing() {
    let results = vec![result([metric(1, number(7))])];
    let table = strings(&[b"a", b"gpu__time_duration.sum"]);
    let file = made(&[
        (counting(1), results.clone()),
        (Message::default().bytes(4, &table), vec![]),
        (counting(1).bytes(4, &[]), results),
    ]);
    let launches = report::read(&file).unwrap().launches;
    assert_eq!(launches.len(), 2);
    for launch in &launches {
        assert_eq!(launch.number("gpu__time_duration.sum"), Some(7.0));
        // The file does not state the chip, and the unit is the same on all.
        let unit = launch.metrics["gpu__time_duration.sum"].unit;
        assert_eq!(unit.symbol(), Some("ns"));
    }
}

#[test]
fn a_later_string_table_continues_the_first_one_unless_it_repeats_it() {
    let name_of = |id: u64, second: &[&[u8]]| {
        let first = Message::default().bytes(4, &strings(&[b"a", b"b"]));
        let second = counting(1).bytes(4, &strings(second));
        let file = made(&[
            (first, vec![]),
            (second, vec![result([metric(id, number(7))])]),
        ]);
        let launch = report::read(&file).unwrap().launches.remove(0);
        let names = launch.metrics.keys().map(|name| name.to_string());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(name_of(2, &[b"c", b"d"]), "c");
    assert_eq!(name_of(3, &[b"c", b"d"]), "d");
    assert_eq!(name_of(2, &[b"a", b"b", b"c"]), "c");
}

const CAPABILITY: [&[u8]; 2] = [
    b"device__attribute_compute_capability_major",
    b"device__attribute_compute_capability_minor",
];

#[test]
fn results_of_other_metrics_and_other_chips_keep_their_own_names_and_units() {
    let (sectors, duration) = ("gcc__xbar2gcc_sectors.sum", "gpu__time_duration.sum");
    let names = [&CAPABILITY[..], &[sectors.as_bytes(), duration.as_bytes()]].concat();
    let of = |major: u64, counter: u64| {
        let values = [(0, major), (1, 0), (counter, 5)];
        result(values.map(|(id, value)| metric(id, number(value))))
    };
    let file = report_of(&names, &[], &[of(9, 2), of(9, 3), of(8, 2)]);
    let launches = report::read(&file).unwrap().launches;
    let counters = |index: usize| -> Vec<(&str, Option<&str>)> {
        let metrics = launches[index].metrics.iter().skip(2);
        metrics
            .map(|(name, found)| (&**name, found.unit.symbol()))
            .collect()
    };
    assert_eq!(counters(0), [(sectors, Some(""))]);
    assert_eq!(counters(1), [(duration, Some("ns"))]);
    assert_eq!(counters(2), [(sectors, Some("sector"))]);
    assert_eq!(launches[2].compute_capability, Some((8, 0)));
}

/// As in NVIDIA's `ncu_report` (2025.3.1 and 2026.3.1 agree).
#[test]
fn of_a_metric_that_stands_several_times_in_a_launch_only_the_last_one_counts() {
    let names = [&[&b"inst_executed"[..]; 2][..], &CAPABILITY].concat();
    let launch = |metrics: Vec<Message>| {
        let file = report_of(&names, &[], &[result(metrics)]);
        report::read(&file).unwrap().launches.remove(0)
    };
    let read = |later: Message| {
        let launch = launch(vec![metric(0, number(5)), later]);
        assert_eq!(launch.metrics.len(), 1);
        launch.metrics["inst_executed"].value.clone()
    };
    // The same name under another number is the same metric.
    for id in [0, 1] {
        assert_eq!(read(metric(id, number(0))), Value::Integer(0));
        assert_eq!(read(Message::default().integer(1, id)), Value::Missing);
    }
    // Also of what says which chip it is.
    let capability = [(2, 8), (3, 0), (2, 9)].map(|(id, value)| metric(id, number(value)));
    assert_eq!(launch(capability.to_vec()).compute_capability, Some((9, 0)));
}

/// The value of a metric that is stated so.
fn value_of(value: Message) -> Result<Value, ReadError> {
    let read = report::read(&report_of(&[b"m"], &[], &[result([metric(0, value)])]));
    read.map(|recording| recording.launches[0].metrics["m"].value.clone())
}

#[test]
fn each_type_of_value_keeps_its_full_precision() {
    let empty = Message::default;
    let large = 4_294_967_295;
    let text = Value::Text("text".to_owned().into());
    for (value, expected) in [
        (empty().bytes(1, b"text"), text),
        (empty().float(2, 0.1), Value::Float(f64::from(0.1_f32))),
        (empty().double(3, 0.1), Value::Float(0.1)),
        (empty().integer(4, large), Value::Integer(large)),
        (empty().integer(5, u64::MAX), Value::Integer(u64::MAX)),
        (empty(), Value::Missing),
    ] {
        assert_eq!(value_of(value).unwrap(), expected);
    }
    for missing in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let read = value_of(empty().double(3, missing)).unwrap();
        assert_eq!(read, Value::Missing);
        let read = value_of(empty().float(2, missing as f32)).unwrap();
        assert_eq!(read, Value::Missing);
    }
}

#[test]
fn a_text_of_16_mib_is_read_and_a_longer_one_is_rejected() {
    let text = |size: usize| Message::default().bytes(1, &vec![b'x'; size]);
    let longest = value_of(text(1 << 24)).unwrap();
    assert_eq!(longest.text().map(str::len), Some(1 << 24));
    let error = value_of(text((1 << 24) + 1)).unwrap_err().to_string();
    let problem = "a text has 16777217 bytes, the limit is 16777216";
    assert!(error.ends_with(problem), "{error}");
}

#[test]
fn ranges_and_command_lists_are_results_too() {
    let names: [&[u8]; 4] = [
        b"launch__grid_dim_x", b"launch__grid_dim_y", b"launch__grid_dim_z", b"launch__device_id",
    ];
    let metrics = (0..).zip([8, 4, 2, 1]);
    let metrics = metrics.map(|(id, value)| metric(id, number(value)));
    let result = Message::repeated(4, metrics);
    for (field, kind, name) in [
        (7, ResultKind::Range, "range"),
        (8, ResultKind::CommandList, "cmdlist"),
        (9, ResultKind::Graph, "graph"),
    ] {
        let header = Message::default().integer(field, 1);
        let file = made(&[(header.bytes(4, &strings(&names)), vec![result.clone()])]);
        let launch = report::read(&file).unwrap().launches.remove(0);
        assert_eq!((launch.kind, launch.kernel.function.as_str()), (kind, name));
        assert_eq!((launch.grid, launch.device), ([8, 4, 2], Some(1)));
    }
}

#[test]
fn a_newer_format_version_is_stated_and_read() {
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
    let unknown_kind = (Message::default(), vec![Message::default().integer(1, 1)]);
    let unknown_kind = wire::report(8, &[unknown_kind]);
    assert_eq!(report::read(&unknown_kind).unwrap().launches, []);
}

#[test]
fn the_session_and_the_launch_are_described() {
    let recording = report::read(&recorded("two_kernels_three_times")).unwrap();
    assert_eq!(recording.created_unix_s, Some(1_795_227_169));
    let version = recording.profiler_version.unwrap();
    assert!(version.starts_with("2025.3.1.0 "), "{version}");
    assert!(recording.command_line.unwrap().contains("/ncu"));
    assert_eq!(recording.launches.len(), 6);
    let launch = &recording.launches[1];
    let kernel = &launch.kernel;
    assert_eq!((launch.kind, &*kernel.function), (ResultKind::Kernel, "k2"));
    assert_eq!(kernel.mangled.as_deref(), Some("_Z2k2IfLi8EEvPT_i"));
    let demangled = Some("void k2<float, (int)8>(T1 *, int)");
    assert_eq!(kernel.demangled.as_deref(), demangled);
    assert_eq!((launch.grid, launch.block), ([16384, 1, 1], [256, 1, 1]));
    assert_eq!(launch.device, Some(0));
    let place = |launch: &Launch| (launch.process_id, launch.context, launch.stream);
    assert_eq!(place(launch), (Some(886), Some(1), Some(13)));
    assert_eq!(launch.clock_locked, Some(false));
    let graph = report::read(&recorded("graph_as_one")).unwrap();
    let launch = &graph.launches[2];
    assert_eq!(
        (launch.kind, &launch.kernel.mangled),
        (ResultKind::Graph, &None)
    );
    assert_eq!(place(launch), (Some(2170), Some(1), Some(13)));
    assert_eq!(launch.clock_locked, Some(false));
}

#[test]
fn a_kernel_without_a_demangled_name_has_none() {
    let names = Message::default().bytes(5, b"_Z1kv").bytes(6, b"k");
    let file = report_of(&[], &[], &[names.bytes(7, b"")]);
    let kernel = report::read(&file).unwrap().launches.remove(0).kernel;
    assert_eq!(kernel.demangled, None);
    assert_eq!(kernel.mangled.as_deref(), Some("_Z1kv"));
}
