//! Proposed tolerances as lines of the configuration.

use std::collections::BTreeMap;

use super::propose::{Gate, VariantTolerances};
use crate::metric::Tolerance;

/// The proposals that differ from the configuration, as tables `[metric.NAME.on]`; empty without any. A
/// variant on several GPU models gets the largest of each.
pub fn toml_lines(variants: &[VariantTolerances]) -> String {
    type Keys = BTreeMap<&'static str, Tolerance>;
    let mut metrics: BTreeMap<&str, BTreeMap<String, Keys>> = BTreeMap::new();
    for one in variants {
        for metric in &one.metrics {
            let gates = [("tolerance", &metric.stored), ("against", &metric.against)];
            for (key, gate) in gates {
                let Some(proposed) = proposal(gate) else {
                    continue;
                };
                let variants = metrics.entry(&metric.metric).or_default();
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
            // As the configuration is written: the stored tolerance first.
            let keys = keys.iter().rev().map(|(key, tolerance)| match tolerance {
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
