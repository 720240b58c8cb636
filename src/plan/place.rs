//! Which slice of a plan a machine measures: `2/8`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most slices of a plan.
pub const MOST_SLICES: u32 = 10_000;

/// One slice of a plan.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct SlicePlace {
    /// Which one, from 1.
    pub index: u32,
    /// How many there are.
    pub count: u32,
}

impl SlicePlace {
    /// The slice `index` of `count`.
    ///
    /// # Errors
    /// In words, where there is no such slice.
    pub fn new(index: u32, count: u32) -> Result<SlicePlace, String> {
        if !(1..=MOST_SLICES).contains(&count) {
            return Err(format!("a plan has 1 to {MOST_SLICES} slices, not {count}"));
        }
        if !(1..=count).contains(&index) {
            return Err(format!(
                "slices are counted from 1 to {count}: there is no slice {index}"
            ));
        }
        Ok(SlicePlace { index, count })
    }
}

impl fmt::Display for SlicePlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index, self.count)
    }
}

impl FromStr for SlicePlace {
    type Err = String;

    fn from_str(text: &str) -> Result<SlicePlace, String> {
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u32>().ok().filter(|_| digits)
        };
        let parts = text.split_once('/');
        let numbers = parts.and_then(|(index, count)| Some((number(index)?, number(count)?)));
        let (index, count) = numbers.ok_or("write it as 2/8")?;
        SlicePlace::new(index, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_counted_from_one() {
        let place = SlicePlace { index: 2, count: 8 };
        assert_eq!("2/8".parse(), Ok(place));
        for wrong in [
            "", "2", "0/8", "9/8", "1/0", "-1/8", "+1/8", "1/8/2", "auto", "/8", "1/10001", "a/b",
            " 1/8", "99999999999/8",
        ] {
            assert!(wrong.parse::<SlicePlace>().is_err(), "{wrong}");
        }
    }
}
