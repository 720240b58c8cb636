//! What is implausible: values that no counter can have, improvements that are too large, and
//! captures of a GPU that was disturbed.

use std::collections::{BTreeMap, BTreeSet};

use super::clock::{CLOCK_PERCENT, SameClock};
use super::sick::faulty;
use crate::device::{ComputeProcess, Slowdown, State};
use crate::finding::{Code, Finding, WarnReason};
use crate::metric::{bounds, display_value, is_time};
use crate::terms::{VariantId, joined};

/// Fewest working readings from which the highest clock of a capture counts: the first may catch
/// the clock while it rises.
const FEWEST_CLOCK_READINGS: u32 = 3;

/// A duration that falls by more than this, in percent, is reviewed.
const LARGEST_GAIN_PERCENT: f64 = 50.0;

/// What was measured: one metric of one kernel of one variant.
#[derive(Clone, Copy, Debug)]
pub struct Measurand<'a> {
    /// The variant.
    pub variant: &'a VariantId,
    /// The kernel's name.
    pub kernel: &'a str,
    /// The metric's alias.
    pub alias: &'a str,
    /// The counter behind it.
    pub counter: &'a str,
    /// The unit of its values.
    pub unit: Option<&'a str>,
}

/// What captures are for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Purpose {
    /// A verdict: what differs between captures is no property of the kernel. Between launches that ran
    /// at the same clock on both sides, what lowered it in some captures is noise, which widens the
    /// band.
    Verdict(Option<SameClock>),
    /// A baseline. What differs between its processes is in the spread that is locked, and widens
    /// every band by it.
    Baseline,
}

impl Purpose {
    /// What the launches themselves show about a clock that changed between captures.
    fn counted(self) -> String {
        match self {
            Purpose::Verdict(None) | Purpose::Baseline => String::new(),
            Purpose::Verdict(Some(clock)) => format!(
                "; the measured launches of both sides ran at the same clock, {:.3} % apart (at most {:.3} %)",
                clock.apart_percent, clock.most_percent
            ),
        }
    }

    /// The finding that settings changed the clock between captures.
    fn finding(self, variant: &VariantId, message: String) -> Finding {
        let finding = Finding::of(Code::ClockChanged, variant, message);
        let excuse = match self {
            Purpose::Verdict(None) => return finding,
            Purpose::Verdict(Some(_)) => WarnReason::SameClock,
            Purpose::Baseline => WarnReason::InLockedSpread,
        };
        let next = format!(
            "nothing, if this noise is usual; for less of it: {}",
            finding.next
        );
        Finding { next, ..finding }.warn_for(excuse)
    }
}

/// A metric with values that its counter cannot have: outside of [`bounds`]; not finite; below zero, as no
/// counter counts below zero; or a kernel that took no time.
pub fn implausible(of: &Measurand<'_>, values: &[f64]) -> Option<Finding> {
    let is_time = is_time(of.counter);
    let (least, most) = bounds(of.counter).unwrap_or((0.0, f64::MAX));
    let is_plausible = |value: f64| value >= least && value <= most && !(is_time && value == 0.0);
    let odd: Vec<f64> = values
        .iter()
        .copied()
        .filter(|value| !is_plausible(*value))
        .collect();
    // The one to show is the farthest out.
    let outside = |value: &f64| (least - value).max(value - most);
    let worst = *odd
        .iter()
        .max_by(|one, other| outside(one).total_cmp(&outside(other)))?;
    let show = |value| display_value(value, of.unit);
    let range = if is_time && worst == 0.0 {
        "a kernel that ran took some time".to_owned()
    } else if most == f64::MAX {
        format!("nothing can be below {}", show(least))
    } else {
        format!("it can be {} to {}", show(least), show(most))
    };
    let message = format!(
        "`{}` of {} is {} in {} of {} launches, which `{}` cannot be: {range}",
        of.alias,
        of.kernel,
        show(worst),
        odd.len(),
        values.len(),
        of.counter
    );
    let finding = Finding::of(Code::Implausible, of.variant, message);
    Some(finding.kernel(of.kernel).metric(of.alias))
}

/// A duration that fell by too much to pass without review, or by an amount that is not a number.
pub fn too_good(of: &Measurand<'_>, reference: f64, current: f64) -> Option<Finding> {
    let gain = reference - current;
    let gain_percent = gain / reference * 100.0;
    // Nothing gained is not too good, of nothing either.
    if gain <= 0.0 || gain_percent <= LARGEST_GAIN_PERCENT {
        return None;
    }
    let message = format!(
        "`{}` of {} fell by {gain_percent:.1} % ({} → {}), more than the {LARGEST_GAIN_PERCENT} % that pass without review",
        of.alias,
        of.kernel,
        display_value(reference, of.unit),
        display_value(current, of.unit)
    );
    let finding = Finding::of(Code::Implausible, of.variant, message);
    Some(finding.kernel(of.kernel).metric(of.alias))
}

