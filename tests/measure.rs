//! `profile`, `check` and `check --against` of the real program, on a machine without a GPU. The
//! driver's library and ncu are stand-ins (`tests/data/stand_in`); the reports that they hand over
//! are those that the real ones recorded on an H200.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::common::crash::wait_for_orphans;
use crate::common::stand_in::{self, UUID, libraries};
use crate::common::{self, PATIENCE, Project, Ran, Report, repository};
use serde_json::{Value as Json, json};
use sparsek_gate::metric::Role;
use sparsek_gate::process::shell_line;
use sparsek_gate::profile::Identity;

/// The profiles that `profile` and `check` leave.
const PROFILES: &str = ".sparsek-gate/profiles";
/// Recordings of one GPU.
const SAME: &str = "h200";
/// Of which ncu counts nine launches, as it does where the program is timed as it runs.
const NINE: &str = "../../../../ci/recordings/h200";
/// Recordings of a head that is worse.
const WORSE: &str = "h200-worse";
/// Recordings of both in turn: processes that differ much.
const NOISY: &str = "h200 h200-worse";
/// The same in the other order.
const NOISY_AGAIN: &str = "h200-worse h200";

const SUITE: &str = r#"
[suite.bsr_gemm]
args = ["--m", "8192", "--n", "8192", "--k", "8192", "--blocks-per-row", "16"]
profile_args = ["--mode", "profile", "--warmup", "0", "--launches", "{launches}"]
kernels = "regex:^bsr_gemm_"
work = { flop = 68719476736, bytes_written = 268435456 }

[suite.bsr_gemm.variant.baseline]
run = ["sh", "baseline.sh"]
inputs = ["baseline.sh"]
expect = ["bsr_gemm_baseline"]
immutable = true

[suite.bsr_gemm.variant.cp_async]
run = ["sh", "cp_async.sh"]
inputs = ["cp_async.sh"]
expect = ["bsr_gemm_cp_async"]
"#;

/// A project in a git repository, on a machine with an H200 and ncu, as far as the program sees.
struct Machine(stand_in::Machine);

impl Deref for Machine {
    type Target = stand_in::Machine;

    fn deref(&self) -> &stand_in::Machine {
        &self.0
    }
}

impl Machine {
    fn of(project: Project) -> Machine {
        let reports = project.path("reports").display().to_string();
        let recordings = common::handed_over().display().to_string();
        let machine = stand_in::Machine::of(project, &[&libraries()[0]]);
        let machine = machine.with("RECORDINGS", &recordings);
        Machine(machine.with("REPORTS", &reports))
    }

    /// A project with the repository's metrics and settings, committed. Nothing is locked.
    fn new() -> Machine {
        let machine = Machine::of(Project::empty());
        let text = common::configuration();
        let (settings, _) = text.split_once("[suite.").unwrap();
        let ncu = repository().join("tests/data/stand_in/ncu");
        let toolchain = format!("[toolchain]\nncu = {:?}\n", ncu.display().to_string());
        let settings = settings.replacen("[toolchain]\n", &toolchain, 1);
        // A stand-in of the driver's library is no kernel driver, and has no version.
        let settings = settings.replacen("driver = \">=580\"\n", "", 1);
        let passed = common::ENV_PASS;
        machine.write("config.toml", format!("{passed}{settings}{SUITE}"));
        machine.write(".gitignore", ".sparsek-gate/\n");
        machine.program("baseline", SAME, "");
        machine.program("cp_async", SAME, "");
        for path in ["journal", "reports"] {
            machine.write(path, "");
        }
        machine.without("");
        machine.commit();
        machine
    }

    /// With baselines, locked from profiles that were measured here.
    fn locked() -> Machine {
        static LOCKED: LazyLock<Vec<u8>> = LazyLock::new(|| {
            let machine = Machine::new();
            machine.lock();
            machine.packed()
        });
        Machine::of(Project::unpacked(&LOCKED))
    }

    fn lock(&self) {
        self.lock_measured();
        self.commit();
        self.forget();
    }

    /// Forgets what was profiled.
    fn forget(&self) {
        self.write("journal", "");
    }

    /// A variant's program: it has the reports of these recordings made of it. The further lines
    /// run in profiled runs alone.
    fn program(&self, variant: &str, recorded: &str, profiled: &str) {
        let text = format!(
            "echo 'variant: {variant}'\necho 'recorded: {recorded}'\n\
             case \" $* \" in *\" --mode profile \"*)\n:\n{profiled}\n;; esac\n"
        );
        self.write(&format!("{variant}.sh"), text);
    }

    /// `check` in its JSON form. Whatever it says, it leaves no worktree.
    #[track_caller]
    fn check(&self, arguments: &[&str], code: i32) -> Report {
        let report = self.0.check(arguments, code);
        assert_eq!(report.0["exit_code"], code);
        self.is_clean();
        report
    }

    /// What was profiled, in order: side, variant, phase, and its number among these.
    fn journal(&self) -> Vec<String> {
        self.read("journal").lines().map(str::to_owned).collect()
    }

    /// What was profiled of a variant, in the form `base timing`.
    fn order(&self, variant: &str) -> Vec<String> {
        let of_variant = |line: &String| {
            let words: Vec<&str> = line.split(' ').collect();
            (words[1] == variant).then(|| format!("{} {}", words[0], words[2]))
        };
        self.journal().iter().filter_map(of_variant).collect()
    }

    /// No worktree is left, neither known to git nor lying about.
    #[track_caller]
    fn is_clean(&self) {
        let known = self.git("worktree list");
        assert_eq!(known.lines().count(), 1, "{known}");
        let places = self.path(".sparsek-gate/worktrees");
        let left = fs::read_dir(places).into_iter().flatten();
        let left: Vec<PathBuf> = left.map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }

