//! The attack table: ways to choose, or to stand in for, the revision whose rules count, and honest
//! changes that must pass. Each line is a scratch repository, CI variables, and what the check must
//! answer.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};

use crate::common::git::git;
use crate::common::strace::{can_watch, watched};
use crate::common::{Arguments, ENDINGS, Project, RECORDED, Ran, copy, scale};
use serde_json::json;
use sparsek_gate::files;
use sparsek_gate::hash::sha256_file;
use sparsek_gate::profile::Profile;

const VARIANT: &str = "cp_async";
const SOURCE: &str = "kernels/bsr_gemm/cp_async.cu";
const STRICT: &str = "stored = \"4 %\"";
const LOOSE: &str = "stored = \"30 %\"";

/// The table. A line is `name | steps | variables | arguments | exit code | text in the output`.
///
/// It begins on the branch `change` at the only commit of `main`, `{M}`, which is also the tip of
/// `refs/remotes/origin/main`. Steps that change a file commit it, unless they end in `~`:
///
/// * `loosen` (4 % to 30 %), `tighten` (back), `waive`, `unlock` (removes the baseline), `relock`
///   (locks what is recorded), `ncu:PATH` names the profiler, `flag:TEXT` gives the variant a flag, `readme`, `note`, `write:FILE=TEXT` (`_` is a blank), `commit`;
/// * `code` changes the kernel, and its recording is of that code; `slow` makes the recorded kernel
///   10 % slower;
/// * `mark:X` calls HEAD `{X}`; `branch:B` begins a branch, `goto:B` goes to a branch or mark;
///   `merge:B`, `squash:B`, `pick:B`; `tip` or `tip:X` moves the target's remote branch there;
///   `ref:NAME=X` sets a reference; `git:A,B` runs git, `sh:TEXT` a shell, neither of which commits (`\137`, `\x5f` are `_`); `graft:X=Y`; `shallow:N` clones again;
///   `event:JSON` writes GitHub's event.
///
/// Variables are `NAME=VALUE`, or a service of [`SERVICES`].
const TABLE: &str = include_str!("data/attacks.txt");

/// Pull requests to `main` as services name them.
const SERVICES: &[&str] = &[
    "github CI=true GITHUB_ACTIONS=true GITHUB_EVENT_NAME=pull_request GITHUB_BASE_REF=main",
    "github-target GITHUB_EVENT_NAME=pull_request_target GITHUB_BASE_REF=main",
    "gitlab CI=true GITLAB_CI=true CI_PIPELINE_SOURCE=merge_request_event CI_MERGE_REQUEST_IID=7 CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main CI_MERGE_REQUEST_DIFF_BASE_SHA={X}",
    "buildkite CI=true BUILDKITE=true BUILDKITE_PULL_REQUEST=7 BUILDKITE_PULL_REQUEST_BASE_BRANCH=main",
    "jenkins JENKINS_URL=http://j CHANGE_ID=7 CHANGE_TARGET=main",
    "jenkins-ghprb JENKINS_URL=http://j ghprbPullId=7 ghprbTargetBranch=main",
    "jenkins-gitlab JENKINS_URL=http://j gitlabMergeRequestIid=7 gitlabTargetBranch=main",
];

/// What every service's pull request must answer: the first change loosens a rule and takes it back, and the
/// second one begins in between. `src/trust/service/run.rs` reads the variables, and the table has the rest.
const OF_EVERY_SERVICE: &[&str] = &[
    "begins at the author's commit | loosen mark:X tighten readme goto:main merge:change tip goto:X branch:two code slow | SERVICE | | 1 | regressed",
];

/// A pull request of a service that is not in the table.
const OTHER_SERVICES: &[&str] = &[
    "azure TF_BUILD=True BUILD_REASON=PullRequest SYSTEM_PULLREQUEST_TARGETBRANCH=refs/heads/main",
];

