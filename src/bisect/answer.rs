//! What the outcome of one commit, measured beside the good one, says about it.

use serde::Serialize;

use super::search::Answer;
use crate::finding::{Code, Finding};
use crate::judge::{Comparison, Outcome, VariantReport};
use crate::terms::Tier;
use crate::verdict::{Change, Verdict};

/// The comparison that decided about a commit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seen {
    /// The kernel.
    pub kernel: String,
    /// Against the good commit; positive is a larger value.
    pub change: Option<Change>,
    /// Half-width of the band around it, in its terms.
    pub band: Option<f64>,
    /// The verdict.
    pub verdict: Option<Verdict>,
    /// Unit of the metric.
    pub unit: Option<String>,
}

impl Seen {
    fn of(comparison: &Comparison) -> Seen {
        Seen {
            kernel: comparison.kernel.clone(),
            change: comparison.change,
            band: comparison.band,
            verdict: comparison.verdict,
            unit: comparison.unit.clone(),
        }
    }

    /// `+3.10 % ±0.20 %`.
    pub fn words(&self) -> String {
        let unit = self.unit.as_deref();
        let Some(change) = self.change else {
            return "–".to_owned();
        };
        let band = self.band.filter(|band| band.is_finite());
        let band = band.map(|band| format!(" ±{}", change.with(band).magnitude(unit)));
        format!("{}{}", change.display(unit), band.unwrap_or_default())
    }
}

/// What a finding that fails a check says about the answer.
#[derive(PartialEq)]
enum Spoils {
    /// Nothing: the verdicts say it.
    Nothing,
    /// The kernels or their work differ: a slower result is bad, and an equal one proves nothing.
    Good,
    /// The measurement says nothing.
    Both,
}

fn spoils(finding: &Finding) -> Spoils {
    match finding.code {
        _ if !finding.denies() => Spoils::Nothing,
        Code::Regressed | Code::LimitExceeded => Spoils::Nothing,
        Code::Inconclusive | Code::NotMeasured if finding.metric.is_some() => Spoils::Nothing,
        Code::WorkChanged
        | Code::KernelGone
        | Code::KernelNew
        | Code::KernelRenamed
        | Code::LaunchChanged => Spoils::Good,
        _ => Spoils::Both,
    }
}

/// The comparisons of a metric.
fn of_metric<'r>(
    reports: impl IntoIterator<Item = &'r VariantReport>,
    metric: &str,
) -> Vec<&'r Comparison> {
    let measured = |report: &&VariantReport| report.tier != Tier::Static;
    let reports = reports.into_iter().filter(measured);
    let all = reports.flat_map(|report| &report.comparisons);
    all.filter(|one| one.metric == metric).collect()
}

/// Whether more samples may answer.
pub(super) fn is_open(report: &VariantReport, metric: &str) -> bool {
    let comparisons = of_metric([report], metric);
    let worse = |one: &&Comparison| one.verdict == Some(Verdict::Regressed);
    let unsure = |one: &&Comparison| one.open && !one.not_worse;
    !comparisons.iter().any(worse) && comparisons.iter().any(unsure)
}

/// The answer, why it is so, and the comparison that decided.
pub(super) fn answer(outcome: &Outcome, metric: &str) -> (Answer, String, Option<Seen>) {
    let comparisons = of_metric(&outcome.variants, metric);
    let spoiled = |what: Spoils| {
        let mut findings = outcome.findings.iter();
        findings.find(|finding| spoils(finding) == what)
    };
    let with = |wanted: fn(&Comparison) -> bool| comparisons.iter().find(|one| wanted(one));
    let seen = |one: &&Comparison| Some(Seen::of(one));
    if let Some(finding) = spoiled(Spoils::Both) {
        return (Answer::Skip, finding.message.clone(), None);
    }
    if let Some(worse) = with(|one| one.verdict == Some(Verdict::Regressed)) {
        return (Answer::Bad, worse.why.clone(), seen(worse));
    }
    if let Some(finding) = spoiled(Spoils::Good) {
        let why = format!("{}, and `{metric}` is not worse", finding.message);
        return (Answer::Skip, why, None);
    }
    let settled = |one: &Comparison| {
        one.not_worse || matches!(one.verdict, Some(Verdict::Pass | Verdict::Improved))
    };
    if let Some(open) = comparisons.iter().find(|one| !settled(one)) {
        let answer = match open.open {
            true => Answer::Open,
            false => Answer::Skip,
        };
        return (answer, open.why.clone(), seen(open));
    }
    match comparisons.first() {
        Some(first) => (Answer::Good, first.why.clone(), seen(first)),
        None => {
            let why = format!("`{metric}` was not measured on both sides");
            (Answer::Skip, why, None)
        }
    }
}
