//! Baselines that are locked again and again, from two sets of recordings.

use std::fs;
use std::process::{Command, Stdio};

use sparsek_gate::baseline::Lock;
use sparsek_gate::hash::sha256_hex;
use sparsek_gate::profile::Profile;

use super::{Project, RECORDED, VARIANTS};

pub const OTHER: &str = "rotated";

/// Two sets of recordings with other numbers in every file of every variant.
pub fn project() -> Project {
    let project = Project::locked();
    project.drop_config_lines("expect = ");
    project.drop_config_lines("immutable = ");
    // The first lock contains the sources of the immutable variant: start without.
    fs::remove_dir_all(project.path("baselines")).unwrap();
    project.rotated(OTHER);
    project
}

pub fn lock(project: &Project, from: &str) -> Command {
    let mut command = project.gate_of(&format!("baseline --lock --reason x --who y --from {from}"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Which recordings a folder of baselines was locked from, found without the program: every file
/// of every variant fits its neighbours, and all variants are of one set.
#[track_caller]
pub fn locked_from(project: &Project, baselines: &str) -> Option<&'static str> {
    if !project.path(baselines).exists() {
        return None;
    }
    let mut sets = Vec::new();
    for variant in VARIANTS.iter() {
        let read = |ending: &str| {
            project
                .read(&Project::baseline_path(variant, ending).replacen("baselines", baselines, 1))
        };
        let (norm, profile) = (read("norm.txt"), read("profile.json"));
        let norm_sha256 = sha256_hex(norm.as_bytes());
        assert_eq!(
            read("norm.txt.sha256"),
            format!("{norm_sha256}  {variant}.norm.txt\n")
        );
        let lock = Lock::parse(&read("lock.toml")).unwrap();
        assert_eq!(lock.contradictions(), Vec::<String>::new());
        let entry = lock.ledger.last().unwrap();
        assert_eq!(entry.norm_sha256, norm_sha256);
        assert_eq!(entry.profile_sha256, sha256_hex(profile.as_bytes()));
        let set = [RECORDED, OTHER].into_iter().find(|folder| {
            let recorded = project.read(&format!("{folder}/bsr_gemm/{variant}/profile.json"));
            Profile::parse(recorded.as_bytes()).unwrap().to_json() == profile
        });
        sets.push(set.unwrap());
    }
    assert!(sets.iter().all(|set| *set == sets[0]), "mixed: {sets:?}");
    Some(sets[0])
}

/// Names beside the baselines that a lock leaves only when it is killed.
pub fn leftovers(project: &Project) -> Vec<String> {
    fs::read_dir(project.path("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".baselines."))
        .collect()
}

pub fn other_than(set: Option<&str>) -> &'static str {
    if set == Some(RECORDED) {
        OTHER
    } else {
        RECORDED
    }
}
