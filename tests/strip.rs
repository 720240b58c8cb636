//! Stripped copies of what was really recorded: nothing that names machine, people or sources is
//! left in them, and every number is. And measurements that are repeated for the machine's sake.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::stand_in::Machine;
use crate::common::{self, Project, RECORDED, Ran, repository};
use serde_json::Value as Json;
use sparsek_gate::capture::read_file;

/// What the recordings contain, and no copy may: folders, host, addresses, sources.
const FORBIDDEN: [&str; 9] = [
    "/opt/",
    "/usr/",
    "/home",
    "192.0.2.2",
    "fe80::",
    "#1 SMP",
    "#include <cuda_fp16.h>",
    "NVIDIA Corporation.  All rights reserved",
    "GPU-c3ca41f9",
];

fn contains(path: &Path, text: &str) -> bool {
    let bytes = fs::read(path).unwrap();
    let text = regex::bytes::Regex::new(&regex::escape(text)).unwrap();
    text.is_match(&bytes)
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path);
        }
    }
    files
}

#[test]
fn what_was_removed_is_listed_by_kind_and_count() {
    let project = Project::empty();
    let from = repository().join("tests/data/ncu/full_set.ncu-rep");
    let from = from.display().to_string();
    let answer = project
        .run(&["strip", &from, "copy.ncu-rep", "--format", "json"])
        .exits(0)
        .json();
    let removed = &answer.0["removed"];
    assert_eq!(removed["source file"], 2);
    assert_eq!(removed["machine code"], 1);
    assert_eq!(removed["command line"], 1);
    assert_eq!(removed["network address"], 3);
    assert_eq!(answer.0["files"][0]["kind"], "report");
    project
        .run(&["strip", &from, "with-code.ncu-rep", "--keep-machine-code"])
        .ends(0, "source file ×2")
        .says("debug information ×1");
    let kept = project.path("with-code.ncu-rep");
    assert!(contains(&kept, "\x7fELF") && !contains(&kept, "/opt/"));
    assert!(!contains(&project.path("copy.ncu-rep"), "\x7fELF"));
}

#[test]
fn a_stripped_folder_is_judged_as_the_original_and_says_what_it_is() {
    let project = Project::shipped();
    // Files, and not the links to them: of these no copy is made.
    let variant = "bsr_gemm/baseline";
    let recorded = repository().join("ci/recordings/h200").join(variant);
    fs::create_dir_all(project.path("own").join(variant)).unwrap();
    for file in files_below(&recorded) {
        let name = file.file_name().unwrap();
        fs::copy(&file, project.path("own").join(variant).join(name)).unwrap();
    }
    // `profile` also leaves logs and argv; the repository keeps those of one process.
    let texts = ["capture-1.argv", "capture-1.ncu.log"];
    for name in texts {
        let text = repository().join("tests/data/strip").join(name);
        assert!(contains(&text, "/opt/"), "{name} contains nothing to strip");
        fs::copy(text, project.path("own").join(variant).join(name)).unwrap();
    }
    let answer = project
        .run("strip own public --format json")
        .exits(0)
        .json();
    assert_eq!(answer.0["not_copied"].as_array().unwrap().len(), 0);
    let files = files_below(&project.path("public"));
    assert_eq!(files.len(), files_below(&recorded).len() + texts.len());
    for file in &files {
        for text in FORBIDDEN {
            assert!(!contains(file, text), "{} contains {text}", file.display());
        }
    }
    // A text loses its folders and nothing else.
    let folders = regex::Regex::new(r"(/[\w.-]+)+/").unwrap();
    for name in texts {
        let text = |folder: &str| project.read(&format!("{folder}/{variant}/{name}"));
        assert_eq!(text("public"), folders.replace_all(&text("own"), ""));
    }
    let check = |from: &str| {
        let ran = project.run(&["check", variant, "--from", from, "--format", "json"]);
        ran.exits(0).json()
    };
    let (original, copy) = (check("own"), check("public"));
    let verdicts = |report: &common::Report| -> Vec<Json> {
        let variants = report.0["variants"].as_array().unwrap().iter();
        variants.map(|one| one["comparisons"].clone()).collect()
    };
    assert_eq!(verdicts(&original), verdicts(&copy));
    // Its captures prove its samples, and it is reported as a copy.
    assert!(!copy.warns("profile-altered"));
    assert!(!copy.warns("capture-missing"));
    assert!(copy.warns("profile-stripped"));
    let profile = project.json("public/bsr_gemm/baseline/profile.json");
    assert_eq!(profile["provenance"]["stripped"], true);
    assert_eq!(profile["provenance"]["gpu_uuid"], "GPU-1");
    assert_eq!(profile["provenance"]["captures"][0]["argv"][0], "program");
}

