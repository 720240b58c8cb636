//! Measures again where the machine failed, and not the program.
//!
//! Only the driver and ncu decide that. What the program prints or exits with does not: a program
//! could choose its measurements by it.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::config::Variant;
use crate::disk;
use crate::evidence::{Purpose, SameClock, disturbances};
use crate::files::entries;
use crate::finding::{Code, Error, Finding, Note};
use crate::measure::folder::Recording;
use crate::measure::watch::Watch;
use crate::process;
use crate::profile::Profile;

/// Before the first repetition; each further one waits twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// The repetitions that a variant has left.
pub(in crate::measure) struct Retries<'a, 'r> {
    variant: &'a Variant,
    watch: &'a dyn Watch,
    done: u32,
    /// One warning for each repetition.
    pub(in crate::measure) warnings: Vec<Finding>,
    /// Where repetitions are kept: a run that is killed while it waits must not get another try.
    recording: &'a mut Recording<'r>,
}

impl<'a, 'r> Retries<'a, 'r> {
    /// Those of a variant, less the repetitions that an interrupted run had already.
    pub(in crate::measure) fn of(
        variant: &'a Variant,
        watch: &'a dyn Watch,
        recording: &'a mut Recording<'r>,
    ) -> Retries<'a, 'r> {
        let record = recording.as_ref().map(|(_, record)| record);
        let warnings = record.map_or_else(Vec::new, |record| record.retries.clone());
        Retries {
            variant,
            watch,
            done: u32::try_from(warnings.len()).unwrap_or(u32::MAX),
            warnings,
            recording,
        }
    }

    /// Whether to measure again after this finding, and how long to wait before.
    pub(in crate::measure) fn again(&mut self, found: &Finding) -> Result<Option<Duration>, Error> {
        let allowed = self.variant.profile.retries;
        if self.done >= allowed || !of_the_machine(found) {
            return Ok(None);
        }
        let wait = LONGEST_WAIT.min(FIRST_WAIT * 2_u32.saturating_pow(self.done));
        self.done += 1;
        let message = format!(
            "measured again, {} of {allowed} retries: {} ({})",
            self.done,
            found.message,
            found.code.as_str()
        );
        let next = format!("if it comes often: {}", found.next);
        let warning = Finding::deny(Code::Retried, &self.variant.id, &message, next);
        let detail = found.detail.clone().unwrap_or_default();
        self.warnings.push(warning.detail(detail));
        if let Some((run_file, record)) = self.recording {
            record.retries.clone_from(&self.warnings);
            run_file.keep(record)?;
        }
        self.watch.ended(self.variant, "profile", &message);
        Ok(Some(wait))
    }

    /// Waits before the next try.
    pub(in crate::measure) fn wait(&self, wait: Duration) -> Result<(), Error> {
        let begun = Instant::now();
        while begun.elapsed() < wait {
            if process::interrupted() {
                return Err(Error::Interrupted);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        self.watch.begins(self.variant, "profile");
        Ok(())
    }

    /// The finding that remains, with the number of tries.
    pub(in crate::measure) fn given_up(&self, found: Finding) -> Finding {
        if self.done == 0 || !of_the_machine(&found) {
            return found;
        }
        found.with(Note::Tries(self.done + 1))
    }
}

/// Whether a finding is about the machine at that moment, so that another try may succeed. A missing
/// right, or a profiler that does not work here, stays so; a crash is the program's.
fn of_the_machine(found: &Finding) -> bool {
    found.denies()
        && matches!(
            found.code,
            Code::ProfilerBusy | Code::GpuLost | Code::GpuShared | Code::ClockChanged
        )
}

/// What disturbed the GPU while the compared profiles were measured, if anything did. Without a base
/// there is nothing to compare the clocks with yet.
pub(in crate::measure) fn disturbance(
    variant: &Variant,
    base: Option<&Profile>,
    current: &Profile,
) -> Option<Finding> {
    let clock = base
        .and_then(|base| SameClock::of(variant, base, current, |metric| metric.tolerance.against));
    let sides: Vec<(&str, &Profile)> = base
        .map(|base| ("base", base))
        .into_iter()
        .chain([("current", current)])
        .collect();
    let findings = disturbances(&variant.id, &sides, Purpose::Verdict(clock));
    findings.into_iter().find(of_the_machine)
}

/// Removes the captures of a try that failed, so that they are not taken for those that count.
pub(in crate::measure) fn discard(folder: &Path) -> Result<(), Error> {
    for entry in entries(folder)? {
        let name = entry.text();
        if (name.starts_with("capture-") || name.starts_with("counting.")) && !entry.is_dir() {
            disk::remove_file(&entry.path).map_err(Error::io("clear", &entry.path))?;
        }
    }
    Ok(())
}
