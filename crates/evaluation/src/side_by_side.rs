//! Checks side by side, drawn from recorded rounds.

use sparsek_gate::verdict::{LOOKS, Verdict, in_turn};

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

/// What is put into the recorded launches of the current side: of a program into the kernel that takes most
/// of its time, if that is a large part, and else into all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Nothing.
    Unchanged,
    /// Every launch of every kernel takes so many percent longer.
    Longer(f64),
    /// Every launch of that kernel takes so many percent longer.
    LargestLonger(f64),
    /// The slowest tenth of the launches of each process takes twice as long.
    TenthDoubled,
    /// The first three launches of each process take twice as long.
    FirstThreeDoubled,
    /// Every launch but the first is three times as far from the mean of all, and then all take 3 %
    /// longer.
    LongerInThreeTimesTheSpread,
}

/// What checks are drawn from: a kernel or a whole program, measured side by side on one GPU.
pub trait Recorded {
    /// What was measured.
    fn name(&self) -> &str;
    /// The first digits of the UUID of its GPU.
    fn gpu(&self) -> &str;
    /// One check, with a change in its current side.
    fn check(&self, draw: Draw, change: Change, random: &mut Random) -> Answer;
}

/// The result of a check.
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

impl Draw {
    /// The processes of both sides, as many as a check measures at most. Those of the base have the numbers
    /// below `base`, and those of the current side follow.
    pub fn processes(self, base: usize, current: usize, random: &mut Random) -> [Vec<usize>; 2] {
        let [.., (most, _)] = LOOKS;
        if self == Draw::SameProcesses {
            let mut side = || random.with_replacement(A_ROUND * most, base + current);
            return [side(), side()];
        }
        let rounds = random.with_replacement(most, base.min(current) / A_ROUND);
        let of = |first: usize| -> Vec<usize> {
            let begin = rounds.iter().map(|round| first + A_ROUND * round);
            begin.flat_map(|at| at..at + A_ROUND).collect()
        };
        let mut sides = [of(0), of(base)];
        if self == Draw::SameRounds && random.coin() {
            sides.reverse();
        }
        sides
    }
}

/// The answer of the last look, as a run looks: until it is clear, and no further than so many processes of a
/// side. `look` gives the answer after so many, and whether more may decide it.
pub fn last_look(most: usize, look: impl Fn(usize) -> (Answer, bool)) -> Answer {
    let [(first, _), others @ ..] = LOOKS;
    let (mut answer, mut open) = look(A_ROUND * first);
    for (more, _) in others {
        if open && A_ROUND * more <= most {
            (answer, open) = look(A_ROUND * more);
        }
    }
    answer
}

impl Recorded for Pair {
    fn name(&self) -> &str {
        &self.variant
    }

    fn gpu(&self) -> &str {
        &self.gpu
    }

    fn check(&self, draw: Draw, change: Change, random: &mut Random) -> Answer {
        let all: Vec<&Vec<f64>> = self.base.iter().chain(&self.current).collect();
        let sides = draw.processes(self.base.len(), self.current.len(), random);
        let [base, mut current] =
            sides.map(|side| -> Processes { side.iter().map(|at| all[*at].clone()).collect() });
        change.put_into(&mut current);
        last_look(base.len(), |processes| {
            let (base, current) = (&base[..processes], &current[..processes]);
            let decision = in_turn(base, current, &self.question);
            let answer = Answer {
                verdict: decision.verdict,
                rounds: processes / A_ROUND,
                would_have_caught: decision.threshold.unwrap_or(f64::NAN),
            };
            (answer, decision.open)
        })
    }
}

impl Change {
    /// Into the launches of a kernel.
    pub fn put_into(self, processes: &mut Processes) {
        match self {
            Change::Unchanged => {}
            Change::Longer(percent) | Change::LargestLonger(percent) => {
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
                    tolerance: sparsek_gate::metric::Tolerance::RelativePercent(0.5),
                    direction: sparsek_gate::metric::Direction::Lower,
                    is_time: true,
                    part: 1.0,
                    strict: false,
                },
                base: side(1.0, noise),
                current: side(factor, noise),
            };
            let mut random = Random::new(1, "", 0);
            pair.check(Draw::Rounds, Change::Unchanged, &mut random)
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
