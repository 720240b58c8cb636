//! Sick GPUs, with stand-ins of the driver and of ncu: what they measured is set aside or repeated, and
//! they go into quarantine; what a change does, does not.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};
use sparsek_gate::baseline::Store;
use sparsek_gate::config::{Config, Selected};
use sparsek_gate::evidence::{SickGpu, SymptomKind};
use sparsek_gate::judge::{Judge, Profiles};
use sparsek_gate::profile::Profile;
use sparsek_gate::terms::VariantId;

use crate::common::sick::{
    SECOND, check, check_with, folders, from_process, machine, messages, ncu, nothing_counts,
    nothing_counts_besides, path, quarantined, slow_on,
};
use crate::common::stand_in::{Machine, UUID};
use crate::common::{PATIENCE, Project, RECORDED, Ran, Report, scale};

/// In the hook of ncu: each process takes so long that the state of the GPU is read several times.
const WATCHED: &str = "case \" $* \" in *' --export '*) sleep 0.5 ;; esac";

#[test]
fn a_defect_sets_all_aside_that_the_gpu_measured_and_later_runs_refuse_it_until_it_is_lifted() {
    let Some(machine) = machine(1) else { return };
    let when = path(&machine, "tmp/xid");
    let machine = machine.with("NVML_XID", "48").with("NVML_WHEN", &when);
    // The control is measured when the error comes, and the last variant is not begun.
    ncu(&machine, &from_process(5, "xid"));
    let (report, _) = check(&machine, &[], 6);
    nothing_counts(&report);
    let sick = report.message("gpu-sick");
    for part in [
        UUID,
        "is sick: Xid 48 (a memory error that could not be corrected)",
    ] {
        assert!(sick.contains(part), "{sick}");
    }
    assert_eq!(report.0["sick_gpus"][0]["symptoms"][0]["xid"], 48);
    // The captures of what was measured before are kept, and say what the driver reported.
    let folder = ".sparsek-gate/profiles/bsr_gemm";
    assert!(
        machine
            .project
            .path(&format!("{folder}/control/profile.json"))
            .exists()
    );
    let not_begun = format!("{folder}/v-n_2/profile.json");
    assert!(!machine.project.path(&not_begun).exists());

    assert_eq!(quarantined(&machine), [UUID]);
    machine
        .run(&["quarantine"])
        .exits(0)
        .says("Xid 48")
        .says("quarantine --lift UUID");
    for command in [&["check"][..], &["profile"]] {
        machine
            .run(command)
            .exits(3)
            .says("is in quarantine since")
            .says(&format!("sparsek-gate quarantine --lift {UUID} --reason"));
    }
    machine
        .run(&["doctor"])
        .exits(3)
        .says("quarantine")
        .says("Xid 48");
    assert_eq!(quarantined(&machine), [UUID], "doctor changed it");
    // What it measured before the error does not become a baseline either.
    let lock = ["baseline", "--lock", "--reason", "x", "--who", "tester"];
    machine
        .run(&[&lock[..], &["bsr_gemm/control"]].concat())
        .exits(6)
        .says("gpu-sick")
        .says("is in quarantine since");
    for (arguments, why) in [
        (&["--lift", UUID][..], "--reason"),
        (&["--lift", UUID, "--reason", " "], "`--reason` is empty"),
        (
            &["--lift", "GPU-0011", "--reason", "x"],
            "is too short to name a GPU",
        ),
        (
            &["--lift", "GPU-1", "--reason", "x"],
            "is not in quarantine; these are",
        ),
        (
            &["--lift", "../../x", "--reason", "x"],
            "is not in quarantine",
        ),
    ] {
        let ran = machine.run(&[&["quarantine"], arguments].concat());
        ran.exits(2).says(why);
    }
    // The beginning of a UUID, as messages show it, is enough where no other begins so.
    let short = "GPU-00112233";
    assert!(UUID.starts_with(short));
    let lift = ["quarantine", "--lift", short, "--reason", "new memory"];
    let listed = machine.run(&["quarantine", "--format", "json"]).exits(0);
    let listed: Json = serde_json::from_str(&listed.out).unwrap();
    let own = PathBuf::from(listed["gpus"][0]["file"].as_str().unwrap());
    let alike = own.with_file_name(format!("{short}-0000-0000-0000-000000000000.json"));
    fs::copy(&own, &alike).unwrap();
    machine.run(&lift).exits(2).says("several GPUs").says(UUID);
    fs::remove_file(&alike).unwrap();
    let lifted = machine.run(&lift).exits(0);
    lifted.says(&format!("{UUID} is no longer in quarantine"));
    machine
        .run(&[&lock[..], &["bsr_gemm/control"]].concat())
        .exits(6)
        .says("This GPU was in quarantine at that time, until ");
    // Where nothing is known of the quarantine, the profile itself shows it.
    let elsewhere = path(&machine, "tmp/elsewhere");
    let from = [".sparsek-gate/profiles", "bsr_gemm/control"];
    for command in [&lock[..], &["check"]] {
        let mut command = machine.gate(&[command, &["--from"], &from].concat());
        command.env("XDG_STATE_HOME", &elsewhere);
        let ran = Ran::of(&command.output().unwrap()).exits(6);
        let ran = ran.says("the GPU reported a defect: Xid 48");
        let text = ran.out + &ran.err;
        assert!(!text.contains("altered"), "{text}");
    }
    let _ = fs::remove_file(machine.project.path("tmp/xid"));
    ncu(&machine, "");
    check(&machine, &[], 0);
}

