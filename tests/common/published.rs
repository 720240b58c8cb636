//! Strict readers of formats that other tools read, written from what is published of them.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "what cannot be read fails its test"
)]

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::Value as Json;

/// Benchmark, measure, and value of Bencher Metric Format: bencher.dev, "Bencher Metric Format
/// (BMF)". Its schema allows what Bencher refuses: a name that is too long or empty, bounds that
/// do not enclose the value, and keys that it ignores.
#[track_caller]
pub fn bencher(metrics: &Json) -> Vec<(String, String, f64)> {
    let mut found = Vec::new();
    for (benchmark, measures) in metrics.as_object().unwrap() {
        assert!(
            (1..=1024).contains(&benchmark.chars().count()),
            "{benchmark}"
        );
        for (measure, metric) in measures.as_object().unwrap() {
            assert!((1..=64).contains(&measure.chars().count()), "{measure}");
            let metric = metric.as_object().unwrap();
            let known = ["value", "lower_value", "upper_value"];
            assert!(metric.keys().all(|key| known.contains(&key.as_str())));
            let number = |key| metric.get(key).map(|value| value.as_f64().unwrap());
            let value = number("value").unwrap();
            assert!(number("lower_value").is_none_or(|lower| lower <= value));
            assert!(number("upper_value").is_none_or(|upper| value <= upper));
            found.push((benchmark.clone(), measure.clone(), value));
        }
    }
    found
}

/// The columns of a CSV and its rows, as Apache Otava's `CsvImporter` (0.8.0, otava/importer.py)
/// reads them with every column after the attributes as a metric: the time is a date, no row is
/// shorter than the header, and every cell of a metric is a number.
#[track_caller]
pub fn otava(text: &str) -> (Vec<String>, Vec<Vec<f64>>) {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header: Vec<String> = reader
        .headers()
        .unwrap()
        .iter()
        .map(str::to_owned)
        .collect();
    // `headers.index(name)` finds the first of a name.
    let names: BTreeSet<&String> = header.iter().collect();
    assert_eq!(names.len(), header.len(), "{header:?}");
    let attributes = ["time", "commit", "gpu", "origin"];
    assert_eq!(header[..attributes.len()], attributes);
    // A column of this name selects rows by branch.
    assert!(!names.contains(&"branch".to_owned()));
    let rows = reader.records().map(|record| {
        let record = record.unwrap();
        assert_eq!(record.len(), header.len());
        let date = Regex::new(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$").unwrap();
        assert!(date.is_match(&record[0]), "{}", &record[0]);
        let values = record.iter().skip(attributes.len());
        values
            .map(|cell| {
                cell.parse::<f64>()
                    .ok()
                    .filter(|it| it.is_finite())
                    .expect(cell)
            })
            .collect()
    });
    (header[attributes.len()..].to_vec(), rows.collect())
}
