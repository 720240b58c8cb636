//! The static metrics: what can be gated of a compiled kernel.

use serde::Serialize;

use super::cubin::CompiledKernel;
use super::launch_shape::LaunchShape;
use super::occupancy::{Limits, Occupancy, ResourceUse};
use crate::metric::{Direction, Level, capability_of_arch};
use crate::terms::words;

/// A metric of a compiled kernel.
#[derive(Debug)]
pub struct StaticMetric {
    /// Its name.
    pub name: &'static str,
    /// The unit of its values; empty for counts, and for registers, which are a thread's.
    pub unit: &'static str,
    /// Which way it gets better.
    pub direction: Direction,
    /// What a regression does where the configuration does not say it.
    pub level: Level,
    /// How it regresses, where the configuration gives it no level.
    pub rule: StaticRule,
    /// The generations that have it, as major compute capabilities; empty for all.
    generations: &'static [u64],
    value: fn(&Facts<'_>) -> Option<f64>,
}

/// How a static metric regresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum StaticRule {
    /// Where it gets worse.
    #[default]
    Worse,
    /// Where the reference has some and the current kernel has none.
    NeverZero,
    /// Where it gets worse, and nothing where it is not known.
    WhereKnown,
    /// Where it gets worse; only a warning where the occupancy does not fall.
    ThroughOccupancy,
}

/// A kernel with what is known of its launch.
struct Facts<'a> {
    kernel: &'a CompiledKernel,
    driver_shared_bytes: Option<u32>,
    /// What its occupancy is for.
    shape: LaunchShape,
    occupancy: Option<Occupancy>,
}