/// What it must answer: nothing without a named base, and with it what every service does.
const OF_EVERY_OTHER_SERVICE: &[&str] = &[
    "names no base | loosen mark:X slow | SERVICE | | 4 | add --baseline-ref refs/remotes/origin/main",
    "begins at the author's commit | loosen mark:X tighten readme goto:main merge:change tip goto:X branch:two code slow | SERVICE | --baseline-ref refs/remotes/origin/main | 1 | regressed",
    "names the author's commit | loosen mark:X tighten goto:main merge:change tip goto:X branch:two code slow | SERVICE | --baseline-ref {X} | 4 | no branch of a remote by name",
    "loosens a rule | mark:X slow loosen | SERVICE | --baseline-ref refs/remotes/origin/main | 4 | loosens `duration` from 4 % to 30 %",
    "is honest, and the target moved on | mark:X code goto:main tighter note tip goto:change | SERVICE | --baseline-ref refs/remotes/origin/main | 0 | --baseline-ref refs/remotes/origin/main",
    "lacks its target | mark:X readme git:update-ref,-d,refs/remotes/origin/main | SERVICE | --baseline-ref refs/remotes/origin/main | 3 | there is no such revision",
];

/// The first commit, with a recording beside it that passes.
static BASE: LazyLock<Project> = LazyLock::new(|| {
    let project = Project::shipped();
    let config = project.read("config.toml");
    let start = config.find("[suite.bsr_gemm.variant.baseline]").unwrap();
    let own = config.find("[suite.bsr_gemm.variant.cp_async]").unwrap();
    let end = config.find("[suite.bsr_gemm.variant.occupancy]").unwrap();
    project.write(
        "config.toml",
        format!("{}{}", &config[..start], &config[own..end]),
    );
    for variant in ["baseline", "occupancy"] {
        for ending in ENDINGS {
            fs::remove_file(project.path(&Project::baseline_path(variant, ending))).unwrap();
        }
        fs::remove_dir_all(project.path(&format!("{RECORDED}/bsr_gemm/{variant}"))).unwrap();
    }
    for folder in [
        "attention", "attention_causal", "faults", "trajectory_resample",
    ] {
        fs::remove_dir_all(project.path("kernels").join(folder)).unwrap();
    }
    for entry in fs::read_dir(project.path(&format!("{RECORDED}/bsr_gemm/{VARIANT}"))).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending != "json") {
            fs::remove_file(path).unwrap();
        }
    }
    let folder = project.path("");
    git(&folder, "init --quiet --template=");
    project.write(
        ".git/info/exclude",
        format!("{RECORDED}/\n.sparsek-gate/\n"),
    );
    git(&folder, "add --all");
    git(&folder, "commit --quiet --message first");
    git(&folder, "update-ref refs/remotes/origin/main HEAD");
    git(&folder, "gc --quiet");
    git(&folder, "checkout --quiet -b change");
    project
});

/// One line of the table.
struct Line<'a> {
    name: String,
    steps: &'a str,
    variables: String,
    arguments: &'a str,
    exit: i32,
    says: &'a str,
}

impl<'a> Line<'a> {
    fn steps(&self) -> Vec<&'a str> {
        self.steps.split_whitespace().collect()
    }
}

fn line<'a>(text: &'a str, service: Option<&str>) -> Line<'a> {
    let cells: Vec<&str> = text.split(" |").map(str::trim).collect();
    assert_eq!(cells.len(), 6, "{text}");
    let [name, steps, variables, arguments, exit, says] = cells.try_into().unwrap();
    let (name, variables) = match service {
        Some(service) => {
            let (service, own) = service.split_once(' ').unwrap();
            let variables = variables.replace("SERVICE", own);
            (format!("{service} {name}"), variables)
        }
        None => {
            let named = |word| {
                let own = |service: &&'static str| service.strip_prefix(word)?.strip_prefix(' ');
                SERVICES.iter().find_map(own).unwrap_or(word)
            };
            let words: Vec<&str> = variables.split_whitespace().map(named).collect();
            (name.to_owned(), words.join(" "))
        }
    };
    Line {
        name,
        steps,
        variables,
        arguments,
        exit: exit.parse().unwrap(),
        says,
    }
}

