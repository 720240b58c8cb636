//! What a file is that a reader cannot read.

/// The beginnings of files that users confuse with reports and pages.
const KNOWN: [(&[u8], &str); 9] = [
    (b"\x7fELF", "an ELF file (a program or a cubin)"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"PK\x03\x04", "a zip archive"),
    (
        b"SQLite format 3",
        "an SQLite database (Nsight Systems exports those)",
    ),
    (b"NVR\0", "an .ncu-rep report"),
    (b"\"ID\",\"Process ID\"", "a CSV page of ncu"),
    (b"==PROF==", "the console output of ncu"),
    (b"==WARNING==", "the console output of ncu"),
    (b"==ERROR==", "the console output of ncu"),
];

/// A few words on what `bytes` are, for a reader that expected something else.
pub(crate) fn describe(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "an empty file".to_owned();
    }
    if let Some((_, what)) = KNOWN.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return (*what).to_owned();
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
