//! `baseline`: what may be locked, what the lock contains, and what tampering is found.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{
    self, Arguments, ENDINGS, GPU, Project, RECORDED, Ran, VARIANTS, refresh, scale,
};
use serde_json::{Value as Json, json};
use sparsek_gate::baseline::{Entry, Lock};
use sparsek_gate::hash::sha256_hex;
use sparsek_gate::profile::Profile;

const CP_ASYNC: &str = "bsr_gemm/cp_async";

fn lock_with(project: &Project, more: impl Arguments) -> Ran {
    let lock = common::words("baseline --lock --who tester --from recorded");
    project.run(&[lock, more.list()].concat())
}

fn read_lock(project: &Project, variant: &str) -> Lock {
    Lock::parse(&project.read(&Project::baseline_path(variant, "lock.toml"))).unwrap()
}

/// Everything below the baselines, by path.
fn stored(project: &Project) -> Vec<(String, Vec<u8>)> {
    let of = |variant| ENDINGS.map(|ending| Project::baseline_path(variant, ending));
    let paths = VARIANTS.iter().flat_map(|variant| of(variant));
    let read = |path: String| Some((path.clone(), fs::read(project.path(&path)).ok()?));
    paths.filter_map(read).collect()
}

/// Such a lock is refused with this code and these words, and with `--all-or-none` nothing is locked.
#[track_caller]
fn none_is_locked(project: &Project, more: &str, exit: i32, code: &str, words: &str) {
    let before = stored(project);
    let more = format!("--format json --all-or-none {more}");
    let ran = lock_with(project, &more).exits(exit);
    let report = ran.json();
    assert!(report.denies(code), "{:?}", report.denied());
    assert!(ran.out.contains(words), "{words:?} is not in\n{}", ran.out);
    assert_eq!(report.0["locked"], false);
    assert_eq!(stored(project), before);
}

#[track_caller]
fn refused_of(project: &Project, variant: &str, exit: i32, code: &str, words: &str) {
    let more = format!("--reason because {variant}");
    none_is_locked(project, &more, exit, code, words);
}

#[track_caller]
fn refused(project: &Project, exit: i32, code: &str, words: &str) {
    refused_of(project, "cp_async", exit, code, words);
}

#[test]
fn locking_writes_four_files_for_a_variant_that_prove_each_other() {
    let project = Project::unlocked();
    let ran = project.lock("the first measurement");
    ran.ends(0, "bsr_gemm/cp_async on nvidia-h200: locked");
    let form = regex::Regex::new(r"^[a-z_]+: -?\d+\.\d\d$").unwrap();
    for variant in VARIANTS.iter() {
        let lock = read_lock(&project, variant);
        let [entry] = lock.ledger.as_slice() else {
            panic!("{:?}", lock.ledger)
        };
        assert_eq!(entry.who, "a tester");
        assert_eq!(entry.reason, "the first measurement");
        assert_eq!(entry.previous, Entry::GENESIS);
        assert_eq!(lock.contradictions(), Vec::<String>::new());
        let norm = project.read(&Project::baseline_path(variant, "norm.txt"));
        assert_eq!(entry.norm_sha256, sha256_hex(norm.as_bytes()));
        let mut sorted: Vec<&str> = norm.lines().collect();
        sorted.sort_unstable();
        assert_eq!(norm.lines().collect::<Vec<_>>(), sorted);
        for line in norm.lines() {
            assert!(form.is_match(line), "{line}");
        }
        let profile = project.read(&Project::baseline_path(variant, "profile.json"));
        assert_eq!(entry.profile_sha256, sha256_hex(profile.as_bytes()));
        // Full precision: the profile that is locked is the recorded one.
        let recorded = project.read(&Project::profile_path(variant));
        let recorded = Profile::parse(recorded.as_bytes()).unwrap();
        assert_eq!(profile, recorded.to_json());
        // It is written in the words of this version.
        assert!(profile.contains("\"tier\"") && profile.contains("\"phase\""));
    }
    assert!(read_lock(&project, "baseline").immutable);
    assert!(!read_lock(&project, "baseline").sources.is_empty());
    assert!(!read_lock(&project, "cp_async").immutable);
    assert!(!project.path(".baselines.next").exists());
}

#[test]
fn sha256sum_accepts_the_hash_file_from_its_folder() {
    if !common::are_here(&["sha256sum"]) {
        return;
    }
    let project = Project::locked();
    for variant in VARIANTS.iter() {
        let mut sum = Command::new("sha256sum");
        sum.args(["--check", "--strict", &format!("{variant}.norm.txt.sha256")])
            .current_dir(project.path(&format!("baselines/{GPU}/bsr_gemm")));
        let ran = Ran::by(&mut sum).exits(0);
        assert_eq!(ran.out, format!("{variant}.norm.txt: OK\n"));
    }
}

#[test]
fn locking_needs_a_reason_and_a_name() {
    let project = Project::unlocked();
    lock_with(&project, "").ends(2, "--reason");
    for reason in ["", "  \n"] {
        lock_with(&project, &["--reason", reason]).ends(2, "--reason must say why");
    }
    let mut lock = project.gate();
    lock.args(LOCK).env("HOME", project.path(""));
    lock.env_remove("XDG_CONFIG_HOME").env_remove("USER");
    Ran::by(&mut lock).ends(2, "--who NAME");
    assert!(!project.path("baselines").exists());
}

