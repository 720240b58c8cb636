//! The static gate: judged from recorded static profiles, and from what nvcc makes where it is here.

use std::sync::LazyLock;

use crate::common::{self, Project, RECORDED, Ran, Report, are_here, scale, scale_processes};
use serde_json::{Value as Json, json};
use sparsek_gate::capture;
use sparsek_gate::config::Config;
use sparsek_gate::evidence::launch_mismatches;
use sparsek_gate::profile::Profile;

fn static_path() -> String {
    format!("{RECORDED}/bsr_gemm/cp_async/static.json")
}

/// The shipped project in which the compiler made something else of `cp_async`.
fn edited(edit: impl FnOnce(&mut Json)) -> Project {
    let project = Project::whole();
    let mut profile = project.json(&static_path());
    edit(&mut profile);
    project.write(&static_path(), profile.to_string());
    project
}

fn set(profile: &mut Json, metric: &str, value: f64) {
    let series = &mut profile["kernels"][0]["metrics"][metric];
    series["value"] = json!(value);
    series["samples"] = json!([[value]]);
}

fn check(project: &Project, code: i32) -> Report {
    project.check(&["bsr_gemm/cp_async"], code)
}

/// Locks what the compiler made.
fn lock_static(project: &Project, more: &[&str]) -> Ran {
    let lock = common::words("baseline --lock --static --reason x --who tests");
    project.run(&[&lock[..], more].concat())
}

const OF_RECORDING: [&str; 3] = ["--from", RECORDED, "bsr_gemm/cp_async"];

#[track_caller]
fn fails_with(project: &Project, code: i32, finding: &str, words: &[&str]) {
    let report = check(project, code);
    assert_eq!(report.denied(), [finding]);
    report.tells_all(finding, words);
}

#[test]
fn what_the_compiler_makes_is_judged_beside_what_was_measured() {
    let project = Project::whole();
    let report = project.check(&[], 0);
    let tiers: Vec<(&str, &str)> = report.0["variants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|variant| {
            let text = |key: &str| variant[key].as_str().unwrap();
            (text("variant"), text("tier"))
        })
        .collect();
    let both = |variant| [(variant, "counters"), (variant, "static")];
    assert_eq!(
        tiers,
        [
            "bsr_gemm/baseline", "bsr_gemm/cp_async", "bsr_gemm/occupancy"
        ]
        .map(both)
        .concat()
    );
}

#[test]
fn code_that_got_worse_or_of_which_something_is_not_known_fails_and_is_named() {
    // `stack_bytes` is an array in the frame, where no register spills.
    let rows = r#"
occupancy | 6 | 1 | regressed | `occupancy` of bsr_gemm_cp_async: 
spill_bytes | 1 | 1 | regressed | `spill_bytes` of bsr_gemm_cp_async: 0 byte → 1 byte
stack_bytes | 96 | 1 | regressed | `stack_bytes` of bsr_gemm_cp_async: 0 byte → 96 byte
tensor_instructions | | 6 | not-measured | `tensor_instructions` of bsr_gemm_cp_async is not known
/identity/gpu | "sm_80" | 4 | not-comparable | it was compiled for sm_80 (tier static), and has a baseline only for
/identity/compiler | "V13.1.80" | 4 | not-comparable | the compiler was V13.0.88, is V13.1.80
/variant | "bsr_gemm/baseline" | 5 | capture-unreadable | static profile
/identity/tier | "counters" | 5 | capture-unreadable | static profile
"#;
    for [place, value, code, finding, words] in common::rows(rows) {
        let edit = |profile: &mut Json| match profile.pointer_mut(&place) {
            Some(place) if !value.is_empty() => *place = serde_json::from_str(&value).unwrap(),
            _ if value.is_empty() => {
                let metrics = profile["kernels"][0]["metrics"].as_object_mut().unwrap();
                metrics.remove(&place).unwrap();
            }
            _ => set(profile, &place, value.parse().unwrap()),
        };
        fails_with(&edited(edit), code.parse().unwrap(), &finding, &[&words]);
    }
}

