//! The kernels of a recording on one screen: how long they ran, how they were launched, and the metrics
//! that say most.

use std::collections::HashMap;
use std::io;

use crate::metric::{Role, Stall, StallUnit, block_limit, display_value, display_values};
use crate::report::{Part, one_line};
use crate::statistics::median;
use ncu_report::{Launch, Measurement, Recording};

/// Lines that the kernels may take: with what stands around them, 40.
const LINES: usize = 32;
/// Up to so many kernels are shown with each metric on a line of its own.
const IN_FULL: usize = 2;
/// Lines of metrics of each of more kernels.
const MOST_ROWS: usize = 3;

macro_rules! shown {
    ($($name:literal: $($role:ident)and+, $label:literal;)+) => {
        /// The metrics that are shown where they were measured: short name, the roles whose values add
        /// up to it, and the label on the details page. Of two with one name, the first that was
        /// measured counts.
        const SHOWN: &[(&str, &[Role], &str)] = &[$(($name, &[$(Role::$role),+], $label)),+];
    };
}

shown! {
    "duration": Duration, "Duration";
    "sm_throughput": SmThroughput, "Compute (SM) Throughput";
    "memory": MemoryThroughput, "Memory Throughput";
    "tensor_core": TensorActive, "";
    "dram_bw": DramThroughput, "DRAM Throughput";
    "dram_bw": DramThroughputOfSections, "";
    "l2_throughput": L2Throughput, "L2 Cache Throughput";
    "l1_throughput": L1Throughput, "L1/TEX Cache Throughput";
    "l1_throughput": L1ThroughputActive, "";
    "warps_active": WarpsActive, "Achieved Occupancy";
    "warps_active": WarpsActiveElapsed, "";
    "sm_active": SmActive, "";
    "registers": RegistersPerThread, "Registers Per Thread";
    "shared memory": StaticSharedBytes and DynamicSharedBytes, "";
    "bank_conflicts": BankConflicts, "";
    "dram_read": DramBytesRead, "";
    "dram_write": DramBytesWritten, "";
    "clock": Clock, "SM Frequency";
}

/// Where in this list other facts belong.
const FACTS: usize = 14;

/// Numbers of launches with their unit; `None` where that is not known.
type Numbers<'a> = (Vec<f64>, Option<&'a str>);

/// The launches of one kernel at one grid and block.
struct Group<'a> {
    launches: Vec<&'a Launch>,
    durations: Option<Numbers<'a>>,
}

/// The launches of each kernel at one grid and block, in the order of the first one of each.
fn by_kernel(launches: &[Launch]) -> Vec<Vec<&Launch>> {
    let mut groups: Vec<Vec<&Launch>> = Vec::new();
    let mut places = HashMap::new();
    for launch in launches {
        let kernel = &launch.kernel;
        let names = (&kernel.function, &kernel.mangled, &kernel.demangled);
        let place = places.entry((names, launch.grid, launch.block));
        let at = *place.or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[at].push(launch);
    }
    groups
}

/// Prints the kernels, those that took most of the time first.
pub(super) fn print(recording: &Recording, columns: usize, print: &mut Part<'_>) -> io::Result<()> {
    let mut line = |text: String| print(&format!("{text}\n"));
    let kernels = by_kernel(&recording.launches).into_iter();
    let kernels = kernels.map(|launches| Group {
        durations: numbers(&launches, &[Role::Duration], "Duration"),
        launches,
    });
    let mut kernels: Vec<_> = kernels.collect();
    let total: Option<f64> = kernels.iter().map(Group::time).sum();
    let total = total.filter(|total| *total > 0.0 && kernels.len() > 1);
    if total.is_some() {
        let time = |one: &Group<'_>| one.time().unwrap_or_default();
        kernels.sort_by(|a, b| time(b).total_cmp(&time(a)));
    }
    let in_full = kernels.len() <= IN_FULL;
    let rows = (LINES / kernels.len().max(1)).saturating_sub(1);
    let rows = rows.clamp(1, if in_full { LINES } else { MOST_ROWS });
    let fit = LINES / (rows + 1);
    for kernel in kernels.iter().take(fit) {
        line(kernel.title(total))?;
        let cells = kernel.cells(in_full);
        let lines = match in_full {
            true => cells
                .iter()
                .map(|(name, value)| format!("    {name:<16} {value}"))
                .collect(),
            false => wrapped(&cells, columns),
        };
        lines.into_iter().take(rows).try_for_each(&mut line)?;
    }
    if let Some(more @ 1..) = kernels.len().checked_sub(fit) {
        line(format!("{more} more kernels: --all"))?;
    }
    let metrics = recording
        .launches
        .iter()
        .map(|one| one.metrics.len() + one.labels.len());
    if let Some(metrics) = metrics.max() {
        line(format!(
            "{metrics} metrics a launch: --metric TEXT lists those with TEXT in their names, --all lists all"
        ))?;
    }
    Ok(())
}

