//! `inputs` of a variant: files, folders and patterns, and what a change of one of them means.

use std::fs;
use std::os::unix::fs::symlink;

use crate::common::stand_in::Machine;
use crate::common::{self, Project, Ran};

const KEYS: &str = "run = [\"sh\", \"bench.sh\"]\nexpect = [\"bsr_gemm_baseline\"]\ninputs = ";

/// A machine whose only variant is made of these inputs.
fn machine(inputs: &str) -> Machine {
    let machine = Machine::new().configured(
        "source = \"kernels/a.cu\"\nexpect = [\"bsr_gemm_baseline\"]",
        &format!("{KEYS}{inputs}"),
    );
    machine.write(
        "bench.sh",
        "echo 'variant: baseline'\necho 'recorded: h200'\n",
    );
    for file in [
        "src/a.py", "src/b.txt", "src/deep/c.py", "src/deep/d[1].py", "src/.hidden.py",
        "src/__pycache__/a.cpython-312.pyc", "src/.git/config", "other/e.py",
    ] {
        machine.write(file, file);
    }
    machine
}

/// The files that a profile says it was made of.
fn sources(machine: &Machine) -> Vec<String> {
    machine.run("profile").exits(0);
    let profile = ".sparsek-gate/profiles/bsr_gemm/baseline/profile.json";
    let profile = machine.json(profile);
    let sources = profile["provenance"]["sources"].as_object().unwrap();
    sources.keys().cloned().collect()
}

#[test]
fn a_folder_and_a_pattern_stand_for_their_files() {
    let rows = r#"
["src"] | src/.hidden.py src/a.py src/b.txt src/deep/c.py src/deep/d[1].py
["./src/deep/", "bench.sh"] | bench.sh src/deep/c.py src/deep/d[1].py
["src/*.py"] | src/.hidden.py src/a.py
["./src/**/*.py", "src/a.py"] | src/.hidden.py src/a.py src/deep/c.py src/deep/d[1].py
['{src/deep,other}/?.py'] | other/e.py src/deep/c.py
['src/deep/d\[1\].py'] | src/deep/d[1].py
"#;
    for [inputs, files] in common::rows(rows) {
        let machine = machine(&inputs);
        assert_eq!(sources(&machine).join(" "), files, "{inputs}");
    }
}

#[test]
fn links_are_followed_and_lead_round_no_circle() {
    let machine = machine("[\"linked\"]");
    let folder = machine.path("linked");
    fs::create_dir(&folder).unwrap();
    symlink("../src/a.py", folder.join("file")).unwrap();
    symlink("../src/deep", folder.join("folder")).unwrap();
    symlink("..", folder.join("folder/../../src/deep/up")).unwrap();
    symlink(".", folder.join("here")).unwrap();
    let files = sources(&machine);
    for file in ["linked/file", "linked/folder/c.py", "linked/folder/up/a.py"] {
        assert!(files.iter().any(|found| found == file), "{file}: {files:?}");
    }
    assert!(!files.iter().any(|file| file.contains("here")), "{files:?}");
    // Like a single file that cannot be read.
    symlink("nowhere", folder.join("gone")).unwrap();
    machine
        .run("build")
        .ends(5, "the input `linked/gone` cannot be read");
}

#[test]
fn a_file_that_is_new_changed_or_gone_makes_another_program() {
    let machine = machine("[\"src/**/*.py\"]");
    machine.lock_measured();
    let profiles = ".sparsek-gate/profiles";
    let stale = |what: &str| {
        let ran = machine.run(&["check", "--from", profiles, "--format", "json"]);
        let report = ran.json();
        let messages = report.fields("profile-stale", "message");
        match what {
            "" => assert!(messages.is_empty(), "{messages:?}"),
            _ => assert!(
                messages.len() == 1 && messages[0].contains(what),
                "{what}: {:#}",
                report.0["findings"]
            ),
        }
    };
    stale("");
    machine.write("src/b.txt", "changed, and it does not match");
    stale("");
    machine.write("src/deep/new.py", "");
    stale("src/deep/new.py");
    fs::remove_file(machine.path("src/deep/new.py")).unwrap();
    stale("");
    machine.write("src/a.py", "changed");
    stale("src/a.py");
    machine.write("src/a.py", "src/a.py");
    fs::remove_file(machine.path("src/deep/c.py")).unwrap();
    stale("src/deep/c.py");
}

#[test]
fn a_new_file_of_a_pattern_changes_an_immutable_variant() {
    let machine = machine("[\"src/*.py\"]\nimmutable = true");
    machine.lock_measured();
    machine.run("check").exits(0);
    machine.write("src/more.py", "");
    machine.run("check").ends(
        4,
        "it is also built from `src/more.py`, which its lock does not list",
    );
}

#[test]
fn a_file_that_changes_while_the_variant_is_run_is_reported() {
    let machine = machine("[\"src/*.py\"]");
    machine.write(
        "bench.sh",
        "echo x >>src/a.py\necho 'variant: baseline'\necho 'recorded: h200'\n",
    );
    machine.run("profile").ends(5, "`src/a.py` changed");
}

#[test]
fn a_profile_of_another_filter_is_not_locked() {
    let machine = machine("[\"src/*.py\"]");
    machine.run("profile").exits(0);
    let lock = ["baseline", "--lock", "--reason", "first"];
    for (now, words) in [
        ("kernels = \"regex:_gemm_\"", "and now `regex:_gemm_`"),
        ("", "and now every kernel"),
    ] {
        let was = "kernels = \"regex:^bsr_gemm_\"";
        let original = machine.read("config.toml");
        machine.configure(was, now);
        machine
            .run(&lock)
            .ends(
                6,
                "`kernels` in the configuration (it selected `regex:^bsr_gemm_`",
            )
            .says(words);
        machine.write("config.toml", original);
    }
    machine.run(&lock).exits(0);
}

