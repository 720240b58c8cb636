//! Sick GPUs, with stand-ins of the driver and of ncu: what they measured is set aside, and never becomes a
//! baseline; what a change does is no symptom.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};
use sparsek_gate::baseline::Store;
use sparsek_gate::config::{Config, Selected, Selection};
use sparsek_gate::judge::Judge;
use sparsek_gate::measure::Captures;
use sparsek_gate::profile::Profile;
use sparsek_gate::terms::VariantId;

use crate::common::sick::{
    SECOND, check, check_with, from_process, machine, ncu, nothing_counts, path, slow_on,
};
use crate::common::stand_in::{Machine, UUID};
use crate::common::{self, PATIENCE, Project, RECORDED, rows, scale};

/// In the hook of ncu: each process takes so long that the state of the GPU is read several times.
const WATCHED: &str = "case \" $* \" in *' --export '*) sleep 0.5 ;; esac";

/// In the hook of ncu: waits until the run has heard of the defect, and removed the control's profile.
const UNHEARD: &str = "{ n=0; while [ -e .sparsek-gate/profiles/bsr_gemm/control/profile.json ] && [ $n -lt 15000 ]; do n=$((n+1)); sleep 0.02; done; }";

const LOCK: [&str; 5] = ["baseline", "--lock", "--reason", "x", "--who"];

/// No profile of the control can be locked, though its captures are there.
#[track_caller]
fn locks_no_control(machine: &Machine) {
    let lock = [&LOCK[..], &["tester", "bsr_gemm/control"]].concat();
    machine.run(&lock).ends(6, "contains no profile of it");
    let capture = ".sparsek-gate/profiles/bsr_gemm/control/capture-1.csv";
    assert!(machine.path(capture).exists());
}

#[test]
fn a_defect_sets_all_aside_that_the_gpu_measured_and_none_of_it_is_locked() {
    let machine = machine(1);
    let when = path(&machine, "tmp/xid");
    let machine = machine.with("NVML_XID", "48").with("NVML_WHEN", &when);
    // The control is measured when the error comes, and the last variant is not begun.
    ncu(&machine, &from_process(5, "xid"));
    let (report, _) = check(&machine, &[], 6);
    nothing_counts(&report);
    report.tells_all(
        "gpu-sick",
        &[
            UUID,
            "is sick: Xid 48 (a memory error that could not be corrected)",
        ],
    );
    assert_eq!(report.0["sick_gpus"][0]["symptoms"][0]["xid"], 48);
    locks_no_control(&machine);
    let from = common::words("check --from .sparsek-gate/profiles bsr_gemm/control");
    machine.run(&from).exits(6);
    let _ = fs::remove_file(machine.path("tmp/xid"));
    ncu(&machine, "");
    check(&machine, &[], 0);
}

#[test]
fn what_the_driver_reports_of_a_program_is_no_symptom_and_what_it_reports_of_the_hardware_is() {
    let machine = machine(1);
    let file = |name: &str| path(&machine, &format!("tmp/{name}"));
    let (lost, grows) = (file("lost"), file("grows"));
    // What happens, the variables that cause it, the exit code, and the symptom.
    let table = r#"
page fault of a program | NVML_XID=31 | 0 |
a question without an answer | NVML_LOST=LOST NVML_ANSWER=999 | 0 |
memory errors before the run | NVML_ERRORS=3 | 0 |
grows | NVML_GROWS=GROWS | 6 | 2 memory errors could not be corrected
lost | NVML_LOST=LOST | 6 | the driver lost it
"#;
    let table = table.replace("=LOST", &format!("={lost}"));
    let table = table.replace("=GROWS", &format!("={grows}"));
    for [what, variables, code, symptom] in &rows(&table) {
        let _ = fs::remove_file(machine.path("tmp/count"));
        let is_lost = variables.starts_with("NVML_LOST");
        let variables = variables.split(' ').map(|one| one.split_once('=').unwrap());
        let variables: Vec<(&str, &str)> = variables.collect();
        ncu(
            &machine,
            &from_process(2, if is_lost { "lost" } else { what }),
        );
        let (report, _) = check_with(&machine, &variables, &[], code.parse().unwrap());
        match symptom.as_str() {
            "" => {
                assert_eq!(report.fields("gpu-sick", "message"), [""; 0], "{what}");
                let _ = fs::remove_file(&lost);
            }
            symptom => {
                nothing_counts(&report);
                report.tells_all("gpu-sick", &[symptom]);
                let _ = fs::remove_file(machine.path(&format!("tmp/{what}")));
                locks_no_control(&machine);
            }
        }
    }
}

