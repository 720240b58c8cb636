//! One profiling run of ncu, and the judgement whether it measured what was asked.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Watched, watched};
use crate::build::Artifact;
use crate::config::{Config, Variant};
use crate::device::State;
use crate::finding::{Code, Error, Finding};
use crate::hash::sha256_hex;
use crate::process::{self, Ending, Invocation};
use crate::terms::{Phase, VariantId};
use crate::toolchain::{Ncu, Trouble, available_kernels, home};
use crate::verify::program_argv;
use ncu_report::{Recording, csv, report};

/// What one profiling run left.
#[derive(Clone, Debug)]
pub struct Capture {
    /// The report file, or the records of a lower tier.
    pub report_path: PathBuf,
    /// sha256 of the report.
    pub report_sha256: String,
    /// The CSV that ncu printed of its report.
    pub page: Option<Page>,
    /// Which metrics it measured.
    pub phase: Phase,
    /// The state of the GPU meanwhile, where the driver tells it.
    pub device: Option<State>,
    /// The argv of ncu, or of the program where ncu was not run.
    pub argv: Vec<String>,
    /// The report, decoded.
    pub report: Recording,
}

/// The CSV page of a report.
#[derive(Clone, Debug)]
pub struct Page {
    /// The file.
    pub path: PathBuf,
    /// Its sha256.
    pub sha256: String,
    /// What it says.
    pub recording: Recording,
}

/// A profiling run that is over, and whose report is still being printed as CSV and read. That
/// needs no GPU, so the next run need not wait for it.
#[derive(Debug)]
pub struct Pending {
    /// Which metrics it measured.
    pub phase: Phase,
    /// Time that the profiling run took.
    pub wall: Duration,
    reader: Option<JoinHandle<Result<Result<Capture, Finding>, Error>>>,
}

impl Drop for Pending {
    /// No program is left running behind a run that ended early.
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Pending {
    /// A run of a lower tier, which leaves nothing to wait for.
    pub(crate) fn of(capture: Capture, wall: Duration) -> Pending {
        Pending {
            phase: capture.phase,
            wall,
            reader: Some(std::thread::spawn(move || Ok(Ok(capture)))),
        }
    }

    /// Waits for the readers.
    ///
    /// # Errors
    /// [`Error`] where the machine failed; what cannot be read is a finding.
    pub fn finish(mut self) -> Result<Result<Capture, Finding>, Error> {
        match self.reader.take().map(JoinHandle::join) {
            Some(Ok(answer)) => answer,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Err(Error::Interrupted),
        }
    }
}

/// Profiles one artifact once, into files `<stem>.*` of a folder, and watches the GPU of that UUID
/// meanwhile.
///
/// # Errors
/// [`Error`] where the machine failed; whatever keeps the variant from being measured is a finding.
#[expect(
    clippy::too_many_arguments,
    reason = "each is one thing that the run needs"
)]
pub fn capture(
    config: &Config,
    ncu: &Ncu,
    variant: &Variant,
    artifact: &Artifact,
    phase: Phase,
    gpu: Option<&str>,
    env: &BTreeMap<String, String>,
    folder: &Path,
    stem: &str,
) -> Result<Result<Pending, Finding>, Error> {
    let path = |ending: &str| folder.join(format!("{stem}.{ending}"));
    let log = path("ncu.log");
    let program_log = path("program.log");
    let program = program_argv(
        variant,
        artifact,
        &variant.profile_args,
        &path("result.json"),
        variant.launches_needed(phase),
    );
    let mut env = env.clone();
    env.extend(variant.env.clone());
    env.extend(home(folder));
    let run = Invocation {
        argv: ncu.profile_argv(variant, phase, &folder.join(stem), &log, &program),
        dir: config.root.clone(),
        env: env.clone(),
        timeout: variant.profile.timeout,
        stdout: program_log.clone(),
        stderr: program_log.clone(),
    };
    let ran = watched(variant, &run, gpu, &path("argv"), "ncu")?;
    let Watched {
        finished,
        device,
        line,
    } = match ran {
        Ok(ran) => ran,
        Err(finding) => return Ok(Err(finding)),
    };
    let report_path = path("ncu-rep");
    let logs = Logs {
        ncu: read_text(&log),
        program: read_text(&program_log),
    };
    if let Some(finding) = judge(variant, finished.ending, &logs, &report_path, &line) {
        return Ok(Err(finding));
    }
    let csv_path = path("csv");
    let reader = Reader {
        variant: variant.id.clone(),
        counters: variant
            .metrics
            .iter()
            .filter(|metric| metric.phase == phase)
            .map(|metric| metric.counter.clone())
            .collect(),
        phase,
        device,
        argv: run.argv,
        import: Invocation {
            argv: ncu.csv_argv(&report_path),
            dir: config.root.clone(),
            env,
            timeout: variant.profile.timeout,
            stdout: csv_path.clone(),
            stderr: path("import.log"),
        },
        report_path,
        csv_path,
    };
    Ok(Ok(Pending {
        phase,
        wall: finished.wall,
        reader: Some(std::thread::spawn(move || reader.read())),
    }))
}

