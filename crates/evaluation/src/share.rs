//! How often something happened.

use std::iter::Sum;

/// Confidence of [`Share::bound`].
const CONFIDENCE: f64 = 0.95;

/// How many of so many checks had a property.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    pub hits: usize,
    pub of: usize,
}

impl Share {
    /// Counts one more check.
    pub fn add(&mut self, hit: bool) {
        self.hits += usize::from(hit);
        self.of += 1;
    }

    /// In percent; NaN of no check.
    pub fn percent(self) -> f64 {
        100.0 * self.hits as f64 / self.of as f64
    }

    /// The one-sided upper bound of the share, in percent, at 95 %, for independent checks (Clopper and
    /// Pearson, 1934).
    pub fn bound(self) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        // Halved until an f64 has no number between.
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            match self.at_most(middle) > 1.0 - CONFIDENCE {
                true => low = middle,
                false => high = middle,
            }
        }
        100.0 * high
    }

    /// How likely so few hits are, if each check is one with this chance.
    fn at_most(self, chance: f64) -> f64 {
        if self.hits >= self.of {
            return 1.0;
        }
        let mut term = self.of as f64 * (-chance).ln_1p();
        let mut sum = term.exp();
        for hit in 0..self.hits {
            let ways = (self.of - hit) as f64 / (hit + 1) as f64;
            term += (ways * chance / (1.0 - chance)).ln();
            sum += term.exp();
        }
        sum
    }
}

impl Sum for Share {
    fn sum<I: Iterator<Item = Share>>(all: I) -> Share {
        all.fold(Share::default(), |sum, one| Share {
            hits: sum.hits + one.hits,
            of: sum.of + one.of,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_that_of_clopper_and_pearson() {
        // The first is 1 - 0.05^(1/100); all by sums of exact binomial coefficients.
        for (hits, of, percent) in [
            (0, 100, 2.951_305),
            (1, 100, 4.655_981),
            (3, 3000, 0.258_251),
            (50, 100, 58.637_829),
            (100, 100, 100.0),
        ] {
            let found = Share { hits, of }.bound();
            assert!((found - percent).abs() < 1e-4, "{hits} of {of}: {found}");
        }
    }
}
