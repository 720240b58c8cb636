//! Counts as people read them.

/// A count with a prefix and its unit: `51.54 GFLOP`, `12`.
pub(crate) fn counted(value: f64, unit: &str) -> String {
    in_scale(value, scale(value), unit)
}

/// Two counts, `0.66 M → 84.45 M`: both in the larger one's scale, unless that leaves too few
/// digits of the smaller one; all digits where they would read the same.
pub(super) fn both_counted(was: f64, is: f64, unit: &str) -> String {
    let large = scale(was.max(is));
    let show = |value: f64| {
        let in_large = value == 0.0 || value / large.0 >= 0.1;
        in_scale(value, if in_large { large } else { scale(value) }, unit)
    };
    let (was_shown, is_shown) = (show(was), show(is));
    if was_shown == is_shown && was != is {
        return format!("{was} → {}", format!("{is} {unit}").trim_end());
    }
    format!("{was_shown} → {is_shown}")
}

fn scale(value: f64) -> (f64, &'static str) {
    [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")]
        .into_iter()
        .find(|(factor, _)| value.abs() >= *factor)
        .unwrap_or((1.0, ""))
}

fn in_scale(value: f64, (factor, prefix): (f64, &str), unit: &str) -> String {
    if value == 0.0 || (factor == 1.0 && value.fract() == 0.0) {
        return format!("{value} {unit}").trim_end().to_owned();
    }
    format!("{:.2} {prefix}{unit}", value / factor)
        .trim_end()
        .to_owned()
}
