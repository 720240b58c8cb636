//! How the values of the judged baselines changed over time, for reports that show it.

use std::path::Path;

use super::outcome::Outcome;
use super::variant_report::VariantReport;
use crate::baseline::{Lock, Store};
use crate::config::Selected;
use crate::finding::Error;
use crate::history::{Trend, judged_only, trend};
use crate::terms::Tier;
use crate::verdict::Verdict;

/// Most baselines that git is asked about, so that writing a report stays quick.
const MOST: usize = 8;

/// The trends of baselines that were locked more than once, those that got worse first. `baselines`
/// is their folder in the working tree, whose past git records.
///
/// # Errors
/// [`Error::Io`].
pub fn trends(
    plan: &Selected,
    store: &Store,
    baselines: &Path,
    outcome: &Outcome,
) -> Result<Vec<Trend>, Error> {
    let worse = |report: &VariantReport| {
        let mut comparisons = report.comparisons.iter();
        comparisons.any(|comparison| comparison.verdict == Some(Verdict::Regressed))
    };
    let mut reports: Vec<&VariantReport> = outcome
        .variants
        .iter()
        .filter(|report| report.tier != Tier::Static)
        .collect();
    reports.sort_by_key(|report| !worse(report));
    let mut found = Vec::new();
    for report in reports {
        let gpu = report.tier.folder(&report.gpu);
        let (Some(variant), Some(stored)) = (
            plan.config.variant(&report.variant),
            store.load(&gpu, &report.variant)?,
        ) else {
            continue;
        };
        let lock = stored.lock.as_deref().map(Lock::parse);
        let again = matches!(&lock, Some(Ok(lock)) if lock.ledger.len() > 1);
        if !again || found.len() == MOST {
            continue;
        }
        let file = |ending: &str| {
            let path = store.path(&gpu, &report.variant, ending);
            let below = path.strip_prefix(store.root()).unwrap_or(&path);
            baselines.join(below)
        };
        // A broken lock has a finding of its own.
        if let Ok(mut course) = trend(&stored, &file("lock.toml"), &file("profile.json")) {
            judged_only(&mut course, variant);
            // One point is no trend.
            course
                .metrics
                .retain(|metric| metric.values.iter().flatten().count() > 1);
            found.push(course);
        }
    }
    Ok(found)
}
