//! What a change does to the locks that it is judged by.

use super::brought::listing;
use super::change::ChangeUnderReview;
use super::consent::{Act, Action};
use super::place::inside;
use crate::baseline::{Entry, FILES, Lock, Store, Stored, Trusted, verify_files};
use crate::comparable::changed_code;
use crate::config::Config;
use crate::files::{if_there, read_regular};
use crate::finding::{Code, Error, Finding, Note, WarnReason};
use crate::git::{self, short};
use crate::hash::sha256_hex;
use crate::metric::{Level, display_value};
use crate::profile::Profile;
use crate::terms::{Tier, VariantId, joined};

/// The most values that a finding names; it counts the others.
const SHOWN: usize = 6;

/// A baseline that differs from the base's and was accepted.
pub(super) struct Replaced {
    pub gpu: String,
    pub variant: VariantId,
    /// Whether somebody accepted it; else nothing came before it.
    pub consented: bool,
}

impl ChangeUnderReview<'_> {
    /// Reports every baseline that the change locks, re-locks, edits or removes, and returns those that
    /// were accepted and are unchanged since they were locked. `all_files` is whether the base has no link and no
    /// submodule there, whose locks are unknown.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn locks(
        &self,
        config: &Config,
        (base, all_files): (&Store, bool),
        head: &Store,
        findings: &mut Vec<Finding>,
    ) -> Result<Vec<Replaced>, Error> {
        let mut accepted = Vec::new();
        let mut all = base.stored()?;
        let of_base = all.clone();
        all.extend(head.stored()?);
        for (gpu, variant) in all {
            let before = base.load(&gpu, &variant)?;
            let after = head.load(&gpu, &variant)?;
            let found = match (&before, &after) {
                (None, None) => continue,
                (Some(before), Some(after)) if before == after => continue,
                (Some(before), None) => self.removed(config, before),
                (before, Some(after)) => {
                    let rivals = of_base.iter().filter(|(_, id)| *id == variant);
                    let is_first =
                        all_files && !rivals.into_iter().any(|(other, _)| is_of(other, &gpu));
                    self.locked(config, (before.as_ref(), after), is_first)
                }
            };
            // A warning of another code replaces nothing.
            let settled = found.iter().any(|finding| finding.code == Code::Relocked)
                && !found.iter().any(Finding::denies);
            let consented = found.iter().any(|one| one.notes.contains(&Note::Accepted));
            findings.extend(found);
            if settled {
                accepted.push(Replaced {
                    gpu,
                    variant,
                    consented,
                });
            }
        }
        Ok(accepted)
    }

    /// What consent to a change of a baseline is for. `named` is the one that
    /// has the lock.
    fn act(
        &self,
        action: Action,
        named: &Stored,
        contents: (Option<&Stored>, Option<&Stored>),
    ) -> Act {
        let path = format!("{}/{}/{}", self.baselines(), named.gpu, named.variant);
        Act {
            action,
            before: contents.0.and_then(content),
            after: contents.1.and_then(content),
            reviewed: match action {
                // Only who knows how the files were made can accept them.
                Action::Edit => Vec::new(),
                _ => FILES.map(|ending| format!("{path}.{ending}")).to_vec(),
            },
            path,
        }
    }

    fn removed(&self, config: &Config, before: &Stored) -> Vec<Finding> {
        let act = self.act(Action::Remove, before, (Some(before), None));
        let name = before.name("lock.toml");
        let path = format!("{}/{name}", self.baselines());
        let is_left_out = git::is_left_out(&config.checkout, &path);
        let of_base = self.at(&inside(&config.root, &config.baselines));
        let (who, next) = match is_left_out {
            _ if of_base != self.baselines() => (
                "`paths.baselines` names another folder, so that this change removes",
                format!(
                    "move the baselines there, git mv {of_base} {}, or correct the key; where they are to go, accept the removal",
                    self.baselines()
                ),
            ),
            true => (
                "the sparse checkout leaves out",
                "git sparse-checkout disable".to_owned(),
            ),
            false => (
                "this change removes",
                match config.variant(&before.variant) {
                    None => "put its variant back, or accept the removal".to_owned(),
                    Some(_) => format!(
                        "restore it: git checkout {} -- ':/{}.*', and lock a new one over it; where it has to go, accept the removal",
                        short(&self.root.commit),
                        act.path
                    ),
                },
            ),
        };
        let judged = match self.consent.covers(&act) {
            true => "",
            false => "; it is still judged by that baseline",
        };
        let finding = Finding::deny(
            Code::Relocked,
            &before.variant,
            format!("{who} its baseline on {}{judged}", before.gpu),
            next,
        );
        vec![match is_left_out {
            true => finding,
            false => self.consent.settles(finding, &act),
        }]
    }

    /// The findings on a baseline that is new or was replaced. `is_first` is whether the base has none that could
    /// be compared with instead.
    fn locked(
        &self,
        config: &Config,
        (before, after): (Option<&Stored>, &Stored),
        is_first: bool,
    ) -> Vec<Finding> {
        let (trusted, found) = verify_files(config, after);
        let found = found.into_iter();
        let mut found: Vec<Finding> = found.map(|one| one.with(Note::InChange)).collect();
        let Some(trusted) = trusted else {
            return found;
        };
        // A base whose lock cannot be read has no ledger to continue.
        let old_lock = before.and_then(|before| Lock::parse(before.lock.as_deref()?).ok());
        let past = old_lock.as_ref().map_or(&[][..], |lock| &lock.ledger);
        if !trusted.lock.ledger.starts_with(past) {
            return vec![self.rewritten(after, past, &trusted.lock.ledger)];
        }
        let new = trusted.lock.ledger.get(past.len()..).unwrap_or_default();
        let old = before.and_then(|before| Profile::parse(before.profile.as_deref()?).ok());
        let (action, what) = match (before, new) {
            (None, _) => (
                Action::Lock,
                format!("this change locks it on {}", after.gpu),
            ),
            (Some(_), []) => (
                Action::Edit,
                format!(
                    "this change edits the files of its baseline on {} without locking it",
                    after.gpu
                ),
            ),
            (Some(_), _) => (
                Action::Relock,
                format!("this change re-locks it on {}", after.gpu),
            ),
        };
        let reasons = new.iter().map(|entry| {
            let reason = entry.reason.replace('\n', " ");
            format!("`{reason}` by {}", entry.who)
        });
        let values = values(config, old.as_ref(), &trusted);
        let unchecked = unchecked(old.as_ref(), &trusted.profile);
        let other_code = self.other_code(&trusted.profile);
        let mut message = what;
        for part in [
            joined(reasons, ", "),
            values,
            unchecked.to_owned(),
            other_code,
        ] {
            if !part.is_empty() {
                message.push_str(": ");
                message.push_str(&part);
            }
        }
        if is_first {
            let next = "review its values like code: later changes are compared with them";
            let first = Finding::deny(Code::Relocked, &after.variant, message, next);
            found.push(first.warn_for(WarnReason::NothingBefore));
            return found;
        }
        let act = self.act(action, after, (before, Some(after)));
        let finding = Finding::deny(
            Code::Relocked,
            &after.variant,
            message,
            format!(
                "it is judged by the base's lock; have an authorized person review {} and accept it from outside the change",
                after.name("lock.toml")
            ),
        );
        found.push(self.consent.settles(finding, &act));
        found
    }

    /// The words for a lock of other code than the change has.
    fn other_code(&self, locked: &Profile) -> String {
        let variant = self.head.variant(&locked.variant);
        let changed = variant.map(|it| changed_code(self.head, it, locked));
        match changed.unwrap_or_default().join(", ") {
            none if none.is_empty() => none,
            changed => format!("it is a lock of other code than this change has ({changed})"),
        }
    }

    /// A ledger that does not continue the base's. This cannot be accepted.
    fn rewritten(&self, after: &Stored, past: &[Entry], now: &[Entry]) -> Finding {
        let first = past
            .iter()
            .zip(now)
            .take_while(|(was, is)| was == is)
            .count();
        let how = match (past.get(first), now.get(first)) {
            (Some(was), Some(_)) => format!("entry {} ({}) was changed", first + 1, was.time),
            (Some(was), None) => format!("entry {} ({}) was removed", first + 1, was.time),
            (None, _) => "it does not begin with the base's entries".to_owned(),
        };
        Finding::deny(
            Code::Tampered,
            &after.variant,
            format!(
                "this change rewrites the ledger of {}: {how}; matching hashes in the new ledger prove nothing",
                after.name("lock.toml")
            ),
            format!(
                "a rewritten ledger cannot be accepted: restore the files of the base (git checkout {} -- ':/{}/{}/{}.*'), and lock again: {}",
                short(&self.root.commit),
                self.baselines(),
                after.gpu,
                after.variant,
                Tier::of_folder(&after.gpu).lock_command(&after.variant)
            ),
        )
    }
}

