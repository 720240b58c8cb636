//! Commands that are killed at any moment, or whose disk is full at any write: what was there before
//! is there, or the new as a whole, and the next command works. `SPARSEK_GATE_KILLS=1000` kills each
//! of them that often, and fills the disk at every write.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::crash::{
    contents, fill_the_disk, interrupt_at_random, is_long, kill_at_random, kills, wait_for_orphans,
    wait_until_it_has,
};
use crate::common::locking::{self, leftovers, locked_from, other_than};
use crate::common::stand_in::Machine;
use crate::common::{Project, RECORDED, Ran, aloud, handed_over};
use sparsek_gate::files::{PROFILE_FILE, recorded_folder};
use sparsek_gate::hash::sha256_file;
use sparsek_gate::profile::Profile;
use sparsek_gate::terms::VariantId;

const PROFILES: &str = ".sparsek-gate/profiles";

/// Files by path, with their hashes.
type Contents = BTreeMap<PathBuf, String>;

#[test]
fn a_lock_that_is_killed_leaves_the_old_baselines_or_the_new_ones() {
    let project = locking::project();
    let state = RefCell::new(None);
    let wanted = RefCell::new(RECORDED);
    let start = || {
        *wanted.borrow_mut() = other_than(*state.borrow());
        locking::lock(&project, *wanted.borrow())
    };
    let runs = RefCell::new(0_u32);
    kill_at_random("baseline --lock", kills(6), start, |ended| {
        let found = locked_from(&project, "baselines");
        let old = *state.borrow();
        assert!(found == old || found == Some(*wanted.borrow()), "{found:?}");
        assert!(!ended || found == Some(*wanted.borrow()));
        *runs.borrow_mut() += 1;
        if matches!(*runs.borrow() % 18, 1 | 5 | 11) {
            // A command may finish what a killed one began.
            project.run("baseline --verify");
            let seen = locked_from(&project, "baselines");
            assert!(seen == found || (found.is_none() && seen == Some(*wanted.borrow())));
            assert_eq!(leftovers(&project), Vec::<String>::new());
            if *runs.borrow() % 18 != 1 {
                // The next one is a first lock.
                let _ = fs::remove_dir_all(project.path("baselines"));
            }
        }
        *state.borrow_mut() = locked_from(&project, "baselines");
    });
    let again = locking::lock(&project, RECORDED).status().unwrap();
    assert!(again.success());
    assert_eq!(locked_from(&project, "baselines"), Some(RECORDED));
    assert_eq!(leftovers(&project), Vec::<String>::new());
}

#[test]
fn an_interrupt_ends_a_command_with_130_and_what_was_there_is_there() {
    let project = locking::project();
    let state = RefCell::new(None);
    let wanted = RefCell::new(RECORDED);
    let start = || {
        *wanted.borrow_mut() = other_than(*state.borrow());
        locking::lock(&project, *wanted.borrow())
    };
    interrupt_at_random("baseline --lock", kills(6), start, |ended| {
        let expected = match ended {
            true => Some(*wanted.borrow()),
            false => *state.borrow(),
        };
        let found = locked_from(&project, "baselines");
        assert!(found == expected, "{ended}: {found:?}");
        *state.borrow_mut() = found;
    });
    let (to_strip, whole) = to_strip();
    interrupt_at_random(
        "strip",
        kills(6),
        || strip(&to_strip),
        |ended| {
            let copy = to_strip.path("to");
            assert_eq!(copy.exists(), ended);
            if ended {
                assert_eq!(contents(&copy), whole);
                fs::remove_dir_all(copy).unwrap();
            }
        },
    );
    let checked = Project::locked();
    let check = || {
        let mut check = checked.gate();
        check.args(["check", "--from", RECORDED]);
        check
    };
    interrupt_at_random("check --from", kills(6), check, |_| {});
}

/// A folder to strip, outside of any project.
fn to_strip() -> (Project, Contents) {
    let project = Project::empty();
    let recorded = handed_over().join("h200/bsr_gemm/cp_async");
    for name in [
        "capture-1.ncu-rep", "capture-1.csv", "profile.json", "static.json",
    ] {
        fs::create_dir_all(project.path("from")).unwrap();
        fs::copy(recorded.join(name), project.path("from").join(name)).unwrap();
    }
    Ran::of(&strip(&project).output().unwrap()).exits(0);
    let whole = contents(&project.path("to"));
    assert_eq!(whole.len(), 4);
    fs::remove_dir_all(project.path("to")).unwrap();
    (project, whole)
}

