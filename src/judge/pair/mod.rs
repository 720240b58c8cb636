//! Which kernels and programs of two profiles belong together.

pub(in crate::judge) mod kernels;
pub(in crate::judge) mod programs;
pub(in crate::judge) mod share;
