//! Copies of the pages that ncu prints, without the names of people and machines.

use std::collections::BTreeSet;

use super::{read, utf8};
use crate::launch::Launch;
use crate::recording::Recording;
use crate::report::identifies_the_gpu;
use crate::strip::Scrubber;
use crate::value::Value;

/// A copy of a page, with what the program printed around it, that `scrubber` cleaned. It has every
/// number of the page.
///
/// # Errors
/// Why a page that can be read has no such copy.
pub fn strip(bytes: &[u8], scrubber: &mut Scrubber) -> Result<Vec<u8>, String> {
    let clean = page(scrubber, &String::from_utf8_lossy(&utf8(bytes))).into_bytes();
    keeps_numbers(bytes, &clean)?;
    Ok(clean)
}

/// That a copy of a page can be read and has every number of the page. A page whose cells are not
/// where its header says may name a number as a host, and a row with quotes within its cells is no
/// row to `strip`.
fn keeps_numbers(page: &[u8], copy: &[u8]) -> Result<(), String> {
    let Ok(page) = read(page) else {
        return Ok(());
    };
    let refused = |why: &str| {
        format!(
            "its copy would not have the same numbers, and is not written: {why}; profile again, or ask who made the page for the original"
        )
    };
    let copy = read(copy).map_err(|error| refused(&error.to_string()))?;
    match numbers(&page) == numbers(&copy) {
        true => Ok(()),
        false => Err(refused("a number of the page is the name of a host")),
    }
}

/// Grid, block and the values of each launch, without what identifies a GPU.
fn numbers(recording: &Recording) -> Vec<([u64; 3], [u64; 3], Vec<u64>)> {
    let of_launch = |launch: &Launch| {
        let metrics = launch.metrics.iter();
        let metrics = metrics.filter(|(name, _)| !identifies_the_gpu(name));
        let mut values: Vec<u64> = metrics
            .filter_map(|(_, measurement)| match measurement.value {
                Value::Integer(number) => Some(number),
                Value::Float(number) => Some(number.to_bits()),
                Value::Text(_) | Value::Missing => None,
            })
            .collect();
        // The names of metrics are not compared: a copy may have other ones.
        values.sort_unstable();
        (launch.grid, launch.block, values)
    };
    recording.launches.iter().map(of_launch).collect()
}

/// Scrubs the pages that ncu prints, with what the program printed around them.
fn page(scrubber: &mut Scrubber, page: &str) -> String {
    let mut hidden: BTreeSet<usize> = BTreeSet::new();
    let mut host = None;
    // A details page has tables of other columns between the rows of launches, which are longer.
    let mut least = 0;
    let labels = labels(page);
    let mut clean = String::with_capacity(page.len());
    for line in page.split_inclusive('\n') {
        let cells = cells(line);
        let named = |name: &str| cells.iter().position(|cell| &line[cell.clone()] == name);
        let is_header = is_header(line, &cells);
        if is_header {
            host = named("Host Name");
            least = named("Grid Size").unwrap_or(0);
            hidden = (0..cells.len())
                .filter(|at| {
                    let name = &line[cells[*at].clone()];
                    name == "Source" || identifies_the_gpu(name)
                })
                .collect();
        }
        // What stands before the row is no cell.
        let mut at = cells.first().map_or(0, |cell| cell.start.saturating_sub(1));
        let mut label = labels.iter().enumerate();
        let label = label.find(|(_, label)| line.starts_with(**label));
        if let Some((number, _)) = label {
            // As `srun --label` writes it.
            clean.push_str(&format!("{number}: "));
        }
        let length = label.map_or(0, |(_, label)| label.len());
        at = at.max(length);
        let before = &line[length..at];
        clean.push_str(&scrubber.text(before).unwrap_or_else(|| before.to_owned()));
        for (column, cell) in cells.iter().enumerate() {
            clean.push_str(&line[at..cell.start]);
            let text = &line[cell.clone()];
            at = cell.end;
            if is_header && is_column(text) {
                clean.push_str(text);
            } else if is_header {
                clean.push_str(&scrubber.whole(text));
            } else if hidden.contains(&column) {
                if !text.is_empty() {
                    scrubber.count("cell of a CSV");
                }
            } else if host == Some(column)
                && cells.len() > least
                && !matches!(text, "" | "127.0.0.1" | "localhost")
            {
                scrubber.learn_host(text);
                scrubber.count("host name");
                clean.push_str("localhost");
            } else {
                clean.push_str(&scrubber.whole(text));
            }
        }
        let rest = &line[at..];
        clean.push_str(&scrubber.text(rest).unwrap_or_else(|| rest.to_owned()));
    }
    clean
}

