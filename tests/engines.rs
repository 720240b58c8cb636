//! The pipelines, manifests and scripts that `plan` prints, as far as they can be tried without the
//! services: their form, their commands, and their scripts.

use std::fs;
use std::process::Command;

use crate::common::{self, Project, Ran, published_as, repository};
use clap::Parser as _;
use serde::Deserialize as _;
use serde_json::{Value as Json, json};
use sparsek_gate::cli::Cli;
use sparsek_gate::engine::ENGINES;

const CONFIG: &str = "[metric.duration]\ndirection = \"lower\"\n\
    tolerance = '3 %'\n\
    [suite.s.variant.v]\nmatrix = { n = [1, 2, 3, 4, 5] }\nrun = [\"true\", \"{n}\"]\n";

fn project() -> Project {
    let project = Project::empty();
    project.write("config.toml", CONFIG);
    project
}

fn plan(arguments: &[&str]) -> String {
    project().run(&[&["plan"], arguments].concat()).exits(0).out
}

#[test]
fn a_pipeline_for_a_project_below_the_top_names_its_configuration() {
    let project = Project::empty();
    project.write("z/config.toml", CONFIG);
    project.git("init --quiet");
    for (format, words) in [
        ("github", "sparsek-gate --config z/config.toml archive"),
        ("slurm", "sparsek-gate archive"),
    ] {
        let mut gate = project.gate_of(&["plan", "--format", format]);
        let ran = Ran::by(gate.current_dir(project.path("z")));
        ran.ends(0, words);
    }
}

