//! One commit of a bisection.

use serde::Serialize;

use super::answer::{Seen, answer};
use super::search::Answer;
use crate::git::Commit;
use crate::judge::Outcome;

/// One commit that was asked for.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// The commit.
    #[serde(flatten)]
    pub commit: Commit,
    /// Its answer.
    pub answer: Answer,
    /// Why.
    pub why: String,
    /// The comparison that decided.
    pub seen: Option<Seen>,
    /// The commit with the same program, whose answer it takes: nothing was measured.
    pub same_as: Option<String>,
    /// Whether it was open at first, and measured again in more rounds.
    pub further: bool,
    /// Whether its configuration file is not the good commit's, which counts.
    pub other_config: bool,
    /// The whole outcome, where it was measured.
    #[serde(skip)]
    pub outcome: Option<Outcome>,
}

impl Step {
    /// Of a commit that nothing is known of.
    pub(super) fn new(commit: &Commit, further: bool) -> Step {
        Step {
            commit: commit.clone(),
            answer: Answer::Skip,
            why: String::new(),
            seen: None,
            same_as: None,
            further,
            other_config: false,
            outcome: None,
        }
    }

    /// Takes the answer of an outcome.
    pub(super) fn take(&mut self, outcome: Outcome, metric: &str) {
        (self.answer, self.why, self.seen) = answer(&outcome, metric);
        self.outcome = Some(outcome);
    }
}