fn strip(project: &Project) -> Command {
    let mut command = project.gate();
    command.args(["strip", "from", "to"]);
    command
}

/// There is a whole copy, or none; it is removed.
fn whole_or_none(project: &Project, whole: &Contents, succeeded: bool) {
    let found = contents(&project.path("to"));
    if !project.path("to").exists() {
        assert!(!succeeded);
        return;
    }
    assert_eq!(found, *whole);
    fs::remove_dir_all(project.path("to")).unwrap();
}

#[test]
fn strip_that_is_killed_leaves_a_whole_copy_or_none() {
    let (project, whole) = to_strip();
    kill_at_random(
        "strip",
        kills(4),
        || strip(&project),
        |ended| {
            whole_or_none(&project, &whole, ended);
            // The copy is removed there.
            wait_until_it_has(&project.path(""), &["from"]);
        },
    );
    Ran::of(&strip(&project).output().unwrap()).exits(0);
}

fn id(name: &str) -> VariantId {
    VariantId::try_from(name.to_owned()).unwrap()
}

/// What is read of a variant's profile: nothing, or a profile with all captures that it names,
/// unchanged. Its sha256.
#[track_caller]
fn recorded(profiles: &Path, variant: &str) -> Option<String> {
    let folder = recorded_folder(profiles, &id(variant));
    let path = folder.join(PROFILE_FILE);
    let profile = Profile::at(&path).unwrap()?;
    for capture in &profile.provenance.captures {
        for file in std::iter::once(&capture.report).chain(&capture.csv) {
            let hash = sha256_file(&folder.join(&file.file)).unwrap();
            assert_eq!(hash, file.sha256, "{}", file.file);
        }
    }
    Some(sha256_file(&path).unwrap())
}

/// One variant, and a metric that every report has.
const IMPORTS: &str = r#"
[metric.duration]
counter = "gpu__time_duration.sum"
direction = "lower"
tolerance = '3 %'

[suite.bsr_gemm]
kernels = "regex:^bsr_gemm_"

[suite.bsr_gemm.variant.cp_async]
run = ["true"]
"#;

/// A project that imports one of two reports, and the profiles of both.
fn imported() -> (Project, [Option<String>; 2]) {
    let project = Project::empty();
    project.write("config.toml", IMPORTS);
    let sets = [0, 1].map(|turn| {
        Ran::of(&import(&project, turn).output().unwrap()).exits(0);
        recorded(&project.path(PROFILES), "bsr_gemm/cp_async")
    });
    assert_ne!(sets[0], sets[1]);
    (project, sets)
}

fn import(project: &Project, turn: usize) -> Command {
    let recorded = handed_over().join("h200/bsr_gemm/cp_async");
    let mut command = project.gate();
    command
        .arg("import")
        .arg(recorded.join(format!("capture-{}.ncu-rep", turn + 1)))
        .args(["--variant", "bsr_gemm/cp_async"]);
    command
}

/// After an import of the other report: the number of the one that is read.
fn of_import(
    project: &Project,
    sets: &[Option<String>; 2],
    state: &RefCell<usize>,
    succeeded: bool,
) {
    let found = recorded(&project.path(PROFILES), "bsr_gemm/cp_async");
    let old = *state.borrow();
    let which = sets.iter().position(|set| *set == found);
    assert!(which.is_some(), "neither the old nor the new: {found:?}");
    let which = which.unwrap();
    assert!(
        !succeeded || which != old,
        "it succeeded, and wrote nothing"
    );
    *state.borrow_mut() = which;
}

#[test]
fn an_import_that_is_killed_leaves_the_old_profile_or_the_new_one() {
    let (project, sets) = imported();
    let state = RefCell::new(1);
    let start = || import(&project, 1 - *state.borrow());
    kill_at_random("import", kills(6), start, |ended| {
        of_import(&project, &sets, &state, ended);
    });
    Ran::of(&start().output().unwrap()).exits(0);
    let checked = project.run(&["check", "--from", PROFILES, "--format", "json", "cp_async"]);
    assert!(!checked.json().denies("profile-missing"));
}

fn profile(machine: &Machine) -> Command {
    machine.gate("profile --format json")
}

