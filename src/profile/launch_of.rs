//! Static profiles whose launches are known from another one.

use std::collections::BTreeSet;

use super::{KernelProfile, MetricIdentity, Profile, Series};
use crate::binary::{OF_LAUNCH, Occupancy, Residency, static_metric, whole};

/// What is taken of the launches of another profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// What a profile does not know.
    Unknown,
    /// That, and its dynamic shared memory and threads where the occupancy is lower with them: what a
    /// profile knows is only stated.
    UnknownOrStricter,
}

impl Profile {
    /// Whether the launches of every kernel show their dynamic shared memory.
    pub fn shows_launches(&self) -> bool {
        let mut kernels = self.kernels.iter();
        kernels.all(|kernel| !kernel.dynamic_shared_bytes.is_empty())
    }

    /// This static profile with launches as `locked` has them, with the occupancy that follows, and the
    /// names of the kernels that this changes.
    pub fn with_launches_of(&self, locked: &Profile, taken: Taken) -> (Profile, BTreeSet<String>) {
        let mut completed = self.clone();
        let mut names = BTreeSet::new();
        for kernel in &mut completed.kernels {
            let mut others = locked.kernels.iter();
            let other = others.find(|other| other.identity() == kernel.identity());
            let by_nvcc = self.identity.compiler.is_some();
            let other = other.map(|other| without_code_of(other, kernel, by_nvcc));
            if other.is_some_and(|other| complete(&self.identity.gpu, kernel, &other, taken)) {
                names.insert(self.label(kernel).to_owned());
            }
        }
        let kernels = completed.kernels.iter();
        let known: BTreeSet<&String> = kernels.flat_map(|kernel| kernel.metrics.keys()).collect();
        for metric in OF_LAUNCH.into_iter().filter_map(static_metric) {
            let name = metric.name.to_owned();
            if known.contains(&name) {
                let metrics = &mut completed.identity.metrics;
                let metric = MetricIdentity::of_static(metric);
                metrics.entry(name).or_insert(metric);
            }
        }
        (completed, names)
    }
}

/// Another profile of a kernel without what its code, and no launch, shows: that it takes no dynamic shared
/// memory. The PTX of what nvcc compiles shows it, and where it does not, other code may take some.
fn without_code_of(other: &KernelProfile, kernel: &KernelProfile, by_nvcc: bool) -> KernelProfile {
    let bytes = OF_LAUNCH[0];
    let mut other = other.clone();
    let takes_none = number(&other, bytes) == Some(0) && number(kernel, bytes).is_none();
    if by_nvcc && takes_none && other.code != kernel.code {
        other.metrics.remove(bytes);
    }
    other
}

/// Takes what belongs to a kernel's launch from another profile of it, and says whether there was
/// anything to take.
fn complete(arch: &str, kernel: &mut KernelProfile, other: &KernelProfile, taken: Taken) -> bool {
    let [bytes, threads, ..] = OF_LAUNCH;
    let [own, mut locked] = [&*kernel, other].map(|one| [number(one, bytes), number(one, threads)]);
    // Its launch bounds allow no larger block.
    let most = number(kernel, "max_threads_per_block").unwrap_or(u32::MAX);
    locked[1] = locked[1].filter(|threads| *threads <= most);
    let filled = [own[0].or(locked[0]), own[1].or(locked[1])];
    let with_locked = [locked[0].or(own[0]), locked[1].or(own[1])];
    let percent = |launch| occupancy(arch, kernel, launch).map(|found| found.percent);
    let others = [
        [with_locked[0], filled[1]],
        [filled[0], with_locked[1]],
        with_locked,
    ];
    let mut launch = filled;
    for other in others {
        let is_lower = percent(other) < percent(launch) && percent(other).is_some();
        if taken == Taken::UnknownOrStricter && is_lower {
            launch = other;
        }
    }
    if launch == own {
        return false;
    }
    let occupancy = occupancy(arch, kernel, launch);
    let limits = occupancy.map(|it| [it.limit_registers, it.limit_shared_mem, it.limit_warps]);
    let limits = limits.map_or([None; 3], |limits| limits.map(Some));
    let numbers = |numbers: &[Option<u32>]| numbers.iter().map(|it| it.map(f64::from)).collect();
    let [mut values, limits]: [Vec<Option<f64>>; 2] = [numbers(&launch), numbers(&limits)];
    values.push(occupancy.map(|it| it.percent));
    for (name, value) in OF_LAUNCH.into_iter().zip(values.into_iter().chain(limits)) {
        if let Some(value) = value {
            let series = Series::of_one(value);
            kernel.metrics.insert(name.to_owned(), series);
        }
    }
    true
}

/// A metric that is a whole number.
fn number(kernel: &KernelProfile, name: &str) -> Option<u32> {
    whole(kernel.metrics.get(name)?.value?)
}

