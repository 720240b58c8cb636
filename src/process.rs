//! The one place that runs programs.
//!
//! Every program gets its own process group, a time limit, files for its output, and a mark in
//! its environment. On a time-out the group is killed, and so is every process that carries the
//! mark: the profiled program is a grandchild, and a grandchild may have left the group.
//!
//! An [`Invocation`] leaves its output in files that are kept; a [`Query`] is run for its output.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::files::{most, open_regular};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde::{Deserialize, Serialize};

pub(crate) const MARK: &str = "SPARSEK_GATE_RUN";
const POLL: Duration = Duration::from_millis(50);
const GRACE: Duration = Duration::from_millis(300);

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
static STARTS_NOTHING: AtomicBool = AtomicBool::new(false);
static RUNS: AtomicU64 = AtomicU64::new(0);

/// Makes SIGINT, SIGTERM and SIGHUP stop the programs that run, rather than leave them behind.
///
/// # Errors
/// Where the handlers cannot be installed.
pub fn stop_on_signals() -> io::Result<()> {
    let flag = INTERRUPTED.get_or_init(|| Arc::new(AtomicBool::new(false)));
    for signal in [
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
    ] {
        // A second signal while the first is being served ends the program at once.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(flag))?;
        signal_hook::flag::register(signal, Arc::clone(flag))?;
    }
    Ok(())
}

/// From now on no [`Invocation`] starts a program, and no tool is asked for its version: a dry run
/// promises that. A [`Query`] of git, which reads, is still made.
pub fn start_nothing() {
    STARTS_NOTHING.store(true, Ordering::Relaxed);
}

/// Whether programs may be started.
///
/// # Errors
/// Where [`start_nothing`] was called.
pub(crate) fn may_start() -> io::Result<()> {
    match STARTS_NOTHING.load(Ordering::Relaxed) {
        true => Err(io::Error::other("a dry run starts no program")),
        false => Ok(()),
    }
}

/// Whether a signal asked the run to stop.
pub fn interrupted() -> bool {
    INTERRUPTED
        .get()
        .is_some_and(|flag| flag.load(Ordering::Relaxed))
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
    /// Runs the program to its end, or kills it and everything it started.
    ///
    /// # Errors
    /// Where the program could not be started at all, or its output files not be created.
    pub fn run(&self) -> io::Result<Finished> {
        may_start()?;
        let mark = new_mark();
        let program = command(&self.argv)?;
        // What is added last acts first: standard error must follow a redirected standard output.
        let redirected = if self.stderr == self.stdout {
            program.stderr_to_stdout()
        } else {
            program.stderr_path(&self.stderr)
        };
        let expression = redirected.stdout_path(&self.stdout).stdin_null();
        let expression = placed(expression, &self.dir, &self.env, &mark);
        let started = Started::new(&expression, mark)?;
        let finished = started.wait(self.timeout, interrupted)?;
        // A process that outlives the program would disturb the next measurement.
        started.signal(Signal::KILL);
        Ok(finished)
    }
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
    /// Variables removed from the environment.
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
    /// Its standard output.
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
        let mark = new_mark();
        // Files and not pipes: a process that stays behind may keep a pipe open for ever.
        let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let expression = command(&self.argv)?
            .stdout_file(stdout.try_clone()?)
            .stderr_file(stderr.try_clone()?);
        let expression = match self.input.as_slice() {
            [] => expression.stdin_null(),
            input => expression.stdin_bytes(input),
        };
        let mut expression = placed(expression, self.dir, &self.env, &mark);
        for name in self.without {
            expression = expression.env_remove(name);
        }
        let stopped = || self.interruptible && interrupted();
        let finished = Started::new(&expression, mark)?.wait(self.timeout, stopped)?;
        Ok(Printed {
            ending: finished.ending,
            stdout: read_back(&mut stdout)?,
            stderr: read_back(&mut stderr)?,
        })
    }
}

fn read_back(file: &mut fs::File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(most::BINARY).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn command(argv: &[String]) -> io::Result<duct::Expression> {
    let (program, arguments) = argv
        .split_first()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "empty command"))?;
    Ok(duct::cmd(program, arguments))
}

/// A value of [`MARK`] that no other program of this machine carries.
fn new_mark() -> String {
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    format!("{}-{run}", std::process::id())
}

/// The program in its folder and environment, and in a process group of its own.
fn placed(
    program: duct::Expression,
    dir: &Path,
    env: &BTreeMap<String, String>,
    mark: &str,
) -> duct::Expression {
    let mut expression = program
        .dir(dir)
        .env(MARK, mark)
        .unchecked()
        .before_spawn(|command| {
            command.process_group(0);
            Ok(())
        });
    for (name, value) in env {
        expression = expression.env(name, value);
    }
    expression
}

/// A program that runs.
struct Started {
    handle: duct::Handle,
    group: Option<i32>,
    mark: String,
    since: Instant,
}

