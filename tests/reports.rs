//! One outcome in every form, all of them from a check of recorded profiles.

#[path = "common/published.rs"]
mod published;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex};

use crate::common::outcome::large;
use crate::common::outcomes::render as render_in;
use crate::common::{self, Project, Ran, is_generated, keep_launches, repository, samples};
use serde_json::{Value as Json, json};
use sparsek_gate::baseline::{Entry, Lock};
use sparsek_gate::finding::{Code, ExitCode, Finding, Reported};
use sparsek_gate::hash::sha256_hex;
use sparsek_gate::judge::{Comparison, Origin, Outcome, Place, VariantReport};
use sparsek_gate::profile::{Profile, norm_text};
use sparsek_gate::report::form;
use sparsek_gate::terms::Tier;
use sparsek_gate::verdict::Verdict;

const RECORDINGS: &str = "ci/recordings/h200/bsr_gemm";
const WORSE: &str = "ci/recordings/h200-worse/bsr_gemm/cp_async";
const COUNTERS: &str = "baselines/nvidia-h200/bsr_gemm";
const STATIC: &str = "baselines/sm-90a+static/bsr_gemm";

/// A file of the repository with a golden form.
fn golden_path(name: &str) -> PathBuf {
    repository().join("tests/data/outcomes").join(name)
}

/// Compares a text with a golden file of the repository.
#[track_caller]
fn is_golden(name: &str, text: &str) {
    is_generated(&format!("tests/data/outcomes/{name}"), text);
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
    project.write_baseline(
        &profile.identity.folder(),
        variant,
        &norm,
        &text,
        (lock, entry),
    );
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
        let measured = read_json(&format!("{folder}/profile.json"));
        record(&name, "profile.json", measured);
        let compiled = read_json(&format!("tests/data/outcomes/static/{fault}.json"));
        record(&name, "static.json", compiled);
    }

    for variant in ["narrow", "short", "gap", "edited", "new"] {
        let name = format!("doubts/{variant}");
        let mut profile = narrow(recorded("cp_async"));
        // The recording is a little faster than the lock: one becomes slower beyond all doubt, and
        // the processes of the others are apart by more than the tolerance.
        if variant == "narrow" {
            common::scale(&mut profile, "duration_narrow", 1.015);
        } else {
            common::scale_processes(&mut profile, "duration_narrow", &[1.006, 1.010]);
        }
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
    let faster = honest.replacen("duration_narrow: 25", "duration_narrow: 23", 1);
    project.write(norm, faster);
    assert_ne!(honest, project.read(norm), "{honest}");
    project
}

/// The JSON form of that check, without the path of the temporary folder.
static EVERY_VERDICT: LazyLock<String> = LazyLock::new(|| {
    let project = every_verdict();
    project.run("check --from recorded --report outcome.json");
    let folder = project.path("").canonicalize().unwrap();
    let folder = format!("{}/", folder.display());
    project.read("outcome.json").replace(&folder, "")
});

#[test]
fn the_outcome_in_the_repository_is_what_a_check_of_the_recordings_writes() {
    is_golden("every_verdict.json", &EVERY_VERDICT);
}

const FORMS: [(&str, &str); 9] = [
    ("txt", "text"),
    ("md", "markdown"),
    ("json", "json"),
    ("junit.xml", "junit"),
    ("sarif", "sarif"),
    ("github.txt", "github"),
    ("codequality.json", "gitlab"),
    ("bmf.json", "bencher"),
    ("otava.csv", "otava"),
];

