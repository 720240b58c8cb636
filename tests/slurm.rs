//! Slices on a real Slurm: one slurmctld and one slurmd on loopback, with GPUs that are none.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::crash::{is_long, kills, running};
use crate::common::slurm::{Cluster, GPUS};
use crate::common::stand_in::{Machine, all_measured};
use crate::common::{Ran, aloud};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

const ON: [&str; 5] = ["check", "--on", "slurm", "--slices", "2"];
/// Words in the command line of a slice.
const SLICE: [&str; 2] = ["check", "--archive"];

/// A project on a machine that is the login node of a cluster and its only node.
struct Login {
    machine: Machine,
    cluster: Cluster,
}

impl Login {
    /// With so many equal variants, whose baselines are locked.
    fn new(variants: u32) -> Option<Login> {
        let machine = Machine::locked(variants)?;
        let cluster = Cluster::start()?;
        Some(Login { machine, cluster })
    }

    fn gate(&self, arguments: &[&str]) -> Command {
        let mut command = self.machine.gate(arguments);
        command.env("SLURM_CONF", self.cluster.conf());
        command
    }

    /// `check --on slurm` with two slices and further arguments.
    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&self.gate(&[&ON[..], arguments].concat()).output().unwrap())
    }

    /// The same, without waiting for its end.
    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.gate(&[&ON[..], arguments].concat());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// No job, no process, and no worktree is left.
    #[track_caller]
    fn is_clean(&self) {
        self.cluster
            .until("no job is left", || self.cluster.jobs().is_empty());
        self.cluster.until("no process is left", || {
            self.cluster.processes().is_empty() && self.keepers().is_empty()
        });
    }

    /// The processes that keep jobs.
    fn keepers(&self) -> Vec<i32> {
        self.running(&["keep-job"])
    }

    /// Processes of this project whose command lines have these words.
    fn running(&self, words: &[&str]) -> Vec<i32> {
        running(&self.machine.project.path(""), words)
    }
}

