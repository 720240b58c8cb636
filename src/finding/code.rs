//! The codes of findings. A code is part of the interface: scripts and waivers match on it.

use super::ExitCode;
use crate::terms::{VariantId, spelled};

/// How the findings of a code are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    /// They fail the run.
    Fails,
    /// They are warnings.
    Warns,
    /// It depends on the case, the configuration, or a waiver.
    Either,
}

macro_rules! codes {
    ($(
        #[doc = $doc:literal]
        $name:ident = $text:literal, $reported:ident => $exit:ident,
            $cause:literal,
            $next:literal;
    )+) => {
        spelled! {
            /// The kinds of findings. The name is part of the interface.
            Code { $(#[doc = $doc] $name = $text),+ }
        }

        impl Code {
            /// What it means, in a sentence.
            pub fn meaning(self) -> &'static str {
                match self { $(Code::$name => $doc.trim_ascii()),+ }
            }

            /// The usual cause.
            pub fn cause(self) -> &'static str {
                match self { $(Code::$name => $cause),+ }
            }

            /// The usual next step.
            pub fn next_step(self) -> &'static str {
                match self { $(Code::$name => $next),+ }
            }

            /// The usual next step of a finding about a variant, or of one about none, as reports
            /// print it.
            pub fn next_step_of(self, variant: Option<&VariantId>) -> String {
                let id = variant.map_or_else(|| "VARIANT".to_owned(), VariantId::to_string);
                let step = self.next_step().replace("VARIANT", &id);
                let (first, rest) = step.split_at(1);
                format!("{}{}", first.to_lowercase(), rest.trim_end_matches('.'))
            }

            /// Whether its findings fail the run.
            pub fn reported(self) -> Reported {
                match self { $(Code::$name => Reported::$reported),+ }
            }

            /// The exit code of a run that such a finding fails.
            pub fn exit_code(self) -> ExitCode {
                match self { $(Code::$name => ExitCode::$exit),+ }
            }
        }
    };
}

impl Code {
    /// Whether it is about rules and locks, which only the run that judges looks at.
    pub fn is_of_rules(self) -> bool {
        matches!(
            self,
            Code::AcceptUnused
                | Code::HiddenFromReview
                | Code::PolicyChanged
                | Code::Relocked
                | Code::Tampered
        )
    }
}

