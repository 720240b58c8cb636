//! What a profiler has to bring, and the one way in which its process is started, watched and ended.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ncu_report::Recording;

use super::capture::{Capture, Pending, Times};
use super::first_launch::FirstLaunch;
use crate::build::{Artifact, Given, program_argv};
use crate::capture::tuned;
use crate::config::{Config, Recipe, Variant};
use crate::device::{FaultWatch, Faults, Gpu, State, Watcher};
use crate::disk;
use crate::evidence::tuning_measured;
use crate::files::{entries, read_regular};
use crate::finding::{Code, Error, Finding, Stop};
use crate::process::{self, Ending, Finished, Invocation, Rest, Running, Standing, Turn};
use crate::profile::{CaptureRecord, FileHash};
use crate::terms::{Phase, Seed, joined_or};
use crate::verify::{Failure, Proof, asks_for_result, remove_result};

const PRINT_AUTOTUNING: &str = "TRITON_PRINT_AUTOTUNING";
/// JAX and TensorFlow take most of the GPU's memory at their start unless these are set, and no other
/// program can wait beside them then.
const TAKE_AS_NEEDED: [(&str, &str); 2] = [
    ("XLA_PYTHON_CLIENT_PREALLOCATE", "false"),
    ("TF_FORCE_GPU_ALLOW_GROWTH", "true"),
];

/// What measures the launches of a program on one tier.
///
/// [`run`] calls the steps of a session in this order: [`invocation`](Profiler::invocation),
/// [`prepare`](Profiler::prepare), the process itself, [`finish`](Profiler::finish). They are
/// apart, so that the time limit, the interrupt, the watch over the GPU and the kept argv are the same
/// for every profiler.
///
/// [`in_turn`] holds programs that start together. It asks [`rests`](Profiler::rests) and reads
/// [`written`](Profiler::written) between the process and [`finish`](Profiler::finish).
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

    /// The log of ncu, which shows when the first launch is measured; `None` where nothing shows it.
    fn first_launch(&self, _session: &Session<'_>) -> Option<PathBuf> {
        None
    }

    /// Why a program that was held has stopped itself, by what its processes have written: its first process
    /// has this number.
    fn rests(&self, _session: &Session<'_>, _pid: i32) -> Option<Rest> {
        None
    }

    /// What the processes of a program that was held have written.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn written(&self, _session: &Session<'_>) -> Result<Written, Error> {
        Ok(Written::new())
    }

    /// Whether a program had a turn or launched kernels, by what it added to its files.
    fn worked(&self, _session: &Session<'_>, _added: &[u8]) -> bool {
        false
    }

    /// Judges how the process ended and reads what it left. What needs no GPU may go on in the
    /// background, see [`Pending`]. An interrupt never gets here.
    ///
    /// # Errors
    /// A finding that says why the session measured nothing.
    fn finish(&self, session: &Session<'_>, ran: Ran) -> Result<Pending, Stop>;
}

/// The files that the processes of a program wrote, with their content.
pub type Written = BTreeMap<PathBuf, Vec<u8>>;

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
    /// What the values of the program's inputs are made from.
    pub seed: Seed,
    /// Whether the program starts beside others, and waits for its turn at its first work on the GPU.
    pub in_turn: bool,
}

/// How a process ended.
#[derive(Debug)]
pub struct Ran {
    /// What is known of it before its report is read.
    pub record: CaptureRecord,
    /// The process that was run.
    pub invocation: Invocation,
    /// How it ended.
    pub finished: Finished,
    /// How long it took.
    pub times: Times,
    /// The command, as it can be pasted into a shell.
    pub line: String,
    /// What its processes wrote until the end of its turn, where it had one.
    pub written: Option<Written>,
}

