//! The loop of a bisection: take the next commit from the search, measure it, record the answer.

use std::collections::BTreeMap;

use super::beside::Beside;
use super::search::{End, Next, Search};
use super::step::Step;
use crate::finding::Error;
use crate::git::Commit;
use crate::process;

/// What a bisection found.
#[derive(Debug)]
pub struct Bisected {
    /// How it ended; places are those in the history.
    pub end: End,
    /// What was asked for, by the place in the history.
    pub steps: BTreeMap<usize, Step>,
    /// The same places in the order of the search.
    pub order: Vec<usize>,
}

impl Bisected {
    /// The step whose commit was measured: of a commit that has another one's program, that one's.
    pub fn measured(&self, at: usize) -> Option<&Step> {
        let step = self.steps.get(&at)?;
        match &step.same_as {
            Some(other) => self.steps.values().find(|one| one.commit.id == *other),
            None => Some(step),
        }
    }

    /// How many commits were built or measured; one that was measured again counts once.
    pub fn pairs(&self) -> usize {
        let steps = self.steps.values();
        steps.filter(|step| step.outcome.is_some()).count()
    }
}

/// Searches a history for its first bad commit.
///
/// # Errors
/// [`Error`] where the machine failed, or the run was interrupted.
pub fn bisect(history: &[Commit], beside: &mut Beside<'_>) -> Result<Bisected, Error> {
    let mut search = Search::new(history.len());
    let (mut steps, mut order) = (BTreeMap::new(), Vec::new());
    loop {
        let (at, further) = match search.next() {
            Next::Measure { at, further } => (at, further),
            Next::End(end) => return Ok(Bisected { end, steps, order }),
        };
        let commit = &history[at];
        if process::interrupted() {
            return Err(Error::Interrupted);
        }
        let words = match further {
            true => "open: measured again, in more rounds",
            false => commit.subject.as_str(),
        };
        let (done, most) = (order.len() + 1, Search::most(history.len()));
        beside.notes(&format!(
            "step {done} of about {most}: {} {words}",
            commit.short()
        ));
        let step = beside.step(commit, further)?;
        let answer = step.answer.as_str();
        beside.notes(&format!("{}: {answer}: {}", commit.short(), step.why));
        search.answer(at, step.answer);
        if !further {
            order.push(at);
        }
        steps.insert(at, step);
    }
}
