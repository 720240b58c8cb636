//! The processes that descend from this one, and their end.
//!
//! A program can leave its process group and its session, and can clear the mark in its environment.
//! It cannot leave the processes that descend from this one: this process is their subreaper, so a
//! process whose parent has ended becomes its child.

#![expect(
    clippy::disallowed_methods,
    reason = "only /proc is read, many times a second"
)]

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process,
    set_child_subreaper, set_dumpable_behavior, waitid, waitpid,
};

/// Variable that marks the environment of every program, with the value of its own run.
pub(crate) const MARK: &str = "SPARSEK_GATE_RUN";
/// How long processes are killed that start others meanwhile.
const AT_MOST: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(5);
/// Between two looks at programs that run beside.
const SELDOM: Duration = Duration::from_millis(50);

static TREE: Mutex<Tree> = Mutex::new(Tree {
    adopts: false,
    started: BTreeMap::new(),
    held: BTreeSet::new(),
    spared: BTreeSet::new(),
    heir: None,
});

/// What this process knows of its children.
struct Tree {
    /// Whether processes without a parent become children of this one.
    adopts: bool,
    /// The programs that run, by process, with their marks.
    started: BTreeMap<i32, String>,
    /// Those of them that are stopped with all that they started.
    held: BTreeSet<i32>,
    /// Children that are none of the programs under test.
    spared: BTreeSet<Process>,
    /// What ends the programs where this process is killed.
    heir: Option<Child>,
}

/// A process, by its number and the time of its start.
type Process = (i32, u64);

/// A process as `/proc` shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stat {
    pid: i32,
    pub(crate) parent: i32,
    pub(crate) ended: bool,
    stopped: bool,
    since: u64,
}

fn tree() -> MutexGuard<'static, Tree> {
    TREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this process the parent of every process below it that loses its own, so that none
