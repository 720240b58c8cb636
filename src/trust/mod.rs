//! Whose rules count: the configuration and the locks that a change is judged by are read from a
//! revision before the change. `docs/trust.md` states the rule.
//!
//! [`bases`] finds the revision, by what `service` knows of the run; `merge` makes the code that is
//! judged; `policy` puts the change's code under the revision's policy,
//! `changes` and `locks` list what the change does to policy and locks, [`Consent`] is what was
//! accepted from outside the change.

mod authority;
mod changes;
mod checkout;
mod consent;
mod credentials;
mod hidden;
mod locks;
mod merge;
mod policy;
mod pull_request;
mod root;
mod service;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

pub use authority::Authority;
pub use consent::Consent;
pub use credentials::credentials;
pub use merge::refuse_untracked;
pub use pull_request::pull_request;
pub use root::{Asked, Bases, Root, bases};
pub use service::variables;

use crate::baseline::{FILES, Store};
use crate::config::{Config, in_current_words};
use crate::files::{most, read_regular, read_text_up_to};
use crate::finding::{Code, Error, Finding, WarnReason};
use crate::git::{self, TreeEntry, Worktree};
use crate::hash::sha256_hex;
use crate::toolchain::{libraries_of_environment, places_of_environment};
use changes::{Change, Way, changes};
use consent::{Act, Action};

/// The rules that a run judges by.
#[derive(Debug)]
pub struct Grounds {
    /// The code of the working tree, under the policy of the authority.
    pub config: Config,
    /// The locks of the authority.
    pub store: Store,
    /// The folder of the baselines in the code that is judged, whose past git records.
    pub baselines: PathBuf,
    /// Whose they are.
    pub authority: Authority,
    /// What the change does to policy and locks.
    pub findings: Vec<Finding>,
    /// The folder of the store, if it is not the one of the working tree.
    _snapshot: Option<tempfile::TempDir>,
    /// The folder of the code, if it is not the checkout.
    _merged: Option<Worktree>,
}

impl Grounds {
    /// Whether the rules come from outside the working tree.
    pub fn is_outside(&self) -> bool {
        self.authority != Authority::WorkingTree
    }
}

/// The rules for judging the working tree: its own, or those of a revision.
///
/// # Errors
/// [`Error::Environment`] and [`Error::Baseline`] where the revision cannot be read as a project.
pub fn establish(head: Config, root: Option<Root>, consent: &Consent) -> Result<Grounds, Error> {
    let Some(root) = root else {
        return Ok(Grounds {
            store: Store::open(&head.baselines)?,
            baselines: head.baselines.clone(),
            config: head,
            authority: Authority::WorkingTree,
            findings: consent.unneeded(),
            _snapshot: None,
            _merged: None,
        });
    };
    place_in_repository(&head.root)?;
    let (head, merged) = merge::judged(head, &root)?;
    let change = ChangeUnderReview {
        place: place_in_repository(&head.root)?,
        head: &head,
        root: &root,
        consent,
    };
    let mut findings = Vec::new();
    let (config, base_baselines) = change.policy(&mut findings)?;
    let config = merge::in_checkout(config, &head.checkout);
    let snapshot = tempfile::tempdir().map_err(Error::io("create", std::env::temp_dir()))?;
    let store = change.store(&base_baselines, snapshot.path())?;
    findings.extend(change.links()?);
    findings.extend(change.leftovers()?);
    findings.extend(change.converted()?);
    let here = Store::open(&head.baselines)?;
    let place = change.place.join(&inside(&head.root, &head.baselines));
    let replaced = locks::compare(&config, &store, &here, &place, consent, &mut findings)?;
    findings.extend(change.hidden(&store, &here)?);
    locks::replace(&store, &here, &replaced)?;
    change.refuse_libraries()?;
    findings.extend(change.tools(&config)?);
    findings.extend(change.builds(&config)?);
    findings.extend(consent.unused());
    // The folder of the merge is gone when the report is read.
    let config = Config {
        baselines: merge::below(&config, &config.baselines, &head.checkout),
        ..config
    };
    Ok(Grounds {
        config,
        store,
        baselines: head.baselines.clone(),
        authority: Authority::Revision {
            commit: root.commit.clone(),
            found_by: root.found_by.clone(),
        },
        findings,
        _snapshot: Some(snapshot),
        _merged: merged,
    })
}