#[test]
fn heat_and_a_control_that_deviates_set_all_aside() {
    let machine = machine(1);
    ncu(&machine, &slow_on("", &machine));
    let (report, _) = check(&machine, &[], 6);
    nothing_counts(&report);
    report.tells_all(
        "gpu-sick",
        &[
            UUID,
            "may be sick: the immutable variant bsr_gemm/control reads +3.00 %",
            "Only another GPU shows",
        ],
    );
    // So is what is measured here and judged elsewhere.
    let elsewhere = ["profile", "--slice", "1/1", "--output", "tmp/elsewhere"];
    machine.run(&elsewhere).exits(0);
    let (report, _) = check(&machine, &["--from", "tmp/elsewhere"], 6);
    nothing_counts(&report);
    assert!(!report.fields("gpu-sick", "message").is_empty());

    ncu(&machine, WATCHED);
    let machine = machine.with("NVML_REASONS", "0x40");
    let (report, _) = check(&machine, &["v-n_1", "control"], 6);
    assert_eq!(report.0["variants"].as_array().unwrap().len(), 0);
    report.tells_all(
        "gpu-sick",
        &["its clock was lowered in every capture of bsr_gemm/v-n_1 (hw-thermal)"],
    );
}

const WAIVER: &str = r#"
[[waiver]]
variant = "bsr_gemm/baseline"
metric = "duration"
reason = "the new driver"
who = "Ada"
expires = 9999-12-31
"#;

#[test]
fn only_a_control_that_deviates_and_what_the_driver_reports_are_symptoms() {
    // The factors of the durations of control and change; what is set in the control's profile, by its place
    // or as a state of the GPU in all captures; the symptom.
    let table = r#"
as locked | 1 | 1 | | |
a GPU that reads 3 % slow | 1.03 | 1.03 | | | control
a GPU that reads 3 % fast | 0.97 | 0.97 | | | control
a change that is slow | 1 | 1.5 | | |
a change that is fast | 1 | 0.5 | | |
a control of other code | 1.03 | 1 | /provenance/artifact_sha256 | "0000000000000000000000000000000000000000000000000000000000000000" |
a control with other arguments | 1.03 | 1 | /identity/workload | ["--m", "1"] |
a control that is waived | 1.03 | 1 | | |
a control whose files changed | 1.03 | 1 | | |
a control that is incomplete | 1.03 | 1 | /kernels/0/metrics/duration/samples/0 | [] |
a control beside another process | 1.03 | 1 | other_processes | [{ "pid": 7 }] |
heat throughout | 1 | 1 | slowdown_readings | { "hw-thermal": 9 } | throttling
heat in one capture | 1 | 1 | /provenance/captures/1/device/slowdown_readings | { "hw-thermal": 9 } |
a power limit | 1 | 1 | slowdown_readings | { "sw-power-cap": 9 } |
an error of a program | 1 | 1 | xids | [13, 31, 43, 45] |
an error of the hardware | 1 | 1 | xids | [45, 79] | xid
"#;
    for [what, of_control, of_change, place, value, expected] in rows(table) {
        let factor = |text: &str| text.parse::<f64>().unwrap();
        let edit = |control: &mut Json| match place.rsplit_once('/') {
            None if place.is_empty() => {}
            None => {
                for capture in control["provenance"]["captures"].as_array_mut().unwrap() {
                    capture["device"][&place] = serde_json::from_str(&value).unwrap();
                }
            }
            Some((parent, key)) => {
                let parent = control.pointer_mut(parent).unwrap();
                let value = serde_json::from_str(&value).unwrap();
                match key.parse::<usize>() {
                    Ok(at) => parent[at] = value,
                    Err(_) => parent[key] = value,
                }
            }
        };
        let project = Project::steady();
        project.edit_profile("cp_async", |profile| {
            scale(profile, "duration", factor(&of_change))
        });
        project.edit_profile("baseline", |profile| {
            scale(profile, "duration", factor(&of_control));
            edit(profile);
        });
        project.configure("stored = \"4 %\"", "stored = \"1 %\"");
        if what.ends_with("files changed") {
            let source = "kernels/bsr_gemm/baseline.cu";
            project.write(source, project.read(source) + "// x\n");
        }
        if what.ends_with("is waived") {
            project.write("config.toml", project.read("config.toml") + WAIVER);
        }
        let config = Config::load(&project.path("config.toml")).unwrap();
        let names = ["bsr_gemm/baseline", "bsr_gemm/cp_async"].map(str::to_owned);
        let selection = Selection {
            names: names.to_vec(),
            ..Selection::default()
        };
        let plan = Selected::new(config, &selection, &[]).unwrap();
        let store = Store::open(&plan.config.baselines).unwrap();
        let (judge, _) = Judge::new(&plan, &store).unwrap();
        let recorded = project.path(RECORDED);
        let profile = |id: &VariantId| Profile::recorded(&recorded, id).unwrap().unwrap();
        let profiles = Captures {
            profiles: plan.variants.iter().map(|one| profile(&one.id)).collect(),
            ..Captures::default()
        };
        let sick = judge.sick_gpus(&profiles);
        let symptoms: Vec<_> = sick.iter().flat_map(|gpu| &gpu.symptoms).collect();
        let symptoms = json!(symptoms);
        let kind = symptoms[0]["kind"].as_str().unwrap_or_default();
        assert_eq!(kind, expected, "{what}: {sick:?}");
        if let [gpu] = &sick[..] {
            assert_eq!(gpu.is_certain(), expected == "xid", "{what}");
        }
    }
}

