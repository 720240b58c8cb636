//! The reader of reports against NVIDIA's own reader, on the same files.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use std::collections::BTreeSet;

use common::bytes;
use ncu_report::{Launch, Recording, Value, report};
use serde_json::Value as Json;

const REPORTS: [&str; 5] = [
    "four_metrics",
    "full_set",
    "graph_as_one",
    "twenty_launches",
    "two_kernels_three_times",
];

fn report(name: &str) -> Recording {
    report::read(&bytes(&format!("{name}.ncu-rep"))).unwrap()
}

/// The launches as NVIDIA's `ncu_report` module reads them: name, and metric -> [value, unit].
fn truth(name: &str) -> Vec<Json> {
    serde_json::from_slice(&bytes(&format!("{name}.truth.json"))).unwrap()
}

fn launches_beside_truth(name: &str) -> Vec<(Launch, serde_json::Map<String, Json>)> {
    let (report, truth) = (report(name), truth(name));
    assert_eq!(report.launches.len(), truth.len(), "{name}");
    let metrics = truth
        .into_iter()
        .map(|launch| launch["metrics"].as_object().unwrap().clone());
    report.launches.into_iter().zip(metrics).collect()
}

/// Metrics of `full_set` for which the file has a series and no scalar.
const SERIES_ONLY: [&str; 11] = [
    "FBSP.TriageCompute.dramc__read_throughput.avg.pct_of_peak_sustained_elapsed",
    "FBSP.TriageCompute.dramc__throughput.avg.pct_of_peak_sustained_elapsed",
    "FBSP.TriageCompute.dramc__write_throughput.avg.pct_of_peak_sustained_elapsed",
    "LTS.TriageCompute.lts__average_t_sector_hit_rate_realtime.pct",
    "LTS.TriageCompute.lts__average_t_sector_hit_rate_srcunit_tex_realtime.pct",
    "LTS.TriageCompute.lts__t_sector_throughput_aperture_device.avg.pct_of_peak_sustained_elapsed",
    "LTS.TriageCompute.lts__t_sector_throughput_srcunit_gcc.avg.pct_of_peak_sustained_elapsed",
    "LTS.TriageCompute.lts__t_sector_throughput_srcunit_tex.avg.pct_of_peak_sustained_elapsed",
    "LTS.TriageCompute.lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "SM_A.TriageCompute.l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
    "SM_B.TriageCompute.l1tex__t_sector_hit_rate.pct",
];

#[test]
fn every_value_of_a_report_equals_nvidias_own() {
    if common::recordings_are_absent() {
        return;
    }
    let mut compared = 0;
    for name in REPORTS {
        for (launch, truth) in launches_beside_truth(name) {
            let ours: Vec<&str> = launch.metrics.keys().map(|name| &**name).collect();
            let mut theirs: Vec<&str> = truth.keys().map(String::as_str).collect();
            theirs.sort_unstable();
            assert_eq!(ours, theirs, "{name}");
            for (counter, expected) in &truth {
                let value = &launch.metrics[&**counter].value;
                let series_only = name == "full_set" && SERIES_ONLY.contains(&&**counter);
                let same = match (value, &expected[0]) {
                    (Value::Missing, Json::Null) => true,
                    // NVIDIA's reader on a metric without any value.
                    (Value::Missing, Json::String(text)) => text == "None",
                    (Value::Missing, Json::Number(zero)) => {
                        series_only && zero.as_f64() == Some(0.0)
                    }
                    (Value::Integer(ours), Json::Number(number)) => number.as_u64() == Some(*ours),
                    (Value::Float(ours), Json::Number(number)) => {
                        number.as_f64().map(f64::to_bits) == Some(ours.to_bits())
                    }
                    (Value::Text(ours), Json::String(text)) => **ours == **text,
                    _ => false,
                };
                assert!(
                    same,
                    "{name}: {counter}: {value:?} instead of {}",
                    expected[0]
                );
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 13_815);
}

/// Families of texts, for which NVIDIA's reader gives a unit that means nothing.
fn has_no_unit(counter: &str) -> bool {
    ["breakdown:", "group:"]
        .iter()
        .any(|family| counter.starts_with(family))
}

#[test]
fn every_unit_that_follows_from_the_name_equals_nvidias_own() {
    if common::recordings_are_absent() {
        return;
    }
    for name in REPORTS {
        let mut wrong = BTreeSet::new();
        for (launch, truth) in launches_beside_truth(name) {
            for (counter, expected) in &truth {
                let symbol = launch.metrics[counter.as_str()].unit.symbol();
                if !has_no_unit(counter) && symbol != expected[1].as_str() {
                    wrong.insert(format!("{counter}: {symbol:?}, not {}", expected[1]));
                }
            }
        }
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
    }
}
