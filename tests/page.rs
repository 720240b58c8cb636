//! The report as a page and its pictures: in a browser, and as text.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use std::collections::HashSet;
use std::path::PathBuf;

use common::browser::{Browser, program};
use common::outcomes::{every_verdict, large};
use common::{Project, aloud, repository};
use serde_json::{Value as Json, json};
use sparsek_gate::judge::{Ended, Outcome};
use sparsek_gate::report::form;
use sparsek_gate::report::plot::{Picture, picture};

const HOSTILE: &str = "<img src=x onerror=\"document.title='ran'\">]]></script><script>document.title='ran'</script>\u{202e}`x`";

fn html(outcome: &Outcome) -> String {
    form("html").unwrap().render(outcome)
}

/// The repository's kernels, as they were recorded on an H200.
fn recorded() -> Outcome {
    let from = repository().join("ci/recordings/h200");
    let ran = Project::whole()
        .run(&[
            "check",
            "--from",
            from.to_str().unwrap(),
            "--format",
            "json",
        ])
        .exits(0);
    serde_json::from_str(&ran.out).unwrap()
}

/// Names, messages and outputs that a program may have chosen.
fn hostile() -> Outcome {
    let mut outcome = every_verdict();
    for report in &mut outcome.variants {
        report.gpu = HOSTILE.to_owned();
        report.reference.created = HOSTILE.to_owned();
        for (at, comparison) in report.comparisons.iter_mut().enumerate() {
            comparison.kernel = format!("{HOSTILE}{at}");
            comparison.metric.push_str(HOSTILE);
            comparison.why = HOSTILE.to_owned();
            comparison.unit = comparison
                .unit
                .as_ref()
                .map(|unit| format!("{unit}{HOSTILE}"));
        }
    }
    for finding in &mut outcome.findings {
        finding.message = HOSTILE.to_owned();
        finding.next = HOSTILE.to_owned();
        finding.detail = Some(HOSTILE.to_owned());
    }
    outcome.ended = Some(Ended {
        message: HOSTILE.to_owned(),
        exit_code: 3,
    });
    outcome
}

/// Elements that a browser makes of the document itself.
fn elements(page: &str) -> usize {
    let document = page.split("<script").next().unwrap();
    let tag = regex::Regex::new("<[a-zA-Z]").unwrap();
    tag.find_iter(document).count() + page.matches("<script").count()
}

#[test]
fn a_page_of_a_thousand_kernels_is_small_and_has_few_elements() {
    for (variants, kernels) in [(1000, 1), (1, 1000)] {
        let page = html(&large(variants, kernels, 30));
        assert!(page.len() < 5_000_000, "{} bytes", page.len());
        let count = elements(&page);
        assert!(count < 1_500, "{count} elements");
        // What fails is in it, however much else is left out.
        assert!(page.contains("kernel_0_0"), "{variants} × {kernels}");
    }
}

/// Every text in a JSON value.
fn strings<'a>(json: &'a Json, found: &mut HashSet<&'a str>) {
    match json {
        Json::String(text) => {
            found.insert(text);
        }
        Json::Array(values) => values.iter().for_each(|value| strings(value, found)),
        Json::Object(values) => values.values().for_each(|value| strings(value, found)),
        _ => {}
    }
}

#[test]
fn a_page_says_what_the_other_forms_say() {
    let outcome = every_verdict();
    let page = html(&outcome);
    let text = form("text").unwrap().render_to_file(&outcome);
    let (headline, _) = text.split_once('\n').unwrap();
    let (word, meaning) = headline.split_once(": ").unwrap();
    assert!(page.contains(word));
    assert!(page.contains(&meaning[..meaning.find(" (").unwrap()]));
    // Every cell of the tables of the text, which has the same rows.
    let data = page.split("id=\"data\">").nth(1).unwrap();
    let data: Json = serde_json::from_str(data.split("</script>").next().unwrap()).unwrap();
    let mut shown = HashSet::new();
    strings(&data, &mut shown);
    let mut rows = 0;
    for line in text.lines() {
        let cells: Vec<&str> = line
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .collect();
        if line.starts_with(' ') && cells.len() >= 8 && cells[0] != "metric" {
            rows += 1;
            for cell in cells {
                assert!(shown.contains(cell), "{cell:?} of {line}");
            }
        }
    }
    assert!(rows > 10, "{rows} rows in\n{text}");
    for finding in &outcome.findings {
        assert!(page.contains(finding.code.as_str()));
    }
    let mut ended = outcome;
    ended.ended = Some(Ended {
        message: "no GPU is here".to_owned(),
        exit_code: 3,
    });
    assert!(html(&ended).contains("no GPU is here"));
}

