//! Speed of the two readers, and of the csv crate on the same pages.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use ncu_report::{csv, report};

/// The recordings, which are part of the repository and not of the package.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/ncu");

fn main() {
    if !Path::new(FOLDER).is_dir() {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: every bench. {FOLDER} does not exist: the recordings are in the repository, \
             not in the package."
        );
        return;
    }
    divan::main();
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(format!("{FOLDER}/{name}")).unwrap_or_default()
}

#[divan::bench(args = ["four_metrics", "full_set", "twenty_launches"])]
fn report(bencher: Bencher, name: &str) {
    let bytes = bytes(&format!("{name}.ncu-rep"));
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .bench(|| report::read(black_box(&bytes)).map(|recording| recording.launches.len()));
}

/// The recorded pages. The rows of `two_kernels_three_times` alternate between two kernels, so most
/// of its values differ from the row before.
const PAGES: [&str; 14] = [
    "details_sections_and_rules.csv", "details_unknown_metric.csv",
    "details_with_program_output.csv", "four_metrics.raw.csv", "full_set.raw.csv",
    "graph_as_one.raw.csv", "raw_log_file.csv", "raw_scaled_units.csv", "raw_two_processes.csv",
    "raw_unknown_metric.csv", "raw_with_program_output.csv", "twenty_launches.raw.csv",
    "two_kernels_three_times.raw.csv", RANDOM,
];

/// A page of random numbers: no row repeats a value of another one.
const RANDOM: &str = "random numbers";

const PAGE_SIZE: usize = 4_000_000;

/// A recorded page whose rows are repeated up to `PAGE_SIZE` bytes.
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

/// Header, units and leading cells of a recorded page, with numbers of one to twelve digits. They
/// have separators, and a third of them has decimals.
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
    // Xorshift: every run has the same page.
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

/// The lower limit: the csv crate splits the same bytes into cells and keeps none.
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
