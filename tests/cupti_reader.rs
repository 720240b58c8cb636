//! The reader of kernel records, on what was recorded on an H200 (`tests/data/cupti`) and on what
//! may become of it.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use crate::common::repository;
use ncu_report::{Recording, base_name};
use proptest::prelude::*;
use sparsek_gate::capture::kernel_records::{Incomplete, KernelCapture, ProcessRecords, read};
use sparsek_gate::capture::read_file;
use sparsek_gate::config::{KernelFilter, LaunchSelection};

const RECORDED: [&str; 6] = [
    "cp_async", "pytorch", "graph", "two-first", "two-second", "cupti-12",
];

fn text(name: &str) -> String {
    let path = repository().join(format!("tests/data/cupti/{name}.process"));
    fs::read_to_string(path).unwrap()
}

fn process(name: &str) -> ProcessRecords {
    ProcessRecords::parse(&text(name)).unwrap()
}

fn capture(names: &[&str]) -> KernelCapture {
    let processes = names.iter().map(|name| process(name)).collect();
    KernelCapture::of("NVIDIA H200", "9.0", processes)
}

fn of_all(skip: u32, count: u32) -> LaunchSelection {
    LaunchSelection {
        skip,
        count,
        per_kernel: false,
    }
}

fn of_each(skip: u32, count: u32) -> LaunchSelection {
    LaunchSelection {
        per_kernel: true,
        ..of_all(skip, count)
    }
}

fn recording(capture: &KernelCapture) -> Recording {
    read(capture.text().as_bytes()).unwrap()
}

fn durations(recording: &Recording) -> Vec<f64> {
    let launches = recording.launches.iter();
    launches
        .map(|launch| launch.number("gpu__time_duration.sum").unwrap())
        .collect()
}

#[test]
fn the_launches_that_are_meant_are_those_that_ncu_would_have_taken() {
    let mut kept = capture(&["cp_async"]);
    assert_eq!(kept.functions(), ["fill_normal", "bsr_gemm_cp_async"]);
    kept.select(
        &KernelFilter::of(Some("regex:^bsr_gemm_")).unwrap(),
        of_all(2, 5),
    );
    let recording = recording(&kept);
    // The first two of the recorded twenty are skipped.
    assert_eq!(
        durations(&recording),
        [261757.0, 261373.0, 260797.0, 260797.0, 261373.0]
    );
    let launch = &recording.launches[0];
    assert_eq!(launch.kernel.function, "bsr_gemm_cp_async");
    assert_eq!((launch.grid, launch.block), ([64, 64, 1], [128, 1, 1]));
    assert_eq!(recording.profiler_version.as_deref(), Some("CUPTI 130001"));
    assert_eq!(recording.command_line, None);
}

#[test]
fn each_kernel_is_counted_by_itself_at_its_grid_where_that_is_asked_for() {
    let names = |capture: &KernelCapture| -> Vec<String> {
        let kernels = capture.launches.iter().map(|(_, kernel)| kernel);
        kernels.map(|kernel| base_name(&kernel.name)).collect()
    };
    let number = |names: &[String], name: &str| names.iter().filter(|one| *one == name).count();
    let all = names(&capture(&["cp_async"]));
    let mut kept = capture(&["cp_async"]);
    let selection = of_each(1, 5);
    let list = kept.launch_list(&KernelFilter::All, selection);
    kept.select(&KernelFilter::All, selection);
    let kept = names(&kept);
    assert_eq!(number(&kept, "bsr_gemm_cp_async"), 5);
    let fills = number(&all, "fill_normal");
    assert_eq!(number(&kept, "fill_normal"), (fills - 1).min(5));
    // The list says how often each is launched, and takes no launch of theirs for another kernel's.
    let launches: Vec<u32> = list.kernels.iter().map(|one| one.launches).collect();
    let mut expected = [fills, number(&all, "bsr_gemm_cp_async")].map(|count| count as u32);
    expected.sort_unstable();
    let mut launches = launches;
    launches.sort_unstable();
    assert_eq!(launches, expected);
    assert_eq!(list.others, []);

    // Launches of one function at several grids are those of several kernels.
    let mut kept = capture(&["pytorch"]);
    kept.select(&KernelFilter::All, of_each(0, 1));
    let shapes = |capture: &KernelCapture| -> BTreeSet<(String, [u64; 3], [u64; 3])> {
        let kernels = capture.launches.iter().map(|(_, kernel)| kernel);
        kernels
            .map(|kernel| (kernel.name.to_string(), kernel.grid, kernel.block))
            .collect()
    };
    assert_eq!(kept.launches.len(), shapes(&capture(&["pytorch"])).len());
}

