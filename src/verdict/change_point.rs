//! Where the level of a series changed.
//!
//! The method is E-divisive: D. S. Matteson and N. A. James, "A Nonparametric Approach for Multiple
//! Change Point Analysis of Multivariate Data", Journal of the American Statistical Association 109
//! (2014), 334–345. The point that separates the values best, by the energy distance of those before
//! and after it, is a change if a permutation test says so; then the parts on both sides are searched
//! in turn. D. Daly et al., "The Use of Change Point Detection to Identify Software Performance
//! Regressions in a Continuous Integration System", ICPE 2020, use it for benchmarks. As there, the
//! second part of a split reaches to the end of its segment.
//!
//! Of values that come from one distribution, in any order and of any shape, a series has a change
//! with at most the stated chance: the permutation test is exact.

use std::ops::Range;

/// A level has at least so many values: one value is an outlier, and no level.
const FEWEST_OF_LEVEL: usize = 2;
/// Of a longer series the latest values are searched, since the work grows with the square.
const MOST_VALUES: usize = 200;
/// Permutations for each chance in which a series may exceed the observed one by chance.
const EXCEEDED: usize = 10;
/// Sums in another order differ by less than this share.
const ROUNDING: f64 = 1e-9;

/// The fewest values that are searched, so that a step differs from chance at a level of 1 %: of
/// the 924 ways to choose 6 of 12 values, 2 are as extreme as a step in the middle.
pub const FEWEST_FOR_CHANGE: usize = 12;

/// The places of the first values of new levels, ascending. `false_alarms` is the chance, between 0
/// and 1, that a series without a change has one. A series that is not finite, or shorter than
/// [`FEWEST_FOR_CHANGE`], has none.
pub fn change_points(values: &[f64], false_alarms: f64) -> Vec<usize> {
    if values.len() < FEWEST_FOR_CHANGE || values.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    let skipped = values.len().saturating_sub(MOST_VALUES);
    let values = &values[skipped..];
    let mut changes: Vec<usize> = Vec::new();
    // Without this bound a rounding error could make it endless.
    while changes.len() < values.len() / FEWEST_OF_LEVEL {
        let segments = segments(values.len(), &changes);
        let Some(best) = best_split(values, &segments) else {
            break;
        };
        if !is_significant(values, &segments, best.size, false_alarms) {
            break;
        }
        changes.push(best.at);
        changes.sort_unstable();
    }
    changes.into_iter().map(|at| at + skipped).collect()
}

