//! Whether a profile is a complete measurement.

use crate::binary::StaticRule;
use crate::config::{KernelFilter, Metric, StatedBy, Variant};
use crate::finding::{Code, Finding, WarnReason};
use crate::metric::{Level, Role, measures};
use crate::profile::{KernelProfile, Profile, ProfileOrigin, Series};
use crate::terms::{Phase, Tier, counted, joined_or, nearest};
use crate::verdict::LOOKS;
use ncu_report::base_name;

/// What to do where a process launches less often than was asked for.
const FEWER_LAUNCHES: &str = "make the program launch more often, or lower `launches` and `processes` (`compare`: --launches); a recording is recorded again";

/// What to do where ranges or whole graphs were asked for, and those of other kernels were measured.
const LAUNCHES_OF_RANGES: &str =
    "raise `launches`: ranges and whole graphs are counted over all kernels together";

/// Processes of a side before the first look.
const FEWEST_ON_A_SIDE: u32 = 2 * LOOKS[0].0 as u32;

/// Launches, kernels and values that are missing in a profile. A baseline is locked from, and a
/// gate passes on, complete measurements only.
pub fn incomplete(variant: &Variant, profile: &Profile) -> Vec<Finding> {
    missing_parts(variant, profile, variant.profile.processes)
}

/// The same for one side of a comparison side by side: two processes a round.
pub fn incomplete_side(variant: &Variant, profile: &Profile) -> Vec<Finding> {
    missing_parts(variant, profile, FEWEST_ON_A_SIDE)
}

/// The launches and processes that one side of a comparison side by side lacks.
pub(crate) fn missing_launches_side(variant: &Variant, profile: &Profile) -> Vec<Finding> {
    too_few_launches(variant, profile, FEWEST_ON_A_SIDE)
}

fn too_few_launches(variant: &Variant, profile: &Profile, processes: u32) -> Vec<Finding> {
    let mut findings = Vec::new();
    for phase in [Phase::Timing, Phase::Counting] {
        if profile.measures(phase)
            && let Some(gap) = missing_launches(variant, profile, phase, processes)
        {
            let (code, next) = (Code::NotMeasured, FEWER_LAUNCHES);
            findings.push(Finding::deny(code, &variant.id, gap, next));
        }
    }
    findings
}

fn missing_parts(variant: &Variant, profile: &Profile, processes: u32) -> Vec<Finding> {
    let mut findings = too_few_launches(variant, profile, processes);
    let filter = variant.kernel_filter();
    let names: Vec<String> = profile.kernels.iter().map(|one| one.name.clone()).collect();
    // Such as of a recording from before the configuration had this filter.
    if !names.is_empty() && !names.iter().any(|name| filter.matches(name)) {
        let message = selects_none(variant, "the measured kernels", &names);
        findings.push(Finding::of(Code::KernelMissing, &variant.id, message));
    }
    findings.extend(missing_kernels(variant, profile));
    // What varies is judged through the sum of all.
    let as_it_runs = profile.provenance.as_it_runs;
    let kernels = profile.kernels.iter();
    let is_program = variant.stated_by != StatedBy::Configuration;
    for kernel in kernels.filter(|kernel| !as_it_runs || !profile.varies(kernel)) {
        let uncounted = is_program && profile.launches_of(kernel, Phase::Counting) == 0;
        for metric in variant
            .metrics
            .iter()
            .filter(|metric| metric.level != Level::Record)
            .filter(|metric| !uncounted || metric.phase == Phase::Timing)
            .filter(|metric| !tier_gap_accepted(variant, metric, profile))
        {
            if let Some(why) = why_not_measured(metric, profile, kernel) {
                let definition = profile.identity.metrics.get(&metric.alias);
                let code = match definition {
                    Some(it) if it.counter != metric.counter => Code::NotComparable,
                    _ => Code::NotMeasured,
                };
                let message = format!("`{}` of {} has no value: {why}", metric.alias, kernel.name);
                let next = next_of_missing(variant, metric, profile, kernel);
                let finding = Finding::deny(code, &variant.id, message, next);
                let finding = finding.kernel(&kernel.name).metric(&metric.alias);
                let finding = finding.launched(kernel.grid, kernel.block, true);
                findings.push(finding.warn_for(metric.level.warn_reason()));
            }
        }
    }
    findings
}

