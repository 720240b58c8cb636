//! Whether a report and a CSV page state the same measurements.

use crate::catalog::Unit;
use crate::launch::{Launch, ResultKind};
use crate::recording::Recording;
use crate::value::{Measurement, Value};

/// The beginning of the names of metrics that a section derives from others.
const DERIVED: &str = "derived_";

/// Compares a report with the CSV page of the same run, launch by launch in their order. Each of
/// these metrics must be absent from both, or present in both with values that differ by no more
/// than the page's rounding.
///
/// # Errors
/// The first difference, in words.
///
/// ```no_run
/// let report = ncu_report::read_file("gemm.ncu-rep")?;
/// let page = ncu_report::read_file("gemm.csv")?;
/// ncu_report::agree(&report, &page, &["gpu__time_duration.sum"])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn agree(report: &Recording, csv: &Recording, metrics: &[&str]) -> Result<(), String> {
    let [ours, theirs] = [report, csv].map(|recording| recording.launches.len());
    if ours != theirs {
        return Err(format!(
            "the report has {ours} launches, the CSV page {theirs}"
        ));
    }
    for (index, (ours, theirs)) in report.launches.iter().zip(&csv.launches).enumerate() {
        let named = |what: String| format!("launch {index}: {what}");
        agree_on_shape(ours, theirs).map_err(named)?;
        for &metric in metrics {
            let both = [ours, theirs].map(|launch| launch.metrics.get(metric));
            agree_on_value(metric, both, csv.rounding.half_step(metric)).map_err(named)?;
            agree_on_unit(metric, both).map_err(named)?;
        }
    }
    Ok(())
}

fn agree_on_shape(report: &Launch, csv: &Launch) -> Result<(), String> {
    let [ours, theirs] = [report, csv].map(|launch| [launch.grid, launch.block]);
    // The page states none of a range.
    if ours == theirs || theirs == [[0; 3]; 2] && report.kind == ResultKind::Range {
        return Ok(());
    }
    Err(format!(
        "grid and block are {:?} {:?} in the report, {:?} {:?} on the CSV page",
        ours[0], ours[1], theirs[0], theirs[1]
    ))
}

fn agree_on_value(
    metric: &str,
    both: [Option<&Measurement>; 2],
    half_step: f64,
) -> Result<(), String> {
    let [report, csv] = both.map(|found| found.map_or(&Value::Missing, |found| &found.value));
    let numbers = [report, csv].map(Value::number);
    let largest = numbers.map(|number| number.unwrap_or_default().abs());
    // The decimal on the page and the half step are themselves rounded to doubles.
    let tolerance = half_step + 4.0 * f64::EPSILON * f64::max(largest[0], largest[1]);
    let same = match (report, csv) {
        (Value::Missing, Value::Missing) => true,
        (Value::Text(report), Value::Text(csv)) => report == csv,
        // The page prints an empty text as an empty cell.
        (Value::Text(text), Value::Missing) => text.is_empty(),
        _ => match numbers {
            [Some(report), Some(csv)] => (report - csv).abs() <= tolerance,
            _ => false,
        },
    };
    match same {
        true => Ok(()),
        false => Err(format!(
            "{metric} is {report} in the report and {csv} on the CSV page, which rounds by \
             {tolerance:e} at most"
        )),
    }
}

fn agree_on_unit(metric: &str, both: [Option<&Measurement>; 2]) -> Result<(), String> {
    match both.map(|found| found.map(|found| found.unit)) {
        // Of what a section derives, ncu's page states another unit than NVIDIA's reader of reports.
        _ if metric.starts_with(DERIVED) => Ok(()),
        [Some(Unit::Known(report)), Some(Unit::Known(csv))] if report != csv => Err(format!(
            "the unit of {metric} is {report:?} in the report, {csv:?} on the CSV page"
        )),
        _ => Ok(()),
    }
}
