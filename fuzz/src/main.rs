//! Coverage-guided tests of every reader of foreign bytes, with libFuzzer.
//!
//! All targets are in one program; the environment variable `FUZZ_TARGET` selects one. Each panics
//! where a reader breaks a promise: it stops, hangs, takes too much memory, or gives a number that
//! its input does not contain. `run.sh` builds and runs them.

#![no_main]

mod checks;
mod edits;
mod json;
mod limits;
mod random;
mod targets;
mod wire;

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use targets::Target;

fuzz_target!(init: prepare(), |input: &[u8]| {
    limits::checked(input.len(), || (Target::chosen().run)(input));
});

/// What is read and compiled once, such as patterns, counts for no input.
fn prepare() {
    (Target::chosen().run)(b"");
    (Target::chosen().run)(b"{}");
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut random = random::Random::new(seed);
    let mutated = Target::chosen()
        .mutation
        .changed(&data[..size], &mut random);
    match mutated {
        Some(bytes) if bytes.len() <= max_size => {
            data[..bytes.len()].copy_from_slice(&bytes);
            bytes.len()
        }
        _ => libfuzzer_sys::fuzzer_mutate(data, size, max_size),
    }
});
