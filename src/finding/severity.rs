//! Whether a finding fails the run, decided from its code and from why it would only warn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Code;

/// Whether a finding fails the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Fails the run, with the exit code of its [`Code`].
    Deny,
    /// Is shown; the run may pass.
    Warn,
}

macro_rules! reasons {
    ($(#[doc = $doc:literal] $name:ident => $($code:ident)|+),+ $(,)?) => {
        /// Why a finding only warns.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum WarnReason {
            $(#[doc = $doc] $name),+
        }

        impl WarnReason {
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
    /// The configured level of the metric is `warn`.
    MetricLevel => Regressed | LimitExceeded | WorkChanged | Inconclusive | NotMeasured | NotComparable | Implausible,
    /// The kernel became faster, and the metric is `unless_faster`.
    UnlessFaster => Regressed,
    /// A waiver in the configuration covers the metric.
    Waived => Regressed | LimitExceeded | WorkChanged | Inconclusive | Implausible,
    /// The configuration accepts the tier of measurement.
    TierAccepted => CountersDenied | NoPermission | ProfilerUnsupported | KernelTimesUnavailable,
    /// The configuration does not enforce its pins, or the run that measured was not refused.
    PinsNotEnforced => ToolchainMismatch,
    /// The base was measured beside it: the kernels of the change are what is judged.
    SideBySide => LaunchChanged | KernelRenamed,
    /// All captures were affected alike.
    AllCapturesAlike => ClockChanged,
    /// Nothing of the variant can be judged without a GPU.
    NoStaticGate => NotMeasured,
    /// The sanitizer itself reported warnings and no errors.
    ToolWarned => Sanitizer,
    /// The verdict comes from the recorded samples; the captures only prove them.
    SamplesDecide => CaptureMissing | CaptureUnreadable | ProfileStripped,
    /// No change is under review: whoever made the files judges them.
    NoReview => ProfileAltered | ProfileStale,
    /// No measured baseline demands a measured profile.
    ImportAllowed => ProfileImported,
    /// Constants were overridden for a trial.
    Trial => LaunchMismatch,
    /// The change under review was accepted from outside of it.
    Consented => Relocked | PolicyChanged,
    /// The change under review makes a rule stricter.
    Tightens => PolicyChanged,
    /// The change under review states code, and the launches show what it does.
    LaunchesShow => PolicyChanged,
    /// Only the signature of the lock is new.
    OnlySigned => Relocked,
    /// Checks do not count the signature; the lock itself is written.
    SignerUnknown => Unsigned,
}

/// Whether every finding with this code only warns.
fn only_informs(code: Code) -> bool {
    matches!(
        code,
        Code::Retried
            | Code::RecordedInChange
            | Code::AcceptUnused
            | Code::LockUnused
            | Code::BaseUnavailable
            | Code::Drift
            | Code::GpuUnwatched
            | Code::PerformanceLoss
            | Code::WaiverExpired
            | Code::WaiverUnused
    )
}

/// Whether a finding with this code fails the run, where there is this reason to only warn.
pub fn severity(code: Code, reason: Option<WarnReason>) -> Severity {
    if only_informs(code) || reason.is_some_and(|reason| reason.excuses(code)) {
        Severity::Warn
    } else {
        Severity::Deny
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_reason_only_what_informs_warns() {
        for code in Code::ALL {
            let expected = if only_informs(*code) {
                Severity::Warn
            } else {
                Severity::Deny
            };
            assert_eq!(severity(*code, None), expected, "{}", code.as_str());
        }
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
