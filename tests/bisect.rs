//! `bisect`: the commit that made a variant worse is found in a history, whatever else is in it.
//! Compiler, ncu and the driver are stand-ins; programs are small C programs, and the reports that are
//! handed over are those that the real ncu recorded on an H200, of one kernel and of a slower version.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use crate::common::stand_in::{Machine, NVCC_OF_C};
use crate::common::{self, Ran};
use serde_json::Value as Json;

const VARIANT: &str = r#"
[suite.bsr_gemm.variant.cp_async]
source = "kernels/b.cu"
expect = ["bsr_gemm_cp_async"]
"#;

/// The slow version takes twice as long, and one that is slow half of the time stays open.
const AGAINST: &str = "against = { relative_percent = 50.0 }\n";

/// What a commit is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// A program of its own.
    Program,
    /// The source of the commit before, with another comment.
    Comment,
    /// It does not compile.
    Broken,
    /// Its own check fails.
    Wrong,
    /// A program of its own, half of whose launches are slow: no number of them decides.
    Noisy,
    /// A program of its own, with rules by which it would not be worse.
    Loosens,
}

/// A repository with a history: commit 0 is good, `worse` and those after it are slow.
struct History {
    machine: Machine,
    commits: Vec<String>,
}

impl History {
    fn new(kinds: &[Kind], worse: usize) -> Option<History> {
        let machine = Machine::new()?;
        machine.program("toolkit/bin/nvcc", NVCC_OF_C);
        let project = &machine.project;
        let config = project.read("config.toml");
        let tight = "against = { relative_percent = 0.25 }\n\n";
        assert_eq!(config.matches(tight).count(), 1);
        let config = config.replace(tight, &format!("{AGAINST}\n"));
        let config = config.replace("\nmax_rounds = 5\n", "\nmax_rounds = 2\n");
        project.write("config.toml", config + VARIANT);
        project.git(&["init", "--quiet"]);
        let ours = "/journal\n/reports\n/argv\n/tmp/\n/home/\n/found/\n/.sparsek-gate/\n";
        project.write(".git/info/exclude", ours);
        let mut history = History {
            machine,
            commits: Vec::new(),
        };
        history.commit("the good one", 0, "h200", 0);
        let mut program = 0;
        for (kind, at) in kinds.iter().zip(1..) {
            if *kind != Kind::Comment {
                program = at;
            }
            // A comment changes nothing of what the commit before does.
            let recorded = if program >= worse {
                "h200-worse"
            } else {
                "h200"
            };
            match kind {
                Kind::Broken => history.write("this is no program", at),
                Kind::Noisy => history.write(&source(program, "h200 h200-worse", 0), at),
                Kind::Wrong => history.write(&source(program, recorded, 1), at),
                _ => history.write(&source(program, recorded, 0), at),
            }
            if *kind == Kind::Loosens {
                let loose = format!("{AGAINST}level = \"record\"\n");
                history
                    .machine
                    .project
                    .replace("config.toml", AGAINST, &loose);
            }
            history.keep(&format!("step {at}"));
        }
        Some(history)
    }

    fn write(&self, source: &str, at: usize) {
        let text = format!("// step {at}\n{source}");
        self.machine.project.write("kernels/b.cu", text);
    }

    fn commit(&mut self, subject: &str, program: usize, recorded: &str, status: u32) {
        self.write(&source(program, recorded, status), program);
        self.keep(subject);
    }

    fn keep(&mut self, subject: &str) {
        let project = &self.machine.project;
        project.git(&["add", "--all"]);
        project.git(&["commit", "--quiet", "--message", subject]);
        let log = std::fs::read_to_string(project.path(".git/logs/HEAD")).unwrap();
        let last = log.lines().last().unwrap().split(' ').nth(1).unwrap();
        self.commits.push(last.to_owned());
    }