/// A scratch repository, and the commits that have names in the table.
struct Scratch {
    project: Project,
    /// Beside the repository: what must not come to be, and what must stay out of it.
    outside: tempfile::TempDir,
    marks: BTreeMap<String, String>,
    count: usize,
}

/// Scratch repositories after the steps that several lines begin with. Each is made once, by the line that
/// needs it first.
type Shared<'a> = BTreeMap<Vec<&'a str>, OnceLock<Scratch>>;

/// Where two neighbours of the sorted lines part, their common steps are a beginning that is shared.
fn shared<'a>(lines: &[Line<'a>]) -> Shared<'a> {
    let mut all: Vec<Vec<&str>> = lines.iter().map(Line::steps).collect();
    all.sort_unstable();
    let beginning = |pair: &[Vec<&'a str>]| -> Vec<&'a str> {
        let steps = pair[0].iter().zip(&pair[1]);
        let same = steps.take_while(|(one, other)| one == other && !names_its_place(one));
        same.map(|(step, _)| *step).collect()
    };
    let beginnings = all.windows(2).map(beginning);
    beginnings
        .chain([Vec::new()])
        .map(|steps| (steps, OnceLock::new()))
        .collect()
}

/// Whether a step leaves something that is not in the repository, or holds its path.
fn names_its_place(step: &str) -> bool {
    ["{HERE}", "{RAN}", "{OUT}"]
        .iter()
        .any(|place| step.contains(place))
        || ["event:", "outside:", "link:", "shallow:"]
            .iter()
            .any(|verb| step.starts_with(verb))
}

impl Scratch {
    fn new() -> Scratch {
        let mut scratch = Scratch {
            project: Project::empty(),
            outside: tempfile::tempdir().unwrap(),
            marks: BTreeMap::new(),
            count: 0,
        };
        copy(&BASE.path(""), &scratch.project.path(""));
        scratch.mark("M");
        scratch
    }

    /// A repository of its own after these steps.
    fn after(steps: &[&str], shared: &Shared<'_>) -> Scratch {
        let known = |count: &usize| shared.contains_key(&steps[..*count]);
        let known = (0..=steps.len()).rev().find(known).unwrap();
        let made = shared[&steps[..known]].get_or_init(|| match steps[..known].split_last() {
            None => Scratch::new(),
            Some((last, before)) => {
                let mut scratch = Scratch::after(before, shared);
                scratch.step(last);
                scratch
            }
        });
        let mut scratch = Scratch {
            project: Project::empty(),
            outside: tempfile::tempdir().unwrap(),
            marks: made.marks.clone(),
            count: made.count,
        };
        copy(&made.project.path(""), &scratch.project.path(""));
        for step in &steps[known..] {
            scratch.step(step);
        }
        scratch
    }

    fn git(&self, arguments: impl Arguments) -> String {
        git(&self.project.path(""), arguments)
    }

    fn mark(&mut self, name: &str) {
        let head = self.git("rev-parse HEAD");
        self.marks.insert(name.to_owned(), head);
    }

    fn outside(&self, name: &str) -> PathBuf {
        self.outside.path().join(name)
    }

    /// The text with the hashes of marks, and paths, in place of `{X}`.
    fn filled(&self, text: &str) -> String {
        let mut text = text
            .replace("{RAN}", &self.outside("ran").display().to_string())
            .replace("{OUT}", &self.outside.path().display().to_string())
            .replace("{HERE}", &self.project.path("").display().to_string())
            .replace("{ZERO}", &"0".repeat(40));
        for (name, commit) in &self.marks {
            text = text.replace(&format!("{{{name}}}"), commit);
        }
        text
    }

    /// A branch or a mark.
    fn commit_of(&self, name: &str) -> String {
        self.marks
            .get(name)
            .map_or_else(|| name.to_owned(), Clone::clone)
    }

    fn step(&mut self, step: &str) {
        let (step, commits) = match step.strip_suffix('~') {
            Some(step) => (step, false),
            None => (step, true),
        };
        let (verb, rest) = step.split_once(':').unwrap_or((step, ""));
        let rest = self.filled(rest);
        if self.edit(verb, &rest) {
            if commits {
                self.git("add --all");
                self.git(&["commit", "--quiet", "--allow-empty", "--message", verb]);
            }
            return;
        }
        self.history(verb, &rest);
    }

