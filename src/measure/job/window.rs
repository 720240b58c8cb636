//! How many programs start together.

use std::num::NonZero;

/// The most: the processes up to the first look.
const MOST: usize = 12;

/// How many programs start together. They share cores, host memory and the memory of the GPU, and nobody
/// knows how much of these a program takes. So a window shrinks where a program fails beside others.
#[derive(Clone, Copy, Debug)]
pub(in crate::measure) struct Window {
    most: usize,
    /// Whether a program that leaves the GPU idle gives its turn away.
    pub shares_turns: bool,
}

impl Window {
    /// For a machine with as many cores as this one.
    pub fn new() -> Window {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Window {
            most: MOST.min(cores),
            shares_turns: true,
        }
    }

    /// One by itself: its memory lies where that of the program before lay, and its kernels then take as long.
    pub fn one() -> Window {
        Window {
            most: 1,
            shares_turns: false,
        }
    }

    /// How many of the programs that are left start together now.
    pub fn of(self, left: usize) -> usize {
        self.most.min(left)
    }

    /// One failed beside others, after so many were measured.
    pub fn shrinks(&mut self, measured: usize) {
        self.most = match measured {
            0 => (self.most / 2).max(1),
            measured => measured.min(self.most),
        };
    }

    /// Programs cannot be held: each has one turn then, and where that fails, one runs after the other. Says
    /// which.
    pub fn closes(&mut self) -> &'static str {
        if std::mem::take(&mut self.shares_turns) {
            return "each has one whole turn";
        }
        self.most = 1;
        "one runs after the other"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_shrinks_to_what_was_measured_before_a_program_failed_in_it() {
        let mut window = Window {
            most: 12,
            shares_turns: true,
        };
        assert_eq!([100, 3].map(|left| window.of(left)), [12, 3]);
        window.shrinks(5);
        assert_eq!(window.of(100), 5);
        window.shrinks(0);
        assert_eq!(window.of(100), 2);
        for (shares_turns, most) in [(false, 2), (false, 1)] {
            assert!(!window.closes().is_empty());
            assert_eq!((window.shares_turns, window.of(100)), (shares_turns, most));
        }
    }
}