#[test]
fn a_name_is_stated_once_and_the_launches_of_a_kernel_share_it() {
    let capture = capture(&["pytorch"]);
    let text = capture.text();
    let read = recording(&capture);
    let names: BTreeSet<&str> = capture
        .launches
        .iter()
        .map(|(_, kernel)| &*kernel.name)
        .collect();
    assert!(names.len() < capture.launches.len());
    for name in names {
        assert_eq!(text.matches(&format!(" {name}\n")).count(), 1);
        let of_name = read.launches.iter().map(|launch| &launch.kernel);
        let of_name = of_name.filter(|kernel| kernel.mangled.as_deref() == Some(name));
        let kernels: Vec<_> = of_name.collect();
        assert!(kernels.iter().all(|kernel| Arc::ptr_eq(kernel, kernels[0])));
    }
    let named = read
        .launches
        .iter()
        .map(|launch| launch.kernel.mangled.as_deref());
    let launched = capture
        .launches
        .iter()
        .map(|(_, kernel)| Some(&*kernel.name));
    assert!(named.eq(launched));
    // What was not stated before is no name.
    let damaged = text.replacen(" #1\n", " #9\n", 1);
    assert_ne!(damaged, text);
    let why = read_error(&damaged);
    assert!(why.contains("no name \"#9\""), "{why}");
}