#[test]
fn a_page_loads_nothing_and_runs_nothing_that_it_was_given() {
    let page = html(&hostile());
    assert!(!page.contains("<img"));
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(!page.contains('\u{202e}'));
    // The name of SVG is no address.
    let loads = page.replace("http://www.w3.org/2000/svg", "");
    for from in ["http://", "https://", "url("] {
        assert!(!loads.contains(from), "{from}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn pictures_show_what_was_measured_or_state_why_they_are_missing() {
    let recorded = recorded();
    let roofline = picture(&recorded, Picture::Roofline).unwrap();
    // 68.72 GFLOP in 270.66 us; the data sheet of an H200 promises 4.8 TB/s.
    assert!(roofline.contains("cp_async: 254 TFLOP/s"), "{roofline}");
    assert!(roofline.contains("DRAM 4.8"), "{roofline}");
    assert!(roofline.contains("tensor pipe"), "{roofline}");
    let ladder = picture(&recorded, Picture::Ladder).unwrap();
    assert!(ladder.contains("cp_async"));
    assert!(picture(&recorded, Picture::Samples).is_ok());
    let mut undeclared = recorded.clone();
    for report in &mut undeclared.variants {
        report.work.flop = None;
    }
    let why = picture(&undeclared, Picture::Roofline).unwrap_err();
    assert!(why.contains("declares no FLOP"), "{why}");
    assert!(html(&undeclared).contains("declares no FLOP"));

    // By the counter and never by the alias.
    let mut renamed = recorded.clone();
    for comparison in renamed.variants.iter_mut().flat_map(|v| &mut v.comparisons) {
        comparison.metric = format!("m{}", comparison.metric.len());
        comparison.metric.push_str(&comparison.counter);
    }
    let drawn = picture(&renamed, Picture::Roofline).unwrap();
    assert_eq!(drawn, roofline);
}

#[test]
fn the_page_works_in_a_browser_at_every_width_and_in_both_themes() {
    let Some(program) = program() else {
        let how = "no Chromium: set CHROMIUM, or install one (apt-get install chromium)";
        assert!(std::env::var_os("CI").is_none(), "{how}");
        aloud(&format!(
            "SKIPPED: the page was not looked at in a browser, {how}"
        ));
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let page = file("page.html", &html(&every_verdict()));
    let mut browser = Browser::start(&program);
    for (width, scheme) in [
        (1280, "light"),
        (390, "dark"),
        (390, "light"),
        (1280, "dark"),
    ] {
        browser.look(width, 900, scheme);
        browser.open(&page);
        browser.value(
            "document.querySelectorAll('#variants > div > details').forEach(d => d.open = true)",
        );
        browser.value("new Promise(done => setTimeout(done, 50))");
        browser.value("document.querySelectorAll('details').forEach(d => d.open = true)");
        browser.value("new Promise(done => setTimeout(done, 50))");
        assert_eq!(browser.complaints(), Vec::<String>::new());
        assert_eq!(browser.requests().len(), 1, "{:?}", browser.requests());
        let overflow = browser.value("document.documentElement.scrollWidth - innerWidth");
        assert_eq!(overflow.as_i64().unwrap().max(0), 0, "{width} {scheme}");
        let ground = browser.value("getComputedStyle(document.body).backgroundColor");
        let expected = if scheme == "dark" {
            "rgb(18, 22, 27)"
        } else {
            "rgb(255, 255, 255)"
        };
        assert_eq!(ground, expected);
    }

    browser.open(&page);
    let shut = "document.querySelector('#variants details:not([open])')";
    assert_eq!(
        browser.value(&format!("{shut}.querySelectorAll('tr').length")),
        0
    );
    browser.value(&format!("globalThis.box = {shut}; box.open = true"));
    browser.value("new Promise(done => setTimeout(done, 50))");
    let rows = browser
        .value("box.querySelectorAll('tbody tr').length + box.querySelectorAll('li').length");
    assert!(rows.as_u64().unwrap() > 0);

    let page = file("hostile.html", &html(&hostile()));
    browser.open(&page);
    browser.value("document.querySelectorAll('details').forEach(d => d.open = true)");
    browser.value("new Promise(done => setTimeout(done, 50))");
    browser.value("document.querySelectorAll('details').forEach(d => d.open = true)");
    browser.value("new Promise(done => setTimeout(done, 50))");
    assert_ne!(browser.value("document.title"), "ran");
    assert_eq!(browser.value("document.images.length"), 0);
    assert_eq!(browser.value("document.scripts.length"), 2);
    assert_eq!(browser.requests().len(), 1, "{:?}", browser.requests());
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let seen = browser.value("document.body.innerText.includes('<img src=x onerror=')");
    assert_eq!(seen, json!(true));

    let outcome = hostile();
    for (name, what) in [
        ("ladder.svg", Picture::Ladder),
        ("samples.svg", Picture::Samples),
    ] {
        if let Ok(drawn) = picture(&outcome, what) {
            browser.open(&file(name, &drawn));
            let well_formed = "document.documentElement.tagName + document.querySelectorAll('parsererror').length";
            assert_eq!(browser.value(well_formed), "svg0", "{name}");
            assert_eq!(
                browser.value("document.querySelectorAll('img,script').length"),
                0
            );
        }
    }
    let recorded = recorded();
    for (name, what) in [
        ("roofline.svg", Picture::Roofline),
        ("ladder.svg", Picture::Ladder),
        ("samples.svg", Picture::Samples),
    ] {
        browser.open(&file(name, &picture(&recorded, what).unwrap()));
        let well_formed =
            "document.documentElement.tagName + document.querySelectorAll('parsererror').length";
        assert_eq!(browser.value(well_formed), "svg0", "{name}");
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{name}");
    }
}