#[test]
fn more_registers_fail_only_where_the_occupancy_falls_or_may_fall() {
    // Shared memory limits this kernel to two blocks of 128 threads.
    let more = |edit: &dyn Fn(&mut Json)| {
        let report = check(&edited(|profile| edit(profile)), 0);
        assert!(report.message("regressed").contains("248 → 255"));
        let why = "while the occupancy does not fall";
        assert!(report.message("regressed").contains(why));
    };
    more(&|profile| set(profile, "registers", 255.0));
    let unlaunched = |side: &mut Json, registers: f64| {
        set(side, "registers", registers);
        let metrics = side["kernels"][0]["metrics"].as_object_mut().unwrap();
        metrics.retain(|name, _| !name.starts_with("occupancy") && name != "threads_per_block");
    };
    // Without a block size: the lock has none either.
    let locked = |was: f64, is: f64| {
        let project = edited(|profile| unlaunched(profile, was));
        for ending in ["lock.toml", "profile.json", "norm"] {
            let path = format!("baselines/sm-90a+static/bsr_gemm/cp_async.{ending}");
            let _ = std::fs::remove_file(project.path(&path));
        }
        project.drop_config_lines("[static.occupancy]");
        project.drop_config_lines("level = \"deny\"");
        lock_static(&project, &OF_RECORDING).exits(0);
        project.edit(&static_path(), |profile| unlaunched(profile, is));
        project
    };
    check(&locked(64.0, 64.0), 0);
    let report = check(&locked(64.0, 72.0), 1);
    report.tells_all("regressed", &["`registers` of bsr_gemm_cp_async: 64 → 72"]);
    let message = report.message("not-measured");
    assert!(message.contains("may fall: "), "{message}");
}

/// A recording whose code and samples are those of the base beside it, but for what `edit` changes in
/// the code of the current side.
fn beside_its_base(edit: impl FnOnce(&mut Json)) -> Project {
    let project = Project::whole();
    project.add_base("cp_async", |_| {});
    let of_base = Project::base_path("cp_async").replace("profile.json", "static.json");
    project.write(&of_base, project.read(&static_path()));
    project.edit(&static_path(), edit);
    project
}

#[test]
fn one_spilled_byte_only_warns_where_the_kernel_measured_beside_its_base_is_as_fast() {
    let one_more = |profile: &mut Json| set(profile, "spill_bytes", 1.0);
    let words = ["0 byte → 1 byte", "while the duration is not worse"];
    let project = beside_its_base(one_more);
    let report = project.check(&["cp_async"], 0);
    for word in words {
        assert!(report.message("regressed").contains(word), "{word}");
    }
    // Slower, by more than the tolerance or by an amount that is open.
    for factors in [[1.01; 4], [1.0, 1.02, 1.0, 1.02]] {
        let slower = beside_its_base(one_more);
        slower.edit_profile("cp_async", |head| {
            scale_processes(head, "duration", &factors);
        });
        let report = slower.check(&["cp_async"], 1);
        let found = report.0["findings"].as_array().unwrap();
        let mut messages = found.iter().filter_map(|one| one["message"].as_str());
        let spilled = messages
            .find(|text| text.contains("0 byte → 1 byte"))
            .unwrap();
        assert!(!spilled.contains("not worse"), "{spilled}");
    }
    // Nor by a stored baseline alone.
    let stored = beside_its_base(one_more);
    std::fs::remove_file(stored.path(&Project::base_path("cp_async"))).unwrap();
    let report = stored.check(&["cp_async"], 1);
    assert!(!report.message("regressed").contains("not worse"));
    // A project may want it strict.
    let table = "[static.spill_bytes]\nunless_as_fast = false\n\n[static.occupancy]";
    project.configure("[static.occupancy]", table);
    project.check(&["cp_async"], 1);
}

#[test]
fn lost_tensor_core_instructions_compiler_warnings_and_limits_fail_however_fast_the_kernel_is() {
    for (metric, value) in [("tensor_instructions", 0.0), ("performance_warnings", 1.0)] {
        let project = beside_its_base(|profile| set(profile, metric, value));
        let report = project.check(&["cp_async"], 1);
        assert!(report.message("regressed").contains(metric), "{metric}");
    }
    let project = beside_its_base(|profile| set(profile, "registers", 249.0));
    let table = "[static.registers]\nmax = 248\n\n[static.occupancy]";
    project.configure("[static.occupancy]", table);
    assert_eq!(project.check(&["cp_async"], 1).denied(), ["limit-exceeded"]);
}

#[test]
fn spills_of_a_kernel_that_does_other_work_are_not_excused() {
    let project = beside_its_base(|profile| set(profile, "spill_bytes", 1.0));
    project.drop_config_lines("work = ");
    project.edit_profile("cp_async", |head| scale(head, "flop_wmma", 0.75));
    let report = project.check(&["cp_async"], 4);
    let denied = report.denied();
    assert!(denied.contains(&"regressed".to_owned()), "{denied:?}");
    assert!(!report.message("regressed").contains("not worse"));
}

#[test]
fn a_static_profile_with_kernels_that_are_no_longer_selected_is_not_locked() {
    let project = Project::whole();
    lock_static(&project, &OF_RECORDING).exits(0);
    let config = project.read("config.toml");
    let narrowed = config.replace("\"regex:^bsr_gemm_\"", "\"regex:^bsr_gemm_t\"");
    project.write("config.toml", narrowed);
    lock_static(&project, &OF_RECORDING).ends(
        6,
        "it contains `bsr_gemm_cp_async`, which `kernels` does not select",
    );
}