fn golden_outcome() -> Outcome {
    static GOLDEN: LazyLock<Outcome> = LazyLock::new(|| {
        let text = fs::read_to_string(golden_path("every_verdict.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    });
    GOLDEN.clone()
}

/// As a terminal shows it.
fn render(outcome: &Outcome, name: &str) -> String {
    render_in(form(name).unwrap(), outcome)
}

/// As a file contains it: without colours.
fn rendered(outcome: &Outcome, name: &str) -> String {
    let mut file = Vec::new();
    form(name).unwrap().write(outcome, &mut file).unwrap();
    String::from_utf8(file).unwrap()
}

#[test]
fn every_form_of_the_outcome_is_the_one_in_the_repository() {
    let outcome = golden_outcome();
    for (ending, format) in FORMS {
        let text = rendered(&outcome, format);
        is_golden(&format!("every_verdict.{ending}"), &text);
    }
}

/// The document, of XML that fits the schema of its dialect.
#[track_caller]
fn junit(text: &str) -> uppsala::Document<'_> {
    let schema = fs::read_to_string(repository().join("tests/data/schemas/junit-10.xsd")).unwrap();
    let schema = uppsala::parse(&schema).unwrap();
    let document = uppsala::parse(text).unwrap();
    let validator = uppsala::XsdValidator::from_schema(&schema).unwrap();
    let complaints = validator.validate(&document);
    assert!(complaints.is_empty(), "{complaints:?}");
    document
}

/// A JSON Schema of the repository; each is read once.
fn validator(path: &str) -> Arc<jsonschema::Validator> {
    static READ: Mutex<BTreeMap<String, Arc<jsonschema::Validator>>> = Mutex::new(BTreeMap::new());
    let mut read = READ.lock().unwrap();
    if let Some(validator) = read.get(path) {
        return validator.clone();
    }
    let mut schema = read_json(path);
    // OASIS published a pattern here that closes a bracket it never opened.
    for definition in ["run", "toolComponent"] {
        let language = format!("/definitions/{definition}/properties/language");
        if let Some(language) = schema.pointer_mut(&language) {
            language.as_object_mut().unwrap().remove("pattern");
        }
    }
    let validator = Arc::new(jsonschema::validator_for(&schema).unwrap());
    read.insert(path.to_owned(), validator.clone());
    validator
}

/// The value, of JSON that fits a schema of the repository.
#[track_caller]
fn fitting(text: &str, schema: &str) -> Json {
    let value: Json = serde_json::from_str(text).unwrap();
    let checked = validator(schema).validate(&value);
    assert!(checked.is_ok(), "{schema}: {checked:?}");
    value
}

const SARIF: &str = "tests/data/schemas/sarif-2.1.0.schema.json";
const GITLAB: &str = "tests/data/schemas/gitlab-codequality.schema.json";
const OUTCOME: &str = "docs/outcome.schema.json";
const BENCHER: &str = "tests/data/schemas/bencher-bmf.schema.json";

/// Checks each form against its schema, and its counts against the outcome.
#[track_caller]
fn forms_fit(outcome: &Outcome) {
    let failed = outcome.exit_code() != ExitCode::Pass;
    let findings = outcome.findings.len();
    let xml = rendered(outcome, "junit");
    let document = junit(&xml);
    let whole = document.document_element().unwrap();
    let attribute = |node, name: &str| -> usize {
        document.get_attribute(node, name).unwrap().parse().unwrap()
    };
    let count = |name: &str| document.get_elements_by_tag_name(name).len();
    assert_eq!(attribute(whole, "tests"), count("testcase"));
    assert_eq!(attribute(whole, "failures"), count("failure"));
    assert_eq!(attribute(whole, "errors"), count("error"));
    assert_eq!(count("failure") + count("error") > 0, failed);
    for suite in document.get_elements_by_tag_name("testsuite") {
        let cases = document.children(suite).into_iter();
        let names = cases.filter_map(|case| document.get_attribute(case, "name"));
        let names: Vec<_> = names.collect();
        let own: BTreeSet<_> = names.iter().collect();
        assert_eq!(own.len(), names.len(), "{names:?}");
    }

    let sarif = fitting(&rendered(outcome, "sarif"), SARIF);
    let run = &sarif["runs"][0];
    assert_eq!(run["results"].as_array().unwrap().len(), findings);
    let invocation = &run["invocations"][0];
    assert_eq!(invocation["exitCode"], outcome.exit_code() as u8);
    assert_eq!(invocation["executionSuccessful"], outcome.ended.is_none());
    for result in run["results"].as_array().unwrap() {
        let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(rule["id"], result["ruleId"]);
    }

    let gitlab = fitting(&rendered(outcome, "gitlab"), GITLAB);
    let issues = gitlab.as_array().unwrap();
    assert!(issues.len() >= findings && (!failed || !issues.is_empty()));
    let fingerprints = issues.iter().map(|issue| issue["fingerprint"].to_string());
    assert_eq!(fingerprints.collect::<BTreeSet<_>>().len(), issues.len());

    let json = rendered(outcome, "json");
    let read: Outcome = serde_json::from_str(&json).unwrap();
    let (read, written) = (serde_json::to_string(&read), serde_json::to_string(outcome));
    let (read, written) = (read.unwrap(), written.unwrap());
    let differ = read.bytes().zip(written.bytes()).position(|(a, b)| a != b);
    let around = differ.map(|at| (read.get(at - 60..at + 60), written.get(at - 60..at + 60)));
    assert!(read == written, "{around:?}");
    fitting(&json, OUTCOME);

    annotations(&rendered(outcome, "github"));
    markdown(&rendered(outcome, "markdown"));
    values_fit(outcome);
}

/// Checks the forms that carry values against what is published of them, and counts the values.
#[track_caller]
fn values_fit(outcome: &Outcome) {
    let reports = outcome.variants.iter();
    let measured = reports
        .flat_map(|report| &report.comparisons)
        .filter(|one| one.current.is_some() && one.verdict != Some(Verdict::NotMeasured));
    let measured = measured.count();
    let metrics = fitting(&rendered(outcome, "bencher"), BENCHER);
    assert_eq!(published::bencher(&metrics).len(), measured);
    let (columns, rows) = published::otava(&rendered(outcome, "otava"));
    assert_eq!(columns.len(), measured);
    assert!(rows.len() <= 1);
}

#[test]
fn values_for_other_tools_are_those_that_were_measured() {
    let outcome = golden_outcome();
    let mut reports = outcome.variants.iter();
    let report = reports.find(|report| report.variant.variant == "unpadded");
    let mut comparisons = report.unwrap().comparisons.iter();
    let duration = comparisons.find(|one| one.metric == "duration");
    let current = duration.unwrap().current.unwrap();
    let name = "ladder/unpadded bsr_gemm_cp_async";

    let metrics = fitting(&rendered(&outcome, "bencher"), BENCHER);
    let metric = &metrics[name]["duration"];
    assert_eq!(metric["value"], current.value);
    let upper = current.value + current.between.unwrap();
    assert_eq!(metric["upper_value"], upper);
    let (columns, rows) = published::otava(&rendered(&outcome, "otava"));
    let of_duration = format!("{name} duration");
    let at = columns.iter().position(|column| *column == of_duration);
    assert_eq!(rows[0][at.unwrap()], current.value);

    // One launch of `gap` has no duration, so none is known of it: it is left out, and is not zero.
    let gap = "doubts/gap bsr_gemm_cp_async";
    assert_eq!(metrics[gap]["duration_narrow"], Json::Null);
    assert!(!columns.contains(&format!("{gap} duration_narrow")));
    assert!(columns.iter().any(|column| column.starts_with(gap)));
}

#[test]
fn metrics_whose_names_are_alike_stay_apart() {
    let mut outcome = golden_outcome();
    outcome.variants.truncate(1);
    let report = &mut outcome.variants[0];
    let model = report.comparisons.iter().find(|one| one.current.is_some());
    let model = model.unwrap().clone();
    let named = |metric: &str, unit: Option<&str>| Comparison {
        metric: metric.to_owned(),
        unit: unit.map(str::to_owned),
        verdict: None,
        ..model.clone()
    };
    // The last two are overloads of one kernel at one grid.
    report.comparisons = vec![
        named("a-b", Some("ns")),
        named("a_b", Some("ns")),
        named("x", Some("%")),
        named("x", Some("%")),
        // Some launches have a value, others have none.
        Comparison {
            verdict: Some(Verdict::NotMeasured),
            ..named("half_measured", None)
        },
    ];
    values_fit(&outcome);
    for format in ["bencher", "otava"] {
        let text = rendered(&outcome, format);
        assert!(!text.contains("half_measured"), "{format}");
    }
}

/// Gives a text to a Python program that imports a package, and returns what it prints; `None`, said
/// aloud, where the package is missing.
fn read_by_python(package: &str, program: &str, text: &str) -> Option<String> {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let module = package.split(' ').next_back().unwrap();
    let import = format!("import {module}");
    let known = Command::new("python3").args(["-c", &import]).output();
    if !known.is_ok_and(|known| known.status.success()) {
        let install = package.split(' ').next().unwrap();
        common::aloud(&format!(
            "SKIPPED: its own reader did not read the form: pip install {install}"
        ));
        return None;
    }
    let mut python = Command::new("python3")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = python.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "{package}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_readers_of_others_read_as_many_values() {
    let outcome = golden_outcome();
    let text = rendered(&outcome, "otava");
    let program = "import sys, tempfile\n\
        from otava.importer import CsvImporter\n\
        from otava.test_config import CsvMetric, CsvTestConfig\n\
        text = sys.stdin.read()\n\
        file = tempfile.NamedTemporaryFile('w', suffix='.csv')\n\
        file.write(text)\n\
        file.flush()\n\
        import csv, io\n\
        names = next(csv.reader(io.StringIO(text)))[4:]\n\
        metrics = [CsvMetric(name, -1, 1.0, name) for name in names]\n\
        test = CsvTestConfig('t', file.name, metrics=metrics, attributes=['commit', 'gpu', 'origin'])\n\
        series = CsvImporter().fetch_data(test)\n\
        print(sum(len(values) for values in series.data.values()))";
    if let Some(count) = read_by_python("apache-otava otava", program, &text) {
        assert_eq!(count.trim(), published::otava(&text).0.len().to_string());
    }
}

#[test]
fn every_form_for_people_shows_the_findings_in_one_order() {
    let outcome = golden_outcome();
    let of = |format: &str, pattern: &str| -> Vec<(String, String)> {
        let text = rendered(&outcome, format).replace('\\', "");
        let text = text.replace("<wbr>", "");
        let entry = regex::Regex::new(pattern).unwrap();
        entry
            .captures_iter(&text)
            .map(|found| (found[1].to_owned(), found[2].to_owned()))
            .collect()
    };
    let terminal = of("text", r"(?m)^(?:warning )?([a-z-]+) ([a-z]+/[a-z_]+): ");
    let denied = outcome.findings.iter().filter(|one| one.denies()).count();
    assert_eq!(terminal.len(), outcome.findings.len());
    let comment = of("markdown", r"(?m)^- `([a-z-]+)` \*\*([a-z]+/[a-z_]+)\*\*: ");
    assert_eq!(comment, terminal[..comment.len()]);
    assert!(comment.len() > denied);
    let page = of(
        "html",
        "<code>([a-z-]+)</code> <strong>([a-z]+/[a-z_]+)</strong>",
    );
    assert_eq!(page, terminal);
    let (failing, _) = terminal.split_at(denied);
    // What fails is what decides the exit code, and a regression comes before what is open.
    let codes: Vec<&str> = failing.iter().map(|(code, _)| code.as_str()).collect();
    let first = |code: &str| codes.iter().position(|other| *other == code).unwrap();
    assert!(first("regressed") < first("inconclusive"));
    assert!(first("regressed") < first("not-measured"));
    let issues: Json = serde_json::from_str(&rendered(&outcome, "gitlab")).unwrap();
    let issues = issues.as_array().unwrap();
    let gitlab = issues
        .iter()
        .map(|issue| issue["check_name"].as_str().unwrap());
    assert!(gitlab.eq(terminal.iter().map(|(code, _)| code.as_str())));
}

/// The annotations, of lines that are nothing else, but for the last.
#[track_caller]
fn annotations(text: &str) -> Vec<&str> {
    let mut commands = Vec::new();
    for line in text.lines() {
        assert!(!line.contains("##["), "{line}");
        let Some(command) = line.strip_prefix("::") else {
            assert!(line.contains(" left out: "), "{line}");
            continue;
        };
        let (head, _) = command.split_once("::").unwrap();
        let (kind, properties) = head.split_once(' ').unwrap();
        let keys = properties.split(',');
        let keys: Vec<&str> = keys.map(|it| it.split_once('=').unwrap().0).collect();
        match kind {
            "notice" => assert_eq!(keys, ["title"]),
            "error" if keys.len() == 1 => assert_eq!(keys, ["title"]),
            "error" | "warning" => assert_eq!(keys, ["file", "line", "title"]),
            other => assert_eq!(other, "a known kind"),
        }
        commands.push(kind);
    }
    for kind in ["error", "warning", "notice"] {
        assert!(commands.iter().filter(|command| **command == kind).count() <= 10);
    }
    commands
}

/// Checks that Markdown contains only what the report itself writes: no link, no image, no HTML but its own, which
/// is closed, and tables whose rows are as wide as their heads.
#[track_caller]
fn markdown(text: &str) {
    use pulldown_cmark::{Event, Options, Parser, Tag};
    let first = text.lines().next().unwrap();
    common::contains(first, &["<!-- sparsek-gate -->"]);
    assert!(text.len() < 60_000, "{}", text.len());
    let mut open = 0_i32;
    let mut foreign = Vec::new();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Start(
                Tag::Link { .. } | Tag::Image { .. } | Tag::Emphasis | Tag::Strikethrough,
            ) => {
                foreign.push(format!("{event:?}"));
            }
            Event::Start(Tag::Heading { level, .. }) => assert_eq!(level as usize, 3),
            Event::Html(html) | Event::InlineHtml(html) => {
                let mut rest = html.to_string();
                for own in [
                    "<details>", "<summary>", "</summary>", "</details>", "<sub>", "</sub>",
                    "<!-- sparsek-gate -->",
                ] {
                    rest = rest.replace(own, "");
                }
                assert!(!rest.contains('<') && !rest.contains('>'), "{html}");
                open += html.matches("<details>").count() as i32;
                open -= html.matches("</details>").count() as i32;
                assert!((0..=1).contains(&open));
            }
            Event::Text(text) => {
                let mention = text
                    .match_indices('@')
                    .any(|(at, _)| text[at + 1..].starts_with(|c: char| c.is_alphanumeric()));
                let in_code = text.ends_with('\n');
                assert!(in_code || !mention, "{text}");
                assert!(in_code || !text.contains("://"), "{text}");
            }
            _ => {}
        }
    }
    assert_eq!(open, 0);
    assert_eq!(foreign, Vec::<String>::new(), "{text}");
    let mut width = None;
    for line in text.lines() {
        if !line.starts_with("| ") && !line.starts_with("|-") {
            width = None;
            continue;
        }
        let bars = line.replace("\\|", "").matches('|').count();
        assert_eq!(*width.get_or_insert(bars), bars, "{line}");
    }
}

#[test]
fn every_form_fits_its_schema() {
    forms_fit(&golden_outcome());
    let mut passing = golden_outcome();
    passing.findings.retain(|finding| !finding.denies());
    let variants = &mut passing.variants;
    variants.retain(|report| report.variant.suite == "ladder");
    for report in variants {
        for comparison in &mut report.comparisons {
            comparison.verdict = comparison.verdict.map(|_| Verdict::Pass);
        }
    }
    assert_eq!(passing.exit_code(), ExitCode::Pass);
    forms_fit(&passing);
    forms_fit(&Outcome::new(Origin::Measured));
    forms_fit(&Outcome::new(Origin::Compiled));
}

#[test]
fn the_schemas_reject_broken_files() {
    let issue = r#"[{"description": "x", "check_name": "x", "fingerprint": "1", "severity": "bad", "location": {"path": "a", "lines": {"begin": 1}}}]"#;
    for (schema, text) in [
        (SARIF, r#"{"version": "2.1.0", "runs": [{"results": []}]}"#),
        (GITLAB, issue),
        (OUTCOME, r#"{"schema": 2}"#),
    ] {
        let value = serde_json::from_str(text).unwrap();
        assert!(!validator(schema).is_valid(&value), "{schema}");
    }
    let broken = std::panic::catch_unwind(|| drop(junit("<testsuites><testsuite/></testsuites>")));
    assert!(broken.is_err());
}

#[test]
fn the_schema_of_the_outcome_in_the_repository_is_the_one_of_the_types() {
    let printed = Project::empty().run("generate schema --outcome").exits(0);
    is_generated(OUTCOME, &printed.out);
}

/// Before the table of the page of findings.
const HEAD_OF_FINDINGS: &str = "\
# Findings

Every finding has a code, which scripts and waivers can match. This page is generated from the table \
in `src/finding/code.rs`.

*Fails* means that the finding fails the check with this exit code, *warns* that it is only a \
warning. *Fails or warns* depends on the case: on the metric's `level`, a waiver, another setting of \
the configuration, or consent (`--accept`). If several findings fail the check, its exit code is the \
first of 5, 3, 4, 1, 6 among theirs. `VARIANT` stands for the variant that the finding names. A \
finding prints the next step of this table, or a more precise one.

| code | severity | exit code | meaning | usual cause | next step |
|---|---|--:|---|---|---|
";

/// The page: one table of all codes, by name.
fn findings_page() -> String {
    let mut codes = Code::ALL.to_vec();
    codes.sort_by_key(|code| code.as_str());
    let rows: String = codes.into_iter().map(row_of_finding).collect();
    HEAD_OF_FINDINGS.to_owned() + &rows
}

fn row_of_finding(code: Code) -> String {
    let name = code.as_str();
    let severity = match code.reported() {
        Reported::Fails => "fails",
        Reported::Warns => "warns",
        Reported::Either => "fails or warns",
    };
    let exit_code = match code.reported() {
        Reported::Warns => "–".to_owned(),
        Reported::Fails | Reported::Either => (code.exit_code() as u8).to_string(),
    };
    format!(
        "| <a id=\"{name}\"></a>`{name}` | {severity} | {exit_code} | {} | {} | {} |\n",
        code.meaning(),
        code.cause(),
        code.next_step()
    )
}

#[test]
fn the_reference_of_the_findings_is_generated_from_their_codes() {
    let page = findings_page();
    is_generated("docs/findings.md", &page);
    let width = |line: &str| line.matches(" | ").count();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(rows.len(), Code::ALL.len() + 1);
    assert!(rows.iter().all(|row| width(row) == width(rows[0])));
    // The severity in it is the one that findings have.
    for finding in golden_outcome().findings {
        let fits = match finding.code.reported() {
            Reported::Fails => finding.denies(),
            Reported::Warns => !finding.denies(),
            Reported::Either => true,
        };
        assert!(fits, "{finding:?}");
    }
}

#[test]
fn findings_point_at_the_lines_that_define_their_kernels() {
    let outcome = golden_outcome();
    let kernels: Vec<_> = outcome
        .places
        .iter()
        .filter_map(|place| Some((place, place.kernel.as_deref()?, place.line?)))
        .collect();
    let judged = outcome.variants.iter().flat_map(|report| {
        let comparisons = report.comparisons.iter();
        comparisons.map(|one| (&report.variant, &one.kernel))
    });
    assert_eq!(kernels.len(), judged.collect::<BTreeSet<_>>().len());
    for (place, kernel, line) in kernels {
        let text = fs::read_to_string(repository().join(&place.file)).unwrap();
        let from: Vec<&str> = text.lines().skip(line as usize - 1).take(2).collect();
        assert!(from[0].contains("__global__"), "{place:?}");
        let defined = from.concat().replace("KERNEL_NAME", kernel);
        assert!(defined.contains(kernel), "{place:?}: {defined}");
    }
    let sarif: Json = serde_json::from_str(&rendered(&outcome, "sarif")).unwrap();
    let mut results = sarif["runs"][0]["results"].as_array().unwrap().iter();
    let spilled = results.find(|result| result["properties"]["metric"] == "spill_bytes");
    let place = &spilled.unwrap()["locations"][0]["physicalLocation"];
    let source = "kernels/faults/spills.cu";
    assert_eq!(place["artifactLocation"]["uri"], source);
    let text = fs::read_to_string(repository().join(source)).unwrap();
    let line = text.lines().position(|line| line.contains("__global__"));
    assert_eq!(place["region"]["startLine"], line.unwrap() + 1);
}

#[test]
fn a_moved_line_and_another_number_change_no_fingerprint() {
    let prints = |outcome: &Outcome| -> BTreeSet<String> {
        let issues: Vec<Json> = serde_json::from_str(&rendered(outcome, "gitlab")).unwrap();
        let prints = issues.iter().map(|issue| issue["fingerprint"].to_string());
        prints.collect()
    };
    let outcome = golden_outcome();
    let mut moved = outcome.clone();
    for place in &mut moved.places {
        place.line = place.line.map(|line| line + 7);
    }
    for finding in &mut moved.findings {
        finding.message = finding.message.replace('1', "2");
    }
    assert_eq!(prints(&outcome), prints(&moved));
    moved.findings.pop();
    assert_ne!(prints(&outcome), prints(&moved));
}

#[test]
fn a_stored_outcome_is_rendered_as_the_check_rendered_it() {
    let project = every_verdict();
    let forms = [
        "a.md", "a.txt", "a.json", "a.junit.xml", "a.sarif", "a.codequality.json",
    ];
    let with_forms = |start: &str, folder: &str| {
        fs::create_dir(project.path(folder)).unwrap();
        let reports = forms.map(|form| format!(" --report {folder}/{form}"));
        project.run(&format!(
            "{start}{} --report github:{folder}/log",
            reports.concat()
        ))
    };
    let checked = with_forms("check --from recorded", "checked").exits(5);
    let again = with_forms("report checked/a.json", "again").exits(0);
    assert_eq!(checked.out, again.out);
    for form in forms.into_iter().chain(["log"]) {
        let read = |folder: &str| project.read(&format!("{folder}/{form}"));
        assert!(read("checked") == read("again"), "{form}");
    }
    let printed = project.run("report checked/a.json --format junit").exits(0);
    assert!(printed.out == project.read("checked/a.junit.xml"));
    // As PowerShell writes it.
    let marked = format!("\u{feff}{}", project.read("checked/a.json"));
    project.write("marked.json", marked);
    let printed = project.run("report marked.json --format junit").exits(0);
    assert!(printed.out == project.read("checked/a.junit.xml"));
}

#[test]
fn a_file_that_is_not_an_outcome_of_a_known_version_or_contradicts_itself_is_rejected() {
    let project = Project::empty();
    let golden = fs::read_to_string(golden_path("every_verdict.json")).unwrap();
    let ends = |code: i32, outcome: String, says: &str| {
        project.write("outcome.json", outcome);
        let report = ["report", "outcome.json", "--report", "a.md"];
        let ran = project.run(&report).ends(code, says);
        assert_eq!(ran.out, "");
        assert!(!project.path("a.md").exists());
    };
    let refused = |outcome: String, says: &str| ends(2, outcome, says);
    let no_outcome = golden.replace("\"schema\": 5,", "");
    ends(2, no_outcome, "missing field `schema`");
    let edits = r#"
"schema": 5, | "schema": 2, | its schema is 2, but this version reads schema 5
"exit_code": 5, | "exit_code": 0, | states exit code 0
"meaning": "a variant | "meaning": "every variant | contradicts itself
"severity": "deny" | "severity": "none" | not a complete outcome, but edited: unknown word
"#;
    for [from, to, says] in &common::rows(edits) {
        assert!(golden.contains(from), "{from}");
        refused(golden.replace(from, to), says);
    }
    // A run that ended before its verdict has not passed.
    refused(
        json!({
            "schema": 5, "origin": {"kind": "measured"}, "authority": {"kind": "working-tree"},
            "variants": [], "findings": [], "ended": {"message": "x", "exit_code": 0},
            "exit_code": 0, "meaning": "every gate passed",
        })
        .to_string(),
        "contradicts itself",
    );
    // Without what denies, the stated code is another than the findings make.
    let mut value: Json = serde_json::from_str(&golden).unwrap();
    let findings = value["findings"].as_array_mut().unwrap();
    findings.retain(|finding| finding["severity"] == "warn");
    refused(value.to_string(), "contradicts itself");
    // With the code that fits, the comparisons still say what was found.
    value["variants"].as_array_mut().unwrap().retain(|variant| {
        let comparisons = variant["comparisons"].as_array().unwrap();
        comparisons.iter().any(|one| one["verdict"] == "regressed")
    });
    value["exit_code"] = json!(0);
    value["meaning"] = json!("every gate passed");
    refused(value.to_string(), "regressed, and no finding says so");
    // `tampered` cannot be waived.
    let mut value: Json = serde_json::from_str(&golden).unwrap();
    let mut tampered = value["findings"][0].clone();
    tampered["code"] = json!("tampered");
    tampered["severity"] = json!("warn");
    value["findings"].as_array_mut().unwrap().push(tampered);
    refused(value.to_string(), "`tampered` never only warns");
    for text in ["", "{}", "[]", "{\"schema\": \"3\"}", "\u{0}"] {
        ends(2, text.to_owned(), "outcome.json");
    }
    project.run("report missing.json").ends(2, "missing.json");
    project.write("outcome.json", &golden);
    for refused in "a a.pdf markdown: - json:- outcome.json json:./outcome.json".split(' ') {
        let report = format!("report outcome.json --report {refused}");
        project.run(&report).exits(2);
    }
    assert!(project.read("outcome.json") == golden);
}

#[test]
fn every_form_states_why_a_run_ended() {
    let project = Project::unlocked();
    project.write("baselines", "no folder");
    let files = [
        "a.md", "a.txt", "a.json", "a.xml", "a.sarif", "a.codequality.json", "github:log",
    ];
    let mut arguments = vec!["check", "--from", common::RECORDED];
    for file in files {
        arguments.extend(["--report", file]);
    }
    let code = project.run(&arguments).code;
    assert!([3, 4].contains(&code), "{code}");
    for file in files {
        let text = project.read(file.trim_start_matches("github:"));
        assert!(text.contains("baselines"), "{file}: {text}");
        assert!(text.contains("ended"), "{file}: {text}");
        assert!(file == "a.json" || file == "a.codequality.json" || text.contains("FAIL: "));
    }
    let outcome: Outcome = serde_json::from_str(&project.read("a.json")).unwrap();
    assert_eq!(outcome.exit_code() as i32, code);
    forms_fit(&outcome);
    let document = project.read("a.xml");
    assert_eq!(junit(&document).get_elements_by_tag_name("error").len(), 1);
    let sarif: Json = serde_json::from_str(&project.read("a.sarif")).unwrap();
    let notes = &sarif["runs"][0]["invocations"][0]["toolExecutionNotifications"];
    assert_eq!(notes.as_array().unwrap().len(), 1);
    assert_eq!(annotations(&project.read("log")), ["error", "notice"]);
}

#[test]
fn only_the_summary_of_a_step_is_appended_to() {
    let project = Project::empty();
    let golden = golden_path("every_verdict.json");
    fs::copy(golden, project.path("outcome.json")).unwrap();
    let report = |summary: &str, target: &str| {
        let target = format!("markdown:{}", project.path(target).display());
        let mut command = project.gate_of(&["report", "outcome.json", "--report", &target]);
        Ran::by(command.env("GITHUB_STEP_SUMMARY", project.path(summary))).exits(0);
    };
    for file in ["summary", "other"] {
        project.write(file, "earlier output");
    }
    report("summary", "summary");
    report("summary", "other");
    report("new", "new");
    let golden = fs::read_to_string(golden_path("every_verdict.md")).unwrap();
    assert!(project.read("summary") == format!("earlier output\n\n{golden}"));
    assert!(project.read("other") == golden);
    assert!(project.read("new") == golden);
}

/// Texts that would be something else wherever they are not taken as text.
fn hostile() -> Vec<String> {
    let mut texts: Vec<String> = [
        "`code` ``` | cell | <script>alert(1)</script> <img src=x onerror=y>",
        "]]> --> <!-- &amp; &#x3c; ]]&gt; <![CDATA[ <?xml?> \" ' / \\",
        "@someone @org/team #12 !3 a@b.org https://e.org www.e.org [l](https://e.org) ![i](x)",
        "\x1b[31mred\x1b]8;;https://e.org\x07link\x1b]8;;\x07 \u{9b}1m \x08\x08 \x7f",
        "a\r\n::error::b\n::set-output name=x::y\r::add-mask::z ##[group]x\n##[error]y",
        "%0A::error::x %0D %25 %3A,file=/etc/passwd,line=1",
        "\u{202e}desrever\u{2066} \u{200f}\u{61c} \u{2028}::error::\u{2029}",
        "nul \0 illegal \u{fffe}\u{ffff} \u{1} \u{85} \u{b}",
        "- list\n# title\n1. one\n=== \n---\n***\n    code\n> quote\n</details></summary></sub>",
        "{0} {{1}} ${{ secrets.X }} {% x %} $(x) `id`",
        "*bold* _em_ ~~no~~ | a | b |\n|---|---|\n| c | d |",
        "::error::a\n \u{a0}::stop-commands::b\n##vso[task.complete]##teamcity[x]",
        "GH-1 gl-2 &3 %4 ~label :rocket: a::fire::b\n/close",
    ]
    .map(str::to_owned)
    .into();
    texts.push("|".repeat(100_000));
    texts
}

/// The recorded outcome with a text in every place that somebody else fills.
fn with_everywhere(text: &str, few: usize) -> Outcome {
    let mut outcome = golden_outcome();
    // Enough of them that each kind is there, and few enough for the long texts.
    outcome.variants.truncate(few);
    for report in &mut outcome.variants {
        report.comparisons.truncate(few);
    }
    let mut seen = BTreeMap::new();
    outcome.findings.retain(|finding| {
        let times = seen.entry(finding.code.as_str()).or_insert(0);
        *times += 1;
        *times <= few / 2 + usize::from(finding.code == Code::Tampered)
    });
    outcome.origin = Origin::Recorded(text.to_owned());
    for place in &mut outcome.places {
        place.file = text.to_owned();
        place.kernel = place.kernel.as_ref().map(|_| text.to_owned());
    }
    for report in &mut outcome.variants {
        report.gpu = text.to_owned();
        for side in [&mut report.reference, &mut report.current] {
            side.git = Some(text.to_owned());
            side.created = text.to_owned();
            side.gpu_uuid = Some(text.to_owned());
            side.overrides = vec![text.to_owned()];
        }
        for (index, comparison) in report.comparisons.iter_mut().enumerate() {
            // Two kernels, so that their column is shown.
            comparison.kernel = format!("{text}{}", index % 2);
            comparison.counter = text.to_owned();
            comparison.unit = Some(text.to_owned());
            comparison.why = text.to_owned();
            comparison.samples = None;
        }
        for causes in &mut report.causes {
            causes.kernel = text.to_owned();
            for cause in &mut causes.causes {
                cause.text = text.to_owned();
            }
        }
    }
    for (index, finding) in outcome.findings.iter_mut().enumerate() {
        let kernel = finding.kernel.take();
        finding.kernel = kernel.map(|_| format!("{text}{}", index % 2));
        finding.message = text.to_owned();
        finding.next = text.to_owned();
        finding.detail = Some(text.to_owned());
    }
    outcome
}

#[test]
fn text_from_outside_is_text_in_every_form() {
    let count = |text: &str, c: char| text.chars().filter(|other| *other == c).count();
    let commands = |outcome: &Outcome| annotations(&rendered(outcome, "github")).len();
    let cases = |outcome: &Outcome| {
        let text = rendered(outcome, "junit");
        junit(&text).get_elements_by_tag_name("testcase").len()
    };
    let unseen =
        r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}]";
    let unseen = regex::Regex::new(unseen).unwrap();
    for text in hostile() {
        // A text of 100 kB need not stand everywhere often.
        let few = if text.len() > 10_000 { 1 } else { 4 };
        let outcome = with_everywhere(&text, few);
        let shown: String = text.chars().take(60).collect();
        forms_fit(&outcome);
        let benign = with_everywhere("name", few);
        assert_eq!(commands(&outcome), commands(&benign), "{shown}");
        assert_eq!(cases(&outcome), cases(&benign), "{shown}");
        for (ending, format) in FORMS {
            let form = render(&outcome, format);
            let steers = form.chars().find(|c| {
                (c.is_control() && !matches!(c, '\n' | '\t' | '\x1b'))
                    || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
                    || matches!(c, '\u{2028}' | '\u{2029}')
            });
            assert_eq!(steers, None, "{ending} {shown}");
            if matches!(format, "text" | "markdown") {
                // A log's service reads it without the styles.
                let log = anstream::adapter::strip_str(&form).to_string();
                let commands = log.lines().any(|line| line.trim_start().starts_with("::"));
                assert!(!commands && !log.contains("##["), "{ending} {shown}");
                let of_others = log.contains("##vso[") || log.contains("##team");
                assert!(!of_others, "{ending}");
            }
            if format == "text" {
                // As many as where the text asks for none.
                let own = render(&with_everywhere(&text.replace('\x1b', "x"), few), format);
                assert_eq!(count(&form, '\x1b'), count(&own, '\x1b'), "{shown}");
            } else {
                assert_eq!(count(&form, '\x1b'), 0, "{ending} {shown}");
            }
        }
        // What is read back is what was written, but for what has no place there.
        let kept = text.replace(['\n', '\t'], " ");
        let kept = unseen.replace_all(&kept, |found: &regex::Captures<'_>| {
            format!("{}", found[0].escape_unicode())
        });
        let xml = rendered(&outcome, "junit");
        let document = junit(&xml);
        let failures = document.get_elements_by_tag_name("failure");
        let message = document.get_attribute(failures[0], "message").unwrap();
        assert_eq!(message, kept);
        let gitlab: Json = serde_json::from_str(&rendered(&outcome, "gitlab")).unwrap();
        let description = gitlab[0]["description"].as_str().unwrap();
        assert!(description.contains(&*kept), "{shown}");
    }
}

