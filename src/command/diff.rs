//! `sparsek-gate diff`.

use std::fmt::Write as _;
use std::io;

use comfy_table::{ContentArrangement, Table, presets};

use crate::cli::{DiffArgs, Format};
use crate::diff::{Diff, Kernel, Metric, Pair, PairedBy, Reading, Row, Side};
use crate::finding::{Error, ExitCode};
use crate::judge::KernelHotspots;
use crate::metric::{Role, display_value, is_circumstance};
use crate::report::{Part, one_line, print_json, print_parts};
use crate::verdict::Change;

/// Most metrics that are shown for nothing but that they moved.
const MOST_MOVED: usize = 12;
/// How far a metric must have moved for that, in points or percent.
const SMALLEST_MOVE: f64 = 1.0;
/// Metrics that are shown in any case, where both files have them.
const ALWAYS_SHOWN: [Role; 16] = [
    Role::Duration,
    Role::Clock,
    Role::MemoryThroughput,
    Role::SmThroughput,
    Role::DramThroughput,
    Role::L1ThroughputActive,
    Role::L2Throughput,
    Role::TensorActive,
    Role::SmActive,
    Role::WarpsActive,
    Role::RegistersPerThread,
    Role::DramBytesRead,
    Role::DramBytesWritten,
    Role::L2Bytes,
    Role::Instructions,
    Role::BankConflicts,
];

pub(super) fn run(arguments: &DiffArgs) -> Result<ExitCode, Error> {
    let read = |path| Side::read(path, super::unreadable);
    let mut diff = Diff::of(read(&arguments.before)?, read(&arguments.after)?);
    let wanted = arguments.metric.as_deref();
    match arguments.format {
        Format::Json => {
            keep_wanted(&mut diff, wanted);
            print_json(&diff)
        }
        Format::Text => print_parts(|part| text(&diff, wanted, part)),
    }
    .map_err(Error::io("write", "standard output"))?;
    Ok(ExitCode::Pass)
}

/// All metrics, or those that are asked for.
fn keep_wanted(diff: &mut Diff, wanted: Option<&str>) {
    let Some(wanted) = wanted else { return };
    for pair in &mut diff.kernels {
        pair.metrics.retain(|row| is_wanted(row, wanted));
    }
}

/// Prints the text form pair by pair.
fn text(diff: &Diff, wanted: Option<&str>, print: &mut Part<'_>) -> io::Result<()> {
    for (name, side) in [("A", &diff.before), ("B", &diff.after)] {
        let conditions: Vec<String> = side
            .conditions
            .iter()
            .map(|(what, value)| format!("{what} {value}"))
            .collect();
        print(&format!(
            "{name}: {} ({}; {})\n",
            one_line(&side.path),
            side.format,
            one_line(&conditions.join(", "))
        ))?;
    }
    for warning in &diff.warnings {
        print(&format!("not comparable: {}\n", one_line(warning)))?;
    }
    for pair in &diff.kernels {
        print("\n")?;
        print(&of_pair(pair, wanted))?;
    }
    for (side, only) in [("A", &diff.only_before), ("B", &diff.only_after)] {
        for kernel in only {
            print(&format!("\nonly in {side}: {}\n", named(kernel)))?;
        }
    }
    Ok(())
}

fn named(kernel: &Kernel) -> String {
    let name = kernel.demangled.as_deref().filter(|name| !name.is_empty());
    format!(
        "{} grid {:?} block {:?}, {} launches",
        one_line(name.unwrap_or(&kernel.name)),
        kernel.grid,
        kernel.block,
        kernel.launches
    )
}

fn of_pair(pair: &Pair, wanted: Option<&str>) -> String {
    let how = match pair.paired_by {
        PairedBy::NameAndShape => "by name, grid and block",
        PairedBy::Name => "by name alone",
        PairedBy::Order => "by order alone: neither name is in both",
    };
    let mut text = format!(
        "A: {}\nB: {}\n   paired {how}\n",
        named(&pair.before),
        named(&pair.after)
    );
    let rows = match wanted {
        Some(wanted) => asked(&pair.metrics, wanted),
        None => worth_showing(&pair.metrics),
    };
    if rows.is_empty() {
        let _ = writeln!(text, "   no metric of that name is in both");
    } else {
        text.push_str(&table(&rows));
    }
    let of = |side: fn(&Row) -> &Option<Metric>| {
        let rows = pair.metrics.iter();
        rows.filter(|row| side(row).is_none()).count()
    };
    let (no_before, no_after) = (of(|row| &row.before), of(|row| &row.after));
    let left_out = [no_before, no_after, rows.len()]
        .iter()
        .fold(pair.metrics.len(), |left, count| {
            left.saturating_sub(*count)
        });
    if wanted.is_none() {
        let _ = writeln!(
            text,
            "   not shown: {left_out} metrics of both, {no_after} of A alone, {no_before} of B alone (--metric TEXT shows what is named so, --metric '' all)"
        );
    }
    for (way, moved) in [("B", &pair.more_time), ("A", &pair.less_time)] {
        if let Some(moved) = moved {
            text.push_str(&times(way, moved));
        }
    }
    text
}

