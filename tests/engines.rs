//! The pipelines, manifests and scripts that `plan` prints, as far as they can be tried without the
//! services: their form, their commands, and their scripts.

use std::fs;
use std::process::Command;

use crate::common::{self, Project, Ran, published_as, repository};
use clap::Parser as _;
use serde::Deserialize as _;
use serde_json::{Value as Json, json};
use sparsek_gate::cli::Cli;

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

/// Scripts in a document: every text below these keys, one a script.
fn scripts(document: &Json) -> Vec<String> {
    let mut found = Vec::new();
    match document {
        Json::Object(map) => {
            for (key, value) in map {
                match value {
                    Json::String(text) if ["run", "command"].contains(&key.as_str()) => {
                        found.push(text.clone());
                    }
                    Json::Array(lines) if ["script", "before_script"].contains(&key.as_str()) => {
                        let lines: Vec<&str> = lines.iter().filter_map(Json::as_str).collect();
                        found.push(lines.join("\n"));
                    }
                    Json::Array(words) if key == "command" => {
                        found.extend(words.last().and_then(Json::as_str).map(str::to_owned));
                    }
                    other => found.extend(scripts(other)),
                }
            }
        }
        Json::Array(list) => found.extend(list.iter().flat_map(scripts)),
        _ => {}
    }
    found
}

/// The calls of sparsek-gate in a script, which is run with stand-ins of everything else.
fn calls(project: &Project, script: &str, env: &[(&str, &str)]) -> Vec<Vec<String>> {
    project.write("calls", "");
    let note = "#!/bin/sh\nfor word in \"$@\"; do printf '%s\\037' \"$word\"; done >>\"$CALLS\"\necho >>\"$CALLS\"\n\
        case $1 in archive) echo packed >gate.tar.zst ;; esac\n\n";
    for (name, text) in [
        ("sparsek-gate", note),
        (
            "buildkite-agent",
            "#!/bin/sh\n[ \"$1 $2\" != 'meta-data get' ] || echo hash\n",
        ),
        ("git", "#!/bin/sh\n"),
        // Runs the slices as Slurm would.
        (
            "sbatch",
            "#!/bin/sh\necho \"$*\" >sbatch\necho 7\nfor task in 1 2 3; do\n\
             SLURM_ARRAY_TASK_ID=$task sh logs/slice.sh || exit\ndone\n",
        ),
        ("scancel", "#!/bin/sh\n"),
    ] {
        project.program(&format!("bin/{name}"), text);
    }
    let path = std::env::var("PATH").unwrap();
    let ran = Command::new("bash")
        .args(["-c", script])
        .current_dir(project.path(""))
        .env("PATH", format!("{}:{path}", project.path("bin").display()))
        .env("CALLS", project.path("calls"))
        .env("GITHUB_OUTPUT", project.path("output"))
        .env("GITHUB_STEP_SUMMARY", project.path("summary"))
        .env("REPORTS", project.path("reports"))
        .env("RUNNER_TEMP", project.path("temp"))
        .envs(env.iter().copied())
        .output();
    let ran = Ran::of(&ran.unwrap());
    assert_eq!(ran.code, 0, "{script}\n{}", ran.err);
    let text = project.read("calls");
    let lines = text.lines();
    lines
        .map(|line| {
            let words = line.trim_end_matches('\u{1f}').split('\u{1f}');
            words.map(str::to_owned).collect()
        })
        .collect()
}

fn slice(index: u32) -> Vec<String> {
    let asked = format!("{index}/3");
    let output = format!("slices/{index}");
    [
        "profile", "--archive", "gate.tar.zst", "--slice", &asked, "--output", &output,
    ]
    .map(str::to_owned)
    .to_vec()
}

