//! `sparsek-gate` gates CUDA kernels on the hardware counters that NVIDIA Nsight Compute reads.
//!
//! The modules lie in layers; each uses only those below it. `docs/architecture.md` shows them, and
//! a test checks it. A run uses them in this order:
//!
//! [`config`] is read, [`plan`] lists the jobs, [`build`] makes the programs, [`verify`] and
//! [`sanitize`] check their numbers, [`profiler`] runs ncu or what stands in for it, [`capture`]
//! reads what a job left, [`profile`] normalizes it. [`measure`] runs these steps. [`comparable`] lists
//! in what two measurements differ, [`trust`] decides
//! whose configuration and locks count, [`baseline`] locks and verifies profiles, [`judge`] compares
//! them with the rule in [`verdict`], and [`report`] renders the outcome. [`command`] combines the
//! steps into the subcommands of [`cli`], and [`tips`] answers a mistyped one.
//!
//!
//! [`share`] packs programs and rules for another machine, and reads what that machine measured.
//!
//! Besides these: [`evidence`] finds incomplete, disturbed or implausible measurements, [`binary`]
//! reads what the compiler made, [`device`] watches the GPU, [`toolchain`] finds compiler and tools,
//! [`engine`] lets other machines measure, [`strip`] copies
//! captures for publication, and [`doctor`] examines the machine. [`metric`], [`statistics`],
//! [`finding`] and [`terms`] are shared words; [`process`], [`disk`], [`files`], [`git`] and [`hash`] reach
//! the system, and [`parallel`] uses all of its cores.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod baseline;
pub mod binary;
pub mod build;
pub mod capture;
pub mod cli;
pub mod command;
pub mod comparable;
pub mod config;
pub mod device;
pub mod disk;
pub mod doctor;
pub mod engine;
pub mod evidence;
pub mod files;
pub mod finding;
pub mod git;
pub mod hash;
pub mod judge;
pub mod measure;
pub mod metric;
pub mod parallel;
pub mod plan;
pub mod process;
pub mod profile;
pub mod profiler;
pub mod report;
pub mod sanitize;
pub mod share;
pub mod statistics;
pub mod strip;
pub mod terms;
pub mod tips;
pub mod toolchain;
pub mod trust;
pub mod verdict;
pub mod verify;

pub use finding::{Error, ExitCode};