    fn bisect(&self, more: &[&str]) -> Ran {
        let range = format!("{}..HEAD", self.commits[0]);
        let arguments = ["bisect", &range, "bsr_gemm/cp_async", "--format", "json"];
        self.machine.run(&[&arguments[..], more].concat())
    }

    /// The place of a commit in the history.
    fn place(&self, commit: &Json) -> Option<usize> {
        let id = commit["id"].as_str()?;
        self.commits.iter().position(|one| one == id)
    }

    /// How many commits were measured.
    fn pairs(&self) -> usize {
        let journal = self.machine.project.read("journal");
        let counted = journal.lines();
        counted
            .filter(|line| line.starts_with("head cp_async counting"))
            .count()
    }
}

/// A program that prints what the stand-in of ncu needs to hear.
fn source(number: usize, recorded: &str, status: u32) -> String {
    format!(
        "int puts(const char *);\nint main(void) {{\n\
         puts(\"variant: cp_async\\nrecorded: {recorded}\\nprogram {number}\");\nreturn {status};\n}}\n"
    )
}

/// The answers of the commits that were asked for, by their place.
fn answers<'r>(history: &History, report: &'r Json) -> Vec<(usize, &'r str)> {
    let steps = report["steps"].as_array().unwrap().iter();
    let mut answers: Vec<(usize, &str)> = steps
        .map(|step| {
            (
                history.place(step).unwrap(),
                step["answer"].as_str().unwrap(),
            )
        })
        .collect();
    answers.sort_unstable();
    answers
}

#[test]
fn a_planted_culprit_is_found_between_commits_of_every_kind_and_both_reports_are_written() {
    use Kind::{Comment, Loosens, Program, Wrong};
    let kinds = [
        Program, Program, Program, Wrong, Program, Program, Loosens, Comment,
    ];
    let Some(history) = History::new(&kinds, 7) else {
        return;
    };
    let before = history.machine.project.git(&["status", "--porcelain"]);
    let report = history.bisect(&["--reports", "found"]).exits(0).json().0;
    assert_eq!(history.place(&report["first_bad"]), Some(7), "{report:#}");
    assert_eq!(history.place(&report["last_good"]), Some(6));
    // The last, the middle, the middle of the longest rest, twice.
    let steps = [
        (2, "good"),
        (4, "skip"),
        (6, "good"),
        (7, "bad"),
        (8, "bad"),
    ];
    assert_eq!(answers(&history, &report), steps, "{report:#}");
    // Commit 8 is commit 7 with another comment, so commit 7 was not measured.
    assert_eq!(report["steps"][4]["same_as"], history.commits[8].as_str());
    assert_eq!(history.pairs(), 3);
    // By their own rules nothing says when commits 7 and 8 are worse: GOOD's count, and the table says so.
    let own = |at: usize| &report["steps"][at]["other_config"];
    assert_eq!([own(0), own(2), own(3)], [true, false, false], "{report:#}");

    // The reports are those of a check, against GOOD.
    for (name, commit, verdict) in [("first-bad", 8, "regressed"), ("last-good", 6, "pass")] {
        let outcome = history.machine.project.json(&format!("found/{name}.json"));
        let judged = &outcome["variants"][0];
        assert_eq!(judged["reference"]["git"], history.commits[0].as_str());
        assert_eq!(judged["current"]["git"], history.commits[commit].as_str());
        let comparisons = judged["comparisons"].as_array().unwrap().iter();
        let mut durations = comparisons.filter(|one| one["metric"] == "duration");
        assert_eq!(durations.next().unwrap()["verdict"], verdict, "{name}");
        let page = history.machine.project.read(&format!("found/{name}.html"));
        assert!(page.contains("cp_async"), "{name}");
    }
    // Nothing is left behind, and the checkout is as it was.
    let project = &history.machine.project;
    assert_eq!(project.git(&["status", "--porcelain"]), before);
    assert_eq!(project.git(&["worktree", "list"]).lines().count(), 1);
    for folder in ["bisect", "worktrees"] {
        let left = std::fs::read_dir(project.path(&format!(".sparsek-gate/{folder}"))).unwrap();
        assert_eq!(left.count(), 0, "{folder}");
    }
}