    fn left(&self, variant: &str, file: &str) -> PathBuf {
        self.path(&format!("{PROFILES}/bsr_gemm/{variant}/{file}"))
    }

    fn left_json(&self, variant: &str, file: &str) -> Json {
        serde_json::from_slice(&fs::read(self.left(variant, file)).unwrap()).unwrap()
    }

    /// The captures of a profile that was left.
    fn captures(&self, variant: &str, file: &str) -> Vec<Json> {
        let profile = self.left_json(variant, file);
        let captures = &profile["provenance"]["captures"];
        captures.as_array().unwrap().clone()
    }
}

/// The order of a comparison side by side.
fn rounds(count: usize) -> Vec<String> {
    let mut order = vec!["base counting", "head counting"];
    for round in 0..count {
        let (outer, inner) = match round % 2 {
            0 => ("base timing", "head timing"),
            _ => ("head timing", "base timing"),
        };
        order.extend([outer, inner, inner, outer]);
    }
    order.into_iter().map(str::to_owned).collect()
}

/// The order of a profile of the head alone.
fn alone(processes: usize) -> Vec<String> {
    let mut order = vec!["head counting".to_owned()];
    order.extend(std::iter::repeat_n("head timing".to_owned(), processes));
    order
}

fn terminate(child: &Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
}

fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_profile_is_one_counting_process_and_then_the_asked_timing_processes() {
    const UNSTATED: &str = Role::RegistersPerThread.counter();
    let machine = Machine::new();
    machine.run("profile cp_async").exits(0);
    assert_eq!(machine.order("cp_async"), alone(4));
    assert_eq!(machine.journal().len(), 5);
    let profile = machine.left_json("cp_async", "profile.json");
    let provenance = &profile["provenance"];
    assert_eq!(provenance["gpu_uuid"], UUID);
    assert_eq!(provenance["processes"], 4);
    assert_eq!(provenance["profiler"], "2025.3.1.0");
    assert_eq!(provenance["git"], machine.git("rev-parse HEAD"));
    let captures = machine.captures("cp_async", "profile.json");
    let expected = "counting capture-1 capture-2 capture-3 capture-4";
    let expected = expected.split(' ').map(|it| json!(format!("{it}.ncu-rep")));
    let files = captures.iter().map(|it| it["report"]["file"].clone());
    assert!(files.eq(expected), "{captures:?}");
    for capture in captures {
        assert_eq!(capture["gpu_uuid"], UUID);
        assert!(capture["device"].is_null());
    }
    // The numbers are those of the recording, sample by sample.
    let recorded = common::handed_over().join("h200/bsr_gemm/cp_async/profile.json");
    let recorded: Json = serde_json::from_slice(&fs::read(recorded).unwrap()).unwrap();
    // The recording is of an earlier schema, which has other names for the same.
    let identity = |profile: &Json| -> Identity {
        let identity = serde_json::from_value(profile["identity"].clone());
        let mut identity: Identity = identity.unwrap();
        identity.metrics.remove(UNSTATED);
        identity
    };
    assert_eq!(identity(&profile), identity(&recorded));
    // It has more processes.
    let samples = |profile: &Json| {
        let mut metrics = profile["kernels"][0]["metrics"].clone();
        let all = metrics.as_object_mut().unwrap();
        all.remove(UNSTATED);
        for series in all.values_mut() {
            let samples = series["samples"].as_array_mut().unwrap();
            samples.truncate(4);
            *series = json!(samples);
        }
        metrics
    };
    assert_eq!(samples(&profile), samples(&recorded));
    // What explains is recorded without a key in the configuration, as far as ncu measured it.
    let metrics = &profile["kernels"][0]["metrics"];
    assert_eq!(metrics[UNSTATED]["value"], 248.0);
    assert!(metrics["lts__t_sectors.sum"].is_null());
}

#[test]
fn a_program_that_fails_its_own_check_is_never_profiled() {
    let machine = Machine::new();
    machine.write("cp_async.sh", "exit 1\n");
    let ran = machine.run("profile --format json").exits(5);
    assert_eq!(ran.json().denied(), ["wrong-numbers"]);
    assert_eq!(machine.order("cp_async"), Vec::<String>::new());
    assert_eq!(machine.order("baseline"), alone(4));
    assert!(!machine.left("cp_async", "profile.json").exists());
}

#[test]
fn unchanged_code_passes_against_its_base_in_rounds_of_alternating_order() {
    let machine = Machine::locked();
    let report = machine.check(&["--against", "HEAD", "--measure-all"], 0);
    assert_eq!(report.denied(), Vec::<String>::new());
    for variant in ["baseline", "cp_async"] {
        let order = machine.order(variant);
        let count = (order.len() - 2) / 4;
        assert!([3, 6, 10].contains(&count), "{order:?}");
        assert_eq!(order, rounds(count));
        let judged = report.variant(variant);
        assert_eq!(judged["mode"], "against");
        assert_eq!(judged["reference"]["git"], machine.git("rev-parse HEAD"));
        for file in ["profile.json", "base/profile.json"] {
            let profile = machine.left_json(variant, file);
            assert_eq!(profile["provenance"]["processes"], json!(2 * count));
            assert_eq!(machine.captures(variant, file).len(), 1 + 2 * count);
        }
    }
    // A later check without a base leaves none that it would be judged against.
    let report = machine.check(&["cp_async"], 0);
    assert_eq!(report.variant("cp_async")["mode"], "stored");
    assert!(!machine.left("cp_async", "base/profile.json").exists());
}

