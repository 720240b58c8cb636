//! The report as one self-contained page: no network, no framework, no font from elsewhere.
//!
//! The document contains what a reader needs first. The tables and the strips of samples, which may
//! be tens of thousands, are in it as JSON and are built when their part is opened. The policy in the
//! page's head admits its own style and script by hash, and nothing else.

mod data;
mod findings;
mod prose;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use self::findings::{Listed, commit};
use super::form::Form;
use super::plot::{Drawing, PLOT_STYLE, Size, THEME, ladders, rooflines, troubled_strips};
use super::print::one_line;
use super::rows::{chosen_launches, counts, gpus, origin, reused, same_programs, time};
use crate::finding::{ExitCode, Severity};
use crate::judge::Outcome;
use crate::trust::Authority;

const PAGE_STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A report of more findings, or of more variants, has contents.
const LONG: usize = 6;
/// Elements of pictures that are in the document.
const PICTURE_ELEMENTS: usize = 800;

/// The form.
pub(super) const FORM: Form = Form {
    name: "html",
    help: "One self-contained page",
    endings: &[".html"],
    capabilities: &[],
    render,
};

fn render(outcome: &Outcome) -> String {
    let code = outcome.exit_code();
    let (word, _) = word(code);
    let title = format!("{word}: {} – sparsek-gate", code.meaning());
    let listed = [Severity::Deny, Severity::Warn].map(|severity| Listed::of(outcome, severity));
    let body = html! {
        a class="skip" href="#main" { "Skip to the findings" }
        (head(outcome))
        main id="main" {
            (contents(outcome, &listed))
            @for of_severity in &listed { (of_severity.section(outcome)) }
            (pictures(outcome))
            section id="variants" aria-labelledby="variants-title" {
                h2 id="variants-title" { "Variants" }
                noscript { p class="note" { "A script in this page builds the tables and the samples of each variant, and scripts do not run here. " code { "sparsek-gate report OUTCOME.json --format markdown" } " writes them as text." } }
            }
        }
        footer { "sparsek-gate " (env!("CARGO_PKG_VERSION")) ", outcome schema " (outcome.schema) ". This page is one file and loads nothing." }
    };
    document(&title, &body, Some(&data::embedded(outcome, &listed)))
}

/// Where the parts of a long report are. The script adds the variants that need a reader.
fn contents(outcome: &Outcome, listed: &[Listed<'_>]) -> Markup {
    let findings: usize = listed.iter().map(Listed::count).sum();
    if findings <= LONG && outcome.variants.len() <= LONG {
        return html! {};
    }
    html! {
        nav class="contents" aria-label="Contents" {
            ul {
                @for part in listed.iter().filter(|part| part.count() > 0) {
                    li { a href=(format!("#{}", part.id())) { (part.title()) } " " span class="count" { (part.count()) } }
                }
                li { a href="#pictures" { "Pictures" } }
                li { a href="#variants" { "Variants" } " " span class="count" { (outcome.variants.len()) } }
            }
            ul id="troubled" {}
        }
    }
}

/// A whole page. `data` is JSON for the script.
pub(super) fn document(title: &str, body: &Markup, data: Option<&str>) -> String {
    let style = format!("{THEME}{PLOT_STYLE}{PAGE_STYLE}");
    let mut policy = format!(
        "default-src 'none'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'",
        hash(&style)
    );
    if data.is_some() {
        policy.push_str(&format!("; script-src '{}'", hash(SCRIPT)));
    }
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (one_line(title)) }
                style { (PreEscaped(&style)) }
            }
            body {
                (body)
                @if let Some(data) = data {
                    script type="application/json" id="data" { (PreEscaped(data)) }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        }
    };
    page.into_string()
}

/// The hash by which a policy admits a text.
fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}

/// A picture for a page and the same for a phone, of which the style shows one.
pub(super) fn figure(wide: &Drawing, narrow: &Drawing) -> Markup {
    html! {
        figure {
            h3 { (one_line(&wide.title)) }
            (wide.inline())
            (narrow.inline())
            figcaption { (one_line(&wide.caption)) }
        }
    }
}

