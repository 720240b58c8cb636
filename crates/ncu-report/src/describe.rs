//! What a file is that a reader cannot read.

/// The steps that several kinds of files share.
const UNPACK: &str = "unpack it, and name the report or the page in it";
const BY_NCU: &str = "name a report (`.ncu-rep`) of ncu, or a CSV page that it printed";
const AS_RAW: &str = "print the raw page of the report: ncu --import REPORT --csv --page raw";

/// The beginnings of files that users confuse with reports and pages: what they are, and what to do.
const BEGINNINGS: [(&[u8], &str, &str); 22] = [
    (b"\x7fELF", "an ELF file (a program or a cubin)", BY_NCU),
    (b"\x1f\x8b", "a gzip archive", UNPACK),
    (b"PK\x03\x04", "a zip archive", UNPACK),
    (
        b"\x28\xb5\x2f\xfd",
        "a Zstandard archive without a report",
        UNPACK,
    ),
    (b"\xfd7zXZ", "an xz archive", UNPACK),
    (b"BZh", "a bzip2 archive", UNPACK),
    (b"7z\xbc\xaf", "a 7-Zip archive", UNPACK),
    (
        b"SQLite format 3",
        "an SQLite database (Nsight Systems exports those)",
        BY_NCU,
    ),
    (
        b"version https://git-lfs.github.com/spec/",
        "a Git LFS pointer, which stands for the file",
        "get the file: git lfs pull",
    ),
    (
        b"<!doctype",
        "an HTML page",
        "download the file itself (on GitHub its raw form, and with a login if it needs one)",
    ),
    (
        b"<html",
        "an HTML page",
        "download the file itself (on GitHub its raw form, and with a login if it needs one)",
    ),
    (b"<?xml", "an XML file", BY_NCU),
    (b"%pdf", "a PDF file", BY_NCU),
    (b"\x89png", "a picture", BY_NCU),
    (b"{", "a JSON file", BY_NCU),
    (b"[{", "a JSON file", BY_NCU),
    (b"nvr\0", "an .ncu-rep report", BY_NCU),
    (
        b"\0\0\0\0\0\0\0\0",
        "a file of zeros, as a copy that was cut leaves it",
        "copy it again",
    ),
    (
        b"\"metric name\",\"metric type\"",
        "a list of metrics (`--query-metrics`)",
        BY_NCU,
    ),
    (
        b"========= compute-sanitizer",
        "the output of compute-sanitizer",
        BY_NCU,
    ),
    (
        b"\"id\",\"process id\"",
        "a CSV page of ncu",
        "print it again: its header is cut",
    ),
    (
        b"\"0\",\"",
        "a CSV without the header of ncu's page",
        "name the whole page, which begins with \"ID\",\"Process ID\"",
    ),
];

/// What only one kind of text contains in its first lines.
const PARTS: [(&str, &str, &str); 18] = [
    (
        "\"Invocations\",\"Section Name\",\"Metric Name\"",
        "a summary page (`--print-summary`), which has averages and no launches",
        AS_RAW,
    ),
    (
        "\"Invocations\",\"Metric Name\",\"Metric Unit\"",
        "a summary page (`--print-summary`), which has averages and no launches",
        AS_RAW,
    ),
    (
        "\"Invocations\",",
        "a summary page, which has averages and no launches",
        AS_RAW,
    ),
    (
        "\"Launch Attribute\",\"Value\"",
        "a session page of ncu",
        AS_RAW,
    ),
    (
        "\"Session Attribute\",\"Value\"",
        "a session page of ncu",
        AS_RAW,
    ),
    ("\"Address\",\"Source\"", "a source page of ncu", AS_RAW),
    ("\"Line No\",\"Source\"", "a source page of ncu", AS_RAW),
    (
        "NVPROF is profiling process",
        "the output of nvprof",
        BY_NCU,
    ),
    ("\"Type\",\"Time(%)\"", "a table of nvprof", BY_NCU),
    (
        "\"Device\",\"Kernel\",\"Invocations\"",
        "a table of nvprof",
        BY_NCU,
    ),
    (
        "Time (%),Total Time",
        "a table of Nsight Systems (`nsys stats`)",
        BY_NCU,
    ),
    (
        "\"Time (%)\",\"Total Time",
        "a table of Nsight Systems (`nsys stats`)",
        BY_NCU,
    ),
    (
        "Start (ns),Duration (ns)",
        "a table of Nsight Systems (`nsys stats`)",
        BY_NCU,
    ),
    (
        "Time (%)  Total Time",
        "a table of Nsight Systems (`nsys stats`)",
        BY_NCU,
    ),
    (
        "ID,Process ID,Process Name",
        "a page of ncu that another program wrote again, without quotes",
        "name the page as ncu printed it",
    ),
    (
        "ID;Process ID;Process Name",
        "a page of ncu that another program wrote again, with semicolons",
        "name the page as ncu printed it",
    ),
    (
        "\"ID\";\"Process ID\"",
        "a page of ncu that another program wrote again, with semicolons",
        "name the page as ncu printed it",
    ),
    (
        "ID\tProcess ID\tProcess Name",
        "a page of ncu that another program wrote again, with tabulators",
        "name the page as ncu printed it",
    ),
];

/// What ncu prints for people: tables without `--csv`.
const FOR_PEOPLE: (&str, &str) = (
    "a table that ncu prints for people",
    "print CSV: add `--csv --page raw` to the command line of ncu, also to one with `--import REPORT`",
);

/// How much of a text is looked at.
const LOOKED_AT: usize = 1 << 20;

/// What kind of file `bytes` are, if it is one that users confuse with reports and pages; and the next
/// step.
pub(crate) fn known(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    if bytes.trim_ascii().is_empty() {
        let step = "the command that wrote it failed, or its output went elsewhere";
        return Some(("an empty file", step));
    }
    let text = bytes.trim_ascii_start();
    let begins = |sign: &[u8]| {
        let beginning = text.get(..sign.len());
        beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(sign))
    };
    if let Some((_, what, next)) = BEGINNINGS.iter().find(|(sign, ..)| begins(sign)) {
        return Some((what, next));
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return Some(("a tar archive", UNPACK));
    }
    let head = String::from_utf8_lossy(bytes.get(..LOOKED_AT).unwrap_or(bytes));
    if let Some((_, what, next)) = PARTS.iter().find(|(sign, ..)| head.contains(sign)) {
        return Some((what, next));
    }
    let is_head =
        |line: &str| line.trim_start().starts_with("Metric Name ") && line.contains("Metric Unit");
    let is_console = head.contains("==PROF== ") && !head.contains("==ERROR== ");
    (head.lines().any(is_head) || is_console).then_some(FOR_PEOPLE)
}

/// A few words on what `bytes` are, for a reader that expected something else.
pub(crate) fn describe(bytes: &[u8]) -> String {
    let signs: [&[u8]; 3] = [b"==PROF==", b"==WARNING==", b"==ERROR=="];
    if signs.iter().any(|sign| bytes.starts_with(sign)) {
        return "the console output of ncu".to_owned();
    }
    if let Some((what, _)) = known(bytes) {
        return what.to_owned();
    }
    let head = &bytes[..bytes.len().min(64)];
    let text = String::from_utf8_lossy(head);
    let first_line = text.lines().next().unwrap_or_default();
    if head
        .iter()
        .all(|&byte| byte >= b' ' || b"\t\r\n".contains(&byte))
    {
        return format!("a text that begins with {first_line:?}");
    }
    format!(
        "{} bytes that begin with {:02x?}",
        bytes.len(),
        &head[..head.len().min(8)]
    )
}