#[test]
fn a_variant_of_which_one_part_cannot_be_locked_keeps_both() {
    let project = edited(|profile| set(profile, "registers", 247.0));
    let path = "baselines/sm-90a+static/bsr_gemm/cp_async.profile.json";
    let before = project.read(path);
    let lock = ["baseline", "--lock", "--reason", "x", "--from", RECORDED];
    let lock = |more: &[&str]| project.run(&[&lock[..], &["bsr_gemm/cp_async"], more].concat());
    let measured = project.json(&Project::profile_path("cp_async"));
    project.edit_profile("cp_async", |profile| {
        profile["provenance"]["overrides"] = json!(["X=1"]);
    });
    lock(&[])
        .ends(6, "0 baselines locked; not locked: bsr_gemm/cp_async\n")
        .says("sm-90a+static of ");
    assert_eq!(project.read(path), before);
    // The static part alone is sound.
    project.write(&Project::profile_path("cp_async"), measured.to_string());
    lock(&["--static"]).exits(0);
    assert_ne!(project.read(path), before);
}

#[test]
fn a_baseline_that_git_converted_or_left_out_says_so() {
    let folder = "baselines/sm-90a+static/bsr_gemm";
    let verify = |project: &Project| {
        let ran = project.run("baseline --verify bsr_gemm/cp_async");
        ran.exits(4)
    };
    let project = Project::whole();
    for ending in ["lock.toml", "norm.txt", "norm.txt.sha256", "profile.json"] {
        let path = format!("{folder}/cp_async.{ending}");
        project.write(&path, project.read(&path).replace('\n', "\r\n"));
    }
    let ran = verify(&project);
    assert_eq!(ran.out.matches("tampered").count(), 1, "{}", ran.out);
    ran.says("lines that end with CRLF")
        .says("baselines/** -text")
        .says(&format!("sed -i 's/\\r$//' {folder}/*"));
    // An edit is one whatever the line ends are.
    let norm = format!("{folder}/cp_async.norm.txt");
    let text = project.read(&norm);
    project.write(&norm, "version https://git-lfs.github.com/spec/v1\n");
    let ran = verify(&project);
    assert_eq!(ran.out.matches("tampered").count(), 1, "{}", ran.out);
    ran.says("cp_async.norm.txt is a pointer of Git LFS")
        .says("git lfs pull && echo 'baselines/** !filter !diff !merge -text'");
    project.write(&norm, text);
    project.replace(&norm, "registers: 248.00", "registers: 255.00");
    verify(&project)
        .says("is not what was locked")
        .says("baseline --lock --static --reason");
    std::fs::remove_file(project.path(&norm)).unwrap();
    verify(&project)
        .says("cp_async.norm.txt is missing")
        .says("git check-ignore -v");
}

#[test]
fn tensor_core_instructions_may_become_fewer_and_never_none() {
    let fewer = edited(|profile| set(profile, "tensor_instructions", 1.0));
    check(&fewer, 0);
    let none = edited(|profile| {
        set(profile, "tensor_instructions", 0.0);
        let code = &mut profile["kernels"][0]["code"];
        code["text_sha256"] = json!("00");
        let opcodes = code["opcodes"].as_object_mut().unwrap();
        opcodes.remove("HMMA.16816.F32");
        opcodes.insert("FFMA".to_owned(), json!(4096));
    });
    let words = [
        "never to none",
        "64 → 0",
        "FFMA 0 → 4096, HMMA.16816.F32 64 → 0",
    ];
    fails_with(&none, 1, "regressed", &words);
}

#[test]
fn a_compiler_warning_that_was_not_there_fails_and_says_what_the_compiler_said() {
    let project = edited(|profile| {
        set(profile, "performance_warnings", 1.0);
        profile["provenance"]["warnings"] = json!([{
            "code": "C7511",
            "message": "wgmma.mma_async instructions are serialized due to ... in the function 'bsr_gemm_cp_async'",
            "function": "bsr_gemm_cp_async"
        }, {
            "code": "C7511",
            "message": "... in the function 'a kernel of the harness'",
            "function": "a kernel of the harness"
        }]);
    });
    let report = check(&project, 1);
    assert_eq!(report.denied(), ["regressed"]);
    assert_eq!(
        report
            .codes("warn")
            .iter()
            .filter(|code| *code == "performance-loss")
            .count(),
        1
    );
    report.tells_all("performance-loss", &["(C7511): wgmma"]);
}