fn read_error(text: &str) -> String {
    read(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn a_program_may_launch_a_quarter_of_a_million_kernels() {
    let text = text("cp_async");
    let many = |count: usize| {
        let (first, rest) = text.split_once('\n').unwrap();
        let launch = rest.lines().find(|line| line.starts_with("k ")).unwrap();
        let again = &launch.replace(" fill_normal", " #0");
        let lines = format!("{first}\n{launch}\n") + &format!("{again}\n").repeat(count - 1);
        let process = ProcessRecords::parse(&format!("{lines}end {count} 0\n")).unwrap();
        KernelCapture::of("NVIDIA H200", "9.0", vec![process]).text()
    };
    let most = 256 << 10;
    assert_eq!(read(many(most).as_bytes()).unwrap().launches.len(), most);
    let why = read_error(&many(most + 1));
    assert!(why.contains("more than 262144 launches"), "{why}");
}

#[test]
fn a_pytorch_program_is_recorded_with_every_library_kernel() {
    let mut kept = capture(&["pytorch"]);
    assert_eq!(kept.launches.len(), 12);
    kept.select(
        &KernelFilter::of(Some("regex:vectorized_elementwise")).unwrap(),
        of_all(0, 8),
    );
    let read = recording(&kept);
    assert!(
        durations(&read)
            .iter()
            .all(|ns| (126_000.0..129_000.0).contains(ns))
    );
    assert!(
        read.launches
            .iter()
            .all(|launch| launch.grid == [65536, 1, 1])
    );
}

#[test]
fn a_node_of_a_graph_is_a_launch_and_says_so() {
    let of_graph = process("graph").kernels;
    let nodes: Vec<usize> = (0..of_graph.len())
        .filter(|at| of_graph[*at].graph_node != 0)
        .collect();
    assert_eq!(nodes, [3, 4, 5, 6]);
}

#[test]
fn launches_of_several_processes_are_counted_together_the_first_process_first() {
    let mut kept = capture(&["two-second", "two-first"]);
    kept.select(
        &KernelFilter::of(Some("regex:vectorized_elementwise")).unwrap(),
        of_all(1, 4),
    );
    let pids: Vec<u32> = kept.launches.iter().map(|(pid, _)| *pid).collect();
    // Each process launches the kernel four times: twice for the measurement, twice for its check.
    assert_eq!(pids, [1274, 1274, 1274, 1301]);
    assert_eq!(recording(&kept).launches.len(), 4);
}

#[test]
fn launches_stand_in_the_order_in_which_they_were_made_whatever_buffer_they_came_in() {
    let whole = text("cp_async");
    let mut lines: Vec<&str> = whole.lines().collect();
    let last = lines.len() - 1;
    lines[1..last].reverse();
    let turned = lines.join("\n") + "\n";
    assert_eq!(ProcessRecords::parse(&turned).unwrap(), process("cp_async"));
}

#[test]
fn a_file_of_cuptis_other_major_version_reads_the_same() {
    let kernels = process("cupti-12").kernels;
    assert_eq!(kernels.len(), 10);
    assert!(kernels.iter().all(|kernel| &*kernel.name == "_Z5smallPf"
        && kernel.registers == 16
        && kernel.grid == [1, 1, 1]
        && kernel.block == [32, 1, 1]
        && (600..3000).contains(&kernel.duration_ns().unwrap())));
}

#[test]
fn what_was_not_recorded_in_full_says_why() {
    assert_eq!(
        ProcessRecords::parse(&text("left-early")),
        Err(Incomplete::Unfinished { pid: 1462 })
    );
    let Err(Incomplete::Unavailable(why)) = ProcessRecords::parse(&text("no-cupti")) else {
        panic!("a program without CUPTI was measured");
    };
    assert!(why.contains("cannot open shared object file"), "{why}");
    let dropped = text("cp_async").replace("end 22 0", "end 22 7");
    assert_eq!(
        ProcessRecords::parse(&dropped),
        Err(Incomplete::Dropped {
            pid: 429,
            dropped: 7
        })
    );
    let counted = text("cp_async").replace("end 22 0", "end 23 0");
    assert!(matches!(
        ProcessRecords::parse(&counted),
        Err(Incomplete::Damaged { .. })
    ));
}

#[test]
fn no_beginning_of_a_file_passes_for_the_whole() {
    for name in RECORDED {
        let whole = text(name);
        for length in 0..whole.len() {
            let cut = ProcessRecords::parse(&whole[..length]);
            assert!(cut.is_err(), "{length} bytes of {name}");
        }
        let kept = capture(&[name]).text();
        for length in 0..kept.len() {
            assert!(
                read(&kept.as_bytes()[..length]).is_err(),
                "{length} bytes of {name}"
            );
        }
    }
}

#[test]
fn a_kernel_whose_times_were_not_recorded_has_no_duration() {
    let line = text("cp_async").lines().nth(5).unwrap().to_owned();
    let words: Vec<&str> = line.split(' ').collect();
    for (start, end) in [
        ("0", "0"),
        (words[2], "0"),
        (words[3], words[2]),
        (words[2], words[2]),
    ] {
        let lost = line
            .replace(words[2], "START")
            .replace(words[3], end)
            .replace("START", start);
        let process = text("cp_async").replace(&line, &lost);
        let capture = KernelCapture::of(
            "NVIDIA H200",
            "9.0",
            vec![ProcessRecords::parse(&process).unwrap()],
        );
        let launches = recording(&capture).launches;
        let missing = launches
            .iter()
            .filter(|launch| launch.number("gpu__time_duration.sum").is_none());
        assert_eq!(missing.count(), 1, "{start} {end}");
    }
}

#[test]
fn the_kept_file_is_told_from_reports_and_pages_by_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("any.name");
    fs::write(&path, capture(&["pytorch"]).text()).unwrap();
    let (format, read) = read_file(&path).unwrap();
    assert_eq!(format.tier().as_str(), "kernel-times");
    assert_eq!(read.launches.len(), 12);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damage_anywhere_is_an_error_or_another_number_and_never_a_panic(
        name in prop::sample::select(RECORDED.to_vec()),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = text(name).into_bytes();
        let index = at.index(bytes.len());
        bytes[index] = byte;
        let _ = ProcessRecords::parse(&String::from_utf8_lossy(&bytes));
        let mut kept = capture(&[name]).text().into_bytes();
        let index = at.index(kept.len());
        kept[index] = byte;
        let _ = read(&kept);
    }
}