#[test]
fn a_check_on_slurm_is_one_check_whose_slices_run_on_different_gpus() {
    let Some(login) = Login::new(2) else { return };
    let project = &login.machine.project;
    let launch = "[launch.slurm]\nprolog = [\"echo 'a prolog'\"]\n";
    project.write(
        "config.toml",
        format!("{}{launch}", project.read("config.toml")),
    );
    let report = format!("json:{}", project.path("tmp/outcome.json").display());
    let ran = login.run(&["--report", &report]).exits(0);
    assert!(ran.err.contains("2 of 2 slices ended"), "{}", ran.err);
    let outcome: Json = serde_json::from_str(&project.read("tmp/outcome.json")).unwrap();
    all_measured(&outcome, 2);
    let jobs = fs::read_dir(project.path(".sparsek-gate/slurm")).unwrap();
    let [job] = &jobs.map(|it| it.unwrap().path()).collect::<Vec<_>>()[..] else {
        panic!("one job");
    };
    let mut gpus = BTreeSet::new();
    for slice in 1..=2 {
        let suite = job.join(format!("slices/{slice}/profiles/bsr_gemm"));
        let variant = fs::read_dir(suite).unwrap().next().unwrap().unwrap().path();
        let profile: Json = serde_json::from_str(&read(&variant.join("profile.json"))).unwrap();
        gpus.insert(
            profile["provenance"]["gpu_uuid"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
        let log = read(&job.join(format!("logs/slice-{slice}.log")));
        assert!(log.starts_with("a prolog\n"), "{log}");
    }
    assert_eq!(gpus.len(), 2, "{gpus:?}");
    assert!(!job.join("gate.tar.zst").exists() && !job.join("sparsek-gate").exists());
    login.is_clean();

    // What Slurm refuses, at once or later, is said with what to correct.
    for (settings, why) in [
        (
            "partition = \"none\"",
            "Slurm takes no job: sbatch failed (exit status 1): sbatch: error: ",
        ),
        (
            "partition = \"short\"",
            "Slurm will not start the slices: PartitionTimeLimit",
        ),
        ("prolog = [\"exit 9\"]", "slice 1: exit code 9; "),
    ] {
        let config = project.read("config.toml");
        let (before, _) = config.split_once("[launch.slurm]").unwrap();
        project.write(
            "config.toml",
            format!("{before}[launch.slurm]\n{settings}\n"),
        );
        // What a slice did not measure is no error, but a verdict.
        let code = if settings.starts_with("prolog") { 6 } else { 3 };
        let _ = fs::remove_file(project.path("tmp/outcome.json"));
        login.run(&["--report", &report]).exits(code).says(why);
        let outcome: Json = serde_json::from_str(&project.read("tmp/outcome.json")).unwrap();
        assert_eq!(outcome["exit_code"], code);
        login.is_clean();
    }

    // An interrupt leaves nothing.
    project.replace("config.toml", "exit 9", "true");
    login.machine.slow(1.0);
    let mut check = login.start(&[]);
    login
        .cluster
        .until("a slice runs", || !login.running(&SLICE).is_empty());
    kill_process(Pid::from_child(&check), Signal::TERM).unwrap();
    assert_eq!(check.wait().unwrap().code(), Some(130));
    assert_eq!(login.cluster.jobs(), Vec::<String>::new());
    login.is_clean();
}

#[test]
fn a_check_on_slurm_that_was_killed_goes_on() {
    let Some(login) = Login::new(2) else { return };
    let project = &login.machine.project;
    let hang = project.path("tmp/hang").display().to_string();
    login.machine.ncu(&format!(
        "echo \"$*\" >>\"$ARGV\"\n\
         case $* in *--export*slices/1/*capture-2*) if [ -e '{hang}' ]; then sleep 600; fi ;; esac"
    ));
    fs::write(&hang, "").unwrap();
    let mut check = login.start(&[]);
    let runs = || {
        let runs = fs::read_dir(project.path(".sparsek-gate/slurm"));
        let runs = runs.into_iter().flatten().flatten();
        runs.map(|run| run.path()).collect::<Vec<_>>()
    };
    let is_half = || {
        let complete = |run: &std::path::PathBuf| run.join("slices/2/slice.json").exists();
        runs().iter().any(complete) && !login.running(&["sleep 600"]).is_empty()
    };
    login.cluster.until("one slice is complete", is_half);
    check.kill().unwrap();
    check.wait().unwrap();
    fs::remove_file(&hang).unwrap();
    fs::remove_file(project.path("argv")).unwrap();
    login
        .run(&["--resume", "--pull-request", "7"])
        .exits(2)
        .says("`--resume` is refused: a change is under review");
    let report = format!("json:{}", project.path("tmp/outcome.json").display());
    login
        .run(&["--resume", "--report", &report])
        .exits(0)
        .says("1 of 2 slices is complete of an interrupted run")
        .says(": 1 slice\n");
    let outcome: Json = serde_json::from_str(&project.read("tmp/outcome.json")).unwrap();
    all_measured(&outcome, 2);
    // The GPU of the other slice is the same again, so that its whole round counts.
    assert_eq!(outcome["resumed"].as_array().unwrap().len(), 1);
    let calls = login.machine.ncu_calls();
    let of = |slice: &str| calls.iter().filter(|call| call.contains(slice)).count();
    assert!(of("slices/1/") > 0);
    assert_eq!(of("slices/2/"), 0, "{calls:#?}");
    login.is_clean();
    let [run] = &runs()[..] else {
        panic!("one run");
    };
    for journal in ["", "slices/1/profiles/", "slices/2/profiles/"] {
        assert!(!run.join(format!("{journal}journal.json")).exists());
    }
    // It is over: the next one begins anew.
    let ran = login.run(&["--resume"]).exits(0);
    assert!(!ran.err.contains("interrupted run"), "{}", ran.err);
    assert_eq!(runs().len(), 2);

    // Another run does not end the process that cancels the jobs of a killed one, which takes time.
    fs::write(&hang, "").unwrap();
    let slow = tempfile::tempdir().unwrap();
    let scancel = slow.path().join("scancel");
    let path = std::env::var("PATH").unwrap();
    let text = format!(
        "#!/bin/sh\nn=0; while [ ! -e '{}/go' ] && [ $n -lt 3000 ]; do n=$((n+1)); sleep 0.1; done\n\
         PATH='{path}' exec scancel \"$@\"\n",
        slow.path().display()
    );
    fs::write(&scancel, text).unwrap();
    fs::set_permissions(&scancel, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = login.gate(&ON);
    let own = command.get_envs().find(|(name, _)| *name == "PATH");
    let own = own.unwrap().1.unwrap().to_str().unwrap().to_owned();
    command.env("PATH", format!("{}:{own}", slow.path().display()));
    let mut check = command
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    login.cluster.until("a program sleeps", || {
        !login.running(&["sleep 600"]).is_empty()
    });
    check.kill().unwrap();
    check.wait().unwrap();
    fs::remove_file(&hang).unwrap();
    login.run(&["bsr_gemm/v-n_2"]).exits(0);
    assert_eq!(login.keepers().len(), 1);
    fs::write(slow.path().join("go"), "").unwrap();
    login.is_clean();

    // Where nobody is left to cancel them, the next run does, whatever it measures.
    for next in [&["bsr_gemm/v-n_2"][..], &["--resume"]] {
        fs::write(&hang, "").unwrap();
        let mut check = login.start(&[]);
        login.cluster.until("a program sleeps", || {
            !login.running(&["sleep 600"]).is_empty()
        });
        for keeper in login.keepers() {
            kill_process(Pid::from_raw(keeper).unwrap(), Signal::KILL).unwrap();
        }
        check.kill().unwrap();
        check.wait().unwrap();
        assert!(!login.cluster.jobs().is_empty());
        fs::remove_file(&hang).unwrap();
        login.run(next).exits(0);
        login.is_clean();
    }
}

/// What is killed in a run.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Check,
    Keeper,
    Slice,
    Program,
    Job,
    /// Its node fails, and Slurm starts the slice again.
    Node,
}

#[test]
fn whatever_is_killed_nothing_unmeasured_passes_and_nothing_is_left() {
    const VICTIMS: [Victim; 6] = [
        Victim::Check,
        Victim::Slice,
        Victim::Node,
        Victim::Keeper,
        Victim::Job,
        Victim::Program,
    ];
    let Some(login) = Login::new(2) else { return };
    login.machine.slow(0.1);
    let report = login.machine.project.path("tmp/outcome.json");
    let text = format!("json:{}", report.display());
    let arguments = ["--report", &text];
    let mut whole = Duration::from_secs(5);
    if is_long() {
        let begun = Instant::now();
        login.run(&arguments).exits(0);
        whole = begun.elapsed();
    }
    let mut state = u64::from(std::process::id()) << 16 | 1;
    aloud(&format!("kills on Slurm: seed {state}, {whole:?} a run"));
    let mut ended = std::collections::BTreeMap::new();
    for number in 0..kills(2) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let victim = VICTIMS[number as usize % VICTIMS.len()];
        let moment = whole.mul_f64((state % 1000) as f64 / 1000.0);
        let _ = fs::remove_file(&report);
        let mut check = login.start(&arguments);
        std::thread::sleep(moment);
        let found = match victim {
            Victim::Check => vec![Pid::from_child(&check).as_raw_nonzero().get()],
            Victim::Keeper => login.keepers(),
            Victim::Slice => login.running(&SLICE),
            Victim::Program => login.running(&["bin/ncu"]),
            Victim::Job | Victim::Node => {
                let jobs = login
                    .cluster
                    .ask("squeue", &["--noheader", "--array", "--format=%A"]);
                let job = jobs.lines().next().unwrap_or_default().trim();
                match victim {
                    _ if job.is_empty() => String::new(),
                    Victim::Job => login.cluster.ask("scancel", &[job]),
                    _ => login.cluster.ask("scontrol", &["requeue", job]),
                };
                Vec::new()
            }
        };
        if let Some(pid) = found.first().and_then(|pid| Pid::from_raw(*pid)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let status = check.wait().unwrap();
        if status.code() == Some(0) {
            let outcome: Json = serde_json::from_str(&read(&report)).unwrap();
            all_measured(&outcome, 2);
        }
        if matches!(victim, Victim::Check) {
            // At once: what is left of the jobs must not measure beside it.
            let _ = fs::remove_file(&report);
            login
                .run(&[&["--resume"], &arguments[..]].concat())
                .exits(0);
            let outcome: Json = serde_json::from_str(&read(&report)).unwrap();
            all_measured(&outcome, 2);
        }
        let how = format!("{victim:?}: {:?}", status.code());
        *ended.entry(how).or_insert(0_u32) += 1;
        login.is_clean();
    }
    aloud(&format!("kills on Slurm: {ended:?}"));
}

/// Measures the time of eight slices and of one.
#[test]
#[ignore = "half an hour, by hand: cargo test --release --test all slurm:: -- --ignored --nocapture"]
fn equal_variants_on_eight_gpus_take_an_eighth_of_the_time() {
    let Some(login) = Login::new(64) else {
        return;
    };
    let project = &login.machine.project;
    // Every variant takes one round, whose result is clear.
    for (from, to) in [
        ("\nmax_rounds = 5\n", "\nmax_rounds = 1\n"),
        (
            "\nagainst = { relative_percent = 0.25 }\n",
            "\nagainst = { relative_percent = 2.0 }\n",
        ),
        (
            "\nagainst = { absolute = 0.3 }\n",
            "\nagainst = { absolute = 3.0 }\n",
        ),
    ] {
        project.replace("config.toml", from, to);
    }
    // The most that 64 variants in one slice may take is longer than the partition allows.
    let launch = "[launch.slurm]\ntime_limit_min = 120\n";
    project.write(
        "config.toml",
        format!("{}{launch}", project.read("config.toml")),
    );
    project.git(&["commit", "--quiet", "--all", "-m", "one round"]);
    login.machine.slow(3.0);
    let took = |slices: u32| {
        let begun = Instant::now();
        let slices = slices.to_string();
        let against = ["--against", "HEAD", "--measure-all"];
        let on = ["check", "--on", "slurm", "--slices", &slices];
        let arguments = [&on[..], &against].concat();
        Ran::of(&login.gate(&arguments).output().unwrap()).exits(0);
        begun.elapsed().as_secs_f64()
    };
    let (eight, one) = (took(GPUS), took(1));
    aloud(&format!(
        "8 slices {eight:.1} s, 1 slice {one:.1} s: {:.2} times",
        one / eight
    ));
    assert!(one / eight >= 7.2);
}
