//! What the compiler made of each kernel, as one table: what a block takes, how full the chip gets and
//! what limits that, and the instructions by kind. Beside a reference a cell shows both values where
//! they differ.

use std::collections::BTreeMap;

use super::print::{cut_middle, one_line};
use crate::binary::Residency;
use crate::judge::{Mode, VariantReport};
use crate::metric::display_value;
use crate::profile::Profile;
use crate::terms::{Tier, counted};

/// The static metrics of a kernel by name.
type Values<'a> = BTreeMap<&'a str, f64>;

/// A compiled kernel, and the one that it is compared with.
struct CompiledRow<'a> {
    name: String,
    /// Whether kernels that only one side has are new and gone.
    of_two: bool,
    /// The compiler's target.
    arch: &'a str,
    was: Values<'a>,
    is: Values<'a>,
}

/// Characters of the widest kernel's name: the table fits 80 columns.
const NAME: usize = 26;
/// Kinds of instructions, and the metrics that count them.
const KINDS: [(&str, &[&str]); 5] = [
    ("tensor core", &["tensor_instructions"]),
    (
        "async copy",
        &["async_copy_instructions", "tma_instructions"],
    ),
    ("global memory", &["global_instructions"]),
    ("shared memory", &["shared_instructions"]),
    (
        "local memory",
        &["local_load_instructions", "local_store_instructions"],
    ),
];

/// The table of all kernels of static profiles; empty where there are none.
pub fn of_profiles(profiles: &[Profile]) -> String {
    let mut rows = Vec::new();
    for profile in profiles {
        for kernel in &profile.kernels {
            let metrics = kernel.metrics.iter();
            rows.push(CompiledRow {
                name: format!("{} {}", profile.variant, profile.label(kernel)),
                of_two: false,
                arch: &profile.identity.gpu,
                was: Values::new(),
                is: metrics
                    .filter_map(|(name, series)| Some((name.as_str(), series.value?)))
                    .collect(),
            });
        }
    }
    lines(&rows)
        .iter()
        .map(|line| format!("{line}\n"))
        .collect()
}

/// The kernels of the judged static profiles.
fn of_reports(reports: &[VariantReport]) -> Vec<CompiledRow<'_>> {
    let mut rows = Vec::new();
    for report in reports.iter().filter(|report| report.tier == Tier::Static) {
        let mut kernels: BTreeMap<&str, [Values<'_>; 2]> = BTreeMap::new();
        for one in &report.comparisons {
            let [was, is] = kernels.entry(&one.kernel).or_default();
            was.extend(one.reference.map(|side| (one.metric.as_str(), side.value)));
            is.extend(one.current.map(|side| (one.metric.as_str(), side.value)));
        }
        rows.extend(kernels.into_iter().map(|(kernel, [was, is])| CompiledRow {
            name: format!("{} {kernel}", report.variant),
            of_two: report.mode == Mode::Programs,
            arch: &report.gpu,
            was,
            is,
        }));
    }
    rows
}