macro_rules! metrics {
    ($($name:literal [$unit:literal] $direction:ident $level:ident $($rule:ident)? $(only $generations:tt)? = $value:expr;)+) => {
        /// All of them, sorted by name.
        pub const STATIC_METRICS: &[StaticMetric] = &[$(StaticMetric {
            name: $name,
            unit: $unit,
            direction: Direction::$direction,
            level: Level::$level,
            rule: metrics!(@ $($rule)?),
            generations: &metrics!(# $($generations)?),
            value: $value,
        }),+];
    };
    (@) => { StaticRule::Worse };
    (@ $rule:ident) => { StaticRule::$rule };
    (#) => { [] };
    (# $generations:tt) => { $generations };
}

metrics! {
    "async_copy_instructions" [""] Equal Record = |f| f.count(&["LDGSTS"]);
    "barriers" [""] Equal Record = |f| Some(f64::from(f.kernel.resources.barriers));
    "cluster_blocks" [""] Equal Record = |f| Some(f64::from(f.kernel.cluster_blocks));
    "constant_bytes" ["byte"] Lower Record = |f| Some(f64::from(f.kernel.constant_bytes));
    "driver_shared_bytes" ["byte"] Lower Record = |f| f.driver_shared_bytes.map(f64::from);
    "dynamic_shared_bytes" ["byte"] Lower Record = |f| f.shape.dynamic_shared_bytes.map(f64::from);
    "global_instructions" [""] Lower Record = |f| f.count(GLOBAL);
    "instructions" [""] Lower Record = |f| f.all();
    "local_load_instructions" [""] Lower Record = |f| f.count(&["LDL"]);
    "local_store_instructions" [""] Lower Record = |f| f.count(&["STL"]);
    "max_threads_per_block" [""] Equal Record = |f| f.kernel.max_threads.map(f64::from);
    "mma_instructions" [""] Higher Record = |f| f.count(MMA);
    "occupancy" ["%"] Higher Deny WhereKnown = |f| Some(f.occupancy?.percent);
    "occupancy_limit_registers" [""] Higher Record = |f| Some(f64::from(f.occupancy?.limit_registers));
    "occupancy_limit_shared_mem" [""] Higher Record = |f| Some(f64::from(f.occupancy?.limit_shared_mem));
    "occupancy_limit_warps" [""] Higher Record = |f| Some(f64::from(f.occupancy?.limit_warps));
    "performance_warnings" [""] Lower Deny = |f| f.kernel.performance_warnings.map(f64::from);
    "registers" [""] Lower Deny ThroughOccupancy = |f| Some(f64::from(f.kernel.resources.registers));
    "setmaxnreg_instructions" [""] Equal Record = |f| f.count(&["USETMAXREG"]);
    "shared_instructions" [""] Lower Record = |f| f.count(SHARED);
    "spill_bytes" ["byte"] Lower Deny = |f| {
        let resources = &f.kernel.resources;
        Some(f64::from(resources.spill_store_bytes?) + f64::from(resources.spill_load_bytes?))
    };
    "spill_load_bytes" ["byte"] Lower Record = |f| f.kernel.resources.spill_load_bytes.map(f64::from);
    "spill_shared_bytes" ["byte"] Lower Record = |f| Some(f64::from(f.kernel.spill_shared_bytes));
    "spill_store_bytes" ["byte"] Lower Record = |f| f.kernel.resources.spill_store_bytes.map(f64::from);
    "stack_bytes" ["byte"] Lower Deny = |f| Some(f64::from(f.kernel.resources.stack_bytes));
    "static_shared_bytes" ["byte"] Lower Record = |f| Some(f64::from(f.kernel.resources.shared_bytes));
    "tcgen05_instructions" [""] Higher Deny NeverZero only [10, 11] = |f| f.count(TCGEN05);
    "tensor_instructions" [""] Higher Deny NeverZero = |f| {
        Some(f.count(MMA)? + f.count(WGMMA)? + f.count(TCGEN05)?)
    };
    "threads_per_block" [""] Equal Record = |f| f.shape.threads.map(f64::from);
    "tma_instructions" [""] Higher Record = |f| f.count(TMA);
    "wgmma_instructions" [""] Higher Deny NeverZero only [9] = |f| f.count(WGMMA);
}

/// The names of those that no machine code shows: only the compiler's report has them.
pub const ONLY_REPORTED: &[&str] = &[
    "performance_warnings", "spill_bytes", "spill_load_bytes", "spill_store_bytes",
];

/// The names of those that depend on how the kernel is launched, and the launch's own numbers first.
pub const OF_LAUNCH: [&str; 6] = words(
    "dynamic_shared_bytes threads_per_block occupancy occupancy_limit_registers \
     occupancy_limit_shared_mem occupancy_limit_warps",
);

/// Those that cost the most, most first.
const HEAVIEST: [&str; 4] = [
    "spill_bytes", "stack_bytes", "occupancy", "tensor_instructions",
];

/// The place of a metric among all, those first that cost the most.
pub fn static_rank(name: &str) -> usize {
    let place = HEAVIEST.iter().position(|heavy| *heavy == name);
    place.unwrap_or(HEAVIEST.len())
}

/// Matrix instructions of a warp, by the type of their operands.
const MMA: &[&str] = &["HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "OMMA"];
/// Matrix instructions of a warp group (sm_90a).
const WGMMA: &[&str] = &["HGMMA", "IGMMA", "BGMMA", "QGMMA"];
/// Matrix instructions of the fifth generation, whose results lie in tensor memory (sm_100a).
const TCGEN05: &[&str] = &["UTCHMMA", "UTCIMMA", "UTCOMMA", "UTCQMMA"];
/// Loads, stores and atomics of global memory that need no copy engine.
const GLOBAL: &[&str] = &["LDG", "STG", "ATOMG", "ATOM", "RED", "REDG", "LD", "ST"];
/// Loads, stores and atomics of shared memory.
const SHARED: &[&str] = &["LDS", "STS", "LDSM", "STSM", "ATOMS"];
/// Bulk copies by the tensor memory accelerator, with and without a tensor map.
const TMA: &[&str] = &[
    "UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF", "UBLKCP", "UBLKRED", "UBLKPF",
];

/// How the opcodes begin that read or write shared memory, or synchronize through it.
const USES_SHARED: [&str; 10] = [
    "LDS", "STS", "ATOMS", "LDGSTS", "UBLK", "UTMA", "UTC", "SYNCS", "ARRIVES", "REDS",
];
/// Opcodes whose addresses may be in shared memory.
const GENERIC: [&str; 5] = ["LD", "ST", "ATOM", "RED", "QSPC"];

impl Facts<'_> {
    fn count(&self, names: &[&str]) -> Option<f64> {
        let opcodes = self.kernel.opcodes.as_ref()?;
        let of_kind = opcodes.iter().filter(|(opcode, _)| {
            let base = opcode.split('.').next().unwrap_or_default();
            names.contains(&base)
        });
        Some(of_kind.map(|(_, count)| f64::from(*count)).sum())
    }

    fn all(&self) -> Option<f64> {
        let opcodes = self.kernel.opcodes.as_ref()?;
        Some(opcodes.values().map(|count| f64::from(*count)).sum())
    }
}

impl StaticMetric {
    /// Whether it is a means to a short duration, and no end: then it matters less where the duration
    /// is known.
    pub fn is_means(&self) -> bool {
        self.rule != StaticRule::NeverZero && self.name != "performance_warnings"
    }

    /// Whether the chips of a compiler's target such as `sm_90a` can have it.
    pub fn is_on(&self, arch: &str) -> bool {
        let generation = capability_of_arch(arch).map(|(major, _)| major);
        let has = |major| self.generations.contains(&major);
        self.generations.is_empty() || generation.is_some_and(has)
    }

    /// What stands for a counter's name in profiles and reports.
    pub fn counter(&self) -> String {
        format!("static__{}", self.name)
    }
}

/// The metric of that name.
pub fn static_metric(name: &str) -> Option<&'static StaticMetric> {
    STATIC_METRICS.iter().find(|metric| metric.name == name)
}

impl CompiledKernel {
    /// The static metrics by name; `None` is not known. `arch` is the compiler's target, `stated` what
    /// the configuration states of a launch, and `launched` what launches were seen to have: that
    /// counts where the two differ. Of several launches the one with the lowest occupancy counts, and
    /// before it one whose occupancy is not known.
    pub fn metrics(
        &self,
        arch: &str,
        stated: LaunchShape,
        launched: &[LaunchShape],
    ) -> Vec<(&'static StaticMetric, Option<f64>)> {
        let measured = launched.iter().map(|seen| self.shape(stated, Some(*seen)));
        let shapes = measured.map(|shape| (self.occupancy(arch, shape), shape));
        let lowest = shapes.min_by(|(one, _), (other, _)| {
            let percent = |found: &Option<Occupancy>| found.map_or(-1.0, |found| found.percent);
            percent(one).total_cmp(&percent(other))
        });
        let (occupancy, shape) = lowest.unwrap_or_else(|| {
            let shape = self.shape(stated, None);
            (self.occupancy(arch, shape), shape)
        });
        let facts = Facts {
            kernel: self,
            driver_shared_bytes: self.driver_share(arch),
            shape,
            occupancy,
        };
        STATIC_METRICS
            .iter()
            .filter(|metric| metric.is_on(arch))
            .map(|metric| (metric, (metric.value)(&facts)))
            .collect()
    }

    /// What occupancy is computed for. Launch bounds count before the threads of a launch, because a
    /// check that sees no launch knows only them.
    fn shape(&self, stated: LaunchShape, launched: Option<LaunchShape>) -> LaunchShape {
        let launched = launched.unwrap_or_default();
        LaunchShape {
            dynamic_shared_bytes: launched
                .dynamic_shared_bytes
                .or(stated.dynamic_shared_bytes)
                .or(self.takes_no_dynamic_shared().then_some(0)),
            threads: match stated.threads {
                Some(threads) => Some(launched.threads.unwrap_or(threads)),
                None => self.max_threads.or(launched.threads),
            },
        }
    }

    /// Whether its launch need not ask for dynamic shared memory: as the PTX shows, or the instructions,
    /// of which none uses any shared memory. Subroutines behind the kernel are counted with it; another
    /// function may use some.
    fn takes_no_dynamic_shared(&self) -> bool {
        let may_use = |opcode: &String| {
            let base = opcode.split('.').next().unwrap_or_default();
            USES_SHARED.iter().any(|begin| base.starts_with(begin))
                || GENERIC.contains(&base)
                || base.ends_with("GMMA")
                || base == "CALL" && !opcode.starts_with("CALL.REL")
        };
        let opcodes = self.opcodes.as_ref();
        self.no_dynamic_shared || opcodes.is_some_and(|opcodes| !opcodes.keys().any(may_use))
    }

    /// Shared memory that the driver reserves for a block, in bytes: as the cubin or else as the
    /// chip has it.
    fn driver_share(&self, arch: &str) -> Option<u32> {
        match self.driver_shared_bytes {
            0 => Some(Limits::of_arch(arch)?.driver_shared_bytes),
            bytes => Some(bytes),
        }
    }

    fn occupancy(&self, arch: &str, shape: LaunchShape) -> Option<Occupancy> {
        let driver = self.driver_share(arch)?;
        let fixed = self.resources.shared_bytes.checked_add(driver)?;
        Limits::of_arch(arch)?.occupancy(ResourceUse {
            threads: shape.threads?,
            registers: self.resources.registers,
            shared_bytes: fixed.checked_add(shape.dynamic_shared_bytes?)?,
            barriers: self.resources.barriers,
        })
    }
}
