//! The lowest tier that runs anything, for where neither counters nor kernel times can be measured:
//! the times that a program takes itself with CUDA events around its launches, from its result file.

use ncu_report::Launch;

use super::capture::Pending;
use super::session::{Profiler, Ran, Session};
use crate::capture::event_times;
use crate::config::Variant;
use crate::files::read_regular;
use crate::finding::{Code, Finding, Stop};
use crate::process::Invocation;
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

    fn further<'v>(&self, variant: &'v Variant) -> (&'v [String], bool) {
        (&variant.time_args, true)
    }

    fn finish(&self, session: &Session<'_>, ran: Ran) -> Result<Pending, Stop> {
        let (variant, gpu) = (session.variant, session.gpu);
        ran.succeeded(variant, "while it timed itself")?;
        let unreadable = |why: String| {
            Finding::deny(
                Code::ProgramFailed,
                &variant.id,
                format!("the program reports no usable times: {why}"),
                format!(
                    "`time_args` must make it write JSON with `kernel` and `times_us` to {{result}}; run it by hand: {}",
                    ran.line
                ),
            )
        };
        let result = session.result();
        let bytes = read_regular(&result)
            .map_err(|error| unreadable(format!("{}: {error}", result.display())))?;
        let content = event_times::content(&gpu.name, &gpu.compute_capability, &bytes);
        let report = event_times::read(&content).map_err(|error| unreadable(error.to_string()))?;
        let filter = variant.kernel_filter();
        let selected = |launch: &Launch| filter.matches(&launch.kernel.function);
        if !report.launches.iter().any(selected) {
            return Err(unreadable("none is of a kernel that `kernels` selects".to_owned()).into());
        }
        let times = ran.times;
        let capture = ran.keep(session, session.path("times"), &content, report)?;
        Ok(Pending::of(capture, times))
    }
}
