//! Commands that are killed at any moment, or whose disk is full at any write: what was there before
//! is there, or the new as a whole, and the next command works. `SPARSEK_GATE_KILLS=1000` kills each
//! of them that often, and fills the disk at every write.

use std::cell::{Cell, RefCell};
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

/// A project that is locked from two sets of recordings in turn.
struct Locks {
    project: Project,
    /// What it is locked from, and what it is to be locked from.
    state: Cell<Option<&'static str>>,
    wanted: Cell<&'static str>,
}

impl Locks {
    fn new() -> Locks {
        Locks {
            project: locking::project(),
            state: Cell::new(None),
            wanted: Cell::new(RECORDED),
        }
    }

    fn start(&self) -> Command {
        self.wanted.set(other_than(self.state.get()));
        locking::lock(&self.project, self.wanted.get())
    }

    /// The old baselines are there, or the new ones.
    #[track_caller]
    fn look(&self, succeeded: bool) {
        let found = locked_from(&self.project, "baselines");
        let is_new = found == Some(self.wanted.get());
        assert!(
            is_new || !succeeded && found == self.state.get(),
            "{found:?}"
        );
        self.state.set(found);
    }
}

#[test]
fn a_lock_that_is_killed_leaves_the_old_baselines_or_the_new_ones() {
    let locks = Locks::new();
    let project = &locks.project;
    let runs = Cell::new(0_u32);
    let start = || locks.start();
    kill_at_random("baseline --lock", kills(6), start, |ended| {
        locks.look(ended);
        runs.set(runs.get() + 1);
        if matches!(runs.get() % 18, 1 | 5 | 11) {
            // A command may finish what a killed one began.
            project.run("baseline --verify");
            let (found, seen) = (locks.state.get(), locked_from(project, "baselines"));
            assert!(seen == found || (found.is_none() && seen == Some(locks.wanted.get())));
            assert_eq!(leftovers(project), Vec::<String>::new());
            if runs.get() % 18 != 1 {
                // The next one is a first lock.
                let _ = fs::remove_dir_all(project.path("baselines"));
            }
            locks.state.set(locked_from(project, "baselines"));
        }
    });
    let again = locking::lock(project, RECORDED).status().unwrap();
    assert!(again.success());
    assert_eq!(locked_from(project, "baselines"), Some(RECORDED));
    assert_eq!(leftovers(project), Vec::<String>::new());
}

#[test]
fn an_interrupt_ends_a_command_with_130_and_what_was_there_is_there() {
    let locks = Locks::new();
    let start = || locks.start();
    interrupt_at_random("baseline --lock", kills(6), start, |ended| {
        let before = locks.state.get();
        locks.look(ended);
        assert!(ended || locks.state.get() == before);
    });
    let (to_strip, whole) = to_strip();
    let start = || strip(&to_strip);
    interrupt_at_random("strip", kills(6), start, |ended| {
        assert_eq!(to_strip.path("to").exists(), ended);
        whole_or_none(&to_strip, &whole, ended);
    });
    let checked = Project::locked();
    let check = || checked.gate_of("check --from recorded");
    interrupt_at_random("check --from", kills(6), check, |_| {});
}

/// A folder to strip, outside of any project.
fn to_strip() -> (Project, Contents) {
    let project = Project::empty();
    let recorded = handed_over().join("h200/bsr_gemm/cp_async");
    fs::create_dir_all(project.path("from")).unwrap();
    for name in [
        "capture-1.ncu-rep", "capture-1.csv", "profile.json", "static.json",
    ] {
        fs::copy(recorded.join(name), project.path("from").join(name)).unwrap();
    }
    Ran::by(&mut strip(&project)).exits(0);
    let whole = contents(&project.path("to"));
    assert_eq!(whole.len(), 4);
    fs::remove_dir_all(project.path("to")).unwrap();
    (project, whole)
}