#[test]
fn what_the_driver_reports_of_a_program_is_no_symptom_and_what_it_reports_of_the_hardware_is() {
    let Some(machine) = machine(1) else { return };
    let file = |name: &str| path(&machine, &format!("tmp/{name}"));
    let (lost, grows) = (file("lost"), file("grows"));
    type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], i32, Option<&'a str>);
    let rows: [Row<'_>; 5] = [
        ("page fault of a program", &[("NVML_XID", "31")], 0, None),
        (
            "a question without an answer",
            &[("NVML_LOST", &lost), ("NVML_ANSWER", "999")],
            0,
            None,
        ),
        (
            "memory errors before the run",
            &[("NVML_ERRORS", "3")],
            0,
            None,
        ),
        (
            "grows",
            &[("NVML_GROWS", &grows)],
            6,
            Some("2 memory errors could not be corrected"),
        ),
        (
            "lost",
            &[("NVML_LOST", &lost)],
            6,
            Some("the driver lost it"),
        ),
    ];
    for (what, variables, code, symptom) in rows {
        let _ = fs::remove_file(machine.project.path("tmp/count"));
        let file = match variables {
            [("NVML_LOST", _), ..] => "lost",
            _ => what,
        };
        ncu(&machine, &from_process(2, file));
        let (report, _) = check_with(&machine, variables, &[], code);
        match symptom {
            None => {
                assert_eq!(quarantined(&machine), [""; 0], "{what}");
                let _ = fs::remove_file(&lost);
            }
            Some(symptom) => {
                nothing_counts(&report);
                let sick = report.message("gpu-sick");
                assert!(sick.contains(symptom), "{sick}");
                assert_eq!(quarantined(&machine), [UUID], "{what}");
                let _ = fs::remove_file(machine.project.path(&format!("tmp/{what}")));
                machine
                    .run(&["quarantine", "--lift", UUID, "--reason", "tried"])
                    .exits(0);
            }
        }
    }
}

#[test]
fn without_another_gpu_heat_and_a_control_set_all_aside_and_quarantine_nothing() {
    let Some(machine) = machine(1) else { return };
    ncu(&machine, &slow_on("", &machine));
    let (report, _) = check(&machine, &[], 6);
    nothing_counts(&report);
    let sick = report.message("gpu-sick");
    for part in [
        UUID,
        "may be sick: the control bsr_gemm/control reads +3.00 %",
        "Only another GPU shows",
    ] {
        assert!(sick.contains(part), "{sick}");
    }
    assert_eq!(quarantined(&machine), [""; 0]);

    ncu(&machine, WATCHED);
    let machine = machine.with("NVML_REASONS", "0x40");
    let (report, _) = check(&machine, &["v-n_1", "control"], 6);
    assert_eq!(report.0["variants"].as_array().unwrap().len(), 0);
    assert!(
        report
            .message("gpu-sick")
            .contains("its clock was lowered in every capture of bsr_gemm/v-n_1 (hw-thermal)")
    );
    assert_eq!(quarantined(&machine), [""; 0]);
}

#[test]
fn a_home_that_cannot_be_written_fails_no_measurement() {
    let Some(machine) = machine(1) else { return };
    let home = path(&machine, "config.toml");
    let machine = machine.with("XDG_STATE_HOME", &home);
    check(&machine, &[], 0);
    let grows = path(&machine, "tmp/grows");
    let machine = machine.with("NVML_GROWS", &grows);
    ncu(&machine, &from_process(1, "grows"));
    let (report, _) = check(&machine, &["control"], 6);
    let said = messages(&report, "gpu-sick");
    assert!(
        said.iter()
            .any(|one| one.contains("only runs of this project find it")),
        "{said:?}"
    );
    assert!(
        machine
            .project
            .path(&format!(".sparsek-gate/quarantine/{UUID}.json"))
            .exists()
    );
    check(&machine, &[], 3);
    fs::write(
        machine
            .project
            .path(&format!(".sparsek-gate/quarantine/{UUID}.json")),
        "{",
    )
    .unwrap();
    let (_, ran) = check(&machine, &[], 3);
    ran.says("cannot be read");
}