/// What it takes to print a report as CSV and to read both.
struct Reader {
    variant: VariantId,
    counters: Vec<String>,
    phase: Phase,
    device: Option<State>,
    argv: Vec<String>,
    import: Invocation,
    report_path: PathBuf,
    csv_path: PathBuf,
}

impl Reader {
    fn read(self) -> Result<Result<Capture, Finding>, Error> {
        let report_path = &self.report_path;
        let csv_path = &self.csv_path;
        let unreadable = |code, message: String| {
            Ok(Err(Finding::deny(
                code,
                &self.variant,
                message,
                format!(
                    "keep {} and report it: a new version of ncu may write what this version cannot read",
                    report_path.display()
                ),
            )))
        };
        let bytes = fs::read(report_path).map_err(Error::io("read", report_path))?;
        let report = match report::read(&bytes) {
            Ok(report) => report,
            Err(error) => {
                return unreadable(
                    Code::CaptureUnreadable,
                    format!("{}: {error}", report_path.display()),
                );
            }
        };
        let imported = self
            .import
            .run()
            .map_err(Error::io("run", &self.import.argv[0]))?;
        match imported.ending {
            Ending::Exited(0) => {}
            Ending::Interrupted => return Err(Error::Interrupted),
            ending => {
                return Ok(Err(Finding::deny(
                    Code::ProfilerFailed,
                    &self.variant,
                    format!("ncu could not print its own report: {ending}"),
                    format!("run it by hand: {}", process::shell_line(&self.import.argv)),
                )
                .detail(process::tail(&self.import.stderr, 12))));
            }
        }
        let csv_bytes = fs::read(csv_path).map_err(Error::io("read", csv_path))?;
        let csv = match csv::read(&csv_bytes) {
            Ok(csv) => csv,
            Err(error) => {
                return unreadable(
                    Code::CaptureUnreadable,
                    format!("{}: {error}", csv_path.display()),
                );
            }
        };
        let counters: Vec<&str> = self.counters.iter().map(String::as_str).collect();
        if let Err(disagreement) = csv::agree(&report, &csv, &counters) {
            return unreadable(
                Code::ReadersDisagree,
                format!(
                    "the report and ncu's CSV of it differ by more than rounding: {disagreement}"
                ),
            );
        }
        Ok(Ok(Capture {
            report_sha256: sha256_hex(&bytes),
            report_path: self.report_path,
            page: Some(Page {
                path: self.csv_path,
                sha256: sha256_hex(&csv_bytes),
                recording: csv,
            }),
            phase: self.phase,
            device: self.device,
            argv: self.argv,
            report,
        }))
    }
}

struct Logs {
    ncu: String,
    program: String,
}

