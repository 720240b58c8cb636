//! The codes of findings. A code is part of the interface: scripts and waivers match on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ExitCode;

macro_rules! codes {
    ($(#[doc = $doc:literal] $name:ident = $text:literal => $exit:ident),+ $(,)?) => {
        /// The kinds of findings. The name is part of the interface.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum Code {
            $(#[doc = $doc] #[serde(rename = $text)] $name),+
        }

        impl Code {
            /// All of them.
            pub const ALL: &'static [Code] = &[$(Code::$name),+];

            /// Its name in reports.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text),+ }
            }

            /// What it says, in a sentence.
            pub fn meaning(self) -> &'static str {
                match self { $(Code::$name => $doc.trim_ascii()),+ }
            }

            /// What a run with such a finding exits with.
            pub fn exit_code(self) -> ExitCode {
                match self { $(Code::$name => ExitCode::$exit),+ }
            }
        }
    };
}

codes! {
    /// A metric got worse by more than its tolerance.
    Regressed = "regressed" => Regressed,
    /// A value is outside its hard limit.
    LimitExceeded = "limit-exceeded" => Regressed,
    /// The samples do not tell whether the metric got worse by more than its tolerance.
    Inconclusive = "inconclusive" => Inconclusive,
    /// A metric has no value, or fewer than were asked for.
    NotMeasured = "not-measured" => Inconclusive,
    /// A value is none that its counter can have, or an improvement is too large to be believed.
    Implausible = "implausible" => Inconclusive,
    /// The GPU ran below its clock, or not at the same clock in all captures.
    ClockChanged = "clock-changed" => Inconclusive,
    /// Another process was on the GPU while it was measured.
    GpuShared = "gpu-shared" => Inconclusive,
    /// ncu profiled no kernel.
    NoKernelsProfiled = "no-kernels-profiled" => Failed,
    /// A kernel that the configuration expects is not in the capture.
    KernelMissing = "kernel-missing" => Failed,
    /// The compiler or the build command failed.
    BuildFailed = "build-failed" => Failed,
    /// The program's own check said that its numbers are wrong.
    WrongNumbers = "wrong-numbers" => Failed,
    /// A tool of compute-sanitizer found errors, or cannot be trusted to have found none.
    Sanitizer = "sanitizer" => Failed,
    /// The program's result file is missing or cannot be read.
    ResultUnreadable = "result-unreadable" => Failed,
    /// The program could not be started.
    NotStarted = "not-started" => Failed,
    /// The program failed before its check, or under the profiler.
    ProgramFailed = "program-failed" => Failed,
    /// A signal ended the program or the profiler.
    Crashed = "crashed" => Failed,
    /// The time limit passed; everything was killed.
    TimedOut = "timed-out" => Failed,
    /// The profiler failed for a reason of its own.
    ProfilerFailed = "profiler-failed" => Failed,
    /// Another profiler holds the counters of the GPU, or another user's the turn to profile.
    ProfilerBusy = "profiler-busy" => Environment,
    /// The driver no longer shows the GPU.
    GpuLost = "gpu-lost" => Environment,
    /// A measurement that failed for the machine's sake was repeated; it only warns.
    Retried = "retried" => Environment,
    /// The right to read the counters is missing.
    NoPermission = "no-permission" => Environment,
    /// The counters could not be read, and a lower tier measured in their place.
    CountersDenied = "counters-denied" => Environment,
    /// Kernels cannot be timed without ncu either.
    KernelTimesUnavailable = "kernel-times-unavailable" => Environment,
    /// The profiler does not work on this machine at all.
    ProfilerUnsupported = "profiler-unsupported" => Environment,
    /// Tools, driver or GPU are not those that the configuration pins.
    ToolchainMismatch = "toolchain-mismatch" => Environment,
    /// What was launched is not what was built, or not as the configuration states it.
    LaunchMismatch = "launch-mismatch" => Failed,
    /// A report or a CSV cannot be read.
    CaptureUnreadable = "capture-unreadable" => Failed,
    /// The report and its CSV hold different numbers.
    ReadersDisagree = "readers-disagree" => Failed,
    /// A recorded profile is missing.
    ProfileMissing = "profile-missing" => Inconclusive,
    /// A profile cannot be read.
    ProfileUnreadable = "profile-unreadable" => Failed,
    /// The samples of a profile are not those of the captures it names.
    ProfileAltered = "profile-altered" => Baseline,
    /// A recorded profile was measured from other sources or flags than those that are here.
    ProfileStale = "profile-stale" => Baseline,
    /// The recording that is judged is itself part of the change; it only warns.
    RecordedInChange = "recorded-in-change" => Baseline,
    /// A profile was imported, not measured by this tool.
    ProfileImported = "profile-imported" => Inconclusive,
    /// A profile is a stripped copy: it may be judged, and never locked.
    ProfileStripped = "profile-stripped" => Inconclusive,
    /// A capture that a profile names is not there.
    CaptureMissing = "capture-missing" => Baseline,
    /// The variant has no baseline yet.
    NewBaseline = "new-baseline" => Baseline,
    /// A variant is locked and is not among those that were checked.
    VariantGone = "variant-gone" => Baseline,
    /// A metric is locked and the configuration no longer names it.
    MetricGone = "metric-gone" => Baseline,
    /// A locked file, or the lock itself, is not what was locked.
    Tampered = "tampered" => Baseline,
    /// A lock without a signature, where the configuration demands one.
    Unsigned = "unsigned" => Baseline,
    /// The change under review locks, re-locks or removes a baseline; the lock from before judges.
    Relocked = "relocked" => Baseline,
    /// The change under review changes what it is judged by; it is judged by what was before.
    PolicyChanged = "policy-changed" => Baseline,
    /// A hash that was accepted is that of nothing which this change brings; it only warns.
    AcceptUnused = "accept-unused" => Usage,
    /// A baseline is locked and no variant of the configuration is judged by it; it only warns.
    LockUnused = "lock-unused" => Baseline,
    /// An immutable variant's sources, headers or flags changed.
    ImmutableChanged = "immutable-changed" => Baseline,
    /// Two profiles were taken under different conditions.
    NotComparable = "not-comparable" => Baseline,
    /// The base revision of a variant cannot be measured beside its head.
    BaseUnavailable = "base-unavailable" => Inconclusive,
    /// Exact counters say that the kernel does other work than the reference, or than declared.
    WorkChanged = "work-changed" => Baseline,
    /// The base, measured now, is not where its locked baseline is.
    Drift = "drift" => Inconclusive,
    /// Nothing tells whether the GPU was disturbed while it was measured.
    GpuUnwatched = "gpu-unwatched" => Inconclusive,
    /// The compiler says what costs performance; it only warns, and is gated by its count.
    PerformanceLoss = "performance-loss" => Regressed,
    /// A kernel is in the current profile and not in the baseline.
    KernelNew = "kernel-new" => Baseline,
    /// A kernel of the baseline is not in the current profile.
    KernelGone = "kernel-gone" => Baseline,
    /// A kernel of the same grid and block has another name.
    KernelRenamed = "kernel-renamed" => Baseline,
    /// A kernel is launched with another grid or block, or more or less often than the others.
    LaunchChanged = "launch-changed" => Baseline,
    /// The last day of a waiver is past; it only warns.
    WaiverExpired = "waiver-expired" => Usage,
    /// A waiver had nothing to let pass; it only warns.
    WaiverUnused = "waiver-unused" => Usage,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_code_has_a_name_of_its_own_in_kebab_case() {
        let names: HashSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        for name in names {
            assert!(
                name.chars().all(|c| c.is_ascii_lowercase() || c == '-'),
                "{name}"
            );
        }
    }

    #[test]
    fn no_finding_that_denies_exits_with_zero() {
        for code in Code::ALL {
            assert_ne!(code.exit_code(), ExitCode::Pass, "{}", code.as_str());
        }
    }
}