#[test]
fn a_profile_that_is_killed_leaves_the_old_profile_or_the_new_one() {
    let machine = Machine::new();
    let state = RefCell::new(None);
    let runs = RefCell::new(0_u32);
    let folder = machine.project.path("");
    kill_at_random(
        "profile",
        kills(4),
        || profile(&machine),
        |ended| {
            wait_for_orphans(&folder);
            // Whole, and never none once there was one. The time in it makes each its own.
            let found = recorded(&folder.join(PROFILES), "bsr_gemm/baseline");
            assert!(found.is_some());
            assert!(!ended || found != *state.borrow());
            *state.borrow_mut() = found;
            *runs.borrow_mut() += 1;
            if runs.borrow().is_multiple_of(25) {
                machine
                    .run(&["check", "--from", PROFILES])
                    .ends(4, "new-baseline");
            }
        },
    );
    machine
        .run(&["check", "--from", PROFILES])
        .ends(4, "new-baseline");
    machine.lock_measured();
}

#[test]
fn a_full_disk_ends_a_lock_and_nothing_is_lost() {
    let project = locking::project();
    let state = RefCell::new(None);
    let wanted = RefCell::new(RECORDED);
    let start = || {
        *wanted.borrow_mut() = other_than(*state.borrow());
        let mut command = locking::lock(&project, *wanted.borrow());
        command.stdout(std::process::Stdio::piped());
        command.stderr(std::process::Stdio::piped());
        command
    };
    fill_the_disk(
        "baseline --lock",
        &project.path(""),
        8,
        start,
        |at, ended| {
            let found = locked_from(&project, "baselines");
            let old = *state.borrow();
            assert!(
                found == old || found == Some(*wanted.borrow()),
                "{at}: {found:?}"
            );
            assert!(!ended || found == Some(*wanted.borrow()), "{at}");
            *state.borrow_mut() = found;
        },
    );
    project.run("baseline --verify").exits(0);
}

#[test]
fn a_full_disk_ends_a_strip_or_an_import_and_nothing_is_lost() {
    let (project, whole) = to_strip();
    fill_the_disk(
        "strip",
        &project.path(""),
        8,
        || strip(&project),
        |_, ended| {
            whole_or_none(&project, &whole, ended);
        },
    );
    // Only what was there before is there: no half copy stays on the full disk.
    let left: Vec<_> = contents(&project.path("")).into_keys().collect();
    assert!(left.iter().all(|path| path.starts_with("from")), "{left:?}");
    let (project, sets) = imported();
    let state = RefCell::new(1);
    let start = || import(&project, 1 - *state.borrow());
    fill_the_disk("import", &project.path(""), 10, start, |_, ended| {
        of_import(&project, &sets, &state, ended);
    });
}

#[test]
fn a_full_disk_ends_a_profile_and_the_earlier_one_is_kept() {
    let machine = Machine::new();
    let folder = machine.project.path("");
    let state = RefCell::new(None);
    fill_the_disk(
        "profile",
        &folder,
        6,
        || profile(&machine),
        |at, ended| {
            wait_for_orphans(&folder);
            let found = recorded(&folder.join(PROFILES), "bsr_gemm/baseline");
            assert!(found.is_some(), "write {at}");
            assert!(!ended || found != *state.borrow(), "write {at}");
            *state.borrow_mut() = found;
        },
    );
}

#[test]
fn a_full_disk_ends_the_report_of_a_check_and_the_earlier_report_is_kept() {
    let project = Project::locked();
    let start = || {
        let mut command = project.gate();
        command.args(["check", "--from", RECORDED]);
        command.args(["--report", "outcome.json", "--report", "report.md"]);
        command
    };
    Ran::of(&start().output().unwrap()).exits(0);
    let reports = ["outcome.json", "report.md"];
    let whole = reports.map(|name| project.read(name));
    let few = if is_long() { 1000 } else { 4 };
    fill_the_disk("check --report", &project.path(""), few, start, |at, _| {
        assert_eq!(reports.map(|name| project.read(name)), whole, "write {at}");
    });
}

/// On a disk of its own: here not this program finds the disk full, but ncu.
const SMALL_DISK: &str = r#"
set -eu
gate=$1 folder=$2
mkdir -p "$folder"
mount -t tmpfs -o size=8m tmpfs "$folder"
"$gate" profile >/dev/null
before=$(sha256sum <"$folder/bsr_gemm/baseline/profile.json")
dd if=/dev/zero of="$folder/filled" bs=64k 2>/dev/null || true
truncate -s -200000 "$folder/filled"
code=0
"$gate" profile >said 2>&1 || code=$?
after=$(sha256sum <"$folder/bsr_gemm/baseline/.earlier/profile.json")
[ "$before" = "$after" ] && echo "kept, exit code $code"
cat said
rm "$folder/filled"
"$gate" profile >/dev/null
[ ! -e "$folder/bsr_gemm/baseline/.earlier" ] && echo "works again"
"#;

