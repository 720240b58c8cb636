//! Which commit to measure next: a search that decides, and measures nothing.

use serde::Serialize;

/// What the measurement of a commit answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It is not worse than the good commit.
    Good,
    /// It is worse.
    Bad,
    /// The samples do not decide; more of them may.
    Open,
    /// Nothing can be said of it: it does not build, its numbers are wrong, it cannot be compared.
    Skip,
}

impl Answer {
    /// As reports spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Answer::Good => "good",
            Answer::Bad => "bad",
            Answer::Open => "open",
            Answer::Skip => "skip",
        }
    }
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Measure this commit.
    Measure {
        /// Its place in the history, from 0, the oldest first.
        at: usize,
        /// Whether its answer was open, so that more must be measured than the first time.
        further: bool,
    },
    /// Nothing.
    End(End),
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The first bad commit.
    First(usize),
    /// From the commit after the last good one to the first that is known to be bad. Those between were
    /// skipped.
    Range(usize, usize),
    /// The last commit is not worse, so there is nothing to find.
    NotWorse,
    /// The last commit has no answer, so it is not known whether there is anything to find.
    Unanswered,
}

/// What is known of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    Open,
    Good,
    Bad,
    Skipped,
}

/// A search for the first bad commit of a history: the commits after a good one, the oldest first.
#[derive(Debug)]
pub struct Search {
    known: Vec<Known>,
}

impl Search {
    /// Of so many commits.
    pub fn new(commits: usize) -> Search {
        Search {
            known: vec![Known::Nothing; commits],
        }
    }

    /// The most commits that are measured if none is skipped or open: to halve the history until one commit
    /// is left, and the last commit before that.
    pub fn most(commits: usize) -> u32 {
        1 + commits.next_power_of_two().ilog2()
    }

    /// What to do next.
    pub fn next(&self) -> Next {
        let at = self.known.iter().position(|one| *one == Known::Open);
        if let Some(at) = at {
            return Next::Measure { at, further: true };
        }
        let last = self.known.len().checked_sub(1);
        let end = match last.map(|last| (last, self.known[last])) {
            Some((last, Known::Nothing | Known::Open)) => {
                return Next::Measure {
                    at: last,
                    further: false,
                };
            }
            Some((_, Known::Bad)) => return self.between(),
            Some((_, Known::Skipped)) => End::Unanswered,
            Some((_, Known::Good)) | None => End::NotWorse,
        };
        Next::End(end)
    }

    /// Keeps the answer of a commit. One that stays open is skipped.
    pub fn answer(&mut self, at: usize, answer: Answer) {
        let Some(known) = self.known.get_mut(at) else {
            return;
        };
        *known = match (answer, *known) {
            (Answer::Good, _) => Known::Good,
            (Answer::Bad, _) => Known::Bad,
            (Answer::Open, Known::Nothing) => Known::Open,
            (Answer::Open | Answer::Skip, _) => Known::Skipped,
        };
    }

    /// The next one between the last good commit and the first bad one: the middle of the longest
    /// run of commits that nothing is known of, so that a stretch of commits that do not build is
    /// left soon.
    fn between(&self) -> Next {
        let first_bad = self.known.iter().position(|one| *one == Known::Bad);
        let bad = first_bad.unwrap_or_default();
        let last_good = self.known[..bad]
            .iter()
            .rposition(|one| *one == Known::Good);
        let start = last_good.map_or(0, |good| good + 1);
        let mut longest = 0..0;
        let mut from = start;
        for at in start..=bad {
            if self.known[at] != Known::Nothing {
                if at - from > longest.len() {
                    longest = from..at;
                }
                from = at + 1;
            }
        }
        match longest.len().checked_sub(1) {
            Some(length) => Next::Measure {
                at: longest.start + length / 2,
                further: false,
            },
            None if start == bad => Next::End(End::First(bad)),
            None => Next::End(End::Range(start, bad)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, and are the same in every run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, bound: usize) -> usize {
            // Marsaglia's xorshift.
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % bound as u64) as usize
        }
    }

