//! The measured values of an outcome, for the forms that are read by other tools.
//!
//! A value that was not measured is in none of them, and never reads as zero.

use std::collections::BTreeMap;

use super::print::one_line;
use super::rows::{kernel_label, several_shapes};
use crate::hash::sha256_hex;
use crate::judge::{Comparison, Origin, Outcome, VariantReport};
use crate::verdict::Verdict;

/// The current value of one metric of one kernel.
pub(super) struct Value<'a> {
    pub report: &'a VariantReport,
    pub comparison: &'a Comparison,
    /// The kernel's name, with grid and block where it has several. No other value of the same
    /// report and metric has it.
    pub kernel: String,
    /// In the counter's unit.
    pub value: f64,
    /// Standard deviation between processes, in the counter's unit; `None` where one process was
    /// measured.
    pub between: Option<f64>,
}

/// Every value that was measured, in the order of the outcome.
pub(super) fn measured(outcome: &Outcome) -> Vec<Value<'_>> {
    let mut values = Vec::new();
    for report in &outcome.variants {
        let shapes = several_shapes(report);
        let mut seen: BTreeMap<(String, &str), usize> = BTreeMap::new();
        for comparison in &report.comparisons {
            let Some(current) = comparison.current else {
                continue;
            };
            // Launches without a value may have left some with one.
            if comparison.verdict == Some(Verdict::NotMeasured) || !current.value.is_finite() {
                continue;
            }
            let label = one_line(&kernel_label(comparison, &shapes));
            let times = seen
                .entry((label.clone(), &comparison.metric))
                .and_modify(|times| *times += 1)
                .or_insert(1);
            values.push(Value {
                report,
                comparison,
                kernel: match *times {
                    1 => label,
                    // Overloads of one name.
                    times => format!("{label} #{times}"),
                },
                value: current.value,
                between: current.between.filter(|between| between.is_finite()),
            });
        }
    }
    values
}

/// Where the values came from, in one word.
pub(super) fn origin_word(outcome: &Outcome) -> &'static str {
    match outcome.origin {
        Origin::Measured => "measured",
        Origin::Compiled => "compiled",
        Origin::Recorded(_) => "recorded",
    }
}

/// A name of at most so many characters. A longer one keeps its start, and a part of its hash
/// distinguishes it from others.
pub(super) fn bounded_name(name: &str, most: usize) -> String {
    const HASH: usize = 8;
    if name.chars().count() <= most {
        return name.to_owned();
    }
    let start: String = name.chars().take(most - HASH - 1).collect();
    let hash = sha256_hex(name.as_bytes());
    format!("{start}~{}", &hash[..HASH])
}