#[test]
fn a_disk_that_the_profiler_fills_ends_a_profile_and_the_earlier_one_is_kept() {
    let own = Command::new("unshare").args(["-rm", "true"]).output();
    if !own.is_ok_and(|output| output.status.success()) {
        aloud("SKIPPED: a disk that the profiler fills: `unshare -rm` may not mount one here");
        return;
    }
    let machine = Machine::new();
    let mut gate = machine.gate(&[]);
    let program = PathBuf::from(gate.get_program());
    let mut command = Command::new("unshare");
    command
        .args(["-rm", "sh", "-c", SMALL_DISK, "sh"])
        .arg(program)
        .arg(machine.project.path(PROFILES))
        .current_dir(machine.project.path(""));
    for (name, value) in gate.env_remove("CI").get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Ran::of(&command.output().unwrap())
        .says("kept, exit code 3")
        .says("No space left on device")
        .says("free space on the disk of this path")
        .says("works again");
}

#[test]
fn a_command_that_must_not_wait_for_another_one_ends_with_3_and_names_it() {
    let machine = Machine::new();
    Ran::of(&machine.gate("profile").output().unwrap()).exits(0);
    let folder = fs::File::open(machine.project.path(PROFILES)).unwrap();
    let ends = |arguments: &[&str], code: i32| {
        let arguments = [arguments, &["--no-wait"]].concat();
        let ran = Ran::of(&machine.gate(&arguments).output().unwrap());
        if code == 3 {
            let own = format!(
                "another sparsek-gate (process {}) works in",
                std::process::id()
            );
            assert!(ran.err.contains(&own), "{}", ran.err);
        }
        ran.exits(code);
    };
    let lock = ["baseline", "--lock", "--reason", "r", "--who", "tests"];
    let reads = [
        "check", "--baseline-ref", "none", "--from", ".sparsek-gate/profiles",
    ];
    folder.lock_shared().unwrap();
    ends(&["profile"], 3);
    ends(&lock, 0);
    ends(&reads, 0);
    folder.lock().unwrap();
    for arguments in [
        &lock[..],
        &reads,
        &["strip", ".sparsek-gate/profiles", "copy"],
    ] {
        ends(arguments, 3);
    }
    folder.unlock().unwrap();
    ends(&["profile"], 0);
}

#[test]
fn two_commands_in_one_folder_take_turns_and_what_is_left_is_that_of_one() {
    let machine = Machine::new();
    let lock = ["baseline", "--lock", "--reason", "r", "--who", "tests"];
    for first in [&["profile"][..], &lock] {
        Ran::of(&machine.gate(first).output().unwrap()).exits(0);
    }
    let check = ["check", "--baseline-ref", "none"];
    let strip = ["strip", ".sparsek-gate/profiles"];
    let strips: [&[&str]; 2] = ["one", "two"].map(|to| &*[&strip[..], &[to]].concat().leak());
    let archive = ["archive", "--output", "packed.tar.zst"];
    let pairs: [[&[&str]; 2]; 7] = [
        [&["profile"], strips[0]],
        [strips[1], &lock],
        [&archive, &["profile"]],
        [&["profile"], &["profile"]],
        [&["profile"], &lock],
        [&check, &["profile"]],
        [&check, &check],
    ];
    let both = |commands: [Command; 2], later: Duration| {
        let started = commands.map(|mut command| {
            let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let started = command.spawn().unwrap();
            std::thread::sleep(later);
            started
        });
        started.map(|child| Ran::of(&child.wait_with_output().unwrap()))
    };
    let delays = [0, 300].map(Duration::from_millis);
    for (pair, later) in pairs.into_iter().zip(delays.into_iter().cycle()) {
        for ran in both(pair.map(|arguments| machine.gate(arguments)), later) {
            ran.exits(0);
        }
    }
    for later in delays {
        let (project, sets) = imported();
        for ran in both([0, 1].map(|set| import(&project, set)), later) {
            ran.exits(0);
        }
        let found = recorded(&project.path(PROFILES), "bsr_gemm/cp_async");
        assert!(sets.contains(&found));
    }
}
