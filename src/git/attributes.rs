//! The attributes that files called `.gitattributes` give to paths.

use std::collections::BTreeMap;
use std::path::Path;

use super::call::{Git, git};
use super::printed;
use crate::disk;
use crate::process;

/// Those of the paths that git changes when it checks them out, each with the attribute that makes
/// it do so. Line endings are not considered. `top` is the folder of the working tree; paths are
/// relative to it.
///
/// # Errors
/// Git's complaint.
pub fn converted<'p>(
    top: &Path,
    paths: impl Iterator<Item = &'p str>,
) -> Result<Vec<(String, String)>, String> {
    const ASKED: [&str; 5] = ["working-tree-encoding", "ident", "filter", "eol", "text"];
    let set = asked(top, &[], paths, &ASKED)?;
    let is_plain = |of: &String| {
        set.iter()
            .any(|(path, name, value)| path == of && name == "text" && value == "unset")
    };
    let converts = |path: &String, attribute: &str, value: &str| match attribute {
        "text" => false,
        "eol" => value == "crlf" && !is_plain(path),
        _ => value != "unset",
    };
    let converting = set
        .iter()
        .filter(|(path, attribute, value)| converts(path, attribute, value));
    Ok(converting
        .map(|(path, attribute, _)| (path.clone(), attribute.clone()))
        .collect())
}

/// The value of each attribute of each path, `(path, attribute, value)`, as files named
/// `.gitattributes` with these contents by path set it. Those of the machine and of the clone do not
/// count. Only values besides `unspecified` are returned.
///
/// # Errors
/// Git's complaint.
pub fn attributes<'p>(
    files: &BTreeMap<String, Vec<u8>>,
    paths: impl Iterator<Item = &'p str>,
    attributes: &[&str],
) -> Result<Vec<(String, String, String)>, String> {
    let scratch = process::scratch().map_err(|error| error.to_string())?;
    let folder = scratch.path();
    for (path, content) in files {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        disk::create_dir_all(parent)
            .and_then(|()| disk::write(&path, content))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    git(folder, &["init", "--quiet", "--template="])?;
    let no_others = ["-c", "core.attributesFile=/dev/null"];
    asked(folder, &no_others, paths, attributes)
}

/// What git answers about the attributes of paths: `(path, attribute, value)`, without values that
/// are `unspecified`.
fn asked<'p>(
    folder: &Path,
    options: &[&str],
    paths: impl Iterator<Item = &'p str>,
    attributes: &[&str],
) -> Result<Vec<(String, String, String)>, String> {
    let paths: String = paths.map(|path| format!("{path}\0")).collect();
    let arguments = options.iter().chain(&["check-attr", "-z", "--stdin"]);
    let arguments: Vec<&str> = arguments.chain(attributes).copied().collect();
    let answer = Git::here().answer(folder, &arguments, paths, &[])?;
    Ok(printed::attributes(&String::from_utf8_lossy(&answer)))
}
