//! `sparsek-gate` gates CUDA kernels on the hardware counters that NVIDIA Nsight Compute reads.
//!
//! The modules are the stages and the nouns of a run:
//! [`capture`] holds what one profiling run left and reads it (`.ncu-rep` and CSV),
//! [`metric`] knows counter names, chips and units.

pub mod capture;
pub mod metric;