#[test]
fn without_an_answer_no_commit_is_named() {
    use Kind::{Broken, Comment, Noisy, Program};
    let Some(history) = History::new(&[Noisy, Program], 1) else {
        return;
    };
    let report = history.bisect(&[]).exits(6).json().0;
    // It was measured once more before it was skipped.
    assert_eq!(report["steps"][1]["further"], true, "{report:#}");
    assert_eq!(history.pairs(), 3);
    assert_eq!(report["first_bad"], Json::Null);
    let range = report["range"].as_array().unwrap().iter();
    let range: Vec<Option<usize>> = range.map(|commit| history.place(commit)).collect();
    assert_eq!(range, [Some(1), Some(2)], "{report:#}");
    assert_eq!(answers(&history, &report), [(1, "open"), (2, "bad")]);

    // A BAD that does not build says nothing, and its own code is the exit code.
    let history = History::new(&[Program, Broken], 1).unwrap();
    let report = history.bisect(&[]).exits(5).json().0;
    assert_eq!(report["first_bad"], Json::Null);
    assert_eq!(history.pairs(), 0);

    // What the machine lacks, it lacks for every commit.
    let mut history = history;
    history
        .machine
        .ncu("case $1 in --version) ;; *) echo '==ERROR== ERR_NVGPUCTRPERM'; exit 1 ;; esac");
    history.commit("no permission", 3, "h200", 0);
    history.commit("worse", 4, "h200-worse", 0);
    let range = format!("{}..HEAD", history.commits[3]);
    let denied = ["bisect", &range, "bsr_gemm/cp_async"];
    history
        .machine
        .run(&denied)
        .exits(3)
        .says("error: ncu may not read the GPU's counters");

    // Nothing to find: BAD is GOOD's program, which needs no measurement.
    let history = History::new(&[Comment], 5).unwrap();
    let said = history.bisect(&[]).exits(6);
    let message = said.json().0["findings"][0]["message"].to_string();
    assert!(message.contains("there is nothing to find"), "{message}");
    assert_eq!(history.pairs(), 0);
}

#[test]
fn a_range_a_variant_or_a_metric_that_does_not_exist_is_refused_before_anything_is_built() {
    let Some(mut history) = History::new(&[Kind::Program], 1) else {
        return;
    };
    history.machine.project.git(&["branch", "side"]);
    history.commit("beside the branch", 2, "h200", 0);
    history
        .machine
        .project
        .git(&["checkout", "--quiet", "side"]);
    history
        .machine
        .project
        .write("kernels/b.cu", "int other;\n");
    history.keep("on the branch");
    let good = &history.commits[0];
    let whole = format!("{good}..HEAD");
    let (fork, same) = (format!("{}..HEAD", history.commits[2]), "HEAD..HEAD");
    // (range, variant, metric, what the answer says)
    let cases: [(&str, &str, &str, &str); 10] = [
        ("main", "cp_async", "duration", "two commits with two dots"),
        (
            "..main",
            "cp_async",
            "duration",
            "two commits with two dots",
        ),
        ("a...b", "cp_async", "duration", "two commits with two dots"),
        (
            "nowhere..HEAD",
            "cp_async",
            "duration",
            "`nowhere`: there is no such revision",
        ),
        (
            "--exec=x..HEAD",
            "cp_async",
            "duration",
            "unexpected argument",
        ),
        (
            &fork,
            "cp_async",
            "duration",
            "not among the ancestors of BAD",
        ),
        (same, "cp_async", "duration", "the same commit"),
        (&whole, "bsr_gemm", "duration", "selects 2 variants"),
        (
            &whole,
            "nothing",
            "duration",
            "no variant or suite is called `nothing`",
        ),
        (
            &whole,
            "cp_async",
            "durations",
            "next: choose one of dram_bw, duration",
        ),
    ];
    for (range, variant, metric, words) in cases {
        let arguments = ["bisect", range, variant, "--metric", metric];
        history.machine.run(&arguments).exits(2).says(words);
    }
    let folder = ["bisect", &whole, "cp_async", "--reports", "no/folder"];
    let said = "the folder that it would be in does not exist";
    history.machine.run(&folder).exits(2).says(said);
    assert_eq!(history.pairs(), 0);
}

