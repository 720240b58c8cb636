//! Counts and samples of single instructions, and the source line of each, against the source
//! page of ncu and the listing of nvdisasm.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::wire::Message;
use ncu_report::report::{self, InstructionCounters};

fn recorded(name: &str) -> Vec<u8> {
    common::bytes(&format!("source/{name}.ncu-rep"))
}

fn instructions(bytes: &[u8]) -> Vec<InstructionCounters> {
    let report = report::read(bytes).unwrap();
    let source = report.launches[0].source.as_ref().unwrap();
    source.instructions.clone()
}

/// The spelling of a stall reason on the source page of ncu.
fn column(reason: &str) -> &str {
    match reason {
        "dispatch_stall" => "dispatch",
        "imc_miss" => "imc",
        "lg_throttle" => "lg",
        "long_scoreboard" => "long_sb",
        "math_pipe_throttle" => "math",
        "mio_throttle" => "mio",
        "no_instructions" => "no_inst",
        "short_scoreboard" => "short_sb",
        "tex_throttle" => "tex",
        same => same,
    }
}

/// A row of the source page: column -> cell.
type SourceRow = BTreeMap<String, String>;

fn source_page() -> Vec<SourceRow> {
    let page = common::text("source/baseline.source.csv");
    let mut page = csv::Reader::from_reader(page.as_bytes());
    let header: Vec<String> = page.headers().unwrap().iter().map(str::to_owned).collect();
    page.records()
        .map(|row| {
            let cells = row.unwrap();
            let cells = cells.iter().map(str::to_owned);
            header.iter().cloned().zip(cells).collect()
        })
        .collect()
}

fn number(row: &SourceRow, column: &str) -> u64 {
    row[column].parse().unwrap()
}

/// Compares the samples of an instruction by stall reason, and returns the compared columns.
/// `suffix` distinguishes the columns of all samples from those without an issued instruction.
fn compare_stalls(
    row: &SourceRow,
    reasons: &[(Arc<str>, u64)],
    suffix: &str,
    total: &str,
) -> BTreeSet<String> {
    let known: BTreeMap<String, u64> = reasons
        .iter()
        .map(|(reason, samples)| (format!("stall_{}{suffix}", column(reason)), *samples))
        .collect();
    let columns: BTreeSet<String> = row
        .keys()
        .filter(|name| name.starts_with("stall_"))
        .filter(|name| name.ends_with(')') != suffix.is_empty())
        .cloned()
        .collect();
    for name in &columns {
        // One of the two columns has another spelling.
        let key = match name.as_str() {
            "stall_sleep" => "stall_sleeping",
            name => name,
        };
        let samples = known.get(key).copied().unwrap_or(0);
        assert_eq!(samples, number(row, name), "{name} of {row:?}");
    }
    assert_eq!(known.values().sum::<u64>(), number(row, total), "{row:?}");
    columns
}

#[test]
fn every_instruction_equals_that_on_the_source_page_of_ncu() {
    if common::recordings_are_absent() {
        return;
    }
    let rows = source_page();
    assert_eq!(rows.len(), 592);
    let decoded = instructions(&recorded("baseline"));
    let by_address: BTreeMap<u64, &InstructionCounters> =
        decoded.iter().map(|one| (one.address, one)).collect();
    let first = decoded[0].address;
    let mut compared = BTreeSet::new();
    for (index, row) in rows.iter().enumerate() {
        let address = u64::from_str_radix(row["Address"].trim_start_matches("0x"), 16).unwrap();
        let samples = number(row, "# Samples");
        let executed = number(row, "Instructions Executed");
        let Some(one) = by_address.get(&address) else {
            // Padding after the code, which no warp executes.
            assert_eq!((samples, executed), (0, 0));
            continue;
        };
        let offset = index as u64 * 16;
        assert_eq!((one.offset, &*one.function), (offset, "bsr_gemm_baseline"));
        assert_eq!(address - first, one.offset);
        assert_eq!(one.samples, samples, "{row:?}");
        // Warps that have ended are sampled after the code, and execute nothing.
        assert_eq!(one.executed.unwrap_or(0), executed, "{row:?}");
        let all = "Warp Stall Sampling (All Samples)";
        compared.extend(compare_stalls(row, &one.stalls, "", all));
        let not_issued = "Warp Stall Sampling (Not-issued Samples)";
        compared.extend(compare_stalls(
            row,
            &one.not_issued,
            " (Not Issued)",
            not_issued,
        ));
    }
    assert_eq!(compared.len(), 36);
}

#[test]
fn every_line_and_every_inlined_call_equals_that_of_nvdisasm() {
    if common::recordings_are_absent() {
        return;
    }
    let lines = common::text("source/baseline.lines.txt");
    let expected: BTreeMap<u64, Vec<String>> = lines
        .lines()
        .map(|line| {
            let (offset, places) = line.split_once(' ').unwrap();
            let places = places.split(' ').map(str::to_owned).collect();
            (u64::from_str_radix(offset, 16).unwrap(), places)
        })
        .collect();
    let decoded = instructions(&recorded("baseline"));
    assert_eq!(decoded.len(), 584);
    for one in decoded {
        let places: Vec<String> = one
            .lines
            .iter()
            .map(|line| format!("{}:{}", line.file, line.line))
            .collect();
        assert_eq!(places, expected[&one.offset], "at {:#x}", one.offset);
    }
}

