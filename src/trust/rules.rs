//! The configuration that a change is judged by, and the findings on what it changes of it.

use std::path::{Path, PathBuf};

use super::change::{ChangeUnderReview, config_name};
use super::changes::{Change, Way, changes};
use super::consent::{Act, Action};
use super::merge::in_checkout;
use super::place::unreadable;
use super::policy;
use crate::build::paths_of_flags;
use crate::config::{Config, Waiver, table};
use crate::files::{most, read_text_up_to};
use crate::finding::{Code, Error, Finding, WarnReason};
use crate::git::{self, TreeEntry};
use crate::hash::sha256_hex;
use toml::Value;

/// What the base has of a gate.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Before {
    Rules,
    Nothing,
    /// Baselines, or a configuration elsewhere.
    Parts,
}

impl ChangeUnderReview<'_> {
    /// The configuration to judge by, the base's folder of baselines, and what the base has.
    pub(super) fn policy(
        &self,
        findings: &mut Vec<Finding>,
    ) -> Result<(Config, PathBuf, Before), Error> {
        let path = &self.head.path;
        let text = read_text_up_to(path, most::CONFIG).map_err(Error::io("read", path))?;
        let whole = |before| (self.head.clone(), self.head.baselines.clone(), before);
        let base_text = self.base_text()?;
        let mut act = Act {
            action: Action::Policy,
            path: self.at(&config_name(self.head)),
            before: base_text.as_deref().map(sha256_hex),
            after: Some(sha256_hex(text.as_bytes())),
            reviewed: Vec::new(),
        };
        let Some(base_text) = base_text else {
            let (finding, before) = self.without_base_policy(&act)?;
            findings.push(finding);
            return Ok(whole(before));
        };
        let base_text = String::from_utf8_lossy(&base_text).into_owned();
        if base_text == text {
            self.ask_owners(self.head, &act);
            let policy = self.without_ended(self.head.clone(), self.head, findings)?;
            return Ok((policy, self.head.baselines.clone(), Before::Rules));
        }
        let base = match Config::parse(path, &base_text) {
            Ok(base) => base,
            Err(error) => {
                findings.push(self.unreadable_base(error.message(), &act)?);
                return Ok(whole(Before::Rules));
            }
        };
        if let (Some(path), false) = (self.new_path(&base), self.consent.has_token(&act)) {
            return Err(Error::Baseline(format!(
                "flags of this change name `{path}`, outside of the repository, which no flags of {} do: its compiler would read there; name a folder of the repository, or accept this change's file as a whole: {}",
                self.revision(),
                self.consent.how(&act)
            )));
        }
        // The variants that a matrix produces are compared one by one.
        let (base_table, head_table) = (table(path, &base_text)?, table(path, &text)?);
        self.ask_owners(&base, &act);
        if only_verdicts(&base_table, &head_table) {
            act.reviewed.push(act.path.clone());
        }
        let mut changes = changes(&base_table, &head_table);
        let mut following = of_target(path, &base_text, &head_table).unwrap_or_default();
        following.retain(|change| !is_of_target(change) && changes.contains(change));
        changes.retain(|change| !following.contains(change));
        changes.sort_by_key(|change| !is_of_target(change));
        if let (Some(first), false) = (changes.first_mut(), following.is_empty()) {
            first.text.push_str("; metrics follow from it");
        }
        let merged = match self.parsed(&policy::merged(&base_table, &head_table)) {
            Ok(merged) => Some(merged),
            Err(_) if self.consent.has_token(&act) => None,
            Err(why) => {
                return Err(Error::Baseline(format!(
                    "this change's variants are invalid under the base configuration of {}: {why}; to accept this change's file as a whole: {}",
                    self.revision(),
                    self.consent.how(&act)
                )));
            }
        };
        let mut without_effect = false;
        if let Some(merged) = &merged {
            if merged.means(self.head) {
                changes.retain(|change| change.way != Way::Tightens);
                without_effect = true;
            } else if changes.is_empty() {
                changes.push(Change {
                    text: "changes rules in a way that no single key shows".to_owned(),
                    way: Way::Loosens,
                    variant: None,
                });
            }
        }
        let (all, accepted) = self.findings_on(changes, &act);
        let unneeded = without_effect.then_some(WarnReason::NoEffectYet);
        findings.extend(all.into_iter().map(|finding| finding.warn_for(unneeded)));
        let policy = merged.filter(|_| !accepted);
        let policy = policy.unwrap_or_else(|| self.head.clone());
        let policy = self.without_ended(policy, &base, findings)?;
        Ok((policy, base.baselines, Before::Rules))
    }

    /// Lets the base's code owners accept, where it says so.
    fn ask_owners(&self, base: &Config, act: &Act) {
        if base.trust.accept.is_some() {
            let root = &self.head.root;
            self.consent.asks_owners(root, &self.root.commit, &act.path);
        }
    }

    /// A path outside of the repository that flags of the change name, and none of the base.
    fn new_path(&self, base: &Config) -> Option<String> {
        let (known, root) = (paths_of_flags(base), &self.head.root);
        let known: Vec<PathBuf> = known.iter().map(|path| root.join(path)).collect();
        let is_listed = |text: &String| {
            let (path, plain) = (root.join(text), !text.split('/').any(|part| part == ".."));
            let is_below = |folder: &Path| plain && path.starts_with(folder);
            // Links on a plain way are judged where they are read.
            known.contains(&path)
                || known.iter().any(|folder| is_below(folder))
                || is_below(root)
                || is_below(Path::new("/usr"))
                || self.leads_inside(&path)
        };
        paths_of_flags(self.head)
            .into_iter()
            .find(|text| !is_listed(text))
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

    /// A configuration, else a lock, of the base at any place, that this change moves, removes or edits.
    fn gate_elsewhere(&self) -> Result<Option<String>, Error> {
        let (root, commit, name) = (&self.head.root, &self.root.commit, config_name(self.head));
        let may_be = |path: &str| path.ends_with(".toml") || path.rsplit('/').next() == Some(&name);
        let mut lock = None;
        for path in git::changed_since(root, commit, may_be).map_err(unreadable)? {
            let mut files = git::files_at(root, commit, &path).map_err(unreadable)?;
            let Some(TreeEntry::File(bytes)) = files.remove(&path) else {
                continue;
            };
            let table: Result<toml::Table, _> = toml::from_str(&String::from_utf8_lossy(&bytes));
            match table {
                Ok(table) if table.contains_key("suite") => return Ok(Some(path)),
                Ok(table) if table.contains_key("ledger") => lock = Some(path),
                _ => {}
            }
        }
        Ok(lock)
    }

    /// The finding that the base has no configuration, and what else it has: where that is nothing, there is
    /// no rule that the change could loosen.
    fn without_base_policy(&self, act: &Act) -> Result<(Finding, Before), Error> {
        let name = config_name(self.head);
        let folders = Path::new(&act.path).ancestors().skip(1);
        let base = git::objects_at(&self.head.root, &self.root.commit).map_err(unreadable)?;
        let is_there = |folder: &Path| folder.to_str().is_some_and(|it| base.contains_key(it));
        if let Some(other) = folders.into_iter().find(|folder| is_there(folder)) {
            return Err(Error::Baseline(format!(
                "`{}` is no folder at {}, so that it is unknown which {name} counts there; make it one there first",
                other.display(),
                self.revision()
            )));
        }
        let baselines = format!("{}/", self.baselines());
        let parts = match base.keys().any(|path| path.starts_with(&baselines)) {
            true => Some("baselines".to_owned()),
            false => self
                .gate_elsewhere()?
                .map(|path| format!("`{path}`, and this change moves, removes or edits that")),
        };
        if let Some(parts) = parts {
            let finding = Finding::of_project(
                Code::PolicyChanged,
                format!(
                    "there is no {} at {}, which has {parts}: every rule comes from this change",
                    act.path,
                    self.revision()
                ),
                format!(
                    "have an authorized person review {} and accept it from outside the change",
                    act.path
                ),
            );
            return Ok((self.consent.settles(finding, act), Before::Parts));
        }
        let finding = Finding::of_project(
            Code::PolicyChanged,
            format!(
                "there is no {name} at {}, and nothing to protect: the gate starts when this is merged",
                self.revision()
            ),
            format!("review {name} like code: later changes are judged by it"),
        );
        Ok((finding.warn_for(WarnReason::NothingBefore), Before::Nothing))
    }

    /// The finding that the base's configuration cannot be read, if the change's was accepted.
    fn unreadable_base(&self, why: &str, act: &Act) -> Result<Finding, Error> {
        let name = config_name(self.head);
        if !self.consent.has_token(act) {
            return Err(Error::Baseline(format!(
                "{name} at {} cannot be read by this version: {why}; fix it there first, or accept this change's file as a whole: {}",
                self.revision(),
                self.consent.how(act)
            )));
        }
        let message = format!(
            "{name} at {} cannot be read by this version ({why}); this change's file is used as a whole",
            self.revision()
        );
        let finding = Finding::of_project(Code::PolicyChanged, message, String::new());
        Ok(self.consent.settles(finding, act))
    }

    /// A configuration of the merged checkout.
    fn parsed(&self, written: &toml::Table) -> Result<Config, String> {
        let text = toml::to_string(written).map_err(|error| error.to_string())?;
        let config = Config::parse(&self.head.path, &text);
        let config = config.map_err(|error| error.message().to_owned())?;
        Ok(in_checkout(config, self.head))
    }

    /// A policy without the waivers that have no last day and are part of the base: they ended when they
    /// were merged. Each is reported.
    fn without_ended(
        &self,
        policy: Config,
        base: &Config,
        findings: &mut Vec<Finding>,
    ) -> Result<Config, Error> {
        let ended = |waiver: &Waiver| waiver.expires.is_none() && base.waivers.contains(waiver);
        let before = findings.len();
        for waiver in policy.waivers.iter().filter(|waiver| ended(waiver)) {
            let Waiver { metric, who, .. } = waiver;
            let message = format!("the waiver of `{metric}` by {who} ended when it was merged");
            let finding = Finding::of(Code::WaiverUnused, &waiver.variant, message);
            findings.push(finding.metric(metric));
        }
        if findings.len() == before {
            return Ok(policy);
        }
        // An archive contains the text.
        let mut written = table(&policy.path, &policy.text)?;
        if let Some(Value::Array(waivers)) = written.get_mut("waiver") {
            let mut read = policy.waivers.iter();
            waivers.retain(|_| read.next().is_some_and(|waiver| !ended(waiver)));
        }
        self.parsed(&written).map_err(Error::Usage)
    }

    /// The findings on changes of the policy, and whether they were accepted.
    fn findings_on(&self, changes: Vec<Change>, act: &Act) -> (Vec<Finding>, bool) {
        let name = config_name(self.head);
        let mut accepted = false;
        let findings = changes.into_iter().map(|change| {
            let message = format!("this change {}", change.text);
            let next = match change.text.starts_with("removes the variant ") || change.text.starts_with("removes the suite ") {
                true => format!("nothing judges it once this is merged: have an authorized person review {name} and accept it from outside the change"),
                false => format!("it takes effect once an authorized person reviews {name} and accepts it from outside the change"),
            };
            let finding = Finding {
                variant: change.variant,
                ..Finding::of_project(Code::PolicyChanged, message, next)
            };
            if change.way == Way::States {
                let next = "measure the change: the launches show the numbers".to_owned();
                return Finding { next, ..finding }.warn_for(WarnReason::LaunchesShow);
            }
            let finding = self.consent.settles(finding, act);
            accepted |= self.consent.covers(act);
            let tightens = change.way == Way::Tightens;
            finding.warn_for(tightens.then_some(WarnReason::Tightens))
        });
        let findings: Vec<Finding> = findings.collect();
        (findings, accepted)
    }
}

