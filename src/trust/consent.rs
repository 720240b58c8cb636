//! Consent that reaches a run from outside the change. A token covers one action on one path, from
//! one content to another, in one pull request.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;

use super::owners::Owners;
use super::service::Owning;
use crate::finding::{Code, Error, Finding, Note, WarnReason};
use crate::hash::sha256_hex;

/// What somebody can consent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A baseline where there was none.
    Lock,
    /// A new entry in the ledger of a baseline.
    Relock,
    /// The files of a baseline, without a new entry.
    Edit,
    /// A baseline that is no longer there.
    Remove,
    /// The configuration as a whole.
    Policy,
    /// A tool in the repository.
    Tool,
    /// Attributes that hide files from review.
    Hide,
    /// A recording that comes with the change.
    Record,
}

impl Action {
    /// The word in a token's text, and the words for people, before the path.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Action::Lock => ("lock", "locking"),
            Action::Relock => ("relock", "re-locking"),
            Action::Edit => ("edit", "editing"),
            Action::Remove => ("remove", "removing"),
            Action::Policy => ("policy", "the rules of"),
            Action::Tool => ("tool", "the tool"),
            Action::Hide => ("hide", "hiding files from review by"),
            Action::Record => ("record", "judging the recording in"),
        }
    }
}

/// One action of the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// What is done.
    pub action: Action,
    /// To what: a path from the top of the repository.
    pub path: String,
    /// The sha256 of the content in the base; `None` where there is none.
    pub before: Option<String>,
    /// The sha256 of the content in the change; `None` where there is none.
    pub after: Option<String>,
    /// The files of the change whose review by their owners accepts it, too. None where it has an effect
    /// before anybody could review it.
    pub reviewed: Vec<String>,
}

/// The first line of a token's text. A token of another version is not valid.
const FORMAT: &str = "sparsek-gate consent 1";

/// The tokens that were accepted.
#[derive(Debug, Default)]
pub struct Consent {
    /// Token, and whether anything has it.
    given: RefCell<BTreeMap<String, bool>>,
    /// The pull request of this run.
    pull_request: Option<String>,
    /// Whether no token is valid in this run, because nothing names its pull request.
    pub(super) takes_none: bool,
    /// How the service of this run reads code owners, where it knows any.
    pub(super) owning: Option<Owning>,
    /// The code owners whose review accepts, or why there are none; unset where the base does not ask for it.
    owners: OnceCell<Result<Owners, String>>,
}

impl Consent {
    /// Reads `--accept`, each a sha256 in hex, for a run of this pull request.
    ///
    /// # Errors
    /// [`Error::Usage`] where one is not a sha256.
    pub fn new(accepted: &[String], pull_request: Option<String>) -> Result<Consent, Error> {
        let mut given = BTreeMap::new();
        for text in accepted {
            let token = text.trim().to_ascii_lowercase();
            // A pipeline passes a variable that is empty where nothing is accepted.
            if token.is_empty() {
                continue;
            }
            if token.len() != 64 || !token.chars().all(|c| c.is_ascii_hexdigit()) {
                let several = token.contains(char::is_whitespace);
                let more = several.then_some("; several have a comma between them: `--accept A,B`");
                return Err(Error::Usage(format!(
                    "`--accept {text}`: --accept takes the token that the finding prints, 64 hexadecimal digits{}",
                    more.unwrap_or_default()
                )));
            }
            given.insert(token, false);
        }
        Ok(Consent {
            given: RefCell::new(given),
            pull_request,
            ..Consent::default()
        })
    }

    /// From now on the review of a revision's code owners accepts, if they own the configuration.
    pub(super) fn asks_owners(&self, root: &Path, commit: &str, config: &str) {
        let owners = match self.owning {
            Some(service) => Owners::at(root, commit, service),
            None => Err("neither GitHub nor GitLab runs this".to_owned()),
        };
        let owners = owners.and_then(|owners| match owners.own(config) {
            true => Ok(owners),
            false => Err(owners.lacks(config)),
        });
        let _ = self.owners.set(owners);
    }

