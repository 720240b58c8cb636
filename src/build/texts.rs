//! What the preprocessor makes of a source: one text for the host and one for each target. They
//! contain every header and the answer to every `__has_include`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::{most, read_regular_up_to};
use crate::hash::sha256_hex;

/// Ending of the files that hold them.
const TEXT: &str = "ii";

/// The preprocessed texts of one build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Texts {
    /// sha256 over all of them, without the path of the project.
    pub sha256: String,
    /// The files that they were made of, as the preprocessor names them.
    pub files: BTreeSet<String>,
    /// Whether one contains the word of the assembler that brings in a file.
    pub includes_binaries: bool,
}

/// The texts in a folder; `None` where there is none.
///
/// # Errors
/// Where one cannot be read, is too large, or names a file whose name is not UTF-8.
pub(super) fn texts_in(folder: &Path, root: &Path) -> io::Result<Option<Texts>> {
    let mut hashes = BTreeMap::new();
    let mut files = BTreeSet::new();
    let mut includes_binaries = false;
    let roots = roots(root);
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == TEXT) {
            let text = read_regular_up_to(&path, most::BINARY)?;
            let text = without_root(&text, &roots, &mut files)?;
            includes_binaries |= text.windows(6).any(|word| word == b"incbin");
            let name = path.file_name().unwrap_or_default().to_os_string();
            hashes.insert(name, sha256_hex(&text));
        }
    }
    let sha256 = sha256_hex(format!("{hashes:?}").as_bytes());
    Ok((!hashes.is_empty()).then_some(Texts {
        sha256,
        files,
        includes_binaries,
    }))
}

/// The project's folder as the preprocessor may write it.
fn roots(root: &Path) -> Vec<String> {
    let real = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    let roots: BTreeSet<PathBuf> = [real, root.to_path_buf()].into();
    roots
        .iter()
        .map(|root| format!("{}/", root.display()))
        .collect()
}

/// The text with the names in its line markers relative to the root. The names are collected.
fn without_root(
    text: &[u8],
    roots: &[String],
    files: &mut BTreeSet<String>,
) -> io::Result<Vec<u8>> {
    let mut plain = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let Some((start, name, rest)) = marker(line) else {
            plain.extend_from_slice(line);
            continue;
        };
        let name = String::from_utf8(name).map_err(|error| {
            let name = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let why = format!("the name of the file `{name}` is not UTF-8");
            io::Error::new(io::ErrorKind::InvalidData, why)
        })?;
        let below = roots
            .iter()
            .find_map(|root| name.strip_prefix(root.as_str()));
        plain.extend_from_slice(start);
        plain.extend_from_slice(below.unwrap_or(&name).as_bytes());
        plain.extend_from_slice(rest);
        if !name.starts_with('<') && !name.ends_with('/') && !files.contains(&name) {
            files.insert(name);
        }
    }
    Ok(plain)
}

/// `# 1 "name" 1`: what is before the name, the name, and what is behind it.
fn marker(line: &[u8]) -> Option<(&[u8], Vec<u8>, &[u8])> {
    let digits = line.strip_prefix(b"# ")?;
    let count = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let quoted = digits
        .get(count..)?
        .strip_prefix(b" \"")
        .filter(|_| count > 0)?;
    let start = &line[..line.len() - quoted.len()];
    let mut name = Vec::new();
    let mut at = 0;
    loop {
        match quoted.get(at)? {
            b'"' => break,
            b'\\' => {
                name.push(*quoted.get(at + 1)?);
                at += 2;
            }
            byte => {
                name.push(*byte);
                at += 1;
            }
        }
    }
    Some((start, name, &quoted[at..]))
}

/// The calls of the preprocessor among what `nvcc --dryrun` prints, each without its output, and
/// the name of that output.
pub(super) fn preprocessor_calls(printed: &str) -> Vec<(Vec<String>, String)> {
    let lines = printed.lines().filter_map(|line| line.strip_prefix("#$ "));
    let calls = lines.filter_map(|line| {
        let mut argv = words(line);
        argv.iter().position(|word| word == "-E")?;
        let at = argv.iter().rposition(|word| word == "-o")?;
        let output = argv.drain(at..).nth(1)?;
        let name = Path::new(&output).file_name()?.to_str()?.to_owned();
        name.ends_with(".ii").then_some((argv, name))
    });
    calls.collect()
}

/// A variable that `nvcc --dryrun` prints before its calls.
pub(super) fn printed_variable(printed: &str, name: &str) -> Option<String> {
    let lines = printed.lines().filter_map(|line| line.strip_prefix("#$ "));
    let mut values = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    values.next().map(str::to_owned)
}

/// The words of a line, as a shell reads them: blanks outside of double quotes end a word.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '\\' => word.get_or_insert_default().extend(characters.next()),
            c if c.is_whitespace() && !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_two_checkouts_are_equal_and_anything_else_in_them_counts() {
        let write = |text: &str| {
            let (root, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let text = text.replace("ROOT", &root.path().display().to_string());
            fs::write(kept.path().join("a.cpp4.ii"), text).unwrap();
            texts_in(kept.path(), root.path()).unwrap().unwrap()
        };
        let text = "# 1 \"ROOT/a \\\"b.h\" 1 3\nint a = 1;\n# 0 \"<built-in>\"\n# 1 \"ROOT//\"\n";
        let one = write(text);
        assert_eq!(one.sha256, write(text).sha256);
        assert_eq!(one.files.len(), 1);
        assert!(one.files.first().unwrap().ends_with("/a \"b.h"));
        for other in [
            text.replace("= 1", "= 2"),
            text.replace("a \\", "c \\"),
            text.replace("# 1", "# 2"),
        ] {
            assert_ne!(write(&other).sha256, one.sha256, "{other}");
        }
        // A file that no list can name must not be left out of all lists.
        let kept = tempfile::tempdir().unwrap();
        fs::write(kept.path().join("a.ii"), b"# 1 \"\xff.h\" 1\n").unwrap();
        assert!(texts_in(kept.path(), kept.path()).is_err());
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(texts_in(empty.path(), empty.path()).unwrap(), None);
    }

    #[test]
    fn calls_of_the_preprocessor_are_read_as_a_shell_does() {
        let printed = "#$ PATH=/a:/b\n#$ rm x\n\
            #$ gcc -E -x c++ -D \"X=\\\"a b\\\"\" \"-I/a b\"   \"a.cu\" -o \"/tmp/k/a.cpp1.ii\" \n\
            #$ gcc -c -x c++ \"a.cpp\" -o \"a.o\" \n";
        let calls = preprocessor_calls(printed);
        let argv = [
            "gcc",
            "-E",
            "-x",
            "c++",
            "-D",
            "X=\"a b\"",
            "-I/a b",
            "a.cu",
        ];
        assert_eq!(
            calls,
            [(argv.map(str::to_owned).to_vec(), "a.cpp1.ii".to_owned())]
        );
        assert_eq!(printed_variable(printed, "PATH").unwrap(), "/a:/b");
    }
}
