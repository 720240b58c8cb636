//! A short name that stands for several metrics: one for each source type of the tensor cores.
//!
//! It is replaced in the tree of the file, as a matrix is: each metric is an ordinary table, and
//! validation, errors and the rules of `trust` know only these.

use ncu_report::Chip;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

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
        let at = key.span();
        if let DeValue::Table(table) = member.get_mut() {
            let of = Spanned::new(at.clone(), DeString::from("counter"));
            table.insert(of, Spanned::new(at.clone(), text(counter)));
        }
        let name = Spanned::new(at, DeString::from(name.clone()));
        // A metric that is written out has the settings that are written there.
        metrics.entry(name).or_insert(member);
    }
    if let Some(DeValue::Array(waivers)) = tree.get_mut("waiver").map(Spanned::get_mut) {
        let all = waivers.iter().flat_map(|waiver| {
            if !is_family(waiver.get_ref().get("metric")) {
                return vec![waiver.clone()];
            }
            let of_member = |(name, _): &(String, String)| {
                let mut waiver = waiver.clone();
                if let DeValue::Table(table) = waiver.get_mut()
                    && let Some(metric) = table.get_mut("metric")
                {
                    *metric.get_mut() = text(name);
                }
                waiver
            };
            members.iter().map(of_member).collect()
        });
        *waivers = all.collect();
    }
    for (_, suite) in tables(tree, "suite") {
        let Some(DeValue::Array(names)) = suite.get_mut("metrics").map(Spanned::get_mut) else {
            continue;
        };
        let is_named = |member: &str| names.iter().any(|it| it.get_ref().as_str() == Some(member));
        let all = names.iter().flat_map(|name| {
            if !is_family(Some(name)) {
                return vec![name.clone()];
            }
            let further = members.iter().filter(|(member, _)| !is_named(member));
            let further = further.map(|(member, _)| Spanned::new(name.span(), text(member)));
            further.collect()
        });
        *names = all.collect();
    }
}

fn is_family(name: Option<&Spanned<DeValue<'_>>>) -> bool {
    name.and_then(|name| name.get_ref().as_str()) == Some(TENSOR_FLOP)
}

fn text<'i>(text: &str) -> DeValue<'i> {
    DeValue::String(DeString::from(text.to_owned()))
}

/// The chip that the text is for.
pub(super) fn chip(tree: &DeTable<'_>) -> Option<Chip> {
    let toolchain = tree.get("toolchain");
    let arch = toolchain.and_then(|toolchain| toolchain.get_ref().get("arch"));
    chip_of_arch(arch.map_or(Some(DEFAULT_ARCH), |arch| arch.get_ref().as_str())?)
}
