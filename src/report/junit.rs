//! The report as JUnit XML, in the dialect that Jenkins' xUnit plugin describes (`junit-10.xsd`).
//!
//! A suite is a variant, a case one judged metric of a kernel, or a finding that names no metric.
//! `<failure>` is a regression or a difference from what was locked, `<error>` a case that could not
//! be judged, `<skipped>` one that is recorded, waived or a warning. There is a failure or an error
//! exactly where the check does not exit with 0.

use std::collections::{BTreeMap, HashMap};

use maud::{Markup, PreEscaped, html};

use super::print::{clean, one_line};
use super::rows::{Row, origin, provenance, several_shapes, title};
use super::screen::{first_line, no_verdict};
use super::weight::rank;
use crate::finding::{Compared, ExitCode, Finding};
use crate::judge::{Comparison, Mode, Outcome, VariantReport};
use crate::metric::Level;
use crate::terms::{VariantId, joined};
use crate::verdict::Verdict;

/// A `<testsuite>`.
struct Suite {
    name: String,
    properties: Vec<(&'static str, String)>,
    cases: Vec<Case>,
}

/// A `<testcase>`.
struct Case {
    name: String,
    result: Answer,
}

/// The result of a case.
enum Answer {
    Passed,
    Failure(Problem),
    Error(Problem),
    Skipped(String),
}

/// A failure or an error: its kind, its message, and the text within.
struct Problem {
    kind: String,
    message: String,
    text: String,
}

pub(super) fn render(outcome: &Outcome) -> String {
    let mut suites = suites(outcome);
    for suite in &mut suites {
        suite.number_names();
    }
    let count = |of: fn(&Answer) -> bool| -> usize {
        suites.iter().map(|suite| suite.count(of)).sum::<usize>()
    };
    let name = format!("sparsek-gate: {}", first_line(outcome));
    let report = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        testsuites name=(one_line(&name)) tests=(count(|_| true))
            failures=(count(Answer::failed)) errors=(count(Answer::erred)) {
            @for suite in &suites { "\n" (suite.xml()) }
            "\n"
        }
        "\n"
    };
    report.into_string()
}

fn suites(outcome: &Outcome) -> Vec<Suite> {
    let mut left: Vec<&Finding> = Vec::new();
    let mut of_comparison = attached(outcome, &mut left);
    let mut suites = Vec::new();
    let mut of_variant: HashMap<Option<&VariantId>, usize> = HashMap::new();
    for (at, report) in outcome.variants.iter().enumerate() {
        let shapes = several_shapes(report);
        let mut cases = Vec::new();
        for comparison in &report.comparisons {
            let findings = of_comparison.remove(&report.compared(comparison));
            let findings = findings.unwrap_or_default();
            // What is only recorded is no test.
            if comparison.verdict.is_none() && findings.is_empty() && report.mode != Mode::New {
                continue;
            }
            let row = Row::of(comparison, &shapes);
            cases.push(case(report, comparison, row, &findings));
        }
        of_variant.entry(Some(&report.variant)).or_insert(at);
        suites.push(Suite {
            name: title(report),
            properties: vec![
                ("origin", origin(outcome)),
                ("tier", report.tier.to_string()),
                ("compared", provenance(report)),
            ],
            cases,
        });
    }
    let other = |name: String, cases: Vec<Case>| Suite {
        name,
        properties: vec![("origin", origin(outcome))],
        cases,
    };
    for finding in left {
        let at = of_variant.entry(finding.variant.as_ref());
        let at = *at.or_insert_with(|| {
            suites.push(other(finding.subject(), Vec::new()));
            suites.len() - 1
        });
        suites[at].cases.push(Case {
            name: match &finding.kernel {
                Some(kernel) => format!("{} {kernel}", finding.code.as_str()),
                None => finding.code.as_str().to_owned(),
            },
            result: answer(&[finding]),
        });
    }
    suites.extend(no_verdict(outcome).map(|(name, text)| {
        let problem = Problem {
            kind: outcome.exit_code().meaning().to_owned(),
            message: text.lines().next().unwrap_or_default().to_owned(),
            text,
        };
        let (name, result) = (name.to_owned(), Answer::Error(problem));
        other("sparsek-gate".to_owned(), vec![Case { name, result }])
    }));
    suites.extend(outcome.same_programs.iter().map(|same| {
        let (variant, name) = (same.variant.to_string(), "same-program".to_owned());
        let result = Answer::Skipped(format!(
            "its program is that of the base {}, byte for byte: not measured",
            same.base
        ));
        other(variant, vec![Case { name, result }])
    }));
    suites
}

