//! The one place that runs programs.
//!
//! Every program gets its own process group, a time limit, a limit on what it prints, files for its
//! output, a mark in its environment, and of the environment only what a list names. At its end
//! everything is killed that it started: what is below it, what is in its group, what carries its
//! mark, and what lost its parent. Where this process is killed, a shell that outlives it kills what carries
//! one of its marks, and removes its scratch folders.
//!
//! An [`Invocation`] leaves its output in files that are kept; a [`Query`] is run for its output.

mod environment;
mod lock;
mod tree;

pub use environment::{absolute_parts, inherited, is_credential, parts_outside, pass, passed};
pub use lock::{
    Access, is_locked, lock_folder, lock_holder, longest_wait, never_wait, wait_for_lock,
};
pub(crate) use tree::mark_of_run;
pub(crate) use tree::{MARK, marks, running, stat};
pub use tree::{guard, over};

use rustix::fs::{MemfdFlags, OFlags, memfd_create};
use std::collections::BTreeMap;
use std::ffi::{OsString, c_int};
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::disk;
use crate::files::{if_there, most, open_regular};
use crate::finding::Error;
use crate::terms::Seed;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use tempfile::TempDir;

/// The most that a program may print, in bytes: an endless output must not fill the disk.
pub const MOST_OUTPUT: u64 = 64 << 20;
/// The most that a tool may print that turns a report into a table, in bytes.
const MOST_TABLE: u64 = 2 << 30;
/// The most that a program may print that is run for it: what is larger must not be read in part.
const MOST_ANSWER: u64 = most::BINARY;
const POLL: Duration = Duration::from_millis(50);
/// Where the system says how much memory there is.
const MEMORY: &str = "/proc/meminfo";
/// Between two looks at whether programs are held.
const OFTEN: Duration = Duration::from_millis(5);
const GRACE: Duration = Duration::from_millis(300);

/// Waits for the end of this process, which closes its standard input, kills what carries a mark of it with
/// all below, and removes the folders that it named there.
const AFTER_THE_END: &str = r#"while IFS= read -r folder; do folders="$folders$folder
"; done
below() { for one; do echo "$one"; below $(cat /proc/"$one"/task/*/children); done; }
for _ in $(seq 200); do
  left=$(below $(grep -lsaF "$1" /proc/[0-9]*/environ | tr -cd '0-9\n'))
  [ -n "$left" ] || break
  kill -KILL $left
  sleep 0.05
done
printf %s "$folders" | while IFS= read -r folder; do rm -rf -- "$folder"; done"#;

const SIGNALS: [c_int; 3] = [SIGINT, SIGTERM, SIGHUP];
/// What a process exits with that a signal ends.
const INTERRUPTED_CODE: c_int = 130;
/// How long a command may take to end after a signal.
const UNTIL_THE_END: Duration = Duration::from_millis(800);

/// Whether what the command made appears, or has appeared.
static PUBLISHES: AtomicBool = AtomicBool::new(false);
static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
static RUNS: AtomicU64 = AtomicU64::new(0);

/// Makes SIGINT, SIGTERM and SIGHUP stop the programs that run, rather than leave them behind.
///
/// # Errors
/// Where the handlers cannot be installed.
pub fn stop_on_signals() -> io::Result<()> {
    // A file that is too large is then an error that names it.
    flag::register(SIGXFSZ, Arc::default())?;
    let flag = INTERRUPTED.get_or_init(|| Arc::new(AtomicBool::new(false)));
    for signal in SIGNALS {
        // A second signal while the first is being served ends the program at once.
        flag::register_conditional_shutdown(signal, INTERRUPTED_CODE, Arc::clone(flag))?;
        flag::register(signal, Arc::clone(flag))?;
    }
    let mut signals = Signals::new(SIGNALS)?;
    let ends = move || {
        let _ = signals.forever().next();
        std::thread::sleep(UNTIL_THE_END);
        if !PUBLISHES.load(Ordering::SeqCst) {
            // A killed process leaves no half state, and its programs end.
            signal_hook::low_level::exit(INTERRUPTED_CODE);
        }
    };
    std::thread::Builder::new().spawn(ends).map(drop)
}

/// Makes SIGINT, SIGTERM and SIGHUP end this process at once, which has nothing to stop or to clean up.
///
/// # Errors
/// Where the handlers cannot be installed.
pub fn end_on_signals() -> io::Result<()> {
    for signal in SIGNALS {
        let always = Arc::new(AtomicBool::new(true));
        flag::register_conditional_shutdown(signal, INTERRUPTED_CODE, always)?;
    }
    Ok(())
}