/// outlives its program, and hides the memory and the environment of this process from those of
/// the same user.
///
/// # Errors
/// Where the system does not allow one of the two.
pub fn guard() -> io::Result<()> {
    // Without it no process would be found, and each could stay.
    std::fs::metadata("/proc/self/stat")?;
    let mut tree = tree();
    // The shell that became this program may have left children.
    let own = own_pid();
    let children = stats().into_iter().filter(|stat| stat.parent == own);
    tree.spared
        .extend(children.map(|stat| (stat.pid, stat.since)));
    set_child_subreaper(Pid::from_raw(own))?;
    tree.adopts = true;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Starts a program, whose process `pid_of` names, and knows it from then on. `heir` starts what ends the
/// programs where this process is killed, before the first of them.
pub(super) fn start<T>(
    mark: &str,
    heir: impl FnOnce() -> io::Result<Child>,
    start: impl FnOnce() -> io::Result<T>,
    pid_of: impl FnOnce(&T) -> Option<i32>,
) -> io::Result<T> {
    // Held until it is known: another thread could take it for one that lost its parent.
    let mut tree = tree();
    tree.has_heir(heir);
    let started = start()?;
    if let Some(pid) = pid_of(&started) {
        tree.started.insert(pid, mark.to_owned());
    }
    Ok(started)
}

/// What ends the programs removes this folder, too.
pub(super) fn leave(folder: &Path, heir: impl FnOnce() -> io::Result<Child>) {
    let mut tree = tree();
    tree.has_heir(heir);
    let folder = folder.as_os_str().as_bytes();
    if let (Some(heir), false) = (&mut tree.heir, folder.contains(&b'\n')) {
        let line = [folder, b"\n"].concat();
        // It is gone where somebody killed it: nothing is removed then.
        let _ = heir.stdin.as_mut().map(|input| input.write_all(&line));
    }
}

/// This process is about to end, and leaves alone what is not to be killed.
pub fn over() {
    if let Some(mut heir) = tree().heir.take() {
        let _ = heir.kill();
        let _ = heir.wait();
    }
}

/// A program has ended and was waited for.
pub(super) fn ended(pid: Option<i32>) {
    if let Some(pid) = pid {
        let mut tree = tree();
        tree.started.remove(&pid);
        tree.held.remove(&pid);
    }
}

/// Leaves the processes alone that carry a mark and that their program left behind.
pub(super) fn spare(mark: &str) {
    let mut tree = tree();
    if tree.adopts && has_children() {
        let left = tree.orphans(&stats()).into_iter();
        let left = left.filter(|stat| marks(stat.pid).iter().any(|it| it == mark));
        let left: Vec<Process> = left.map(|stat| (stat.pid, stat.since)).collect();
        tree.spared.extend(left);
    }
}

/// Sends a signal to all processes below a program, and to all that carry its mark.
pub(super) fn signal(root: Option<i32>, mark: &str, signal: Signal) {
    for stat in Snapshot::now().members(root, mark) {
        send(stat.pid, signal);
    }
}

/// Stops all processes of a program, also those that it starts meanwhile. Returns how long they have run
/// once nothing of them runs any more; `None` where that takes longer than [`AT_MOST`].
pub(super) fn stop(root: Option<i32>, mark: &str) -> Option<RunTime> {
    let until = Instant::now() + AT_MOST;
    tree().held.extend(root);
    let mut before = None;
    while Instant::now() < until {
        let now = Snapshot::now();
        let mut left = now.members(root, mark);
        left.retain(|stat| !stat.ended && !stat.stopped);
        for stat in &left {
            send(stat.pid, Signal::STOP);
        }
        // The first thread of a process may be stopped before its others are.
        let ran = Some(run_time(&now, root, mark));
        if left.is_empty() && ran == before {
            return ran;
        }
        before = ran;
        std::thread::sleep(AGAIN);
    }
    None
}

/// How long each thread of a program's processes has run, in nanoseconds, by process and thread.
pub(super) type RunTime = BTreeMap<(i32, i32), u64>;

/// How long each thread of a program has run until now, of the processes of a snapshot. `/proc/PID/task/TID/schedstat` begins with it (proc(5) of Linux names `schedstat`;
/// `Documentation/scheduler/sched-stats.rst`: "time spent on the cpu (in nanoseconds)").
pub(super) fn run_time(all: &Snapshot, root: Option<i32>, mark: &str) -> RunTime {
    let threads_of = |stat: Stat| {
        let tasks = fs::read_dir(format!("/proc/{}/task", stat.pid));
        let tasks = tasks.into_iter().flatten().flatten();
        tasks.filter_map(move |task| {
            let thread = task.file_name().to_str()?.parse::<i32>().ok()?;
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            let time = text.split(' ').next()?.parse::<u64>().ok()?;
            Some(((stat.pid, thread), time))
        })
    };
    let alive = all.members(root, mark).into_iter();
    alive
        .filter(|stat| !stat.ended)
        .flat_map(threads_of)
        .collect()
}

/// Whether a process is stopped.
pub(super) fn is_stopped(pid: Option<i32>) -> bool {
    pid.and_then(stat).is_some_and(|stat| stat.stopped)
}

/// Lets a program that was stopped go on.
pub(super) fn go_on(root: Option<i32>, mark: &str) {
    if let Some(pid) = root {
        tree().held.remove(&pid);
    }
    signal(root, mark, Signal::CONT);
}

/// All processes at one moment, with the marks that they carry.
pub(super) struct Snapshot {
    all: Vec<Stat>,
    /// Of each. Older processes than this one carry no mark of its programs, and are most.
    marks: Vec<Vec<String>>,
}

impl Snapshot {
    pub(super) fn now() -> Snapshot {
        let all = stats();
        let own = all.iter().find(|stat| stat.pid == own_pid());
        let own = own.map_or(0, |stat| stat.since);
        let marks = all.iter().map(|stat| match stat.since >= own {
            true => marks(stat.pid),
            false => Vec::new(),
        });
        Snapshot {
            marks: marks.collect(),
            all,
        }
    }

    /// The processes of a program: those below it, and those that carry its mark.
    fn members(&self, root: Option<i32>, mark: &str) -> Vec<Stat> {
        let below = root.into_iter().flat_map(|pid| below(&self.all, pid));
        let below: BTreeSet<i32> = below.collect();
        let all = self.all.iter().zip(&self.marks);
        let members = all.filter(|(stat, marks)| {
            below.contains(&stat.pid) || marks.iter().any(|carried| carried == mark)
        });
        members.map(|(stat, _)| *stat).collect()
    }
}

/// Whether a process below each of these is stopped, or the process itself.
pub(super) fn stopped_below(roots: &[i32]) -> Vec<bool> {
    let all = stats();
    let stopped: Vec<i32> = all
        .iter()
        .filter(|stat| stat.stopped)
        .map(|stat| stat.pid)
        .collect();
    let holds = |root: &i32| {
        !stopped.is_empty() && below(&all, *root).iter().any(|pid| stopped.contains(pid))
    };
    roots.iter().map(holds).collect()
}

/// The programs that run, by process, with their marks.
pub(crate) fn running() -> BTreeMap<i32, String> {
    tree().started.clone()
}

/// Whether a process is below this one that is of none of its programs.
pub(super) fn has_strays() -> bool {
    let tree = tree();
    let all = stats();
    tree.adopts && tree.orphans(&all).iter().any(|orphan| !orphan.ended)
}

/// Kills every process below this one that is below no program that still runs, and waits for its
/// end. One that lost its parent and its mark may be of a program that runs beside: it ends once that
/// has ended, which this waits for, too, unless the run is interrupted. Returns those that do not end.
pub(super) fn end_orphans(interrupted: impl Fn() -> bool) -> Vec<i32> {
    let mut until = Instant::now() + AT_MOST;
    loop {
        let (left, waits) = kill_orphans();
        if waits && left.is_empty() && !interrupted() {
            std::thread::sleep(SELDOM);
            until = Instant::now() + AT_MOST;
        } else if left.is_empty() || Instant::now() >= until {
            return left;
        } else {
            std::thread::sleep(AGAIN);
        }
    }
}

/// Kills them once. Returns which there were, and whether there are some that may be of a program that
/// runs beside.
pub(super) fn kill_orphans() -> (Vec<i32>, bool) {
    let mut waits = false;
    let left = {
        let tree = tree();
        if !tree.adopts || !has_children() {
            return (Vec::new(), false);
        }
        let all = stats();
        let mut left = Vec::new();
        for orphan in tree.orphans(&all) {
            if orphan.ended {
                let pid = Pid::from_raw(orphan.pid);
                let _ = waitpid(pid, WaitOptions::NOHANG);
            } else if tree.may_be_of_running(&orphan, &all) {
                waits = true;
            } else {
                left.extend(below(&all, orphan.pid));
            }
        }
        left
    };
    for pid in &left {
        send(*pid, Signal::KILL);
    }
    (left, waits)
}

/// What the marks of all programs of this process begin with, and those of no other process.
pub fn mark_of_run() -> String {
    static CHANCE: OnceLock<u64> = OnceLock::new();
    let own = CHANCE.get_or_init(chance);
    format!("{own:016x}-{}-", own_pid())
}

/// A number that nobody knows before.
pub(super) fn chance() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl Tree {
    /// Starts the heir, unless there is one.
    fn has_heir(&mut self, heir: impl FnOnce() -> io::Result<Child>) {
        if self.adopts && self.heir.is_none() {
            self.heir = heir().ok();
            let known = self.heir.iter().flat_map(|heir| i32::try_from(heir.id()));
            let known = known.filter_map(stat).map(|it| (it.pid, it.since));
            self.spared.extend(known);
        }
    }

    /// The children that lost their own parent, as far as they are of no program that still runs.
    fn orphans(&self, all: &[Stat]) -> Vec<Stat> {
        let own = own_pid();
        let runs = |mark: &String| self.started.values().any(|it| it == mark);
        let of_running = |pid| marks(pid).iter().any(runs);
        all.iter()
            .filter(|stat| stat.parent == own)
            .filter(|stat| !self.started.contains_key(&stat.pid))
            .filter(|stat| !self.spared.contains(&(stat.pid, stat.since)))
            .filter(|stat| !of_running(stat.pid))
            .copied()
            .collect()
    }

    /// Whether an orphan carries no mark, and a program runs that is not younger. One that is held waits
    /// for others to end, so nothing may wait for it.
    fn may_be_of_running(&self, orphan: &Stat, all: &[Stat]) -> bool {
        let running = all.iter().filter(|stat| !stat.ended);
        let runs = |pid| self.started.contains_key(pid) && !self.held.contains(pid);
        let mut running = running.filter(|stat| runs(&stat.pid));
        running.any(|stat| stat.since <= orphan.since) && marks(orphan.pid).is_empty()
    }
}

/// A process and all below it, without those that have ended.
fn below(all: &[Stat], root: i32) -> Vec<i32> {
    let mut found: BTreeSet<i32> = BTreeSet::from([root]);
    loop {
        let before = found.len();
        let children = all.iter().filter(|stat| found.contains(&stat.parent));
        let children: Vec<i32> = children.map(|stat| stat.pid).collect();
        found.extend(children);
        if found.len() == before {
            break;
        }
    }
    let alive = all.iter().filter(|stat| !stat.ended);
    alive
        .map(|stat| stat.pid)
        .filter(|pid| found.contains(pid))
        .collect()
}

/// Whether this process has a child, also one that has ended. To read of all processes who their parent
/// is takes longer than most programs run that are asked something.
fn has_children() -> bool {
    let only_looks = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, only_looks), Err(Errno::CHILD))
}

fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It may be gone already, which is what is wanted.
        let _ = kill_process(pid, signal);
    }
}

/// All processes.
fn stats() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(stat)
        .collect()
}

/// A process.
pub(crate) fn stat(pid: i32) -> Option<Stat> {
    // One call returns all of such a file, which is read of every process.
    let mut text = [0; 1024];
    let mut file = fs::File::open(format!("/proc/{pid}/stat")).ok()?;
    let length = file.read(&mut text).ok()?;
    parse(pid, text.get(..length)?)
}

/// `pid (name) state parent ... start ...`, where the name may contain any byte.
fn parse(pid: i32, line: &[u8]) -> Option<Stat> {
    let name_ends = memchr::memrchr(b')', line)?;
    let fields = std::str::from_utf8(line.get(name_ends + 2..)?).ok()?;
    let mut fields = fields.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    // Of a process whose first thread has ended, others may go on.
    let threads: u32 = fields.nth(15)?.parse().ok()?;
    Some(Stat {
        pid,
        ended: state == "X" || state == "Z" && threads <= 1,
        stopped: state == "T",
        parent,
        since: fields.nth(1)?.parse().ok()?,
    })
}

/// All marks in the environment of a process.
pub(crate) fn marks(pid: i32) -> Vec<String> {
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    // Most processes are no programs of this tool.
    if memchr::memmem::find(&environ, MARK.as_bytes()).is_none() {
        return Vec::new();
    }
    let variables = environ.split(|&byte| byte == 0);
    let variables = variables.filter_map(|variable| std::str::from_utf8(variable).ok());
    let marks = variables.filter_map(|it| it.strip_prefix(MARK)?.strip_prefix('='));
    marks.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_below_a_process_is_found_and_what_has_ended_is_left_out() {
        let line = |pid: i32, state: &str, parent: i32| {
            let text = format!("{pid} (a) R) {state} {parent} {}77", "0 ".repeat(17));
            parse(pid, text.as_bytes()).unwrap()
        };
        let all = [
            line(5, "S", 4),
            line(4, "T", 3),
            line(3, "R", 1),
            line(6, "Z", 3),
            line(7, "S", 1),
        ];
        let threads = format!("8 (a) Z 3 {}2 0 77", "0 ".repeat(15));
        assert!(!parse(8, threads.as_bytes()).unwrap().ended);
        assert_eq!(all[0].since, 77);
        assert_eq!(below(&all, 3), [5, 4, 3]);
        assert_eq!(below(&all, 6), [0; 0]);
        assert!(parse(1, b"1 (a) R 1").is_none());
    }
}
