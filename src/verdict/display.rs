//! Values, changes and tolerances as people read them.

use super::rule::{Change, Verdict};
use crate::config::Tolerance;

impl Verdict {
    /// As the reports spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Improved => "improved",
            Verdict::Regressed => "regressed",
            Verdict::Inconclusive => "inconclusive",
            Verdict::NotMeasured => "not measured",
        }
    }
}

impl Change {
    /// `-3.10 %` is relative, `-1.20 pt` is absolute.
    pub fn display(self, unit: Option<&str>) -> String {
        let magnitude = self.magnitude(unit);
        // What rounds to nothing has no direction.
        let sign = match self.value() {
            value if value < 0.0 && magnitude.contains(|c: char| ('1'..='9').contains(&c)) => '-',
            _ => '+',
        };
        format!("{sign}{magnitude}")
    }

    /// The size of the change, without its sign.
    pub fn magnitude(self, unit: Option<&str>) -> String {
        match self {
            Change::RelativePercent(percent) => format!("{:.2} %", percent.abs()),
            Change::Absolute(value) if unit == Some("%") => format!("{:.2} pt", value.abs()),
            Change::Absolute(value) => display_value(value.abs(), unit),
        }
    }

    /// The same kind of change, of another size.
    pub fn with(self, value: f64) -> Change {
        match self {
            Change::RelativePercent(_) => Change::RelativePercent(value),
            Change::Absolute(_) => Change::Absolute(value),
        }
    }

    fn value(self) -> f64 {
        match self {
            Change::RelativePercent(value) | Change::Absolute(value) => value,
        }
    }
}

impl Tolerance {
    /// In the terms of the change that it bounds.
    pub fn display(self, unit: Option<&str>) -> String {
        match self {
            Tolerance::RelativePercent(percent) => format!("{percent} %"),
            Tolerance::Absolute(value) if unit == Some("%") => format!("{value} pt"),
            Tolerance::Absolute(value) => display_value(value, unit),
        }
    }
}

/// A value with its unit, scaled for people: times to us and ms, bytes to MB.
pub fn display_value(value: f64, unit: Option<&str>) -> String {
    let steps: &[(f64, &str)] = match unit {
        Some("ns") => &[(1e9, "s"), (1e6, "ms"), (1e3, "us")],
        Some("byte") => &[(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")],
        Some("byte/s") => &[(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s")],
        Some("hz") => &[(1e9, "GHz"), (1e6, "MHz")],
        _ => &[],
    };
    let scaled = steps.iter().find(|(factor, _)| value.abs() >= *factor);
    let (value, unit) = match scaled {
        Some((factor, symbol)) => (value / factor, *symbol),
        None => (value, unit.unwrap_or("")),
    };
    let whole = value.fract() == 0.0 || value.abs() >= 1e4;
    let number = if scaled.is_none() && whole && unit != "%" {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    };
    format!("{number} {unit}").trim_end().to_owned()
}
