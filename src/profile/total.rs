//! The time of all measured kernels together, as if they were one kernel.

use super::{KernelProfile, Profile, Series};
use crate::metric::Role;
use crate::statistics::of_process;
use crate::terms::Phase;

/// Name of what stands for all kernels; no function has such a name.
pub const TOTAL: &str = "(total)";

impl Profile {
    /// The profile with one kernel in place of all: its duration in a process is the sum over all
    /// kernels, of each the mean of its measured launches, without the first where there are others, times
    /// how often the program launches it. Of a program that is timed as it runs, it is the sum over what the
    /// process launched.
    /// Where `{launches}` states the number of steps, it is that of one step. `launches` has the number for
    /// some of its kernels, whatever a process launched.
    ///
    /// # Errors
    /// Says what is not known of a kernel: without it the sum would be too small.
    pub fn of_total(
        &self,
        launches: impl Fn(&KernelProfile) -> Option<f64>,
    ) -> Result<Profile, String> {
        // Where all launches were timed, no list counts them.
        let counts: Vec<Option<f64>> = match self.provenance.as_it_runs {
            true => self.kernels.iter().map(launches).collect(),
            false => self.launches_of_each()?.into_iter().map(Some).collect(),
        };
        let machines = self.machines(Phase::Timing);
        let list = self.provenance.launch_list.as_ref();
        let steps = list.and_then(|list| list.steps);
        let steps = steps.map_or(1.0, |steps| f64::from(steps.max(1)));
        let mut metrics = std::collections::BTreeMap::new();
        for alias in self.durations() {
            let mut samples = Vec::new();
            for process in 0..machines.len() {
                let times = self.times(alias, &counts, process)?;
                samples.push(vec![Some(times.iter().sum::<f64>() / steps)]);
            }
            metrics.insert(alias.clone(), Series::new(samples, &machines));
        }
        let total = KernelProfile {
            name: TOTAL.to_owned(),
            metrics,
            ..KernelProfile::default()
        };
        Ok(Profile {
            schema: self.schema,
            variant: self.variant.clone(),
            identity: self.identity.clone(),
            kernels: vec![total],
            provenance: self.provenance.clone(),
        })
    }

    /// The share of each kernel in the total of a duration of the launches that were timed, in percent, in the
    /// order of the kernels. Empty where there is no total.
    pub fn shares_of_total(&self, alias: &str) -> Vec<f64> {
        let counts = vec![None; self.kernels.len()];
        let processes = self.machines(Phase::Timing).len();
        let mut sums = vec![0.0; self.kernels.len()];
        for process in 0..processes {
            let Ok(times) = self.times(alias, &counts, process) else {
                return Vec::new();
            };
            sums.iter_mut()
                .zip(times)
                .for_each(|(sum, time)| *sum += time);
        }
        let all: f64 = sums.iter().sum();
        sums.into_iter().map(|sum| 100.0 * sum / all).collect()
    }

    /// The metrics that are durations of launches.
    fn durations(&self) -> impl Iterator<Item = &String> {
        let metrics = self.identity.metrics.iter();
        metrics
            .filter(|(_, metric)| {
                metric.phase == Phase::Timing && Role::of(&metric.counter) == Some(Role::Duration)
            })
            .map(|(alias, _)| alias)
    }

    /// How often a kernel is launched in each of the processes that were timed.
    pub fn launches_by_process(&self, kernel: &KernelProfile) -> Vec<usize> {
        let processes = 0..self.machines(Phase::Timing).len();
        processes
            .map(|process| self.launches_in(kernel, Phase::Timing, process))
            .collect()
    }

    /// The same from the list of launches, in the order of the kernels.
    fn launches_of_each(&self) -> Result<Vec<f64>, String> {
        let list = self.provenance.launch_list.as_ref();
        let list = list
            .filter(|list| !list.kernels.is_empty())
            .ok_or("how often each kernel is launched was not listed")?;
        let mut counts = Vec::new();
        for kernel in &self.kernels {
            let launches = list.launches_of(kernel).ok_or_else(|| {
                format!(
                    "{} was measured, and not where launches were listed",
                    kernel.name
                )
            })?;
            counts.push(f64::from(launches));
        }
        if list.kernels.len() > self.kernels.len() {
            let unmeasured = list.kernels.iter().find(|listed| {
                let mut kernels = self.kernels.iter();
                !kernels.any(|kernel| listed.is_of(kernel))
            });
            let name =
                unmeasured.map_or("a kernel".into(), |one| ncu_report::base_name(&one.mangled));
            return Err(format!("{name} is launched, and was not measured"));
        }
        for process in 0..self.machines(Phase::Timing).len() {
            let kernels = self.kernels.iter();
            let measured: usize = kernels
                .map(|kernel| self.launches_in(kernel, Phase::Timing, process))
                .sum();
            if measured < list.measured as usize {
                return Err(format!(
                    "{measured} launches were measured in process {}, but {} are to be measured of those that were listed",
                    process + 1,
                    list.measured
                ));
            }
        }
        Ok(counts)
    }

