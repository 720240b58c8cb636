//! What ncu's messages mean, and whether a run of it measured what was asked. Its exit status is not
//! enough: it is 0 for an unknown metric and for no kernel at all.

use std::path::Path;

use crate::config::Variant;
use crate::disk;
use crate::finding::{Code, Finding};
use crate::process::{Ending, last_lines};
use crate::profiler::session::{none_of, run_or_wait};

/// The file in the temporary folder by which several ncu take turns. It stays when they are over.
pub(crate) const NCU_LOCK: &str = "nsight-compute-lock";

/// What went wrong by ncu's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// `ERR_NVGPUCTRPERM`: the user has no right to the counters.
    NoPermission,
    /// Another profiler uses the counters.
    Busy,
    /// The filters matched no kernel.
    NoKernels,
    /// The file by which several ncu take turns cannot be opened: it is another user's.
    Locked,
    /// The profiler's libraries do not work here, as seen on some virtual GPUs.
    NotSupported,
}

impl Trouble {
    /// A description of it.
    pub fn words(self) -> &'static str {
        match self {
            Trouble::NoPermission => "ncu may not read the GPU's counters (ERR_NVGPUCTRPERM)",
            Trouble::Busy => "another profiler uses the counters of this GPU",
            Trouble::Locked => {
                "ncu cannot open the file by which several ncu take turns (InterprocessLockFailed): it is another user's"
            }
            Trouble::NoKernels => "ncu profiled no kernel",
            Trouble::NotSupported => {
                "ncu's libraries do not work on this machine (LibraryNotLoaded), as on some virtual GPUs"
            }
        }
    }

    /// The code of a finding about it, which has the next step.
    pub fn code(self) -> Code {
        match self {
            Trouble::NoPermission => Code::NoPermission,
            Trouble::Busy | Trouble::Locked => Code::ProfilerBusy,
            Trouble::NoKernels => Code::KernelMissing,
            Trouble::NotSupported => Code::ProfilerUnsupported,
        }
    }

    /// What went wrong by a log of ncu, or by the output that it shares with the program.
    pub fn in_log(log: &str) -> Option<Trouble> {
        const SIGNS: &[(&str, Trouble)] = &[
            ("ERR_NVGPUCTRPERM", Trouble::NoPermission),
            ("because a driver resource was unavailable", Trouble::Busy),
            ("InterprocessLockFailed", Trouble::Locked),
            (NCU_LOCK, Trouble::Locked),
            ("No kernels were profiled", Trouble::NoKernels),
            ("LibraryNotLoaded", Trouble::NotSupported),
        ];
        SIGNS
            .iter()
            .find(|(sign, _)| own_lines(log).any(|line| line.contains(sign)))
            .map(|(_, trouble)| *trouble)
    }
}

/// The errors and warnings of ncu. Only they count: the program may print anything.
fn own_lines(log: &str) -> impl Iterator<Item = &str> {
    log.lines()
        .filter(|line| line.starts_with("==ERROR==") || line.starts_with("==WARNING=="))
}

/// The kernels that ncu saw and did not profile, where its log lists them.
pub(crate) fn available_kernels(log: &str) -> Vec<String> {
    log.lines()
        .skip_while(|line| !line.starts_with("Available Kernels:"))
        .skip(1)
        .map_while(|line| {
            let (number, name) = line.trim().split_once(". ")?;
            number.parse::<u32>().ok()?;
            Some(name.to_owned())
        })
        .collect()
}

/// What ncu and the program printed.
pub(super) struct Logs {
    pub ncu: String,
    pub program: String,
}

/// Why a run of ncu measured nothing, judged by what it printed and left.
pub(super) fn judge(
    variant: &Variant,
    ending: Ending,
    logs: &Logs,
    report: &Path,
    line: &str,
) -> Option<Finding> {
    let next = run_or_wait(ending, line);
    let (code, message, next) = if ending == Ending::TimedOut {
        let limit = variant.profile.timeout.as_secs_f64();
        let message = format!(
            "profiling exceeded its time limit of {limit} s; ncu and the program were killed"
        );
        (Code::TimedOut, message, next)
    } else if let Some(trouble) = logs.trouble() {
        let (code, message) = (trouble.code(), refused(variant, trouble, logs));
        (code, message, code.next_step_of(Some(&variant.id)))
    } else {
        let (code, message) = failed(ending, &logs.ncu, report)?;
        (code, message, next)
    };
    let text = format!("{}{}", logs.program, logs.ncu);
    Some(Finding::deny(code, &variant.id, message, next).detail(last_lines(&text, 12)))
}

