//! The slowest launches of each process: what is judged of them, and where in the process they are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::statistics::{Samples, slowest_tenth, tenth};

/// Most runs of launches that are named.
const MOST_NAMED: usize = 3;

/// Which launches of a process make its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of them, by their location.
    Every,
    /// The slowest tenth, by its mean.
    Slowest,
}

impl Part {
    /// The samples that are judged; of the slowest launches, those among so many first ones.
    pub(crate) fn of(self, samples: Samples, launches: usize) -> Option<Samples> {
        match self {
            Part::Every => Some(samples),
            Part::Slowest => slowest_tenth(&samples, launches),
        }
    }

    /// The locked samples that the noise of processes of so many launches is learned from. How much
    /// the slowest launches vary is not scaled to more launches: it is taken as it was locked.
    pub(crate) fn noise(self, locked: &Samples, launches: usize) -> Option<Samples> {
        match self {
            Part::Every => Some(locked.with_launches(launches)),
            Part::Slowest => slowest_tenth(locked, launches),
        }
    }
}

/// The launches that a comparison of the slowest ones is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tail {
    /// How many launches of each process are the slowest tenth.
    pub slowest: usize,
    /// Of how many.
    pub launches: usize,
    /// The launches, from 1, that are slow in most processes of the current side. Empty where the
    /// slow ones are at other places in each process, and where none became slower.
    pub slow_at: Vec<usize>,
}

impl Tail {
    /// Of the first launches of both sides. A launch is slow if it is beyond the middle between the
    /// slowest tenths of both sides.
    pub(super) fn of([before, now]: [&Samples; 2], launches: usize) -> Tail {
        let value = |side: &Samples| slowest_tenth(side, launches).map(|tail| tail.value());
        let slow_at = match (value(before), value(now)) {
            (Some(was), Some(is)) if is > was => slow_at(now, launches, was.midpoint(is)),
            _ => Vec::new(),
        };
        Tail {
            slowest: tenth(launches),
            launches,
            slow_at,
        }
    }

    /// Whether it says more than the other launches do: of one launch, that is the value itself.
    pub(super) fn is_judged(&self) -> bool {
        self.launches > 1
    }

    /// `mean of the slowest 2 of 20 launches; launches 1 to 3 of most processes are slow`.
    pub fn words(&self, slower: bool) -> String {
        let Tail {
            slowest, launches, ..
        } = self;
        let of = format!("mean of the slowest {slowest} of {launches} launches");
        match slower {
            true => format!("{of}; {}", self.where_words()),
            false => of,
        }
    }

    fn where_words(&self) -> String {
        let runs = runs(&self.slow_at);
        let count = self.slow_at.len();
        if count == 0 {
            return "the slow ones are at other places in each process".to_owned();
        }
        if count == self.launches {
            return "all launches are slower".to_owned();
        }
        if runs.len() > MOST_NAMED {
            return format!("{count} of the launches are slow in most processes");
        }
        let names: Vec<String> = runs
            .iter()
            .map(|(first, last)| match first == last {
                true => first.to_string(),
                false => format!("{first} to {last}"),
            })
            .collect();
        match count {
            1 => format!("launch {} is slow in most processes", names[0]),
            _ => format!("launches {} are slow in most processes", names.join(", ")),
        }
    }
}

/// The launches beyond the limit in more than half of the processes, from 1.
fn slow_at(side: &Samples, launches: usize, limit: f64) -> Vec<usize> {
    let processes: Vec<&Vec<f64>> = side.machines().iter().flatten().collect();
    let is_slow = |at: &usize| {
        let values = processes.iter().filter_map(|process| process.get(at - 1));
        2 * values.filter(|value| **value > limit).count() > processes.len()
    };
    (1..=launches).filter(is_slow).collect()
}

/// Runs of consecutive numbers, each by its first and last.
fn runs(numbers: &[usize]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two processes of 20 launches that take 100, except that these take 200 in a process.
    fn slow(at: [&[usize]; 2]) -> Samples {
        let process = |at: &[usize]| -> Vec<f64> {
            let value = |launch: usize| if at.contains(&launch) { 200.0 } else { 100.0 };
            (1..=20).map(value).collect()
        };
        Samples::new(vec![at.map(process).to_vec()]).unwrap()
    }

    fn words(at: [&[usize]; 2]) -> String {
        let (before, now) = (slow([&[], &[]]), slow(at));
        Tail::of([&before, &now], 20).where_words()
    }

    #[test]
    fn where_the_slow_launches_are_is_said_by_their_place_in_the_process() {
        for (both, expected) in [
            (&[1, 2, 3][..], "launches 1 to 3 are slow in most processes"),
            (&[7], "launch 7 is slow in most processes"),
            (
                &[1, 2, 10],
                "launches 1 to 2, 10 are slow in most processes",
            ),
            (
                &[1, 5, 10, 15],
                "4 of the launches are slow in most processes",
            ),
        ] {
            assert_eq!(words([both, both]), expected);
        }
        let elsewhere = "the slow ones are at other places in each process";
        assert_eq!(words([&[3], &[9]]), elsewhere);
        let all: Vec<usize> = (1..=20).collect();
        assert_eq!(words([&all, &all]), "all launches are slower");
    }

    #[test]
    fn nothing_is_slow_where_the_slowest_launches_became_faster() {
        let (before, now) = (slow([&[1, 2], &[1, 2]]), slow([&[], &[]]));
        let tail = Tail::of([&before, &now], 20);
        assert!(tail.slow_at.is_empty());
        assert_eq!((tail.slowest, tail.launches), (2, 20));
    }
}
