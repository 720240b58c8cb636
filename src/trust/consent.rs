//! Consent that reaches a run from outside the change: hashes of what somebody has reviewed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::finding::{Code, Error, Finding, WarnReason};

/// The hashes that were accepted.
#[derive(Debug, Default)]
pub struct Consent {
    /// Hash, and whether anything has it.
    given: RefCell<BTreeMap<String, bool>>,
}

impl Consent {
    /// Reads `--accept`, each a sha256 in hex.
    ///
    /// # Errors
    /// [`Error::Usage`] where one is not a sha256.
    pub fn new(accepted: &[String]) -> Result<Consent, Error> {
        let mut given = BTreeMap::new();
        for text in accepted {
            let hash = text.trim().to_ascii_lowercase();
            if hash.is_empty() {
                continue;
            }
            if hash.len() != 64 || !hash.chars().all(|c| c.is_ascii_hexdigit()) {
                return Err(Error::Usage(format!(
                    "`--accept {text}`: --accept takes the sha256 that the finding prints, 64 hexadecimal digits"
                )));
            }
            given.insert(hash, false);
        }
        Ok(Consent {
            given: RefCell::new(given),
        })
    }

    /// Whether the file of this hash was accepted.
    pub fn covers(&self, sha256: &str) -> bool {
        let mut given = self.given.borrow_mut();
        given.get_mut(sha256).map(|used| *used = true).is_some()
    }

    /// The finding, as a warning where its hash was accepted.
    pub fn settles(&self, finding: Finding, sha256: &str) -> Finding {
        let finding = finding.accept(sha256);
        if self.covers(sha256) {
            Finding {
                message: format!("{}; accepted", finding.message),
                next: "nothing: it was accepted from outside the change (--accept)".to_owned(),
                ..finding.warn_for(WarnReason::Consented)
            }
        } else {
            finding
        }
    }

    /// The finding that consent was given where none is needed.
    pub fn unneeded(&self) -> Vec<Finding> {
        let given = self.given.borrow();
        let finding = (!given.is_empty()).then(|| {
            Finding::of_project(
                Code::AcceptUnused,
                "`--accept` has no effect without a base revision: the files of the working tree are used",
                "name the base revision: --baseline-ref REV",
            )
        });
        finding.into_iter().collect()
    }

    /// The findings on hashes that were accepted and not found.
    pub fn unused(&self) -> Vec<Finding> {
        let given = self.given.borrow();
        let unused: BTreeSet<&String> = given
            .iter()
            .filter(|(_, used)| !**used)
            .map(|(hash, _)| hash)
            .collect();
        unused
            .into_iter()
            .map(|hash| {
                Finding::of_project(
                    Code::AcceptUnused,
                    format!("{hash} was accepted, and nothing in this change has this hash"),
                    "review the current findings: an edited file has a new hash",
                )
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accepted_hash_that_is_not_found_is_reported() {
        let (one, other) = ("a".repeat(64), "b".repeat(64));
        let consent = Consent::new(&[one.to_uppercase(), format!(" {other}")]).unwrap();
        assert!(consent.covers(&one));
        assert!(!consent.covers(&"c".repeat(64)));
        let unused = consent.unused();
        assert_eq!(unused.len(), 1);
        assert!(unused[0].message.contains(&other));
        assert!(Consent::new(&["abc".to_owned()]).is_err());
    }
}
