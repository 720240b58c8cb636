//! What moved together in a kernel that got worse.

use std::collections::BTreeMap;

use super::cause::{Cause, CauseKind, causes, slower};
use super::hotspot::{KernelHotspots, Sampled, moved};
use crate::judge::compare::metric::{Case, Comparison, Pair, Summary};
use crate::judge::outcome::variant_report::KernelCauses;

/// How the compiler's code of each kernel differs, by the kernel's name.
pub(crate) type CodeChanges = BTreeMap<String, String>;

/// Why a kernel got worse, as far as its counters, its samples and its code show it.
pub(crate) struct Explanation {
    pub causes: Option<KernelCauses>,
    pub hotspots: Option<KernelHotspots>,
    /// What explains it, in words, for the finding.
    pub named: Vec<String>,
    /// What else changed.
    pub also: Vec<String>,
}

impl Explanation {
    /// Of a pair of kernels; `code` is how the compiler's code of it differs.
    pub fn new(
        case: &Case<'_>,
        pair: Pair<'_>,
        comparisons: &[Comparison],
        code: Option<String>,
    ) -> Explanation {
        let kernel = &pair.current.name;
        let mut causes = causes(comparisons);
        let hotspots = hotspots(case, pair, comparisons);
        let counters = causes.iter().map(|cause| (cause.is_named(), cause.words()));
        let (named, also): (Vec<_>, Vec<_>) = counters
            .chain(hotspots.as_ref().and_then(KernelHotspots::short))
            .chain(code.clone().map(|text| (false, text)))
            .partition(|(is_named, _)| *is_named);
        let words = |all: Vec<(bool, String)>| all.into_iter().map(|(_, text)| text).collect();
        causes.extend(code.map(Cause::of_code));
        let (duration, percentages) = slower(comparisons).unzip();
        let percentages = percentages.unwrap_or_default();
        let any = !causes.is_empty() || !percentages.is_empty();
        Explanation {
            causes: any.then(|| KernelCauses {
                kernel: kernel.clone(),
                duration,
                percentages,
                causes,
            }),
            hotspots,
            named: words(named),
            also: words(also),
        }
    }
}

impl Cause {
    /// Other machine code.
    pub(crate) fn of_code(text: String) -> Cause {
        Cause {
            kind: CauseKind::OtherCode,
            text,
            share: None,
        }
    }
}

/// Where the time moved, where both sides were sampled.
fn hotspots(case: &Case<'_>, pair: Pair<'_>, comparisons: &[Comparison]) -> Option<KernelHotspots> {
    let duration = comparisons.iter().find(|one| one.is_duration());
    let value = |of: fn(&Comparison) -> Option<Summary>| Some(of(duration?)?.value);
    let (was, is) = (value(|one| one.reference), value(|one| one.current));
    let reference = Sampled::of(case.reference, pair.reference, was)?;
    let current = Sampled::of(case.current, pair.current, is)?;
    Some(moved(&pair.current.name, &reference, &current))
}
