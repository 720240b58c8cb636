//! The codes of findings. A code is part of the interface: scripts and waivers match on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ExitCode;

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

// The code, how it is reported, its exit code; the usual cause; the usual next step.
codes! {
    /// A metric got worse by more than its tolerance and the noise.
    Regressed = "regressed", Either => Regressed,
        "The change made the kernel slower, or made it move more data. The report lists what changed with it: instructions, traffic, registers, machine code.",
        "Fix the kernel. If the change is intended, lock a new baseline: `sparsek-gate baseline --lock --reason '...' VARIANT`.";
    /// A value is outside its hard limit.
    LimitExceeded = "limit-exceeded", Either => Regressed,
        "The kernel exceeds `max` or stays below `min` of the metric. A limit does not depend on the baseline.",
        "Fix the kernel, or change the limit in `config.toml`.";
    /// The samples do not show whether the metric got worse by more than its tolerance.
    Inconclusive = "inconclusive", Either => Inconclusive,
        "The noise, or the difference between machines, is as large as the tolerance.",
        "Measure side by side with `check --against REV`, use a quiet GPU, raise `profile.processes`, or widen the tolerance.";
    /// A metric has no value, or fewer values than required.
    NotMeasured = "not-measured", Either => Inconclusive,
        "The counter does not exist on this GPU, a launch has no value for it, or the tier cannot measure it.",
        "Read the reason in the row of the metric. Profile again, or remove the metric from the suite.";
    /// A value is outside the range of its counter, or an improvement is too large to pass without a review.
    Implausible = "implausible", Either => Inconclusive,
        "Another process disturbed the measurement, the counter is defective, or the kernel no longer does all of its work.",
        "Profile again with nothing else on the GPU. Check that the kernel still does its work, then lock the improvement, or waive it.";
    /// The GPU lowered its clock, or did not have the same clock in all captures.
    ClockChanged = "clock-changed", Either => Inconclusive,
        "Heat, the power supply, the power limit, or a program that sets clocks.",
        "Run `nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER`, let the GPU cool, set `clock_control = \"base\"`, and measure again.";
    /// Another process was on the GPU during the measurement.
    GpuShared = "gpu-shared", Fails => Inconclusive,
        "A job of another user, a display server, or a process that was left from an earlier run.",
        "End that process, or set CUDA_VISIBLE_DEVICES to a GPU that nothing else uses, and measure again.";
    /// ncu profiled no kernel.
    NoKernelsProfiled = "no-kernels-profiled", Fails => Failed,
        "`kernels` selects none of the kernels that the program launches, or the program launches none.",
        "Compare `kernels` with the kernel names in the message.";
    /// A kernel that the configuration expects is not in the capture or not in the machine code.
    KernelMissing = "kernel-missing", Fails => Failed,
        "The kernel was renamed or removed, or `expect` and `kernels` do not select the same kernels.",
        "Correct `expect`, `kernels` or the program.";
    /// The compiler or the build command failed.
    BuildFailed = "build-failed", Fails => Failed,
        "An error in the sources, a missing header or library, or a wrong flag.",
        "Read the output of the tool below the finding, and run `sparsek-gate build VARIANT`.";
    /// The program's own check reported wrong numbers.
    WrongNumbers = "wrong-numbers", Fails => Failed,
        "The kernel computes another result than its reference, in the verifying run or in a measured process.",
        "Fix the kernel, then run `sparsek-gate verify VARIANT`. A variant with wrong numbers is never profiled.";
    /// A tool of compute-sanitizer found errors, or it is not certain that it checked the program.
    Sanitizer = "sanitizer", Either => Failed,
        "An access out of bounds, a race, an uninitialized read, a wrong synchronization; or the tool could not instrument the program.",
        "Read the output below the finding, fix the kernel, then run `sparsek-gate verify --sanitizer TOOL VARIANT`.";
    /// The program's result file is missing or cannot be read.
    ResultUnreadable = "result-unreadable", Fails => Failed,
        "The program does not write JSON to the path that `{result}` stands for, or ended before it did.",
        "Run the program by hand with the arguments in the message, and look at the file.";
    /// The program could not be started.
    NotStarted = "not-started", Fails => Failed,
        "The file does not exist, is not executable, or a shared library is missing.",
        "Run the command in the message by hand.";
    /// The program failed before its check, or under the profiler.
    ProgramFailed = "program-failed", Fails => Failed,
        "Wrong arguments, a CUDA error, not enough GPU memory, or a program that fails only under the profiler.",
        "Run the program by hand, then under ncu, with the command in the message.";
    /// A signal ended the program or the profiler.
    Crashed = "crashed", Fails => Failed,
        "An invalid memory access on the host, an abort, or the system's out-of-memory killer.",
        "Run the command in the message by hand under a debugger, and look at the system's log for the out-of-memory killer.";
    /// The time limit passed, and the tool ended all processes of the step.
    TimedOut = "timed-out", Fails => Failed,
        "The program hangs, waits for input, or needs longer under the profiler.",
        "Run the program by hand. If it only needs longer, raise the time limit that the message names.";
    /// The profiler failed for a reason of its own.
    ProfilerFailed = "profiler-failed", Fails => Failed,
        "A wrong option or metric, a full disk, or a defect of the profiler.",
        "Read the output below the finding, and run `sparsek-gate doctor`.";
    /// Another process uses the GPU's counters, or another user's process has the lock for profiling.
    ProfilerBusy = "profiler-busy", Fails => Environment,
        "Another profiler, DCGM or a monitoring service reads the counters.",
        "End it, or pause it (`dcgmi profile --pause`), and measure again.";
    /// The driver no longer shows the GPU.
    GpuLost = "gpu-lost", Fails => Environment,
        "A hardware or driver error (Xid).",
        "Look for `Xid` in the kernel's log (`dmesg`), then reset the GPU or restart the machine.";
    /// A GPU shows that its measurements cannot be trusted, and all that it measured in the run is set aside.
    GpuSick = "gpu-sick", Either => Inconclusive,
        "The driver reported a defect of the hardware; or heat or the power supply lowered the clock in every capture of a variant; or a control does not read as it was locked.",
        "Measure on another GPU, and see docs/sick-gpu.md.";
    /// A measurement was repeated, because the machine made the first one fail.
    Retried = "retried", Warns => Environment,
        "The profiler was in use, or the GPU was lost, shared, or lowered its clock.",
        "Nothing, if it is rare. Otherwise remove the cause that the message names.";
    /// What an interrupted run measured is used, or is not used although there is some.
    Resumed = "resumed", Warns => Environment,
        "`--resume`: the earlier run was killed, or lost its machine. A variant is measured anew where the code, the settings, the GPU, the driver or this tool is another one than before, where a file of that run was changed, or where it is not known what the program reads.",
        "Nothing, if no program that you do not trust could write to the files of that run meanwhile. Otherwise measure anew, without `--resume`.";
    /// Some measured processes are far from the others of their side.
    OutlyingProcesses = "outlying-processes", Warns => Inconclusive,
        "Something disturbed the machine for the length of a process, or the kernel is slower in some processes.",
        "Nothing, if it is rare. Rounds that are not judged are replaced where possible, and all captures are kept. With too many outlying processes a metric cannot pass: find what disturbs the machine.";
    /// The permission to read the GPU's counters is missing.
    NoPermission = "no-permission", Either => Environment,
        "The driver allows only administrators to read counters, or the container lacks the capability.",
        "Follow docs/permission.md, then run `sparsek-gate doctor`.";
    /// The counters could not be read, and a lower tier measured instead.
    CountersDenied = "counters-denied", Either => Environment,
        "The permission to read counters is missing on this machine.",
        "Give ncu the permission, or accept the tier: `accept_tiers` under `[profile]`.";
    /// Kernels cannot be timed without ncu.
    KernelTimesUnavailable = "kernel-times-unavailable", Either => Environment,
        "CUPTI is not installed, or the variant's options exist only for ncu.",
        "Install CUPTI, set `toolchain.cupti`, or give ncu the permission to read counters.";
    /// The profiler does not work on this machine.
    ProfilerUnsupported = "profiler-unsupported", Either => Environment,
        "ncu, or CUPTI with `collector = \"cupti\"`, does not support the GPU, the driver or the virtual machine.",
        "Install a version of ncu that supports this GPU and driver, or measure on another machine.";
    /// A tool, the driver or the GPU is not the one that the configuration pins.
    ToolchainMismatch = "toolchain-mismatch", Either => Environment,
        "An update of CUDA, the driver or the image, or another GPU model.",
        "Install the pinned version, or change `[toolchain.pins]` and lock new baselines.";
    /// The launched kernel is not the one that was built. It is a warning if only its launch is not as the configuration states.
    LaunchMismatch = "launch-mismatch", Either => Failed,
        "The program loads other machine code; or `dynamic_shared_bytes` is not what is launched, and the launch counts.",
        "Compare the two values in the message, then correct the program or the configuration.";
    /// A kernel had different machine code, or different configurations of its autotuner, in one measurement.
    CodeVaries = "code-varies", Either => Inconclusive,
        "An autotuner chose anew in each process, launches of its tuning were measured, or the kernel is compiled anew for each shape.",
        "Keep the choice of the autotuner, measure only after warm-up (`profiler_range`), and make a variant of each shape.";
    /// An autotuner chose another configuration of a kernel than in the reference.
    TuningChanged = "tuning-changed", Either => Baseline,
        "Other candidates, another version of the compiler or the driver, or candidates that are equally fast.",
        "Compare the two configurations in the message. If the new one is intended, lock a new baseline.";
    /// A measured process tuned a kernel, and nothing separates the launches of the tuning from those that are measured.
    TuningMeasured = "tuning-measured", Either => Inconclusive,
        "The program tunes in the process that is profiled, and `profiler_range` or `nvtx` is not set.",
        "Launch once before cudaProfilerStart, launch what is measured up to cudaProfilerStop, and set `profiler_range = true`. See docs/triton.md.";
    /// A report or a CSV cannot be read, or a CSV lacks launches.
    CaptureUnreadable = "capture-unreadable", Either => Failed,
        "The file is cut, damaged, or of a format that this version does not know.",
        "Profile again. For a newer ncu, update sparsek-gate.";
    /// The report and its CSV contain different numbers.
    ReadersDisagree = "readers-disagree", Fails => Failed,
        "One of the two files was changed, or a reader has a defect.",
        "Profile again. If it persists, report it with both files.";
    /// A slice of the check is missing, incomplete, or does not belong to the others.
    SliceUnusable = "slice-unusable", Fails => Inconclusive,
        "The job of the slice failed or was killed, its folder was not collected or is there twice, or it was measured from another archive, configuration or selection.",
        "Run the slice that the message names again with the same archive, and check all of them together.";
    /// A recorded profile is missing.
    ProfileMissing = "profile-missing", Fails => Inconclusive,
        "The variant was not profiled into this folder, or its recording failed.",
        "Record it: `sparsek-gate profile --output DIR VARIANT`.";
    /// A profile cannot be read.
    ProfileUnreadable = "profile-unreadable", Fails => Failed,
        "The file is cut, was edited, or belongs to another variant, tier or version.",
        "Record it again.";
    /// The samples of a profile are not those of its captures.
    ProfileAltered = "profile-altered", Either => Baseline,
        "The profile or a capture was edited, or they come from different runs.",
        "Record the profile again, and keep its captures unchanged.";
    /// A recorded profile was measured from other sources or flags than the current ones.
    ProfileStale = "profile-stale", Either => Baseline,
        "The code changed after the recording, or the recording used `-D`.",
        "Record it again from this revision.";
    /// The recording is part of the change under review, so its author could have edited it.
    RecordedInChange = "recorded-in-change", Warns => Baseline,
        "The profiles are committed in the same change.",
        "Record where the change cannot write, and pass the recording to `check --from` as an artifact.";
    /// A profile was imported, not measured by this tool.
    ProfileImported = "profile-imported", Either => Inconclusive,
        "It was made with `sparsek-gate import`.",
        "Measure it: `sparsek-gate profile VARIANT`. To lock it anyway: `baseline --lock --accept-imported`.";
    /// A profile is a stripped copy. It can be judged, but not locked.
    ProfileStripped = "profile-stripped", Either => Inconclusive,
        "It was made with `sparsek-gate strip`.",
        "Use the original profile.";
    /// A capture that a profile names does not exist.
    CaptureMissing = "capture-missing", Either => Baseline,
        "Only the profiles were copied, without the captures beside them.",
        "Copy the whole folder of the recording.";
    /// The variant has no baseline yet.
    NewBaseline = "new-baseline", Fails => Baseline,
        "The variant, the GPU model or the tier is new.",
        "Lock one: `sparsek-gate baseline --lock --reason '...' VARIANT`.";
    /// A variant is locked, but was not checked.
    VariantGone = "variant-gone", Fails => Baseline,
        "The variant was removed from the configuration, or became experimental.",
        "Put it back, or remove its baseline.";
    /// A metric is locked, but the configuration no longer names it.
    MetricGone = "metric-gone", Fails => Baseline,
        "The metric was removed from the suite, or renamed.",
        "Put it back, or lock a baseline without it.";
    /// A locked file, or the lock itself, is not what was locked.
    Tampered = "tampered", Fails => Baseline,
        "A file in `baselines/` was edited by hand, damaged in a merge, or put in another folder.",
        "Restore it from git, or lock again: `sparsek-gate baseline --lock --reason '...' VARIANT`.";
    /// A lock has no valid signature, but the configuration requires one; or its signature cannot be verified.
    Unsigned = "unsigned", Either => Baseline,
        "It was locked without `--sign-key`, signed with a key that `trust.public_keys` does not name, or no key is configured.",
        "Sign it: `sparsek-gate baseline --sign --sign-key FILE VARIANT`.";
    /// The change under review locks, re-locks or removes a baseline. The lock from before the change is used.
    Relocked = "relocked", Either => Baseline,
        "A baseline was locked in the same change as the code.",
        "Review the new lock. To accept it, from outside the change: `check --accept TOKEN`.";
    /// The change under review changes its own rules. The rules from before the change are used.
    PolicyChanged = "policy-changed", Either => Baseline,
        "The change edits tolerances, limits, waivers, signing keys, profiling options or a tool in the repository.",
        "Review the new rules. To accept them, from outside the change: `check --accept TOKEN`.";
    /// An accepted token belongs to nothing in this change.
    AcceptUnused = "accept-unused", Warns => Usage,
        "Base or change were edited after the token was printed, it is one of another pull request, or there is no base revision.",
        "Use the token that the current report prints, or set `--baseline-ref REV`.";
    /// Attributes in `.gitattributes` hide baselines or the configuration from review.
    HiddenFromReview = "hidden-from-review", Either => Baseline,
        "The change marks them as generated, vendored or binary, or gives them a driver for `diff` or `merge`. It is a warning if the base has the same attribute.",
        "Remove the attribute. To accept it, from outside the change: `check --accept TOKEN`.";
    /// A baseline is locked, but no check uses it.
    LockUnused = "lock-unused", Warns => Baseline,
        "Its variant was removed or is experimental.",
        "Put the variant back, or remove its baseline.";
    /// The sources, headers or flags of an immutable variant changed.
    ImmutableChanged = "immutable-changed", Fails => Baseline,
        "A shared header or a flag was edited, or the reference itself.",
        "Undo the change, or make a new variant. To lock it anyway: `baseline --lock --accept-immutable`.";
    /// Two profiles were taken under different conditions.
    NotComparable = "not-comparable", Either => Baseline,
        "Another GPU model, tier, compiler, clock control, or other launches or metrics than in the baseline.",
        "Measure under the conditions of the baseline, or lock a new one.";
    /// The base revision of a variant cannot be measured beside the current one, so its baseline is used.
    BaseUnavailable = "base-unavailable", Warns => Inconclusive,
        "The variant does not exist at the base revision, or does not build, verify or run there.",
        "Nothing, if the variant is new. Otherwise fix the base revision.";
    /// Exact counters, or the types that it multiplies, show that the kernel does other work than its reference, or than declared.
    WorkChanged = "work-changed", Either => Baseline,
        "The kernel skips work, computes more, multiplies numbers of another precision, or the problem size changed.",
        "Fix the kernel, or `work` of the suite. If other work is intended, lock a new baseline.";
    /// The base, measured now, differs from its locked baseline.
    Drift = "drift", Warns => Inconclusive,
        "The machine, the driver or the toolchain changed since the baseline was locked.",
        "Compare driver, clocks and compiler with the baseline. If the new state is intended, lock the base again.";
    /// It is not known whether the GPU was disturbed during the measurement.
    GpuUnwatched = "gpu-unwatched", Warns => Inconclusive,
        "The driver's library NVML could not be loaded, or stopped reporting errors (Xid) during the run.",
        "Make `libnvidia-ml.so.1` available where the GPU is measured. If it stopped, look for `Xid` in the kernel's log (`dmesg`), and measure again.";
    /// The compiler reports that something costs performance. The number of such warnings is gated.
    PerformanceLoss = "performance-loss", Warns => Regressed,
        "For example, ptxas serializes `wgmma` instructions, or spills registers.",
        "Change the kernel so that the compiler does not have to. The metric is `performance_warnings`.";
    /// A kernel is in the current profile, but not in the baseline.
    KernelNew = "kernel-new", Either => Baseline,
        "The program launches an additional kernel, or `kernels` selects more.",
        "Lock a new baseline, or narrow `kernels`.";
    /// A kernel of the baseline is not in the current profile.
    KernelGone = "kernel-gone", Either => Baseline,
        "The program no longer launches it, or `kernels` no longer selects it.",
        "Put it back, or lock a new baseline.";
    /// A kernel with the same grid and block has another name.
    KernelRenamed = "kernel-renamed", Either => Baseline,
        "The function or its template arguments were renamed.",
        "If it is the same kernel, lock a new baseline.";
    /// A kernel is launched with another grid or block, other dynamic shared memory, or another share of the launches.
    LaunchChanged = "launch-changed", Either => Baseline,
        "The launch configuration or the problem size changed. Other shared memory alone is a warning.",
        "If it is intended, lock a new baseline.";
    /// The last day of a waiver is past.
    WaiverExpired = "waiver-expired", Warns => Usage,
        "The waiver's `expires` is before today (UTC).",
        "Remove the waiver, or set a later day.";
    /// A waiver covers no finding.
    WaiverUnused = "waiver-unused", Warns => Usage,
        "The regression was fixed, or the waiver names another variant or metric.",
        "Remove the waiver.";
    /// `env_pass` names a variable that, by its name, holds a credential.
    CredentialPassed = "credential-passed", Warns => Usage,
        "The programs under test are code of the change; they can read every variable that they get, and send it anywhere.",
        "Remove the name from `env_pass`. If a build needs it, fetch what it needs in an earlier step of the pipeline.";
    /// Measured processes do not report on their numbers, although those of the reference did.
    NumbersUnchecked = "numbers-unchecked", Either => Failed,
        "`{result}` was removed from `profile_args`, or the program no longer writes the file in profiled runs. `baseline --lock` only warns: checks then demand no more than the new baseline has.",
        "Make the program write its result after the measured launches.";
    /// The measured processes launch kernels that are not measured, and that the reference does not launch.
    OtherLaunches = "other-launches", Either => Baseline,
        "A new kernel that `kernels` does not select. Between the measured launches it may do a part of their work.",
        "Select it in `kernels`, or remove it. If it is intended, lock a new baseline.";
    /// After the last process of a variant its sources, inputs or program were not those that were built.
    SourcesChanged = "sources-changed", Fails => Failed,
        "The program writes its own inputs, or something else wrote to the checkout while the variant was checked and measured.",
        "Make sure that nothing writes to these files during the run, and measure again. A file that was changed and restored counts as changed.";
    /// A result or a rule of the run changed before it was used: a capture, a built program, the configuration, a baseline or a setting of git.
    AlteredDuringRun = "altered-during-run", Fails => Failed,
        "A program under test, or another process, wrote to it. A built program is compared before each process; sources, inputs and programs are compared again after the last process of their variant (`sources-changed`).",
        "Find out what writes there: run the build and the program by hand, and compare the files before and after.";
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