const WAIVER: &str = r#"
[[waiver]]
variant = "bsr_gemm/baseline"
metric = "duration"
reason = "the new driver"
who = "Ada"
expires = 9999-12-31
"#;

/// The factors of the durations of control and change, and further edits of the control's profile.
type Read<'a> = (&'a str, f64, f64, fn(&mut Json), &'a [SymptomKind]);

#[test]
fn only_a_control_that_deviates_and_what_the_driver_reports_are_symptoms() {
    use SymptomKind::{Control, Hardware, Throttling};
    fn states(profile: &mut Json, key: &str, value: &Json) {
        for capture in profile["provenance"]["captures"].as_array_mut().unwrap() {
            capture["device"][key] = value.clone();
        }
    }
    let rows: [Read<'_>; 16] = [
        ("as locked", 1.0, 1.0, |_| {}, &[]),
        ("a GPU that reads 3 % slow", 1.03, 1.03, |_| {}, &[Control]),
        ("a GPU that reads 3 % fast", 0.97, 0.97, |_| {}, &[Control]),
        ("a change that is slow", 1.0, 1.5, |_| {}, &[]),
        ("a change that is fast", 1.0, 0.5, |_| {}, &[]),
        (
            "a control of other code",
            1.03,
            1.0,
            |control| {
                control["provenance"]["artifact_sha256"] = json!("0".repeat(64));
            },
            &[],
        ),
        (
            "a control with other arguments",
            1.03,
            1.0,
            |control| {
                control["identity"]["workload"] = json!(["--m", "1"]);
            },
            &[],
        ),
        ("a control that is waived", 1.03, 1.0, |_| {}, &[]),
        ("a control whose files changed", 1.03, 1.0, |_| {}, &[]),
        (
            "a control that is incomplete",
            1.03,
            1.0,
            |control| {
                control["kernels"][0]["metrics"]["duration"]["samples"][0]
                    .as_array_mut()
                    .unwrap()
                    .clear();
            },
            &[],
        ),
        (
            "a control beside another process",
            1.03,
            1.0,
            |control| {
                states(control, "other_processes", &json!([{ "pid": 7 }]));
            },
            &[],
        ),
        (
            "heat throughout",
            1.0,
            1.0,
            |control| {
                states(control, "slowdown_readings", &json!({ "hw-thermal": 9 }));
            },
            &[Throttling],
        ),
        (
            "heat in one capture",
            1.0,
            1.0,
            |control| {
                let captures = &mut control["provenance"]["captures"];
                captures[1]["device"]["slowdown_readings"] = json!({ "hw-thermal": 9 });
            },
            &[],
        ),
        (
            "a power limit",
            1.0,
            1.0,
            |control| {
                states(control, "slowdown_readings", &json!({ "sw-power-cap": 9 }));
            },
            &[],
        ),
        (
            "an error of a program",
            1.0,
            1.0,
            |control| {
                states(control, "xids", &json!([13, 31, 43, 45]));
            },
            &[],
        ),
        (
            "an error of the hardware",
            1.0,
            1.0,
            |control| {
                states(control, "xids", &json!([45, 79]));
            },
            &[Hardware],
        ),
    ];
    for (what, of_control, of_change, edit, expected) in rows {
        let project = Project::steady();
        project.edit_profile("cp_async", |profile| scale(profile, "duration", of_change));
        project.edit_profile("baseline", |profile| {
            scale(profile, "duration", of_control);
            edit(profile);
        });
        project.replace(
            "config.toml",
            "tolerance = { relative_percent = 3.0 }\nagainst",
            "tolerance = { relative_percent = 1.0 }\nagainst",
        );
        if what.ends_with("files changed") {
            let source = "kernels/bsr_gemm/baseline.cu";
            project.write(source, project.read(source) + "// x\n");
        }
        if what.ends_with("is waived") {
            project.write("config.toml", project.read("config.toml") + WAIVER);
        }
        let config = Config::load(&project.path("config.toml")).unwrap();
        let names = ["bsr_gemm/baseline", "bsr_gemm/cp_async"].map(str::to_owned);
        let plan = Selected::new(config, &names, false, &[]).unwrap();
        let store = Store::open(&plan.config.baselines).unwrap();
        let (judge, _) = Judge::new(&plan, &store).unwrap();
        let recorded = project.path(RECORDED);
        let profile = |id: &VariantId| Profile::recorded(&recorded, id).unwrap().unwrap();
        let profiles = Profiles {
            current: plan.variants.iter().map(|one| profile(&one.id)).collect(),
            ..Profiles::default()
        };
        let sick = judge.sick_gpus(&profiles);
        let kinds: Vec<SymptomKind> = sick.iter().flat_map(SickGpu::kinds).collect();
        assert_eq!(kinds, expected, "{what}: {sick:?}");
        if let [gpu] = &sick[..] {
            assert_eq!(gpu.is_certain(), expected == [Hardware], "{what}");
        }
    }
}