/// Whether a signal ended the command: it published nothing after it.
pub fn was_ended() -> bool {
    interrupted() && !PUBLISHES.load(Ordering::SeqCst)
}

/// Whether what a command made may appear: no signal asked it to stop before. It ends by itself then.
pub fn may_publish() -> bool {
    PUBLISHES.store(true, Ordering::SeqCst);
    !interrupted()
}

/// Whether a signal asked the run to stop.
pub fn interrupted() -> bool {
    INTERRUPTED
        .get()
        .is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// The same after a moment. What ends a whole job sends its signal to all of its processes, and a
/// program may get it before this one: its end is then no failure of its own.
pub fn interrupted_soon() -> bool {
    const SOON: Duration = Duration::from_millis(100);
    let since = Instant::now();
    while !interrupted() && since.elapsed() < SOON {
        std::thread::sleep(SOON / 10);
    }
    interrupted()
}

/// A program to run: argv, never a shell string.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Folder to run in.
    pub dir: PathBuf,
    /// Variables added to the environment.
    pub env: BTreeMap<String, String>,
    /// Time after which it is killed.
    pub timeout: Duration,
    /// File for its standard output.
    pub stdout: PathBuf,
    /// File for its standard error; the same path as `stdout` interleaves the two.
    pub stderr: PathBuf,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It exited with this status.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
    /// It reached its time limit and was killed with everything it started.
    TimedOut,
    /// The run was interrupted, and it was killed with everything it started.
    Interrupted,
    /// It printed more than its bound, such as [`MOST_OUTPUT`], and was killed with everything it
    /// started.
    PrintedTooMuch,
    /// It left a process that cannot be killed.
    Left(i32),
}

impl Ending {
    /// Of a program that was waited for.
    fn of(status: ExitStatus) -> Ending {
        match (status.code(), status.signal()) {
            (Some(code), _) => Ending::Exited(code),
            (None, Some(signal)) => Ending::Signalled(signal),
            (None, None) => Ending::Exited(-1),
        }
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ending::Exited(status) => write!(f, "exit status {status}"),
            Ending::Signalled(signal) => {
                let name = signal_hook::low_level::signal_name(*signal).unwrap_or("unknown");
                write!(f, "signal {signal} ({name})")
            }
            Ending::TimedOut => write!(f, "killed at its time limit"),
            Ending::Interrupted => write!(f, "stopped by an interrupt"),
            Ending::PrintedTooMuch => write!(f, "killed because it printed too much"),
            Ending::Left(pid) => write!(f, "process {pid} left behind, which cannot be killed"),
        }
    }
}

/// What running a program gave.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// How long it took.
    pub wall: Duration,
}

impl Invocation {
    /// Runs the program to its end, or kills it. At its end everything is killed that it started.
    ///
    /// # Errors
    /// Where the program could not be started at all, or its output files not be created.
    pub fn run(&self) -> io::Result<Finished> {
        self.start()?.end()
    }

    /// The same for a tool of this machine that runs beside a program under test: what that program
    /// started goes on.
    ///
    /// # Errors
    /// As [`Invocation::run`].
    pub fn run_beside(&self) -> io::Result<Finished> {
        let running = self.start()?;
        let finished = running.wait(MOST_TABLE)?;
        running.started.signal(Signal::KILL);
        Ok(finished)
    }

    /// Starts the program.
    ///
    /// # Errors
    /// As [`Invocation::run`].
    pub fn start(&self) -> io::Result<Running> {
        let mark = new_mark(&self.env);
        let env = environment_of(inherited(), &[], &self.env, &mark);
        let mut argv = self.argv.clone();
        // duct takes a path from the folder of this process, and it is meant from that of the program.
        if let Some(program) = argv.first_mut().filter(|program| program.contains('/')) {
            *program = self.dir.join(&*program).to_string_lossy().into_owned();
        }
        let program = program(&argv, &self.dir, env)?;
        let mut outputs = vec![created(&self.stdout)?];
        if self.stderr != self.stdout {
            outputs.push(created(&self.stderr)?);
        }
        // What is added last acts first: standard error must follow a redirected standard output.
        let redirected = match outputs.get(1) {
            Some(stderr) => program.stderr_file(stderr.try_clone()?),
            None => program.stderr_to_stdout(),
        };
        let expression = redirected.stdout_file(outputs[0].try_clone()?).stdin_null();
        Ok(Running {
            started: Started::new(&expression, mark)?,
            outputs,
            timeout: self.timeout,
            stopped_at: None,
            ran: None,
            had_turn: false,
        })
    }
}