#[test]
fn both_sides_are_measured_with_as_many_launches_as_are_configured() {
    let machine = Machine::locked();
    machine.configure("launches = 20", "launches = 5");
    machine.commit();
    machine.run("check --against HEAD --measure-all cp_async");
    for file in ["profile.json", "base/profile.json"] {
        let profile = machine.left_json("cp_async", file);
        assert_eq!(profile["provenance"]["launches"], 5);
        let captures = machine.captures("cp_async", file);
        for timing in captures.iter().filter(|one| one["phase"] == "timing") {
            let argv = timing["argv"].as_array().unwrap();
            let after = |name: &str| {
                let at = argv.iter().position(|word| word == name).unwrap();
                argv[at + 1].as_str().unwrap()
            };
            assert!(after("--kernel-id").ends_with(":^([1-5])$"));
            assert_eq!(after("--launches"), "5");
        }
    }
}

#[test]
fn ncu_counts_each_kernel_by_itself_by_an_identifier_that_contains_the_filter() {
    let machine = stand_in::Machine::new();
    machine.configure("[profile]\n", "[profile]\nskip = 1\n");
    machine.run("profile baseline");
    for (stem, numbers) in [
        ("capture-1", "^([2-9]|1[0-9]|2[0-1])$"),
        ("counting", "^([2-3])$"),
    ] {
        let argv = machine.read(&format!("{PROFILES}/bsr_gemm/baseline/{stem}.argv"));
        let id = format!("::regex:^bsr_gemm_:{numbers}");
        let id = shell_line(&["--kernel-id".to_owned(), id]);
        assert!(argv.contains(&id), "{id} is not in {argv}");
        for other in ["--kernel-name", "--launch-count", "--launch-skip"] {
            assert!(!argv.contains(other), "{other}");
        }
    }
}

#[test]
fn the_base_is_the_code_of_the_revision_and_the_head_that_of_the_working_tree() {
    let machine = Machine::locked();
    machine.program("cp_async", WORSE, "");
    let report = machine.check(&["--against", "HEAD", "cp_async"], 1);
    assert!(report.denies("regressed"));
    assert_eq!(report.verdict("cp_async", "duration"), "regressed");
    // What is clear at the first look is not measured longer.
    assert_eq!(machine.order("cp_async"), rounds(3));
    let commit = machine.git("rev-parse HEAD");
    let of_git = |file| machine.left_json("cp_async", file)["provenance"]["git"].clone();
    assert_eq!(of_git("base/profile.json"), json!(commit));
    assert_eq!(of_git("profile.json"), json!(format!("{commit}+dirty")));
    machine.forget();
    machine.check(&["cp_async"], 1);
    assert_eq!(machine.order("cp_async"), alone(4));

    // The other way round: the revision has the slower kernel, the working tree does not.
    machine.commit();
    machine.program("cp_async", SAME, "");
    machine.forget();
    // More than twice as fast needs a person's consent.
    let report = machine.check(&["--against", "HEAD", "cp_async"], 6);
    assert_eq!(report.denied(), ["implausible"]);
    let change = &report.comparison("cp_async", "duration")["change"];
    assert!(change["relative_percent"].as_f64().unwrap() < -40.0);
}

#[test]
fn an_answer_that_stays_open_is_measured_as_long_as_the_configuration_allows() {
    let machine = Machine::new();
    machine.program("cp_async", NOISY, "");
    machine.lock();
    machine.program("cp_async", NOISY_AGAIN, "");
    let report = machine.check(&["cp_async", "baseline"], 6);
    assert!(report.denies("inconclusive"));
    assert_eq!(machine.order("cp_async"), alone(8));

    machine.forget();
    let report = machine.check(&["cp_async", "--against", "HEAD"], 6);
    assert!(report.denies("inconclusive"));
    assert_eq!(machine.order("cp_async"), rounds(10));
}

#[test]
fn a_disturbed_process_takes_three_more_rounds_and_decides_nothing() {
    let machine = Machine::locked();
    // The second of twelve processes is slower.
    let recorded = format!("{SAME} {WORSE} {}", [SAME; 10].join(" "));
    machine.program("cp_async", &recorded, "");
    let report = machine.check(&["cp_async", "--against", "HEAD"], 0);
    assert_eq!(report.verdict("cp_async", "duration"), "pass");
    assert_eq!(machine.order("cp_async"), rounds(6));
    // The recording gives the same verdict again.
    let again = machine.check(&["cp_async", "--from", PROFILES], 0);
    let comparisons = |report: &Report| report.0["variants"][0]["comparisons"].clone();
    assert_eq!(comparisons(&again), comparisons(&report));
}

#[test]
fn only_what_is_asked_for_is_measured_and_an_immutable_variant_first() {
    let machine = Machine::locked();
    let measured = |variants: &[&str]| {
        machine.forget();
        machine.check(variants, 0);
        let lines = machine.journal().into_iter();
        let names = lines.map(|line| line.split(' ').nth(1).unwrap().to_owned());
        let mut names: Vec<String> = names.collect();
        names.dedup();
        names
    };
    assert_eq!(measured(&["cp_async"]), ["cp_async"]);
    let both = measured(&["cp_async", "baseline"]);
    assert_eq!(both, ["baseline", "cp_async"]);
}