    /// Steps that change files; false of another step.
    fn edit(&mut self, verb: &str, rest: &str) -> bool {
        self.count += 1;
        let project = &self.project;
        match verb {
            "loosen" => project.configure(STRICT, LOOSE),
            "tighten" => project.configure(LOOSE, STRICT),
            // Stricter elsewhere, so that it merges with everything.
            "tighter" => project.configure("timeout_s = 60", "timeout_s = 50"),
            "waive" => {
                let config = project.read("config.toml");
                let waiver = "\n[[waiver]]\nvariant = \"bsr_gemm/cp_async\"\nmetric = \"duration\"\nreason = \"needed\"\nwho = \"Eve\"\nexpires = 2999-12-31\n";
                project.write("config.toml", config + waiver);
            }
            // The review of code owners accepts.
            "owners" => {
                let config = project.read("config.toml");
                let accept = "[trust]\naccept = \"code-owners\"\n\n[toolchain]\n";
                project.write("config.toml", config.replacen("[toolchain]\n", accept, 1));
            }
            "unlock" => {
                for ending in ENDINGS {
                    fs::remove_file(project.path(&Project::baseline_path(VARIANT, ending)))
                        .unwrap();
                }
            }
            "relock" => relock(project),
            "static" => project.configure(
                "[static.spill_store_bytes]\nlevel = \"record\"",
                "[static.spill_store_bytes]\nlevel = \"deny\"",
            ),
            "readme" => project.write("README.md", format!("Read me, {}.\n", self.count)),
            "note" => project.write("notes.md", format!("A note, {}.\n", self.count)),
            "write" => {
                let (file, text) = rest.split_once('=').unwrap();
                project.write(file, text.replace('_', " ").replace("\\n", "\n") + "\n");
            }
            "ncu" => {
                let config = project.read("config.toml");
                let toolchain = format!("[toolchain]\nncu = \"{rest}\"\n");
                project.write(
                    "config.toml",
                    config.replacen("[toolchain]\n", &toolchain, 1),
                );
            }
            "flag" => {
                let config = project.read("config.toml");
                let variant = "[suite.bsr_gemm.variant.cp_async]\n";
                let flags = format!("{variant}flags = [\"{rest}\"]\n");
                project.write("config.toml", config.replacen(variant, &flags, 1));
            }
            "commit" => {}
            "code" => {
                let source = project.read(SOURCE);
                project.write(SOURCE, format!("// change {}\n{source}", self.count));
                self.record_source();
            }
            _ => return false,
        }
        true
    }

    /// The recording is of the code that is checked out.
    fn record_source(&self) {
        let hash = sha256_file(&self.project.path(SOURCE)).unwrap();
        for file in [files::PROFILE_FILE, files::STATIC_PROFILE_FILE] {
            let path = format!("{RECORDED}/bsr_gemm/{VARIANT}/{file}");
            self.project.edit(&path, |profile| {
                profile["provenance"]["sources"][SOURCE] = json!(hash);
            });
        }
    }