/// Puts the files of one store in the place of those of another.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn replace(base: &Store, head: &Store, replaced: &[Replaced]) -> Result<(), Error> {
    for Replaced { gpu, variant, .. } in replaced {
        for ending in FILES {
            let source = head.path(gpu, variant, ending);
            let bytes = if_there(read_regular(&source)).map_err(Error::io("read", &source))?;
            base.put(gpu, variant, ending, bytes.as_deref())?;
        }
    }
    Ok(())
}

/// The content of a baseline: the sha256 of what `sha256sum VARIANT.*` prints in its folder.
fn content(stored: &Stored) -> Option<String> {
    let files = stored.files().into_iter();
    let hashed = files.filter_map(|(ending, bytes)| {
        let name = format!("{}.{ending}", stored.variant.variant);
        Some((name, sha256_hex(bytes?)))
    });
    listing(hashed)
}

/// Whether a check could compare with the lock in one folder where that in the other is missing: both are of
/// compiled code, or of the same GPU model, which may be measured on several tiers.
fn is_of(folder: &str, other: &str) -> bool {
    let [one, other] = [folder, other].map(|it| (Tier::of_folder(it), it.split('+').next()));
    match (one.0, other.0) {
        (Tier::Static, Tier::Static) => true,
        (Tier::Static, _) | (_, Tier::Static) => false,
        _ => one.1 == other.1,
    }
}