impl Session<'_> {
    /// The file of this session with an ending.
    pub fn path(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}.{ending}", self.stem))
    }

    /// What lies in the folder under the names of this session, or under those that go on so; sorted.
    ///
    /// # Errors
    /// [`Error::Io`] where the folder cannot be read.
    pub fn files(&self, further: &str) -> Result<Vec<PathBuf>, Error> {
        let begin = format!("{}.{further}", self.stem);
        let entries = entries(self.folder)?.into_iter();
        let named = entries.filter(|entry| entry.text().starts_with(&begin));
        Ok(named.map(|entry| entry.path).collect())
    }

    /// The files that its process left. What ncu prints of its report comes later, and is read at once.
    ///
    /// # Errors
    /// As [`Session::files`].
    pub fn left(&self) -> Result<Vec<PathBuf>, Error> {
        let later = [self.path("csv"), self.path("import.log")];
        let mut left = self.files("")?;
        left.retain(|path| !later.contains(path));
        Ok(left)
    }

    /// The file that is there once it is the program's turn.
    pub(super) fn turn(&self) -> PathBuf {
        self.path("turn")
    }

    /// What the program is given.
    fn given<'r>(&self, result: &'r Path) -> Given<'r> {
        Given {
            result,
            launches: self.variant.launches_needed(self.phase),
            seed: Some(self.seed),
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
        if self.variant.profile.as_it_runs {
            for (name, value) in TAKE_AS_NEEDED {
                env.entry(name.to_owned())
                    .or_insert_with(|| value.to_owned());
            }
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
    let prepared = Prepared::new(profiler, session)?;
    let watch = Watch::start(session);
    let first_launch = profiler.first_launch(session).map(FirstLaunch::watch);
    let ended = prepared.invocation.run();
    let until_launch = first_launch.and_then(FirstLaunch::stop);
    let device = watch.stop(session);
    prepared.finish(ended, until_launch, device, None)
}

/// What a process left that was measured, and the files that it left.
pub type Left = (Pending, Vec<PathBuf>);

/// Starts the programs of sessions together, each of which is held at its first work on the GPU, and lets
/// them work one after the other, in their order. Where they share turns, one that leaves the GPU idle
/// computes beside the others that do, up to its next work, and has another turn then. Once the work of all
/// is done they end, side by side.
///
/// Returns what each left, up to the first that failed.
///
/// # Errors
/// With the session that is the reason: it could not be started or held, or an error where the machine
/// failed. Nothing was measured then. No program is left in any case.
pub fn in_turn(
    profiler: &dyn Profiler,
    sessions: &[Session<'_>],
    share_turns: bool,
) -> Result<Vec<Result<Left, Stop>>, (usize, Stop)> {
    let began = Instant::now();
    let started = sessions.iter().enumerate().map(|(at, session)| {
        let held = Held::start(profiler, session);
        held.map_err(|stop| (at, stop))
    });
    let mut held = started.collect::<Result<Vec<Held<'_>>, _>>()?;
    while held.iter().any(|one| !one.is_done) {
        hold(&mut held)?;
        for at in 0..held.len() {
            let well = held[at].work(share_turns).map_err(|stop| (at, stop))?;
            if Running::any_moved(held.iter().filter_map(|one| one.running.as_ref())) {
                let why = "one of them ran in the turn of another program";
                return Err((at, held[at].prepared.not_held(why)));
            }
            if !well {
                // Those after it are killed.
                held.truncate(at + 1);
                break;
            }
        }
    }
    for running in held.iter_mut().flat_map(|one| &mut one.running) {
        running.go_on();
    }
    for one in &mut held {
        one.end();
    }
    let each = began.elapsed() / u32::try_from(held.len()).unwrap_or(u32::MAX);
    let left = held.into_iter().map(|one| {
        let session = one.prepared.session;
        Ok((one.read(each)?, session.left()?))
    });
    Ok(left.collect())
}

/// Of programs that cannot start together.
pub(super) fn not_held(variant: &Variant, why: &str) -> Finding {
    let message = format!("its processes cannot be held at their first work on the GPU: {why}");
    Finding::of(Code::ProfilerUnsupported, &variant.id, message)
}

/// Why nothing was measured of a program: its variant's filter, and the kernels that it launched.
pub(super) fn none_of(variant: &Variant, seen: &[String]) -> String {
    let filter = variant.kernels.as_deref().unwrap_or("(none)");
    let seen = joined_or("no kernel at all", seen, ", ");
    format!("the filter is {filter}, the program launched {seen}")
}

/// A program that was started with others. Dropped, it is killed with all that it started.
struct Held<'a> {
    prepared: Prepared<'a>,
    /// `None` once it has ended.
    running: Option<Running>,
    ended: Option<io::Result<Finished>>,
    device: Option<State>,
    written: Written,
    /// Whether it needs no turn any more.
    is_done: bool,
}

/// Lets the programs that are not done run beside each other until each is held at its work, or has ended.
fn hold(held: &mut [Held<'_>]) -> Result<(), (usize, Stop)> {
    let first = held[0].prepared.session;
    let all = held.iter_mut().enumerate().filter(|(_, one)| !one.is_done);
    let all = all.filter_map(|(at, one)| Some((at, one.running.as_mut()?)));
    let (places, mut running): (Vec<usize>, Vec<&mut Running>) = all.unzip();
    let standing = Running::hold(&mut running).map_err(|error| {
        let variant = &first.variant.id;
        let stop = match error.kind() {
            io::ErrorKind::OutOfMemory => {
                let message = "less than a sixteenth of the memory of this machine is left";
                Finding::of(Code::ProgramFailed, variant, message).into()
            }
            _ => Error::io("wait for", "the programs")(error).into(),
        };
        (0, stop)
    })?;
    if process::interrupted() {
        return Err((0, Error::Interrupted.into()));
    }
    for (at, standing) in places.into_iter().zip(standing) {
        if standing == Standing::Astray {
            let why = "one of them started a process that is not below it";
            return Err((at, held[at].prepared.not_held(why)));
        }
        if standing == Standing::Late && !held[at].written.is_empty() {
            let why = "one of them does not come to its work while others wait for theirs";
            return Err((at, held[at].prepared.not_held(why)));
        }
        if standing != Standing::Held {
            held[at].end();
        }
    }
    Ok(())
}

impl<'a> Held<'a> {
    fn start(profiler: &'a dyn Profiler, session: &'a Session<'a>) -> Result<Held<'a>, Stop> {
        let prepared = Prepared::new(profiler, session)?;
        let started = prepared.invocation.start();
        let started = started.map_err(|error| prepared.not_started(error))?;
        Ok(Held {
            prepared,
            running: Some(started),
            ended: None,
            device: None,
            written: Written::new(),
            is_done: false,
        })
    }

    /// Lets the program work, as the only one. Returns whether it did, as far as is known.
    fn work(&mut self, shares_turns: bool) -> Result<bool, Stop> {
        let (profiler, session) = (self.prepared.profiler, self.prepared.session);
        if self.is_done {
            return Ok(true);
        }
        let altered = |path: &Path| {
            let message = format!("changed while the program ran: {}", path.display());
            Finding::of(Code::AlteredDuringRun, &session.variant.id, message)
        };
        // Others ran since.
        let written = profiler.written(session)?;
        if let Some(removed) = self
            .written
            .keys()
            .find(|path| !written.contains_key(*path))
        {
            return Err(altered(removed).into());
        }
        for (path, now) in &written {
            let Some(added) = self.added(path, now) else {
                return Err(altered(path).into());
            };
            if profiler.worked(session, added) {
                let why = "one of them ran in the turn of another program";
                return Err(self.prepared.not_held(why));
            }
        }
        let pid = self.running.as_ref().and_then(Running::pid);
        self.is_done = pid.is_none_or(|pid| profiler.rests(session, pid) == Some(Rest::Over));
        if let (Some(running), false) = (&mut self.running, self.is_done) {
            let turn = session.turn();
            let watch = Watch::start(session);
            disk::create_new(&turn).map_err(|_| altered(&turn))?;
            let rests = |pid| {
                let rest = profiler.rests(session, pid);
                rest.filter(|rest| shares_turns || *rest == Rest::Over)
            };
            let ended = running.turn(rests);
            let ended = ended.map_err(Error::io("wait for", "the program"))?;
            if matches!(ended, Turn::Ended | Turn::Late) {
                self.end();
            }
            self.is_done = ended != Turn::Stopped(Rest::Idle);
            let state = watch.stop(session);
            self.device = match (self.device.take(), state) {
                (Some(before), Some(state)) => Some(before.and(state)),
                (before, state) => before.or(state),
            };
            disk::remove_file(&turn).map_err(|_| altered(&turn))?;
        }
        // Before anything else runs that could write to it.
        self.written = profiler.written(session)?;
        let well = |ended: &io::Result<Finished>| matches!(ended, Ok(finished) if finished.ending == Ending::Exited(0));
        Ok(self.ended.as_ref().is_none_or(well))
    }

    /// What was added to a file that its processes write; `None` where that is not what it was before.
    fn added<'b>(&self, path: &Path, now: &'b [u8]) -> Option<&'b [u8]> {
        let before = self.written.get(path).map_or(&[][..], Vec::as_slice);
        now.strip_prefix(before)
    }

    /// Waits for its end.
    fn end(&mut self) {
        if let Some(running) = self.running.take() {
            self.ended = Some(running.end());
        }
    }

    /// Reads what it left. `each` is how long one of the programs took.
    fn read(mut self, each: Duration) -> Result<Pending, Stop> {
        self.end();
        let Prepared {
            profiler, session, ..
        } = self.prepared;
        for (path, now) in profiler.written(session)? {
            let added = self.added(&path, &now);
            if added.is_none_or(|added| profiler.worked(session, added)) {
                let why = "one of them worked after its turn";
                return Err(self.prepared.not_held(why));
            }
        }
        let never = || Err(io::Error::other("it was not waited for"));
        let ended = self.ended.unwrap_or_else(never);
        let turn = Some((each, self.written));
        self.prepared.finish(ended, None, self.device, turn)
    }
}

/// The state of the GPU while a process works on it.
struct Watch {
    /// `None` where NVML does not show the GPU.
    watcher: Option<Watcher>,
    faults_before: Option<Faults>,
}

impl Watch {
    /// Before the process may work: one that is on the GPU now is not ours.
    fn start(session: &Session<'_>) -> Watch {
        Watch {
            watcher: Watcher::start(&session.gpu.uuid).ok(),
            faults_before: session.faults.map(FaultWatch::faults),
        }
    }

    fn stop(self, session: &Session<'_>) -> Option<State> {
        let mut state = self.watcher?.stop();
        let now = session.faults.map(FaultWatch::faults).unwrap_or_default();
        state.faults = now.since(&self.faults_before.unwrap_or_default());
        Some(state)
    }
}

/// A session whose process can be started.
struct Prepared<'a> {
    profiler: &'a dyn Profiler,
    session: &'a Session<'a>,
    invocation: Invocation,
    /// The command, as it can be pasted into a shell, and the file that has it.
    line: String,
}

