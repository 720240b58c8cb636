//! Tools that come with a change.

use std::path::{Component, Path, PathBuf};

use super::brought::{Brought, brought_by_change, content_sha256};
use super::change::ChangeUnderReview;
use super::consent::{Act, Action};
use super::place::unreadable;
use crate::config::{Config, Toolchain};
use crate::disk;
use crate::files::entries;
use crate::finding::{Code, Error, Finding};
use crate::git::{self, TreeEntry};
use crate::toolchain::{libraries_of_environment, places_of_environment};

/// The tools that the configuration names, each with its path.
pub(super) fn stated(toolchain: &Toolchain) -> Vec<(&'static str, &PathBuf)> {
    let tools = [
        ("nvcc", &toolchain.nvcc),
        ("ncu", &toolchain.ncu),
        ("compute-sanitizer", &toolchain.compute_sanitizer),
        ("libcupti", &toolchain.cupti),
    ];
    let stated = tools.into_iter();
    stated
        .filter_map(|(tool, path)| Some((tool, path.as_ref()?)))
        .collect()
}

impl ChangeUnderReview<'_> {
    /// Tools in the repository that the change adds or edits.
    pub(super) fn tools(&self, config: &Config) -> Result<Vec<Finding>, Error> {
        // An absolute path may lead into the checkout, beside its merge.
        let mut roots = vec![&self.head.root, &self.head.checkout];
        roots.dedup();
        let mut findings = Vec::new();
        for (tool, path) in stated(&config.toolchain) {
            for root in &roots {
                for brought in brought_by_change(root, &self.root.commit, path)? {
                    findings.push(self.tool(tool, brought));
                }
            }
        }
        for path in places_of_environment(&self.head.checkout) {
            if self.leads_inside(&path) {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                for brought in brought_by_change(&self.head.checkout, &self.root.commit, &path)? {
                    findings.push(self.tool(&name, brought));
                }
            }
        }
        Ok(findings)
    }

    /// The refusal of a tool in the checkout that git does not track: code of the change, or a step
    /// before, may have made it.
    pub(super) fn untracked_tool(&self, config: &Config) -> Result<Option<Finding>, Error> {
        let stated = stated(&config.toolchain).into_iter();
        let stated = stated.map(|(_, path)| self.head.root.join(path));
        let top = git::repository(&self.head.checkout)
            .map_err(unreadable)?
            .top;
        // Folders of toolkits and packages count for the compiler in them.
        let compilers = |place: PathBuf| {
            let inner = entries(&place).unwrap_or_default().into_iter();
            let folders = inner.map(|entry| entry.path).chain([place.clone()]);
            let mut found: Vec<PathBuf> = folders.map(|folder| folder.join("bin/nvcc")).collect();
            found.push(place);
            found.retain(|path| path.canonicalize().is_ok_and(disk::is_file));
            found
        };
        let places = places_of_environment(&self.head.checkout).into_iter();
        for path in stated.chain(places.flat_map(compilers)) {
            let Ok(real) = path.canonicalize() else {
                continue;
            };
            let Some(below) = real.strip_prefix(&top).ok().and_then(Path::to_str) else {
                continue;
            };
            if git::tracked(&top, below).map_err(unreadable)?.is_empty() {
                return Ok(Some(Finding::of_project(
                    Code::PolicyChanged,
                    format!(
                        "the tool `{}` is in the checkout, and git does not track it, so code of the change may have made it",
                        path.display()
                    ),
                    "install it outside of the checkout",
                )));
            }
        }
        Ok(None)
    }

    /// Refuses libraries of the change that this process would load.
    ///
    /// # Errors
    /// [`Error::Baseline`], which names the first; [`Error::Environment`] where git fails.
    pub(super) fn refuse_libraries(&self) -> Result<(), Error> {
        for path in libraries_of_environment() {
            if !self.leads_inside(&path) {
                continue;
            }
            let brought = brought_by_change(&self.head.checkout, &self.root.commit, &path)?;
            if let Some(first) = brought.first() {
                return Err(Error::Baseline(format!(
                    "LD_LIBRARY_PATH names a folder of the repository, and this change brings `{}` there, a library that this tool would load: its code would decide the verdict\n  next: start the check without that folder, and without an empty or relative part, in LD_LIBRARY_PATH",
                    first.path
                )));
            }
        }
        Ok(())
    }

    /// Whether a path is in the checkout, as it is spelled or behind links.
    pub(super) fn leads_inside(&self, path: &Path) -> bool {
        let plain = !path.components().any(|part| part == Component::ParentDir);
        git::repository(&self.head.checkout).is_ok_and(|repository| {
            plain && path.starts_with(&repository.top)
                || path
                    .canonicalize()
                    .is_ok_and(|path| path.starts_with(&repository.top))
        })
    }

    /// The finding on a tool that comes with the change.
    fn tool(&self, tool: &str, brought: Brought) -> Finding {
        let brings = format!(
            "{tool} is taken from the repository, and this change brings `{}`",
            brought.path
        );
        let after = match brought.after {
            None | Some(TreeEntry::Submodule(_)) => {
                return Finding::of_project(
                    Code::PolicyChanged,
                    brings,
                    "commit the tool itself: a tool from the change under review is not trusted, and the content of a submodule cannot be accepted",
                );
            }
            Some(after) => content_sha256(&after),
        };
        let act = Act {
            action: Action::Tool,
            path: brought.path,
            before: brought.before.as_ref().map(content_sha256),
            after: Some(after),
            reviewed: Vec::new(),
        };
        let next =
            "review the tool, which is not trusted because it comes from the change, and accept it";
        let finding = Finding::of_project(Code::PolicyChanged, brings, next);
        self.consent.settles(finding, &act)
    }
}