/// The words for a baseline whose processes no longer check their numbers, though those of the one
/// before did. Later checks could not notice it: they compare with this baseline.
fn unchecked(old: Option<&Profile>, new: &Profile) -> &'static str {
    let all = new.provenance.captures.len();
    if old.is_some_and(|old| old.checked_processes() > 0) && new.checked_processes() < all {
        "its measured processes no longer check their own numbers"
    } else {
        ""
    }
}

/// The values of the judged metrics, before and after.
fn values(config: &Config, old: Option<&Profile>, new: &Trusted) -> String {
    let profile = &new.profile;
    let variant = config.variant(&profile.variant);
    let judged = |alias: &str| {
        let mut metrics = variant
            .into_iter()
            .flat_map(|variant| variant.metrics.iter().chain(&variant.static_metrics));
        variant.is_none()
            || metrics.any(|metric| metric.alias == alias && metric.level != Level::Record)
    };
    let mut shown = Vec::new();
    for kernel in &profile.kernels {
        let before = old.and_then(|old| old.kernels.iter().find(|other| other.name == kernel.name));
        for (alias, series) in kernel.metrics.iter().filter(|(alias, _)| judged(alias)) {
            let identity = profile.identity.metrics.get(alias);
            let unit = identity.and_then(|metric| metric.unit.as_deref());
            let text = |value: Option<f64>| {
                value.map_or_else(|| "–".to_owned(), |value| display_value(value, unit))
            };
            let is = text(series.value);
            let was = before.and_then(|kernel| kernel.metrics.get(alias));
            let was = was.map(|series| text(series.value));
            let name = match &profile.kernels[..] {
                [_] => alias.clone(),
                _ => format!("{}/{alias}", kernel.name),
            };
            match was {
                Some(was) if was == is => {}
                Some(was) => shown.push(format!("{name} {was} → {is}")),
                None => shown.push(format!("{name} {is}")),
            }
        }
    }
    let further = shown.len().saturating_sub(SHOWN);
    shown.truncate(SHOWN);
    if further > 0 {
        shown.push(format!("{further} more"));
    }
    shown.join(", ")
}
