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
        let (from, mut to) = values;
        if !(to > from) {
            to = from + 1.0;
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
        Axis {
            logarithmic: true,
            ..Axis::linear((values.0.log10(), values.1.log10()), pixels)
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
        let powers = self.from.floor() as i32..=self.to.ceil() as i32;
        powers
            .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)))
            .filter(|value| {
                let place = value.log10();
                place >= self.from - 1e-9 && place <= self.to + 1e-9
            })
            .collect()
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
    fn amounts_are_written_with_a_prefix_and_three_digits() {
        assert_eq!(with_prefix(253.4e12, "FLOP/s"), "253 TFLOP/s");
        assert_eq!(with_prefix(5.104e12, "B/s"), "5.1 TB/s");
        assert_eq!(with_prefix(12.0, "FLOP/B"), "12 FLOP/B");
    }
}