#[test]
fn a_slice_of_a_sick_gpu_is_not_measured_and_that_of_another_gpu_counts() {
    let machine = machine(2);
    let check_all = |variables: &[(&str, &str)], code: i32| {
        // Without times of earlier runs the first GPU measures the control.
        let _ = fs::remove_file(machine.path(".sparsek-gate/costs.json"));
        check_with(&machine, variables, &["--gpus", "all"], code).0
    };
    for (sick, variables, hook, symptom) in [
        (SECOND, &[("NVML_XID", "95")][..], String::new(), "Xid 95"),
        (
            SECOND,
            &[("NVML_REASONS", "0x80")],
            WATCHED.to_owned(),
            "power-brake",
        ),
        (
            UUID,
            &[],
            slow_on("ff", &machine),
            "the immutable variant bsr_gemm/control reads +3.00 %",
        ),
    ] {
        ncu(&machine, &hook);
        let variables = [variables, &[("NVML_SICK", SECOND)]].concat();
        let report = check_all(&variables, 6);
        let variants = report.0["variants"].as_array().unwrap();
        assert!(!variants.is_empty(), "{symptom}");
        for variant in variants {
            assert_ne!(variant["current"]["gpu_uuid"], sick, "{symptom}");
        }
        let unmeasured = report.fields("not-measured", "message");
        assert_eq!(unmeasured.len(), 3 - variants.len(), "{unmeasured:?}");
        report.tells_all("gpu-sick", &[sick, symptom]);
        assert_eq!(report.0["sick_gpus"][0]["uuid"], sick);
    }
    // A lock that no GPU reads any more: the GPU without a control shows no symptom.
    ncu(&machine, &slow_on("", &machine));
    let report = check_all(&[], 1);
    report.tells_all(
        "gpu-sick",
        &[UUID, "the immutable variant bsr_gemm/control"],
    );
    assert_eq!(report.fields("not-measured", "message").len(), 2);
    report.tells_all("regressed", &["`duration` of bsr_gemm_cp_async"]);
    // A change that is slow everywhere.
    ncu(&machine, "");
    let change = machine.read("change.sh");
    let slow = change.replace("h200", "h200-worse");
    machine.write("change.sh", slow);
    let report = check_all(&[], 1);
    assert!(report.denies("regressed"));
    assert_eq!(report.fields("gpu-sick", "message"), [""; 0]);
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
    let file = machine.path(file);
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
fn a_run_that_is_interrupted_leaves_no_profile_of_a_gpu_with_a_defect() {
    for file in ["grows", "lost"] {
        let machine = machine(1);
        let made = path(&machine, &format!("tmp/{file}"));
        let variable = format!("NVML_{}", file.to_uppercase());
        let machine = machine.with(&variable, &made);
        // The program of the second variant meets it, and hangs.
        let meets = from_process(5, file);
        let hangs = format!("[ ! -e tmp/{file} ] || {{ : >tmp/hangs; sleep 60; }} ;; esac");
        ncu(&machine, &meets.replace(";; esac", &format!("; {hangs}")));
        end_once(&machine, &["check"], "tmp/hangs", Signal::TERM);
        locks_no_control(&machine);
    }
}

#[test]
fn errors_in_the_place_of_events_do_not_hide_a_defect_and_a_watch_that_ends_is_said() {
    let machine = machine(1);
    // One that means that the library is gone.
    let gone = [("NVML_EVENTS_FAIL", "1"), ("NVML_EVENTS_ANSWER", "1")];
    let (report, _) = check_with(&machine, &gone, &["control"], 0);
    report.tells_all("gpu-unwatched", &["stopped reporting errors of the GPU"]);
    assert!(report.warns("gpu-unwatched"));

    // The process with the error ends once the driver was heard.
    let waits = format!("[ ! -e tmp/xid ] || {UNHEARD}");
    let hook = format!("{}\n{waits}", from_process(5, "xid"));
    ncu(&machine, &hook);
    let when = path(&machine, "tmp/xid");
    let for_a_while = [
        ("NVML_EVENTS_FAIL", "3"),
        ("NVML_XID", "48"),
        ("NVML_WHEN", &when),
    ];
    let (report, _) = check_with(&machine, &for_a_while, &[], 6);
    nothing_counts(&report);
    report.tells_all("gpu-sick", &["Xid 48"]);
}

#[test]
fn what_a_killed_run_saw_of_a_defect_counts_in_the_run_that_resumes_it() {
    let machine = machine(1);
    // Script and variables are what programs could read, and stay as they are.
    let (when, grows) = (path(&machine, "tmp/xid"), path(&machine, "tmp/grows"));
    let machine = machine.with("NVML_XID", "79").with("NVML_WHEN", &when);
    let machine = machine.with("NVML_GROWS", &grows);
    let hook = "case \" $* \" in *' --export '*) echo x >>tmp/count\n\
        if [ -e tmp/from ] && [ \"$(wc -l <tmp/count)\" -ge 5 ]; then\n\
        if [ -e tmp/defect ]; then : >tmp/xid; UNHEARD; fi\n\
        : >tmp/hangs; sleep 600; fi ;; esac";
    ncu(&machine, &hook.replace("UNHEARD", UNHEARD));
    let project = &machine.project;
    project.git("commit --quiet --all -m ncu");
    // The control has three processes; the fifth hangs.
    let killed = || {
        project.write("tmp/from", "");
        kill_once(&machine, &["check"], "tmp/hangs");
        for file in ["hangs", "count", "xid", "from", "defect"] {
            let _ = fs::remove_file(project.path(&format!("tmp/{file}")));
        }
    };
    let goes_on = |code: i32| {
        let (report, _) = check(&machine, &["--resume"], code);
        let _ = fs::remove_file(project.path("tmp/count"));
        let resumed = report.0["resumed"].as_array().map_or(0, Vec::len);
        (report, resumed)
    };
    killed();
    assert_eq!(goes_on(0).1, 1);

    // Nobody knows when memory errors came that are counted now.
    killed();
    project.write("tmp/grows", "");
    let (report, resumed) = goes_on(0);
    assert_eq!(resumed, 0);
    let why = report.message("resumed");
    let part = "the number of the GPU's memory errors";
    assert!(why.contains(part), "{why}");

    // The program hangs after an error, and somebody kills the run.
    project.write("tmp/defect", "");
    killed();
    let (report, resumed) = goes_on(6);
    assert_eq!(resumed, 0);
    nothing_counts(&report);
    report.tells_all("gpu-sick", &["Xid 79"]);
    // That run has ended, and the next one measures.
    assert_eq!(goes_on(0).1, 0);
}

#[test]
fn nothing_is_locked_from_a_gpu_that_is_sick_while_all_are_profiled() {
    let machine = machine(2);
    let xid = path(&machine, "tmp/xid");
    ncu(
        &machine,
        &format!("case \"$CUDA_VISIBLE_DEVICES $*\" in *fe\\ *--export*) : >'{xid}' ;; esac"),
    );
    let machine = machine.with("NVML_SICK", SECOND).with("NVML_XID", "95");
    let machine = machine.with("NVML_WHEN", &xid);
    machine.run("profile --gpus all").exits(6);
    let ran = machine.run(&[&LOCK[..], &["tester"]].concat()).exits(6);
    ran.says("0 baselines locked")
        .says("contains no profile of it");
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
        ran.ends(6, "the GPU reported a defect");
        let project = Project::steady();
        project.edit_profile("cp_async", edit);
        let report = project.run(&arguments).exits(6).json();
        assert_eq!(report.denied(), ["gpu-sick"], "{key}");
    }
}

#[test]
fn what_lies_in_the_folder_of_a_run_that_saw_a_sick_gpu_is_not_locked() {
    let project = Project::unlocked();
    project.write(&format!("{RECORDED}/sick.json"), "{}");
    let lock = [&LOCK[..], &["tester", "--from", RECORDED]].concat();
    project.run(&lock).ends(6, "gpu-sick");
}
