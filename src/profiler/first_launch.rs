//! When a profiler began to measure: it says so in its log.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::files::read_regular_up_to;

/// How often the log is read until it says so. Nothing is read while launches are measured.
const EVERY: Duration = Duration::from_millis(20);
/// What a log may contain before its first launch. A longer one says nothing.
const MOST_BYTES: u64 = 1 << 20;

/// What the log of ncu contains from the first launch on.
const PROFILING: &str = "==PROF== Profiling ";

/// Reads a log until it shows the first launch.
pub(super) struct FirstLaunch {
    over: Arc<AtomicBool>,
    reader: JoinHandle<Option<Duration>>,
}

impl FirstLaunch {
    /// Starts to read. The log need not exist yet.
    pub fn watch(log: PathBuf) -> FirstLaunch {
        let over = Arc::new(AtomicBool::new(false));
        let (is_over, start) = (Arc::clone(&over), Instant::now());
        let reader = std::thread::spawn(move || {
            loop {
                // A last time after the process has ended.
                let last = is_over.load(Ordering::Acquire);
                if shows(&log) {
                    return Some(start.elapsed());
                }
                if last {
                    return None;
                }
                std::thread::sleep(EVERY);
            }
        });
        FirstLaunch { over, reader }
    }

    /// The time until the first launch; `None` where the log never showed one.
    pub fn stop(self) -> Option<Duration> {
        self.over.store(true, Ordering::Release);
        self.reader.join().ok().flatten()
    }
}

fn shows(log: &Path) -> bool {
    let bytes = read_regular_up_to(log, MOST_BYTES).unwrap_or_default();
    String::from_utf8_lossy(&bytes).contains(PROFILING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_until_the_first_launch_is_that_of_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("ncu.log");
        let watch = || FirstLaunch::watch(log.clone());
        let never = watch();
        std::fs::write(&log, "==PROF== Connected to process 1 (p)\n").unwrap();
        std::thread::sleep(3 * EVERY);
        assert_eq!(never.stop(), None);
        let seen = watch();
        std::thread::sleep(2 * EVERY);
        std::fs::write(&log, format!("==WARNING==\n{PROFILING}\"k\": 0%....\n")).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while !seen.reader.is_finished() && Instant::now() < deadline {
            std::thread::sleep(EVERY);
        }
        assert!(seen.stop().unwrap() >= 2 * EVERY);
    }
}
