//! `history`: what was accepted, in which commit, and what its metrics were.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::common::git::has_git;
use crate::common::{GPU, Project, RECORDED, Ran, copy, recordings};
use serde_json::{Value as Json, json};
use sparsek_gate::history::{PastVariant, Trend};
use sparsek_gate::report::{history_page, history_site, history_text};

const CP_ASYNC: &str = "bsr_gemm/cp_async";

fn commit(project: &Project, message: &str) -> String {
    project.git(&["add", "--all", "baselines"]);
    project.git(&["commit", "--quiet", "--message", message]);
    project.git(&["rev-parse", "HEAD"])
}

/// Locks cp_async from these recordings and commits that.
fn lock(project: &Project, from: &[&str], reason: &str) -> String {
    let mut arguments = vec![
        "baseline", "--lock", "--who", "a tester", "--reason", reason, CP_ASYNC,
    ];
    for folder in from {
        arguments.extend(["--from", folder]);
    }
    project.run(&arguments).exits(0);
    commit(project, reason)
}

/// A repository in which one GPU was locked, then two, then the first again for another reason.
fn locked_thrice() -> (Project, [String; 3]) {
    let project = Project::unlocked();
    let locked = recordings().join("h200-locked");
    let folders = ["2acac915", "b8f78d99"];
    for folder in folders {
        copy(&locked.join(folder), &project.path(folder));
    }
    project.git(&["init", "--quiet"]);
    let first = lock(&project, &[RECORDED], "the first measurement");
    let second = lock(&project, &folders, "two GPUs <b>now</b>");
    let third = lock(&project, &[RECORDED], "back to one");
    (project, [first, second, third])
}

fn history(project: &Project, more: &[&str]) -> Json {
    let mut arguments = vec!["history", CP_ASYNC, "--format", "json"];
    arguments.extend(more);
    let answer = project.run(&arguments).exits(0).json().0;
    assert_eq!(answer["baselines"].as_array().unwrap().len(), 1);
    answer["baselines"][0].clone()
}

fn durations(baseline: &Json) -> Vec<Json> {
    let metrics = baseline["metrics"].as_array().unwrap();
    let duration = metrics.iter().find(|course| course["metric"] == "duration");
    duration.unwrap()["values"].as_array().unwrap().clone()
}

fn locked_duration(text: &str) -> Json {
    let profile: Json = serde_json::from_str(text).unwrap();
    profile["kernels"][0]["metrics"]["duration"].clone()
}

