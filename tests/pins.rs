//! Pins: a toolchain that is not the promised one ends a run before anything is built or measured,
//! or is warned of, and every profile records what was there.

use std::path::Path;

use crate::common::stand_in::{Machine, libraries};
use crate::common::{self, Project, aloud};
use serde_json::{Value as Json, json};
use sparsek_gate::files::STATIC_PROFILE_FILE;

/// Where `profile` leaves the profile of the machine's variant.
const PROFILE: &str = ".sparsek-gate/profiles/bsr_gemm/baseline/profile.json";

/// A machine with another compiler than is pinned.
fn other_compiler() -> Machine {
    Machine::new().with("NVCC_RELEASE", "12.4, V12.4.131")
}

fn warning(machine: Machine) -> Machine {
    machine.configured(
        "gpus = [\"NVIDIA H200\"]",
        "gpus = [\"NVIDIA H200\"]\nmismatch = \"warn\"",
    )
}

/// Nothing was compiled, and ncu measured nothing.
#[track_caller]
fn untouched(machine: &Machine) {
    assert_eq!(machine.compiled(), Vec::<String>::new());
    assert!(!machine.path(PROFILE).exists());
    let measured = machine.ncu_calls();
    assert!(
        !measured.iter().any(|call| call.contains("--metrics")),
        "{measured:?}"
    );
}

fn pin(what: &str, wanted: &str, found: &str, held: bool) -> Json {
    json!({ "what": what, "wanted": wanted, "found": found, "held": held })
}

#[test]
fn another_compiler_ends_every_run_that_builds_before_it_does() {
    let machine = other_compiler();
    for command in ["build", "verify", "profile"] {
        let ran = machine.run(&[command]).exits(3);
        for words in [
            "this machine differs from the pins of config.toml",
            "cuda: V12.4.131, where `13.0` is pinned",
            "next: use the pinned version",
            "mismatch = \"warn\"",
        ] {
            assert!(
                ran.err.contains(words),
                "{command}: {words:?} is not in\n{}",
                ran.err
            );
        }
        untouched(&machine);
    }
}

#[test]
fn every_difference_is_reported_at_once() {
    let machine = other_compiler();
    let machine = machine
        .with("NVML_DRIVER", "570.86.10")
        .with("CUDA_NAME", "NVIDIA H100")
        .with("CUDA_MINOR", "3")
        .configured("ncu = \">=2025.3\"", "ncu = \">=2026, <2027\"");
    let ran = machine.run("profile").exits(3);
    for words in [
        "arch: compute capability 9.3 (its target: `arch = \"sm_93a\"`), where `sm_90a` is pinned",
        "cuda: V12.4.131, where `13.0` is pinned",
        "ncu: 2025.3.1.0, where `>=2026, <2027` is pinned",
        "driver: 570.86.10, where `>=580` is pinned",
        "gpus: NVIDIA H100, where `NVIDIA H200` is pinned",
    ] {
        assert!(ran.err.contains(words), "{words:?} is not in\n{}", ran.err);
    }
    untouched(&machine);
}

#[test]
fn a_command_checks_the_pins_of_what_it_uses() {
    let machine = Machine::new();
    let machine = machine.with("NVML_DRIVER", "570.86.10");
    // nvcc needs no driver; a program that is run does, and no ncu.
    machine.run("build").exits(0);
    machine.run("verify").ends(3, "570.86.10");
    machine.run("profile").ends(3, "570.86.10");
    machine.run("check").ends(3, "570.86.10");
    machine.run("baseline --verify").ends(4, "no baseline yet");
    let machine = Machine::new();
    let machine = machine.configured("ncu = \">=2025.3\"", "ncu = \"2026\"");
    machine.run("verify").exits(0);
    machine.run("profile").ends(3, "`2026` is pinned");
    // What no variant is built with is not looked for.
    let machine = other_compiler();
    machine.write("a.sh", "echo 'variant: baseline'; echo 'recorded: h200'\n");
    let machine = machine.configured(
        "source = \"kernels/a.cu\"",
        "run = [\"sh\", \"a.sh\"]\ninputs = [\"a.sh\"]",
    );
    machine.run("profile").exits(0);
    let pins = machine.json(PROFILE)["provenance"]["pins"].clone();
    let named: Vec<&Json> = pins
        .as_array()
        .unwrap()
        .iter()
        .map(|pin| &pin["what"])
        .collect();
    assert_eq!(named, ["arch", "driver", "gpus", "ncu"]);
}

#[test]
fn an_unknown_version_violates_its_pin() {
    let machine = Machine::new();
    if Path::new("/proc/driver/nvidia/version").exists() {
        aloud("SKIPPED: this machine has an NVIDIA driver");
        return;
    }
    let machine = machine.with_libraries(&[&libraries()[0]]);
    machine
        .run("profile")
        .ends(3, "driver: unknown, where `>=580` is pinned");
    untouched(&machine);
    let machine = warning(machine);
    machine.run("profile").ends(0, "driver: unknown");
    let pins = machine.json(PROFILE)["provenance"]["pins"].clone();
    let unknown = json!({ "what": "driver", "wanted": ">=580", "held": false });
    assert!(pins.as_array().unwrap().contains(&unknown), "{pins:#}");
}

