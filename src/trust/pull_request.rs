//! The pull request that a run belongs to: consent is valid in one pull request only.

use std::path::Path;

use serde_json::Value;

use crate::files::read_regular;
use crate::finding::Error;

/// How a variable names the pull request.
#[derive(Clone, Copy)]
enum Form {
    /// As its number. `false`, `0` and the empty text mean that there is none.
    Number,
    /// As the part after the last `/` of an address or a name, such as `…/pull/7` or `pr/7`.
    Last,
    /// As the number in `refs/pull/7/merge`.
    Ref,
    /// In a file: the event that started the run, as JSON.
    Event,
}

/// The variables in which CI services name the pull request, the first that is set. Sources: each
/// service's page on its predefined variables.
const VARIABLES: [(&str, Form); 30] = [
    // GitHub Actions. The ref is that of the target branch in some events.
    ("GITHUB_REF", Form::Ref),
    ("GITHUB_EVENT_PATH", Form::Event),
    // GitLab CI.
    ("CI_MERGE_REQUEST_IID", Form::Number),
    ("CI_MERGE_REQUEST_ID", Form::Number),
    ("CI_EXTERNAL_PULL_REQUEST_IID", Form::Number),
    // Buildkite.
    ("BUILDKITE_PULL_REQUEST", Form::Number),
    // Jenkins: the multibranch pipeline, and two plugins.
    ("CHANGE_ID", Form::Number),
    ("ghprbPullId", Form::Number),
    ("gitlabMergeRequestIid", Form::Number),
    ("gitlabMergeRequestId", Form::Number),
    // Azure Pipelines.
    ("SYSTEM_PULLREQUEST_PULLREQUESTID", Form::Number),
    // Bitbucket Pipelines.
    ("BITBUCKET_PR_ID", Form::Number),
    // Travis CI.
    ("TRAVIS_PULL_REQUEST", Form::Number),
    // CircleCI.
    ("CIRCLE_PULL_REQUEST", Form::Last),
    ("CIRCLE_PR_NUMBER", Form::Number),
    // Drone and Woodpecker.
    ("DRONE_PULL_REQUEST", Form::Number),
    ("CI_COMMIT_PULL_REQUEST", Form::Number),
    // Prow.
    ("PULL_NUMBER", Form::Number),
    // AppVeyor.
    ("APPVEYOR_PULL_REQUEST_NUMBER", Form::Number),
    // Cirrus CI.
    ("CIRRUS_PR", Form::Number),
    // Semaphore.
    ("SEMAPHORE_GIT_PR_NUMBER", Form::Number),
    // AWS CodeBuild, `pr/7`.
    ("CODEBUILD_WEBHOOK_TRIGGER", Form::Last),
    ("CODEBUILD_SOURCE_VERSION", Form::Last),
    // Codefresh.
    ("CF_PULL_REQUEST_NUMBER", Form::Number),
    ("CF_PULL_REQUEST_ID", Form::Number),
    // Buddy; the names with `EXECUTION` are the older ones.
    ("BUDDY_RUN_PR_NO", Form::Number),
    ("BUDDY_RUN_PR_ID", Form::Number),
    ("BUDDY_EXECUTION_PULL_REQUEST_NO", Form::Number),
    ("BUDDY_EXECUTION_PULL_REQUEST_ID", Form::Number),
    // Bitrise.
    ("BITRISE_PULL_REQUEST", Form::Number),
];

/// Every environment variable that names the pull request.
pub(super) fn variables() -> impl Iterator<Item = &'static str> {
    VARIABLES.iter().map(|(name, _)| *name)
}

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
    for (name, form) in VARIABLES {
        let Some(value) = variable(name) else {
            continue;
        };
        let Some(found) = form.number(value.trim()) else {
            continue;
        };
        // It is printed, and part of what a token covers.
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if found.len() > 64 || !found.chars().all(plain) {
            return Err(Error::Usage(format!(
                "{name} is {found:?}, and that is not the number of a pull request"
            )));
        }
        return match asked {
            Some(asked) if asked != found => Err(Error::Usage(format!(
                "`--pull-request {asked}`: this run belongs to pull request {found} ({name}); leave the option out"
            ))),
            _ => Ok(Some(found)),
        };
    }
    Ok(asked)
}

impl Form {
    fn number(self, value: &str) -> Option<String> {
        let text = match self {
            Form::Number => value.to_owned(),
            Form::Last => {
                let (before, last) = value.rsplit_once('/')?;
                // CodeBuild also names branches and tags: `branch/7`.
                let of_pull_request = ["pr", "pull", "pull-requests", "merge_requests", "pulls"];
                let kind = before.rsplit('/').next().unwrap_or(before);
                of_pull_request.contains(&kind).then(|| last.to_owned())?
            }
            Form::Ref => {
                let rest = value.strip_prefix("refs/pull/")?;
                rest.split('/').next().unwrap_or(rest).to_owned()
            }
            Form::Event => in_event(Path::new(value))?.to_string(),
        };
        // `007` and `7` are the same.
        let text = match text.parse::<u64>() {
            Ok(number) => number.to_string(),
            Err(_) => text,
        };
        (!matches!(text.as_str(), "" | "0" | "false" | "null")).then_some(text)
    }
}