fn schema(name: &str) -> Json {
    let path = repository().join(format!("tests/data/schemas/{name}.json"));
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn complaints(schema: &Json, document: &Json) -> Vec<String> {
    let validator = jsonschema::draft7::new(schema).unwrap();
    let errors = validator.iter_errors(document);
    errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

fn documents(text: &str) -> Vec<Json> {
    let parts = serde_yaml_ng::Deserializer::from_str(text);
    parts.map(|part| Json::deserialize(part).unwrap()).collect()
}

#[test]
fn no_action_of_another_owner_is_unpinned_and_no_token_stays_or_writes() {
    let text = plan(&["--format", "github"]);
    let workflow = &documents(&text)[0];
    assert_eq!(workflow["permissions"], json!({}));
    let jobs = workflow["jobs"].as_object().unwrap();
    let pinned = regex::Regex::new(r"^[\w./-]+@[0-9a-f]{40}$").unwrap();
    for (name, job) in jobs {
        assert_eq!(job["permissions"], json!({ "contents": "read" }), "{name}");
        assert!(job["timeout-minutes"].is_u64(), "{name}");
        for step in job["steps"].as_array().unwrap() {
            let run = step["run"].as_str().unwrap_or_default();
            assert!(!run.contains("${{"), "{run}");
            let Some(uses) = step["uses"].as_str() else {
                continue;
            };
            assert!(
                pinned.is_match(uses) || uses == format!("{}@v1", published_as()),
                "{uses}"
            );
            if uses.starts_with("actions/checkout@") {
                assert_eq!(step["with"]["persist-credentials"], json!(false));
            }
        }
    }
}

#[test]
fn every_pipeline_is_of_the_form_that_its_service_publishes() {
    for (format, name) in [
        ("github", "github-workflows"),
        ("gitlab", "gitlab-ci"),
        ("buildkite", "buildkite"),
    ] {
        for slices in ["1", "3"] {
            let text = plan(&["--format", format, "--slices", slices]);
            let [document] = &documents(&text)[..] else {
                panic!("{format} is one document");
            };
            let schema = schema(name);
            assert_eq!(
                complaints(&schema, document),
                Vec::<String>::new(),
                "{text}"
            );
            assert!(!text.contains("@N@") && !text.contains("@M"), "{text}");
            // The schema is not one that accepts everything.
            let wrong = json!({ "jobs": { "a": 1 }, "stages": 1, "steps": 1 });
            assert_ne!(complaints(&schema, &wrong), Vec::<String>::new());
        }
    }
}

#[test]
fn the_manifest_is_of_the_form_that_kubernetes_publishes() {
    let schema = schema("kubernetes-1.33");
    let of_kind = |name: &str| {
        let mut schema = schema.clone();
        schema["$ref"] = json!(format!("#/$defs/{name}"));
        schema
    };
    let job = of_kind("io.k8s.api.batch.v1.Job");
    let text = plan(&["--format", "kubernetes", "--slices", "3"]);
    let all = documents(&text);
    assert_eq!(all.len(), 2);
    let files = of_kind("io.k8s.api.core.v1.Pod");
    assert_eq!(complaints(&files, &all[0]), Vec::<String>::new());
    assert_eq!(complaints(&job, &all[1]), Vec::<String>::new());
    let spec = &all[1]["spec"];
    assert_eq!(spec["completionMode"], "Indexed");
    assert_eq!(
        (&spec["completions"], &spec["parallelism"]),
        (&json!(3), &json!(3))
    );
    let slice = &spec["template"]["spec"]["containers"][0];
    assert_eq!(slice["image"], "registry.example.org/sparsek-gate:1");
    assert_eq!(slice["resources"]["limits"]["nvidia.com/gpu"], "1");
    assert_eq!(
        slice["securityContext"]["capabilities"]["add"],
        json!(["SYS_ADMIN"])
    );
    // What is misspelled is refused, at any depth.
    for pointer in [
        "/spec",
        "/spec/template/spec",
        "/spec/template/spec/containers/0/securityContext",
    ] {
        let mut wrong = all[1].clone();
        wrong.pointer_mut(pointer).unwrap()["parralelism"] = json!(3);
        assert_ne!(complaints(&job, &wrong), Vec::<String>::new(), "{pointer}");
    }
}

/// `tests/recipes.rs` runs the pipelines, and `tests/slurm.rs` the script.
#[test]
fn every_engine_packs_what_is_asked_for_beside_its_target_and_judges_by_the_hash() {
    for engine in &ENGINES {
        let asked = ["s/v-n_1", "s/*", "--slices", "3", "--format", engine.name];
        let text = plan(&asked).replace("$$", "$");
        let target = engine.target.map(|target| format!(" --against {target}"));
        let packs = format!(
            "sparsek-gate archive --output gate.tar.zst s/v-n_1 's/*'{}\n",
            target.unwrap_or_default()
        );
        // The pipeline of GitHub has them beside its workspace.
        let bare = text.replace("$RUNNER_TEMP/", "").replace('"', "");
        let measures = "profile --archive gate.tar.zst --slice ";
        let judges = "check --from slices --archive gate.tar.zst --archive-sha256 $SHA256";
        assert!(text.contains(&packs), "{packs}{text}");
        common::contains(&bare, &[measures, judges]);
        let lines = text.lines().map(|line| line.trim_start_matches(['#', ' ']));
        let lines = lines.filter(|line| line.starts_with("sparsek-gate "));
        for line in lines.filter(|line| !line.contains(" plan ")) {
            let line = line.split(" || ").next().unwrap();
            let mut words = shell_words::split(line).unwrap();
            if let Some(at) = words.iter().position(|word| word == "--slice") {
                words[at + 1] = "2/3".to_owned();
            }
            // A shell replaces them.
            let replaced = |word: &String| match word.contains('$') {
                true => "main".to_owned(),
                false => word.clone(),
            };
            let parsed = Cli::try_parse_from(words.iter().map(replaced));
            assert!(
                parsed.is_ok(),
                "{}: {line}\n{:?}",
                engine.name,
                parsed.err()
            );
        }
    }
    let slurm = plan(&["--slices", "3", "--format", "slurm"]);
    common::contains(
        &slurm,
        &["--array=1-3", "--gres=gpu:1", "--no-requeue", "--wait"],
    );
}

#[test]
fn the_script_for_slurm_removes_nothing_that_is_there() {
    let project = project();
    let script = project.run("plan --format slurm").exits(0).out;
    for name in ["logs", "slices", "gate.tar.zst"] {
        project.write(&format!("{name}/own"), "mine");
        let mut command = Command::new("sh");
        command
            .args(["-c", &script])
            .current_dir(project.path(""))
            .env("PATH", "/usr/bin:/bin");
        let ran = Ran::of(&command.output().unwrap()).exits(2);
        common::contains(
            &ran.err,
            &[&format!(
                "here already: {name}; if an earlier run made them: rm -r {name}"
            )],
        );
        assert_eq!(project.read(&format!("{name}/own")), "mine");
        std::fs::remove_dir_all(project.path(name)).unwrap();
    }
}

#[test]
fn the_job_that_judges_runs_whatever_the_slices_did() {
    let yaml = |format| documents(&plan(&["--format", format, "--slices", "2"])).remove(0);
    assert_eq!(yaml("github")["jobs"]["judge"]["if"], "${{ always() }}");
    let gitlab = &yaml("gitlab")["sparsek-gate:judge"];
    assert_eq!(gitlab["rules"][0]["when"], "always");
    let buildkite = &yaml("buildkite")["steps"][2];
    assert_eq!(buildkite["depends_on"][0]["allow_failure"], true);
    let slices = &yaml("github")["jobs"]["slices"]["strategy"];
    assert_eq!(slices["fail-fast"], false);
    assert_eq!(slices["matrix"]["slice"], json!([1, 2]));
    assert_eq!(yaml("gitlab")["sparsek-gate:slices"]["parallel"], 2);
    assert_eq!(yaml("buildkite")["steps"][1]["parallelism"], 2);
}

#[test]
fn a_plan_shows_its_slices_and_the_most_that_they_take() {
    let text = plan(&["--slices", "2"]);
    assert!(
        text.starts_with("slice 1/2: 3 variants, at most "),
        "{text}"
    );
    let json: Json = serde_json::from_str(&plan(&["--slices", "2", "--format", "json"])).unwrap();
    let slices = json["slices"].as_array().unwrap();
    assert_eq!(slices[1]["slice"], "2/2");
    let count = |at: usize| slices[at]["variants"].as_array().unwrap().len();
    assert_eq!(count(0) + count(1), 5);
    // Alone: a check of the numbers, and at most eight processes that take times.
    assert_eq!(slices[0]["most_s"], 3.0 * (120.0 + 8.0 * 300.0));
    // As many slices as variants, at most eight.
    let json: Json = serde_json::from_str(&plan(&["--format", "json"])).unwrap();
    assert_eq!(json["slices"].as_array().unwrap().len(), 5);
}

#[test]
fn what_no_pipeline_can_have_is_refused() {
    let rows = r#"
--against a\nb --format github | control character
--against ${{secrets.X}} --format github | nothing replaced the variable in it
--slices 0 | --slices
--format jenkins | jenkins
nothing | nothing
"#;
    for [arguments, why] in common::rows(rows) {
        let arguments = format!("plan {arguments}");
        let arguments: Vec<&str> = arguments.split(' ').collect();
        project().run(&arguments).ends(2, &why);
    }
}
