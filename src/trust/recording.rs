//! A recording that comes with the change that it is of.

use std::collections::BTreeMap;
use std::path::Path;

use super::authority::Authority;
use super::brought::{Brought, brought_by_change, content_sha256, listing};
use super::consent::{Act, Action, Consent};
use crate::finding::{Code, Error, Finding};
use crate::git::TreeEntry;

/// The finding that files of a recording are part of the change: its author could have chosen the numbers.
///
/// # Errors
/// [`Error::Environment`] where git fails.
pub fn recorded_in_change(
    checkout: &Path,
    authority: &Authority,
    folders: &[&Path],
    consent: &Consent,
) -> Result<Option<Finding>, Error> {
    let Authority::Revision { commit, .. } = authority else {
        return Ok(None);
    };
    let mut files = BTreeMap::new();
    for folder in folders {
        let brought = brought_by_change(checkout, commit, folder)?.into_iter();
        files.extend(brought.map(|file| (file.path.clone(), file)));
    }
    let Some(first) = files.keys().next() else {
        return Ok(None);
    };
    let message = format!(
        "the recording is part of the change, `{first}` first: only the author of the change vouches for its numbers"
    );
    let record = "record where the change cannot write, and pass the artifact to `check --from`";
    let known = |file: &Brought| {
        let entry = file.after.as_ref();
        entry.is_some_and(|entry| !matches!(entry, TreeEntry::Submodule(_)))
    };
    if !files.values().all(known) {
        let code = Code::RecordedInChange;
        return Ok(Some(Finding::of_project(code, message, record)));
    }
    let side = |entry: fn(&Brought) -> Option<&TreeEntry>| {
        let files = files.values();
        let hashes = files.filter_map(|file| {
            let sha256 = content_sha256(entry(file)?);
            Some((file.path.as_str(), sha256))
        });
        listing(hashes)
    };
    let mut shared = Path::new(first).ancestors().skip(1);
    let is_shared = |folder: &&Path| files.keys().all(|path| Path::new(path).starts_with(folder));
    let act = Act {
        action: Action::Record,
        path: shared
            .find(is_shared)
            .unwrap_or(Path::new(""))
            .display()
            .to_string(),
        before: side(|file| file.before.as_ref()),
        after: side(|file| file.after.as_ref()),
        reviewed: Vec::new(),
    };
    let next = format!(
        "{record}; or have an authorized person, who trusts how it was measured, accept it from outside the change"
    );
    let finding = Finding::of_project(Code::RecordedInChange, message, next);
    Ok(Some(consent.settles(finding, &act)))
}
