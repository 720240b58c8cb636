//! One process that measures: started, watched and ended in the same way by every profiler.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Pending, Profiler};
use crate::build::{Artifact, program_argv};
use crate::config::{Config, Variant};
use crate::device::{Gpu, State, Watcher};
use crate::finding::{Code, Error, Finding, Stop};
use crate::process::{self, Ending, Finished, Invocation};
use crate::terms::Phase;

/// What one process measures, and where its files go.
#[derive(Clone, Copy, Debug)]
pub struct Session<'a> {
    /// The project.
    pub config: &'a Config,
    /// The variant.
    pub variant: &'a Variant,
    /// Its program.
    pub artifact: &'a Artifact,
    /// Which metrics are measured.
    pub phase: Phase,
    /// The GPU that is watched meanwhile.
    pub gpu: &'a Gpu,
    /// Variables added to the environment, such as the GPU to use.
    pub env: &'a BTreeMap<String, String>,
    /// The folder of the files.
    pub folder: &'a Path,
    /// How their names begin: `capture-1`, `counting`.
    pub stem: &'a str,
}

/// How a process ended.
#[derive(Debug)]
pub struct Ran {
    /// The process that was run.
    pub invocation: Invocation,
    /// How it ended, and after how long.
    pub finished: Finished,
    /// The state of the GPU meanwhile; `None` where NVML does not report it.
    pub device: Option<State>,
    /// The command, as it can be pasted into a shell.
    pub line: String,
}

impl Session<'_> {
    /// The file of this session with an ending.
    pub fn path(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}.{ending}", self.stem))
    }

    /// The program's argv with further arguments.
    pub(super) fn program(&self, further: &[String], launches: u32) -> Vec<String> {
        let result = self.path("result.json");
        program_argv(self.variant, self.artifact, further, &result, launches)
    }

    /// A process of this session with its output in one file.
    pub(super) fn invocation(&self, argv: Vec<String>) -> Invocation {
        let mut env = self.env.clone();
        env.extend(self.variant.env.clone());
        Invocation {
            argv,
            dir: self.config.root.clone(),
            env,
            timeout: self.variant.profile.timeout,
            stdout: self.path("program.log"),
            stderr: self.path("program.log"),
        }
    }
}

/// Runs one session of a profiler, and keeps its command in a file beside what it leaves.
///
/// # Errors
/// A finding that says why the variant was not measured, or an error where the machine failed.
pub fn run(profiler: &dyn Profiler, session: &Session<'_>) -> Result<Pending, Stop> {
    let invocation = profiler.invocation(session)?;
    profiler.clear(session)?;
    let line = process::shell_line(&invocation.argv);
    let argv_path = session.path("argv");
    fs::write(&argv_path, format!("{line}\n")).map_err(Error::io("write", &argv_path))?;
    // Before the program starts: who is on the GPU now is somebody else.
    let watcher = Watcher::start(&session.gpu.uuid).ok();
    let ended = invocation.run();
    let device = watcher.map(Watcher::stop);
    let finished = ended.map_err(|error| {
        Finding::deny(
            Code::NotStarted,
            &session.variant.id,
            format!("{} could not be started: {error}", profiler.process_name()),
            format!("run it by hand: {line}"),
        )
    })?;
    if finished.ending == Ending::Interrupted {
        return Err(Error::Interrupted.into());
    }
    let ran = Ran {
        invocation,
        finished,
        device,
        line,
    };
    profiler.finish(session, ran)
}

/// Why a program that ran without ncu is no measurement, by how it ended.
pub(super) fn failure_of_program(
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