    /// The time of all launches of each kernel in a process, in the unit of the counter. Without counts it is
    /// that of the launches that were timed.
    fn times(
        &self,
        alias: &str,
        counts: &[Option<f64>],
        process: usize,
    ) -> Result<Vec<f64>, String> {
        let kernels = self.kernels.iter().enumerate();
        kernels
            .map(|(at, kernel)| {
                let missing =
                    || format!("`{alias}` of {} has no value in every process", kernel.name);
                let count = counts.get(at).copied().flatten();
                if count.is_none() && self.launches_in(kernel, Phase::Timing, process) == 0 {
                    return Ok(0.0);
                }
                let series = kernel.metrics.get(alias).ok_or_else(missing)?;
                let samples = series.samples.get(process).ok_or_else(missing)?;
                let values: Option<Vec<f64>> = samples.iter().copied().collect();
                let values = values
                    .filter(|values| !values.is_empty())
                    .ok_or_else(missing)?;
                Ok(of_process(&values) * count.unwrap_or(values.len() as f64))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::{listed, recorded, with_another};

    /// Two kernels as measured on an H200, of which the program launches the second so often.
    fn two_kernels(second: u32, steps: Option<u32>) -> Profile {
        let mut profile = with_another(recorded());
        let duration = profile.kernels[1].metrics.get_mut("duration").unwrap();
        for sample in duration.samples.iter_mut().flatten() {
            *sample = sample.map(|value| 2.0 * value);
        }
        listed(&mut profile, &[21, second], steps);
        profile
    }

    fn value(profile: &Profile) -> f64 {
        let total = profile.of_total(|_| None).unwrap();
        total.kernels[0].metrics["duration"].value.unwrap()
    }

    #[test]
    fn the_total_is_the_sum_over_all_launches_of_a_step() {
        let one = two_kernels(21, Some(21));
        let samples = &one.kernels[0].metrics["duration"].samples;
        // The first launch of a process does not count.
        let mean = |process: &Vec<Option<f64>>| {
            let others = process.iter().skip(1);
            others.map(|sample| sample.unwrap()).sum::<f64>() / (process.len() - 1) as f64
        };
        let total = one.of_total(|_| None).unwrap();
        let sums = &total.kernels[0].metrics["duration"].samples;
        assert_eq!(sums.len(), samples.len());
        for (sum, process) in sums.iter().zip(samples) {
            assert!((sum[0].unwrap() / mean(process) - 3.0).abs() < 1e-12);
        }
        // The second is launched twice a step: 1 + 2 * 2.
        let twice = value(&two_kernels(42, Some(21)));
        assert!((twice / value(&one) - 5.0 / 3.0).abs() < 1e-12);
        // A program that is not told makes all of its steps.
        let all = value(&two_kernels(21, None));
        assert!((all / value(&one) - 21.0).abs() < 1e-9);
        let shares = one.shares_of_total("duration");
        assert!((shares[1] - 200.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn what_was_launched_and_not_measured_leaves_no_total() {
        let why = |change: fn(&mut Profile)| {
            let mut profile = two_kernels(21, Some(21));
            change(&mut profile);
            profile.of_total(|_| None).unwrap_err()
        };
        type Change = fn(&mut Profile);
        let cases: [(Change, &str); 5] = [
            (|it| it.provenance.launch_list = None, "was not listed"),
            (
                |it| drop(it.kernels.pop()),
                "another is launched, and was not measured",
            ),
            (
                |it| it.kernels[1].mangled = Some("new".to_owned()),
                "not where launches were listed",
            ),
            (
                |it| {
                    for series in it.kernels[1].metrics.values_mut() {
                        series.samples.iter_mut().for_each(|one| one.truncate(19));
                    }
                },
                "39 launches were measured in process 1, but 40",
            ),
            (
                |it| {
                    let series = it.kernels[1].metrics.get_mut("duration");
                    series.unwrap().samples[1][3] = None;
                },
                "`duration` of another has no value",
            ),
        ];
        for (change, expected) in cases {
            let why = why(change);
            assert!(why.contains(expected), "{why}");
        }
    }
}
