//! Quantiles of Student's t (1908).

use std::cell::RefCell;
use std::collections::HashMap;

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Quantiles that are kept; a check asks for few different ones, and simulated checks for them often.
const MOST_KEPT: usize = 4096;

thread_local! {
    static KEPT: RefCell<HashMap<(usize, u64), f64>> = RefCell::default();
}

/// The value that Student's t exceeds with that chance, below one half. Infinite where it cannot
/// be had, which claims nothing.
pub(super) fn upper_quantile(dof: usize, chance: f64) -> f64 {
    let key = (dof, chance.to_bits());
    KEPT.with_borrow_mut(|kept| {
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        *kept.entry(key).or_insert_with(|| computed(dof, chance))
    })
}

fn computed(dof: usize, chance: f64) -> f64 {
    let Ok(t) = StudentsT::new(0.0, 1.0, dof as f64) else {
        return f64::INFINITY;
    };
    if !(chance > 0.0 && chance < 0.5) {
        return f64::INFINITY;
    }
    // By the lower tail: one minus a small chance would lose its digits.
    let quantile = -t.inverse_cdf(chance);
    // statrs 0.19 stops short with one degree of freedom and chances near 1e-9, which would make
    // the bands too narrow.
    if t.sf(quantile) <= chance * (1.0 + 1e-5) {
        quantile
    } else {
        f64::INFINITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_hold_in_the_far_tail() {
        let same = |found: f64, expected: f64| {
            assert!(
                (found / expected - 1.0).abs() < 1e-5,
                "{found}, not {expected}"
            );
        };
        for chance in [1e-2, 1e-3, 1e-4, 1e-6, 1e-7] {
            let first = 1.0 / (std::f64::consts::PI * chance).tan();
            same(upper_quantile(1, chance), first);
            let second = (1.0 - 2.0 * chance) / (2.0 * chance * (1.0 - chance)).sqrt();
            same(upper_quantile(2, chance), second);
            for dof in 1..200 {
                let quantile = upper_quantile(dof, chance);
                let back = StudentsT::new(0.0, 1.0, dof as f64).unwrap().sf(quantile);
                same(back, chance);
            }
        }
    }

    #[test]
    fn no_quantile_is_infinite_rather_than_a_panic() {
        assert_eq!(upper_quantile(0, 0.01), f64::INFINITY);
        assert_eq!(upper_quantile(3, 0.0), f64::INFINITY);
        assert_eq!(upper_quantile(3, f64::NAN), f64::INFINITY);
        // It is 318,309,886.
        assert_eq!(upper_quantile(1, 1e-9), f64::INFINITY);
    }
}
