//! Waivers: findings that are accepted for a time.

use super::whole::Outcome;
use crate::judge::compare::metric::Comparison;
use crate::metric::{Direction, Tolerance};
use crate::verdict::{Change, Verdict};
use jiff::civil::Date;

use crate::config::Waiver;
use crate::finding::{Code, Finding, Note, WarnReason};
use crate::terms::VariantId;

/// Makes warnings of the findings that a waiver covers, and reports waivers that are past their
/// last day or cover nothing. `today` is in UTC; `judged` says whether this run judged a value of
/// that metric of that variant: waivers of other values are not reported. `beyond` says how what a finding is
/// about is worse than a waiver covers.
pub fn apply_waivers(
    waivers: &[Waiver],
    today: Date,
    findings: &mut Vec<Finding>,
    judged: impl Fn(&VariantId, &str) -> bool,
    beyond: impl Fn(&Waiver, &Finding) -> Option<String>,
) {
    let last_day = |waiver: &Waiver| waiver.expires.filter(|day| today > *day);
    let expired = |waiver: &Waiver| last_day(waiver).is_some();
    let mut used = vec![false; waivers.len()];
    let mut too_small = vec![None; waivers.len()];
    for finding in findings.iter_mut() {
        let mut longest: Option<&Waiver> = None;
        for (at, waiver) in waivers.iter().enumerate() {
            if expired(waiver) || !covers(waiver, finding) {
                continue;
            }
            match beyond(waiver, finding) {
                Some(beyond) => too_small[at] = Some(beyond),
                None => {
                    used[at] = true;
                    // Of several the one that expires last.
                    if longest.is_none_or(|longest| longest.expires <= waiver.expires) {
                        longest = Some(waiver);
                    }
                }
            }
        }
        if let Some(waiver) = longest {
            let waived = finding.clone().warn_for(WarnReason::Waived);
            *finding = waived.with(Note::Waived {
                until: match waiver.expires {
                    Some(day) => day.to_string(),
                    None => "the merge".to_owned(),
                },
                who: waiver.who.clone(),
                reason: waiver.reason.clone(),
            });
        }
    }
    for ((waiver, used), too_small) in waivers.iter().zip(used).zip(too_small) {
        if used && too_small.is_none() || !judged(&waiver.variant, &waiver.metric) {
            continue;
        }
        let what = format!(
            "the waiver of `{}` by {} ({})",
            waiver.metric, waiver.who, waiver.reason
        );
        let message = match (last_day(waiver), too_small) {
            (Some(day), _) => {
                format!("{what} has expired: its last day was {day}, today is {today}")
            }
            (None, Some(beyond)) => format!("{what} covers less: {beyond}"),
            (None, None) => format!("{what} is not needed: no finding is covered by it"),
        };
        let finding = Finding::of(Code::WaiverUnused, &waiver.variant, message);
        findings.push(finding.metric(&waiver.metric));
    }
}

/// Whether a finding denies, and is about the value of the waived metric. Wrong numbers, altered
/// files and missing measurements are never waived.
fn covers(waiver: &Waiver, finding: &Finding) -> bool {
    WarnReason::Waived.excuses(finding.code)
        && finding.denies()
        && finding.concerns(&waiver.variant)
        && finding.metric.as_deref() == Some(&waiver.metric)
}

