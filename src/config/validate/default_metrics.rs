//! The metrics of a configuration that states none. They are added to the tree of the file: validation and
//! the rules of `trust` see ordinary tables.

use ncu_report::{Chip, Existence, exists};
use toml::de::{DeTable, DeValue};

use super::family::chip;
use crate::config::layers::table_of;
use crate::metric::{TENSOR_FLOP, alias, tensor_flop};

/// The metrics, of which a chip may lack some.
const METRICS: &str = include_str!("metrics.toml");

/// Adds them, where there is a suite and no metric.
pub(super) fn add(tree: &mut DeTable<'_>) {
    if tree.contains_key("metric") || !tree.contains_key("suite") {
        return;
    }
    // Of a chip that is not known, nobody knows the counters.
    let (Some(chip), Ok(defaults)) = (chip(tree), DeTable::parse(METRICS)) else {
        return;
    };
    let mut defaults = defaults.into_inner();
    if let Some(metrics) = table_of(&mut defaults, "metric") {
        let all = std::mem::take(metrics).into_iter();
        metrics.extend(all.filter(|(name, metric)| has(chip, name.get_ref(), metric.get_ref())));
    }
    tree.extend(defaults);
}

/// The counter of a metric that is there by default, and is no built-in name, as it is written.
pub(super) fn default_counter(name: &str) -> Option<String> {
    let defaults = DeTable::parse(METRICS).ok()?;
    let counter = defaults.get_ref().get("metric")?.get_ref().get(name)?;
    let counter = counter.get_ref().get("counter")?.get_ref().as_str()?;
    Some(format!("counter = \"{counter}\""))
}

/// Whether a chip can measure a metric.
fn has(chip: Chip, name: &str, metric: &DeValue<'_>) -> bool {
    match metric.get("counter").and_then(|it| it.get_ref().as_str()) {
        Some(counter) => exists(chip, counter) != Existence::Unknown,
        None if name == TENSOR_FLOP => !tensor_flop(chip).is_empty(),
        None => alias(name).is_some_and(|alias| alias.role.on(Some(chip)).is_some()),
    }
}
