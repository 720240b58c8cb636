//! Where the service of a run shows the repository, so that a report can link to commits and lines.
//! Nothing is decided by it, and nothing is fetched from there.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::git::{commit_of, folder_in_repository};

/// How the addresses of a service are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WebStyle {
    /// `REPOSITORY/blob/COMMIT/FILE`.
    Github,
    /// `REPOSITORY/-/blob/COMMIT/FILE`.
    Gitlab,
}

/// A repository as a service shows it in a browser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Web {
    /// Address of the repository, `https://host/owner/name`.
    pub address: String,
    /// How its addresses are made.
    pub style: WebStyle,
    /// The commit that was checked.
    pub commit: String,
    /// The folder of the configuration from the top of the repository, with a `/` at its end; empty
    /// at the top.
    pub folder: String,
}

/// The repository of a configuration's folder as the service of this run shows it; `variable` reads
/// the environment. `None` where the service does not say, or the folder is in no repository.
pub fn web(root: &Path, variable: impl Fn(&str) -> Option<String>) -> Option<Web> {
    let (address, style) = shown_at(&variable)?;
    Some(Web {
        address,
        style,
        commit: commit_of(root, "HEAD")?,
        folder: folder_in_repository(root).ok()?,
    })
}

/// Sources: docs.github.com, "Variables reference"; docs.gitlab.com, "Predefined CI/CD variables
/// reference"; buildkite.com/docs, "Environment variables".
fn shown_at(variable: &dyn Fn(&str) -> Option<String>) -> Option<(String, WebStyle)> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let found = if let (Some(server), Some(repository)) =
        (set("GITHUB_SERVER_URL"), set("GITHUB_REPOSITORY"))
    {
        (format!("{server}/{repository}"), WebStyle::Github)
    } else if let (Some(_), Some(project)) = (set("GITLAB_CI"), set("CI_PROJECT_URL")) {
        (project, WebStyle::Gitlab)
    } else {
        let address = of_remote(&set("BUILDKITE_REPO")?)?;
        let provider = set("BUILDKITE_PIPELINE_PROVIDER").unwrap_or_default();
        let style = match provider.as_str() {
            "github" | "github_enterprise" => WebStyle::Github,
            "gitlab" | "gitlab_ee" => WebStyle::Gitlab,
            _ if address.starts_with("https://github.com/") => WebStyle::Github,
            _ if address.starts_with("https://gitlab.com/") => WebStyle::Gitlab,
            _ => return None,
        };
        (address, style)
    };
    is_address(&found.0).then_some(found)
}

/// The address in a browser of what git fetches from `https://host/owner/name.git`,
/// `ssh://git@host/owner/name` or `git@host:owner/name`.
fn of_remote(remote: &str) -> Option<String> {
    let rest = match remote.split_once("://") {
        Some(("https" | "http" | "ssh" | "git", rest)) => rest.to_owned(),
        Some(_) => return None,
        None => remote.replacen(':', "/", 1),
    };
    // A user, and maybe a password.
    let rest = rest.split_once('@').map_or(rest.as_str(), |(_, rest)| rest);
    let (host, path) = rest.split_once('/')?;
    // The port is that of git.
    let host = host.split_once(':').map_or(host, |(host, _)| host);
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    Some(format!("https://{host}/{path}"))
}

/// Whether a text is the address of a page on a host, without a user, a query or anything that
/// could end an attribute. An outcome that is read from a file may contain any text here.
fn is_address(text: &str) -> bool {
    let Some(rest) = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))
    else {
        return false;
    };
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '~' | '/' | ':');
    text.len() <= 500
        && rest.chars().all(plain)
        && rest.starts_with(|c: char| c.is_ascii_alphanumeric())
}

impl Web {
    /// The page of a commit, of its whole hash.
    pub fn of_commit(&self, commit: &str) -> Option<String> {
        let hash = |text: &str| text.len() >= 40 && text.chars().all(|c| c.is_ascii_hexdigit());
        if !is_address(&self.address) || !hash(commit) {
            return None;
        }
        Some(match self.style {
            WebStyle::Github => format!("{}/commit/{commit}", self.address),
            WebStyle::Gitlab => format!("{}/-/commit/{commit}", self.address),
        })
    }

