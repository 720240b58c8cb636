//! Which kernel of a profile is which kernel of a baseline.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::config::Variant;
use crate::finding::{Code, Finding, WarnReason};
use crate::judge::compare::metric::Pair;
use crate::judge::compare::mode::Mode;
use crate::profile::{KernelProfile, Profile};
use crate::terms::{Phase, Tier, dimensions, joined};

/// Why a kernel of the one profile is taken for one of the other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Match {
    /// Same code, grid and block.
    Same,
    /// Same code, another grid or block.
    OtherShape,
    /// Another name, the same grid and block.
    Renamed,
    /// The only kernel of each program.
    OnlyOnes,
}

/// What is to be reported of a kernel.
type Found<'a> = (Code, &'a KernelProfile, String);

/// The kernels of two profiles, paired.
pub(crate) struct Pairing<'a> {
    pub reference: &'a Profile,
    pub current: &'a Profile,
    pairs: Vec<(Pair<'a>, Match)>,
    /// Kernels of the reference alone.
    pub gone: Vec<&'a KernelProfile>,
    /// Kernels of the current profile alone.
    pub new: Vec<&'a KernelProfile>,
    /// Whether the total of all kernels is judged beside them.
    in_total: bool,
}

/// Pairs kernels by code, grid and block. A kernel that is launched in another shape, or has
/// another name, is compared all the same: the change may hide a regression. Two programs with one
/// kernel each are compared by these, whatever they are called: the user put them side by side. Where
/// the total of all is judged, a kernel of another name is another kernel: it may do the work of two.
pub(crate) fn pair_kernels<'a>(
    reference: &'a Profile,
    current: &'a Profile,
    mode: Mode,
    in_total: bool,
) -> Pairing<'a> {
    let mut left: Vec<&KernelProfile> = current.kernels.iter().collect();
    let mut take = |wanted: &dyn Fn(&KernelProfile) -> bool| {
        let at = left.iter().position(|kernel| wanted(kernel))?;
        Some(left.remove(at))
    };
    let shape = |kernel: &KernelProfile| (kernel.grid, kernel.block);
    let identities = |profile: &'a Profile| -> HashSet<Cow<'a, str>> {
        profile
            .kernels
            .iter()
            .map(KernelProfile::identity)
            .collect()
    };
    let (known, still) = (identities(reference), identities(current));
    let known = |now: &KernelProfile| known.contains(&now.identity());
    let only_ones = mode == Mode::Programs
        && [reference, current]
            .iter()
            .all(|side| side.kernels.len() == 1);
    let mut pairs = Vec::new();
    let mut unpaired = Vec::new();
    for was in &reference.kernels {
        let same = |now: &KernelProfile| now.identity() == was.identity();
        // Thousands of kernels of other names are not looked through for each.
        let found = still.contains(&was.identity());
        match found
            .then(|| take(&|now| shape(now) == shape(was) && same(now)))
            .flatten()
        {
            Some(now) => pairs.push((pair(was, now), Match::Same)),
            None => unpaired.push(was),
        }
    }
    let mut gone = Vec::new();
    for was in unpaired {
        let found = still.contains(&was.identity());
        let same = |now: &KernelProfile| now.identity() == was.identity();
        if let Some(now) = found.then(|| take(&same)).flatten() {
            pairs.push((pair(was, now), Match::OtherShape));
        } else if let Some(now) = take(&|now| !in_total && shape(now) == shape(was) && !known(now))
        {
            pairs.push((pair(was, now), Match::Renamed));
        } else if let Some(now) = take(&|_| only_ones) {
            pairs.push((pair(was, now), Match::OnlyOnes));
        } else {
            gone.push(was);
        }
    }
    Pairing {
        reference,
        current,
        pairs,
        gone,
        new: left,
        in_total,
    }
}

fn pair<'a>(reference: &'a KernelProfile, current: &'a KernelProfile) -> Pair<'a> {
    Pair { reference, current }
}

