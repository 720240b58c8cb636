//! The report as a page and its pictures: in a browser, and as text.

use std::collections::HashSet;

use crate::common::outcomes::{every_verdict, large, render};
use sparsek_gate::finding::Code;
use sparsek_gate::judge::{Ended, Outcome};
use sparsek_gate::report::form;

const HOSTILE: &str = "<img src=x onerror=\"document.title='ran'\">]]></script><script>document.title='ran'</script>\u{202e}`x`";

fn html(outcome: &Outcome) -> String {
    render(form("html").unwrap(), outcome)
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

#[test]
fn a_page_of_a_thousand_kernels_is_small_and_has_few_elements() {
    let tag = regex::Regex::new("<[a-zA-Z]").unwrap();
    for (variants, kernels) in [(1000, 1), (1, 1000)] {
        let page = html(&large([variants, kernels, 30]));
        assert!(page.len() < 3_000_000, "{} bytes", page.len());
        let count = tag.find_iter(&page).count();
        assert!(count < 50_000, "{count} elements");
        // What fails is in it, however much else is left out.
        assert!(page.contains("gemm_0_0"), "{variants} × {kernels}");
        assert!(page.contains("rows are left out"), "{variants} × {kernels}");
    }
}

#[test]
fn a_page_says_what_the_other_forms_say() {
    let escaped = |text: &str| {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        text.replace('>', "&gt;").replace('"', "&quot;")
    };
    let outcome = every_verdict();
    let page = html(&outcome);
    let mut text = Vec::new();
    form("text").unwrap().write(&outcome, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    // The lines at the top, and every cell of the tables, which have the same rows.
    for line in text.lines().take(2) {
        assert!(page.contains(&escaped(line)), "{line}");
    }
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
                let cell = format!("<td>{}</td>", escaped(cell));
                assert!(page.contains(&cell), "{cell} of {line}");
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
    assert!(!page.contains("<script") && !page.contains("</script"));
    assert!(!page.contains('\u{202e}'));
    // The name of SVG is no address.
    let loads = page.replace("http://www.w3.org/2000/svg", "");
    for from in ["http://", "https://", "url("] {
        assert!(!loads.contains(from), "{from}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn what_fails_first_is_shown_in_full_and_the_rest_is_folded() {
    let mut outcome = every_verdict();
    outcome
        .findings
        .retain(|finding| finding.code == Code::Regressed && finding.denies());
    assert!(outcome.findings.len() > 8);
    let page = html(&outcome);
    let (_, section) = page.split_once("<section id=\"fails\"").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    let folded = section.matches("class=\"brief\"").count();
    let kernels: HashSet<_> = outcome
        .findings
        .iter()
        .map(|finding| (finding.variant.clone(), finding.kernel.clone()))
        .collect();
    assert_eq!(folded, kernels.len() - 3);
    let (in_full, _) = section.split_once("class=\"brief\"").unwrap();
    assert!(in_full.contains("more of this kernel"));
}