/// Why a base cannot serve, and how it comes to be so.
#[test]
fn a_base_that_cannot_be_measured_is_told_and_the_head_judged_against_its_baseline() {
    let machine = Machine::locked();
    let broken = |profiled: &str| machine.program("cp_async", SAME, profiled);
    let third = "test $(grep -c 'base cp_async timing' \"$JOURNAL\") -lt 2 || exit 3";
    let config = machine.read("config.toml");
    let at = config.find("[suite.bsr_gemm.variant.cp_async]").unwrap();
    let failed = "failed under ncu (exit status 3)";
    // A program, or an edit of the configuration.
    let cases = [
        ("exit 3", "", failed),
        (third, "", failed),
        ("", "", "the program's own check failed"),
        (&config[at..], "", "has no such variant"),
        (
            "\"8192\", \"--n\"", "\"4096\", \"--n\"", "its workload (`args`) differs",
        ),
        ("processes = 4", "processes = \"4\"", "config.toml"),
    ];
    let sound = machine.git("rev-parse HEAD");
    for (from, to, why) in cases {
        machine.forget();
        match from {
            "" => machine.write("cp_async.sh", "exit 1\n"),
            from if why == failed => broken(from),
            from => machine.configure(from, to),
        }
        machine.commit();
        machine.git(&["checkout", "--quiet", &sound, "--", "."]);
        let report = machine.check(&["--against", "HEAD", "cp_async"], 0);
        let commit = machine.git("rev-parse HEAD");
        report.tells_all("base-unavailable", &[why, &commit[..10]]);
        assert!(report.warns("base-unavailable"));
        let judged = report.variant("cp_async");
        assert_eq!(judged["mode"], "stored", "{why}");
        // What was measured of the head beside a base is measured again, alone.
        let order = machine.order("cp_async");
        assert!(order.ends_with(&alone(4)), "{why}: {order:?}");
        assert!(!machine.left("cp_async", "base/profile.json").exists());
        let processes = &machine.left_json("cp_async", "profile.json")["provenance"]["processes"];
        let captures = machine.captures("cp_async", "profile.json").len();
        assert_eq!(json!(captures - 1), *processes, "{why}");
    }
}

#[test]
fn a_head_that_fails_beside_its_base_is_the_heads_finding() {
    let machine = Machine::locked();
    machine.program("cp_async", SAME, "exit 3");
    let report = machine.check(&["--against", "HEAD", "cp_async"], 5);
    assert_eq!(report.denied(), ["program-failed"]);
    assert_eq!(report.warned(), Vec::<String>::new());
    assert_eq!(machine.order("cp_async"), rounds(0));
    for file in ["profile.json", "base/profile.json"] {
        assert!(!machine.left("cp_async", file).exists(), "{file}");
    }
}