/// What to do where a metric has no value. A phase that has no launch of a kernel ends before it where
/// launches are counted over all kernels together.
fn next_of_missing(
    variant: &Variant,
    metric: &Metric,
    profile: &Profile,
    kernel: &KernelProfile,
) -> &'static str {
    let series = kernel.metrics.get(&metric.alias);
    let some_process_has_none =
        series.is_some_and(|series| series.samples.iter().any(Vec::is_empty));
    let is_imported = profile.provenance.origin == ProfileOrigin::Imported;
    // ncu writes the unit of each counter that it was asked for.
    let definition = profile.identity.metrics.get(&metric.alias);
    let is_stated = definition.is_some_and(|it| it.unit.is_some());
    let is_wrong = series.is_some_and(|it| is_stated || values(it).next().is_some());
    match (is_imported, some_process_has_none) {
        (true, false) if is_wrong => {
            "import the report itself, or its page as ncu printed it: the file was edited, converted or damaged"
        }
        (true, true) => {
            "import files that all have a launch of it, or state in `kernels` what they have in common"
        }
        (true, false) => {
            "let ncu collect its counter (`--metrics`), or state the metrics of the gate: one `[metric.NAME]` replaces all built-in ones"
        }
        (false, true) if !variant.profile.counts_each_kernel() => LAUNCHES_OF_RANGES,
        (false, _) => "profile again, or remove the metric from the gate",
    }
}

/// The expected kernels that a profile lacks.
fn missing_kernels(variant: &Variant, profile: &Profile) -> Vec<Finding> {
    let kernels = profile.kernels.iter();
    let names: Vec<&str> = kernels.map(|kernel| kernel.name.as_str()).collect();
    let expected = variant.expect.iter();
    let unseen = expected.filter(|expected| !names.contains(&expected.as_str()));
    let missing = unseen.map(|expected| {
        let names = joined_or("none", &names, ", ");
        let message = match profile.identity.tier {
            Tier::Static => format!(
                "the compiler did not produce the expected kernel `{expected}`; compiled kernels: {names}"
            ),
            _ => format!(
                "the expected kernel `{expected}` was not measured; measured kernels: {names}"
            ),
        };
        Finding::of(Code::KernelMissing, &variant.id, message).kernel(expected)
    });
    missing.collect()
}

/// Whether the profile's tier cannot measure a metric, and the configuration accepts that tier.
pub(crate) fn tier_gap_accepted(variant: &Variant, metric: &Metric, profile: &Profile) -> bool {
    let tier = profile.identity.tier;
    let accepted = variant.accepts(tier);
    accepted && !measures(tier, &metric.counter, metric.phase)
}

/// Why a metric of a profile has no value to judge; `None` where it has one. No counter of the
/// hardware counts below zero.
pub(crate) fn why_not_measured(
    metric: &Metric,
    profile: &Profile,
    kernel: &KernelProfile,
) -> Option<String> {
    let tier = profile.identity.tier;
    if !measures(tier, &metric.counter, metric.phase) {
        return Some(format!("`{}` cannot be measured by {tier}", metric.counter));
    }
    let Some(definition) = profile.identity.metrics.get(&metric.alias) else {
        return Some("the profile lacks this metric".to_owned());
    };
    if definition.counter != metric.counter {
        return Some(format!(
            "the profile measured `{}` under this name, not `{}`",
            definition.counter, metric.counter
        ));
    }
    if definition.phase != metric.phase && !profile.provenance.as_it_runs {
        return Some(format!(
            "it was measured in the {} phase, not in the {} phase",
            definition.phase, metric.phase
        ));
    }
    let Some(series) = kernel.metrics.get(&metric.alias) else {
        return Some("the kernel lacks this metric in the profile".to_owned());
    };
    let (sampled, named) = (
        series.samples.len(),
        profile.machines(definition.phase).len(),
    );
    if named > 0 && sampled != named {
        return Some(format!(
            "it has samples of {sampled} processes, but the profile names {named} captures"
        ));
    }
    if series.samples.iter().any(Vec::is_empty) {
        return Some("the kernel was launched in only some of the processes".to_owned());
    }
    let launches = series.launch_count();
    let present = values(series).count();
    if present < launches || launches == 0 {
        return Some(format!(
            "`{}` has a valid value in {present} of {launches} launches",
            metric.counter
        ));
    }
    wrong(metric, profile, series).or_else(|| {
        let of_others = profile.launches_of(kernel, definition.phase);
        (launches < of_others)
            .then(|| format!("it has {launches} launches, but other metrics have {of_others}"))
    })
}

