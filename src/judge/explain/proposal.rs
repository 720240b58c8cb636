//! Which launches of a program to gate, proposed from what one run of it launched.

use std::collections::BTreeSet;

use super::overview::KernelOverview;
use crate::terms::joined;

/// Kernels with a smaller share of the time than this, in percent, are not proposed.
const SMALLEST_SHARE: f64 = 5.0;
/// Launches of each kernel that are proposed for one process.
const LAUNCHES: usize = 20;

/// Settings of a suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The filter, `NAME` or `regex:PATTERN`; `None` where all kernels are proposed.
    pub kernels: Option<String>,
    /// The names of the functions that it selects.
    pub names: Vec<String>,
    /// Launches of each kernel to leave out: the first, where there are enough of them.
    pub skip: usize,
    /// Launches of each kernel to measure in one process.
    pub launches: usize,
}

impl Proposal {
    /// Of the kernels of one process. `None` where it launched none.
    pub fn of(kernels: &[KernelOverview]) -> Option<Proposal> {
        let is_large = |kernel: &&KernelOverview| {
            let share = kernel.time_percent;
            share.is_none_or(|share| share >= SMALLEST_SHARE)
        };
        let taken = kernels.iter().filter(is_large);
        let mut names: Vec<String> = taken.map(|kernel| kernel.function.clone()).collect();
        names.sort();
        names.dedup();
        // A filter by name takes every launch of that function, with any grid.
        let is_taken = |kernel: &&KernelOverview| names.contains(&kernel.function);
        let counts = kernels.iter().filter(is_taken);
        let counts: Vec<usize> = counts.map(|kernel| kernel.launches).collect();
        let (least, most) = (counts.iter().min().copied()?, counts.iter().max().copied()?);
        let functions = kernels.iter().map(|kernel| &kernel.function);
        let functions: BTreeSet<&String> = functions.collect();
        // No kernel may be left out whole.
        let skip = usize::from(least >= 3);
        Some(Proposal {
            kernels: (names.len() < functions.len()).then(|| filter(&names)),
            launches: (most - skip).min(LAUNCHES),
            names,
            skip,
        })
    }
}

/// The filter that selects functions of these names.
fn filter(names: &[String]) -> String {
    match names {
        [name] => name.clone(),
        names => {
            let names = joined(names.iter().map(|name| regex::escape(name)), "|");
            format!("regex:^({names})$")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overview(kernels: &[(&str, usize, f64)]) -> Vec<KernelOverview> {
        let kernel = |&(name, launches, share): &(&str, usize, f64)| KernelOverview {
            kernel: format!("{name}()"),
            function: name.to_owned(),
            grid: [1; 3],
            block: [32, 1, 1],
            launches,
            time_percent: Some(share),
            duration_ns: Some(1000.0),
            sm_active_percent: None,
            tensor_percent: None,
            dram_percent: None,
            registers: None,
            bound: None,
        };
        kernels.iter().map(kernel).collect()
    }

    #[test]
    fn the_kernels_with_most_of_the_time_are_taken_each_with_its_own_count() {
        let two = overview(&[("a<int>", 100, 60.0), ("b", 50, 39.0), ("fill", 3, 1.0)]);
        let two = Proposal::of(&two).unwrap();
        assert_eq!(two.kernels.as_deref(), Some("regex:^(a<int>|b)$"));
        assert_eq!(two.skip, 1);
        assert_eq!(two.launches, 20);

        let one = Proposal::of(&overview(&[("k", 5, 98.0), ("fill", 1, 2.0)])).unwrap();
        assert_eq!(one.kernels.as_deref(), Some("k"));
        assert_eq!((one.skip, one.launches), (1, 4));

        // A kernel that is launched twice is not left out, and has fewer launches than the other.
        let few = overview(&[("k", 9, 50.0), ("once", 2, 50.0)]);
        let few = Proposal::of(&few).unwrap();
        assert_eq!((few.skip, few.launches), (0, 9));

        let alone = Proposal::of(&overview(&[("k", 1, 100.0)])).unwrap();
        assert_eq!(alone.kernels, None);
        assert_eq!((alone.skip, alone.launches), (0, 1));
        assert_eq!(Proposal::of(&overview(&[])), None);
    }
}
