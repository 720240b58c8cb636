//! The rows that every form of a report shows.

use std::collections::{BTreeMap, BTreeSet};

use anstyle::AnsiColor;

use crate::finding::{Code, ExitCode, Finding, Note};
use crate::git::short;
use crate::judge::{
    Comparison, Mode, Origin, Outcome, SideProvenance, Summary, VariantReport, share_words,
};
use crate::metric::{Level, Role};
use crate::terms::{Tier, counted, dimensions, joined_or};
use crate::trust::Authority;
use crate::verdict::{Change, Verdict};

/// What is not known of code that the compiler was not called for.
const NOT_REPORTED: &str = "spilled bytes and the compiler's warnings are not known";

/// The most GPUs of which a line is shown.
const MOST_GPUS: usize = 16;

/// The smallest change that is shown, in percent, of a recorded metric whose noise is not known.
const UNKNOWN_NOISE_PERCENT: f64 = 5.0;

/// One judged metric, as text.
pub(super) struct Row {
    pub kernel: String,
    pub metric: String,
    pub reference: String,
    pub current: String,
    pub change: String,
    pub tolerance: String,
    pub threshold: String,
    pub verdict: Option<Verdict>,
    pub why: String,
}

/// The kernels of a report that are launched with several grids or blocks: their names alone do not
/// identify their rows.
pub(super) fn several_shapes(report: &VariantReport) -> BTreeSet<&str> {
    let shape = |one: &Comparison| (one.grid, one.block);
    let mut first = BTreeMap::new();
    let comparisons = report.comparisons.iter();
    comparisons
        .filter(|one| *first.entry(one.kernel.as_str()).or_insert(shape(one)) != shape(one))
        .map(|one| one.kernel.as_str())
        .collect()
}

/// The name of a comparison's kernel: with grid and block where `shapes` has it, see
/// [`several_shapes`].
pub(super) fn kernel_label(comparison: &Comparison, shapes: &BTreeSet<&str>) -> String {
    if !shapes.contains(comparison.kernel.as_str()) {
        return comparison.kernel.clone();
    }
    format!(
        "{} {}×{}",
        comparison.kernel,
        dimensions(comparison.grid),
        dimensions(comparison.block)
    )
}

impl Row {
    /// The kernels in `shapes` are shown with grid and block, see [`several_shapes`].
    pub(super) fn of(comparison: &Comparison, shapes: &BTreeSet<&str>) -> Row {
        let unit = comparison.unit.as_deref();
        let shown = comparison.shown();
        let [reference, current] = shown.map(|value| value.unwrap_or_else(|| "–".to_owned()));
        Row {
            kernel: kernel_label(comparison, shapes),
            metric: comparison.metric.clone(),
            reference,
            current,
            change: comparison.interval().unwrap_or_else(|| "–".to_owned()),
            tolerance: match comparison.verdict {
                Some(_) if comparison.exact => "exact".to_owned(),
                Some(_) if comparison.never_zero => "never to 0".to_owned(),
                Some(_) => comparison.tolerance.display(unit),
                None => "–".to_owned(),
            },
            threshold: match (comparison.change, comparison.threshold) {
                (Some(change), Some(threshold)) => change.with(threshold).display(unit),
                _ => "–".to_owned(),
            },
            verdict: comparison.verdict,
            why: comparison.why.clone(),
        }
    }

    /// The cells below [`columns`].
    pub(super) fn cells(self, kernels: bool) -> Vec<String> {
        let mut cells = vec![
            self.kernel,
            self.metric,
            self.reference,
            self.current,
            self.change,
            self.tolerance,
            self.threshold,
            verdict_word(self.verdict).to_owned(),
            self.why,
        ];
        cells.split_off(usize::from(!kernels))
    }
}

/// The names of the columns of a table of rows; of the kernel where it is needed.
pub(super) fn columns(report: &VariantReport, kernels: bool) -> Vec<&'static str> {
    let mut names = vec![
        "kernel",
        "metric",
        report.mode.reference(),
        "current",
        "change",
        "tolerance",
        "fails beyond",
        "verdict",
        "why",
    ];
    names.split_off(usize::from(!kernels))
}