#[test]
fn compute_sanitizer_is_asked_of_the_head_alone_and_before_anything_is_profiled() {
    const SANITIZER: &str = "\
#!/bin/sh
if [ \"$1\" = --version ]; then echo 'Version 2025.3.1.0 (build 1)'; exit 0; fi
while [ \"${1#--}\" != \"$1\" ]; do
    if [ \"$1\" = --log-file ]; then log=$2; fi
    shift 2
done
case $PWD in */worktrees/*) side=base ;; *) side=head ;; esac
echo \"$side ${2%.sh} racecheck 1\" >>\"$JOURNAL\"
cp \"$LOG\" \"$log\"
\"$@\"
exit $STATUS
";
    let machine = Machine::locked();
    common::write_program(&machine.path("compute-sanitizer"), SANITIZER);
    let named = "[toolchain]\ncompute_sanitizer = \"compute-sanitizer\"\n";
    machine.configure("[toolchain]\n", named);
    let asked = "[verify]\nsanitizer = [\"racecheck\"]\n";
    machine.configure("[verify]\n", asked);
    machine.commit();
    let check = |name: &str, status: &str| {
        let log = repository().join(format!("tests/data/sanitizer/{name}.racecheck.log"));
        let mut gate = machine.gate("check --against HEAD --measure-all cp_async --format json");
        Ran::by(gate.env("LOG", log).env("STATUS", status))
    };
    check("cp_async", "0").exits(0);
    let of_variant = machine.order("cp_async");
    assert_eq!(of_variant[..2], ["head racecheck", "base counting"]);
    assert!(!of_variant.contains(&"base racecheck".to_owned()));
    machine.forget();
    let report = check("race", "86").exits(5).json();
    assert_eq!(report.denied(), ["sanitizer"]);
    assert_eq!(machine.order("cp_async"), ["head racecheck"]);
}

#[test]
fn what_a_live_check_left_gives_the_same_verdicts_when_it_is_judged_again() {
    let machine = Machine::new();
    machine.lock();
    machine.program("cp_async", WORSE, "");
    for arguments in ["--against HEAD", "cp_async"] {
        let live = format!("check --report live.json {arguments}");
        machine.run(&live).exits(1);
        let mut live = machine.json("live.json");
        // Of the argument: that its base is HEAD.
        let findings = live["findings"].as_array_mut().unwrap();
        findings.retain(|one| one["code"] != "rule-doubtful");
        let one = arguments == "cp_async";
        let from = ["--from", PROFILES, "cp_async"];
        let again = machine.check(&from[..2 + usize::from(one)], 1);
        for part in ["variants", "findings", "exit_code"] {
            assert_eq!(live[part], again.0[part], "{part} of {arguments}");
        }
    }
}

#[test]
fn a_project_in_a_folder_of_its_repository_is_compared_with_that_folder_of_the_base() {
    let machine = Machine::locked();
    fs::create_dir_all(machine.path("some/project")).unwrap();
    for part in ["baselines", "cp_async.sh", "config.toml"] {
        let place = machine.path(&format!("some/project/{part}"));
        fs::rename(machine.path(part), place).unwrap();
    }
    // What lies in the root must not be taken for it.
    machine.write("config.toml", "not = a = configuration");
    machine.commit();
    let check =
        "check -C some/project/config.toml cp_async --against HEAD --measure-all --format json";
    let report = machine.run(check).exits(0).json();
    // There is no NVML here.
    assert_eq!(report.codes("warn"), ["rule-doubtful", "gpu-unwatched"]);
    assert_eq!(report.denied(), Vec::<String>::new());
    assert_eq!(report.variant("cp_async")["mode"], "against");
    machine.is_clean();
}

/// Where a program that waits leaves its process number.
const WAITS: &str = "journal.waits";

#[track_caller]
fn is_waiting(machine: &Machine) {
    let waits = machine.path(WAITS);
    let end = Instant::now() + PATIENCE;
    while !fs::read_to_string(&waits).is_ok_and(|pid| pid.ends_with('\n')) {
        assert!(Instant::now() < end, "no program waits");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A base that waits in its profiled run, and a check that was begun.
fn waiting(machine: &Machine) -> Child {
    let waits = "echo $$ >\"$JOURNAL.waits\"; exec sleep 300";
    machine.program("cp_async", SAME, waits);
    machine.commit();
    let gate = machine.gate("check --against HEAD --measure-all cp_async");
    begun(machine, gate)
}

/// A command that was begun, and of which a program waits.
fn begun(machine: &Machine, mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    is_waiting(machine);
    child
}

#[test]
fn a_comparison_that_is_interrupted_leaves_nothing_and_the_next_clears_what_a_killed_one_left() {
    let machine = Machine::locked();
    let child = waiting(&machine);
    terminate(&child);
    Ran::of(&child.wait_with_output().unwrap()).exits(130);
    machine.is_clean();
    let pid = machine.read(WAITS);
    assert!(!runs(pid.trim()), "process {pid} still runs");

    fs::remove_file(machine.path(WAITS)).unwrap();
    let mut child = waiting(&machine);
    child.kill().unwrap();
    child.wait().unwrap();
    let known = machine.git("worktree list");
    assert_eq!(known.lines().count(), 2);
    wait_for_orphans(&machine.path(""));
    machine.program("cp_async", SAME, "");
    machine.commit();
    machine.check(&["--against", "HEAD", "--measure-all", "cp_async"], 0);
}

/// Process numbers of the imports that were begun.
fn importing(machine: &Machine) -> Vec<String> {
    let text = machine.read("journal.importing");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn no_import_outlives_a_run_in_which_a_later_process_fails() {
    let machine = Machine::locked();
    machine.program("cp_async", SAME, "exit 3");
    let mut gate = machine.gate("check --against HEAD cp_async");
    Ran::by(gate.env("IMPORT_SLEEPS", "5")).exits(5);
    let begun = importing(&machine);
    assert!(!begun.is_empty());
    assert!(!begun.iter().any(|pid| runs(pid)), "one of {begun:?} runs");
}

#[test]
fn no_import_outlives_an_interrupted_run() {
    let machine = Machine::locked();
    let waits = "if grep -q 'head cp_async counting' \"$JOURNAL\"; then \
         echo $$ >\"$JOURNAL.waits\"; exec sleep 300; fi";
    machine.program("cp_async", SAME, waits);
    // It is a race, which the reading thread wins at times. An import may also be ended before it says
    // that it was begun.
    for _ in 0..12 {
        for file in ["journal", "journal.waits", "journal.importing"] {
            machine.write(file, "");
        }
        let mut gate = machine.gate("profile cp_async");
        gate.env("IMPORT_SLEEPS", "10");
        let child = begun(&machine, gate);
        terminate(&child);
        Ran::of(&child.wait_with_output().unwrap()).exits(130);
        let begun = importing(&machine);
        assert!(begun.len() <= 1, "{begun:?}");
        assert!(!begun.iter().any(|pid| runs(pid)), "{begun:?} runs");
        if !begun.is_empty() {
            return;
        }
    }
    panic!("no import was begun");
}

#[test]
fn a_pull_request_is_measured_by_the_tools_and_settings_of_its_base() {
    let machine = Machine::locked();
    machine.git("update-ref refs/remotes/origin/main HEAD");
    let of_base = machine.read("config.toml");
    let ncu = of_base.lines().find(|line| line.starts_with("ncu = "));
    machine.configure(ncu.unwrap(), "ncu = \"./ncu\"");
    machine.configure("\nlaunches = 20 ", "\nlaunches = 5 ");
    common::write_program(&machine.path("ncu"), "#!/bin/sh\ntouch ran\nexit 1\n");
    machine.commit();
    let check = "--against refs/remotes/origin/main cp_async";
    let report = in_pull_request(&machine, check).exits(4).json();
    machine.is_clean();
    assert!(!machine.path("ran").exists());
    assert_eq!(machine.order("cp_async"), rounds(3));
    assert_eq!(report.denied(), ["policy-changed", "policy-changed"]);
    assert_eq!(report.0["authority"]["kind"], "revision");
}

/// A target that moved on by what `step` commits, and a change that only adds a text.
fn moved_on(machine: &Machine, step: impl FnOnce()) {
    let first = machine.git("rev-parse HEAD");
    step();
    machine.commit();
    machine.git("update-ref refs/remotes/origin/main HEAD");
    machine.git(&["reset", "--quiet", "--hard", &first]);
    machine.write("notes.md", "a change\n");
    machine.commit();
}

fn in_pull_request(machine: &Machine, arguments: &str) -> Ran {
    let mut gate = machine.gate(&format!("check --format json {arguments}"));
    gate.env("GITHUB_EVENT_NAME", "pull_request");
    Ran::by(gate.env("GITHUB_BASE_REF", "main"))
}

#[test]
fn a_change_is_measured_merged_with_its_target_and_outputs_stay_in_the_checkout() {
    let machine = Machine::locked();
    // Only the target made it worse: what is checked out would pass.
    moved_on(&machine, || machine.program("cp_async", WORSE, ""));
    let report = in_pull_request(&machine, "cp_async").exits(1).json();
    assert!(report.denies("regressed"));
    assert_eq!(report.denied_besides(&["regressed"]), [""; 0]);
    machine.is_clean();
    let merges = fs::read_dir(machine.path(".sparsek-gate/merges"));
    assert_eq!(merges.unwrap().count(), 0);
    assert!(machine.left("cp_async", "profile.json").is_file());
    // Side by side with the target nothing differs.
    let against = "--against refs/remotes/origin/main cp_async";
    in_pull_request(&machine, against).exits(0);
    machine.is_clean();
}

#[test]
fn a_program_that_git_does_not_track_is_not_in_the_merge_and_the_next_step_is_named() {
    let machine = Machine::locked();
    machine.git("rm --quiet --cached cp_async.sh");
    machine.write(".gitignore", ".sparsek-gate/\ncp_async.sh\n");
    machine.commit();
    moved_on(&machine, || machine.write("more.md", "more\n"));
    in_pull_request(&machine, "cp_async")
        .ends(3, "needs `cp_async.sh`, which git does not track")
        .says("merge the target before the step that makes the file");
    machine.is_clean();
    // The same of a folder that an earlier step configured.
    let command = "[suite.bsr_gemm.variant.cp_async]\nrun = [\"sh\", \"cp_async.sh\"]";
    machine.git("add --force cp_async.sh");
    machine.write(".gitignore", ".sparsek-gate/\nmade/\n");
    let with_build = format!("{command}\nbuild = [\"true\", \"--build\", \"made\"]");
    machine.configure(command, &with_build);
    machine.write("made/CMakeCache.txt", "");
    machine.commit();
    in_pull_request(&machine, "cp_async").ends(3, "needs `made`, which git does not track");
    // What a build looks for is known once it fails.
    machine.configure("\"true\", \"--build\", \"made\"", "\"sh\", \"build.sh\"");
    machine.write("build.sh", "cat made/CMakeCache.txt\n");
    machine.commit();
    in_pull_request(&machine, "cp_async")
        .ends(3, "lacks `made/CMakeCache.txt`, which git does not track")
        .says("machine-lacks");
}

#[test]
fn a_check_against_a_base_works_from_a_git_hook() {
    let machine = Machine::locked();
    machine.program("cp_async", WORSE, "");
    machine.git("add --all");
    let staged = machine.git("ls-files --stage");
    let mut gate = machine.gate("check --against HEAD cp_async");
    // As git 2.47 calls `pre-commit`.
    Ran::by(gate.env("GIT_INDEX_FILE", ".git/index")).exits(1);
    assert_eq!(machine.git("ls-files --stage"), staged);
    machine.is_clean();
}

/// Writes a result in profiled runs.
fn reports(result: &str) -> String {
    format!("echo '{result}' >\"$SPARSEK_GATE_RESULT\"")
}

const CORRECT: &str = r#"{"correct": true, "checked": 9, "wrong": 0}"#;
const WRONG: &str = r#"{"correct": false, "checked": 9, "wrong": 4}"#;

#[test]
fn the_measured_process_itself_shows_that_its_numbers_are_correct() {
    // Right where it is verified; whether it is given the file, what it does where it is measured, and what
    // comes of it.
    let cases = r#"
correct | given | CORRECT | 0 | | 5
correct by the variable alone | | CORRECT | 0 | | 5
says nothing, and need not | | | 0 | | 0
wrong | given | WRONG | 5 | wrong-numbers | 0
wrong by the variable alone | | WRONG | 5 | wrong-numbers | 0
wrong, and fails | given | WRONG\nexit 1 | 5 | wrong-numbers | 0
wrong in the last process | given | case RESULT in */capture-4.*) WRONG ;; *) CORRECT ;; esac | 5 | wrong-numbers | 0
wrong where work is counted | given | case RESULT in */counting.*) WRONG ;; *) CORRECT ;; esac | 5 | wrong-numbers | 0
not checked | given | echo '{"correct": null}' >RESULT | 5 | wrong-numbers | 0
no file | given | | 5 | program-failed | 0
no JSON | given | echo correct >RESULT | 5 | program-failed | 0
a file without an end | | ln -s /dev/zero RESULT | 5 | program-failed | 0
what an earlier one laid out | given | case RESULT in */counting.*) for next in counting capture-1 capture-2 capture-3 capture-4; do echo '{"correct": true}' >"${SPARSEK_GATE_RESULT%/*}/$next.result.json"; done ;; esac | 5 | program-failed | 0
"#;
    let (machine, without) = (Machine::new(), Machine::new());
    let given = "\"{launches}\", \"{result}\"]";
    machine.configure("\"{launches}\"]", given);
    for [what, given, profiled, code, finding, processes] in &common::rows(cases) {
        let machine = if given.is_empty() { &without } else { &machine };
        let profiled = profiled.replace("CORRECT", &reports(CORRECT));
        let profiled = profiled.replace("WRONG", &reports(WRONG));
        let profiled = profiled.replace(" RESULT", " \"$SPARSEK_GATE_RESULT\"");
        let profiled = profiled.replace(">RESULT", ">\"$SPARSEK_GATE_RESULT\"");
        machine.program("cp_async", SAME, &profiled);
        let ran = machine.run("profile cp_async --format json");
        let report = ran.exits(code.parse().unwrap()).json();
        assert_eq!(report.denied().concat(), *finding, "{what}");
        let kept = machine.left("cp_async", "profile.json");
        assert_eq!(kept.exists(), code == "0", "{what}");
        if code == "0" {
            let captures = machine.captures("cp_async", "profile.json");
            let checked = captures.iter().filter(|one| one["checked"] == true);
            assert_eq!(checked.count().to_string(), *processes, "{what}");
        }
    }
}

