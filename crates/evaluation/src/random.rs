//! Random numbers that are the same on every machine: SplitMix64 (Steele, Lea, Flood, 2014).

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random numbers.
pub struct Random(u64);

impl Random {
    /// The stream of a seed, a purpose and a number. It does not depend on what else is drawn.
    pub fn new(seed: u64, purpose: &str, number: usize) -> Random {
        let mut random = Random(seed);
        for byte in purpose.bytes() {
            random.0 = random.next() ^ u64::from(byte);
        }
        random.0 = random.next() ^ number as u64;
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of `0..count`; `count` is not zero.
    pub fn below(&mut self, count: usize) -> usize {
        // The high half of the product: its bias is below 2⁻⁵⁰ for the few hundred needed here.
        ((u128::from(self.next()) * count as u128) >> 64) as usize
    }

    /// Heads or tails.
    pub fn coin(&mut self) -> bool {
        self.below(2) == 1
    }

    /// `count` numbers of `0..among`, with equal chances, possibly repeated.
    pub fn with_replacement(&mut self, count: usize, among: usize) -> Vec<usize> {
        (0..count).map(|_| self.below(among)).collect()
    }
}
