//! The values as Bencher Metric Format, as bencher.dev describes it under "Bencher Metric Format
//! (BMF)": `{"benchmark": {"measure": {"value": 1, "lower_value": 1, "upper_value": 1}}}`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::print::{json_for_terminals, one_line};
use super::rows::title;
use super::values::{bounded_name, measured};
use crate::files::pretty_json;
use crate::judge::Outcome;

/// Characters of a benchmark's name, and of a measure's, that Bencher takes.
const LONGEST_BENCHMARK: usize = 1024;
const LONGEST_MEASURE: usize = 64;

/// In the counter's unit.
#[derive(Serialize)]
struct Metric {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

pub(super) fn render(outcome: &Outcome) -> String {
    let mut benchmarks: BTreeMap<String, BTreeMap<String, Metric>> = BTreeMap::new();
    for value in measured(outcome) {
        let name = one_line(&format!("{} {}", title(value.report), value.kernel));
        let measures = benchmarks
            .entry(bounded_name(&name, LONGEST_BENCHMARK))
            .or_default();
        let metric = Metric {
            value: value.value,
            lower_value: value.between.map(|between| value.value - between),
            upper_value: value.between.map(|between| value.value + between),
        };
        let measure = one_line(&value.comparison.metric);
        measures.insert(bounded_name(&measure, LONGEST_MEASURE), metric);
    }
    json_for_terminals(pretty_json(&benchmarks))
}
