//! The samples of a judged metric beside those of its reference: every launch, the value of
//! every process, the noise band, and the limits.

use maud::{Markup, html};

use super::axis::{Axis, within};
use crate::judge::{Comparison, Outcome, VariantReport};
use crate::metric::{Direction, display_value};
use crate::report::print::{cut, one_line};
use crate::report::rows::{look, several_kernels, title, verdict_word};
use crate::report::weight::badness;
use crate::statistics::of_process;
use crate::verdict::{Change, Verdict};

/// Pixels of the picture's width.
const WIDTH: f64 = 1000.0;
/// Pixels of the half that each side takes, of the head, and of the whole with its axis.
const HALF: f64 = 26.0;
const HEAD: f64 = 22.0;
const BOTTOM: f64 = HEAD + 2.0 * HALF;
const STRIP: f64 = BOTTOM + 34.0;
/// Pixels of the names of the sides.
const LEFT: f64 = 74.0;
/// Strips that a page has room for.
const MOST: usize = 6;
/// Launches that a strip draws: more look the same, and a page of a million dots is slow.
const LAUNCHES: usize = 20_000;
/// Processes that a side of a strip draws.
const PROCESSES: usize = 2_000;
/// How to read a strip.
const LEGEND: &str = "Faint dots: launches, one line for each process. Short marks: the value of each process. Tall mark: the value of the side. Shaded: the noise band around the reference. Dashed line: beyond it, the metric fails.";

/// The samples of the first metrics that regressed or are open, for a page.
pub(in crate::report) fn troubled(outcome: &Outcome) -> Option<Markup> {
    // Chosen before any is drawn: there may be tens of thousands.
    let of_verdict = |verdict: Verdict| {
        let reports = outcome.variants.iter();
        let mut found: Vec<(&VariantReport, &Comparison)> = reports
            .flat_map(|report| report.comparisons.iter().map(move |one| (report, one)))
            .filter(move |(_, one)| one.samples.is_some() && one.verdict == Some(verdict))
            .collect();
        // By weight: times first.
        found.sort_by(|(_, one), (_, other)| {
            let is_time = |one: &Comparison| one.is_duration();
            let by_size = badness(other).total_cmp(&badness(one));
            is_time(other).cmp(&is_time(one)).then(by_size)
        });
        found.into_iter().take(MOST)
    };
    let strips: Vec<Strip> = of_verdict(Verdict::Regressed)
        .chain(of_verdict(Verdict::Inconclusive))
        .take(MOST)
        .filter_map(|(report, comparison)| {
            let mut strip = Strip::of(report, comparison)?;
            if outcome.variants.len() > 1 {
                strip.name = one_line(&format!("{} of {}", strip.name, title(report)));
            }
            Some(strip)
        })
        .collect();
    let texts: Vec<String> = strips.iter().map(Strip::description).collect();
    let height = px(STRIP * strips.len() as f64 - 14.0);
    let width = px(WIDTH);
    let title = "Samples of the metrics that regressed or are open";
    let figure = html! {
        figure {
            h2 { (title) }
            div class="scroll" tabindex="0" role="region" aria-label=(title) {
                svg class="plot" viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) role="img" aria-label=(title) {
                    title { (title) }
                    desc { (one_line(&texts.join("; "))) }
                    // Strips, each below the other.
                    @for (at, strip) in strips.iter().enumerate() {
                        g transform=(format!("translate(0 {})", px(STRIP * at as f64))) { (strip.body()) }
                    }
                }
            }
            figcaption class="quiet" { (LEGEND) }
        }
    };
    (!strips.is_empty()).then_some(figure)
}

/// One comparison: the words beside it, and its samples as elements of SVG.
struct Strip {
    name: String,
    verdict: Option<Verdict>,
    summary: String,
    samples: Markup,
}

