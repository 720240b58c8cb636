//! Runs that are interrupted, and others that resume them. Compiler, ncu and the
//! driver are stand-ins; the reports are those that the real ncu recorded on an H200, and which one a
//! process takes depends on nothing but its number. `SPARSEK_GATE_KILLS=1000` kills that often.

use std::cell::RefCell;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::common::crash::{contents, is_long, kill_at_random, kills, running, wait_for_orphans};
use crate::common::sealed;
use crate::common::stand_in::{CP_ASYNC, Machine};
use crate::common::{self, PATIENCE, Ran, aloud};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};
use sparsek_gate::hash::sha256_file;

const PROFILES: &str = ".sparsek-gate/profiles";

/// A checkout of two locked variants.
struct Checkout(Machine);

impl Deref for Checkout {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        &self.0
    }
}

impl Checkout {
    fn new() -> Checkout {
        let machine = Machine::new().with_programs(CP_ASYNC);
        let project = &machine.project;
        // The script of ncu is a file of the checkout, and stays as it is.
        machine.ncu(&format!(
            "export BY_STEM=1; echo \"$*\" >>\"$ARGV\"\n\
             case $* in *--export*$(cat '{}' 2>&1)*) sleep 600 ;; esac",
            project.path("tmp/slow").display()
        ));
        machine.without("");
        let checkout = Checkout(machine);
        // Locked once for all tests of this file.
        static LOCKED: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
        for (path, content) in LOCKED.get_or_init(|| checkout.locked()) {
            checkout.write(path, content);
        }
        checkout.commit();
        checkout
    }

    /// Locks the baselines, and returns what that wrote.
    fn locked(&self) -> Vec<(String, Vec<u8>)> {
        self.run("profile").exits(0);
        let lock = ["baseline", "--lock", "--reason", "first", "--who", "tester"];
        self.run(&lock).exits(0);
        let folder = self.path("baselines");
        let files = contents(&folder).into_keys();
        files
            .map(|path| {
                let content = fs::read(folder.join(&path)).unwrap();
                (format!("baselines/{}", path.display()), content)
            })
            .collect()
    }

    /// How often ncu measured in the folder of a variant since the last question.
    fn calls(&self, variant: &str) -> usize {
        let path = self.path("argv");
        let text = fs::read_to_string(&path).unwrap_or_default();
        fs::write(&path, "").unwrap();
        let of_it = |line: &&str| line.contains("--export") && line.contains(variant);
        text.lines().filter(of_it).count()
    }

    /// Starts a run, and kills it once a variant is complete.
    fn interrupt(&self, arguments: &[&str], variant: &str) {
        kill_once(self.0.gate(arguments), &self.record(variant));
        // What it started counts as a call of ncu, even if that comes later.
        wait_for_orphans(&self.path(""));
    }

    /// Waits until a run has come to the program that sleeps.
    #[track_caller]
    fn wait_for_sleep(&self, run: &mut Child) {
        let folder = self.path("");
        wait_while_it_runs(run, "a program sleeps", || {
            !running(&folder, &["sleep 600"]).is_empty()
        });
    }

    fn record(&self, variant: &str) -> PathBuf {
        self.path(&format!("{PROFILES}/bsr_gemm/{variant}/variant.json"))
    }

    /// How far the run in a folder came.
    fn state(&self, folder: &str) -> String {
        let text = self.read(&format!("{folder}/run.json"));
        let record: Json = serde_json::from_str(&text).unwrap();
        record["content"]["state"].as_str().unwrap().to_owned()
    }
}

/// Starts a command, and kills it once it has written a file.
fn kill_once(mut command: Command, path: &Path) {
    // That of an earlier run would be taken for the one that is waited for.
    let _ = fs::remove_file(path);
    command.stderr(Stdio::null());
    kill_when(command, &path.display().to_string(), || path.exists());
}

/// Waits until something is so.
#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The same during a run, which must not end before.
#[track_caller]
fn wait_while_it_runs(run: &mut Child, what: &str, is_so: impl Fn() -> bool) {
    wait_until(what, || {
        let so = is_so();
        assert!(
            so || run.try_wait().unwrap().is_none(),
            "it ended before: {what}"
        );
        so
    });
}

