//! Counts and samples of single instructions, and the source line of each, against the source
//! page of ncu and the listing of nvdisasm.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ncu_report::report::{self, InstructionCounters};

use crate::common;
use crate::common::wire::{Message, report_of, result};

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
    let row = |cells: csv::StringRecord| {
        let cells = cells.iter().map(str::to_owned);
        header.iter().cloned().zip(cells).collect()
    };
    page.records().map(|cells| row(cells.unwrap())).collect()
}

fn number(row: &SourceRow, column: &str) -> u64 {
    row[column].parse().unwrap()
}

/// Compares the samples of an instruction by stall reason, and returns the compared columns.
fn compare_stalls(row: &SourceRow, reasons: &[(Arc<str>, u64)], total: &str) -> BTreeSet<String> {
    let named = |reason: &str| format!("stall_{}", column(reason));
    let reasons = reasons
        .iter()
        .map(|(reason, samples)| (named(reason), *samples));
    let known: BTreeMap<String, u64> = reasons.collect();
    let columns = row.keys().filter(|name| name.starts_with("stall_"));
    let columns = columns.filter(|name| !name.ends_with(')'));
    let columns: BTreeSet<String> = columns.cloned().collect();
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
        compared.extend(compare_stalls(row, &one.stalls, all));
    }
    assert_eq!(compared.len(), 18);
}

#[test]
fn every_line_and_every_inlined_call_equals_that_of_nvdisasm() {
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
        let lines = one.lines.iter();
        let lines = lines.map(|line| format!("{}:{}", line.file, line.line));
        let places: Vec<String> = lines.collect();
        assert_eq!(places, expected[&one.offset], "at {:#x}", one.offset);
    }
}

#[test]
fn metrics_may_list_their_instructions_in_any_order_and_leave_some_out() {
    let executed = (1..=5).map(|at| (16 * at, 10 * at));
    let waits = [(0x50, 5), (0x10, 6), (0x20, 7), (0x20, 8), (0x40, 9)];
    let metric = |id| Message::default().integer(1, id);
    let bytes = report_of(
        &[
            b"smsp__pcsamp_sample_count", b"inst_executed",
            b"smsp__pcsamp_warps_issue_stalled_wait",
        ],
        &[],
        &[result([
            metric(0).counts([(0x30, 3), (0x10, 1)]),
            metric(1).counts(executed),
            metric(2).counts(waits),
        ])],
    );
    let found = instructions(&bytes).into_iter().map(|one| {
        let waits: Vec<u64> = one.stalls.iter().map(|(_, count)| *count).collect();
        assert!(one.stalls.iter().all(|(reason, _)| &**reason == "wait"));
        (one.address, one.executed.unwrap(), one.samples, waits)
    });
    let expected = [
        (0x10, 10, 1, vec![6]),
        (0x20, 20, 0, vec![7]),
        (0x30, 30, 3, vec![]),
        (0x40, 40, 0, vec![9]),
        (0x50, 50, 0, vec![5]),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn the_samples_of_a_full_set_add_up_to_its_count() {
    let full = report::read(&common::bytes("full_set.ncu-rep")).unwrap();
    let samples = full.launches[0].source.as_ref().unwrap().samples();
    let count = full.launches[0].number("smsp__pcsamp_sample_count");
    assert_eq!(Some(samples as f64), count);
    let plain = report::read(&common::bytes("four_metrics.ncu-rep")).unwrap();
    assert!(plain.launches.iter().all(|launch| launch.source.is_none()));
}

#[test]
fn without_readable_machine_code_the_source_lines_are_lost_and_no_count() {
    let mut bytes = recorded("bank_conflict");
    let plain = instructions(&bytes);
    let cubin = bytes.windows(4).position(|it| it == b"\x7fELF").unwrap();
    bytes[cubin..cubin + 64].fill(0xff);
    let lineless = instructions(&bytes);
    assert_eq!(plain.len(), lineless.len());
    for (plain, lineless) in plain.iter().zip(&lineless) {
        assert!(lineless.lines.is_empty());
        assert_eq!(plain.samples, lineless.samples);
    }
}

#[test]
fn the_machine_code_is_read_without_values_by_instruction_too() {
    let bytes = common::bytes("four_metrics.ncu-rep");
    let codes = report::machine_code(&bytes).unwrap();
    assert_eq!(codes.len(), 1);
    assert!(codes[0].cubin.starts_with(b"\x7fELF"));
    let launched = report::read(&bytes).unwrap().launches.remove(0).kernel;
    let functions: Vec<&str> = codes[0].functions.values().map(|name| &**name).collect();
    assert_eq!(functions, [launched.mangled.clone().unwrap()]);

    let bytes = recorded("baseline");
    let source = report::read(&bytes).unwrap().launches[0].source.clone();
    let cubin = source.unwrap().cubin.clone().unwrap();
    assert_eq!(report::machine_code(&bytes).unwrap()[0].cubin, &*cubin);
    assert!(report::machine_code(&bytes[..bytes.len() / 2]).is_err());
}