#[test]
fn each_process_gets_a_seed_of_its_own_that_only_its_pair_shares() {
    let machine = Machine::new();
    let arguments = "\"--blocks-per-row\", \"16\"";
    let seeded = format!("{arguments}, \"--seed\", \"{{seed}}\"");
    machine.configure(arguments, &seeded);
    // Neither the configuration nor the environment of the tool fixes it.
    let inputs = "inputs = [\"cp_async.sh\"]\n";
    let fixed = format!("{inputs}env = {{ SPARSEK_GATE_SEED = \"1\" }}\n");
    machine.configure(inputs, &fixed);
    let program = machine.read("cp_async.sh");
    let notes = "for word; do case $before in --seed) seed=$word ;; esac; before=$word; done\n\
                 echo \"$PWD $SPARSEK_GATE_SEED $seed ${SPARSEK_GATE_RESULT##*/}\" >>\"$JOURNAL.seeds\"\n";
    machine.write("cp_async.sh", format!("{notes}{program}"));
    machine.lock();
    let seeds = machine.path("journal.seeds");
    fs::remove_file(&seeds).unwrap();
    let mut gate = machine.gate("check --against HEAD --measure-all cp_async");
    Ran::by(gate.env("SPARSEK_GATE_SEED", "1")).exits(0);

    let mut of_process: Vec<(bool, String, String)> = Vec::new();
    for line in fs::read_to_string(&seeds).unwrap().lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [folder, variable, argument, result] = words[..] else {
            panic!("{line}");
        };
        assert_eq!(variable, argument, "{line}");
        assert!(variable.parse::<u32>().is_ok(), "{line}");
        let is_base = folder.contains("/worktrees/");
        of_process.push((is_base, result.to_owned(), variable.to_owned()));
    }
    let measured = |name: &str| name.starts_with("capture-") || name.starts_with("counting.");
    for (of_base, name, seed) in &of_process {
        let others = of_process.iter().filter(|(_, _, other)| other == seed);
        // The listing of launches has a pair as well, where a CUPTI is found.
        let paired = measured(name) || name.starts_with("launches.");
        let others: Vec<_> = others.filter(|(base, _, _)| base != of_base).collect();
        assert_eq!(others.len(), usize::from(paired), "{name}: {of_process:?}");
        assert!(others.iter().all(|(_, other, _)| other == name));
    }
    let count = of_process.iter().filter(|(_, name, _)| measured(name));
    let count = count.count();
    assert_eq!(count, machine.order("cp_async").len());
    let distinct: BTreeSet<&String> = of_process.iter().map(|(_, _, seed)| seed).collect();
    // Two runs verify, and each pair measures.
    assert!(distinct.len() >= 2 + count / 2, "{of_process:?}");

    // It is stated, and is no condition.
    let profile = machine.left_json("cp_async", "profile.json");
    let workload = profile["identity"]["workload"].as_array().unwrap();
    assert_eq!(workload.last().unwrap(), "{seed}");
    for capture in machine.captures("cp_async", "profile.json") {
        let seed = capture["seed"].to_string();
        assert!(distinct.contains(&seed), "{seed}");
        let argv = capture["argv"].as_array().unwrap();
        assert!(argv.contains(&json!(seed)), "{argv:?}");
    }
    machine.check(&["cp_async"], 0);
}

