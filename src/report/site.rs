//! The history of all variants as a static site: an index, and a page for each variant. The pages
//! load nothing, and the same history gives the same bytes.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use maud::{Markup, html};

use super::history::{change_text, sections};
use super::html::document;
use super::print::one_line;
use crate::files::{most, read_regular_up_to, write_atomically};
use crate::finding::Error;
use crate::history::{Course, PastVariant, Point, Trend};
use crate::metric::{Role, display_value};
use crate::profile::TOTAL;
use crate::terms::VariantId;
use crate::verdict::Change;

const INDEX: &str = "index.html";
/// What every page ends with, by which a later run knows that it may be replaced.
const MARK: &str = "<!-- written by sparsek-gate history --all -->\n";

/// One file of the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its name in the folder.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// The name of a variant's page. A dot is in no name of a suite or a variant.
pub fn page_name(variant: &VariantId) -> String {
    format!("{}.{}.html", variant.suite, variant.variant)
}

/// The pages: those of the variants that have a history, and the index.
pub fn history_site(past: &[PastVariant]) -> Vec<Page> {
    let locked = past.iter().filter(|one| !one.baselines.is_empty());
    let mut pages: Vec<Page> = locked
        .map(|one| Page {
            name: page_name(&one.variant),
            text: variant(one),
        })
        .collect();
    pages.push(Page {
        name: INDEX.to_owned(),
        text: index(past),
    });
    pages
}

fn finished(title: &str, body: &Markup) -> String {
    format!("{}{MARK}", document(title, body, None))
}

fn variant(past: &PastVariant) -> String {
    let subject = past.variant.to_string();
    let body = html! {
        header class="top" {
            p class="tool" { a href=(INDEX) { "All variants" } }
            h1 { (one_line(&subject)) }
            p class="lead" { "The locked baselines, one row for each acceptance." }
        }
        main { (sections(&past.baselines)) }
    };
    finished(&format!("History of {subject}"), &body)
}

/// The columns of the index.
const COLUMNS: [&str; 7] = [
    "variant",
    "locked for",
    "acceptances",
    "last accepted",
    "duration",
    "since the first",
    "last change of level",
];

fn index(past: &[PastVariant]) -> String {
    let absent: Vec<String> = past
        .iter()
        .filter(|one| one.baselines.is_empty())
        .map(|one| one_line(&one.variant.to_string()))
        .collect();
    let body = html! {
        header class="top" {
            p class="tool" { "sparsek-gate history" }
            h1 { "History of the baselines" }
            p class="lead" { "Each row is a locked baseline. Its page shows every acceptance, and each judged metric over time." }
        }
        main {
            section {
                div class="scroll" tabindex="0" role="region" aria-label="Baselines" {
                    table class="plain cards" {
                        thead { tr { @for name in COLUMNS { th scope="col" { (name) } } } }
                        tbody {
                            @for one in past { @for trend in &one.baselines { (row(one, trend)) } }
                        }
                    }
                }
                @if !absent.is_empty() {
                    p class="note" { "Not locked, or without a valid lock: " (absent.join(", ")) "." }
                }
            }
        }
    };
    finished("History of the baselines", &body)
}

fn row(past: &PastVariant, trend: &Trend) -> Markup {
    let last = trend.acceptances.last();
    let course = duration(trend);
    let known: Vec<Point> = course
        .map(|course| course.values.iter().flatten().copied().collect())
        .unwrap_or_default();
    let unit = course.and_then(|course| course.unit.as_deref());
    let latest = known.last().map(|point| display_value(point.value, unit));
    let since = match known.as_slice() {
        [first, .., last] if first.value > 0.0 => {
            let percent = (last.value / first.value - 1.0) * 100.0;
            Some(Change::RelativePercent(percent).display(unit))
        }
        _ => None,
    };
    let changed = course.and_then(|course| {
        let change = course.changes.last()?;
        Some(change_text(trend, course, change, false))
    });
    let accepted = last.map(|last| one_line(last.time.get(..10).unwrap_or(&last.time)));
    let cells = [
        Some(one_line(&trend.gpu)),
        Some(trend.acceptances.len().to_string()),
        accepted,
        latest,
        since,
        changed,
    ];
    html! {
        tr {
            th scope="row" { a href=(page_name(&past.variant)) { (one_line(&past.variant.to_string())) } }
            @for (name, cell) in COLUMNS[1..].iter().zip(&cells) {
                @match cell {
                    Some(cell) => td class="prose" data-label=(name) { (cell) },
                    None => td class="none" data-label=(name) { "–" },
                }
            }
        }
    }
}

/// The course of the duration: of all kernels together where that is judged, else of the slowest.
fn duration(trend: &Trend) -> Option<&Course> {
    let latest = |course: &Course| {
        let known = course.values.iter().flatten().next_back();
        known.map_or(f64::MIN, |point| point.value)
    };
    let of_time = || {
        let is_time = |course: &&Course| Role::of(&course.counter) == Some(Role::Duration);
        trend.metrics.iter().filter(is_time)
    };
    let total = of_time().find(|course| course.kernel == TOTAL);
    total.or_else(|| of_time().max_by(|a, b| latest(a).total_cmp(&latest(b))))
}

/// Checks that a site may be written to a folder: it does not exist, is empty, or has nothing but the
/// pages of an earlier run.
///
/// # Errors
/// [`Error::Usage`] names the file that would be lost or mixed in; [`Error::Io`].
pub fn refuse_foreign(folder: &Path) -> Result<(), Error> {
    let named = folder.display();
    if matches!(
        folder.extension().and_then(|it| it.to_str()),
        Some("svg" | "html")
    ) {
        return Err(Error::Usage(format!(
            "`--output {named}`: with `--all` it names a folder, not a file"
        )));
    }
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            return Err(Error::Usage(format!(
                "`--output {named}` is a file, and `--all` writes a folder"
            )));
        }
        Err(error) => return Err(Error::io("read", folder)(error)),
    };
    for entry in entries {
        let path = entry.map_err(Error::io("read", folder))?.path();
        if !is_own(&path) {
            return Err(Error::Usage(format!(
                "`--output {named}` contains {}, which `history --all` did not write\n  next: name a folder that does not exist, or is empty",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Whether a file is a page of an earlier run.
fn is_own(path: &Path) -> bool {
    let linked = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    let is_page = path.extension().is_some_and(|ending| ending == "html");
    !linked
        && is_page
        && read_regular_up_to(path, most::OUTCOME).is_ok_and(|text| text.ends_with(MARK.as_bytes()))
}

/// Writes the pages, each as a whole and the index last, and removes those of variants that are gone.
///
/// # Errors
/// Those of [`refuse_foreign`], or [`Error::Io`].
pub fn write_site(folder: &Path, pages: &[Page]) -> Result<(), Error> {
    refuse_foreign(folder)?;
    fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    for page in pages {
        let path = folder.join(&page.name);
        write_atomically(&path, page.text.as_bytes()).map_err(Error::io("write", &path))?;
    }
    for entry in fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let entry = entry.map_err(Error::io("read", folder))?;
        let name = entry.file_name();
        if !pages.iter().any(|page| name == *page.name) && is_own(&entry.path()) {
            let path = entry.path();
            fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    }
    Ok(())
}