#[test]
fn profile_prints_a_line_and_every_value_where_it_is_asked_for() {
    let machine = machine("[\"src/*.py\"]");
    let line = "bsr_gemm/baseline on NVIDIA H200: duration of bsr_gemm_baseline ";
    let short = machine.run("profile").exits(0).out;
    assert!(short.starts_with(line), "{short}");
    common::contains(&short, &[" us, 80 launches in 4 processes\n"]);
    assert!(!short.contains("sm_active"), "{short}");
    let all = machine.run("profile -v").exits(0).out;
    common::contains(&all, &["bsr_gemm/baseline on NVIDIA H200\n  "]);
    assert!(all.contains("\n  sm_active: "), "{all}");
    let quiet = machine.run("profile -q").exits(0).out;
    assert!(!quiet.contains("bsr_gemm/baseline"), "{quiet}");
    assert!(quiet.contains("profiles in "), "{quiet}");
}

/// A machine whose only variant is a Python program with modules of its own.
fn python_machine() -> Machine {
    let machine = Machine::new().configured(
        "source = \"kernels/a.cu\"",
        "run = [\"python3\", \"bench/bench.py\"]\ninputs = [\"bench/data.txt\"]",
    );
    let bench = "import json, ops.gemm as gemm\nfrom late import *\ngemm.say()\n";
    let gemm = "from . import (\n    words,\n)\ndef say():\n    words.say()\n";
    let words = "def say():\n    print('variant: baseline\\nrecorded: h200')\n";
    for (file, text) in [
        ("bench/data.txt", ""),
        ("bench/bench.py", bench),
        ("bench/ops/__init__.py", ""),
        ("bench/ops/gemm.py", gemm),
        ("bench/ops/words.py", words),
        ("bench/ops/unused.py", ""),
        ("bench/late.py", "import importlib\n"),
        ("json.py", ""),
    ] {
        machine.write(file, text);
    }
    machine
}

#[test]
fn the_modules_that_a_python_program_imports_are_inputs() {
    let machine = python_machine();
    let files = [
        "bench/bench.py", "bench/data.txt", "bench/late.py", "bench/ops/__init__.py",
        "bench/ops/gemm.py", "bench/ops/words.py",
    ];
    assert_eq!(sources(&machine), files);
    let lock = ["baseline", "--lock", "--reason", "first"];
    machine.run(&lock).exits(0);
    machine.replace("bench/ops/words.py", "h200", "h200 h200");
    let ran = machine.run("check --from .sparsek-gate/profiles");
    ran.says("profile-stale").says("bench/ops/words.py");
    machine.run(&lock).ends(6, "`bench/ops/words.py` changed");
    machine.replace("bench/ops/words.py", "h200 h200", "h200");
    // A module that is imported from now on.
    machine.write("bench/late.py", "import ops.unused\n");
    machine.run(&lock).ends(6, "bench/ops/unused.py");
}

#[test]
fn a_python_program_is_measured_for_any_change_whatever_it_seems_to_import() {
    let machine = python_machine();
    let project = &machine.project;
    machine.without("__pycache__/\n");
    machine.lock_measured();
    project.commit();
    let measured = |why: &str| {
        project.write("journal", "");
        let ran = machine.run("check --against HEAD").exits(0);
        let measured = !project.read("journal").is_empty();
        assert_eq!(measured, !why.is_empty(), "{}", ran.err);
        assert!(ran.err.contains(why), "{}", ran.err);
    };
    measured("");
    // Imported, and not seen to be.
    project.write(
        "bench/ops/words.py",
        project.read("bench/ops/words.py") + "#",
    );
    measured("its program differs");
    project.git("checkout --quiet .");
    project.write("bench/ops/unused.py", "#");
    measured("what it reads is not known for certain, and `bench/ops/unused.py` changed");
}

/// What the tool says of these inputs, in a project with an empty folder.
fn refused(inputs: &str, words: &[&str]) {
    let project = Project::empty();
    let config = format!(
        "[toolchain]\narch = \"sm_90a\"\n\n\
         [metric.duration]\ncounter = \"gpu__time_duration.sum\"\ndirection = \"lower\"\n\
         tolerance = '3 %'\n\n\
         [suite.s.variant.v]\nrun = [\"sh\", \"bench.sh\"]\ninputs = [\"{inputs}\"]\n"
    );
    project.write("config.toml", config);
    project.write("bench.sh", "true\n");
    fs::create_dir(project.path("empty")).unwrap();
    let ran: Ran = project.run("build").exits(2);
    for word in words {
        assert!(ran.err.contains(word), "{word:?} is not in\n{}", ran.err);
    }
}

#[test]
fn inputs_that_stand_for_nothing_or_cannot_be_read_are_errors_of_the_configuration() {
    let nothing = "matches no file\n  next: correct the pattern, or remove it";
    let named = "in `inputs` of s/v";
    refused("src/*.py", &["`src/*.py`", named, nothing]);
    refused("empty/**", &["`empty/**`", named, nothing]);
    refused("BENCH*", &["`BENCH*`", named, nothing]);
    refused(
        "empty",
        &[
            "`empty`",
            named,
            "is a folder without files\n  next: name the folder",
        ],
    );
    refused(
        "src/[a",
        &[
            "config.toml:11:10",
            "`src/[a` cannot be read as a pattern: unclosed",
            "`**` for any folders",
        ],
    );
    for outside in ["../*.py", "/tmp/*", "src/../../*", ""] {
        refused(
            outside,
            &[
                "config.toml:11:10",
                "must be a relative path below the configuration's folder",
            ],
        );
    }
}
