//! Whether the measured launches of both sides of a comparison ran at the same clock, by the counter
//! that the profiler reads in every launch.

use std::collections::BTreeMap;

use crate::config::{Metric, Variant};
use crate::metric::{Role, Tolerance};
use crate::profile::{KernelProfile, Profile, Series};

/// The clocks of two profiles, whose launches ran at the same clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SameClock {
    /// How far their clocks are apart, in percent of the reference's; of the kernel where it is most.
    pub apart_percent: f64,
    /// How far they may be: the tolerance of the duration, in percent.
    pub tolerance_percent: f64,
}

impl SameClock {
    /// Compares the mean clock of every kernel. It is the same if the difference is no larger than
    /// what the duration may change by: a clock bends a duration by its own difference at most.
    ///
    /// `None` if it is not the same or not known: a launch without [`Role::Clock`], a kernel that only
    /// one side has, or no gated duration.
    pub fn of(
        variant: &Variant,
        reference: &Profile,
        current: &Profile,
        tolerance: impl Fn(&Metric) -> Tolerance,
    ) -> Option<SameClock> {
        let (before, now) = (clocks(reference)?, clocks(current)?);
        if before.is_empty() || !before.keys().eq(now.keys()) {
            return None;
        }
        let apart_percent = before
            .iter()
            .map(|(kernel, clock)| (now[kernel] / clock - 1.0).abs() * 100.0)
            .fold(0.0, f64::max);
        let durations = variant
            .metrics
            .iter()
            .filter(|metric| Role::of(&metric.counter) == Some(Role::Duration));
        let tolerance_percent = durations
            .map(|metric| percent(tolerance(metric), &metric.alias, reference))
            .collect::<Option<Vec<f64>>>()?
            .into_iter()
            .min_by(f64::total_cmp)?;
        (apart_percent <= tolerance_percent).then_some(SameClock {
            apart_percent,
            tolerance_percent,
        })
    }
}

/// What tells the kernels of a profile apart.
type Key<'a> = (&'a str, [u64; 3], [u64; 3]);

/// The mean clock of each kernel in Hz; `None` if a launch lacks it.
fn clocks(profile: &Profile) -> Option<BTreeMap<Key<'_>, f64>> {
    let (alias, _) = profile
        .identity
        .metrics
        .iter()
        .find(|(_, metric)| Role::of(&metric.counter) == Some(Role::Clock))?;
    let clock = |kernel: &KernelProfile| mean(kernel.metrics.get(alias)?);
    profile
        .kernels
        .iter()
        .map(|kernel| Some(((&*kernel.name, kernel.grid, kernel.block), clock(kernel)?)))
        .collect()
}

/// The mean over processes of the mean over launches.
fn mean(series: &Series) -> Option<f64> {
    let processes = series
        .samples
        .iter()
        .map(|process| {
            let launches: Vec<f64> = process.iter().copied().collect::<Option<_>>()?;
            average(&launches)
        })
        .collect::<Option<Vec<f64>>>()?;
    average(&processes).filter(|mean| *mean > 0.0)
}

fn average(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// A tolerance in percent, of the kernel with the largest value where it is absolute.
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
    use crate::config::Config;

    /// As locked on an H200, with tolerances of 3 %, or of an absolute duration.
    fn locked(tolerance: &str) -> (Variant, Profile) {
        let path = "baselines/nvidia-h200/bsr_gemm/cp_async.profile.json";
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let profile = Profile::parse(&std::fs::read(path).unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let text = format!(
            "[toolchain]\narch = \"sm_90a\"\n[metric.duration]\ndirection = \"lower\"\n\
             tolerance = {tolerance}\n[metric.clock]\n\
             counter = \"gpc__cycles_elapsed.avg.per_second\"\nlevel = \"record\"\n\
             [suite.s]\n[suite.s.variant.v]\nrun = [\"x\"]\n"
        );
        std::fs::write(&path, text).unwrap();
        let config = Config::load(&path).unwrap();
        (config.variants().next().unwrap().clone(), profile)
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
        SameClock::of(variant, reference, current, |metric| metric.tolerance)
            .map(|clock| clock.apart_percent)
    }

    #[test]
    fn clocks_are_the_same_within_the_tolerance_of_the_duration() {
        for tolerance in [
            "{ relative_percent = 3.0 }",
            // 3 % of 271 us.
            "{ absolute = 8130 }",
        ] {
            let (variant, profile) = locked(tolerance);
            assert_eq!(apart(&variant, &profile, &profile), Some(0.0));
            for (factor, same) in [(1.028, true), (0.972, true), (1.032, false), (0.968, false)] {
                let other = scaled(&profile, factor);
                let found = apart(&variant, &profile, &other);
                assert_eq!(found.is_some(), same, "{tolerance} {factor} {found:?}");
            }
        }
    }

    #[test]
    fn a_clock_that_is_not_known_is_not_the_same() {
        let (variant, profile) = locked("{ relative_percent = 3.0 }");
        let mut without_one = profile.clone();
        clock(&mut without_one).samples[0][0] = None;
        let mut not_counted = profile.clone();
        not_counted.identity.metrics.remove("clock");
        let mut another_kernel = profile.clone();
        another_kernel.kernels[0].grid[0] += 1;
        for unknown in [without_one, not_counted, another_kernel] {
            assert_eq!(apart(&variant, &profile, &unknown), None);
            assert_eq!(apart(&variant, &unknown, &profile), None);
        }
        let mut ungated = variant.clone();
        ungated.metrics.retain(|metric| metric.alias != "duration");
        assert_eq!(apart(&ungated, &profile, &profile), None);
    }
}