/// Whether a change is of the chip that is compiled for.
fn is_of_target(change: &Change) -> bool {
    change.text.contains("`toolchain.arch`")
}

/// What changes of a configuration that is compiled for the chip of another one, and for nothing else: the
/// metrics that exist there.
fn of_target(path: &Path, base_text: &str, head: &toml::Table) -> Option<Vec<Change>> {
    let mut moved: toml::Table = toml::from_str(base_text).ok()?;
    let arch = head.get("toolchain")?.get("arch")?.clone();
    let toolchain = moved
        .entry("toolchain")
        .or_insert(Value::Table(toml::Table::new()));
    toolchain.as_table_mut()?.insert("arch".to_owned(), arch);
    let moved = table(path, &toml::to_string(&moved).ok()?).ok()?;
    Some(changes(&table(path, base_text).ok()?, &moved))
}

/// Whether nothing differs but what decides verdicts. What programs get, read and run has its effect before
/// anybody reviews it.
fn only_verdicts(base: &toml::Table, head: &toml::Table) -> bool {
    let other = |table: &toml::Table| {
        let mut table = table.clone();
        let keys = ["metric", "static", "waiver", "suite"];
        table.retain(|key, _| !keys.contains(&key));
        table
    };
    other(base) == other(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_another_chip_follow_from_it() {
        let base = "[suite.s.variant.v]\nrun = ['x']\n[toolchain]\narch = 'sm_90a'\n";
        let head: toml::Table = toml::from_str(&base.replace("90a", "80")).unwrap();
        let found = of_target(Path::new("config.toml"), base, &head).unwrap();
        let (target, metrics): (Vec<_>, Vec<_>) = found.into_iter().partition(is_of_target);
        assert_eq!((target.len(), metrics.is_empty()), (1, false));
        assert!(
            metrics.iter().all(|one| one.text.contains("tensor_flop")),
            "{metrics:?}"
        );
    }
}