    /// The file of code owners by which an action is reviewed, or why none accepts it; `None` where the base
    /// does not ask for it, or no review accepts it.
    fn review(&self, act: &Act) -> Option<Result<&str, String>> {
        let owners = self.owners.get().filter(|_| !act.reviewed.is_empty())?;
        Some(owners.as_ref().map_err(Clone::clone).and_then(|owners| {
            let mut files = act.reviewed.iter();
            match files.find(|file| !owners.own(file)) {
                None => Ok(owners.path.as_str()),
                Some(file) => Err(owners.lacks(file)),
            }
        }))
    }

    /// Whether nothing was accepted.
    pub fn is_empty(&self) -> bool {
        self.given.borrow().is_empty()
    }

    /// The token of an action: the sha256 of a text that names all that it covers.
    pub fn token(&self, act: &Act) -> String {
        let or = |text: &Option<String>, none: &str| text.clone().unwrap_or(none.to_owned());
        // The path is a text of JSON: none can contain the line of another field.
        sha256_hex(
            format!(
                "{FORMAT}\naction: {}\npath: {}\nbefore: {}\nafter: {}\npull request: {}\n",
                act.action.words().0,
                serde_json::Value::from(act.path.as_str()),
                or(&act.before, "absent"),
                or(&act.after, "absent"),
                or(&self.pull_request, "none"),
            )
            .as_bytes(),
        )
    }

    /// The option that consents to an action, and what it covers, for people.
    pub fn how(&self, act: &Act) -> String {
        let owners = match self.review(act) {
            Some(Err(why)) => format!("; its code owners cannot: {why}"),
            None if self.owners.get().is_some() => {
                "; not by code owners, who accept locks, waivers, and the tables `metric`, `static` and `suite`"
                    .to_owned()
            }
            _ => String::new(),
        };
        if self.takes_none {
            return format!(
                "check --pull-request N prints the token of pull request N (this CI service is not known, so nothing names it){owners}"
            );
        }
        format!(
            "check --accept {} ({}){owners}",
            self.token(act),
            self.words(act)
        )
    }

    /// What a token covers, for people.
    fn words(&self, act: &Act) -> String {
        let content = |hash: &Option<String>| match hash {
            Some(hash) => hash.chars().take(12).collect(),
            None => "nothing".to_owned(),
        };
        format!(
            "covers {} `{}`, from {} to {}, in {}",
            act.action.words().1,
            act.path,
            content(&act.before),
            content(&act.after),
            self.run()
        )
    }

    /// The pull request of this run, for people.
    fn run(&self) -> String {
        match &self.pull_request {
            Some(number) => format!("pull request {number}"),
            None => "runs of no pull request".to_owned(),
        }
    }

    /// Whether the action was accepted, or its code owners must review it.
    pub fn covers(&self, act: &Act) -> bool {
        self.has_token(act) || matches!(self.review(act), Some(Ok(_)))
    }

    /// Whether the action was accepted before this run.
    pub fn has_token(&self, act: &Act) -> bool {
        let token = self.token(act);
        let mut given = self.given.borrow_mut();
        given.get_mut(&token).map(|used| *used = true).is_some()
    }

    /// The finding, whose next step ends in how its action is accepted, as a warning where it was.
    pub fn settles(&self, finding: Finding, act: &Act) -> Finding {
        let finding = Finding {
            next: format!("{}: {}", finding.next, self.how(act)),
            accept: (!self.takes_none).then(|| self.token(act)),
            ..finding
        };
        if self.covers(act) {
            Finding {
                next: self.nothing(act),
                ..finding.warn_for(WarnReason::Consented).with(Note::Accepted)
            }
        } else {
            finding
        }
    }

    /// The next step after consent.
    pub fn nothing(&self, act: &Act) -> String {
        match self.review(act) {
            Some(Ok(path)) if !self.has_token(act) => {
                format!(
                    "nothing here: `{path}` names who must review it, if the target branch requires that, which cannot be seen from here"
                )
            }
            _ => format!(
                "nothing: it was accepted from outside the change (--accept {})",
                self.words(act)
            ),
        }
    }