/// Where one side takes more time than the other.
fn times(way: &str, moved: &KernelHotspots) -> String {
    if moved.lines.is_empty() && moved.stalls.is_empty() && moved.now.is_empty() {
        return String::new();
    }
    format!("   more time in {way}: {}\n", one_line(&moved.text))
}

/// Those whose names contain a text, of either side.
fn asked<'a>(rows: &'a [Row], wanted: &str) -> Vec<&'a Row> {
    rows.iter().filter(|row| is_wanted(row, wanted)).collect()
}

fn is_wanted(row: &Row, wanted: &str) -> bool {
    let alias = |side: &Option<Metric>| {
        let alias = side.as_ref().and_then(|metric| metric.alias.as_deref());
        alias.is_some_and(|alias| alias.contains(wanted))
    };
    row.metric.contains(wanted) || alias(&row.before) || alias(&row.after)
}

/// Those that are always shown, and those that moved most.
fn worth_showing(rows: &[Row]) -> Vec<&Row> {
    let in_both = |row: &&Row| row.before.is_some() && row.after.is_some();
    let always = |row: &Row| Role::of(&row.metric).is_some_and(|role| ALWAYS_SHOWN.contains(&role));
    let mut left = MOST_MOVED;
    let mut last: Option<&Row> = None;
    rows.iter()
        .filter(in_both)
        .filter(|row| {
            if always(row) {
                return true;
            }
            let aside = is_circumstance(&row.metric);
            // One thing under two names moves as far.
            let again = last.is_some_and(|last| last.size == row.size);
            let moved = row.size >= SMALLEST_MOVE && !row.within_spread && !aside && !again;
            if moved && left > 0 {
                left -= 1;
                last = Some(row);
                return true;
            }
            false
        })
        .collect()
}

fn table(rows: &[&Row]) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["metric", "A", "spread", "B", "spread", "change", ""]);
    for row in rows {
        let (was, was_spread) = shown(row.before.as_ref());
        let (is, is_spread) = shown(row.after.as_ref());
        let unit = row.before.as_ref().and_then(|side| side.unit.as_deref());
        let change = match row.change {
            Some(change) => change.display(unit),
            None if row.before.is_none() || row.after.is_none() => "–".to_owned(),
            None if row.same() => "the same".to_owned(),
            None => "differs".to_owned(),
        };
        let note = if row.within_spread {
            "within the spread"
        } else {
            ""
        };
        let alias = [&row.before, &row.after]
            .into_iter()
            .find_map(|side| side.as_ref()?.alias.clone());
        let name = match alias {
            Some(alias) => format!("{alias} ({})", row.metric),
            None => row.metric.clone(),
        };
        let cells = [
            name,
            was,
            was_spread,
            is,
            is_spread,
            change,
            note.to_owned(),
        ];
        table.add_row(cells.iter().map(|cell| one_line(cell)));
    }
    table
        .lines()
        .map(|line| format!("   {}\n", line.trim_end()))
        .collect()
}

/// The value, and how far its launches are apart.
fn shown(side: Option<&Metric>) -> (String, String) {
    let Some(metric) = side else {
        return ("–".to_owned(), String::new());
    };
    let unit = metric.unit.as_deref();
    match &metric.reading {
        Reading::Text { text } => (text.clone(), String::new()),
        Reading::Numbers {
            value,
            min,
            max,
            launches,
        } => {
            let spread = match max - min {
                _ if *launches < 2 => "1 launch".to_owned(),
                0.0 => format!("0 over {launches}"),
                range => format!(
                    "{} over {launches}",
                    Change::Absolute(range).magnitude(unit)
                ),
            };
            (display_value(*value, unit), spread)
        }
    }
}
