//! What a file is that a reader cannot read.

/// The steps that several kinds of files share.
pub(crate) const UNPACK: &str = "unpack it, and name the report or the page in it";
const BY_NCU: &str = "name a report (`.ncu-rep`) of ncu, or a CSV page that it printed";
const AS_RAW: &str = "print the raw page of the report: ncu --import REPORT --csv --page raw";
const AS_CSV: &str = "add `--csv --page raw` to the command line of ncu";
const AS_PRINTED: &str =
    "name the report, or the page as ncu printed it: it quotes each cell, and commas separate them";
const DOWNLOAD: &str =
    "download the file itself: on GitHub its raw form, and with a login if it needs one";
const LFS: &str = "run: git lfs pull";
const SUMMARY: &str = "a summary page (`--print-summary`), which has averages and no launches";
const REWRITTEN: &str = "a page of ncu that another program wrote again";
const HEADER: &str = "name the whole page, which begins with \"ID\",\"Process ID\"";

/// The beginnings of files that users confuse with reports and pages: what they are, and what to do.
/// Letters of either case.
const BEGINNINGS: [(&[u8], &str, &str); 12] = [
    (b"\x7fELF", "an ELF file (a program or a cubin)", BY_NCU),
    (b"\x1f\x8b", "a gzip archive", UNPACK),
    (b"PK\x03\x04", "a zip archive", UNPACK),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive", UNPACK),
    (b"SQLite format 3", "a database, as of `nsys`", BY_NCU),
    (b"version https://git-lfs", "a Git LFS pointer", LFS),
    (b"<!doctype", "an HTML page", DOWNLOAD),
    (b"<html", "an HTML page", DOWNLOAD),
    (b"{", "a JSON file", BY_NCU),
    (b"NVR\0", "an .ncu-rep report", BY_NCU),
    (b"\"ID\",\"Process ID\"", "a CSV page of ncu", HEADER),
    (
        b"\"0\",\"", "a CSV without the header of ncu's page", HEADER,
    ),
];

/// What only one kind of text contains.
const PARTS: [(&str, &str, &str); 12] = [
    ("\"Invocations\",\"Section Name\"", SUMMARY, AS_RAW),
    ("\"Invocations\",\"Metric Name\"", SUMMARY, AS_RAW),
    ("\"Launch Attribute\",", "a session page of ncu", AS_RAW),
    ("\"Address\",\"Source\"", "a source page of ncu", AS_RAW),
    ("\"Line No\",\"Source\"", "a source page of ncu", AS_RAW),
    ("NVPROF is profiling", "the output of nvprof", BY_NCU),
    ("Time (%),Total", "a table of Nsight Systems", BY_NCU),
    ("Time (%)  Total", "a table of Nsight Systems", BY_NCU),
    ("ID,Process ID,", REWRITTEN, AS_PRINTED),
    ("ID\";\"Process ID\"", REWRITTEN, AS_PRINTED),
    ("ID;Process ID;", REWRITTEN, AS_PRINTED),
    ("ID\tProcess ID\t", REWRITTEN, AS_PRINTED),
];

/// How much of a text is looked at.
const LOOKED_AT: usize = 1 << 20;

/// What kind of file `bytes` are, if it is one that users confuse with reports and pages; and the next
/// step.
pub(crate) fn known(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    let text = bytes.trim_ascii_start();
    if text.is_empty() {
        let next = "look at the command that wrote it: it failed, or printed elsewhere";
        return Some(("an empty file", next));
    }
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
    let is_head = |line: &str| line.contains("Metric Name  ") && line.contains("Metric Unit");
    if head.lines().any(is_head) {
        return Some(("a table that ncu prints for people", AS_CSV));
    }
    let is_console = head.contains("==PROF== ") && !head.contains("==ERROR== ");
    is_console.then_some(("the console output of ncu without a page", AS_CSV))
}

/// A few words on what `bytes` are, for a reader that expected something else. They quote none of it: the
/// file may be anybody's.
pub(crate) fn describe(bytes: &[u8]) -> String {
    let signs: [&[u8]; 3] = [b"==PROF==", b"==WARNING==", b"==ERROR=="];
    if signs.iter().any(|sign| bytes.starts_with(sign)) {
        return "the console output of ncu".to_owned();
    }
    if let Some((what, _)) = known(bytes) {
        return what.to_owned();
    }
    let head = &bytes[..bytes.len().min(64)];
    if head
        .iter()
        .all(|&byte| byte >= b' ' || b"\t\r\n".contains(&byte))
    {
        return format!("a text of {} bytes", bytes.len());
    }
    format!("{} bytes of another format", bytes.len())
}