/// The number in GitHub's description of an event: of a pull request, or of a comment on one.
fn in_event(path: &Path) -> Option<u64> {
    let event: Value = serde_json::from_slice(&read_regular(path).ok()?).ok()?;
    let of_pull_request = event.pointer("/pull_request/number");
    let of_comment = event
        .pointer("/issue/pull_request")
        .and_then(|_| event.pointer("/issue/number"));
    of_pull_request.or(of_comment)?.as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(environment: &[(&str, &str)], asked: Option<u64>) -> Result<Option<String>, String> {
        let variable = |name: &str| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        pull_request(asked, variable).map_err(|error| error.to_string())
    }

    #[test]
    fn each_service_names_the_pull_request_in_its_own_variable() {
        let folder = tempfile::tempdir().unwrap();
        let event = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let of_pull_request = event("pull", r#"{"pull_request": {"number": 7}}"#);
        let of_comment = event(
            "comment",
            r#"{"issue": {"number": 7, "pull_request": {"url": "u"}}}"#,
        );
        let of_issue = event("issue", r#"{"issue": {"number": 7}}"#);
        let of_push = event("push", r#"{"ref": "refs/heads/main"}"#);
        let seven = Some("7");
        for (environment, expected) in [
            (vec![("GITHUB_REF", "refs/pull/7/merge")], seven),
            (
                vec![
                    ("GITHUB_REF", "refs/heads/main"),
                    ("GITHUB_EVENT_PATH", &*of_pull_request),
                ],
                seven,
            ),
            (vec![("GITHUB_EVENT_PATH", &*of_comment)], seven),
            (vec![("GITHUB_EVENT_PATH", &*of_issue)], None),
            (vec![("GITHUB_EVENT_PATH", &*of_push)], None),
            (vec![("GITHUB_EVENT_PATH", "/nonexistent")], None),
            (vec![("CI_MERGE_REQUEST_IID", "7")], seven),
            (vec![("BUILDKITE_PULL_REQUEST", "7")], seven),
            (vec![("BUILDKITE_PULL_REQUEST", "false")], None),
            (vec![("CHANGE_ID", "007")], seven),
            (vec![("CHANGE_ID", "I8473b")], Some("I8473b")),
            (vec![("SYSTEM_PULLREQUEST_PULLREQUESTID", "7")], seven),
            (vec![("BITBUCKET_PR_ID", "7")], seven),
            (vec![("TRAVIS_PULL_REQUEST", "false")], None),
            (vec![("TRAVIS_PULL_REQUEST", "7")], seven),
            (
                vec![("CIRCLE_PULL_REQUEST", "https://github.com/a/b/pull/7")],
                seven,
            ),
            (vec![("DRONE_PULL_REQUEST", "7")], seven),
            (vec![("CI_COMMIT_PULL_REQUEST", "7")], seven),
            (vec![("PULL_NUMBER", "7")], seven),
            (vec![("APPVEYOR_PULL_REQUEST_NUMBER", "7")], seven),
            (vec![("CIRRUS_PR", "7")], seven),
            (vec![("SEMAPHORE_GIT_PR_NUMBER", "7")], seven),
            (vec![("CODEBUILD_WEBHOOK_TRIGGER", "pr/7")], seven),
            (vec![("CODEBUILD_WEBHOOK_TRIGGER", "branch/7")], None),
            (vec![("CODEBUILD_SOURCE_VERSION", "pr/7")], seven),
            (vec![("BUDDY_RUN_PR_NO", "7")], seven),
            (vec![("CIRCLE_PR_NUMBER", "7")], seven),
            (vec![("CI_EXTERNAL_PULL_REQUEST_IID", "7")], seven),
            (vec![("CI", "true")], None),
        ] {
            let expected = expected.map(str::to_owned);
            assert_eq!(found(&environment, None), Ok(expected), "{environment:?}");
        }
    }

    #[test]
    fn a_pull_request_that_is_named_must_be_the_one_of_the_run() {
        let run = [("GITHUB_REF", "refs/pull/7/merge")];
        assert_eq!(found(&[], Some(7)), Ok(Some("7".to_owned())));
        assert_eq!(found(&run, Some(7)), Ok(Some("7".to_owned())));
        let why = found(&run, Some(8)).unwrap_err();
        assert!(why.contains("belongs to pull request 7"), "{why}");
        let why = found(&[("CHANGE_ID", "7\nafter: x")], None).unwrap_err();
        assert!(why.contains("CHANGE_ID"), "{why}");
    }
}