    /// Steps that change commits, references and what lies beside them.
    fn history(&mut self, verb: &str, rest: &str) {
        let (name, value) = rest.split_once('=').unwrap_or((rest, "HEAD"));
        let (of, value) = (self.commit_of(name), self.commit_of(value));
        let write = |path: &str, text: String| {
            let path = self.project.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        match verb {
            "slow" => self
                .project
                .edit_profile(VARIANT, |profile| scale(profile, "duration", 1.1)),
            "mark" => self.mark(rest),
            "branch" => drop(self.git(&["checkout", "--quiet", "-b", rest])),
            "goto" => drop(self.git(&["checkout", "--quiet", &of])),
            "merge" => drop(self.git(&["merge", "--quiet", "--no-ff", "--no-edit", &of])),
            "squash" => {
                self.git(&["merge", "--quiet", "--squash", &of]);
                self.git("commit --quiet --message squashed");
            }
            "pick" => drop(self.git(&["cherry-pick", "--allow-empty", rest])),
            "tip" => {
                let to = if rest.is_empty() {
                    "HEAD".to_owned()
                } else {
                    of
                };
                self.git(&["update-ref", "refs/remotes/origin/main", &to]);
            }
            "ref" => drop(self.git(&["update-ref", name, &value])),
            "git" => {
                let words: Vec<String> =
                    rest.split(',').map(|word| word.replace('_', " ")).collect();
                self.git(&words.iter().map(String::as_str).collect::<Vec<_>>());
            }
            "sh" => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &rest.replace('_', " ")]);
                let ran = shell.current_dir(self.project.path("")).status();
                assert!(ran.unwrap().success(), "{rest}");
            }
            "graft" => write(".git/info/grafts", format!("{of} {value}\n")),
            "event" => fs::write(self.outside("event.json"), rest).unwrap(),
            "outside" => {
                let (file, text) = rest.split_once('=').unwrap();
                fs::write(
                    self.outside(file),
                    text.replace('_', " ").replace("\\n", "\n") + "\n",
                )
                .unwrap();
            }
            "link" => {
                std::os::unix::fs::symlink(rest.split_once('=').unwrap().1, self.project.path(name))
                    .unwrap()
            }
            "executable" => self.project.program(rest, &self.project.read(rest)),
            "remove" => fs::remove_dir_all(self.project.path(rest)).unwrap(),
            "shallow" => self.shallow(rest),
            _ => assert!(verb.is_empty(), "there is no step {verb}"),
        }
    }

    /// A shallow clone in the place of the repository.
    fn shallow(&mut self, depth: &str) {
        let clone = Project::empty();
        let from = format!("file://{}", self.project.path("").display());
        let to = clone.path("").display().to_string();
        self.git(&[
            "clone", "--quiet", "--no-single-branch", "--depth", depth, &from, &to,
        ]);
        copy(&self.project.path(RECORDED), &clone.path(RECORDED));
        clone.write(
            ".git/info/exclude",
            format!("{RECORDED}/\n.sparsek-gate/\n"),
        );
        self.project = clone;
    }

    fn check(&self, variables: &str, arguments: &str) -> Ran {
        Ran::of(&self.command(variables, arguments).output().unwrap())
    }

    fn command(&self, variables: &str, arguments: &str) -> Command {
        let mut command = self.project.gate();
        for variable in self.filled(variables).split_whitespace() {
            let (name, value) = variable.split_once('=').unwrap();
            command.env(name, value);
        }
        if self.outside("event.json").exists() {
            command.env("GITHUB_EVENT_PATH", self.outside("event.json"));
        }
        let arguments = self.filled(arguments);
        command.args(["check", "--format", "json"]);
        if !arguments.contains("--static") {
            command.args(["--from", RECORDED]);
        }
        command.args(arguments.split_whitespace());
        command
    }
}

/// Locks what is recorded on top of the ledger, as `baseline --lock` would with its captures.
fn relock(project: &Project) {
    let recorded = project.read(&Project::profile_path(VARIANT));
    let profile = Profile::parse(recorded.as_bytes()).unwrap();
    project.relock(VARIANT, &profile, |_| {});
}

/// What is wrong with the answer to a line; `None` where nothing is.
fn complaint(line: &Line<'_>, shared: &Shared<'_>) -> Option<String> {
    let scratch = Scratch::after(&line.steps(), shared);
    let before = scratch.git("for-each-ref");
    if line.exit == 0 {
        scratch.project.prove();
    }
    let ran = scratch.check(&line.variables, line.arguments);
    let said = ran.out.contains(line.says) || ran.err.contains(line.says);
    let by_own_rules = ran.out.contains("\"working-tree\"");
    let by_choice = line.variables.is_empty() || line.arguments.contains("none");
    let why = if ran.code != line.exit {
        format!("exit code {}, not {}", ran.code, line.exit)
    } else if !said {
        format!("nothing says {:?}", line.says)
    } else if ran.code == 0 && by_own_rules && !by_choice {
        "it was judged by its own rules".to_owned()
    } else if scratch.outside("ran").exists() {
        "code of the change ran".to_owned()
    } else if scratch.git("for-each-ref") != before {
        "references changed".to_owned()
    } else if scratch
        .project
        .path(".git/worktrees")
        .read_dir()
        .is_ok_and(|mut left| left.next().is_some())
    {
        "a worktree was left behind".to_owned()
    } else {
        return None;
    };
    let findings: Vec<&str> = ran
        .out
        .lines()
        .filter(|line| line.contains("\"message\""))
        .collect();
    Some(format!(
        "{}: {why}\n{}\n{}",
        line.name,
        ran.err.trim_end(),
        findings.join("\n")
    ))
}

