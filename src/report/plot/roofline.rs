//! The roofline of a suite's variants: their rate over their arithmetic intensity, under ceilings
//! that were measured with them.

use maud::{Markup, html};

use super::drawing::{Drawing, Size, px, shortened, text};
use super::group::Group;
use super::ladder::{mark, notable};
use super::measured::{
    Side, class, dram_bytes, dram_ceiling, duration, measured, tensor_ceiling, tensor_counter,
    worst,
};
use super::scale::{Axis, with_prefix};
use crate::judge::VariantReport;
use crate::metric::Role;

/// Variants that a picture has room for.
const MOST: usize = 24;
/// Pixels between two labels.
const LABEL_LINE: f64 = 15.0;
/// Pixels a character of a label is wide, about.
const CHARACTER: f64 = 6.6;

/// FLOP per DRAM byte, and FLOP per second.
#[derive(Clone, Copy)]
struct Place {
    intensity: f64,
    rate: f64,
}

struct Point<'a> {
    report: &'a VariantReport,
    reference: Option<Place>,
    current: Place,
}

/// The highest rate of a unit, as each variant's counters give it: the largest and the smallest.
#[derive(Clone, Copy)]
struct Ceiling {
    most: f64,
    least: f64,
}

impl Ceiling {
    fn of(group: &Group<'_>, of: fn(&VariantReport, Side) -> Option<f64>) -> Option<Ceiling> {
        let found: Vec<f64> = group
            .reports
            .iter()
            .filter_map(|report| of(report, Side::Current))
            .filter(|value| value.is_finite() && *value > 0.0)
            .collect();
        let most = found.iter().copied().fold(f64::NAN, f64::max);
        let least = found.iter().copied().fold(f64::NAN, f64::min);
        (!found.is_empty()).then_some(Ceiling { most, least })
    }

    /// The range of the variants, if it is wide enough to be seen.
    fn range(self, unit: &str) -> String {
        if self.most - self.least < 0.02 * self.most {
            String::new()
        } else {
            format!(
                " (the largest; the variants give {} to {})",
                with_prefix(self.least, unit),
                with_prefix(self.most, unit)
            )
        }
    }
}

/// Points of reference and current under the DRAM's ceiling and the tensor pipe's.
pub(super) fn roofline(group: &Group<'_>, size: Size) -> Result<Drawing, String> {
    let mut points: Vec<Point<'_>> = group
        .reports
        .iter()
        .filter_map(|report| {
            Some(Point {
                report,
                reference: place(report, Side::Reference),
                current: place(report, Side::Current)?,
            })
        })
        .collect();
    if points.is_empty() {
        return Err(format!(
            "{}: no roofline, because {}",
            group.name(),
            why_not(group)
        ));
    }
    let left_out = points.len().saturating_sub(MOST);
    points.truncate(MOST);
    let dram = Ceiling::of(group, dram_ceiling);
    let tensor = Ceiling::of(group, tensor_ceiling);
    let frame = Frame::around(&points, dram, tensor, size);
    let body = html! {
        (frame.grid(size))
        (frame.roof(dram, tensor))
        (frame.points(&points))
    };
    let mut caption = String::from(
        "Filled dot: current; ring: the reference; a line connects the two. FLOP are declared in the configuration; time and DRAM bytes are measured.",
    );
    if let Some(dram) = dram {
        caption.push_str(&format!(
            " DRAM ceiling{}: (bytes read + written) / duration / {}.",
            dram.range("B/s"),
            Role::DramThroughput
        ));
    }
    let counter = group
        .reports
        .iter()
        .find_map(|report| tensor_counter(report));
    if let (Some(tensor), Some(counter)) = (tensor, counter) {
        caption.push_str(&format!(
            " Ceiling of the tensor pipe at the measured clock, for the instructions that these kernels issue{}: tensor FLOP / duration / {counter}. It is not the peak of a data sheet.",
            tensor.range("FLOP/s")
        ));
    }
    if left_out > 0 {
        caption.push_str(&format!(" {left_out} variants are not drawn."));
    }
    Ok(Drawing {
        size,
        height: frame.height,
        title: format!("Roofline of {}", group.name()),
        description: points
            .iter()
            .map(description)
            .collect::<Vec<String>>()
            .join("; "),
        caption,
        body,
    })
}

fn place(report: &VariantReport, side: Side) -> Option<Place> {
    let flop = report.work.flop.filter(|flop| *flop > 0)? as f64;
    Some(Place {
        intensity: measured(flop / dram_bytes(report, side)?)?,
        rate: measured(flop / duration(report, side)?)?,
    })
}

/// The first thing that is missing.
fn why_not(group: &Group<'_>) -> String {
    let all = |lacks: fn(&VariantReport) -> bool| group.reports.iter().all(|report| lacks(report));
    if !group.tier.has_counters() {
        format!("{} do not include DRAM counters", group.tier)
    } else if all(|report| report.work.flop.is_none()) {
        "the suite declares no FLOP (`work = { flop = … }`)".to_owned()
    } else if all(|report| duration(report, Side::Current).is_none()) {
        format!("no duration ({}) was measured", Role::Duration)
    } else {
        format!(
            "no metric reads {} and {}",
            Role::DramBytesRead,
            Role::DramBytesWritten
        )
    }
}

