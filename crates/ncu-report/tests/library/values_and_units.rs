//! The reader of reports against NVIDIA's own reader, on the same files.

use ncu_report::{Value, report};
use serde_json::Value as Json;

use crate::common::{IN_EVERY_FORM, bytes, is_same};

#[test]
fn every_value_and_every_unit_that_follows_from_the_name_equals_nvidias_own() {
    let (mut compared, mut series) = (0, 0);
    let mut wrong = Vec::new();
    for name in IN_EVERY_FORM {
        let report = report::read(&bytes(&format!("{name}.ncu-rep"))).unwrap();
        // The launches as NVIDIA's `ncu_report` module reads them: name, and metric -> [value, unit].
        let truth: Vec<Json> =
            serde_json::from_slice(&bytes(&format!("{name}.truth.json"))).unwrap();
        assert_eq!(report.launches.len(), truth.len(), "{name}");
        for (launch, truth) in report.launches.iter().zip(&truth) {
            let truth = truth["metrics"].as_object().unwrap();
            let ours: Vec<&str> = launch.metrics.keys().map(|name| &**name).collect();
            let mut theirs: Vec<&str> = truth.keys().map(String::as_str).collect();
            theirs.sort_unstable();
            assert_eq!(ours, theirs, "{name}");
            for (counter, expected) in truth {
                let found = &launch.metrics[counter.as_str()];
                compared += 1;
                let (value, zero) = (&found.value, expected[0].as_f64() == Some(0.0));
                let is_missing = *value == Value::Missing;
                if is_missing && zero && counter.contains(".TriageCompute.") {
                    // The file has a series and no scalar.
                    series += 1;
                } else if is_missing && expected[0] == "None" {
                    // NVIDIA's reader on a metric without any value.
                } else if !is_same(value, &expected[0]) {
                    wrong.push(format!("{name}: {counter}: {value:?}, not {}", expected[0]));
                }
                // Families of texts, for which NVIDIA's reader gives a unit that means nothing.
                let is_text = counter.starts_with("breakdown:") || counter.starts_with("group:");
                let unit = found.unit.symbol();
                if !is_text && unit != expected[1].as_str() {
                    wrong.push(format!("{name}: {counter}: {unit:?}, not {}", expected[1]));
                }
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert_eq!((compared, series), (13_815, 11));
}