    /// The finding that consent was given where none is needed.
    pub fn unneeded(&self) -> Option<Finding> {
        (!self.is_empty()).then(|| {
            Finding::of_project(
                Code::AcceptUnused,
                "`--accept` has no effect without a base revision: the files of the working tree are used",
                "name the base revision: --baseline-ref REV",
            )
        })
    }

    /// The findings on tokens that were accepted and not found.
    pub fn unused(&self) -> Vec<Finding> {
        let given = self.given.borrow();
        let unused = given.iter().filter(|(_, used)| !**used);
        unused
            .map(|(token, _)| {
                Finding::of_project(
                    Code::AcceptUnused,
                    format!(
                        "{token} was accepted, and nothing in this change has this token: a token covers one action on one path, from one content to another, in one pull request, and this run is for {}",
                        self.run()
                    ),
                    match &self.pull_request {
                        Some(_) => "leave it out, or accept the tokens that the current findings print, if any".to_owned(),
                        None => "leave it out, or accept the tokens that the current findings print; name the pull request: --pull-request N".to_owned(),
                    },
                )
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act() -> Act {
        Act {
            action: Action::Lock,
            path: "baselines/gpu/s/v".to_owned(),
            before: None,
            after: Some("a".repeat(64)),
            reviewed: Vec::new(),
        }
    }

    fn of(accepted: &[String], pull_request: Option<&str>) -> Consent {
        Consent::new(accepted, pull_request.map(str::to_owned)).unwrap()
    }

    #[test]
    fn a_token_covers_one_action_on_one_path_between_two_contents_in_one_pull_request() {
        let token = of(&[], Some("7")).token(&act());
        let accepted = [token.to_uppercase()];
        assert!(of(&accepted, Some("7")).covers(&act()));
        for pull_request in [None, Some("8"), Some("77")] {
            assert!(!of(&accepted, pull_request).covers(&act()));
        }
        let others: [fn(&mut Act); 6] = [
            |act| act.action = Action::Relock,
            |act| {
                act.action = Action::Remove;
                act.before = act.after.take();
            },
            |act| act.path = "baselines/gpu/s/w".to_owned(),
            |act| act.before = Some("b".repeat(64)),
            |act| act.after = Some("b".repeat(64)),
            |act| act.after = None,
        ];
        for change in others {
            let mut other = act();
            change(&mut other);
            assert!(!of(&accepted, Some("7")).covers(&other), "{other:?}");
        }
    }

    #[test]
    fn the_path_in_a_token_is_quoted_as_json_does() {
        for (path, quoted) in [
            ("baselines/gpu/s/v", r#""baselines/gpu/s/v""#),
            ("a\nbefore: x", r#""a\nbefore: x""#),
            ("a\"", r#""a\"""#),
            // What Rust prints of a text depends on its version of Unicode.
            ("e\u{301}\u{200b}", "\"e\u{301}\u{200b}\""),
            ("\u{7f}", "\"\u{7f}\""),
        ] {
            let text = format!(
                "{FORMAT}\naction: lock\npath: {quoted}\nbefore: absent\nafter: {}\npull request: 7\n",
                "a".repeat(64)
            );
            let path = path.to_owned();
            let token = of(&[], Some("7")).token(&Act { path, ..act() });
            assert_eq!(token, sha256_hex(text.as_bytes()), "{quoted}");
        }
    }

    #[test]
    fn an_accepted_token_that_is_not_found_is_reported() {
        let other = "b".repeat(64);
        let token = of(&[], None).token(&act());
        // The hash of a file is no token.
        let file = act().after.unwrap();
        let consent = of(&[token, format!(" {other}"), file.clone()], None);
        assert!(consent.covers(&act()));
        let unused = consent.unused();
        assert_eq!(unused.len(), 2);
        assert!(unused[0].message.contains(&file));
        assert!(unused[1].message.contains(&other));
        assert!(Consent::new(&["abc".to_owned()], None).is_err());
    }
}
