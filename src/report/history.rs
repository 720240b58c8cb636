//! The history of a baseline for a terminal.

use std::fmt::Write as _;

use super::print::one_line;
use crate::git::short;
use crate::history::{Acceptance, Course, Point, Trend};
use crate::metric::display_value;
use crate::verdict::Change;
use comfy_table::{ContentArrangement, Table, presets};

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
    }
    text
}

fn acceptances(trend: &Trend) -> String {
    let mut table = plain_table(&["", "accepted", "who", "commit", "reason"]);
    for (at, acceptance) in trend.acceptances.iter().enumerate() {
        table.add_row([
            format!("#{}", at + 1),
            one_line(&acceptance.entry.time),
            one_line(&acceptance.entry.who),
            commit(acceptance),
            one_line(&acceptance.entry.reason),
        ]);
    }
    let mut text = lines(&table);
    for (at, acceptance) in trend.acceptances.iter().enumerate() {
        if let Some(missing) = &acceptance.missing {
            let _ = writeln!(text, " #{}: {}", at + 1, one_line(missing));
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

/// A table without lines, whose cells are never broken.
pub fn plain_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    table
}

/// The lines of a table, without blanks at their ends.
pub fn lines(table: &Table) -> String {
    table.lines().fold(String::new(), |mut text, line| {
        text.push_str(line.trim_end());
        text.push('\n');
        text
    })
}

/// The start of the commit, or a dash without one.
fn commit(acceptance: &Acceptance) -> String {
    let commit = acceptance.commit.as_deref();
    commit.map_or("–".to_owned(), |id| short(&one_line(id)))
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
