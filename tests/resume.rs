//! Runs that are interrupted, and others that go on with what they measured. Compiler, ncu and the
//! driver are stand-ins; the reports are those that the real ncu recorded on an H200, and which one a
//! process takes depends on nothing but its number. `SPARSEK_GATE_KILLS=1000` kills that often.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::crash::{contents, kill_at_random, kills, wait_for_orphans};
use crate::common::stand_in::{Machine, NVCC_OF_C};
use crate::common::{Ran, Report};
use serde_json::{Value as Json, json};

const PROFILES: &str = ".sparsek-gate/profiles";
/// A second variant.
const MORE: &str = r#"
[suite.bsr_gemm.variant.cp_async]
source = "kernels/b.cu"
expect = ["bsr_gemm_cp_async"]
"#;

fn program(variant: &str) -> String {
    format!(
        "int puts(const char *);\nint main(void) {{\n\
         puts(\"variant: {variant}\\nrecorded: h200\");\nreturn 0;\n}}\n"
    )
}

/// A checkout of two locked variants.
struct Checkout(Machine);

impl Checkout {
    fn new() -> Option<Checkout> {
        let machine = Machine::new()?;
        machine.ncu("export BY_STEM=1; echo \"$*\" >>\"$ARGV\"");
        machine.program("toolkit/bin/nvcc", NVCC_OF_C);
        let project = &machine.project;
        project.write("config.toml", project.read("config.toml") + MORE);
        project.write("kernels/a.cu", program("baseline"));
        project.write("kernels/b.cu", program("cp_async"));
        project.git(&["init", "--quiet"]);
        let ours = "/.sparsek-gate/\n/journal*\n/reports\n/argv\n/tmp/\n/home/\n";
        project.write(".git/info/exclude", ours);
        let checkout = Checkout(machine);
        checkout.run(&["profile"]).exits(0);
        let lock = ["baseline", "--lock", "--reason", "first", "--who", "tester"];
        checkout.run(&lock).exits(0);
        checkout.commit();
        Some(checkout)
    }

    fn commit(&self) {
        self.0.project.git(&["add", "--all"]);
        self.0
            .project
            .git(&["commit", "--quiet", "--allow-empty", "-m", "x"]);
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        self.0.run(arguments)
    }

    /// Forgets what ncu was called for.
    fn calls(&self) -> usize {
        let path = self.0.project.path("argv");
        let text = fs::read_to_string(&path).unwrap_or_default();
        fs::write(&path, "").unwrap();
        let measuring = text.lines().filter(|line| line.contains("--export"));
        measuring.count()
    }

    /// Starts a check, and kills it once a file of it is there, and some time later.
    fn interrupt(&self, arguments: &[&str], file: &str, later: Duration) {
        let mut child = self
            .0
            .gate(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let path = self.0.project.path(file);
        let end = Instant::now() + Duration::from_secs(60);
        while !path.exists() {
            assert!(Instant::now() < end, "{file}");
            assert_eq!(child.try_wait().unwrap(), None, "it ended before {file}");
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(later);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn journal(&self, variant: &str) -> PathBuf {
        self.0
            .project
            .path(&format!("{PROFILES}/bsr_gemm/{variant}/journal.json"))
    }
}

/// What an outcome says, without times, and without what says that a run was interrupted.
fn essence(outcome: &Json) -> Json {
    let variants = outcome["variants"].as_array().unwrap().iter();
    let variants: Vec<Json> = variants
        .map(|variant| {
            json!({
                "variant": variant["variant"],
                "comparisons": variant["comparisons"],
                "processes": variant["current"]["processes"],
            })
        })
        .collect();
    let findings = outcome["findings"].as_array().unwrap().iter();
    let findings = findings.filter(|finding| finding["code"] != "resumed");
    json!({
        "exit_code": outcome["exit_code"],
        "variants": variants,
        "findings": findings.collect::<Vec<_>>(),
        "same_programs": outcome["same_programs"],
        "chosen_launches": outcome["chosen_launches"],
    })
}

#[test]
fn whole_rounds_of_an_interrupted_run_are_used_and_the_rest_is_measured() {
    let Some(checkout) = Checkout::new() else {
        return;
    };
    let check = ["check", "--format", "json"];
    checkout.calls();
    let whole = checkout.run(&check).exits(0).json();
    println!("{:#}", essence(&whole.0));
    let all = checkout.calls();
    assert!(!checkout.journal("baseline").exists());
    for against in [&[][..], &["--against", "HEAD", "--measure-all"]] {
        let whole = checkout.run(&[&check[..], against].concat()).exits(0).json();
        let all = checkout.calls();
        // The first variant is finished, and of the second at least what comes before its rounds.
        let journal = format!("{PROFILES}/bsr_gemm/cp_async/journal.json");
        checkout.interrupt(
            &[&["check"][..], against].concat(),
            &journal,
            Duration::ZERO,
        );
        let before = checkout.calls();
        let resumed = [&check[..], against, &["--resume"]].concat();
        let report = checkout.run(&resumed).exits(0).json();
        let after = checkout.calls();
        println!("{all} {before} {after} {:#}", report.0["resumed"]);
        println!("{:#}", report.0["findings"]);
        assert_eq!(essence(&report.0), essence(&whole.0));
    }
    let _ = all;
}