#[test]
fn a_kernel_that_got_slower_with_each_of_its_grids_fails_for_each() {
    let mut outcome = golden_outcome();
    let regressed = |finding: &Finding| finding.code == Code::Regressed;
    let finding = outcome.findings.iter().find(|one| regressed(one)).unwrap();
    let finding = finding.clone();
    let variants = &mut outcome.variants;
    variants.retain(|report| finding.concerns(&report.variant));
    variants.truncate(1);
    let mut comparisons = variants[0].comparisons.iter();
    let slower = comparisons.find(|one| finding.metric.as_ref() == Some(&one.metric));
    let slower = slower.unwrap().clone();
    assert_eq!(slower.verdict, Some(Verdict::Regressed));
    let of_grid = |blocks| Comparison {
        grid: [blocks, 1, 1],
        ..slower.clone()
    };
    variants[0].comparisons = (1..=400).map(of_grid).collect();
    let block = slower.block;
    let launched = |blocks| finding.clone().launched([blocks, 1, 1], block, false);
    outcome.findings = (1..=400).map(launched).collect();
    let xml = rendered(&outcome, "junit");
    let document = junit(&xml);
    assert_eq!(document.get_elements_by_tag_name("failure").len(), 400);
    assert!(document.get_elements_by_tag_name("skipped").is_empty());
    // The comment has the ten that weigh most, and no room for all findings.
    let text = rendered(&outcome, "markdown");
    common::contains(&text, &["390 metrics more"]);
    let shown = text.lines().filter(|line| line.starts_with("- `")).count();
    let last = text.lines().last().unwrap();
    common::contains(last, &[&format!("**{} more findings", 400 - shown)]);
    // The grid distinguishes rows that are otherwise equal.
    for format in ["text", "markdown", "html", "gitlab", "sarif", "github"] {
        let text = rendered(&outcome, format);
        let text = text.replace('\\', "").replace("%2C", ",");
        assert!(text.contains("(7, 1, 1)"), "{format}");
    }
}