    /// The page of a file below the folder of the configuration, at a line from 1.
    pub fn of_line(&self, file: &str, line: Option<u32>) -> Option<String> {
        self.of_commit(&self.commit)?;
        let between = match self.style {
            WebStyle::Github => "blob",
            WebStyle::Gitlab => "-/blob",
        };
        let path = encoded(&format!("{}{file}", self.folder));
        let line = line.map_or_else(String::new, |line| format!("#L{line}"));
        Some(format!(
            "{}/{between}/{}/{path}{line}",
            self.address, self.commit
        ))
    }
}

/// A path as an address spells it (RFC 3986).
fn encoded(path: &str) -> String {
    path.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(char::from(byte));
            }
            byte => text.push_str(&format!("%{byte:02X}")),
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::tests::environment;

    fn shown(variables: &str) -> Option<(String, WebStyle)> {
        shown_at(&environment(variables))
    }

    #[test]
    fn the_address_is_that_of_the_service() {
        use WebStyle::{Github, Gitlab};
        let github = "GITHUB_SERVER_URL=https://github.com GITHUB_REPOSITORY=o/n";
        let project = "https://git.example.org/a/b/c";
        let gitlab = format!("GITLAB_CI=true CI_PROJECT_URL={project}");
        let of_buildkite = "BUILDKITE_REPO=ssh://git@git.example.org:2222/o/n.git \
                            BUILDKITE_PIPELINE_PROVIDER=gitlab";
        let with_secret = "BUILDKITE_REPO=https://user:secret@gitlab.com/o/n.git";
        let by_ssh = "BUILDKITE_REPO=git@github.com:o/n.git";
        for (variables, address, style) in [
            (github, "https://github.com/o/n", Github),
            (&gitlab, project, Gitlab),
            (by_ssh, "https://github.com/o/n", Github),
            (of_buildkite, "https://git.example.org/o/n", Gitlab),
            (with_secret, "https://gitlab.com/o/n", Gitlab),
        ] {
            let expected = Some((address.to_owned(), style));
            assert_eq!(shown(variables), expected, "{variables}");
        }
        for variables in [
            "",
            "GITHUB_REPOSITORY=o/n",
            "CI_PROJECT_URL=https://git.example.org/a",
            "GITHUB_SERVER_URL=javascript:alert(1)// GITHUB_REPOSITORY=o/n",
            "GITHUB_SERVER_URL=https://a\"onclick=\"x GITHUB_REPOSITORY=o/n",
            "BUILDKITE_REPO=git@bitbucket.org:o/n.git",
            "BUILDKITE_REPO=/srv/git/n.git",
        ] {
            assert_eq!(shown(variables), None, "{variables}");
        }
    }

    #[test]
    fn links_are_those_of_the_service_and_of_nothing_else() {
        let commit = "0123456789abcdef0123456789abcdef01234567".to_owned();
        let web = |address: &str, style| Web {
            address: address.to_owned(),
            style,
            commit: commit.clone(),
            folder: "gpu/".to_owned(),
        };
        let github = web("https://github.com/o/n", WebStyle::Github);
        let line = format!("https://github.com/o/n/blob/{commit}/gpu/a%20b.cu#L7");
        assert_eq!(github.of_line("a b.cu", Some(7)), Some(line));
        let gitlab = web("https://gitlab.com/o/n", WebStyle::Gitlab);
        let expected = format!("https://gitlab.com/o/n/-/commit/{commit}");
        assert_eq!(gitlab.of_commit(&commit), Some(expected));
        assert_eq!(github.of_commit("main"), None);
        // An outcome from a file.
        let hostile = web("javascript:alert(1)", WebStyle::Github);
        assert_eq!(hostile.of_line("a.cu", None), None);
    }
}