/// The values that launches have.
fn values(series: &Series) -> impl Iterator<Item = &f64> {
    series.samples.iter().flatten().flatten()
}

/// Why the values of a metric cannot be those of its counter: none counts below zero, and a duration is
/// a time.
fn wrong(metric: &Metric, profile: &Profile, series: &Series) -> Option<String> {
    let (counter, is_time) = (&metric.counter, metric.role() == Some(Role::Duration));
    let is_wrong = |value: f64| !(value.is_finite() && (value > 0.0 || value == 0.0 && !is_time));
    for (launches, process) in series.samples.iter().zip(1..) {
        let mut launches = launches.iter().zip(1..);
        let found = launches.find(|(sample, _)| sample.is_some_and(is_wrong));
        if let Some((Some(value), launch)) = found {
            return Some(format!(
                "`{counter}` is {value} in launch {launch} of process {process}"
            ));
        }
    }
    match profile.identity.metrics.get(&metric.alias)?.unit.as_deref() {
        None => Some(format!("the unit of `{counter}` is not known")),
        Some(unit) if is_time && !["ns", "us", "ms", "s"].contains(&unit) => Some(format!(
            "the unit of `{counter}` is `{unit}`, which is no time"
        )),
        Some(_) => None,
    }
}

/// That a variant's filter selects none of these kernels.
pub fn selects_none(variant: &Variant, of: &str, names: &[String]) -> String {
    // Without a filter every kernel is selected.
    let filter = variant.kernels.as_deref().unwrap_or_default();
    let is_pattern = filter.contains(['*', '|', '^']) && !filter.starts_with("regex:");
    let meant = match filter.contains('^') {
        true => format!("regex:{filter}"),
        false => format!("regex:^({})$", filter.replace(".*", "*").replace('*', ".*")),
    };
    let matches = |filter: &KernelFilter| names.iter().any(|it| filter.matches(&base_name(it)));
    let why = match KernelFilter::of(Some(&meant)) {
        Ok(pattern) if is_pattern && matches(&pattern) => {
            &format!(" (it is one name: the pattern is `{meant}`)")
        }
        _ if is_pattern => " (it is one name: a pattern begins with `regex:`)",
        _ => "",
    };
    let bare = filter.strip_prefix("regex:").unwrap_or(filter).trim();
    let near = nearest(bare, names).filter(|_| why.is_empty());
    let near = near.map_or_else(String::new, |near| format!(", did you mean `{near}`?"));
    let names = names.join(", ");
    format!("`kernels = \"{filter}\"` selects none of {of}{why}: {names}{near}")
}

/// The next step after the import of a profile that does not say how ncu measured.
pub fn import_again(profile: &Profile) -> Option<String> {
    let conditions = profile.identity.conditions.named().into_iter();
    let unknown = conditions.filter(|(_, value)| value.is_none());
    let options = unknown.map(|(name, _)| format!(" --{}", name.replace(' ', "-")));
    let options: String = options.collect();
    let is_unknown = profile.identity.tier == Tier::Counters && !options.is_empty();
    is_unknown.then(|| format!("import it again, with{options} (`import --help` has their values)"))
}

/// The warning that an imported profile does not say how ncu measured.
pub fn conditions_unknown(profile: &Profile) -> Option<Finding> {
    let message = "it does not say how ncu measured, so that no check could compare with it";
    let next = import_again(profile)?;
    let finding = Finding::deny(Code::NotMeasured, &profile.variant, message, next);
    Some(finding.warn_for(WarnReason::ImportAllowed))
}

