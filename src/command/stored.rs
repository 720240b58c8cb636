//! `sparsek-gate compare` of two measurements that are stored: profiles, reports or CSVs.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::answer::{answer, unreadable};
use crate::capture;
use crate::cli::Format;
use crate::disk::{self, folder_of};
use crate::files::{PROFILE_FILE, ends_in, most, read_regular_up_to};
use crate::finding::{Error, ExitCode};
use crate::judge::{Stored, StoredKernel, StoredMetric};
use crate::metric::{Role, display_value, is_circumstance};
use crate::profile::Profile;
use crate::profile::import::whole_profile;
use crate::report::{one_line, plain_table, table_lines};

/// The endings of files that are measurements, and no programs.
const ENDINGS: [&str; 4] = ["json", "ncu-rep", "ncu-repz", "csv"];
/// Most metrics that are shown for nothing but that they moved.
const MOST_MOVED: usize = 12;
/// Metrics that are shown in any case, where both sides have them.
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

/// What is compared, for scripts.
#[derive(Serialize)]
struct Content<'a> {
    paths: [&'a str; 2],
    judged: bool,
    #[serde(flatten)]
    stored: Stored,
}

/// The file of a stored measurement that an argument names; `None` of a program.
pub(super) fn file_of(argument: &str) -> Option<PathBuf> {
    let path = Path::new(argument);
    if disk::is_dir(path) {
        return Some(path.join(PROFILE_FILE));
    }
    (ends_in(path, &ENDINGS) && disk::is_there(path)).then(|| path.to_owned())
}

/// What `--from` names of a folder: where that is SUITE/VARIANT, the one above.
pub(super) fn recording_of(folder: &Path) -> PathBuf {
    let whole = std::path::absolute(folder).unwrap_or_default();
    match disk::is_file(folder.join(PROFILE_FILE)) {
        true => folder_of(folder_of(&whole)).to_owned(),
        false => folder.to_owned(),
    }
}

/// Shows two stored measurements side by side.
pub(super) fn run(format: Format, paths: [&str; 2], files: [&Path; 2]) -> Result<ExitCode, Error> {
    let [before, after] = files.map(read);
    let mut stored = Stored::of(&before?, &after?);
    let [first, second] = files.map(|file| read_regular_up_to(file, most::BINARY).ok());
    if first == second {
        let warning = "both are one measurement, in which nothing differs";
        stored.warnings.push(warning.to_owned());
    }
    let content = Content {
        paths,
        judged: false,
        stored,
    };
    answer(format, &content, &[], || text(&content))
}

/// Reads a profile, report or CSV.
fn read(path: &Path) -> Result<Profile, Error> {
    if ends_in(path, &["json"]) {
        if !disk::is_there(path) {
            let file = path.display();
            let inner = disk::read_dir(folder_of(path)).into_iter().flatten();
            let mut reports = inner.filter(|one| ends_in(&one.path, &["ncu-rep", "ncu-repz"]));
            let next = match reports.next() {
                Some(report) => format!("name a report in it: {}", report.path.display()),
                None => "name the folder of one variant: DIR/SUITE/VARIANT".to_owned(),
            };
            return Err(Error::Usage(format!("there is no {file}\n  next: {next}")));
        }
        return Profile::read(path);
    }
    let (_, recording) = capture::read_file(path).map_err(|error| unreadable(path, error))?;
    whole_profile(&recording).map_err(|cause| Error::input(path.to_owned(), cause))
}

fn text(content: &Content<'_>) -> String {
    let [before, after] = content.paths.map(one_line);
    let mut text = format!(
        "A: {before}\nB: {after}\nnothing was measured in this run, so there is no verdict\n"
    );
    let stored = &content.stored;
    for warning in &stored.warnings {
        let _ = writeln!(text, "not comparable: {}", one_line(warning));
    }
    for kernel in &stored.kernels {
        text.push_str(&of_kernel(kernel));
    }
    for (side, only) in [("A", &stored.only_before), ("B", &stored.only_after)] {
        for kernel in only {
            let _ = writeln!(text, "\nonly in {side}: {}", one_line(kernel));
        }
    }
    text
}

fn of_kernel(kernel: &StoredKernel) -> String {
    let (before, after) = (one_line(&kernel.before), one_line(&kernel.after));
    let mut text = format!("\nA: {before}\nB: {after}\n");
    let name = |shown: &str| shown.split(" grid ").next().map(str::to_owned);
    if name(&before) != name(&after) {
        text.push_str("   the names differ: they are compared because each is the only one left\n");
    }
    let mut table = plain_table(&["metric", "A", "B", "change", ""]);
    let shown = worth_showing(&kernel.metrics);
    for metric in &shown {
        table.add_row(row(metric));
    }
    for line in table_lines(&table).lines() {
        let _ = writeln!(text, "   {line}");
    }
    let left_out = kernel.metrics.len() - shown.len();
    let _ = writeln!(
        text,
        "   not shown: {left_out} metrics (--format json has all)"
    );
    text
}

/// The metrics of both sides that are always shown, and those that moved most.
fn worth_showing(metrics: &[StoredMetric]) -> Vec<&StoredMetric> {
    let always = |metric: &StoredMetric| {
        Role::of(&metric.counter).is_some_and(|role| ALWAYS_SHOWN.contains(&role))
    };
    let mut left = MOST_MOVED;
    let both = metrics.iter().filter(|metric| metric.change.is_some());
    both.filter(|metric| {
        let moved = !metric.within_spread && !is_circumstance(&metric.counter) && left > 0;
        if moved && !always(metric) {
            left -= 1;
        }
        moved || always(metric)
    })
    .collect()
}

fn row(metric: &StoredMetric) -> Vec<String> {
    let unit = metric.unit.as_deref();
    let shown = |value: Option<f64>| value.map_or("–".to_owned(), |it| display_value(it, unit));
    let change = metric.change;
    let note = match metric.within_spread {
        true => "within the spread",
        false => "",
    };
    vec![
        one_line(&metric.metric).to_string(),
        shown(metric.before),
        shown(metric.after),
        change.map_or("–".to_owned(), |change| change.display(unit)),
        note.to_owned(),
    ]
}