#[test]
fn a_change_brings_no_options_for_the_profiler() {
    let machine = Machine::new();
    machine.lock();
    // ncu reads this file in the folder where it runs, also for the import of a report.
    let options = "[Launch-and-attach]\n--kernel-id = :::9\n";
    machine.write("config.ncu-cfg", options);
    machine.check(&["cp_async"], 0);
}

#[test]
fn a_program_that_no_longer_checks_what_is_measured_fails() {
    let machine = Machine::new();
    machine.program("cp_async", SAME, &reports(CORRECT));
    machine.lock();
    machine.check(&["cp_async"], 0);
    machine.program("cp_async", SAME, "");
    for arguments in [
        &["cp_async"][..],
        &["cp_async", "--against", "HEAD"],
        &["cp_async", "--from", PROFILES],
    ] {
        let report = machine.check(arguments, 5);
        assert_eq!(report.denied(), ["numbers-unchecked"]);
    }
    // A lock of it is written, and says what it gives up.
    let ran = machine.run("baseline --lock --reason needed --who tester --format json");
    ran.says("numbers-unchecked");
    // A program that begins to check is what is wanted.
    machine.lock();
    machine.program("cp_async", SAME, &reports(CORRECT));
    machine.check(&["cp_async"], 0);
}

/// Leaves records of launches, as the injected library would: one letter a launch, `m` of the
/// measured kernel.
fn launches(order: &str) -> String {
    launches_of(order, 1000)
}

/// Of so many nanoseconds each.
fn launches_of(order: &str, nanoseconds: usize) -> String {
    let kernel = |(at, launch): (usize, char)| {
        let name = match launch {
            'm' => "bsr_gemm_cp_async".to_owned(),
            other => format!("other_{other}"),
        };
        let start = 1_000_000 * (at + 1);
        format!(
            "k {} {start} {} 0 1 7 64 64 1 128 1 1 248 0 75776 0 {name}\\n",
            at + 1,
            start + nanoseconds
        )
    };
    let kernels: String = order.chars().enumerate().map(kernel).collect();
    format!(
        "if [ -n \"${{SPARSEK_GATE_KERNEL_RECORDS-}}\" ]; then\necho listed >>\"$JOURNAL.listed\"\n\
         printf \"process $$ cupti 130001\\n{kernels}end {} 0\\n\" >\"$SPARSEK_GATE_KERNEL_RECORDS.$$\"\nfi",
        order.len()
    )
}

