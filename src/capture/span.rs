//! How long a process kept the GPU, from its first launch to the end of its last.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kernel_records::KernelCapture;

/// From the begin of the first launch of a process to the end of its last, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// All of it.
    pub all_ns: u64,
    /// How long no kernel ran meanwhile.
    pub idle_ns: u64,
}

impl Span {
    /// Of launches, each with its begin and end, on any streams; `None` of none.
    pub fn of(launches: impl IntoIterator<Item = (u64, u64)>) -> Option<Span> {
        let mut launches: Vec<(u64, u64)> = launches.into_iter().collect();
        launches.sort_unstable();
        let (first, mut until) = *launches.first()?;
        let mut idle_ns = 0;
        for (begin, end) in launches {
            idle_ns += begin.saturating_sub(until);
            until = until.max(end);
        }
        Some(Span {
            all_ns: until.saturating_sub(first),
            idle_ns,
        })
    }
}

impl KernelCapture {
    /// Of its launches; `None` where one has no time.
    pub fn span(&self) -> Option<Span> {
        let times = self.launches.iter().map(|(_, kernel)| {
            kernel.duration_ns()?;
            Some((kernel.start_ns, kernel.end_ns))
        });
        Span::of(times.collect::<Option<Vec<_>>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_run_at_the_same_time_leave_no_gap_between_them() {
        let span = |all_ns, idle_ns| Some(Span { all_ns, idle_ns });
        assert_eq!(Span::of([(10, 20), (25, 30)]), span(20, 5));
        // Another stream runs over the gap.
        assert_eq!(Span::of([(10, 20), (25, 30), (15, 28)]), span(20, 0));
        assert_eq!(Span::of([(10, 40), (15, 20), (50, 60)]), span(50, 10));
        assert_eq!(Span::of([]), None);
    }
}