#[test]
fn every_acceptance_is_shown_with_its_commit_and_the_values_of_then() {
    if !has_git("no history") {
        return;
    }
    let (project, commits) = locked_thrice();
    let path = Project::baseline_path("cp_async", "profile.json");
    let baseline = history(&project, &[]);
    assert_eq!(baseline["gpu"], GPU);
    let acceptances = baseline["acceptances"].as_array().unwrap();
    assert_eq!(acceptances.len(), 3);
    let values = durations(&baseline);
    for (at, id) in commits.iter().enumerate() {
        assert_eq!(acceptances[at]["commit"], json!(id), "{at}");
        assert_eq!(acceptances[at]["missing"], Json::Null);
        let then = project.git(&["show", &format!("{id}:./{path}")]);
        assert_eq!(values[at]["value"], locked_duration(&then)["value"], "{at}");
    }
    // Two GPUs are farther apart than the processes of one.
    assert!(values[1]["noise"].as_f64() > values[0]["noise"].as_f64());
    assert_eq!(values[0], values[2]);
    // Noise of a share is in points, as in every other report.
    let text = project.run(&["history", "cp_async"]).exits(0).out;
    let noisy = text
        .lines()
        .find(|line| line.contains(" sm_active "))
        .unwrap();
    let mut noises = noisy.split('±').skip(1);
    assert!(noises.clone().next().is_some(), "{noisy}");
    assert!(
        noises.all(|noise| noise.split(' ').nth(1) == Some("pt")),
        "{noisy}"
    );

    let shown = project.run(&["history", "cp_async"]).exits(0);
    let shown = shown.says("the first measurement").says("back to one");
    assert!(shown.out.contains(&commits[1][..10]));
    assert!(!shown.out.contains('\u{1b}'), "{}", shown.out);
    // From any folder.
    let config = project.path("config.toml");
    let elsewhere = Command::new(env!("CARGO_BIN_EXE_sparsek-gate"))
        .args(["-C", config.to_str().unwrap(), "history", CP_ASYNC])
        .current_dir("/")
        .output()
        .unwrap();
    assert_eq!(Ran::of(&elsewhere).exits(0).out, shown.out);

    // A profile that was not committed yet is the one at hand.
    project
        .run(&[
            "baseline", "--lock", "--who", "a tester", "--reason", "fourth", CP_ASYNC, "--from",
            "b8f78d99",
        ])
        .exits(0);
    let baseline = history(&project, &["--metric", "duration", "--metric", "clock"]);
    assert_eq!(baseline["acceptances"][3]["commit"], Json::Null);
    assert!(durations(&baseline)[3]["value"].is_f64());
    assert_eq!(baseline["metrics"].as_array().unwrap().len(), 2);
    project
        .run(&["history", CP_ASYNC, "--metric", "duratoin"])
        .exits(2)
        .says("did you mean `duration`?");

    for (name, starts) in [("trend.svg", "<svg"), ("trend.html", "<!DOCTYPE html>")] {
        project
            .run(&["history", CP_ASYNC, "--output", name])
            .exits(0);
        let drawn = project.read(name);
        assert!(drawn.starts_with(starts));
        assert!(drawn.contains("two GPUs &lt;b&gt;now&lt;/b&gt;"), "{name}");
        assert!(!drawn.contains('\u{1b}'));
    }
    project
        .run(&["history", CP_ASYNC, "--output", "trend.png"])
        .exits(2)
        .says(".svg or .html");
}

#[test]
fn a_missing_past_profile_is_reported_and_is_never_a_number() {
    if !has_git("no history") {
        return;
    }
    let (project, commits) = locked_thrice();
    let profile = Project::baseline_path("cp_async", "profile.json");
    let whole = history(&project, &[]);

    // The last two commits alone: a shallow clone.
    let clone = project.path("clone");
    let source = format!("file://{}", project.path(".").display());
    let folder = clone.to_str().unwrap();
    project.git(&["clone", "--quiet", "--depth", "1", &source, folder]);
    std::fs::copy(project.path("config.toml"), clone.join("config.toml")).unwrap();
    copy(&project.path("kernels"), &clone.join("kernels"));
    let config = clone.join("config.toml");
    let shallow = history(&project, &["-C", config.to_str().unwrap()]);
    let [first, second, third] = shallow["acceptances"].as_array().unwrap().as_slice() else {
        panic!("{shallow:#}")
    };
    // The first was accepted again as it was, so its profile is here.
    assert_eq!(
        (&first["missing"], &third["missing"]),
        (&Json::Null, &Json::Null)
    );
    assert!(second["missing"].as_str().unwrap().contains("--unshallow"));
    assert_eq!(durations(&shallow)[1], Json::Null);
    assert_eq!(durations(&shallow)[0], durations(&whole)[0]);

    // A commit whose profile is not the accepted one does not count.
    project.git(&["checkout", "--quiet", &commits[1]]);
    let text = project.read(&profile);
    project.write(&profile, text.replacen("\"value\": ", "\"value\":  ", 1));
    let edited = history(&project, &[]);
    assert!(
        durations(&edited)[1]["value"].is_f64(),
        "the commit contains it"
    );
    std::fs::remove_dir_all(project.path(".git")).unwrap();
    let alone = history(&project, &["--metric", "duration"]);
    for acceptance in alone["acceptances"].as_array().unwrap() {
        assert_eq!(acceptance["commit"], Json::Null);
        assert!(acceptance["missing"].is_string(), "{acceptance}");
    }
    project
        .run(&["history", CP_ASYNC])
        .exits(0)
        .says("not a git repository");

    // A ledger that contradicts itself is no history.
    let lock = Project::baseline_path("cp_async", "lock.toml");
    project.replace(&lock, "the first measurement", "another reason");
    project
        .run(&["history", CP_ASYNC])
        .exits(4)
        .says("the ledger was edited");
    project
        .run(&["history", "bsr_gemm/baseline"])
        .exits(4)
        .says("nothing is locked yet");
    project
        .run(&["history", "bsr_gemm/cp_asinc"])
        .exits(2)
        .says("did you mean");
}

