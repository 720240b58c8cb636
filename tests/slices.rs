//! Slices of a check, and recordings in several folders: the outcome is that of one check, and what none
//! of them brings was not measured.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::sealed::{content, edit, edit_variant};
use crate::common::slices::{made, made_in, shared};
use crate::common::stand_in::{CP_ASYNC, Machine};
use crate::common::{
    self, Arguments, GPU, Project, RECORDED, Ran, Report, VARIANTS, aloud, in_repository,
    outside_pull_request, repository,
};
use serde_json::{Value as Json, json};
use sparsek_gate::baseline::Lock;
use sparsek_gate::hash::{sha256_file, sha256_hex};
use sparsek_gate::profile::{Profile, norm_text};

/// Slices of the recording of a project.
fn slices(project: &Project, count: u32) -> Vec<String> {
    made(project, RECORDED, count, &[])
}

fn judge(project: &Project, slices: &[String], more: impl Arguments) -> Ran {
    let from = slices.iter().flat_map(|slice| ["--from", slice]);
    let from: Vec<&str> = from.collect();
    project.run(&[vec!["check"], from, more.list()].concat())
}

const JSON: &str = "--format json";

/// The check of slices that must not be complete.
#[track_caller]
fn incomplete(project: &Project, slices: &[String]) -> Report {
    let report = judge(project, slices, JSON).exits(6).json();
    assert!(report.denies("slice-unusable"));
    report
}

/// The same, for these words.
#[track_caller]
fn incomplete_for(project: &Project, slices: &[String], words: &str) -> Report {
    let report = incomplete(project, slices);
    let said = unusable(&report);
    assert!(said.contains(words), "{words:?} is not in {said}");
    report
}

/// Several folders of a project have the outcome of its recording.
#[track_caller]
fn are_one_check(project: &Project, folders: &[String]) {
    is_one_check(|arguments| project.run(arguments), RECORDED, folders, &[]);
}

/// What is wrong with slices, in the words of the report.
fn unusable(report: &Report) -> String {
    report.fields("slice-unusable", "message").join("\n")
}

/// The variants that no slice measured.
fn unmeasured(report: &Report) -> Vec<&str> {
    report.fields("not-measured", "variant")
}

/// The record of the run of a slice.
fn run_of(slice: &str) -> String {
    format!("{slice}/run.json")
}

/// Several folders have the outcome of one recording, but for what reports call it.
#[track_caller]
fn is_one_check(run: impl Fn(&[&str]) -> Ran, recording: &str, folders: &[String], names: &[&str]) {
    let from = folders.iter().flat_map(|folder| ["--from", folder]);
    let from: Vec<&str> = from.collect();
    let all: Vec<&str> = folders.iter().map(String::as_str).collect();
    for format in ["json", "text"] {
        let check = ["check", "--format", format];
        let one = run(&[&check[..], &["--from", recording], names].concat());
        let judged = run(&[&check[..], &from, names].concat());
        // The command that locks names the folders.
        let named = |folders: &[&str]| {
            let options = folders.iter().map(|folder| format!("--from {folder} "));
            options.collect::<String>()
        };
        let out = judged.out.replace(&named(&all), "");
        let out = out.replace(&folders.join(", "), recording);
        let one_out = one.out.replace(&named(&[recording]), "");
        assert_eq!(one.code, judged.code, "{recording}");
        assert_eq!(one.err, judged.err, "{recording}");
        assert!(one_out == out, "{recording} as {format}: {out}\n{one_out}");
    }
}

/// Recordings of the repository, variants in them, and how many parts are made of each: all pass,
/// a regression, other work, variants that were not recorded. Parts that lack a variant are named.
const PARTS: [(&str, &[&str], u32); 4] = [
    ("ci/recordings/h200", &["bsr_gemm", "attention"], 3),
    ("ci/recordings/h200-worse", &["bsr_gemm"], 2),
    ("ci/recordings/faults/less_work", &["bsr_gemm/cp_async"], 1),
    ("ci/recordings/faults/spills", &["bsr_gemm"], 9),
];

