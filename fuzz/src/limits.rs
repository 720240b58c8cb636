//! Memory and time that a reader may take.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rustix::time::{ClockId, clock_gettime};

/// Bytes of memory that a reader may take for each byte of its input, and for any input.
const PER_BYTE: usize = 8;
const FOR_ANY: usize = 64 << 20;

/// Time of the processor for any input, in seconds. Inputs are small, and take milliseconds.
const MOST_SECONDS: f64 = 2.0;

/// Counts what is allocated, and aborts above a limit.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

fn take(bytes: usize) {
    let in_use = IN_USE.fetch_add(bytes, Relaxed).wrapping_add(bytes);
    let limit = LIMIT.load(Relaxed);
    // Memory of other sittings may be freed in between, so that the count is below zero.
    if in_use > limit && in_use < isize::MAX as usize {
        LIMIT.store(usize::MAX, Relaxed);
        panic_without_memory(bytes);
    }
}

#[cold]
fn panic_without_memory(bytes: usize) {
    eprintln!("the reader takes more memory than the bound, at an allocation of {bytes} bytes:");
    eprintln!("{}", std::backtrace::Backtrace::force_capture());
    std::process::abort();
}

// SAFETY: every call is passed on to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller's promises are those that are needed.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // While a block grows, both may exist.
        take(size);
        IN_USE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Runs a reader on an input of `size` bytes within the limits.
pub fn checked(size: usize, reader: impl FnOnce()) {
    let most = size.saturating_mul(PER_BYTE).saturating_add(FOR_ANY);
    LIMIT.store(IN_USE.load(Relaxed).saturating_add(most), Relaxed);
    let began = seconds();
    reader();
    let took = seconds() - began;
    LIMIT.store(usize::MAX, Relaxed);
    assert!(took < MOST_SECONDS, "{size} bytes took {took:.1} s");
}

/// The processor's time of this thread: other programs do not count.
fn seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