/// A program that was started, with the files of its output. Dropped, it is killed with everything it
/// started.
#[derive(Debug)]
pub struct Running {
    started: Started,
    outputs: Vec<fs::File>,
    timeout: Duration,
    /// How long its processes had run when it was stopped.
    stopped_at: Option<tree::RunTime>,
    /// For how long it ran since its first turn began, without the time in which it was stopped.
    ran: Option<Duration>,
    /// Whether it was held before, so that processes of it may stop themselves.
    had_turn: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.started.handle.try_wait(), Ok(None)) {
            self.started.signal(Signal::KILL);
            // Nothing more can be done about one that does not end.
            let _ = self.started.handle.wait();
            tree::ended(self.started.pid);
            // Others may be killed next, which nothing here waits for.
            tree::kill_orphans();
        }
    }
}

impl Running {
    /// Lets these programs run until each has ended or stopped itself, or a process of it; then all of
    /// that program is stopped. The time limit of each counts from its start, later from its first turn.
    ///
    /// # Errors
    /// Where the system does not say whether a program has ended; [`io::ErrorKind::OutOfMemory`] where the memory
    /// of the machine does not suffice for so many programs, of which several go on to take it.
    pub fn hold(programs: &mut [&mut Running]) -> io::Result<Vec<Standing>> {
        for program in programs.iter_mut().filter(|program| program.had_turn) {
            program.go_on();
        }
        let mut standing: Vec<Option<Standing>> = programs.iter().map(|_| None).collect();
        loop {
            let pids = programs.iter().map(|one| one.started.pid.unwrap_or(0));
            let stopped = tree::stopped_below(&pids.collect::<Vec<i32>>());
            let looked = programs.iter_mut().zip(stopped).zip(&mut standing);
            for ((program, stopped), standing) in looked {
                if standing.is_some() {
                    continue;
                }
                if program.started.handle.try_wait()?.is_some() {
                    *standing = Some(Standing::Ended);
                } else if stopped {
                    *standing = Some(Standing::Held);
                    // It waits while the others still come to their work.
                    program.stop();
                } else if program.is_beyond_its_limits() || interrupted() {
                    *standing = Some(Standing::Late);
                    // It would work beside those that have their turns.
                    tree::stop(program.started.pid, &program.started.mark);
                }
            }
            let all: Option<Vec<Standing>> = standing.iter().copied().collect();
            if let Some(all) = all {
                for (program, standing) in programs.iter_mut().zip(&all) {
                    if *standing == Standing::Held {
                        program.stop();
                    }
                }
                let astray = tree::has_strays();
                let of = |standing| match standing {
                    Standing::Held if astray => Standing::Astray,
                    standing => standing,
                };
                return Ok(all.into_iter().map(of).collect());
            }
            if programs.len() > 1 && disk::read_to_string(MEMORY).is_ok_and(|text| is_scarce(&text))
            {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            std::thread::sleep(OFTEN);
        }
    }

    /// Lets a program that was held work, until it has ended, or has stopped a process of it and `rests`
    /// says why; it is given the number of its first process. Its time limit counts from its first turn. At
    /// the end of a turn it has ended, or all of it is stopped.
    ///
    /// # Errors
    /// Where the system does not say whether the program has ended.
    pub fn turn(&mut self, rests: impl Fn(i32) -> Option<Rest>) -> io::Result<Turn> {
        self.go_on();
        let mut looked = Instant::now();
        loop {
            if self.started.handle.wait_timeout(OFTEN)?.is_some() {
                return Ok(Turn::Ended);
            }
            if self.is_beyond_its_limits() || interrupted() {
                return Ok(Turn::Late);
            }
            let pid = self.started.pid;
            let is_stopped = tree::is_stopped(pid)
                || looked.elapsed() > POLL && {
                    looked = Instant::now();
                    tree::stopped_below(pid.as_slice()) == [true]
                };
            if is_stopped {
                // Looked at again: it may have stopped itself since.
                let first_is_stopped = tree::is_stopped(pid);
                match pid.and_then(&rests) {
                    Some(rest) if first_is_stopped || rest == Rest::Idle => {
                        self.stop();
                        // Another process of it may have begun to work just then.
                        if pid.and_then(&rests) == Some(rest) {
                            return Ok(Turn::Stopped(rest));
                        }
                        self.go_on();
                    }
                    _ => {}
                }
                // It came to its first work just as its turn began, or another's signal stopped it.
                tree::go_on(pid, &self.started.mark);
            }
        }
    }

    /// Stops all of the program, and remembers how long it has run until then.
    fn stop(&mut self) {
        let Started { pid, mark, .. } = &self.started;
        self.stopped_at = tree::stop(*pid, mark);
        if self.had_turn {
            // What it waits after that is not its time.
            let ran = self.started.since.elapsed();
            self.ran.get_or_insert(ran);
        }
    }

    /// Whether something of these stopped programs has run since then. A timer can wake it.
    pub fn any_moved<'a>(mut programs: impl Iterator<Item = &'a Running>) -> bool {
        let now = tree::Snapshot::now();
        programs.any(|program| {
            let Started { pid, mark, .. } = &program.started;
            let ran = tree::run_time(&now, *pid, mark);
            program.stopped_at.as_ref() != Some(&ran)
        })
    }