#[test]
fn a_profile_records_each_pin_and_what_was_there() {
    let machine = Machine::new();
    let ran = machine.run("profile --format json").exits(0);
    assert_eq!(ran.json().warned(), Vec::<String>::new());
    let profile = machine.json(PROFILE);
    assert_eq!(profile["schema"], 3);
    assert_eq!(
        profile["provenance"]["pins"],
        json!([
            pin("arch", "sm_90a", "compute capability 9.0", true),
            pin("driver", ">=580", "580.159.04", true),
            pin("gpus", "NVIDIA H200", "NVIDIA H200", true),
            pin("ncu", ">=2025.3", "2025.3.1.0", true),
            pin("cuda", "13.0", "V13.0.88", true),
        ])
    );
    // What the compiler made was made with a compiler, and with nothing else.
    let compiled = machine.json(&PROFILE.replace("profile.json", STATIC_PROFILE_FILE));
    assert_eq!(
        compiled["provenance"]["pins"],
        json!([pin("cuda", "13.0", "V13.0.88", true)])
    );
}

#[test]
fn a_mismatch_that_only_warns_is_reported_recorded_and_reported_again_when_locked() {
    let machine = other_compiler();
    let machine = warning(machine);
    let mismatch = "cuda: V12.4.131, where `13.0` is pinned";
    for command in ["build", "verify", "profile"] {
        let ran = machine.run(&[command, "--format", "json"]).exits(0);
        let report = ran.json();
        assert_eq!(report.warned(), ["toolchain-mismatch"], "{command}");
        assert!(
            report.message("toolchain-mismatch").contains(mismatch),
            "{command}"
        );
    }
    let pins = machine.json(PROFILE)["provenance"]["pins"].clone();
    let broken = pin("cuda", "13.0", "V12.4.131", false);
    assert!(pins.as_array().unwrap().contains(&broken), "{pins:#}");

    let lock = ["baseline", "--lock", "--reason", "first", "--who", "tester"];
    machine
        .run(&lock)
        .ends(0, "toolchain-mismatch")
        .says(mismatch);
    for action in ["--verify", "--show"] {
        machine
            .run(&["baseline", action])
            .ends(0, "toolchain-mismatch");
    }
    // Of the profile, and of the baseline it is compared with.
    let from = common::words("check --from .sparsek-gate/profiles --format json");
    let report = machine.run(&from).exits(0).json();
    assert_eq!(
        report.warned(),
        ["toolchain-mismatch", "toolchain-mismatch"]
    );
    let report = machine.run("check --format json").exits(0).json();
    assert_eq!(
        report.warned(),
        ["toolchain-mismatch", "toolchain-mismatch"]
    );
}

#[test]
fn a_recording_is_checked_against_todays_pins_and_not_the_machine_that_judges_it() {
    let project = Project::shipped();
    project.configure("cuda = \"13.0\"", "cuda = \"99\"");
    project.configure("gpus = [\"NVIDIA H200\"]", "gpus = [\"NVIDIA B200\"]");
    // No nvcc of that version is here, nor such a GPU: what counts is what the profile says.
    let report = project.check(&["cp_async"], 3);
    report.tells_all(
        "toolchain-mismatch",
        &[
            "cuda: V13.0.88, where `99` is pinned",
            "gpus: NVIDIA H200, where `NVIDIA B200` is pinned",
        ],
    );
    let message = report.message("toolchain-mismatch");
    assert!(!message.contains("2025.3.1.0"), "{message}");
    project.configure(
        "gpus = [\"NVIDIA B200\"]",
        "gpus = [\"NVIDIA B200\"]\nmismatch = \"warn\"",
    );
    assert_eq!(
        project.check(&["cp_async"], 0).warned(),
        ["toolchain-mismatch"]
    );
}

#[test]
fn profiles_of_several_machines_keep_the_pins_of_each() {
    let project = Project::unlocked();
    let second = "second/bsr_gemm/cp_async";
    common::copy(
        &project.path("recorded/bsr_gemm/cp_async"),
        &project.path(second),
    );
    let first = pin("driver", ">=580", "580.159.04", true);
    let other = pin("driver", ">=580", "570.86.10", false);
    for (path, pins) in [
        ("recorded/bsr_gemm/cp_async", json!([first])),
        (second, json!([first, other])),
    ] {
        project.edit(&format!("{path}/profile.json"), |profile| {
            profile["provenance"]["pins"] = pins;
            // The same captures twice are not two machines.
            for capture in profile["provenance"]["captures"].as_array_mut().unwrap() {
                let hash = capture["report"]["sha256"].as_str().unwrap();
                let other: String = match path == second {
                    true => hash.chars().rev().collect(),
                    false => hash.to_owned(),
                };
                capture["report"]["sha256"] = json!(other);
            }
        });
    }
    let from = "--from recorded --from second";
    let ran = project.run(&format!(
        "baseline --lock --reason first --who tester cp_async {from}"
    ));
    common::contains(&ran.out, &["570.86.10, where `>=580` is pinned"]);
    assert_eq!(ran.out.matches("580.159.04").count(), 0, "{}", ran.out);
}

#[test]
fn the_pins_of_the_working_tree_count_for_the_base_too() {
    let machine = other_compiler();
    // The change moves the project to another compiler; the base pins the one before.
    machine.write(
        ".gitignore",
        ".sparsek-gate/\n/tmp/\n/home/\n/argv\n/calls\n/journal\n/reports\n",
    );
    machine.commit();
    let machine = machine.configured("cuda = \"13.0\"", "cuda = \"12.4\"");
    let against = ["check", "--against", "HEAD", "--format", "json"];
    let ran = machine.run(&against);
    let report = ran.json();
    assert_eq!(report.variant("baseline")["mode"], "against", "{}", ran.err);
    assert!(!report.warns("toolchain-mismatch"));
    let base = ".sparsek-gate/profiles/bsr_gemm/baseline/base/profile.json";
    let pins = machine.json(base)["provenance"]["pins"].clone();
    let kept = pin("cuda", "12.4", "V12.4.131", true);
    assert!(pins.as_array().unwrap().contains(&kept), "{pins:#}");
}
