//! All tests of the tool as one program: it links once, and its tests run beside each other. One file a
//! subject; `cargo test --test all SUBJECT::` runs one.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

mod archive;
mod attacks;
mod baseline;
mod binary;
mod build_commands;
mod build_key;
mod check;
mod chips;
mod compare;
mod compressed;
mod config_errors;
mod cupti_reader;
mod doctor;
mod editors;
mod engines;
mod environment;
mod examples;
mod explain;
mod faults;
mod generations;
mod gpus;
mod history;
mod hostile;
mod import_inspect;
mod inputs;
mod kernels;
mod kernels_table;
mod killed;
mod ladder;
mod launch_shape;
mod layers;
mod loaded_code;
mod lock_kill;
mod machine_code;
mod matrix;
mod measure;
mod messages;
mod misbehave;
mod packages;
mod page;
mod pins;
mod pipelines;
mod pull_request;
mod recipes;
mod reports;
mod resume;
mod rule;
mod same_program;
mod sanitizer;
mod sick_gpu;
mod side_by_side;
mod slices;
mod slow_launches;
mod slurm;
mod stages;
mod static_gate;
mod strip;
mod trust_page;
mod verified;
mod waivers;
mod work;
