//! What the compiler made: resources, machine code and warnings of each kernel, read from the
//! compiler's report and the cubin without running anything.

mod build_id;
mod compiled;
mod cubin;
mod error;
mod fatbin;
mod launch_shape;
mod loading;
mod machine_code;
mod metric;
mod occupancy;
mod ptx;
mod ptxas;
mod residency;
mod sass;

pub use build_id::build_id;
pub use compiled::{Compiled, compiled};
pub use cubin::{CompiledKernel, compiler_of, has_kernels, kernels_of, without_relocations};
pub use error::BinaryError;
pub use launch_shape::LaunchShape;
#[cfg(test)]
pub(crate) use loading::tests::program as c_program;
pub use loading::{contains, loads_at_run_time, needs_system_alone};
pub use machine_code::{machine_code, targets};
pub use metric::{
    OF_LAUNCH, ONLY_REPORTED, STATIC_METRICS, StaticMetric, StaticRule, static_metric, static_rank,
};
pub use occupancy::{Limits, Occupancy, ResourceUse};
pub use ptx::without_dynamic_shared;
pub use ptxas::{CompilerWarning, KernelResources, compiler_warnings, spills};
pub use residency::Residency;
pub(crate) use residency::whole;
pub use sass::{Census, census, loses_its_stores, other_source_types};