/// A report of one launch. Each metric has a name and values by address.
fn report_of(metrics: &[(&str, &[(u64, u64)])]) -> Vec<u8> {
    let scalar = |value| Message::default().integer(5, value);
    let names = metrics.iter().map(|(name, _)| name.as_bytes());
    let strings = names.fold(Message::default(), |all, name| all.bytes(1, name));
    let values = (0..).zip(metrics).map(|(id, (_, values))| {
        let values = values.iter().map(|(address, count)| {
            let address = Message::default().bytes(1, &scalar(*address).0);
            address.bytes(2, &scalar(*count).0)
        });
        let mut metric = Message::default().integer(1, id);
        metric.0.extend(Message::repeated(3, values).0);
        metric
    });
    let payload = Message::repeated(13, values).sized();
    let header = Message::default()
        .integer(2, 1)
        .bytes(4, &strings.0)
        .integer(5, payload.len() as u64);
    let version = Message::default().integer(1, 7);
    [&b"NVR\0"[..], &version.sized(), &header.sized(), &payload].concat()
}

#[test]
fn metrics_may_list_their_instructions_in_any_order_and_leave_some_out() {
    let bytes = report_of(&[
        ("smsp__pcsamp_sample_count", &[(0x30, 3), (0x10, 1)]),
        (
            "inst_executed",
            &[(0x10, 10), (0x20, 20), (0x30, 30), (0x40, 40), (0x50, 50)],
        ),
        (
            "smsp__pcsamp_warps_issue_stalled_wait",
            &[(0x50, 5), (0x10, 6), (0x20, 7), (0x20, 8), (0x40, 9)],
        ),
    ]);
    let wait = |samples: &[u64]| -> Vec<(Arc<str>, u64)> {
        samples.iter().map(|one| ("wait".into(), *one)).collect()
    };
    let found: Vec<_> = instructions(&bytes)
        .into_iter()
        .map(|one| (one.address, one.executed, one.samples, one.stalls))
        .collect();
    let expected = [
        (0x10, Some(10), 1, wait(&[6])),
        (0x20, Some(20), 0, wait(&[7])),
        (0x30, Some(30), 3, wait(&[])),
        (0x40, Some(40), 0, wait(&[9])),
        (0x50, Some(50), 0, wait(&[5])),
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_samples_of_a_full_set_add_up_to_its_count() {
    if common::recordings_are_absent() {
        return;
    }
    let launch = &report::read(&common::bytes("full_set.ncu-rep"))
        .unwrap()
        .launches[0];
    let samples = launch.source.as_ref().unwrap().samples();
    assert_eq!(
        Some(samples as f64),
        launch.number("smsp__pcsamp_sample_count")
    );
    let plain = report::read(&common::bytes("four_metrics.ncu-rep")).unwrap();
    assert!(plain.launches.iter().all(|launch| launch.source.is_none()));
}

#[test]
fn a_damaged_report_never_makes_the_reader_of_samples_panic() {
    if common::recordings_are_absent() {
        return;
    }
    let whole = recorded("bank_conflict");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    let cubin = whole
        .windows(4)
        .position(|bytes| bytes == b"\x7fELF")
        .unwrap();
    let lines = whole
        .windows(8)
        .position(|bytes| bytes == b"ring.cuh")
        .unwrap();
    for round in 0..100 {
        let mut bytes = whole.clone();
        let aim = match round % 4 {
            0 => cubin..cubin + 2000,
            1 | 2 => lines - 400..lines + 6000,
            _ => whole.len() / 2..whole.len(),
        };
        for _ in 0..=round % 5 {
            let at = aim.start + random() % aim.len();
            bytes[at] ^= 1 << (random() % 8);
        }
        if let Err(error) = report::read(&bytes) {
            let text = error.to_string();
            assert!(text.starts_with("byte "), "{text}");
        }
    }
    // Without readable machine code the source lines are lost, and no count.
    let mut bytes = whole.clone();
    bytes[cubin..cubin + 64].fill(0xff);
    let (plain, lineless) = (instructions(&whole), instructions(&bytes));
    assert_eq!(plain.len(), lineless.len());
    for (plain, lineless) in plain.iter().zip(&lineless) {
        assert!(lineless.lines.is_empty());
        assert_eq!(plain.samples, lineless.samples);
    }
}

#[test]
fn the_machine_code_is_read_without_values_by_instruction_too() {
    if common::recordings_are_absent() {
        return;
    }
    let bytes = common::bytes("four_metrics.ncu-rep");
    let codes = report::machine_code(&bytes).unwrap();
    assert_eq!(codes.len(), 1);
    assert!(codes[0].cubin.starts_with(b"\x7fELF"));
    let launched = report::read(&bytes).unwrap().launches[0]
        .kernel
        .mangled
        .clone();
    let functions: Vec<&str> = codes[0].functions.values().map(|name| &**name).collect();
    assert_eq!(functions, [launched.unwrap()]);

    let bytes = recorded("baseline");
    let source = report::read(&bytes).unwrap().launches[0].source.clone();
    let cubin = source.unwrap().cubin.clone().unwrap();
    assert_eq!(report::machine_code(&bytes).unwrap()[0].cubin, &*cubin.0);
    assert!(report::machine_code(&bytes[..bytes.len() / 2]).is_err());
}
