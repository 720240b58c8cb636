//! `sparsek-gate bisect`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use super::answer::{answer, print_outcome};
use super::select::{select, variable};
use crate::bisect::{Answer, Beside, Bisected, End, Rules, Search, Step, bisect};
use crate::cli::{BisectArgs, Format, Selection};
use crate::config::{Config, Selected, Variant};
use crate::device::Gpu;
use crate::finding::{Code, Error, ExitCode, Finding};
use crate::git::{self, Commit, Named};
use crate::judge::Outcome;
use crate::measure::{BaseProject, RecordUse};
use crate::metric::Level;
use crate::process;
use crate::report::{self, Detail, Progress, one_line};
use crate::trust;

/// The most commits of a history. Each must be listed, not measured.
const MOST_COMMITS: usize = 100_000;

/// The history that is searched.
struct History {
    good: Commit,
    /// After the good one, the oldest first; the last is the bad one.
    commits: Vec<Commit>,
}

/// What was found, for scripts.
#[derive(Serialize)]
struct Content<'a> {
    variant: String,
    metric: &'a str,
    good: &'a Commit,
    bad: &'a Commit,
    commits: usize,
    pairs: usize,
    first_bad: Option<&'a Commit>,
    last_good: Option<&'a Commit>,
    range: Vec<&'a Commit>,
    steps: Vec<&'a Step>,
}

pub(super) fn run(path: &Path, arguments: &BisectArgs) -> Result<ExitCode, Error> {
    let here = Config::load(path)?;
    if let Some(folder) = &arguments.reports {
        refuse_folder(folder)?;
    }
    let history = history(&here.root, &arguments.range)?;
    let good = BaseProject::of_commit(&here, &history.good.id, &here.work.join("worktrees"))?;
    let config = good.config().map_err(|why| {
        let at = history.good.short();
        Error::Usage(format!(
            "the configuration of GOOD ({at}) counts, and it cannot be read: {why}\n  next: choose a later GOOD"
        ))
    })?;
    let selected = one_variant(config, &arguments.variant)?;
    let variant = &selected.variants[0];
    refuse_metric(variant, &arguments.metric)?;
    process::pass(&config.env_pass);
    Gpu::query(config.device)?;
    let (output, _temporary) = output(arguments)?;
    let progress = Progress::new();
    let mut beside = Beside::new(Rules {
        good: &good,
        config,
        variant,
        metric: &arguments.metric,
        output: &output,
        records: RecordUse {
            reads: true,
            writes: is_of_reviewed_code(&here)?,
        },
        watch: &progress,
    });
    let found = bisect(&history.commits, &mut beside)?;
    let code = show(arguments, &history, variant, &found)?;
    if let Some(folder) = &arguments.reports {
        write_reports(folder, &found)?;
    }
    Ok(code)
}

/// The commits that a range names.
fn history(root: &Path, range: &str) -> Result<History, Error> {
    let refused = |why: String| Error::Usage(format!("`{range}`: {why}"));
    let named = |name: &str| match git::named(root, name) {
        Named::Commit(commit) => Ok(commit),
        Named::Missing => Err(refused(format!("`{name}`: {}", git::why_unknown(root)))),
        Named::Ambiguous(names) => Err(refused(format!(
            "`{name}` may be {}: write the whole name",
            names.join(" or ")
        ))),
    };
    let (good, bad) = match range.split_once("..") {
        Some((good, bad)) if !good.is_empty() && !bad.starts_with('.') => (good, bad),
        _ => {
            let why = "a range is two commits with two dots between them, such as v1.4..main";
            return Err(refused(why.to_owned()));
        }
    };
    git::repository(root).map_err(|why| {
        refused(format!(
            "this folder is not in a git repository: {why}\n  next: run it in a clone of the project"
        ))
    })?;
    let good = named(good)?;
    let bad = named(if bad.is_empty() { "HEAD" } else { bad })?;
    if !git::contains(root, &bad, &good) {
        let shallow = match git::is_shallow(root) {
            true => "; this clone is shallow: git fetch --unshallow",
            false => "",
        };
        return Err(refused(format!(
            "GOOD is not among the ancestors of BAD, so no commit between them is the first bad one{shallow}\n  next: name an ancestor: git merge-base {good} {bad}"
        )));
    }
    let commits = git::first_parents(root, &good, &bad, MOST_COMMITS).map_err(refused)?;
    if commits.is_empty() {
        return Err(refused(
            "GOOD and BAD are the same commit\n  next: name an older GOOD".to_owned(),
        ));
    }
    Ok(History {
        good: git::commit(root, &good).map_err(refused)?,
        commits,
    })
}

