//! What is known of a launch before it happens.

/// What is known of a launch before it happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchShape {
    /// Dynamic shared memory a block, in bytes; `None` where nobody stated it.
    pub dynamic_shared_bytes: Option<u32>,
    /// Threads a block, where the kernel's launch bounds do not say it.
    pub threads: Option<u32>,
}