/// What each process has before its lines, such as the name of a pod: what stands before a header.
fn labels(page: &str) -> BTreeSet<&str> {
    let labels = page.lines().filter_map(|line| {
        let cells = cells(line);
        let at = cells.first()?.start.saturating_sub(1);
        (is_header(line, &cells) && at > 0).then(|| &line[..at])
    });
    labels.collect()
}

/// Whether a line names the columns of a page.
fn is_header(line: &str, cells: &[std::ops::Range<usize>]) -> bool {
    let mut names = cells.iter().map(|cell| &line[cell.clone()]);
    cells.len() > 3 && names.any(|name| name == "Kernel Name" || name == "Source")
}

/// Whether a cell of a header is the name of a column or of a metric. What else stands there, a
/// program printed.
fn is_column(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.: ".contains(c);
    text.chars().all(plain)
}

/// The positions of the cells in a line that quotes them all, whatever stands before the first one;
/// none for any other line.
fn cells(line: &str) -> Vec<std::ops::Range<usize>> {
    let row = line.trim_end();
    let bytes = row.as_bytes();
    let mut found = Vec::new();
    let mut at = row.find('"').unwrap_or(0);
    while at < bytes.len() {
        if bytes[at] != b'"' {
            return Vec::new();
        }
        let Some(end) = end_of_cell(row, at + 1) else {
            return Vec::new();
        };
        found.push(at + 1..end);
        at = match bytes.get(end + 1) {
            None => end + 1,
            Some(b',') => end + 2,
            Some(_) => return Vec::new(),
        };
    }
    found
}

/// The place of the quote that ends a cell; two quotes are one within it.
fn end_of_cell(row: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += row.get(at..)?.find('"')?;
        if row.as_bytes().get(at + 1) != Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_whose_copy_could_not_be_read_has_none() {
        let page = |name: &str| {
            format!(
                "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\
                 \"Stream\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"{name}\",\
                 \"gpu__time_duration.sum\"\n\
                 \"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"ns\"\n\
                 \"0\",\"1\",\"p\",\"127.0.0.1\",\"k()\",\"1\",\"7\",\"(32, 1, 1)\",\"(1, 1, 1)\",\
                 \"0\",\"9.0\",\"1\",\"2\"\n"
            )
        };
        let copy = |name: &str| strip(page(name).as_bytes(), &mut Scrubber::default());
        for (name, copied) in [("x", true), ("x\"\"y", true), ("x TOKEN=x\"y", false)] {
            assert!(read(page(name).as_bytes()).is_ok(), "{name}");
            assert_eq!(copy(name).is_ok(), copied, "{name}");
        }
    }

    #[test]
    fn a_table_between_the_rows_of_a_page_names_no_host() {
        let page = "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Block Size\",\"Grid Size\"\n\
                    \"0\",\"1\",\"p\",\"node7\",\"k\",\"(32, 1, 1)\",\"(1, 1, 1)\"\n\
                    \"GPU ID\",\"GPU Name\",\"NUMA ID\",\"CPU Affinity\"\n\
                    \"0\",\"NVIDIA H200\",\"0\",\"0-31\"\n";
        let clean = super::page(&mut Scrubber::default(), page);
        assert_eq!(clean, page.replace("node7", "localhost"));
    }

    #[test]
    fn a_line_that_is_no_row_has_no_cells() {
        assert_eq!(cells("\"a\",\"b \"\"c\"\"\"\n").len(), 2);
        assert_eq!(cells("==PROF== \"x\": 0%\n").len(), 0);
        assert_eq!(cells("\"a\", then\n").len(), 0);
    }
}