/// The warning that an imported profile has fewer processes or launches than the configuration asks
/// for. A check shows it only later, and only where the values are apart.
pub fn fewer_imported(variant: &Variant, profile: &Profile) -> Option<Finding> {
    let imported = profile.provenance.origin == ProfileOrigin::Imported;
    let has_times = imported && profile.measures(Phase::Timing);
    let processes = variant.profile.processes;
    let asked = has_times.then(|| fewer_launches(variant, profile, Phase::Timing, processes));
    let message = format!("{}: too few values may make a check inconclusive", asked??);
    let next = "import one file of each process (`profile.processes`), each with as many launches as `profile.launches`; with fewer than two a check is always inconclusive";
    let finding = Finding::deny(Code::NotMeasured, &variant.id, message, next);
    Some(finding.warn_for(WarnReason::ImportAllowed))
}

/// Which number of a phase is below the requested one. What was requested of an imported profile is
/// not known, so its own numbers count.
fn missing_launches(
    variant: &Variant,
    profile: &Profile,
    phase: Phase,
    processes: u32,
) -> Option<String> {
    let found = profile.launch_count(phase);
    if profile.provenance.origin == ProfileOrigin::Imported {
        let asked = profile.provenance.launches as usize * profile.provenance.processes as usize;
        return (found < asked.max(1)).then(|| {
            format!(
                "{found} launches were measured in the {phase} phase, but {asked} were requested"
            )
        });
    }
    fewer_launches(variant, profile, phase, processes)
}

/// Which number of a phase is below the requested one: processes of a machine, or launches of a
/// process.
fn fewer_launches(
    variant: &Variant,
    profile: &Profile,
    phase: Phase,
    processes: u32,
) -> Option<String> {
    let machines = profile.machines(phase);
    let asked = match phase {
        Phase::Timing => processes as usize,
        Phase::Counting => 1,
    };
    let fewest = machines
        .iter()
        .map(|uuid| machines.iter().filter(|other| *other == uuid).count())
        .min()
        .unwrap_or(0);
    if fewest < asked {
        return Some(format!(
            "{} measured in the {phase} phase, but {asked} were requested",
            counted(fewest, "process was", "processes were")
        ));
    }
    // Without `{launches}` the program itself decides how often it launches.
    if profile.provenance.as_it_runs && variant.steps().is_none() {
        return None;
    }
    let asked = variant.launches(phase) as usize;
    if variant.profile.counts_each_kernel() {
        return missing_launches_of_a_kernel(profile, phase, machines.len(), asked);
    }
    let in_process = |index: usize| -> usize {
        let kernels = profile.kernels.iter();
        let launches = kernels.map(|kernel| profile.launches_in(kernel, phase, index));
        launches.sum()
    };
    let (index, found) = (0..machines.len())
        .map(|index| (index, in_process(index)))
        .find(|(_, found)| *found < asked)?;
    Some(format!(
        "{found} launches were measured in process {} of the {phase} phase, but {asked} were requested",
        index + 1
    ))
}

/// The same where each kernel is counted by itself: one of them must have as many launches as were
/// requested, and each as many in every process, or as many as were requested. A kernel that the
/// program launches less often has no more.
fn missing_launches_of_a_kernel(
    profile: &Profile,
    phase: Phase,
    processes: usize,
    asked: usize,
) -> Option<String> {
    let mut most_of_all = 0;
    for kernel in &profile.kernels {
        let launches = |index: usize| profile.launches_in(kernel, phase, index).min(asked);
        let most = (0..processes).map(launches).max().unwrap_or(0);
        most_of_all = most_of_all.max(most);
        if let Some(index) = (0..processes).find(|index| launches(*index) < most) {
            return Some(format!(
                "{} launches of {} were measured in process {} of the {phase} phase, but {most} in another",
                launches(index),
                kernel.name,
                index + 1
            ));
        }
    }
    (most_of_all < asked).then(|| {
        format!(
            "at most {most_of_all} launches of a kernel were measured in a process of the {phase} phase, but {asked} of each kernel were requested"
        )
    })
}

