//! The values as OpenMetrics text 1.0 (github.com/prometheus/OpenMetrics, "OpenMetrics, a
//! cloud-native, highly scalable metrics protocol"). Gauges alone, without times, so that a reader of
//! Prometheus' text format 0.0.4, such as the textfile collector of node_exporter, reads it too.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::print::one_line;
use super::values::{Value, bounded_name, measured, origin_word};
use crate::finding::Severity;
use crate::judge::Outcome;
use crate::metric::{base_unit, spelled};
use crate::verdict::Verdict;

/// What every name begins with.
const PREFIX: &str = "sparsek_gate";

/// Characters of a metric in a name.
const LONGEST: usize = 100;

/// The samples of one name.
struct Family {
    unit: Option<String>,
    help: String,
    /// Labels, and the value in the unit.
    samples: Vec<(Vec<(&'static str, String)>, f64)>,
}

pub(super) fn render(outcome: &Outcome) -> String {
    let mut families = of_run(outcome);
    for value in measured(outcome) {
        add(&mut families, &value, outcome);
    }
    let mut text = String::new();
    for (name, family) in &families {
        let _ = writeln!(text, "# TYPE {name} gauge");
        if let Some(unit) = &family.unit {
            let _ = writeln!(text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(text, "# HELP {name} {}", escaped(&family.help));
        for (labels, value) in &family.samples {
            let labels: Vec<String> = labels
                .iter()
                .map(|(key, text)| format!("{key}=\"{}\"", escaped(text)))
                .collect();
            let _ = writeln!(text, "{name}{{{}}} {value}", labels.join(","));
        }
    }
    text.push_str("# EOF\n");
    text
}

/// How the run ended.
fn of_run(outcome: &Outcome) -> BTreeMap<String, Family> {
    let origin = || ("origin", origin_word(outcome).to_owned());
    let verdicts = Verdict::WORST_FIRST.into_iter().map(|verdict| {
        let labels = vec![("verdict", verdict.as_str().to_owned()), origin()];
        (labels, outcome.count(verdict) as f64)
    });
    let severities = [(Severity::Deny, "deny"), (Severity::Warn, "warn")];
    let findings = severities.into_iter().map(|(severity, word)| {
        let of = outcome.findings.iter();
        let count = of.filter(|finding| finding.severity == severity).count();
        (vec![("severity", word.to_owned()), origin()], count as f64)
    });
    let family = |help: &str, samples| Family {
        unit: None,
        help: help.to_owned(),
        samples,
    };
    let code = f64::from(outcome.exit_code() as u8);
    let code = family(
        "What the check exited with: 0 if every gate passed.",
        vec![(vec![origin()], code)],
    );
    let verdicts = family("Judged metrics by verdict.", verdicts.collect());
    let findings = family("Findings by severity.", findings.collect());
    BTreeMap::from([
        (format!("{PREFIX}_exit_code"), code),
        (format!("{PREFIX}_comparisons"), verdicts),
        (format!("{PREFIX}_findings"), findings),
    ])
}

fn add(families: &mut BTreeMap<String, Family>, value: &Value<'_>, outcome: &Outcome) {
    let (report, comparison) = (value.report, value.comparison);
    let base = base_unit(comparison.unit.as_deref());
    let (unit, divisor) = match base {
        Some((unit, divisor)) => (Some(unit), divisor),
        None => (None, 1.0),
    };
    let help = match &unit {
        Some(unit) => format!("Measured values of the metric, in {unit}."),
        None => "Measured values of the metric.".to_owned(),
    };
    let labels = [
        ("suite", report.variant.suite.as_str()),
        ("variant", &report.variant.variant),
        ("kernel", &value.kernel),
        ("metric", &comparison.metric),
        ("counter", &comparison.counter),
        ("tier", report.tier.as_str()),
        ("gpu", &report.gpu),
        ("origin", origin_word(outcome)),
    ];
    let labels = labels.map(|(key, text)| (key, one_line(text)));
    let name = name(families, &comparison.metric, unit.as_deref());
    let family = families.entry(name).or_insert_with(|| Family {
        unit,
        help,
        samples: Vec::new(),
    });
    family
        .samples
        .push((labels.to_vec(), value.value / divisor));
}

/// The name of a metric's family, which ends with its unit. Names that are one when they are spelled
/// so share a family, and their label `metric` distinguishes them; a family of another unit, or one
/// of the run, gets a number.
fn name(families: &BTreeMap<String, Family>, metric: &str, unit: Option<&str>) -> String {
    let stem = format!("{PREFIX}_{}", spelled(&bounded_name(metric, LONGEST)));
    let numbers = std::iter::once(String::new()).chain((2..).map(|number| format!("_{number}")));
    let mut names = numbers.map(|number| match unit {
        Some(unit) => format!("{stem}{number}_{unit}"),
        None => format!("{stem}{number}"),
    });
    let free = |name: &String| {
        let of_values = |family: &Family| {
            let first = family.samples.first();
            first.is_some_and(|(labels, _)| labels.iter().any(|(key, _)| *key == "metric"))
        };
        let known = families.get(name);
        known.is_none_or(|family| family.unit.as_deref() == unit && of_values(family))
    };
    names.find(free).unwrap_or(stem)
}

/// A label's value, or a help text: `\`, `"` and the end of a line are escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