#[test]
fn what_is_of_no_known_kind_is_listed_and_not_copied() {
    let project = Project::empty();
    project.write("kept/out/program.log", "read /home/ada/data/in.bin\n");
    project.write("kept/notes.odt", "my notes");
    project.write("kept/broken.json", "{");
    // Records of a run name the hashes of what it left.
    for record in ["run.json", "sick.json", "s/v/variant.json"] {
        project.write(&format!("kept/{record}"), "{}");
    }
    std::os::unix::fs::symlink("/etc/hostname", project.path("kept/link.log")).unwrap();
    let answer = project
        .run("strip kept public --format json")
        .exits(0)
        .json();
    let left: Vec<&str> = answer.0["not_copied"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["file"].as_str().unwrap())
        .collect();
    assert_eq!(
        left,
        [
            "broken.json", "link.log", "notes.odt", "run.json", "s/v/variant.json", "sick.json",
        ]
    );
    assert_eq!(files_below(&project.path("public")).len(), 1);
    assert_eq!(project.read("public/out/program.log"), "read in.bin\n");
}

#[test]
fn a_stripped_profile_cannot_be_locked() {
    let project = Project::unlocked();
    project.run("strip recorded public").exits(0);
    let again = project.run("strip public other");
    again.ends(2, "it is a stripped copy already");
    let lock = |from: &str| {
        project.run(&[
            "baseline", "--lock", "--reason", "r", "--who", "w", "--from", from, "--format", "json",
        ])
    };
    let refused = lock("public");
    assert_ne!(refused.code, 0);
    assert!(refused.json().denies("profile-stripped"));
    assert!(!project.path("baselines").exists());
    // The folder of one variant has no place in the copy.
    project
        .run("strip recorded/bsr_gemm/cp_async to/alone")
        .exits(0);
    project
        .run("check bsr_gemm/cp_async --from to/alone")
        .ends(6, "it is the folder of bsr_gemm/cp_async alone: mkdir -p DIR/bsr_gemm && mv to/alone DIR/bsr_gemm/cp_async");
}

#[test]
fn a_copy_appears_whole_or_not_at_all() {
    let project = Project::shipped();
    // The last profile of the folder is damaged: what was copied before goes again.
    project.write(
        &format!("{RECORDED}/bsr_gemm/occupancy/capture-1.ncu-rep"),
        b"NVR\0\x02\0\0\0\x08\x07\xff\0\0\0",
    );
    project
        .run("strip recorded public")
        .ends(2, "capture-1.ncu-rep");
    project.write("here/file.log", "x");
    project.run("strip recorded here").ends(2, "exists");
    project
        .run(&["strip", RECORDED, &format!("{RECORDED}/copy")])
        .ends(2, "to be copied");
    project
        .run("strip config.toml copy.toml")
        .ends(2, "files of this kind cannot be stripped");
    project.run("strip nowhere copy").exits(2);
    let left: Vec<String> = fs::read_dir(project.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".tmp") || name.contains("copy") || name == "public")
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn what_a_program_prints_in_the_form_of_a_header_is_stripped() {
    let gpu = "GPU-cdbc441e-9a00-8f7b-9de3-51af352a5239";
    let header = format!("\"Kernel Name\",\"{gpu}\",\"/home/ada/x.cu\",\"dram__bytes_read.sum\"\n");
    let copy = |text: &str| {
        let copy = sparsek_gate::strip::strip_bytes(Path::new("x.csv"), text.as_bytes(), false);
        String::from_utf8(copy.unwrap().unwrap()).unwrap()
    };
    assert_eq!(
        copy(&header),
        "\"Kernel Name\",\"GPU-1\",\"x.cu\",\"dram__bytes_read.sum\"\n"
    );
    // The names of columns and metrics are kept, whatever the users of this machine are called.
    let page = repository().join("tests/data/ncu/full_set.raw.csv");
    let page = fs::read_to_string(page).unwrap();
    let header = |text: &str| {
        text.lines()
            .find(|line| line.contains("\"Kernel Name\""))
            .map(str::to_owned)
    };
    assert_eq!(header(&copy(&page)), header(&page));
}