/// Kernels and values that are missing in a static profile.
pub fn incomplete_compiled(variant: &Variant, profile: &Profile) -> Vec<Finding> {
    let mut findings = match profile.kernels.is_empty() {
        true => vec![none_selected(variant, profile)],
        false => missing_kernels(variant, profile),
    };
    for kernel in &profile.kernels {
        for metric in &variant.static_metrics {
            let is_limited = metric.min.is_some() || metric.max.is_some();
            let is_needed = metric.level != Level::Record
                && (metric.rule != StaticRule::WhereKnown || is_limited);
            if is_needed && static_value(kernel, &metric.alias).is_none() {
                let finding = not_known(variant, metric, profile.label(kernel));
                findings.push(finding);
            }
        }
    }
    findings
}

/// That the static gate has no kernel to judge.
fn none_selected(variant: &Variant, profile: &Profile) -> Finding {
    let (code, names) = (Code::KernelMissing, &profile.provenance.unselected);
    if names.is_empty() {
        let message = "the compiled program has no kernel";
        let next = "name a source that defines a `__global__` function; a template that nothing instantiates is none";
        return Finding::deny(code, &variant.id, message, next);
    }
    let message = selects_none(variant, "the compiled kernels", names);
    Finding::of(code, &variant.id, message)
}

fn not_known(variant: &Variant, metric: &Metric, kernel: &str) -> Finding {
    let next = if metric.alias.starts_with("occupancy") {
        "state `threads_per_block` of the variant, and its `dynamic_shared_bytes`; or measure it and lock the profile, which has its launch"
    } else if metric.alias == "threads_per_block" {
        "state `threads_per_block` of the variant"
    } else if metric.alias == "max_threads_per_block" {
        "give the kernel `__launch_bounds__`"
    } else {
        "`sparsek-gate doctor` says which nvdisasm is found, if any: put one that reads this code (of Volta: CUDA 13.0 or older) on the PATH or beside nvcc, and build again: it comes with the CUDA toolkit, and with `pip install nvidia-cuda-nvdisasm`; or take the metric out of the gate"
    };
    let message = format!("`{}` of {kernel} is not known", metric.alias);
    let finding = Finding::deny(Code::NotMeasured, &variant.id, message, next);
    let finding = finding.kernel(kernel).metric(&metric.alias);
    finding.warn_for(metric.level.warn_reason())
}

/// A static metric of a kernel; `None` where it is not known.
pub(crate) fn static_value(kernel: &KernelProfile, name: &str) -> Option<f64> {
    let value = kernel.metrics.get(name)?.value?;
    (value.is_finite() && value >= 0.0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::{recorded, with_another};

    /// Two kernels that have 20 launches in each process, but for one process of the second.
    fn two_kernels(in_process: usize, launches: usize) -> Profile {
        let mut profile = with_another(recorded());
        for series in profile.kernels[1].metrics.values_mut() {
            if let Some(process) = series.samples.get_mut(in_process) {
                process.truncate(launches);
            }
        }
        profile
    }

    #[test]
    fn where_each_kernel_is_counted_by_itself_none_has_less_in_one_process_than_in_another() {
        let processes = two_kernels(0, 20).machines(Phase::Timing).len();
        let gap = |profile: &Profile, asked: usize| {
            missing_launches_of_a_kernel(profile, Phase::Timing, processes, asked)
        };
        assert_eq!(gap(&two_kernels(1, 20), 20), None);
        assert_eq!(
            gap(&two_kernels(1, 19), 20).unwrap(),
            "19 launches of another were measured in process 2 of the timing phase, but 20 in another"
        );
        // More than was asked for is no difference, and less of all is.
        assert_eq!(gap(&two_kernels(1, 19), 19), None);
        let message = gap(&two_kernels(1, 20), 21).unwrap();
        assert!(message.starts_with("at most 20 launches of a kernel"));
        // A kernel that every process launches once.
        let mut once = two_kernels(0, 20);
        for series in once.kernels[1].metrics.values_mut() {
            let processes = series.samples.iter_mut();
            processes.for_each(|process| process.truncate(1));
        }
        assert_eq!(gap(&once, 20), None);
    }
}