/// The parts between changes.
fn segments(count: usize, changes: &[usize]) -> Vec<Range<usize>> {
    let starts = std::iter::once(0).chain(changes.iter().copied());
    let ends = changes.iter().copied().chain([count]);
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

#[derive(Clone, Copy)]
struct Split {
    at: usize,
    size: f64,
}

/// The split of any segment whose parts are farthest apart; `None` where no values differ.
fn best_split(values: &[f64], segments: &[Range<usize>]) -> Option<Split> {
    let splits = segments.iter().filter_map(|segment| {
        let of_segment = split(&values[segment.clone()])?;
        Some(Split {
            at: of_segment.at + segment.start,
            ..of_segment
        })
    });
    splits.reduce(|best, other| if other.size > best.size { other } else { best })
}

/// The best split of one segment, by the scaled energy distance of its parts: `mn / (m + n)` times
/// (twice the mean distance between the parts, less the mean distances within each).
fn split(values: &[f64]) -> Option<Split> {
    let distances = |of: f64, to: &[f64]| to.iter().map(|other| (of - other).abs()).sum::<f64>();
    let count = values.len();
    let all: f64 = (1..count)
        .map(|at| distances(values[at], &values[..at]))
        .sum();
    let (mut before, mut after) = (0.0, all);
    let mut best: Option<Split> = None;
    for at in 1..=count.saturating_sub(FEWEST_OF_LEVEL) {
        let (left, right) = values.split_at(at);
        let moved = left[at - 1];
        before += distances(moved, &left[..at - 1]);
        after -= distances(moved, right);
        if at < FEWEST_OF_LEVEL {
            continue;
        }
        let (m, n) = (at as f64, (count - at) as f64);
        let between = (all - before - after) / (m * n);
        let within = before / (m * m) + after / (n * n);
        let size = m * n / (m + n) * 2.0 * (between - within);
        if size > best.map_or(0.0, |best| best.size) {
            best = Some(Split { at, size });
        }
    }
    best
}

/// Whether values in a random order are rarely split so well: the order within each segment is
/// permuted, and the best split of all of them compared.
fn is_significant(values: &[f64], segments: &[Range<usize>], size: f64, false_alarms: f64) -> bool {
    // The p value is (1 + exceeded) / (1 + permutations), and must be at most the chance.
    let permutations = (EXCEEDED as f64 / false_alarms).ceil() as usize - 1;
    let mut random = SplitMix(0x5eed);
    let mut shuffled = values.to_vec();
    let mut exceeded = 0;
    for _ in 0..permutations {
        for segment in segments {
            random.shuffle(&mut shuffled[segment.clone()]);
        }
        let by_chance = best_split(&shuffled, segments).map_or(0.0, |split| split.size);
        if by_chance >= size * (1.0 - ROUNDING) {
            exceeded += 1;
        }
        // No later permutation can change the answer.
        if exceeded >= EXCEEDED {
            return false;
        }
    }
    true
}

/// A generator whose numbers are the same in every run: G. L. Steele, D. Lea and C. H. Flood, "Fast
/// Splittable Pseudorandom Number Generators", OOPSLA 2014.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Every order is equally likely (R. A. Fisher and F. Yates, 1938).
    fn shuffle(&mut self, values: &mut [f64]) {
        for at in (1..values.len()).rev() {
            let below = u128::from(self.next()) * (at as u128 + 1);
            values.swap(at, (below >> 64) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANCE: f64 = 0.01;

    /// A number between 0 and 1.
    fn uniform(random: &mut SplitMix) -> f64 {
        (random.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// By Box and Muller (1958).
    fn normal(random: &mut SplitMix) -> f64 {
        let radius = (-2.0 * (1.0 - uniform(random)).ln()).sqrt();
        radius * (std::f64::consts::TAU * uniform(random)).cos()
    }

    #[test]
    fn a_history_without_a_change_has_one_in_at_most_one_of_a_hundred() {
        type Draw = fn(&mut SplitMix) -> f64;
        // The last has few values, and many that are equal.
        let shapes: [(&str, Draw); 3] = [
            ("normal", normal),
            ("heavy tails", |random| {
                let spread = (0..3).map(|_| normal(random).powi(2)).sum::<f64>() / 3.0;
                normal(random) / spread.sqrt()
            }),
            ("rounded", |random| (2.0 * uniform(random)).round()),
        ];
        const HISTORIES: usize = 400;
        for (seed, (shape, draw)) in shapes.into_iter().enumerate() {
            let mut random = SplitMix(seed as u64);
            let false_alarms = (0..HISTORIES)
                .filter(|at| {
                    let count = FEWEST_FOR_CHANGE + at % 14;
                    let values: Vec<f64> = (0..count).map(|_| draw(&mut random)).collect();
                    !change_points(&values, CHANCE).is_empty()
                })
                .count();
            // 4 are expected at most; of a true 1 %, 13 or more come in 2 of 10,000 tests.
            assert!(false_alarms < 13, "{shape}: {false_alarms} of {HISTORIES}");
        }
    }

    #[test]
    fn steps_are_found_where_they_are() {
        let mut random = SplitMix(7);
        let mut level = |count: usize, at: f64| -> Vec<f64> {
            (0..count).map(|_| at + 0.1 * normal(&mut random)).collect()
        };
        let series = [level(12, 1.0), level(15, 2.0), level(10, 1.5)].concat();
        assert_eq!(change_points(&series, CHANCE), [12, 27]);
        let short = [vec![270.0; 6], vec![280.0; 6]].concat();
        assert_eq!(change_points(&short, CHANCE), [6]);
        // The same values are not a step in another order.
        let mixed: Vec<f64> = (0..12).map(|at| 270.0 + f64::from(at % 2)).collect();
        assert_eq!(change_points(&mixed, CHANCE), [0; 0]);
    }

    #[test]
    fn one_outlier_too_few_values_and_equal_values_are_no_change() {
        let mut outlier = vec![1.0; 40];
        outlier[39] = 9.0;
        assert_eq!(change_points(&outlier, CHANCE), [0; 0]);
        assert_eq!(
            change_points(&[1.0, 1.0, 1.0, 9.0, 9.0, 9.0], CHANCE),
            [0; 0]
        );
        assert_eq!(change_points(&[3.0; 50], CHANCE), [0; 0]);
        let mut unknown = vec![1.0; 20];
        unknown[3] = f64::NAN;
        assert_eq!(change_points(&unknown, CHANCE), [0; 0]);
    }

    #[test]
    fn of_a_long_series_the_latest_values_are_searched() {
        let series: Vec<f64> = (0..400).map(|at| f64::from(u8::from(at >= 350))).collect();
        assert_eq!(change_points(&series, CHANCE), [350]);
    }
}