fn hold(lines: &[Line<'_>]) {
    let shared = shared(lines);
    let next = AtomicUsize::new(0);
    let complaints = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(line) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // A step that fails is a complaint too, with the name of its line.
                    let answer = std::panic::catch_unwind(|| complaint(line, &shared));
                    let complaint =
                        answer.unwrap_or_else(|_| Some(format!("{}: a step failed", line.name)));
                    complaints.lock().unwrap().extend(complaint);
                }
            });
        }
    });
    let complaints = complaints.into_inner().unwrap();
    assert!(
        complaints.is_empty(),
        "{} of {} lines:\n\n{}",
        complaints.len(),
        lines.len(),
        complaints.join("\n\n")
    );
}

fn table() -> impl Iterator<Item = Line<'static>> {
    let lines = TABLE.lines();
    let lines = lines.filter(|text| !text.is_empty() && !text.starts_with('#'));
    lines.map(|text| line(text, None))
}

#[test]
fn every_line_of_the_attack_table_is_answered_as_it_says() {
    let wanted = std::env::var("ATTACK").unwrap_or_default();
    let lines: Vec<Line<'_>> = table().filter(|line| line.name.contains(&wanted)).collect();
    assert!(
        lines.len() >= 100 || !wanted.is_empty(),
        "{} lines",
        lines.len()
    );
    hold(&lines);
}

#[test]
fn an_attack_on_paths_makes_the_tool_read_and_write_nothing_outside_of_the_project() {
    if !can_watch() {
        return;
    }
    let lines = table().filter(|line| line.steps.contains("{OUT}") && line.exit != 0);
    let lines: Vec<Line<'_>> = lines.collect();
    assert!(lines.len() > 3, "{} lines", lines.len());
    let shared = shared(&lines);
    for line in &lines {
        let scratch = Scratch::after(&line.steps(), &shared);
        let temporary = tempfile::tempdir().unwrap();
        let mut command = scratch.command(&line.variables, line.arguments);
        command.env("TMPDIR", temporary.path());
        let trace = temporary.path().join("trace");
        let (output, touched) = watched(&command, &trace);
        assert_eq!(Ran::of(&output).code, line.exit, "{}", line.name);
        let outside = scratch.outside("").canonicalize().unwrap();
        let read = touched
            .read
            .iter()
            .find(|path| path.starts_with(&outside) && **path != outside);
        assert_eq!(read, None, "{}", line.name);
        let project = scratch.project.path("").canonicalize().unwrap();
        let temporary = temporary.path().canonicalize().unwrap();
        let may = [
            project.as_path(),
            &temporary,
            Path::new("/dev"),
            Path::new("/proc"),
        ];
        let other = |path: &&PathBuf| !may.iter().any(|folder| path.starts_with(folder));
        assert_eq!(touched.written.iter().find(other), None, "{}", line.name);
        assert!(!touched.read.is_empty(), "nothing was watched");
    }
}

#[test]
fn the_pull_requests_of_every_service_are_judged_by_the_tip_of_their_target() {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (services, texts) in [
        (SERVICES, OF_EVERY_SERVICE),
        (OTHER_SERVICES, OF_EVERY_OTHER_SERVICE),
    ] {
        for service in services {
            lines.extend(texts.iter().map(|text| line(text, Some(service))));
        }
    }
    hold(&lines);
}