const LOCK: [&str; 6] = ["baseline", "--lock", "--reason", "x", "--from", RECORDED];

#[test]
fn locking_in_ci_needs_to_be_asked_for() {
    let project = Project::unlocked();
    let lock =
        |ci: &str, more: &[&str]| Ran::by(project.gate().env("CI", ci).args(LOCK).args(more));
    for ci in ["true", "1", "yes"] {
        lock(ci, &[]).ends(2, "--in-ci");
        assert!(!project.path("baselines").exists());
    }
    lock("true", &["--in-ci"]).exits(0);
    for ci in ["", "false", "0"] {
        lock(ci, &[]).exits(0);
    }
}

#[test]
fn an_imported_profile_is_locked_knowingly_only() {
    let project = Project::timed_by_ncu();
    // One report is of one phase: what the counting phase measured is not in it.
    let suite = "[suite.bsr_gemm]\n";
    let metrics = format!("{suite}metrics = [\"duration\", \"sm_active\"]\n");
    project.configure(suite, &metrics);
    project.drop_config_lines("work = ");
    let import = "import recorded/bsr_gemm/cp_async/capture-1.ncu-rep --variant bsr_gemm/cp_async";
    project.run(import).exits(0);
    let lock = |more: &str| {
        project.run(&format!(
            "baseline --lock --who w --reason x cp_async {more}"
        ))
    };
    let ran = lock("--format json").ends(6, "--accept-imported");
    assert_eq!(ran.json().denied(), ["not-measured"]);
    assert_eq!(stored(&project), []);
    lock("--accept-imported").exits(0);
}

