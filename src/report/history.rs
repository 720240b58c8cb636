//! The history of a baseline for a terminal, and as a page.

use std::fmt::Write as _;

use comfy_table::{ContentArrangement, Table, presets};
use maud::{Markup, html};

use super::html::{document, figure};
use super::plot::{Size, trend_drawings};
use super::print::one_line;
use crate::history::{Acceptance, Course, EffectCourse, LevelChange, Point, Trend};
use crate::metric::{display_value, display_values};
use crate::verdict::{Change, FEWEST_FOR_CHANGE};

/// Acceptances whose values have a column on a terminal; the latest.
const COLUMNS: usize = 5;
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Who accepted what and when, and each metric with a small plot of its course.
pub fn text(trends: &[Trend]) -> String {
    let mut text = String::new();
    for trend in trends {
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(
            text,
            "{} on {}",
            one_line(&trend.variant.to_string()),
            one_line(&trend.gpu)
        );
        text.push_str(&acceptances(trend));
        if !trend.metrics.is_empty() {
            text.push('\n');
            text.push_str(&metrics(trend));
        }
        for line in changes_of(trend) {
            let _ = writeln!(text, " change of level: {line}");
        }
        for line in effects_of(trend) {
            let _ = writeln!(text, " recorded effects: {line}");
        }
    }
    text
}

fn acceptances(trend: &Trend) -> String {
    let mut table = plain_table(&["", "accepted", "who", "commit", "reason"]);
    for (at, acceptance) in trend.acceptances.iter().enumerate() {
        table.add_row([
            format!("#{}", at + 1),
            one_line(&acceptance.time),
            one_line(&acceptance.who),
            commit(acceptance),
            one_line(&acceptance.reason),
        ]);
    }
    let mut text = lines(&table);
    for (at, acceptance) in trend.acceptances.iter().enumerate() {
        for note in acceptance.missing.iter().chain(&acceptance.note) {
            let _ = writeln!(text, " #{}: {}", at + 1, one_line(note));
        }
    }
    text
}

fn metrics(trend: &Trend) -> String {
    let kernels = trend.several_kernels();
    let count = trend.acceptances.len();
    let first = count.saturating_sub(COLUMNS);
    let numbers: Vec<String> = (first..count).map(|at| format!("#{}", at + 1)).collect();
    let mut header = vec!["metric", "course"];
    if kernels {
        header.insert(0, "kernel");
    }
    header.extend(numbers.iter().map(String::as_str));
    let mut table = plain_table(&header);
    for course in &trend.metrics {
        let mut cells = vec![one_line(&course.metric), sparkline(&course.values)];
        if kernels {
            cells.insert(0, one_line(&course.kernel));
        }
        cells.extend(
            course
                .values
                .get(first..)
                .unwrap_or_default()
                .iter()
                .map(|point| value(course, *point)),
        );
        table.add_row(cells);
    }
    lines(&table)
}

fn plain_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    table
}

fn lines(table: &Table) -> String {
    table.lines().fold(String::new(), |mut text, line| {
        text.push_str(line.trim_end());
        text.push('\n');
        text
    })
}

/// The start of the commit, or a dash without one.
fn commit(acceptance: &Acceptance) -> String {
    acceptance.commit.as_ref().map_or_else(
        || "–".to_owned(),
        |id| one_line(id).chars().take(10).collect(),
    )
}

fn value(course: &Course, point: Option<Point>) -> String {
    let unit = course.unit.as_deref();
    let shown = point.map(|point| {
        let noise = point
            .noise
            .filter(|noise| *noise > 0.0)
            .map_or_else(String::new, |noise| {
                format!(" ±{}", Change::Absolute(noise).magnitude(unit))
            });
        format!("{}{noise}", display_value(point.value, unit))
    });
    one_line(&shown.unwrap_or_else(|| "–".to_owned()))
}

/// One block a value, from the least to the most; a dot for what is not known.
fn sparkline(values: &[Option<Point>]) -> String {
    let known = || values.iter().flatten().map(|point| point.value);
    let low = known().fold(f64::INFINITY, f64::min);
    let high = known().fold(f64::NEG_INFINITY, f64::max);
    let level = |value: f64| {
        if high > low {
            let top = (LEVELS.len() - 1) as f64;
            LEVELS[((value - low) / (high - low) * top).round() as usize]
        } else {
            LEVELS[3]
        }
    };
    values
        .iter()
        .map(|point| point.map_or('·', |point| level(point.value)))
        .collect()
}

/// The same as a page that stands by itself.
pub fn page(trends: &[Trend]) -> String {
    let subject = trends
        .first()
        .map_or_else(String::new, |trend| trend.variant.to_string());
    let title = format!("History of {subject}");
    let body = html! {
        header class="top" {
            p class="tool" { "sparsek-gate history" }
            h1 { (one_line(&subject)) }
            p class="lead" { "The locked baselines, one row for each acceptance." }
        }
        main { (sections(trends)) }
    };
    document(&title, &body, None)
}

