//! Proposed tolerances as lines of the configuration.

use std::collections::BTreeMap;

use super::propose::{Gate, VariantTolerances};
use crate::metric::Tolerance;

/// The keys of a metric, in the order of a configuration.
const KEYS: [&str; 4] = ["tolerance", "against", "tail", "tail_against"];

/// The proposals that differ from the configuration, as tables `[metric.NAME.on]`; empty without any. A
/// variant on several GPU models gets the largest of each.
pub fn toml_lines(variants: &[VariantTolerances]) -> String {
    type Keys = BTreeMap<&'static str, Tolerance>;
    let mut metrics: BTreeMap<&str, BTreeMap<String, Keys>> = BTreeMap::new();
    for one in variants {
        for metric in &one.metrics {
            let keys = match metric.tail_of {
                None => [KEYS[0], KEYS[1]],
                Some(_) => [KEYS[2], KEYS[3]],
            };
            for (key, gate) in keys.into_iter().zip([&metric.stored, &metric.against]) {
                let Some(proposed) = proposal(gate) else {
                    continue;
                };
                let variants = metrics.entry(metric.tail_of.as_ref().unwrap_or(&metric.metric));
                let variants = variants.or_default();
                let keys = variants.entry(one.variant.to_string()).or_default();
                let largest = keys.entry(key).or_insert(proposed);
                if size(proposed) > size(*largest) {
                    *largest = proposed;
                }
            }
        }
    }
    let mut text = String::new();
    for (metric, variants) in metrics {
        let mut lines: Vec<String> = Vec::new();
        for (variant, keys) in variants {
            let keys = KEYS.iter().filter_map(|key| Some((key, keys.get(key)?)));
            let keys = keys.map(|(key, tolerance)| match tolerance {
                Tolerance::RelativePercent(value) => {
                    format!("{key} = {{ relative_percent = {value} }}")
                }
                Tolerance::Absolute(value) => format!("{key} = {{ absolute = {value} }}"),
            });
            let keys: Vec<String> = keys.collect();
            lines.push(format!("\"{variant}\" = {{ {} }}\n", keys.join(", ")));
        }
        text.push_str(&format!("[metric.{metric}.on]\n{}\n", lines.concat()));
    }
    text
}

fn proposal(gate: &Gate) -> Option<Tolerance> {
    gate.proposed
        .filter(|proposed| *proposed != gate.configured)
}

fn size(tolerance: Tolerance) -> f64 {
    match tolerance {
        Tolerance::RelativePercent(value) | Tolerance::Absolute(value) => value,
    }
}
