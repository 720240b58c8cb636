//! What is known of a CI service: which variables it sets, and what they mean.

/// A variable that shows something of a run.
pub(super) struct Sign {
    pub name: &'static str,
    /// The values that count; without values, any besides the empty one, `0` and `false`.
    pub values: &'static [&'static str],
}

/// A variable that is set.
pub(super) const fn set(name: &'static str) -> Sign {
    one_of(name, &[])
}

/// A variable with one of these values.
pub(super) const fn one_of(name: &'static str, values: &'static [&'static str]) -> Sign {
    Sign { name, values }
}

/// How a service names a push.
pub(super) struct Push {
    pub when: Sign,
    /// The branch.
    pub branch: &'static [&'static str],
    /// The default branch of the repository.
    pub default: &'static [&'static str],
    /// The commit that the branch was at before.
    pub before: &'static str,
    /// `true` where history was rewritten.
    pub forced: Option<&'static str>,
}

/// How a service names a merge queue.
pub(super) struct Queue {
    pub when: Sign,
    /// The commit that the queue merges onto.
    pub base: &'static str,
    /// The branch that the queue is for.
    pub target: &'static str,
}

/// How a service reads `CODEOWNERS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owning {
    /// GitHub.
    GitHub,
    /// GitLab.
    GitLab,
}

impl Owning {
    /// Where the file may be: the first one counts.
    pub fn places(self) -> &'static [&'static str] {
        match self {
            Owning::GitHub => &[".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"],
            Owning::GitLab => &["CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"],
        }
    }
}

/// How a variable names a pull request.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// As its number. `false`, `0` and the empty text mean that there is none.
    Number,
    /// As the part after the last `/` of an address, `…/pulls/7`.
    Last,
    /// As the number in `refs/pull/7/merge`.
    Ref,
}

/// A CI service. A name that begins with `event.` is a field of the file that GitHub's
/// `GITHUB_EVENT_PATH` names, any other an environment variable. Of several names, the first that
/// is set counts.
pub(super) struct Service {
    pub name: &'static str,
    /// It runs where one of these is set.
    pub own: &'static [Sign],
    /// And it runs a pull request where one of these is.
    pub change: &'static [Sign],
    /// The branch that the pull request is to be merged into.
    pub target: &'static [&'static str],
    /// The commit that this branch was at when the run was made.
    pub tip: &'static [&'static str],
    /// A commit that this branch was at earlier.
    pub former: &'static [&'static str],
    /// The last commit of the change.
    pub head: &'static [&'static str],
    /// The repository of the branch that is to be merged, by its path or address.
    pub source: &'static [&'static str],
    /// The repository that it is to be merged into.
    pub home: &'static [&'static str],
    /// The number of the pull request, and how each of these names it.
    pub number: &'static [(&'static str, Form)],
    pub push: Option<Push>,
    pub queue: Option<Queue>,
    /// How it reads code owners.
    pub owning: Option<Owning>,
    /// How to fetch what is missing.
    pub fetch: &'static str,
}

/// A service that names nothing: what an entry of the table does not override.
pub(super) const PLAIN: Service = Service {
    name: "CI",
    own: &[],
    change: &[],
    target: &[],
    tip: &[],
    former: &[],
    head: &[],
    source: &[],
    home: &[],
    number: &[],
    push: None,
    queue: None,
    owning: None,
    fetch: "fetch the whole history and the target branch: git fetch --unshallow origin '+refs/heads/*:refs/remotes/origin/*'",
};

impl Form {
    /// The number in a value.
    pub fn number(self, value: &str) -> Option<String> {
        let text = match self {
            Form::Number => value,
            Form::Last => {
                let (before, last) = value.rsplit_once('/')?;
                before.ends_with("/pulls").then_some(last)?
            }
            Form::Ref => {
                let rest = value.strip_prefix("refs/pull/")?;
                rest.split('/').next().unwrap_or(rest)
            }
        };
        // `007` and `7` are the same.
        let text = match text.parse::<u64>() {
            Ok(number) => number.to_string(),
            Err(_) => text.to_owned(),
        };
        (!matches!(text.as_str(), "" | "0" | "false" | "null")).then_some(text)
    }
}