impl CompiledRow<'_> {
    /// Whether a cell shows two values, or there is nothing to compare with.
    fn is_telling(&self) -> bool {
        let lines = self.cells();
        self.was.is_empty() || self.is.is_empty() || lines.iter().any(|cell| cell.contains('→'))
    }

    /// A value of both sides where they differ, else the one that there is.
    fn both(&self, show: impl Fn(&Values<'_>) -> Option<String>) -> String {
        match (show(&self.was), show(&self.is)) {
            (Some(was), Some(is)) if was != is => format!("{was} → {is}"),
            (_, Some(is)) => is,
            (Some(was), None) if self.is.is_empty() => was,
            (_, None) => "–".to_owned(),
        }
    }

    /// The name, what a thread and a block take, the occupancy, and the instructions by kind.
    fn cells(&self) -> [String; 6] {
        let number = |name| self.both(|side| Some(side.get(name)?.to_string()));
        let bytes = |side: &Values<'_>, names: &[&str]| {
            let values = names.iter().filter_map(|name| side.get(name));
            let all: Vec<f64> = values.copied().collect();
            (!all.is_empty()).then(|| display_value(all.iter().sum(), Some("byte")))
        };
        let spilled = |side: &Values<'_>| bytes(side, &["spill_bytes"]);
        let shared = |side: &Values<'_>| {
            let own = bytes(side, &["static_shared_bytes", "dynamic_shared_bytes"])?;
            let is_known = side.contains_key("dynamic_shared_bytes");
            Some(if is_known { own } else { format!("{own} + ?") })
        };
        let residency =
            |side: &Values<'_>| Residency::of(self.arch, |name| side.get(name).copied());
        let limiter = residency(&self.is).limiter();
        let percent = |side: &Values<'_>| {
            let percent = residency(side).percent()?;
            let most = percent.rsplit('–').next().unwrap_or_default();
            Some(match side.contains_key("dynamic_shared_bytes") {
                true => percent,
                false => format!("≤ {most}"),
            })
        };
        let occupancy =
            self.both(percent) + &limiter.map_or_else(String::new, |by| format!(", {by}"));
        let instructions = |side: &Values<'_>| side.get("instructions").map(f64::to_string);
        let kinds = KINDS.iter().filter_map(|(kind, names)| {
            let count = |side: &Values<'_>| {
                let counts = names.iter().filter_map(|name| side.get(name));
                counts.copied().reduce(|one, other| one + other)
            };
            let some = [&self.was, &self.is].map(|side| count(side).unwrap_or(0.0) > 0.0);
            let text = self.both(|side| Some(count(side)?.to_string()));
            (some != [false; 2]).then(|| format!("{text} {kind}"))
        });
        let stack = self.both(|side| bytes(side, &["stack_bytes"]));
        let stack = (stack != "0 byte" && stack != "–").then(|| format!("stack {stack}"));
        let only = match (self.of_two, self.was.is_empty(), self.is.is_empty()) {
            (true, true, _) => "new: ",
            (true, _, true) => "gone: ",
            _ => "",
        };
        let mut more = vec![format!("{only}{} instructions", self.both(instructions))];
        more.extend(kinds);
        more.extend(stack);
        [
            cut_middle(&one_line(&self.name), NAME),
            number("registers"),
            self.both(spilled),
            self.both(shared),
            occupancy,
            more.join(", "),
        ]
    }
}

/// The table of all kernels.
pub(super) fn all(reports: &[VariantReport]) -> Vec<String> {
    lines(&of_reports(reports))
}

/// The table of the kernels that changed, or that are compared with nothing, as many as there is room for.
pub(super) fn changed(reports: &[VariantReport], most: usize) -> Vec<String> {
    let rows = of_reports(reports).into_iter();
    let telling: Vec<_> = rows.filter(CompiledRow::is_telling).collect();
    let shown = telling.len().min(most);
    let mut table = lines(&telling[..shown]);
    if telling.len() > shown {
        let more = counted(telling.len() - shown, "kernel", "kernels");
        table.push(format!("{more} more (-v)"));
    }
    table
}

/// The table, two lines a kernel; empty without any.
fn lines(rows: &[CompiledRow<'_>]) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let mut table =
        vec![["kernel", "registers", "spilled", "shared", "occupancy", ""].map(str::to_owned)];
    table.extend(rows.iter().map(CompiledRow::cells));
    let width = |at: usize| {
        let cells = table.iter().map(|cells| cells[at].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..4).map(width).collect();
    let mut lines = Vec::new();
    for [name, registers, spilled, shared, occupancy, more] in &table {
        let [a, b, c, d] = [0, 1, 2, 3].map(|at| widths[at]);
        lines.push(format!(
            "{name:<a$}  {registers:>b$}  {spilled:>c$}  {shared:>d$}  {occupancy}"
        ));
        if !more.is_empty() {
            lines.push(format!("  {more}"));
        }
    }
    lines
}
