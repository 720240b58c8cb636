//! Strict readers of formats that other tools read, written from what is published of them.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "what cannot be read fails its test"
)]

use std::collections::BTreeSet;
use std::sync::LazyLock;

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

/// A sample of OpenMetrics: name, labels, value.
pub type Sample = (String, Vec<(String, String)>, f64);

/// The samples of OpenMetrics text, by the ABNF and the rules of "OpenMetrics 1.0", of gauges alone.
#[track_caller]
pub fn openmetrics(text: &str) -> Vec<Sample> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)\{(.*)\} (-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)$")
            .unwrap()
    });
    static LABEL: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|$)"#).unwrap()
    });
    let body = text.strip_suffix("# EOF\n").expect("ends with # EOF");
    assert!(body.is_empty() || body.ends_with('\n'));
    let mut families: BTreeSet<String> = BTreeSet::new();
    let mut series = BTreeSet::new();
    let (mut family, mut samples) = (String::new(), Vec::new());
    let mut described: BTreeSet<&str> = BTreeSet::new();
    for line in body.lines() {
        if let Some(descriptor) = line.strip_prefix("# ") {
            let parts: Vec<&str> = descriptor.splitn(3, ' ').collect();
            let [kind, name, rest] = parts[..] else {
                panic!("{line}")
            };
            if kind == "TYPE" {
                // A family is in one piece, and of one name.
                assert!(families.insert(name.to_owned()), "{line}");
                family = name.to_owned();
                described.clear();
                assert_eq!(rest, "gauge");
            }
            assert_eq!(name, family, "{line}");
            assert!(described.insert(kind), "{line}");
            match kind {
                "TYPE" => {}
                "UNIT" => assert!(family.ends_with(&format!("_{rest}")), "{line}"),
                "HELP" => {
                    let plain = rest
                        .replace("\\\\", "")
                        .replace("\\n", "")
                        .replace("\\\"", "");
                    assert!(!plain.contains('\\') && !plain.contains('"'), "{line}");
                }
                other => panic!("{other}"),
            }
            continue;
        }
        let found = LINE.captures(line).unwrap_or_else(|| panic!("{line}"));
        assert_eq!(found[1], family, "{line}");
        let (mut labels, mut rest) = (Vec::new(), &found[2]);
        while !rest.is_empty() {
            let label = LABEL.captures(rest).unwrap_or_else(|| panic!("{line}"));
            let value = label[2]
                .replace("\\\\", "\0")
                .replace("\\\"", "\"")
                .replace("\\n", "\n")
                .replace('\0', "\\");
            labels.push((label[1].to_owned(), value));
            rest = &rest[label[0].len()..];
        }
        let keys: BTreeSet<&String> = labels.iter().map(|(key, _)| key).collect();
        assert_eq!(keys.len(), labels.len(), "{line}");
        assert!(
            series.insert((family.clone(), labels.clone())),
            "twice: {line}"
        );
        samples.push((family.clone(), labels, found[3].parse().unwrap()));
    }
    samples
}
