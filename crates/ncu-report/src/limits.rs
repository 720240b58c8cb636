//! Limits that the readers of reports and of pages share.

/// Longest text in a report and longest cell of a CSV page, in bytes: the command line of a
/// program has at most as many by default on Linux.
pub(crate) const LONGEST_TEXT: usize = 1 << 21;
