//! What a name of a revision means. Git takes the first of several things of a name: a tag
//! `origin/main` comes before the remote branch. Here such a name means nothing.

use std::path::Path;

use super::call::git;
use super::revision::commit_of;

/// What a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// The one commit that it can mean.
    Commit(String),
    /// Nothing here has that name.
    Missing,
    /// Several things that it can mean, by their whole names.
    Ambiguous(Vec<String>),
}

/// The commit that a revision names.
pub fn named(root: &Path, revision: &str) -> Named {
    let (base, rest) = split(revision);
    if base.starts_with("refs/") {
        if rest.is_empty() {
            return of_reference(root, base).map_or(Named::Missing, Named::Commit);
        }
        // Exactly this one, and not `refs/tags/refs/…`.
        if references(root, &[base.to_owned()]).is_empty() {
            return Named::Missing;
        }
    } else {
        let mut meanings = meanings(root, base);
        if meanings.len() > 1 {
            return Named::Ambiguous(meanings);
        }
        // A short hash of one commit may be the whole name of a branch.
        if let Some(reference) = meanings.pop()
            && is_hash(base)
            && !is_whole_hash(base)
            && let Ok(objects) = git(root, &["rev-parse", &format!("--disambiguate={base}")])
            && let Some(object) = objects.lines().next()
        {
            return Named::Ambiguous(vec![reference, object.to_owned()]);
        }
    }
    commit_of(root, revision).map_or(Named::Missing, Named::Commit)
}

/// The commit that a reference leads to, such as `refs/remotes/origin/main`. No other reference of
/// a similar name is taken for it.
pub fn of_reference(root: &Path, reference: &str) -> Option<String> {
    if !reference.starts_with("refs/") {
        return None;
    }
    let format = "--format=%(objecttype) %(objectname) %(refname)";
    let listed = git(root, &["for-each-ref", format, reference]).ok()?;
    let object = listed.lines().find_map(|line| {
        let (object, name) = line.rsplit_once(' ')?;
        (name == reference).then_some(object)
    });
    match object?.split_once(' ')? {
        ("commit", commit) => Some(commit.to_owned()),
        // A tag leads to a commit, or to something else.
        _ => commit_of(root, reference),
    }
}

/// A branch of a remote whose tip is this commit.
pub fn remote_branch_at(root: &Path, commit: &str) -> Option<String> {
    let points = format!("--points-at={commit}");
    let listed = git(
        root,
        &[
            "for-each-ref", "--format=%(refname)", &points, "refs/remotes",
        ],
    )
    .ok()?;
    let branch = listed.lines().find(|name| !name.ends_with("/HEAD"));
    branch.map(str::to_owned)
}

/// The whole name of the one reference that a name means; `None` of a hash, of an expression such
/// as `main~1`, and of a name without or with several meanings.
pub fn full_name(root: &Path, revision: &str) -> Option<String> {
    let (base, rest) = split(revision);
    if !rest.is_empty() {
        return None;
    }
    if base.starts_with("refs/") {
        return references(root, &[base.to_owned()]).pop();
    }
    let mut meanings = meanings(root, base);
    meanings
        .pop()
        .filter(|name| meanings.is_empty() && name.starts_with("refs/"))
}

/// The commits that this clone saw a reference at, by its reflog.
pub fn former_commits(root: &Path, reference: &str) -> Vec<String> {
    let arguments = [
        "-c", "log.showSignature=false", "log", "--walk-reflogs", "--format=%H",
        "--end-of-options", reference, "--",
    ];
    let listed = git(root, &arguments).unwrap_or_default();
    let mut commits: Vec<String> = listed.lines().map(str::to_owned).collect();
    // Where it was before the first line.
    let before = format!("{reference}@{{{}}}", commits.len());
    commits.extend(commit_of(root, &before));
    commits
}

/// A revision's name, and what goes on from there, such as `~1` or `@{upstream}`.
fn split(revision: &str) -> (&str, &str) {
    let at = revision.char_indices().find(|(at, letter)| match letter {
        '~' | '^' | ':' => true,
        '@' => revision[*at..].starts_with("@{"),
        _ => false,
    });
    revision.split_at(at.map_or(revision.len(), |(at, _)| at))
}

/// The whole names that git would try for a short one and that are there, in git's order.
fn meanings(root: &Path, name: &str) -> Vec<String> {
    // These are files beside the references, and always come first.
    if matches!(
        name,
        "" | "@" | "HEAD" | "FETCH_HEAD" | "ORIG_HEAD" | "MERGE_HEAD"
    ) {
        return Vec::new();
    }
    let places = ["refs/", "refs/tags/", "refs/heads/", "refs/remotes/"];
    let mut whole: Vec<String> = places.map(|place| format!("{place}{name}")).into();
    whole.push(format!("refs/remotes/{name}/HEAD"));
    references(root, &whole)
}

/// Those of the references that are there.
fn references(root: &Path, names: &[String]) -> Vec<String> {
    let mut arguments = vec!["for-each-ref", "--format=%(refname)"];
    arguments.extend(names.iter().map(String::as_str));
    let listed = git(root, &arguments).unwrap_or_default();
    let there: Vec<&str> = listed.lines().collect();
    names
        .iter()
        .filter(|name| there.contains(&name.as_str()))
        .cloned()
        .collect()
}

fn is_hash(text: &str) -> bool {
    text.len() >= 4 && text.chars().all(|letter| letter.is_ascii_hexdigit())
}

/// Whether a text is the whole hash of an object.
pub fn is_whole_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && is_hash(text)
}