/// Several cells in a line, as many as fit.
fn wrapped(cells: &[(&str, String)], columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (name, value) in cells {
        let cell = format!("   {name} {value}");
        match lines.last_mut() {
            Some(line) if line.chars().count() + cell.chars().count() <= columns => {
                line.push_str(&cell);
            }
            _ => lines.push(format!(" {cell}")),
        }
    }
    lines
}

/// In each launch the sum of what these roles have, or what the label has; `None` where one launch lacks
/// it, or has another unit.
fn numbers<'a>(launches: &[&'a Launch], roles: &[Role], label: &str) -> Option<Numbers<'a>> {
    let number = |one: &'a Measurement| Some((one.value.number()?, one.unit.symbol()));
    let of = |launch: &&'a Launch| {
        let measured = roles.iter().map(|role| number(role.measured(launch)?));
        match measured.collect::<Option<Vec<_>>>() {
            Some(all) => all.into_iter().reduce(|sum, next| (sum.0 + next.0, next.1)),
            None => number(
                &launch
                    .labels
                    .iter()
                    .find(|one| one.name == label)?
                    .measurement,
            ),
        }
    };
    let all: Option<Vec<_>> = launches.iter().map(of).collect();
    let (values, units): (Vec<f64>, Vec<_>) = all?.into_iter().unzip();
    let unit = *units.first()?;
    units
        .iter()
        .all(|one| *one == unit)
        .then_some((values, unit))
}

/// Their median.
fn middle((values, unit): &Numbers<'_>) -> String {
    let value = display_value(median(values).unwrap_or(f64::NAN), *unit);
    match unit {
        Some(_) => value,
        None => format!("{value} (unit unknown)"),
    }
}

impl Group<'_> {
    /// The time of all launches in ns, where it is known.
    fn time(&self) -> Option<f64> {
        let (values, unit) = self.durations.as_ref()?;
        (*unit == Some("ns")).then(|| values.iter().sum())
    }

    fn title(&self, total: Option<f64>) -> String {
        let mut title = self
            .durations
            .as_ref()
            .map_or("no duration".to_owned(), middle);
        if let (Some(total), Some(time)) = (total, self.time()) {
            title = format!("{title}, {:.1} % of the time", 100.0 * time / total);
        }
        let count = self.launches.len();
        if count > 1 {
            title = format!("{title}, {count} launches");
        }
        let kernel = self.launches.first().map(|first| &first.kernel);
        let name = kernel.map(|one| one.demangled.as_ref().unwrap_or(&one.function));
        format!("{title}: {}", one_line(name.map_or("", |name| name)))
    }

    /// What is shown of the kernel, by short names.
    fn cells(&self, in_full: bool) -> Vec<(&'static str, String)> {
        let Some(first) = self.launches.first() else {
            return Vec::new();
        };
        let mut cells = Vec::new();
        for (name, [x, y, z]) in [("grid", first.grid), ("block", first.block)] {
            if [x, y, z] != [0; 3] {
                cells.push((name, format!("{x}×{y}×{z}")));
            }
        }
        for (place, &(name, roles, label)) in SHOWN.iter().enumerate() {
            if place == FACTS {
                cells.extend(most_blocks(first));
                cells.extend(longest_wait(first));
            }
            // The title has the duration.
            let known = cells.iter().any(|(known, _)| *known == name);
            if known || (place == 0 && (self.launches.len() == 1 || !in_full)) {
                continue;
            }
            let Some(numbers) = numbers(&self.launches, roles, label) else {
                continue;
            };
            let mut value = middle(&numbers);
            let (values, unit) = numbers;
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.into_iter().fold(f64::NEG_INFINITY, f64::max);
            if least < most {
                let (least, most) = display_values(least, most, unit);
                value = format!("{value} ({least} to {most})");
            }
            cells.push((name, value));
        }
        cells
    }
}

/// How many blocks a multiprocessor runs at once, and what allows no more.
fn most_blocks(launch: &Launch) -> Option<(&'static str, String)> {
    let limits = launch
        .metrics
        .iter()
        .filter_map(|(name, found)| Some((found.value.number()?, block_limit(name)?)));
    let (blocks, by) = limits.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(("blocks an SM", format!("{blocks} (limit: {by})")))
}

/// What the warps waited for most.
fn longest_wait(launch: &Launch) -> Option<(&'static str, String)> {
    let waits = |unit: StallUnit| {
        let waits = launch.metrics.iter().filter_map(move |(name, found)| {
            let stall = Stall::of(name).filter(|one| one.unit == unit && one.is_wait())?;
            Some((found.value.number()?, stall.reason))
        });
        waits.max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let (value, reason, unit) = match waits(StallUnit::TimePercent) {
        Some((percent, reason)) => (percent, reason, "% of the time of warps"),
        None => waits(StallUnit::CyclesPerInstruction)
            .map(|(cycles, reason)| (cycles, reason, "cycles an instruction"))?,
    };
    Some(("longest wait", format!("{reason}, {value:.2} {unit}")))
}