impl Started {
    fn new(program: &duct::Expression, mark: String) -> io::Result<Started> {
        let since = Instant::now();
        let handle = program.start()?;
        let pid = handle.pids().first().copied();
        Ok(Started {
            group: pid.and_then(|pid| i32::try_from(pid).ok()),
            handle,
            mark,
            since,
        })
    }

    /// Waits for the program's end. At its time limit, and once `stopped` says so, it is killed
    /// with everything it started.
    fn wait(&self, timeout: Duration, stopped: impl Fn() -> bool) -> io::Result<Finished> {
        let (status, forced) = loop {
            let left = timeout.saturating_sub(self.since.elapsed());
            if let Some(output) = self.handle.wait_timeout(left.min(POLL))? {
                break (output.status, None);
            }
            let forced = if stopped() {
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
        let ending = forced.unwrap_or_else(|| match (status.code(), status.signal()) {
            (Some(code), _) => Ending::Exited(code),
            (None, Some(signal)) => Ending::Signalled(signal),
            (None, None) => Ending::Exited(-1),
        });
        Ok(Finished {
            ending,
            wall: self.since.elapsed(),
        })
    }

    /// Sends a signal to the program and everything it started.
    fn signal(&self, signal: Signal) {
        signal_tree(self.group, &self.mark, signal);
    }
}

fn signal_tree(group: Option<i32>, mark: &str, signal: Signal) {
    if let Some(group) = group.and_then(Pid::from_raw) {
        // The group may be gone already, which is what is wanted.
        let _ = kill_process_group(group, signal);
    }
    for pid in marked_processes(mark) {
        let _ = kill_process(pid, signal);
    }
}

/// Processes whose environment carries the mark, wherever they went in the process tree.
fn marked_processes(mark: &str) -> Vec<Pid> {
    let wanted = format!("{MARK}={mark}");
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environ| environ.split(|&b| b == 0).any(|v| v == wanted.as_bytes()))
        })
        .filter_map(Pid::from_raw)
        .collect()
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
mod tests {
    use super::*;

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

    #[test]
    fn an_exit_status_and_both_streams_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let run = invocation(
            dir.path(),
            "echo a; echo b >&2; exit 7",
            Duration::from_secs(20),
        );
        assert_eq!(run.run().unwrap().ending, Ending::Exited(7));
        assert_eq!(tail(&dir.path().join("out"), 5), "a\nb");
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
        let run = invocation(dir.path(), script, Duration::from_secs(3));
        assert_eq!(run.run().unwrap().ending, Ending::TimedOut);
        let escaped = fs::read_to_string(dir.path().join("escaped")).unwrap();
        let state = fs::read_to_string(format!("/proc/{}/stat", escaped.trim()));
        assert!(
            state.as_ref().map_or(true, |stat| stat.contains(") Z ")),
            "process {escaped} still runs: {state:?}"
        );
    }

    #[test]
    fn a_query_reads_its_input_and_returns_both_streams_and_leaves_what_stays_behind() {
        let dir = tempfile::tempdir().unwrap();
        let script = "cat; echo b >&2; echo \"${HOME-none}\"; sleep 300 & echo $! >left; exit 7";
        let query = Query {
            argv: ["sh", "-c", script].map(String::from).to_vec(),
            dir: dir.path(),
            env: BTreeMap::new(),
            without: &["HOME"],
            input: b"a\n".to_vec(),
            timeout: Duration::from_secs(20),
            interruptible: true,
        };
        let printed = query.run().unwrap();
        let left = fs::read_to_string(dir.path().join("left")).unwrap();
        let left = Pid::from_raw(left.trim().parse().unwrap()).unwrap();
        kill_process(left, Signal::KILL).unwrap();
        assert_eq!(printed.ending, Ending::Exited(7));
        assert_eq!(printed.stdout, b"a\nnone\n");
        assert_eq!(printed.stderr, b"b\n");
    }

    /// Source files below a folder, with their text up to their unit tests.
    fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(sources(&path));
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap();
                found.push((path, code.to_owned()));
            }
        }
        found
    }

    #[test]
    fn no_other_source_file_starts_a_program() {
        const STARTS: [&str; 6] = [
            "duct::",
            "process::Command",
            "Command::new(",
            "CommandExt",
            "posix_spawn",
            "execv",
        ];
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let starts = |code: &str| STARTS.into_iter().filter(|it| code.contains(it)).count();
        let found: Vec<PathBuf> = sources(&root)
            .into_iter()
            .filter(|(_, code)| starts(code) > 0)
            .map(|(path, _)| path.strip_prefix(&root).unwrap().to_path_buf())
            .collect();
        assert_eq!(found, [Path::new("process.rs")]);
    }

    #[test]
    fn a_shell_line_can_be_pasted() {
        let argv = ["a b", "it's", "-x=1", ""].map(String::from);
        assert_eq!(shell_line(&argv), r"'a b' 'it'\''s' -x=1 ''");
    }
}
