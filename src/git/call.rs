//! The one place that calls git.

use std::path::Path;
use std::time::Duration;

use crate::finding::Error;
use crate::process::{Ending, Printed, Query};
use crate::terms::words;

/// What git prints, or its complaint.
pub(super) fn git(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let printed = git_bytes(root, arguments)?;
    Ok(String::from_utf8_lossy(&printed).trim().to_owned())
}

pub(super) fn git_bytes(root: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
    Git::here().answer(root, arguments, String::new(), &[])
}

/// How the complaint begins that git cannot be started.
const NOT_RUN: &str = "git cannot be run";

/// The error on a complaint of git; `next` is for a git that is there.
pub fn error(what: String, next: impl Into<String>) -> Error {
    let next = match what.contains(NOT_RUN) {
        true => "install git, and have it on the PATH".to_owned(),
        false => next.into(),
    };
    Error::environment(what, next)
}

/// Longest that git may take. To check out a large repository, or to fetch what a partial clone
/// lacks, takes minutes; a git that takes longer waits for a lock, a network or a person.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// Options of every call: neither the repository's hooks nor its monitor run; a folder of the
/// working tree that is laid out as a bare repository, with a configuration of its own, is not
/// taken for a repository; history is what the commits themselves say.
const HARMLESS: [&str; 14] = words(
    "-c core.hooksPath=/dev/null -c core.fsmonitor=false -c safe.bareRepository=explicit -c \
     core.useReplaceRefs=false -c core.commitGraph=false -c submodule.recurse=false \
     -c advice.graftFileDeprecated=false",
);

/// Variables of every call.
const OWN: [(&str, &str); 6] = [
    // A commit is identified by its hash, without what `refs/replace` puts in its place.
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    // Grafts would give commits other parents. An empty file has none.
    ("GIT_GRAFT_FILE", "/dev/null"),
    // In a process group of its own git cannot ask at the terminal.
    ("GIT_TERMINAL_PROMPT", "0"),
    ("LC_ALL", "C"),
    // What only reads writes no index, and leaves no lock where it is killed.
    ("GIT_OPTIONAL_LOCKS", "0"),
    // A filter in Python takes no module from the working tree.
    ("PYTHONSAFEPATH", "1"),
];

/// Variables of the environment that lead git to another repository, index, configuration or
/// program than the project's: every one that is git's, also if `env_pass` names it. A hook sets some
/// of them too.
fn redirecting() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names
        .filter(|name| name.starts_with("GIT_") && OWN.iter().all(|(own, _)| own != name))
        .collect()
}

/// How git is called.
pub(super) struct Git<'a> {
    pub(super) program: &'a str,
    pub(super) limit: Duration,
    pub(super) interruptible: bool,
}

impl Git<'_> {
    /// The git of the PATH.
    pub(super) fn here() -> Git<'static> {
        Git {
            program: "git",
            limit: TIME_LIMIT,
            interruptible: true,
        }
    }

    /// How git ended, and what it printed. `env` is added to its environment.
    ///
    /// # Errors
    /// Why it could not be run.
    pub(super) fn ended(
        &self,
        root: &Path,
        arguments: &[&str],
        input: String,
        env: &[(&str, &str)],
    ) -> Result<Printed, String> {
        let options = HARMLESS.iter().chain(arguments);
        let words = std::iter::once(&self.program).chain(options);
        let env = OWN.iter().chain(env);
        let redirecting = redirecting();
        let query = Query {
            argv: words.map(|word| (*word).to_owned()).collect(),
            dir: root,
            env: env
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            without: &redirecting.iter().map(String::as_str).collect::<Vec<_>>(),
            input: input.into_bytes(),
            timeout: self.limit,
            interruptible: self.interruptible,
        };
        query.run().map_err(|error| format!("{NOT_RUN}: {error}"))
    }

    /// What git prints, or its complaint. `env` is added to its environment.
    pub(super) fn answer(
        &self,
        root: &Path,
        arguments: &[&str],
        input: String,
        env: &[(&str, &str)],
    ) -> Result<Vec<u8>, String> {
        let printed = self.ended(root, arguments, input, env)?;
        let complaint = String::from_utf8_lossy(&printed.stderr).trim().to_owned();
        match printed.ending {
            Ending::Exited(0) => Ok(printed.stdout),
            Ending::Exited(_) if !complaint.is_empty() => Err(complaint),
            ending => {
                let reached = match ending {
                    Ending::TimedOut => format!(" of {} s", self.limit.as_secs_f64()),
                    _ => String::new(),
                };
                let end = format!("`git {}`: {ending}{reached}", arguments.join(" "));
                let complaint = (!complaint.is_empty()).then_some(complaint);
                Err(complaint
                    .into_iter()
                    .chain([end])
                    .collect::<Vec<_>>()
                    .join("; "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(script: &str, limit_s: u64) -> Result<Vec<u8>, String> {
        let folder = tempfile::tempdir().unwrap();
        let [script_file, program] = ["script", "git"].map(|name| folder.path().join(name));
        std::fs::write(&script_file, format!("#!/bin/sh\n{script}\n")).unwrap();
        let [from, program] = [&script_file, &program].map(|path| path.to_str().unwrap());
        // Written by another process: what this one has open for writing, a process that another test
        // starts inherits for a moment, and then it cannot be run.
        let install = Query {
            argv: ["install", "-m", "755", from, program]
                .map(str::to_owned)
                .to_vec(),
            dir: folder.path(),
            env: Default::default(),
            without: &[],
            input: Vec::new(),
            timeout: TIME_LIMIT,
            interruptible: true,
        };
        assert_eq!(install.run().unwrap().ending, Ending::Exited(0));
        let git = Git {
            program,
            limit: Duration::from_secs(limit_s),
            ..Git::here()
        };
        git.answer(folder.path(), &["rev-parse", "HEAD"], String::new(), &[])
    }

    #[test]
    fn a_git_that_hangs_is_killed_at_its_time_limit_and_named() {
        let why = answer("echo 'waiting for a lock' >&2; sleep 300; echo never", 5).unwrap_err();
        assert_eq!(
            why,
            "waiting for a lock; `git rev-parse HEAD`: killed at its time limit of 5 s"
        );
    }

    #[test]
    fn a_git_that_is_not_there_is_to_be_installed() {
        let git = Git {
            program: "no-such-git",
            ..Git::here()
        };
        let why = git.answer(Path::new("/"), &[], String::new(), &[]);
        let said = error(why.unwrap_err(), "clone again").to_string();
        assert!(
            said.ends_with("next: install git, and have it on the PATH"),
            "{said}"
        );
        let said = error("fatal: no".to_owned(), "clone again").to_string();
        assert!(said.ends_with("next: clone again"), "{said}");
    }

    #[test]
    fn the_complaint_of_git_comes_first_and_an_end_without_one_is_named() {
        assert_eq!(answer("echo out; echo hint >&2", 60).unwrap(), b"out\n");
        assert_eq!(
            answer("echo 'fatal: no' >&2; exit 128", 60).unwrap_err(),
            "fatal: no"
        );
        assert_eq!(
            answer("exit 1", 60).unwrap_err(),
            "`git rev-parse HEAD`: exit status 1"
        );
    }
}
