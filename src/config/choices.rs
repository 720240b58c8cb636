//! What settings of the measurement may be.

use crate::terms::spelled;

/// The target of nvcc where the configuration names none.
pub(super) const DEFAULT_ARCH: &str = "sm_90a";

spelled! {
    /// Whether ncu locks the clocks to base while it profiles (`--clock-control`).
    ClockControl {
        /// Locked to base: steadier numbers, needs the right to change clocks.
        Base = "base",
        /// Left alone.
        None = "none",
    }
}

spelled! {
    /// Whether ncu flushes the caches before each replay pass (`--cache-control`).
    CacheControl {
        /// Flushed.
        All = "all",
        /// Left as the launch before left them.
        None = "none",
    }
}

spelled! {
    /// How ncu collects more counters than fit in one pass (`--replay-mode`).
    ReplayMode {
        /// Each kernel is run again.
        Kernel = "kernel",
        /// The whole program is run again.
        Application = "application",
        /// A marked range is run again.
        Range = "range",
        /// A marked range is run again by running the program again.
        ApplicationRange = "app-range",
    }
}

spelled! {
    /// How ncu treats CUDA graphs (`--graph-profiling`).
    GraphProfiling {
        /// Each node is a launch.
        Node = "node",
        /// The whole graph is a launch.
        Graph = "graph",
    }
}

spelled! {
    /// A tool of NVIDIA's compute-sanitizer (`--tool`).
    SanitizerTool {
        /// Accesses out of bounds or misaligned, and failing CUDA calls.
        Memcheck = "memcheck",
        /// Races on shared memory.
        Racecheck = "racecheck",
        /// Reads of global memory that nothing wrote.
        Initcheck = "initcheck",
        /// Barriers that not all threads reach.
        Synccheck = "synccheck",
    }
}
