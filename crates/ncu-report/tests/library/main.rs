//! All tests as one program, but those that count memory or start NVIDIA's module. It links once.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

#[path = "../common/mod.rs"]
mod common;

mod csv_pages;
mod damaged_reports;
mod files;
mod pairs;
mod stripped_reports;
mod values_and_units;