/// Why a run of ncu is no measurement, judged from what it printed and left: its exit status is 0
/// for an unknown metric and for no kernel at all.
fn judge(
    variant: &Variant,
    ending: Ending,
    logs: &Logs,
    report: &Path,
    line: &str,
) -> Option<Finding> {
    let deny = |code, message: String, next: String| {
        let text = format!("{}{}", logs.program, logs.ncu);
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        Some(
            Finding::deny(code, &variant.id, message, next)
                .detail(lines[lines.len().saturating_sub(12)..].join("\n")),
        )
    };
    if ending == Ending::TimedOut {
        return deny(
            Code::TimedOut,
            format!(
                "profiling passed its time limit of {} s; ncu and the program were killed",
                variant.profile.timeout.as_secs_f64()
            ),
            format!("raise `profile.timeout_s` if it is only slow, or run it by hand: {line}"),
        );
    }
    // ncu reports before its log file is open, or writes to standard output: both places count,
    // until the program runs, which could print the same.
    let started = logs.ncu.contains("==PROF== Connected to process");
    let before = || Trouble::in_log(&logs.program).filter(|_| !started);
    match Trouble::in_log(&logs.ncu).or_else(before) {
        Some(
            trouble @ (Trouble::NoPermission
            | Trouble::Busy
            | Trouble::Locked
            | Trouble::NotSupported),
        ) => {
            let code = match trouble {
                Trouble::NoPermission => Code::NoPermission,
                Trouble::Busy | Trouble::Locked => Code::ProfilerBusy,
                _ => Code::ProfilerUnsupported,
            };
            return deny(code, trouble.words().to_owned(), trouble.next().to_owned());
        }
        Some(Trouble::NoKernels) => {
            let seen = available_kernels(&format!("{}\n{}", logs.ncu, logs.program));
            let filter = variant.kernels.as_deref().unwrap_or("(none)");
            let seen = if seen.is_empty() {
                "no kernel at all".to_owned()
            } else {
                seen.join(", ")
            };
            return deny(
                Code::NoKernelsProfiled,
                format!(
                    "ncu profiled no kernel: the filter is {filter}, the program launched {seen}"
                ),
                "mend `kernels`, `skip` or the NVTX ranges of the variant".to_owned(),
            );
        }
        None => {}
    }
    match ending {
        Ending::Exited(0) if report.is_file() => None,
        Ending::Exited(0) => deny(
            Code::ProfilerFailed,
            "ncu exited 0 and left no report".to_owned(),
            format!("run it by hand: {line}"),
        ),
        Ending::Signalled(_) => deny(
            Code::Crashed,
            format!("ncu ended with {ending}"),
            format!("run it by hand: {line}"),
        ),
        _ if logs
            .ncu
            .contains("==ERROR== The application returned an error code") =>
        {
            if vanished(&logs.ncu) {
                deny(
                    Code::Crashed,
                    format!("the program crashed under ncu ({ending}): it never disconnected"),
                    format!("run it by hand: {line}"),
                )
            } else {
                deny(
                    Code::ProgramFailed,
                    format!(
                        "the program failed under ncu ({ending}), though it passed when it was verified"
                    ),
                    format!("run it by hand: {line}"),
                )
            }
        }
        _ => deny(
            Code::ProfilerFailed,
            format!("ncu ended with {ending}"),
            format!("run it by hand: {line}"),
        ),
    }
}

/// Why a program that ran without ncu is no measurement, by how it ended.
pub(crate) fn failure_of_program(
    variant: &Variant,
    ending: Ending,
    when: &str,
    line: &str,
) -> Option<Finding> {
    let (code, message, next) = match ending {
        Ending::Exited(0) => return None,
        Ending::TimedOut => (
            Code::TimedOut,
            format!(
                "the program passed its time limit of {} s {when}, and was killed",
                variant.profile.timeout.as_secs_f64()
            ),
            format!("raise `profile.timeout_s` if it is only slow, or run it by hand: {line}"),
        ),
        Ending::Signalled(_) => (
            Code::Crashed,
            format!("the program crashed {when} ({ending})"),
            format!("run it by hand: {line}"),
        ),
        _ => (
            Code::ProgramFailed,
            format!("the program failed {when} ({ending}), though it passed when it was verified"),
            format!("run it by hand: {line}"),
        ),
    };
    Some(Finding::deny(code, &variant.id, message, next))
}

