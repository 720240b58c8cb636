//! Where and of what is measured: the variants with their base, built or packed, the GPU and its tools.

pub(in crate::measure) mod base;
pub(in crate::measure) mod batch;
pub(in crate::measure) mod bench;
pub(in crate::measure) mod order;
pub(in crate::measure) mod prebuilt;
pub(in crate::measure) mod sides;
