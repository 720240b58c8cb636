//! Whether the two readers saw the same run.

use super::{Launch, Recording, Value};
use crate::counter::Unit;

/// Where a report and a CSV page of the same run differ.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Disagreement {
    /// One of the two holds more launches.
    #[error("the report holds {report} launches, the CSV page {csv}")]
    LaunchCount {
        /// Launches in the report.
        report: usize,
        /// Launches on the page.
        csv: usize,
    },
    /// The launches at one place were of different sizes, so they are not the same.
    #[error(
        "launch {launch}: grid and block are {:?} {:?} in the report, {:?} {:?} on the CSV page",
        report[0], report[1], csv[0], csv[1]
    )]
    Shape {
        /// Place of the launch, from 0.
        launch: usize,
        /// Grid and block in the report.
        report: [[u64; 3]; 2],
        /// Grid and block on the page.
        csv: [[u64; 3]; 2],
    },
    /// The values of a counter differ by more than the page's rounding.
    #[error(
        "launch {launch}: {counter} is {} in the report and {} on the CSV page, which rounds by \
         {tolerance:e} at most",
        shown(report),
        shown(csv)
    )]
    Value {
        /// Place of the launch, from 0.
        launch: usize,
        /// Full name of the counter.
        counter: String,
        /// Value in the report, [`Value::Missing`] where it has none.
        report: Value,
        /// Value on the page, in base units.
        csv: Value,
        /// The largest difference that printing explains, in base units.
        tolerance: f64,
    },
    /// Both state a unit, and not the same.
    #[error(
        "launch {launch}: {counter} is in {report:?} in the report, in {csv:?} on the CSV page"
    )]
    Unit {
        /// Place of the launch, from 0.
        launch: usize,
        /// Full name of the counter.
        counter: String,
        /// Unit in the report.
        report: String,
        /// Unit on the page, after scaling.
        csv: String,
    },
}

fn shown(value: &Value) -> String {
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Text(text) => format!("{text:?}"),
        Value::Missing => "missing".to_owned(),
    }
}

/// Compares a report with the CSV page of the same run, launch by launch in their order, on the
/// counters named: both must lack a counter, or both have it with values no further apart than
/// the page's rounding explains.
///
/// # Errors
/// The first [`Disagreement`].
pub fn agree(report: &Recording, csv: &Recording, counters: &[&str]) -> Result<(), Disagreement> {
    if report.launches.len() != csv.launches.len() {
        return Err(Disagreement::LaunchCount {
            report: report.launches.len(),
            csv: csv.launches.len(),
        });
    }
    for (index, (ours, theirs)) in report.launches.iter().zip(&csv.launches).enumerate() {
        let shape = |launch: &Launch| [launch.grid, launch.block];
        if shape(ours) != shape(theirs) {
            return Err(Disagreement::Shape {
                launch: index,
                report: shape(ours),
                csv: shape(theirs),
            });
        }
        for &counter in counters {
            let half_step = csv.rounding.half_step(counter);
            agree_on(index, counter, ours, theirs, half_step)?;
        }
    }
    Ok(())
}

fn agree_on(
    launch: usize,
    counter: &str,
    report: &Launch,
    csv: &Launch,
    half_step: f64,
) -> Result<(), Disagreement> {
    let value = |launch: &Launch| {
        launch
            .metrics
            .get(counter)
            .map_or(Value::Missing, |found| found.value.clone())
    };
    let (ours, theirs) = (value(report), value(csv));
    let largest = f64::max(
        ours.number().unwrap_or_default().abs(),
        theirs.number().unwrap_or_default().abs(),
    );
    // The decimal on the page and the half step are themselves rounded to doubles.
    let tolerance = half_step + 4.0 * f64::EPSILON * largest;
    let same = match (&ours, &theirs) {
        (Value::Missing, Value::Missing) => true,
        (Value::Text(ours), Value::Text(theirs)) => ours == theirs,
        // The page leaves a text cell empty where the report holds an empty text.
        (Value::Text(text), Value::Missing) => text.is_empty(),
        _ => match (ours.number(), theirs.number()) {
            (Some(ours), Some(theirs)) => (ours - theirs).abs() <= tolerance,
            _ => false,
        },
    };
    if !same {
        return Err(Disagreement::Value {
            launch,
            counter: counter.to_owned(),
            report: ours,
            csv: theirs,
            tolerance,
        });
    }
    let unit = |launch: &Launch| launch.metrics.get(counter).map(|found| found.unit);
    match (unit(report), unit(csv)) {
        (Some(Unit::Known(ours)), Some(Unit::Known(theirs))) if ours != theirs => {
            Err(Disagreement::Unit {
                launch,
                counter: counter.to_owned(),
                report: (*ours).to_owned(),
                csv: (*theirs).to_owned(),
            })
        }
        _ => Ok(()),
    }
}