/// The occupancy of a compiled kernel that is launched with this shared memory and these threads.
fn occupancy(
    arch: &str,
    kernel: &KernelProfile,
    [bytes, threads]: [Option<u32>; 2],
) -> Option<Occupancy> {
    let [bytes, threads] = [bytes?, threads?].map(f64::from);
    let launched = Residency::of(arch, |name| match name {
        "dynamic_shared_bytes" => Some(bytes),
        "threads_per_block" => Some(threads),
        _ => kernel.metrics.get(name)?.value,
    });
    launched.at_block().map(|(_, found)| found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locked() -> Profile {
        let path = "baselines/sm-90a+static/bsr_gemm/cp_async.profile.json";
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let mut profile = Profile::parse(&std::fs::read(path).unwrap()).unwrap();
        let metrics = &mut profile.kernels[0].metrics;
        let launch = [
            ("dynamic_shared_bytes", 75776.0),
            ("threads_per_block", 128.0),
        ];
        let launch = launch.map(|(name, value)| (name.to_owned(), Series::of_one(value)));
        metrics.extend(launch);
        profile
    }

    #[test]
    fn occupancy_follows_from_the_locked_launch_as_the_compiler_path_computes_it() {
        let locked = locked();
        let mut current = locked.clone();
        for name in OF_LAUNCH {
            current.kernels[0].metrics.remove(name);
            current.identity.metrics.remove(name);
        }
        let (completed, names) = current.with_launches_of(&locked, Taken::Unknown);
        assert_eq!(names.len(), 1);
        assert_eq!(completed.kernels, locked.kernels);
        assert!(completed.identity.metrics.contains_key("occupancy"));
    }

    #[test]
    fn that_the_base_takes_no_dynamic_shared_memory_says_nothing_of_other_code() {
        let mut locked = locked();
        let metrics = &mut locked.kernels[0].metrics;
        metrics.insert("dynamic_shared_bytes".to_owned(), Series::of_one(0.0));
        let mut current = locked.clone();
        current.kernels[0].metrics.remove("dynamic_shared_bytes");
        let bytes = |current: &Profile| {
            let (completed, _) = current.with_launches_of(&locked, Taken::Unknown);
            number(&completed.kernels[0], "dynamic_shared_bytes")
        };
        assert_eq!(bytes(&current), Some(0));
        current.kernels[0].code = None;
        assert_eq!(bytes(&current), None);
    }

    #[test]
    fn fewer_threads_that_are_only_stated_cannot_raise_the_occupancy() {
        let mut locked = locked();
        let mut stated = locked.clone();
        for (profile, threads) in [(&mut locked, 32.0), (&mut stated, 256.0)] {
            let metrics = &mut profile.kernels[0].metrics;
            metrics.insert("threads_per_block".to_owned(), Series::of_one(threads));
        }
        let threads = |profile: &Profile| number(&profile.kernels[0], "threads_per_block");
        let (stricter, _) = stated.with_launches_of(&locked, Taken::UnknownOrStricter);
        assert_eq!(threads(&stricter), Some(32));
        let (kept, _) = stated.with_launches_of(&locked, Taken::Unknown);
        assert_eq!(threads(&kept), Some(256));
    }

    #[test]
    fn a_locked_block_that_the_launch_bounds_no_longer_allow_does_not_count() {
        let locked = locked();
        let mut current = locked.clone();
        let metrics = &mut current.kernels[0].metrics;
        for name in ["max_threads_per_block", "threads_per_block"] {
            metrics.insert(name.to_owned(), Series::of_one(64.0));
        }
        let (stricter, _) = current.with_launches_of(&locked, Taken::UnknownOrStricter);
        let threads = number(&stricter.kernels[0], "threads_per_block");
        assert_eq!(threads, Some(64));
    }

    #[test]
    fn what_a_profile_states_stays_unless_the_locked_launch_has_the_lower_occupancy() {
        let mut locked = locked();
        let stated = |bytes: f64| {
            let mut current = locked.clone();
            let metrics = &mut current.kernels[0].metrics;
            metrics.insert("dynamic_shared_bytes".to_owned(), Series::of_one(bytes));
            current
        };
        let (less, more) = (stated(1024.0), stated(200_000.0));
        // One block fits with the locked bytes, and with those of `less` two.
        let series = Series::of_one(150_000.0);
        let metrics = &mut locked.kernels[0].metrics;
        metrics.insert("dynamic_shared_bytes".to_owned(), series);
        let bytes = |profile: &Profile| number(&profile.kernels[0], "dynamic_shared_bytes");
        let (kept, names) = less.with_launches_of(&locked, Taken::Unknown);
        assert_eq!((bytes(&kept), names.len()), (Some(1024), 0));
        let (stricter, names) = less.with_launches_of(&locked, Taken::UnknownOrStricter);
        assert_eq!((bytes(&stricter), names.len()), (Some(150_000), 1));
        assert_eq!(stricter.kernels[0].metrics["occupancy"].value, Some(6.25));
        let (kept, names) = more.with_launches_of(&locked, Taken::UnknownOrStricter);
        assert_eq!((bytes(&kept), names.len()), (Some(200_000), 0));
    }
}
