//! Counts over simulated checks side by side.

use std::collections::BTreeMap;

use sparsek_gate::parallel;

use super::data::A_ROUND;
use super::random::Random;
use super::share::Share;
use super::side_by_side::{Answer, Change, Draw, Recorded};

/// A check on one GPU.
#[derive(Clone, Copy)]
pub struct Check<'a> {
    pub name: &'a str,
    pub gpu: &'a str,
    pub answer: Answer,
}

/// The checks of a question.
pub struct Checks<'a>(Vec<Check<'a>>);

impl<'a> Checks<'a> {
    /// Draws so many checks of these recordings in turn, each with a change in its current side. What is changed
    /// may depend on the number of the check; `None` leaves it out.
    pub fn draw<T: Recorded + Sync>(
        (checks, seed): (usize, u64),
        purpose: &str,
        recorded: &[&'a T],
        draw: Draw,
        change: impl Fn(usize) -> Option<Change> + Sync,
    ) -> Checks<'a> {
        let one = |number: &usize| {
            let one = recorded.get(number % recorded.len().max(1))?;
            let mut random = Random::new(seed, purpose, *number);
            Some(Check {
                name: one.name(),
                gpu: one.gpu(),
                answer: one.check(draw, change(*number)?, &mut random),
            })
        };
        let numbers: Vec<usize> = (0..checks).collect();
        Checks(parallel::map(&numbers, one).into_iter().flatten().collect())
    }

    pub fn answer(&self, number: usize) -> Answer {
        self.0[number].answer
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// How often an answer has a property.
    pub fn share(&self, has: impl Fn(Answer) -> bool) -> Share {
        let mut share = Share::default();
        self.0.iter().for_each(|it| share.add(has(it.answer)));
        share
    }

    /// In groups, by name.
    pub fn by(&self, name: fn(&Check<'a>) -> &'a str) -> BTreeMap<&'a str, Checks<'a>> {
        let mut groups = BTreeMap::new();
        for check in &self.0 {
            let group = groups.entry(name(check)).or_insert(Checks(Vec::new()));
            group.0.push(*check);
        }
        groups
    }

    /// The processes of both sides that a check measured, on average.
    pub fn processes(&self) -> f64 {
        let rounds: usize = self.0.iter().map(|check| check.answer.rounds).sum();
        (2 * A_ROUND * rounds) as f64 / self.count() as f64
    }

    /// The change that half of the checks would have caught, in percent.
    pub fn would_have_caught(&self) -> f64 {
        let all = self.0.iter().map(|check| check.answer.would_have_caught);
        let mut all: Vec<f64> = all.collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    }
}
