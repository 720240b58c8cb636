//! A whole file: what both readers produce.

use crate::launch::Launch;
use crate::rounding::Rounding;

/// The content of one `.ncu-rep` file, or of the CSV pages in one text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// The profiled launches in the order in which they ran.
    pub launches: Vec<Launch>,
    /// Version of ncu, in its own spelling; CSV pages do not state it.
    pub profiler_version: Option<String>,
    /// Command line of ncu, as one string; CSV pages do not state it.
    pub command_line: Option<String>,
    /// When the session began, in seconds since the Unix epoch; CSV pages do not state it.
    pub created_unix_s: Option<u64>,
    /// Version of the report format that the file states; CSV pages have none. A report of another
    /// version than [`KNOWN_FORMAT_VERSION`](crate::report::KNOWN_FORMAT_VERSION) is decoded too.
    pub format_version: Option<u64>,
    /// The error and warning lines of ncu around CSV pages (`==ERROR== …`, `==WARNING== …`), in order;
    /// a report has none.
    pub messages: Vec<String>,
    /// The launches that are missing between those of a CSV page, by their numbers: ncu was asked for a
    /// part of a report, or rows were removed.
    pub gap: Option<String>,
    /// How far the printed numbers may be from the measured ones; exact for a report.
    pub rounding: Rounding,
}