/// An archive of the machine's project, and what is measured and merged with it.
struct Packed<'a> {
    machine: &'a Machine,
    archive: String,
    sha256: String,
    /// While this file exists, the first GPU is slow.
    slow_now: String,
}

impl<'a> Packed<'a> {
    fn of(machine: &'a Machine) -> Self {
        // The archive has ncu as it is now.
        let slow_now = path(machine, "tmp/slow-now");
        let slow = slow_on("", machine);
        ncu(machine, &format!("if [ -e {slow_now} ]; then {slow}; fi"));
        let archive = path(machine, "tmp/gate.tar.zst");
        let packed = machine.run(&["archive", "--output", &archive, "--format", "json"]);
        let packed: Json = serde_json::from_str(&packed.exits(0).out).unwrap();
        Packed {
            machine,
            archive,
            sha256: packed["sha256"].as_str().unwrap().to_owned(),
            slow_now,
        }
    }

    /// The folder of a slice that this GPU measured.
    fn slice(&self, place: &str, gpu: &str, name: &str) -> String {
        let output = path(self.machine, &format!("tmp/{name}"));
        let arguments = ["check", "--archive", &self.archive, "--slice", place];
        let mut command =
            (self.machine).gate(&[&arguments[..], &["--slice-output", &output]].concat());
        command.env("CUDA_VISIBLE_DEVICES", gpu);
        Ran::of(&command.output().unwrap()).exits(0);
        output
    }

    fn merge(&self, folders: &[&str], code: i32) -> Report {
        let rules = ["--archive", &self.archive, "--archive-sha256", &self.sha256];
        let arguments = [&["merge"], folders, &["--format", "json"], &rules].concat();
        self.machine.run(&arguments).exits(code).json()
    }
}

#[test]
fn a_repeat_that_is_merged_by_hand_counts_only_if_the_first_slice_shows_why() {
    let Some(machine) = machine(1) else { return };
    let packed = Packed::of(&machine);
    let slice = |gpu: &str, name: &str| packed.slice("1/1", gpu, name);
    let now = &packed.slow_now;
    fs::write(now, "").unwrap();
    let sick = slice("0", "sick");
    fs::remove_file(now).unwrap();
    let other = slice("1", "other");
    let same = slice("0", "same");
    let merge =
        |first: &str, repeat: &str, code: i32| packed.merge(&[first, "--repeat", repeat], code);
    let report = merge(&sick, &other, 0);
    assert!(
        report
            .message("gpu-sick")
            .contains("was measured once more")
    );
    assert_eq!(report.0["variants"].as_array().unwrap().len(), 3);
    // Somebody's merge puts no GPU into quarantine.
    assert_eq!(quarantined(&machine), [""; 0]);
    for (first, repeat, why) in [
        (&sick, &same, "is not known to be from another GPU"),
        (&sick, &sick, "is not known to be from another GPU"),
    ] {
        let report = merge(first, repeat, 6);
        nothing_counts(&report);
        let said = messages(&report, "gpu-sick");
        assert!(said.iter().any(|one| one.contains(why)), "{why}: {said:?}");
    }
    // A first slice without a symptom counts, whatever a repeat shows.
    let report = merge(&same, &other, 0);
    let unused = format!("the repeat in {other} is not used");
    assert!(report.message("gpu-sick").contains(&unused));
    for variant in report.0["variants"].as_array().unwrap() {
        assert_eq!(variant["current"]["gpu_uuid"], UUID);
    }
    merge(&same, &path(&machine, "tmp/none"), 0);
    let none = path(&machine, "tmp/none");
    let report = merge(&sick, &none, 6);
    nothing_counts_besides(&report, "slice-unusable");
    assert!(report.message("slice-unusable").contains(&none));
    // Nobody chooses between two repeats.
    let again = slice("1", "again");
    let report = packed.merge(&[&sick, "--repeat", &other, "--repeat", &again], 6);
    nothing_counts_besides(&report, "slice-unusable");
    let said = report.message("slice-unusable");
    assert!(said.contains("it was given 2 times"), "{said}");
}

