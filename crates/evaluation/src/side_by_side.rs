//! Checks side by side, drawn from recorded rounds.

use sparsek_gate::verdict::{LOOKS, Question, Verdict, in_turn};

use super::data::{A_ROUND, Pair, Processes};
use super::random::Random;

/// How the processes of a check are drawn from recorded ones, with replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// Whole rounds.
    Rounds,
    /// Whole rounds of sides that are the same code, exchanged in one of two checks.
    SameRounds,
    /// Processes of either side, which are the same code. So few rounds have the noise that was recorded.
    SameProcesses,
}

/// What is put into the recorded launches of the current side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Nothing.
    Unchanged,
    /// Every launch takes so many percent longer.
    Longer(f64),
    /// The slowest tenth of the launches of each process takes twice as long.
    TenthDoubled,
    /// The first three launches of each process take twice as long.
    FirstThreeDoubled,
    /// Every launch but the first is three times as far from the mean of all, and then all take 3 %
    /// longer.
    LongerInThreeTimesTheSpread,
}

/// The result of a check of one kernel.
#[derive(Clone, Copy)]
pub struct Answer {
    pub verdict: Verdict,
    /// How many rounds it took.
    pub rounds: usize,
    /// The change that it says that it would have caught, in percent.
    pub would_have_caught: f64,
}

impl Answer {
    /// Whether a check does not end with 0.
    pub fn fails(self) -> bool {
        !matches!(self.verdict, Verdict::Pass | Verdict::Improved)
    }

    pub fn regressed(self) -> bool {
        self.verdict == Verdict::Regressed
    }
}

/// The processes of both sides in a check.
pub struct Drawn {
    base: Processes,
    current: Processes,
    question: Question,
}

impl Drawn {
    /// As many rounds as a check measures at most, with a change in the current side.
    pub fn new(pair: &Pair, draw: Draw, change: Change, random: &mut Random) -> Drawn {
        let [.., (most, _)] = LOOKS;
        let (mut base, mut current) = match draw {
            Draw::Rounds | Draw::SameRounds => {
                let rounds = random.with_replacement(most, pair.rounds());
                let of = |side: &Processes| -> Processes {
                    let round = |at: &usize| side[A_ROUND * at..A_ROUND * (at + 1)].to_vec();
                    rounds.iter().flat_map(round).collect()
                };
                (of(&pair.base), of(&pair.current))
            }
            Draw::SameProcesses => {
                let all: Vec<&Vec<f64>> = pair.base.iter().chain(&pair.current).collect();
                let mut side = || -> Processes {
                    let drawn = random.with_replacement(A_ROUND * most, all.len());
                    drawn.iter().map(|at| all[*at].clone()).collect()
                };
                (side(), side())
            }
        };
        if draw == Draw::SameRounds && random.coin() {
            std::mem::swap(&mut base, &mut current);
        }
        change.put_into(&mut current);
        Drawn {
            base,
            current,
            question: pair.question,
        }
    }

    /// Looks as a run does, until the verdict is clear.
    pub fn check(&self) -> Answer {
        let look = |rounds: usize| {
            let processes = A_ROUND * rounds;
            let (base, current) = (&self.base[..processes], &self.current[..processes]);
            (rounds, in_turn(base, current, &self.question))
        };
        let [first, others @ ..] = LOOKS;
        let (mut rounds, mut decision) = look(first.0);
        for (more, _) in others {
            if decision.open {
                (rounds, decision) = look(more);
            }
        }
        Answer {
            verdict: decision.verdict,
            rounds,
            would_have_caught: decision.threshold.unwrap_or(f64::NAN),
        }
    }
}

impl Change {
    fn put_into(self, processes: &mut Processes) {
        match self {
            Change::Unchanged => {}
            Change::Longer(percent) => {
                let launches = processes.iter_mut().flatten();
                launches.for_each(|launch| *launch *= 1.0 + percent / 100.0);
            }
            Change::TenthDoubled => processes.iter_mut().for_each(|launches| {
                let mut order: Vec<usize> = (0..launches.len()).collect();
                order.sort_by(|one, other| launches[*other].total_cmp(&launches[*one]));
                for at in &order[..launches.len().div_ceil(10)] {
                    launches[*at] *= 2.0;
                }
            }),
            Change::FirstThreeDoubled => {
                let first = processes
                    .iter_mut()
                    .flat_map(|launches| launches.iter_mut().take(3));
                first.for_each(|launch| *launch *= 2.0);
            }
            Change::LongerInThreeTimesTheSpread => {
                let counted = processes
                    .iter()
                    .flat_map(|launches| launches.iter().skip(1));
                let (sum, count) = counted.fold((0.0, 0), |(sum, count), it| (sum + it, count + 1));
                let mean = sum / f64::from(count);
                let others = processes.iter_mut().flat_map(|it| it.iter_mut().skip(1));
                others.for_each(|launch| *launch = mean + 3.0 * (*launch - mean));
                Change::Longer(3.0).put_into(processes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(change: Change, launches: &[f64]) -> Vec<f64> {
        let mut processes = vec![launches.to_vec()];
        change.put_into(&mut processes);
        processes.concat()
    }

    #[test]
    fn a_change_is_put_into_the_launches_that_it_names() {
        let launches = [9.0, 1.0, 2.0, 3.0, 4.0];
        let of = |change| changed(change, &launches);
        assert_eq!(of(Change::Unchanged), launches);
        assert_eq!(of(Change::Longer(100.0)), [18.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(of(Change::TenthDoubled), [18.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(of(Change::FirstThreeDoubled), [18.0, 2.0, 4.0, 3.0, 4.0]);
        // The others are 2.5 on average.
        let spread = of(Change::LongerInThreeTimesTheSpread);
        let expected = [9.0, -2.0, 1.0, 4.0, 7.0].map(|it| it * 1.03);
        let differ = spread
            .iter()
            .zip(expected)
            .any(|(it, expected)| (it - expected).abs() > 1e-9);
        assert!(!differ, "{spread:?}");
    }

    #[test]
    fn a_check_looks_until_it_is_clear() {
        let side = |factor: f64, noise: f64| -> Processes {
            let value = |at: u32| vec![factor * (100.0 + noise * f64::from(at % 4))];
            (0..6).map(value).collect()
        };
        let answer = |factor: f64, noise: f64| {
            let pair = Pair {
                variant: String::new(),
                gpu: String::new(),
                question: sparsek_gate::verdict::Question {
                    scale: sparsek_gate::verdict::Scale::Relative,
                    direction: sparsek_gate::metric::Direction::Lower,
                    tolerance: 0.5,
                    is_time: true,
                    part: 1.0,
                    strict: false,
                },
                base: side(1.0, noise),
                current: side(factor, noise),
            };
            let mut random = Random::new(1, "", 0);
            Drawn::new(&pair, Draw::Rounds, Change::Unchanged, &mut random).check()
        };
        let quiet = answer(1.0, 0.01);
        assert_eq!((quiet.verdict, quiet.rounds), (Verdict::Pass, 3));
        let slower = answer(1.05, 0.01);
        assert_eq!((slower.verdict, slower.rounds), (Verdict::Regressed, 3));
        let noisy = answer(1.0, 10.0);
        assert_eq!((noisy.verdict, noisy.rounds), (Verdict::Inconclusive, 10));
        assert!(noisy.fails() && !quiet.fails());
    }
}
