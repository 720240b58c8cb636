//! The phase of a capture.

use super::spelled;

spelled! {
    /// Which of a variant's captures measures a metric. Counters that do not fit into one replay
    /// pass cost several, so what varies and what does not are captured apart.
    Phase {
        /// Many launches in several processes: what varies from launch to launch.
        Timing = "timing",
        /// A few launches in a process of their own: what is exact, or only explains.
        Counting = "counting",
    }
}
