//! What a measured command line launches besides the launches that are measured.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kernel::KernelProfile;
use crate::terms::first;

/// Most kernels that are listed by name; the others are added up under [`FURTHER`].
const MOST_NAMES: usize = 64;
const FURTHER: &str = "(further kernels)";

/// All launches of one process with the command line that is measured, as CUPTI recorded them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchList {
    /// Launches that are measured.
    pub measured: u32,
    /// All others, those with the most launches first.
    pub others: Vec<OtherLaunches>,
    /// How often each measured kernel is launched in all, where each is counted by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<KernelLaunches>,
    /// The number of steps that `{launches}` stated; absent where the program decides that itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
}

/// All launches of one kernel in a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelLaunches {
    /// The linker's name of its function.
    pub mangled: String,
    /// Blocks in x, y, z.
    pub grid: [u64; 3],
    /// Threads a block in x, y, z.
    pub block: [u64; 3],
    /// How many there are, measured or not.
    pub launches: u32,
}

/// Launches of one kernel that are not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherLaunches {
    /// Name of the kernel's function.
    pub kernel: String,
    /// How many there are.
    pub launches: u32,
    /// How many of them come after the first measured launch and before the last.
    pub between: u32,
}

impl KernelLaunches {
    /// Whether they are those of a measured kernel.
    pub(super) fn is_of(&self, kernel: &KernelProfile) -> bool {
        let same = (self.grid, self.block) == (kernel.grid, kernel.block);
        same && kernel.mangled.as_deref() == Some(&self.mangled)
    }
}

impl LaunchList {
    /// Of all launches in their order: the name of each, and whether it is measured.
    pub fn of(launches: &[(String, bool)]) -> LaunchList {
        let measured = |&(_, measured): &(String, bool)| measured;
        let first = launches.iter().position(measured);
        let last = launches.iter().rposition(measured);
        let mut by_name: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for (at, (name, _)) in launches.iter().enumerate().filter(|(_, (_, m))| !m) {
            let between =
                first.is_some_and(|first| first < at) && last.is_some_and(|last| at < last);
            let counts = by_name.entry(name).or_default();
            counts.0 = counts.0.saturating_add(1);
            counts.1 = counts.1.saturating_add(u32::from(between));
        }
        let other = |(kernel, (launches, between)): (&str, (u32, u32))| OtherLaunches {
            kernel: kernel.to_owned(),
            launches,
            between,
        };
        let mut others: Vec<OtherLaunches> = by_name.into_iter().map(other).collect();
        others.sort_by_key(|other| std::cmp::Reverse(other.launches));
        if others.len() > MOST_NAMES {
            let rest = others.split_off(MOST_NAMES - 1);
            let sum =
                |of: fn(&OtherLaunches) -> u32| rest.iter().map(of).fold(0, u32::saturating_add);
            others.push(other((
                FURTHER,
                (sum(|one| one.launches), sum(|one| one.between)),
            )));
        }
        let measured = launches.iter().filter(|one| measured(one)).count();
        LaunchList {
            measured: u32::try_from(measured).unwrap_or(u32::MAX),
            others,
            ..LaunchList::default()
        }
    }

    /// How often a measured kernel is launched in all; `None` where that is not listed.
    pub fn launches_of(&self, kernel: &KernelProfile) -> Option<u32> {
        let mut kernels = self.kernels.iter();
        let own = kernels.find(|one| one.is_of(kernel));
        own.map(|own| own.launches)
    }

    /// What is launched here and not in a reference: kernels that it does not launch, and launches
    /// beyond its own. Everything, where there is no reference.
    pub fn beyond(&self, reference: Option<&LaunchList>) -> LaunchList {
        let known = |kernel: &str| {
            let mut others = reference.into_iter().flat_map(|list| &list.others);
            others.find(|other| other.kernel == kernel)
        };
        let beyond = |other: &OtherLaunches| {
            let (launches, between) =
                known(&other.kernel).map_or((0, 0), |known| (known.launches, known.between));
            OtherLaunches {
                kernel: other.kernel.clone(),
                launches: other.launches.saturating_sub(launches),
                between: other.between.saturating_sub(between),
            }
        };
        LaunchList {
            measured: self.measured,
            others: self
                .others
                .iter()
                .map(beyond)
                .filter(|other| other.launches > 0 || other.between > 0)
                .collect(),
            ..LaunchList::default()
        }
    }

    /// Whether other launches run between the measured ones, about one for each: at least one for
    /// every two of them. They may do the work that the measured kernel seems to do.
    pub fn interleaved(&self) -> bool {
        let between = self.others.iter().map(|other| u64::from(other.between));
        let gaps = u64::from(self.measured.saturating_sub(1));
        gaps > 0 && 2 * between.sum::<u64>() >= gaps
    }

    /// `fill × 3, scale × 19 (19 between measured launches)`, the first few.
    pub fn words(&self) -> String {
        const MOST: usize = 5;
        let one = |other: &OtherLaunches| match other.between {
            0 => format!("{} × {}", other.kernel, other.launches),
            between => format!(
                "{} × {} ({between} between measured launches)",
                other.kernel, other.launches
            ),
        };
        first(self.others.iter().map(one), MOST)
    }

    /// Launches that are not measured.
    pub fn other_launches(&self) -> u32 {
        let launches = self.others.iter().map(|other| other.launches);
        launches.fold(0, u32::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `m` is a measured launch, anything else one of the kernel of that name.
    fn list(launches: &str) -> LaunchList {
        let launches = launches.chars().map(|c| (c.to_string(), c == 'm'));
        LaunchList::of(&launches.collect::<Vec<_>>())
    }

    #[test]
    fn only_other_launches_between_measured_ones_about_one_for_each_are_interleaved() {
        // Launches, those of the reference, whether they are interleaved, and what the reference has not.
        // One for two of the measured ones is enough, and names do not matter.
        let table = "
ffmmmm | | false | f × 2
ffmmmmcc | | false | c × 2, f × 2
mmmm | | false |
mxmxmxm | | true | x × 3 (3 between measured launches)
mxmmym | | true | x × 1 (1 between measured launches), y × 1 (1 between measured launches)
mmxmmm | | false | x × 1 (1 between measured launches)
fmxmxm | fmxmxm | false |
fmxmxm | ffmxmxmx | false |
mxmxm | xxmmm | true | x × 0 (2 between measured launches)
mxxmxxm | mxmxm | true | x × 2 (2 between measured launches)
mxmxm | mymym | true | x × 2 (2 between measured launches)
fmmm | mmm | false | f × 1
xmx | | false | x × 2
xx | | false | x × 2
";
        for row in table.trim().lines() {
            let row: Vec<&str> = row.split(" |").map(str::trim).collect();
            let [launches, reference, interleaved, beyond] = row[..] else {
                panic!("{row:?}");
            };
            let reference = (!reference.is_empty()).then(|| list(reference));
            let found = list(launches).beyond(reference.as_ref());
            assert_eq!(found.words(), beyond, "{launches}");
            assert_eq!(found.interleaved().to_string(), interleaved, "{launches}");
        }
    }

    #[test]
    fn a_program_that_gives_each_launch_another_name_is_listed_in_a_bounded_space() {
        let launches: Vec<(String, bool)> = (0..1000)
            .map(|number| (format!("kernel_{number}"), number % 2 == 0))
            .collect();
        let list = LaunchList::of(&launches);
        assert_eq!((list.others.len(), list.other_launches()), (64, 500));
        assert!(list.interleaved());
    }
}