#[test]
fn a_page_that_names_a_number_as_its_host_has_no_copy() {
    let page = repository().join("tests/data/ncu/two_kernels_three_times.raw.csv");
    let text = fs::read_to_string(page).unwrap();
    let path = Path::new("page.csv");
    let copy = |text: &str| sparsek_gate::strip::strip_bytes(path, text.as_bytes(), false);
    copy(&text).unwrap().unwrap();
    // The block of another launch would be removed with the name.
    let block = "(256, 1, 1)";
    assert!(text.matches(block).count() > 1);
    let shifted = text.replacen("127.0.0.1", block, 1);
    assert_ne!(shifted, text);
    let refused = copy(&shifted).unwrap_err().to_string();
    common::contains(&refused, &["would not have the same numbers"]);
}

#[test]
fn a_report_that_cannot_be_read_has_no_copy() {
    let project = Project::empty();
    let made = common::repository().join("ci/recordings/h200/bsr_gemm/cp_async/counting.ncu-rep");
    let made = fs::read(made).unwrap();
    let mut refused = 0;
    for at in (16..made.len()).step_by(made.len() / 60) {
        let mut damaged = made.clone();
        // No field of a message begins with this.
        damaged[at] = 0x07;
        project.write("damaged.ncu-rep", &damaged);
        let read = project.run("inspect damaged.ncu-rep").code;
        let stripped = project.run("strip damaged.ncu-rep copy.ncu-rep").code;
        assert!(read == 0 || stripped == 2, "byte {at}: {read}, {stripped}");
        assert_eq!(project.path("copy.ncu-rep").exists(), stripped == 0);
        let _ = fs::remove_file(project.path("copy.ncu-rep"));
        refused += u32::from(read != 0);
    }
    assert!(refused > 5, "{refused}");
}

#[test]
fn a_file_whose_name_is_forbidden_leaves_no_copy() {
    let project = Project::empty();
    project.write("from/of-alice.json", "{}");
    let strip = |copy: &str, user: &str| {
        Ran::by(project.gate_of(&["strip", "from", copy]).env("USER", user))
    };
    strip("copy", "alice").ends(2, "its name contains `alice`");
    assert!(!project.path("copy").exists());
    strip("copy", "somebody").exits(0);
    // A name that is no text has a form in JSON all the same.
    let name = std::os::unix::ffi::OsStrExt::from_bytes(b"of-\xff.json");
    let name: &std::ffi::OsStr = name;
    fs::write(project.path("from").join(name), "{}").unwrap();
    let ran = project.run("strip from other --format json").exits(0);
    assert_eq!(ran.json().0["files"].as_array().unwrap().len(), 2);
}

/// A machine on which ncu finds the GPU taken so often, and whose measurements may be repeated.
fn busy(times: u32, retries: u32) -> Machine {
    let machine = Machine::new();
    machine.write("busy", times.to_string());
    machine.ncu(
        "case \" $* \" in *' --export '*)\n\
         left=$(cat busy)\n\
         if [ \"$left\" -gt 0 ]; then\n\
         echo $((left - 1)) >busy\n\
         while [ \"$1\" != --log-file ]; do shift; done\n\
         echo '==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) is concurrently collecting profiling data.' >\"$2\"\n\
         [ ! -e loses ] || : >lost\n\
         exit 9\nfi ;; esac",
    );
    let retries = format!("[profile]\nretries = {retries}\n");
    machine
        .configured("[profile]\n", &retries)
        .configured("\nprocesses = 4 ", "\nprocesses = 2 ")
}

#[test]
fn a_busy_profiler_is_tried_again_and_each_time_is_reported() {
    let machine = busy(2, 2);
    // There is no baseline, and nothing else is wrong.
    let ran = machine.run("check --format json").exits(4);
    let report = ran.json();
    assert_eq!(report.denied(), ["new-baseline"]);
    let messages = report.fields("retried", "message");
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(
        messages[0].starts_with("measured again, 1 of 2 retries:"),
        "{messages:?}"
    );
    assert!(messages[1].contains("2 of 2") && messages[1].contains("profiler-busy"));
    // Only the captures of the try that went well are there.
    let profile = machine.json(".sparsek-gate/profiles/bsr_gemm/baseline/profile.json");
    assert_eq!(
        profile["provenance"]["captures"].as_array().unwrap().len(),
        3
    );
}

#[test]
fn what_stays_busy_is_the_machines_finding_after_as_many_retries_as_are_configured() {
    for (retries, left) in [(0, "8"), (1, "7")] {
        let machine = busy(9, retries);
        let ran = machine.run("profile --format json").exits(3);
        assert_eq!(ran.json().denied(), ["profiler-busy"]);
        assert_eq!(machine.read("busy").trim(), left);
        let tries = ran.out.contains("(in each of 2 tries)");
        assert_eq!(tries, retries > 0, "{}", ran.out);
        let folder = ".sparsek-gate/profiles/bsr_gemm/baseline";
        let profile = machine.path(folder).join("profile.json");
        assert!(!profile.exists());
    }
}

