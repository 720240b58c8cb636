//! How much of a result a terminal shows.

/// How much of a result is printed. Files that are written contain all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The verdict alone.
    Verdict,
    /// What needs attention, and a line for each of the rest.
    #[default]
    Attention,
    /// All of it.
    All,
}
