//! A regression of the duration with the percentages that moved most.

use crate::judge::compare::metric::Comparison;
use crate::metric::{Role, Stall};
use crate::verdict::{Change, Verdict};

/// Most metrics in percent that are named beside the causes.
const NAMED_PERCENTAGES: usize = 3;
/// Points that such a metric moved by.
const POINTS_THAT_MATTER: f64 = 1.0;

/// The duration and the percentages of a kernel that became slower, each in a few words: what
/// moved by more than its noise, most first.
pub(crate) fn slower(comparisons: &[Comparison]) -> Option<(String, Vec<String>)> {
    let duration = comparisons.iter().find(|comparison| {
        comparison.role() == Some(Role::Duration) && comparison.verdict == Some(Verdict::Regressed)
    })?;
    let change = duration.change?.display(duration.unit.as_deref());
    let mut percentages: Vec<(f64, String)> = comparisons
        .iter()
        .filter(|comparison| comparison.unit.as_deref() == Some("%"))
        // What warps wait for has words of its own.
        .filter(|comparison| Stall::of(&comparison.counter).is_none())
        .filter_map(|comparison| {
            let Some(change @ Change::Absolute(points)) = comparison.change else {
                return None;
            };
            let sides = [comparison.reference, comparison.current];
            let counted_once = sides.iter().flatten().all(|side| side.processes == 1);
            let band = comparison.band.or(counted_once.then_some(0.0))?;
            let noise = band.max(POINTS_THAT_MATTER);
            let text = format!("`{}` {}", comparison.metric, change.display(Some("%")));
            (points.abs() > noise).then_some((points.abs(), text))
        })
        .collect();
    percentages.sort_by(|a, b| b.0.total_cmp(&a.0));
    let named = percentages.into_iter().take(NAMED_PERCENTAGES);
    Some((
        format!("`{}` {change}", duration.metric),
        named.map(|(_, text)| text).collect(),
    ))
}
