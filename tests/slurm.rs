//! The script for Slurm on a real one: one slurmctld and one slurmd on loopback, with GPUs that are none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::crash::{kills, running};
use crate::common::slurm::Cluster;
use crate::common::stand_in::{Machine, all_measured};
use crate::common::{Arguments, Ran, aloud};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

/// Words in the command line of a slice.
const SLICE: [&str; 2] = ["profile", "--archive"];

/// A project on a machine that is the login node of a cluster and its only node.
struct Login {
    machine: Machine,
    cluster: Cluster,
}

impl Login {
    /// With two equal variants, whose baselines are locked, and the script for two slices. The outcome
    /// goes to a file, as a user would write it.
    fn new() -> Option<Login> {
        let machine = Machine::locked(2);
        let cluster = Cluster::start()?;
        let project = &machine.project;
        let plan = ["plan", "--slices", "2", "--format", "slurm"];
        let script = machine.run(&plan).exits(0).out;
        let judged = "--archive-sha256 \"$SHA256\"\n";
        assert!(script.ends_with(judged), "{script}");
        let script = format!("{} --report tmp/outcome.json\n", script.trim_end());
        project.write("tmp/gate.sh", script);
        let program = env!("CARGO_BIN_EXE_sparsek-gate");
        std::os::unix::fs::symlink(program, project.path("host/sparsek-gate")).unwrap();
        Some(Login { machine, cluster })
    }

    /// `sh gate.sh` with further options of sbatch, where no run left anything.
    fn script(&self, options: &[&str]) -> Command {
        let project = &self.machine.project;
        for folder in ["slices", "logs"] {
            let _ = fs::remove_dir_all(project.path(folder));
        }
        for file in ["gate.tar.zst", "tmp/outcome.json"] {
            let _ = fs::remove_file(project.path(file));
        }
        let gate = self.machine.gate(&[]);
        // A shell cannot trap a signal that was ignored when it began, as SIGINT is in a job of a script.
        let mut command = Command::new("env");
        command
            .args(["--default-signal=HUP,INT,TERM", "sh", "tmp/gate.sh"])
            .args(options)
            .current_dir(project.path(""));
        for (name, value) in gate.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("SLURM_CONF", self.cluster.conf());
        command
    }

    fn run(&self, options: impl Arguments) -> Ran {
        Ran::of(&self.script(&options.list()).output().unwrap())
    }

    /// The same, without waiting for its end.
    fn start(&self) -> Child {
        let mut command = self.script(&[]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    }

    fn outcome(&self) -> Json {
        self.machine.json("tmp/outcome.json")
    }

    /// No job and no process is left.
    #[track_caller]
    fn is_clean(&self) {
        let cluster = &self.cluster;
        cluster.until("no job is left", || cluster.jobs().is_empty());
        cluster.until("no process is left", || cluster.processes().is_empty());
    }

    /// Processes of this project whose command lines have these words.
    fn running(&self, words: &[&str]) -> Vec<i32> {
        running(&self.machine.path(""), words)
    }
}

#[test]
fn the_script_is_one_check_whose_slices_run_on_different_gpus() {
    let Some(login) = Login::new() else { return };
    let project = &login.machine.project;
    // Its arguments are options of sbatch, but the number of slices is its own.
    login.run("--gres=gpu:h200:1 --time=5 --array=7").exits(0);
    all_measured(&login.outcome(), 2);
    let mut gpus = BTreeSet::new();
    for slice in 1..=2 {
        let suite: PathBuf = project.path(&format!("slices/{slice}/bsr_gemm"));
        let variant = fs::read_dir(suite).unwrap().next().unwrap().unwrap().path();
        let profile = fs::read_to_string(variant.join("profile.json")).unwrap();
        let profile: Json = serde_json::from_str(&profile).unwrap();
        gpus.insert(profile["provenance"]["gpu_uuid"].to_string());
    }
    assert_eq!(gpus.len(), 2, "{gpus:?}");
    login.is_clean();

    let refused = login.run("--partition=none").exits(3);
    assert!(refused.err.contains("invalid partition"), "{}", refused.err);
    assert!(refused.err.ends_with("Slurm took no job\n"));

    // The exit code is the check's: a slice that is not measured is named.
    login
        .machine
        .ncu("case $* in *--export*slices/1/*) exit 9 ;; esac");
    login.run(&[]).exits(5);
    let outcome = login.outcome();
    assert_eq!(outcome["exit_code"], 5);

    // An interrupt leaves nothing.
    login.machine.slow(1.0);
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut check = login.start();
        login
            .cluster
            .until("a slice runs", || !login.running(&SLICE).is_empty());
        kill_process(Pid::from_child(&check), signal).unwrap();
        assert_eq!(check.wait().unwrap().code(), Some(130));
        assert!(!project.path("tmp/outcome.json").exists());
        login.is_clean();
    }
}

/// What is killed in a run.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Script,
    Sbatch,
    Slice,
    Program,
    Job,
}

#[test]
fn whatever_is_killed_nothing_unmeasured_passes_and_nothing_is_left() {
    const VICTIMS: [Victim; 5] = [
        Victim::Slice,
        Victim::Sbatch,
        Victim::Job,
        Victim::Script,
        Victim::Program,
    ];
    let Some(login) = Login::new() else { return };
    login.machine.slow(0.1);
    let report = login.machine.path("tmp/outcome.json");
    let whole = Duration::from_secs(5);
    let mut state = u64::from(std::process::id()) << 16 | 1;
    aloud(&format!("kills on Slurm: seed {state}"));
    let mut ended = BTreeMap::new();
    for number in 0..kills(3) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let victim = VICTIMS[number as usize % VICTIMS.len()];
        let mut check = login.start();
        std::thread::sleep(whole.mul_f64((state % 1000) as f64 / 1000.0));
        let found = match victim {
            Victim::Script => vec![Pid::from_child(&check).as_raw_nonzero().get()],
            Victim::Sbatch => login.running(&["sbatch", "--wait"]),
            Victim::Slice => login.running(&SLICE),
            Victim::Program => login.running(&["bin/ncu"]),
            Victim::Job => {
                let squeue = ["--noheader", "--array", "--format=%A"];
                let jobs = login.cluster.ask("squeue", &squeue);
                if let Some(job) = jobs.lines().next() {
                    login.cluster.ask("scancel", &[job.trim()]);
                }
                Vec::new()
            }
        };
        if let Some(pid) = found.first().and_then(|pid| Pid::from_raw(*pid)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let status = check.wait().unwrap();
        if status.code() == Some(0) {
            all_measured(&login.outcome(), 2);
        } else if matches!(victim, Victim::Script) {
            assert!(!report.exists());
        }
        let how = format!("{victim:?}: {:?}", status.code());
        *ended.entry(how).or_insert(0_u32) += 1;
        login.is_clean();
    }
    aloud(&format!("kills on Slurm: {ended:?}"));
}
