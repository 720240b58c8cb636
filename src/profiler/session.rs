//! What a profiler has to bring, and the one way in which its process is started, watched and ended.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ncu_report::Recording;

use super::capture::{Capture, Pending, Times};
use super::first_launch::{FirstLaunch, LogSign};
use crate::build::{Artifact, Given, program_argv};
use crate::capture::{Tuned, tuned};
use crate::config::{Config, Recipe, Variant};
use crate::device::{FaultWatch, Gpu, State, Watcher};
use crate::evidence::tuning_measured;
use crate::files::{entries, read_regular};
use crate::finding::{Code, Error, Finding, Stop};
use crate::hash::sha256_hex;
use crate::process::{self, Ending, Finished, Invocation};
use crate::terms::{Phase, Seed};
use crate::verify::{Failure, Proof, asks_for_result, remove_result};

const PRINT_AUTOTUNING: &str = "TRITON_PRINT_AUTOTUNING";

/// What measures the launches of a program on one tier.
///
/// [`run`] calls the steps of a session in this order: [`invocation`](Profiler::invocation),
/// [`prepare`](Profiler::prepare), the process itself, [`finish`](Profiler::finish). They are
/// apart, so that a dry run can print the command without running it, and so that the time limit,
/// the interrupt, the watch over the GPU and the kept argv are the same for every profiler.
///
/// A profiler of another vendor brings:
/// * the argv and the environment that run a program once under it, restricted to the phase's
///   metrics and to the launches that the variant selects (`kernels`, `skip`, `launches`);
/// * a finding of its own for each way in which it can fail to measure: `no-permission` and
///   `profiler-unsupported` send the variant to a lower tier, `profiler-busy` is tried again;
/// * a reader of its files in [`crate::capture`]. It returns a [`Recording`]: each launch with its
///   kernel's name, grid and block, and counter values with units; a value that was not measured is
///   absent, never 0. The file itself is kept, hashed, and read again by `check --from`;
/// * the names of its counters in [`crate::metric`]: aliases, roles and units;
/// * a [`Tier`](crate::terms::Tier), if it measures another set of metrics than the tiers that there are, with that set
///   in `metric::measures`;
/// * its place in [`Profilers::of`](super::Profilers::of), and its version among the pins.
pub trait Profiler {
    /// The name of the process that is started, for messages: `ncu`, or `the program`.
    fn process_name(&self) -> &'static str;

