//! The samples of a judged metric beside those of its reference: every launch, the location of
//! every process, the noise band, and the limits.

use maud::{Markup, html};

use super::drawing::{Drawing, Size, px, shortened, text};
use super::group::Group;
use super::ladder::mark;
use super::measured::class;
use super::scale::Axis;
use crate::judge::{Comparison, VariantReport};
use crate::metric::{Direction, display_value};
use crate::report::rows::verdict_word;
use crate::statistics::location;
use crate::verdict::{Change, Verdict};

/// Steps into which the width of a strip is divided: finer than any screen.
pub(in crate::report) const STEPS: u16 = 4095;
/// Pixels of the half that each side takes, and of the whole with its head and its axis.
const HALF: f64 = 26.0;
const HEAD: f64 = 22.0;
const FOOT: f64 = 20.0;
const STRIP: f64 = HEAD + 2.0 * HALF + FOOT + 14.0;
/// Strips that a picture has room for.
const MOST: usize = 60;
/// Launches that a strip draws: more look the same, and a page of a million dots is slow.
const LAUNCHES: usize = 20_000;
/// Processes that a side of a strip draws.
const PROCESSES: usize = 2_000;

/// One process: where it lies, and where its launches do.
pub(in crate::report) struct Process {
    pub location: u16,
    pub launches: Vec<u16>,
}

/// The geometry of one comparison, in steps of the width, and the words beside it.
pub(in crate::report) struct Strip {
    pub name: String,
    pub verdict: Option<Verdict>,
    pub summary: String,
    pub reference_name: &'static str,
    pub reference: Vec<Process>,
    pub current: Vec<Process>,
    /// The value of each side.
    pub values: [u16; 2],
    /// The ends of the noise band around the reference.
    pub band: Option<[u16; 2]>,
    /// Beyond these the metric fails.
    pub limits: Vec<u16>,
    pub ticks: Vec<(u16, String)>,
}

impl Strip {
    /// `None` where no samples are kept, or a value cannot be drawn.
    pub fn of(report: &VariantReport, comparison: &Comparison, kernels: bool) -> Option<Strip> {
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
        let drawn: Vec<f64> = every
            .copied()
            .chain([before, now])
            .chain(band.into_iter().flatten())
            .chain(limits.iter().copied())
            .collect();
        if drawn.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let low = drawn.iter().copied().fold(f64::INFINITY, f64::min);
        let high = drawn.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let room = ((high - low) * 0.03).max(high.abs() * 1e-9);
        let axis = Axis::linear((low - room, high + room), (0.0, f64::from(STEPS)));
        let step = |value: f64| axis.at(value).round().clamp(0.0, f64::from(STEPS)) as u16;
        let one_of = one_launch_of(&[&samples.reference, &samples.current]);
        let processes = |of: &[Vec<f64>]| {
            of.iter()
                .take(PROCESSES)
                .filter_map(|launches| {
                    let drawn = launches.iter().step_by(one_of);
                    Some(Process {
                        location: step(location(launches)?),
                        launches: drawn.map(|value| step(*value)).collect(),
                    })
                })
                .collect()
        };
        let thinned = match one_of {
            1 => String::new(),
            one_of => format!(", 1 launch of {one_of} drawn"),
        };
        let unit = comparison.unit.as_deref();
        let name = if kernels {
            format!("{} {}", comparison.kernel, comparison.metric)
        } else {
            comparison.metric.clone()
        };
        let change = comparison
            .change
            .map_or_else(|| "–".to_owned(), |change| change.display(unit));
        Some(Strip {
            name: text(&name),
            verdict: comparison.verdict,
            summary: text(&format!(
                "{} → {}, {change}{thinned}",
                display_value(before, unit),
                display_value(now, unit)
            )),
            reference_name: report.mode.reference(),
            reference: processes(&samples.reference),
            current: processes(&samples.current),
            values: [step(before), step(now)],
            band: band.map(|ends| ends.map(step)),
            limits: limits.iter().map(|limit| step(*limit)).collect(),
            ticks: axis
                .ticks(3)
                .into_iter()
                .map(|value| (step(value), text(&display_value(value, unit))))
                .collect(),
        })
    }

    /// The same, with the subject in its name.
    pub fn within(self, subject: &str) -> Strip {
        Strip {
            name: format!("{} of {subject}", self.name),
            ..self
        }
    }