#[test]
fn a_missing_static_profile_does_not_pass() {
    let project = Project::whole();
    std::fs::remove_file(project.path(&static_path())).unwrap();
    fails_with(&project, 6, "profile-missing", &["static profile"]);
}

#[test]
fn a_variant_without_a_static_baseline_is_new() {
    let project = Project::whole();
    std::fs::remove_dir_all(project.path("baselines/sm-90a+static")).unwrap();
    fails_with(&project, 4, "new-baseline", &["no static baseline"]);
}

#[test]
fn a_lock_that_lies_elsewhere_is_named() {
    let project = Project::whole();
    project.commit();
    project.replace("config.toml", "[paths]", "[paths]\nbaselines = \"gate\"");
    let check = [&["check", "--baseline-ref", "none"][..], &OF_RECORDING].concat();
    project.run(&check).ends(
        4,
        "cp_async.lock.toml` is not where `paths.baselines` has them",
    );
}

#[test]
fn a_lock_that_was_removed_is_restored_and_not_begun_anew() {
    let project = Project::whole();
    project.commit();
    std::fs::remove_dir_all(project.path("baselines")).unwrap();
    let restore = "git checkout HEAD -- ':/baselines/";
    let check = [&["check", "--baseline-ref", "none"][..], &OF_RECORDING].concat();
    project.run(&check).ends(4, restore);
    let lock = ["baseline", "--lock", "--reason", "x", "--who", "tests"];
    let lock = [&lock[..], &OF_RECORDING].concat();
    project.run(&lock).ends(4, restore);
    project.git(&["commit", "-qam", "Begin anew"]);
    project.run(&lock).exits(0);
}

#[test]
fn an_edited_static_baseline_is_tampered_with() {
    let project = Project::whole();
    let norm = "baselines/sm-90a+static/bsr_gemm/cp_async.norm.txt";
    project.replace(norm, "registers: 248.00", "registers: 255.00");
    let report = check(&project, 4);
    assert!(report.denies("tampered"), "{:?}", report.denied());
    project.commit();
    let check = [&["check", "--baseline-ref", "none"][..], &OF_RECORDING].concat();
    project
        .run(&check)
        .ends(4, "git checkout COMMIT -- 'baselines/");
}

#[test]
fn a_static_lock_is_not_derived_from_captures() {
    let verify = ["baseline", "--verify", "--captures", RECORDED, "cp_async"];
    Project::whole()
        .run(&verify)
        .exits(6)
        .says("sm-90a+static/bsr_gemm/cp_async: as locked");
}

#[test]
fn a_lock_in_which_a_merge_left_a_conflict_is_called_that() {
    let project = Project::whole();
    for ending in common::ENDINGS {
        let file = format!("baselines/sm-90a+static/bsr_gemm/cp_async.{ending}");
        let text = project.read(&file);
        let left = format!("{text}<<<<<<< HEAD\n=======\n>>>>>>> x\n");
        project.write(&file, &left);
        let line = text.lines().count() + 1;
        let words = format!("git left a conflict of a merge in line {line} of ");
        fails_with(&project, 4, "tampered", &[&words]);
        // No merge goes on.
        let next = check(&project, 4).0.to_string();
        assert!(next.contains("git checkout COMMIT -- '"), "{next}");
        if ending == "lock.toml" {
            lock_static(&project, &OF_RECORDING)
                .ends(4, "cannot be read: git left a conflict of a merge in line");
        }
        project.write(&file, text);
    }
}

/// How a lock is broken, `P.*`, and the beginning of a command that the next step names.
const BROKEN: &str = r#"
sed -i 's/^reason = .*/reason = "x"/' P.lock.toml | git checkout HEAD
echo x > P.lock.toml | git checkout HEAD
rm P.profile.json | git checkout HEAD
sed -i 1d P.norm.txt | git checkout HEAD
sed -i 1d P.norm.txt | sparsek-gate
echo x > P.norm.txt.sha256 | sparsek-gate
mv baselines/sm-90a+static baselines/sm-80+static | mkdir
sed -i '1i<<<<<<< HEAD' P.profile.json; git rev-parse HEAD > .git/MERGE_HEAD; git update-ref refs/heads/main HEAD | git checkout MERGE_HEAD
sed -i '1i<<<<<<< HEAD' P.profile.json; git update-ref refs/remotes/origin/HEAD HEAD; git commit-tree -p HEAD -m x HEAD^{tree} > .git/MERGE_HEAD | git checkout HEAD
"#;

