//! How far all accepted changes together went, and whether that is more than a budget.

use super::{Change, Scale};
use crate::metric::{Direction, Tolerance};

/// How a value differs from that of an anchor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// The value against the anchor's, in the terms of the budget. Where a ratio was asked for and
    /// there is none, the difference in the metric's unit.
    pub change: Change,
    /// How much worse that is: negative where it is better.
    pub worse: f64,
    /// How much worse it may be; zero where there is no ratio.
    pub budget: f64,
}

impl Distance {
    /// Of a value from that of the anchor.
    pub fn of(direction: Direction, budget: Tolerance, anchor: f64, value: f64) -> Distance {
        let (scale, size) = Scale::of(budget);
        let is_ratio = scale == Scale::Relative && anchor > 0.0 && value > 0.0;
        let (change, budget) = match scale {
            Scale::Relative if is_ratio => (
                Change::RelativePercent((value / anchor - 1.0) * 100.0),
                size,
            ),
            Scale::Relative => (Change::Absolute(value - anchor), 0.0),
            Scale::Absolute => (Change::Absolute(value - anchor), size),
        };
        let worse = match direction {
            Direction::Lower => change.value(),
            Direction::Higher => -change.value(),
            // Twice as fast is as far away as half as fast.
            Direction::Equal if is_ratio => (value / anchor).max(anchor / value) * 100.0 - 100.0,
            Direction::Equal => change.value().abs(),
        };
        Distance {
            change,
            worse,
            budget,
        }
    }

    /// Whether it is worse by more than the budget. A value that is no number is.
    pub fn is_beyond(&self) -> bool {
        !(self.worse <= self.budget)
    }

    /// Whether it is so also if the value is better by the half-width of a band, in the terms of
    /// the change. Without a band nothing is shown.
    pub fn is_shown_beyond(&self, band: Option<f64>) -> bool {
        band.is_some_and(|band| self.worse - band > self.budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE: Tolerance = Tolerance::RelativePercent(5.0);

    #[test]
    fn only_what_is_worse_uses_the_budget() {
        let beyond = |direction, budget, anchor, value| {
            Distance::of(direction, budget, anchor, value).is_beyond()
        };
        for (direction, worse, better) in [
            (Direction::Lower, 106.0, 50.0),
            (Direction::Higher, 94.0, 200.0),
        ] {
            assert!(beyond(direction, FIVE, 100.0, worse));
            assert!(!beyond(direction, FIVE, 100.0, better));
        }
        assert!(!beyond(Direction::Lower, FIVE, 100.0, 104.9));
        assert!(beyond(Direction::Equal, FIVE, 100.0, 94.0));
        assert!(beyond(Direction::Equal, FIVE, 100.0, 106.0));
        let points = Tolerance::Absolute(2.0);
        assert!(beyond(Direction::Higher, points, 40.0, 37.9));
        assert!(!beyond(Direction::Higher, points, 40.0, 38.1));
    }

    #[test]
    fn without_a_ratio_or_a_number_nothing_is_within_the_budget() {
        let beyond =
            |anchor, value| Distance::of(Direction::Lower, FIVE, anchor, value).is_beyond();
        assert!(!beyond(0.0, 0.0));
        assert!(beyond(0.0, 1.0));
        assert!(beyond(100.0, f64::NAN));
    }

    #[test]
    fn beyond_is_shown_where_the_noise_does_not_reach_the_budget() {
        let distance = Distance::of(Direction::Lower, FIVE, 100.0, 106.0);
        assert!(distance.is_shown_beyond(Some(0.9)));
        assert!(!distance.is_shown_beyond(Some(1.1)));
        assert!(!distance.is_shown_beyond(None));
    }
}
