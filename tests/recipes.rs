//! The recipes and the printed pipelines as their services run them: all jobs in order, on a machine of
//! stand-ins, with the program itself. `tests/commands.rs` reads what each of them runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::common::git::git;
use crate::common::stand_in::{CP_ASYNC, Machine, source_of};
use crate::common::{Project, Ran, published_as, repository};
use regex::Regex;
use serde_json::{Value as Json, json};

type Words = BTreeMap<String, String>;

/// What a step makes, under every name that a recipe has for it.
const OUTPUTS: [&str; 8] = [
    "profiles", "profiles.tar", "profiles.env", "gate.tar.zst", "gate.env", "slices", "slice",
    "slice-1.tar",
];

/// Buildkite's agent, whose artifacts and meta-data are files.
const AGENT: &str = r#"#!/bin/sh
case "$1 $2" in
"artifact upload") cp "$3" "$STORE/" ;;
"artifact download") ls "$STORE"/$3 >/dev/null 2>&1 && cp "$STORE"/$3 "$4" ;;
"meta-data set") printf '%s' "$4" >"$STORE/$3" ;;
"meta-data get") cat "$STORE/$3" ;;
esac
"#;

/// A service whose runners have the machine.
struct Site {
    machine: Machine,
    /// The jobs' folders, and what they left.
    place: Project,
    fork: bool,
}

/// Puts a file or a folder where another one may be.
fn put(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    let copied = Command::new("cp").arg("-RT").args([from, to]).output();
    Ran::of(&copied.unwrap()).exits(0);
}

fn lines(list: &Json) -> Vec<&str> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Json::as_str).collect()
}

