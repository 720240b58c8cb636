//! Limits that the readers of reports and of pages share.

/// Size of the largest file that [`read_file`](crate::read_file) reads, and of the largest report in a
/// compressed one, in bytes. A `--set full` report of one launch has 2.6 MB.
pub const MAX_FILE_SIZE: u64 = 1 << 30;

/// Longest text in a report and longest cell of a CSV page, in bytes. ncu lists the metrics that it was
/// asked for in one text: 8.5 MB where these were some families of counters.
pub(crate) const LONGEST_TEXT: usize = 1 << 24;
