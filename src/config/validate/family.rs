//! A short name that stands for several metrics: one for each source type of the tensor cores.
//!
//! It is replaced in the tree of the file, as a matrix is: each metric is an ordinary table, and
//! validation, errors and the rules of `trust` know only these.

use ncu_report::Chip;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use crate::config::choices::DEFAULT_ARCH;
use crate::config::layers::{table_of, tables};
use crate::metric::{TENSOR_FLOP, chip_of_arch, tensor_flop};

/// Replaces `[metric.tensor_flop]` without a counter, and its name in every list of metrics, by the
/// metrics of the chip.
pub(super) fn expand(tree: &mut DeTable<'_>) {
    let Some(members) = chip(tree).map(tensor_flop) else {
        return;
    };
    // What is no table is reported where the types are read.
    let Some(metrics) = table_of(tree, "metric") else {
        return;
    };
    let Some((key, family)) = metrics.remove_entry(TENSOR_FLOP) else {
        return;
    };
    let is_written_out = !family.get_ref().is_table() || family.get_ref().get("counter").is_some();
    if is_written_out || members.is_empty() {
        metrics.insert(key, family);
        return;
    }
    for (name, counter) in &members {
        let mut member = family.clone();
        if let DeValue::Table(table) = member.get_mut() {
            let counter = DeValue::String(DeString::from(counter.clone()));
            let at = key.span();
            let of = Spanned::new(at.clone(), DeString::from("counter"));
            table.insert(of, Spanned::new(at, counter));
        }
        let name = Spanned::new(key.span(), DeString::from(name.clone()));
        // A metric that is written out has the settings that are written there.
        metrics.entry(name).or_insert(member);
    }
    if let Some(DeValue::Array(waivers)) = tree.get_mut("waiver").map(Spanned::get_mut) {
        let mut all = DeArray::new();
        for waiver in waivers.iter() {
            let metric = waiver.get_ref().get("metric");
            if metric.and_then(|metric| metric.get_ref().as_str()) != Some(TENSOR_FLOP) {
                all.push(waiver.clone());
                continue;
            }
            for (name, _) in &members {
                let mut member = waiver.clone();
                if let DeValue::Table(table) = member.get_mut()
                    && let Some(metric) = table.get_mut("metric")
                {
                    *metric.get_mut() = DeValue::String(DeString::from(name.clone()));
                }
                all.push(member);
            }
        }
        *waivers = all;
    }
    for (_, suite) in tables(tree, "suite") {
        let Some(DeValue::Array(names)) = suite.get_mut("metrics").map(Spanned::get_mut) else {
            continue;
        };
        let mut all = DeArray::new();
        for name in names.iter() {
            if name.get_ref().as_str() == Some(TENSOR_FLOP) {
                let is_named = |member: &str| {
                    names
                        .iter()
                        .any(|other| other.get_ref().as_str() == Some(member))
                };
                for (member, _) in members.iter().filter(|(member, _)| !is_named(member)) {
                    let member = DeValue::String(DeString::from(member.clone()));
                    all.push(Spanned::new(name.span(), member));
                }
            } else {
                all.push(name.clone());
            }
        }
        *names = all;
    }
}

/// The chip that the text is for.
pub(super) fn chip(tree: &DeTable<'_>) -> Option<Chip> {
    let toolchain = tree.get("toolchain");
    let arch = toolchain.and_then(|toolchain| toolchain.get_ref().get("arch"));
    chip_of_arch(arch.map_or(Some(DEFAULT_ARCH), |arch| arch.get_ref().as_str())?)
}
