//! How much of a result a terminal shows.

/// How much of a result is printed. Files that are written contain all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The verdict alone.
    Verdict,
    /// The answer, and a line for what weighs most.
    #[default]
    Attention,
    /// All of it.
    All,
}