/// A file that is part of the change: tracked, and different from the base's.
pub struct Brought {
    /// From the top of the repository.
    pub path: String,
    /// What the base has there.
    before: Option<TreeEntry>,
    /// What the change has there; `None` where it cannot be read.
    after: Option<TreeEntry>,
}

/// Files at a path, below it and on the way to it that are part of the change. Untracked files are
/// not.
///
/// # Errors
/// [`Error::Environment`] where git fails.
pub fn brought_by_change(
    root: &Path,
    authority: &Authority,
    path: &Path,
) -> Result<Vec<Brought>, Error> {
    let Authority::Revision { commit, .. } = authority else {
        return Ok(Vec::new());
    };
    let top = git::repository(root).map_err(unreadable)?.top;
    let top = top.canonicalize().map_err(Error::io("find", &top))?;
    let mut brought = BTreeMap::new();
    for stop in stops(path)? {
        // What is outside the repository belongs to the machine.
        let Ok(below) = stop.strip_prefix(&top) else {
            continue;
        };
        let below = below.to_string_lossy();
        // The files of a submodule on the way are not listed by git here.
        let place = Path::new(below.as_ref()).ancestors().find(|folder| {
            !folder.as_os_str().is_empty()
                && top.join(folder).join(".git").symlink_metadata().is_ok()
        });
        let place = place.map_or(below.clone(), Path::to_string_lossy);
        let tracked = git::tracked(&top, &place).map_err(unreadable)?;
        if tracked.is_empty() {
            continue;
        }
        let before = git::files_at(&top, commit, &place).map_err(unreadable)?;
        for (path, submodule) in tracked {
            let after = match submodule {
                Some(commit) => Some(TreeEntry::Submodule(commit)),
                None => entry_here(&top.join(&path)),
            };
            let before = before.get(&path).cloned();
            if after.is_none() || before != after {
                let file = Brought {
                    path: path.clone(),
                    before,
                    after,
                };
                brought.insert(path, file);
            }
        }
    }
    Ok(brought.into_values().collect())
}

/// Files that differ in the revision from their stated hash. `stated` are sha256 by paths from
/// `root`; other paths belong to the machine. Empty where no revision has authority.
///
/// # Errors
/// [`Error::Environment`] where git fails.
pub fn unlike_base<'s>(
    root: &Path,
    authority: &Authority,
    stated: &'s BTreeMap<String, String>,
) -> Result<Vec<&'s str>, Error> {
    let Authority::Revision { commit, .. } = authority else {
        return Ok(Vec::new());
    };
    let place = place_in_repository(root)?;
    let mut unlike = Vec::new();
    for (path, sha256) in stated {
        let parts = Path::new(path).components();
        if !parts
            .clone()
            .all(|part| matches!(part, Component::Normal(_)))
        {
            continue;
        }
        let whole = place.join(path);
        let files = git::files_at(root, commit, &whole).map_err(unreadable)?;
        // Other files were made by a build, or are behind a link.
        if let Some(TreeEntry::File(bytes)) = files.get(&whole)
            && sha256_hex(bytes) != *sha256
        {
            unlike.push(path.as_str());
        }
    }
    Ok(unlike)
}

/// What the working tree has at a path.
fn entry_here(path: &Path) -> Option<TreeEntry> {
    if let Ok(target) = std::fs::read_link(path) {
        let target = target.into_os_string().into_encoded_bytes();
        return Some(TreeEntry::Link(target));
    }
    read_regular(path).ok().map(TreeEntry::File)
}

/// The sha256 of a content: of a file its bytes, so that `sha256sum` shows the same.
fn content_sha256(entry: &TreeEntry) -> String {
    match entry {
        TreeEntry::File(bytes) => sha256_hex(bytes),
        TreeEntry::Link(target) => sha256_hex(&[b"link to ", &target[..]].concat()),
        TreeEntry::Submodule(commit) => sha256_hex(format!("submodule {commit}").as_bytes()),
    }
}

