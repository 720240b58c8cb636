//! The slowest launches of each process.

use super::sample::{Samples, mean};

/// A tenth of so many launches, rounded up: at least one.
pub fn tenth(launches: usize) -> usize {
    launches.div_ceil(10).max(1)
}

/// The mean of the slowest tenth of the first launches of each process, as the one value of that
/// process. A mean of few extremes depends on how many launches they are the extremes of, so samples
/// that are compared need the same number. A process of fewer launches has a tenth of its own.
///
/// `None` where no launch is taken.
pub fn slowest_tenth(samples: &Samples, launches: usize) -> Option<Samples> {
    let of_process = |process: &Vec<f64>| {
        let mut sorted = process[..process.len().min(launches)].to_vec();
        sorted.sort_by(f64::total_cmp);
        let slowest = tenth(sorted.len()).min(sorted.len());
        vec![mean(&sorted[sorted.len() - slowest..])]
    };
    let machines = samples.machines().iter();
    let machines = machines.map(|processes| processes.iter().map(of_process).collect());
    Samples::new(machines.collect())
}

/// Launches of the shortest process of these.
pub fn fewest_launches(sides: [&Samples; 2]) -> usize {
    let processes = sides
        .iter()
        .flat_map(|side| side.machines().iter().flatten());
    processes.map(Vec::len).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slowest(launches: &[f64], of_first: usize) -> Option<f64> {
        let samples = Samples::new(vec![vec![launches.to_vec()]]).unwrap();
        Some(slowest_tenth(&samples, of_first)?.value())
    }

    #[test]
    fn a_tenth_is_rounded_up_and_never_empty() {
        let tenths = [1, 2, 10, 11, 20, 21, 80].map(tenth);
        assert_eq!(tenths, [1, 1, 1, 2, 2, 3, 8]);
    }

    #[test]
    fn the_slowest_tenth_of_known_launches() {
        let mut launches: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(slowest(&launches, 20), Some(19.5));
        launches.reverse();
        assert_eq!(slowest(&launches, 20), Some(19.5));
        // Only the first ones count, and there is nothing in none.
        assert_eq!(slowest(&launches, 10), Some(20.0));
        assert_eq!(slowest(&launches[15..], 20), Some(5.0));
        assert_eq!(slowest(&launches, 0), None);
    }

    #[test]
    fn each_process_has_one_value() {
        let machine = vec![vec![1.0, 5.0], vec![7.0, 3.0]];
        let samples = Samples::new(vec![machine, vec![vec![9.0]]]).unwrap();
        let tail = slowest_tenth(&samples, 20).unwrap();
        assert_eq!(tail.process_values(), [vec![5.0, 7.0], vec![9.0]]);
    }
}