    /// The process that measures: argv, folder, environment, time limit, files for its output.
    /// Nothing is started and nothing is written.
    ///
    /// # Errors
    /// A finding where this profiler cannot measure the variant at all.
    fn invocation(&self, session: &Session<'_>) -> Result<Invocation, Stop>;

    /// Writes the files that the process needs, and removes those of an earlier session that this
    /// one would take for its own.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn prepare(&self, _session: &Session<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// How its log shows that the first launch is measured; `None` where nothing shows it.
    fn first_launch(&self, _session: &Session<'_>) -> Option<LogSign> {
        None
    }

    /// Judges how the process ended and reads what it left. What needs no GPU may go on in the
    /// background, see [`Pending`]. An interrupt never gets here.
    ///
    /// # Errors
    /// A finding that says why the session measured nothing.
    fn finish(&self, session: &Session<'_>, ran: Ran) -> Result<Pending, Stop>;
}

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
    /// Watches it for faults, where NVML shows it.
    pub faults: Option<&'a FaultWatch>,
    /// Variables added to the environment, such as the GPU to use.
    pub env: &'a BTreeMap<String, String>,
    /// The folder of the files.
    pub folder: &'a Path,
    /// How their names begin: `capture-1`, `counting`.
    pub stem: &'a str,
    /// What the values of the program's inputs are made from; `None` in a dry run.
    pub seed: Option<Seed>,
}

/// How a process ended.
#[derive(Debug)]
pub struct Ran {
    /// Which metrics were measured.
    pub phase: Phase,
    /// What the program was given to make the values of its inputs from.
    pub seed: Option<Seed>,
    /// The process that was run.
    pub invocation: Invocation,
    /// How it ended.
    pub finished: Finished,
    /// How long it took.
    pub times: Times,
    /// The state of the GPU meanwhile; `None` where NVML does not show the GPU.
    pub device: Option<State>,
    /// The command, as it can be pasted into a shell.
    pub line: String,
    /// Whether it reported that the numbers of its launches are correct.
    pub checked: bool,
    /// What autotuners chose in it, where it shows that.
    pub tuned: Vec<Tuned>,
}

impl Session<'_> {
    /// The file of this session with an ending.
    pub fn path(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}.{ending}", self.stem))
    }

    /// What lies in the folder under the names of this session.
    ///
    /// # Errors
    /// [`Error::Io`] where the folder cannot be read.
    pub fn files(&self) -> Result<Vec<PathBuf>, Error> {
        let begin = format!("{}.", self.stem);
        let named = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy());
            name.is_some_and(|name| name.starts_with(&begin))
        };
        let paths = entries(self.folder)?.into_iter();
        let paths = paths.map(|entry| entry.path());
        Ok(paths.filter(named).collect())
    }

    /// What the program is given.
    fn given<'r>(&self, result: &'r Path) -> Given<'r> {
        Given {
            result,
            launches: self.variant.launches_needed(self.phase),
            seed: self.seed,
        }
    }

    /// The program's argv.
    pub(crate) fn program_argv(&self) -> Vec<String> {
        let (result, variant) = (self.result(), self.variant);
        let given = self.given(&result);
        program_argv(variant, self.artifact, &variant.profile_args, &given)
    }

    /// The file for the program's result.
    fn result(&self) -> PathBuf {
        self.path("result.json")
    }

    /// A process of this session with its output in one file.
    pub(super) fn invocation(&self, argv: Vec<String>) -> Invocation {
        let mut env = self.given(&self.result()).env(self.env, self.variant);
        if matches!(self.variant.recipe, Recipe::Command { .. }) {
            // Triton then prints what it chose. Nothing else reads the variable.
            env.entry(PRINT_AUTOTUNING.to_owned())
                .or_insert_with(|| "1".to_owned());
        }
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

/// Runs one session of a profiler, and keeps its command in a file beside what it leaves. Where the
/// program reports on the numbers of its launches, wrong ones end it.
///
/// # Errors
/// A finding that says why the variant was not measured, or an error where the machine failed.
pub fn run(profiler: &dyn Profiler, session: &Session<'_>) -> Result<Pending, Stop> {
    let (ran, unproven) = execute(profiler, session)?;
    let tuning = tuning_measured(session.variant, &ran.tuned).filter(Finding::denies);
    let pending = profiler.finish(session, ran)?;
    // Before more processes are measured in the same way.
    match unproven.or(tuning) {
        Some(finding) => Err(finding.into()),
        None => Ok(pending),
    }
}

/// Runs the process of a session. The finding says why nothing shows that its numbers are correct;
/// what the profiler finds comes before it.
///
/// # Errors
/// A finding that says why it could not be started or that its numbers are wrong, or an error where
/// the machine failed.
pub(super) fn execute(
    profiler: &dyn Profiler,
    session: &Session<'_>,
) -> Result<(Ran, Option<Finding>), Stop> {
    let invocation = profiler.invocation(session)?;
    session.artifact.check_unaltered(&session.variant.id)?;
    for path in session.files()? {
        // A program of before may have left something there that would be taken for this session's.
        let removed = match path.is_dir() && !path.is_symlink() {
            true => fs::remove_dir_all(&path),
            false => fs::remove_file(&path),
        };
        removed.map_err(Error::io("clear", &path))?;
    }
    profiler.prepare(session)?;
    let result = session.result();
    remove_result(&result)?;
    let line = process::shell_line(&invocation.argv);
    let argv_path = session.path("argv");
    fs::write(&argv_path, format!("{line}\n")).map_err(Error::io("write", &argv_path))?;
    // Before the program starts: a process that is on the GPU now is not ours.
    let watcher = Watcher::start(&session.gpu.uuid).ok();
    let faults_before = session.faults.map(FaultWatch::faults);
    let first_launch = profiler.first_launch(session).map(FirstLaunch::watch);
    let ended = invocation.run();
    let until_launch = first_launch.and_then(FirstLaunch::stop);
    let device = watcher.map(Watcher::stop).map(|state| {
        let now = session.faults.map(FaultWatch::faults).unwrap_or_default();
        state.with_faults(now.since(&faults_before.unwrap_or_default()))
    });
    let finished = match ended {
        Ok(finished) => finished,
        Err(error) => {
            let error = Error::unless_full(&invocation.stdout, error)?;
            let message = format!("{} could not be started: {error}", profiler.process_name());
            let next = format!("run it by hand: {line}");
            return Err(Finding::deny(Code::NotStarted, &session.variant.id, message, next).into());
        }
    };
    if finished.ending == Ending::Interrupted {
        return Err(Error::Interrupted.into());
    }
    let kept = read_regular(&argv_path).unwrap_or_default();
    if kept != format!("{line}\n").as_bytes() {
        let message = format!("changed while the program ran: {}", argv_path.display());
        return Err(Finding::of(Code::AlteredDuringRun, &session.variant.id, message).into());
    }
    let mut ran = Ran {
        phase: session.phase,
        seed: session.seed,
        invocation,
        times: Times {
            wall: finished.wall,
            // The log is read now and then, and a last time after the process has ended.
            until_launch: until_launch.map(|until| until.min(finished.wall)),
        },
        finished,
        device,
        line,
        checked: false,
        tuned: Vec::new(),
    };
    let log = read_regular(&ran.invocation.stdout).unwrap_or_default();
    let stated = read_regular(&result).unwrap_or_default();
    ran.tuned = tuned(&String::from_utf8_lossy(&log), &stated);
    let required = asks_for_result(&session.variant.profile_args);
    let unproven = match Proof::read(&result, required) {
        Proof::None => None,
        Proof::Correct => {
            ran.checked = true;
            None
        }
        Proof::Wrong(failure) => return Err(ran.unproven(session, failure).into()),
        Proof::Unusable(failure) => Some(ran.unproven(session, failure)),
    };
    Ok((ran, unproven))
}

/// What to do where a process ended badly.
pub(super) fn run_or_wait(ending: Ending, line: &str) -> String {
    let wait = match ending {
        Ending::TimedOut => {
            "raise `profile.timeout_s` (`compare --timeout`) if it is only slow, or "
        }
        _ => "",
    };
    format!("{wait}run it by hand: {line}")
}

impl Ran {
    /// The finding about what the process wrote of its numbers.
    fn unproven(&self, session: &Session<'_>, failure: Failure) -> Finding {
        let Failure {
            code,
            message,
            next,
        } = failure;
        let seed = session.seed.map_or_else(String::new, |seed| {
            format!(" with SPARSEK_GATE_SEED={seed}")
        });
        let message = format!("measured process `{}`: {message}", session.stem);
        let next = format!("{next}{seed}: {}", self.line);
        Finding::deny(code, &session.variant.id, message, next)
            .detail(process::tail(&self.invocation.stdout, 12))
    }

    /// That a program which ran without ncu ended well.
    ///
    /// # Errors
    /// The finding that says how it ended. `when` says what was done with it.
    pub(super) fn succeeded(&self, variant: &Variant, when: &str) -> Result<(), Finding> {
        let (ending, line) = (self.finished.ending, &self.line);
        let next = run_or_wait(ending, line);
        let (code, message) = match ending {
            Ending::Exited(0) => return Ok(()),
            Ending::TimedOut => (
                Code::TimedOut,
                format!(
                    "the program exceeded its time limit of {} s {when}, and was killed",
                    variant.profile.timeout.as_secs_f64()
                ),
            ),
            Ending::Signalled(_) => (
                Code::ProgramFailed,
                format!("the program crashed {when} ({ending})"),
            ),
            _ => (
                Code::ProgramFailed,
                format!(
                    "the program failed {when} ({ending}), although it passed its verification"
                ),
            ),
        };
        let log = process::tail(&self.invocation.stdout, 12);
        Err(Finding::deny(code, &variant.id, message, next).detail(log))
    }

    /// The capture of a report that it left.
    pub(super) fn capture(self, report_path: PathBuf, bytes: &[u8], report: Recording) -> Capture {
        Capture {
            report_sha256: sha256_hex(bytes),
            report_path,
            page: None,
            phase: self.phase,
            device: self.device,
            argv: self.invocation.argv,
            report,
            seed: self.seed,
            checked: self.checked,
            tuned: self.tuned,
            launch_list: None,
        }
    }
}
