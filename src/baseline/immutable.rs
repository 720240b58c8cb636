//! Whether an immutable variant is still what was locked: the same sources, headers and flags.

use super::lock::Lock;
use crate::build::stated_flags;
use crate::comparable::{added_sources, changed_flags, has_other_line_ends};
use crate::config::{Config, Variant};
use crate::finding::{Code, Finding};
use crate::git;
use crate::profile::Profile;
use crate::terms::Tier;

/// The finding that an immutable variant is built from files that its lock does not list.
pub fn immutable_additions(
    variant: &Variant,
    locked: &Profile,
    current: &Profile,
) -> Option<Finding> {
    let new = added_sources(locked, current);
    let message = format!(
        "it is also built from {}, which its lock does not list",
        new.join(", ")
    );
    (variant.immutable && !new.is_empty()).then(|| changed(variant, locked.identity.tier, message))
}

/// Changes of an immutable variant's files and flags since they were locked; `tier` is that of the lock.
pub(super) fn immutable_changes(
    config: &Config,
    variant: &Variant,
    lock: &Lock,
    tier: Tier,
) -> Vec<Finding> {
    let mut changes: Vec<String> = Vec::new();
    match (lock.immutable, variant.immutable) {
        (true, false) => changes
            .push("its lock marks it immutable, and the configuration no longer does".to_owned()),
        (false, true) => {
            let message =
                "the configuration marks it immutable, and its lock does not list its sources";
            let mut finding = changed(variant, tier, message.to_owned());
            finding.next = format!("lock it again: {}", tier.lock_command(&variant.id));
            return vec![finding];
        }
        _ => {}
    }
    if lock.immutable {
        changes.extend(lock.sources.iter().filter_map(
            |(path, locked)| match git::sha256_of_input(&config.root.join(path)) {
                Ok(hash) if hash == *locked => None,
                Ok(_) if has_other_line_ends(&config.root.join(path), locked) => Some(format!(
                    "the lines of `{path}` end with CRLF, as git with `core.autocrlf` checks them out, and ended with LF when it was locked"
                )),
                Ok(hash) => Some(format!(
                    "`{path}` changed since it was locked (sha256 {hash}, locked {locked})"
                )),
                Err(error) => Some(format!("`{path}` cannot be read: {error}")),
            },
        ));
        // The folder of compiled code is that of its target.
        let is_own = |flag: &String| tier != Tier::Static || !flag.starts_with("-gencode");
        let own = |flags: &[String]| -> Vec<String> {
            flags.iter().filter(|flag| is_own(flag)).cloned().collect()
        };
        let stated = stated_flags(&config.toolchain, variant);
        changes.extend(other_flags(&own(&stated), &own(&lock.flags)));
    }
    let changes = changes.into_iter();
    let changes = changes.map(|message| changed(variant, tier, message));
    changes.collect()
}

/// How the flags differ from the locked ones.
fn other_flags(current: &[String], locked: &[String]) -> Option<String> {
    let changed = changed_flags(locked, current).join(", ");
    (current != locked).then(|| match changed.is_empty() {
        true => format!(
            "its flags have another order or number than the locked ones: {}, locked {}",
            current.join(" "),
            locked.join(" ")
        ),
        false => format!("its flags changed since they were locked: {changed}"),
    })
}

fn changed(variant: &Variant, tier: Tier, message: String) -> Finding {
    let lock = tier.lock_command(&variant.id);
    let lock = lock.replacen("--lock", "--lock --accept-immutable", 1);
    let measure = match tier {
        Tier::Static => "",
        _ => "record it again, then ",
    };
    let next =
        format!("undo the change, or make a new variant; to lock it anyway: {measure}{lock}");
    Finding::deny(Code::ImmutableChanged, &variant.id, message, next)
}