#[test]
fn slices_of_a_recording_are_one_check_byte_for_byte() {
    for (recording, names, count) in PARTS {
        let into = tempfile::tempdir().unwrap();
        let [config, from] = ["config.toml", recording].map(|path| repository().join(path));
        made_in(&config, &from, into.path(), count, names);
        let all = (1..=count).map(|index| into.path().join(index.to_string()));
        let all: Vec<String> = all.map(|folder| folder.display().to_string()).collect();
        is_one_check(in_repository, recording, &all, names);
        // The folder around them has all of them.
        let around = into.path().display().to_string();
        is_one_check(in_repository, recording, &[around], names);
    }
}

#[test]
fn a_recording_in_several_folders_is_one_check_byte_for_byte() {
    for (recording, names, count) in PARTS {
        let into = tempfile::tempdir().unwrap();
        let folders = (1..=count).map(|index| into.path().join(index.to_string()));
        let folders: Vec<_> = folders.collect();
        for folder in &folders {
            fs::create_dir(folder).unwrap();
        }
        let mut places = folders.iter().cycle();
        for suite in fs::read_dir(repository().join(recording)).unwrap() {
            let suite = suite.unwrap();
            for variant in fs::read_dir(suite.path()).unwrap() {
                let variant = variant.unwrap();
                let to = places.next().unwrap().join(suite.file_name());
                common::copy(&variant.path(), &to.join(variant.file_name()));
            }
        }
        let folders = folders.iter().map(|folder| folder.display().to_string());
        let folders: Vec<String> = folders.collect();
        is_one_check(in_repository, recording, &folders, names);
    }
}

#[test]
fn a_variant_in_two_recordings_or_in_none_is_not_judged() {
    let project = Project::shipped();
    let code = project.run("check --from recorded").code;
    let (one, two) = ("one/bsr_gemm", "two/bsr_gemm");
    for (variant, to) in VARIANTS.iter().zip([one, two, one]) {
        let from = project.path(&format!("{RECORDED}/bsr_gemm/{variant}"));
        common::copy(&from, &project.path(&format!("{to}/{variant}")));
    }
    let both = ["one", "two"].map(str::to_owned);
    let whole = judge(&project, &both, JSON).exits(code).json();
    assert!(unmeasured(&whole).is_empty());

    let [first, second] = [one, two].map(|folder| format!("{folder}/{}", VARIANTS[0]));
    common::copy(&project.path(&first), &project.path(&second));
    let name = format!("bsr_gemm/{}", VARIANTS[0]);
    let twice = |report: &Report| {
        assert_eq!(unmeasured(report), [name.as_str()]);
        report.tells_all("not-measured", &["recorded 2 times", "one", "two"]);
        let mut judged = report.0["variants"].as_array().unwrap().iter();
        let judged = judged.find(|one| one["variant"] == name.as_str());
        let is_judged = judged.is_some_and(|one| one["comparisons"] != json!([]));
        assert!(!is_judged, "{judged:?}");
    };
    twice(&judge(&project, &both, JSON).exits(6).json());
    // A folder of that name without a profile in it is one, too: somebody measured it there.
    fs::remove_file(project.path(&format!("{second}/profile.json"))).unwrap();
    twice(&judge(&project, &both, JSON).exits(6).json());
    // The same folder twice has everything twice.
    let again = [both[0].clone(), both[0].clone()];
    let report = judge(&project, &again, JSON).exits(6).json();
    assert_eq!(unmeasured(&report).len(), 2);

    for folder in [second, first] {
        fs::remove_dir_all(project.path(&folder)).unwrap();
    }
    let none = judge(&project, &both, JSON).json();
    assert_eq!(none.fields("profile-missing", "variant"), [name]);

    let nowhere = [both[0].clone(), "nowhere".to_owned()];
    judge(&project, &nowhere, "").ends(2, "`--from nowhere` is not a folder");
    // Beside a slice a recording is none.
    let beside = [slices(&project, 1).remove(0), both[1].clone()];
    incomplete_for(&project, &beside, "two is not used: it has no run.json");
}

#[test]
fn a_slice_beside_its_base_is_judged_against_it() {
    let project = Project::steady();
    project.add_base("cp_async", |base| {
        base["provenance"]["git"] = json!("0ba5e")
    });
    project.edit_profile("cp_async", |head| common::scale(head, "duration", 1.01));
    project.run("check --from recorded").exits(1);
    let all = slices(&project, 4);
    are_one_check(&project, &all);
}

