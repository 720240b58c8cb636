//! A pull request that is judged by what it could not edit: every way to make a slower kernel, or
//! a later one, pass by changing what it is judged by.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use crate::common::git::git;
use crate::common::{
    self, ENDINGS, GPU, Project, RECORDED, Ran, Report, VARIANTS, copy, refresh, scale,
};
use serde_json::json;
use sparsek_gate::baseline::{Entry, Lock};
use sparsek_gate::files;
use sparsek_gate::hash::{sha256_file, sha256_hex};
use sparsek_gate::profile::Profile;

const VARIANT: &str = "cp_async";
/// The tolerance of the duration against a baseline.
const STORED: &str = "stored = \"4 %\"";

/// What marks a run of GitHub for a pull request.
const IN_CHANGE: [(&str, &str); 2] = [
    ("GITHUB_EVENT_NAME", "pull_request"),
    ("GITHUB_BASE_REF", "main"),
];
/// The target is what is checked out.
const MOVES: &str = "update-ref refs/remotes/origin/main HEAD";

/// A project that is its own repository, with `origin/main` at its only commit.
fn committed(project: &Project) {
    project.git("init --quiet");
    merge(project);
}

/// What is staged becomes the target.
fn is_target(project: &Project) {
    project.git("commit --quiet --message before");
    project.git(MOVES);
}

/// Everything but recordings, which come from elsewhere.
fn commit(project: &Project) {
    let but = format!(":(exclude,glob)**/{RECORDED}/**");
    project.git(&["add", "--all", "--force", ".", &but]);
    project.git("commit --quiet --allow-empty --message change");
}

/// What is there before any pull request: the shipped baselines, and recordings that pass.
static BASE: LazyLock<Project> = LazyLock::new(|| {
    let project = Project::shipped();
    // What is wrong on purpose has tests of its own.
    let config = project.read("config.toml");
    let end = config.find("[suite.faults]").unwrap();
    project.write("config.toml", &config[..end]);
    fs::remove_dir_all(project.path("kernels/faults")).unwrap();
    committed(&project);
    project
});

fn change_of(base: &Project) -> Project {
    let project = Project::empty();
    copy(&base.path(""), &project.path(""));
    project
}

/// A pull request that a test has yet to write.
fn pull_request() -> Project {
    change_of(&BASE)
}

/// Checked as GitHub runs it for a pull request.
fn checked(project: &Project, further: &[&str]) -> Ran {
    project.prove();
    judged(project, further)
}

/// The same, whatever proves its numbers.
fn judged(project: &Project, further: &[&str]) -> Ran {
    let mut command = project.gate_of("check --from recorded --format json");
    Ran::by(command.env("CI", "true").envs(IN_CHANGE).args(further))
}