/// The comparisons for a reader: those that were judged by their size, and of the others those that
/// moved. Registers are always shown of two programs. The JSON form contains all of them.
pub(super) fn shown(report: &VariantReport) -> Vec<&Comparison> {
    let moved = |comparison: &Comparison| {
        let (Some(change), Some(before)) = (comparison.change, comparison.reference) else {
            return true;
        };
        let band = match comparison.band {
            Some(band) => band,
            None if comparison.exact => 0.0,
            // The noise of a few launches of one process is not known.
            None if matches!(change, Change::RelativePercent(_)) => UNKNOWN_NOISE_PERCENT,
            None => before.value.abs() * UNKNOWN_NOISE_PERCENT / 100.0,
        };
        change.size() > band
    };
    let always = |comparison: &Comparison| {
        report.mode == Mode::Programs && comparison.role() == Some(Role::RegistersPerThread)
    };
    let uneventful = |comparison: &Comparison| match comparison.verdict {
        None if always(comparison) => false,
        None => unmeasured(report, comparison) || !moved(comparison),
        Some(verdict) => {
            verdict == Verdict::Pass && (comparison.exact || unchanged(report, comparison))
        }
    };
    report
        .comparisons
        .iter()
        .filter(|comparison| !uneventful(comparison))
        .collect()
}

/// A static metric whose value is the same.
fn unchanged(report: &VariantReport, comparison: &Comparison) -> bool {
    let value = |side: Option<Summary>| side.map(|side| side.value);
    report.tier == Tier::Static && value(comparison.reference) == value(comparison.current)
}