#[test]
fn a_slice_that_is_missing_or_cut_off_is_named_and_its_variants_are_not_measured() {
    let project = Project::shipped();
    let all = slices(&project, 3);
    let own = |index: usize| shared(&project, "slices/1")[index - 1].clone();
    are_one_check(&project, &all);

    let report = incomplete_for(&project, &all[..2], "slice 3/3 is missing");
    assert_eq!(unmeasured(&report), own(3));

    // It was killed before its last file.
    let run = project.read("slices/2/run.json");
    fs::remove_file(project.path("slices/2/run.json")).unwrap();
    let around = ["slices".to_owned()];
    for folders in [&all[..], &around] {
        let words = "slices/2 is not used: it has no run.json";
        let report = incomplete_for(&project, folders, words);
        assert_eq!(unmeasured(&report), own(2));
    }
    // Of slices of which none is whole, nothing else is said.
    project.write("slices/2/run.json", &run[..run.len() / 2]);
    let none = [all[1].clone(), "nowhere".to_owned()];
    let report = incomplete(&project, &none);
    let others = report.denied_besides(&["slice-unusable", "not-measured"]);
    assert_eq!(others, [""; 0]);

    // Its artifact was cut off, or written to, on the way.
    let suite = "slices/2/bsr_gemm";
    let folder = format!("slices/2/{}", own(2)[0]);
    let [profile, record] = ["profile.json", "variant.json"].map(|name| format!("{folder}/{name}"));
    let whole = project.read(&profile);
    let recorded = project.read(&record);
    for damage in [
        "cut", "gone", "more", "more in base", "record in base", "another record", "link",
        "linked folder", "linked suite", "run", "record", "no record", "folder",
    ] {
        project.write("slices/2/run.json", &run);
        project.write(&profile, &whole);
        project.write(&record, &recorded);
        let _ = fs::remove_file(project.path(&format!("{folder}/more")));
        let _ = fs::remove_file(project.path(&format!("{folder}/run.json")));
        let _ = fs::remove_dir_all(project.path(&format!("{folder}/base")));
        let moved = project.path("away");
        match damage {
            "cut" => project.write(&profile, &whole[..whole.len() / 2]),
            "gone" => fs::remove_file(project.path(&profile)).unwrap(),
            "more" => project.write(&format!("{folder}/more"), "x"),
            "more in base" => project.write(&format!("{folder}/base/profile.json"), &whole),
            "record in base" => project.write(&format!("{folder}/base/variant.json"), &recorded),
            "another record" => project.write(&format!("{folder}/run.json"), &run),
            "link" => {
                project.write("elsewhere", &whole);
                fs::remove_file(project.path(&profile)).unwrap();
                symlink(project.path("elsewhere"), project.path(&profile)).unwrap();
            }
            "linked folder" => {
                fs::rename(project.path(&folder), &moved).unwrap();
                symlink(&moved, project.path(&folder)).unwrap();
            }
            "linked suite" => {
                fs::rename(project.path(suite), &moved).unwrap();
                symlink(&moved, project.path(suite)).unwrap();
            }
            "run" => project.write("slices/2/run.json", &run[..run.len() / 2]),
            "record" => project.write(&record, &recorded[..recorded.len() / 2]),
            "no record" => fs::remove_file(project.path(&record)).unwrap(),
            _ => fs::rename(project.path("slices/2"), project.path("slices/away")).unwrap(),
        }
        let report = incomplete_for(&project, &all, "slices/2");
        assert_eq!(unmeasured(&report), own(2), "{damage}");
        for place in [folder.as_str(), suite] {
            let place = project.path(place);
            if place.is_symlink() {
                fs::remove_file(&place).unwrap();
                fs::rename(&moved, &place).unwrap();
            }
        }
    }
}