/// Every link on the way to a path, and the end of the way, without links.
///
/// # Errors
/// [`Error::Io`].
fn stops(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let path = std::path::absolute(path).map_err(Error::io("find", path))?;
    let parts = |path: &Path| -> Vec<std::ffi::OsString> {
        let parts = path.components().rev();
        parts.map(|part| part.as_os_str().to_owned()).collect()
    };
    let mut ahead = parts(&path);
    let (mut way, mut found) = (PathBuf::new(), Vec::new());
    while let Some(part) = ahead.pop() {
        if part == ".." {
            way.pop();
            continue;
        }
        // An absolute target starts at the root again.
        way.push(part);
        if let Ok(target) = std::fs::read_link(&way) {
            found.push(way.clone());
            if found.len() > MOST_LINKS {
                break;
            }
            way.pop();
            ahead.extend(parts(&target));
        }
    }
    found.push(way);
    Ok(found)
}

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

struct ChangeUnderReview<'a> {
    place: Place,
    head: &'a Config,
    root: &'a Root,
    consent: &'a Consent,
}

impl ChangeUnderReview<'_> {
    /// The revision, for people.
    fn revision(&self) -> String {
        let commit: String = self.root.commit.chars().take(10).collect();
        format!("{commit} ({})", self.root.found_by)
    }

    fn files(&self, path: &str) -> Result<BTreeMap<String, TreeEntry>, Error> {
        let path = self.place.join(path);
        git::files_at(&self.head.root, &self.root.commit, &path).map_err(unreadable)
    }

    fn file(&self, path: &str) -> Result<Option<TreeEntry>, Error> {
        Ok(self.files(path)?.remove(&self.place.join(path)))
    }

    /// The configuration to judge by, and the base's folder of baselines.
    fn policy(&self, findings: &mut Vec<Finding>) -> Result<(Config, PathBuf), Error> {
        let path = &self.head.path;
        let text = read_text_up_to(path, most::CONFIG).map_err(Error::io("read", path))?;
        let whole = || (self.head.clone(), self.head.baselines.clone());
        let base_text = self.base_text()?;
        let hash = sha256_hex(text.as_bytes());
        let act = Act {
            action: Action::Policy,
            path: self.place.join(&config_name(self.head)),
            before: base_text.as_deref().map(sha256_hex),
            after: Some(hash.clone()),
            file_sha256: Some(hash),
        };
        let Some(base_text) = base_text else {
            findings.push(self.without_base_policy(&act));
            return Ok(whole());
        };
        let base_text = String::from_utf8_lossy(&base_text).into_owned();
        if base_text == text {
            return Ok(whole());
        }
        let base = match Config::parse(path, &base_text) {
            Ok(base) => base,
            Err(error) => {
                findings.push(self.unreadable_base(error.message(), &act)?);
                return Ok(whole());
            }
        };
        // Both were validated, so both are tables.
        let table =
            |text: &str| in_current_words(toml::from_str::<toml::Table>(text).unwrap_or_default());
        let (base_table, head_table) = (table(&base_text), table(&text));
        let mut changes = changes(&base_table, &head_table);
        let merged = match self.merged(&base_table, &head_table) {
            Ok(merged) => Some(merged),
            Err(_) if self.consent.covers(&act) => None,
            Err(why) => {
                return Err(Error::Baseline(format!(
                    "this change's variants are invalid under the base configuration of {}: {why}; to accept this change's file as a whole: {}",
                    self.revision(),
                    self.consent.how(&act)
                )));
            }
        };
        if let Some(merged) = &merged {
            if policy::same(merged, self.head) {
                changes.retain(|change| change.way == Way::States);
            } else if changes.is_empty() {
                changes.push(Change {
                    text: "changes rules in a way that no single key shows".to_owned(),
                    way: Way::Loosens,
                    variant: None,
                });
            }
        }
        let (all, accepted) = self.findings_on(changes, &act);
        findings.extend(all);
        let policy = merged.filter(|_| !accepted);
        Ok((policy.unwrap_or_else(|| self.head.clone()), base.baselines))
    }

    /// The base's configuration, if it has one.
    fn base_text(&self) -> Result<Option<Vec<u8>>, Error> {
        let name = config_name(self.head);
        match self.file(&name)? {
            Some(TreeEntry::File(bytes)) => Ok(Some(bytes)),
            Some(TreeEntry::Link(_) | TreeEntry::Submodule(_)) => Err(Error::Baseline(format!(
                "{name} is a link at {}, and its target is not part of that revision; commit the file itself there",
                self.revision()
            ))),
            None => Ok(None),
        }
    }

    /// The finding that the base has no configuration.
    fn without_base_policy(&self, act: &Act) -> Finding {
        let name = config_name(self.head);
        let finding = Finding::of_project(
            Code::PolicyChanged,
            format!(
                "there is no {name} at {}: every rule and every baseline comes from this change",
                self.revision()
            ),
            format!(
                "have an authorized person review {name} and accept it from outside the change: {}",
                self.consent.how(act)
            ),
        );
        self.consent.settles(finding, act)
    }

    /// The finding that the base's configuration cannot be read, if the change's was accepted.
    fn unreadable_base(&self, why: &str, act: &Act) -> Result<Finding, Error> {
        let name = config_name(self.head);
        if !self.consent.covers(act) {
            return Err(Error::Baseline(format!(
                "{name} at {} cannot be read by this version: {why}; fix it there first, or accept this change's file as a whole: {}",
                self.revision(),
                self.consent.how(act)
            )));
        }
        let finding = Finding::of_project(
            Code::PolicyChanged,
            format!(
                "{name} at {} cannot be read by this version ({why}); this change's file is used as a whole, as accepted",
                self.revision()
            ),
            self.consent.nothing(act),
        );
        let finding = finding.accept(self.consent.token(act));
        Ok(finding.warn_for(WarnReason::Consented))
    }

    /// The change's code under the base's policy.
    fn merged(&self, base: &toml::Table, head: &toml::Table) -> Result<Config, String> {
        let merged = toml::to_string(&policy::merged(base, head));
        let merged = merged.map_err(|error| error.to_string())?;
        Config::parse(&self.head.path, &merged).map_err(|error| error.message().to_owned())
    }

    /// The findings on changes of the policy, and whether they were accepted.
    fn findings_on(&self, changes: Vec<Change>, act: &Act) -> (Vec<Finding>, bool) {
        let name = config_name(self.head);
        let mut accepted = false;
        let findings = changes.into_iter().map(|change| {
            let of_code = change.way == Way::States;
            let next = if of_code {
                "measure the change: the launches show the numbers".to_owned()
            } else {
                format!("it takes effect once an authorized person reviews {name} and accepts it from outside the change: {}", self.consent.how(act))
            };
            let finding = Finding {
                variant: change.variant,
                ..Finding::of_project(Code::PolicyChanged, format!("this change {}", verb(&change.text)), next)
            };
            if of_code {
                return finding.warn_for(WarnReason::LaunchesShow);
            }
            let finding = self.consent.settles(finding, act);
            accepted |= self.consent.covers(act);
            let tightens = change.way == Way::Tightens;
            finding.warn_for(tightens.then_some(WarnReason::Tightens))
        });
        let findings: Vec<Finding> = findings.collect();
        (findings, accepted)
    }

    /// The base's baselines, as files below a folder.
    fn store(&self, baselines: &Path, snapshot: &Path) -> Result<Store, Error> {
        let below = inside(&self.head.root, baselines);
        let whole = self.place.join(&below);
        let folder = snapshot.join("baselines");
        for (path, entry) in self.files(&below)? {
            let rest = path.strip_prefix(&whole).unwrap_or(&path);
            let rest = Path::new(rest.trim_start_matches('/'));
            let bytes = match entry {
                TreeEntry::File(bytes) if rest != Path::new("") => bytes,
                _ if rest == Path::new("") => {
                    return Err(Error::Baseline(format!(
                        "`{below}` is not a folder at {}: commit the baselines themselves there",
                        self.revision()
                    )));
                }
                // A lock that is a link counts as missing, and is reported as missing.
                _ => continue,
            };
            if rest
                .components()
                .all(|part| matches!(part, Component::Normal(_)))
            {
                locks::write(&folder.join(rest), &bytes)?;
            }
        }
        Store::open(&folder)
    }

    /// Links: the change's configuration, on the way to its baselines, and among them. Once merged,
    /// their targets would be the rules, and nobody reviews these.
    fn links(&self) -> Result<Vec<Finding>, Error> {
        let baselines = self
            .head
            .root
            .join(inside(&self.head.root, &self.head.baselines));
        let mut found = Vec::new();
        if self.head.path.is_symlink() {
            found.push(self.head.path.clone());
        }
        let mut way = self.head.root.clone();
        for part in baselines
            .strip_prefix(&self.head.root)
            .unwrap_or(Path::new(""))
        {
            way.push(part);
            if way.is_symlink() {
                found.push(way.clone());
            }
        }
        if !way.is_symlink() {
            links_below(&baselines, &mut found)?;
        }
        Ok(found
            .into_iter()
            .map(|path| {
                let below = path.strip_prefix(&self.head.root).unwrap_or(&path);
                Finding::of_project(
                    Code::Tampered,
                    format!(
                        "`{}` is a link, and its target is not part of the reviewed change",
                        below.display()
                    ),
                    "commit the files themselves there",
                )
            })
            .collect())
    }

    /// Rules and baselines that git converts: the files of the working tree would differ from those
    /// that are merged.
    fn converted(&self) -> Result<Option<Finding>, Error> {
        let top = git::repository(&self.head.root).map_err(unreadable)?.top;
        let below = inside(&self.head.root, &self.head.baselines);
        let mut paths = git::tracked(&top, &self.place.join(&below)).map_err(unreadable)?;
        paths.insert(self.place.join(&config_name(self.head)), None);
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
    fn leftovers(&self) -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        for left in Store::leftovers(&self.head.baselines) {
            let brought = brought_by_change(&self.head.root, &self.authority(), &left)?;
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

    /// Tools in the repository that the change adds or edits.
    fn tools(&self, config: &Config) -> Result<Vec<Finding>, Error> {
        let toolchain = &config.toolchain;
        let tools = [
            ("nvcc", &toolchain.nvcc),
            ("ncu", &toolchain.ncu),
            ("compute-sanitizer", &toolchain.compute_sanitizer),
            ("libcupti", &toolchain.cupti),
        ];
        let mut findings = Vec::new();
        for (tool, path) in tools {
            let Some(path) = path else { continue };
            // An absolute path may lead into the checkout, beside its merge.
            let mut all = brought_by_change(&self.head.root, &self.authority(), path)?;
            if self.head.checkout != self.head.root {
                let beside = brought_by_change(&self.head.checkout, &self.authority(), path)?;
                all.extend(beside);
            }
            for brought in all {
                findings.push(self.tool(tool, brought));
            }
        }
        for path in places_of_environment(&self.head.checkout) {
            if self.leads_inside(&path) {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                for brought in brought_by_change(&self.head.checkout, &self.authority(), &path)? {
                    findings.push(self.tool(&name, brought));
                }
            }
        }
        Ok(findings)
    }

    /// Refuses libraries of the change that this process would load.
    fn refuse_libraries(&self) -> Result<(), Error> {
        for path in libraries_of_environment() {
            if !self.leads_inside(&path) {
                continue;
            }
            let brought = brought_by_change(&self.head.checkout, &self.authority(), &path)?;
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
    fn leads_inside(&self, path: &Path) -> bool {
        let top = git::repository(&self.head.checkout).map(|repository| repository.top);
        let top = top.ok().and_then(|top| top.canonicalize().ok());
        top.is_some_and(|top| {
            path.starts_with(&top) || path.canonicalize().is_ok_and(|path| path.starts_with(&top))
        })
    }

    /// The finding on a tool that comes with the change.
    fn tool(&self, tool: &str, brought: Brought) -> Finding {
        let Brought {
            path,
            before,
            after,
        } = brought;
        let brings =
            format!("{tool} is taken from the repository, and this change brings `{path}`");
        let after = match after {
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
            path,
            before: before.as_ref().map(content_sha256),
            after: Some(after.clone()),
            file_sha256: Some(after),
        };
        let next = format!(
            "review the tool, which is not trusted because it comes from the change, and accept it: {}",
            self.consent.how(&act)
        );
        let finding = Finding::of_project(Code::PolicyChanged, brings, next);
        self.consent.settles(finding, &act)
    }

    /// Committed builds and profiles in the work folder of this tool.
    fn builds(&self, config: &Config) -> Result<Option<Finding>, Error> {
        let brought = brought_by_change(&self.head.checkout, &self.authority(), &config.work)?;
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

    /// Attributes that hide baselines or the configuration from review.
    fn hidden(&self, base: &Store, here: &Store) -> Result<Vec<Finding>, Error> {
        let folder = self
            .place
            .join(&inside(&self.head.root, &self.head.baselines));
        let mut paths = BTreeSet::from([self.place.join(&config_name(self.head))]);
        let mut stored = base.stored()?;
        stored.extend(here.stored()?);
        for (gpu, variant) in stored {
            let files = FILES
                .iter()
                .map(|ending| format!("{folder}/{gpu}/{variant}.{ending}"));
            paths.extend(files);
        }
        let top = git::repository(&self.head.root).map_err(unreadable)?.top;
        hidden::findings(&top, &self.root.commit, paths, self.consent).map_err(unreadable)
    }

    fn authority(&self) -> Authority {
        Authority::Revision {
            commit: self.root.commit.clone(),
            found_by: self.root.found_by.clone(),
        }
    }
}

/// The text after `this change`: some texts begin with a verb, others with a subject.
fn verb(text: &str) -> String {
    let verbs = [
        "adds ",
        "loosens ",
        "tightens ",
        "changes ",
        "extends ",
        "shortens ",
        "removes ",
        "replaces ",
        "gives ",
        "sets ",
        "no longer ",
    ];
    if verbs.iter().any(|verb| text.starts_with(verb)) {
        text.to_owned()
    } else {
        format!("changes a rule: {text}")
    }
}

fn links_below(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("read", folder)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(Error::io("read", folder))?;
        let kind = entry.file_type().map_err(Error::io("read", folder))?;
        if kind.is_symlink() {
            found.push(entry.path());
        } else if kind.is_dir() {
            links_below(&entry.path(), found)?;
        }
    }
    Ok(())
}

/// The folder of a project in its repository, `a/b/`; empty at the top.
#[derive(Clone, Debug)]
struct Place(String);

impl Place {
    fn join(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }
}

/// The folder of the configuration in the repository.
///
/// # Errors
/// [`Error::Environment`] where there is no repository; [`Error::Baseline`] where a link or a
/// submodule on the way leads to another place with another policy.
fn place_in_repository(root: &Path) -> Result<Place, Error> {
    let repository = git::repository(root).map_err(unreadable)?;
    // The change decides which commit a submodule is at.
    if repository.is_submodule {
        return Err(Error::Baseline(format!(
            "{} is a submodule, and its baselines are not those of the repository around it; run the check in a clone of the submodule",
            repository.top.display()
        )));
    }
    let real = |path: &Path| path.canonicalize().map_err(Error::io("find", path));
    let (top, real_root) = (real(&repository.top)?, real(root)?);
    // git refuses this itself since 2.38.
    if let Ok(below) = real(&repository.history)?.strip_prefix(&top)
        && !below.components().any(|part| part.as_os_str() == ".git")
    {
        return Err(Error::Baseline(format!(
            "{} is a repository among the files of another one, so the change decides its history; remove it",
            repository.history.display()
        )));
    }
    // As the path is spelled: a link above the repository belongs to the machine.
    let above = root
        .ancestors()
        .find(|folder| folder.canonicalize().is_ok_and(|folder| folder == top));
    let below = above.and_then(|above| root.strip_prefix(above).ok());
    match below {
        Some(below) if top.join(below) == real_root => {
            let place: String = below
                .components()
                .map(|part| format!("{}/", part.as_os_str().to_string_lossy()))
                .collect();
            Ok(Place(place))
        }
        _ => Err(Error::Baseline(format!(
            "{} leads through a link to {}, so it is unclear whose baselines count; name the real path",
            root.display(),
            real_root.display()
        ))),
    }
}

/// The path of something below a folder, without `.` and `..`. Only the text is used.
fn inside(root: &Path, path: &Path) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in path.strip_prefix(root).unwrap_or(path).components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
            _ => {}
        }
    }
    parts.join("/")
}

fn config_name(config: &Config) -> String {
    config
        .path
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn unreadable(why: String) -> Error {
    Error::Environment {
        what: format!("git cannot read the base revision: {why}"),
        next: "run the check in a clone with its history (`fetch-depth: 0`), as a user that git trusts with it (`safe.directory`); `--baseline-ref none` uses the rules of the working tree".to_owned(),
    }
}