/// A variant whose kernels have these names. Each has two grids, of which the second got slower, and
/// compiled code that got worse by a metric of the same name.
fn named(names: &[&str]) -> Outcome {
    let mut outcome = golden_outcome();
    let is_slower =
        |one: &&Comparison| one.verdict == Some(Verdict::Regressed) && one.metric == "duration";
    let of_slower = |report: &VariantReport| report.comparisons.iter().any(|one| is_slower(&one));
    outcome.variants.retain(of_slower);
    let mut measured = outcome.variants.remove(0);
    let slower = measured.comparisons.iter().find(is_slower);
    let slower = slower.unwrap().clone();
    let id = measured.variant.clone();
    measured.comparisons.clear();
    let mut compiled = measured.clone();
    compiled.tier = Tier::Static;
    (outcome.findings, outcome.places) = (Vec::new(), Vec::new());
    for kernel in names {
        let row = |verdict: Verdict, blocks: u64| Comparison {
            kernel: (*kernel).to_owned(),
            grid: [blocks; 3],
            block: if blocks == 0 { [0; 3] } else { slower.block },
            verdict: Some(verdict),
            ..slower.clone()
        };
        measured.comparisons.push(row(Verdict::Pass, 1));
        measured.comparisons.push(row(Verdict::Regressed, 2));
        compiled.comparisons.push(row(Verdict::Regressed, 0));
        let finding = |code: Code, words: &str| {
            let finding = Finding::of(code, &id, format!("{words} {kernel}"));
            finding.kernel(*kernel).metric("duration")
        };
        let of_grid = |finding: Finding| finding.launched([2; 3], slower.block, false);
        let mut explained = of_grid(finding(Code::Regressed, "slower"));
        explained.explain(&["more waits".to_owned()], &[]);
        outcome.findings.extend([
            of_grid(finding(Code::LimitExceeded, "above")),
            explained,
            finding(Code::Regressed, "more registers").compiled(),
        ]);
        outcome.places.push(Place {
            variant: id.clone(),
            kernel: Some((*kernel).to_owned()),
            file: format!("{kernel}.cu"),
            line: Some(7),
        });
    }
    outcome.variants = vec![measured, compiled];
    outcome
}

