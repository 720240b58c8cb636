//! The one place that runs programs.
//!
//! Every program gets its own process group, a time limit, files for its output, and a mark in
//! its environment. On a time-out the group is killed, and so is every process that carries the
//! mark: the profiled program is a grandchild, and a grandchild may have left the group.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde::{Deserialize, Serialize};

pub(crate) const MARK: &str = "SPARSEK_GATE_RUN";
const POLL: Duration = Duration::from_millis(50);
const GRACE: Duration = Duration::from_millis(300);

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
static RUNS: AtomicU64 = AtomicU64::new(0);

/// Makes SIGINT, SIGTERM and SIGHUP stop running programs in order, rather than leave them behind.
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
    /// When it is killed.
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
    /// Its time was up and its whole tree was killed.
    TimedOut,
    /// The run was interrupted and its whole tree was killed.
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
        let Some((program, arguments)) = self.argv.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "empty command"));
        };
        let mark = format!(
            "{}-{}",
            std::process::id(),
            RUNS.fetch_add(1, Ordering::Relaxed)
        );
        let program = duct::cmd(program, arguments);
        // What is added last acts first: standard error must follow a redirected standard output.
        let redirected = if self.stderr == self.stdout {
            program.stderr_to_stdout()
        } else {
            program.stderr_path(&self.stderr)
        };
        let mut expression = redirected
            .stdout_path(&self.stdout)
            .stdin_null()
            .dir(&self.dir)
            .env(MARK, &mark)
            .unchecked()
            .before_spawn(|command| {
                command.process_group(0);
                Ok(())
            });
        for (name, value) in &self.env {
            expression = expression.env(name, value);
        }

        let start = Instant::now();
        let handle = expression.start()?;
        let group = handle
            .pids()
            .first()
            .and_then(|&pid| i32::try_from(pid).ok());
        let mut ending = None;
        let status = loop {
            let left = self.timeout.saturating_sub(start.elapsed());
            if let Some(output) = handle.wait_timeout(left.min(POLL))? {
                break output.status;
            }
            let forced = if interrupted() {
                Some(Ending::Interrupted)
            } else if left.is_zero() {
                Some(Ending::TimedOut)
            } else {
                None
            };
            if forced.is_some() {
                ending = forced;
                signal_tree(group, &mark, Signal::TERM);
                if handle.wait_timeout(GRACE)?.is_none() {
                    signal_tree(group, &mark, Signal::KILL);
                }
                break handle.wait()?.status;
            }
        };
        // Whatever outlived the program would disturb the next measurement.
        signal_tree(group, &mark, Signal::KILL);
        let ending = ending.unwrap_or_else(|| match (status.code(), status.signal()) {
            (Some(code), _) => Ending::Exited(code),
            (None, Some(signal)) => Ending::Signalled(signal),
            (None, None) => Ending::Exited(-1),
        });
        Ok(Finished {
            ending,
            wall: start.elapsed(),
        })
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
        let mut file = fs::File::open(path)?;
        let from = file.metadata()?.len().saturating_sub(MOST);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(MOST).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = last().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
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
    fn a_shell_line_can_be_pasted() {
        let argv = ["a b", "it's", "-x=1", ""].map(String::from);
        assert_eq!(shell_line(&argv), r"'a b' 'it'\''s' -x=1 ''");
    }
}