    /// The number of its first process.
    pub fn pid(&self) -> Option<i32> {
        self.started.pid
    }

    /// Lets a stopped program go on, with a time limit that counts from its first turn.
    pub fn go_on(&mut self) {
        let now = Instant::now();
        let ran = self.ran.take().unwrap_or_default();
        self.started.since = now.checked_sub(ran).unwrap_or(now);
        self.stopped_at = None;
        self.had_turn = true;
        tree::go_on(self.started.pid, &self.started.mark);
    }

    /// Waits for the program's end, or kills it. At its end everything is killed that it started.
    ///
    /// # Errors
    /// Where the system does not say whether it has ended.
    pub fn end(self) -> io::Result<Finished> {
        let mut finished = self.wait(MOST_OUTPUT)?;
        // A process that outlives the program would disturb the next measurement.
        self.started.signal(Signal::KILL);
        if let Some(left) = tree::end_orphans(interrupted).first() {
            finished.ending = Ending::Left(*left);
        }
        Ok(finished)
    }

    fn wait(&self, most_output: u64) -> io::Result<Finished> {
        let stopped = || {
            // A child whose work is done stops itself too, and the program may wait for its end.
            if self.had_turn && tree::stopped_below(self.started.pid.as_slice()) == [true] {
                tree::go_on(self.started.pid, &self.started.mark);
            }
            interrupted()
        };
        self.started
            .wait(self.timeout, stopped, &self.outputs, most_output)
    }

    fn is_beyond_its_limits(&self) -> bool {
        printed(&self.outputs) > MOST_OUTPUT || self.started.since.elapsed() >= self.timeout
    }
}

/// How many bytes are in the files of a program's output.
fn printed(outputs: &[fs::File]) -> u64 {
    let outputs = outputs.iter().flat_map(fs::File::metadata);
    outputs.map(|output| output.len()).sum()
}

/// Whether less than a sixteenth of the memory is available, by what `/proc/meminfo` says.
fn is_scarce(meminfo: &str) -> bool {
    let of = |name: &str| -> Option<u64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let (all, available) = (of("MemTotal:"), of("MemAvailable:"));
    all.zip(available)
        .is_some_and(|(all, available)| available < all / 16)
}

/// What became of a program that was started to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is stopped, with everything it started.
    Held,
    /// It has ended before.
    Ended,
    /// It reached its time limit, or printed too much, before it was held. It is stopped.
    Late,
    /// It is stopped, but one of the programs started a process that is below none of them, and would
    /// work in the turns of the others.
    Astray,
}

/// Why a program that had its turn has stopped itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Its work is done.
    Over,
    /// It leaves the GPU idle.
    Idle,
}

/// How the turn of a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is stopped.
    Stopped(Rest),
    /// It has ended.
    Ended,
    /// It reached its time limit, printed too much, or the run is interrupted. It goes on.
    Late,
}

/// A file for the output of a program, which takes the place of what was there: a program of before
/// may still have that open, or may have put a link or a FIFO there.
fn created(path: &Path) -> io::Result<fs::File> {
    if_there(disk::remove_file(path))?;
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
    disk::open_as(path, flags, 0o666)
}

