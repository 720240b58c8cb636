//! What an engine renders, and from what.

use std::sync::LazyLock;
use std::time::Duration;

use regex::{Captures, Regex};

use crate::config::Selection;
use crate::finding::Error;
use crate::process::shell_line;
use crate::terms::joined;

/// The check whose slices other machines measure.
#[derive(Clone, Debug)]
pub struct Task<'a> {
    /// How many slices there are, at least 1.
    pub slices: u32,
    /// The most that one slice may take.
    pub limit: Duration,
    /// The configuration, where it has not its usual name.
    pub config: Option<&'a str>,
    /// The selected variants, as on the command line.
    pub selection: &'a Selection,
    /// The revision to measure beside; a pipeline takes the target of the change where it is none.
    pub against: Option<&'a str>,
}

/// What runs slices on other machines.
pub struct Engine {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it renders, for the help.
    pub help: &'static str,
    /// The most slices that it runs; `None` where it states no bound.
    pub most: Option<u32>,
    /// The target of a change, as a word of its shell: it measures beside that where nobody names a
    /// revision.
    pub target: Option<&'static str>,
    /// How a dollar sign is written in a command line.
    pub(super) dollar: &'static str,
    pub(super) template: &'static str,
}

impl Engine {
    /// The pipeline, manifest or script.
    ///
    /// # Errors
    /// [`Error::Usage`] where a word of the command line cannot stand in it.
    pub fn rendered(&self, task: &Task<'_>) -> Result<String, Error> {
        let words = task.selection.names.iter().map(String::as_str);
        for word in words.chain(task.config).chain(task.against) {
            // A service replaces these before any shell reads them.
            if word.chars().any(char::is_control) || word.contains("${{") {
                return Err(Error::Usage(format!(
                    "{word:?} cannot stand in a pipeline: it has a control character or `${{{{`\n  next: name variants and revisions without these"
                )));
            }
        }
        let list = joined((1..=task.slices).map(|slice| slice.to_string()), ", ");
        let line = |line: String| line.replace('$', self.dollar);
        Ok(filled(
            self.template,
            &[
                ("N", &task.slices.to_string()),
                ("LIST", &list),
                ("MADE", &line(task.made(self.name))),
                ("MINUTES", &task.minutes().to_string()),
                ("SECONDS", &(task.minutes() * 60).to_string()),
                ("ARCHIVE", &line(task.archive(self.target))),
            ],
        ))
    }
}

impl Task<'_> {
    /// The command line that packs the archive. `target` is the revision to measure beside where
    /// the command line names none: a word for the shell, as it is.
    fn archive(&self, target: Option<&str>) -> String {
        let words = self.words(&["archive", "--output", "gate.tar.zst"]);
        let against = match (self.against, target) {
            (Some(revision), _) => format!(" --against {}", shell_line(&[revision.to_owned()])),
            (None, Some(target)) => format!(" --against {target}"),
            (None, None) => String::new(),
        };
        format!("{}{against}", shell_line(&words))
    }

    /// The command line that made the text.
    fn made(&self, engine: &str) -> String {
        let slices = self.slices.to_string();
        let mut words = self.words(&["plan", "--format", engine, "--slices", &slices]);
        if let Some(revision) = self.against {
            words.extend(["--against".to_owned(), revision.to_owned()]);
        }
        shell_line(&words)
    }

    /// A command of this tool for the variants of the task.
    fn words(&self, command: &[&str]) -> Vec<String> {
        let mut words = vec!["sparsek-gate".to_owned()];
        if let Some(config) = self.config {
            words.extend(["--config".to_owned(), config.to_owned()]);
        }
        words.extend(command.iter().copied().map(str::to_owned));
        words.extend(self.selection.names.iter().cloned());
        if self.selection.experimental {
            words.push("--experimental".to_owned());
        }
        words
    }

    /// The time limit of a job with one slice, in whole minutes: that of the slice, and as long as
    /// it takes to fetch and to keep files.
    fn minutes(&self) -> u64 {
        self.limit.as_secs().div_ceil(60) + 15
    }
}

/// A template with its marks, such as `@N@`, replaced. What replaces one is not searched again.
fn filled(template: &str, marks: &[(&str, &str)]) -> String {
    static MARK: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("@([A-Z]+)@").ok());
    let value = |found: &Captures<'_>| {
        let mark = marks.iter().find(|(mark, _)| *mark == &found[1]);
        mark.map_or_else(|| found[0].to_owned(), |(_, value)| (*value).to_owned())
    };
    let filled = MARK.as_ref().map(|mark| mark.replace_all(template, value));
    filled.unwrap_or_default().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_replaced_once_and_another_at_sign_stays() {
        let filled = filled("a@v1 @N@ @M@@N@ @", &[("N", "@M@"), ("M", "2")]);
        assert_eq!(filled, "a@v1 @M@ 2@M@ @");
    }
}
