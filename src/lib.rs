//! `sparsek-gate` gates CUDA kernels on the hardware counters that NVIDIA Nsight Compute reads.
//!
//! The modules are the stages of a run, in their order: [`config`] says what to do, [`build`]
//! makes artifacts, [`verify`] asks whether their numbers are right, [`sanitize`] asks
//! compute-sanitizer, [`capture`] runs ncu and reads what it left, [`cupti`] times kernels where
//! ncu may not, [`profile`] normalizes that, [`comparable`] lists in what two differ, [`baseline`]
//! locks it, [`verdict`] compares and decides, [`report`] shows. [`trust`] says whose configuration and locks count, [`measure`] runs
//! the stages up to the profile. Besides them:
//! [`binary`] looks into what the compiler made, [`metric`] knows counters and units, [`device`]
//! the GPU, [`toolchain`] the compiler and NVIDIA's tools, [`process`] runs programs, [`files`] and
//! [`hash`] write and identify them, [`strip`] makes them fit to publish, [`diff`] puts two
//! measurements side by side, [`git`] names the revision, [`history`] follows a baseline through
//! the past, [`doctor`] examines the machine, and [`command`] composes the stages into the
//! subcommands of [`cli`].

pub mod baseline;
pub mod binary;
pub mod build;
pub mod capture;
pub mod cli;
pub mod command;
pub mod comparable;
pub mod config;
pub mod device;
pub mod diff;
pub mod doctor;
pub mod evidence;
pub mod files;
pub mod finding;
pub mod git;
pub mod hash;
pub mod history;
pub mod judge;
pub mod measure;
pub mod metric;
pub mod plan;
pub mod process;
pub mod profile;
pub mod profiler;
pub mod report;
pub mod sanitize;
pub mod statistics;
pub mod strip;
pub mod terms;
pub mod toolchain;
pub mod trust;
pub mod verdict;
pub mod verify;

pub use finding::{Error, ExitCode};