#[test]
fn each_next_step_on_a_broken_lock_repairs_it() {
    for [broken, begins] in common::rows(BROKEN) {
        let project = Project::whole();
        project.commit();
        let shell = |line: &str| {
            let mut command = std::process::Command::new("sh");
            command.args(["-ec", line]).current_dir(project.path(""));
            Ran::of(&command.output().unwrap()).exits(0)
        };
        shell(&broken.replace('P', "baselines/sm-90a+static/bsr_gemm/cp_async"));
        let report = check(&project, 4);
        assert!(report.denies("tampered"), "{broken}");
        let denied = report.findings("deny");
        let tampered = denied.iter().find(|one| one["code"] == "tampered");
        let next = &tampered.unwrap()["next"];
        let next = next.as_str().unwrap();
        let at = next.find(&format!("{begins} "));
        let command = &next[at.unwrap_or_else(|| panic!("{broken}: {next}"))..];
        let ends = command.find([',', ';']).unwrap_or(command.len());
        let command = command[..ends].split(" (").next().unwrap();
        match command.split_once("sparsek-gate ") {
            Some((_, lock)) => {
                assert_eq!(
                    lock,
                    "baseline --lock --static --reason '...' bsr_gemm/cp_async"
                );
                lock_static(&project, &OF_RECORDING).exits(0);
            }
            None => drop(shell(command)),
        }
        check(&project, 0);
    }
}

#[test]
fn locking_again_repairs_every_file_of_a_lock() {
    let project = Project::whole();
    let norm = "baselines/sm-90a+static/bsr_gemm/cp_async.norm.txt";
    let text = project.read(norm);
    project.write(norm, format!("{text}x"));
    check(&project, 4);
    lock_static(&project, &OF_RECORDING).exits(0);
    assert_eq!(project.read(norm), text);
    check(&project, 0);
    // A merge kept the lock of one side, and the other files of the other.
    let other = edited(|profile| set(profile, "spill_bytes", 255.0));
    lock_static(&other, &OF_RECORDING).exits(0);
    let lock = norm.replace("norm.txt", "lock.toml");
    project.write(&lock, other.read(&lock));
    check(&project, 4);
    lock_static(&project, &OF_RECORDING).exits(0);
    check(&project, 0);
}

#[test]
fn another_kernel_in_its_place_is_renamed_and_compared() {
    let project = edited(|profile| {
        profile["kernels"][0]["name"] = json!("bsr_gemm_fast");
        profile["kernels"][0]["mangled"] = json!("bsr_gemm_fast");
        set(profile, "spill_bytes", 255.0);
    });
    let config = project.read("config.toml");
    project.write(
        "config.toml",
        config.replace("expect = [\"bsr_gemm_cp_async\"]\n", ""),
    );
    let report = check(&project, 4);
    assert_eq!(report.denied(), ["kernels-changed", "regressed"]);
    assert!(
        report
            .message("kernels-changed")
            .ends_with("`bsr_gemm_fast` is new")
    );
}

#[test]
fn an_unnamed_namespace_is_the_same_in_every_folder() {
    let of_folder = |profile: &mut Json, hash: &str| {
        let kernel = &mut profile["kernels"][0];
        kernel["mangled"] = json!(format!("_ZN36_GLOBAL__N__{hash}_4_k_cu_19ff7e901kEPf"));
    };
    let project = edited(|profile| of_folder(profile, "56698014"));
    lock_static(&project, &OF_RECORDING).exits(0);
    project.edit(&static_path(), |profile| of_folder(profile, "32ca3b44"));
    check(&project, 0);
}

#[test]
fn overloads_are_told_apart_by_their_signature() {
    let project = edited(|profile| {
        let mut other = profile["kernels"][0].clone();
        for (kernel, end) in [(&mut profile["kernels"][0], "f"), (&mut other, "i")] {
            kernel["mangled"] = json!(format!("_Z17bsr_gemm_cp_asyncP{end}"));
            kernel["demangled"] = json!(format!("bsr_gemm_cp_async({end}*)"));
        }
        profile["kernels"].as_array_mut().unwrap().push(other);
    });
    lock_static(&project, &OF_RECORDING).ends(0, "bsr_gemm_cp_async(i*)/registers");
    project.edit(&static_path(), |profile| set(profile, "spill_bytes", 1.0));
    let words = ["`spill_bytes` of bsr_gemm_cp_async(f*): 0 byte → 1 byte"];
    fails_with(&project, 1, "regressed", &words);
    project.edit(&static_path(), |profile| {
        set(profile, "spill_bytes", 0.0);
        profile["kernels"].as_array_mut().unwrap().pop();
    });
    let report = check(&project, 4);
    report.tells_all("kernels-changed", &["bsr_gemm_cp_async(i*)"]);
    let next = &report.findings("deny")[0]["next"];
    assert!(
        next.as_str()
            .unwrap()
            .contains("--lock --from recorded --static"),
        "{next}"
    );
}

