//! Whose word counts: the configuration and the locks that a change is judged by are read from
//! outside the change, from a revision before it. `docs/trust.md` states the rule.
//!
//! [`root`] finds the revision, `policy` puts the change's code under the revision's policy,
//! `changes` and `locks` tell what the change does to either, [`Consent`] is what somebody outside
//! agreed to.

mod authority;
mod changes;
mod consent;
mod locks;
mod policy;
mod root;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

pub use authority::Authority;
pub use consent::Consent;
pub use root::{Root, root, variables};

use crate::baseline::Store;
use crate::config::{Config, in_current_words};
use crate::files::read_regular;
use crate::finding::{Code, Error, Finding, WarnReason};
use crate::git::{self, TreeEntry as Held};
use crate::hash::sha256_hex;
use changes::{Change, Way, changes};

/// What a run judges by.
#[derive(Debug)]
pub struct Grounds {
    /// The code that is here, under the policy of the authority.
    pub config: Config,
    /// The locks of the authority.
    pub store: Store,
    /// Whose they are.
    pub authority: Authority,
    /// What the change does to policy and locks.
    pub findings: Vec<Finding>,
    /// Holds the store, where it is not the one of the working tree.
    _snapshot: Option<tempfile::TempDir>,
}

impl Grounds {
    /// Whether what is here is only the subject, and its word on itself is not taken.
    pub fn is_outside(&self) -> bool {
        self.authority != Authority::WorkingTree
    }
}

/// The grounds of judging what is here: the files here, or those of a revision.
///
/// # Errors
/// [`Error::Environment`] and [`Error::Baseline`] where the revision cannot be read as a project.
pub fn establish(head: Config, root: Option<Root>, accepted: &[String]) -> Result<Grounds, Error> {
    let consent = Consent::new(accepted)?;
    let Some(root) = root else {
        return Ok(Grounds {
            store: Store::open(&head.baselines)?,
            config: head,
            authority: Authority::WorkingTree,
            findings: consent.unneeded(),
            _snapshot: None,
        });
    };
    let change = ChangeUnderReview {
        place: place_in_repository(&head.root)?,
        head: &head,
        root: &root,
        consent: &consent,
    };
    let mut findings = Vec::new();
    let (config, base_baselines) = change.policy(&mut findings)?;
    let snapshot = tempfile::tempdir().map_err(Error::io("create", std::env::temp_dir()))?;
    let store = change.store(&base_baselines, snapshot.path())?;
    findings.extend(change.links()?);
    findings.extend(change.leftovers()?);
    findings.extend(change.converted()?);
    let here = Store::open(&head.baselines)?;
    let replaced = locks::compare(&config, &store, &here, &consent, &mut findings)?;
    locks::replace(&store, &here, &replaced)?;
    findings.extend(change.tools(&config)?);
    findings.extend(change.builds(&config)?);
    findings.extend(consent.unused());
    Ok(Grounds {
        config,
        store,
        authority: Authority::Revision {
            commit: root.commit.clone(),
            found_by: root.found_by.clone(),
        },
        findings,
        _snapshot: Some(snapshot),
    })
}

/// A file that is part of the change: tracked, and not what the base holds there.
pub struct Brought {
    /// From the top of the repository.
    pub path: String,
    /// Its bytes, or where it leads if it is a link; `None` where it cannot be read.
    content: Option<Vec<u8>>,
}

/// Files at a path, below it and on the way to it that are part of the change. What a run wrote and
/// nobody committed is none.
///
/// # Errors
/// [`Error::Environment`] where git cannot tell.
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
        // What lies elsewhere is the machine's.
        let Ok(below) = stop.strip_prefix(&top) else {
            continue;
        };
        let below = below.to_string_lossy();
        // A submodule on the way holds what git does not list here.
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
            let (here, content) = match submodule {
                Some(commit) => (Some(Held::Submodule(commit)), None),
                None => held_here(&top.join(&path)),
            };
            if here.is_none() || before.get(&path) != here.as_ref() {
                brought.insert(path, content);
            }
        }
    }
    let brought = brought.into_iter();
    Ok(brought
        .map(|(path, content)| Brought { path, content })
        .collect())
}

