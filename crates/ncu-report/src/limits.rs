//! Limits that the readers of reports and of pages share.

/// Size of the largest file that [`read_file`](crate::read_file) reads, and of the largest report in a
/// compressed one, in bytes. A `--set full` report of one launch has 2.6 MB.
pub const MAX_FILE_SIZE: u64 = 1 << 30;

/// Longest text in a report and longest cell of a CSV page, in bytes: the command line of a
/// program has at most as many by default on Linux.
pub(crate) const LONGEST_TEXT: usize = 1 << 21;
