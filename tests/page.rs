//! The report as a page and its pictures: in a browser, and as text.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::HashSet;
use std::path::PathBuf;

use crate::common::browser::{Browser, program};
use crate::common::outcomes::{every_verdict, large};
use crate::common::{Project, aloud, repository};
use serde_json::{Value as Json, json};
use sparsek_gate::finding::Code;
use sparsek_gate::judge::{Ended, Outcome};
use sparsek_gate::report::form;
use sparsek_gate::report::plot::{Picture, picture};
use sparsek_gate::trust::{Web, WebStyle};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
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

/// The same with the address of its repository, as a run on GitHub has it.
fn linked() -> Outcome {
    let mut outcome = every_verdict();
    outcome.web = Some(Web {
        address: "https://github.com/owner/name".to_owned(),
        style: WebStyle::Github,
        commit: COMMIT.to_owned(),
        folder: "gpu/".to_owned(),
    });
    outcome
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
    outcome.web = Some(Web {
        address: "javascript:document.title='ran'//".to_owned(),
        style: WebStyle::Gitlab,
        commit: COMMIT.to_owned(),
        folder: HOSTILE.to_owned(),
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
fn what_fails_first_is_shown_with_its_cause_and_the_rest_is_folded() {
    let mut outcome = every_verdict();
    outcome
        .findings
        .retain(|finding| finding.code == Code::Regressed && finding.denies());
    assert!(outcome.findings.len() > 8);
    let page = html(&outcome);
    let (_, section) = page.split_once("<section id=\"fails\"").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    let place = |text: &str| section.find(text).unwrap();
    // The first finding stands open, with what changed with it. The same kernel's others are below it.
    let first = place("`duration`".trim_matches('`'));
    assert!(
        first < place("class=\"cause\"") && place("class=\"cause\"") < place("more of this kernel")
    );
    assert!(place("more of this kernel") < place("class=\"brief\""));
    let in_full = section.split("class=\"brief\"").next().unwrap();
    let items = regex::Regex::new("<li class=\"bad\"><p class=\"what\">").unwrap();
    assert!(items.find_iter(in_full).count() >= 3);
    // Each of the others is one line until it is opened.
    let folded = section.matches("class=\"brief\"").count();
    let kernels: HashSet<_> = outcome
        .findings
        .iter()
        .map(|finding| (finding.variant.clone(), finding.kernel.clone()))
        .collect();
    assert_eq!(folded, kernels.len() - 3);
    // A short report has no contents.
    let contents = |outcome: &Outcome| html(outcome).contains("aria-label=\"Contents\"");
    assert!(contents(&outcome));
    outcome.findings.truncate(3);
    outcome.variants.truncate(2);
    assert!(!contents(&outcome));
}

#[test]
fn commits_and_lines_are_links_where_the_service_shows_them() {
    let page = html(&linked());
    let line =
        format!("https://github.com/owner/name/blob/{COMMIT}/gpu/kernels/faults/spills.cu#L");
    assert!(page.contains(&line), "{line}");
    assert!(page.contains(&format!(
        "href=\"https://github.com/owner/name/commit/{COMMIT}\""
    )));
    // The commits of both sides are in the data from which the script builds the variants.
    assert!(page.contains("[\"current\",\"a444a34168\",\"https://github.com/owner/name/commit/"));
    assert!(!html(&every_verdict()).contains("href=\"http"));
    assert!(!html(&hostile()).contains("javascript:"));
}

#[test]
fn a_finding_names_the_grid_where_one_kernel_has_several() {
    let mut outcome = every_verdict();
    let model = outcome
        .findings
        .iter()
        .find(|one| one.code == Code::Regressed);
    let model = model.unwrap().clone();
    outcome.findings = [[1, 1, 1], [64, 2, 1]]
        .map(|grid| model.clone().launched(grid, [128, 1, 1]))
        .to_vec();
    for format in ["text", "markdown", "html", "gitlab", "sarif", "github"] {
        let text = form(format)
            .unwrap()
            .render_to_file(&outcome)
            .replace('\\', "");
        let text = text.replace("%2C", ",");
        assert!(
            text.contains("grid (64, 2, 1), block (128, 1, 1)"),
            "{format}: {text}"
        );
    }
}

#[test]
fn pictures_show_what_was_measured_or_state_why_they_are_missing() {
    let recorded = recorded();
    let roofline = picture(&recorded, Picture::Roofline).unwrap();
    // 68.72 GFLOP in 257.20 us; the data sheet of an H200 promises 4.8 TB/s.
    assert!(roofline.contains("cp_async: 267 TFLOP/s"), "{roofline}");
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
    let page = file("page.html", &html(&linked()));
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

    // The contents lead to a variant that the script has not built yet.
    let mut long = large(300, 1, 2);
    for comparison in long.variants[..200]
        .iter_mut()
        .flat_map(|it| &mut it.comparisons)
    {
        comparison.verdict = None;
    }
    browser.open(&file("long.html", &html(&long)));
    browser.value("document.querySelectorAll('#troubled a')[15].click()");
    assert_eq!(
        browser.value("document.querySelectorAll('#troubled a').length"),
        20
    );
    let opened = browser.value("document.activeElement.closest('details').open");
    assert_eq!(opened, json!(true));
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
