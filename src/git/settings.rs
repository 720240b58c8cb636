//! Git's own configuration where it leads into the working tree: a file there belongs to the change
//! under review.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::call::{git, git_bytes};
use super::revision::repository;
use super::tree::tracked;
use crate::disk;
use crate::terms::words;

/// Ends of the keys whose values git runs as programs. `command` is that of hooks, of differences, of the
/// references of others, and of ssh.
const PROGRAMS: [&str; 11] = words(
    ".clean .smudge .process .driver .textconv .helper .program command .external .gitproxy \
     .askpass",
);

/// What is wrong where git's configuration includes a tracked file of the working tree, or runs one
/// as a program: the change could decide what git does. `None` where nothing is.
///
/// # Errors
/// Git's complaint.
pub fn settings_from_tree(root: &Path) -> Result<Option<String>, String> {
    let top = repository(root)?.top;
    let listing = git_bytes(&top, &["config", "--list", "--show-origin", "-z"])?;
    let listing = String::from_utf8_lossy(&listing);
    let mut words = listing.split_terminator('\0');
    let mut known: BTreeMap<String, bool> = BTreeMap::new();
    let mut is_tracked = |path: &str| {
        let asked = || in_tree(&top, path) || named_in_tree(&top, path);
        *known.entry(path.to_owned()).or_insert_with(asked)
    };
    // `ORIGIN NUL KEY LF VALUE NUL`
    while let (Some(origin), Some(entry)) = (words.next(), words.next()) {
        let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
        if let Some(file) = origin.strip_prefix("file:")
            && is_tracked(file)
        {
            return Ok(Some(format!(
                "git's configuration includes `{file}`, a file of the change"
            )));
        }
        if PROGRAMS.iter().any(|end| key.ends_with(end)) {
            let module = value
                .split_whitespace()
                .skip_while(|word| *word != "-m")
                .nth(1);
            let module = module.map(|name| name.split('.').next().unwrap_or_default());
            if let Some(name) = module.filter(|name| is_module(&top, name)) {
                return Ok(Some(format!(
                    "git's `{key}` runs the module `{name}`, which the change has"
                )));
            }
            let mut files = value
                .split_whitespace()
                .map(|word| word.trim_matches(['"', '\'', '!']))
                .filter(|word| !word.is_empty());
            if let Some(file) = files.find(|word| is_tracked(word)) {
                return Ok(Some(format!(
                    "git's `{key}` runs `{file}`, a file of the change"
                )));
            }
        }
    }
    Ok(None)
}

/// Whether Python would find a module in the working tree: before version 3.11 nothing keeps it from there.
fn is_module(top: &Path, name: &str) -> bool {
    let found = |path: &str| tracked(top, path).is_ok_and(|found| !found.is_empty());
    !name.is_empty() && (found(name) || found(&format!("{name}.py")))
}

/// Whether a file of the working tree, in any folder, has the name of a script.
fn named_in_tree(top: &Path, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    // The shell knows where `~` is.
    let is_script = !path.starts_with('~')
        && Path::new(name).extension().is_some()
        && name.chars().all(is_plain);
    let pattern = format!(":(glob)**/{name}");
    let listed = || git(top, &["ls-files", "--", &pattern]);
    is_script && Path::new(path).is_relative() && listed().is_ok_and(|files| !files.is_empty())
}

/// Whether a path, from the top, is or leads to a tracked file of the working tree.
fn in_tree(top: &Path, path: &str) -> bool {
    let path = top.join(path);
    let Ok(real) = path.canonicalize() else {
        return false;
    };
    let below = |path: &PathBuf| path.strip_prefix(top).ok().map(Path::to_path_buf);
    [below(&real), below(&path)]
        .into_iter()
        .flatten()
        .any(|below| {
            let below = below.to_string_lossy();
            disk::is_file(&real) && tracked(top, &below).is_ok_and(|found| !found.is_empty())
        })
}