impl Logs {
    /// ncu reports before its log file is open, or writes to standard output: both places count,
    /// until the program runs, which could print the same.
    fn trouble(&self) -> Option<Trouble> {
        let started = self.ncu.contains("==PROF== Connected to process");
        let before = || Trouble::in_log(&self.program).filter(|_| !started);
        Trouble::in_log(&self.ncu).or_else(before)
    }
}

/// The message about what ncu itself complained about.
fn refused(variant: &Variant, trouble: Trouble, logs: &Logs) -> String {
    if trouble != Trouble::NoKernels {
        return trouble.words().to_owned();
    }
    let seen = available_kernels(&format!("{}\n{}", logs.ncu, logs.program));
    format!("ncu profiled no kernel: {}", none_of(variant, &seen))
}

/// Code and message of a run without a known trouble; `None` where it left a report.
fn failed(ending: Ending, log: &str, report: &Path) -> Option<(Code, String)> {
    match (ending, complaint(log)) {
        (Ending::Signalled(_), _) => {
            Some((Code::ProgramFailed, format!("ncu ended with {ending}")))
        }
        (Ending::Exited(0), None) if disk::is_file(report) => None,
        (Ending::Exited(0), None) => Some((
            Code::ProfilerFailed,
            "ncu exited 0, but it left no report".to_owned(),
        )),
        (_, Some((code, words))) => Some((code, format!("{words} ({ending})"))),
        (_, None) => Some((Code::ProfilerFailed, format!("ncu ended with {ending}"))),
    }
}

/// Code and message of what ncu says went wrong in a run, also where values are left of it.
fn complaint(log: &str) -> Option<(Code, String)> {
    let returned_error = |line: &str| line.contains("The application returned an error code");
    if own_lines(log).any(returned_error) {
        let how = match vanished(log) {
            true => "the program crashed under ncu: it never disconnected",
            false => "the program failed under ncu",
        };
        return Some((Code::ProgramFailed, how.to_owned()));
    }
    let error = own_lines(log).find_map(|line| line.strip_prefix("==ERROR== "))?;
    let words = format!("ncu reported an error: {}", error.trim_end());
    Some((Code::ProfilerFailed, words))
}

/// Why the launches that ncu printed beside these messages do not count, with the next step: the same
/// rule as for a run of this tool.
pub(crate) fn judge_printed(messages: &[String]) -> Option<String> {
    let log = messages.join("\n");
    let trouble = Trouble::in_log(&log).filter(|trouble| *trouble != Trouble::NoKernels);
    let (words, next) = match trouble {
        Some(trouble) => (
            trouble.words().to_owned(),
            trouble.code().next_step_of(None),
        ),
        None => (complaint(&log)?.1, "profile again".to_owned()),
    };
    let errors = messages
        .iter()
        .filter(|line| !line.contains("==WARNING== Note"));
    let errors: Vec<&str> = errors.take(4).map(String::as_str).collect();
    Some(format!("{words}; its lines: {}; {next}", errors.join(" ")))
}

