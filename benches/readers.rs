//! Speed of the two readers, beside the speed of what they stand on.

use std::fs;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use sparsek_gate::capture::{csv, ncu_rep};

fn main() {
    divan::main();
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(format!("tests/data/ncu/{name}")).unwrap_or_default()
}

#[divan::bench(args = ["four_metrics", "full_set", "twenty_launches"])]
fn report(bencher: Bencher, name: &str) {
    let bytes = bytes(&format!("{name}.ncu-rep"));
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .bench(|| ncu_rep::read(black_box(&bytes)).map(|recording| recording.launches.len()));
}

/// Pages that repeat the rows of a recorded one until they hold several megabytes.
const PAGES: [(&str, usize); 4] = [
    ("twenty_launches.raw.csv", 80),
    ("two_kernels_three_times.raw.csv", 80),
    ("full_set.raw.csv", 100),
    ("details_with_program_output.csv", 400),
];

fn page(name: &str, repetitions: usize) -> Vec<u8> {
    let text = bytes(name);
    let first_row = text
        .windows(5)
        .position(|window| window == b"\n\"0\",")
        .map_or(0, |at| at + 1);
    let (head, rows) = text.split_at(first_row);
    [head, &rows.repeat(repetitions)].concat()
}

#[divan::bench(args = PAGES)]
fn csv_reader(bencher: Bencher, (name, repetitions): (&str, usize)) {
    let bytes = page(name, repetitions);
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .bench(|| csv::read(black_box(&bytes)).map(|recording| recording.launches.len()));
}

/// The floor: the same bytes through the csv crate alone, every cell looked at and none kept.
#[divan::bench(args = PAGES)]
fn csv_crate_alone(bencher: Bencher, (name, repetitions): (&str, usize)) {
    let bytes = page(name, repetitions);
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