// The code, how it is reported, its exit code; the usual cause; the usual next step.
codes! {
    /// A metric got worse by more than its tolerance and the noise.
    Regressed = "regressed", Either => Regressed,
        "The kernel became slower or moves more data; the report lists what changed with it.",
        "Fix the kernel, or lock a new baseline: `sparsek-gate baseline --lock --reason '...' VARIANT`.";
    /// A value is outside its hard limit.
    LimitExceeded = "limit-exceeded", Either => Regressed,
        "The kernel exceeds `max` or stays below `min` of the metric, whatever the baseline is.",
        "Fix the kernel, or change the limit in `config.toml`.";
    /// The samples do not show whether the metric got worse by more than its tolerance.
    Inconclusive = "inconclusive", Either => Inconclusive,
        "The processes differ by more than the tolerance.",
        "Measure in more processes (`profile.processes`, more imported reports: two at least), on a quieter machine, or side by side (`check --against REV`); or widen the tolerance.";
    /// A metric has no value, or fewer values than required.
    NotMeasured = "not-measured", Either => Inconclusive,
        "The counter does not exist on this GPU, a launch has no value for it, or the tier cannot measure it.",
        "Read the reason in the metric's row, then profile again or remove the metric.";
    /// A value is not plausible.
    Implausible = "implausible", Either => Inconclusive,
        "It is outside the range of its counter (another process disturbed it, the counter is defective), or an improvement is too large to pass without a review (the kernel does less work).",
        "Profile again on an unused GPU. If the kernel does its work, and its check can fail, lock the improvement; waive a value that is right.";
    /// The GPU lowered its clock, or did not have the same clock in all captures.
    ClockChanged = "clock-changed", Either => Inconclusive,
        "Heat, the power supply, the power limit, or a program that sets clocks.",
        "Run `nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER`, let the GPU cool, keep its clock within the limit (`clock_control = \"base\"`, or `nvidia-smi --lock-gpu-clocks`), and measure again.";
    /// Another process was on the GPU during the measurement.
    GpuShared = "gpu-shared", Fails => Inconclusive,
        "A job of another user, a display server, or a process of an earlier run.",
        "End that process, or set CUDA_VISIBLE_DEVICES to an unused GPU, and measure again.";
    /// A kernel is missing in the capture or in the machine code, or no kernel at all was profiled.
    KernelMissing = "kernel-missing", Fails => Failed,
        "The kernel was renamed or removed, `kernels` selects none that the program launches, or `expect` names others.",
        "Compare `kernels`, `expect`, `skip` and `profiler_range` (`compare --kernels` and `--skip`) with the names in the message, and of machine code also `program` and `libraries`. Where it names none, run the program by hand, and look whether it reaches its launches.";
    /// The variant could not be built.
    BuildFailed = "build-failed", Fails => Failed,
        "An error in the sources, a missing file or library, or a wrong flag.",
        "Read the output below the finding, and run `sparsek-gate build VARIANT`.";
    /// The program's own check reported wrong numbers.
    WrongNumbers = "wrong-numbers", Fails => Failed,
        "The kernel computes another result than its reference.",
        "Fix the kernel, then run `sparsek-gate verify VARIANT`.";
    /// A tool of compute-sanitizer found errors, or it is not certain that it checked the program.
    Sanitizer = "sanitizer", Either => Failed,
        "A wrong access, race, uninitialized read or synchronization, or the tool could not instrument the program.",
        "Read the output below the finding, fix the kernel, then run `sparsek-gate verify --sanitizer TOOL VARIANT`.";
    /// The machine lacks what a step needs: space, memory, a module, a GPU, or a file that git does not track.
    MachineLacks = "machine-lacks", Fails => Environment,
        "A full disk, too little memory, a package that is not installed, a GPU that the program does not see, or a file that is not committed.",
        "Read the output below the finding, and give the machine what is missing.";
    /// The program could not be started.
    NotStarted = "not-started", Fails => Failed,
        "The file does not exist, is not executable, or a shared library is missing.",
        "Run the command in the message by hand.";
    /// The program failed or crashed, also under the profiler, or left no result that can be read.
    ProgramFailed = "program-failed", Fails => Failed,
        "Wrong arguments, a CUDA error, too little memory, an invalid access, or no JSON in `{result}`.",
        "Run the command in the message by hand, without the profiler and with it.";
    /// The time limit passed, and the tool ended all processes of the step.
    TimedOut = "timed-out", Fails => Failed,
        "The program hangs, waits for input, or needs longer under the profiler.",
        "Run the program by hand; if it is only slow, raise `timeout_s` under `profile` or `verify` (`compare --timeout`).";
    /// The profiler failed for a reason of its own.
    ProfilerFailed = "profiler-failed", Fails => Failed,
        "A wrong option or metric, a full disk, or a defect of the profiler.",
        "Read the output below the finding, and run `sparsek-gate doctor`.";
    /// Another process uses the GPU's counters, or another user's process has the lock for profiling.
    ProfilerBusy = "profiler-busy", Fails => Environment,
        "Another profiler, DCGM or a monitoring service reads the counters.",
        "End it, or pause it (DCGM: `dcgmi profile --pause`), and measure again. If another user's `nsight-compute-lock` is in the temporary folder, have its owner remove it, or set TMPDIR to a folder of your own.";
    /// The driver no longer shows the GPU.
    GpuLost = "gpu-lost", Fails => Environment,
        "A hardware or driver error (Xid).",
        "Look for `Xid` in the kernel's log (`dmesg`), then reset the GPU or restart the machine.";
    /// A GPU shows that its measurements cannot be trusted, and all that it measured in the run is set aside.
    GpuSick = "gpu-sick", Fails => Inconclusive,
        "A hardware defect, a clock that was lowered in every capture, or an immutable variant that does not read as locked.",
        "Measure on another GPU. If it reads the same there, the change or the lock is the cause; otherwise examine this one, as docs/sick-gpu.md says.";
    /// A measurement was repeated, because the machine made the first one fail.
    Retried = "retried", Warns => Environment,
        "The profiler was in use, or the GPU was lost, shared, or lowered its clock.",
        "Nothing, if it is rare. Otherwise remove the cause that the message names.";
    /// What an interrupted run measured is used, or is not used although there is some.
    Resumed = "resumed", Warns => Environment,
        "`--resume` after a run that was killed. What is not as it was then is measured anew.",
        "Measure without `--resume` if a program that you do not trust could write to that run's files.";
    /// The GPU's counters could not be read, also if a lower tier measured instead.
    NoPermission = "no-permission", Either => Environment,
        "The driver allows only administrators to read counters, or the container lacks the capability.",
        "As root: `echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' > /etc/modprobe.d/nvidia-profiling.conf`, and reboot; or give the container `--cap-add SYS_ADMIN` (docs/permission.md); or accept the tier: `accept_tiers` under `[profile]`.";
    /// The profiler does not work on this machine, or kernels cannot be timed without it.
    ProfilerUnsupported = "profiler-unsupported", Either => Environment,
        "ncu or CUPTI is missing, or does not support the GPU, the driver, the virtual machine, or the variant's options.",
        "Install an ncu, or a CUPTI of CUDA 12 or newer (`toolchain.cupti`), that supports them, or measure on a machine with direct access to the GPU.";
    /// A tool, the driver or the GPU is not the one that the configuration pins.
    ToolchainMismatch = "toolchain-mismatch", Either => Environment,
        "An update of CUDA, the driver or the image, or another GPU model.",
        "Use the pinned version (`sparsek-gate doctor` says which tools are found; others are named by `toolchain.nvcc`, `toolchain.ncu`, CUDA_HOME or the PATH) and a GPU that the pins name, or change `[toolchain.pins]` and lock new baselines.";
    /// The launched kernel is not the one that was built, or (a warning) its launch is not as configured.
    LaunchMismatch = "launch-mismatch", Either => Failed,
        "The program loads other machine code, or launches with other `dynamic_shared_bytes`.",
        "Compare the two values in the message, then correct the program or the configuration.";
    /// A kernel had different code or autotuner configurations in one measurement, or was tuned in a measured process.
    CodeVaries = "code-varies", Either => Inconclusive,
        "An autotuner chose anew, nothing separates its launches from the measured ones, or each shape is compiled.",
        "Keep its choice (`env = { TRITON_CACHE_AUTOTUNING = \"1\" }`), measure after warm-up (`profiler_range = true`), and see docs/triton.md.";
    /// An autotuner chose another configuration of a kernel than in the reference.
    TuningChanged = "tuning-changed", Either => Baseline,
        "Other candidates, another compiler or driver, or candidates that are equally fast.",
        "Compare the two configurations in the message. If the new one is intended, lock a new baseline.";
    /// A report, a CSV or a profile cannot be used.
    CaptureUnreadable = "capture-unreadable", Either => Failed,
        "The file is cut, damaged, edited, of an unknown format, lacks launches, or is a profile of another variant, tier or version.",
        "If it was copied or edited, copy or restore it; otherwise profile again. If a newer ncu or sparsek-gate wrote it, update sparsek-gate.";
    /// The report and its CSV contain different numbers.
    ReadersDisagree = "readers-disagree", Fails => Failed,
        "One of the two files was changed, or a reader has a defect.",
        "Profile again. If it persists, report it with both files.";
    /// A slice of the check is missing, incomplete, or does not belong to the others.
    SliceUnusable = "slice-unusable", Fails => Inconclusive,
        "Its job failed, its folder is missing or there twice, or it is of another archive or selection.",
        "Run that slice again with the same archive, and check all of them together.";
    /// A recorded profile is missing.
    ProfileMissing = "profile-missing", Fails => Inconclusive,
        "The variant was not profiled into this folder, or its recording failed.",
        "Record it on a GPU: `sparsek-gate profile --output DIR VARIANT`; without one, `sparsek-gate check --static VARIANT` judges its compiled code.";
    /// The samples of a profile are not those of its captures.
    ProfileAltered = "profile-altered", Either => Baseline,
        "The profile or a capture was edited, or they come from different runs.",
        "Take the whole folder of the recording that the profile is of, unchanged (in git with `* -text` in its `.gitattributes`); if it is lost, record the profile again.";
    /// A recorded profile was measured from other sources or flags than the current ones.
    ProfileStale = "profile-stale", Either => Baseline,
        "The code changed after the recording, or the recording used `-D`.",
        "Record it again from this revision, on a GPU: `sparsek-gate profile --output DIR VARIANT`.";
    /// The recording is part of the change under review, so its author could have edited it.
    RecordedInChange = "recorded-in-change", Either => Inconclusive,
        "The profiles are committed in the same change.",
        "Record where the change cannot write, and pass the artifact to `check --from`. To accept it, from outside the change: `check --accept TOKEN`.";
    /// A profile was imported, not measured by this tool.
    ProfileImported = "profile-imported", Either => Inconclusive,
        "It was made with `sparsek-gate import`.",
        "Measure it: `sparsek-gate profile VARIANT`. `baseline --lock --accept-imported` takes it; a check against fewer than two processes is always inconclusive.";
    /// A profile is a stripped copy. It can be judged, but not locked.
    ProfileStripped = "profile-stripped", Either => Inconclusive,
        "It was made with `sparsek-gate strip`.",
        "Use the original profile.";
    /// A capture that a profile names does not exist.
    CaptureMissing = "capture-missing", Either => Inconclusive,
        "Only the profiles were copied.",
        "Copy the whole folder of the recording.";
    /// The variant has no baseline yet.
    NewBaseline = "new-baseline", Fails => Baseline,
        "The variant, the GPU model or the tier is new.",
        "Lock one: `sparsek-gate baseline --lock --reason '...' VARIANT` (`--static`: its compiled code).";
    /// A variant or a metric is locked, but was not checked.
    VariantGone = "variant-gone", Fails => Baseline,
        "It was removed from the configuration, or renamed, or the variant became experimental.",
        "Put it back, remove the baseline of the variant, or record it without the metric and lock that.";
    /// A locked file, or the lock itself, is not what was locked.
    Tampered = "tampered", Fails => Baseline,
        "A file in `baselines/` was edited by hand, damaged in a merge, or put in another folder.",
        "Restore all files of the baseline from one commit (`git check-ignore -v FILE` shows a rule that keeps one out); `sparsek-gate baseline --verify VARIANT` prints the command.";
    /// The change under review locks, re-locks or removes a baseline. The lock from before the change is used.
    Relocked = "relocked", Either => Baseline,
        "A baseline was locked in the same change as the code.",
        "Review the new lock. To accept it, from outside the change: `check --accept TOKEN`.";
    /// The change under review changes its own rules. The rules from before the change are used.
    PolicyChanged = "policy-changed", Either => Baseline,
        "The change edits tolerances, limits, waivers, profiling options or a tool in the repository.",
        "Review the new rules. To accept them, from outside the change: `check --accept TOKEN`.";
    /// An accepted token belongs to nothing in this change.
    AcceptUnused = "accept-unused", Warns => Usage,
        "The base or the change was edited since, it is one of another pull request, or there is no base revision.",
        "Use the token that the current report prints, or set `--baseline-ref REV`.";
    /// Attributes in `.gitattributes` hide baselines or the configuration from review.
    HiddenFromReview = "hidden-from-review", Either => Baseline,
        "The change marks them as generated, vendored or binary, or gives them a driver.",
        "Remove the attribute. To accept it, from outside the change: `check --accept TOKEN`.";
    /// A baseline is locked, but no check uses it.
    LockUnused = "lock-unused", Warns => Baseline,
        "Its variant was removed or is experimental.",
        "Put the variant back, or remove its baseline.";
    /// The sources, headers or flags of an immutable variant are not those that its lock lists.
    ImmutableChanged = "immutable-changed", Fails => Baseline,
        "A shared header, a flag or the reference itself was edited.",
        "Undo the change, or make a new variant. To lock it anyway: `sparsek-gate baseline --lock --accept-immutable --reason '...' VARIANT`.";
    /// Two profiles were taken under different conditions.
    NotComparable = "not-comparable", Either => Baseline,
        "Another GPU model, tier, compiler, clock control, or other launches or metrics than in the baseline.",
        "Measure both under the same conditions, or lock a new baseline: `sparsek-gate baseline --lock --reason '...' VARIANT`.";
    /// The base revision of a variant cannot be measured beside the current one, so its baseline is used.
    BaseUnavailable = "base-unavailable", Warns => Inconclusive,
        "The variant does not exist at the base revision, or does not build, verify or run there.",
        "Nothing, if the variant is new. Otherwise fix the base revision.";
    /// Exact counters, or the types that it multiplies, show that the kernel does other work than its reference or than declared.
    WorkChanged = "work-changed", Either => Baseline,
        "The kernel skips work, computes more, multiplies numbers of another precision, or the problem size changed.",
        "Fix the kernel, or `work` of the suite. If other work is intended, lock a new baseline.";
    /// The base, measured now, differs from its locked baseline.
    Drift = "drift", Warns => Inconclusive,
        "The machine, the driver or the toolchain changed since the baseline was locked.",
        "Compare driver, clocks and compiler with the baseline, or lock the base again.";
    /// It is not known whether the GPU was disturbed during the measurement.
    GpuUnwatched = "gpu-unwatched", Warns => Inconclusive,
        "The driver's library NVML could not be loaded, or stopped reporting errors (Xid).",
        "Make `libnvidia-ml.so.1` available, or look for `Xid` in the kernel's log (`dmesg`), and measure again.";
    /// The compiler reports that something costs performance.
    PerformanceLoss = "performance-loss", Warns => Regressed,
        "For example, ptxas serializes `wgmma` instructions, or spills registers.",
        "Change the kernel; the number of warnings is gated by `performance_warnings`.";
    /// A kernel is new, gone, or has another name than in the reference.
    KernelsChanged = "kernels-changed", Either => Baseline,
        "The program launches or `kernels` selects others, or a function was renamed.",
        "If it is intended, lock a new baseline; otherwise correct the program or `kernels`.";
    /// A kernel is launched with another grid, block or dynamic shared memory, or another share of the launches.
    LaunchChanged = "launch-changed", Either => Baseline,
        "The launch configuration or the problem size changed. Other shared memory alone is a warning. So is another grid or block beside the base, if equal counts of work, or processes that check their own numbers, show the same work.",
        "If it is intended, lock a new baseline, or let exact metrics or `{result}` show the same work.";
    /// A waiver covers no finding, its last day is past, or it ended with its merge.
    WaiverUnused = "waiver-unused", Warns => Usage,
        "The regression was fixed, the waiver names another variant or metric, its last day (`expires`) is before today (UTC) or it has none and is part of the base, or the metric is worse by more than it covers.",
        "Remove the waiver, or set a later day or what it covers (`up_to`).";
    /// A tolerance, a limit, the metrics or `--against` are probably not as they were meant.
    RuleDoubtful = "rule-doubtful", Warns => Usage,
        "A percentage was written as a fraction, percent as nanoseconds, a `[metric]` replaced the default ones, or `--against` is the commit that is checked out.",
        "Write the tolerance with its unit, such as `\"3 %\"`, a limit in percent, add `[metric.duration]`, or name the revision before the change.";
    /// `env_pass` names a variable that, by its name, holds a credential.
    CredentialPassed = "credential-passed", Warns => Usage,
        "Programs under test can send each variable that they get anywhere.",
        "Remove the name from `env_pass`, and fetch what a build needs in an earlier step.";
    /// Measured processes do not report on their numbers, although those of the reference did.
    NumbersUnchecked = "numbers-unchecked", Either => Failed,
        "`{result}` was removed from `profile_args`, or the program no longer writes the file in profiled runs.",
        "Make the program write its result in profiled runs too: to `{result}` of `profile_args`, or to the file that SPARSEK_GATE_RESULT names.";
    /// The measured processes launch kernels that are not measured, and that the reference does not launch.
    OtherLaunches = "other-launches", Either => Baseline,
        "A new kernel that `kernels` does not select, and that may do a part of the work.",
        "Select it in `kernels` (`compare --kernels`), remove it, or, if it is intended, lock a new baseline.";
    /// A file of the run changed before it was used, or sources, inputs or the program until the last process of their variant.
    AlteredDuringRun = "altered-during-run", Fails => Failed,
        "A program under test, or another process, wrote to a file of the run or a setting of git.",
        "Find out what writes there, and measure again. A file that was changed and restored counts as changed.";
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
    fn no_finding_that_fails_exits_with_zero() {
        for code in Code::ALL {
            assert_ne!(code.exit_code(), ExitCode::Pass, "{}", code.as_str());
        }
    }

    #[test]
    fn every_text_is_one_or_more_sentences() {
        for code in Code::ALL {
            for text in [code.meaning(), code.cause(), code.next_step()] {
                assert!(text.ends_with('.'), "{}: {text}", code.as_str());
            }
        }
    }
}
