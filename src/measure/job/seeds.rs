//! The seeds of the processes that measure a variant.

use std::collections::BTreeMap;

use crate::finding::Error;
use crate::plan::Job;
use crate::terms::Seed;

/// A seed that no process had before.
///
/// # Errors
/// [`Error::Io`] where the system has no random numbers.
pub(in crate::measure) fn fresh_seed() -> Result<Seed, Error> {
    Seed::fresh().map_err(Error::io("read", "the random numbers of the system"))
}

/// Which seed each job gets: one that nothing else gets, except that base and current of a pair
/// share it, so that both compute the same.
#[derive(Default)]
pub(in crate::measure) struct Seeds {
    /// By the stem of the jobs' files: the first process of the base and the first of the current
    /// code are a pair, and so on.
    of_pairs: BTreeMap<String, Seed>,
}

impl Seeds {
    /// The seed of a job.
    ///
    /// # Errors
    /// [`Error::Io`] where the system has no random numbers.
    pub fn of(&mut self, job: &Job) -> Result<Seed, Error> {
        if let Some(seed) = self.of_pairs.get(&job.stem) {
            return Ok(*seed);
        }
        let seed = fresh_seed()?;
        self.of_pairs.insert(job.stem.clone(), seed);
        Ok(seed)
    }

    /// Drops them: what is measured again gets others.
    pub fn restart(&mut self) {
        self.of_pairs.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use crate::plan::{Side, Task};
    use crate::terms::Phase;

    fn job(side: Side, stem: &str) -> Job {
        Job {
            side,
            task: Task::Measure(Phase::Timing),
            stem: stem.to_owned(),
        }
    }

    #[test]
    fn base_and_current_of_a_pair_share_a_seed_and_no_other_process_has_it() {
        let mut seeds = Seeds::default();
        let mut of = |side, stem| seeds.of(&job(side, stem)).unwrap().0;
        let round = [
            (Side::Base, "capture-1"),
            (Side::Current, "capture-1"),
            (Side::Current, "capture-2"),
            (Side::Base, "capture-2"),
            (Side::Base, "counting"),
            (Side::Current, "counting"),
        ];
        let [one, also_one, two, also_two, three, also_three] =
            round.map(|(side, stem)| of(side, stem));
        assert_eq!([one, two, three], [also_one, also_two, also_three]);
        seeds.restart();
        let four = seeds.of(&job(Side::Current, "capture-1")).unwrap().0;
        assert_eq!(BTreeSet::from([one, two, three, four]).len(), 4);
    }
}