#[test]
fn what_is_locked_and_no_longer_gated_does_not_pass() {
    let project = Project::whole();
    let gated = [
        "registers", "spill_bytes", "stack_bytes", "performance_warnings", "tensor_instructions",
        "wgmma_instructions", "occupancy",
    ];
    let tables = gated.map(|name| format!("[static.{name}]\nlevel = \"record\"\n"));
    let config = project
        .read("config.toml")
        .replace("[static.occupancy]\nlevel = \"deny\"\n", &tables.concat());
    project.write("config.toml", config);
    let report = check(&project, 4);
    report.denies_only("variant-gone", &["only recorded"]);
    // Nor is anything said to be locked that is not.
    lock_static(&project, &[]).ends(0, "can be locked without a GPU");
}

#[test]
fn tolerances_limits_levels_and_waivers_hold_for_static_metrics() {
    let more = |table: &str, registers: f64| {
        let project = edited(|profile| set(profile, "registers", registers));
        let config = project.read("config.toml");
        project.write("config.toml", format!("{config}\n{table}\n"));
        project
    };
    let tolerance = "[static.registers]\nlevel = \"deny\"\ntolerance = '2'";
    check(&more(tolerance, 250.0), 0);
    check(&more(tolerance, 251.0), 1);
    let percent = "[static.registers]\nlevel = \"deny\"\ntolerance = '1 %'";
    check(&more(percent, 250.0), 0);
    check(&more(percent, 251.0), 1);
    let limit = "[static.registers]\nmax = 250\ntolerance = '100'";
    check(&more(limit, 250.0), 0);
    fails_with(
        &more(limit, 251.0),
        1,
        "limit-exceeded",
        &["above its limit of 250"],
    );
    let warn = check(&more("[static.registers]\nlevel = \"warn\"", 255.0), 0);
    assert!(warn.warns("regressed"));
    check(&more("[static.registers]\nlevel = \"record\"", 255.0), 0);
    let waiver = "[[waiver]]\nvariant = \"bsr_gemm/cp_async\"\nmetric = \"registers\"\nreason = \"known\"\nwho = \"Ada\"\nexpires = 2999-12-31";
    // Its tolerance is 0, and twice that covers nothing.
    let deny = "[static.registers]\nlevel = \"deny\"";
    let waiver = &format!("{deny}\n{waiver}");
    more(waiver, 255.0)
        .run("check --from recorded")
        .ends(2, "it needs an `up_to`");
    check(&more(&format!("{waiver}\nup_to = \"300\""), 255.0), 0);
}

#[test]
fn the_static_numbers_are_what_ncu_reported_of_the_same_kernels_on_an_h200() {
    let root = common::repository();
    let config = Config::load(&root.join("config.toml"))
        .map_err(|error| error.to_string())
        .unwrap();
    for variant in config
        .variants()
        .filter(|variant| variant.id.suite == "bsr_gemm" && !variant.experimental)
    {
        let folder = root
            .join("ci/recordings/h200/bsr_gemm")
            .join(&variant.id.variant);
        let compiled = Profile::read(&folder.join("static.json")).unwrap();
        let (_, report) = capture::read_file(folder.join("counting.ncu-rep")).unwrap();
        assert_eq!(launch_mismatches(variant, &compiled, &report), []);
        for metric in [
            "registers", "barriers", "static_shared_bytes", "driver_shared_bytes",
        ] {
            let mut other = compiled.clone();
            let series = other.kernels[0].metrics.get_mut(metric).unwrap();
            series.value = series.value.map(|value| value + 1.0);
            let found = launch_mismatches(variant, &other, &report);
            assert_eq!(found.len(), 1, "{metric}: {found:?}");
        }
    }
}

const LADDER: &str = r#"
[toolchain]
arch = "sm_90a"
flags = ["-O3"]

[metric.duration]
direction = "lower"
tolerance = '3 %'

[suite.s.variant.held]
source = "ladder.cu"
kernels = "held"
defines = { LIVE = 20 }

[suite.s.variant.reversed]
source = "ladder.cu"
kernels = "reversed"
"#;

/// The kernels of `tests/data/static/ladder.cu` in a repository of their own, with what nvcc makes
/// of them locked.
fn ladder() -> Project {
    static BUILT: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let project = Project::empty();
        let source = std::fs::read(data("ladder.cu")).unwrap();
        project.write("ladder.cu", source);
        project.write("config.toml", LADDER);
        project.write(".gitignore", ".sparsek-gate/\n");
        project.run("build").exits(0);
        lock_static(&project, &[]).exits(0);
        project.packed()
    });
    Project::unpacked(&BUILT)
}

fn data(name: &str) -> std::path::PathBuf {
    common::repository().join("tests/data/static").join(name)
}