/// What the rows do not show: exact counters that agree, recorded metrics that did not move.
pub(super) fn left_out(report: &VariantReport) -> Option<String> {
    let shown = shown(report).len();
    let all = report.comparisons.len();
    let count = |of_kind: &dyn Fn(&Comparison) -> bool| {
        let comparisons = report.comparisons.iter();
        comparisons.filter(|one| of_kind(one)).count()
    };
    let passes = |one: &Comparison| one.verdict == Some(Verdict::Pass);
    let work = count(&|one| one.exact && passes(one));
    let same = count(&|one| passes(one) && unchanged(report, one));
    let unmeasured = count(&|one| unmeasured(report, one));
    // A metric may be of two kinds.
    let others = [shown, work, same, unmeasured]
        .iter()
        .fold(all, |left, count| left.saturating_sub(*count));
    let mut parts = Vec::new();
    if work > 0 {
        parts.push(format!(
            "{} the same work",
            counted(work, "exact counter shows", "exact counters show")
        ));
    }
    if same > 0 {
        parts.push(counted(
            same, "gated metric is unchanged", "gated metrics are unchanged",
        ));
    }
    if others > 0 {
        parts.push(format!("{} did not move", counted(others, METRIC, METRICS)));
    }
    if unmeasured > 0 {
        parts.push(format!(
            "{} cannot be measured by {}",
            counted(unmeasured, METRIC, METRICS),
            report.tier
        ));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

const METRIC: &str = "recorded metric";
const METRICS: &str = "recorded metrics";

/// A metric that is only recorded, on a tier that has no value for it.
fn unmeasured(report: &VariantReport, comparison: &Comparison) -> bool {
    report.tier != Tier::Counters
        && comparison.level == Level::Record
        && comparison.current.is_none()
}

/// One line with the share of each kernel in the total; one for each kernel that got worse, with what moved together;
/// and one with the distance of the base from its locked baseline.
pub(super) fn causes_and_drift(report: &VariantReport) -> Vec<String> {
    let causes = report
        .causes
        .iter()
        .map(|of_kernel| format!("{}: {}", of_kernel.kernel, of_kernel.sentence()));
    let drift: Vec<String> = report
        .drift
        .iter()
        .filter(|comparison| comparison.verdict.is_some() && !comparison.exact)
        .filter_map(|comparison| {
            let change = comparison.change?.display(comparison.unit.as_deref());
            Some(format!("{} {change}", comparison.metric))
        })
        .collect();
    let drift = (!drift.is_empty()).then(|| {
        format!(
            "drift of the base from its locked baseline: {}",
            drift.join(", ")
        )
    });
    let shares = share_words(&report.shares);
    shares.into_iter().chain(causes).chain(drift).collect()
}

/// The word for a row's verdict.
pub(super) fn verdict_word(verdict: Option<Verdict>) -> &'static str {
    verdict.map_or("recorded", Verdict::as_str)
}

/// What a verdict looks like.
pub(super) struct Look {
    /// The class that colours it.
    pub class: &'static str,
    /// Its colour on a terminal.
    pub color: Option<AnsiColor>,
    /// A mark beside the word, for readers who do not see the colour.
    pub mark: &'static str,
}

/// What is recorded only is quiet.
pub(super) fn look(verdict: Option<Verdict>) -> Look {
    let (class, color, mark) = match verdict {
        Some(Verdict::Regressed) => ("bad", Some(AnsiColor::Red), "✕"),
        Some(Verdict::NotMeasured | Verdict::Inconclusive) => {
            ("open", Some(AnsiColor::Yellow), "?")
        }
        Some(Verdict::Improved) => ("good", Some(AnsiColor::Green), "▲"),
        Some(Verdict::Pass) => ("plain", None, "✓"),
        None => ("quiet", None, ""),
    };
    Look { class, color, mark }
}

/// Whether the kernel column is needed: without it, rows of several kernels look alike.
pub(super) fn several_kernels(report: &VariantReport) -> bool {
    let kernels = report.comparisons.iter();
    let kernels: BTreeSet<_> = kernels.map(|c| (&c.kernel, c.grid, c.block)).collect();
    kernels.len() > 1
}

/// `FAIL` or `PASS`, why, the counts and the exit code.
pub(super) fn headline(outcome: &Outcome) -> String {
    let code = outcome.exit_code();
    let word = match code {
        ExitCode::Pass => "PASS",
        ExitCode::Inconclusive => "OPEN",
        _ => "FAIL",
    };
    format!(
        "{word}: {} ({}), exit code {}",
        reason(outcome).unwrap_or_else(|| code.meaning().to_owned()),
        counts(outcome),
        code as u8
    )
}

/// What the findings say that decide: the meaning of the first one's code, and the variants with that code.
fn reason(outcome: &Outcome) -> Option<String> {
    let exit = outcome.exit_code();
    let decide = |one: &&Finding| one.denies() && one.code.exit_code() == exit;
    let mut decisive = outcome.findings.iter().filter(decide);
    let code = decisive.next().filter(|_| outcome.ended.is_none())?.code;
    let same = outcome
        .findings
        .iter()
        .filter(|one| one.denies() && one.code == code);
    let variants: BTreeSet<_> = same.filter_map(|one| one.variant.as_ref()).collect();
    let mut letters = code.meaning().trim_end_matches('.').chars();
    let begin = letters.next()?.to_lowercase();
    let meaning = format!("{begin}{}", letters.as_str());
    Some(match (variants.first(), variants.len()) {
        (None, _) => meaning,
        (Some(first), 1) => format!("{first}: {meaning}"),
        (Some(first), count) => format!("{first} and {} more: {meaning}", count - 1),
    })
}

/// What every form shows below the first line: where the numbers came from, what was not measured and
/// why, and where the time went.
pub(super) fn head(outcome: &Outcome) -> Vec<String> {
    let mut lines = vec![origin(outcome)];
    let accepted = outcome.findings.iter();
    let accepted = accepted.filter(|one| one.notes.contains(&Note::Accepted));
    lines.extend(accepted.map(|one| {
        let variant = one.variant.as_ref().map(|variant| format!("{variant}: "));
        format!("accepts: {}{}", variant.unwrap_or_default(), one.message)
    }));
    lines.extend(same_programs(outcome));
    lines.extend(time(outcome));
    lines.extend(gpus(outcome));
    lines.extend(reused(outcome));
    lines
}

/// How many comparisons of a variant got each verdict.
pub(super) fn counts_of(report: &VariantReport) -> String {
    let counts = by_verdict(&report.comparisons);
    let counts = counts.map(|(verdict, count)| format!("{count} {}", verdict.as_str()));
    joined_or("nothing judged", counts, ", ")
}

/// How many comparisons got each verdict, of those that any got.
fn by_verdict<'a>(
    comparisons: impl IntoIterator<Item = &'a Comparison>,
) -> impl Iterator<Item = (Verdict, usize)> {
    let verdicts: Vec<Verdict> = comparisons
        .into_iter()
        .filter_map(|one| one.verdict)
        .collect();
    let counts = Verdict::WORST_FIRST.map(|verdict| {
        let same = verdicts.iter().filter(|one| **one == verdict);
        (verdict, same.count())
    });
    counts.into_iter().filter(|(_, count)| *count > 0)
}