impl Strip {
    /// `None` where no samples are kept, or a value cannot be drawn.
    fn of(report: &VariantReport, comparison: &Comparison) -> Option<Strip> {
        let samples = comparison.samples.as_ref()?;
        let (before, now) = (comparison.reference?.value, comparison.current?.value);
        let moved = |size: f64| match comparison.change {
            Some(Change::RelativePercent(_)) => before * (1.0 + size / 100.0),
            _ => before + size,
        };
        let band = comparison.band.map(|band| [moved(-band), moved(band)]);
        let limits: Vec<f64> = match (comparison.change, comparison.threshold) {
            (Some(_), Some(threshold)) if comparison.direction == Direction::Equal => {
                vec![moved(-threshold.abs()), moved(threshold.abs())]
            }
            (Some(_), Some(threshold)) => vec![moved(threshold)],
            _ => Vec::new(),
        };
        let every = samples.reference.iter().chain(&samples.current).flatten();
        let values = every.copied().chain([before, now]);
        let values = values.chain(band.into_iter().flatten());
        let values: Vec<f64> = values.chain(limits.iter().copied()).collect();
        if values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let room = ((high - low) * 0.03).max(high.abs() * 1e-9);
        let x = Axis::new((low - room, high + room), (LEFT, WIDTH - 4.0));
        let launches = samples.reference.iter().chain(&samples.current);
        let one_of = launches.map(Vec::len).sum::<usize>().div_ceil(LAUNCHES);
        let thinned = match one_of {
            0 | 1 => String::new(),
            one_of => format!(", 1 launch of {one_of} drawn"),
        };
        let unit = comparison.unit.as_deref();
        let name = match several_kernels(report) {
            true => format!("{} {}", comparison.kernel, comparison.metric),
            false => comparison.metric.clone(),
        };
        let change = comparison.change.map(|change| change.display(unit));
        let side = |processes: &[Vec<f64>], value: f64, at: usize, name: &str, class: &str| {
            let top = HEAD + HALF * at as f64;
            let (dots, marks) = processes_paths(processes, one_of.max(1), top, x);
            html! {
                g class=(class) {
                    text class="quiet" x=(px(LEFT - 8.0)) y=(px(top + HALF / 2.0 + 4.0)) text-anchor="end" { (name) }
                    path class="launches" d=(dots) {}
                    path class="processes" d=(marks) {}
                    path class="value" d=(format!("M{} {}v{}", px(x.at(value)), px(top + 1.0), px(HALF - 2.0))) {}
                }
            }
        };
        let samples = html! {
            rect class="rail" x=(px(LEFT)) y=(px(HEAD)) width=(px(WIDTH - 4.0 - LEFT)) height=(px(2.0 * HALF)) {}
            @if let Some([from, to]) = band.map(|ends| ends.map(|end| x.at(end))) {
                rect class="band" x=(px(from)) y=(px(HEAD)) width=(px((to - from).max(1.0))) height=(px(2.0 * HALF)) {}
            }
            @for limit in &limits {
                path class="limit" d=(format!("M{} {}V{}", px(x.at(*limit)), px(HEAD - 3.0), px(BOTTOM + 3.0))) {}
            }
            (side(&samples.reference, before, 0, report.mode.reference(), "was"))
            (side(&samples.current, now, 1, "current", look(comparison.verdict).class))
            @for value in x.ticks(3) {
                text class="quiet" x=(px(x.at(value))) y=(px(BOTTOM + 15.0)) text-anchor=(text_anchor(x.at(value))) { (one_line(&display_value(value, unit))) }
            }
        };
        Some(Strip {
            name: one_line(&name),
            verdict: comparison.verdict,
            summary: one_line(&format!(
                "{} → {}, {}{thinned}",
                display_value(before, unit),
                display_value(now, unit),
                change.unwrap_or_else(|| "–".to_owned())
            )),
            samples,
        })
    }

    fn description(&self) -> String {
        let word = verdict_word(self.verdict);
        format!("{}: {} ({word})", self.name, self.summary)
    }

    /// Elements of SVG, as high as [`STRIP`] less its margin.
    fn body(&self) -> Markup {
        html! {
            title { (self.description()) }
            text class="name" x="0" y="13" {
                (cut(&self.name, 60))
                tspan class=(look(self.verdict).class) dx="8" { (look(self.verdict).mark) " " (verdict_word(self.verdict)) }
            }
            text class="figure" x=(px(WIDTH)) y="13" text-anchor="end" { (self.summary) }
            (self.samples)
        }
    }
}

/// A label near an end must not go beyond it.
fn text_anchor(at: f64) -> &'static str {
    match at {
        at if at < LEFT + WIDTH / 12.0 => "start",
        at if at > WIDTH - WIDTH / 12.0 => "end",
        _ => "middle",
    }
}

/// The dots of launches, one of so many, and the marks of processes.
fn processes_paths(processes: &[Vec<f64>], one_of: usize, top: f64, x: Axis) -> (String, String) {
    let processes = processes.get(..PROCESSES).unwrap_or(processes);
    let count = processes.len().max(1) as f64;
    let high = (HALF / count).max(4.0);
    let (mut dots, mut marks) = (String::new(), String::new());
    for (at, launches) in processes.iter().enumerate() {
        if launches.is_empty() {
            continue;
        }
        let line = top + (at as f64 + 0.5) * HALF / count;
        for launch in launches.iter().step_by(one_of) {
            dots.push_str(&format!("M{} {}h0", px(x.at(*launch)), px(line)));
        }
        let (x, y) = (px(x.at(of_process(launches))), px(line - high / 2.0));
        marks.push_str(&format!("M{x} {y}v{}", px(high)));
    }
    (dots, marks)
}

/// A coordinate: a tenth of a pixel is not seen.
fn px(value: f64) -> String {
    // SVG has neither infinity nor numbers that are none; nobody sees what lies so far outside.
    const FAR: f64 = 1e6;
    let rounded = (within(FAR, value) * 10.0).round() / 10.0;
    format!("{rounded}")
}
