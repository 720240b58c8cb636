//! Variants that need no measurement, because both sides of the comparison are one program.

use super::built::{Built, CompiledSources};
use crate::comparable::{changed_code, changed_conditions};
use crate::config::{Config, Metric, Recipe, Variant};
use crate::measure::captures::SameProgram;
use crate::measure::key::same::{ChangedFiles, must_measure};
use crate::measure::place::order::{Locks, Plan};
use crate::measure::watch::Watch;
use crate::metric::Level;
use crate::profile::Profile;
use crate::terms::Tier;

/// The variants that were built on both sides and need not be measured. `watch` is informed why
/// the others are.
pub(in crate::measure) fn same_programs(
    plan: &Plan<'_>,
    built: &Built<'_>,
    changed: &ChangedFiles,
    watch: &dyn Watch,
) -> Vec<SameProgram> {
    let config = &plan.selected.config;
    let compiled = compiled_sources(config, built, &plan.locks);
    let mut same = Vec::new();
    for pair in built.pairs() {
        let variant = pair.variant;
        let limits = match must_measure(built, &pair, changed, &compiled) {
            Some(why) => Err(why),
            None => limits_on_locks(config, variant, &plan.locks),
        };
        match limits {
            Ok(limits) => {
                watch.ended(variant, "compare", "the base's program: nothing to measure");
                same.push(SameProgram {
                    variant: variant.id.clone(),
                    base: changed.base.clone(),
                    program: pair.artifact.sha256.clone(),
                    limits,
                });
            }
            Err(why) => watch.ended(variant, "compare", &format!("to be measured: {why}")),
        }
    }
    same
}

/// The sources of every compiled variant, as this run built it on either side and as its locks
/// name them.
fn compiled_sources(config: &Config, built: &Built<'_>, locks: &Locks<'_>) -> CompiledSources {
    let mut compiled = built.compiled_sources();
    let by_compiler = |variant: &&Variant| matches!(variant.recipe, Recipe::Nvcc { .. });
    for variant in config.variants().filter(by_compiler) {
        let locked = locks.get(&variant.id).into_iter().flatten();
        let sources = locked.flat_map(|profile| profile.provenance.sources.keys().cloned());
        let known = compiled.entry(variant.id.clone()).or_default();
        known.extend(sources);
    }
    compiled
}

/// The locked values of the metrics with hard limits, in words; why these cannot stand in for a
/// measurement.
fn limits_on_locks(
    config: &Config,
    variant: &Variant,
    locks: &Locks<'_>,
) -> Result<Vec<String>, String> {
    let locks = locks.get(&variant.id).into_iter().flatten();
    let locks: Vec<&Profile> = locks
        .copied()
        .filter(|locked| locked.identity.tier != Tier::Static)
        .collect();
    if locks.is_empty() {
        return Err("it has no baseline".to_owned());
    }
    let is_limited = |metric: &&Metric| {
        metric.level != Level::Record && (metric.min.is_some() || metric.max.is_some())
    };
    let limited: Vec<&Metric> = variant.metrics.iter().filter(is_limited).collect();
    let mut words = Vec::new();
    for locked in locks.iter().filter(|_| !limited.is_empty()) {
        let code = changed_code(config, variant, locked);
        if !code.is_empty() || !changed_conditions(variant, locked).is_empty() {
            return Err("its limits need a measurement: its baseline is of other code".to_owned());
        }
        for metric in &limited {
            words.extend(values_within(metric, locked)?);
        }
    }
    Ok(words)
}

/// The locked value of each kernel, in words, where it is within the limits of a metric.
fn values_within(metric: &Metric, locked: &Profile) -> Result<Vec<String>, String> {
    let alias = &metric.alias;
    let unclear = || format!("the limit of `{alias}` needs a measurement");
    let within = |kernel| {
        let value = locked.samples(kernel, alias).ok_or_else(unclear)?.value();
        // A value that is no number is within no limits.
        let above = metric.min.is_none_or(|min| value >= min);
        let below = metric.max.is_none_or(|max| value <= max);
        let label = locked.label(kernel);
        match above && below {
            true => Ok(format!(
                "`{alias}` of {label} on {}: {value}",
                locked.identity.gpu
            )),
            false => Err(unclear()),
        }
    };
    let words: Vec<String> = locked
        .kernels
        .iter()
        .map(within)
        .collect::<Result<_, _>>()?;
    match words.is_empty() {
        true => Err(unclear()),
        false => Ok(words),
    }
}
