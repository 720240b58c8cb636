//! Which kernel of a profile is which kernel of a baseline.

use super::compare::Mode;
use super::metric::Pair;
use crate::config::Variant;
use crate::finding::{Code, Finding, WarnReason};
use crate::profile::{KernelProfile, Profile};
use crate::terms::{Phase, Tier};

/// Pairs kernels by code, grid and block; what is left is told apart and named. A kernel that is
/// launched in another shape, or has another name, is compared all the same: the change may hide a
/// regression. Against the base such a change is what is being judged, and only told.
pub(crate) fn match_kernels<'a>(
    variant: &Variant,
    baseline: &'a Profile,
    current: &'a Profile,
    mode: Mode,
) -> (Vec<Pair<'a>>, Vec<Finding>) {
    let mut pairs = Vec::new();
    let mut gone = Vec::new();
    let mut left: Vec<&KernelProfile> = current.kernels.iter().collect();
    let shape = |kernel: &KernelProfile| (kernel.grid, kernel.block);
    let mut take = |wanted: &dyn Fn(&KernelProfile) -> bool| {
        let at = left.iter().position(|kernel| wanted(kernel))?;
        Some(left.remove(at))
    };
    for locked in &baseline.kernels {
        match take(&|now| now.identity() == locked.identity() && shape(now) == shape(locked)) {
            Some(now) => pairs.push(Pair {
                reference: locked,
                current: now,
            }),
            None => gone.push(locked),
        }
    }
    let only = match current.identity.tier {
        Tier::Static => " --static",
        _ => "",
    };
    let relock = match mode {
        Mode::Stored => format!(
            "if that is meant, lock it: sparsek-gate baseline --lock{only} --reason '...' {}",
            variant.id
        ),
        Mode::Against => format!(
            "the base has nothing to hold it against: lock it in this change, and check it against that: sparsek-gate check{only} {}",
            variant.id
        ),
    };
    let mut findings = Vec::new();
    let mut say = |code, kernel: &KernelProfile, message: String| {
        let finding =
            Finding::deny(code, &variant.id, message, relock.clone()).kernel(&kernel.name);
        let beside = mode == Mode::Against;
        findings.push(finding.warn_for(beside.then_some(WarnReason::SideBySide)));
    };
    let reference = mode.reference();
    let mut missing = Vec::new();
    for locked in gone {
        if let Some(now) = take(&|now| now.identity() == locked.identity()) {
            pairs.push(Pair {
                reference: locked,
                current: now,
            });
            say(
                Code::LaunchChanged,
                now,
                format!(
                    "`{}` is launched with grid {} and block {}, the {reference} with grid {} and block {}",
                    now.name,
                    dimensions(now.grid),
                    dimensions(now.block),
                    dimensions(locked.grid),
                    dimensions(locked.block)
                ),
            );
        } else if let Some(now) = take(&|now| {
            shape(now) == shape(locked)
                && !baseline
                    .kernels
                    .iter()
                    .any(|other| other.identity() == now.identity())
        }) {
            pairs.push(Pair {
                reference: locked,
                current: now,
            });
            say(
                Code::KernelRenamed,
                now,
                format!(
                    "`{}` of the {reference} is gone, and `{}` {}",
                    baseline.label(locked),
                    current.label(now),
                    if now.code.is_some() {
                        "is new"
                    } else {
                        "is launched with the same grid and block"
                    }
                ),
            );
        } else {
            missing.push(locked);
        }
    }
    for pair in &pairs {
        let shares = [(baseline, pair.reference), (current, pair.current)]
            .map(|(profile, kernel)| Share::of(profile, kernel));
        if let [Some(was), Some(is)] = shares
            && was.differs(&is)
        {
            say(
                Code::LaunchChanged,
                pair.current,
                format!(
                    "`{}` makes up {:.0} % of the launches, in the {reference} {:.0} %: how often it is launched changed, and no metric of a launch tells that",
                    pair.current.name,
                    100.0 * is.of_all(),
                    100.0 * was.of_all()
                ),
            );
        }
    }
    for locked in missing {
        say(
            Code::KernelGone,
            locked,
            format!(
                "`{}` of the {reference} was not measured",
                baseline.label(locked)
            ),
        );
    }
    for now in left {
        say(
            Code::KernelNew,
            now,
            format!("`{}` is not in the {reference}", current.label(now)),
        );
    }
    (pairs, findings)
}

/// How many of the launches that were profiled are one kernel's.
struct Share {
    launches: usize,
    all: usize,
    /// The profiler stops after so many launches, wherever in its turn the program is: a launch
    /// more or less in each of them says nothing.
    processes: usize,
}

impl Share {
    /// `None` where there is nothing to share, or what was measured was not a launch at a time.
    fn of(profile: &Profile, kernel: &KernelProfile) -> Option<Share> {
        let all = profile.launch_count(Phase::Timing);
        let share = Share {
            launches: profile.launches_of(kernel, Phase::Timing),
            all,
            processes: profile.machines(Phase::Timing).len(),
        };
        let several = profile.kernels.len() > 1 && profile.identity.tier != Tier::Static;
        (several && share.launches > 0).then_some(share)
    }

    fn of_all(&self) -> f64 {
        self.launches as f64 / self.all as f64
    }

    fn differs(&self, other: &Share) -> bool {
        let slack = |share: &Share| share.processes as f64 / share.all as f64;
        (self.of_all() - other.of_all()).abs() > slack(self) + slack(other)
    }
}

fn dimensions([x, y, z]: [u64; 3]) -> String {
    format!("({x}, {y}, {z})")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile of two kernels, of which the first makes so many of the launches of a process.
    fn two_kernels(first: usize) -> Profile {
        let path = "baselines/nvidia-h200/bsr_gemm/cp_async.profile.json";
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let mut profile = Profile::parse(&std::fs::read(path).unwrap()).unwrap();
        let mut second = profile.kernels[0].clone();
        second.name = "another".to_owned();
        profile.kernels.push(second);
        for (kernel, launches) in profile.kernels.iter_mut().zip([first, 20 - first]) {
            for process in kernel
                .metrics
                .values_mut()
                .flat_map(|series| &mut series.samples)
            {
                process.truncate(launches);
            }
        }
        profile
    }

    #[test]
    fn a_kernel_that_is_launched_more_often_than_another_was_is_told_apart_from_the_last_turn() {
        let share = |first: usize| {
            let profile = two_kernels(first);
            Share::of(&profile, &profile.kernels[0]).unwrap()
        };
        assert!(share(10).differs(&share(18)));
        assert!(!share(10).differs(&share(10)));
        assert!(!share(10).differs(&share(11)));
    }
}