    /// Elements of SVG, as high as [`STRIP`] less its margin.
    fn body(&self, size: Size) -> Markup {
        let left = match size {
            Size::Wide => 74.0,
            Size::Narrow => 62.0,
        };
        let wide = size.width() - left - 4.0;
        let x = |step: u16| left + f64::from(step) / f64::from(STEPS) * wide;
        let bottom = HEAD + 2.0 * HALF;
        // Beside the name on a phone there is room for the verdict alone.
        let (columns, end) = match size {
            Size::Wide => (60, None),
            Size::Narrow => (32, Some(px(size.width()))),
        };
        html! {
            title { (text(&format!("{}: {} ({})", self.name, self.summary, verdict_word(self.verdict)))) }
            text class="name" x="0" y="13" {
                (text(&shortened(&self.name, columns)))
                tspan class=(class(self.verdict)) dx=[end.is_none().then_some("8")] x=[end.as_ref()] text-anchor=[end.as_ref().map(|_| "end")] { (mark(self.verdict)) " " (verdict_word(self.verdict)) }
            }
            @if size == Size::Wide {
                text class="figure" x=(px(size.width())) y="13" text-anchor="end" { (text(&self.summary)) }
            }
            rect class="rail" x=(px(left)) y=(px(HEAD)) width=(px(wide)) height=(px(2.0 * HALF)) {}
            @if let Some([from, to]) = self.band {
                rect class="band" x=(px(x(from))) y=(px(HEAD)) width=(px((x(to) - x(from)).max(1.0))) height=(px(2.0 * HALF)) {}
            }
            @for limit in &self.limits {
                path class="limit" d=(format!("M{} {}V{}", px(x(*limit)), px(HEAD - 3.0), px(bottom + 3.0))) {}
            }
            @for (at, (processes, name)) in [(&self.reference, self.reference_name), (&self.current, "current")].into_iter().enumerate() {
                @let top = HEAD + HALF * at as f64;
                g class=(if at == 0 { "was" } else { class(self.verdict) }) {
                    text class="quiet" x=(px(left - 8.0)) y=(px(top + HALF / 2.0 + 4.0)) text-anchor="end" { (name) }
                    path class="launches" d=(launches(processes, top, &x)) {}
                    path class="processes" d=(locations(processes, top, &x)) {}
                    path class="value" d=(format!("M{} {}v{}", px(x(self.values[at])), px(top + 1.0), px(HALF - 2.0))) {}
                }
            }
            @for (step, value) in &self.ticks {
                text class="quiet" x=(px(x(*step))) y=(px(bottom + 15.0)) text-anchor=(anchor(*step)) { (value) }
            }
        }
    }
}

/// Of how many launches one is drawn: 1 but for very many.
fn one_launch_of(sides: &[&[Vec<f64>]]) -> usize {
    let launches: usize = sides.iter().copied().flatten().map(Vec::len).sum();
    launches.div_ceil(LAUNCHES).max(1)
}

/// A label near an end must not go beyond it.
fn anchor(step: u16) -> &'static str {
    match step {
        step if step < STEPS / 12 => "start",
        step if step > STEPS - STEPS / 12 => "end",
        _ => "middle",
    }
}

/// The line of a process within its side.
fn line(at: usize, of: usize, top: f64) -> f64 {
    top + (at as f64 + 0.5) * HALF / of.max(1) as f64
}

fn launches(processes: &[Process], top: f64, x: &impl Fn(u16) -> f64) -> String {
    let mut path = String::new();
    for (at, process) in processes.iter().enumerate() {
        let y = px(line(at, processes.len(), top));
        for launch in &process.launches {
            path.push_str(&format!("M{} {y}h0", px(x(*launch))));
        }
    }
    path
}

fn locations(processes: &[Process], top: f64, x: &impl Fn(u16) -> f64) -> String {
    let high = (HALF / processes.len().max(1) as f64).max(4.0);
    let mut path = String::new();
    for (at, process) in processes.iter().enumerate() {
        let y = line(at, processes.len(), top) - high / 2.0;
        path.push_str(&format!(
            "M{} {}v{}",
            px(x(process.location)),
            px(y),
            px(high)
        ));
    }
    path
}

/// How to read a strip.
pub(in crate::report) const LEGEND: &str = "Faint dots: launches, one line for each process. Short marks: the location of each process. Tall mark: the value of the side. Shaded: the noise band around the reference. Dashed line: beyond it, the metric fails.";

/// A picture of strips, each below the other.
pub(in crate::report) fn strips(strips: &[Strip], size: Size, title: &str) -> Drawing {
    let body = html! {
        @for (at, strip) in strips.iter().enumerate() {
            g transform=(format!("translate(0 {})", px(STRIP * at as f64))) { (strip.body(size)) }
        }
    };
    let description = |strip: &Strip| {
        format!(
            "{}: {}, {}",
            strip.name,
            strip.summary,
            verdict_word(strip.verdict)
        )
    };
    Drawing {
        size,
        height: STRIP * strips.len() as f64 - 14.0,
        title: title.to_owned(),
        description: strips
            .iter()
            .map(description)
            .collect::<Vec<String>>()
            .join("; "),
        caption: LEGEND.to_owned(),
        body,
    }
}

/// Every judged metric of a group.
pub(super) fn sheet(group: &Group<'_>, size: Size) -> Result<Drawing, String> {
    let mut drawings = Vec::new();
    let mut left = MOST;
    for report in &group.reports {
        let kernels = crate::report::rows::several_kernels(report);
        let of_report: Vec<Strip> = report
            .comparisons
            .iter()
            .filter_map(|comparison| Strip::of(report, comparison, kernels))
            .take(left)
            .collect();
        left -= of_report.len();
        if !of_report.is_empty() {
            drawings.push(strips(
                &of_report,
                size,
                &format!("Samples of {}", crate::report::rows::title(report)),
            ));
        }
    }
    if drawings.is_empty() {
        return Err(format!(
            "{}: no samples, because no metric is judged by its size",
            group.name()
        ));
    }
    let mut sheet = Drawing::stacked(&drawings);
    if left == 0 {
        sheet
            .caption
            .push_str(&format!(" Only the first {MOST} are drawn."));
    }
    Ok(sheet)
}