/// A program that is run for what it prints.
#[derive(Clone, Debug)]
pub struct Query<'a> {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Folder to run in.
    pub dir: &'a Path,
    /// Variables added to the environment.
    pub env: BTreeMap<String, String>,
    /// Variables that it does not get, also if the configuration names them.
    pub without: &'a [&'a str],
    /// What it reads from its standard input.
    pub input: Vec<u8>,
    /// Time after which it is killed.
    pub timeout: Duration,
    /// Whether an interrupt stops it. What cleans up behind a run goes on.
    pub interruptible: bool,
}

/// What a program printed.
#[derive(Clone, Debug)]
pub struct Printed {
    /// How it ended.
    pub ending: Ending,
    /// Its standard output; empty where it printed too much.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

impl Query<'_> {
    /// Runs the program to its end, or kills it and everything it started. A process that it left
    /// behind at its end, such as a cache of credentials, stays.
    ///
    /// # Errors
    /// As [`Invocation::run`].
    pub fn run(&self) -> io::Result<Printed> {
        let mark = new_mark(&self.env);
        // Files and not pipes: a process that stays behind may keep a pipe open for ever.
        // In memory: a missing folder for temporary files would be reported as a missing program.
        let in_memory = || memfd_create(c"output", MemfdFlags::CLOEXEC).map(fs::File::from);
        let (mut stdout, mut stderr) = (in_memory()?, in_memory()?);
        let inherited = environment::of_query(self.dir);
        let env = environment_of(inherited, self.without, &self.env, &mark);
        let expression = program(&self.argv, self.dir, env)?
            .stdout_file(stdout.try_clone()?)
            .stderr_file(stderr.try_clone()?);
        let expression = match self.input.as_slice() {
            [] => expression.stdin_null(),
            input => expression.stdin_bytes(input),
        };
        let stopped = || self.interruptible && interrupted();
        let outputs = [stdout.try_clone()?, stderr.try_clone()?];
        let started = Started::new(&expression, mark)?;
        let finished = started.wait(self.timeout, stopped, &outputs, MOST_ANSWER)?;
        tree::spare(&started.mark);
        let read_back = |file: &mut fs::File| -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            if finished.ending != Ending::PrintedTooMuch {
                file.seek(SeekFrom::Start(0))?;
                file.take(MOST_ANSWER).read_to_end(&mut bytes)?;
            }
            Ok(bytes)
        };
        Ok(Printed {
            ending: finished.ending,
            stdout: read_back(&mut stdout)?,
            stderr: read_back(&mut stderr)?,
        })
    }
}

/// A program in its folder and environment, and in a process group of its own.
fn program(
    argv: &[String],
    dir: &Path,
    env: BTreeMap<OsString, OsString>,
) -> io::Result<duct::Expression> {
    let (program, arguments) = argv
        .split_first()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "empty command"))?;
    let program = duct::cmd(program, arguments).dir(dir).full_env(env);
    Ok(program.unchecked().before_spawn(|command| {
        command.process_group(0);
        Ok(())
    }))
}

/// A value of [`MARK`] that no other program of this machine carries, and that none can guess. At its
/// end it names the GPU that the program gets.
fn new_mark(env: &BTreeMap<String, String>) -> String {
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let gpu = env.get("CUDA_VISIBLE_DEVICES");
    let gpu = gpu.map_or_else(String::new, |gpu| format!("@{gpu}"));
    // Nobody knows the next mark before.
    format!("{}{run}-{:016x}{gpu}", mark_of_run(), tree::chance())
}

/// Whether a mark is that of a program of this process which got this GPU, or none.
pub fn is_mark_of(mark: &str, gpu: &str) -> bool {
    let own = mark.strip_prefix(&mark_of_run());
    own.is_some_and(|own| own.split_once('@').is_none_or(|(_, of)| of == gpu))
}

/// What is inherited, without some of it, with further variables and the mark.
fn environment_of(
    mut inherited: BTreeMap<OsString, OsString>,
    without: &[&str],
    env: &BTreeMap<String, String>,
    mark: &str,
) -> BTreeMap<OsString, OsString> {
    inherited.retain(|name, _| !without.iter().any(|it| name == *it));
    inherited.extend(env.iter().map(|(name, value)| (name.into(), value.into())));
    inherited.insert(MARK.into(), mark.into());
    inherited
}