impl<'a> Pairing<'a> {
    /// The kernels that are compared.
    pub fn pairs(&self) -> impl Iterator<Item = Pair<'a>> {
        self.pairs.iter().map(|(pair, _)| *pair)
    }

    /// Kernels that are launched otherwise, renamed, gone or new. Against the base the first two
    /// are what the change is judged for, and only warn, the first if `same_work` says that the pair does the
    /// work of before. Other dynamic shared memory always only warns.
    pub fn findings(
        &self,
        variant: &Variant,
        mode: Mode,
        same_work: impl Fn(Pair<'a>) -> bool,
    ) -> Vec<Finding> {
        let tier = self.current.identity.tier;
        let next = match mode {
            Mode::Stored | Mode::Against | Mode::New => format!(
                "if that is meant, lock it: {}",
                tier.lock_command(&variant.id)
            ),
            Mode::Programs => {
                "to compare only kernels that both programs launch, name them: --kernels NAME"
                    .to_owned()
            }
        };
        let finding = |(code, kernel, message): Found<'_>| {
            Finding::deny(code, &variant.id, message, next.clone()).kernel(&kernel.name)
        };
        let side_by_side = (mode != Mode::Stored).then_some(WarnReason::SideBySide);
        let beside = |found| finding(found).warn_for(side_by_side);
        let in_total = self.in_total.then_some(WarnReason::InTotal);
        let reference = mode.reference();
        let pairs = self.pairs.iter();
        let changed = pairs.filter_map(|(pair, how)| {
            let found = finding(self.changed(*pair, *how, mode)?);
            let is_other = *how == Match::OtherShape && !same_work(*pair);
            Some(found.warn_for(side_by_side.filter(|_| !is_other)))
        });
        let memory = self
            .pairs()
            .filter_map(|pair| other_shared_memory(pair, reference));
        let shares = self.pairs();
        let shares = shares.filter_map(|pair| self.other_share(pair, reference));
        let gone = self.gone.iter().map(|was| {
            let name = self.reference.label(was);
            let message = format!("`{name}` of the {reference} was not measured");
            (Code::KernelsChanged, *was, message)
        });
        let new = self.new.iter().map(|now| {
            let name = self.current.label(now);
            let message = format!("`{name}` is not in the {reference}");
            (Code::KernelsChanged, *now, message)
        });
        // A kernel that is not on both sides is compared with nothing: beside the base it fails too.
        let contained = shares.map(beside).chain(gone.chain(new).map(finding));
        let contained = contained.map(|found| found.warn_for(in_total));
        // Of two programs their shares say it.
        let is_said = self.in_total && mode == Mode::Programs;
        let contained = contained.filter(|_| !is_said);
        let unknown = self
            .pairs()
            .filter_map(|pair| shared_memory_unknown(variant, pair, reference));
        // It is no other work, and what it costs or gains shows in the values.
        let alone = Some(WarnReason::SharedMemory);
        let memory = memory.map(|found| beside(found).warn_for(alone));
        let changed = changed.chain(memory);
        changed.chain(contained).chain(unknown).collect()
    }

    fn changed(&self, pair: Pair<'a>, how: Match, mode: Mode) -> Option<Found<'a>> {
        let (was, now) = (pair.reference, pair.current);
        let reference = mode.reference();
        let (before, after) = (self.reference.label(was), self.current.label(now));
        let compared = format!("`{before}` of the base is compared with `{after}`");
        let message = match how {
            Match::Same => return None,
            Match::OtherShape => {
                let (name, is, was) = (&now.name, shape(now), shape(was));
                let message = format!("`{name}` is launched with {is}, the {reference} with {was}");
                return Some((Code::LaunchChanged, now, message));
            }
            Match::Renamed if mode == Mode::Programs => {
                format!("{compared}, which has the same grid and block")
            }
            Match::OnlyOnes => format!(
                "{compared}, because each program launches one kernel: {}, now {}",
                shape(was),
                shape(now)
            ),
            Match::Renamed if before == after => format!(
                "`{before}` has another signature or linkage than in the {reference}: it was `{}`, is `{}`",
                was.identity(),
                now.identity()
            ),
            Match::Renamed => {
                let what = match now.code {
                    Some(_) => "is new",
                    None => "is launched with the same grid and block",
                };
                format!("`{before}` of the {reference} is gone, and `{after}` {what}")
            }
        };
        Some((Code::KernelsChanged, now, message))
    }

    /// No metric of a launch shows how often a kernel is launched.
    fn other_share(&self, pair: Pair<'a>, reference: &str) -> Option<Found<'a>> {
        let by_list = |profile: &Profile| {
            let list = profile.provenance.launch_list.as_ref();
            list.is_some_and(|list| !list.kernels.is_empty())
        };
        if by_list(self.reference) != by_list(self.current) {
            // Numbers of launches and of measured launches are not comparable.
            return None;
        }
        let was = Share::of(self.reference, pair.reference)?;
        let is = Share::of(self.current, pair.current)?;
        was.differs(&is).then(|| {
            let message = format!(
                "`{}` makes up {:.0} % of the launches, in the {reference} {:.0} %: how often it is launched changed, and no metric of a launch shows that",
                pair.current.name,
                100.0 * is.of_all(),
                100.0 * was.of_all()
            );
            (Code::LaunchChanged, pair.current, message)
        })
    }
}

/// How many of the launches that were profiled are one kernel's.
struct Share {
    launches: usize,
    all: usize,
    /// The profiler stops after so many launches, wherever the program is in its loop: one launch
    /// more or less a process is no difference.
    processes: usize,
}

impl Share {
    /// `None` of a single kernel, and of the static tier, which launches nothing. Where each kernel is
    /// counted by itself, the list of launches says how often each is launched, and without the list
    /// nothing does.
    fn of(profile: &Profile, kernel: &KernelProfile) -> Option<Share> {
        let list = profile.provenance.launch_list.as_ref();
        if let Some(list) = list.filter(|list| !list.kernels.is_empty()) {
            let launches = list.launches_of(kernel)? as usize;
            let all = list.kernels.iter().map(|one| one.launches as usize).sum();
            let several = profile.kernels.len() > 1 && launches > 0;
            return several.then_some(Share {
                launches,
                all,
                processes: 1,
            });
        }
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

/// That a kernel is launched with other dynamic shared memory.
fn other_shared_memory<'a>(pair: Pair<'a>, reference: &str) -> Option<Found<'a>> {
    let (was, is) = (
        &pair.reference.dynamic_shared_bytes, &pair.current.dynamic_shared_bytes,
    );
    // A launch may not show it.
    (!was.is_empty() && !is.is_empty() && was != is).then(|| {
        let message = format!(
            "`{}` is launched with {} of dynamic shared memory a block, the {reference} with {}",
            pair.current.name,
            bytes(is),
            bytes(was)
        );
        (Code::LaunchChanged, pair.current, message)
    })
}

/// That a launch does not show what the reference's does: it may have changed.
fn shared_memory_unknown(variant: &Variant, pair: Pair<'_>, reference: &str) -> Option<Finding> {
    let (was, is) = (
        &pair.reference.dynamic_shared_bytes, &pair.current.dynamic_shared_bytes,
    );
    (!was.is_empty() && is.is_empty()).then(|| {
        let message = format!(
            "the launches of `{}` do not show their dynamic shared memory, the {reference} has {}",
            pair.current.name,
            bytes(was)
        );
        let next = "profile it again, with this version";
        Finding::deny(Code::NotMeasured, &variant.id, message, next)
            .kernel(&pair.current.name)
            .warn_for(Some(WarnReason::SharedMemory))
    })
}

/// Sizes in bytes, for people.
fn bytes(sizes: &[u32]) -> String {
    let sizes = joined(sizes.iter().map(u32::to_string), " and ");
    format!("{sizes} bytes")
}

/// How a kernel is launched, for people.
fn shape(kernel: &KernelProfile) -> String {
    let (grid, block) = (dimensions(kernel.grid), dimensions(kernel.block));
    format!("grid {grid} and block {block}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::{listed, recorded, with_another};

    /// A profile of two kernels, of which the first makes so many of the launches of a process.
    fn two_kernels(first: usize) -> Profile {
        let mut profile = with_another(recorded());
        for (kernel, launches) in profile.kernels.iter_mut().zip([first, 20 - first]) {
            let series = kernel.metrics.values_mut();
            for process in series.flat_map(|series| &mut series.samples) {
                process.truncate(launches);
            }
        }
        profile
    }

    #[test]
    fn a_kernel_that_is_launched_more_often_differs_by_more_than_the_last_turn() {
        let share = |first: usize| {
            let profile = two_kernels(first);
            Share::of(&profile, &profile.kernels[0]).unwrap()
        };
        assert!(share(10).differs(&share(18)));
        assert!(!share(10).differs(&share(10)));
        assert!(!share(10).differs(&share(11)));
    }

    #[test]
    fn where_each_kernel_is_counted_by_itself_the_list_says_how_often_it_is_launched() {
        let listed = |launches: [u32; 2]| {
            let mut profile = two_kernels(10);
            listed(&mut profile, &launches, None);
            profile
        };
        let changed = |reference: &Profile, current: &Profile| {
            let pairing = pair_kernels(reference, current, Mode::Stored, false);
            let mut pairs = pairing.pairs();
            pairs.any(|pair| pairing.other_share(pair, "baseline").is_some())
        };
        assert!(!changed(&listed([20, 20]), &listed([20, 20])));
        assert!(!changed(&listed([40, 40]), &listed([20, 20])));
        // The same launches are measured of each, and the second is launched twice as often.
        assert!(changed(&listed([20, 20]), &listed([20, 40])));
        assert!(!changed(&two_kernels(10), &listed([20, 40])));
    }

    #[test]
    fn kernels_of_other_names_and_shapes_are_paired_only_where_each_program_has_one() {
        let reference = two_kernels(10);
        let mut current = two_kernels(10);
        for (at, kernel) in current.kernels.iter_mut().enumerate() {
            kernel.name = format!("k{at}");
            kernel.mangled = Some(format!("k{at}"));
            kernel.grid = [7, 7, 7];
        }
        let variant = crate::config::tests::variant("[suite.s.variant.v]\nrun = [\"x\"]\n");
        let found = |reference: &Profile, current: &Profile, mode| {
            let pairing = pair_kernels(reference, current, mode, false);
            let findings = pairing.findings(&variant, mode, |_| false).into_iter();
            let found: Vec<_> = findings
                .map(|one| {
                    assert_eq!(one.code, Code::KernelsChanged);
                    let said = ["was not measured", "is not in the", "is compared with"];
                    let said = said.iter().position(|words| one.message.contains(words));
                    (said.unwrap(), one.denies())
                })
                .collect();
            (pairing.pairs().count(), found)
        };
        let (gone, new, renamed) = ((0, true), (1, true), (2, false));
        let apart = (0, vec![gone, gone, new, new]);
        assert_eq!(found(&reference, &current, Mode::Programs), apart);
        let (mut one, mut other) = (reference, current);
        one.kernels.truncate(1);
        other.kernels.truncate(1);
        let apart = (0, vec![gone, new]);
        assert_eq!(found(&one, &other, Mode::Against), apart);
        assert_eq!(found(&one, &other, Mode::Programs), (1, vec![renamed]));
    }
}
