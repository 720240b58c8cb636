//! The last resort where neither counters nor kernel times can be measured: the times that a
//! program takes itself with CUDA events around its launches, from its result file.

use std::fs;

use ncu_report::Launch;

use super::session::failure_of_program;
use super::{Capture, Pending, Profiler, Ran, Session};
use crate::capture::event_times;
use crate::files::{read_regular, write_atomically};
use crate::finding::{Code, Error, Finding, Stop};
use crate::hash::sha256_hex;
use crate::process::{self, Invocation};
use crate::terms::{Phase, Tier};

/// Runs a program with its `time_args`.
#[derive(Debug)]
pub struct EventTimes;

impl Profiler for EventTimes {
    fn tier(&self) -> Tier {
        Tier::EventTimes
    }

    fn process_name(&self) -> &'static str {
        "the program"
    }

    fn invocation(&self, session: &Session<'_>) -> Result<Invocation, Stop> {
        let variant = session.variant;
        let argv = session.program(&variant.time_args, variant.launches(Phase::Timing));
        Ok(session.invocation(argv))
    }

    fn clear(&self, session: &Session<'_>) -> Result<(), Error> {
        let result = session.path("result.json");
        if result.exists() {
            fs::remove_file(&result).map_err(Error::io("clear", &result))?;
        }
        Ok(())
    }

    fn finish(&self, session: &Session<'_>, ran: Ran) -> Result<Pending, Stop> {
        let (variant, gpu, line) = (session.variant, session.gpu, &ran.line);
        let when = "while it timed itself";
        if let Some(finding) = failure_of_program(variant, ran.finished.ending, when, line) {
            let log = process::tail(&ran.invocation.stdout, 12);
            return Err(finding.detail(log).into());
        }
        let unreadable = |why: String| {
            Finding::deny(
                Code::ResultUnreadable,
                &variant.id,
                format!("the program tells no times: {why}"),
                format!(
                    "`time_args` must have it write JSON with `kernel` and `times_us` to {{result}}; run it by hand: {line}"
                ),
            )
        };
        let result = session.path("result.json");
        let bytes = read_regular(&result)
            .map_err(|error| unreadable(format!("{}: {error}", result.display())))?;
        let content = event_times::content(&gpu.name, &gpu.compute_capability, &bytes);
        let report = event_times::read(&content).map_err(|error| unreadable(error.to_string()))?;
        let filter = variant.kernel_filter();
        let meant = |launch: &Launch| filter.matches(&launch.kernel.function);
        if !report.launches.iter().any(meant) {
            return Err(unreadable("none is of a kernel that `kernels` means".to_owned()).into());
        }
        let report_path = session.path("times");
        write_atomically(&report_path, &content).map_err(Error::io("write", &report_path))?;
        let capture = Capture {
            report_sha256: sha256_hex(&content),
            report_path,
            page: None,
            phase: Phase::Timing,
            device: ran.device,
            argv: ran.invocation.argv,
            report,
        };
        Ok(Pending::of(capture, ran.finished.wall))
    }
}
