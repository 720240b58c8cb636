//! Which launches of a program to gate, proposed from what one run of it launched.

use super::overview::{KernelOverview, Overview};

/// Kernels with a smaller share of the time than this, in percent, are not proposed.
const SMALLEST_SHARE: f64 = 5.0;
/// Launches of each kernel that are proposed for one process.
const STEPS: usize = 20;
/// Launches of each kernel that are proposed for the process that counts.
const COUNTED_STEPS: usize = 2;

/// Settings of a suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The filter, `NAME` or `regex:PATTERN`; `None` where all kernels are proposed.
    pub kernels: Option<String>,
    /// The names of the functions that it selects.
    pub names: Vec<String>,
    /// Launches of all of them in one step of the program.
    pub in_a_step: usize,
    /// Launches to leave out: the first step, where there are enough of them.
    pub skip: usize,
    /// Launches to measure in one process.
    pub launches: usize,
    /// Launches to measure in the process that counts: each kernel twice.
    pub counted_launches: usize,
}

impl Proposal {
    /// Of the kernels of one process. `None` where it launched none.
    ///
    /// How often a kernel is launched beside the others shows how many launches a step has: the one
    /// that is launched least often is launched once in it.
    pub fn of(overview: &Overview) -> Option<Proposal> {
        let is_large = |kernel: &&KernelOverview| {
            let share = kernel.time_percent;
            share.is_none_or(|share| share >= SMALLEST_SHARE)
        };
        let taken = overview.kernels.iter().filter(is_large);
        let mut names: Vec<String> = taken.map(|kernel| kernel.function.clone()).collect();
        names.sort();
        names.dedup();
        // A filter by name takes every launch of that function, with any grid.
        let is_taken = |kernel: &&KernelOverview| names.contains(&kernel.function);
        let counts = overview.kernels.iter().filter(is_taken);
        let counts: Vec<usize> = counts.map(|kernel| kernel.launches).collect();
        let (all, least) = (counts.iter().sum::<usize>(), counts.iter().min().copied()?);
        // Rounded: the run may end within a step, so that some kernels have one launch more.
        let in_a_step = counts
            .iter()
            .map(|count| (count + least / 2) / least.max(1));
        let in_a_step = in_a_step.sum::<usize>().max(1);
        let skip = if all >= 3 * in_a_step { in_a_step } else { 0 };
        let left = all.saturating_sub(skip);
        let whole = (left / in_a_step).min(STEPS) * in_a_step;
        Some(Proposal {
            kernels: (names.len() < functions(overview)).then(|| filter(&names)),
            launches: if whole > 0 { whole } else { left },
            counted_launches: (COUNTED_STEPS * in_a_step).min(left),
            names,
            in_a_step,
            skip,
        })
    }
}

/// How many functions the kernels are.
fn functions(overview: &Overview) -> usize {
    let mut names: Vec<&str> = overview
        .kernels
        .iter()
        .map(|k| k.function.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    names.len()
}

/// The filter that selects functions of these names.
fn filter(names: &[String]) -> String {
    match names {
        [name] => name.clone(),
        names => {
            let names: Vec<String> = names.iter().map(|name| regex::escape(name)).collect();
            format!("regex:^({})$", names.join("|"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overview(kernels: &[(&str, usize, f64)]) -> Overview {
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
        Overview {
            kernels: kernels.iter().map(kernel).collect(),
        }
    }

    #[test]
    fn the_kernels_with_most_of_the_time_are_taken_in_whole_steps() {
        let two = overview(&[("a<int>", 100, 60.0), ("b", 50, 39.0), ("fill", 3, 1.0)]);
        let two = Proposal::of(&two).unwrap();
        assert_eq!(two.kernels.as_deref(), Some("regex:^(a<int>|b)$"));
        assert_eq!((two.in_a_step, two.skip), (3, 3));
        assert_eq!((two.launches, two.counted_launches), (60, 6));

        let one = Proposal::of(&overview(&[("k", 5, 98.0), ("fill", 1, 2.0)])).unwrap();
        assert_eq!(one.kernels.as_deref(), Some("k"));
        assert_eq!((one.skip, one.launches, one.counted_launches), (1, 4, 2));

        let cut = overview(&[("a", 167, 40.0), ("b", 167, 30.0), ("c", 166, 30.0)]);
        assert_eq!(Proposal::of(&cut).unwrap().in_a_step, 3);

        let alone = Proposal::of(&overview(&[("k", 2, 100.0)])).unwrap();
        assert_eq!(alone.kernels, None);
        assert_eq!((alone.skip, alone.launches), (0, 2));
        assert_eq!(Proposal::of(&overview(&[])), None);
    }
}