/// The word of an exit code, and the class that colours it.
fn word(code: ExitCode) -> (&'static str, &'static str) {
    match code {
        ExitCode::Pass => ("PASS", "good"),
        ExitCode::Inconclusive => ("OPEN", "open"),
        _ => ("FAIL", "bad"),
    }
}

fn mark(class: &str) -> &'static str {
    match class {
        "good" => "✓",
        "open" => "?",
        _ => "✕",
    }
}

fn head(outcome: &Outcome) -> Markup {
    let code = outcome.exit_code();
    let (word, class) = word(code);
    html! {
        header class=(format!("top {class}")) {
            p class="tool" { "sparsek-gate" }
            h1 {
                span class="word" { span class="mark" aria-hidden="true" { (mark(class)) } (word) }
                " " span class="meaning" { (code.meaning()) }
            }
            ul class="counts" aria-label="Comparisons by verdict" {
                @for count in counts(outcome) { li { (count) } }
                li class="exit" { "exit code " (code as u8) }
            }
            p class="origin" { (one_line(&origin(outcome))) }
            (commits(outcome))
            @if let Some(chosen) = chosen_launches(outcome) { p class="origin" { (one_line(&chosen)) } }
            @if let Some(time) = time(outcome) { p class="origin" { (time) } }
            @for line in gpus(outcome) { p class="origin" { (one_line(&line)) } }
            @if let Some(reused) = reused(outcome) { p class="origin" { (one_line(&reused)) } }
            @for line in same_programs(outcome) { p class="origin" { (one_line(&line)) } }
            @if let Some(ended) = &outcome.ended {
                p class="ended" role="alert" {
                    strong { "The run ended before everything was judged: " }
                    (one_line(&ended.message))
                }
            }
        }
    }
}

/// Links to the commits that the report is about, where the service shows them.
fn commits(outcome: &Outcome) -> Markup {
    let Some(web) = &outcome.web else {
        return html! {};
    };
    let rules = match &outcome.authority {
        Authority::Revision { commit, .. } => Some(commit.as_str()),
        Authority::WorkingTree => None,
    };
    html! {
        p class="origin" {
            "Checked: " (commit(outcome, &web.commit))
            @if let Some(rules) = rules { "; rules and locks: " (commit(outcome, rules)) }
        }
    }
}

fn pictures(outcome: &Outcome) -> Markup {
    let pairs = |of: fn(&Outcome, Size) -> Vec<Result<Drawing, String>>| {
        of(outcome, Size::Wide)
            .into_iter()
            .zip(of(outcome, Size::Narrow))
            .collect::<Vec<_>>()
    };
    let ladders = pairs(ladders);
    let rooflines = pairs(rooflines);
    let mut room = PICTURE_ELEMENTS;
    let mut left_out = 0;
    let mut drawn = Vec::new();
    // The ladder and the roofline of a suite are shown together.
    for (ladder, roofline) in ladders.iter().zip(&rooflines) {
        for (wide, narrow) in [ladder, roofline] {
            let picture = match (wide, narrow) {
                (Ok(wide), Ok(narrow)) => figure(wide, narrow),
                (Err(why), _) | (_, Err(why)) => html! { p class="note" { (one_line(why)) } },
            };
            let elements = picture.0.matches("</").count();
            if elements > room {
                left_out += 1;
                continue;
            }
            room -= elements;
            drawn.push(picture);
        }
    }
    let strips = troubled_strips(outcome, Size::Wide).zip(troubled_strips(outcome, Size::Narrow));
    html! {
        section id="pictures" aria-labelledby="pictures-title" {
            h2 id="pictures-title" { "Pictures" }
            @if ladders.is_empty() { p class="note" { "No program ran, so there is nothing to draw." } }
            @if let Some((wide, narrow)) = &strips { (figure(wide, narrow)) }
            @for picture in &drawn { (picture) }
            @if left_out > 0 {
                p class="note" { (left_out) " further pictures are left out to keep this page small." }
            }
        }
    }
}
