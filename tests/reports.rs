//! One outcome in every form, all of them from a check of recorded profiles.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use common::{Project, keep_launches, repository, samples};
use serde_json::{Value as Json, json};
use sparsek_gate::baseline::{Entry, Lock};
use sparsek_gate::cli::ReportFormat;
use sparsek_gate::hash::sha256_hex;
use sparsek_gate::profile::{Profile, norm_text};
use sparsek_gate::report::render;
use sparsek_gate::verdict::Outcome;

const RECORDINGS: &str = "ci/recordings/h200/bsr_gemm";
const WORSE: &str = "ci/recordings/h200-worse/bsr_gemm/cp_async";
const COUNTERS: &str = "baselines/nvidia-h200/bsr_gemm";
const STATIC: &str = "baselines/sm-90a+static/bsr_gemm";

/// A file of the repository that holds a golden form.
fn golden_path(name: &str) -> PathBuf {
    repository().join("tests/data/outcomes").join(name)
}

/// Holds a text to a file of the repository; `INSTA_UPDATE=always` writes that file.
#[track_caller]
fn is_golden(name: &str, text: &str) {
    let path = golden_path(name);
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(&path, text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    let differing = golden.lines().zip(text.lines()).position(|(a, b)| a != b);
    let at = differing.unwrap_or(golden.lines().count().min(text.lines().count()));
    assert!(
        golden == text,
        "tests/data/outcomes/{name} differs from line {} on:\n  was {}\n  is  {}\n\
         where that is meant: INSTA_UPDATE=always cargo test --test reports",
        at + 1,
        golden.lines().nth(at).unwrap_or("nothing"),
        text.lines().nth(at).unwrap_or("nothing"),
    );
}

fn read_json(path: &str) -> Json {
    serde_json::from_str(&fs::read_to_string(repository().join(path)).unwrap()).unwrap()
}

/// Puts a profile under the name of a variant, in the recordings.
fn record(project: &Project, variant: &str, file: &str, mut profile: Json) {
    profile["variant"] = json!(variant);
    project.write(
        &format!("{}/{variant}/{file}", common::RECORDED),
        profile.to_string(),
    );
}

/// Locks a profile under the name of a variant, as `baseline --lock` did once.
fn lock(project: &Project, variant: &str, mut profile: Json) {
    profile["variant"] = json!(variant);
    let profile = Profile::parse(profile.to_string().as_bytes()).unwrap();
    let (norm, text) = (norm_text(&profile).unwrap(), profile.to_json());
    let immutable = variant == "ladder/baseline";
    let mut lock = Lock {
        schema: Lock::SCHEMA,
        variant: profile.variant.clone(),
        immutable,
        head: String::new(),
        flags: Vec::new(),
        sources: Default::default(),
        ledger: Vec::new(),
    };
    if immutable {
        // The code and flags are those that were locked in the repository.
        let stem = format!("{COUNTERS}/baseline.lock.toml");
        let shipped = Lock::parse(&fs::read_to_string(repository().join(stem)).unwrap()).unwrap();
        (lock.flags, lock.sources) = (shipped.flags, shipped.sources);
    }
    let entry = Entry {
        time: "2026-11-21T07:11:52Z".to_owned(),
        who: "a tester".to_owned(),
        reason: "measured on an NVIDIA H200".to_owned(),
        norm_sha256: sha256_hex(norm.as_bytes()),
        profile_sha256: sha256_hex(text.as_bytes()),
        code_sha256: lock.code_sha256(),
        previous: Entry::GENESIS.to_owned(),
    };
    lock.head = entry.hash();
    let sum = format!(
        "{}  {}.norm.txt\n",
        entry.norm_sha256, profile.variant.variant
    );
    lock.ledger.push(entry);
    let path = |ending: &str| format!("baselines/{}/{variant}.{ending}", profile.identity.folder());
    project.write(&path("norm.txt"), norm);
    project.write(&path("norm.txt.sha256"), sum);
    project.write(&path("profile.json"), text);
    project.write(&path("lock.toml"), lock.to_toml());
}

/// The duration under the name that has a narrow tolerance.
fn narrow(mut profile: Json) -> Json {
    for place in ["/identity/metrics", "/kernels/0/metrics"] {
        let metrics = profile.pointer_mut(place).unwrap().as_object_mut().unwrap();
        let duration = metrics.remove("duration").unwrap();
        metrics.insert("duration_narrow".to_owned(), duration);
    }
    profile
}

/// Only the metrics that the suite of the variant names: a locked one that it does not name is a
/// finding of its own.
fn of_suite(project: &Project, variant: &str, mut profile: Json) -> Json {
    let config: toml::Value = toml::from_str(&project.read("config.toml")).unwrap();
    let suite = variant.split('/').next().unwrap();
    let named = config["suite"][suite]["metrics"].as_array().unwrap();
    for place in ["/identity/metrics", "/kernels/0/metrics"] {
        let metrics = profile.pointer_mut(place).unwrap().as_object_mut().unwrap();
        metrics.retain(|alias, _| named.iter().any(|name| name.as_str() == Some(alias)));
    }
    profile
}

/// A project whose check finds something of every kind: recordings of an H200 under names that say
/// what becomes of them, with the configuration `tests/data/outcomes/config.toml`.
fn every_verdict() -> Project {
    let project = Project::empty();
    let config = fs::read_to_string(golden_path("config.toml")).unwrap();
    project.write("config.toml", config);
    common::copy(&repository().join("kernels"), &project.path("kernels"));
    let recorded = |variant: &str| read_json(&format!("{RECORDINGS}/{variant}/profile.json"));
    let locked = |variant: &str| read_json(&format!("{COUNTERS}/{variant}.profile.json"));
    let compiled = |variant: &str| read_json(&format!("{RECORDINGS}/{variant}/static.json"));
    let compiled_lock = |variant: &str| read_json(&format!("{STATIC}/{variant}.profile.json"));
    let lock = |variant: &str, profile: Json| {
        lock(&project, variant, of_suite(&project, variant, profile));
    };
    let lock_static = |variant: &str, profile: Json| self::lock(&project, variant, profile);
    let record =
        |variant: &str, file: &str, profile: Json| record(&project, variant, file, profile);

    for variant in ["baseline", "occupancy"] {
        let name = format!("ladder/{variant}");
        lock(&name, locked(variant));
        lock_static(&name, compiled_lock(variant));
        record(&name, "profile.json", recorded(variant));
        record(&name, "static.json", compiled(variant));
    }
    let worse = || read_json(&format!("{WORSE}/profile.json"));
    let worse_compiled = || read_json(&format!("{WORSE}/static.json"));
    lock("ladder/unpadded", locked("cp_async"));
    lock_static("ladder/unpadded", compiled_lock("cp_async"));
    record("ladder/unpadded", "profile.json", worse());
    record("ladder/unpadded", "static.json", worse_compiled());
    lock("ladder/padded", worse());
    lock_static("ladder/padded", worse_compiled());
    record("ladder/padded", "profile.json", recorded("cp_async"));
    record("ladder/padded", "static.json", compiled("cp_async"));

    for fault in ["spills", "less_work", "no_tensor_cores", "uncoalesced"] {
        let name = format!("faults/{fault}");
        lock(&name, locked("cp_async"));
        lock_static(&name, compiled_lock("cp_async"));
        let folder = format!("ci/recordings/faults/{fault}/bsr_gemm/cp_async");
        record(
            &name,
            "profile.json",
            read_json(&format!("{folder}/profile.json")),
        );
        let compiled = read_json(&format!("tests/data/outcomes/static/{fault}.json"));
        record(&name, "static.json", compiled);
    }

    for variant in ["narrow", "short", "gap", "edited", "new"] {
        let name = format!("doubts/{variant}");
        let mut profile = narrow(recorded("cp_async"));
        if variant == "short" {
            keep_launches(&mut profile, 12);
        }
        if variant == "gap" {
            *samples(&mut profile, "duration_narrow")[7] = Json::Null;
        }
        record(&name, "profile.json", profile);
        if variant != "new" {
            lock(&name, narrow(locked("cp_async")));
        }
    }
    let norm = "baselines/nvidia-h200/doubts/edited.norm.txt";
    let honest = project.read(norm);
    let faster = honest.replacen("duration_narrow: 271", "duration_narrow: 249", 1);
    project.write(norm, faster);
    assert_ne!(honest, project.read(norm), "{honest}");
    project
}

/// The JSON form of that check, without the path of the temporary folder.
static EVERY_VERDICT: LazyLock<String> = LazyLock::new(|| {
    let project = every_verdict();
    project.run(&[
        "check",
        "--from",
        common::RECORDED,
        "--report",
        "outcome.json",
    ]);
    let folder = project.path("").canonicalize().unwrap();
    let folder = format!("{}/", folder.display());
    project.read("outcome.json").replace(&folder, "")
});

#[test]
fn the_outcome_in_the_repository_is_what_a_check_of_the_recordings_writes() {
    is_golden("every_verdict.json", &EVERY_VERDICT);
}

const FORMS: [(&str, ReportFormat); 7] = [
    ("txt", ReportFormat::Text),
    ("md", ReportFormat::Markdown),
    ("json", ReportFormat::Json),
    ("junit.xml", ReportFormat::Junit),
    ("sarif", ReportFormat::Sarif),
    ("github.txt", ReportFormat::Github),
    ("codequality.json", ReportFormat::Gitlab),
];

fn golden_outcome() -> Outcome {
    let text = fs::read_to_string(golden_path("every_verdict.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn rendered(outcome: &Outcome, format: ReportFormat) -> String {
    let text = render(outcome, format);
    anstream::adapter::strip_str(&text).to_string()
}

#[test]
fn every_form_of_the_outcome_is_the_one_in_the_repository() {
    let outcome = golden_outcome();
    for (ending, format) in FORMS {
        let text = rendered(&outcome, format);
        is_golden(&format!("every_verdict.{ending}"), &text);
    }
}