/// How a comparison is worse than a waiver of its metric covers, or that this is not known; `None` where
/// it covers it. What is open may be as much worse as its interval reaches.
fn beyond(waiver: &Waiver, comparison: &Comparison) -> Option<String> {
    let unit = comparison.unit.as_deref();
    let size = waiver.up_to.unwrap_or(match comparison.tolerance {
        Tolerance::RelativePercent(percent) => Tolerance::RelativePercent(2.0 * percent),
        Tolerance::Absolute(value) => Tolerance::Absolute(2.0 * value),
    });
    let reference = comparison
        .reference
        .map_or(f64::NAN, |reference| reference.value.abs());
    let is_open = comparison.verdict == Some(Verdict::Inconclusive);
    let band = comparison.band.filter(|_| is_open).unwrap_or(0.0);
    let change = comparison.change.map_or(f64::NAN, Change::value);
    let worse = match comparison.direction {
        Direction::Lower => change,
        Direction::Higher => -change,
        Direction::Equal => change.abs(),
    };
    let in_percent = matches!(comparison.change, Some(Change::RelativePercent(_)));
    let limit = match size {
        Tolerance::RelativePercent(percent) if !in_percent => reference * percent / 100.0,
        Tolerance::Absolute(value) if in_percent => 100.0 * value / reference,
        Tolerance::RelativePercent(limit) | Tolerance::Absolute(limit) => limit,
    };
    if worse + band <= limit {
        return None;
    }
    let interval = comparison.interval();
    let change = comparison.change.map(|change| change.display(unit));
    let change = interval.filter(|_| is_open).or(change);
    let of_zero = match size {
        Tolerance::RelativePercent(_) if reference == 0.0 => format!(
            ", a share of 0: state `up_to` in the metric's unit, as in `up_to = \"{worse}\"`"
        ),
        _ => String::new(),
    };
    Some(format!(
        "{} changed by {}, and it covers up to {}{of_zero}",
        comparison.kernel,
        change.unwrap_or_else(|| "an unknown amount".to_owned()),
        size.display(unit),
    ))
}

