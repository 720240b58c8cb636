//! Whether a run may go on with what an interrupted one left.
//!
//! The files of an interrupted run are the word of everything that ran as this user meanwhile. A
//! program of a change could write them, and kill the run.

use super::judging::Judging;
use super::select::variable;
use crate::config::Config;
use crate::finding::Error;
use crate::trust::{self, Authority};

/// Refuses `--resume` where a change is under review, unless the rules that it is judged by allow it.
pub(super) fn refuse(
    resume: bool,
    judging: &Judging,
    pull_request: Option<u64>,
) -> Result<(), Error> {
    let config = &judging.plan.config;
    let reviewed =
        judging.grounds.authority == Authority::WorkingTree && is_reviewed(config, pull_request)?;
    if reviewed || !resume || config.trust.resume {
        return Ok(());
    }
    Err(Error::Usage(
        "`--resume` is refused: a change is under review, and its programs could have written what the interrupted run left\n  next: measure everything, without `--resume`; or set `trust.resume = true` where the rules come from"
            .to_owned(),
    ))
}

/// Whether no pull request's code is measured, as far as the service and the command line say.
pub(super) fn is_reviewed(config: &Config, pull_request: Option<u64>) -> Result<bool, Error> {
    let pull_request = trust::pull_request(pull_request, variable)?;
    Ok(pull_request.is_none() && trust::is_of_reviewed_code(&config.checkout, variable))
}
