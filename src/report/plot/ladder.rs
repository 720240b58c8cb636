//! The variants of a suite by how long they take.

use maud::{Markup, html};

use super::drawing::{Drawing, Size, px, shortened, text};
use super::group::Group;
use super::measured::{Side, class, duration, worst};
use super::scale::with_prefix;
use crate::judge::VariantReport;
use crate::metric::{Role, display_value};
use crate::terms::Tier;
use crate::verdict::Verdict;

/// Variants that a picture has room for.
const MOST: usize = 24;
const ROW: f64 = 46.0;
const BAR: f64 = 14.0;

struct Step<'a> {
    report: &'a VariantReport,
    current: f64,
    reference: Option<f64>,
}

/// What the rows of a ladder share.
struct Scale {
    size: Size,
    /// The longest duration, in seconds.
    longest: f64,
    /// The duration to which speed-ups refer, where they are shown.
    base: Option<f64>,
}

/// Bars of the current durations with a tick at the reference's.
pub(super) fn ladder(group: &Group<'_>, size: Size) -> Result<Drawing, String> {
    let mut steps = steps(group);
    if steps.is_empty() {
        return Err(format!(
            "{}: no ladder, because no duration ({}) was measured",
            group.name(),
            Role::Duration
        ));
    }
    let (base, base_name) = compared_with(group, &steps);
    let several = steps.len() > 1;
    let left_out = steps.len().saturating_sub(MOST);
    steps.truncate(MOST);
    let scale = Scale {
        size,
        longest: steps
            .iter()
            .flat_map(|step| [Some(step.current), step.reference])
            .flatten()
            .fold(0.0, f64::max),
        base: several.then_some(base),
    };
    let body = html! {
        @for (at, step) in steps.iter().enumerate() { (scale.row(step, at as f64 * ROW)) }
    };
    let mode = steps
        .first()
        .map_or("baseline", |step| step.report.mode.reference());
    let mut caption = format!(
        "Bar: the current duration, of one launch of each kernel; the slowest variant first. Tick: the duration of the {mode}."
    );
    let declared = |report: &&VariantReport| report.work.flop.is_some();
    if size == Size::Wide && group.reports.iter().any(declared) {
        caption.push_str(" FLOP/s: the declared FLOP divided by the duration.");
    }
    if several {
        caption.push_str(&format!(" ×: speed-up over {base_name}."));
    }
    if left_out > 0 {
        caption.push_str(&format!(" {left_out} faster variants are not drawn."));
    }
    Ok(Drawing {
        size,
        height: steps.len() as f64 * ROW - (ROW - BAR - 28.0),
        title: format!("Durations of {}", group.name()),
        description: steps
            .iter()
            .map(description)
            .collect::<Vec<String>>()
            .join("; "),
        caption,
        body,
    })
}

/// The variants with a duration, the slowest first.
fn steps<'a>(group: &Group<'a>) -> Vec<Step<'a>> {
    let mut steps: Vec<Step<'_>> = group
        .reports
        .iter()
        .filter_map(|report| {
            Some(Step {
                report,
                current: duration(report, Side::Current)?,
                reference: duration(report, Side::Reference),
            })
        })
        .collect();
    steps.sort_by(|a, b| b.current.total_cmp(&a.current));
    steps
}

impl Scale {
    /// The pixels of a duration.
    fn long(&self, seconds: f64) -> f64 {
        (seconds / self.longest * (self.size.width() - 2.0)).max(1.0)
    }

    /// Duration, rate and speed-up, as text.
    fn figures(&self, step: &Step<'_>) -> String {
        let mut parts = vec![display_value(step.current * 1e9, Some("ns"))];
        if let (Size::Wide, Some(flop)) = (self.size, step.report.work.flop) {
            parts.push(with_prefix(flop as f64 / step.current, "FLOP/s"));
        }
        if let Some(base) = self.base {
            parts.push(format!("×{:.2}", base / step.current));
        }
        parts.join("  ·  ")
    }

    fn row(&self, step: &Step<'_>, top: f64) -> Markup {
        let width = self.size.width();
        let columns = match self.size {
            Size::Wide => 46,
            Size::Narrow => 18,
        };
        let verdict = worst(step.report);
        html! {
            g {
                title { (text(&description(step))) }
                text class="name" x="0" y=(px(top + 13.0)) {
                    (text(&shortened(&step.report.variant.variant, columns)))
                    @if let Some(word) = notable(verdict) {
                        tspan class=(class(verdict)) dx="8" { (mark(verdict)) " " (word) }
                    }
                }
                text class="figure" x=(px(width)) y=(px(top + 13.0)) text-anchor="end" { (self.figures(step)) }
                rect class="rail" x="0" y=(px(top + 20.0)) width=(px(width)) height=(px(BAR)) rx="2" {}
                rect class=(format!("bar {}", class(verdict))) x="0" y=(px(top + 20.0)) width=(px(self.long(step.current))) height=(px(BAR)) rx="2" {}
                @if let Some(reference) = step.reference {
                    path class="tick" d=(format!("M{} {}v{}", px(self.long(reference)), px(top + 16.0), px(BAR + 8.0))) {}
                }
            }
        }
    }
}

/// The duration to which speed-ups refer: that of the control variant, or else of the slowest.
fn compared_with(group: &Group<'_>, steps: &[Step<'_>]) -> (f64, String) {
    let control = group
        .control()
        .and_then(|control| steps.iter().find(|step| step.report.variant == *control));
    control
        .or(steps.first())
        .map_or((1.0, String::new()), |step| {
            (step.current, step.report.variant.variant.clone())
        })
}

fn description(step: &Step<'_>) -> String {
    let mut text = format!(
        "{}: {}",
        step.report.variant.variant,
        display_value(step.current * 1e9, Some("ns"))
    );
    if let Some(reference) = step.reference {
        text.push_str(&format!(
            ", {} {}",
            step.report.mode.reference(),
            display_value(reference * 1e9, Some("ns"))
        ));
    }
    if let Some(flop) = step.report.work.flop {
        text.push_str(&format!(
            ", {}",
            with_prefix(flop as f64 / step.current, "FLOP/s")
        ));
    }
    if step.report.tier != Tier::Counters {
        text.push_str(&format!(", {}", step.report.tier));
    }
    if let Some(verdict) = worst(step.report) {
        text.push_str(&format!(", {}", verdict.as_str()));
    }
    text
}

/// The word of a verdict, unless it is a pass.
pub(super) fn notable(verdict: Option<Verdict>) -> Option<&'static str> {
    verdict
        .filter(|verdict| *verdict != Verdict::Pass)
        .map(Verdict::as_str)
}

/// A mark beside the word, for readers who do not see the colour.
pub(super) fn mark(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Regressed) => "✕",
        Some(Verdict::NotMeasured | Verdict::Inconclusive) => "?",
        Some(Verdict::Improved) => "▲",
        Some(Verdict::Pass) | None => "✓",
    }
}