#[test]
fn base_and_head_are_both_measured_again() {
    let machine = busy(1, 2);
    machine.commit();
    // The count lies in the folder that is measured in, so each side finds the GPU taken once.
    let report = machine.run("check --against HEAD --format json").json();
    let messages = report.fields("retried", "message");
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(report.variant("baseline")["mode"], "against");
    let folder = ".sparsek-gate/profiles/bsr_gemm/baseline";
    for side in ["profile.json", "base/profile.json"] {
        let profile = machine.json(&format!("{folder}/{side}"));
        let processes = profile["provenance"]["processes"].as_u64().unwrap();
        let captures = profile["provenance"]["captures"].as_array().unwrap().len();
        assert_eq!(captures as u64, 1 + processes, "{side}");
    }
}

#[test]
fn a_gpu_that_the_driver_loses_is_reported_as_lost() {
    let machine = busy(1, 0);
    let lost = machine.path("lost").display().to_string();
    machine.write("loses", "");
    let machine = machine.with("NVML_LOST", &lost);
    let report = machine.run("profile --format json").exits(3).json();
    assert_eq!(
        report.denied_besides(&["gpu-sick", "not-measured"]),
        ["gpu-lost"]
    );
    report.tells_all("gpu-lost", &["first seen as"]);
}

#[test]
fn a_crash_stays_one_where_the_driver_does_not_say_whether_the_gpu_is_there() {
    let machine = busy(0, 3);
    crashes_once(&machine);
    fs::remove_file(machine.path("tries")).unwrap();
    fs::remove_file(machine.path("lost")).unwrap();
    let asked = machine.path("lost").display().to_string();
    crashes_once(&machine.with("NVML_LOST", &asked).with("NVML_ANSWER", "999"));
}

/// A program that crashes fails after one try, and nothing else is found.
#[track_caller]
fn crashes_once(machine: &Machine) {
    machine.program(
        "bin/ncu",
        "#!/bin/sh\n\
         case \" $* \" in *' --export '*) echo x >>tries; : >lost; kill -SEGV $$ ;; esac\n\
         echo 'Version 2025.3.1.0 (build 36398880) (public-release)'\n",
    );
    let report = machine.run("profile --format json").exits(5).json();
    assert_eq!(report.denied(), ["program-failed"]);
    assert_eq!(machine.read("tries").lines().count(), 1);
    assert_eq!(report.warned(), Vec::<String>::new());
}

#[test]
fn a_disturbed_gpu_is_measured_again_and_its_finding_stands_when_it_stays_so() {
    let machine = busy(0, 1);
    // The driver of this machine knows a process that is not ours.
    let machine = machine.with("NVML_PROCESS", "1");
    let report: Ran = machine.run("profile --format json");
    let report = report.exits(6).json();
    assert_eq!(report.denied(), ["gpu-shared"]);
    report.tells_all("retried", &["another process was on the GPU"]);
}

#[test]
fn a_page_with_labels_or_in_utf_16_is_stripped_as_it_is_read() {
    let project = Project::empty();
    let recorded = repository().join("tests/data/ncu/raw_log_file.csv");
    let page = fs::read_to_string(recorded).unwrap();
    let page = page.replace("\"127.0.0.1\"", "\"alice-host\"");
    assert!(page.contains("alice-host"));
    let labelled: String = page
        .lines()
        .map(|line| format!("[pod/alice-pod/main] {line}\n"))
        .collect();
    let utf_16 = |page: &str| {
        page.encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<u8>>()
    };
    for (name, bytes) in [
        ("labelled.csv", labelled.into_bytes()),
        ("bare.csv", utf_16(&page)),
        ("marked.csv", utf_16(&format!("\u{feff}{page}"))),
    ] {
        let out = format!("out-{name}");
        let [from, to] = [name, &out].map(|name| project.path(name));
        fs::write(&from, bytes).unwrap();
        project.run(&["strip", name, &out]).exits(0);
        let copy = match to.is_dir() {
            true => files_below(&to).remove(0),
            false => to,
        };
        let text = String::from_utf8(fs::read(&copy).unwrap()).unwrap();
        assert!(!text.contains("alice"), "{name}");
        let (_, before) = read_file(&from).unwrap();
        let (_, after) = read_file(&copy).unwrap();
        assert_eq!(before.launches.len(), after.launches.len(), "{name}");
        let values = |recording: &ncu_report::Recording| {
            let launch = &recording.launches[0];
            launch.number("gpu__time_duration.sum")
        };
        assert_eq!(values(&before), values(&after), "{name}");
    }
}
