//! Whether a report and a CSV page state the same measurements.

use crate::catalog::Unit;
use crate::launch::{Launch, ResultKind};
use crate::recording::Recording;
use crate::value::Value;

/// Where a report and a CSV page of the same run differ.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Disagreement {
    /// The numbers of launches differ.
    #[error("the report has {report} launches, the CSV page {csv}")]
    LaunchCount {
        /// Number of launches in the report.
        report: usize,
        /// Number of launches on the page.
        csv: usize,
    },
    /// The grid or the block of a launch differs.
    #[error(
        "launch {launch}: grid and block are {:?} {:?} in the report, {:?} {:?} on the CSV page",
        report[0], report[1], csv[0], csv[1]
    )]
    Shape {
        /// Index of the launch, from 0.
        launch: usize,
        /// Grid and block in the report.
        report: [[u64; 3]; 2],
        /// Grid and block on the page.
        csv: [[u64; 3]; 2],
    },
    /// The values of a metric differ by more than the page's rounding.
    #[error(
        "launch {launch}: {metric} is {report} in the report and {csv} on the CSV page, which \
         rounds by {tolerance:e} at most"
    )]
    Value {
        /// Index of the launch, from 0.
        launch: usize,
        /// Full name of the metric.
        metric: String,
        /// Value in the report; [`Value::Missing`] where it has none.
        report: Value,
        /// Value on the page, in base units.
        csv: Value,
        /// The largest difference that rounding explains, in base units.
        tolerance: f64,
    },
    /// Both state a unit, and the units differ.
    #[error(
        "launch {launch}: the unit of {metric} is {report:?} in the report, {csv:?} on the CSV page"
    )]
    Unit {
        /// Index of the launch, from 0.
        launch: usize,
        /// Full name of the metric.
        metric: String,
        /// Unit in the report.
        report: String,
        /// Unit on the page, after scaling.
        csv: String,
    },
}

/// Compares a report with the CSV page of the same run, launch by launch in their order. Each of
/// these metrics must be absent from both, or present in both with values that differ by no more
/// than the page's rounding.
///
/// # Errors
/// The first [`Disagreement`].
///
/// ```no_run
/// let report = ncu_report::read_file("gemm.ncu-rep")?;
/// let page = ncu_report::read_file("gemm.csv")?;
/// ncu_report::agree(&report, &page, &["gpu__time_duration.sum"])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn agree(report: &Recording, csv: &Recording, metrics: &[&str]) -> Result<(), Disagreement> {
    if report.launches.len() != csv.launches.len() {
        return Err(Disagreement::LaunchCount {
            report: report.launches.len(),
            csv: csv.launches.len(),
        });
    }
    for (index, (ours, theirs)) in report.launches.iter().zip(&csv.launches).enumerate() {
        let shape = |launch: &Launch| [launch.grid, launch.block];
        // The page states none of a range.
        let is_stated = shape(theirs) != [[0; 3]; 2] || ours.kind != ResultKind::Range;
        if is_stated && shape(ours) != shape(theirs) {
            return Err(Disagreement::Shape {
                launch: index,
                report: shape(ours),
                csv: shape(theirs),
            });
        }
        for &metric in metrics {
            let half_step = csv.rounding.half_step(metric);
            agree_on_value(index, metric, ours, theirs, half_step)?;
            agree_on_unit(index, metric, ours, theirs)?;
        }
    }
    Ok(())
}

fn agree_on_value(
    launch: usize,
    metric: &str,
    report: &Launch,
    csv: &Launch,
    half_step: f64,
) -> Result<(), Disagreement> {
    let value = |launch: &Launch| {
        let found = launch.metrics.get(metric);
        found.map_or(Value::Missing, |found| found.value.clone())
    };
    let (report, csv) = (value(report), value(csv));
    let largest = f64::max(
        report.number().unwrap_or_default().abs(),
        csv.number().unwrap_or_default().abs(),
    );
    // The decimal on the page and the half step are themselves rounded to doubles.
    let tolerance = half_step + 4.0 * f64::EPSILON * largest;
    let same = match (&report, &csv) {
        (Value::Missing, Value::Missing) => true,
        (Value::Text(report), Value::Text(csv)) => report == csv,
        // The page prints an empty text as an empty cell.
        (Value::Text(text), Value::Missing) => text.is_empty(),
        _ => match (report.number(), csv.number()) {
            (Some(report), Some(csv)) => (report - csv).abs() <= tolerance,
            _ => false,
        },
    };
    if same {
        return Ok(());
    }
    Err(Disagreement::Value {
        launch,
        metric: metric.to_owned(),
        report,
        csv,
        tolerance,
    })
}

/// The beginning of the names of metrics that a section derives from others.
const DERIVED: &str = "derived_";

fn agree_on_unit(
    launch: usize,
    metric: &str,
    report: &Launch,
    csv: &Launch,
) -> Result<(), Disagreement> {
    // Of what a section derives, ncu's page states another unit than NVIDIA's reader of reports.
    if metric.starts_with(DERIVED) {
        return Ok(());
    }
    let unit = |launch: &Launch| launch.metrics.get(metric).map(|found| found.unit);
    match (unit(report), unit(csv)) {
        (Some(Unit::Known(report)), Some(Unit::Known(csv))) if report != csv => {
            Err(Disagreement::Unit {
                launch,
                metric: metric.to_owned(),
                report: (*report).to_owned(),
                csv: (*csv).to_owned(),
            })
        }
        _ => Ok(()),
    }
}