/// Files that a revision holds otherwise than said. `stated` are sha256 by paths from
/// `root`; what is not below it is the machine's. Nothing where no revision has authority.
///
/// # Errors
/// [`Error::Environment`] where git cannot tell.
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
        let held = git::files_at(root, commit, &whole).map_err(unreadable)?;
        // What it does not hold was made by a build, or lies behind a link.
        if let Some(Held::File(bytes)) = held.get(&whole)
            && sha256_hex(bytes) != *sha256
        {
            unlike.push(path.as_str());
        }
    }
    Ok(unlike)
}

/// What the working tree has at a path, and the same as bytes.
fn held_here(path: &Path) -> (Option<Held>, Option<Vec<u8>>) {
    if let Ok(target) = std::fs::read_link(path) {
        let target = target.into_os_string().into_encoded_bytes();
        return (Some(Held::Link(target.clone())), Some(target));
    }
    let bytes = read_regular(path).ok();
    (bytes.clone().map(Held::File), bytes)
}

/// Every link on the way to a path, and where the way ends, without links.
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
        // The root of an absolute target begins anew.
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

/// As many as the kernel follows.
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

    fn files(&self, path: &str) -> Result<BTreeMap<String, Held>, Error> {
        let path = self.place.join(path);
        git::files_at(&self.head.root, &self.root.commit, &path).map_err(unreadable)
    }

    fn file(&self, path: &str) -> Result<Option<Held>, Error> {
        Ok(self.files(path)?.remove(&self.place.join(path)))
    }

    /// The configuration to judge by, and the base's folder of baselines.
    fn policy(&self, findings: &mut Vec<Finding>) -> Result<(Config, PathBuf), Error> {
        let head = self.head;
        let name = config_name(head);
        let text = std::fs::read_to_string(&head.path).map_err(Error::io("read", &head.path))?;
        let hash = sha256_hex(text.as_bytes());
        let base_text = match self.file(&name)? {
            Some(Held::File(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
            Some(Held::Link(_) | Held::Submodule(_)) => {
                return Err(Error::Baseline(format!(
                    "{name} is a link at {}: what it leads to is not part of that revision; put the file itself there",
                    self.revision()
                )));
            }
            None => {
                let finding = Finding::of_project(
                    Code::PolicyChanged,
                    format!(
                        "there is no {name} at {}: every rule and every baseline is this change's own",
                        self.revision()
                    ),
                    format!(
                        "whoever may decide that looks at {name} and accepts it from outside the change: check --accept {hash}"
                    ),
                );
                findings.push(self.consent.settles(finding, &hash));
                return Ok((head.clone(), head.baselines.clone()));
            }
        };
        if base_text == text {
            return Ok((head.clone(), head.baselines.clone()));
        }
        let base = match Config::parse(&head.path, &base_text) {
            Ok(base) => base,
            Err(error) if self.consent.covers(&hash) => {
                let finding = Finding::of_project(
                    Code::PolicyChanged,
                    format!(
                        "{name} at {} cannot be read by this version ({}); this change's is taken whole, as accepted",
                        self.revision(),
                        error.message()
                    ),
                    "nothing: consent was given from outside the change (--accept)",
                );
                findings.push(finding.accept(hash).warn_for(WarnReason::Consented));
                return Ok((head.clone(), head.baselines.clone()));
            }
            Err(error) => {
                return Err(Error::Baseline(format!(
                    "{name} at {} cannot be read by this version: {}; mend it there first, or accept this change's whole: check --accept {hash}",
                    self.revision(),
                    error.message()
                )));
            }
        };
        // Both were validated, so both are tables.
        let table =
            |text: &str| in_current_words(toml::from_str::<toml::Table>(text).unwrap_or_default());
        let (base_table, head_table) = (table(&base_text), table(&text));
        let merged = policy::merged(&base_table, &head_table);
        let merged = toml::to_string(&merged)
            .map_err(|error| error.to_string())
            .and_then(|merged| {
                Config::parse(&head.path, &merged).map_err(|error| error.message().to_owned())
            });
        let consented = || (head.clone(), base.baselines.clone());
        let merged = match merged {
            Ok(merged) => merged,
            Err(_) if self.consent.covers(&hash) => {
                let (all, _) = self.told(changes(&base_table, &head_table), &hash, &name);
                findings.extend(all);
                return Ok(consented());
            }
            Err(why) => {
                return Err(Error::Baseline(format!(
                    "the variants of this change make no configuration under the policy of {}: {why}; accept this change's whole: check --accept {hash}",
                    self.revision()
                )));
            }
        };
        let mut changes = changes(&base_table, &head_table);
        if policy::same(&merged, head) {
            changes.retain(|change| change.way == Way::States);
        } else if changes.is_empty() {
            changes.push(Change {
                text: "changes rules in a way that no key shows".to_owned(),
                way: Way::Loosens,
                variant: None,
            });
        }
        let (all, accepted) = self.told(changes, &hash, &name);
        findings.extend(all);
        Ok(if accepted {
            consented()
        } else {
            (merged, base.baselines)
        })
    }

    /// The findings on changes of the policy, and whether they were accepted.
    fn told(&self, changes: Vec<Change>, hash: &str, name: &str) -> (Vec<Finding>, bool) {
        let mut accepted = false;
        let findings = changes.into_iter().map(|change| {
            let of_code = change.way == Way::States;
            let next = if of_code {
                "measure it: the launches show the numbers".to_owned()
            } else {
                format!("it does not count until somebody who may decide that looks at {name} and accepts it from outside the change: check --accept {hash}")
            };
            let finding = Finding {
                variant: change.variant,
                ..Finding::of_project(Code::PolicyChanged, format!("this change {}", verb(&change.text)), next)
            };
            if of_code {
                return finding.warn_for(WarnReason::LaunchesShow);
            }
            let finding = self.consent.settles(finding, hash);
            accepted |= self.consent.covers(hash);
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
        for (path, held) in self.files(&below)? {
            let rest = path.strip_prefix(&whole).unwrap_or(&path);
            let rest = Path::new(rest.trim_start_matches('/'));
            let bytes = match held {
                Held::File(bytes) if rest != Path::new("") => bytes,
                _ if rest == Path::new("") => {
                    return Err(Error::Baseline(format!(
                        "`{below}` is no folder at {}: put the baselines themselves there",
                        self.revision()
                    )));
                }
                // A lock that is a link is missing, and is told as such.
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

    /// The change's configuration as a link, links on the way to its baselines, and among them: once merged, what they lead to
    /// would be judged by, and nobody reviews that.
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
                        "`{}` is a link: what it leads to is no part of the change that is reviewed",
                        below.display()
                    ),
                    "put the files themselves there",
                )
            })
            .collect())
    }

    /// Rules and baselines that are here in another form than they are committed in: what is seen
    /// here would not be what is merged.
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
                    "git converts {} files of rules and baselines, `{path}` first (`{attribute}` in .gitattributes): what is here is not what is committed",
                    converted.len()
                ),
                "take the attribute off them: they must be here as they are committed",
            )
        }))
    }

    /// Folders that were committed where a store that was interrupted is taken up again: what is
    /// there would be read as the baselines here, and be none once it is merged.
    fn leftovers(&self) -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        for left in Store::leftovers(&self.head.baselines) {
            let brought = brought_by_change(&self.head.root, &self.authority(), &left)?;
            if let Some(first) = brought.first() {
                findings.push(Finding::of_project(
                    Code::Tampered,
                    format!(
                        "this change brings `{}`, where only a store that was interrupted leaves files: they would be taken for the baselines here, and be none in the repository",
                        first.path
                    ),
                    "take them out of version control",
                ));
            }
        }
        Ok(findings)
    }

    /// Tools that lie in the repository, where the change brings them.
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
            for Brought { path, content } in
                brought_by_change(&self.head.root, &self.authority(), path)?
            {
                let brings =
                    format!("{tool} is taken from the repository, and this change brings `{path}`");
                let Some(hash) = content.as_deref().map(sha256_hex) else {
                    findings.push(Finding::of_project(
                        Code::PolicyChanged,
                        brings,
                        "a tool that the change brings cannot be believed, and what a submodule holds cannot be accepted: put the tool itself there",
                    ));
                    continue;
                };
                let finding = Finding::of_project(
                    Code::PolicyChanged,
                    brings,
                    format!(
                        "a tool that the change brings cannot be believed; accept it knowingly: check --accept {hash}"
                    ),
                );
                findings.push(self.consent.settles(finding, &hash));
            }
        }
        Ok(findings)
    }

    /// Builds and profiles that were committed where this tool keeps its own.
    fn builds(&self, config: &Config) -> Result<Option<Finding>, Error> {
        let brought = brought_by_change(&self.head.root, &self.authority(), &config.work)?;
        let Some(first) = brought.first() else {
            return Ok(None);
        };
        Ok(Some(Finding::of_project(
            Code::Tampered,
            format!(
                "this change brings {} files into the folder of builds, `{}` first: a program would be taken from there that nobody built",
                brought.len(),
                first.path
            ),
            "take them out of version control",
        )))
    }

    fn authority(&self) -> Authority {
        Authority::Revision {
            commit: self.root.commit.clone(),
            found_by: self.root.found_by.clone(),
        }
    }
}

