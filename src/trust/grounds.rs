//! The rules that a run judges by.

use std::collections::BTreeSet;

use super::authority::Authority;
use super::change::ChangeUnderReview;
use super::consent::Consent;
use super::place::place_in_repository;
use super::root::Root;
use super::rules::Before;
use super::service::{Kind, Run};
use super::{locks, merge};
use crate::baseline::Store;
use crate::config::Config;
use crate::finding::{Error, Finding};
use crate::git::Worktree;
use crate::process;
use crate::terms::VariantId;

/// The rules that a run judges by.
#[derive(Debug)]
pub struct Grounds {
    /// The code of the working tree, under the policy of the authority.
    pub config: Config,
    /// The locks of the authority.
    pub store: Store,
    /// Whose they are.
    pub authority: Authority,
    /// What the change does to policy and locks.
    pub findings: Vec<Finding>,
    /// A tool that comes with the change, and that nobody accepted.
    tool: Option<Finding>,
    /// A tool in the checkout that git does not track.
    untracked: Option<Finding>,
    /// What was accepted from outside the change.
    pub consent: Consent,
    /// The locks of the change that were accepted: GPU folder and variant.
    pub accepted: BTreeSet<(String, VariantId)>,
    /// The folder of the store, if it is not the one of the working tree.
    _snapshot: Option<tempfile::TempDir>,
    /// The folder of the code, if it is not the checkout.
    _merged: Option<Worktree>,
}

impl Grounds {
    /// Refuses to build or run anything with a tool of the change, or one that may be. `variable` reads
    /// the environment.
    ///
    /// # Errors
    /// [`Error::Baseline`].
    pub fn refuse_tools(&self, variable: impl Fn(&str) -> Option<String>) -> Result<(), Error> {
        // A person trusts what lies in the own checkout.
        let is_person = matches!(Run::of(&variable).kind, Kind::Person);
        let untracked = self.untracked.as_ref().filter(|_| !is_person);
        match self.tool.as_ref().or(untracked) {
            None => Ok(()),
            Some(Finding { message, next, .. }) => {
                Err(Error::Baseline(format!("{message}\n  next: {next}")))
            }
        }
    }

    /// Those of which nothing waits for consent: of the working tree, or packed on another machine.
    pub fn settled(
        config: Config,
        store: Store,
        authority: Authority,
        findings: Vec<Finding>,
    ) -> Grounds {
        Grounds {
            config,
            store,
            authority,
            findings,
            tool: None,
            untracked: None,
            consent: Consent::default(),
            accepted: BTreeSet::new(),
            _snapshot: None,
            _merged: None,
        }
    }
}

/// The rules for judging the working tree: its own, or those of a revision.
///
/// # Errors
/// [`Error::Environment`] and [`Error::Baseline`] where the revision cannot be read as a project.
pub fn establish(head: Config, root: Option<Root>, consent: Consent) -> Result<Grounds, Error> {
    let Some(root) = root else {
        let store = Store::open(&head.baselines)?;
        let unneeded = consent.unneeded().into_iter().collect();
        let authority = Authority::WorkingTree;
        return Ok(Grounds::settled(head, store, authority, unneeded));
    };
    place_in_repository(&head.root)?;
    let (head, merged) = merge::judged(head, &root)?;
    let change = ChangeUnderReview {
        place: place_in_repository(&head.root)?,
        head: &head,
        root: &root,
        consent: &consent,
    };
    let mut findings = Vec::new();
    let (config, base_baselines, before) = change.policy(&mut findings)?;
    let snapshot = process::scratch()?;
    let (store, all_files) = change.store(&base_baselines, snapshot.path())?;
    // Of a gate that was elsewhere the locks were, too.
    let all_files = all_files && before != Before::Parts;
    let links = change.links()?;
    // What a link leads to is not read.
    let own = match links.is_empty() {
        true => head.baselines.as_path(),
        false => store.root(),
    };
    findings.extend(links);
    findings.extend(change.twins()?);
    findings.extend(change.leftovers()?);
    findings.extend(change.converted()?);
    let here = Store::open(own)?;
    let base = (&store, all_files);
    let replaced = change.locks(&config, base, &here, &mut findings)?;
    findings.extend(change.hidden(&store, &here)?);
    locks::replace(&store, &here, &replaced)?;
    change.refuse_libraries()?;
    let tools = change.tools(&config)?;
    let tool = tools.iter().find(|finding| finding.denies()).cloned();
    findings.extend(tools);
    let untracked = change.untracked_tool(&config)?;
    findings.extend(change.builds(&config)?);
    // The folder of the merge is gone when the report is read.
    let config = Config {
        baselines: merge::below(&config, &config.baselines, &head),
        ..config
    };
    let accepted = replaced.into_iter().filter(|one| one.consented);
    Ok(Grounds {
        accepted: accepted.map(|one| (one.gpu, one.variant)).collect(),
        config,
        store,
        authority: Authority::Revision {
            commit: root.commit.clone(),
            found_by: root.found_by.clone(),
            begins: before == Before::Nothing,
        },
        findings,
        tool,
        untracked,
        consent,
        _snapshot: Some(snapshot),
        _merged: merged,
    })
}