#[test]
fn a_profile_of_the_first_schema_is_read_as_far_as_it_goes() {
    let text = json!({
        "schema": 1,
        "identity": { "metrics": { "duration": { "counter": "gpu__time_duration.sum", "unit": "ns" } } },
        "kernels": [{
            "name": "bsr_gemm_cp_async",
            "metrics": { "duration": { "median": 272144.0, "sigma": 800.0, "samples": [[272144.0]] } },
        }],
    });
    let past = sparsek_gate::history::PastProfile::parse(text.to_string().as_bytes()).unwrap();
    let (kernel, series) = past.series().next().unwrap();
    assert_eq!(kernel, "bsr_gemm_cp_async");
    assert_eq!(series.value, Some(272_144.0));
    // The spread of launches is not that of processes.
    assert_eq!(series.noise, None);
    assert!(past.note.unwrap().contains("schema 1"));
    let unread = sparsek_gate::history::PastProfile::parse(b"{\"schema\": 9, \"kernels\": []}");
    assert!(unread.unwrap_err().contains("schema 9"));
}

#[test]
fn a_page_of_a_check_shows_how_its_baselines_went() {
    if !has_git("no history") {
        return;
    }
    let (project, _) = locked_thrice();
    let report = project.path("report.json").display().to_string();
    let page = project.path("page.html").display().to_string();
    let arguments = [
        "check", CP_ASYNC, "--from", RECORDED, "--report", &report, "--report", &page,
    ];
    project.run(&arguments);
    let outcome: Json = serde_json::from_str(&project.read("report.json")).unwrap();
    let trend = &outcome["trends"][0];
    assert_eq!(trend["variant"], CP_ASYNC);
    assert_eq!(trend["acceptances"].as_array().unwrap().len(), 3);
    assert_eq!(durations(trend).len(), 3);
    let page = project.read("page.html");
    assert!(page.contains("History of bsr_gemm/cp_async on nvidia-h200"));
    // Rendered again from the JSON it is the same page.
    let again = project.path("again.html").display().to_string();
    project
        .run(&["report", &report, "--report", &again])
        .exits(0);
    assert_eq!(project.read("again.html"), page);
}

/// The names and texts of the files in a folder.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect()
}

#[test]
fn all_variants_become_a_site_that_loads_nothing_and_is_the_same_each_time() {
    if !has_git("no site") {
        return;
    }
    let (project, _) = locked_thrice();
    let site = ["history", "--all", "--output", "site"];
    project.run(&site).exits(0).says("wrote 2 pages to site");
    let pages = files(&project.path("site"));
    let names: Vec<&String> = pages.keys().collect();
    assert_eq!(names, ["bsr_gemm.cp_async.html", "index.html"]);
    let index = &pages["index.html"];
    assert!(index.contains("<a href=\"bsr_gemm.cp_async.html\">bsr_gemm/cp_async</a>"));
    // A variant without a baseline is named, and has no page.
    assert!(index.contains("bsr_gemm/baseline") && index.contains("Not locked"));
    let page = &pages["bsr_gemm.cp_async.html"];
    assert!(page.contains("two GPUs &lt;b&gt;now&lt;/b&gt;"));
    assert!(
        page.contains("from 12 acceptances on; here are 3"),
        "{page}"
    );
    for text in pages.values() {
        let loads = text.replace("http://www.w3.org/2000/svg", "");
        assert!(
            !loads.contains("://") && !loads.contains("<script"),
            "{loads}"
        );
        assert!(text.contains("default-src 'none'"));
    }
    // The page of a variant that is gone goes too.
    std::fs::write(project.path("site/bsr_gemm.gone.html"), page).unwrap();
    project.run(&site).exits(0);
    assert_eq!(files(&project.path("site")), pages);
    let json = project
        .run(&[&site[..], &["--metric", "duration", "--format", "json"]].concat())
        .exits(0)
        .json()
        .0;
    let file = |page: &Json| page["file"].as_str().map(str::to_owned);
    let listed = json["pages"].as_array().unwrap();
    assert_eq!(
        listed.iter().filter_map(file).collect::<Vec<_>>(),
        ["bsr_gemm.cp_async.html"]
    );

    // A lock that contradicts itself is no history, and the others are written.
    let lock = Project::baseline_path("cp_async", "lock.toml");
    project.replace(&lock, "the first measurement", "another reason");
    project.run(&site).exits(4).says("the ledger was edited");
}

