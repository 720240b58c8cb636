//! From values to pixels, and the round values that an axis names.

/// A linear axis: the values at its ends, and the pixels at its ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Axis {
    pub fn new(values: (f64, f64), pixels: (f64, f64)) -> Axis {
        // With room for a difference of the two.
        let finite = |value| within(f64::MAX / 8.0, value);
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
        }
    }

    /// Where a value lies, in pixels.
    pub fn at(self, value: f64) -> f64 {
        self.start + (value - self.from) / (self.to - self.from) * (self.end - self.start)
    }

    /// About `count` round values within it.
    pub fn ticks(self, count: usize) -> Vec<f64> {
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
}

/// The nearest number within `most` of 0; 0 for what is no number.
pub(super) fn within(most: f64, value: f64) -> f64 {
    match value.is_nan() {
        true => 0.0,
        false => value.clamp(-most, most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_names_round_values_within_its_ends() {
        let axis = Axis::new((263.0, 281.0), (0.0, 100.0));
        assert_eq!(axis.ticks(4), [265.0, 270.0, 275.0, 280.0]);
        assert_eq!(axis.at(272.0), 50.0);
        let axis = Axis::new((5.0, 5.0), (0.0, 100.0));
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
                let axis = Axis::new((from, to), (0.0, 100.0));
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
