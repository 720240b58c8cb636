//! The differences of two profiles.

use super::merge::same_captures;
use crate::process::shell_line;
use crate::profile::{Profile, ProfileOrigin};
use crate::terms::{Phase, Tier, joined_or};

/// What a profile states of the measurement: its name, and the value in each of two profiles; `None` or
/// empty where it is not known.
type Stated = (&'static str, [Option<String>; 2]);

/// What differs, in words.
fn said((name, values): Stated) -> String {
    let [was, is] = values.map(|value| value.unwrap_or_else(|| "unknown".to_owned()));
    format!("{name} was {was}, is {is}")
}

/// Conditions in which two measured profiles differ. Metrics are compared one by one elsewhere.
pub fn measured(reference: &Profile, current: &Profile) -> Vec<String> {
    conditions(reference, current).map(said).collect()
}

/// Of these, the ones that both profiles state.
pub fn measured_where_known(reference: &Profile, current: &Profile) -> Vec<String> {
    let is_known = |value: &Option<String>| value.as_ref().is_some_and(|it| !it.is_empty());
    conditions(reference, current)
        .filter(|(_, values)| values.iter().all(is_known))
        .map(said)
        .collect()
}

fn conditions(reference: &Profile, current: &Profile) -> impl Iterator<Item = Stated> {
    let both = [&reference.identity, &current.identity];
    let capabilities = both.map(|it| Some(it.compute_capability.clone()));
    let whose_times = |profile: &Profile| match profile.provenance.as_it_runs {
        true => "that of the program as it runs".to_owned(),
        false => "that under the profiler".to_owned(),
    };
    let of_profile = [
        ("the GPU", both.map(|it| Some(it.gpu.clone()))),
        ("the compute capability", capabilities),
        (
            "the duration",
            [reference, current].map(|it| Some(whose_times(it))),
        ),
        (
            "the workload",
            both.map(|it| Some(shell_line(&it.workload))),
        ),
        (
            "the tier of measurement",
            both.map(|it| Some(it.tier.to_string())),
        ),
    ];
    // Below the counters nothing sets the conditions.
    let by_ncu = both.iter().all(|it| it.tier == Tier::Counters);
    let [was, is] = both.map(|it| it.conditions.named());
    let of_ncu = was.into_iter().zip(is).filter(move |_| by_ncu);
    // Two unknown conditions are not known to be the same.
    let differing = of_ncu.filter(|((_, was), (_, is))| was.is_none() || was != is);
    let differing = differing
        .map(|((name, was), (_, is))| (name, [was, is].map(|value| value.map(str::to_owned))));
    let of_profile = of_profile.into_iter().filter(|(_, [was, is])| was != is);
    of_profile.chain(differing)
}

/// Why a base and a current profile were not measured side by side.
pub fn side_by_side(base: &Profile, current: &Profile) -> Vec<String> {
    let mut differences = Vec::new();
    let (was, is) = (base.gpu_uuids(), current.gpu_uuids());
    if was != is || was.len() != 1 {
        let [was, is] = [was, is].map(|uuids| joined_or("an unnamed GPU", uuids, " and "));
        differences.push(format!("the base was measured on {was}, current on {is}"));
    }
    let processes = |profile: &Profile| profile.machines(Phase::Timing).len();
    let (was, is) = (processes(base), processes(current));
    if was != is {
        differences.push(format!(
            "the base was measured in {was} processes, current in {is}"
        ));
    }
    if same_captures(base, current) {
        differences.push("base and current name the same captures".to_owned());
    }
    if base.provenance.origin != ProfileOrigin::Measured {
        differences.push("the base was imported".to_owned());
    }
    if !base.provenance.overrides.is_empty() {
        let overrides = base.provenance.overrides.join(" ");
        differences.push(format!("the base was measured with --define {overrides}"));
    }
    differences
}

/// Why the code of two static profiles was not compiled alike.
pub fn compiled(reference: &Profile, current: &Profile) -> Vec<String> {
    let both = [&reference.identity, &current.identity];
    [
        ("the target", both.map(|it| Some(it.gpu.clone()))),
        ("the compiler", both.map(|it| it.compiler.clone())),
        (
            "the tier of measurement",
            both.map(|it| Some(it.tier.to_string())),
        ),
    ]
    .into_iter()
    .filter(|(_, [was, is])| was != is)
    .map(said)
    .collect()
}

/// Files that only the current profile was made from. A profile that lists no file is not known
/// to lack one.
pub fn added_sources(reference: &Profile, current: &Profile) -> Vec<String> {
    let listed = &reference.provenance.sources;
    let added = current.provenance.sources.keys();
    added
        .filter(|path| !listed.is_empty() && !listed.contains_key(*path))
        .map(|path| format!("`{path}`"))
        .collect()
}
