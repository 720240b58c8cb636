//! Random numbers that a seed repeats.

/// xorshift64*.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u32) -> Random {
        Random(u64::from(seed) << 20 | 0x9e37)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number from 0 up to, and without, `end`; 0 for no range.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end.max(1)
    }

    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}
