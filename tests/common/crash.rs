//! Commands that are killed at random moments, and commands whose disk is full.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sparsek_gate::hash::sha256_file;

use super::stand_in::library;
use super::{Ran, aloud, repository};

/// How often a test kills its command: `SPARSEK_GATE_KILLS`, or a few times.
pub fn kills(few: u32) -> u32 {
    let asked = std::env::var("SPARSEK_GATE_KILLS").ok();
    asked.map_or(few, |asked| asked.parse().unwrap())
}

/// Whether the long version is asked for.
pub fn is_long() -> bool {
    kills(0) >= 100
}

/// Kills a command so many times, each time at a random moment of its run. `start` makes the next
/// one, `look` looks at what it left: whether it ended by itself.
pub fn kill_at_random(
    name: &str,
    count: u32,
    start: impl FnMut() -> Command,
    look: impl FnMut(bool),
) {
    end_at_random(name, count, &[Signal::KILL], start, look);
}

/// The same by the signals of a user and of a service in turn, which end a command with 130.
pub fn interrupt_at_random(
    name: &str,
    count: u32,
    start: impl FnMut() -> Command,
    look: impl FnMut(bool),
) {
    end_at_random(name, count, &[Signal::INT, Signal::TERM], start, look);
}

fn end_at_random(
    name: &str,
    count: u32,
    signals: &[Signal],
    mut start: impl FnMut() -> Command,
    mut look: impl FnMut(bool),
) {
    // The first run only says how long one takes here and now.
    let begun = Instant::now();
    let status = quiet(&mut start()).status().unwrap();
    assert!(status.success(), "{name}: {status}");
    let mut duration = begun.elapsed();
    look(true);
    // The state of a generator by Marsaglia: any seed but 0.
    let mut state = u64::from(std::process::id()) << 16 | 1;
    aloud(&format!("{name}: seed {state}"));
    let (mut killed, mut tries) = (0, 0);
    let mut signals = signals.iter().cycle();
    // A run may be much faster than the first one was: that is tried again, a bounded number of times.
    while tries < count || (killed == 0 && tries < 20 * count) {
        tries += 1;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let moment = (state % 1000) as f64 / 900.0;
        let mut child = quiet(&mut start()).spawn().unwrap();
        std::thread::sleep(duration.mul_f64(moment));
        let signal = *signals.next().unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let status = child.wait().unwrap();
        let by_signal = status.signal() == Some(signal.as_raw());
        let is_kill = signal == Signal::KILL;
        if by_signal && is_kill || status.code() == Some(130) && !is_kill {
            killed += 1;
            if moment > 1.0 {
                duration = duration.mul_f64(1.05);
            }
        } else if !by_signal {
            assert!(status.success(), "{name}: {status}");
            // It took at most as long as was waited for.
            duration = duration.mul_f64(moment.clamp(0.05, 1.0));
        }
        look(status.success());
    }
    aloud(&format!(
        "{name}: {killed} of {tries} were killed on the way"
    ));
    assert!(killed > 0 || count == 0, "{name}: none was killed");
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdout(Stdio::null()).stderr(Stdio::null())
}

/// Waits until no process is left that was started in a folder: what a killed program had started
/// itself goes on for a moment.
pub fn wait_for_orphans(folder: &Path) {
    let end = Instant::now() + Duration::from_secs(120);
    let folder = folder.canonicalize().unwrap();
    let is_left = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        processes
            .filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok())
            .any(|place| place.starts_with(&folder))
    };
    while is_left() {
        assert!(Instant::now() < end, "a process is left");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a folder is as it is to be: what outlives a killed command removes what that made.
pub fn wait_until_it_has(folder: &Path, names: &[&str]) {
    let end = Instant::now() + Duration::from_secs(120);
    let there = || {
        let entries = fs::read_dir(folder).unwrap().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.collect::<BTreeSet<String>>()
    };
    while !there().iter().eq(names) {
        assert!(Instant::now() < end, "{:?}", there());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Processes whose command lines have these words, in a folder or with a path in it.
pub fn running(folder: &Path, words: &[&str]) -> Vec<i32> {
    let text = folder.display().to_string();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let place = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
            let is_here = line.contains(&text) || place.starts_with(folder);
            is_here && words.iter().all(|word| line.contains(word))
        })
        .collect()
}

/// The sha256 of every file below a folder, by path; empty where there is no folder.
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = PathBuf::from(path.file_name().unwrap());
        if path.is_dir() {
            let below = contents(&path).into_iter();
            found.extend(below.map(|(below, hash)| (name.join(below), hash)));
        } else {
            found.insert(name, sha256_file(&path).unwrap());
        }
    }
    found
}

/// Runs a command again and again, each time with the disk full from another write on: all of them
/// in the long version, else so many that are spread over the run. `folder` is on the full disk.
/// After each, `look` gets the number of the write, and whether the command succeeded.
pub fn fill_the_disk(
    name: &str,
    folder: &Path,
    few: u32,
    mut start: impl FnMut() -> Command,
    mut look: impl FnMut(u32, bool),
) {
    static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
        let source = repository().join("tests/data/stand_in/disk_full.c");
        library("disk-full", "libdisk_full.so", &source).join("libdisk_full.so")
    });
    let elsewhere = tempfile::tempdir().unwrap();
    let count = elsewhere.path().join("count");
    let mut run = |at: u32| {
        let output = start()
            .env("LD_PRELOAD", &*LIBRARY)
            .env("FULL_PROGRAM", "sparsek-gate")
            .env("FULL_BELOW", folder.canonicalize().unwrap())
            .env("FULL_COUNT", &count)
            .env("FULL_AT", at.to_string())
            .output();
        Ran::of(&output.unwrap())
    };
    run(0).exits(0);
    look(0, true);
    let all: u32 = fs::read_to_string(&count).unwrap().trim().parse().unwrap();
    assert!(all > 2, "{name}: {all} writes");
    let step = if is_long() { 1 } else { all.div_ceil(few) };
    let (mut tried, mut refused) = (0, 0);
    for at in (1..=all).step_by(step as usize) {
        let ran = run(at);
        tried += 1;
        if ran.code != 0 {
            refused += 1;
            let text = format!("{}{}", ran.out, ran.err);
            assert_eq!(ran.code, 3, "{name}, write {at}: {text}");
            for part in ["No space left on device", "free space on the disk"] {
                assert!(text.contains(part), "{name}, write {at}: {text}");
            }
        }
        look(at, ran.code == 0);
    }
    aloud(&format!(
        "{name}: the disk was full at {tried} of {all} writes, {refused} runs ended with an error"
    ));
    assert!(refused > 0, "{name}");
    run(0).exits(0);
    look(0, true);
}
