//! Values, changes and tolerances as people read them.

use crate::metric::Tolerance;

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

/// Decimals that a scaled value is shown with, and the most of them to distinguish two values.
const DECIMALS: usize = 2;
const MOST_DECIMALS: usize = 17;
/// Below this a plain count is read digit by digit.
const COUNTED_OUT: f64 = 1e10;

/// A value with its unit, scaled for people: times to us and ms, bytes to MB, counts of many digits
/// to G.
pub fn display_value(value: f64, unit: Option<&str>) -> String {
    Scale::of(value, unit).show(value, DECIMALS)
}

/// Two values of one unit, each scaled for people. Where they differ they read differently.
pub fn display_values(one: f64, other: f64, unit: Option<&str>) -> (String, String) {
    let show = |decimals| {
        let show = |value| Scale::of(value, unit).show(value, decimals);
        (show(one), show(other))
    };
    (DECIMALS..=MOST_DECIMALS)
        .map(show)
        .find(|(one_shown, other_shown)| one == other || one_shown != other_shown)
        .unwrap_or_else(|| show(DECIMALS))
}

/// What a value is divided by, and the unit of what is left.
struct Scale<'a> {
    factor: f64,
    prefix: &'static str,
    unit: &'a str,
}

impl<'a> Scale<'a> {
    fn of(value: f64, unit: Option<&'a str>) -> Scale<'a> {
        let steps: &[(f64, &'static str)] = match unit {
            Some("ns") => &[(1e9, "s"), (1e6, "ms"), (1e3, "us")],
            Some("byte") => &[
                (1e18, "EB"),
                (1e15, "PB"),
                (1e12, "TB"),
                (1e9, "GB"),
                (1e6, "MB"),
                (1e3, "kB"),
            ],
            Some("byte/s") => &[(1e15, "PB/s"), (1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s")],
            Some("hz") => &[(1e12, "THz"), (1e9, "GHz"), (1e6, "MHz")],
            Some("%") => &[],
            // Of these a prefix stands beside the unit: 68.72 G inst.
            _ if value.abs() >= COUNTED_OUT => &[(1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G")],
            _ => &[],
        };
        let unit = unit.unwrap_or("");
        let own_name = matches!(unit, "ns" | "byte" | "byte/s" | "hz");
        match steps.iter().find(|(factor, _)| value.abs() >= *factor) {
            Some((factor, prefix)) => Scale {
                factor: *factor,
                prefix,
                unit: if own_name { "" } else { unit },
            },
            None => Scale {
                factor: 1.0,
                prefix: "",
                unit,
            },
        }
    }

    fn show(&self, value: f64, decimals: usize) -> String {
        let scaled = value / self.factor;
        let size = scaled.abs();
        let unscaled = self.factor == 1.0;
        let whole = value.fract() == 0.0 || (value.abs() >= 1e4 && decimals == DECIMALS);
        let number = match () {
            // Past what a prefix helps with, and below what decimals show.
            () if size >= 1e6 && !(unscaled && size < COUNTED_OUT) => {
                format!("{scaled:.decimals$e}")
            }
            () if size > 0.0 && size < 0.5 * 10f64.powi(-(DECIMALS as i32)) => {
                format!("{scaled:.decimals$e}")
            }
            () if unscaled && whole && self.unit != "%" => format!("{scaled:.0}"),
            () => format!("{scaled:.decimals$}"),
        };
        [number.as_str(), self.prefix, self.unit]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_and_small_values_keep_few_digits() {
        for (value, unit, shown) in [
            (271_192.7, Some("ns"), "271.19 us"),
            (6.5e14, Some("ns"), "650000.00 s"),
            (6.5e17, Some("ns"), "6.50e8 s"),
            (650_000_000_000.0, Some("byte"), "650.00 GB"),
            (6.5e20, Some("byte"), "650.00 EB"),
            (1.72e9, Some("hz"), "1.72 GHz"),
            (18_382_848.0, Some("inst"), "18382848 inst"),
            (68_719_476_736.0, Some("inst"), "68.72 G inst"),
            (68_719_476_736.0, None, "68.72 G"),
            (1e300, None, "1.00e282 E"),
            (84_446_203.0, Some(""), "84446203"),
            (-84_446_203.0, Some("sector"), "-84446203 sector"),
            (97.83, Some("%"), "97.83 %"),
            (100.0, Some("%"), "100.00 %"),
            (0.0, Some("%"), "0.00 %"),
            (0.000_4, Some("%"), "4.00e-4 %"),
            (0.25, Some("register/thread"), "0.25 register/thread"),
            (0.0, Some("byte"), "0 byte"),
        ] {
            assert_eq!(display_value(value, unit), shown);
        }
    }

    #[test]
    fn two_values_that_differ_read_differently() {
        for (one, other, unit) in [
            (68_719_476_736.0, 68_719_476_737.0, Some("inst")),
            (271_192.0, 271_192.5, Some("ns")),
            (123_456.25, 123_456.5, None),
            (97.831, 97.832, Some("%")),
            (1.0, 1.0 + f64::EPSILON, Some("%")),
            (1e-9, 1.000_000_1e-9, Some("byte")),
        ] {
            let (shown, other_shown) = display_values(one, other, unit);
            assert_ne!(shown, other_shown);
        }
        let same = display_values(68_719_476_736.0, 68_719_476_736.0, None);
        assert_eq!(same, ("68.72 G".to_owned(), "68.72 G".to_owned()));
        let far = display_values(271_192.0, 865_490.0, Some("ns"));
        assert_eq!(far, ("271.19 us".to_owned(), "865.49 us".to_owned()));
    }
}