/// A folder in the folder for temporary files.
///
/// # Errors
/// [`Error::Io`], as [`scratch_in`].
pub fn scratch() -> Result<TempDir, Error> {
    let place = std::env::temp_dir();
    scratch_in(&place, "sparsek-gate-").map_err(|error| {
        let why = format!("{error}; TMPDIR must name a folder that can be written to");
        Error::io("create", place)(io::Error::new(error.kind(), why))
    })
}

/// A folder, in another one, for what is needed until it is dropped, or this process is killed.
///
/// # Errors
/// Where it cannot be created.
#[expect(clippy::disallowed_methods, reason = "this is the place")]
pub fn scratch_in(place: &Path, prefix: &str) -> io::Result<TempDir> {
    let place = std::path::absolute(place)?;
    // A number that no other folder has: what outlives this process knows it before it is there.
    let name = format!("{prefix}{:08x}{:08x}", Seed::fresh()?.0, Seed::fresh()?.0);
    tree::leave(&place.join(&name), heir);
    let mut folder = tempfile::Builder::new();
    folder.prefix(&name).rand_bytes(0).tempdir_in(place)
}

/// Starts the process that ends what this one leaves. A signal to the process group of this one does not
/// reach it.
fn heir() -> io::Result<Child> {
    let mark = format!("{MARK}={}", mark_of_run());
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", AFTER_THE_END, "sparsek-gate", &mark]);
    shell
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir("/")
        .process_group(0);
    shell
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// A program that runs.
#[derive(Debug)]
struct Started {
    handle: duct::Handle,
    pid: Option<i32>,
    mark: String,
    since: Instant,
}

impl Started {
    fn new(program: &duct::Expression, mark: String) -> io::Result<Started> {
        let since = Instant::now();
        let pid_of = |handle: &duct::Handle| {
            let pid = handle.pids().first().copied()?;
            i32::try_from(pid).ok()
        };
        let handle = tree::start(&mark, heir, || program.start(), pid_of)?;
        Ok(Started {
            pid: pid_of(&handle),
            handle,
            mark,
            since,
        })
    }

    /// Waits for the program's end. At its time limit, once `stopped` says so, and once its output
    /// is larger than `most_output` bytes, it is killed with everything it started.
    fn wait(
        &self,
        timeout: Duration,
        stopped: impl Fn() -> bool,
        outputs: &[fs::File],
        most_output: u64,
    ) -> io::Result<Finished> {
        let (status, forced) = loop {
            let left = timeout.saturating_sub(self.since.elapsed());
            let ended = self.handle.wait_timeout(left.min(POLL))?;
            let forced = if printed(outputs) > most_output {
                Ending::PrintedTooMuch
            } else if let Some(output) = ended {
                break (output.status, None);
            } else if stopped() {
                Ending::Interrupted
            } else if left.is_zero() {
                Ending::TimedOut
            } else {
                continue;
            };
            self.signal(Signal::TERM);
            if self.handle.wait_timeout(GRACE)?.is_none() {
                self.signal(Signal::KILL);
            }
            let status = self.handle.wait()?.status;
            self.signal(Signal::KILL);
            break (status, Some(forced));
        };
        tree::ended(self.pid);
        let ending = forced.unwrap_or_else(|| Ending::of(status));
        Ok(Finished {
            ending,
            wall: self.since.elapsed(),
        })
    }

    /// Sends a signal to the program and everything it started.
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.pid.and_then(Pid::from_raw) {
            // The group may be gone already, which is what is wanted.
            let _ = kill_process_group(group, signal);
        }
        tree::signal(self.pid, &self.mark, signal);
    }
}

