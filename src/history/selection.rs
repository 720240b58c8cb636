//! Which variant and which metrics are shown.

use crate::baseline::Store;
use crate::config::{Config, Variant, suggest};
use crate::finding::Error;
use crate::metric::Level;
use crate::profile::Trend;
use crate::terms::{Tier, VariantId};

/// The one variant of a name. It may be locked and no longer configured.
///
/// # Errors
/// [`Error::Usage`] where no variant or several have the name; [`Error::Io`].
pub fn find_variant(config: &Config, store: &Store, name: &str) -> Result<VariantId, Error> {
    let mut known: Vec<VariantId> = config
        .variants()
        .map(|variant| variant.id.clone())
        .chain(store.variants()?)
        .collect();
    known.sort();
    known.dedup();
    let meant: Vec<&VariantId> = known
        .iter()
        .filter(|id| id.to_string() == name || id.variant == name)
        .collect();
    match meant.as_slice() {
        [id] => Ok((*id).clone()),
        [] => {
            let names: Vec<String> = known.iter().map(VariantId::to_string).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            Err(Error::Usage(format!(
                "no variant is called `{name}`: {}",
                suggest(name, &names)
            )))
        }
        several => Err(Error::Usage(format!(
            "`{name}` is the name of several variants: {}",
            several
                .iter()
                .map(|id| format!("`{id}`"))
                .collect::<Vec<String>>()
                .join(", ")
        ))),
    }
}

/// Keeps the metrics that were `asked` for, or those that are judged: the others only explain.
///
/// # Errors
/// [`Error::Usage`] where no accepted profile has a metric that was asked for.
pub fn keep_metrics(
    config: &Config,
    variant: &VariantId,
    asked: &[String],
    baselines: &mut [Trend],
) -> Result<(), Error> {
    let all = || baselines.iter().flat_map(|baseline| &baseline.metrics);
    for name in asked {
        // Where no profile is available, each acceptance says so.
        if all().next().is_some() && !all().any(|course| course.metric == *name) {
            let mut known: Vec<&str> = all().map(|course| course.metric.as_str()).collect();
            known.sort_unstable();
            known.dedup();
            return Err(Error::Usage(format!(
                "`--metric {name}`: no available accepted profile of {variant} contains it: {}",
                suggest(name, &known)
            )));
        }
    }
    let configured = config.variants().find(|known| known.id == *variant);
    for baseline in baselines {
        match configured {
            _ if !asked.is_empty() => {
                baseline.metrics.retain(|one| asked.contains(&one.metric));
                baseline.effects.retain(|one| asked.contains(&one.metric));
            }
            Some(known) => judged_only(baseline, known),
            None => {}
        }
    }
    Ok(())
}

/// Keeps the metrics that a variant's configuration judges; the others only explain.
pub fn judged_only(trend: &mut Trend, variant: &Variant) {
    let metrics = match trend.tier {
        Tier::Static => &variant.static_metrics,
        _ => &variant.metrics,
    };
    let judged = |alias: &str| {
        metrics
            .iter()
            .any(|metric| metric.alias == alias && metric.level != Level::Record)
    };
    trend.metrics.retain(|course| judged(&course.metric));
    trend.effects.retain(|course| judged(&course.metric));
}
