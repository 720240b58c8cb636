//! Files that a report is written to, and the form that each asks for.

use rustix::fs::OFlags;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::form::{Capability, Form};
use super::forms::{FORMS, endings, form, form_of_file};
use crate::disk;
use crate::files::write_named;
use crate::finding::Error;
use crate::git::behind_own_links;
use crate::judge::Outcome;
use crate::terms::nearest;

/// Names the file of a step's summary, which other programs of the step write to as well.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// One file to write, in one form.
#[derive(Clone, Debug)]
pub struct Target {
    /// The form.
    pub format: &'static Form,
    /// The file.
    pub path: PathBuf,
    /// After what the file already contains.
    appends: bool,
}

/// The files of `--report`: `FILE`, whose ending selects the form, or `FORMAT:FILE`.
///
/// # Errors
/// [`Error::Usage`] where neither selects a form.
pub fn targets(named: &[PathBuf]) -> Result<Vec<Target>, Error> {
    named.iter().map(|name| target(name)).collect()
}

fn target(named: &Path) -> Result<Target, Error> {
    let text = named.to_string_lossy();
    let refused = |why: String| Error::Usage(format!("`--report {text}`{why}"));
    if text == "-" || text.ends_with(":-") {
        let why = ": a report is written to a file; `--format` selects what is printed";
        return Err(refused(why.to_owned()));
    }
    if text.starts_with(':') || text.ends_with(':') {
        let why = " names no form before the colon, or no file after it: check that the variable with its name is set";
        return Err(refused(why.to_owned()));
    }
    let stated = text
        .split_once(':')
        .and_then(|(name, file)| Some((form(name)?, Path::new(file))));
    let (format, path) = match stated {
        Some(stated) => stated,
        None => (by_ending(named, &text).map_err(refused)?, named),
    };
    let is_step_summary =
        std::env::var_os(STEP_SUMMARY).is_some_and(|summary| path == Path::new(&summary));
    Ok(Target {
        format,
        appends: stated.is_some() && format.has(Capability::StepSummary) && is_step_summary,
        path: behind_own_links(path.to_owned()),
    })
}

/// The form that the ending of a file's name selects, or why none.
fn by_ending(named: &Path, text: &str) -> Result<&'static Form, String> {
    let forms = FORMS.map(|form| form.name);
    if let Some((word, _)) = text.split_once(':')
        && !word.is_empty()
        && word.chars().all(|c| c.is_ascii_lowercase())
    {
        let forms = forms.join(", ");
        return Err(format!(": no form is called `{word}`: {forms}"));
    }
    let name = named.file_name().unwrap_or_default().to_string_lossy();
    if name.contains(',') && name.split(',').all(|one| form_of_file(one).is_some()) {
        return Err(": state `--report` once for each file".to_owned());
    }
    form_of_file(&name).ok_or_else(|| {
        let none = ": the ending of the file's name selects no form";
        let ending = name.rsplit('.').next().unwrap_or_default().to_lowercase();
        match nearest(&ending, &forms) {
            Some(form) => {
                let file = if text == form { "FILE" } else { text };
                format!("{none}: write `--report {form}:{file}`")
            }
            None => format!(
                "{none}. The endings are: {}. Or write a form before the name, as in `--report markdown:{text}`: {}",
                endings(),
                forms.join(", ")
            ),
        }
    })
}

impl Target {
    /// Renders an outcome to the file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&self, outcome: &Outcome) -> Result<(), Error> {
        let path = &self.path;
        let written = if self.appends && disk::is_there(path) {
            let file = disk::open_as(path, OFlags::WRONLY | OFlags::APPEND, 0);
            // The last line of the file may not be ended.
            file.and_then(|mut file| {
                file.write_all(b"\n\n")?;
                self.format.write(outcome, &mut file)
            })
        } else {
            write_named(path, |file| self.format.write(outcome, file))
        };
        written.map_err(Error::io("write", path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_or_the_prefix_selects_the_form() {
        let table = "
a.md markdown a.md
out/a.json json out/a.json
a.txt text a.txt
a.html html a.html
a.xml junit a.xml
a.junit.xml junit a.junit.xml
a.sarif sarif a.sarif
a.sarif.json sarif a.sarif.json
a.codequality.json gitlab a.codequality.json
x/gl-code-quality-report.json gitlab x/gl-code-quality-report.json
a.bmf.json bencher a.bmf.json
a.otava.csv otava a.otava.csv
github:log github log
markdown:a:b markdown a:b
junit:a.md junit a.md
./other:a.md markdown ./other:a.md";
        for row in table.trim().lines() {
            let (named, expected) = row.split_once(' ').unwrap();
            let found = target(Path::new(named)).unwrap();
            let found = format!("{} {}", found.format.name, found.path.display());
            assert_eq!(found, expected, "{named}");
        }
        for named in ["a", "a.pdf", "a.csv"] {
            let error = target(Path::new(named)).unwrap_err().to_string();
            let words = FORMS
                .iter()
                .flat_map(|form| [&[form.name], form.endings].concat());
            for word in words {
                assert!(error.contains(word), "{word}: {error}");
            }
        }
        for (named, meant) in [("json", "json:FILE"), ("out.JSON", "json:out.JSON")] {
            let error = target(Path::new(named)).unwrap_err().to_string();
            assert!(
                error.contains(&format!("write `--report {meant}`")),
                "{error}"
            );
        }
        assert!(target(Path::new("markdown:")).is_err());
        let unknown = target(Path::new("pdf:a.md")).unwrap_err().to_string();
        assert!(unknown.contains("no form is called `pdf`"), "{unknown}");
    }
}
