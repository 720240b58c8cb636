//! Proposed tolerances for a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use comfy_table::{ContentArrangement, Table, presets};

use super::print::one_line;
use crate::metric::{Tolerance, display_value};
use crate::tolerances::{Gate, LeftOut, MetricTolerances, Noise, VariantTolerances};

const COLUMNS: [&str; 9] = [
    "metric",
    "compared with",
    "value",
    "noise",
    "GPUs",
    "tolerance",
    "open",
    "proposed",
    "then open",
];

/// A table for each variant, the gates that cannot fail, and lines for the configuration.
pub fn text(variants: &[VariantTolerances], left_out: &[LeftOut], toml: &str) -> String {
    let mut text = String::new();
    for one in variants {
        let (variant, gpu) = (one.variant.to_string(), one_line(&one.gpu));
        let _ = writeln!(text, "{} on {gpu}", one_line(&variant));
        text.push_str(&table(one));
        text.push('\n');
    }
    for (compared, of) in [
        ("side by side", against as fn(&MetricTolerances) -> &Gate),
        ("against the baselines", stored),
    ] {
        if let Some(line) = whole(variants, compared, of) {
            let _ = writeln!(text, "{line}");
        }
    }
    for (title, kernels) in [
        (
            "Gates that cannot fail: even the value zero is no regression",
            dead as fn(&Gate) -> &[String],
        ),
        ("Gates that allow half of the value to be lost", half),
    ] {
        let lines = gates_that(variants, kernels);
        if !lines.is_empty() {
            let _ = writeln!(text, "\n{title}\n{}", lines.join("\n"));
        }
    }
    if !left_out.is_empty() {
        let _ = writeln!(text, "\nNot used");
    }
    for one in left_out {
        let folder = one.folder.as_ref();
        let folder = folder.map_or_else(String::new, |it| format!(" in {}", it.display()));
        let line = format!("{}{folder}: {}", one.variant, one.why);
        let _ = writeln!(text, "  {}", one_line(&line));
    }
    if !toml.is_empty() {
        let _ = write!(
            text,
            "\nLines for config.toml where the proposal differs from it (if a table [metric.NAME.on] exists, change its lines):\n\n{toml}"
        );
    }
    text
}

fn against(metric: &MetricTolerances) -> &Gate {
    &metric.against
}

fn stored(metric: &MetricTolerances) -> &Gate {
    &metric.stored
}

fn table(one: &VariantTolerances) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(COLUMNS);
    // Most reasons are those of several metrics.
    let mut notes: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for metric in &one.metrics {
        let unit = metric.unit.as_deref();
        let value = metric.value.map(|value| display_value(value, unit));
        for (compared, gate) in [("base", &metric.against), ("baseline", &metric.stored)] {
            let gpus = gate.between_gpus;
            let proposed = gate.proposed.map(|one| size(one, unit));
            table.add_row([
                one_line(&metric.metric),
                compared.to_owned(),
                one_line(&shown(value.clone())),
                noise(
                    gpus.map_or(gate.noise, |gpus| gpus.noise),
                    gate.configured,
                    unit,
                ),
                shown(gpus.map(|gpus| gpus.gpus.to_string())),
                size(gate.configured, unit),
                share(gate.open_percent),
                shown(proposed),
                share(gate.proposed_open_percent),
            ]);
            if let Some(why) = &gate.why {
                let metrics = notes.entry((compared, why)).or_default();
                metrics.push(&metric.metric);
            }
        }
    }
    let lines = table.lines().map(|line| format!("{}\n", line.trim_end()));
    let notes = notes.iter().map(|((compared, why), metrics)| {
        let note = format!(
            "compared with the {compared}: {}: {why}",
            metrics.join(", ")
        );
        format!(" {}\n", one_line(&note))
    });
    lines.chain(notes).collect()
}

fn shown(value: Option<String>) -> String {
    value.unwrap_or_else(|| "–".to_owned())
}

/// The expected share of open checks, in percent.
fn share(percent: Option<f64>) -> String {
    shown(percent.map(|percent| match percent {
        percent if percent < 0.005 => "<0.01 %".to_owned(),
        percent => format!("{percent:.2} %"),
    }))
}

fn size(tolerance: Tolerance, unit: Option<&str>) -> String {
    match tolerance {
        Tolerance::RelativePercent(value) => format!("{value} %"),
        Tolerance::Absolute(value) if unit == Some("%") => format!("{value} pt"),
        Tolerance::Absolute(value) => one_line(&display_value(value, unit)),
    }
}

/// Two digits are more than it is known to.
fn noise(noise: Option<Noise>, of: Tolerance, unit: Option<&str>) -> String {
    shown(noise.map(|noise| {
        let sigma = noise.sigma;
        let number = match sigma {
            sigma if (1e-4..1.0).contains(&sigma) => {
                let decimals = (1.0 - sigma.log10().floor()) as usize;
                format!("{sigma:.decimals$}")
            }
            sigma if sigma > 0.0 && sigma < 1e-4 => format!("{sigma:.1e}"),
            sigma => format!("{sigma:.2}"),
        };
        match (of, unit) {
            (Tolerance::RelativePercent(_), _) => format!("{number} %"),
            (Tolerance::Absolute(_), Some("%")) => format!("{number} pt"),
            (Tolerance::Absolute(_), _) => one_line(&display_value(sigma, unit)),
        }
    }))
}

/// The expected share of checks of all variants in which any metric stays open; `None` where that is not
/// known of some metric.
fn whole(
    variants: &[VariantTolerances],
    compared: &str,
    of: fn(&MetricTolerances) -> &Gate,
) -> Option<String> {
    let gates = variants.iter().flat_map(|one| one.metrics.iter().map(of));
    // What never varies stays never open.
    let gates: Vec<&Gate> = gates
        .filter(|gate| gate.noise.is_some_and(|noise| noise.sigma > 0.0))
        .collect();
    let open = |share: fn(&Gate) -> Option<f64>| -> Option<f64> {
        let decided: Option<Vec<f64>> = gates
            .iter()
            .map(|gate| Some(1.0 - share(gate)? / 100.0))
            .collect();
        Some(100.0 * (1.0 - decided?.iter().product::<f64>()))
    };
    let (now, then) = (
        open(|gate| gate.open_percent)?,
        open(|gate| gate.proposed_open_percent)?,
    );
    (!gates.is_empty()).then(|| {
        format!(
            "Unchanged checks of all of these {compared} that are expected to stay open: {} as configured, {} as proposed",
            share(Some(now)),
            share(Some(then))
        )
    })
}

fn dead(gate: &Gate) -> &[String] {
    &gate.cannot_fail
}

fn half(gate: &Gate) -> &[String] {
    &gate.allows_half
}

/// A line for each gate that has such kernels.
fn gates_that(variants: &[VariantTolerances], such: fn(&Gate) -> &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    for one in variants {
        for metric in &one.metrics {
            let unit = metric.unit.as_deref();
            for (compared, gate) in [("base", &metric.against), ("baseline", &metric.stored)] {
                let kernels = match (such(gate).len(), metric.kernels) {
                    (0, _) => continue,
                    (_, 1) => String::new(),
                    (count, of) => format!(" in {count} of {of} kernels"),
                };
                let value = shown(metric.value.map(|value| display_value(value, unit)));
                let line = format!(
                    "{} {}, compared with the {compared}{kernels}: value {value}, tolerance {}",
                    one.variant,
                    metric.metric,
                    size(gate.configured, unit)
                );
                lines.push(format!("  {}", one_line(&line)));
            }
        }
    }
    lines
}
