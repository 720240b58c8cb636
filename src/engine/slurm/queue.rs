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
const NEVER: [&str; 10] = [
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
];
/// The reason of a slice that its node could not launch, and that Slurm holds.
const HELD: &str = "launch failed requeued held";
/// The reason of one whose script its node could not start.
const NOT_LAUNCHED: &str = "JobLaunchFailure";

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
        listed(name, "%T|%r", dir).map(|text| Queue::parsed(&text))
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

    /// Whether Slurm holds what waits because a node could not launch it.
    pub fn is_held(&self) -> bool {
        self.reason.as_deref() == Some(HELD)
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

/// What squeue lists of the jobs of a name, in any state; also of partitions that it hides otherwise.
fn listed(name: &str, format: &str, dir: &Path) -> Result<String, String> {
    let argv = ["squeue", "--all", "--noheader", "--array", "--states=all"].map(str::to_owned);
    let more = [format!("--name={name}"), format!("--format={format}")];
    let printed = ask(&[&argv[..], &more].concat(), dir)?;
    Ok(String::from_utf8_lossy(&printed.stdout).into_owned())
}

/// The slices of a job whose scripts their nodes could not start, with the nodes, as long as Slurm
/// remembers them.
///
/// # Errors
/// Why there is no answer, in words.
pub(super) fn failed_launches(name: &str, dir: &Path) -> Result<Vec<(u32, String)>, String> {
    listed(name, "%K|%r|%N", dir).map(|text| parsed_launches(&text))
}

fn parsed_launches(text: &str) -> Vec<(u32, String)> {
    let lines = text.lines().filter_map(|line| {
        let mut parts = line.trim().split('|');
        let (slice, reason, node) = (parts.next()?, parts.next()?, parts.next()?);
        let is_one = !node.is_empty() && !node.contains(['[', ',']);
        let failed = reason == NOT_LAUNCHED && is_one;
        failed.then_some((slice.parse().ok()?, node.to_owned()))
    });
    lines.collect()
}

/// Cancels every job of a name, until none is left or `most` is over. Returns whether none is left.
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
        assert_eq!(
            parsed_launches("1|None|one\n2|JobLaunchFailure|two\n3|JobLaunchFailure|\n"),
            [(2, "two".to_owned())]
        );
        let held = Queue::parsed("PENDING|launch failed requeued held\nRUNNING|None\n");
        assert!(held.is_held() && held.never(false).is_none());
        // Nodes may come back, but a repeat does not wait for that.
        let down = Queue::parsed("PENDING|ReqNodeNotAvail, UnavailableNodes:two\n");
        assert_eq!(down.never(false), None);
        let why = "ReqNodeNotAvail, UnavailableNodes:two";
        assert_eq!(down.never(true), Some(why));
    }
}