/// The variant of a name, as the good commit has it.
fn one_variant(config: &Config, name: &str) -> Result<Selected, Error> {
    let selection = Selection {
        names: vec![name.to_owned()],
        experimental: true,
    };
    let selected = select(config.clone(), &selection, None)?;
    if let [_] = selected.variants[..] {
        return Ok(selected);
    }
    let names: Vec<String> = selected
        .variants
        .iter()
        .map(|it| it.id.to_string())
        .collect();
    Err(Error::Usage(format!(
        "`{name}` selects {} variants, and `bisect` needs exactly one\n  next: name one: {}",
        names.len(),
        names.join(", ")
    )))
}

fn refuse_metric(variant: &Variant, metric: &str) -> Result<(), Error> {
    let judged = variant
        .metrics
        .iter()
        .filter(|one| one.level != Level::Record);
    let judged: Vec<&str> = judged.map(|one| one.alias.as_str()).collect();
    if judged.contains(&metric) {
        return Ok(());
    }
    let known = variant.metrics.iter().any(|one| one.alias == metric);
    let why = match known {
        true => "only records this metric, so no tolerance says when it is worse,",
        false => "has no such metric",
    };
    Err(Error::Usage(format!(
        "`--metric {metric}`: GOOD's configuration {why} for {}\n  next: choose one of {}",
        variant.id,
        judged.join(", ")
    )))
}

/// As `check` decides it: a run of code under review records nothing.
fn is_of_reviewed_code(here: &Config) -> Result<bool, Error> {
    let pull_request = trust::pull_request(None, variable)?;
    let reviewed = trust::is_of_reviewed_code(&here.checkout, variable);
    Ok(pull_request.is_none() && reviewed)
}

fn output(arguments: &BisectArgs) -> Result<(PathBuf, Option<tempfile::TempDir>), Error> {
    if let Some(folder) = &arguments.output {
        let whole = std::path::absolute(folder).map_err(Error::io("find", folder))?;
        return Ok((whole, None));
    }
    let folder = tempfile::Builder::new().prefix("sparsek-gate-").tempdir();
    let folder = folder.map_err(Error::io("create", std::env::temp_dir()))?;
    Ok((folder.path().to_owned(), Some(folder)))
}

/// Checks the folder of the reports before the measurement, which may take long.
fn refuse_folder(folder: &Path) -> Result<(), Error> {
    let whole = std::path::absolute(folder).map_err(Error::io("find", folder))?;
    let why = match whole.parent() {
        _ if whole.is_dir() => return Ok(()),
        _ if whole.exists() => "it is a file",
        Some(parent) if parent.is_dir() => return Ok(()),
        _ => "the folder that it would be in does not exist",
    };
    Err(Error::Usage(format!(
        "`--reports {}`: {why}\n  next: name a folder that exists, or a new one in a folder that does",
        folder.display()
    )))
}