/// The acceptances of each baseline, what changed, and a picture of its metrics.
pub(super) fn sections(trends: &[Trend]) -> Markup {
    let drawn = |trend: &Trend, size| trend_drawings(std::slice::from_ref(trend), size);
    html! {
        @for trend in trends {
            section {
                h2 { (one_line(&trend.gpu)) }
                div class="scroll" tabindex="0" role="region" aria-label="Acceptances" {
                    table class="plain" {
                        thead { tr {
                            @for name in ["", "accepted", "who", "commit", "reason"] { th scope="col" { (name) } }
                        } }
                        tbody {
                            @for (at, acceptance) in trend.acceptances.iter().enumerate() {
                                tr {
                                    th scope="row" { "#" (at + 1) }
                                    td { (one_line(&acceptance.time)) }
                                    td { (one_line(&acceptance.who)) }
                                    td { code { (commit(acceptance)) } }
                                    td class="prose" {
                                        (one_line(&acceptance.reason))
                                        @for note in acceptance.missing.iter().chain(&acceptance.note) {
                                            br;
                                            span class="quiet" { (one_line(note)) }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
                (changes(trend))
                @for (wide, narrow) in drawn(trend, Size::Wide).iter().zip(&drawn(trend, Size::Narrow)) {
                    (figure(wide, narrow))
                }
            }
        }
    }
}

/// Where levels changed, or why that is not known.
fn changes(trend: &Trend) -> Markup {
    let found = changes_of(trend);
    let count = trend.acceptances.len();
    html! {
        @if !found.is_empty() {
            h3 { "Changes of level" }
            ul class="lines" { @for line in &found { li { (line) } } }
        } @else if count < FEWEST_FOR_CHANGE {
            p class="note" { "Changes of level are looked for from " (FEWEST_FOR_CHANGE) " acceptances on; here " (counted(count)) "." }
        } @else {
            p class="note" { "No level changed." }
        }
        @let effects = effects_of(trend);
        @if !effects.is_empty() {
            h3 { "Recorded effects of changes" }
            ul class="lines" { @for line in &effects { li { (line) } } }
        }
    }
}

/// A line for the recorded effects on each metric: what they add up to, and where their size changed.
fn effects_of(trend: &Trend) -> Vec<String> {
    let line = |one: &EffectCourse| {
        let unit = trend
            .metrics
            .iter()
            .find(|course| course.metric == one.metric);
        let unit = unit.and_then(|course| course.unit.as_deref());
        let change = |size: f64| match one.relative {
            true => Change::RelativePercent(size).display(unit),
            false => Change::Absolute(size).display(unit),
        };
        let count = one.effects.len();
        let s = if count == 1 { "" } else { "s" };
        let mut text = format!(
            "{} of {}: {count} change{s}, together {}, the latest {}",
            one.metric,
            one.kernel,
            change(one.total),
            change(one.effects.last().copied().unwrap_or_default())
        );
        for at in &one.changes {
            let commit = one.commits.get(*at).map_or("?", String::as_str);
            let _ = write!(text, "; of another size since {commit}");
        }
        one_line(&text)
    };
    trend.effects.iter().map(line).collect()
}

fn counted(acceptances: usize) -> String {
    match acceptances {
        1 => "is 1".to_owned(),
        count => format!("are {count}"),
    }
}

/// A line for each change of a metric's level.
fn changes_of(trend: &Trend) -> Vec<String> {
    let kernels = trend.several_kernels();
    let of_course = |course: &Course| {
        let changes = course.changes.iter();
        let lines = changes.map(|change| {
            let kernel = if kernels {
                format!(" of {}", course.kernel)
            } else {
                String::new()
            };
            let text = change_text(trend, course, change, true);
            one_line(&format!("{}{kernel}: {text}", course.metric))
        });
        lines.collect::<Vec<_>>()
    };
    trend.metrics.iter().flat_map(of_course).collect()
}

/// From which level to which, and with which acceptance; with the reason where there is room.
pub(super) fn change_text(
    trend: &Trend,
    course: &Course,
    change: &LevelChange,
    with_reason: bool,
) -> String {
    let unit = course.unit.as_deref();
    let (before, after) = display_values(change.before, change.after, unit);
    let percent = (change.after / change.before - 1.0) * 100.0;
    let percent = match percent.is_finite() {
        true => format!(", {}", Change::RelativePercent(percent).display(unit)),
        false => String::new(),
    };
    let accepted = trend.acceptances.get(change.at).map(|acceptance| {
        let day = acceptance.time.get(..10).unwrap_or(&acceptance.time);
        match with_reason {
            true => format!(" ({day}, {})", acceptance.reason),
            false => format!(" ({day})"),
        }
    });
    let text = format!(
        "{before} → {after}{percent} from #{}{}",
        change.at + 1,
        accepted.unwrap_or_default()
    );
    one_line(&text)
}
