//! The static gate: judged from recorded static profiles, and from what nvcc makes where it is here.

use std::sync::LazyLock;

use crate::common::{
    self, Project, RECORDED, Ran, Report, VARIANTS, are_here, scale, scale_processes,
};
use serde_json::{Value as Json, json};
use sparsek_gate::capture;
use sparsek_gate::config::{Config, Variant};
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
fn lock_static(project: &Project, more: &str) -> Ran {
    project.run(&format!(
        "baseline --lock --static --reason x --who tests {more}"
    ))
}

const OF_RECORDING: &str = "--from recorded bsr_gemm/cp_async";
const CHECK: &str = "check --baseline-ref none --from recorded bsr_gemm/cp_async";

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
    let judged = report.0["variants"].as_array().unwrap().iter();
    let tiers = judged.map(|one| format!("{} {}", one["variant"], one["tier"]));
    let both =
        |variant| ["counters", "static"].map(|it| format!("\"bsr_gemm/{variant}\" \"{it}\""));
    assert!(tiers.eq(VARIANTS.iter().flat_map(both)));
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
    let report = check(&edited(|profile| set(profile, "registers", 255.0)), 0);
    let words = ["248 → 255", "while the occupancy does not fall"];
    report.tells_all("regressed", &words);
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
        lock_static(&project, OF_RECORDING).exits(0);
        project.edit(&static_path(), |profile| unlaunched(profile, is));
        project
    };
    check(&locked(64.0, 64.0), 0);
    let report = check(&locked(64.0, 72.0), 1);
    report.tells_all("regressed", &["`registers` of bsr_gemm_cp_async: 64 → 72"]);
    report.tells_all("not-measured", &["may fall: "]);
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
    report.tells_all("regressed", &words);
    // Slower, by more than the tolerance or by an amount that is open.
    for factors in [[1.01; 4], [1.0, 1.02, 1.0, 1.02]] {
        let slower = beside_its_base(one_more);
        slower.edit_profile("cp_async", |head| {
            scale_processes(head, "duration", &factors);
        });
        let report = slower.check(&["cp_async"], 1);
        let found = report.findings("deny").into_iter();
        let mut messages = found.map(|one| one["message"].to_string());
        let spilled = messages.find(|text| text.contains("0 byte → 1 byte"));
        assert!(!spilled.unwrap().contains("not worse"));
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
    lock_static(&project, OF_RECORDING).exits(0);
    let config = project.read("config.toml");
    project.write(
        "config.toml",
        config.replace("regex:^bsr_gemm_", "regex:^bsr_gemm_t"),
    );
    let words = "it contains `bsr_gemm_cp_async`, which `kernels` does not select";
    lock_static(&project, OF_RECORDING).ends(6, words);
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
    let project = Project::whole();
    let verify = || project.run("baseline --verify bsr_gemm/cp_async").exits(4);
    for ending in common::ENDINGS {
        let path = format!("{folder}/cp_async.{ending}");
        project.write(&path, project.read(&path).replace('\n', "\r\n"));
    }
    let ran = verify();
    assert_eq!(ran.out.matches("tampered").count(), 1, "{}", ran.out);
    ran.says("lines that end with CRLF")
        .says("baselines/** -text")
        .says(&format!("sed -i 's/\\r$//' {folder}/*"));
    // An edit is one whatever the line ends are.
    let norm = format!("{folder}/cp_async.norm.txt");
    let text = project.read(&norm);
    project.write(&norm, "version https://git-lfs.github.com/spec/v1\n");
    let ran = verify();
    assert_eq!(ran.out.matches("tampered").count(), 1, "{}", ran.out);
    ran.says("cp_async.norm.txt is a pointer of Git LFS")
        .says("git lfs pull && echo 'baselines/** !filter !diff !merge -text'");
    project.write(&norm, text);
    project.replace(&norm, "registers: 248.00", "registers: 255.00");
    let ran = verify().says("is not what was locked");
    ran.says("baseline --lock --static --reason");
    std::fs::remove_file(project.path(&norm)).unwrap();
    let ran = verify().says("cp_async.norm.txt is missing");
    ran.says("git check-ignore -v");
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
fn a_kernel_that_stores_nothing_any_more_is_other_work() {
    let none = edited(|profile| {
        let code = &mut profile["kernels"][0]["code"];
        code["text_sha256"] = json!("00");
        let opcodes = code["opcodes"].as_object_mut().unwrap();
        opcodes.retain(|name, _| !name.starts_with("STG"));
    });
    fails_with(&none, 4, "work-changed", &["stores nothing any more"]);
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
    let words = "cp_async.lock.toml` is not where `paths.baselines` has them";
    project.run(CHECK).ends(4, words);
}

#[test]
fn a_lock_that_was_removed_is_restored_and_not_begun_anew() {
    let project = Project::whole();
    project.commit();
    std::fs::remove_dir_all(project.path("baselines")).unwrap();
    let restore = "git checkout HEAD -- ':/baselines/";
    project.run(CHECK).ends(4, restore);
    let lock = format!("baseline --lock --reason x --who tests {OF_RECORDING}");
    project.run(&lock).ends(4, restore);
    project.commit();
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
    let words = "git checkout COMMIT -- 'baselines/";
    project.run(CHECK).ends(4, words);
}

#[test]
fn a_static_lock_is_not_derived_from_captures() {
    let ran = Project::whole().run("baseline --verify --captures recorded cp_async");
    ran.ends(4, "sm-90a+static/bsr_gemm/cp_async: as locked");
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
            lock_static(&project, OF_RECORDING)
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
        project.shell(&broken.replace('P', "baselines/sm-90a+static/bsr_gemm/cp_async"));
        let report = check(&project, 4);
        assert!(report.denies("tampered"), "{broken}");
        let next = report.fields("tampered", "next")[0];
        let at = next.find(&format!("{begins} "));
        let command = &next[at.unwrap_or_else(|| panic!("{broken}: {next}"))..];
        let ends = command.find([',', ';']).unwrap_or(command.len());
        let command = command[..ends].split(" (").next().unwrap();
        match command.split_once("sparsek-gate ") {
            Some((_, lock)) => {
                let expected =
                    "baseline --lock --from recorded --static --reason '...' bsr_gemm/cp_async";
                assert_eq!(lock, expected);
                lock_static(&project, OF_RECORDING).exits(0);
            }
            None => drop(project.shell(command)),
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
    lock_static(&project, OF_RECORDING).exits(0);
    assert_eq!(project.read(norm), text);
    check(&project, 0);
    // A merge kept the lock of one side, and the other files of the other.
    let other = edited(|profile| set(profile, "spill_bytes", 255.0));
    lock_static(&other, OF_RECORDING).exits(0);
    let lock = norm.replace("norm.txt", "lock.toml");
    project.write(&lock, other.read(&lock));
    check(&project, 4);
    lock_static(&project, OF_RECORDING).exits(0);
    check(&project, 0);
}

#[test]
fn another_kernel_in_its_place_is_renamed_and_compared() {
    let project = edited(|profile| {
        profile["kernels"][0]["name"] = json!("bsr_gemm_fast");
        profile["kernels"][0]["mangled"] = json!("bsr_gemm_fast");
        set(profile, "spill_bytes", 255.0);
    });
    project.configure("expect = [\"bsr_gemm_cp_async\"]\n", "");
    let report = check(&project, 4);
    assert_eq!(report.denied(), ["kernels-changed", "regressed"]);
    report.tells_all("kernels-changed", &["`bsr_gemm_fast` is new"]);
    // The same name in C++: nothing is gone, and what changed is said.
    let project = edited(|profile| {
        profile["kernels"][0]["mangled"] = json!("_Z17bsr_gemm_cp_asyncPf");
    });
    let other = "has another signature or linkage than in the baseline: it was `bsr_gemm_cp_async`, is `_Z17";
    check(&project, 4).tells_all("kernels-changed", &[other]);
}

#[test]
fn an_unnamed_namespace_is_the_same_in_every_folder() {
    let of_folder = |profile: &mut Json, hash: &str| {
        let kernel = &mut profile["kernels"][0];
        kernel["mangled"] = json!(format!("_ZN36_GLOBAL__N__{hash}_4_k_cu_19ff7e901kEPf"));
    };
    let project = edited(|profile| of_folder(profile, "56698014"));
    lock_static(&project, OF_RECORDING).exits(0);
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
    lock_static(&project, OF_RECORDING).ends(0, "bsr_gemm_cp_async(i*)/registers");
    project.edit(&static_path(), |profile| set(profile, "spill_bytes", 1.0));
    let words = ["`spill_bytes` of bsr_gemm_cp_async(f*): 0 byte → 1 byte"];
    fails_with(&project, 1, "regressed", &words);
    project.edit(&static_path(), |profile| {
        set(profile, "spill_bytes", 0.0);
        profile["kernels"].as_array_mut().unwrap().pop();
    });
    let report = check(&project, 4);
    report.tells_all("kernels-changed", &["bsr_gemm_cp_async(i*)"]);
    let next = report.findings("deny")[0]["next"].to_string();
    common::contains(&next, &["--lock --from recorded --static"]);
}

#[test]
fn what_is_locked_and_no_longer_gated_does_not_pass() {
    let project = Project::whole();
    let gated = [
        "registers", "spill_bytes", "stack_bytes", "performance_warnings", "tensor_instructions",
        "wgmma_instructions", "occupancy",
    ];
    let tables = gated.map(|name| format!("[static.{name}]\nlevel = \"record\"\n"));
    let table = "[static.occupancy]\nlevel = \"deny\"\n";
    project.configure(table, &tables.concat());
    fails_with(&project, 4, "variant-gone", &["only recorded"]);
    // Nor is anything said to be locked that is not.
    lock_static(&project, "").ends(0, "can be locked without a GPU");
}

#[test]
fn tolerances_limits_levels_and_waivers_hold_for_static_metrics() {
    let more = |table: &str, registers: f64| {
        let project = edited(|profile| set(profile, "registers", registers));
        project.append("config.toml", &format!("\n[static.registers]\n{table}\n"));
        project
    };
    for tolerance in ["'2'", "'1 %'"] {
        let table = format!("level = \"deny\"\ntolerance = {tolerance}");
        check(&more(&table, 250.0), 0);
        check(&more(&table, 251.0), 1);
    }
    let limit = "max = 250\ntolerance = '100'";
    check(&more(limit, 250.0), 0);
    let words = ["above its limit of 250"];
    fails_with(&more(limit, 251.0), 1, "limit-exceeded", &words);
    let warn = check(&more("level = \"warn\"", 255.0), 0);
    assert!(warn.warns("regressed"));
    check(&more("level = \"record\"", 255.0), 0);
    let waiver = "[[waiver]]\nvariant = \"bsr_gemm/cp_async\"\nmetric = \"registers\"\nreason = \"known\"\nwho = \"Ada\"\nexpires = 2999-12-31";
    // Its tolerance is 0, and twice that covers nothing.
    let waiver = &format!("level = \"deny\"\n{waiver}");
    let ran = more(waiver, 255.0).run("check --from recorded");
    ran.ends(2, "it needs an `up_to`");
    check(&more(&format!("{waiver}\nup_to = \"300\""), 255.0), 0);
}

#[test]
fn the_static_numbers_are_what_ncu_reported_of_the_same_kernels_on_an_h200() {
    let root = common::repository();
    let config = Config::load(&root.join("config.toml")).unwrap();
    let gated = |it: &&Variant| it.id.suite == "bsr_gemm" && !it.experimental;
    for variant in config.variants().filter(gated) {
        let folder = root.join(format!("ci/recordings/h200/{}", variant.id));
        let compiled = Profile::read(&folder.join("static.json")).unwrap();
        let (_, report) = capture::read_file(folder.join("counting.ncu-rep")).unwrap();
        assert_eq!(launch_mismatches(variant, &compiled, [&report]), []);
        for metric in [
            "registers", "barriers", "static_shared_bytes", "driver_shared_bytes",
        ] {
            let mut other = compiled.clone();
            let series = other.kernels[0].metrics.get_mut(metric).unwrap();
            series.value = series.value.map(|value| value + 1.0);
            let found = launch_mismatches(variant, &other, [&report]);
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
        lock_static(&project, "").exits(0);
        project.packed()
    });
    Project::unpacked(&BUILT)
}

/// The values are read twice, and so all of them are live at once.
fn hold_more(project: &Project) {
    let once = "for (int i = 0; i < LIVE; ++i) sum = sum * values[i] + 1.0F;";
    project.replace("ladder.cu", once, &format!("{once} {once}"));
}

fn data(name: &str) -> std::path::PathBuf {
    common::repository().join("tests/data/static").join(name)
}

fn check_static(project: &Project, more: &str) -> Ran {
    project.run(&format!("check --static {more}"))
}

#[test]
fn the_static_check_passes_unchanged_code_and_fails_registers_that_cost_occupancy_and_spills() {
    if !are_here(&["nvcc", "nvdisasm"]) {
        return;
    }
    let project = ladder();
    let words = "from compiled code; nothing ran, and launches are not checked";
    check_static(&project, "").ends(0, words);
    project.configure("flags = [\"-O3\"]", "flags = [\"-O3\", \"-lineinfo\"]");
    check_static(&project, "s/held").exits(0);
    project.write("config.toml", LADDER.replace("LIVE = 20", "LIVE = 21"));
    let words = "`registers` of held: 26 → 27 (tolerance 0), while the occupancy";
    check_static(&project, "s/held")
        .ends(0, words)
        .says("machine code: ")
        .says("changed: flags +`-DLIVE=21`, −`-DLIVE=20`");
    project.write("config.toml", LADDER.replace("LIVE = 20", "LIVE = 80"));
    let ladder = project.read("ladder.cu");
    hold_more(&project);
    check_static(&project, "s/held")
        .ends(1, "`registers` of held: 26 → ")
        .says("`occupancy` of held may fall: 50–100 % → ")
        .says("`__launch_bounds__` of the kernel");
    project.write("ladder.cu", ladder);
    project.write("config.toml", LADDER.replace("LIVE = 20", "LIVE = 21"));
    // What the person accepts is locked, with its reason.
    project.run("build").exits(0);
    lock_static(&project, "").ends(0, "registers: 26.00 → 27.00");
    let reversed = "kernels = \"reversed\"";
    let spilling = format!("{reversed}\nflags = [\"-maxrregcount=24\"]");
    project.configure(reversed, &spilling);
    check_static(&project, "")
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
    let ran = check_static(&project, "--against HEAD --format json s/held");
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
    let ran = check_static(&project, "-v --against HEAD s/held").exits(4);
    let ran = ran
        .says("base that is built lacks `generated.h`, which git does not track")
        .says("fatal error: generated.h: No such file")
        .says("there is neither a base nor a baseline");
    assert!(!ran.out.contains("no such variant"), "{}", ran.out);
    project.git(&["rm", "--quiet", "--cached", "ladder.cu"]);
    project.git(&["commit", "--quiet", "--message=untracked"]);
    check_static(&project, "--against HEAD s/held")
        .exits(4)
        .says("base that is built lacks `ladder.cu`, which git does not track");
    project.commit();
    // A base whose configuration is elsewhere is none from before the gate.
    let (here, there) = (
        project.path("config.toml"),
        project.path("gate/config.toml"),
    );
    std::fs::create_dir(project.path("gate")).unwrap();
    std::fs::rename(&here, &there).unwrap();
    project.commit();
    std::fs::rename(&there, &here).unwrap();
    check_static(&project, "--against HEAD s/held").ends(
        4,
        "its configuration is `gate/config.toml`, which was moved since",
    );
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
    hold_more(&project);
    check_static(&project, "--against HEAD s/held")
        .ends(1, "`occupancy` of held: 100.00 % → ")
        .says("limited by registers at 256 threads a block");
}

/// Programs that were built.
fn programs(project: &Project) -> Vec<std::path::PathBuf> {
    let builds = std::fs::read_dir(project.path(".sparsek-gate/builds")).unwrap();
    let programs = builds.map(|entry| entry.unwrap().path().join("program"));
    programs.filter(|path| path.exists()).collect()
}

#[test]
fn a_program_of_nvcc_with_the_static_runtime_loads_no_code_of_the_project() {
    if !are_here(&["nvcc", "nvdisasm"]) {
        return;
    }
    let project = ladder();
    let programs = programs(&project);
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
    let before = programs(&project).len();
    let source = project.read("ladder.cu");
    project.write("ladder.cu", format!("#include \"bound.cuh\"\n{source}"));
    project.configure("\"-O3\"", "\"-O3\", \"-isystem\", \"include\"");
    project.write("bound.cuh", "");
    project.write("include/bound.cuh", "#define FOUND_INSTEAD 1\n");
    project.commit();
    std::fs::remove_file(project.path("bound.cuh")).unwrap();
    // Head is built first, and what it was made of is in the base too.
    check_static(&project, "--against HEAD s/held").says("base build");
    // Base and head are programs of their own.
    assert_eq!(programs(&project).len(), before + 2);
}

/// A project of one of the sources in `tests/data/static`.
fn of_one(source: &str, key: &str) -> Project {
    let project = Project::empty();
    project.write(source, std::fs::read(data(source)).unwrap());
    let config = LADDER.split("[suite").next().unwrap();
    let suite = format!("[suite.s.variant.v]\nsource = \"{source}\"\n{key}\n");
    project.write("config.toml", format!("{config}{suite}"));
    project
}

#[test]
fn what_the_compiler_serializes_is_told_and_locked_by_its_count() {
    if !are_here(&["nvcc", "nvdisasm"]) {
        return;
    }
    let project = of_one("performance_loss.cu", "kernels = \"serialized\"");
    project.run("build").exits(0);
    lock_static(&project, "").exits(0);
    check_static(&project, "")
        .ends(0, "performance-loss")
        .says("(C7511): Potential Performance Loss: wgmma.mma_async instructions are serialized");
}

#[test]
fn what_was_linked_apart_is_looked_into_too() {
    if !are_here(&["nvcc", "nvdisasm"]) {
        return;
    }
    let project = of_one("kernel.cu", "flags = [\"-rdc=true\"]");
    let report = project.run("build --format json").exits(0).json();
    for variant in report.0["variants"].as_array().unwrap() {
        let kernel = &variant["kernels"]["_Z6kernelPf"];
        // sm_80 reserves the same shared memory; its registers and barriers would contradict.
        assert_eq!(kernel["driver_shared_bytes"], 1024, "{variant:#}");
        let opcodes = &kernel["opcodes"];
        assert_eq!(opcodes["BAR.SYNC.DEFER_BLOCKING"], 1, "{variant:#}");
        assert!(opcodes.get("ULDC.64").is_some(), "{variant:#}");
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
    for without in ["check --static", "build"] {
        check_static(&project, "--against HEAD").exits(0);
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