fn check_static(project: &Project, more: &[&str]) -> Ran {
    project.run(&[&["check", "--static"], more].concat())
}

#[test]
fn the_static_check_passes_unchanged_code_and_fails_registers_that_cost_occupancy_and_spills() {
    if !are_here(&["nvcc", "nvdisasm"]) {
        return;
    }
    let project = ladder();
    check_static(&project, &[]).ends(
        0,
        "from compiled code; nothing ran, and launches are not checked",
    );
    project.configure("flags = [\"-O3\"]", "flags = [\"-O3\", \"-lineinfo\"]");
    check_static(&project, &["s/held"]).exits(0);
    project.write("config.toml", LADDER.replace("LIVE = 20", "LIVE = 21"));
    check_static(&project, &["s/held"])
        .ends(
            0,
            "`registers` of held: 26 → 27 (tolerance 0), while the occupancy",
        )
        .says("machine code: ")
        .says("changed: flags +`-DLIVE=21`, −`-DLIVE=20`");
    project.write("config.toml", LADDER.replace("LIVE = 20", "LIVE = 80"));
    // Read twice, all of them are live at once.
    let ladder = project.read("ladder.cu");
    let once = "for (int i = 0; i < LIVE; ++i) sum = sum * values[i] + 1.0F;";
    assert!(ladder.contains(once));
    project.write("ladder.cu", ladder.replace(once, &format!("{once} {once}")));
    check_static(&project, &["s/held"])
        .ends(1, "`registers` of held: 26 → ")
        .says("`occupancy` of held may fall: 50–100 % → ")
        .says("`__launch_bounds__` of the kernel");
    project.write("ladder.cu", ladder);
    project.write("config.toml", LADDER.replace("LIVE = 20", "LIVE = 21"));
    // What the person accepts is locked, with its reason.
    project.run("build").exits(0);
    lock_static(&project, &[]).ends(0, "registers: 26.00 → 27.00");
    let reversed = "kernels = \"reversed\"";
    let spilling = format!("{reversed}\nflags = [\"-maxrregcount=24\"]");
    project.configure(reversed, &spilling);
    check_static(&project, &[])
        .ends(1, "`spill_bytes` of reversed: 0 byte → ")
        .says("LDL.LU 0 → 1, ");
}

#[test]
fn the_static_check_compares_with_a_base_revision_that_it_compiles() {
    if !are_here(&["nvcc", "nvdisasm"]) {
        return;
    }
    let project = ladder();
    project.commit();
    project.configure("LIVE = 20", "LIVE = 21");
    // What is locked has no say beside a base.
    std::fs::remove_dir_all(project.path("baselines")).unwrap();
    let ran = check_static(
        &project,
        &["--against", "HEAD", "--format", "json", "s/held"],
    );
    let report = ran.json();
    assert_eq!(report.0["variants"][0]["mode"], "against");
    report.tells_all("regressed", &["`registers` of held: 26 → 27"]);
    // A file that git does not track is in no base.
    project.write(".gitignore", ".sparsek-gate/\ngenerated.h\n");
    project.write("generated.h", "");
    let ladder = project.read("ladder.cu");
    let generated = format!("#include \"generated.h\"\n{ladder}");
    project.write("ladder.cu", generated);
    project.commit();
    let ran = check_static(&project, &["-v", "--against", "HEAD", "s/held"]).exits(4);
    let ran = ran
        .says("base that is built lacks `generated.h`, which git does not track")
        .says("fatal error: generated.h: No such file")
        .says("there is neither a base nor a baseline");
    assert!(!ran.out.contains("no such variant"), "{}", ran.out);
}

#[test]
fn a_change_cannot_state_a_launch_at_which_its_registers_cost_nothing() {
    if !are_here(&["nvcc", "nvdisasm"]) {
        return;
    }
    let project = ladder();
    std::fs::remove_dir_all(project.path("baselines")).unwrap();
    let stated = |live: u32, threads: u32| {
        let defines = format!("LIVE = {live} }}\nthreads_per_block = {threads}");
        LADDER.replace("LIVE = 20 }", &defines)
    };
    project.write("config.toml", stated(20, 256));
    project.commit();
    project.write("config.toml", stated(80, 32));
    let ladder = project.read("ladder.cu");
    let once = "for (int i = 0; i < LIVE; ++i) sum = sum * values[i] + 1.0F;";
    project.write("ladder.cu", ladder.replace(once, &format!("{once} {once}")));
    check_static(&project, &["--against", "HEAD", "s/held"])
        .ends(1, "`occupancy` of held: 100.00 % → ")
        .says("limited by registers at 256 threads a block");
}

