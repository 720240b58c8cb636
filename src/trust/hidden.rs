//! Attributes that hide baselines or the configuration from review: a hosting service folds a
//! generated file away, shows no lines of a binary one, and a merge driver merges something that
//! nobody saw.

use crate::disk;
use crate::terms::{joined, words};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::brought::listing;
use super::change::{ChangeUnderReview, config_name};
use super::consent::{Act, Action, Consent};
use super::place::unreadable;
use crate::baseline::{FILES, Store};
use crate::files::read_regular;
use crate::finding::{Code, Error, Finding, WarnReason};
use crate::git::{self, TreeEntry};
use crate::hash::sha256_hex;

/// The name of the files that set attributes.
const NAME: &str = ".gitattributes";

/// The attributes that can hide a file.
const ATTRIBUTES: [&str; 5] =
    words("linguist-generated linguist-vendored gitlab-generated diff merge");

/// Whether an attribute with this value hides a file.
fn hides(attribute: &str, value: &str) -> bool {
    match attribute {
        // Unset is what `-diff` and `binary` do. Set, it forces a diff of text.
        "diff" => value != "set",
        // Unset makes every merge a conflict, as the driver `binary` does.
        "merge" => !matches!(value, "set" | "unset" | "text" | "binary"),
        _ => !matches!(value, "unset" | "false"),
    }
}

/// As it is written in `.gitattributes`.
fn written(attribute: &str, value: &str) -> String {
    match value {
        "set" => attribute.to_owned(),
        "unset" => format!("-{attribute}"),
        value => format!("{attribute}={value}"),
    }
}

/// Contents of files named [`NAME`], by path.
type Files = BTreeMap<String, Vec<u8>>;

impl ChangeUnderReview<'_> {
    /// Attributes that hide baselines or the configuration from review.
    pub(super) fn hidden(&self, base: &Store, here: &Store) -> Result<Vec<Finding>, Error> {
        let folder = self.baselines();
        let mut paths = BTreeSet::from([self.at(&config_name(self.head))]);
        let mut stored = base.stored()?;
        stored.extend(here.stored()?);
        for (gpu, variant) in stored {
            let files = FILES
                .iter()
                .map(|ending| format!("{folder}/{gpu}/{variant}.{ending}"));
            paths.extend(files);
        }
        self.hiding(paths).map_err(unreadable)
    }

    /// The findings on attributes that hide some of the paths, which are relative to the top of the working
    /// tree. Those that the base has, too, warn.
    fn hiding(&self, mut paths: BTreeSet<String>) -> Result<Vec<Finding>, String> {
        let top = git::repository(&self.head.root)?.top;
        let folders: BTreeSet<String> = paths
            .iter()
            .flat_map(|path| Path::new(path).ancestors().skip(1))
            .map(|folder| folder.join(NAME).to_string_lossy().into_owned())
            .collect();
        // Git reads no attributes from links.
        let mut here = Files::new();
        for path in folders.iter().filter(|path| disk::is_there(top.join(path))) {
            if disk::is_link(top.join(path)) {
                continue;
            }
            match read_regular(&top.join(path)) {
                Ok(bytes) => drop(here.insert(path.clone(), bytes)),
                Err(error) => {
                    return Ok(vec![Finding::of_project(
                        Code::HiddenFromReview,
                        format!(
                            "`{path}` cannot be read ({error}), so it is not known what it hides from review"
                        ),
                        "make it a small file",
                    )]);
                }
            }
        }
        // What hides must not be hidden either.
        paths.extend(here.keys().cloned());
        let now = hidden(&here, &paths)?;
        if now.is_empty() {
            return Ok(Vec::new());
        }
        let mut before = Files::new();
        for path in folders {
            let entries = git::files_at(&top, &self.root.commit, &path)?;
            for (path, entry) in entries {
                if let TreeEntry::File(bytes) = entry {
                    before.insert(path, bytes);
                }
            }
        }
        let was = hidden(&before, &paths)?;
        let (old, new): (Vec<_>, Vec<_>) = now.into_iter().partition(|one| was.contains(one));
        let mut findings = Vec::new();
        if let Some(message) = message("this change hides", &new) {
            findings.push(added(message, &before, &here, self.consent));
        }
        if let Some(message) = message("base and change hide", &old) {
            let next = "review these files as text (git diff --text), or remove the attributes in a separate change";
            let finding = Finding::of_project(Code::HiddenFromReview, message, next);
            findings.push(finding.warn_for(WarnReason::InBase));
        }
        Ok(findings)
    }
}

