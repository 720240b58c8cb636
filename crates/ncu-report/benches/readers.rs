//! Speed of the two readers, beside the speed of what they stand on.

use std::fs;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use ncu_report::{csv, report};

fn main() {
    divan::main();
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(format!(
        "{}/../../tests/data/ncu/{name}",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap_or_default()
}

#[divan::bench(args = ["four_metrics", "full_set", "twenty_launches"])]
fn report(bencher: Bencher, name: &str) {
    let bytes = bytes(&format!("{name}.ncu-rep"));
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .bench(|| report::read(black_box(&bytes)).map(|recording| recording.launches.len()));
}

/// Every recorded page. The rows of `two_kernels_three_times` alternate between two kernels, so that
/// most of its counters differ from the row before.
const PAGES: [&str; 14] = [
    "details_sections_and_rules.csv",
    "details_unknown_metric.csv",
    "details_with_program_output.csv",
    "four_metrics.raw.csv",
    "full_set.raw.csv",
    "graph_as_one.raw.csv",
    "raw_log_file.csv",
    "raw_scaled_units.csv",
    "raw_two_processes.csv",
    "raw_unknown_metric.csv",
    "raw_with_program_output.csv",
    "twenty_launches.raw.csv",
    "two_kernels_three_times.raw.csv",
    RANDOM,
];

/// A page of random numbers, none of which tells anything about the next row's.
const RANDOM: &str = "random numbers";

const PAGE_SIZE: usize = 4_000_000;

/// A recorded page, all from its first row on repeated until it is `PAGE_SIZE`.
fn page(name: &str) -> Vec<u8> {
    if name == RANDOM {
        return random_page();
    }
    let text = bytes(name);
    let first_row = text
        .windows(5)
        .position(|window| window == b"\n\"0\",")
        .map_or(0, |at| at + 1);
    let (head, rows) = text.split_at(first_row);
    let repetitions = PAGE_SIZE.div_ceil(rows.len().max(1));
    [head, &rows.repeat(repetitions)].concat()
}

/// Header, units and the first cells of a recorded page, and below them numbers of one to twelve
/// digits with separators, a third of them with decimals.
fn random_page() -> Vec<u8> {
    const LEADING_CELLS: usize = 11;
    let recorded = bytes("two_kernels_three_times.raw.csv");
    let recorded = String::from_utf8_lossy(&recorded);
    let lines: Vec<&str> = recorded
        .lines()
        .filter(|line| line.starts_with('"'))
        .collect();
    let (Some(head), Some(row)) = (lines.get(..2), lines.get(2)) else {
        return Vec::new();
    };
    let cells: Vec<&str> = row.split("\",\"").collect();
    let mut page = head.join("\n");
    // Xorshift, to have the same page in every run.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    while page.len() < PAGE_SIZE {
        page.push('\n');
        page += &cells[..LEADING_CELLS].join("\",\"");
        for _ in LEADING_CELLS..cells.len() {
            let magnitude = 10_u64.pow(1 + random(12) as u32);
            let digits = random(magnitude).to_string();
            page += "\",\"";
            for (index, digit) in digits.char_indices() {
                if index > 0 && (digits.len() - index).is_multiple_of(3) {
                    page.push(',');
                }
                page.push(digit);
            }
            if random(3) == 0 {
                page += &format!(".{:02}", random(100));
            }
        }
        page.push('"');
    }
    page.push('\n');
    page.into_bytes()
}

#[divan::bench(args = PAGES)]
fn csv_reader(bencher: Bencher, name: &str) {
    let bytes = page(name);
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .bench(|| csv::read(black_box(&bytes)).map(|recording| recording.launches.len()));
}

/// The floor: the same bytes through the csv crate alone, every cell looked at and none kept.
#[divan::bench(args = PAGES)]
fn csv_crate_alone(bencher: Bencher, name: &str) {
    let bytes = page(name);
    bencher.counter(BytesCount::of_slice(&bytes)).bench(|| {
        let mut reader = ::csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(black_box(&bytes[..]));
        let mut record = ::csv::ByteRecord::new();
        let mut cells = 0;
        while reader.read_byte_record(&mut record).unwrap_or(false) {
            cells += record.len();
        }
        cells
    });
}