/// How many kernels only one of two builds has.
fn alone(outcome: &Outcome, is_new: bool) -> usize {
    let of_two = |one: &&VariantReport| one.mode == Mode::Programs && one.tier == Tier::Static;
    let reports = outcome.variants.iter().filter(of_two);
    let kernels = reports.flat_map(|report| {
        let sides = |one: &&Comparison| [one.reference.is_some(), one.current.is_some()];
        let alone = report.comparisons.iter();
        let alone = alone.filter(move |one| sides(one) == [!is_new, is_new]);
        alone.map(|one| (&report.variant, &one.kernel))
    });
    kernels.collect::<BTreeSet<_>>().len()
}

/// How many comparisons got each verdict, in words.
pub(super) fn counts(outcome: &Outcome) -> String {
    if outcome.ended.is_some() {
        return "the run ended before there was a verdict".to_owned();
    }
    let code = outcome.exit_code();
    let reports = outcome.variants.iter();
    let counts = by_verdict(reports.flat_map(|report| &report.comparisons));
    let counts = counts.map(|(verdict, count)| {
        let excused =
            code == ExitCode::Pass && !matches!(verdict, Verdict::Pass | Verdict::Improved);
        let note = if excused { " with a warning" } else { "" };
        format!("{count} {}{note}", verdict.as_str())
    });
    let sides = [("gone", false), ("new", true)].map(|(word, is_new)| {
        let count = alone(outcome, is_new);
        (count > 0).then(|| format!("{} {word}", counted(count, "kernel", "kernels")))
    });
    let same = outcome.same_programs.len();
    let same = (same > 0).then(|| format!("{same} same-program"));
    let of_captures = [
        Code::CaptureMissing,
        Code::CaptureUnreadable,
        Code::ProfileAltered,
    ];
    let of_captures = |one: &&Finding| !one.denies() && of_captures.contains(&one.code);
    let unproven = outcome.findings.iter().filter(of_captures);
    let unproven: BTreeSet<_> = unproven.filter_map(|one| one.variant.as_ref()).collect();
    let unproven = (!unproven.is_empty()).then(|| {
        let of = counted(unproven.len(), "variant", "variants");
        format!("no capture proves the values of {of}")
    });
    let begins = matches!(outcome.authority, Authority::Revision { begins: true, .. });
    let begins = begins.then(|| "the gate starts when this is merged".to_owned());
    let counts = counts.chain(sides.into_iter().flatten()).chain(same);
    joined_or(
        "nothing compared",
        counts.chain(unproven).chain(begins),
        ", ",
    )
}

/// The variant, and the tier unless it is the counters.
pub(super) fn title(report: &VariantReport) -> String {
    match report.tier {
        Tier::Counters => report.variant.to_string(),
        tier => format!("{} ({tier})", report.variant),
    }
}

/// Where the judged numbers came from.
pub(super) fn origin(outcome: &Outcome) -> String {
    let profiles = match &outcome.origin {
        Origin::Measured if nothing_measured(outcome) => "nothing needed to be measured".to_owned(),
        Origin::Measured if outcome.variants.is_empty() && outcome.spent.is_none_or(|it| it.profiled == 0) => {
            "nothing was measured".to_owned()
        }
        Origin::Measured => match &outcome.programs {
            Some(programs) => {
                let words = programs.words(&outcome.variants);
                format!("measured in this run, side by side: {words}")
            }
            None => "measured in this run".to_owned(),
        },
        Origin::Compiled => "from compiled code; nothing ran, and launches are not checked: which kernels, how often, with which grid".to_owned(),
        Origin::Recorded(folder) => {
            format!("recorded profiles from {folder}, not measured in this run")
        }
    };
    match &outcome.authority {
        Authority::WorkingTree => profiles,
        Authority::Revision { begins: true, .. } => profiles,
        Authority::Revision {
            commit, found_by, ..
        } => {
            format!(
                "{profiles}; baselines, tolerances and waivers of {} ({found_by})",
                short(commit)
            )
        }
    }
}

/// Whether no variant had to be measured, because each has the base's program.
fn nothing_measured(outcome: &Outcome) -> bool {
    let compiled = |report: &VariantReport| report.tier == Tier::Static;
    // Of libraries nothing runs.
    let are_libraries =
        !outcome.variants.is_empty() && !outcome.findings.iter().any(Finding::denies);
    (!outcome.same_programs.is_empty() || are_libraries) && outcome.variants.iter().all(compiled)
}

