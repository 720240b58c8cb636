//! The pull request that a run belongs to: consent is valid in one pull request only.

use super::consent::Consent;
use super::service;
use crate::finding::Error;

/// The number of the pull request: the one that the CI service names, or else the one asked for.
/// `None` where neither names one.
///
/// # Errors
/// [`Error::Usage`] where the two differ, or a variable has a value that is no name of a pull
/// request.
pub fn pull_request(
    asked: Option<u64>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<String>, Error> {
    let asked = asked.map(|number| number.to_string());
    let Some((name, found)) = service::number(&variable) else {
        return Ok(asked);
    };
    // It is printed, and part of what a token covers.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if found.len() > 64 || !found.chars().all(plain) {
        return Err(Error::Usage(format!(
            "{name} is {found:?}, and that is not the number of a pull request"
        )));
    }
    match asked {
        Some(asked) if asked != found => Err(Error::Usage(format!(
            "`--pull-request {asked}`: this run belongs to pull request {found} ({name}); leave the option out"
        ))),
        _ => Ok(Some(found)),
    }
}

/// What `--accept` gave, for the pull request of this run.
///
/// # Errors
/// [`Error::Usage`] as of [`pull_request`], where a text is not a token, and where a CI service that is
/// not known runs this and nothing names the pull request: the token would be valid in every other one.
pub fn consent(
    accepted: &[String],
    asked: Option<u64>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Consent, Error> {
    let number = pull_request(asked, &variable)?;
    let mut consent = Consent::new(accepted, number.clone())?;
    consent.takes_none = number.is_none() && service::is_unknown(&variable);
    consent.owning = service::Run::of(&variable).owning;
    if consent.takes_none && !consent.is_empty() {
        return Err(Error::Usage(
            "`--accept` is for one pull request, and this CI service is not known: add `--pull-request N` here, and to the check that prints the token, which depends on it"
                .to_owned(),
        ));
    }
    Ok(consent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Code, Finding};
    use crate::trust::consent::{Act, Action};
    use crate::trust::tests::environment;

    #[test]
    fn a_service_that_is_not_known_takes_consent_only_with_the_number_of_a_pull_request() {
        let accept = ["0".repeat(64)];
        let refused = |accepted: &[String], asked, sign: &str| {
            let sign = format!("{sign}=1");
            consent(accepted, asked, environment(&sign)).is_err()
        };
        assert!(refused(&accept, None, "CI"));
        assert!(!refused(&accept, Some(7), "CI"));
        assert!(!refused(&[], None, "CI"));
        assert!(!refused(&accept, None, "HOME"));
        assert!(!refused(&accept, None, "BUILDKITE"));
    }

    #[test]
    fn no_token_is_printed_where_none_is_taken() {
        let act = Act {
            action: Action::Policy,
            path: "config.toml".to_owned(),
            before: None,
            after: None,
            reviewed: Vec::new(),
        };
        for (sign, asked, takes_none) in [
            ("CI=1", None, true),
            ("CI=1", Some(7), false),
            ("HOME=1", None, false),
            ("BUILDKITE=1", None, false),
        ] {
            let consent = consent(&[], asked, environment(sign)).unwrap();
            let how = consent.how(&act);
            let token = consent.token(&act);
            let finding = Finding::of_project(Code::PolicyChanged, "", how.clone());
            let printed = consent.settles(finding, &act).accept;
            assert_eq!(how.contains(&token), !takes_none, "{how}");
            assert_eq!(printed, (!takes_none).then_some(token));
        }
    }

    fn found(variables: &str, asked: Option<u64>) -> Result<Option<String>, String> {
        pull_request(asked, environment(variables)).map_err(|error| error.to_string())
    }

    #[test]
    fn each_service_names_the_pull_request_in_its_own_variable() {
        let folder = tempfile::tempdir().unwrap();
        let event = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            format!("GITHUB_EVENT_PATH={}", path.display())
        };
        let of_pull_request = event("pull", r#"{"pull_request": {"number": 7}}"#);
        let of_comment = event(
            "comment",
            r#"{"issue": {"number": 7, "pull_request": {"url": "https://api.github.com/repos/a/b/pulls/7"}}}"#,
        );
        let of_issue = event("issue", r#"{"issue": {"number": 7}}"#);
        let of_push = event("push", r#"{"ref": "refs/heads/main"}"#);
        let on_main = format!("GITHUB_REF=refs/heads/main {of_pull_request}");
        let seven = Some("7");
        for (environment, expected) in [
            ("GITHUB_REF=refs/pull/7/merge", seven),
            (&on_main, seven),
            (&of_comment, seven),
            (&of_issue, None),
            (&of_push, None),
            ("GITHUB_EVENT_PATH=/nonexistent", None),
            ("CI_MERGE_REQUEST_IID=7", seven),
            ("CI_EXTERNAL_PULL_REQUEST_IID=7", seven),
            ("BUILDKITE_PULL_REQUEST=7", seven),
            ("BUILDKITE_PULL_REQUEST=false", None),
            ("CHANGE_ID=007", seven),
            ("CHANGE_ID=I8473b", Some("I8473b")),
            // What another service calls it is not read: `--pull-request` names it.
            ("CI=true DRONE_PULL_REQUEST=7", None),
        ] {
            let expected = expected.map(str::to_owned);
            assert_eq!(found(environment, None), Ok(expected), "{environment}");
        }
    }

    #[test]
    fn a_pull_request_that_is_named_must_be_the_one_of_the_run() {
        let run = "GITHUB_REF=refs/pull/7/merge";
        assert_eq!(found("", Some(7)), Ok(Some("7".to_owned())));
        assert_eq!(found(run, Some(7)), Ok(Some("7".to_owned())));
        let why = found(run, Some(8)).unwrap_err();
        assert!(why.contains("belongs to pull request 7"), "{why}");
        let two_lines = |name: &str| (name == "CHANGE_ID").then(|| "7\nafter: x".to_owned());
        let why = pull_request(None, two_lines).unwrap_err().to_string();
        assert!(why.contains("CHANGE_ID"), "{why}");
    }
}