/// Edits after which a recording is not locked: file | what is replaced, or `-` for all of it | by what, or `-`
/// for no file | exit code | code of the finding | its words.
const UNMEASURED: &str = r#"
recorded/bsr_gemm/cp_async/counting.ncu-rep | - | - | 6 | capture-missing | counting.ncu-rep
recorded/bsr_gemm/cp_async/counting.csv | - | x | 4 | profile-altered | the capture `counting.csv` beside the profile is not the one
recorded/bsr_gemm/cp_async/capture-1.result.json | "correct": true | "correct": false | 4 | profile-altered | the profile says that its process was correct, and `capture-1.result.json` beside it does not
recorded/bsr_gemm/cp_async/capture-1.result.json | - | - | 6 | capture-missing | its process was correct, and `capture-1.result.json` is not beside it
recorded/bsr_gemm/cp_async/profile.json | - | - | 6 | profile-missing | its captures are there without their profile.json: copy
recorded/bsr_gemm/cp_async/profile.json | "schema": 3, | "schema": 3,\n<<<<<<< HEAD | 5 | capture-unreadable | git left a conflict of a merge in line
recorded/bsr_gemm/cp_async/profile.json | - | {} | 5 | capture-unreadable | profile.json
recorded/bsr_gemm/cp_async/profile.json | "overrides": [] | "overrides": ["TILE=64"] | 6 | not-measured | TILE=64
recorded/bsr_gemm/cp_async/profile.json | "bsr_gemm/cp_async" | "bsr_gemm/occupancy" | 5 | capture-unreadable | bsr_gemm/occupancy
kernels/common/cp_async.cuh | - | // another | 6 | not-measured | `kernels/common/cp_async.cuh` changed since it was measured
kernels/common/cp_async.cuh | - | - | 6 | not-measured | `kernels/common/cp_async.cuh` (not there: paths count from the folder of the configuration
config.toml | "-lineinfo" | "-lineinfo", "-G" | 6 | not-measured | the flags in the configuration (+`-G`) changed
config.toml | expect = ["bsr_gemm_cp_async"] | defines = { A = 1 } | 6 | not-measured | the flags in the configuration (+`-DA=1`) changed
config.toml | expect = ["bsr_gemm_cp_async"] | args = ["--seed", "2"] | 6 | not-measured | the workload
config.toml | clock_control = "none" | clock_control = "base" | 6 | not-measured | clock control
config.toml | launches = 20 | launches = 30 | 6 | not-measured | at most 20 launches of a kernel were measured in a process of the timing phase, but 30 of each kernel were requested
config.toml | [metric.dram_read] | [metric.l2_throughput]\ndirection = "higher"\ntolerance = '1'\n\n[metric.dram_read] | 6 | not-measured | l2_throughput
"#;

#[test]
fn what_was_not_measured_is_not_locked() {
    for [file, from, to, exit, code, words] in &common::rows(UNMEASURED) {
        let project = Project::unlocked();
        match (from.as_str(), to.as_str()) {
            ("-", "-") => fs::remove_file(project.path(file)).unwrap(),
            ("-", _) => project.write(file, to),
            _ => project.replace(file, from, to),
        }
        refused(&project, exit.parse().unwrap(), code, words);
    }
    let project = Project::unlocked();
    project.edit_profile("cp_async", |it| scale(it, "duration", 0.9));
    refused(&project, 4, "profile-altered", "duration");
    project.edit_profile("cp_async", |it| it["provenance"]["captures"] = json!([]));
    refused(&project, 4, "capture-missing", "names no capture");
}

/// All were measured again, and the profile of `cp_async` was edited.
fn one_of_three_is_altered() -> Project {
    let project = Project::locked();
    for variant in VARIANTS.iter() {
        project.edit_profile(variant, |it| it["provenance"]["git"] = json!("0123456789"));
    }
    project.edit_profile("cp_async", |profile| scale(profile, "duration", 0.9));
    project
}

#[test]
fn one_refusal_keeps_all_of_the_selected_variants_from_being_locked_where_that_is_asked_for() {
    let project = one_of_three_is_altered();
    refused(&project, 4, "profile-altered", "duration");
    let ran = lock_with(&project, "--reason x --all-or-none").exits(4);
    common::contains(&ran.out, &["nothing was locked", "not locked"]);
    // Left out by name, it does not keep the others back.
    lock_with(&project, "--reason x baseline occupancy").exits(0);
    assert_eq!(read_lock(&project, "occupancy").ledger.len(), 2);
    assert_eq!(read_lock(&project, "cp_async").ledger.len(), 1);
}

#[test]
fn a_variant_that_cannot_be_locked_keeps_its_baseline_and_the_others_are_locked() {
    let project = one_of_three_is_altered();
    let of = |variant: &str| {
        ENDINGS.map(|ending| project.read(&Project::baseline_path(variant, ending)))
    };
    let (refused, sound) = (of("cp_async"), of("baseline"));
    let old = read_lock(&project, "cp_async").ledger[0].time.clone();
    // The code of the finding decides: the profile was altered.
    let kept = format!(
        "bsr_gemm/cp_async: not locked; its baseline is still the old one: nvidia-h200 of {old} (first measurement)\n"
    );
    lock_with(&project, "--reason x")
        .ends(4, "bsr_gemm/baseline on nvidia-h200: locked")
        .says("profile-altered")
        .says(&kept)
        .says("2 baselines locked; not locked: bsr_gemm/cp_async\n");
    assert_eq!(of("cp_async"), refused);
    assert_ne!(of("baseline"), sound);
    assert_eq!(read_lock(&project, "occupancy").ledger.len(), 2);
    project.run("baseline --verify").exits(0);
    let ran = lock_with(&project, "--reason x --format json");
    let report = ran.exits(4).json();
    assert_eq!(report.0["locked"], false);
    assert_eq!(report.0["baselines"].as_array().unwrap().len(), 2);
    let left_out = &report.0["left_out"];
    assert_eq!(left_out.as_array().unwrap().len(), 1);
    assert_eq!(left_out[0]["variant"], "bsr_gemm/cp_async");
    assert_eq!(left_out[0]["keeps"][0]["entry"]["time"], json!(old));
}

#[test]
fn locking_twice_chains_the_ledger_and_shows_old_and_new() {
    let project = Project::locked();
    project.drop_config_lines("expect = ");
    project.rotated("rotated");
    let old = project.read(&Project::baseline_path("cp_async", "norm.txt"));
    let first = read_lock(&project, "cp_async");
    let lock = "baseline --lock --reason another --who b --from rotated cp_async";
    let ran = project.run(lock).exits(0);
    let new = project.read(&Project::baseline_path("cp_async", "norm.txt"));
    let (mut changed, mut of) = (0, 0);
    for (old, new) in old.lines().zip(new.lines()) {
        let (name, old) = old.split_once(": ").unwrap();
        let (_, new) = new.split_once(": ").unwrap();
        let line = format!("  {name}: {old} → {new}\n");
        // What did not change is not shown.
        assert_eq!(ran.out.contains(&line), old != new, "{line:?}\n{}", ran.out);
        changed += usize::from(old != new);
        of += 1;
    }
    assert!(changed > 5 && changed < of, "{changed} of {of}");
    let counted = format!(": locked; {changed} of {of} values changed\n");
    assert!(ran.out.contains(&counted), "{}", ran.out);
    assert_ne!(old, new);
    let second = read_lock(&project, "cp_async");
    assert_eq!(second.ledger.len(), 2);
    assert_eq!(second.ledger[0], first.ledger[0]);
    assert_eq!(second.ledger[1].previous, first.head);
    assert_eq!(second.head, second.ledger[1].hash());
    assert_eq!(second.contradictions(), Vec::<String>::new());
    project.run("baseline --verify").exits(0);
}

#[test]
fn a_lock_prints_what_changed_or_all_or_the_verdict_alone() {
    let project = Project::unlocked();
    project.drop_config_lines("expect = ");
    let again = |more: &str| {
        let ran = project.run(&format!(
            "baseline --lock --reason x cp_async --from {more}"
        ));
        ran.exits(0).out
    };
    let first = "bsr_gemm/cp_async on nvidia-h200: locked; first baseline, 21 values\n";
    assert_eq!(again(RECORDED), first);
    project.rotated("rotated");
    let all = again("rotated -v");
    assert!(all.contains("  flop_fma: 0.00 → 0.00\n"), "{all}");
    assert_eq!(again("recorded -q"), "1 baseline locked\n");
    assert_eq!(again("recorded -q"), "0 baselines locked\n");
    for option in ["-q", "-v"] {
        let ran = project.run(&["baseline", "--show", option]).exits(2);
        ran.says("cannot be used with");
    }
}

#[test]
fn locking_what_is_locked_changes_nothing() {
    let project = Project::locked();
    let before = stored(&project);
    project.lock("again").ends(0, "already locked, unchanged");
    assert_eq!(stored(&project), before);
}

/// `baseline --verify` finds it, names it and exits with 4.
#[track_caller]
fn found(project: &Project, code: &str, words: &str) {
    found_by(project, "baseline --verify", code, words);
}

/// All commands that read baselines find it.
#[track_caller]
fn found_by_all(project: &Project, code: &str, words: &str) {
    for command in [
        "check --from recorded", "baseline --verify", "baseline --show",
    ] {
        found_by(project, command, code, words);
    }
}

#[track_caller]
fn found_by(project: &Project, command: &str, code: &str, words: &str) {
    let ran = project.run(&format!("{command} --format json")).exits(4);
    let report = ran.json();
    assert!(report.denies(code), "{command}: {:?}", report.denied());
    let said = ["message", "next"]
        .map(|key| report.fields(code, key))
        .concat();
    let found = said.iter().any(|text| text.contains(words));
    assert!(found, "{command}: no {code} {words:?} in {said:#?}");
}

#[test]
fn an_edit_of_any_locked_file_is_found_and_named() {
    let project = Project::locked();
    for ending in ENDINGS {
        let path = Project::baseline_path("cp_async", ending);
        let name = format!("{GPU}/{CP_ASYNC}.{ending}");
        let whole = project.read(&path);
        fs::remove_file(project.path(&path)).unwrap();
        found_by_all(&project, "tampered", &format!("{name} is missing"));
        project.write(&path, "");
        found(&project, "tampered", &name);
        project.write(&path, b"\xff\xfe");
        found_by_all(&project, "tampered", &name);
        if ending != "lock.toml" {
            // One more blank line: no number differs, and it is not what was locked.
            project.write(&path, format!("{whole}\n"));
            found(&project, "tampered", &name);
        }
        project.write(&path, whole);
    }
    let path = Project::baseline_path("cp_async", "profile.json");
    project.edit(&path, |profile| scale(profile, "duration", 1.5));
    found_by_all(&project, "tampered", "profile.json is not what was locked");
}

#[test]
fn the_files_of_another_variant_do_not_stand_in() {
    let project = Project::locked();
    for ending in ENDINGS {
        let other = fs::read(project.path(&Project::baseline_path("occupancy", ending))).unwrap();
        project.write(&Project::baseline_path("cp_async", ending), other);
    }
    found(&project, "tampered", "is the lock of bsr_gemm/occupancy");
    let restored = format!("git checkout HEAD -- 'baselines/{GPU}/bsr_gemm/cp_async.*'");
    found(&project, "tampered", &restored);
}

#[test]
fn a_lock_does_not_move_with_the_name_of_its_variant() {
    let project = Project::locked();
    let path = |name: &str, ending: &str| project.path(&Project::baseline_path(name, ending));
    for ending in ENDINGS {
        fs::remove_file(path("cp_async", ending)).unwrap();
    }
    project.commit();
    for ending in ENDINGS {
        fs::copy(path("occupancy", ending), path("cp_async", ending)).unwrap();
    }
    let copied = "these are the files of bsr_gemm/occupancy: remove the copy, rm baselines/";
    found(&project, "tampered", copied);
    for ending in ENDINGS {
        fs::remove_file(path("occupancy", ending)).unwrap();
    }
    found(&project, "tampered", "do mv \"$it\" baselines/");
}

#[test]
fn a_lock_that_was_removed_and_not_committed_so_is_found_wherever_the_configuration_is_named() {
    let project = Project::whole();
    project.commit();
    fs::create_dir(project.path("below")).unwrap();
    let verify = |dir: &str, config: &str, code: i32| {
        let mut gate = project.gate_of(&["-C", config, "baseline", "--verify", "cp_async"]);
        Ran::by(gate.current_dir(project.path(dir))).exits(code)
    };
    verify("below", "../config.toml", 0);
    for ending in ENDINGS {
        fs::remove_file(project.path(&Project::baseline_path("cp_async", ending))).unwrap();
    }
    let restored = format!("git checkout HEAD -- ':/baselines/{GPU}/bsr_gemm/cp_async.*'");
    for (dir, config) in [("", "config.toml"), ("below", "../config.toml")] {
        verify(dir, config, 4).says(&restored);
    }
    fs::remove_dir_all(project.path("baselines")).unwrap();
    let ran = verify("", "config.toml", 4).says(&restored);
    assert!(!ran.out.contains("no baseline yet"), "{}", ran.out);
}

#[test]
fn a_norm_text_that_is_not_the_profiles_is_found_even_where_every_hash_fits() {
    let project = Project::locked();
    let profile = project.read(&Project::baseline_path("cp_async", "profile.json"));
    project.forge_files("cp_async", "duration: 1.00\n", &profile);
    found(&project, "tampered", "does not contain the values");
}

#[test]
fn an_edited_ledger_is_found_and_not_locked_over() {
    let project = Project::locked();
    for time in ["second", "third"] {
        project.edit_profile("baseline", |it| it["provenance"]["git"] = json!(time));
        project.lock(time).exits(0);
    }
    assert_eq!(read_lock(&project, "baseline").ledger.len(), 3);
    project.check(&[], 0);
    let path = Project::baseline_path("baseline", "lock.toml");
    project.replace(&path, "\"second\"", "\"another past\"");
    found_by_all(&project, "tampered", "the ledger was edited");
    project.edit_profile("baseline", |it| it["provenance"]["git"] = json!("fourth"));
    let refused = |words| refused_of(&project, "baseline", 4, "tampered", words);
    refused("the ledger was edited");
    project.write(&path, "gone");
    refused("the present lock cannot be read");
}

#[test]
fn sources_headers_and_flags_of_an_immutable_variant_stay_as_locked() {
    let changed = "immutable-changed";
    let project = Project::locked();
    for path in [
        "kernels/bsr_gemm/baseline.cu", "kernels/bsr_gemm/harness.cuh",
        "kernels/common/options.cuh",
    ] {
        let text = project.read(path);
        project.write(path, format!("{text}\n"));
        let words = format!("`{path}` changed since it was locked");
        found_by_all(&project, changed, &words);
        let next = "baseline --lock --accept-immutable --reason '...' bsr_gemm/baseline";
        found(&project, changed, next);
        fs::remove_file(project.path(path)).unwrap();
        found(&project, changed, &format!("`{path}` cannot be read"));
        project.write(path, text);
    }
    let other = "kernels/common/cp_async.cuh";
    project.write(other, "// no part of the immutable variant");
    project.check(&["bsr_gemm/baseline"], 0);

    let config = project.read("config.toml");
    let edits = r#"
"-O3" | "-O2" | +`-O2`, −`-O3`
"-O3", "-std=c++17" | "-std=c++17", "-O3" | order
immutable = true | immutable = true\ndefines = { TILE = 64 } | +`-DTILE=64`
arch = "sm_90a" | arch = "sm_90" | code=sm_90
immutable = true | | its lock marks it immutable, and the configuration no longer does
expect = ["bsr_gemm_cp_async"] | expect = ["bsr_gemm_cp_async"]\nimmutable = true | lock it again: sparsek-gate baseline --lock --
"#;
    for [from, to, words] in &common::rows(edits) {
        project.configure(from, to);
        found_by_all(&project, changed, words);
        project.write("config.toml", &config);
    }
}

#[test]
fn a_header_that_an_immutable_variant_did_not_have_changes_it() {
    let project = Project::locked();
    let header = "kernels/common/new.cuh";
    project.edit_profile("baseline", |profile| {
        profile["provenance"]["sources"][header] = json!(sha256_hex(b""));
    });
    project.write(header, "");
    let report = project.check(&["bsr_gemm/baseline"], 4);
    report.denies_only("immutable-changed", &[header]);
}

#[test]
fn an_immutable_variant_is_locked_with_other_sources_knowingly_only() {
    let project = Project::locked();
    let path = "kernels/bsr_gemm/baseline.cu";
    project.write(path, project.read(path) + "// better\n");
    let hash = sha256_hex(project.read(path).as_bytes());
    project.edit_profile("baseline", |profile| {
        profile["provenance"]["sources"][path] = json!(hash);
    });
    let refused = |project: &Project| {
        let accept = "--accept-immutable";
        refused_of(project, "baseline", 4, "immutable-changed", accept);
        lock_with(project, "--reason x --accept-immutable").exits(0);
        project.run("baseline --verify").exits(0);
    };
    refused(&project);
    // Nor does dropping the mark get around it.
    let project = Project::locked();
    let config = project.read("config.toml");
    project.drop_config_lines("immutable = true");
    // The lock of the same profile follows the mark, and lists the sources with it.
    refused(&project);
    project.write("config.toml", config);
    found(&project, "immutable-changed", "does not list its sources");
    lock_with(&project, "--reason x").exits(0);
    project.run("baseline --verify").exits(0);
}

#[test]
fn every_locked_number_is_derived_again_from_the_captures() {
    let project = Project::locked();
    let verify = |captures: &str| project.run(&format!("baseline --verify --captures {captures}"));
    let words = "nvidia-h200/bsr_gemm/cp_async: locked, and derived again from its captures";
    verify(RECORDED).ends(0, words);
    // Wherever the captures were put.
    fs::create_dir(project.path("elsewhere")).unwrap();
    for variant in VARIANTS.iter() {
        let profile = project.json(&Project::profile_path(variant));
        for capture in profile["provenance"]["captures"].as_array().unwrap() {
            let files = ["report", "csv"].map(|part| capture[part]["file"].as_str());
            for file in files.into_iter().flatten() {
                let from = project.path(&format!("{RECORDED}/bsr_gemm/{variant}/{file}"));
                let to = project.path(&format!("elsewhere/{variant}-of-yesterday-{file}"));
                fs::rename(from, to).unwrap();
            }
        }
    }
    verify("elsewhere").exits(0);
    verify(RECORDED).ends(6, "capture-missing");
    verify("nowhere").ends(2, "nowhere");
    project.run("baseline --show --captures elsewhere").exits(2);
}

#[test]
fn a_hand_written_profile_does_not_pass_for_a_measured_one() {
    let forgeries: [fn(&mut Json); 7] = [
        |profile| scale(profile, "duration", 1.2),
        |profile| scale(profile, "bank_conflicts", 0.5),
        |profile| {
            let sample = &mut profile["kernels"][0]["metrics"]["duration"]["samples"][0][0];
            *sample = json!(sample.as_f64().unwrap() + 32.0);
        },
        |profile| profile["kernels"][0]["grid"] = json!([1, 1, 1]),
        |profile| profile["provenance"]["captures"] = json!([]),
        |profile| profile["identity"]["clock_control"] = json!("base"),
        |profile| profile["identity"]["cache_control"] = json!("none"),
    ];
    for (index, forgery) in forgeries.into_iter().enumerate() {
        let project = Project::locked();
        project.forge("cp_async", forgery);
        // Every hash fits: neither the lock nor the hashes show it.
        project.run("baseline --verify cp_async").exits(0);
        let verify = "baseline --verify cp_async --captures recorded --format json";
        let ran = project.run(verify).exits(4);
        // One finding a capture, where each of them contradicts the profile.
        let mut denied = ran.json().denied();
        denied.dedup();
        assert_eq!(denied, ["profile-altered"], "forgery {index}");
    }
}

#[test]
fn a_profile_that_names_the_captures_of_another_does_not_pass() {
    let project = Project::locked();
    let mut other = project.json(&Project::profile_path("occupancy"));
    let captures = other["provenance"]["captures"].take();
    project.forge("cp_async", |it| it["provenance"]["captures"] = captures);
    project.run("baseline --verify").exits(0);
    let ran = project.run("baseline --verify --captures recorded");
    ran.ends(4, "profile-altered");
}

#[test]
fn what_is_locked_is_shown_with_its_ledger() {
    let project = Project::unlocked();
    let none = project.run("baseline --show");
    none.ends(0, "nothing is locked yet");
    project.run("baseline --verify").ends(4, "new-baseline");
    project.lock("the first measurement").exits(0);
    let ran = project.run("baseline --show cp_async").exits(0);
    let norm = project.read(&Project::baseline_path("cp_async", "norm.txt"));
    for line in norm.lines() {
        assert!(ran.out.contains(line), "{line} is not in\n{}", ran.out);
    }
    common::contains(&ran.out, &["a tester: the first measurement"]);
    assert!(!ran.out.contains("occupancy"));
    let shown = project.run("baseline --show --format json").exits(0).json();
    let shown = shown.0["baselines"].as_array().unwrap();
    assert_eq!(shown.len(), VARIANTS.len());
    assert_eq!(shown[0]["lock"]["ledger"][0]["who"], "a tester");
    let described = shown[0]["description"].as_str().unwrap();
    assert!(described.contains("; "), "{described}");
}

#[test]
fn a_reason_cannot_steer_the_terminal() {
    let project = Project::unlocked();
    for (reason, who) in [
        ("x\u{1b}[2Jy", "a"),
        ("x\ry", "a"),
        ("x", "a\u{7}"),
        ("x", " "),
    ] {
        let lock = ["baseline", "--lock", "--from", RECORDED, "--reason"];
        let ran = project.run(&[&lock[..], &[reason, "--who", who]].concat());
        let ran = ran.exits(2);
        assert!(!ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'));
    }
    assert_eq!(stored(&project), []);
    lock_with(&project, &["--reason", "two\nlines"]).exits(0);
    project.run("baseline --show").ends(0, "two\n    lines");
}

#[test]
fn a_store_behind_a_link_is_changed_where_the_link_leads() {
    let project = Project::unlocked();
    fs::create_dir_all(project.path("elsewhere/store")).unwrap();
    let _ = fs::remove_dir_all(project.path("baselines"));
    std::os::unix::fs::symlink("elsewhere/store", project.path("baselines")).unwrap();
    lock_with(&project, "--reason x").exits(0);
    assert!(project.path("baselines").is_symlink());
    assert!(project.path("elsewhere/store").join(GPU).is_dir());
    project.run("baseline --verify").exits(0);
}

#[test]
fn a_dangling_link_beside_the_store_does_not_keep_it_from_being_locked() {
    let project = Project::unlocked();
    std::os::unix::fs::symlink("nowhere", project.path(".baselines.staged")).unwrap();
    lock_with(&project, "--reason x").exits(0);
    assert!(!project.path(".baselines.staged").is_symlink());
}

#[test]
fn a_profile_that_hides_its_sources_or_has_a_page_for_a_report_is_not_locked() {
    let hidden: fn(&mut Json) = |profile| profile["provenance"]["sources"] = json!({});
    let page: fn(&mut Json) = |profile| {
        let captures = profile["provenance"]["captures"].as_array_mut().unwrap();
        let mut captures = captures.iter_mut();
        let capture = captures.find(|one| one["phase"] == "counting").unwrap();
        capture["report"] = capture["csv"].take();
    };
    for (edit, words) in [
        (hidden, "` (not listed in the profile) changed since"),
        (page, "a report file and its CSV"),
    ] {
        let project = Project::unlocked();
        project.edit_profile("cp_async", edit);
        let ran = project.run("baseline --lock --from recorded --reason x cp_async");
        assert!([4, 6].contains(&ran.code), "{}", ran.code);
        ran.says(words);
    }
}

#[test]
fn an_import_does_not_clear_a_measurement_away() {
    let project = Project::timed_by_ncu();
    let capture = "recorded/bsr_gemm/cp_async/capture-1.ncu-rep";
    let import = format!("import {capture} --variant bsr_gemm/cp_async --output recorded");
    project.run(&import).ends(2, "contains a measured profile");
    assert!(project.path(capture).exists());
}

const TIMED: [&str; 4] = ["duration", "sm_active", "tensor_core", "dram_bw"];

/// Two folders of recordings, each with half of the processes that were recorded: the second
/// names another GPU. What was counted apart is left out, because there is only one such capture.
fn two_machines() -> Project {
    let project = Project::timed_by_ncu();
    project.drop_config_lines("work = ");
    let suite = "[suite.bsr_gemm]\n";
    project.configure(suite, &format!("{suite}metrics = {TIMED:?}\n"));
    project.configure("processes = 4", "processes = 2");
    common::copy(&project.path(RECORDED), &project.path("second"));
    for variant in VARIANTS.iter() {
        for (folder, first) in [(RECORDED, 0), ("second", 2)] {
            let path = format!("{folder}/bsr_gemm/{variant}/profile.json");
            project.edit(&path, |profile| half(profile, first));
        }
        project.edit(&second(variant), on_another_gpu);
    }
    project
}

fn on_another_gpu(profile: &mut Json) {
    let uuid = profile["provenance"]["gpu_uuid"].as_str().unwrap();
    let text = profile.to_string().replace(uuid, OTHER_GPU);
    *profile = serde_json::from_str(&text).unwrap();
}

const OTHER_GPU: &str = "GPU-ffffffff-0000-0000-0000-000000000000";

fn second(variant: &str) -> String {
    format!("second/bsr_gemm/{variant}/profile.json")
}

/// Leaves two processes of the timing phase.
fn half(profile: &mut Json, first: usize) {
    for place in ["/identity/metrics", "/kernels/0/metrics"] {
        let metrics = profile.pointer_mut(place).unwrap();
        let metrics = metrics.as_object_mut().unwrap();
        metrics.retain(|alias, _| TIMED.contains(&alias.as_str()));
    }
    for alias in TIMED {
        let series = &mut profile["kernels"][0]["metrics"][alias];
        let samples = series["samples"].as_array_mut().unwrap();
        *samples = samples[first..first + 2].to_vec();
    }
    let captures = profile["provenance"]["captures"].as_array_mut().unwrap();
    captures.retain(|capture| capture["phase"] == "timing");
    *captures = captures[first..first + 2].to_vec();
    profile["provenance"]["processes"] = json!(2);
    refresh(profile);
}

/// Both are refused together, with this code and these words, and nothing is locked.
#[track_caller]
fn refused_together(project: &Project, exit: i32, code: &str, words: &str) {
    none_is_locked(project, "--reason x --from second", exit, code, words);
}

#[test]
fn profiles_of_two_gpus_make_one_baseline_of_their_mean() {
    let project = two_machines();
    lock_with(&project, "--reason x --from second").exits(0);
    for variant in VARIANTS.iter() {
        let value = |path: &str, metric: &str| {
            let value = &project.json(path)["kernels"][0]["metrics"][metric]["value"];
            value.as_f64().unwrap()
        };
        let locked = Project::baseline_path(variant, "profile.json");
        let own = Project::profile_path(variant);
        for metric in TIMED {
            let one = value(&own, metric);
            let mean = one.midpoint(value(&second(variant), metric));
            let found = value(&locked, metric);
            let is_mean = (found - mean).abs() <= 1e-9 * one.abs();
            assert!(is_mean, "{variant} {metric}: {found} {mean}");
        }
        let provenance = &project.json(&locked)["provenance"];
        assert_eq!(provenance["processes"], 4);
        assert_eq!(provenance["captures"].as_array().unwrap().len(), 4);
        let both = provenance["gpu_uuid"].as_str().unwrap();
        assert!(both.contains(OTHER_GPU) && both.contains(", "), "{both}");
        // What one of them measured is compared with that mean.
        let report = project.check(&[variant], 0);
        let reference = &report.comparison(variant, "duration")["reference"];
        assert_eq!(reference["machines"], 2);
        assert_eq!(reference["value"], value(&locked, "duration"));
    }
    project.run("baseline --verify").exits(0);
    // The captures of both are where they were.
    let ran = project.run("baseline --verify --captures .");
    ran.ends(0, "derived again from its captures");
    let ran = project.run("baseline --verify --captures recorded");
    ran.exits(0);
}

/// The names of what lies in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Every number that is locked in the repository, by the path of its file below `baselines`.
fn norms(baselines: &Path) -> BTreeMap<String, String> {
    let mut norms = BTreeMap::new();
    for folder in names(baselines) {
        for suite in names(&baselines.join(&folder)) {
            for file in names(&baselines.join(&folder).join(&suite)) {
                if file.ends_with(".norm.txt") {
                    let path = format!("{folder}/{suite}/{file}");
                    let text = fs::read_to_string(baselines.join(&path)).unwrap();
                    norms.insert(path, text);
                }
            }
        }
    }
    norms
}

#[test]
fn the_shipped_baselines_are_locked_again_from_the_recordings_they_were_locked_from() {
    let project = Project::empty();
    let root = common::repository();
    common::copy(&root.join("kernels"), &project.path("kernels"));
    let config = fs::read_to_string(root.join("config.toml")).unwrap();
    project.write("config.toml", &config);
    // Variants that were recorded on the same GPUs are locked together.
    let recorded = common::recordings().join("h200-locked");
    let mut of_variant: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for gpu in names(&recorded) {
        for suite in names(&recorded.join(&gpu)) {
            for variant in names(&recorded.join(&gpu).join(&suite)) {
                let variant = format!("{suite}/{variant}");
                of_variant.entry(variant).or_default().push(gpu.clone());
            }
        }
    }
    let mut together: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for (variant, gpus) in of_variant {
        together.entry(gpus).or_default().push(variant);
    }
    for (gpus, variants) in &together {
        let from = gpus
            .iter()
            .map(|gpu| format!("--from {} ", recorded.join(gpu).display()));
        let (from, variants) = (from.collect::<String>(), variants.join(" "));
        let lock = format!("baseline --lock --who w --reason r {from}{variants}");
        project.run(&lock).exits(0);
    }
    let again = norms(&project.path("baselines"));
    assert_eq!(again, norms(&root.join("baselines")));
}

#[test]
fn what_was_not_measured_alike_is_not_locked_together() {
    // What is set in one of two profiles | to what | what the refusal says.
    let edits = r#"
/identity/clock_control | "base" | the conditions differ
/identity/gpu | "NVIDIA A100-SXM4-80GB" | the conditions differ
/identity/workload/1 | "4096" | the conditions differ
/provenance/sources/kernels~1bsr_gemm~1cp_async.cu | "0" | the sources differ
/provenance/build_argv/1 | "-G" | the flags differ
/provenance/launches | 10 | the launches a process differ
/provenance/origin | "imported" | who measured differ
/kernels/0/grid | [1, 1, 1] | only one of the profiles
"#;
    let project = two_machines();
    let whole = project.read(&second("cp_async"));
    for [place, value, words] in &common::rows(edits) {
        project.write(&second("cp_async"), &whole);
        project.edit(&second("cp_async"), |profile| {
            *profile.pointer_mut(place).unwrap() = serde_json::from_str(value).unwrap();
        });
        refused_together(&project, 4, "not-comparable", words);
    }
    project.write(&second("cp_async"), &whole);
    project.edit(&second("cp_async"), |profile| {
        let kernel = profile["kernels"][0].clone();
        profile["kernels"].as_array_mut().unwrap().push(kernel);
    });
    refused_together(&project, 4, "not-comparable", "1 and 2 kernels");
}

#[test]
fn what_one_of_two_folders_lacks_is_not_locked() {
    let project = two_machines();
    fs::remove_dir_all(project.path("second/bsr_gemm/cp_async")).unwrap();
    refused_together(&project, 6, "profile-missing", "second");
    let project = two_machines();
    project.write(&second("cp_async"), "{");
    refused_together(&project, 5, "capture-unreadable", "second");
    let project = two_machines();
    project.edit(&second("cp_async"), |it| scale(it, "duration", 0.9));
    refused_together(&project, 4, "profile-altered", "duration");
    let project = two_machines();
    for ending in ["ncu-rep", "csv"] {
        for folder in [RECORDED, "second"] {
            let path = format!("{folder}/bsr_gemm/cp_async/capture-3.{ending}");
            fs::remove_file(project.path(&path)).unwrap();
        }
    }
    refused_together(&project, 6, "capture-missing", "capture-3");
}

#[test]
fn the_same_profile_twice_does_not_make_two_measurements() {
    let project = Project::unlocked();
    lock_with(&project, &format!("--reason x --from {RECORDED}")).ends(2, "twice");
    common::copy(&project.path(RECORDED), &project.path("second"));
    for is_of_another_gpu in [false, true] {
        for variant in VARIANTS.iter().filter(|_| is_of_another_gpu) {
            project.edit(&second(variant), on_another_gpu);
        }
        let lock = "--reason x --format json --from second";
        let report = lock_with(&project, lock).exits(4).json();
        assert_eq!(report.denied_besides(&["not-comparable"]), [""; 0]);
        assert_eq!(stored(&project), []);
    }
}

#[test]
fn a_profile_of_one_process_is_not_locked_alone_nor_beside_another_gpu() {
    let alone: fn(&mut Json) = |profile| common::keep_processes(profile, 1);
    let project = two_machines();
    project.configure("processes = 2", "processes = 1");
    project.edit_profile("cp_async", alone);
    refused(&project, 6, "not-measured", "in one process");
    refused_together(&project, 6, "not-measured", "in one process");
    let project = two_machines();
    project.configure("processes = 2", "processes = 1");
    project.edit(&second("cp_async"), alone);
    refused_together(&project, 6, "not-measured", "in one process");
}

#[test]
fn an_imported_capture_twice_does_not_make_two_processes() {
    let project = two_machines();
    let import = "import recorded/bsr_gemm/cp_async/capture-1.ncu-rep --variant bsr_gemm/cp_async";
    for output in ["one", "two"] {
        let import = format!("{import} --output {output}");
        project.run(&import).exits(0);
    }
    let both = "--from one --from two --accept-imported cp_async";
    let ran = project.run(&format!("baseline --lock --reason x --who w {both}"));
    assert_ne!(ran.code, 0, "{}", ran.out);
}
