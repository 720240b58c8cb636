//! Whether the measured launches of both sides of a comparison ran at the same clock, by the counter
//! that the profiler reads in every launch.

use std::collections::BTreeMap;

use crate::config::{Metric, Variant};
use crate::metric::{Level, Role, Tolerance};
use crate::profile::{KernelProfile, Profile, Series};
use crate::statistics::mean;
use crate::terms::Phase;

/// The largest change between the highest clocks of two captures, in percent. The kernels' noise within
/// one process is a tenth of it; the steps of a clock are 15 MHz of some 2000.
pub const CLOCK_PERCENT: f64 = 1.0;
/// The largest share of a metric's tolerance that a difference between clocks may take. Unchanged
/// kernels beside each other differed by up to 0.12 % on an H200, half of the narrowest tolerance.
const OF_TOLERANCE: f64 = 0.5;

/// The clocks of two profiles, whose launches ran at the same clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SameClock {
    /// How far their clocks are apart, in percent of the reference's; of the kernel where it is most.
    pub apart_percent: f64,
    /// How far they may be, in percent.
    pub most_percent: f64,
}

impl SameClock {
    /// Compares the mean clock of every kernel. A clock that differs by some percent changes a gated
    /// value by at most about as many, so it is the same if that is a small part of every tolerance.
    ///
    /// `None` if it is not the same or not known: a launch without [`Role::Clock`], a kernel that only
    /// one side has, two kernels with the same name and launch shape, or no gated duration.
    pub fn of(
        variant: &Variant,
        reference: &Profile,
        current: &Profile,
        tolerance: impl Fn(&Metric) -> Option<Tolerance>,
    ) -> Option<SameClock> {
        let (before, now) = (clocks(reference)?, clocks(current)?);
        if before.is_empty() || !before.keys().eq(now.keys()) {
            return None;
        }
        let apart_percent = before
            .iter()
            .map(|(kernel, clock)| (now[kernel] / clock - 1.0).abs() * 100.0)
            .fold(0.0, f64::max);
        let gated = |metric: &&Metric| {
            metric.level != Level::Record && metric.phase == Phase::Timing && !metric.exact
        };
        let gated: Vec<&Metric> = variant.metrics.iter().filter(gated).collect();
        let is_duration = |metric: &&Metric| Role::of(&metric.counter) == Some(Role::Duration);
        if !gated.iter().any(is_duration) {
            return None;
        }
        let most_percent = gated
            .iter()
            .filter_map(|metric| percent(tolerance(metric)?, &metric.alias, reference))
            .map(|tolerance| tolerance * OF_TOLERANCE)
            .fold(CLOCK_PERCENT, f64::min);
        (apart_percent <= most_percent).then_some(SameClock {
            apart_percent,
            most_percent,
        })
    }
}

/// Identifies a kernel of a profile: the linker's name, grid and block.
type Key = (String, [u64; 3], [u64; 3]);

/// The mean clock of each kernel in Hz, as the timing phase counted it; `None` if a launch lacks it.
fn clocks(profile: &Profile) -> Option<BTreeMap<Key, f64>> {
    let mut metrics = profile.identity.metrics.iter();
    let (alias, _) = metrics.find(|(_, metric)| {
        metric.phase == Phase::Timing && Role::of(&metric.counter) == Some(Role::Clock)
    })?;
    let clock = |kernel: &KernelProfile| mean_of(kernel.metrics.get(alias)?);
    let mut clocks = BTreeMap::new();
    for kernel in &profile.kernels {
        let key = (kernel.identity().into_owned(), kernel.grid, kernel.block);
        if clocks.insert(key, clock(kernel)?).is_some() {
            return None;
        }
    }
    Some(clocks)
}

/// The mean over processes of the mean over launches.
fn mean_of(series: &Series) -> Option<f64> {
    let of_process = |process: &Vec<Option<f64>>| {
        let launches = process.iter().copied().collect::<Option<Vec<f64>>>();
        launches.map(|launches| mean(&launches))
    };
    let processes: Option<Vec<f64>> = series.samples.iter().map(of_process).collect();
    Some(mean(&processes?)).filter(|mean| *mean > 0.0)
}