#[test]
fn no_slice_of_a_sick_gpu_counts_that_was_not_repeated() {
    let Some(machine) = machine(1) else { return };
    let packed = Packed::of(&machine);
    let slice = |index: u32, gpu: &str, name: &str| packed.slice(&format!("{index}/2"), gpu, name);
    let now = &packed.slow_now;
    // Both slices of one GPU, of which only the second shows a symptom.
    let first = slice(1, "0", "first");
    fs::write(now, "").unwrap();
    let second = slice(2, "0", "second");
    fs::remove_file(now).unwrap();
    let [first_again, second_again] =
        [(1, "first-again"), (2, "second-again")].map(|(index, name)| slice(index, "1", name));
    let merge = |repeats: &[&str], code: i32| {
        let mut folders = vec![&first[..], &second];
        folders.extend(repeats.iter().flat_map(|repeat| ["--repeat", repeat]));
        packed.merge(&folders, code)
    };
    nothing_counts(&merge(&[], 6));
    let measured = |report: &Report| report.0["variants"].as_array().unwrap().len();
    for (repeat, folder) in [(&second_again, &first), (&first_again, &second)] {
        let report = merge(&[repeat], 6);
        assert!((1..3).contains(&measured(&report)));
        for variant in report.0["variants"].as_array().unwrap() {
            assert_ne!(variant["current"]["gpu_uuid"], UUID, "{folder}");
        }
        assert_eq!(report.0["sick_gpus"].as_array().unwrap().len(), 1);
        let aside = messages(&report, "gpu-sick");
        let is_aside = |one: &String| one.contains("set aside") && one.contains(folder.as_str());
        assert!(aside.iter().any(is_aside), "{aside:?}");
    }
    let report = merge(&[&first_again, &second_again], 0);
    assert_eq!(measured(&report), 3);
    assert_eq!(report.0["gpus"].as_array().unwrap().len(), 1);
}

/// What makes the second GPU sick.
#[derive(Clone, Copy, Debug)]
enum Sick {
    Xid,
    Hot,
    Slow,
}

#[test]
fn one_sick_gpu_costs_one_repeat_on_another() {
    let Some(machine) = machine(2) else { return };
    for sick in [Sick::Xid, Sick::Hot, Sick::Slow] {
        let (variables, hook, symptom) = match sick {
            Sick::Xid => (&[("NVML_XID", "95")][..], String::new(), "Xid 95"),
            Sick::Hot => (
                &[("NVML_REASONS", "0x80")][..],
                WATCHED.to_owned(),
                "power-brake",
            ),
            Sick::Slow => (
                &[][..],
                slow_on("fe", &machine),
                "the control bsr_gemm/control reads +3.00 %",
            ),
        };
        ncu(&machine, &hook);
        let variables = [variables, &[("NVML_SICK", SECOND)]].concat();
        let _ = fs::remove_dir_all(machine.project.path(".sparsek-gate/gpus"));
        let (report, ran) = check_with(&machine, &variables, &["--gpus", "all"], 0);
        ran.says("is measured once more, on");
        assert_eq!(report.0["variants"].as_array().unwrap().len(), 3);
        for variant in report.0["variants"].as_array().unwrap() {
            assert_eq!(variant["current"]["gpu_uuid"], UUID, "{sick:?}");
        }
        let said = report.message("gpu-sick");
        for part in [
            SECOND,
            symptom,
            "slice 2/2 was measured once more on",
            UUID,
            "slices/2,",
            "slices/2-repeat",
        ] {
            assert!(said.contains(part), "{sick:?}: {part}: {said}");
        }
        assert_eq!(report.0["sick_gpus"][0]["uuid"], SECOND);
        let mut kept = folders(&machine);
        kept.retain(|folder| folder.join("slice.json").exists());
        assert_eq!(kept.len(), 3, "{kept:?}");
        assert_eq!(quarantined(&machine), [SECOND], "{sick:?}");

        // From then on it has no part.
        if matches!(sick, Sick::Slow) {
            let (report, _) = check(&machine, &["--gpus", "all", "v-n_1"], 0);
            let said = report.message("gpu-sick");
            let part = format!("{SECOND} (NVIDIA H200) has no part: it is in quarantine");
            assert!(said.contains(&part), "{said}");
            let ran = machine.run(&["check", "--gpus", "1"]);
            ran.exits(3).says("is in quarantine");
        }
        let lift = ["quarantine", "--lift", SECOND, "--reason", "tried"];
        machine.run(&lift).exits(0);
    }
}

