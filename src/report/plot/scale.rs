//! From values to pixels, and the round values that an axis names.

/// An axis: the values at its ends, the pixels at its ends, and how it divides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
    logarithmic: bool,
}

impl Axis {
    /// Equal differences are equally long.
    pub fn linear(values: (f64, f64), pixels: (f64, f64)) -> Axis {
        let (from, mut to) = (finite(values.0), finite(values.1));
        if !(to > from) {
            // One more is no other number where the value is large.
            to = from + from.abs().max(1.0);
        }
        Axis {
            from,
            to,
            start: pixels.0,
            end: pixels.1,
            logarithmic: false,
        }
    }

    /// Equal factors are equally long; both values are positive.
    pub fn logarithmic(values: (f64, f64), pixels: (f64, f64)) -> Axis {
        let power = |value: f64| value.clamp(f64::MIN_POSITIVE, f64::MAX).log10();
        Axis {
            logarithmic: true,
            ..Axis::linear((power(values.0), power(values.1)), pixels)
        }
    }

    /// Where a value lies, in pixels.
    pub fn at(self, value: f64) -> f64 {
        let value = if self.logarithmic {
            value.log10()
        } else {
            value
        };
        self.start + (value - self.from) / (self.to - self.from) * (self.end - self.start)
    }

    /// Round values within it: about `count` of a linear axis, of a logarithmic one the powers of
    /// ten, with their doubles and halves where there is room.
    pub fn ticks(self, count: usize) -> Vec<f64> {
        if self.logarithmic {
            return self.powers();
        }
        let rough = (self.to - self.from) / count.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * power)
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        if !(step.is_normal() && self.from.abs() < step * 1e15) {
            // The values are too close to each other, or to zero, for round ones between them.
            return vec![self.from, self.to];
        }
        let first = (self.from / step).ceil();
        (0..=count * 3)
            .map(|at| (first + at as f64) * step)
            .take_while(|value| *value <= self.to + step * 1e-9)
            .collect()
    }

    fn powers(self) -> Vec<f64> {
        let factors: &[f64] = if self.to - self.from > 2.5 {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        // No number has another power of ten.
        let power = |place: f64| place.clamp(-324.0, 309.0) as i32;
        let powers = power(self.from.floor())..=power(self.to.ceil());
        powers
            .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)))
            .filter(|value| {
                let place = value.log10();
                place >= self.from - 1e-9 && place <= self.to + 1e-9
            })
            .collect()
    }
}

/// The nearest number that leaves room for a difference of two.
fn finite(value: f64) -> f64 {
    const MOST: f64 = f64::MAX / 8.0;
    if value.is_nan() {
        0.0
    } else {
        value.clamp(-MOST, MOST)
    }
}

/// A rate or an amount with the prefix that leaves it below a thousand: `253 TFLOP/s`.
pub(super) fn with_prefix(value: f64, unit: &str) -> String {
    let steps = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (scaled, prefix) = steps
        .into_iter()
        .find(|(factor, _)| value.abs() >= *factor)
        .map_or((value, ""), |(factor, prefix)| (value / factor, prefix));
    format!("{} {prefix}{unit}", three_digits(scaled))
}

/// About three significant digits, without zeros that say nothing.
pub(super) fn three_digits(value: f64) -> String {
    if !(value.abs() < 1e6) {
        return format!("{value:.2e}");
    }
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_names_round_values_within_its_ends() {
        let axis = Axis::linear((263.0, 281.0), (0.0, 100.0));
        assert_eq!(axis.ticks(4), [265.0, 270.0, 275.0, 280.0]);
        assert_eq!(axis.at(272.0), 50.0);
        let axis = Axis::logarithmic((30.0, 600.0), (0.0, 100.0));
        assert_eq!(axis.ticks(4), [50.0, 100.0, 200.0, 500.0]);
        let axis = Axis::linear((5.0, 5.0), (0.0, 100.0));
        assert!(axis.at(5.0).is_finite());
    }

    #[test]
    fn no_values_make_an_axis_endless() {
        const INF: f64 = f64::INFINITY;
        let odd = [
            f64::NAN,
            -INF,
            f64::MIN,
            -1e300,
            -1.0,
            -0.0,
            0.0,
            5e-324,
            1e-300,
            1.0,
            1.0 + f64::EPSILON,
            1e16,
            1e16 + 2.0,
            1e300,
            f64::MAX,
            INF,
        ];
        for from in odd {
            for to in odd {
                for axis in [Axis::linear, Axis::logarithmic] {
                    let axis = axis((from, to), (0.0, 100.0));
                    let ticks = axis.ticks(5);
                    assert!(ticks.len() < 2_000, "{from:e} {to:e}: {}", ticks.len());
                    for value in ticks {
                        assert!(value.is_finite(), "{from:e} {to:e}: {value}");
                        assert!(axis.at(value).is_finite(), "{from:e} {to:e}: {value}");
                    }
                }
            }
        }
    }

    #[test]
    fn amounts_are_written_with_a_prefix_and_three_digits() {
        assert_eq!(with_prefix(253.4e12, "FLOP/s"), "253 TFLOP/s");
        assert_eq!(with_prefix(5.104e12, "B/s"), "5.1 TB/s");
        assert_eq!(with_prefix(12.0, "FLOP/B"), "12 FLOP/B");
    }
}
