//! What differs between a commit and the files of a checkout.

use crate::process;
use crate::terms::words;
use std::collections::BTreeSet;
use std::path::Path;

use super::call::Git;
use super::revision::repository;

/// Options that compare content alone: neither what the repository's settings leave out, nor what a
/// driver of the repository would print instead.
const PLAIN: [&str; 5] =
    words("--name-only -z --no-renames --no-ext-diff --ignore-submodules=none");

/// Paths from the top of the repository that differ between a commit and the files here: changed,
/// added or removed, committed or not, and files that git neither tracks nor ignores. Files that the
/// index of the checkout hides (`assume-unchanged`, `skip-worktree`) are compared too. `root` is a
/// folder of the checkout. Files that do not `matter` are neither read nor listed.
///
/// # Errors
/// Git's complaint, or a name that is no text.
pub fn changed_since(
    root: &Path,
    commit: &str,
    matters: impl Fn(&str) -> bool,
) -> Result<BTreeSet<String>, String> {
    let top = repository(root)?.top;
    // An index of its own, made of the commit alone, hides nothing. But git then reads every file that
    // is in it.
    let folder =
        process::scratch().map_err(|error| format!("cannot make a temporary folder: {error}"))?;
    let index = folder.path().join("index").display().to_string();
    let fresh = [("GIT_INDEX_FILE", index.as_str())];
    let git = Git::here();
    let run =
        |arguments: &[&str], env: &[(&str, &str)]| git.answer(&top, arguments, String::new(), env);
    let listing = run(&["ls-tree", "-r", "-z", "--full-tree", commit], &[])?;
    match String::from_utf8(listing) {
        Ok(listing) => {
            let kept = |entry: &&str| {
                let path = entry.trim_end_matches('\0').split_once('\t');
                path.is_none_or(|(_, path)| matters(path))
            };
            let kept = listing.split_inclusive('\0').filter(kept).collect();
            let add = ["update-index", "-z", "--index-info"];
            git.answer(&top, &add, kept, &fresh)?
        }
        Err(_) => run(
            &["-c", "core.sparseCheckout=false", "read-tree", commit],
            &fresh,
        )?,
    };
    let with = |command: &[&'static str], rest: &[&'static str]| [command, &PLAIN, rest].concat();
    // What is committed or staged, also where a rule of the repository ignores the file.
    let mut staged = with(&["diff-index", "--cached"], &[]);
    staged.extend([commit, "--"]);
    let listings = [
        run(&staged, &[])?,
        run(
            &with(&["-c", "core.ignoreStat=false", "diff"], &["--"]),
            &fresh,
        )?,
        run(
            &["ls-files", "--others", "--exclude-standard", "-z"],
            &fresh,
        )?,
    ];
    let mut changed = BTreeSet::new();
    for listing in listings {
        let names = listing
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty());
        for name in names {
            // Written as text it could be the name of another file.
            let name = String::from_utf8(name.to_vec()).map_err(|name| {
                let shown = String::from_utf8_lossy(name.as_bytes()).into_owned();
                format!("the name of `{shown}` is not UTF-8")
            })?;
            if matters(&name) {
                changed.insert(name);
            }
        }
    }
    Ok(changed)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    /// git without the settings of this machine.
    pub(crate) fn git(folder: &Path, arguments: &[&str]) {
        let status = Command::new("git")
            .args(["-c", "user.name=tester"])
            .args(["-c", "user.email=tester@localhost"])
            .args(arguments)
            .current_dir(folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .status()
            .unwrap();
        assert!(status.success(), "{arguments:?}");
    }

    #[test]
    fn every_way_to_differ_from_a_commit_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        git(root, &["init", "--quiet"]);
        for name in [
            "kept", "edited", "staged", "gone", "assumed", "skipped", "mode", "in/sub",
        ] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), name).unwrap();
        }
        fs::write(root.join(".gitignore"), "ignored*\n").unwrap();
        git(root, &["add", "--all"]);
        git(root, &["commit", "--quiet", "--message", "base"]);
        let since = || changed_since(&root.join("in"), "HEAD", |_| true).unwrap();
        assert_eq!(since(), BTreeSet::new());

        git(root, &["update-index", "--assume-unchanged", "assumed"]);
        git(root, &["update-index", "--skip-worktree", "skipped"]);
        for name in [
            "edited", "assumed", "skipped", "staged", "new", "ignored", "in/new",
        ] {
            fs::write(root.join(name), "else").unwrap();
        }
        fs::write(root.join("ignored-and-added"), "").unwrap();
        git(root, &["add", "--force", "staged", "ignored-and-added"]);
        fs::write(root.join("staged"), "staged").unwrap();
        fs::remove_file(root.join("gone")).unwrap();
        // The same content at another time is no change.
        fs::write(root.join("kept"), "kept").unwrap();
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let expected = ["assumed", "ignored-and-added", "new", "skipped", "staged"];
        let others = ["edited", "gone", "in/new"];
        assert_eq!(since(), set(&[&expected[..], &others].concat()));
        let matters = |path: &str| !["edited", "in/new", "gone", "kept"].contains(&path);
        let found = changed_since(root, "HEAD", matters).unwrap();
        assert_eq!(found, set(&expected));
    }

    #[test]
    fn a_name_that_is_no_text_is_not_taken_for_another() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        git(root, &["init", "--quiet"]);
        let base = ["commit", "--quiet", "--allow-empty", "--message", "base"];
        git(root, &base);
        fs::write(root.join(std::ffi::OsStr::from_bytes(b"a\xff")), "").unwrap();
        let why = changed_since(root, "HEAD", |_| true).unwrap_err();
        assert!(why.contains("is not UTF-8"), "{why}");
    }
}