/// The steps that decide: the last good commit and the first bad one, as far as they were measured.
fn deciding(found: &Bisected) -> [(&'static str, Option<&Outcome>); 2] {
    let (good, bad) = ends(found);
    let outcome = |at: Option<usize>| found.measured(at?)?.outcome.as_ref();
    [("last-good", outcome(good)), ("first-bad", outcome(bad))]
}

/// The places of the last good commit and of the first bad one that are known.
fn ends(found: &Bisected) -> (Option<usize>, Option<usize>) {
    match found.end {
        End::First(bad) => (bad.checked_sub(1), Some(bad)),
        End::Range(first, bad) => (first.checked_sub(1), Some(bad)),
        End::NotWorse => (found.order.last().copied(), None),
        End::Unanswered => (None, None),
    }
}

fn write_reports(folder: &Path, found: &Bisected) -> Result<(), Error> {
    if !folder.is_dir() {
        std::fs::create_dir(folder).map_err(Error::io("create", folder))?;
    }
    for (name, outcome) in deciding(found) {
        for ending in ["json", "html"] {
            let path = folder.join(format!("{name}.{ending}"));
            match outcome {
                Some(outcome) => {
                    for target in report::targets(std::slice::from_ref(&path))? {
                        target.write(outcome)?;
                    }
                }
                // One of an earlier search would be taken for this one's.
                None if path.exists() => {
                    std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
                }
                None => {}
            }
        }
    }
    Ok(())
}

/// What the end means for the exit code.
fn findings(history: &History, variant: &Variant, metric: &str, found: &Bisected) -> Vec<Finding> {
    let open = |message: String, next: &str| {
        vec![Finding::deny(Code::Inconclusive, &variant.id, message, next).metric(metric)]
    };
    let last = found.order.last().and_then(|at| found.steps.get(at));
    match found.end {
        End::First(_) => Vec::new(),
        End::Range(first, bad) => open(
            format!(
                "the first bad commit is one of {}; all of these but the last were skipped",
                bad - first + 1
            ),
            "read why each was skipped; give them an answer by hand, or raise profile.max_rounds at GOOD",
        ),
        End::NotWorse => open(
            format!(
                "BAD is not worse than GOOD ({}) in `{metric}`: there is nothing to find",
                history.good.short()
            ),
            "choose an older GOOD, another metric, or a smaller tolerance",
        ),
        End::Unanswered => {
            let why = last.map_or_else(String::new, |step| step.why.clone());
            let outcome = last.and_then(|step| step.outcome.as_ref());
            let denied = outcome.into_iter().flat_map(|outcome| &outcome.findings);
            let mut denied: Vec<Finding> = denied.filter(|one| one.denies()).cloned().collect();
            denied.extend(open(
                format!("it is not known whether BAD is worse than GOOD: {why}"),
                "choose a BAD that builds, verifies and can be compared with GOOD, or measure on a quieter machine",
            ));
            denied
        }
    }
}

fn show(
    arguments: &BisectArgs,
    history: &History,
    variant: &Variant,
    found: &Bisected,
) -> Result<ExitCode, Error> {
    let (good, bad) = ends(found);
    let commit = |at: usize| &history.commits[at];
    let content = Content {
        variant: variant.id.to_string(),
        metric: &arguments.metric,
        good: &history.good,
        bad: commit(history.commits.len() - 1),
        commits: history.commits.len(),
        pairs: found.pairs(),
        first_bad: match found.end {
            End::First(at) => Some(commit(at)),
            _ => None,
        },
        last_good: match (found.end, good) {
            (End::Unanswered, _) => None,
            (_, Some(at)) => Some(commit(at)),
            (_, None) => Some(&history.good),
        },
        range: match found.end {
            End::Range(first, last) => history.commits[first..=last].iter().collect(),
            _ => Vec::new(),
        },
        steps: found
            .order
            .iter()
            .filter_map(|at| found.steps.get(at))
            .collect(),
    };
    let findings = findings(history, variant, &arguments.metric, found);
    let code = answer(arguments.format, &content, &findings, || text(&content))?;
    let shown = bad.and_then(|at| found.measured(at)?.outcome.as_ref());
    if let (Format::Text, Some(outcome), Some(form)) =
        (arguments.format, shown, report::form("text"))
    {
        super::answer::print("\n")?;
        print_outcome(outcome, form, Detail::Attention)?;
    }
    Ok(code)
}

/// The result, and a table of what was asked for.
fn text(content: &Content<'_>) -> String {
    let named = |commit: &Commit| format!("{} {}", commit.short(), one_line(&commit.subject));
    let mut text = String::new();
    match (content.first_bad, content.last_good) {
        (Some(bad), _) => {
            let _ = writeln!(text, "first bad commit: {}", named(bad));
        }
        (None, Some(_)) if !content.range.is_empty() => {
            let _ = writeln!(text, "the first bad commit is one of these:");
            for commit in &content.range {
                let _ = writeln!(text, "  {}", named(commit));
            }
        }
        _ => {
            let _ = writeln!(text, "no first bad commit was found");
        }
    }
    if let Some(good) = content.last_good {
        let _ = writeln!(text, "last good commit: {}", named(good));
    }
    let most = Search::most(content.commits);
    let _ = writeln!(
        text,
        "`{}` of {}, beside GOOD, {}; {} of {} commits tried, at most {most} if none is skipped or open\n",
        content.metric,
        content.variant,
        named(content.good),
        content.pairs,
        content.commits
    );
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["commit", "answer", "change", "subject", "note"]);
    for step in &content.steps {
        table.add_row(row(step));
    }
    for line in table.lines() {
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn row(step: &Step) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(other) = &step.same_as {
        let other = other.get(..10).unwrap_or(other);
        notes.push(format!("the program of {other}, not measured"));
    } else if step.seen.is_none() {
        notes.push(step.why.clone());
    }
    match (step.further, step.answer) {
        (true, Answer::Open) => {
            notes.push("stays open in twice the rounds, and is skipped".to_owned());
        }
        (true, _) => notes.push("was open, measured again in twice the rounds".to_owned()),
        (false, _) => {}
    }
    if step.other_config {
        notes.push("has another configuration; GOOD's counts".to_owned());
    }
    let seen = step.seen.as_ref();
    vec![
        step.commit.short().to_owned(),
        step.answer.as_str().to_owned(),
        seen.map_or_else(|| "–".to_owned(), |seen| seen.words()),
        one_line(&step.commit.subject).to_string(),
        one_line(&notes.join("; ")).to_string(),
    ]
}