    /// The end of a search, and the commits that were measured in their order.
    fn searched(commits: usize, answer: impl Fn(usize, bool) -> Answer) -> (End, Vec<usize>) {
        let mut search = Search::new(commits);
        let mut measured = Vec::new();
        loop {
            match search.next() {
                Next::End(end) => return (end, measured),
                Next::Measure { at, further } => {
                    assert!(measured.len() < 4 * commits, "the search has no end");
                    assert_eq!(further, measured.last() == Some(&at), "{measured:?}");
                    assert!(
                        further || !measured.contains(&at),
                        "{at} again: {measured:?}"
                    );
                    measured.push(at);
                    search.answer(at, answer(at, further));
                }
            }
        }
    }

    fn by(culprit: usize) -> impl Fn(usize) -> Answer {
        move |at| {
            if at < culprit {
                Answer::Good
            } else {
                Answer::Bad
            }
        }
    }

    #[test]
    fn every_culprit_of_every_history_is_found_within_the_bound() {
        for commits in 1..=130 {
            let bound = (commits as f64).log2().ceil() as usize + 1;
            assert_eq!(Search::most(commits) as usize, bound, "{commits}");
            for culprit in 0..commits {
                let (end, measured) = searched(commits, |at, _| by(culprit)(at));
                assert_eq!(end, End::First(culprit), "of {commits}");
                assert!(measured.len() <= bound, "{measured:?} of {commits}");
                assert_eq!(measured[0], commits - 1, "BAD comes first");
            }
        }
    }

    #[test]
    fn commits_without_an_answer_leave_the_smallest_range_and_never_a_wrong_commit() {
        let mut numbers = Numbers(22);
        for _ in 0..3000 {
            let commits = 1 + numbers.below(64);
            let culprit = numbers.below(commits);
            let part = 1 + numbers.below(4);
            let mut skipped: Vec<bool> = (0..commits).map(|_| numbers.below(4) < part).collect();
            skipped[commits - 1] = false;
            let (end, measured) = searched(commits, |at, _| match skipped[at] {
                true => Answer::Skip,
                false => by(culprit)(at),
            });
            let first = (0..culprit)
                .rev()
                .find(|at| !skipped[*at])
                .map_or(0, |at| at + 1);
            let last = (culprit..commits).find(|at| !skipped[*at]).unwrap();
            let expected = match first == last {
                true => End::First(culprit),
                false => End::Range(first, last),
            };
            assert_eq!(
                end, expected,
                "{commits} {culprit} {skipped:?} {measured:?}"
            );
        }
    }

    #[test]
    fn a_stretch_that_does_not_build_is_left_by_leaps() {
        // The middle 40 of 64 do not build, and the culprit is before them.
        let answer = |at| match at {
            12..52 => Answer::Skip,
            at => by(5)(at),
        };
        let (end, measured) = searched(64, |at, _| answer(at));
        assert_eq!(end, End::First(5));
        assert!(measured.len() <= 9, "{measured:?}");
    }

    #[test]
    fn an_open_answer_is_measured_once_more_and_then_skipped() {
        // (what the second measurement of commit 3 says, the end)
        for (second, expected) in [
            (Answer::Good, End::First(5)),
            (Answer::Open, End::First(5)),
            (Answer::Skip, End::First(5)),
            (Answer::Bad, End::First(3)),
        ] {
            let (end, measured) = searched(8, |at, further| match (at, further) {
                (3, false) => Answer::Open,
                (3, true) => second,
                (at, _) => by(5)(at),
            });
            assert_eq!(end, expected, "{second:?}");
            assert_eq!(measured[..3], [7, 3, 3], "{second:?}");
        }
    }

    #[test]
    fn the_last_commit_must_be_bad_before_anything_is_searched() {
        for (answer, expected) in [
            (Answer::Good, End::NotWorse),
            (Answer::Skip, End::Unanswered),
            (Answer::Open, End::Unanswered),
        ] {
            let (end, measured) = searched(9, |_, _| answer);
            assert_eq!(end, expected);
            assert!(measured.iter().all(|at| *at == 8), "{measured:?}");
        }
        assert_eq!(searched(0, |_, _| Answer::Bad).0, End::NotWorse);
    }
}