#[test]
fn git_bisect_run_with_the_documented_script_finds_the_same_commit() {
    use Kind::{Broken, Program};
    let Some(history) = History::new(&[Program, Broken, Program, Program], 4) else {
        return;
    };
    let page = std::fs::read_to_string(common::repository().join("docs/bisect.md")).unwrap();
    let (_, script) = page
        .split_once("```sh needs: a GPU, as the file /tmp/step.sh\n")
        .unwrap();
    let (script, _) = script.split_once("```").unwrap();
    let project = &history.machine.project;
    let (bench, good) = (project.path("tmp/bench"), project.path("tmp/good"));
    // `compare` counts more than a check of these commits does.
    let recorded =
        "s#recorded: h200-worse#recorded: compare/worse#; s#recorded: h200#recorded: compare/same#";
    let compile = |to: &std::path::Path| {
        let to = to.display();
        format!("sed '{recorded}' kernels/b.cu | gcc -x c - -o {to}")
    };
    let script = script
        .replace("make bench", &compile(&bench))
        .replace("sparsek-gate ", &format!("{} ", env!("CARGO_BIN_EXE_sparsek-gate")))
        .replace("/tmp/good/bench", good.to_str().unwrap())
        // The recorded reports have two counted launches.
        .replace("compare ", "compare --counted-launches 2 ")
        .replace("./bench", bench.to_str().unwrap());
    project.write("tmp/step.sh", script);
    project.git(&["bisect", "start", "HEAD", &history.commits[0]]);
    let shell = format!(
        "git checkout --quiet {} && {} && git checkout --quiet - && git bisect run sh tmp/step.sh",
        history.commits[0],
        compile(&good)
    );
    let gate = history.machine.gate(&[]);
    let env = gate
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let path = format!(
        "{}:{}",
        project.path("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let run = std::process::Command::new("sh")
        .args(["-c", &shell])
        .current_dir(project.path(""))
        .envs(env)
        .env("PATH", path)
        .env("CUDA_NAME", "NVIDIA H100 80GB HBM3")
        .output()
        .unwrap();
    let culprit = format!("{} is the first bad commit", history.commits[4]);
    Ran::of(&run).exits(0).says(&culprit);
}

/// `cargo test --test all bisect:: -- --ignored` takes many minutes.
#[test]
#[ignore = "takes many minutes: a hundred histories of 64 commits"]
fn a_hundred_of_a_hundred_planted_culprits_are_found() {
    let Some(_) = Machine::new() else {
        return;
    };
    let mut found = 0;
    let hundred: Vec<usize> = (0..100).collect();
    let results = std::sync::Mutex::new(Vec::new());
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some(at) =
                    hundred.get(next.fetch_add(1, std::sync::atomic::Ordering::SeqCst))
                {
                    // Every place once, and the rest spread over the history.
                    let culprit = if *at < 64 { at + 1 } else { (at * 29) % 64 + 1 };
                    let history = History::new(&[Kind::Program; 64], culprit).unwrap();
                    let report = history.bisect(&[]).exits(0).json().0;
                    let pairs = report["pairs"].as_u64().unwrap();
                    let right = history.place(&report["first_bad"]) == Some(culprit);
                    results.lock().unwrap().push((culprit, right, pairs));
                }
            });
        }
    });
    for (culprit, right, pairs) in results.into_inner().unwrap() {
        assert!(right, "culprit {culprit} was not found");
        assert!(pairs <= 7, "{pairs} pairs for culprit {culprit}");
        found += 1;
    }
    assert_eq!(found, 100);
}