/// The argv as one line that can be pasted into a shell.
pub fn shell_line(argv: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    argv.iter()
        .map(|word| {
            if !word.is_empty() && word.chars().all(plain) {
                word.clone()
            } else {
                format!("'{}'", word.replace('\'', r"'\''"))
            }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// The last lines of a log, for messages; at most `lines` lines and 8 KiB.
pub fn tail(path: &Path, lines: usize) -> String {
    const MOST: u64 = 8 * 1024;
    let last = || -> io::Result<Vec<u8>> {
        let mut file = open_regular(path)?;
        let from = file.metadata()?.len().saturating_sub(MOST);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(MOST).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = last().unwrap_or_default();
    last_lines(&String::from_utf8_lossy(&bytes), lines)
}

/// The last lines of a text that are not blank.
pub fn last_lines(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rustix::process::kill_process;

    fn invocation(dir: &Path, script: &str, timeout: Duration) -> Invocation {
        Invocation {
            argv: ["sh", "-c", script].map(String::from).to_vec(),
            dir: dir.to_path_buf(),
            env: BTreeMap::new(),
            timeout,
            stdout: dir.join("out"),
            stderr: dir.join("out"),
        }
    }

    fn query<'a>(dir: &'a Path, script: &str) -> Query<'a> {
        Query {
            argv: ["sh", "-c", script].map(String::from).to_vec(),
            dir,
            env: BTreeMap::new(),
            without: &["HOME"],
            input: b"a\n".to_vec(),
            timeout: Duration::from_secs(20),
            interruptible: true,
        }
    }

    #[test]
    fn a_program_that_is_named_by_a_path_is_below_the_folder_that_it_runs_in() {
        let dir = tempfile::tempdir().unwrap();
        let shell = Path::new("/bin/sh").canonicalize().unwrap();
        std::os::unix::fs::symlink(shell, dir.path().join("shell")).unwrap();
        let ran = Invocation {
            argv: ["./shell", "-c", "exit 7"].map(String::from).to_vec(),
            ..invocation(dir.path(), "", Duration::from_secs(20))
        };
        assert_eq!(ran.run().unwrap().ending, Ending::Exited(7));
    }

    #[test]
    fn an_answer_that_is_too_large_is_no_answer_and_not_the_first_part_of_one() {
        let dir = tempfile::tempdir().unwrap();
        let script = format!("truncate -s {} /proc/self/fd/1", MOST_ANSWER + 1);
        let printed = query(dir.path(), &script).run().unwrap();
        assert_eq!(printed.ending, Ending::PrintedTooMuch);
    }

    #[test]
    fn a_program_that_cannot_be_started_is_an_error_and_not_an_ending() {
        let dir = tempfile::tempdir().unwrap();
        let mut run = invocation(dir.path(), "", Duration::from_secs(20));
        run.argv = vec!["/nonexistent/program".into()];
        assert_eq!(run.run().unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_time_out_kills_grandchildren_that_left_the_process_group() {
        let dir = tempfile::tempdir().unwrap();
        let script = "setsid sh -c 'echo $$ >escaped; exec sleep 300' & trap '' TERM; \
                      while ! [ -s escaped ]; do :; done; echo started; while :; do sleep 300; done";
        let run = invocation(dir.path(), script, Duration::from_secs(10));
        assert_eq!(run.run().unwrap().ending, Ending::TimedOut);
        let escaped = fs::read_to_string(dir.path().join("escaped")).unwrap();
        let state = fs::read_to_string(format!("/proc/{}/stat", escaped.trim()));
        assert!(
            state.as_ref().map_or(true, |stat| stat.contains(") Z ")),
            "process {escaped} still runs: {state:?}"
        );
    }

    #[test]
    fn programs_that_stop_themselves_are_held_with_their_children_until_their_turn() {
        let dir = tempfile::tempdir().unwrap();
        // The child writes as long as it runs; the grandchild stops itself, which holds all of them.
        let script = |name: &str, rest: &str| {
            format!(
                "(while :; do echo >>{name}.child; sleep 0.01; done) & sh -c 'kill -STOP $$; echo >>order {name}'; {rest}"
            )
        };
        let start = |name: &str, rest: &str| {
            let mut run = invocation(dir.path(), &script(name, rest), Duration::from_secs(20));
            run.stdout = dir.path().join(name);
            run.stderr = run.stdout.clone();
            run.start().unwrap()
        };
        let ended = invocation(dir.path(), "exit 3", Duration::from_secs(20));
        let written_again =
            "n=$(wc -c <b.child); until [ $(wc -c <b.child) -gt $n ]; do sleep 0.01; done";
        let mut programs = vec![
            start("a", ""),
            start("b", &format!("{written_again}; kill -STOP $$; exit 5")),
            ended.start().unwrap(),
        ];
        let standing = Running::hold(&mut programs.iter_mut().collect::<Vec<_>>()).unwrap();
        assert_eq!(standing, [Standing::Held, Standing::Held, Standing::Ended]);
        let written = |name: &str| fs::metadata(dir.path().join(name)).map_or(0, |file| file.len());
        let before = ["a.child", "b.child"].map(written);
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(["a.child", "b.child"].map(written), before);
        let third = programs.pop().unwrap();
        assert_eq!(third.end().unwrap().ending, Ending::Exited(3));
        // Its own process stops at the end of its turn; a child that stops is not its end.
        let mut last = programs.pop().unwrap();
        let rests = |_| {
            let order = fs::read_to_string(dir.path().join("order"));
            order.is_ok_and(|it| it == "b\n").then_some(Rest::Over)
        };
        assert_eq!(last.turn(rests).unwrap(), Turn::Stopped(Rest::Over));
        assert!(!Running::any_moved([&last, &programs[0]].into_iter()));
        let after = written("b.child");
        assert!(after > before[1]);
        assert_eq!(written("a.child"), before[0]);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(written("b.child"), after);
        last.go_on();
        assert_eq!(last.end().unwrap().ending, Ending::Exited(5));
        // Somebody wakes it.
        let first = programs[0].started.pid.unwrap();
        kill_process(Pid::from_raw(first).unwrap(), Signal::CONT).unwrap();
        let awake = Instant::now();
        while !Running::any_moved(programs.iter()) && awake.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(OFTEN);
        }
        assert!(Running::any_moved(programs.iter()));
        drop(programs);
        assert!(!Path::new(&format!("/proc/{first}")).exists());
        assert_eq!(fs::read_to_string(dir.path().join("order")).unwrap(), "b\n");
    }

    #[test]
    fn memory_is_scarce_below_a_sixteenth() {
        let meminfo = |available| {
            format!(
                "MemTotal:       134217728 kB\nMemFree:        1000 kB\nMemAvailable:   {available} kB\n"
            )
        };
        assert!(!is_scarce(&meminfo(8_388_608)));
        assert!(is_scarce(&meminfo(8_388_607)));
        assert!(!is_scarce("MemTotal: 134217728 kB\n"));
    }

    #[test]
    fn a_program_that_stops_nothing_is_late_at_its_time_limit_and_goes_on_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let script = "while :; do echo >>beats; sleep 0.01; done";
        let run = invocation(dir.path(), script, Duration::from_millis(200));
        let mut programs = vec![run.start().unwrap()];
        let standing = Running::hold(&mut [&mut programs[0]]).unwrap();
        assert_eq!(standing, [Standing::Late]);
        let beats = || fs::metadata(dir.path().join("beats")).unwrap().len();
        let before = beats();
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(beats(), before);
        let ended = programs.pop().unwrap().end().unwrap();
        assert_eq!(ended.ending, Ending::TimedOut);
    }

    #[test]
    fn a_query_reads_its_input_and_returns_both_streams_and_leaves_what_stays_behind() {
        let dir = tempfile::tempdir().unwrap();
        let script = "cat; echo b >&2; echo \"${HOME-none}\"; sleep 300 & echo $! >left; exit 7";
        let printed = query(dir.path(), script).run().unwrap();
        let left = fs::read_to_string(dir.path().join("left")).unwrap();
        let left = Pid::from_raw(left.trim().parse().unwrap()).unwrap();
        kill_process(left, Signal::KILL).unwrap();
        assert_eq!(printed.ending, Ending::Exited(7));
        assert_eq!(printed.stdout, b"a\nnone\n");
        assert_eq!(printed.stderr, b"b\n");
    }

    /// Source files below a folder, with their text up to their unit tests.
    pub(crate) fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(sources(&path));
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
                let code = code.split("#[cfg(test)]\npub(crate) mod ").next().unwrap();
                found.push((path, code.to_owned()));
            }
        }
        found
    }

    #[test]
    fn no_other_source_file_starts_a_program() {
        const STARTS: [&str; 6] = [
            "duct::", "process::Command", "Command::new(", "CommandExt", "posix_spawn", "execv",
        ];
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        // `product::<f64>()` ends with the name of a crate, and is another word.
        let is_word =
            |code: &str, at: usize| !code[..at].ends_with(|it: char| it.is_alphanumeric());
        let starts = |code: &str| {
            let found = |it: &&&str| code.match_indices(**it).any(|(at, _)| is_word(code, at));
            STARTS.iter().filter(found).count()
        };
        let found: Vec<PathBuf> = sources(&root)
            .into_iter()
            .filter(|(_, code)| starts(code) > 0)
            .map(|(path, _)| path.strip_prefix(&root).unwrap().to_path_buf())
            .collect();
        assert_eq!(found, [Path::new("process/mod.rs")]);
    }

    #[test]
    fn a_shell_line_can_be_pasted() {
        let argv = ["a b", "it's", "-x=1", ""].map(String::from);
        assert_eq!(shell_line(&argv), r"'a b' 'it'\''s' -x=1 ''");
    }
}