/// Where the time of a run went that compiled or measured.
fn time(outcome: &Outcome) -> Option<String> {
    let (spent, wall) = (outcome.spent?, outcome.wall_s?);
    let mut parts = vec![format!("build {:.1} s", spent.build_s)];
    if spent.profiled > 0 {
        let (verify, profile) = (spent.verify_s, spent.profile_s);
        parts.push(format!("verify {verify:.1} s"));
        let start = match spent.start_s {
            start if start > 0.0 => format!(" ({start:.1} s until the first launch of each)"),
            _ => String::new(),
        };
        parts.push(format!(
            "{} profiled processes {profile:.1} s{start}",
            spent.profiled
        ));
    }
    let text = match outcome.gpus.len() {
        // What they spend at the same time does not add up to the time of the run.
        2.. => format!("time: {wall:.1} s; all GPUs together: {}", parts.join(", ")),
        _ => {
            let rest = (wall - spent.sum_s()).max(0.0);
            parts.push(format!("everything else {rest:.1} s"));
            format!("time: {wall:.1} s, of it {}", parts.join(", "))
        }
    };
    Some(text)
}

/// What each GPU did, where slices were measured.
fn gpus(outcome: &Outcome) -> Vec<String> {
    let parts = outcome.gpus.iter().take(MOST_GPUS);
    let mut lines: Vec<String> = parts
        .map(|part| {
            let variants = counted(part.variants.len(), "variant", "variants");
            let processes = counted(part.processes as usize, "process", "processes");
            format!(
                "GPU {} ({}): {variants} in {:.1} s, {processes} profiled in {:.1} s",
                part.uuid, part.name, part.wall_s, part.profile_s
            )
        })
        .collect();
    let more = outcome.gpus.len().saturating_sub(MOST_GPUS);
    if more > 0 {
        lines.push(format!("and {}", counted(more, "GPU more", "GPUs more")));
    }
    lines
}

/// Which variants were not measured because their program is the base's, and what their hard limits
/// were judged on.
fn same_programs(outcome: &Outcome) -> Vec<String> {
    let same = &outcome.same_programs;
    let Some(first) = same.first() else {
        return Vec::new();
    };
    let base = short(&first.base);
    let names: Vec<String> = same.iter().map(|one| one.variant.to_string()).collect();
    let subject = counted(names.len(), "variant was", "variants were");
    let mut lines = vec![format!(
        "same-program: {subject} not measured, because the program is that of the base {base}, byte for byte, and nothing else changed that it could read: {}",
        names.join(", ")
    )];
    lines.extend(same.iter().filter(|one| !one.limits.is_empty()).map(|one| {
        format!(
            "same-program: the limits of {} were judged on its baseline: {}",
            one.variant,
            one.limits.join("; ")
        )
    }));
    lines
}

/// Which verifications were not repeated.
fn reused(outcome: &Outcome) -> Option<String> {
    let reused = &outcome.reused_verifications;
    let names: Vec<String> = reused
        .iter()
        .map(|one| {
            let (of, record) = (if one.of_base { " (base)" } else { "" }, &one.record);
            let date = record.verified.split('T').next().unwrap_or_default();
            format!("{}{of} of {date}", one.variant)
        })
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "verification reused, with the same program, inputs, arguments, driver and GPU model: {}",
            names.join(", ")
        )
    })
}

/// The conditions of the two profiles of a variant.
pub(super) fn provenance(report: &VariantReport) -> String {
    let side = |profile: &SideProvenance| {
        let mut parts = vec![profile.created.clone()];
        if let Some(uuids) = &profile.gpu_uuid {
            parts.push(match uuids.split(", ").count() {
                1 => uuids.chars().take(12).collect(),
                several => format!("{several} GPUs"),
            });
        }
        if let Some(git) = &profile.git {
            let (commit, dirty) = git
                .split_once('+')
                .map_or((git.as_str(), ""), |(commit, _)| (commit, "+dirty"));
            parts.push(format!("{}{dirty}", short(commit)));
        }
        if !profile.overrides.is_empty() {
            parts.push(format!("with {}", profile.overrides.join(" ")));
        }
        if profile.origin == crate::profile::ProfileOrigin::Imported {
            parts.push("imported".to_owned());
        }
        parts.join(" ")
    };
    let tier = match report.tier {
        // The compiler was not called, so its report is missing.
        Tier::Static if report.current.compiler.is_none() => {
            format!(", read from machine code alone ({NOT_REPORTED})")
        }
        Tier::Counters | Tier::Static => String::new(),
        lower => format!(", {lower} without counters"),
    };
    format!(
        "{}{tier}; {} {}; current {}",
        report.gpu,
        report.mode.reference(),
        side(&report.reference),
        side(&report.current)
    )
}