/// Whether a process that ncu connected to ended without saying so: a signal took it.
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

fn read_text(path: &Path) -> String {
    fs::read(path)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;

    fn judged(ending: Ending, log: &str, program: &str, report: &str) -> Option<Finding> {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.toml");
        let text = "[metric.duration]\ndirection = \"lower\"\ntolerance = { absolute = 1.0 }\n\
                    [suite.s.variant.v]\nrun = [\"true\"]\nkernels = \"no_such_kernel\"\n";
        std::fs::write(&config, text).unwrap();
        let config = Config::load(&config).unwrap();
        let variant = config.variants().next().unwrap();
        let logs = Logs {
            ncu: log.to_owned(),
            program: program.to_owned(),
        };
        judge(variant, ending, &logs, Path::new(report), "ncu ...")
    }

    const LEFT_A_REPORT: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/ncu/four_metrics.ncu-rep"
    );

    #[test]
    fn each_way_of_not_measuring_is_a_finding_of_its_own() {
        const NO_PERMISSION: &str = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access \
                                     NVIDIA GPU Performance Counters on the target device 0.";
        const BUSY: &str = "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no \
                            other tool (like DCGM) is concurrently collecting profiling data.";
        let cases: [(Ending, &str, Code); 10] = [
            (
                Ending::Exited(11),
                include_str!("../../tests/data/ncu_logs/crashes.log"),
                Code::Crashed,
            ),
            (
                Ending::Exited(7),
                include_str!("../../tests/data/ncu_logs/fails.log"),
                Code::ProgramFailed,
            ),
            (
                Ending::TimedOut,
                include_str!("../../tests/data/ncu_logs/hangs.log"),
                Code::TimedOut,
            ),
            (
                Ending::Exited(0),
                include_str!("../../tests/data/ncu_logs/launches_nothing.log"),
                Code::NoKernelsProfiled,
            ),
            (
                Ending::Exited(0),
                include_str!("../../tests/data/ncu_logs/filter_matches_nothing.log"),
                Code::NoKernelsProfiled,
            ),
            (Ending::Exited(1), NO_PERMISSION, Code::NoPermission),
            (Ending::Exited(9), BUSY, Code::ProfilerBusy),
            (
                Ending::Exited(1),
                "==ERROR== Failed to initialize the profiler: LibraryNotLoaded",
                Code::ProfilerUnsupported,
            ),
            (Ending::Signalled(9), "", Code::Crashed),
            (Ending::Exited(3), "", Code::ProfilerFailed),
        ];
        for (ending, log, code) in cases {
            let finding = judged(ending, log, "", LEFT_A_REPORT).unwrap();
            assert_eq!(
                (finding.code, finding.severity),
                (code, Severity::Deny),
                "{log}"
            );
            assert!(!finding.next.is_empty());
        }
    }

    #[test]
    fn a_filter_that_matches_nothing_is_told_with_the_kernels_there_were() {
        let log = include_str!("../../tests/data/ncu_logs/filter_matches_nothing.log");
        let finding = judged(Ending::Exited(0), log, "", LEFT_A_REPORT).unwrap();
        assert!(
            finding.message.contains("no_such_kernel") && finding.message.contains("reduce_kernel")
        );
    }

    #[test]
    fn what_the_program_prints_does_not_turn_a_measurement_into_a_failure() {
        let program = "warning: ERR_NVGPUCTRPERM was seen\nNo kernels were profiled\n";
        assert_eq!(
            judged(Ending::Exited(0), "==PROF== fine\n", program, LEFT_A_REPORT),
            None
        );
    }

    #[test]
    fn an_exit_status_of_zero_without_a_report_is_no_measurement() {
        let finding = judged(Ending::Exited(0), "", "", "/nonexistent.ncu-rep").unwrap();
        assert_eq!(finding.code, Code::ProfilerFailed);
    }
}
