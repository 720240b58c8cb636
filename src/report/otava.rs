//! The values as a row of the CSV that Apache Otava's CSV importer reads: a header, a column of
//! time, columns of attributes, and a column for each metric.
//!
//! Otava reads every cell of a metric's column as a number, and refuses a file with an empty one. So
//! a metric that was not measured has no column.

use std::collections::BTreeSet;

use csv::{QuoteStyle, Terminator, WriterBuilder};
use jiff::Timestamp;

use super::print::one_line;
use super::rows::title;
use super::values::{Value, measured, origin_word};
use crate::judge::{Outcome, VariantReport};
use crate::terms::Tier;

pub(super) fn render(outcome: &Outcome) -> String {
    let values = measured(outcome);
    let name = |value: &Value<'_>| {
        let (title, metric) = (title(value.report), &value.comparison.metric);
        one_line(&format!("{title} {} {metric}", value.kernel))
    };
    let attributes = ["time", "commit", "gpu", "origin"].map(str::to_owned);
    let header: Vec<String> = attributes
        .into_iter()
        .chain(values.iter().map(name))
        .collect();
    let mut writer = WriterBuilder::new()
        .quote_style(QuoteStyle::Necessary)
        .terminator(Terminator::Any(b'\n'))
        .from_writer(Vec::new());
    // Writing to memory does not fail.
    let _ = writer.write_record(&header);
    if let Some((time, latest)) = latest(outcome) {
        let mut row = vec![
            time.to_string(),
            commit(latest),
            gpus(outcome),
            origin_word(outcome).to_owned(),
        ];
        row.extend(values.iter().map(|value| value.value.to_string()));
        let _ = writer.write_record(&row);
    }
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The report that was measured last, and when. A time that cannot be read is none.
fn latest(outcome: &Outcome) -> Option<(Timestamp, &VariantReport)> {
    let timed = outcome.variants.iter().filter_map(|report| {
        let time: Timestamp = report.current.created.parse().ok()?;
        Some((time, report))
    });
    timed.max_by_key(|(time, _)| *time)
}

/// The commit, without what says that files differed from it.
fn commit(report: &VariantReport) -> String {
    let git = report.current.git.as_deref().unwrap_or_default();
    let commit = git.split('+').next().unwrap_or_default();
    let is_hash = |commit: &&str| commit.chars().all(|c| c.is_ascii_hexdigit());
    Some(commit).filter(is_hash).unwrap_or_default().to_owned()
}

/// The GPU models that were measured on; of a static check, the compiler's target.
fn gpus(outcome: &Outcome) -> String {
    let of = |is_static: bool| -> BTreeSet<String> {
        let reports = outcome.variants.iter();
        reports
            .filter(|report| (report.tier == Tier::Static) == is_static)
            .map(|report| one_line(&report.gpu))
            .collect()
    };
    let measured = Some(of(false)).filter(|measured| !measured.is_empty());
    let named = measured.unwrap_or_else(|| of(true));
    named.into_iter().collect::<Vec<_>>().join(", ")
}