#[test]
fn a_program_of_nvcc_with_the_static_runtime_loads_no_code_of_the_project() {
    if !are_here(&["nvcc", "nvdisasm"]) {
        return;
    }
    let project = ladder();
    let builds = std::fs::read_dir(project.path(".sparsek-gate/builds")).unwrap();
    let programs = builds.map(|entry| entry.unwrap().path().join("program"));
    let programs: Vec<_> = programs.filter(|path| path.exists()).collect();
    assert!(!programs.is_empty());
    for path in programs {
        let program = std::fs::read(path).unwrap();
        // Otherwise `check --against` would measure it for every change of a source.
        assert_eq!(sparsek_gate::binary::loads_at_run_time(&program), None);
    }
}

#[test]
fn a_header_that_no_longer_hides_another_is_part_of_the_code() {
    if !are_here(&["nvcc", "nvdisasm"]) {
        return;
    }
    let project = ladder();
    let programs = || {
        let builds = std::fs::read_dir(project.path(".sparsek-gate/builds")).unwrap();
        let built = |entry: &std::fs::DirEntry| entry.path().join("program").exists();
        builds
            .filter(|entry| built(entry.as_ref().unwrap()))
            .count()
    };
    let before = programs();
    let source = project.read("ladder.cu");
    project.write("ladder.cu", format!("#include \"bound.cuh\"\n{source}"));
    project.configure(
        "flags = [\"-O3\"]",
        "flags = [\"-O3\", \"-isystem\", \"include\"]",
    );
    project.write("bound.cuh", "");
    project.write("include/bound.cuh", "#define FOUND_INSTEAD 1\n");
    project.commit();
    std::fs::remove_file(project.path("bound.cuh")).unwrap();
    // Head is built first, and what it was made of is in the base too.
    check_static(&project, &["--against", "HEAD", "s/held"]).says("base build");
    assert_eq!(
        programs(),
        before + 2,
        "base and head are programs of their own"
    );
}

#[test]
fn what_the_compiler_serializes_is_told_and_locked_by_its_count() {
    if !are_here(&["nvcc", "nvdisasm"]) {
        return;
    }
    let project = Project::empty();
    project.write(
        "wgmma.cu",
        std::fs::read(data("performance_loss.cu")).unwrap(),
    );
    let config = LADDER.split("[suite").next().unwrap();
    let suite = "[suite.s.variant.v]\nsource = \"wgmma.cu\"\nkernels = \"NAME\"\n";
    project.write(
        "config.toml",
        format!("{config}{}", suite.replace("NAME", "serialized")),
    );
    project.run("build").exits(0);
    lock_static(&project, &[]).exits(0);
    check_static(&project, &[])
        .ends(0, "performance-loss")
        .says("(C7511): Potential Performance Loss: wgmma.mma_async instructions are serialized");
}

#[test]
fn what_was_linked_apart_is_looked_into_too() {
    if !are_here(&["nvcc", "nvdisasm"]) {
        return;
    }
    let project = Project::empty();
    project.write("kernel.cu", std::fs::read(data("kernel.cu")).unwrap());
    let config = LADDER.split("[suite").next().unwrap();
    let suite = "[suite.s.variant.linked]\nsource = \"kernel.cu\"\nflags = [\"-rdc=true\"]\n";
    project.write("config.toml", format!("{config}{suite}"));
    let report = project.run("build --format json").exits(0).json();
    for variant in report.0["variants"].as_array().unwrap() {
        let kernel = &variant["kernels"]["_Z6kernelPf"];
        // sm_80 reserves the same shared memory; its registers and barriers would contradict.
        assert_eq!(kernel["driver_shared_bytes"], 1024, "{variant:#}");
        assert_eq!(
            kernel["opcodes"]["BAR.SYNC.DEFER_BLOCKING"], 1,
            "{variant:#}"
        );
        assert!(kernel["opcodes"].get("ULDC.64").is_some(), "{variant:#}");
    }
}

#[test]
fn a_base_of_an_earlier_check_is_not_taken_for_one_of_this() {
    if !are_here(&["nvcc", "nvdisasm"]) {
        return;
    }
    let project = ladder();
    project.commit();
    let base = ".sparsek-gate/profiles/s/held/base/static.json";
    for without in [&["check", "--static"][..], &["build"]] {
        check_static(&project, &["--against", "HEAD"]).exits(0);
        assert!(project.path(base).exists());
        project.run(without).exits(0);
        assert!(!project.path(base).exists(), "{without:?}");
    }
    // Nor what was built of other code, where this code does not build.
    project.write("ladder.cu", "not C++");
    project.run("build").exits(5);
    let head = ".sparsek-gate/profiles/s/held/static.json";
    assert!(!project.path(head).exists());
}
