//! What is known of how a kernel is launched, besides its grid.

use serde::Serialize;

/// What one block of a launch has: stated before any launch, or measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LaunchShape {
    /// Dynamic shared memory a block, in bytes; `None` where it is not known.
    pub dynamic_shared_bytes: Option<u32>,
    /// Threads a block; `None` where only the kernel's launch bounds may say it.
    pub threads: Option<u32>,
}