#[test]
fn a_finding_is_of_its_comparison_whatever_kernels_and_files_are_called() {
    let names = [
        "x (tolerance",
        "a; with it: b",
        "k_GPU-0b4f5bb5-8e5b-3a6c-b2a1-7d1f0c5e9a11",
        "k: in the base: 1 → 2, while",
    ];
    // The failed cases of each suite, and the issues by kernel, file and fingerprint.
    let shown = |outcome: &Outcome| -> (BTreeSet<[String; 2]>, BTreeSet<[String; 3]>) {
        let xml = rendered(outcome, "junit");
        let document = junit(&xml);
        let attribute = |node, name| document.get_attribute(node, name).unwrap().to_owned();
        let failures = document.get_elements_by_tag_name("failure").into_iter();
        let failures = failures.map(|failure| {
            let case = document.parent(failure).unwrap();
            [attribute(case, "name"), attribute(failure, "message")]
        });
        let sarif: Json = serde_json::from_str(&rendered(outcome, "sarif")).unwrap();
        let results = sarif["runs"][0]["results"].as_array().unwrap().iter();
        let results = results.map(|result| {
            let place = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
            let print = &result["partialFingerprints"]["sparsekGateFinding/v1"];
            [&result["properties"]["kernel"], place, print].map(ToString::to_string)
        });
        (failures.collect(), results.collect())
    };
    let mut outcome = named(&names);
    forms_fit(&outcome);
    let (failures, results) = shown(&outcome);
    let case = |kernel: &str, grid: &str, message: &str| {
        let block = outcome.variants[0].comparisons[0].block;
        let shape = match grid {
            "" => String::new(),
            grid => format!(" {grid}×({}, {}, {})", block[0], block[1], block[2]),
        };
        [
            format!("{kernel}{shape} duration"),
            format!("{message} {kernel}"),
        ]
    };
    let expected = names.iter().flat_map(|kernel| {
        let slower = case(kernel, "(2, 2, 2)", "above");
        [slower, case(kernel, "", "more registers")]
    });
    assert_eq!(failures, expected.collect());
    assert_eq!(results.len(), 3 * names.len());
    let text = rendered(&outcome, "text");
    for kernel in names {
        let at = |words: &str| text.find(&format!("{words} {kernel}")).unwrap();
        assert!(at("slower") < at("above"), "{text}");
    }
    // In another order it is the same.
    outcome.findings.reverse();
    outcome.variants.reverse();
    for report in &mut outcome.variants {
        report.comparisons.reverse();
    }
    let (reversed, of_reversed) = shown(&outcome);
    assert_eq!(reversed.len(), failures.len());
    assert_eq!(of_reversed, results);
}

#[test]
fn a_comment_stays_below_what_services_take_however_many_kernels() {
    let mut outcome = large(&golden_outcome(), [8, 50, 10], false);
    // Findings of one origin would be one.
    for finding in &mut outcome.findings {
        finding.values.origin = None;
    }
    let text = rendered(&outcome, "markdown");
    markdown(&text);
    assert!(text.len() > 40_000, "{}", text.len());
    let last = text.lines().last().unwrap();
    common::contains(last, &["more findings", "see the HTML or JSON report"]);
    // The worst are there, and the numbers add up.
    let denied = outcome.findings.iter().filter(|one| one.denies()).count();
    let failing = text.split("\n**Warnings**\n").next().unwrap();
    let shown = failing.matches("\n- `").count();
    common::contains(last, &[&format!("**{} more findings", denied - shown)]);
    assert!(text.contains("`work-changed`"));
    let commands = rendered(&outcome, "github");
    assert!(commands.lines().last().unwrap().contains("more errors"));
    annotations(&commands);
}
