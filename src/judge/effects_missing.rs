//! Changes of the target branch whose effect is not recorded.

use crate::baseline::{CodeHash, EffectEntry, gaps};
use crate::config::Variant;
use crate::finding::{Code, Finding};

/// The most places that a finding names.
const SHOWN: usize = 3;

/// The finding on changes without a recorded effect, where effects are recorded of the variant: between
/// two recorded checks, or since the last one, whose code the base no longer has.
pub(super) fn effects_missing(
    variant: &Variant,
    effects: &[EffectEntry],
    base: Option<&CodeHash>,
) -> Option<Finding> {
    let last = effects.last()?;
    let name = |entry: &EffectEntry| entry.commit.as_deref().unwrap_or(&entry.time).to_owned();
    let mut missing: Vec<String> = gaps(effects)
        .into_iter()
        .map(|at| {
            format!(
                "between {} and {}",
                name(&effects[at - 1]),
                name(&effects[at])
            )
        })
        .collect();
    if base.is_some_and(|base| !base.is_same(&last.after)) {
        missing.push(format!("since {}", name(last)));
    }
    if missing.len() > SHOWN {
        missing = vec![format!("{} times", missing.len())];
    }
    (!missing.is_empty()).then(|| {
        Finding::deny(
            Code::EffectsMissing,
            &variant.id,
            format!(
                "its code changed {} without a recorded effect, so a creep may be larger than the effects show",
                missing.join(", and ")
            ),
            "record the outcome of each check on the target branch: sparsek-gate baseline --record outcome.json",
        )
    })
}
