//! A program that runs while the GPU is watched.

use std::fs;
use std::path::Path;

use crate::config::Variant;
use crate::device::{State, Watcher};
use crate::finding::{Code, Error, Finding};
use crate::process::{self, Ending, Finished, Invocation};

/// How a program ran, and what the GPU said of itself meanwhile.
pub(crate) struct Watched {
    pub finished: Finished,
    /// `None` where NVML does not tell.
    pub device: Option<State>,
    /// The command, as it can be pasted into a shell.
    pub line: String,
}

/// Notes the command in `argv_path` and runs it, watching the GPU of that UUID, if it is known.
///
/// # Errors
/// [`Error::Io`]; [`Error::Interrupted`]. A program that cannot be started is a finding, in which
/// `what` is its name for people.
pub(crate) fn watched(
    variant: &Variant,
    run: &Invocation,
    gpu_uuid: Option<&str>,
    argv_path: &Path,
    what: &str,
) -> Result<Result<Watched, Finding>, Error> {
    let line = process::shell_line(&run.argv);
    fs::write(argv_path, format!("{line}\n")).map_err(Error::io("write", argv_path))?;
    // Before the program starts: who is on the GPU now is somebody else.
    let watcher = gpu_uuid.and_then(|uuid| Watcher::start(uuid).ok());
    let ended = run.run();
    let device = watcher.map(Watcher::stop);
    Ok(match ended {
        Ok(finished) if finished.ending == Ending::Interrupted => return Err(Error::Interrupted),
        Ok(finished) => Ok(Watched {
            finished,
            device,
            line,
        }),
        Err(error) => Err(Finding::deny(
            Code::NotStarted,
            &variant.id,
            format!("{what} could not be started: {error}"),
            format!("run it by hand: {line}"),
        )),
    })
}
