//! Which launches of the selected kernels are measured.

/// Launches by their place among those that match the filter of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchSelection {
    /// Matching launches left out before the measured ones.
    pub skip: u32,
    /// The most launches that are measured after them.
    pub count: u32,
    /// Whether both count the launches of each kernel, at each grid and block, by themselves.
    pub per_kernel: bool,
}

impl LaunchSelection {
    /// Whether the launch of this ordinal, from 0, is measured.
    pub fn contains(self, ordinal: u64) -> bool {
        let skip = u64::from(self.skip);
        (skip..skip + u64::from(self.count)).contains(&ordinal)
    }

    /// A regular expression of the numbers of the measured launches, from 1, in decimal digits.
    pub fn pattern(self) -> String {
        let first = u64::from(self.skip) + 1;
        let parts = ranges(first, u64::from(self.skip) + u64::from(self.count));
        format!("^({})$", parts.join("|"))
    }
}

/// Patterns that match the numbers from `first` to `last`, each a number of fixed digits, a class of
/// one digit, and any digits.
fn ranges(first: u64, last: u64) -> Vec<String> {
    let mut parts = Vec::new();
    let mut low = first;
    while low <= last {
        // The largest power of ten that divides the number, whose whole decade is within the range.
        let mut free = 0;
        let mut size = 1_u64;
        while low.is_multiple_of(size * 10) && low > 0 && low + size * 10 - 1 <= last {
            size *= 10;
            free += 1;
        }
        // As many such decades as follow with the same digits before them.
        let digit = low / size % 10;
        let decades = (last - low + 1) / size;
        let end = (digit + decades - 1).min(9);
        let before = match low / size / 10 {
            0 => String::new(),
            digits => digits.to_string(),
        };
        let class = match digit == end {
            true => digit.to_string(),
            false => format!("[{digit}-{end}]"),
        };
        parts.push(format!("{before}{class}{}", "[0-9]".repeat(free)));
        low += (end - digit + 1) * size;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_matches_the_numbers_of_the_measured_launches_and_no_other() {
        let selection = |skip, count| LaunchSelection {
            skip,
            count,
            per_kernel: true,
        };
        assert_eq!(selection(0, 20).pattern(), "^([1-9]|1[0-9]|20)$");
        assert_eq!(selection(1, 1).pattern(), "^(2)$");
        for (skip, count) in [
            (0, 1),
            (0, 9),
            (1, 20),
            (9, 1),
            (7, 95),
            (98, 4),
            (99, 1901),
            (123, 9000),
            (0, 10_000),
        ] {
            let selection = selection(skip, count);
            let pattern = regex::Regex::new(&selection.pattern()).unwrap();
            for number in 1..=12_000_u64 {
                assert_eq!(
                    pattern.is_match(&number.to_string()),
                    selection.contains(number - 1),
                    "{number} of {}",
                    selection.pattern()
                );
            }
        }
    }
}
