//! How many programs start together.

use std::num::NonZero;

/// The first that are tried together: one of each side. They show what the others may expect.
const FIRST: usize = 2;
/// The most: the processes up to the first look.
const MOST: usize = 12;

/// How many programs start together. They share cores, host memory and the memory of the GPU, and nobody
/// knows how much of these a program takes. So the first window is small, and one shrinks where a program
/// fails beside others.
#[derive(Clone, Copy, Debug)]
pub(in crate::measure) struct Window {
    size: usize,
    most: usize,
}

impl Window {
    /// For a machine with as many cores as this one.
    pub fn new() -> Window {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Window::of_cores(cores)
    }

    fn of_cores(cores: usize) -> Window {
        let most = MOST.min(cores);
        Window {
            size: FIRST.min(most),
            most,
        }
    }

    /// How many of the programs that are left start together now.
    pub fn of(self, left: usize) -> usize {
        self.size.min(left)
    }

    /// All programs of a window came to their turn and ended well.
    pub fn grows(&mut self) {
        self.size = self.most;
    }

    /// One failed beside others. The window stays small.
    pub fn shrinks(&mut self) {
        self.size = (self.size / 2).max(1);
        self.most = self.size;
    }

    /// Programs cannot be held: one runs after the other.
    pub fn closes(&mut self) {
        (self.size, self.most) = (1, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_grows_to_its_most_and_stays_small_once_a_program_failed_in_it() {
        let mut window = Window::of_cores(16);
        let mut sizes = vec![window.of(100)];
        for _ in 0..3 {
            window.grows();
            sizes.push(window.of(100));
        }
        assert_eq!(sizes, [2, 12, 12, 12]);
        assert_eq!(window.of(3), 3);
        window.shrinks();
        window.grows();
        assert_eq!(window.of(100), 6);
        assert_eq!(Window::of_cores(2).of(100), 2);
        window.closes();
        window.grows();
        assert_eq!(window.of(100), 1);
    }
}
