//! Hardware counters through Nsight Compute (`ncu`): one process profiles, a second prints the
//! report as CSV, and both readers must agree.

mod log;
mod tool;

use std::path::{Path, PathBuf};

use ncu_report::{ReadError, agree, csv, report};

use super::capture::{Capture, Pending};
use super::session::{Profiler, Ran, Session};
use crate::disk;
use crate::files::{most, read_regular_up_to, readable_text};
use crate::finding::{Code, Error, Finding, Stop};
use crate::process::{self, Ending, Invocation};
use crate::profile::FileHash;
use crate::terms::VariantId;
use log::{Logs, judge};

pub use log::Trouble;
pub(crate) use log::{NCU_LOCK, judge_printed};
pub use tool::Ncu;
pub(crate) use tool::{home, other_selection, reports};

impl Profiler for Ncu {
    fn process_name(&self) -> &'static str {
        "ncu"
    }

    fn invocation(&self, session: &Session<'_>) -> Result<Invocation, Stop> {
        let (variant, phase) = (session.variant, session.phase);
        let program = session.program_argv();
        let stem = session.folder.join(session.stem);
        let log = session.path("ncu.log");
        let argv = self.profile_argv(variant, phase, &stem, &log, &program);
        let mut invocation = session.invocation(argv);
        invocation.env.extend(home(session.folder));
        Ok(invocation)
    }

    fn prepare(&self, session: &Session<'_>) -> Result<(), Error> {
        let sections = session.path("sections");
        disk::create_dir_all(&sections).map_err(Error::io("create", &sections))
    }

    fn first_launch(&self, session: &Session<'_>) -> Option<PathBuf> {
        Some(session.path("ncu.log"))
    }

    fn finish(&self, session: &Session<'_>, ran: Ran) -> Result<Pending, Stop> {
        let variant = session.variant;
        // It stays where somebody put a file into it: the next session clears it.
        let _ = disk::remove_dir(session.path("sections"));
        let mut reports = reports(&session.folder.join(session.stem));
        let report_path = reports.pop().unwrap_or(session.path("ncu-rep"));
        let logs = Logs {
            ncu: readable_text(&session.path("ncu.log")),
            program: readable_text(&ran.invocation.stdout),
        };
        let ending = ran.finished.ending;
        if let Some(finding) = judge(variant, ending, &logs, &report_path, &ran.line) {
            return Err(finding.into());
        }
        if let Some(other) = reports.pop() {
            let message = format!(
                "ncu writes one report, and two were written while the program ran: {} and {}",
                other.display(),
                report_path.display()
            );
            return Err(Finding::of(Code::AlteredDuringRun, &variant.id, message).into());
        }
        // Now, before another program runs that could write to it.
        let bytes = read_regular_up_to(&report_path, most::BINARY)
            .map_err(Error::io("read", &report_path))?;
        // A variant may have a locale of its own, and ncu prints numbers by it.
        let mut env = ran.invocation.env.clone();
        env.insert("LC_ALL".to_owned(), "C".to_owned());
        let reader = Reader {
            variant: variant.id.clone(),
            counters: variant.counters_of(session.phase),
            import: Invocation {
                argv: self.csv_argv(&report_path),
                stdout: session.path("csv"),
                stderr: session.path("import.log"),
                dir: ran.invocation.dir.clone(),
                env,
                timeout: ran.invocation.timeout,
            },
            bytes,
            report_path,
            ran,
        };
        let times = reader.ran.times;
        Ok(Pending::reading(session.phase, times, move || {
            reader.read()
        }))
    }
}

/// What it takes to print a report as CSV and to read both.
struct Reader {
    variant: VariantId,
    counters: Vec<String>,
    ran: Ran,
    import: Invocation,
    /// The report.
    bytes: Vec<u8>,
    report_path: PathBuf,
}

impl Reader {
    fn read(self) -> Result<Capture, Stop> {
        let report_path = &self.report_path;
        let bytes = &self.bytes;
        let report = report::read(bytes).map_err(|error| self.unreadable(report_path, &error))?;
        self.print_csv()?;
        let csv_path = &self.import.stdout;
        let csv_bytes =
            read_regular_up_to(csv_path, most::BINARY).map_err(Error::io("read", csv_path))?;
        let csv = csv::read(&csv_bytes).map_err(|error| self.unreadable(csv_path, &error))?;
        let counters: Vec<&str> = self.counters.iter().map(String::as_str).collect();
        agree(&report, &csv, &counters).map_err(|disagreement| {
            let message = format!(
                "the report and ncu's CSV of it differ by more than rounding: {disagreement}"
            );
            self.kept(Code::ReadersDisagree, message)
        })?;
        let mut capture = self.ran.capture(&self.report_path, &self.bytes, report);
        capture.record.csv = Some(FileHash::of(&self.import.stdout, &csv_bytes));
        capture.page = Some(csv);
        Ok(capture)
    }

    /// Has ncu print the report as CSV.
    fn print_csv(&self) -> Result<(), Stop> {
        let import = &self.import;
        let imported = import
            .run_beside()
            .map_err(Error::io("run", &import.argv[0]))?;
        match imported.ending {
            Ending::Exited(0) => Ok(()),
            Ending::Interrupted => Err(Error::Interrupted.into()),
            ending => Err(Finding::deny(
                Code::ProfilerFailed,
                &self.variant,
                format!("ncu could not print its own report: {ending}"),
                format!("run it by hand: {}", process::shell_line(&import.argv)),
            )
            .detail(process::tail(&import.stderr, 12))
            .into()),
        }
    }

    fn unreadable(&self, path: &Path, error: &ReadError) -> Finding {
        let message = format!("{}: {error}", path.display());
        self.kept(Code::CaptureUnreadable, message)
    }

    /// A finding about a report that is worth keeping.
    fn kept(&self, code: Code, message: String) -> Finding {
        let next = format!(
            "keep {} and report it: a new version of ncu may write what this version cannot read",
            self.report_path.display()
        );
        Finding::deny(code, &self.variant, message, next)
    }
}
