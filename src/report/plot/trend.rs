//! The metrics of a baseline over its acceptances: one small picture each.

use maud::{Markup, html};

use super::axis::Axis;
use super::drawing::{Drawing, WIDTH, px};
use crate::history::{Acceptance, Course, Point, Trend};
use crate::metric::display_value;
use crate::report::print::{cut, one_line};
use crate::verdict::Change;

/// Pixels of one course, with its name and the axis below.
const PANEL: f64 = 128.0;
const HEAD: f64 = 24.0;
const LOWER: f64 = 100.0;
/// Metrics that a picture has room for.
const MOST: usize = 40;

/// An SVG file of how the metrics of each baseline went from acceptance to acceptance.
///
/// # Errors
/// Says why there is nothing to draw.
pub fn history_picture(trends: &[Trend]) -> Result<String, String> {
    let drawings = trends.iter().filter_map(trend);
    let drawings: Vec<Drawing> = drawings.collect();
    match drawings.is_empty() {
        true => Err("no acceptance has a value to draw".to_owned()),
        false => Ok(Drawing::stacked(drawings).file()),
    }
}

/// `None` where no acceptance has a value.
fn trend(trend: &Trend) -> Option<Drawing> {
    let courses: Vec<&Course> = trend.metrics.iter().take(MOST).collect();
    if courses.is_empty() {
        return None;
    }
    let kernels = trend.several_kernels();
    let body = html! {
        @for (at, course) in courses.iter().enumerate() {
            g transform=(format!("translate(0 {})", px(PANEL * at as f64))) {
                (panel(course, &trend.acceptances, kernels))
            }
        }
    };
    let description = |course: &&Course| {
        let values: Vec<String> = course
            .values
            .iter()
            .map(|point| {
                point.map_or_else(
                    || "not known".to_owned(),
                    |point| display_value(point.value, course.unit.as_deref()),
                )
            })
            .collect();
        format!("{}: {}", name(course, kernels), values.join(", "))
    };
    let mut caption = String::from(
        "One point for each acceptance, the oldest first. Shaded: the difference between processes or between GPUs when it was locked, the larger of the two, where it is known. A gap: the accepted profile is not available.",
    );
    if trend.metrics.len() > MOST {
        caption.push_str(&format!(
            " {} further metrics are not drawn.",
            trend.metrics.len() - MOST
        ));
    }
    Some(Drawing {
        height: PANEL * courses.len() as f64,
        title: format!("History of {} on {}", trend.variant, trend.gpu),
        description: courses
            .iter()
            .map(description)
            .collect::<Vec<String>>()
            .join("; "),
        caption,
        body,
    })
}

fn name(course: &Course, kernels: bool) -> String {
    if kernels {
        format!("{} {}", course.kernel, course.metric)
    } else {
        course.metric.clone()
    }
}

fn panel(course: &Course, acceptances: &[Acceptance], kernels: bool) -> Markup {
    let unit = course.unit.as_deref();
    let (left, right) = (120.0, WIDTH - 16.0);
    let (low, high) = range(course);
    // A constant value must not look as if it moved.
    let room = ((high - low) * 0.1)
        .max(high.abs() * 0.002)
        .max(f64::MIN_POSITIVE);
    let y = Axis::new((low - room, high + room), (LOWER, HEAD + 6.0));
    let last = acceptances.len().saturating_sub(1).max(1) as f64;
    let x = |at: usize| {
        if acceptances.len() < 2 {
            f64::midpoint(left, right)
        } else {
            left + 14.0 + (right - left - 28.0) * at as f64 / last
        }
    };
    // Neighbours that are all known are one line; an unknown value is a gap in it.
    let known: Vec<(usize, Point)> = course
        .values
        .iter()
        .enumerate()
        .filter_map(|(at, point)| Some((at, (*point)?)))
        .collect();
    let runs: Vec<&[(usize, Point)]> = known
        .chunk_by(|(before, _), (after, _)| before + 1 == *after)
        .collect();
    let line = |run: &[(usize, Point)]| {
        let points = run
            .iter()
            .map(|(at, point)| format!("{} {}", px(x(*at)), px(y.at(point.value))));
        format!("M{}", points.collect::<Vec<String>>().join("L"))
    };
    let latest = known
        .last()
        .map(|(_, point)| display_value(point.value, unit))
        .unwrap_or_default();
    // A constant has one tick.
    let ticks = if high > low { y.ticks(3) } else { vec![low] };
    // Dates must not run into each other.
    let every = (acceptances.len() as f64 * 96.0 / (right - left))
        .ceil()
        .max(1.0) as usize;
    html! {
        text class="name" x="0" y="14" { (one_line(&cut(&name(course, kernels), 40))) }
        text class="figure" x=(px(WIDTH)) y="14" text-anchor="end" { (one_line(&latest)) }
        @for value in ticks {
            path class="grid" d=(format!("M{} {}H{}", px(left), px(y.at(value)), px(right))) {}
            text class="quiet" x=(px(left - 6.0)) y=(px(y.at(value) + 4.0)) text-anchor="end" { (one_line(&display_value(value, unit))) }
        }
        @for pair in runs.windows(2) {
            @if let ([.., (from, a)], [(to, b), ..]) = (pair[0], pair[1]) {
                path class="gap" d=(format!("M{} {}L{} {}", px(x(*from)), px(y.at(a.value)), px(x(*to)), px(y.at(b.value)))) {}
            }
        }
        @for run in &runs {
            path class="trend" d=(line(run)) {}
        }
        @for (at, point) in &known {
            g {
                title { (one_line(&point_text(*point, acceptances.get(*at), unit))) }
                // The noise of a profile of one process is not known, so it has no bar.
                @if point.noise.is_some() {
                    @let [low, high] = ends(point).map(|end| y.at(end));
                    rect class="spread" x=(px(x(*at) - 9.0)) y=(px(high)) width="18" height=(px((low - high).max(1.0))) rx="3" {}
                }
                circle class="dot" cx=(px(x(*at))) cy=(px(y.at(point.value))) r="4.5" {}
            }
        }
        @for (at, acceptance) in acceptances.iter().enumerate() {
            @if at % every == 0 {
                text class="quiet" x=(px(x(at))) y=(px(LOWER + 15.0)) text-anchor=(anchor(at, acceptances.len())) { "#" (at + 1) " " (one_line(acceptance.time.get(..10).unwrap_or(&acceptance.time))) }
            }
        }
    }
}

/// A value with its noise.
fn ends(point: &Point) -> [f64; 2] {
    let noise = point.noise.unwrap_or(0.0);
    [point.value - noise, point.value + noise]
}

/// The least and the greatest of all values with their noise.
fn range(course: &Course) -> (f64, f64) {
    let ends = course.values.iter().flatten().flat_map(ends);
    ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), end| {
        (low.min(end), high.max(end))
    })
}

/// A label at an end must not go beyond it.
fn anchor(at: usize, of: usize) -> &'static str {
    match at {
        _ if of < 2 => "middle",
        0 => "start",
        at if at + 1 == of => "end",
        _ => "middle",
    }
}

fn point_text(point: Point, acceptance: Option<&Acceptance>, unit: Option<&str>) -> String {
    let noise = point.noise.map_or_else(String::new, |noise| {
        format!(" ±{}", Change::Absolute(noise).magnitude(unit))
    });
    let accepted = acceptance.map_or_else(String::new, |accepted| {
        format!(
            " — {}, {}: {}",
            accepted.time, accepted.who, accepted.reason
        )
    });
    format!("{}{noise}{accepted}", display_value(point.value, unit))
}