/// `NAME=VALUE` lines.
fn assigned(text: &str) -> Words {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// A text with what stands for its expressions.
fn filled(text: &Json, known: &Words) -> String {
    let text = text
        .as_str()
        .map_or_else(|| text.to_string(), str::to_owned);
    let expression = Regex::new(r"\$\{\{\s*(.*?)\s*\}\}").unwrap();
    let value = |found: &regex::Captures<'_>| known.get(&found[1]).cloned().unwrap_or_default();
    expression.replace_all(&text, value).into_owned()
}

fn all_filled(map: &Json, known: &Words) -> Words {
    let map = map.as_object().into_iter().flatten();
    map.map(|(name, value)| (name.clone(), filled(value, known)))
        .collect()
}

impl Site {
    /// Two variants are locked on `main`; HEAD is on the branch of the change.
    fn new() -> Site {
        static LOCKED: OnceLock<Vec<u8>> = OnceLock::new();
        let machine = Machine::once(&LOCKED, || {
            let machine = Machine::new()
                .configured("ncu = \"bin/ncu\"\n", "")
                .with_programs(CP_ASYNC);
            machine.without("/bin/\n");
            let path = format!("{}:/usr/bin:/bin", machine.path("bin").display());
            for words in [
                &["profile"][..],
                &["baseline", "--lock", "--reason", "first", "--who", "tester"],
            ] {
                let mut gate = machine.gate(words);
                let host = machine.path("host");
                gate.env("PATH", format!("{}:{path}", host.display()));
                Ran::of(&gate.output().unwrap()).exits(0);
            }
            machine.write("README.md", "Kernels.\n");
            machine.commit();
            machine
        });
        machine.git("checkout --quiet -b change");
        let site = Site {
            machine,
            place: Project::empty(),
            fork: false,
        };
        // A step that packs or measures fails where a test says so: COMMAND=CODE.
        let program = env!("CARGO_BIN_EXE_sparsek-gate");
        let gate = format!(
            "#!/bin/sh\ncase \"$1=$*\" in\ncheck=*--from*) ;;\n\"${{FAILS%=*}}\"=*) exit \"${{FAILS#*=}}\" ;;\nesac\nexec '{program}' \"$@\"\n"
        );
        site.place.program("bin/sparsek-gate", &gate);
        site.place.program("bin/buildkite-agent", AGENT);
        fs::create_dir(site.place.path("artifacts")).unwrap();
        site
    }

    /// The pull request: what it does to the code.
    fn changed(&self, change: &str) {
        let b = "kernels/b.cu";
        match change {
            "nothing" => self.machine.write("README.md", "Kernels, in CUDA.\n"),
            "one" => self.machine.write(b, source_of("cp_async\\nfaster: no")),
            "worse" => self
                .machine
                .write(b, source_of("cp_async").replace("h200", "h200-worse")),
            "first" => {
                // The target has nothing yet.
                self.machine.git("branch --quiet --force all");
                self.machine.git("checkout --quiet --orphan start");
                self.machine.git("rm -r --quiet --cached .");
                // Tools are on the machine.
                self.machine.git("add README.md toolkit");
                let commit = ["commit", "--quiet", "--message", "first"];
                self.machine.git(&commit);
                self.machine.git("branch --force main");
                self.machine.git("add --all");
            }
            other => unreachable!("{other}"),
        }
        self.machine.commit();
        self.machine.git("checkout --quiet -B change");
    }

    fn fresh(&self, folder: &str, checkout: bool) -> PathBuf {
        let folder = self.place.path(folder);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        if checkout {
            let from = self.machine.path("").display().to_string();
            git(&folder, &["clone", "--quiet", "--no-hardlinks", &from, "."]);
            git(&folder, "checkout --quiet --detach origin/change");
        }
        folder
    }

    /// Runs a script as a runner's shell does.
    fn shell(&self, words: &[&str], folder: &Path, env: &Words, fails: &str) -> Ran {
        let gate = self.machine.gate(&[]);
        let mut shell = Command::new("bash");
        shell.args(words).current_dir(folder);
        for (name, value) in gate.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let parts = [
            self.place.path("bin"),
            self.machine.path("bin"),
            self.machine.path("host"),
        ];
        let parts = parts.map(|part| part.display().to_string()).join(":");
        shell
            .env(
                "PATH",
                format!("{parts}:{}", std::env::var("PATH").unwrap()),
            )
            .env("STORE", self.place.path("artifacts"))
            .env("CI", "true")
            .env("FAILS", fails)
            .envs(env);
        Ran::of(&shell.output().unwrap())
    }

    /// GitLab: the exit code of the last job, or of the first one that failed.
    fn gitlab(&self, document: &Json, jobs: &[&str], fails: &str) -> (i32, String) {
        let mut artifacts: BTreeMap<&str, Vec<(String, PathBuf)>> = BTreeMap::new();
        let mut said = BTreeMap::new();
        let mut failed = BTreeMap::new();
        let (mut code, mut log) = (0, String::new());
        let source = if self.fork {
            "them/kernels"
        } else {
            "us/kernels"
        };
        let service: Words = assigned(&format!(
            "GITLAB_CI=true\nCI_PIPELINE_SOURCE=merge_request_event\nCI_MERGE_REQUEST_IID=7\n\
             CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main\nCI_MERGE_REQUEST_PROJECT_PATH=us/kernels\n\
             CI_MERGE_REQUEST_SOURCE_PROJECT_PATH={source}\nCI_PROJECT_PATH=us/kernels"
        ));
        for name in jobs {
            let job = &document[*name];
            let mut needs = Vec::new();
            for need in job["needs"].as_array().into_iter().flatten() {
                needs.push(need.as_str().or(need["job"].as_str()).unwrap());
            }
            let mut rules = job["rules"].as_array().into_iter().flatten();
            let always = rules.any(|rule| rule["when"] == "always");
            if !always && needs.iter().any(|need| failed.contains_key(*need)) {
                continue;
            }
            let count = job["parallel"].as_u64().unwrap_or(1);
            for index in 1..=count {
                let mut env = service.clone();
                let base = &document[job["extends"].as_str().unwrap_or_default()];
                for variables in [
                    &document["variables"], &base["variables"], &job["variables"],
                ] {
                    for (name, value) in all_filled(variables, &Words::new()) {
                        let value = value.replace("$CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main");
                        env.insert(name, value);
                    }
                }
                env.insert("CI_NODE_INDEX".to_owned(), index.to_string());
                env.insert("CI_NODE_TOTAL".to_owned(), count.to_string());
                let strategy = env.get("GIT_STRATEGY").map_or("fetch", String::as_str);
                assert!(
                    ["fetch", "empty"].contains(&strategy),
                    "{name}: leaves what was there"
                );
                let folder = self.fresh(
                    &format!("jobs/{name}-{index}").replace(':', "-"),
                    strategy == "fetch",
                );
                for need in &needs {
                    for (path, from) in artifacts.get(need).into_iter().flatten() {
                        put(from, &folder.join(path));
                    }
                    env.extend(said.get(need).cloned().unwrap_or_default());
                }
                let script = [lines(&job["before_script"]), lines(&job["script"])].concat();
                let ran = self.shell(
                    &["-eo", "pipefail", "-c", &script.join("\n")],
                    &folder,
                    &env,
                    fails,
                );
                log += &format!("{name}: {}\n{}{}", ran.code, ran.out, ran.err);
                code = if ran.code == 0 && always {
                    *failed.values().next().unwrap_or(&0)
                } else {
                    ran.code
                };
                if ran.code != 0 {
                    failed.insert(*name, ran.code);
                }
                if ran.code != 0 && job["artifacts"]["when"] != "always" {
                    break;
                }
                for path in lines(&job["artifacts"]["paths"]) {
                    let kept = self.place.path(&format!("kept/{name}-{index}/{path}"));
                    if folder.join(path).exists() {
                        put(&folder.join(path), &kept);
                        artifacts
                            .entry(*name)
                            .or_default()
                            .push((path.to_owned(), kept));
                    }
                }
                if let Some(file) = job["artifacts"]["reports"]["dotenv"].as_str() {
                    said.insert(
                        *name,
                        assigned(&fs::read_to_string(folder.join(file)).unwrap()),
                    );
                }
            }
        }
        (code, log)
    }

    /// GitHub: the exit code of the last job that ran, or of one that failed.
    fn github(&self, event: &str, document: &Json, jobs: &[&str], fails: &str) -> (i32, String) {
        let head = self.machine.git("rev-parse change");
        let base = self.machine.git("rev-parse main");
        let from = if self.fork {
            "them/kernels"
        } else {
            "us/kernels"
        };
        let (repo, own) = (
            json!({ "full_name": from }),
            json!({ "full_name": "us/kernels" }),
        );
        let payload = json!({
            "number": 7, "repository": own,
            "pull_request": { "number": 7, "head": { "sha": head, "repo": repo },
                "base": { "sha": base, "ref": "main", "repo": own } },
            "workflow_run": { "head_sha": head, "head_repository": repo },
        });
        self.place.write("event.json", payload.to_string());
        let mut known: Words = assigned(&format!(
            "github.base_ref=main\ngithub.event.pull_request.head.sha={head}\n\
             github.event.pull_request.number=7\ngithub.event.workflow_run.head_sha={head}\n\
             steps.pull.outputs.number=7\nsteps.pull.outputs.head={head}\n\
             steps.pull.outputs.base=refs/remotes/origin/main\nsteps.pull.outputs.target=main"
        ));
        let (mut failure, mut log) = (0, String::new());
        for name in jobs {
            let job = &document["jobs"][*name];
            let always = |of: &Json| {
                of["if"]
                    .as_str()
                    .is_some_and(|when| when.contains("always()"))
            };
            if failure != 0 && !always(job) {
                continue;
            }
            let slices = job["strategy"]["matrix"]["slice"].as_array().cloned();
            for slice in slices.unwrap_or(vec![json!("")]) {
                let here = format!("jobs/{name}-{slice}");
                let workspace = self.fresh(&here, false);
                let temp = self.fresh(&format!("{here}-temp"), false);
                known.insert("runner.temp".to_owned(), temp.display().to_string());
                known.insert("matrix.slice".to_owned(), slice.to_string());
                let mut failed = 0;
                for step in job["steps"].as_array().unwrap() {
                    let when = step["if"].as_str().unwrap_or_default();
                    let for_forks = when.contains("head.repo.full_name != github.repository");
                    if (for_forks && !self.fork) || (failed != 0 && !always(step)) {
                        continue;
                    }
                    let mut env = all_filled(&job["env"], &known);
                    env.extend(all_filled(&step["env"], &known));
                    env.extend(assigned(&format!(
                        "GITHUB_ACTIONS=true\nGITHUB_EVENT_NAME={event}\nGITHUB_REPOSITORY=us/kernels\n\
                         GITHUB_EVENT_PATH={}\nRUNNER_TEMP={}\nGITHUB_STEP_SUMMARY={}\nGITHUB_OUTPUT={}",
                        self.place.path("event.json").display(),
                        temp.display(),
                        self.place.path("summary").display(),
                        self.place.path("output").display(),
                    )));
                    if event == "pull_request" {
                        env.insert("GITHUB_BASE_REF".to_owned(), "main".to_owned());
                    }
                    self.place.write("output", "");
                    let mut with = all_filled(&step["with"], &known);
                    let mut input = |name: &str| with.remove(name).unwrap_or_default();
                    let kept = |name: &str| self.place.path(&format!("artifacts/{name}"));
                    let uses = step["uses"].as_str().unwrap_or_default();
                    let action = uses.split('@').next().unwrap();
                    let ran = match action {
                        "" => {
                            let script = step["run"].as_str().unwrap();
                            Some(self.shell(&["-e", "-c", script], &workspace, &env, fails))
                        }
                        "actions/checkout" => {
                            let path = format!("{here}/{}", input("path"));
                            self.fresh(&path, true);
                            None
                        }
                        "actions/upload-artifact" => {
                            let (name, path) = (input("name"), workspace.join(input("path")));
                            if path.is_dir() {
                                put(&path, &kept(&name));
                            } else if path.exists() {
                                put(&path, &kept(&name).join(path.file_name().unwrap()));
                            } else if input("if-no-files-found") == "error" {
                                failed = 1;
                            }
                            None
                        }
                        "actions/download-artifact" => {
                            let (name, path) = (input("name"), workspace.join(input("path")));
                            let pattern = input("pattern").replace('*', "");
                            let mut found = 0;
                            for entry in fs::read_dir(self.place.path("artifacts")).unwrap() {
                                let entry = entry.unwrap().file_name().into_string().unwrap();
                                if entry == name {
                                    put(&kept(&entry), &path);
                                    found += 1;
                                } else if !pattern.is_empty() && entry.starts_with(&pattern) {
                                    put(&kept(&entry), &path.join(&entry));
                                }
                            }
                            if !name.is_empty() && found == 0 {
                                failed = 1;
                            }
                            None
                        }
                        own if own == published_as() && input("install-only") != "true" => {
                            Some(self.action(&workspace, &env, &step["with"], &known, fails))
                        }
                        own if own.starts_with(published_as()) => None,
                        other => unreachable!("{other} is not known here"),
                    };
                    let mut output = assigned(&self.place.read("output"));
                    if let Some(ran) = ran {
                        log += &format!("{name}: {}\n{}{}", ran.code, ran.out, ran.err);
                        let code = output.remove("exit-code").map(|code| code.parse().unwrap());
                        failed = if ran.code == 0 {
                            code.unwrap_or(failed)
                        } else {
                            ran.code
                        };
                    }
                    if let Some(id) = step["id"].as_str() {
                        let named = output.into_iter();
                        known
                            .extend(named.map(|(name, value)| {
                                (format!("steps.{id}.outputs.{name}"), value)
                            }));
                    }
                }
                for (output, value) in all_filled(&job["outputs"], &known) {
                    known.insert(format!("needs.{name}.outputs.{output}"), value);
                }
                failure = if failed == 0 { failure } else { failed };
            }
        }
        (failure, log)
    }

    /// The step of the action that checks, with its inputs as the action has them.
    fn action(
        &self,
        workspace: &Path,
        env: &Words,
        with: &Json,
        known: &Words,
        fails: &str,
    ) -> Ran {
        let text = fs::read_to_string(repository().join("action.yml")).unwrap();
        let action: Json = serde_yaml_ng::from_str(&text).unwrap();
        let mut inputs = known.clone();
        for (name, input) in action["inputs"].as_object().unwrap() {
            let given = if with[name].is_null() {
                &input["default"]
            } else {
                &with[name]
            };
            inputs.insert(format!("inputs.{name}"), filled(given, known));
        }
        let mut steps = action["runs"]["steps"].as_array().unwrap().iter();
        let check = steps.find(|step| step["id"] == "check").unwrap();
        let mut env = env.clone();
        env.extend(all_filled(&check["env"], &inputs));
        let script = repository().join("ci/github/run.sh");
        let folder = workspace.join(&inputs["inputs.directory"]);
        self.shell(&[script.to_str().unwrap()], &folder, &env, fails)
    }

    /// Buildkite: the exit code of the last step that ran.
    fn buildkite(&self, document: &Json, fails: &str) -> (i32, String) {
        let (mut failed, mut log) = (BTreeMap::new(), String::new());
        let mut code = 0;
        for step in document["steps"].as_array().unwrap() {
            let key = step["key"].as_str().unwrap();
            let after = step["depends_on"].as_str().unwrap_or_default();
            if failed.contains_key(after) {
                continue;
            }
            let count = step["parallelism"].as_u64().unwrap_or(1);
            for index in 0..count {
                let folder = self.fresh(&format!("jobs/{key}-{index}"), true);
                let env = assigned(&format!(
                    "BUILDKITE=true\nBUILDKITE_PULL_REQUEST=7\nBUILDKITE_PULL_REQUEST_BASE_BRANCH=main\n\
                     BUILDKITE_PARALLEL_JOB={index}\nBUILDKITE_PARALLEL_JOB_COUNT={count}"
                ));
                let script = step["command"].as_str().unwrap().replace("$$", "$");
                let ran = self.shell(&["-e", "-c", &script], &folder, &env, fails);
                log += &format!("{key}: {}\n{}{}", ran.code, ran.out, ran.err);
                // Whatever the step's exit code was.
                let kept = step["artifact_paths"].as_str().unwrap_or_default();
                if folder.join(kept).is_file() {
                    put(&folder.join(kept), &self.place.path("artifacts").join(kept));
                }
                code = ran.code;
                if ran.code != 0 {
                    failed.insert(key, ran.code);
                }
            }
        }
        (failed.values().next().copied().unwrap_or(code), log)
    }

    /// One of the pipelines, from its first job to its last one.
    fn runs(&self, pipeline: &str, fails: &str) -> (i32, String) {
        let _ = fs::remove_dir_all(self.place.path("artifacts"));
        fs::create_dir(self.place.path("artifacts")).unwrap();
        self.machine.write("journal", "");
        let yaml = |path: &str| -> Json {
            let text = fs::read_to_string(repository().join(path)).unwrap();
            serde_yaml_ng::from_str(&text).unwrap()
        };
        let plan = |format: &str| -> Json {
            let project = &self.machine.project;
            let plan = ["plan", "--slices", "2", "--format", format];
            serde_yaml_ng::from_str(&project.run(&plan).exits(0).out).unwrap()
        };
        match pipeline {
            "the recipe for GitLab" => {
                let document = yaml("ci/gitlab/sparsek-gate.gitlab-ci.yml");
                self.gitlab(
                    &document,
                    &["sparsek-gate:profile", "sparsek-gate:check"],
                    fails,
                )
            }
            "gpu-check.yml" => {
                let document = yaml("ci/github/gpu-check.yml");
                self.github("pull_request", &document, &["check"], fails)
            }
            "kernels-pr.yml" => {
                let first = yaml("ci/github/kernels-pr.yml");
                let (code, log) = self.github("pull_request", &first, &["profile"], fails);
                // Its second half follows whatever the first half came to.
                let second = yaml("ci/github/kernels-report.yml");
                let (judged, more) = self.github("workflow_run", &second, &["report"], fails);
                (if judged == 0 { code } else { judged }, log + &more)
            }
            "plan github" => {
                let jobs = ["archive", "slices", "judge"];
                self.github("pull_request", &plan("github"), &jobs, fails)
            }
            "plan gitlab" => {
                let jobs = ["archive", "slices", "judge"].map(|job| format!("sparsek-gate:{job}"));
                let jobs: Vec<&str> = jobs.iter().map(String::as_str).collect();
                self.gitlab(&plan("gitlab"), &jobs, fails)
            }
            _ => self.buildkite(&plan("buildkite"), fails),
        }
    }
}

const PIPELINES: [&str; 6] = [
    "the recipe for GitLab", "gpu-check.yml", "kernels-pr.yml", "plan github", "plan gitlab",
    "plan buildkite",
];

/// Every pipeline on this change.
fn each(change: &str, expected: i32) {
    let site = Site::new();
    site.changed(change);
    for pipeline in PIPELINES {
        let (code, log) = site.runs(pipeline, "");
        assert_eq!(code, expected, "{pipeline}: {change}\n{log}");
    }
}

#[test]
fn a_change_of_words_alone_passes_every_pipeline() {
    each("nothing", 0);
}

#[test]
fn a_change_that_leaves_a_variant_as_it_was_passes_every_pipeline() {
    each("one", 0);
}

#[test]
fn a_slower_kernel_fails_in_every_pipeline() {
    each("worse", 1);
}

#[test]
fn the_first_pull_request_passes_every_pipeline() {
    each("first", 0);
}

#[test]
fn the_pull_request_of_a_fork_is_judged_where_a_pipeline_is_for_it_and_else_fails() {
    let mut site = Site::new();
    site.fork = true;
    site.changed("worse");
    for pipeline in PIPELINES {
        let (code, log) = site.runs(pipeline, "");
        assert_eq!(code, 1, "{pipeline}: {log}");
    }
    site.changed("one");
    let (code, log) = site.runs("kernels-pr.yml", "");
    assert_eq!(code, 0, "{log}");
}

#[test]
fn what_the_change_brings_is_not_taken_for_what_a_step_makes() {
    for pipeline in PIPELINES {
        let site = Site::new();
        site.changed("nothing");
        let (code, log) = site.runs(pipeline, "");
        assert_eq!(code, 0, "{log}");
        // What was made at home, under every name, and the steps that would make it fail.
        let mut made = vec![site.place.path("artifacts")];
        let jobs = fs::read_dir(site.place.path("jobs")).unwrap();
        made.extend(jobs.map(|job| job.unwrap().path()));
        for name in OUTPUTS {
            if let Some(from) = made.iter().find(|folder| folder.join(name).exists()) {
                put(&from.join(name), &site.machine.path(name));
                site.machine.git(&["add", "--force", name]);
            }
        }
        site.machine.commit();
        let measuring = match pipeline.starts_with("plan") {
            true => ["archive=3", "profile=3"],
            false => ["check=1", "check=3"],
        };
        for fails in measuring {
            let (code, log) = site.runs(pipeline, fails);
            assert_ne!(code, 0, "{pipeline}: {fails}: {log}");
        }
    }
}