impl<'a> Prepared<'a> {
    /// Removes what an earlier session left, and writes what this one needs.
    fn new(profiler: &'a dyn Profiler, session: &'a Session<'a>) -> Result<Prepared<'a>, Stop> {
        let invocation = profiler.invocation(session)?;
        session.artifact.check_unaltered(&session.variant.id)?;
        for path in session.files("")? {
            // A program of before may have left something there that would be taken for this session's.
            let removed = match disk::is_dir(&path) && !disk::is_link(&path) {
                true => disk::remove_dir_all(&path),
                false => disk::remove_file(&path),
            };
            removed.map_err(Error::io("clear", &path))?;
        }
        profiler.prepare(session)?;
        remove_result(&session.result())?;
        let line = process::shell_line(&invocation.argv);
        let argv_path = session.path("argv");
        disk::write(&argv_path, format!("{line}\n")).map_err(Error::io("write", &argv_path))?;
        Ok(Prepared {
            profiler,
            session,
            invocation,
            line,
        })
    }

    fn not_held(&self, why: &str) -> Stop {
        not_held(self.session.variant, why).into()
    }

    fn not_started(&self, error: io::Error) -> Stop {
        let error = match Error::unless_full(&self.invocation.stdout, error) {
            Ok(error) => error,
            Err(full) => return full.into(),
        };
        let message = format!(
            "{} could not be started: {error}",
            self.profiler.process_name()
        );
        let next = format!("run it by hand: {}", self.line);
        Finding::deny(Code::NotStarted, &self.session.variant.id, message, next).into()
    }

    /// Judges how the process ended and what it said of its numbers, and reads what it left. `turn` is of
    /// one that worked in its turn: how long it took, and what its processes wrote.
    fn finish(
        self,
        ended: io::Result<Finished>,
        until_launch: Option<Duration>,
        device: Option<State>,
        turn: Option<(Duration, Written)>,
    ) -> Result<Pending, Stop> {
        let (profiler, session) = (self.profiler, self.session);
        let finished = ended.map_err(|error| self.not_started(error))?;
        if finished.ending == Ending::Interrupted {
            return Err(Error::Interrupted.into());
        }
        let (invocation, line, argv_path) = (self.invocation, self.line, session.path("argv"));
        let kept = read_regular(&argv_path).unwrap_or_default();
        if kept != format!("{line}\n").as_bytes() {
            let message = format!("changed while the program ran: {}", argv_path.display());
            return Err(Finding::of(Code::AlteredDuringRun, &session.variant.id, message).into());
        }
        let result = session.result();
        let log = read_regular(&invocation.stdout).unwrap_or_default();
        let stated = read_regular(&result).unwrap_or_default();
        let (each, written) = turn.unzip();
        let mut ran = Ran {
            record: CaptureRecord {
                phase: Some(session.phase),
                gpu_uuid: Some(session.gpu.uuid.clone()),
                device,
                argv: invocation.argv.clone(),
                seed: Some(session.seed),
                tuned: tuned(&String::from_utf8_lossy(&log), &stated),
                ..CaptureRecord::default()
            },
            invocation,
            times: Times {
                wall: each.unwrap_or(finished.wall),
                // The log is read now and then, and a last time after the process has ended.
                until_launch: until_launch.map(|until| until.min(finished.wall)),
            },
            finished,
            line,
            written,
        };
        let required = asks_for_result(&session.variant.profile_args);
        let unproven = match Proof::read(&result, required) {
            Proof::None => None,
            Proof::Correct => {
                ran.record.checked = true;
                None
            }
            Proof::Wrong(failure) => return Err(ran.unproven(session, failure).into()),
            Proof::Unusable(failure) => Some(ran.unproven(session, failure)),
        };
        let tuning = tuning_measured(session.variant, &ran.record.tuned).filter(Finding::denies);
        // What the profiler finds comes before it.
        let pending = profiler.finish(session, ran)?;
        // Before more processes are measured in the same way.
        match unproven.or(tuning) {
            Some(finding) => Err(finding.into()),
            None => Ok(pending),
        }
    }
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
        let message = format!("measured process `{}`: {}", session.stem, failure.message);
        let next = format!(
            "{} with SPARSEK_GATE_SEED={}: {}",
            failure.next, session.seed, self.line
        );
        Finding::deny(failure.code, &session.variant.id, message, next)
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
    pub(super) fn capture(self, path: &Path, bytes: &[u8], report: Recording) -> Capture {
        Capture {
            record: CaptureRecord {
                report: FileHash::of(path, bytes),
                ..self.record
            },
            report,
            page: None,
            launch_list: None,
        }
    }
}
