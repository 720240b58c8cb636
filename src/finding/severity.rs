//! Whether a finding fails the run, decided from its code and from why it would only warn.

use super::{Code, Reported};
use crate::terms::spelled;

spelled! {
    /// Whether a finding fails the run.
    Severity {
        /// Fails the run, with the exit code of its [`Code`].
        Deny = "deny",
        /// Is shown; the run may pass.
        Warn = "warn",
    }
}

macro_rules! reasons {
    ($(#[doc = $doc:literal] $name:ident => $($code:ident)|+),+ $(,)?) => {
        /// Why a finding only warns.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum WarnReason {
            $(#[doc = $doc] $name),+
        }

        impl WarnReason {
            /// All of them.
            #[cfg(test)]
            const ALL: &[WarnReason] = &[$(WarnReason::$name),+];

            /// Whether it makes a warning of a finding with this code.
            pub fn excuses(self, code: Code) -> bool {
                match self {
                    $(WarnReason::$name => matches!(code, $(Code::$code)|+)),+
                }
            }
        }
    };
}

reasons! {
    /// `--baseline-ref none` asks for the rules of the change.
    OwnRules => PolicyChanged,
    /// No variant and no metric of today is judged by another rule.
    NoEffectYet => PolicyChanged,
    /// The configured level of the metric is `warn`.
    MetricLevel => Regressed | LimitExceeded | WorkChanged | Inconclusive | NotMeasured | NotComparable | Implausible,
    /// The kernel became faster, and the metric is `unless_faster`.
    UnlessFaster => Regressed | Inconclusive,
    /// Side by side the kernel is shown not to take longer, and the static metric is `unless_as_fast`.
    UnlessAsFast => Regressed,
    /// The occupancy does not fall, or the launch is not known that decides it.
    ThroughOccupancy => Regressed | NotMeasured,
    /// A waiver in the configuration covers the metric.
    Waived => Regressed | LimitExceeded | WorkChanged | Inconclusive | Implausible,
    /// The configuration accepts the tier of measurement.
    TierAccepted => NoPermission | ProfilerUnsupported,
    /// The configuration does not enforce its pins, or the run that measured was not refused.
    PinsNotEnforced => ToolchainMismatch,
    /// The base was measured beside it: the kernels of the change are what is judged.
    SideBySide => LaunchChanged | KernelsChanged | TuningChanged,
    /// One of two programs is slower, which other work explains.
    Slower => WorkChanged,
    /// All captures were affected alike.
    AllCapturesAlike => ClockChanged,
    /// The launches of both sides ran at the same clock, by the profiler's counter.
    SameClock => ClockChanged,
    /// The captures are those of a baseline, whose spread contains what differs between them.
    InLockedSpread => ClockChanged,
    /// Nothing of the variant can be judged without a GPU.
    NoStaticGate => NotMeasured,
    /// A program that a command of its own makes is older than an input, which may not be part of it.
    OlderProgram => ProfileStale,
    /// The sanitizer itself reported warnings and no errors.
    ToolWarned => Sanitizer,
    /// Its captures are those of the copy, and contain its samples.
    SamplesKept => ProfileStripped,
    /// A page has a part of a report's launches, as ncu prints it on request.
    PartOfReport => CaptureUnreadable,
    /// No change is under review: the author of the files judges them.
    NoReview => CaptureMissing | CaptureUnreadable | ProfileAltered | ProfileStale,
    /// No measured baseline demands a measured profile.
    ImportAllowed => ProfileImported | NotMeasured,
    /// Nothing is gated: the launches of a program are listed, or two programs are compared.
    NoGate => CodeVaries,
    /// The machine code that the variant loads is not gated.
    CodeNotGated => CodeVaries,
    /// Constants were overridden for a trial.
    Trial => LaunchMismatch,
    /// It is about the dynamic shared memory of a launch, which is no other work.
    SharedMemory => LaunchChanged | NotMeasured,
    /// The configuration states other numbers of a launch than it had, and the launch is judged.
    LaunchesCount => LaunchMismatch,
    /// The change under review was accepted from outside of it.
    Consented => Relocked | PolicyChanged | HiddenFromReview | RecordedInChange,
    /// The baseline that the change locks was accepted, and allows it.
    LockAccepted => Regressed | Inconclusive | KernelsChanged | LaunchChanged,
    /// The base has nothing that it could loosen.
    NothingBefore => PolicyChanged | Relocked,
    /// The change under review makes a rule stricter.
    Tightens => PolicyChanged,
    /// The change under review states code, and the launches show what it does.
    LaunchesShow => PolicyChanged,
    /// The launches that are not measured come before and after those that are.
    BesideMeasured => OtherLaunches,
    /// The total of all kernels is judged, and contains it.
    InTotal => KernelsChanged | LaunchChanged,
    /// A baseline is replaced, and checks compare with the new one.
    Replaced => NumbersUnchecked,
    /// The base has it already.
    InBase => HiddenFromReview,
}

/// Whether a finding with this code fails the run, where there is this reason to only warn.
pub fn severity(code: Code, reason: Option<WarnReason>) -> Severity {
    if code.reported() == Reported::Warns || reason.is_some_and(|reason| reason.excuses(code)) {
        Severity::Warn
    } else {
        Severity::Deny
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_codes_says_which_findings_warn() {
        let wrong = Code::ALL.iter().filter(|code| {
            let alone = severity(**code, None) == Severity::Deny;
            let excused = WarnReason::ALL.iter().any(|reason| reason.excuses(**code));
            let reported = match (alone, excused) {
                (true, false) => Reported::Fails,
                (true, true) => Reported::Either,
                (false, _) => Reported::Warns,
            };
            code.reported() != reported
        });
        assert_eq!(wrong.map(|code| code.as_str()).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn a_reason_excuses_only_the_codes_it_is_for() {
        let waived = Some(WarnReason::Waived);
        assert_eq!(severity(Code::Regressed, waived), Severity::Warn);
        for code in [Code::Tampered, Code::WrongNumbers, Code::NotMeasured] {
            assert_eq!(severity(code, waived), Severity::Deny);
        }
    }
}