fn description(point: &Point<'_>) -> String {
    let place = |place: Place| {
        format!(
            "{} at {}",
            with_prefix(place.rate, "FLOP/s"),
            with_prefix(place.intensity, "FLOP/B")
        )
    };
    let mut text = format!("{}: {}", point.report.variant.variant, place(point.current));
    if let Some(reference) = point.reference {
        text.push_str(&format!(
            ", {} {}",
            point.report.mode.reference(),
            place(reference)
        ));
    }
    if let Some(verdict) = worst(point.report) {
        text.push_str(&format!(", {}", verdict.as_str()));
    }
    text
}

/// The axes and where they lie.
struct Frame {
    x: Axis,
    y: Axis,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    height: f64,
    least: f64,
    most: f64,
}

impl Frame {
    fn around(
        points: &[Point<'_>],
        dram: Option<Ceiling>,
        tensor: Option<Ceiling>,
        size: Size,
    ) -> Frame {
        let (height, left) = match size {
            Size::Wide => (360.0, 62.0),
            Size::Narrow => (300.0, 44.0),
        };
        let (right, top, bottom) = (size.width() - 8.0, 22.0, height - 40.0);
        let places = points
            .iter()
            .flat_map(|point| [Some(point.current), point.reference])
            .flatten();
        let ridge = match (dram, tensor) {
            (Some(dram), Some(tensor)) => measured(tensor.most / dram.most),
            _ => None,
        };
        let xs: Vec<f64> = places
            .clone()
            .map(|place| place.intensity)
            .chain(ridge)
            .collect();
        let ys: Vec<f64> = places
            .map(|place| place.rate)
            .chain(tensor.map(|tensor| tensor.most))
            .collect();
        let span = |values: &[f64], below: f64, above: f64| {
            (
                values.iter().copied().fold(f64::INFINITY, f64::min) / below,
                values.iter().copied().fold(0.0, f64::max) * above,
            )
        };
        let (least, most) = span(&xs, 3.5, 3.5);
        let (low, high) = span(&ys, 2.5, 1.6);
        Frame {
            x: Axis::logarithmic((least, most), (left, right)),
            y: Axis::logarithmic((low, high), (bottom, top)),
            left,
            right,
            top,
            bottom,
            height,
            least,
            most,
        }
    }

    fn grid(&self, size: Size) -> Markup {
        let unit = |value: f64, unit: &str| match size {
            Size::Wide => with_prefix(value, unit),
            Size::Narrow => with_prefix(value, "").replace(' ', ""),
        };
        html! {
            @for value in self.y.ticks(5) {
                path class="grid" d=(format!("M{} {}H{}", px(self.left), px(self.y.at(value)), px(self.right))) {}
                text class="quiet" x=(px(self.left - 6.0)) y=(px(self.y.at(value) + 4.0)) text-anchor="end" { (unit(value, "").trim_end()) }
            }
            @for value in self.x.ticks(6) {
                path class="grid" d=(format!("M{} {}V{}", px(self.x.at(value)), px(self.top), px(self.bottom))) {}
                text class="quiet" x=(px(self.x.at(value))) y=(px(self.bottom + 16.0)) text-anchor="middle" { (unit(value, "").trim_end()) }
            }
            text class="quiet" x="0" y="12" { "FLOP per second" }
            text class="quiet" x=(px(self.right)) y=(px(self.bottom + 34.0)) text-anchor="end" { "FLOP per byte of DRAM traffic" }
        }
    }

    fn roof(&self, dram: Option<Ceiling>, tensor: Option<Ceiling>) -> Markup {
        let inside = |value: f64| value.clamp(self.top, self.bottom);
        let flat = tensor.map(|tensor| self.y.at(tensor.most));
        // Along the slope the rate is bandwidth times intensity, so both ends follow from one.
        let slope = dram.map(|dram| {
            let at = |intensity: f64| (self.x.at(intensity), self.y.at(intensity * dram.most));
            let lowest = self.least.max(self.rate_at(self.bottom) / dram.most);
            let ceiling = tensor.map_or_else(|| self.rate_at(self.top), |tensor| tensor.most);
            (at(lowest), at((ceiling / dram.most).min(self.most)))
        });
        html! {
            @if let Some(((x1, y1), (x2, y2))) = slope {
                path class="roof" d=(format!("M{} {}L{} {}", px(x1), px(inside(y1)), px(x2), px(inside(y2)))) {}
                @let turn = (y2 - y1).atan2(x2 - x1).to_degrees();
                @let (x, y) = (x1 + (x2 - x1) * 0.45, y1 + (y2 - y1) * 0.45);
                @if let Some(dram) = dram {
                    text class="roof-name" text-anchor="middle" transform=(format!("translate({} {}) rotate({})", px(x), px(y - 7.0), px(turn))) { "DRAM " (with_prefix(dram.most, "B/s")) }
                }
            }
            @if let (Some(y), Some(tensor)) = (flat, tensor) {
                @let start = slope.map_or(self.left, |(_, (x, _))| x);
                path class="roof" d=(format!("M{} {}H{}", px(start), px(y), px(self.right))) {}
                text class="roof-name" x=(px(self.right)) y=(px(y - 7.0)) text-anchor="end" { "tensor pipe " (with_prefix(tensor.most, "FLOP/s")) }
            }
        }
    }

    /// The rate at a height in pixels.
    fn rate_at(&self, y: f64) -> f64 {
        let (low, high) = (self.y.at(1.0), self.y.at(10.0));
        10f64.powf((y - low) / (high - low))
    }

    fn points(&self, points: &[Point<'_>]) -> Markup {
        let at = |place: Place| (self.x.at(place.intensity), self.y.at(place.rate));
        let labels = self.labels(points);
        html! {
            @for (point, label) in points.iter().zip(&labels) {
                @let verdict = worst(point.report);
                @let (x, y) = at(point.current);
                g class=(class(verdict)) {
                    title { (text(&description(point))) }
                    @if let Some((from_x, from_y)) = point.reference.map(at) {
                        (arrow((from_x, from_y), (x, y)))
                        circle class="ring" cx=(px(from_x)) cy=(px(from_y)) r="6.5" {}
                    }
                    circle class="dot" cx=(px(x)) cy=(px(y)) r="4" {}
                    @if (label.y - y).abs() > 8.0 {
                        path class="leader" d=(format!("M{} {}L{} {}", px(x), px(y), px(label.x - label.side * 3.0), px(label.y))) {}
                    }
                    text class="name" x=(px(label.x)) y=(px(label.y + 4.0)) text-anchor=(label.anchor()) {
                        (text(&label.text))
                        @if let Some(word) = notable(verdict) {
                            tspan dx="6" { (mark(verdict)) " " (word) }
                        }
                    }
                }
            }
        }
    }

    /// The places of the names: beside their points, moved down where they would cover each other.
    fn labels(&self, points: &[Point<'_>]) -> Vec<Label> {
        let mut order: Vec<usize> = (0..points.len()).collect();
        order.sort_by(|a, b| points[*b].current.rate.total_cmp(&points[*a].current.rate));
        let mut placed: Vec<(usize, Label)> = Vec::new();
        for at in order {
            let point = &points[at];
            let (x, y) = (
                self.x.at(point.current.intensity),
                self.y.at(point.current.rate),
            );
            let name = shortened(&point.report.variant.variant, 22);
            let word = notable(worst(point.report)).map_or(0, |word| word.chars().count() + 3);
            let long = (name.chars().count() + word) as f64 * CHARACTER;
            let side = if x + 13.0 + long > self.right {
                -1.0
            } else {
                1.0
            };
            let mut label = Label {
                x: x + 13.0 * side,
                y,
                side,
                long,
                text: name,
            };
            // Each step goes below one that is placed, so there are no more steps than those.
            for _ in 0..placed.len() {
                let Some((_, other)) = placed.iter().find(|(_, other)| other.covers(&label)) else {
                    break;
                };
                label.y = other.y + LABEL_LINE;
            }
            placed.push((at, label));
        }
        placed.sort_by_key(|(at, _)| *at);
        placed.into_iter().map(|(_, label)| label).collect()
    }
}

struct Label {
    x: f64,
    y: f64,
    side: f64,
    long: f64,
    text: String,
}

impl Label {
    fn anchor(&self) -> &'static str {
        if self.side > 0.0 { "start" } else { "end" }
    }

    fn ends(&self) -> (f64, f64) {
        let other = self.x + self.long * self.side;
        (self.x.min(other), self.x.max(other))
    }

    fn covers(&self, other: &Label) -> bool {
        let ((left, right), (other_left, other_right)) = (self.ends(), other.ends());
        left < other_right && other_left < right && (self.y - other.y).abs() < LABEL_LINE - 0.01
    }
}

/// A line with a head, where there is room for one between the two marks.
fn arrow(from: (f64, f64), to: (f64, f64)) -> Markup {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let long = dx.hypot(dy);
    if long < 20.0 {
        return html! {};
    }
    let (ux, uy) = (dx / long, dy / long);
    let start = (from.0 + ux * 7.0, from.1 + uy * 7.0);
    let tip = (to.0 - ux * 6.0, to.1 - uy * 6.0);
    let wing = |side: f64| {
        (
            tip.0 - ux * 6.0 - uy * 3.5 * side,
            tip.1 - uy * 6.0 + ux * 3.5 * side,
        )
    };
    let (left, right) = (wing(1.0), wing(-1.0));
    html! {
        path class="way" d=(format!(
            "M{} {}L{} {}M{} {}L{} {}L{} {}",
            px(start.0), px(start.1), px(tip.0), px(tip.1),
            px(left.0), px(left.1), px(tip.0), px(tip.1), px(right.0), px(right.1)
        )) {}
    }
}
