//! The steps of `baseline --lock`: killed between or within any of them, and run by several at once,
//! it leaves the old baselines or the new ones, of all variants together. `tests/killed.rs` kills it
//! at random moments.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::locking::{OTHER, leftovers, lock, locked_from, other_than, project};
use crate::common::{self, Project, RECORDED, Ran};
use sparsek_gate::baseline::Lock;

#[test]
fn a_lock_whose_files_may_not_grow_names_the_file_and_leaves_the_old_baselines() {
    let project = project();
    assert!(lock(&project, RECORDED).status().unwrap().success());
    for blocks in [0, 1, 2, 4, 8, 16] {
        let gate = lock(&project, OTHER);
        let limited = Command::new("sh")
            .args(["-c", &format!("ulimit -f {blocks}; exec \"$0\" \"$@\"")])
            .arg(gate.get_program())
            .args(gate.get_args())
            .current_dir(gate.get_current_dir().unwrap())
            .env_remove("CI")
            .output()
            .unwrap();
        if limited.status.success() {
            assert!(blocks > 0, "a limit of 0 stops every write");
            break;
        }
        Ran::of(&limited).ends(3, "File too large");
        assert_eq!(locked_from(&project, "baselines"), Some(RECORDED));
        // The next command need not be a lock to clear up.
        project.run("baseline --verify").exits(0);
        assert_eq!(locked_from(&project, "baselines"), Some(RECORDED));
        assert_eq!(leftovers(&project), Vec::<String>::new());
    }
}

/// Every state that the steps of a lock go through, built by hand: `next` is the whole new folder,
/// `staged` one that is being written, `old` the old one where the two cannot be exchanged.
#[test]
fn every_state_between_the_steps_of_a_lock_is_finished_or_undone() {
    let project = project();
    for (set, kept) in [(RECORDED, "kept-old"), (OTHER, "kept-new")] {
        assert!(lock(&project, set).status().unwrap().success());
        common::copy(&project.path("baselines"), &project.path(kept));
    }
    // What is there, and whether the old or the new is there afterwards.
    type Place = Option<&'static str>;
    let (none, old, new) = (None::<&str>, Some("kept-old"), Some("kept-new"));
    let states: [(Place, Place, Place, Place, Place); 9] = [
        // (baselines, staged, next, old) -> baselines
        (old, new, none, none, old),
        (none, new, none, none, none),
        (old, none, new, none, old),
        (none, none, new, none, new),
        (new, none, old, none, new),
        (none, none, new, old, new),
        (new, none, none, old, new),
        (none, none, none, old, old),
        (old, new, new, none, old),
    ];
    for (index, (baselines, staged, next, moved, expected)) in states.into_iter().enumerate() {
        for command in [
            vec!["baseline", "--verify"],
            vec!["check", "--from", RECORDED],
        ] {
            let _ = fs::remove_dir_all(project.path("baselines"));
            for (place, content) in [
                ("baselines", baselines),
                (".baselines.staged", staged),
                (".baselines.next", next),
                (".baselines.old", moved),
            ] {
                if let Some(content) = content {
                    common::copy(&project.path(content), &project.path(place));
                }
            }
            if staged.is_some() {
                // Half written.
                let cut = Project::baseline_path("cp_async", "profile.json");
                project.write(&cut.replacen("baselines", ".baselines.staged", 1), "{");
            }
            project.run(&command);
            let set = expected.map(|kept| if kept == "kept-old" { RECORDED } else { OTHER });
            assert_eq!(
                locked_from(&project, "baselines"),
                set,
                "state {index} {command:?}"
            );
            assert_eq!(
                leftovers(&project),
                Vec::<String>::new(),
                "state {index} {command:?}"
            );
        }
    }
}

#[test]
fn locks_at_once_leave_one_whole_set_and_lose_no_entry_of_the_ledger() {
    let project = project();
    assert!(lock(&project, RECORDED).status().unwrap().success());
    let entries = |project: &Project| -> usize {
        let lock = project.read(&Project::baseline_path("cp_async", "lock.toml"));
        Lock::parse(&lock).unwrap().ledger.len()
    };
    for _ in 0..2 {
        let before = entries(&project);
        let children = [RECORDED, OTHER, RECORDED, OTHER].map(|set| {
            let mut command = lock(&project, set);
            command.stdout(Stdio::piped()).spawn().unwrap()
        });
        let mut locked = 0;
        for child in children {
            let ran = Ran::of(&child.wait_with_output().unwrap()).exits(0);
            locked += usize::from(ran.out.contains("cp_async on nvidia-h200: locked"));
        }
        assert!(locked_from(&project, "baselines").is_some());
        assert_eq!(entries(&project), before + locked);
        project.run("baseline --verify").exits(0);
        assert_eq!(leftovers(&project), Vec::<String>::new());
    }
}

#[test]
fn readers_during_locks_never_see_a_half_written_baseline() {
    let project = project();
    assert!(lock(&project, RECORDED).status().unwrap().success());
    let end = Instant::now() + Duration::from_secs(1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut set = Some(RECORDED);
            while Instant::now() < end {
                set = Some(other_than(set));
                assert!(lock(&project, set.unwrap()).status().unwrap().success());
            }
        });
        while Instant::now() < end {
            project.run("baseline --verify").exits(0);
        }
    });
}
