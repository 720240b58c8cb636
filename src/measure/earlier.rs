//! What is known of a variant from an interrupted run, and what reports say of it.

use super::journal::{MEASURED, Resumed, VariantEntry};
use super::resume::Key;
use crate::finding::{Code, Finding, Severity};
use crate::terms::VariantId;

/// What is known of a variant before it is measured.
#[derive(Default)]
pub(super) struct Before {
    /// What makes it the same measurement; `None` where nothing is noted.
    pub key: Option<Key>,
    /// What an interrupted run noted of the same.
    pub earlier: Option<VariantEntry>,
    /// What that run found where it failed.
    pub failed: Vec<Finding>,
}

/// What the journal gets of a variant if it fails.
pub(super) struct Failure {
    /// Without the findings.
    pub entry: VariantEntry,
    /// How many findings there were before it.
    pub found: usize,
}

/// How the message ends of what an interrupted run found where a variant failed.
const FAILED_BEFORE: &str = " (in the interrupted run; not measured again)";

/// A finding of an interrupted run on a variant that stays failed.
pub(super) fn failed_before(finding: Finding) -> Finding {
    if finding.severity != Severity::Deny || finding.message.ends_with(FAILED_BEFORE) {
        return finding;
    }
    Finding {
        message: finding.message + FAILED_BEFORE,
        next: format!("{}; to measure it anew, run without --resume", finding.next),
        ..finding
    }
}

/// Why it is measured anew, and how it failed before, if it did.
pub(super) fn with_failure(why: &str, failed: &[Finding]) -> String {
    let first = failed.iter().find(|one| one.severity == Severity::Deny);
    match first {
        Some(first) => format!("{why}; in the interrupted run it failed: {}", first.message),
        None => why.to_owned(),
    }
}

/// That a variant does not go on where an interrupted run measured it.
pub(super) fn not_resumed(variant: &VariantId, why: &str) -> Finding {
    Finding::deny(
        Code::NotResumed,
        variant,
        format!("all of it is measured in this run: {why}"),
        MEASURED,
    )
}

/// Which variants go on with what an interrupted run measured.
pub(super) fn resumed(all: &[Resumed]) -> Option<Finding> {
    const MOST: usize = 5;
    let first = all.first()?;
    let one = |one: &Resumed| match one.rounds {
        1 => format!("{} (1 round)", one.variant),
        rounds => format!("{} ({rounds} rounds)", one.variant),
    };
    let mut names: Vec<String> = all.iter().take(MOST).map(one).collect();
    if let Some(more @ 1..) = all.len().checked_sub(MOST) {
        names.push(format!("and {more} more"));
    }
    let message = format!(
        "the run that began at {} was interrupted, and what it measured in whole rounds is used: {}",
        first.began,
        names.join(", ")
    );
    let next = "nothing, if nobody could write to its files meanwhile; otherwise measure anew, without --resume";
    Some(Finding::of_project(Code::Resumed, message, next))
}