/// The paths that are hidden, each with what hides it.
fn hidden(files: &Files, paths: &BTreeSet<String>) -> Result<BTreeSet<(String, String)>, String> {
    if files.is_empty() {
        return Ok(BTreeSet::new());
    }
    let paths = paths.iter().map(String::as_str);
    let found = git::attributes(files, paths, &ATTRIBUTES)?;
    Ok(found
        .into_iter()
        .filter(|(_, attribute, value)| hides(attribute, value))
        .map(|(path, attribute, value)| (path, written(&attribute, &value)))
        .collect())
}

/// What is hidden, for people; `None` where nothing is.
fn message(who: &str, hidden: &[(String, String)]) -> Option<String> {
    let (first, _) = hidden.first()?;
    let attributes: BTreeSet<&str> = hidden.iter().map(|(_, by)| by.as_str()).collect();
    let paths: BTreeSet<&str> = hidden.iter().map(|(path, _)| path.as_str()).collect();
    let attributes = joined(attributes.iter().map(|by| format!("`{by}`")), ", ");
    Some(format!(
        "{who} rules or baselines from review ({} files, first `{first}`) by {attributes} in .gitattributes: a review may not show, or may not merge, what is committed",
        paths.len()
    ))
}

/// The finding on attributes that the change adds.
fn added(message: String, before: &Files, after: &Files, consent: &Consent) -> Finding {
    let changed: BTreeSet<&str> = before
        .keys()
        .chain(after.keys())
        .filter(|path| before.get(*path) != after.get(*path))
        .map(String::as_str)
        .collect();
    let content = |files: &Files| {
        let files = files.iter();
        listing(files.map(|(path, content)| (path, sha256_hex(content))))
    };
    let act = Act {
        action: Action::Hide,
        path: changed.into_iter().collect::<Vec<_>>().join(", "),
        before: content(before),
        after: content(after),
        reviewed: Vec::new(),
    };
    let next = "remove the attributes, or have an authorized person review the hidden files as text and accept it from outside the change";
    let finding = Finding::of_project(Code::HiddenFromReview, message, next);
    consent.settles(finding, &act)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(attributes: &str) -> Vec<String> {
        let files = Files::from([(NAME.to_owned(), attributes.as_bytes().to_vec())]);
        let paths = BTreeSet::from(["b/lock.toml".to_owned()]);
        let found = hidden(&files, &paths).unwrap();
        found.into_iter().map(|(_, by)| by).collect()
    }

    #[test]
    fn an_attribute_hides_a_file_unless_it_only_says_how_the_file_is_stored() {
        for (attributes, expected) in [
            ("b/** linguist-generated", &["linguist-generated"][..]),
            ("* linguist-generated=true", &["linguist-generated=true"]),
            ("* linguist-vendored", &["linguist-vendored"]),
            ("*.toml gitlab-generated", &["gitlab-generated"]),
            ("* -diff", &["-diff"]),
            ("* binary", &["-diff"]),
            ("[attr]secret -diff\n* secret", &["-diff"]),
            ("* diff=nothing", &["diff=nothing"]),
            ("* merge=ours", &["merge=ours"]),
            ("* merge=union", &["merge=union"]),
            ("* -linguist-generated", &[]),
            ("* linguist-generated=false", &[]),
            ("* linguist-generated\nb/* -linguist-generated", &[]),
            ("* -text", &[]),
            ("* text eol=lf", &[]),
            ("* -merge", &[]),
            ("* diff merge", &[]),
            ("* export-ignore", &[]),
            ("*.cu linguist-generated", &[]),
        ] {
            assert_eq!(by(attributes), expected, "{attributes}");
        }
    }
}