/// What the state of the GPU shows against the captures of a variant: other processes on it, a
/// clock that was lowered, captures at different clocks. All sides of a comparison are judged
/// together.
pub fn device_findings(
    variant: &VariantId,
    sides: &[(&str, Vec<&State>)],
    purpose: Purpose,
) -> Vec<Finding> {
    let mut captures: Vec<Capture<'_>> = Vec::new();
    for (side, states) in sides {
        let numbered = (1..).zip(states);
        captures.extend(numbered.map(|(number, state)| (format!("{side} {number}"), *state)));
    }
    let mut findings = Vec::new();
    findings.extend(faulty(variant, &captures));
    findings.extend(shared(variant, &captures));
    findings.extend(slowed(variant, &captures, purpose));
    findings.extend(other_clock(variant, &captures, purpose));
    findings
}

/// The name of a capture, `base 1`, and what the GPU reported during it.
type Capture<'a> = (String, &'a State);

fn shared(variant: &VariantId, captures: &[Capture<'_>]) -> Option<Finding> {
    let disturbed: Vec<&Capture<'_>> = captures
        .iter()
        .filter(|(_, state)| !state.other_processes.is_empty())
        .collect();
    // The memory of a process may differ between captures; the largest is shown.
    let mut others: BTreeMap<u32, &ComputeProcess> = BTreeMap::new();
    for process in disturbed
        .iter()
        .flat_map(|(_, state)| &state.other_processes)
    {
        let known = others.entry(process.pid).or_insert(process);
        if process.memory_bytes > known.memory_bytes {
            *known = process;
        }
    }
    let others: Vec<String> = others.into_values().map(described).collect();
    (!others.is_empty()).then(|| {
        let (during, others) = (listed(&disturbed), others.join(", "));
        let message = format!("another process was on the GPU during {during}: {others}");
        Finding::of(Code::GpuShared, variant, message)
    })
}

fn described(process: &ComputeProcess) -> String {
    let name = process.name.as_deref().unwrap_or("name not known");
    let memory = process.memory_bytes.map_or_else(String::new, |bytes| {
        format!(", {}", display_value(bytes as f64, Some("byte")))
    });
    format!("process {} ({name}{memory})", process.pid)
}

fn slowed(variant: &VariantId, captures: &[Capture<'_>], purpose: Purpose) -> Vec<Finding> {
    let mut findings = Vec::new();
    let seen: BTreeSet<Slowdown> = captures
        .iter()
        .flat_map(|(_, state)| state.slowdowns())
        .collect();
    let by = |reason: Slowdown| -> Vec<&Capture<'_>> {
        captures
            .iter()
            .filter(|(_, state)| state.slowdowns().contains(&reason))
            .collect()
    };
    let faults: Vec<String> = seen
        .iter()
        .filter(|reason| reason.is_fault())
        .map(|reason| format!("{} in {}", reason.as_str(), listed(&by(*reason))))
        .collect();
    if !faults.is_empty() {
        let message = format!(
            "the GPU lowered its clock because of heat or its power supply: {}",
            faults.join(", ")
        );
        findings.push(Finding::of(Code::ClockChanged, variant, message));
    }
    for reason in seen.into_iter().filter(|reason| !reason.is_fault()) {
        let slowed = by(reason);
        let what = match reason {
            Slowdown::SyncBoost => {
                "another GPU of its sync-boost group, from which it can be removed, lowered the GPU's clock"
            }
            _ => "the GPU lowered its clock to keep its power limit",
        };
        let reason = reason.as_str();
        findings.push(if slowed.len() < captures.len() {
            let (slowed, counted) = (listed(&slowed), purpose.counted());
            let message =
                format!("{what} in some captures and not in others ({reason}): {slowed}{counted}");
            purpose.finding(variant, message)
        } else {
            let message = format!("{what} in every capture ({reason})");
            Finding::of(Code::ClockChanged, variant, message).warn_for(WarnReason::AllCapturesAlike)
        });
    }
    findings
}

fn other_clock(variant: &VariantId, captures: &[Capture<'_>], purpose: Purpose) -> Option<Finding> {
    let clocks: Vec<(u32, &Capture<'_>)> = captures
        .iter()
        .filter(|(_, state)| state.working_readings >= FEWEST_CLOCK_READINGS)
        .filter_map(|capture| Some((capture.1.sm_clock_mhz?.max, capture)))
        .collect();
    let (low, slow) = clocks.iter().min_by_key(|(mhz, _)| *mhz)?;
    let (high, fast) = clocks.iter().max_by_key(|(mhz, _)| *mhz)?;
    let percent = f64::from(high - low) / f64::from(*high) * 100.0;
    // Zeros alone are no clock, and no difference.
    if *high == 0 || percent <= CLOCK_PERCENT {
        return None;
    }
    let message = format!(
        "the GPU did not reach the same clock in all captures: {low} MHz in {}, {high} MHz in {}, {percent:.1} % apart{}",
        listed(&[slow]),
        listed(&[fast]),
        purpose.counted()
    );
    // The limit of the power then sets the clock, which is another at each reading.
    let is_capped = |(_, state): &Capture<'_>| state.slowdowns().contains(&Slowdown::SwPowerCap);
    if captures.iter().all(is_capped) {
        let finding = Finding::of(Code::ClockChanged, variant, message);
        return Some(finding.warn_for(WarnReason::AllCapturesAlike));
    }
    Some(purpose.finding(variant, message))
}

/// `base 1, base 2, current 1`.
fn listed(captures: &[&Capture<'_>]) -> String {
    joined(captures.iter().map(|(name, _)| name), ", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Span;
    use crate::finding::{ExitCode, Severity};

    const MAX: &str = "sm__cycles_active.max.pct_of_peak_sustained_elapsed";
    const AVG: &str = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed";
    const TIME: &str = "gpu__time_duration.sum";

    fn variant() -> VariantId {
        VariantId {
            suite: "s".into(),
            variant: "v".into(),
        }
    }

    fn with<T>(counter: &str, what: impl Fn(&Measurand<'_>) -> T) -> T {
        what(&Measurand {
            variant: &variant(),
            kernel: "k",
            alias: "m",
            counter,
            unit: Some(if counter == TIME { "ns" } else { "%" }),
        })
    }

    fn judged(counter: &str, values: &[f64]) -> Option<Finding> {
        with(counter, |of| implausible(of, values))
    }

    fn fell(reference: f64, current: f64) -> Option<Finding> {
        with(TIME, |of| too_good(of, reference, current))
    }

    fn at(max_mhz: u32) -> State {
        State {
            readings: 40,
            working_readings: 30,
            sm_clock_mhz: Some(Span {
                min: 345,
                max: max_mhz,
            }),
            ..State::default()
        }
    }

    fn slowed_by(reason: Slowdown) -> State {
        State {
            slowdown_readings: [(reason, 9)].into(),
            ..at(1980)
        }
    }

    /// Findings of a comparison.
    fn compared(base: &[State], current: &[State]) -> Vec<Finding> {
        let sides = [("base", base), ("current", current)];
        let sides = sides.map(|(side, states)| (side, states.iter().collect()));
        device_findings(&variant(), &sides, Purpose::Verdict(None))
    }

    fn kinds(findings: &[Finding]) -> Vec<(Code, Severity)> {
        let kind = |finding: &Finding| (finding.code, finding.severity);
        findings.iter().map(kind).collect()
    }

    #[test]
    fn no_value_of_a_real_report_is_implausible() {
        let mut percentages = 0;
        for name in [
            "four_metrics", "full_set", "graph_after_kernels", "graph_as_one", "nvtx_range",
            "twenty_launches", "two_kernels_three_times",
        ] {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ncu");
            let report = ncu_report::read_file(format!("{folder}/{name}.ncu-rep")).unwrap();
            let metrics = report.launches.iter().flat_map(|launch| &launch.metrics);
            let numbers = metrics.filter_map(|(name, it)| Some((name, it.value.number()?)));
            for (counter, value) in numbers {
                percentages += usize::from(bounds(counter).is_some());
                assert_eq!(judged(counter, &[value]), None, "{name} {counter}");
            }
        }
        assert!(percentages > 600, "{percentages}");
    }

    #[test]
    fn values_that_a_counter_cannot_have_are_reported() {
        assert_eq!(judged(MAX, &[0.0, 101.1, 102.0]), None);
        assert_eq!(judged(AVG, &[0.0, 100.0]), None);
        assert_eq!(judged(TIME, &[1e9]), None);
        for (counter, value) in [
            (MAX, 102.1),
            (AVG, 101.1),
            (AVG, -0.1),
            (TIME, -1.0),
            (TIME, 0.0),
            (TIME, f64::NAN),
            (TIME, f64::INFINITY),
            ("dram__bytes_read.sum", -1.0),
        ] {
            let found = kinds(&[judged(counter, &[50.0, value]).unwrap()]);
            let denied = [(Code::Implausible, Severity::Deny)];
            assert_eq!(found, denied, "{counter} {value}");
        }
        assert_eq!(judged("dram__bytes_read.sum", &[0.0]), None);
    }

    #[test]
    fn an_implausible_value_is_reported_with_the_worst_and_the_number_of_launches() {
        let finding = judged(AVG, &[137.2, 50.0, 250.0]).unwrap();
        assert_eq!(
            finding.message,
            format!(
                "`m` of k is 250.00 % in 2 of 3 launches, which `{AVG}` cannot be: it can be 0.00 % to 100.50 %"
            )
        );
        assert_eq!(finding.kernel.as_deref(), Some("k"));
        assert_eq!(finding.metric.as_deref(), Some("m"));
    }

    #[test]
    fn an_improvement_beyond_the_limit_does_not_pass_by_itself() {
        assert_eq!(fell(0.0, 0.0), None);
        assert_eq!(fell(100.0, 50.0), None);
        assert_eq!(fell(100.0, 400.0), None);
        for current in [49.0, 0.0, f64::NAN] {
            let finding = fell(100.0, current).unwrap();
            assert_eq!(finding.code.exit_code(), ExitCode::Inconclusive);
            assert_eq!(finding.severity, Severity::Deny);
        }
    }

    /// A free GPU, one at another clock, or one that was slowed by the reason of this name.
    fn named(name: &str) -> State {
        match name {
            "free" => at(1980),
            "near" => at(1965),
            "slow" => at(1755),
            "unread" => State {
                working_readings: 2,
                ..at(345)
            },
            "unknown" => State::default(),
            "capped-low" => State {
                sm_clock_mhz: at(1530).sm_clock_mhz,
                ..named("sw-power-cap")
            },
            reason => slowed_by(serde_json::from_value(reason.into()).unwrap()),
        }
    }

    #[test]
    fn what_slowed_the_clock_denies_unless_every_capture_had_it_for_the_power_limit() {
        let cases = "
            free free | near | |
            | | |
            unknown | free | |
            free | unread | |
            free slow | free | Deny | 1755 MHz in base 2
            sw-power-cap | sw-power-cap | Warn | in every capture (sw-power-cap)
            sw-power-cap | free | Deny | base 1
            sw-power-cap free | sw-power-cap free | Deny | base 1, current 1
            sw-power-cap capped-low | capped-low | Warn |
            sw-power-cap capped-low | slow | Deny |
            hw-thermal | hw-thermal | Deny | hw-thermal in base 1, current 1
            sw-thermal | sw-thermal | Deny | sw-thermal in base 1, current 1
            hw-slowdown | hw-slowdown | Deny | hw-slowdown in base 1, current 1
            power-brake | power-brake | Deny | power-brake in base 1, current 1";
        for case in cases.trim().lines() {
            let cells: Vec<&str> = case.split('|').map(str::trim).collect();
            let side = |names: &str| names.split_whitespace().map(named).collect::<Vec<_>>();
            let [base, current] = [side(cells[0]), side(cells[1])];
            let findings = compared(&base, &current);
            assert!(findings.iter().all(|one| one.code == Code::ClockChanged));
            let denies = findings.iter().any(Finding::denies);
            let worst = ["", "Warn", "Deny"][findings.len().min(1) + usize::from(denies)];
            let said: String = findings.iter().map(|one| &*one.message).collect();
            assert_eq!(worst, cells[2], "{case}: {said}");
            assert!(said.contains(cells[3]), "{case}: {said}");
        }
    }

    #[test]
    fn another_process_is_reported_once_with_all_that_is_known_of_it() {
        let shared = |memory_bytes| State {
            other_processes: vec![ComputeProcess {
                pid: 77,
                name: Some("trainer".into()),
                memory_bytes: Some(memory_bytes),
            }],
            ..at(1980)
        };
        let (small, large) = (shared(1_000), shared(3_000_000_000));
        let findings = compared(&[at(1980), small.clone(), large], &[small]);
        assert_eq!(kinds(&findings), [(Code::GpuShared, Severity::Deny)]);
        assert_eq!(
            findings[0].message,
            "another process was on the GPU during base 2, base 3, current 1: process 77 (trainer, 3.00 GB)"
        );
        let ours_in_a_container = State {
            unknown_processes: 1,
            ..at(1980)
        };
        assert_eq!(compared(&[ours_in_a_container], &[]), []);
    }
}