#[test]
fn what_every_gpu_shows_quarantines_none() {
    let Some(machine) = machine(2) else { return };
    // A change that is slow everywhere.
    let change = machine.project.read("change.sh");
    machine
        .project
        .write("change.sh", change.replace("h200", "h200-worse"));
    let (report, _) = check(&machine, &["--gpus", "all"], 1);
    assert!(report.denied().contains(&"regressed".to_owned()));
    assert_eq!(messages(&report, "gpu-sick"), [""; 0]);
    assert_eq!(quarantined(&machine), [""; 0]);
    machine.project.write("change.sh", change);

    // A lock that no GPU reads any more.
    ncu(&machine, &slow_on("", &machine));
    let (report, _) = check(&machine, &["--gpus", "all"], 6);
    nothing_counts(&report);
    assert!(
        messages(&report, "gpu-sick")
            .iter()
            .any(|one| one.contains("both GPUs show symptoms of the same kind")),
        "{:?}",
        messages(&report, "gpu-sick")
    );
    assert_eq!(quarantined(&machine), [""; 0]);

    // A change that heats whatever it runs on.
    ncu(&machine, WATCHED);
    let hot = [("NVML_REASONS", "0x80")];
    let (report, _) = check_with(&machine, &hot, &["--gpus", "all"], 6);
    nothing_counts(&report);
    assert_eq!(quarantined(&machine), [""; 0]);

    // An error that comes with the change wherever it runs: the quarantines are taken back.
    ncu(&machine, "");
    let machine = machine.with("NVML_XID", "48");
    let (report, _) = check(&machine, &["--gpus", "all"], 6);
    nothing_counts(&report);
    assert_eq!(quarantined(&machine), [""; 0]);
}

#[test]
fn a_gpu_that_becomes_sick_in_a_repeat_loses_what_it_measured_before() {
    let Some(machine) = machine(2) else { return };
    let xid = path(&machine, "tmp/xid");
    ncu(
        &machine,
        &format!(
            "{}\ncase \"$*\" in *-repeat*) : >'{xid}' ;; esac",
            slow_on("fe", &machine)
        ),
    );
    let variables = [("NVML_SICK", UUID), ("NVML_XID", "95"), ("NVML_WHEN", &xid)];
    let (report, _) = check_with(&machine, &variables, &["--gpus", "all"], 6);
    nothing_counts(&report);
    assert_eq!(quarantined(&machine), [UUID]);
}

