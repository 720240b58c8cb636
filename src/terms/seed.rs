//! The seed of a process.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a process under test makes the values of its inputs from: 32 bits, since many generators
/// of random numbers take no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Seed(pub u32);

impl Seed {
    /// One that nobody knows before: from the random numbers of the system. There is no way to set
    /// it from outside, since a program that knows its seed can bring its results along.
    ///
    /// # Errors
    /// Where the system has no random numbers.
    pub fn fresh() -> io::Result<Seed> {
        let mut bytes = [0; 4];
        // So few bytes come as a whole, or not at all.
        while getrandom(&mut bytes, GetRandomFlags::empty())? < bytes.len() {}
        Ok(Seed(u32::from_ne_bytes(bytes)))
    }
}

impl std::fmt::Display for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_seeds_in_a_row_are_equal() {
        let seeds: Vec<u32> = (0..8).map(|_| Seed::fresh().unwrap().0).collect();
        assert!(seeds.windows(2).all(|two| two[0] != two[1]), "{seeds:?}");
    }
}
