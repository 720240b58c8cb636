//! Files that a report is written to, and the form that each asks for.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum as _;

use super::render;
use crate::cli::ReportFormat;
use crate::files::write_named;
use crate::finding::Error;
use crate::judge::Outcome;

/// Names the file of a step's summary, which other programs of the step write to as well.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// What the end of a file's name says, the longer before what it ends in.
const ENDINGS: [(&str, ReportFormat); 9] = [
    (".codequality.json", ReportFormat::Gitlab),
    ("gl-code-quality-report.json", ReportFormat::Gitlab),
    (".sarif.json", ReportFormat::Sarif),
    (".sarif", ReportFormat::Sarif),
    (".xml", ReportFormat::Junit),
    (".md", ReportFormat::Markdown),
    (".html", ReportFormat::Html),
    (".txt", ReportFormat::Text),
    (".json", ReportFormat::Json),
];

/// One file to write, in one form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The form.
    pub format: ReportFormat,
    /// The file.
    pub path: PathBuf,
    /// Behind what the file already holds.
    appends: bool,
}

/// What `--report` asks for: `FILE`, whose ending names the form, or `FORMAT:FILE`.
///
/// # Errors
/// [`Error::Usage`] where neither says which form.
pub fn targets(named: &[PathBuf]) -> Result<Vec<Target>, Error> {
    named.iter().map(|name| target(name)).collect()
}

fn target(named: &Path) -> Result<Target, Error> {
    let text = named.to_string_lossy();
    let stated = text.split_once(':').and_then(|(format, file)| {
        let format = ReportFormat::from_str(format, false).ok()?;
        Some((format, PathBuf::from(file)))
    });
    if let Some((format, path)) = stated {
        if path.as_os_str().is_empty() {
            return Err(Error::Usage(format!(
                "`--report {text}` names no file behind the colon: is the variable that holds it set?"
            )));
        }
        let appends = format == ReportFormat::Markdown && is_step_summary(&path);
        return Ok(Target {
            format,
            path,
            appends,
        });
    }
    let name = named.file_name().unwrap_or_default().to_string_lossy();
    let known = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
    match known {
        Some((_, format)) => Ok(Target {
            format: *format,
            path: named.to_owned(),
            appends: false,
        }),
        None => Err(Error::Usage(format!(
            "`--report {text}`: the ending says how a report is written: .md, .json, .txt, .html, .xml (JUnit), .sarif, .codequality.json or gl-code-quality-report.json (GitLab); or write the form before it, as in `--report markdown:{text}`: {}",
            ReportFormat::value_variants()
                .iter()
                .filter_map(|format| format.to_possible_value())
                .map(|value| value.get_name().to_owned())
                .collect::<Vec<_>>()
                .join(", ")
        ))),
    }
}

fn is_step_summary(path: &Path) -> bool {
    std::env::var_os(STEP_SUMMARY).is_some_and(|summary| path == Path::new(&summary))
}

impl Target {
    /// Renders an outcome to the file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&self, outcome: &Outcome) -> Result<(), Error> {
        let path = &self.path;
        let text = match self.format {
            ReportFormat::Text => {
                anstream::adapter::strip_str(&render(outcome, ReportFormat::Text)).to_string()
            }
            other => render(outcome, other),
        };
        let written = if self.appends && path.exists() {
            let file = OpenOptions::new().append(true).open(path);
            // What stands there may not end its last line.
            file.and_then(|mut file| write!(file, "\n\n{text}"))
        } else {
            write_named(path, text.as_bytes())
        };
        written.map_err(Error::io("write", path))
    }

    /// That the file is not the one that is read.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn refuse_to_replace(&self, source: &Path) -> Result<(), Error> {
        let same = match (self.path.canonicalize(), source.canonicalize()) {
            (Ok(target), Ok(source)) => target == source,
            _ => false,
        };
        if same {
            return Err(Error::Usage(format!(
                "`--report {}` would replace the file that is read",
                self.path.display()
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_or_the_prefix_says_the_form() {
        for (named, format, path) in [
            ("a.md", ReportFormat::Markdown, "a.md"),
            ("out/a.json", ReportFormat::Json, "out/a.json"),
            ("a.txt", ReportFormat::Text, "a.txt"),
            ("a.html", ReportFormat::Html, "a.html"),
            ("a.xml", ReportFormat::Junit, "a.xml"),
            ("a.junit.xml", ReportFormat::Junit, "a.junit.xml"),
            ("a.sarif", ReportFormat::Sarif, "a.sarif"),
            ("a.sarif.json", ReportFormat::Sarif, "a.sarif.json"),
            (
                "a.codequality.json",
                ReportFormat::Gitlab,
                "a.codequality.json",
            ),
            (
                "x/gl-code-quality-report.json",
                ReportFormat::Gitlab,
                "x/gl-code-quality-report.json",
            ),
            ("github:log", ReportFormat::Github, "log"),
            ("markdown:a:b", ReportFormat::Markdown, "a:b"),
            ("junit:a.md", ReportFormat::Junit, "a.md"),
            ("other:a.md", ReportFormat::Markdown, "other:a.md"),
        ] {
            let found = target(Path::new(named)).unwrap();
            assert_eq!((found.format, found.path), (format, path.into()), "{named}");
        }
        for named in ["a", "a.pdf", "json", "other:a", "md"] {
            let error = target(Path::new(named)).unwrap_err().to_string();
            for (ending, _) in ENDINGS {
                let shown = ending.trim_end_matches(".json");
                assert!(error.contains(shown), "{ending}: {error}");
            }
        }
        assert!(target(Path::new("markdown:")).is_err());
    }
}