/// Waits for a file, and does something else meanwhile.
#[track_caller]
fn wait_for(file: &Path, mut meanwhile: impl FnMut()) {
    let end = Instant::now() + PATIENCE;
    while !file.exists() {
        assert!(Instant::now() < end, "{}", file.display());
        meanwhile();
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a command, and kills it once a file is there.
fn kill_once(machine: &Machine, arguments: &[&str], file: &str) {
    end_once(machine, arguments, file, Signal::KILL);
}

fn end_once(machine: &Machine, arguments: &[&str], file: &str, signal: Signal) {
    let file = machine.project.path(file);
    let mut command = machine.gate(arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    wait_for(&file, || {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before");
    });
    kill_process(Pid::from_child(&child), signal).unwrap();
    child.wait().unwrap();
}

#[test]
fn a_run_that_is_interrupted_stores_a_defect_that_is_no_xid_error() {
    for (file, symptom) in [("grows", "2 memory errors"), ("lost", "the driver lost it")] {
        let Some(machine) = machine(1) else { return };
        let made = path(&machine, &format!("tmp/{file}"));
        let variable = format!("NVML_{}", file.to_uppercase());
        let machine = machine.with(&variable, &made);
        // The program of the second variant meets it, and hangs.
        let meets = from_process(5, file);
        let hangs = format!("[ ! -e tmp/{file} ] || {{ : >tmp/hangs; sleep 60; }} ;; esac");
        ncu(&machine, &meets.replace(";; esac", &format!("; {hangs}")));
        end_once(&machine, &["check"], "tmp/hangs", Signal::TERM);
        assert_eq!(quarantined(&machine), [UUID], "{file}");
        let ran = machine.run(&["check"]).exits(3);
        ran.says("is in quarantine since").says(symptom);
        // What was measured before shows it, where it can.
        let control = ".sparsek-gate/profiles/bsr_gemm/control/profile.json";
        let control = machine.project.json(control);
        let captures = control["provenance"]["captures"].as_array().unwrap();
        let last = &captures.last().unwrap()["device"];
        let errors = (file == "grows").then_some(2);
        assert_eq!(last["uncorrected_errors"].as_u64(), errors, "{file}");
    }
}

#[test]
fn errors_in_the_place_of_events_do_not_hide_a_defect_and_a_watch_that_ends_is_said() {
    let Some(machine) = machine(1) else { return };
    // One that means that the library is gone.
    let gone = [("NVML_EVENTS_FAIL", "1"), ("NVML_EVENTS_ANSWER", "1")];
    let (report, _) = check_with(&machine, &gone, &["control"], 0);
    let said = report.message("gpu-unwatched");
    assert!(
        said.contains("stopped reporting errors of the GPU"),
        "{said}"
    );
    assert!(report.warned().contains(&"gpu-unwatched".to_owned()));

    // The process with the error ends once the driver was heard.
    let stored = format!(".sparsek-gate/state/sparsek-gate/quarantine/{UUID}.json");
    let waits = "n=0; while [ -e tmp/xid ] && [ ! -e STORED ] && [ $n -lt 500 ]; do n=$((n+1)); sleep 0.02; done";
    let hook = format!("{}\n{waits}", from_process(2, "xid"));
    ncu(&machine, &hook.replace("STORED", &stored));
    let when = path(&machine, "tmp/xid");
    let for_a_while = [
        ("NVML_EVENTS_FAIL", "3"),
        ("NVML_XID", "48"),
        ("NVML_WHEN", &when),
    ];
    let (report, _) = check_with(&machine, &for_a_while, &[], 6);
    nothing_counts(&report);
    assert!(report.message("gpu-sick").contains("Xid 48"));
    assert_eq!(quarantined(&machine), [UUID]);
}

#[test]
fn what_a_killed_run_saw_of_a_sick_gpu_counts_for_the_run_that_goes_on() {
    let Some(machine) = machine(1) else { return };
    // Script and variables are what programs could read, and stay as they are.
    let (when, grows) = (path(&machine, "tmp/xid"), path(&machine, "tmp/grows"));
    let machine = machine.with("NVML_XID", "79").with("NVML_WHEN", &when);
    let machine = machine.with("NVML_GROWS", &grows);
    let stored = format!(".sparsek-gate/state/sparsek-gate/quarantine/{UUID}.json");
    // A process with an error ends once the driver was heard.
    let hook = "case \" $* \" in *' --export '*) echo x >>tmp/count\n\
        from() { [ -e \"tmp/$1-from\" ] && [ \"$(wc -l <tmp/count)\" -ge \"$(cat \"tmp/$1-from\")\" ]; }\n\
        if from xid; then : >tmp/xid; fi\n\
        n=0; while from xid && [ ! -e STORED ] && [ $n -lt 15000 ]; do n=$((n+1)); sleep 0.02; done\n\
        if from hang; then : >tmp/hangs; sleep 600; fi ;; esac";
    ncu(&machine, &hook.replace("STORED", &stored));
    let project = &machine.project;
    project.git(&["commit", "--quiet", "--all", "-m", "ncu"]);
    let journal = ".sparsek-gate/profiles/bsr_gemm/control/journal.json";
    // The process of an error, and the one that hangs: the control has three.
    let killed = |xid_from: &str, hang_from: &str, once: &str| {
        project.write("tmp/xid-from", xid_from);
        project.write("tmp/hang-from", hang_from);
        kill_once(&machine, &["check"], once);
        // Until then it goes on, and would write the file anew.
        wait_for(&project.path("tmp/hangs"), || ());
        assert!(project.path(journal).exists());
        for file in ["hangs", "count", "xid", "xid-from", "hang-from"] {
            let _ = fs::remove_file(project.path(&format!("tmp/{file}")));
        }
    };
    let goes_on = |code: i32| {
        let (report, _) = check(&machine, &["--resume"], code);
        let _ = fs::remove_file(project.path("tmp/count"));
        let resumed = report.0["resumed"].as_array().map_or(0, Vec::len);
        (report, resumed)
    };
    killed("99", "5", "tmp/hangs");
    assert_eq!(goes_on(0).1, 1);

    // Nobody knows when memory errors came that are counted now.
    killed("99", "5", "tmp/hangs");
    project.write("tmp/grows", "");
    let (report, resumed) = goes_on(0);
    assert_eq!(resumed, 0);
    let why = report.message("not-resumed");
    let part = "the number of the GPU's memory errors";
    assert!(why.contains(part), "{why}");

    // The program hangs after an error, and somebody kills the run: the GPU is in quarantine by then.
    killed("5", "5", &stored);
    let ran = machine.run(&["check", "--resume"]);
    ran.exits(3).says("Xid 79 (the GPU has fallen off the bus)");
    let lift = ["quarantine", "--lift", UUID, "--reason", "replaced"];
    machine.run(&lift).exits(0);
    let (report, resumed) = goes_on(0);
    assert_eq!(resumed, 0);
    let why = report.message("not-resumed");
    assert!(why.contains("the history of the GPU's quarantine"), "{why}");

    // Where somebody removed the file, the captures show it all the same.
    killed("1", "3", "tmp/hangs");
    fs::remove_file(project.path(&stored)).unwrap();
    let (report, _) = goes_on(6);
    nothing_counts(&report);
    assert!(report.message("gpu-sick").contains("Xid 79"));
    assert_eq!(quarantined(&machine), [UUID]);
}

#[test]
fn a_run_that_is_killed_in_a_repeat_goes_on_with_it() {
    let Some(machine) = machine(2) else { return };
    ncu(
        &machine,
        &format!(
            "{}\ncase \"$*\" in *-repeat*) if [ -e '{}' ]; then : >'{}'; sleep 600; fi ;; esac",
            slow_on("fe", &machine),
            path(&machine, "tmp/hang"),
            path(&machine, "tmp/hangs")
        ),
    );
    machine.project.write("tmp/hang", "");
    kill_once(&machine, &["check", "--gpus", "all"], "tmp/hangs");
    fs::remove_file(machine.project.path("tmp/hang")).unwrap();
    assert_eq!(quarantined(&machine), [""; 0]);
    let (report, _) = check(&machine, &["--gpus", "all", "--resume"], 0);
    assert_eq!(report.0["variants"].as_array().unwrap().len(), 3);
    for variant in report.0["variants"].as_array().unwrap() {
        assert_eq!(variant["current"]["gpu_uuid"], UUID);
    }
    assert!(
        report
            .message("gpu-sick")
            .contains("was measured once more")
    );
    assert!(!report.0["resumed"].as_array().unwrap().is_empty());
    assert_eq!(quarantined(&machine), [SECOND]);
    // It is over.
    let left: Vec<PathBuf> = folders(&machine)
        .iter()
        .map(|folder| folder.join("profiles/journal.json"))
        .filter(|journal| journal.exists())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_change_that_brings_a_file_of_the_quarantine_does_not_choose_its_gpu() {
    let Some(machine) = machine(2) else { return };
    let file = format!(".sparsek-gate/quarantine/{SECOND}.json");
    machine.project.write(&file, "{}");
    machine.project.git(&["add", "--force", &file]);
    machine
        .project
        .git(&["commit", "--quiet", "-m", "a quarantine"]);
    let (report, ran) = check(&machine, &["--gpus", "all"], 3);
    assert_eq!(report.0["variants"].as_array().unwrap().len(), 0);
    ran.says(&format!("{SECOND} (NVIDIA H200) is in quarantine"))
        .says("git has its file: git rm ");
}

#[test]
fn nothing_is_locked_from_a_gpu_that_is_sick_while_all_are_profiled() {
    let Some(machine) = machine(2) else { return };
    let xid = path(&machine, "tmp/xid");
    ncu(
        &machine,
        &format!("case \"$CUDA_VISIBLE_DEVICES $*\" in *fe\\ *--export*) : >'{xid}' ;; esac"),
    );
    let machine = machine.with("NVML_SICK", SECOND).with("NVML_XID", "95");
    let machine = machine.with("NVML_WHEN", &xid);
    machine.run(&["profile", "--gpus", "all"]).exits(6);
    let lock = ["baseline", "--lock", "--reason", "again", "--who", "tester"];
    let locks_none = |why: &str| {
        let ran = machine.run(&lock).exits(6);
        ran.says("0 baselines locked").says(why);
    };
    locks_none("which is in quarantine since");
    let lift = ["quarantine", "--lift", SECOND, "--reason", "tried"];
    machine.run(&lift).exits(0);
    locks_none("This GPU was in quarantine at that time, until ");
}

#[test]
fn a_recording_that_shows_a_defect_is_neither_judged_as_clean_nor_locked() {
    let project = Project::steady();
    let arguments = ["check", "--from", RECORDED, "--format", "json"];
    project.run(&arguments).exits(0);
    let program_error = |profile: &mut Json| {
        profile["provenance"]["captures"][1]["device"]["xids"] = json!([31]);
    };
    project.edit_profile("cp_async", program_error);
    project.run(&arguments).exits(0);
    let edits: [(&str, Json); 2] = [("xids", json!([79])), ("uncorrected_errors", json!(1))];
    for (key, value) in edits {
        let edit = |profile: &mut Json| {
            profile["provenance"]["captures"][1]["device"][key] = value;
        };
        let project = Project::unlocked();
        project.edit_profile("cp_async", edit.clone());
        let lock = ["baseline", "--lock", "--reason", "x", "--who", "tester"];
        let from = ["--from", RECORDED, "bsr_gemm/cp_async"];
        let ran = project.run(&[&lock[..], &from].concat());
        ran.exits(6).says("the GPU reported a defect");
        let project = Project::steady();
        project.edit_profile("cp_async", edit);
        let report = project.run(&arguments).exits(6).json();
        assert_eq!(report.denied(), ["gpu-sick"], "{key}");
    }
}
