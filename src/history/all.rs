//! The histories of all variants.

use std::collections::BTreeSet;

use super::selection::keep_metrics;
use super::trend::trends;
use crate::baseline::Store;
use crate::config::Config;
use crate::finding::{Code, Error, Finding};
use crate::profile::Trend;
use crate::terms::VariantId;

/// What was accepted of one variant.
#[derive(Clone, Debug)]
pub struct PastVariant {
    /// Which one. It may be locked and no longer configured.
    pub variant: VariantId,
    /// One for each GPU model and tier; none where nothing is locked.
    pub baselines: Vec<Trend>,
}

/// Every variant that is configured or locked, by name, with the metrics that are judged or were
/// asked for; and findings on locks that are no history.
///
/// # Errors
/// [`Error::Baseline`] where nothing is locked; [`Error::Usage`] where no variant has a metric that
/// was asked for; [`Error::Io`].
pub fn all_trends(
    config: &Config,
    store: &Store,
    asked: &[String],
) -> Result<(Vec<PastVariant>, Vec<Finding>), Error> {
    let configured = config.variants().map(|variant| variant.id.clone());
    let ids: BTreeSet<VariantId> = configured.chain(store.variants()?).collect();
    let mut findings = Vec::new();
    let mut past = Vec::new();
    for variant in ids {
        let (baselines, found) = trends(store, &variant)?;
        // The index says which variants are not locked yet.
        findings.extend(
            found
                .into_iter()
                .filter(|one| one.code != Code::NewBaseline),
        );
        past.push(PastVariant { variant, baselines });
    }
    if past.iter().all(|one| one.baselines.is_empty()) && findings.is_empty() {
        return Err(Error::Baseline(
            "nothing is locked yet, so there is no history\n  next: sparsek-gate baseline --lock --reason '...'".to_owned(),
        ));
    }
    let known = |name: &str| {
        let mut courses = past.iter().flat_map(|one| &one.baselines);
        courses.any(|trend| trend.metrics.iter().any(|course| course.metric == name))
    };
    if let Some(unknown) = asked.iter().find(|name| !known(name)) {
        return Err(Error::Usage(format!(
            "`--metric {unknown}`: no available accepted profile contains it"
        )));
    }
    for one in &mut past {
        // A variant may lack a metric that others have.
        let of_variant = |name: &&String| {
            let mut courses = one.baselines.iter().flat_map(|trend| &trend.metrics);
            courses.any(|course| course.metric == **name)
        };
        let own: Vec<String> = asked.iter().filter(of_variant).cloned().collect();
        if !asked.is_empty() && own.is_empty() {
            for trend in &mut one.baselines {
                trend.metrics.clear();
                trend.effects.clear();
            }
            continue;
        }
        keep_metrics(config, &one.variant, &own, &mut one.baselines)?;
    }
    Ok((past, findings))
}