/// Findings by the comparison that they are about; the others are left.
fn attached<'a>(
    outcome: &'a Outcome,
    left: &mut Vec<&'a Finding>,
) -> BTreeMap<Compared<'a>, Vec<&'a Finding>> {
    let keys = |report: &'a VariantReport| {
        let comparisons = report.comparisons.iter();
        comparisons.map(|comparison| (report.compared(comparison), Vec::new()))
    };
    let mut of_comparison: BTreeMap<_, Vec<_>> = outcome.variants.iter().flat_map(keys).collect();
    for finding in &outcome.findings {
        let found = finding
            .compared()
            .and_then(|key| of_comparison.get_mut(&key));
        found.unwrap_or(left).push(finding);
    }
    of_comparison
}

fn case(report: &VariantReport, comparison: &Comparison, row: Row, findings: &[&Finding]) -> Case {
    let numbers = format!(
        "{} {} → {}, change {}, tolerance {}: {}",
        report.mode.reference(),
        row.reference,
        row.current,
        row.change,
        row.tolerance,
        row.why
    );
    let missing =
        comparison.verdict == Some(Verdict::NotMeasured) && comparison.level == Level::Deny;
    let error = |message: String, text: String| {
        let kind = Verdict::NotMeasured.as_str().to_owned();
        Answer::Error(Problem {
            kind,
            message,
            text,
        })
    };
    let result = match comparison.verdict {
        _ if !findings.is_empty() => match answer(findings) {
            // A warning does not replace a missing value.
            Answer::Skipped(message) if missing => error(message.clone(), message),
            answer => answer,
        },
        // It fails the check even without a finding, see `Outcome::exit_code`.
        _ if missing => error(row.why, numbers),
        None => Answer::Skipped(row.why),
        Some(Verdict::Pass | Verdict::Improved) => Answer::Passed,
        Some(_) => Answer::Skipped(numbers),
    };
    Case {
        name: format!("{} {}", row.kernel, row.metric),
        result,
    }
}

/// The result of all findings about one thing: the worst names it, the text contains all.
fn answer(findings: &[&Finding]) -> Answer {
    let denied = findings.iter().filter(|finding| finding.denies());
    let Some(worst) = denied.min_by_key(|finding| rank(finding.code.exit_code())) else {
        let messages = findings.iter().map(|finding| &finding.message);
        return Answer::Skipped(joined(messages, "; "));
    };
    let mut text = String::new();
    for finding in findings {
        text.push_str(&format!("{}\nnext: {}\n", finding.message, finding.next));
        if let Some(detail) = &finding.detail {
            text.push_str(detail);
            text.push('\n');
        }
    }
    let problem = Problem {
        kind: worst.code.as_str().to_owned(),
        message: worst.message.clone(),
        text,
    };
    match worst.code.exit_code() {
        ExitCode::Regressed | ExitCode::Baseline => Answer::Failure(problem),
        _ => Answer::Error(problem),
    }
}

impl Answer {
    fn failed(&self) -> bool {
        matches!(self, Answer::Failure(_))
    }

    fn erred(&self) -> bool {
        matches!(self, Answer::Error(_))
    }

    /// Without any white space besides: the schema allows none in an element without content.
    fn xml(&self) -> Markup {
        html! {
            @match self {
                Answer::Passed => {}
                Answer::Skipped(message) => { skipped message=(one_line(message)) {} }
                Answer::Failure(Problem { kind, message, text }) => {
                    failure type=(kind) message=(one_line(message)) { (clean(text)) }
                }
                Answer::Error(Problem { kind, message, text }) => {
                    error type=(kind) message=(one_line(message)) { (clean(text)) }
                }
            }
        }
    }
}

impl Suite {
    fn count(&self, of: fn(&Answer) -> bool) -> usize {
        self.cases.iter().filter(|case| of(&case.result)).count()
    }

    /// Services identify cases by their names, and a counter may have been judged twice.
    fn number_names(&mut self) {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for case in &mut self.cases {
            case.name = one_line(&case.name);
            let times = seen.entry(case.name.clone()).or_default();
            *times += 1;
            if *times > 1 {
                case.name = format!("{} #{times}", case.name);
            }
        }
    }

    fn xml(&self) -> Markup {
        let name = one_line(&self.name);
        html! {
            testsuite name=(name) tests=(self.cases.len()) failures=(self.count(Answer::failed))
                errors=(self.count(Answer::erred)) skipped=(self.count(|answer| matches!(answer, Answer::Skipped(_)))) {
                "\n  " properties {
                    @for (key, value) in &self.properties {
                        "\n    " property name=(key) value=(one_line(value)) {}
                    }
                    "\n  "
                }
                @for case in &self.cases {
                    "\n  " testcase name=(case.name) classname=(name) { (case.result.xml()) }
                }
                "\n"
            }
        }
    }
}