fn strip(project: &Project) -> Command {
    project.gate_of("strip from to")
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
    let start = || strip(&project);
    kill_at_random("strip", kills(4), start, |ended| {
        whole_or_none(&project, &whole, ended);
        // The copy is removed there.
        wait_until_it_has(&project.path(""), &["from"]);
    });
    Ran::by(&mut start()).exits(0);
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

/// A project that imports one of two reports in turn.
struct Imports {
    project: Project,
    /// The profiles of both, and which is there.
    sets: [Option<String>; 2],
    state: Cell<usize>,
}

impl Imports {
    fn new() -> Imports {
        let project = Project::empty();
        project.write("config.toml", IMPORTS);
        let sets = [0, 1].map(|turn| {
            Ran::by(&mut import(&project, turn)).exits(0);
            recorded(&project.path(PROFILES), "bsr_gemm/cp_async")
        });
        assert_ne!(sets[0], sets[1]);
        Imports {
            project,
            sets,
            state: Cell::new(1),
        }
    }

    fn start(&self) -> Command {
        import(&self.project, 1 - self.state.get())
    }

    /// The old profile is there, or the new one.
    #[track_caller]
    fn look(&self, succeeded: bool) {
        let found = recorded(&self.project.path(PROFILES), "bsr_gemm/cp_async");
        let which = self.sets.iter().position(|set| *set == found).unwrap();
        assert!(!succeeded || which != self.state.get());
        self.state.set(which);
    }
}

fn import(project: &Project, turn: usize) -> Command {
    let recorded = handed_over().join("h200/bsr_gemm/cp_async");
    let mut command = project.gate_of("import --variant bsr_gemm/cp_async");
    command.arg(recorded.join(format!("capture-{}.ncu-rep", turn + 1)));
    command
}

#[test]
fn an_import_that_is_killed_leaves_the_old_profile_or_the_new_one() {
    let imports = Imports::new();
    let start = || imports.start();
    kill_at_random("import", kills(6), start, |ended| imports.look(ended));
    Ran::by(&mut start()).exits(0);
    let check = ["check", "--from", PROFILES, "--format", "json", "cp_async"];
    let checked = imports.project.run(&check);
    assert!(!checked.json().denies("profile-missing"));
}

fn profile(machine: &Machine) -> Command {
    machine.gate("profile --format json")
}

/// After a run: whole, and never none once there was one. The time in it makes each its own.
#[track_caller]
fn whole_profile(machine: &Machine, state: &RefCell<Option<String>>, succeeded: bool) {
    wait_for_orphans(&machine.path(""));
    let found = recorded(&machine.path(PROFILES), "bsr_gemm/baseline");
    assert!(found.is_some());
    assert!(!succeeded || found != *state.borrow());
    *state.borrow_mut() = found;
}

#[test]
fn a_profile_that_is_killed_leaves_the_old_profile_or_the_new_one() {
    let machine = Machine::new();
    let state = RefCell::new(None);
    let start = || profile(&machine);
    kill_at_random("profile", kills(4), start, |ended| {
        whole_profile(&machine, &state, ended);
    });
    let checked = machine.run(&["check", "--from", PROFILES]);
    checked.ends(4, "new-baseline");
    machine.lock_measured();
}

#[test]
fn a_full_disk_ends_a_lock_and_nothing_is_lost() {
    let locks = Locks::new();
    let start = || {
        let mut command = locks.start();
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let folder = locks.project.path("");
    let look = |_, ended| locks.look(ended);
    fill_the_disk("baseline --lock", &folder, 8, start, look);
    locks.project.run("baseline --verify").exits(0);
}

#[test]
fn a_full_disk_ends_a_strip_or_an_import_and_nothing_is_lost() {
    let (project, whole) = to_strip();
    let folder = project.path("");
    let look = |_, ended| whole_or_none(&project, &whole, ended);
    fill_the_disk("strip", &folder, 8, || strip(&project), look);
    // Only what was there before is there: no half copy stays on the full disk.
    let left: Vec<_> = contents(&folder).into_keys().collect();
    assert!(left.iter().all(|path| path.starts_with("from")), "{left:?}");
    let imports = Imports::new();
    let folder = imports.project.path("");
    let look = |_, ended| imports.look(ended);
    fill_the_disk("import", &folder, 10, || imports.start(), look);
}

#[test]
fn a_full_disk_ends_a_profile_and_the_earlier_one_is_kept() {
    let machine = Machine::new();
    let state = RefCell::new(None);
    let look = |_, ended| whole_profile(&machine, &state, ended);
    fill_the_disk("profile", &machine.path(""), 6, || profile(&machine), look);
}

#[test]
fn a_full_disk_ends_the_report_of_a_check_and_the_earlier_report_is_kept() {
    let project = Project::locked();
    let start =
        || project.gate_of("check --from recorded --report outcome.json --report report.md");
    Ran::by(&mut start()).exits(0);
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
    command.args(["-rm", "sh", "-c", SMALL_DISK, "sh"]);
    command.arg(program).arg(machine.path(PROFILES));
    for (name, value) in gate.env_remove("CI").get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Ran::by(command.current_dir(machine.path("")))
        .says("kept, exit code 3")
        .says("No space left on device")
        .says("free space on the disk of this path")
        .says("works again");
}

#[test]
fn a_command_that_must_not_wait_for_another_one_ends_with_3_and_names_it() {
    let machine = Machine::new();
    machine.run("profile").exits(0);
    let folder = fs::File::open(machine.path(PROFILES)).unwrap();
    let own = std::process::id();
    let own = format!("another sparsek-gate (process {own}) works in");
    let ends = |arguments: &str, code: i32| {
        let ran = machine.run(&format!("{arguments} --no-wait"));
        ran.ends(code, if code == 3 { &own } else { "" });
    };
    let reads = format!("check --baseline-ref none --from {PROFILES}");
    folder.lock_shared().unwrap();
    ends("profile", 3);
    ends(LOCK, 0);
    ends(&reads, 0);
    folder.lock().unwrap();
    for arguments in [LOCK, &reads, &format!("strip {PROFILES} copy")] {
        ends(arguments, 3);
    }
    folder.unlock().unwrap();
    ends("profile", 0);
}

const LOCK: &str = "baseline --lock --reason r --who tests";

#[test]
fn two_commands_in_one_folder_take_turns_and_what_is_left_is_that_of_one() {
    let machine = Machine::new();
    for first in ["profile", LOCK] {
        machine.run(first).exits(0);
    }
    let check = "check --baseline-ref none";
    let strips = ["one", "two"].map(|to| format!("strip {PROFILES} {to}"));
    let pairs = [
        ["profile", &strips[0]],
        [&strips[1], LOCK],
        ["archive --output packed.tar.zst", "profile"],
        ["profile", "profile"],
        ["profile", LOCK],
        [check, "profile"],
        [check, check],
    ];
    let both = |commands: [Command; 2], later: Duration| {
        let started = commands.map(|mut command| {
            let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let started = command.spawn().unwrap();
            std::thread::sleep(later);
            started
        });
        for child in started {
            Ran::of(&child.wait_with_output().unwrap()).exits(0);
        }
    };
    let delays = [0, 300].map(Duration::from_millis);
    for (pair, later) in pairs.into_iter().zip(delays.into_iter().cycle()) {
        both(pair.map(|arguments| machine.gate(arguments)), later);
    }
    for later in delays {
        let imports = Imports::new();
        both([0, 1].map(|set| import(&imports.project, set)), later);
        imports.look(false);
    }
}
