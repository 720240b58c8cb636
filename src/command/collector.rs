//! What reads the counters of two compared programs, by one short run of each.

use super::program::Folders;
use crate::config::{COUNTED_LAUNCHES, ClockControl, Collector, Program, ProgramSettings, Purpose};
use crate::finding::{Error, Severity};

/// What one short run of each program showed.
pub(super) struct Chosen {
    /// What reads the counters.
    pub collector: Collector,
    /// How many launches are counted; `None` where that is not known.
    pub counted_launches: Option<u32>,
}

/// CUPTI if it times each program's kernels, and none of them is too short for it: a process takes
/// about a third of the time that it takes under ncu. Else ncu. A program with several kernels is
/// counted in as many launches as it is timed, because these need not come in turn.
///
/// # Errors
/// [`Error::Interrupted`]. Any other fault is left to the comparison, which reports it.
pub(super) fn choose(
    place: &Folders,
    settings: &ProgramSettings,
    programs: [&Program; 2],
) -> Result<Chosen, Error> {
    let mut chosen = Chosen {
        collector: Collector::Ncu,
        counted_launches: None,
    };
    if settings.clock_control != ClockControl::None {
        return Ok(chosen);
    }
    let trial = ProgramSettings {
        purpose: Purpose::Survey,
        collector: Collector::Cupti,
        counted_launches: COUNTED_LAUNCHES,
        accept_kernel_times: false,
        ..settings.clone()
    };
    let mut most_kernels = 0;
    for program in programs {
        let measured = match place.trial(&trial, program) {
            Ok(measured) => measured,
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(_) => return Ok(chosen),
        };
        let mut found = measured.findings.iter().chain(&measured.gaps);
        let refused = found.any(|one| one.severity == Severity::Deny);
        let kernels = measured.profiles.first();
        let kernels = kernels.map_or(0, |profile| profile.kernels.len());
        if kernels == 0 || refused {
            return Ok(chosen);
        }
        most_kernels = most_kernels.max(kernels);
    }
    chosen.collector = Collector::Cupti;
    chosen.counted_launches =
        (most_kernels == 1).then_some(settings.launches.min(COUNTED_LAUNCHES));
    Ok(chosen)
}