#[test]
fn the_scripts_of_every_engine_pack_measure_and_judge() {
    let env = [
        ("TARGET", "refs/remotes/origin/main"),
        ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main"),
        ("BUILDKITE_PULL_REQUEST_BASE_BRANCH", "main"),
        ("SHA256", "hash"),
        ("SLICE", "2"),
        ("CI_NODE_INDEX", "2"),
        ("CI_NODE_TOTAL", "3"),
        ("BUILDKITE_PARALLEL_JOB_COUNT", "3"),
        ("BUILDKITE_PARALLEL_JOB", "1"),
        ("JOB_COMPLETION_INDEX", "1"),
    ];
    for format in ["github", "gitlab", "buildkite", "kubernetes", "slurm"] {
        let project = project();
        let arguments = [
            "plan", "s/v-n_1", "s/*", "--slices", "3", "--format", format,
        ];
        let text = project.run(&arguments).exits(0).out;
        let all = match format {
            "slurm" => vec![text.clone()],
            _ => documents(&text).iter().flat_map(scripts).collect(),
        };
        let own = all.iter().filter(|script| script.contains("sparsek-gate "));
        let mut found: Vec<Vec<String>> = Vec::new();
        for script in own {
            // As the agent gets it.
            let script = match format {
                "buildkite" => script.replace("$$", "$"),
                _ => script.clone(),
            };
            found.extend(calls(&project, &script, &env));
        }
        for words in &found {
            let line = ["sparsek-gate".to_owned()].into_iter().chain(words.clone());
            let parsed = Cli::try_parse_from(line);
            assert!(parsed.is_ok(), "{format}: {words:?}\n{:?}", parsed.err());
        }
        let of = |name: &str| -> Vec<Vec<String>> {
            let named = found.iter().filter(|words| words[0] == name);
            named.cloned().collect()
        };
        let (measured, judged) = (of("profile"), of("check"));
        match format {
            "slurm" => assert_eq!(measured, [1, 2, 3].map(slice)),
            "github" => {
                let [measured] = &measured[..] else {
                    panic!("{found:?}")
                };
                assert!(measured[2].ends_with("/temp/gate.tar.zst"), "{measured:?}");
                assert_eq!(measured[3..5], slice(2)[3..5]);
            }
            _ => assert_eq!(measured, [slice(2)], "{format}"),
        }
        if format == "kubernetes" {
            // The other two steps are commands in its comments.
            common::contains(
                &text,
                &["#   sparsek-gate archive --output gate.tar.zst s/v-n_1 's/*'\n"],
            );
            assert!(text.contains("#   sparsek-gate check --from slices --archive gate.tar.zst --archive-sha256 \"$SHA256\"\n"));
            continue;
        }
        let packed = of("archive");
        let [packed] = &packed[..] else {
            panic!("{format}: {found:?}");
        };
        assert_eq!(
            packed[1..5],
            ["--output", "gate.tar.zst", "s/v-n_1", "s/*"],
            "{format}"
        );
        let beside = ["--against", "refs/remotes/origin/main"];
        assert_eq!(packed[5..] == beside, format != "slurm", "{packed:?}");
        let [judged] = &judged[..] else {
            panic!("{format}: {found:?}");
        };
        let mut read = judged[1..6].to_vec();
        if format == "github" {
            let temp = format!("{}/", project.path("temp").display());
            for word in &mut read {
                *word = word.replace(&temp, "");
            }
        }
        let words = "--from slices --archive gate.tar.zst --archive-sha256";
        assert_eq!(read.join(" "), words);
        if format == "slurm" {
            assert_eq!(judged[6].len(), 64, "{judged:?}");
            let asked = project.read("sbatch");
            for option in ["--array=1-3", "--gres=gpu:1", "--no-requeue", "--wait"] {
                assert!(asked.contains(option), "{asked}");
            }
        } else {
            assert_eq!(judged[6], "hash", "{format}");
        }
    }
}

#[test]
fn the_script_for_slurm_removes_nothing_that_is_there() {
    let project = project();
    let script = project.run(&["plan", "--format", "slurm"]).exits(0).out;
    for name in ["logs", "slices", "gate.tar.zst"] {
        project.write(&format!("{name}/own"), "mine");
        let mut command = Command::new("sh");
        command
            .args(["-c", &script])
            .current_dir(project.path(""))
            .env("PATH", "/usr/bin:/bin");
        let ran = Ran::of(&command.output().unwrap()).exits(2);
        common::contains(&ran.err, &[&format!("{name} is here already")]);
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
--slices 257 --format github | at most 256 jobs
--slices 201 --format gitlab | at most 200 jobs
--against a\nb --format github | control character
--against ${{secrets.X}} --format github | cannot stand in a pipeline
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
