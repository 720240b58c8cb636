//! What Slurm says of the jobs of a name, and their end.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::process::{Ending, Printed, Query, last_lines};

/// How long one answer may take: a controller that is busy repeats for a minute.
const ANSWER: Duration = Duration::from_secs(120);
/// Between two looks while jobs are cancelled.
const AGAIN: Duration = Duration::from_secs(1);
/// Variables by which the commands find their cluster. Others that begin with SLURM belong to a job
/// that this process may run in, and those of sbatch would change the options.
const CLIENT: [&str; 2] = ["SLURM_CONF", "SLURM_JWT"];

/// States of a job that has ended, as squeue names them.
const ENDED: [&str; 10] = [
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REVOKED",
    "TIMEOUT",
];
/// Why a job that waits will never start, unless somebody changes the cluster.
const NEVER: [&str; 11] = [
    "AccountNotAllowed",
    "AssocMaxWallDurationPerJobLimit",
    "BadConstraints",
    "InvalidAccount",
    "InvalidQOS",
    "JobHeldAdmin",
    "PartitionNodeLimit",
    "PartitionTimeLimit",
    "QOSMaxWallDurationPerJobLimit",
    "QOSNotAllowed",
    "launch failed requeued held",
];

/// How the reasons begin of a job that waits for nodes that are down, drained or reserved.
const DOWN: [&str; 2] = ["ReqNodeNotAvail", "Nodes required for job are DOWN"];

/// The variables of this process by which the commands find their cluster.
pub(super) fn client() -> BTreeMap<String, String> {
    let set = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
    CLIENT.into_iter().filter_map(set).collect()
}

/// Runs a command of Slurm.
///
/// # Errors
/// Why there is no answer, in words.
pub(super) fn ask(argv: &[String], dir: &Path) -> Result<Printed, String> {
    let program = argv.first().map_or("", String::as_str);
    let query = Query {
        argv: argv.to_vec(),
        dir,
        env: client(),
        without: &[],
        input: Vec::new(),
        timeout: ANSWER,
        // What is asked while a run is interrupted must be answered too.
        interruptible: false,
    };
    let printed = query
        .run()
        .map_err(|error| format!("{program} cannot be run: {error}"))?;
    match printed.ending {
        Ending::Exited(0) => Ok(printed),
        ending => {
            let why = last_lines(&String::from_utf8_lossy(&printed.stderr), 3);
            Err(format!("{program} failed ({ending}): {why}"))
        }
    }
}

/// The slices of a job, by what Slurm does with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Queue {
    pub waiting: u32,
    pub running: u32,
    /// Why those wait that do; of several reasons the first.
    pub reason: Option<String>,
}

impl Queue {
    /// The jobs of a name.
    ///
    /// # Errors
    /// Why there is no answer, in words.
    pub fn of(name: &str, dir: &Path) -> Result<Queue, String> {
        let argv = ["squeue", "--noheader", "--array", "--states=all"].map(str::to_owned);
        let more = [format!("--name={name}"), "--format=%T|%r".to_owned()];
        let printed = ask(&[&argv[..], &more].concat(), dir)?;
        Ok(Queue::parsed(&String::from_utf8_lossy(&printed.stdout)))
    }

    fn parsed(text: &str) -> Queue {
        let mut queue = Queue::default();
        for line in text.lines() {
            let (state, reason) = line.trim().split_once('|').unwrap_or((line.trim(), ""));
            if state.is_empty() || ENDED.contains(&state) {
                continue;
            }
            // A state that is not known here may still run.
            if state != "PENDING" {
                queue.running += 1;
                continue;
            }
            queue.waiting += 1;
            if queue.reason.is_none() && !["", "None", "Priority"].contains(&reason) {
                queue.reason = Some(reason.to_owned());
            }
        }
        queue
    }

    /// Whether no job is left.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0 && self.running == 0
    }

    /// Why what waits will never start; for a job that must not run on some nodes also why it will not
    /// soon.
    pub fn never(&self, is_elsewhere: bool) -> Option<&str> {
        let reason = self.reason.as_deref()?;
        let is_down = || DOWN.iter().any(|down| reason.starts_with(down));
        let is_never = NEVER.contains(&reason) || (is_elsewhere && is_down());
        is_never.then_some(reason)
    }
}

/// Cancels every job of a name, or of several with commas between, until none is left or `most` is over. Returns whether none is left.
pub(super) fn cancel(name: &str, dir: &Path, most: Duration) -> bool {
    let until = Instant::now() + most;
    loop {
        let argv = ["scancel".to_owned(), format!("--name={name}")];
        let cancelled = ask(&argv, dir);
        if cancelled.is_ok() && Queue::of(name, dir).is_ok_and(|queue| queue.is_empty()) {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(AGAIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_not_ended_for_certain_is_left() {
        let text = "COMPLETED|None\nRUNNING|None\nCOMPLETING|None\nPENDING|Resources\nFAILED|NonZeroExitCode\nSOMETHING_NEW|None\nPENDING|Priority\n";
        let queue = Queue::parsed(text);
        assert_eq!((queue.waiting, queue.running), (2, 3));
        assert_eq!(queue.reason.as_deref(), Some("Resources"));
        assert_eq!(queue.never(false), None);
        assert!(Queue::parsed("").is_empty());
        assert!(Queue::parsed("CANCELLED|None\nNODE_FAIL|None\n").is_empty());
        let never = Queue::parsed("PENDING|PartitionTimeLimit\n");
        assert_eq!(never.never(false), Some("PartitionTimeLimit"));
        // Nodes may come back, but a repeat does not wait for that.
        let down = Queue::parsed("PENDING|ReqNodeNotAvail, UnavailableNodes:two\n");
        assert_eq!(down.never(false), None);
        let why = "ReqNodeNotAvail, UnavailableNodes:two";
        assert_eq!(down.never(true), Some(why));
    }
}
