//! Runs the command of a build.

use std::time::Duration;

use crate::config::Variant;
use crate::files::read_regular;
use crate::finding::{Code, Error, Finding, Stop};
use crate::process::{self, Ending, Invocation};

/// Longest that a build may take.
pub(super) const BUILD_TIMEOUT: Duration = Duration::from_secs(3600);

/// Runs a build. `by_hand` is the command that people can run to see the same.
pub(super) fn run_build(
    variant: &Variant,
    run: &Invocation,
    by_hand: &[String],
) -> Result<(), Stop> {
    let line = process::shell_line(by_hand);
    let failed = |message: String, next: String| {
        Finding::deny(Code::BuildFailed, &variant.id, message, next)
    };
    let finished = run.run().map_err(|error| {
        failed(
            format!("the build could not be started: {error}"),
            format!("run it by hand: {line}"),
        )
    })?;
    match finished.ending {
        Ending::Exited(0) => Ok(()),
        Ending::Interrupted => Err(Error::Interrupted.into()),
        ending => {
            let log = read_regular(&run.stdout).unwrap_or_default();
            Err(failed(
                format!("the build ended with {ending}"),
                format!("fix the source, or run it by hand: {line}"),
            )
            .detail(String::from_utf8_lossy(&log))
            .into())
        }
    }
}
