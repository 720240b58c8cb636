//! GPU chips.

/// A GPU chip, as far as the tables of metrics distinguish chips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Chip {
    /// GH100: H100, H200 and the GPU of GH200.
    Gh100,
    /// A chip whose metrics this crate does not list.
    Other,
}

impl Chip {
    /// The chip with this compute capability. 9.0 is GH100 and no other chip.
    pub fn from_compute_capability(major: u64, minor: u64) -> Chip {
        match (major, minor) {
            (9, 0) => Chip::Gh100,
            _ => Chip::Other,
        }
    }
}