/// Whether a process that ncu connected to never disconnected: a signal ended it.
fn vanished(log: &str) -> bool {
    let processes = |sign: &str| -> Vec<String> {
        log.lines()
            .filter_map(|line| line.strip_prefix("==PROF== ")?.strip_prefix(sign))
            .filter_map(|rest| rest.split_whitespace().next().map(str::to_owned))
            .collect()
    };
    let left = processes("Disconnected from process ");
    processes("Connected to process ")
        .iter()
        .any(|process| !left.contains(process))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::variant;
    use crate::finding::Severity;

    fn judged(ending: Ending, log: &str, program: &str, report: &str) -> Option<Finding> {
        let text = "[suite.s.variant.v]\nrun = [\"true\"]\nkernels = \"no_such_kernel\"\n";
        let variant = variant(text);
        let logs = Logs {
            ncu: log.to_owned(),
            program: program.to_owned(),
        };
        judge(&variant, ending, &logs, Path::new(report), "ncu ...")
    }

    const LEFT_A_REPORT: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/ncu/four_metrics.ncu-rep"
    );

    const NO_MATCH: &str = include_str!("../../../tests/data/ncu_logs/filter_matches_nothing.log");

    #[test]
    fn each_way_of_not_measuring_is_a_finding_of_its_own() {
        const NO_PERMISSION: &str = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access \
                                     NVIDIA GPU Performance Counters on the target device 0.";
        const BUSY: &str = "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no \
                            other tool (like DCGM) is concurrently collecting profiling data.";
        let crashes = include_str!("../../../tests/data/ncu_logs/crashes.log");
        let fails = include_str!("../../../tests/data/ncu_logs/fails.log");
        let hangs = include_str!("../../../tests/data/ncu_logs/hangs.log");
        let nothing = include_str!("../../../tests/data/ncu_logs/launches_nothing.log");
        let unsupported = "==ERROR== Failed to initialize the profiler: LibraryNotLoaded";
        for (ending, log, code) in [
            (Ending::Exited(11), crashes, Code::ProgramFailed),
            (Ending::Exited(7), fails, Code::ProgramFailed),
            (Ending::TimedOut, hangs, Code::TimedOut),
            (Ending::Exited(0), nothing, Code::KernelMissing),
            (Ending::Exited(0), NO_MATCH, Code::KernelMissing),
            (Ending::Exited(1), NO_PERMISSION, Code::NoPermission),
            (Ending::Exited(9), BUSY, Code::ProfilerBusy),
            (Ending::Exited(1), unsupported, Code::ProfilerUnsupported),
            (Ending::Signalled(9), "", Code::ProgramFailed),
            (Ending::Exited(3), "", Code::ProfilerFailed),
        ] {
            let finding = judged(ending, log, "", LEFT_A_REPORT).unwrap();
            assert_eq!(finding.code, code, "{log}");
            assert_eq!(finding.severity, Severity::Deny, "{log}");
            assert!(!finding.next.is_empty());
        }
    }

    #[test]
    fn a_filter_that_matches_nothing_is_reported_with_the_launched_kernels() {
        let finding = judged(Ending::Exited(0), NO_MATCH, "", LEFT_A_REPORT).unwrap();
        for kernel in ["no_such_kernel", "reduce_kernel"] {
            assert!(finding.message.contains(kernel), "{kernel}");
        }
    }

    #[test]
    fn what_the_program_prints_does_not_turn_a_measurement_into_a_failure() {
        let program = "warning: ERR_NVGPUCTRPERM was seen\nNo kernels were profiled\n";
        let found = judged(Ending::Exited(0), "==PROF== fine\n", program, LEFT_A_REPORT);
        assert_eq!(found, None);
    }

    #[test]
    fn an_exit_status_of_zero_without_a_report_is_a_failure() {
        let finding = judged(Ending::Exited(0), "", "", "/nonexistent.ncu-rep").unwrap();
        assert_eq!(finding.code, Code::ProfilerFailed);
    }

    #[test]
    fn a_log_without_profiled_kernels_names_those_that_were_launched() {
        let log = "\
==WARNING== Note: Running with unmodified GPU clocks. If not controlled otherwise, profiling results may be inconsistent.
==PROF== Connected to process 1396 (/opt/sample/graph)
==PROF== Disconnected from process 1396
==WARNING== No kernels were profiled.
Available Kernels:
1. k1
2. k2
";
        assert_eq!(Trouble::in_log(log), Some(Trouble::NoKernels));
        assert_eq!(available_kernels(log), ["k1", "k2"]);
    }

    #[test]
    fn the_lock_of_another_users_ncu_has_its_own_trouble_and_a_line_of_the_program_has_none() {
        let log = "==ERROR== Failed to open/create lock file /tmp/nsight-compute-lock. Please check that \
                   this process has write permissions on this file.\n\
                   ==ERROR== Failed to prepare kernel for profiling\n";
        assert_eq!(Trouble::in_log(log), Some(Trouble::Locked));
        let of_program = "my log: ERR_NVGPUCTRPERM was seen yesterday\n";
        assert_eq!(Trouble::in_log(of_program), None);
    }
}
