//! In which order the sides of a round run.

use super::spelled;

spelled! {
    /// The order of the four processes of each round, where base and current are measured side by
    /// side.
    RoundOrder {
        /// Base, current, current, base in every round.
        Repeated = "repeated",
        /// Base, current, current, base in odd rounds; current, base, base, current in even ones.
        Alternating = "alternating",
    }
}

impl RoundOrder {
    /// Whether the base runs first and last in a round, counted from 1; otherwise current does.
    pub fn base_is_outer(self, round: usize) -> bool {
        match self {
            RoundOrder::Repeated => true,
            RoundOrder::Alternating => !round.is_multiple_of(2),
        }
    }

    /// The places in time of both sides' processes in so many rounds, from 0: those of the base, and
    /// those of current.
    pub fn places(self, rounds: usize) -> [Vec<f64>; 2] {
        let mut places = [Vec::new(), Vec::new()];
        for round in 1..=rounds {
            let first = 4.0 * (round - 1) as f64;
            let (outer, inner) = ([first, first + 3.0], [first + 1.0, first + 2.0]);
            let (base, current) = match self.base_is_outer(round) {
                true => (outer, inner),
                false => (inner, outer),
            };
            places[0].extend(base);
            places[1].extend(current);
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_has_the_same_mean_place_in_every_round() {
        for order in RoundOrder::ALL {
            let [base, current] = order.places(3);
            for (base, current) in base.chunks(2).zip(current.chunks(2)) {
                assert_eq!(base[0] + base[1], current[0] + current[1]);
            }
        }
        let [base, _] = RoundOrder::Alternating.places(2);
        assert_eq!(base, [0.0, 3.0, 5.0, 6.0]);
    }
}