#[test]
fn a_slice_of_another_plan_or_given_twice_is_named_and_not_used() {
    let project = Project::shipped();
    let all = slices(&project, 2);
    let twice = [all.clone(), vec![all[1].clone()]].concat();
    let report = incomplete_for(&project, &twice, "given 2 times");
    assert_eq!(unmeasured(&report), shared(&project, "slices/1")[1]);

    let shares = shared(&project, "slices/1");
    let lacking = json!([shares.concat(), ["bsr_gemm/other"]]);
    let table = format!(
        r#"
plan | "0" | another plan
tool | "9.9.9" | another plan
archive | "0" | it is of an archive
same_programs | [{{"variant": "bsr_gemm/cp_async", "base": "0"}}] | it is of an archive
revisions | ["a", "b"] | it measured other revisions (a beside b) than most (none beside none)
place | {{"index": 3, "count": 2}} | no slice 3
place | {{"index": 0, "count": 2}} | no slice 0
place | {{"index": 1, "count": 2}} | given 2 times
slices | [[], [], []] | lists 3 slices of 2
slices | [["bsr_gemm/baseline"], []] | another plan, which lacks
slices | {lacking} | another plan, which has bsr_gemm/other
slices | {} | shares the variants out in another way
more | 1 | damaged
"#,
        json!([shares[1], shares[0]])
    )
    .replace("\"0\" |", &format!("\"{}\" |", "0".repeat(64)));
    for [key, value, expected] in common::rows(&table) {
        let run = project.read("slices/2/run.json");
        edit(&project, "slices/2/run.json", |run| {
            run["slice"][&key] = serde_json::from_str(&value).unwrap();
        });
        let report = incomplete_for(&project, &all, &expected);
        assert!(!unmeasured(&report).is_empty(), "{key}");
        project.write("slices/2/run.json", &run);
    }
    // One of three slices is of another plan than one of two.
    made(&project, RECORDED, 3, &[]);
    let third = "slices/3".to_owned();
    made(&project, RECORDED, 2, &[]);
    let with_third = [all.clone(), vec![third]].concat();
    incomplete_for(&project, &with_third, "one of 3 slices, and most have 2");
    // The rules of the checkout count: a configuration that measures in another way is another plan.
    let config = project.read("config.toml");
    project.configure("\nprocesses = 4", "\nprocesses = 5");
    incomplete_for(&project, &all, "in another way");
    // So is another selection.
    project.write("config.toml", &config);
    let report = judge(&project, &all, "--format json bsr_gemm/cp_async");
    let said = unusable(&report.exits(6).json());
    assert!(said.contains("another plan, which has"), "{said}");
    // Whatever else was wrong, it was of this plan.
    are_one_check(&project, &all);
}

#[test]
fn a_slice_cannot_vouch_for_what_its_captures_do_not_show() {
    let project = Project::locked();
    let all = slices(&project, 1);
    let path = "slices/1/bsr_gemm/cp_async/profile.json";
    let mut profile = project.json(path);
    common::scale(&mut profile, "duration", 0.5);
    project.write(path, profile.to_string());
    let words = "`bsr_gemm/cp_async/profile.json` is not what was written";
    incomplete_for(&project, &all, words);
    // Whoever wrote it can also write its hash.
    let hash = sha256_file(&project.path(path)).unwrap();
    edit_variant(&project, "slices/1", "bsr_gemm/cp_async", |record| {
        record["done"]["profiles"]["profile.json"] = json!(hash);
    });
    let report = judge(&project, &all, JSON).json();
    assert!(report.denies("profile-altered") || report.warns("profile-altered"));
}

#[test]
fn a_slice_cannot_ask_for_consent() {
    let project = Project::locked();
    let all = slices(&project, 1);
    let mut finding = json!({
        "code": "drift", "severity": "warn", "variant": "bsr_gemm/cp_async",
        "message": "m", "next": "n",
    });
    let mut stated = |key: &str, value: &str| {
        finding[key] = value.into();
        edit(&project, &run_of("slices/1"), |run| {
            run["found"]["captures"]["findings"] = json!([finding]);
        });
        unusable(&incomplete(&project, &all))
    };
    assert!(stated("accept", "0123").contains("it states `drift`"));
    for code in ["policy-changed", "relocked", "hidden-from-review"] {
        assert!(stated("code", code).contains(&format!("it states `{code}`")));
    }
}