#[test]
fn a_site_is_written_to_no_folder_with_other_files_and_of_no_empty_history() {
    if !has_git("no site") {
        return;
    }
    let project = Project::unlocked();
    project.git(&["init", "--quiet"]);
    let site = ["history", "--all", "--output", "site"];
    project
        .run(&site)
        .exits(4)
        .says("nothing is locked yet")
        .says("baseline --lock");
    assert!(!project.path("site").exists());

    lock(&project, &[RECORDED], "the only one");
    project.write("site/notes.html", "<p>mine");
    project
        .run(&site)
        .exits(2)
        .says("notes.html")
        .says("did not write");
    assert_eq!(files(&project.path("site")).len(), 1);
    std::fs::remove_file(project.path("site/notes.html")).unwrap();
    project.run(&site).exits(0);
    assert!(
        project
            .read("site/bsr_gemm.cp_async.html")
            .contains("here is 1.")
    );
    // Nor through a link.
    std::fs::rename(project.path("site/index.html"), project.path("kept")).unwrap();
    std::os::unix::fs::symlink("../kept", project.path("site/index.html")).unwrap();
    project.run(&site).exits(2).says("index.html");

    for (arguments, says) in [
        (&["history", "--all"][..], "--output"),
        (&["history"], "<VARIANT>"),
        (
            &["history", CP_ASYNC, "--all", "--output", "x"],
            "cannot be used with",
        ),
        (
            &["history", "--all", "--output", "x.html"],
            "names a folder, not a file",
        ),
        (
            &["history", "--all", "--output", "config.toml"],
            "is a file",
        ),
        (
            &["history", "--all", "--output", "x", "--metric", "duratoin"],
            "duratoin",
        ),
    ] {
        project.run(arguments).exits(2).says(says);
    }
    assert!(!project.path("x").exists());
}

#[test]
fn a_change_of_level_is_shown_with_the_acceptance_that_brought_it() {
    let acceptance = |at: usize| {
        json!({
            "time": format!("2026-11-{:02}T00:00:00Z", at + 1), "who": "a tester",
            "reason": format!("reason {at}"), "commit": null, "profile_sha256": "", "norm_sha256": "",
            "missing": null, "note": null,
        })
    };
    let value =
        |at: usize| json!({ "value": if at < 7 { 270_000.0 } else { 280_800.0 }, "noise": null });
    let trend: Trend = serde_json::from_value(json!({
        "variant": CP_ASYNC, "gpu": "nvidia-h200", "tier": "counters",
        "acceptances": (0..14).map(acceptance).collect::<Vec<_>>(),
        "metrics": [{
            "kernel": "bsr_gemm_cp_async", "metric": "duration", "unit": "ns",
            "counter": "gpu__time_duration.sum",
            "values": (0..14).map(value).collect::<Vec<_>>(),
            "changes": [{ "at": 7, "before": 270_000.0, "after": 280_800.0 }],
        }],
    }))
    .unwrap();
    let line = "270.00 us → 280.80 us, +4.00 % from #8 (2026-11-08, reason 7)";
    let trends = [trend];
    let text = history_text(&trends);
    assert!(
        text.contains(&format!("change of level: duration: {line}")),
        "{text}"
    );
    let page = history_page(&trends);
    assert!(page.contains(line));
    assert_eq!(
        page.matches("class=\"change\"").count(),
        2,
        "of a wide and of a narrow picture"
    );
    let variant = trends[0].variant.clone();
    let [baselines] = [trends.to_vec()];
    let pages = history_site(&[PastVariant { variant, baselines }]);
    assert!(
        pages[1].text.contains("+4.00 % from #8 (2026-11-08)"),
        "{}",
        pages[1].text
    );
}