/// Hashes that the findings that deny ask consent for.
fn asked(report: &Report) -> Vec<String> {
    let findings = report.findings("deny").into_iter();
    let hashes = findings.filter_map(|finding| Some(finding["accept"].as_str()?.to_owned()));
    hashes.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The token that a message prints.
fn token_in(text: &str) -> String {
    let (_, after) = text.split_once("check --accept ").unwrap();
    after.chars().take(64).collect()
}

/// Makes the recorded kernel slower by a tenth: what the attacker wants to get through.
fn slower(project: &Project) {
    project.edit_profile(VARIANT, |profile| scale(profile, "duration", 1.1));
}

/// Locks an edited profile on top of the ledger, as `baseline --lock` would.
fn relock(project: &Project, variant: &str, edit: impl FnOnce(&mut serde_json::Value)) {
    relock_with(project, variant, edit, |_| {});
}

fn relock_with(
    project: &Project,
    variant: &str,
    edit: impl FnOnce(&mut serde_json::Value),
    edit_lock: impl FnOnce(&mut Lock),
) {
    let file = |ending: &str| Project::baseline_path(variant, ending);
    let mut json = project.json(&file("profile.json"));
    edit(&mut json);
    refresh(&mut json);
    let profile = Profile::parse(json.to_string().as_bytes()).unwrap();
    project.relock(variant, &profile, edit_lock);
}

fn remove_variant(project: &Project) {
    let config = project.read("config.toml");
    let start = config.find("[suite.bsr_gemm.variant.cp_async]").unwrap();
    let end = config.find("[suite.bsr_gemm.variant.occupancy]").unwrap();
    project.configure(&config[start..end], "");
}

fn remove_baseline(project: &Project, variant: &str) {
    for ending in ENDINGS {
        fs::remove_file(project.path(&Project::baseline_path(variant, ending))).unwrap();
    }
}

/// Changes a source of a variant, and lets its recording say that it is of that code.
fn change_code(project: &Project, variant: &str) {
    let source = format!("kernels/bsr_gemm/{variant}.cu");
    let text = project.read(&source);
    project.write(&source, format!("// a change\n{text}"));
    let hash = sha256_file(&project.path(&source)).unwrap();
    for file in [files::PROFILE_FILE, files::STATIC_PROFILE_FILE] {
        let path = format!("{RECORDED}/bsr_gemm/{variant}/{file}");
        project.edit(&path, |profile| {
            profile["provenance"]["sources"][&source] = json!(hash);
        });
    }
}

fn add_waiver(project: &Project, expires: &str) {
    let waiver = format!(
        "\n[[waiver]]\nvariant = \"bsr_gemm/cp_async\"\nmetric = \"duration\"\nreason = \"needed\"\nwho = \"Eve\"\nexpires = {expires}\n"
    );
    project.append("config.toml", &waiver);
}

struct Attack {
    name: &'static str,
    edit: fn(&Project),
    /// A finding that must deny: its code, and a text in its message.
    finding: (&'static str, &'static str),
    /// What the run exits with once everything that asks for consent has it; `None` where nothing
    /// asks.
    consented: Option<i32>,
}

const ATTACKS: &[Attack] = &[
    Attack {
        name: "the locked numbers, their hash and the lock are edited to fit each other",
        edit: |project| {
            slower(project);
            project.forge(VARIANT, |profile| scale(profile, "duration", 1.1));
        },
        finding: ("tampered", "rewrites the ledger"),
        consented: None,
    },
    Attack {
        name: "the slower kernel is locked on top",
        edit: |project| {
            slower(project);
            relock(project, VARIANT, |profile| scale(profile, "duration", 1.1));
        },
        finding: (
            "relocked",
            "this change re-locks it on nvidia-h200: `faster epilogue` by Ada: duration 250.84 us → 275.92 us",
        ),
        consented: Some(0),
    },
    Attack {
        name: "the ledger is written anew, with a chain of hashes that fits",
        edit: |project| {
            let path = Project::baseline_path(VARIANT, "lock.toml");
            let mut lock = Lock::parse(&project.read(&path)).unwrap();
            let mut previous = Entry::GENESIS.to_owned();
            for entry in &mut lock.ledger {
                entry.who = "somebody else".to_owned();
                entry.previous = previous;
                previous = entry.hash();
            }
            lock.head = previous;
            assert!(lock.contradictions().is_empty());
            project.write(&path, lock.to_toml());
        },
        finding: ("tampered", "entry 1 (2026-11-21T04:32:25Z) was changed"),
        consented: None,
    },
    Attack {
        name: "the immutable kernel is edited, and its hash in the lock",
        edit: |project| {
            change_code(project, "baseline");
            let source = "kernels/bsr_gemm/baseline.cu";
            let hash = sha256_file(&project.path(source)).unwrap();
            relock_with(
                project,
                "baseline",
                |profile| profile["provenance"]["sources"][source] = json!(hash),
                |lock| {
                    lock.sources.insert(source.to_owned(), hash.clone());
                },
            );
        },
        finding: ("immutable-changed", "kernels/bsr_gemm/baseline.cu"),
        consented: Some(0),
    },
    Attack {
        name: "variant and baseline are removed",
        edit: |project| {
            remove_variant(project);
            remove_baseline(project, VARIANT);
        },
        finding: ("variant-gone", "it is locked and was not checked"),
        consented: Some(0),
    },
    Attack {
        name: "the baselines are looked for elsewhere",
        edit: |project| {
            slower(project);
            project.forge(VARIANT, |profile| scale(profile, "duration", 1.1));
            fs::rename(project.path("baselines"), project.path("others")).unwrap();
            project.configure("[paths]\n", "[paths]\nbaselines = \"others\"\n");
        },
        finding: ("policy-changed", "`paths.baselines` "),
        // A rewritten ledger stays rewritten.
        consented: Some(4),
    },
    Attack {
        name: "a lock is a link",
        edit: |project| {
            let path = project.path(&Project::baseline_path(VARIANT, "lock.toml"));
            let moved = project.path("lock.toml");
            fs::rename(&path, &moved).unwrap();
            std::os::unix::fs::symlink(moved, path).unwrap();
        },
        finding: ("tampered", "is a link"),
        consented: None,
    },
    Attack {
        name: "the baselines are put where an interrupted store leaves them",
        edit: |project| {
            fs::rename(project.path("baselines"), project.path(".baselines.next")).unwrap();
            commit(project);
        },
        finding: ("tampered", "a name that only an interrupted store leaves"),
        consented: None,
    },
    Attack {
        name: "the recipe becomes a command that names no files",
        edit: |project| {
            let source = "source = \"kernels/bsr_gemm/cp_async.cu\"\n";
            project.configure(source, "build = [\"make\"]\nrun = [\"./slow\"]\n");
            project.drop_config_lines("dynamic_shared_bytes = 75776");
            project.edit_profile(VARIANT, |it| it["provenance"]["sources"] = json!({}));
        },
        finding: (
            "profile-stale",
            "the build command in the configuration changed",
        ),
        consented: None,
    },
    Attack {
        name: "the recording is of a trial",
        edit: |project| {
            project.edit_profile(VARIANT, |profile| {
                profile["provenance"]["overrides"] = json!(["STAGES=1"]);
            });
        },
        finding: ("profile-stale", "--define STAGES=1"),
        consented: None,
    },
    Attack {
        name: "the recording is said to be imported",
        edit: |project| {
            project.edit_profile(VARIANT, |profile| {
                profile["provenance"]["origin"] = json!("imported");
                profile["provenance"]["sources"] = json!({});
            });
        },
        finding: ("profile-imported", "the profile was imported"),
        consented: None,
    },
];

/// Rules that a change weakens, one a line: what is in the configuration | what stands there then | what the
/// finding says. `\n` is the end of a line. The recordings pass with consent.
const WEAKENED: &str = r#"
stored = "4 %", | stored = "30 %", | loosens `duration` from 4 % to 30 %
against = "0.5 %" | against = "5 %" | loosens `duration` side by side from 0.5 % to 5 %
[metric.bank_conflicts]\n | [metric.bank_conflicts]\nunless_faster = true\n | sets `metric.bank_conflicts.unless_faster` to true
[static.occupancy]\n | [static.occupancy]\nunless_as_fast = true\n | `static.occupancy.unless_as_fast`
expect = ["bsr_gemm_cp_async"]\n | | no longer sets `suite.bsr_gemm.variant.cp_async.expect`
processes = 4  | processes = 2  | changes `profile.processes` from 4 to 2
launches = 20  | launches = 2  | changes `profile.launches` from 20 to 2
[profile]\n | [profile]\naccept_tiers = ["kernel-times"]\n | sets `profile.accept_tiers`
driver = ">=580"\n | | no longer sets `toolchain.pins.driver`
expect = ["bsr_gemm_occupancy"]\n | expect = ["bsr_gemm_occupancy"]\nenv = { LD_PRELOAD = "./faster.so" }\n | sets `suite.bsr_gemm.variant.occupancy.env.LD_PRELOAD`
[toolchain]\n | [[waiver]]\nvariant = "bsr_gemm/cp_async"\nmetric = "duration"\nreason = "needed"\nwho = "Eve"\nexpires = 2999-12-31\n\n[toolchain]\n | adds a waiver of `duration` until 2999-12-31 up to twice its tolerance by Eve: needed
"#;

/// As [`WEAKENED`]: with these, what was recorded cannot be compared even with consent.
const WEAKENED_BEYOND: &str = r#"
counter = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed" | counter = "sm__cycles_active.max" | changes `metric.sm_active.counter` from "sm__cycles_active.avg.pct_of_peak_sustained_elapsed" to "sm__cycles_active.max"
counter = "gpu__time_duration.sum"\n | counter = "gpu__time_duration.sum"\nlevel = "record"\n | sets `metric.duration.level` to "record"
[metric.tensor_core] | [metric.tensor_cores] | no longer judges `tensor_core`
expect = ["bsr_gemm_cp_async"]\n | expect = ["bsr_gemm_cp_async"]\nexperimental = true\n | sets `suite.bsr_gemm.variant.cp_async.experimental` to true
immutable = true\n | | no longer sets `suite.bsr_gemm.variant.baseline.immutable`
kernels = "regex:^bsr_gemm_" | kernels = "regex:bsr_gemm_" | `suite.bsr_gemm.kernels`
[toolchain]\n | [toolchain]\nncu = "./tools/ncu"\n | sets `toolchain.ncu` to "./tools/ncu"
work = { flop = 68719476736, | work = { flop = 1, | changes `suite.bsr_gemm.work.flop` from 68719476736 to 1
"--m", "8192" | "--m", "256" | `suite.bsr_gemm.args`
"#;

/// Makes the edits of such a table, and returns what the findings say.
fn weaken(project: &Project, table: &'static str) -> Vec<&'static str> {
    let mut config = project.read("config.toml");
    let mut says = Vec::new();
    for row in table.trim().lines() {
        let [from, to, finding] = row.split(" |").collect::<Vec<_>>().try_into().unwrap();
        let text = |cell: &str| cell.trim_start().replace("\\n", "\n");
        assert!(config.contains(&text(from)), "{row}");
        config = config.replacen(&text(from), &text(to), 1);
        says.push(finding.trim_start());
    }
    project.write("config.toml", config);
    says
}

#[test]
fn whatever_a_pull_request_changes_of_its_own_rules_is_caught() {
    LazyLock::force(&BASE);
    // Two at a time, as the machines that run this have processors.
    let (some, others) = ATTACKS.split_at(ATTACKS.len() / 2);
    std::thread::scope(|scope| {
        scope.spawn(|| some.iter().for_each(try_out));
        others.iter().for_each(try_out);
    });
}

#[test]
fn every_weakened_rule_has_a_finding_of_its_own() {
    for (table, with_consent) in [(WEAKENED, 0), (WEAKENED_BEYOND, 4)] {
        let project = pull_request();
        let says = weaken(&project, table);
        let report = checked(&project, &[]).exits(4).json();
        let mut denied = report.findings("deny");
        denied.retain(|finding| finding["code"] == "policy-changed");
        let messages = denied.iter().map(|finding| finding["message"].as_str());
        let messages: Vec<&str> = messages.map(Option::unwrap).collect();
        for text in &says {
            let found = messages.iter().any(|message| message.contains(text));
            assert!(found, "{text}: {messages:#?}");
        }
        assert_eq!(messages.len(), says.len(), "{messages:#?}");
        let hashes = asked(&report);
        assert_eq!(hashes.len(), 1);
        checked(&project, &["--accept", &hashes[0]]).exits(with_consent);
    }
}

fn try_out(attack: &Attack) {
    let name = attack.name;
    let project = pull_request();
    (attack.edit)(&project);
    let ran = checked(&project, &[]);
    assert_ne!(ran.code, 0, "{name}: {}", ran.err);
    let report = ran.json();
    let (code, text) = attack.finding;
    let has = |report: &Report, severity| {
        let findings = report.findings(severity);
        findings.iter().any(|finding| {
            finding["code"] == code && finding["message"].as_str().unwrap().contains(text)
        })
    };
    assert!(
        has(&report, "deny"),
        "{name}: nothing denies with {code} and {text:?}: {:#}",
        report.0["findings"]
    );
    assert_eq!(report.0["authority"]["kind"], "revision", "{name}");
    // What the change did to a baseline is accepted, and not done again.
    let denied = report.findings("deny");
    let relocked = denied.iter().filter(|one| one["code"] == "relocked");
    let relocked: Vec<&serde_json::Value> = relocked.map(|one| &one["variant"]).collect();
    let of_these = |one: &&&serde_json::Value| relocked.contains(&&one["variant"]);
    for finding in denied.iter().filter(of_these) {
        let next = finding["next"].as_str().unwrap();
        let again = next.contains("baseline --lock") || next.contains("remove the baseline");
        assert!(!again, "{name}: {next}");
    }
    let hashes = asked(&report);
    let Some(expected) = attack.consented else {
        assert!(hashes.is_empty(), "{name}: {hashes:?}");
        return;
    };
    assert!(!hashes.is_empty(), "{name}");
    let ran = checked(&project, &["--accept", &hashes.join(",")]).exits(expected);
    if code != "variant-gone" && code != "immutable-changed" {
        assert!(has(&ran.json(), "warn"), "{name}: consent is not reported");
    }
    let unused = ran.json().warns("accept-unused");
    assert!(!unused, "{name}");
}

#[test]
fn a_pull_request_of_code_alone_passes() {
    let project = pull_request();
    change_code(&project, VARIANT);
    commit(&project);
    let report = checked(&project, &[]).exits(0).json();
    assert_eq!(report.warned(), [""; 0]);
    let head = project.git("rev-parse HEAD~1");
    let tip = "tip of refs/remotes/origin/main";
    let authority = json!({"kind": "revision", "commit": head, "found_by": tip});
    assert_eq!(report.0["authority"], authority);
    // And slower code is slower.
    slower(&project);
    checked(&project, &[]).exits(1);
}

#[test]
fn rules_that_only_get_stricter_warn() {
    let project = pull_request();
    project.configure(STORED, "stored = \"3 %\"");
    let report = checked(&project, &[]).exits(0).json();
    let words = "this change tightens `duration` from 4 % to 3 %";
    assert_eq!(report.message("policy-changed"), words);
    let shown = &report.comparison(VARIANT, "duration")["tolerance"];
    assert_eq!(*shown, json!({"relative_percent": 4.0}));
}

#[test]
fn a_waiver_cannot_be_extended_by_how_its_day_is_spelled() {
    let project = pull_request();
    let config = project.read("config.toml");
    add_waiver(&project, "2099-12-31");
    merge(&project);
    for (expires, code) in [
        ("2099-12-30", 0),
        ("2999-12-31", 4),
        ("\"+002999-12-31\"", 2),
        ("\"29991231\"", 2),
    ] {
        project.write("config.toml", &config);
        add_waiver(&project, expires);
        checked(&project, &[]).exits(code);
    }
}

#[test]
fn what_is_asked_for_by_name_decides_whose_rules_count() {
    let project = pull_request();
    slower(&project);
    project.configure(STORED, "stored = \"30 %\"");
    // The pull request's own branch is called as the target is.
    commit(&project);
    checked(&project, &["--baseline-ref", "none"]).exits(0);
    checked(&project, &["--baseline-ref", "worktree"]).exits(0);
    checked(&project, &["--baseline-ref", "HEAD"])
        .ends(4, "next: write --baseline-ref refs/remotes/origin/main");
    checked(&project, &["--baseline-ref", "HEAD~1"]).exits(4);
    checked(&project, &["--baseline-ref", "nowhere"]).ends(2, "there is no such revision");
    checked(&project, &["--baseline-ref", "None"]).ends(2, "next: write `none`, in small letters");
    let of_remote = checked(&project, &["--baseline-ref", "origin/nowhere"]);
    of_remote.ends(3, "next: the clone has no remote: git remote add origin");
    checked(&project, &["--accept", "abc"]).ends(2, "64 hexadecimal digits");
    // Outside a pull request nothing has changed.
    let report = project.check(&[], 0);
    assert_eq!(report.0["authority"], json!({"kind": "working-tree"}));
    let hash = "0".repeat(64);
    let report = checked(&project, &["--accept", &hash]).exits(4).json();
    report.tells_all("accept-unused", &[&hash]);
    let ran = project.run("check --from recorded --baseline-ref HEAD~1");
    ran.says("; baselines, tolerances and waivers of ")
        .says("(--baseline-ref HEAD~1)");
}

#[test]
fn a_base_that_is_not_here_or_cannot_be_read_ends_the_run() {
    let project = pull_request();
    project.git("update-ref -d refs/remotes/origin/main");
    checked(&project, &[])
        .ends(3, "there is no refs/remotes/origin/main")
        .says("'+refs/heads/*:refs/remotes/origin/*'");
    // A history that does not reach back.
    let orphan = project.git(&["commit-tree", "HEAD^{tree}", "-m", "cut off"]);
    project.git(&["update-ref", "refs/remotes/origin/main", &orphan]);
    checked(&project, &[])
        .ends(3, "have no common history")
        .says("or begin the change at its target: git switch --create NEW ");

    let project = pull_request();
    let config = project.read("config.toml");
    project.write("config.toml", format!("of_another_version = 1\n{config}"));
    committed(&project);
    project.write("config.toml", &config);
    checked(&project, &[])
        .ends(4, "cannot be read by this version")
        .says("of_another_version");
    // The hash of the file is no consent.
    let hash = sha256_hex(config.as_bytes());
    let refused = checked(&project, &["--accept", &hash]).exits(4);
    let token = token_in(&refused.err);
    assert_ne!(token, hash);
    checked(&project, &["--accept", &token]).exits(0);
}

#[test]
fn a_project_that_the_pull_request_begins_has_no_rules_yet() {
    let project = pull_request();
    project.git("rm -r --quiet --cached config.toml baselines");
    is_target(&project);
    commit(&project);
    let starts = "the gate starts when this is merged";
    let report = checked(&project, &[]).exits(0).json();
    let message = report.message("policy-changed");
    assert!(message.starts_with("there is no config.toml at ") && message.ends_with(starts));
    let warned = report.warned();
    let locked = warned.iter().filter(|code| *code == "relocked");
    assert_eq!(locked.count(), VARIANTS.len());
    assert_eq!(report.verdict(VARIANT, "duration"), "pass");
    checked(&project, &["--report", "text:out.txt"]).exits(0);
    let text = project.read("out.txt");
    let first = text.lines().next().unwrap();
    let ends = format!("{starts}, exit code 0");
    assert!(first.ends_with(&ends), "{first}");
    // What it brings is judged by its own locks, and a kernel without one does not pass.
    slower(&project);
    let report = checked(&project, &[]).exits(1).json();
    assert_eq!(report.denied(), ["regressed"]);
    remove_baseline(&project, VARIANT);
    let report = checked(&project, &[]).exits(4).json();
    assert_eq!(report.denied(), ["new-baseline"]);
}

#[test]
fn a_base_with_baselines_or_with_something_else_on_the_way_to_the_configuration_has_rules() {
    let project = pull_request();
    project.git("rm -r --quiet --cached config.toml");
    is_target(&project);
    commit(&project);
    checked(&project, &[]).ends(4, "which has baselines: every rule comes from this change");

    let project = in_a_folder();
    let head = project.git("rev-parse HEAD");
    for mode in ["160000", "120000", "100644"] {
        let object = match mode {
            "160000" => head.trim().to_owned(),
            _ => project.git("rev-parse HEAD:gate/config.toml"),
        };
        project.git("rm -r --quiet --cached gate");
        let entry = format!("{mode},{object},gate");
        project.git(&["update-index", "--add", "--cacheinfo", &entry]);
        is_target(&project);
        project.git("rm --quiet --cached gate");
        commit(&project);
        checked_in_folder(&project).ends(4, "`gate` is no folder at ");
    }
}

#[test]
fn a_configuration_that_the_change_moves_or_edits_elsewhere_begins_no_gate() {
    let beside = |moves: bool| {
        let project = pull_request();
        copy(&BASE.path(""), &project.path("gate"));
        fs::remove_dir_all(project.path("gate/.git")).unwrap();
        if moves {
            fs::remove_file(project.path("config.toml")).unwrap();
        }
        commit(&project);
        project
    };
    let elsewhere = "which has `config.toml`, and this change moves, removes or edits that";
    let moved = beside(true);
    let report = in_gate(&moved, &[]).ends(4, elsewhere).json();
    let denied = report.denied();
    let locked = denied.iter().filter(|code| *code == "relocked");
    assert_eq!(locked.count(), VARIANTS.len());
    // Consent is for these rules and each of these locks.
    let tokens = asked(&report);
    let accept = |tokens: &[String]| in_gate(&moved, &["--accept", &tokens.join(",")]);
    accept(&tokens).exits(0);
    accept(&tokens[1..]).exits(4);
    // The old one is only loosened.
    let second = beside(false);
    in_gate(&second, &[]).ends(0, "the gate starts when this is merged");
    second.configure(STORED, "stored = \"30 %\"");
    in_gate(&second, &[]).ends(4, elsewhere);
    // Without a configuration the locks show that there was a gate.
    let bare = pull_request();
    let folder = bare.path("");
    bare.git("rm --quiet --cached config.toml");
    is_target(&bare);
    fs::create_dir(bare.path("gate")).unwrap();
    for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
        if entry.file_name() != "gate" && entry.file_name() != ".git" {
            fs::rename(entry.path(), bare.path("gate").join(entry.file_name())).unwrap();
        }
    }
    commit(&bare);
    in_gate(&bare, &[]).ends(4, ".lock.toml`, and this change moves");
}

/// What locks of a change count without anybody's consent.
#[test]
fn a_lock_counts_at_once_where_the_base_has_none_that_would_be_compared_with() {
    let files = ENDINGS.map(|ending| Project::baseline_path(VARIANT, ending));
    // The base has the variant on another GPU model, or on another tier of the same one.
    let elsewhere = |gpu: &str, tier: &str, folder: &str| {
        let project = pull_request();
        let own = files.clone().map(|path| project.read(&path));
        relock(&project, VARIANT, |profile| {
            profile["identity"]["gpu"] = gpu.into();
            profile["identity"]["tier"] = tier.into();
        });
        let into = project.path(&format!("baselines/{folder}/bsr_gemm"));
        fs::create_dir_all(&into).unwrap();
        for path in files.iter().map(|path| project.path(path)) {
            fs::rename(&path, into.join(path.file_name().unwrap())).unwrap();
        }
        merge(&project);
        (project, own)
    };
    let h100 = "nvidia-h100-80gb-hbm3";
    let (project, own) = elsewhere("NVIDIA H100 80GB HBM3", "counters", h100);
    checked(&project, &[]).ends(4, &format!("has a baseline only for {h100}"));
    for (path, text) in files.iter().zip(&own) {
        project.write(path, text);
    }
    let report = checked(&project, &[]).exits(0).json();
    report.tells_all("relocked", &["this change locks it on nvidia-h200: "]);
    // That of another tier would be got rid of by a program that cannot be profiled.
    let (project, own) = elsewhere("NVIDIA H200", "kernel-times", "nvidia-h200+kernel-times");
    for (path, text) in files.iter().zip(&own) {
        project.write(path, text);
    }
    checked(&project, &[]).ends(4, "covers locking `baselines/nvidia-h200/bsr_gemm/");
}

/// A pull request in a repository whose code owners accept.
fn owned(owners: &str) -> Project {
    let project = pull_request();
    project.append("config.toml", "\n[trust]\naccept = \"code-owners\"\n");
    project.write(".github/CODEOWNERS", owners);
    merge(&project);
    project
}

const OWNERS: &str = "/config.toml @org/gate\n/baselines/ @org/gate\n/.github/ @org/gate\n";

#[test]
fn what_code_owners_must_review_is_accepted_where_the_base_says_so() {
    let project = owned(OWNERS);
    slower(&project);
    relock(&project, VARIANT, |profile| scale(profile, "duration", 1.1));
    let report = checked(&project, &["--report", "text:out.txt"]).exits(0);
    let report = report.json();
    let next = "nothing here: `.github/CODEOWNERS` names who must review it, if the target branch requires that, \
        which cannot be seen from here";
    assert_eq!(report.fields("relocked", "next"), [next]);
    let words = "accepts: bsr_gemm/cp_async: this change re-locks it on nvidia-h200: `faster epilogue` by Ada: \
        duration ";
    common::contains(&project.read("out.txt"), &[words]);
    // A looser rule, and a waiver.
    let project = owned(OWNERS);
    add_waiver(&project, "2999-12-31");
    checked(&project, &[]).exits(0);
    project.replace("config.toml", STORED, "stored = \"30 %\"");
    checked(&project, &[]).exits(0);
    // Not on a service that has no code owners.
    let check = "check --from recorded --baseline-ref refs/remotes/origin/main";
    let ran = Ran::by(project.gate_of(check).env("CI", "true"));
    ran.ends(4, "neither GitHub nor GitLab runs this");
}

#[test]
fn a_waiver_without_a_last_day_ends_with_its_merge() {
    let project = owned(OWNERS);
    slower(&project);
    checked(&project, &[]).exits(1);
    add_waiver(&project, "2999-12-31");
    project.configure("expires = 2999-12-31\n", "up_to = \"15 %\"\n");
    let report = checked(&project, &[]).exits(0).json();
    report.tells_all("regressed", &["waived until the merge by Eve: needed"]);
    let words = "adds a waiver of `duration` until the merge up to 15 % by Eve: needed";
    report.tells_all("policy-changed", &[words]);
    merge(&project);
    let other = "\n[metric.other]\ncounter = \"sm__cycles_elapsed.max\"\nlevel = \"record\"\n";
    for other in ["", other] {
        project.append("config.toml", other);
        let report = checked(&project, &[]).exits(1).json();
        assert!(report.denies("regressed"));
        let words = "the waiver of `duration` by Eve ended when it was merged";
        report.tells_all("waiver-unused", &[words]);
    }
    // Another one needs another consent.
    project.replace("config.toml", "reason = \"needed\"", "reason = \"again\"");
    checked(&project, &[]).exits(0);
}

#[test]
fn a_kernel_slower_than_its_base_passes_within_a_lock_that_was_accepted() {
    let project = owned(OWNERS);
    project.add_base(VARIANT, |base| base["provenance"]["git"] = "0ba5e".into());
    slower(&project);
    // No capture of the base is there, which fails by itself.
    let report = || checked(&project, &[]).json();
    assert!(report().denies("regressed"));
    relock(&project, VARIANT, |profile| scale(profile, "duration", 1.1));
    let allowed = report();
    assert!(!allowed.denies("regressed") && !allowed.denies("relocked"));
    assert_eq!(allowed.verdict(VARIANT, "duration"), "regressed");
    allowed.tells_all("regressed", &["; the accepted baseline allows it"]);
    // Not beyond it.
    project.edit_profile(VARIANT, |profile| scale(profile, "duration", 1.1));
    assert!(report().denies("regressed"));
}

#[test]
fn an_accepted_lock_of_another_gpu_model_allows_nothing() {
    let project = owned(OWNERS);
    let files = ENDINGS.map(|ending| Project::baseline_path(VARIANT, ending));
    let h100 = |path: String| path.replace(GPU, "nvidia-h100-80gb-hbm3");
    let elsewhere = files.clone().map(h100);
    let relock_elsewhere = |who: &str| {
        let own = files.clone().map(|path| project.read(&path));
        for (here, there) in files.iter().zip(&elsewhere) {
            if project.path(there).exists() {
                project.write(here, project.read(there));
            }
        }
        relock(&project, VARIANT, |profile| {
            profile["identity"]["gpu"] = "NVIDIA H100 80GB HBM3".into();
            profile["provenance"]["driver"] = who.into();
        });
        for ((here, there), text) in files.iter().zip(&elsewhere).zip(own) {
            project.write(there, project.read(here));
            project.write(here, text);
        }
    };
    relock_elsewhere("1.0");
    project.add_base(VARIANT, |base| base["provenance"]["git"] = "0ba5e".into());
    merge(&project);
    project.edit_profile(VARIANT, |profile| scale(profile, "duration", 1.02));
    relock_elsewhere("2.0");
    let report = checked(&project, &[]).json();
    let message = report.message("relocked");
    assert!(message.contains("on nvidia-h100-80gb-hbm3") && message.ends_with("accepted"));
    assert!(report.denies("regressed"), "{:?}", report.denied());
}

#[test]
fn code_owners_accept_nothing_that_they_need_not_review_or_that_acts_before() {
    let relocked = |project: &Project| {
        slower(project);
        relock(project, VARIANT, |profile| scale(profile, "duration", 1.1));
    };
    let cases = r"
/config.toml @a\n/baselines/ @a | `.github/CODEOWNERS` names no owner of `.github/CODEOWNERS`
/baselines/ @a\n/.github/ @a | names no owner of `config.toml`
* @a\n/baselines/** | names no owner of `baselines/nvidia-h200/bsr_gemm/cp_async.
* @a\n*.norm.txt | cp_async.norm.txt`
* @a\n[Section] | is not understood: line 2
# | names no owner of";
    for [owners, why] in &common::rows(cases) {
        let project = owned(owners);
        relocked(&project);
        checked(&project, &[]).ends(4, why);
    }
    // The change's own file and key do not count.
    let project = pull_request();
    project.write(".github/CODEOWNERS", OWNERS);
    relocked(&project);
    checked(&project, &[]).ends(4, "check --accept");
    let project = owned("/docs/ @a\n");
    project.write(".github/CODEOWNERS", OWNERS);
    relocked(&project);
    checked(&project, &[]).ends(4, "names no owner of");
    // A link in its place.
    let project = owned(OWNERS);
    fs::remove_file(project.path(".github/CODEOWNERS")).unwrap();
    project.write("owners", OWNERS);
    std::os::unix::fs::symlink("../owners", project.path(".github/CODEOWNERS")).unwrap();
    merge(&project);
    relocked(&project);
    checked(&project, &[]).ends(4, "is no file");
    // What programs get takes effect before anybody reviews it; so does a ledger that was rewritten.
    let project = owned(OWNERS);
    let config = project.read("config.toml");
    project.write("config.toml", format!("env_pass = [\"SECRET\"]\n{config}"));
    checked(&project, &[]).ends(4, "env_pass");
    let project = owned(OWNERS);
    project.append(&Project::baseline_path(VARIANT, "norm.txt"), "\n");
    checked(&project, &[]).exits(4);
}

/// Checked in the pipeline of this pull request.
fn checked_in(project: &Project, number: &str, accept: &str) -> Ran {
    checked(project, &["--pull-request", number, "--accept", accept])
}

/// What is in the change becomes the base.
fn merge(project: &Project) {
    commit(project);
    project.git(MOVES);
}

#[test]
fn consent_covers_one_action_from_one_content_to_another_in_one_pull_request() {
    let project = pull_request();
    let lock = Project::baseline_path(VARIANT, "lock.toml");
    let relock_slower = || relock(&project, VARIANT, |profile| scale(profile, "duration", 1.1));
    slower(&project);
    relock_slower();
    let report = checked_in(&project, "7", "").exits(4).json();
    let token = asked(&report).remove(0);
    let finding = &report.findings("deny")[0];
    let next = finding["next"].as_str().unwrap();
    let path = format!("covers re-locking `baselines/{GPU}/bsr_gemm/{VARIANT}`, from ");
    common::contains(next, &[&path, ", in pull request 7)"]);
    checked_in(&project, "7", &token).exits(0);
    // Another pull request, or one that nobody names.
    for ran in [
        checked_in(&project, "8", &token),
        checked(&project, &["--accept", &token]),
    ] {
        let report = ran.exits(4).json();
        assert_eq!(report.denied(), ["relocked", "regressed"]);
        let words = ["nothing in this change has this token"];
        report.tells_all("accept-unused", &words);
    }
    // The hash of the lock is no token.
    let hash = sha256_file(&project.path(&lock)).unwrap();
    let words = format!("{hash} was accepted, and nothing in this change has this token");
    checked_in(&project, "7", &hash).ends(4, &words);

    // Once it is locked, the same token does not remove it, or lock anything on top.
    let files = ENDINGS.map(|ending| Project::baseline_path(VARIANT, ending));
    let files = files.map(|path| (path.clone(), project.read(&path)));
    merge(&project);
    slower(&project);
    remove_baseline(&project, VARIANT);
    let report = checked_in(&project, "7", &token).exits(4).json();
    assert!(report.denies("relocked"));
    let removal = asked(&report).remove(0);
    checked_in(&project, "7", &removal).ends(4, "new-baseline");
    for (path, text) in &files {
        project.write(path, text);
    }
    relock_slower();
    let report = checked_in(&project, "7", &format!("{token},{removal}"));
    let report = report.exits(4).json();
    assert_eq!(report.denied(), ["relocked", "regressed"]);
    // Locked once more on top it is another content.
    let token = asked(&report).remove(0);
    checked_in(&project, "7", &token).exits(0);
    relock_slower();
    checked_in(&project, "7", &token).exits(4);
}

#[test]
fn the_pull_request_that_consent_is_for_is_the_one_of_the_run() {
    let project = pull_request();
    add_waiver(&project, "2999-12-31");
    let run = |variables: &[(&str, &str)], further: &[&str]| {
        let mut command = project.gate_of("check --from recorded --format json");
        command.envs(IN_CHANGE).envs(variables.iter().copied());
        Ran::by(command.args(further))
    };
    let seven = [("GITHUB_REF", "refs/pull/7/merge")];
    let token = asked(&run(&seven, &[]).exits(4).json()).remove(0);
    run(&seven, &["--accept", &token]).exits(0);
    let eight = [("GITHUB_REF", "refs/pull/8/merge")];
    run(&eight, &["--accept", &token]).exits(4);
    project.write("event.json", r#"{"pull_request": {"number": 7}}"#);
    let target = [
        ("GITHUB_REF", "refs/heads/main"),
        ("GITHUB_EVENT_PATH", "event.json"),
    ];
    run(&target, &["--accept", &token]).exits(0);
    run(&[], &["--pull-request", "7", "--accept", &token]).exits(0);
    // Whoever starts the run cannot name another one.
    run(&seven, &["--pull-request", "8", "--accept", &token])
        .ends(2, "this run belongs to pull request 7 (GITHUB_REF)");
    for slip in ["0", "x", "-1"] {
        run(&[], &[&format!("--pull-request={slip}")]).exits(2);
    }
}

/// The first word that a shell prints in a folder.
fn printed_first(folder: &Path, script: &str) -> String {
    let mut shell = Command::new("bash");
    shell.args(["-c", script]).env("LC_ALL", "C");
    let printed = Ran::by(shell.current_dir(folder)).exits(0).out;
    printed.split(' ').next().unwrap().to_owned()
}

#[test]
fn a_token_can_be_made_again_with_plain_tools() {
    let project = pull_request();
    let folder = project.path(&format!("baselines/{GPU}/bsr_gemm"));
    let content = || printed_first(&folder, &format!("sha256sum {VARIANT}.* | sha256sum"));
    let before = content();
    relock(&project, VARIANT, |profile| scale(profile, "duration", 1.1));
    let path = format!("baselines/{GPU}/bsr_gemm/{VARIANT}");
    let text = format!(
        "sparsek-gate consent 1\naction: relock\npath: \"{path}\"\nbefore: {before}\nafter: {}\npull request: 7\n",
        content()
    );
    let report = checked_in(&project, "7", "").exits(4).json();
    assert_eq!(asked(&report), [sha256_hex(text.as_bytes())]);
}

#[test]
fn attributes_that_hide_rules_from_review_are_reported() {
    let text = "baselines/** -text\n";
    let project = pull_request();
    for (line, by) in [
        ("baselines/** linguist-generated", "`linguist-generated`"),
        ("config.toml -diff", "`-diff`"),
        (".gitattributes gitlab-generated", "`gitlab-generated`"),
    ] {
        project.write(".gitattributes", format!("{text}{line}\n"));
        let report = checked(&project, &[]).exits(4).json();
        assert_eq!(report.denied(), ["hidden-from-review"], "{line}");
        report.tells_all("hidden-from-review", &["this change hides", by]);
    }
    let hidden = format!("{text}baselines/** linguist-generated\n");
    project.write(".gitattributes", &hidden);
    let tokens = asked(&checked(&project, &[]).exits(4).json()).join(",");
    checked(&project, &["--accept", &tokens]).exits(0);
    // Another content, another consent.
    project.write(".gitattributes", format!("{hidden}config.toml -diff\n"));
    checked(&project, &["--accept", &tokens]).exits(4);
    // What the base has already only warns.
    project.write(".gitattributes", &hidden);
    merge(&project);
    let report = checked(&project, &[]).exits(0).json();
    report.tells_all("hidden-from-review", &["base and change hide"]);
    // In a folder of its own, and from the top of the repository around the project.
    let project = pull_request();
    project.write("baselines/nvidia-h200/.gitattributes", "* -diff\n");
    checked(&project, &[]).ends(4, "hidden-from-review");
    let project = in_a_folder();
    project.write(".gitattributes", "gate/baselines/** linguist-generated\n");
    checked_in_folder(&project).ends(4, "hidden-from-review");
    // How files are stored, and what hides nothing of the rules.
    let project = pull_request();
    let harmless = "* export-ignore\n*.cu linguist-generated\nconfig.toml text eol=lf -linguist-generated diff\n";
    project.write(".gitattributes", format!("{text}{harmless}"));
    let report = checked(&project, &[]).exits(0).json();
    assert!(!report.warns("hidden-from-review"));
}

/// The base project in the folder `gate` of a repository.
fn in_a_folder() -> Project {
    let project = Project::empty();
    copy(&BASE.path(""), &project.path("gate"));
    fs::remove_dir_all(project.path("gate/.git")).unwrap();
    committed(&project);
    project
}

fn checked_in_folder(project: &Project) -> Ran {
    in_gate(project, &[])
}

fn in_gate(project: &Project, further: &[&str]) -> Ran {
    let check = "check -C gate/config.toml --format json --from gate/recorded";
    Ran::by(project.gate_of(check).envs(IN_CHANGE).args(further))
}

#[test]
fn a_project_in_a_folder_cannot_be_swapped_for_another() {
    let project = in_a_folder();
    checked_in_folder(&project).exits(0);
    project.replace("gate/config.toml", STORED, "stored = \"30 %\"");
    checked_in_folder(&project).ends(4, "loosens `duration`");

    // A link to another project of the repository, with rules of its own.
    let gate = project.path("gate");
    fs::rename(&gate, project.path("other")).unwrap();
    std::os::unix::fs::symlink("other", &gate).unwrap();
    checked_in_folder(&project).ends(4, "gate` is a link in a checkout");
    fs::remove_file(&gate).unwrap();
    fs::rename(project.path("other"), &gate).unwrap();

    // Files that make of the folder a repository of its own, in which the loose rules are those of
    // the base, and with a program to run.
    let marker = project.path("ran");
    git(&gate, "init --quiet --bare .");
    for (key, value) in [
        ("core.bare", "false"),
        ("core.worktree", ".."),
        ("core.fsmonitor", &format!("touch {}", marker.display())),
    ] {
        git(&gate, &["config", "--file", "config", key, value]);
    }
    let own = |arguments: &[&str]| {
        let whole = [&["--git-dir=.", "-c", "core.fsmonitor=false"], arguments].concat();
        git(&gate, &whole)
    };
    own(&[
        "add", "--force", "config.toml", "baselines", "kernels", RECORDED,
    ]);
    own(&["commit", "--quiet", "--message", "rules of its own"]);
    own(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    let ran = checked_in_folder(&project);
    assert_ne!(ran.code, 0, "{}", ran.out);
    assert!(!marker.exists());
}

#[test]
fn a_tool_of_the_repository_is_followed_through_links() {
    let link = |project: &Project, target: &str, path: &str| {
        let path = project.path(path);
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink(target, path).unwrap();
    };
    let base = change_of(&BASE);
    base.write("tools/ncu-2026", "#!/bin/sh\n");
    link(&base, "./ncu-2026", "tools/ncu");
    base.write("other/ncu", "#!/bin/sh\necho faster\n");
    base.configure("[toolchain]\n", "[toolchain]\nncu = \"tools/ncu\"\n");
    committed(&base);
    checked(&base, &[]).exits(0);
    let change = || {
        let project = change_of(&base);
        // Copied with what it leads to.
        link(&project, "./ncu-2026", "tools/ncu");
        project
    };
    let brings = |project: &Project, file: &str| {
        commit(project);
        let message = format!("ncu is taken from the repository, and this change brings `{file}`");
        checked(project, &[]).ends(4, &message)
    };

    let project = change();
    link(&project, "../other/ncu", "tools/ncu");
    brings(&project, "tools/ncu");

    let project = change();
    project.write("tools/ncu-2026", "#!/bin/sh\necho faster\n");
    let report = brings(&project, "tools/ncu-2026").json();
    let tokens = asked(&report);
    assert_eq!(tokens.len(), 1);
    checked(&project, &["--accept", &tokens[0]]).exits(0);
    let file = sha256_hex(b"#!/bin/sh\necho faster\n");
    checked(&project, &["--accept", &file]).ends(4, "nothing in this change has this token");

    let project = change();
    fs::remove_dir_all(project.path("tools")).unwrap();
    link(&project, "other", "tools");
    brings(&project, "tools");

    // A repository of its own in the place of the folder.
    let project = change();
    project.git("rm -r --quiet tools");
    let tools = project.path("tools");
    fs::rename(project.path("other"), &tools).unwrap();
    for arguments in ["init --quiet", "add --all", "commit --quiet --message ncu"] {
        git(&tools, arguments);
    }
    let report = brings(&project, "tools").json();
    assert_eq!(asked(&report), Vec::<String>::new());
}

#[test]
fn a_recording_of_the_change_does_not_count_wherever_it_is_in_the_repository() {
    let project = in_a_folder();
    let folder = project.path("");
    let from = |recorded: &str, exit: i32| {
        let mut command = project.gate_of("check -C config.toml --format json --from");
        command.envs(IN_CHANGE).current_dir(folder.join("gate"));
        Ran::by(command.arg(recorded)).exits(exit).json().denied()
    };
    let code = "recorded-in-change".to_owned();
    assert_eq!(from(RECORDED, 0), [""; 0]);
    let beside = folder.join("recorded");
    fs::rename(folder.join("gate").join(RECORDED), &beside).unwrap();
    project.git("add --force recorded");
    commit(&project);
    assert_eq!(from("../recorded", 6), std::slice::from_ref(&code));
    // Beside the repository it is an artifact, as a workflow hands it over that runs nothing of it.
    let workspace = Project::empty();
    copy(&BASE.path(""), &workspace.path("change"));
    let change = workspace.path("change");
    fs::rename(change.join(RECORDED), workspace.path("profiles")).unwrap();
    let check = "check --from ../profiles --format json --baseline-ref HEAD";
    let ran = Ran::by(workspace.gate_of(check).current_dir(change));
    assert!(!ran.exits(0).json().denied().contains(&code));
}

#[test]
fn a_committed_recording_counts_once_it_is_accepted_from_outside_the_change() {
    let project = pull_request();
    change_code(&project, VARIANT);
    project.git("add --force recorded");
    commit(&project);
    let report = checked_in(&project, "7", "").exits(6).json();
    assert_eq!(report.denied(), ["recorded-in-change"]);
    let script = format!("find {RECORDED} -type f | sort | xargs sha256sum | sha256sum");
    let after = printed_first(&project.path(""), &script);
    let text = format!(
        "sparsek-gate consent 1\naction: record\npath: \"{RECORDED}/bsr_gemm\"\nbefore: absent\nafter: {after}\npull request: 7\n"
    );
    let token = sha256_hex(text.as_bytes());
    assert_eq!(asked(&report), [token.as_str()]);
    let report = checked_in(&project, "7", &token).exits(0).json();
    assert!(report.warns("recorded-in-change") && !report.warns("accept-unused"));
    // Neither in another pull request, nor of other numbers.
    let report = checked_in(&project, "8", &token).exits(6).json();
    assert!(report.warns("accept-unused"));
    project.edit_profile(VARIANT, |profile| scale(profile, "duration", 0.99));
    checked_in(&project, "7", &token).exits(6);
    // Consent to the recording does not make a slower kernel pass.
    slower(&project);
    let report = checked_in(&project, "7", "").exits(1).json();
    checked_in(&project, "7", &asked(&report).join(",")).exits(1);
}

#[test]
fn a_recorded_base_is_of_the_revisions_code_and_vouched_for() {
    let project = pull_request();
    change_code(&project, VARIANT);
    slower(&project);
    project.add_base(VARIANT, |base| scale(base, "duration", 1.1));
    commit(&project);
    let source = format!("kernels/bsr_gemm/{VARIANT}.cu");
    let report = checked(&project, &[VARIANT]).exits(4).json();
    // What the base was measured by is not here.
    assert_eq!(report.denied(), ["capture-missing", "profile-stale"]);
    let words = "the recorded base was built from different sources than the base commit";
    report.tells_all("profile-stale", &[words]);
    // With the hash of the base's code only the baseline contradicts it.
    project.edit(&Project::base_path(VARIANT), |base| {
        base["provenance"]["sources"][&source] = json!(sha256_hex(BASE.read(&source).as_bytes()));
    });
    let report = checked(&project, &[VARIANT]).exits(6).json();
    assert_eq!(report.denied(), ["capture-missing"]);
    report.tells_all("drift", &["`duration`"]);
    // On a GPU without a baseline nothing does.
    for path in [Project::profile_path(VARIANT), Project::base_path(VARIANT)] {
        let text = project.read(&path);
        project.write(&path, text.replace("NVIDIA H200", "NVIDIA L4"));
    }
    let report = checked(&project, &[VARIANT]).exits(3).json();
    let words = "no baseline on NVIDIA L4 confirms the numbers of that base";
    report.tells_all("drift", &[words]);
}

#[test]
fn altered_samples_deny_where_the_recording_comes_with_the_change() {
    let project = Project::shipped();
    committed(&project);
    project.edit_profile(VARIANT, |profile| scale(profile, "duration", 0.99));
    let report = judged(&project, &[VARIANT]).exits(4).json();
    assert_eq!(report.denied(), ["profile-altered"]);
    let unproven = "no capture proves the values of 1 variant";
    let first = |further: &[&str], code: i32| {
        let arguments = [&["check", "--from", RECORDED, VARIANT, "--quiet"], further].concat();
        project.run(&arguments).exits(code).out.contains(unproven)
    };
    let no_change = ["--baseline-ref", "none"];
    assert!(first(&no_change, 0));
    // With what proves them they pass, and without any capture nobody can check them.
    project.prove();
    judged(&project, &[VARIANT]).exits(0);
    assert!(!first(&no_change, 0));
    let folder = project.path(&format!("{RECORDED}/bsr_gemm/{VARIANT}"));
    fs::remove_file(folder.join("counting.csv")).unwrap();
    let missing = || judged(&project, &[VARIANT]).exits(6).json().denied();
    assert_eq!(missing(), ["capture-missing"]);
    assert!(first(&no_change, 0));
    project.edit_profile(VARIANT, |it| it["provenance"]["captures"] = json!([]));
    judged(&project, &[VARIANT]).exits(4);
    assert!(first(&no_change, 6));
}

#[test]
fn a_lock_without_a_variant_is_verified_too() {
    let project = Project::shipped();
    remove_variant(&project);
    let ran = project.run("baseline --verify").ends(0, "lock-unused");
    ran.says("it is not in the configuration");
    let norm = Project::baseline_path(VARIANT, "norm.txt");
    project.replace(&norm, "duration: ", "duration: 1");
    project
        .run("baseline --verify")
        .ends(4, "is not what was locked");
}