#[test]
fn the_record_of_a_variant_counts_only_as_the_run_names_it() {
    let project = Project::locked();
    let all = slices(&project, 1);
    let name = "bsr_gemm/cp_async";
    let path = format!("slices/1/{name}/variant.json");
    let [run, record] = ["slices/1/run.json", &path].map(|path| project.read(path));
    judge(&project, &all, JSON).exits(0);
    let refused = |why: &str| {
        let report = incomplete_for(&project, &all, why);
        assert_eq!(unmeasured(&report), shared_of(&run));
        project.write("slices/1/run.json", &run);
        project.write(&path, &record);
    };
    let other = format!("`{name}/variant.json` is not what was written");
    // A character, with the old hash.
    project.replace(&path, "\"retries\":[]", "\"retries\":[ ]");
    refused(&other);
    project.replace("slices/1/run.json", "2026-11-22", "2026-11-23");
    refused("its run.json is damaged");
    // With a hash that fits, but is not the one that the run names.
    edit(&project, &path, |record| record["run"] = json!("another"));
    refused(&other);
    edit(&project, &path, |record| record["done"] = Json::Null);
    refused(&other);
    let of_another = project.read("slices/1/bsr_gemm/baseline/variant.json");
    project.write(&path, of_another);
    refused(&other);
    // The run names that of another variant.
    let names = |change: fn(&mut Json)| edit_variant(&project, "slices/1", name, change);
    names(|record| record["variant"] = json!("bsr_gemm/baseline"));
    refused(&other);
    // It names no file any more.
    names(|record| record["done"] = Json::Null);
    refused("was added to it");
    names(|record| {
        record["done"]["files"]["../baseline/profile.json"] = json!("0".repeat(64));
    });
    refused("it was cut off: `bsr_gemm/cp_async/../baseline/profile.json` is missing");
    edit(&project, "slices/1/run.json", |run| {
        run["found"]["variants"][name] = json!("0".repeat(64));
    });
    refused(&other);
}

/// The variants of all slices, as the record of a run says.
fn shared_of(run: &str) -> Vec<String> {
    let run: Json = serde_json::from_str(run).unwrap();
    let slices = run["content"]["slice"]["slices"].clone();
    let slices: Vec<Vec<String>> = serde_json::from_value(slices).unwrap();
    slices.concat()
}

#[test]
fn a_folder_that_the_run_does_not_name_is_not_read() {
    let project = Project::locked();
    let all = slices(&project, 2);
    let whole = judge(&project, &all, JSON).exits(0);
    // Neither for a variant of the slice itself, nor of another one.
    let [first, second] = [0, 1].map(|at| shared(&project, "slices/1")[at][0].clone());
    let run = project.read("slices/1/run.json");
    edit(&project, "slices/1/run.json", |run| {
        let variants = run["found"]["variants"].as_object_mut();
        variants.unwrap().remove(&first);
    });
    let report = judge(&project, &all, JSON).exits(6).json();
    assert_eq!(unmeasured(&report), [first.as_str()]);
    assert_eq!(report.denied(), ["not-measured"]);
    project.write("slices/1/run.json", &run);

    let copy = project.path(&format!("slices/1/{second}"));
    common::copy(&project.path(&format!("slices/2/{second}")), &copy);
    let profile = format!("slices/1/{second}/profile.json");
    project.edit(&profile, |it| common::scale(it, "duration", 9.0));
    project.write("slices/1/notes.txt", "mine");
    project.write("slices/1/bsr_gemm/more/profile.json", "{}");
    assert_eq!(judge(&project, &all, JSON).exits(0).out, whole.out);
    let report = incomplete(&project, &all[..1]);
    assert_eq!(unmeasured(&report), shared(&project, "slices/1")[1]);
}

#[test]
fn a_slice_whose_run_did_not_end_is_cut_off() {
    let project = Project::locked();
    let all = slices(&project, 2);
    let whole = judge(&project, &all, "").exits(0);
    let run = content(&project, "slices/2/run.json");
    // It is whole from the moment on when all is written; who reported it does not matter.
    for (state, found, is_whole) in [
        ("measuring", false, false),
        ("measuring", true, false),
        ("whole", false, false),
        ("said", false, false),
        ("whole", true, true),
        ("said", true, true),
    ] {
        edit(&project, "slices/2/run.json", |now| {
            now.clone_from(&run);
            now["state"] = json!(state);
            if !found {
                now.as_object_mut().unwrap().remove("found");
            }
        });
        if is_whole {
            assert_eq!(judge(&project, &all, "").exits(0).out, whole.out);
            continue;
        }
        let around = ["slices".to_owned()];
        for folders in [&all[..], &all[1..], &around] {
            let words = "slices/2 is not used: it was cut off: its run did not end";
            let report = incomplete_for(&project, folders, words);
            let own = &shared(&project, "slices/1")[1];
            let unmeasured = unmeasured(&report);
            assert!(own.iter().all(|one| unmeasured.contains(&one.as_str())));
        }
    }
    // The only one, damaged, is no recording instead.
    let path = run_of(&slices(&project, 1)[0]);
    let text = project.read(&path);
    for damaged in [&text[..text.len() / 2], "", &text.replace("said", "Said")] {
        project.write(&path, damaged);
        incomplete(&project, &["slices/1".to_owned()]);
    }
    fs::remove_file(project.path(&path)).unwrap();
    incomplete_for(&project, &["slices/1".to_owned()], "it has no run.json");
}