/// A tolerance in percent, of the kernel with the largest value where it is absolute; `None` where all
/// values are zero, which no clock changes.
fn percent(tolerance: Tolerance, alias: &str, reference: &Profile) -> Option<f64> {
    match tolerance {
        Tolerance::RelativePercent(percent) => Some(percent),
        Tolerance::Absolute(value) => reference
            .kernels
            .iter()
            .filter_map(|kernel| kernel.metrics.get(alias)?.value)
            .max_by(f64::total_cmp)
            .filter(|most| *most > 0.0)
            .map(|most| value / most * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::variant;
    use crate::metric::Tolerances;
    use crate::profile::tests::{recorded, with_another};

    /// As locked on an H200, with this tolerance of the duration.
    fn locked(tolerance: Tolerance) -> (Variant, Profile) {
        let mut variant = variant(
            "[metric.clock]\ncounter = \"gpc__cycles_elapsed.avg.per_second\"\nlevel = \"record\"\n\
             [suite.s.variant.v]\nrun = [\"x\"]\n",
        );
        let mut metrics = variant.metrics.iter_mut();
        let duration = metrics.find(|metric| metric.alias == "duration");
        duration.unwrap().tolerance = Tolerances::both(tolerance);
        (variant, recorded())
    }

    fn clock(profile: &mut Profile) -> &mut Series {
        profile.kernels[0].metrics.get_mut("clock").unwrap()
    }

    fn scaled(profile: &Profile, factor: f64) -> Profile {
        let mut profile = profile.clone();
        for sample in clock(&mut profile).samples.iter_mut().flatten() {
            *sample = sample.map(|hz| hz * factor);
        }
        profile
    }

    fn apart(variant: &Variant, reference: &Profile, current: &Profile) -> Option<f64> {
        SameClock::of(variant, reference, current, |metric| {
            metric.tolerance.stored
        })
        .map(|clock| clock.apart_percent)
    }

    #[test]
    fn clocks_are_the_same_within_half_of_the_narrowest_tolerance_and_one_percent() {
        for (tolerance, most) in [
            (Tolerance::RelativePercent(1.0), 0.5),
            // 1 % of 260 us.
            (Tolerance::Absolute(2600.0), 0.5),
            (Tolerance::RelativePercent(30.0), 1.0),
        ] {
            let (variant, profile) = locked(tolerance);
            assert_eq!(apart(&variant, &profile, &profile), Some(0.0));
            for (percent, same) in [(0.97, true), (-0.97, true), (1.03, false), (-1.03, false)] {
                let other = scaled(&profile, 1.0 + most * percent / 100.0);
                let found = apart(&variant, &profile, &other);
                assert_eq!(found.is_some(), same, "{tolerance:?} {percent} {found:?}");
            }
        }
    }

    #[test]
    fn a_metric_with_a_narrower_tolerance_than_the_duration_counts() {
        let (mut variant, profile) = locked(Tolerance::RelativePercent(30.0));
        let mut metrics = variant.metrics.iter();
        let mut narrow = metrics.find(|one| one.alias == "duration").unwrap().clone();
        // 41 %, so 0.1 % of it are half of the tolerance.
        narrow.alias = "tensor_core".to_owned();
        narrow.counter = Role::TensorActive.counter().to_owned();
        narrow.tolerance = Tolerances::both(Tolerance::Absolute(0.082));
        let other = scaled(&profile, 1.002);
        assert!(apart(&variant, &profile, &other).is_some());
        variant.metrics.push(narrow);
        assert_eq!(apart(&variant, &profile, &other), None);
        variant.metrics.last_mut().unwrap().level = Level::Record;
        assert!(apart(&variant, &profile, &other).is_some());
    }

    #[test]
    fn kernels_that_differ_only_by_their_template_arguments_are_two() {
        let (variant, profile) = locked(Tolerance::RelativePercent(3.0));
        let mut profile = with_another(profile);
        profile.kernels[1].name = profile.kernels[0].name.clone();
        let mut other = profile.clone();
        for sample in clock(&mut other).samples.iter_mut().flatten() {
            *sample = sample.map(|hz| 1.05 * hz);
        }
        assert_eq!(apart(&variant, &profile, &other), None);
        assert_eq!(apart(&variant, &profile, &profile), Some(0.0));
        profile.kernels[1].mangled = profile.kernels[0].mangled.clone();
        assert_eq!(apart(&variant, &profile, &profile), None);
    }

    #[test]
    fn a_clock_that_is_not_known_is_not_the_same() {
        let (variant, profile) = locked(Tolerance::RelativePercent(3.0));
        let mut without_one = profile.clone();
        clock(&mut without_one).samples[0][0] = None;
        let mut not_counted = profile.clone();
        not_counted.identity.metrics.remove("clock");
        let mut another_kernel = profile.clone();
        another_kernel.kernels[0].grid[0] += 1;
        let mut counted_elsewhere = profile.clone();
        let identity = counted_elsewhere.identity.metrics.get_mut("clock");
        identity.unwrap().phase = Phase::Counting;
        for unknown in [without_one, not_counted, another_kernel, counted_elsewhere] {
            assert_eq!(apart(&variant, &profile, &unknown), None);
            assert_eq!(apart(&variant, &unknown, &profile), None);
        }
        let mut ungated = variant.clone();
        ungated.metrics.retain(|metric| metric.alias != "duration");
        assert_eq!(apart(&ungated, &profile, &profile), None);
    }
}
