//! The effects of a check side by side, as they are recorded of the target branch.

use super::metric::Comparison;
use super::mode::Mode;
use super::outcome::Outcome;
use super::variant_report::VariantReport;
use crate::baseline::{CodeHash, Effect, EffectEntry, NewEffects};
use crate::finding::{Code, Error, Finding};
use crate::metric::Level;
use crate::statistics::location;
use crate::terms::Tier;
use crate::verdict::Change;

/// What an outcome measured side by side, and the variants of which nothing can be recorded.
///
/// # Errors
/// [`Error::Usage`] where the run did not end, or compared nothing side by side.
pub fn effects_of(outcome: &Outcome) -> Result<(Vec<NewEffects>, Vec<Finding>), Error> {
    if outcome.ended.is_some() || outcome.programs.is_some() {
        return Err(Error::Usage(
            "`--record` takes the outcome of a whole `check --against`".to_owned(),
        ));
    }
    let (mut found, mut findings) = (Vec::new(), Vec::new());
    let measured = outcome
        .variants
        .iter()
        .filter(|report| report.tier != Tier::Static);
    let mut compared = !outcome.same_programs.is_empty();
    for report in measured {
        if report.mode != Mode::Against {
            continue;
        }
        compared = true;
        let effects = effects_of_variant(report);
        let overrides = &report.current.overrides;
        let why = if !overrides.is_empty() {
            format!("it was measured with --define {}", overrides.join(" "))
        } else if effects.is_empty() {
            "the outcome has no round of two processes a side of it".to_owned()
        } else {
            found.push(NewEffects {
                gpu: report.tier.folder(&report.gpu),
                variant: report.variant.clone(),
                entry: entry(report, effects),
            });
            continue;
        };
        findings.push(Finding::deny(
            Code::EffectsMissing,
            &report.variant,
            format!("no effect is recorded: {why}"),
            "measure the change again: sparsek-gate check --against REVISION --report outcome.json",
        ));
    }
    if !compared {
        return Err(Error::Usage(
            "`--record`: nothing in this outcome was measured side by side; run `check --against REVISION --report outcome.json` on the target branch".to_owned(),
        ));
    }
    Ok((found, findings))
}

fn entry(report: &VariantReport, effects: Vec<Effect>) -> EffectEntry {
    EffectEntry {
        time: report.current.created.clone(),
        commit: report.current.git.clone(),
        before: CodeHash::of(&report.reference),
        after: CodeHash::of(&report.current),
        effects,
        previous: String::new(),
    }
}

fn effects_of_variant(report: &VariantReport) -> Vec<Effect> {
    let name = |comparison: &Comparison| {
        let shape = |one: &Comparison| (one.grid, one.block);
        let mut others = report.comparisons.iter();
        let shared =
            others.any(|one| one.kernel == comparison.kernel && shape(one) != shape(comparison));
        match shared {
            true => format!(
                "{} {:?} {:?}",
                comparison.kernel, comparison.grid, comparison.block
            ),
            false => comparison.kernel.clone(),
        }
    };
    let comparisons = report.comparisons.iter();
    comparisons
        .filter(|one| one.level != Level::Record && !one.exact)
        .filter_map(|one| effect(one, name(one)))
        .collect()
}

/// The effect of whole rounds that are judged; `None` where there is none, or a value is no number.
fn effect(comparison: &Comparison, kernel: String) -> Option<Effect> {
    let samples = comparison.samples.as_ref()?;
    let relative = matches!(comparison.change?, Change::RelativePercent(_));
    let values = |side: &[Vec<f64>]| -> Option<Vec<f64>> {
        let located = side.iter().map(|launches| location(launches));
        let terms = |value: f64| if relative { value.ln() } else { value };
        located.map(|value| value.map(terms)).collect()
    };
    let (base, current) = (values(&samples.reference)?, values(&samples.current)?);
    let set_aside = comparison.outlying.as_ref();
    let set_aside = set_aside.map_or(&[][..], |outlying| &outlying.set_aside);
    let rounds = (1..).zip(base.chunks_exact(2).zip(current.chunks_exact(2)));
    let rounds: Vec<_> = rounds
        .filter(|(at, _)| !set_aside.contains(at))
        .map(|(_, round)| round)
        .collect();
    let count = rounds.len();
    let mean = |pair: &[f64]| (pair[0] + pair[1]) / 2.0;
    let scatter = |pair: &[f64]| (pair[0] - pair[1]).powi(2) / 2.0;
    let changes = rounds.iter().map(|(base, now)| mean(now) - mean(base));
    let effect = changes.sum::<f64>() / count as f64;
    let scatters = rounds
        .iter()
        .map(|(base, now)| scatter(base) + scatter(now));
    let variance = scatters.sum::<f64>() / (2 * count) as f64;
    (effect.is_finite() && variance.is_finite()).then(|| Effect {
        kernel,
        metric: comparison.metric.clone(),
        relative,
        effect,
        rounds: count,
        variance,
    })
}