#[test]
fn a_slice_replaces_an_earlier_one_and_nothing_else() {
    let machine = Machine::new().with_programs(CP_ASYNC);
    machine.lock_measured();
    let project = &machine.project;
    let profile = |place: &str| machine.run(&["profile", "--output", "slice", "--slice", place]);
    profile("2/2").ends(0, "slice 2/2 is complete: 1 variant in ");
    project.write("slice/notes.txt", "mine");
    let shares = shared(project, "slice");
    assert_eq!(shares.len(), 2);
    let earlier = format!("slice/{}/profile.json", shares[1][0]);
    let kept = project.read(&earlier);

    profile("1/2").ends(0, "slice 1/2 is complete");
    let run = content(project, "slice/run.json");
    assert_eq!(run["slice"]["place"], json!({"index": 1, "count": 2}));
    assert_eq!(run["found"]["variants"].as_object().unwrap().len(), 1);
    assert_eq!(project.read("slice/notes.txt"), "mine");
    assert_eq!(project.read(&earlier), kept);
    let report = incomplete_for(project, &["slice".to_owned()], "slice 2/2 is missing");
    assert_eq!(unmeasured(&report), shares[1]);

    profile("3/2").ends(2, "counted from 1 to 2");
    machine.run("profile --slice 1/2").ends(2, "--output");
    // Of both slices the outcome is that of one check.
    machine.run("profile --output second --slice 2/2").exits(0);
    let both = machine.run("check --from slice --from second --format json");
    let report = both.exits(0).json();
    assert_eq!(report.0["origin"]["kind"], "recorded");
    assert_eq!(report.0["variants"].as_array().unwrap().len(), 2);
}

/// A project of many variants, all with the recording of one.
fn many(count: usize) -> Project {
    let project = Project::locked();
    let config = project.read("config.toml");
    let suite = config.find("[suite.").unwrap();
    let names = || (0..count).map(|at| format!("v{at:04}"));
    let variants = names().map(|name| {
        format!("[suite.many.variant.{name}]\nrun = [\"true\"]\ninputs = [\"config.toml\"]\n")
    });
    let suites: String = variants.collect();
    let head = "[suite.many]\nkernels = \"regex:^bsr_gemm_\"\n";
    project.write("config.toml", format!("{}{head}{suites}", &config[..suite]));
    let recorded = project.path(&format!("{RECORDED}/bsr_gemm/cp_async"));
    fs::remove_dir_all(project.path("baselines")).unwrap();
    for name in names() {
        let to = project.path(&format!("{RECORDED}/many/{name}"));
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(&recorded).unwrap() {
            let from = entry.unwrap().path();
            let file = to.join(from.file_name().unwrap());
            let is_report = from.extension().is_some_and(|ending| ending == "ncu-rep");
            // The reports of a thousand variants are 2 GB, and reading them is another test.
            let is_profile = from.ends_with("profile.json") || from.ends_with("static.json");
            if !(is_profile || is_report && count > 100) {
                let linked = fs::hard_link(&from, &file);
                linked
                    .or_else(|_| fs::copy(&from, &file).map(drop))
                    .unwrap();
            }
        }
        let mut profile = project.json(&format!("{RECORDED}/bsr_gemm/cp_async/profile.json"));
        profile["variant"] = json!(format!("many/{name}"));
        let path = format!("{RECORDED}/many/{name}/profile.json");
        project.write(&path, profile.to_string());
    }
    project
}

