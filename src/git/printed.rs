//! What git prints, read: lists of files, contents and attributes. Git prints bytes of
//! the repository, which anybody may have written.

use std::collections::BTreeMap;

use serde::Serialize;

/// Modes of entries that are not regular files.
const LINK: &str = "120000";
const SUBMODULE: &str = "160000";

/// What kind of entry a tree has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// A regular file.
    File,
    /// A link.
    Link,
    /// A submodule, whose object is a commit.
    Submodule,
}

/// An entry of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its path from the top of the repository.
    pub path: &'a str,
    /// What it is.
    pub kind: Kind,
    /// The object that has its content.
    pub object: &'a str,
}

/// The entries that `git ls-tree -r -z` prints.
///
/// # Errors
/// Names the entry that cannot be read.
pub fn tree(listing: &str) -> Result<Vec<Entry<'_>>, String> {
    // `MODE SP TYPE SP OBJECT TAB PATH NUL`
    let entry = |entry| {
        let (about, path): (&str, &str) = str::split_once(entry, '\t')?;
        let (kind, object) = match about.split(' ').collect::<Vec<_>>()[..] {
            [LINK, "blob", object] => (Kind::Link, object),
            [_, "blob", object] => (Kind::File, object),
            [_, _, object] => (Kind::Submodule, object),
            _ => return None,
        };
        Some(Entry { path, kind, object })
    };
    listing
        .split_terminator('\0')
        .map(|text| {
            entry(text)
                .ok_or_else(|| format!("git ls-tree printed an entry that cannot be read: {text}"))
        })
        .collect()
}

/// The paths that `git ls-files --stage -z` prints, with the commit of each that is a submodule.
///
/// # Errors
/// Names the entry that cannot be read.
pub fn index(listing: &str) -> Result<BTreeMap<String, Option<String>>, String> {
    let mut found = BTreeMap::new();
    // `MODE SP OBJECT SP STAGE TAB PATH NUL`
    for entry in listing.split_terminator('\0') {
        let Some((about, path)) = entry.split_once('\t') else {
            return Err(format!(
                "git ls-files printed an entry that cannot be read: {entry}"
            ));
        };
        let submodule = match about.split(' ').collect::<Vec<_>>()[..] {
            [SUBMODULE, commit, _] => Some(commit.to_owned()),
            _ => None,
        };
        found.insert(path.to_owned(), submodule);
    }
    Ok(found)
}

/// The contents that `git cat-file --batch` prints of `count` objects; `None` for one that the
/// clone lacks.
///
/// # Errors
/// That the output ends early.
pub fn contents(mut printed: &[u8], count: usize) -> Result<Vec<Option<Vec<u8>>>, String> {
    (0..count)
        .map(|_| next_content(&mut printed).ok_or_else(|| "git cat-file ended early".to_owned()))
        .collect()
}

/// `OBJECT SP TYPE SP SIZE LF CONTENT LF`, or `OBJECT SP missing LF`.
fn next_content(rest: &mut &[u8]) -> Option<Option<Vec<u8>>> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (head, after) = rest.split_at_checked(end)?;
    let head = std::str::from_utf8(head).ok()?;
    let Some(size) = head.split(' ').nth(2) else {
        *rest = after.get(1..)?;
        return Some(None);
    };
    let size = size.parse::<usize>().ok()?;
    let content = after.get(1..)?.get(..size)?.to_vec();
    *rest = after.get(size + 2..)?;
    Some(Some(content))
}

/// Path, attribute and value of each answer of `git check-attr -z` that is not `unspecified`.
pub fn attributes(answer: &str) -> Vec<(String, String, String)> {
    let mut words = answer.split_terminator('\0').map(str::to_owned);
    let mut found = Vec::new();
    // `PATH NUL ATTRIBUTE NUL VALUE NUL`
    while let (Some(path), Some(attribute), Some(value)) =
        (words.next(), words.next(), words.next())
    {
        if value != "unspecified" {
            found.push((path, attribute, value));
        }
    }
    found
}