/// Applies the waivers of the configuration, as of today.
pub fn waive(waivers: &[Waiver], outcome: &mut Outcome) {
    let variants = &outcome.variants;
    let beyond = |waiver: &Waiver, finding: &Finding| {
        let about = finding.compared()?;
        let reports = variants.iter().flat_map(|report| {
            let comparisons = report.comparisons.iter();
            comparisons.map(move |comparison| (report.compared(comparison), comparison))
        });
        let mut compared = reports.filter(|(compared, _)| *compared == about);
        match compared.next() {
            Some((_, comparison)) => beyond(waiver, comparison),
            None => Some("its size is not known".to_owned()),
        }
    };
    let judged = |variant: &VariantId, metric: &str| {
        let comparisons = variants
            .iter()
            .filter(|report| report.variant == *variant)
            .flat_map(|report| &report.comparisons);
        comparisons
            .filter(|comparison| comparison.metric == metric)
            .any(|comparison| !matches!(comparison.verdict, None | Some(Verdict::NotMeasured)))
    };
    let today = jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date();
    apply_waivers(waivers, today, &mut outcome.findings, judged, beyond);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;
    use jiff::civil::date;

    fn id(variant: &str) -> VariantId {
        VariantId::try_from(format!("s/{variant}")).unwrap()
    }

    fn waiver(variant: &str, metric: &str, expires: Date) -> Waiver {
        Waiver {
            variant: id(variant),
            metric: metric.to_owned(),
            reason: "the new driver".to_owned(),
            who: "ada".to_owned(),
            expires: Some(expires),
            up_to: None,
        }
    }

    fn finding(code: Code, variant: &str, metric: &str) -> Finding {
        Finding::deny(code, &id(variant), "slower", "fix it").metric(metric)
    }

    const LAST: Date = date(2026, 12, 31);
    const AFTER: Date = date(2027, 1, 1);

    const WAIVED: &str = "slower; waived until 2026-12-31 by ada: the new driver";

    /// Of the duration of `v`.
    fn waivers() -> [Waiver; 1] {
        [waiver("v", "duration", LAST)]
    }

    fn slower() -> Finding {
        finding(Code::Regressed, "v", "duration")
    }

    /// On the given day, where everything was judged.
    fn applied(waivers: &[Waiver], today: Date, findings: &[Finding]) -> Vec<Finding> {
        let mut findings = findings.to_vec();
        apply_waivers(waivers, today, &mut findings, |_, _| true, |_, _| None);
        findings
    }

    fn denied(findings: &[Finding]) -> Vec<&str> {
        let denying = findings.iter().filter(|finding| finding.denies());
        denying
            .map(|finding| finding.metric.as_deref().unwrap_or(""))
            .collect()
    }

    fn codes(findings: &[Finding]) -> Vec<Code> {
        findings.iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn it_helps_on_its_last_day_and_not_on_the_next() {
        assert!(denied(&applied(&waivers(), LAST, &[slower()])).is_empty());
        let after = applied(&waivers(), AFTER, &[slower()]);
        assert_eq!(after[0], slower());
        assert_eq!(codes(&after), [Code::Regressed, Code::WaiverUnused]);
        assert_eq!(after[1].severity, Severity::Warn);
        assert_eq!(after[1].subject(), "s/v");
        assert_eq!(after[1].metric.as_deref(), Some("duration"));
        let message = &after[1].message;
        assert!(message.contains("its last day was 2026-12-31"), "{message}");
        // It says so too where there is nothing that it would let pass.
        let unused = applied(&waivers(), AFTER, &[]);
        assert_eq!(codes(&unused), [Code::WaiverUnused]);
    }

    #[test]
    fn only_what_is_about_a_value_is_waived() {
        for code in Code::ALL {
            let findings = applied(&waivers(), LAST, &[finding(*code, "v", "duration")]);
            let waived = findings[0].message.contains("waived until");
            assert!(!waived || findings[0].severity == Severity::Warn);
            let expected = [
                "regressed", "limit-exceeded", "inconclusive", "work-changed", "implausible",
            ];
            assert_eq!(waived, expected.contains(&code.as_str()), "{code:?}");
            assert_eq!(codes(&findings).len(), if waived { 1 } else { 2 });
        }
    }

    #[test]
    fn another_metric_another_variant_and_the_whole_variant_still_deny() {
        let found = [
            slower(),
            finding(Code::Regressed, "v", "dram_bw"),
            finding(Code::Regressed, "other", "duration"),
            Finding::deny(Code::WorkChanged, &id("v"), "", ""),
        ];
        let findings = applied(&waivers(), LAST, &found);
        assert_eq!(denied(&findings), ["dram_bw", "duration", ""]);
        assert_eq!(findings[0].severity, Severity::Warn);
        assert_eq!(findings.len(), 4);
    }

    #[test]
    fn every_finding_on_the_metric_is_waived_once() {
        let waivers = [
            waiver("v", "duration", date(2026, 11, 30)),
            waiver("v", "duration", LAST),
            waiver("v", "duration", date(2026, 1, 1)),
        ];
        let above = finding(Code::LimitExceeded, "v", "duration");
        let found = [slower().kernel("a"), above.kernel("b")];
        let findings = applied(&waivers, date(2026, 11, 21), &found);
        let expected = [Code::Regressed, Code::LimitExceeded, Code::WaiverUnused];
        assert_eq!(codes(&findings), expected);
        for finding in &findings[..2] {
            assert_eq!(finding.severity, Severity::Warn);
            assert_eq!(finding.message, WAIVED);
            assert_eq!(finding.next, "nothing, until 2026-12-31");
        }
    }

    #[test]
    fn a_waiver_that_covers_nothing_is_reported() {
        let warned = slower().warn_for(WarnReason::MetricLevel);
        for found in [&[][..], std::slice::from_ref(&warned)] {
            let findings = applied(&waivers(), LAST, found);
            assert_eq!(findings[..found.len()], *found);
            let unused = findings.last().unwrap();
            assert_eq!(unused.code, Code::WaiverUnused);
            assert_eq!(unused.severity, Severity::Warn);
            assert!(unused.next.starts_with("remove the waiver"));
        }
    }

    #[test]
    fn a_waiver_of_what_was_not_judged_says_nothing() {
        let waivers = [
            waiver("v", "duration", LAST),
            waiver("v", "dram_bw", LAST),
            waiver("other", "duration", LAST),
        ];
        for today in [LAST, AFTER] {
            let mut findings = Vec::new();
            let judged =
                |variant: &VariantId, metric: &str| *variant == id("v") && metric == "dram_bw";
            apply_waivers(&waivers, today, &mut findings, judged, |_, _| None);
            assert_eq!(findings.len(), 1);
            assert_eq!(findings[0].metric.as_deref(), Some("dram_bw"));
        }
    }
}