/// Locks each variant of such a project as it was recorded.
fn lock_all(project: &Project, count: usize) {
    let lock = Project::baseline_path("cp_async", "lock.toml");
    let one = Lock::parse(&Project::locked().read(&lock)).unwrap();
    for name in (0..count).map(|at| format!("v{at:04}")) {
        let recorded = project.read(&format!("{RECORDED}/many/{name}/profile.json"));
        let profile = Profile::parse(recorded.as_bytes()).unwrap();
        let (norm, text) = (norm_text(&profile).unwrap(), profile.to_json());
        let mut lock = one.clone();
        lock.variant = profile.variant;
        let mut entry = lock.ledger.pop().unwrap();
        entry.norm_sha256 = sha256_hex(norm.as_bytes());
        entry.profile_sha256 = sha256_hex(text.as_bytes());
        let id = format!("many/{name}");
        project.write_baseline(GPU, &id, &norm, &text, (lock, entry));
    }
}

/// The program at `SPARSEK_GATE`, or that of the tests, in a project: how long it ran, and the KiB of memory
/// that it had at most.
fn timed(project: &Project, arguments: &[&str]) -> (Ran, Duration, u64) {
    let program = std::env::var_os("SPARSEK_GATE").map(|it| repository().join(it));
    let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_sparsek-gate").into());
    let mut command = Command::new(program);
    outside_pull_request(&mut command);
    let printed = tempfile::tempdir().unwrap();
    let [out, err] = ["out", "err"].map(|name| printed.path().join(name));
    command
        .args(arguments)
        .current_dir(project.path(""))
        .env_remove("CI")
        .stdin(Stdio::null())
        .stdout(fs::File::create(&out).unwrap())
        .stderr(fs::File::create(&err).unwrap());
    let begun = Instant::now();
    let mut child = command.spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    let code = loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
        most = peak.map_or(most, |peak| peak.trim().parse().unwrap());
        if let Some(status) = child.try_wait().unwrap() {
            break status.code().unwrap_or(-1);
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let took = begun.elapsed();
    let [out, err] = [out, err].map(|path| fs::read_to_string(path).unwrap());
    (Ran { code, out, err }, took, most)
}

/// `cargo build --release && SPARSEK_GATE=target/release/sparsek-gate cargo test --test all
/// slices::a_thousand -- --ignored`. What judging takes where all is locked, too, is only printed: then it
/// compares every metric.
#[test]
#[ignore = "measures the release build"]
fn a_thousand_variants_in_eight_slices_are_packed_planned_and_judged_in_four_seconds() {
    let project = many(1000);
    let run = |name: &str, arguments: &[&str]| {
        let (ran, took, most) = timed(&project, arguments);
        let (seconds, megabytes) = (took.as_secs_f64(), most / 1000);
        aloud(&format!("{name}: {seconds:.2} s, {megabytes} MB"));
        (ran, took, most)
    };
    let packed = || {
        let arguments = ["archive", "--output", "gate.tar.zst", "--format", "json"];
        let (ran, took, most) = run("packed", &arguments);
        let content: Json = serde_json::from_str(&ran.exits(0).out).unwrap();
        let sha256 = content["sha256"].as_str().unwrap().to_owned();
        (sha256, took, most)
    };
    let judged = |sha256: &str| {
        for slice in slices(&project, 8) {
            edit(&project, &run_of(&slice), |run| {
                run["slice"]["archive"] = json!(sha256);
            });
        }
        let check = ["check", "--from", "slices", "--format", "json"];
        let archive = ["--archive", "gate.tar.zst", "--archive-sha256", sha256];
        let (ran, took, most) = run("judged", &[&check[..], &archive].concat());
        let report = ran.json();
        assert!(report.denied().len() + report.warned().len() >= 1000);
        assert_eq!(unusable(&report), "");
        assert!(unmeasured(&report).is_empty());
        (took, most)
    };
    let (sha256, packing, of_packing) = packed();
    let (plan, planning, of_planning) = run("planned", &["plan", "--slices", "8"]);
    plan.exits(0);
    let (judging, of_judging) = judged(&sha256);
    lock_all(&project, 1000);
    judged(&packed().0);
    let took = packing + planning + judging;
    assert!(took < Duration::from_secs(4), "{took:?}");
    let most = of_packing.max(of_planning).max(of_judging);
    assert!(most < 400_000, "{most} KiB");
}

#[test]
fn a_report_does_not_replace_a_slice() {
    let project = Project::shipped();
    let all = slices(&project, 1);
    for file in ["run.json", "bsr_gemm/cp_async/variant.json"] {
        let target = format!("json:slices/1/{file}");
        judge(&project, &all, &["--report", &target]).ends(2, "would replace a file");
        content(&project, &format!("slices/1/{file}"));
    }
}