/// Kills a command as soon as something is so.
fn kill_when(mut command: Command, what: &str, is_so: impl Fn() -> bool) {
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    wait_while_it_runs(&mut child, what, is_so);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// What an outcome says, without times, and without what says that a run was interrupted.
fn essence(outcome: &Json) -> Json {
    let list = |name: &str| outcome[name].as_array().cloned().unwrap_or_default();
    let variants: Vec<Json> = list("variants")
        .iter()
        .map(|variant| {
            json!({
                "variant": variant["variant"],
                "comparisons": variant["comparisons"],
                "processes": variant["current"]["processes"],
            })
        })
        .collect();
    let mut findings = list("findings");
    findings.retain(|finding| finding["code"] != "resumed");
    json!({
        "exit_code": outcome["exit_code"],
        "variants": variants,
        "findings": findings,
        "same_programs": outcome["same_programs"],
    })
}

/// The outcome is that of another run.
#[track_caller]
fn same(found: &Json, expected: &Json) {
    let (found, expected) = (essence(found), essence(expected));
    for (part, value) in expected.as_object().unwrap() {
        let found = &found[part];
        assert!(found == value, "{part}: {found:#}\nexpected: {value:#}");
    }
}

/// The variants that were taken over.
fn resumed(outcome: &Json) -> Vec<String> {
    let all = outcome["resumed"].as_array().cloned().unwrap_or_default();
    let names = all.iter().map(|one| one["variant"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

const SIDE_BY_SIDE: [&str; 3] = ["--against", "HEAD", "--measure-all"];

#[test]
fn complete_variants_of_an_interrupted_run_are_used_and_the_rest_is_measured() {
    const BASELINE: &str = "bsr_gemm/baseline";
    let checkout = Checkout::new();
    for against in [&[][..], &SIDE_BY_SIDE] {
        let check = [&["check", "--format", "json"], against].concat();
        let resume = [&check[..], &["--resume"]].concat();
        let whole = checkout.run(&check).exits(0).json();
        assert_eq!(checkout.state(PROFILES), "said");
        checkout.interrupt(&check, "baseline");
        let kept = contents(&checkout.path(PROFILES));
        checkout.calls("");
        let report = checkout.run(&resume).exits(0).json();
        assert_eq!(checkout.calls(BASELINE), 0);
        same(&report.0, &whole.0);
        assert_eq!(resumed(&report.0), [BASELINE]);
        assert!(report.message("resumed").ends_with(BASELINE));
        // What was taken over is what the interrupted run wrote.
        let now = contents(&checkout.path(PROFILES));
        let of_it = kept.iter().filter(|(path, _)| path.starts_with(BASELINE));
        let of_it: Vec<_> = of_it.collect();
        assert!(of_it.len() > 2);
        assert!(
            of_it
                .iter()
                .all(|(path, hash)| now.get(*path) == Some(*hash))
        );
        if !against.is_empty() {
            continue;
        }
        checkout.run(&["check", "--from", PROFILES]).exits(0);
        // Nothing is left to resume, so all of it is measured. Without --resume, too.
        assert_eq!(checkout.state(PROFILES), "said");
        let again = checkout.run(&resume).exits(0).json();
        assert_eq!(resumed(&again.0), [""; 0]);
        checkout.interrupt(&check, "baseline");
        checkout.calls("");
        assert_eq!(resumed(&checkout.run(&check).exits(0).json().0), [""; 0]);
        assert!(checkout.calls(BASELINE) > 0);
    }
    // `profile` the same.
    checkout.interrupt(&["profile"], "baseline");
    checkout.calls("");
    let ran = checkout.run("profile --resume").exits(0);
    ran.says("what it measured of these variants is used: bsr_gemm/baseline");
    assert_eq!(checkout.calls(BASELINE), 0);
}

#[test]
fn a_run_that_was_killed_before_it_reported_what_it_measured_measures_nothing_again() {
    let checkout = Checkout::new();
    let project = &checkout.0.project;
    // Nobody reads the second report.
    let (report, pipe) = (project.path("tmp/outcome.json"), project.path("tmp/pipe"));
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let targets = [&report, &pipe].map(|path| format!("json:{}", path.display()));
    for further in [&[][..], &SIDE_BY_SIDE] {
        let check = [&["check"], further].concat();
        let reports = ["--report", &targets[0], "--report", &targets[1]];
        let mut command = checkout.0.gate(&[&check[..], &reports].concat());
        command.stderr(Stdio::null());
        kill_when(command, "it reports", || report.exists());
        assert_eq!(checkout.state(PROFILES), "whole");
        let whole: Json = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
        fs::remove_file(&report).unwrap();
        checkout.calls("");
        let resume = [&check[..], &["--resume", "--format", "json"]].concat();
        let found = checkout.run(&resume).exits(0).json().0;
        assert_eq!(checkout.calls(""), 0);
        same(&found, &whole);
        assert_eq!(resumed(&found).len(), 2);
        assert_eq!(checkout.state(PROFILES), "said");
        // Besides times, everything that is judged is the same.
        let judged = |mut outcome: Json| {
            let parts = outcome.as_object_mut().unwrap();
            let of_run = ["findings", "resumed", "spent", "wall_s"];
            parts.retain(|part, _| !of_run.contains(&part.as_str()));
            outcome.to_string()
        };
        assert_eq!(judged(found), judged(whole));
    }
}

#[test]
fn what_was_changed_of_a_variant_is_measured_anew_as_a_whole() {
    let checkout = Checkout(Machine::locked(3));
    checkout.interrupt(&["check"], "v-n_2");
    let file = |number: u32, name: &str| format!("{PROFILES}/bsr_gemm/v-n_{number}/{name}");
    checkout.write(&file(1, "capture-2.csv"), "x");
    let record = checkout.read(&file(2, "variant.json"));
    checkout.write(&file(2, "variant.json"), &record[..record.len() / 2]);
    let report = checkout.run("check --resume --format json").json();
    let mut anew = report.findings("warn");
    anew.retain(|one| one["code"] == "resumed" && one["variant"].is_string());
    let why = [
        "`capture-2.csv` is not what the interrupted run wrote",
        "its variant.json is damaged",
    ];
    assert_eq!(anew.len(), why.len(), "{anew:?}");
    for (number, why) in (1..).zip(why) {
        let name = format!("bsr_gemm/v-n_{number}");
        let found = anew.iter().find(|one| one["variant"] == name).unwrap();
        common::contains(found["message"].as_str().unwrap(), &[why]);
    }
    // What is measured anew is whole, and never taken over in part.
    assert_eq!(resumed(&report.0), [""; 0]);
    for number in 1..=3 {
        let variant = report.variant(&format!("v-n_{number}"));
        let found = variant["current"]["processes"].as_u64();
        assert!(found >= Some(3), "{number}: {found:?}");
    }
}

#[test]
fn a_variant_whose_program_changed_is_measured_anew_and_others_are_not() {
    let checkout = Checkout::new();
    // The names that are checked, a change while the run is interrupted, what is taken over, and why not.
    let of_program = "its program is another one now";
    let of_file = "a file that it could read is another one now";
    let longer = |source: &str| checkout.replace(source, "return 0", "return 0 + 0 * 7");
    type Case<'a> = (&'a str, &'a dyn Fn(), &'a [&'a str], &'a str);
    let cases: [Case<'_>; 3] = [
        ("", &|| longer("kernels/b.cu"), &["bsr_gemm/baseline"], ""),
        // The same machine code, perhaps, and another source.
        ("", &|| longer("kernels/a.cu"), &[], of_program),
        // A file that every program may read.
        (
            "baseline",
            &|| checkout.write("data.txt", "1"),
            &[],
            of_file,
        ),
    ];
    for (names, change, taken_over, why) in cases {
        checkout.interrupt(&["check"], "baseline");
        change();
        let ran = checkout.run(&format!("check --resume --format json {names}"));
        let report = ran.json();
        assert_eq!(resumed(&report.0), taken_over);
        common::contains(report.fields("resumed", "message")[0], &[why]);
    }
}

#[test]
fn what_failed_before_a_kill_stays_failed_until_its_program_is_another_one() {
    const RESUMED: [&str; 5] = ["check", "--resume", "baseline", "--format", "json"];
    let checkout = Checkout::new();
    let project = &checkout.0.project;
    // It fails while there is such a file.
    let flaky = project.read("kernels/a.cu").replace(
        "int main(void) {\n",
        "int access(const char *, int);\nint main(void) {\nif (!access(\"tmp/fail\", 0)) return 3;\n",
    );
    assert!(flaky.contains("access"));
    project.write("kernels/a.cu", &flaky);
    let ncu = project.read("bin/ncu");
    let crash = "case $* in *baseline/capture-2*) cp tmp/crash tmp/fail 2>/dev/null ;; esac\n";
    checkout
        .0
        .program("bin/ncu", &ncu.replace("exec ", &format!("{crash}exec ")));
    checkout.commit();
    let fails = |at: &str, fails: bool| {
        let _ = fs::remove_file(project.path("tmp/fail"));
        let path = project.path("tmp").join(at);
        match fails {
            true => fs::write(path, "").unwrap(),
            false => drop(fs::remove_file(path)),
        }
    };
    // While it is verified; while it is measured; and where nobody can know
    // whether it is the same program, because there is no git.
    for (at, has_git) in [("crash", true), ("fail", true), ("fail", false)] {
        if !has_git {
            fs::rename(project.path(".git"), project.path("tmp/git")).unwrap();
        }
        fails(at, true);
        let alone = ["check", "--format", "json", "baseline"];
        let expected = checkout.run(&alone).json();
        let expected_code = expected.0["exit_code"].as_i64().unwrap() as i32;
        assert!(expected_code != 0);
        fails(at, true);
        checkout.interrupt(&["check"], "baseline");
        fails(at, false);
        if at == "crash" {
            // Killed once more.
            let capture = project.path(&format!("{PROFILES}/bsr_gemm/cp_async/capture-1.argv"));
            kill_once(checkout.0.gate("check --resume"), &capture);
            wait_for_orphans(&project.path(""));
        }
        checkout.calls("");
        let report = checkout.run(&RESUMED).exits(expected_code).json();
        assert_eq!(report.denied(), expected.denied(), "{at}");
        assert_eq!(checkout.calls("/baseline/"), 0);
        let code = &expected.denied()[0];
        let message = report.message(code);
        let own = expected.message(code);
        let suffix = "(in the interrupted run; not measured again)";
        assert_eq!(message, format!("{own} {suffix}"));
        let next = report.fields(code, "next")[0];
        assert!(
            next.ends_with("; to measure it anew, run without --resume"),
            "{next}"
        );
    }
    // That run has ended.
    checkout.run(&RESUMED).exits(0);
    fs::rename(project.path("tmp/git"), project.path(".git")).unwrap();
    // A program that is another one now is measured, and how it failed is said.
    fails("fail", true);
    checkout.interrupt(&["check"], "baseline");
    fails("fail", false);
    project.write("kernels/a.cu", flaky.replace("return 3", "return 4"));
    let report = checkout.run(&RESUMED).exits(0).json();
    let message = report.message("resumed");
    assert!(message.contains("its program is another one now; in the interrupted run it failed: "));
}

/// After each kill `--resume` gives the outcome of an uninterrupted run; every second of them is killed
/// itself before.
fn killed_and_resumed(checkout: &Checkout, further: &[&str], count: u32) {
    let report = checkout.path("tmp/outcome.json");
    let target = format!("json:{}", report.display());
    let check = [&["check", "--report", &target], further].concat();
    let outcome = || {
        let text = fs::read_to_string(&report).unwrap();
        fs::remove_file(&report).unwrap();
        serde_json::from_str::<Json>(&text).unwrap()
    };
    checkout.run(&check).exits(0);
    let whole = outcome();
    let resume = [&check[..], &["--resume"]].concat();
    let (runs, interrupted) = (RefCell::new(0_u32), RefCell::new(false));
    let taken_over = RefCell::new(0);
    let start = || {
        let again = *interrupted.borrow() && *runs.borrow() % 2 == 1;
        checkout.0.gate(if again { &resume } else { &check })
    };
    kill_at_random(&check.join(" "), count, start, |ended| {
        *runs.borrow_mut() += 1;
        *interrupted.borrow_mut() = !ended;
        if !ended && *runs.borrow() % 2 == 0 {
            // It may have been killed after it said everything.
            let _ = fs::remove_file(&report);
            checkout.run(&resume).exits(0);
            *interrupted.borrow_mut() = false;
        }
        if *interrupted.borrow() {
            if report.exists() {
                same(&outcome(), &whole);
            }
        } else {
            let found = outcome();
            same(&found, &whole);
            *taken_over.borrow_mut() += resumed(&found).len();
            // A run that ended leaves no process, and ends those of the run before it.
            wait_for_orphans(&checkout.path(""));
            assert_eq!(checkout.state(PROFILES), "said");
        }
    });
    aloud(&format!(
        "variants that were taken over: {}",
        taken_over.borrow()
    ));
}

#[test]
fn whatever_is_killed_a_run_that_goes_on_has_the_outcome_of_an_uninterrupted_one() {
    let checkout = Checkout::new();
    killed_and_resumed(&checkout, &SIDE_BY_SIDE, kills(2));
    if is_long() {
        killed_and_resumed(&checkout, &[], kills(0));
    }
}

#[test]
fn what_a_change_could_have_left_is_not_used_unless_the_base_allows_it() {
    const REFUSED: &str = "`--resume` is refused: a change is under review";
    let checkout = Checkout::new();
    let ci = |arguments: &str| {
        let mut command = checkout.0.gate(arguments);
        Ran::by(command.env("CI", "true"))
    };
    checkout.interrupt(&["check"], "baseline");
    for further in ["--baseline-ref HEAD", "--pull-request 3"] {
        let ran = checkout.run(&format!("check --resume {further}"));
        ran.ends(2, REFUSED).says("next: ");
    }
    ci("check --resume --baseline-ref none").ends(2, REFUSED);
    ci("profile --resume").ends(2, REFUSED);
    // The change itself cannot allow it.
    let config = checkout.read("config.toml");
    let allowed = |value: &str| {
        let trust = format!("{config}\n[trust]\nresume = {value}\n");
        checkout.write("config.toml", trust);
    };
    allowed("true");
    let of_base = "check --resume --baseline-ref HEAD";
    checkout.run(of_base).ends(2, REFUSED);
    checkout.commit();
    let ran = checkout.run(&format!("{of_base} baseline"));
    ran.ends(0, "resumed");
    ci("check --resume baseline --baseline-ref none").exits(0);
    allowed("\"yes\"");
    checkout.run("check --resume").ends(2, "resume = \"yes\"");
    checkout.write("config.toml", &config);
    for other in ["--static", "--gpus=all"] {
        checkout.run(&format!("check --resume {other}")).exits(2);
    }
}

#[test]
fn a_run_that_still_measures_was_not_interrupted() {
    let checkout = Checkout::new();
    let slow = checkout.path("tmp/slow");
    fs::write(&slow, "").unwrap();
    let mut check = checkout.0.gate("check baseline");
    let check = check.stdout(Stdio::null()).stderr(Stdio::null());
    let mut check = check.spawn().unwrap();
    // By then it has the lock on its file.
    checkout.wait_for_sleep(&mut check);
    let ran = checkout.run("check --resume baseline").exits(3);
    ran.says("was not interrupted: it still measures into")
        .says("fuser -v");
    check.kill().unwrap();
    check.wait().unwrap();
    fs::remove_file(&slow).unwrap();
    checkout.run("check --resume baseline").exits(0);
    // Its programs would go on for ten minutes.
    wait_for_orphans(&checkout.path(""));
}

#[test]
fn a_signal_that_ends_a_whole_job_is_no_failure_of_its_programs() {
    let checkout = Checkout::new();
    // The gate waits 100 ms for its own signal. Where it takes the test longer to send that, nothing is
    // shown, and the test tries again.
    if (0..20).all(|_| !both_are_signalled(&checkout)) {
        aloud("SKIPPED: this machine never sent two signals within 80 ms");
        return;
    }
    fs::remove_file(checkout.path("tmp/slow")).unwrap();
    checkout.run("check baseline --resume").exits(0);
}

/// A profiler gets a signal, and the gate that runs it gets it later: whether that was soon. Then the gate
/// was interrupted.
fn both_are_signalled(checkout: &Checkout) -> bool {
    let project = &checkout.0.project;
    fs::write(project.path("tmp/slow"), "baseline/capture-2").unwrap();
    let mut check = checkout.0.gate("check baseline");
    let check = check.stdout(Stdio::null()).stderr(Stdio::null());
    let mut check = check.spawn().unwrap();
    checkout.wait_for_sleep(&mut check);
    let term = |pid: i32| kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    let profiler = running(&project.path(""), &["bin/ncu", "capture-2"]);
    let begun = Instant::now();
    profiler.into_iter().for_each(term);
    std::thread::sleep(Duration::from_millis(30));
    term(Pid::from_child(&check).as_raw_nonzero().get());
    let was_soon = begun.elapsed() < Duration::from_millis(80);
    let code = check.wait().unwrap().code();
    assert!(!was_soon || code == Some(130), "{code:?}");
    was_soon
}

#[test]
fn a_slice_that_was_interrupted_goes_on() {
    let checkout = Checkout::new();
    let project = &checkout.0.project;
    let [archive, slice] = ["a.tar.zst", "slice"].map(|name| format!("tmp/{name}"));
    let pack = ["archive", "--output", &archive, "--format", "json"];
    let packed: Json = serde_json::from_str(&checkout.run(&pack).exits(0).out).unwrap();
    let sha256 = packed["sha256"].as_str().unwrap();
    let of_archive = ["profile", "--archive", &archive];
    let measure = [&of_archive[..], &["--slice", "1/1", "--output"]].concat();
    let ran = checkout.run(&[&of_archive[..], &["--resume"]].concat());
    ran.ends(2, "--output <DIR>");
    let merged = |folder: &str| {
        let by = ["--archive", &archive, "--archive-sha256", sha256];
        let from = ["check", "--from", folder, "--format", "json"];
        let ran = checkout.run(&[&from[..], &by].concat());
        ran.exits(0).json().0
    };
    let resume = [&measure[..], &[&slice, "--resume"]].concat();
    // Without an interrupted one it is as without --resume.
    checkout.run(&resume).exits(0);
    let expected = merged(&slice);
    assert_eq!(resumed(&expected), [""; 0]);
    let record = project.path(&format!("{slice}/bsr_gemm/baseline/variant.json"));
    kill_once(
        checkout.0.gate(&[&measure[..], &[&slice]].concat()),
        &record,
    );
    checkout.calls("");
    checkout.run(&resume).exits(0);
    assert_eq!(checkout.calls("/baseline/"), 0);
    let found = merged(&slice);
    same(&found, &expected);
    assert_eq!(resumed(&found), ["bsr_gemm/baseline"]);
    assert_eq!(checkout.state(&slice), "said");
    // Also what was taken over has the hashes of the records.
    let names = sealed::content(project, &format!("{slice}/run.json"));
    let names = names["found"]["variants"].as_object().unwrap().clone();
    assert_eq!(names.len(), 2);
    for (name, sha256) in names {
        let path = format!("{slice}/{name}/variant.json");
        assert_eq!(project.json(&path)["sha256"], sha256, "{name}");
        let record = sealed::content(project, &path);
        let files = [&record["done"]["files"], &record["done"]["profiles"]];
        let files = files.map(|of| of.as_object().unwrap());
        let mut named: Vec<PathBuf> = Vec::new();
        for (file, sha256) in files.into_iter().flatten() {
            let path = project.path(&format!("{slice}/{name}/{file}"));
            assert_eq!(&sha256_file(&path).unwrap(), sha256, "{name}/{file}");
            named.push(PathBuf::from(file));
        }
        named.push("variant.json".into());
        named.sort();
        let there = contents(&project.path(&format!("{slice}/{name}")));
        assert_eq!(there.into_keys().collect::<Vec<_>>(), named);
    }
    // A run that is killed leaves nothing that runs.
    fs::write(project.path("tmp/slow"), "baseline/capture-1").unwrap();
    let command = checkout.0.gate(&[&measure[..], &[&slice]].concat());
    let left = || running(&project.path(""), &["sleep 600"]);
    // The stand-in has read the file by then.
    kill_when(command, "a program sleeps", || !left().is_empty());
    fs::remove_file(project.path("tmp/slow")).unwrap();
    wait_for_orphans(&project.path(""));
    checkout.run(&[&measure[..], &[&slice]].concat()).exits(0);
}

#[test]
fn a_run_that_goes_on_repeats_no_more_than_one_that_was_not_interrupted() {
    let checkout = Checkout::new();
    let checkout = Checkout(checkout.0.with("NVML_PROCESS", "4242"));
    let project = &checkout.0.project;
    project.configure("\n[profile]\n", "\n[profile]\nretries = 1\n");
    project.configure("processes = 4 ", "processes = 1 ");
    let check = ["check", "--format", "json", "baseline"];
    checkout.calls("");
    let expected = checkout.run(&check).exits(6).json();
    let of_one_try = checkout.calls("") / 2;
    let repeated = |codes: Vec<String>| codes.iter().filter(|code| *code == "retried").count();
    assert_eq!(repeated(expected.warned()), 1);
    // Killed while it waits for the next try.
    let said = project.path("tmp/said");
    let mut command = checkout.0.gate(&check);
    command.stderr(fs::File::create(&said).unwrap());
    kill_when(command, "it waits", || {
        fs::read_to_string(&said).is_ok_and(|text| text.contains("measured again, 1 of 1"))
    });
    // Killed in that try, too.
    let resume = [&check[..], &["--resume"]].concat();
    let capture = project.path(&format!("{PROFILES}/bsr_gemm/baseline/capture-1.argv"));
    kill_once(checkout.0.gate(&resume), &capture);
    wait_for_orphans(&project.path(""));
    checkout.calls("");
    let report = checkout.run(&resume).exits(6).json();
    assert_eq!(checkout.calls(""), of_one_try);
    assert_eq!(repeated(report.warned()), 1);
    assert_eq!(report.denied(), expected.denied());
}