/// A change in words behind `this change`: some begin with a verb, others with a subject.
fn verb(text: &str) -> String {
    let verbs = [
        "adds ",
        "loosens ",
        "tightens ",
        "changes ",
        "extends ",
        "shortens ",
        "removes ",
        "writes ",
        "takes ",
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

/// Where a project lies in its repository, `a/b/`; empty at the top.
#[derive(Clone, Debug)]
struct Place(String);

impl Place {
    fn join(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }
}

/// Where the folder of the configuration lies in the repository.
///
/// # Errors
/// [`Error::Environment`] where there is no repository; [`Error::Baseline`] where a link or a
/// submodule on the way leads to another place, whose policy is not the one that was asked for.
fn place_in_repository(root: &Path) -> Result<Place, Error> {
    let repository = git::repository(root).map_err(unreadable)?;
    // Its history is wherever the change points it at.
    if repository.is_submodule {
        return Err(Error::Baseline(format!(
            "{} is a submodule: its baselines are not those of the repository around it; check in a clone of its own",
            repository.top.display()
        )));
    }
    let real = |path: &Path| path.canonicalize().map_err(Error::io("find", path));
    let (top, real_root) = (real(&repository.top)?, real(root)?);
    // git itself refuses this since 2.38, told so by `git`.
    if let Ok(below) = real(&repository.history)?.strip_prefix(&top)
        && !below.components().any(|part| part.as_os_str() == ".git")
    {
        return Err(Error::Baseline(format!(
            "{} is laid out as a repository among the files of another: its history is whatever the change says",
            repository.history.display()
        )));
    }
    // As the path is spelled: a link above the repository is the machine's own affair.
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
            "{} leads through a link to {}: whose baselines are meant cannot be told",
            root.display(),
            real_root.display()
        ))),
    }
}

/// The path of something below a folder, without `.` and `..`, by its words alone.
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
        what: format!("git cannot tell what the base revision holds: {why}"),
        next: "check in a clone with its history (`fetch-depth: 0`), by a user whom git trusts with it (`safe.directory`); `--baseline-ref none` judges by the files that are here".to_owned(),
    }
}
