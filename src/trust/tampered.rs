//! Files of a change that are read here, and would be something else once they are merged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::brought::brought_by_change;
use super::change::{ChangeUnderReview, config_name};
use super::place::{inside, unreadable};
use crate::baseline::{FILES, Store};
use crate::config::Config;
use crate::disk;
use crate::files::entries;
use crate::finding::{Code, Error, Finding};
use crate::git;

impl ChangeUnderReview<'_> {
    /// What is no folder and no file on the way to the baselines of the change, and among them. Once
    /// merged, the targets of links would be the rules, and nobody reviews these.
    pub(super) fn links(&self) -> Result<Vec<Finding>, Error> {
        let baselines = self
            .head
            .root
            .join(inside(&self.head.root, &self.head.baselines));
        let mut found = Vec::new();
        let mut way = self.head.root.clone();
        for part in baselines
            .strip_prefix(&self.head.root)
            .unwrap_or(Path::new(""))
        {
            way.push(part);
            if disk::is_link(&way) {
                found.push((way.clone(), LINK));
            }
        }
        if disk::is_file(&baselines) && found.is_empty() {
            found.push((baselines, "is a file in the place of a folder"));
        } else if !disk::is_link(&way) {
            others_below(&baselines, &mut found)?;
        }
        Ok(found
            .into_iter()
            .map(|(path, what)| {
                let below = path.strip_prefix(&self.head.root).unwrap_or(&path);
                Finding::of_project(
                    Code::Tampered,
                    format!("`{}` {what}", below.display()),
                    "commit the files themselves there",
                )
            })
            .collect())
    }

    /// What git has in the place of rules and baselines, or beside them, that is not what is read here:
    /// a submodule, whose commit nobody reviews, and a name that is the same where case does not count.
    pub(super) fn twins(&self) -> Result<Vec<Finding>, Error> {
        let top = git::repository(&self.head.root).map_err(unreadable)?.top;
        let baselines = self.baselines();
        let config = self.at(&config_name(self.head));
        let is_at = |path: &str, place: &str| Path::new(path).starts_with(place);
        let is_ours = |path: &str| is_at(path, &baselines) || path == config;
        let folded = (folded(&baselines), folded(&config));
        let tracked = git::tracked(&top, ".").map_err(unreadable)?;
        let before = git::objects_at(&top, &self.root.commit).map_err(unreadable)?;
        let mut seen = BTreeMap::new();
        let mut found = Vec::new();
        let mut report = |message: String| {
            let next = "commit the files themselves, each under a name of its own";
            found.push(Finding::of_project(Code::Tampered, message, next));
        };
        for (path, submodule) in &tracked {
            if submodule.is_some() && (is_ours(path) || is_at(&baselines, path)) {
                report(format!(
                    "`{path}` is a submodule, and what it has is not part of the reviewed change"
                ));
            }
            let lower = self::folded(path);
            // On the way there it would be a link or a submodule.
            let is_on_the_way = [&folded.0, &folded.1]
                .iter()
                .any(|place| is_at(place, &lower));
            if !is_at(&lower, &folded.0) && !is_on_the_way {
                continue;
            }
            let twin = seen.insert(lower, path);
            let is_new = |path: &String| !before.contains_key(path);
            let is_of_change = is_new(path) || twin.is_some_and(is_new);
            if (twin.is_some() || !is_ours(path)) && is_of_change {
                report(format!(
                    "`{path}` has the name of a rule or a baseline in another case: one replaces the other where case does not count"
                ));
            }
        }
        Ok(found)
    }

    /// Rules and baselines that git converts: the files of the working tree would differ from those
    /// that are merged.
    pub(super) fn converted(&self) -> Result<Option<Finding>, Error> {
        let top = git::repository(&self.head.root).map_err(unreadable)?.top;
        let mut paths = git::tracked(&top, &self.baselines()).map_err(unreadable)?;
        paths.insert(self.at(&config_name(self.head)), None);
        let converted =
            git::converted(&top, paths.keys().map(String::as_str)).map_err(unreadable)?;
        Ok(converted.first().map(|(path, attribute)| {
            Finding::of_project(
                Code::Tampered,
                format!(
                    "git converts rules or baselines ({} files, first `{path}`, by `{attribute}` in .gitattributes): the working tree differs from what is committed",
                    converted.len()
                ),
                "remove the attribute from these files",
            )
        }))
    }

    /// Committed folders with the names that an interrupted store leaves: they would be read as the
    /// baselines here, and not once they are merged.
    pub(super) fn leftovers(&self) -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        for left in Store::leftovers(&self.head.baselines) {
            let brought = brought_by_change(&self.head.root, &self.root.commit, &left)?;
            if let Some(first) = brought.first() {
                findings.push(Finding::of_project(
                    Code::Tampered,
                    format!(
                        "this change adds `{}`, a name that only an interrupted store leaves: the files would be read as the baselines here, and not in the repository",
                        first.path
                    ),
                    "remove the files from version control",
                ));
            }
        }
        Ok(findings)
    }

    /// Committed builds and profiles in the work folder of this tool.
    pub(super) fn builds(&self, config: &Config) -> Result<Option<Finding>, Error> {
        let brought = brought_by_change(&self.head.checkout, &self.root.commit, &config.work)?;
        let Some(first) = brought.first() else {
            return Ok(None);
        };
        Ok(Some(Finding::of_project(
            Code::Tampered,
            format!(
                "this change adds {} files to the folder of builds, first `{}`: a program that was not built here would be run",
                brought.len(),
                first.path
            ),
            "remove the files from version control",
        )))
    }
}

/// Whether a file with this name would be one of a lock.
fn is_file_of_lock(path: &Path) -> bool {
    let name = path.to_string_lossy();
    FILES
        .iter()
        .any(|ending| name.ends_with(&format!(".{ending}")))
}

/// The name where case does not count.
fn folded(path: &str) -> String {
    path.to_uppercase().to_lowercase()
}

const LINK: &str = "is a link, and its target is not part of the reviewed change";

fn others_below(folder: &Path, found: &mut Vec<(PathBuf, &'static str)>) -> Result<(), Error> {
    for entry in entries(folder)? {
        if entry.is_link() {
            found.push((entry.path, LINK));
        } else if entry.is_dir() && is_file_of_lock(&entry.path) {
            found.push((entry.path, "is a folder in the place of a file"));
        } else if entry.is_dir() {
            others_below(&entry.path, found)?;
        }
    }
    Ok(())
}