/// With a library that lists launches; the programs' own records are taken in its place.
fn listing(machine: &Machine, library: &str) {
    machine.write("libcupti.so.13", "");
    let cupti = format!("[toolchain]\ncupti = \"{library}\"\n");
    machine.configure("[toolchain]\n", &cupti);
}

#[test]
fn where_no_launches_can_be_listed_nothing_fails() {
    let machine = Machine::new();
    listing(&machine, "nowhere.so");
    machine.lock();
    let report = machine.check(&["cp_async"], 0);
    assert!(!report.warns("other-launches"));
    let profile = machine.left_json("cp_async", "profile.json");
    assert!(profile["provenance"]["launch_list"].is_null());
}

#[test]
fn a_program_that_cupti_does_not_record_is_measured_by_ncu_side_by_side() {
    let machine = Machine::new();
    listing(&machine, "libcupti.so.13");
    machine.lock();
    let ran = machine.run("check cp_async --against HEAD --measure-all");
    ran.ends(0, "ncu measures the duration: no kernel was recorded");
    let profile = machine.left_json("cp_async", "profile.json");
    assert!(profile["provenance"]["as_it_runs"].is_null());
}

#[test]
fn as_many_processes_again_are_timed_where_these_are_too_far_apart() {
    let machine = Machine::new();
    listing(&machine, "libcupti.so.13");
    machine.configure("processes = 4 ", "processes = 2 ");
    let order = "m".repeat(20);
    let times = |first, others| {
        format!(
            "case $SPARSEK_GATE_RESULT in\n*/capture-1.*)\n{}\n;;\n*)\n{}\n;; esac",
            launches_of(&order, first),
            launches_of(&order, others)
        )
    };
    machine.program("cp_async", NINE, &times(10_000, 10_010));
    machine.lock();
    let processes = || {
        let profile = machine.left_json("cp_async", "profile.json");
        profile["provenance"]["processes"].clone()
    };
    machine.check(&["cp_async"], 0);
    assert_eq!(processes(), 2);
    machine.program("cp_async", NINE, &times(10_500, 10_000));
    let report = machine.check(&["cp_async"], 6);
    assert_eq!(report.denied(), ["inconclusive"]);
    assert_eq!(processes(), 4);
}

#[test]
fn launches_beside_the_measured_ones_are_counted_and_fail_where_they_run_between() {
    let machine = Machine::new();
    listing(&machine, "libcupti.so.13");
    let fewer = "processes = 2 ";
    machine.configure("processes = 4 ", fewer);
    let measured = "m".repeat(20);
    let between = |letter: &str| format!("ff{}m", format!("m{letter}").repeat(19));
    machine.program("cp_async", NINE, &launches(&format!("ff{measured}c")));
    machine.lock();
    let list = |file| machine.left_json("cp_async", file)["provenance"]["launch_list"].clone();
    assert_eq!(
        list("profile.json"),
        json!({
            "measured": 20,
            "others": [
                { "kernel": "other_f", "launches": 2, "between": 0 },
                { "kernel": "other_c", "launches": 1, "between": 0 },
            ],
            "kernels": [{
                "mangled": "bsr_gemm_cp_async", "grid": [64, 64, 1], "block": [128, 1, 1], "launches": 20
            }],
            "steps": 20
        })
    );
    let listed = machine.path("journal.listed");
    let listings = || fs::read_to_string(&listed).unwrap().lines().count();
    assert_eq!(listings(), 2);
    let one_between = format!("ffmm{}", "m".repeat(18).replacen("mm", "mcm", 1));
    for (what, order, code, severity) in [
        ("the same", format!("ff{measured}c"), 0, ""),
        ("fewer", measured.clone(), 0, ""),
        ("one more before", format!("fff{measured}c"), 0, "warn"),
        ("one between", one_between, 0, "warn"),
        ("another beside each", between("x"), 4, "deny"),
        ("a known one beside each", between("f"), 4, "deny"),
    ] {
        machine.program("cp_async", NINE, &launches(&order));
        // Side by side for those that decide, since that takes many processes.
        let modes = [&["cp_async"][..], &["cp_async", "--against", "HEAD"]];
        for arguments in &modes[..if code == 4 { 2 } else { 1 }] {
            fs::write(&listed, "").unwrap();
            let report = machine.check(arguments, code);
            let found = report.fields("other-launches", "severity");
            let found = found.first().copied().unwrap_or_default();
            assert_eq!(found, severity, "{what}, {arguments:?}");
            // Each process that is timed lists them.
            // Side by side, ncu counts first, and prints it while processes are timed.
            let (expected, first) = match arguments.len() {
                1 => (2, "timing"),
                _ => (12, "counting"),
            };
            assert_eq!(listings(), expected, "{what}, {arguments:?}");
            let captures = machine.captures("cp_async", "profile.json");
            assert_eq!(captures[0]["phase"], first, "{what}, {arguments:?}");
        }
        // Recordings are judged alike, and nothing is run for it.
        machine.check(&["cp_async", "--from", PROFILES], code);
    }
    // Locked with that kernel, it is known.
    machine.program("cp_async", NINE, &launches(&between("x")));
    let profiled = machine.run("profile cp_async --format json");
    assert!(profiled.exits(0).json().warns("other-launches"));
    machine.lock();
    let report = machine.check(&["cp_async"], 0);
    assert!(!report.warns("other-launches"));
    // A program that is wrong in that process is wrong.
    let wrong = format!("{}\n{}", launches(&measured), reports(WRONG));
    let wrong = format!("case $SPARSEK_GATE_RESULT in */capture-1.*)\n{wrong}\n;; esac");
    machine.program("cp_async", NINE, &wrong);
    assert_eq!(machine.check(&["cp_async"], 5).denied(), ["wrong-numbers"]);
}
