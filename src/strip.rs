//! Copies of captures and profiles for publication: without sources, machine code, paths, and
//! the names of people and machines, and with every number that was measured.

mod known;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::IgnoredAny;

use crate::capture::{counter_records, event_times, kernel_records};
use crate::files::{bounded_json, most, read_regular_up_to};
use crate::finding::Error;
use crate::hash::sha256_hex;
use crate::profile::Profile;
use ncu_report::{Launch, Recording, Value, report};
use text::Scrubber;

/// What was stripped, and what of it.
#[derive(Debug, Default, Serialize)]
pub struct Stripped {
    /// The files that were written, by path below the copy.
    pub files: Vec<StrippedFile>,
    /// How many of each kind were removed, in all files.
    pub removed: BTreeMap<&'static str, u64>,
    /// What was not copied.
    pub not_copied: Vec<NotCopied>,
}

/// One file of the copy.
#[derive(Debug, Serialize)]
pub struct StrippedFile {
    /// Path below the copy.
    pub file: PathBuf,
    /// What it is.
    pub kind: &'static str,
    /// How many of each kind were removed from it.
    pub removed: BTreeMap<&'static str, u64>,
}

/// A file that is not in the copy.
#[derive(Debug, Serialize)]
pub struct NotCopied {
    /// Path below what was given.
    pub file: PathBuf,
    /// Why.
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Report,
    Csv,
    Profile,
    Json,
    Text,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Kind::Report => "report",
            Kind::Csv => "csv",
            Kind::Profile => "profile",
            Kind::Json => "json",
            Kind::Text => "text",
        }
    }
}

/// The kind of a file, by its content and then its name; `None` if it is unknown.
fn kind_of(path: &Path, bytes: &[u8]) -> Option<Kind> {
    if report::ending(bytes).is_some() {
        return Some(Kind::Report);
    }
    let own = [
        counter_records::MAGIC,
        kernel_records::MAGIC,
        event_times::MAGIC,
    ];
    if own.iter().any(|magic| bytes.starts_with(magic)) {
        return Some(Kind::Text);
    }
    match path.extension()?.to_str()? {
        "csv" => Some(Kind::Csv),
        "log" | "argv" => Some(Kind::Text),
        "json" if Profile::parse(bytes).is_ok() => Some(Kind::Profile),
        "json" if is_json(bytes) => Some(Kind::Json),
        _ => None,
    }
}

/// Copies a file, or a folder of files, without what must not be published. The copy appears as a
/// whole, or not at all.
///
/// # Errors
/// [`Error::Usage`] where the copy exists already, [`Error::Input`] where a file cannot be read
/// as what it is, or would still contain what must be removed; [`Error::Io`].
pub fn strip(from: &Path, to: &Path, keep_machine_code: bool) -> Result<Stripped, Error> {
    if to.symlink_metadata().is_ok() {
        return Err(Error::Usage(format!(
            "{} exists; name a path for the copy that does not exist",
            to.display()
        )));
    }
    let meta = fs::metadata(from).map_err(Error::named(from))?;
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let mut run = Run {
        scrubber: Scrubber::of_this_machine(),
        keep_machine_code,
        hashes: BTreeMap::new(),
        stripped: Stripped::default(),
    };
    let place = tempfile::Builder::new()
        .prefix(".tmp-strip-")
        .tempdir_in(parent)
        .map_err(Error::io("create a folder in", parent))?;
    let copy = place.path().join("copy");
    if meta.is_dir() {
        // A copy below the copied folder would grow while the folder is read.
        let (whole, target) = (absolute(from)?, absolute(parent)?);
        if target.starts_with(&whole) {
            return Err(Error::Usage(format!(
                "{} is inside {}, which is to be copied",
                to.display(),
                from.display()
            )));
        }
        run.folder(from, &copy)?;
    } else {
        let name = PathBuf::from(to.file_name().unwrap_or_default());
        let read = run.read(from)?.and_then(|bytes| {
            let kind = kind_of(from, &bytes)?;
            Some((kind, bytes))
        });
        let (kind, bytes) = read.ok_or_else(|| Error::Input {
            path: from.to_path_buf(),
            cause: UNKNOWN.to_owned(),
        })?;
        let clean = run.file(from, name, kind, &bytes)?;
        fs::write(&copy, clean).map_err(Error::io("write", to))?;
    }
    let (here, there) = (rustix::fs::CWD, rustix::fs::CWD);
    let flags = rustix::fs::RenameFlags::NOREPLACE;
    rustix::fs::renameat_with(here, &copy, there, to, flags)
        .map_err(|error| Error::io("create", to)(error.into()))?;
    run.stripped.removed = run.scrubber.removed;
    Ok(run.stripped)
}

/// The copy of one file, of which only the name of `path` is used; `None` where files of its kind
/// cannot be stripped.
///
/// # Errors
/// [`Error::Input`], as [`strip`].
pub fn strip_bytes(
    path: &Path,
    bytes: &[u8],
    keep_machine_code: bool,
) -> Result<Option<Vec<u8>>, Error> {
    let Some(kind) = kind_of(path, bytes) else {
        return Ok(None);
    };
    let mut run = Run {
        scrubber: Scrubber::of_this_machine(),
        keep_machine_code,
        hashes: BTreeMap::new(),
        stripped: Stripped::default(),
    };
    run.file(path, path.to_path_buf(), kind, bytes).map(Some)
}

/// That a copy of a page can be read and has every number of the page. A page whose cells are not
/// where its header says may name a number as a host, and a row with quotes within its cells is no
/// row to `strip`.
fn keeps_numbers(page: &[u8], copy: &[u8]) -> Result<(), String> {
    let Ok(page) = ncu_report::csv::read(page) else {
        return Ok(());
    };
    let refused = |why: &str| {
        format!(
            "its copy would not have the same numbers, and is not written: {why}; profile again, or ask who made the page for the original"
        )
    };
    let copy = ncu_report::csv::read(copy).map_err(|error| refused(&error.to_string()))?;
    match numbers(&page) == numbers(&copy) {
        true => Ok(()),
        false => Err(refused("a number of the page is the name of a host")),
    }
}

/// Grid, block and the values of each launch, without what identifies a GPU.
fn numbers(recording: &Recording) -> Vec<([u64; 3], [u64; 3], Vec<u64>)> {
    let of_launch = |launch: &Launch| {
        let metrics = launch.metrics.iter();
        let metrics = metrics.filter(|(name, _)| !report::identifies_the_gpu(name));
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

const UNKNOWN: &str = "files of this kind cannot be stripped; known are reports (.ncu-rep, .ncu-repz), CSV, profiles and other JSON, kernel records, event times, .log and .argv";

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    fs::canonicalize(path).map_err(Error::io("find", path))
}

struct Run {
    scrubber: Scrubber,
    keep_machine_code: bool,
    /// sha256 of each file, to that of its copy.
    hashes: BTreeMap<String, String>,
    stripped: Stripped,
}

impl Run {
    fn folder(&mut self, from: &Path, copy: &Path) -> Result<(), Error> {
        fs::create_dir(copy).map_err(Error::io("create", copy))?;
        let mut files = Vec::new();
        self.find(from, Path::new(""), &mut files)?;
        // A profile contains the hashes of its captures, so these come first.
        files.sort_by_key(|(file, kind)| (*kind == Kind::Profile, file.clone()));
        for (file, kind) in files {
            let path = from.join(&file);
            let bytes =
                read_regular_up_to(&path, most::BINARY).map_err(Error::io("read", &path))?;
            let clean = self.file(&path, file.clone(), kind, &bytes)?;
            let target = copy.join(&file);
            let folder = target.parent().unwrap_or(copy);
            fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
            fs::write(&target, clean).map_err(Error::io("write", &target))?;
        }
        Ok(())
    }

    /// The files below a folder that can be stripped. Links are not followed: they may lead out.
    fn find(
        &mut self,
        root: &Path,
        below: &Path,
        files: &mut Vec<(PathBuf, Kind)>,
    ) -> Result<(), Error> {
        let folder = root.join(below);
        for entry in fs::read_dir(&folder).map_err(Error::io("read", &folder))? {
            let entry = entry.map_err(Error::io("read", &folder))?;
            let name = below.join(entry.file_name());
            let kind = entry.file_type().map_err(Error::io("read", &folder))?;
            let mut refuse = |why: &str| {
                self.stripped.not_copied.push(NotCopied {
                    file: name.clone(),
                    why: why.to_owned(),
                });
            };
            if kind.is_dir() {
                self.find(root, &name, files)?;
            } else if !kind.is_file() {
                refuse("neither a file nor a folder");
            } else {
                match self.read(&entry.path())? {
                    None => {}
                    Some(bytes) => match kind_of(&name, &bytes) {
                        Some(kind) => files.push((name, kind)),
                        None => self.stripped.not_copied.push(NotCopied {
                            file: name,
                            why: "of no known kind".to_owned(),
                        }),
                    },
                }
            }
        }
        self.stripped.not_copied.sort_by(|a, b| a.file.cmp(&b.file));
        Ok(())
    }

    fn read(&mut self, path: &Path) -> Result<Option<Vec<u8>>, Error> {
        match read_regular_up_to(path, most::BINARY) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                self.stripped.not_copied.push(NotCopied {
                    file: path.to_path_buf(),
                    why: format!("larger than {} bytes", most::BINARY),
                });
                Ok(None)
            }
            Err(error) => Err(Error::named(path)(error)),
        }
    }

    /// The copy of a file, after a search for anything forbidden that is left in it.
    fn file(
        &mut self,
        path: &Path,
        name: PathBuf,
        kind: Kind,
        bytes: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let input = |cause: String| Error::Input {
            path: path.to_path_buf(),
            cause,
        };
        let before = std::mem::take(&mut self.scrubber.removed);
        let clean = match kind {
            Kind::Report => self.report(bytes).map_err(input)?,
            Kind::Csv => {
                let text = lossy(&ncu_report::csv::utf8(bytes));
                let clean = csv(&mut self.scrubber, &text).into_bytes();
                keeps_numbers(bytes, &clean).map_err(input)?;
                clean
            }
            Kind::Profile => self.profile(bytes).map_err(input)?.into_bytes(),
            Kind::Json => json(&mut self.scrubber, &lossy(bytes)).into_bytes(),
            Kind::Text => {
                let text = lossy(bytes);
                self.scrubber.text(&text).unwrap_or(text).into_bytes()
            }
        };
        if let Some(left) = self.scrubber.forbidden_in(&clean) {
            let code = match self.keep_machine_code {
                true => ": it may be in the machine code; run without --keep-machine-code",
                false => ": please report this",
            };
            return Err(input(format!(
                "its copy would still contain `{left}`, and is not written{code}"
            )));
        }
        // NVIDIA's tools decide by the ending whether a report is compressed.
        let is_compressed = kind == Kind::Report && name.extension() == Some("ncu-repz".as_ref());
        let clean = match is_compressed {
            true => report::compress(&clean),
            false => clean,
        };
        self.hashes.insert(sha256_hex(bytes), sha256_hex(&clean));
        let removed = std::mem::replace(&mut self.scrubber.removed, before);
        for (kind, count) in &removed {
            *self.scrubber.removed.entry(kind).or_default() += count;
        }
        self.stripped.files.push(StrippedFile {
            file: name,
            kind: kind.as_str(),
            removed,
        });
        Ok(clean)
    }

    fn report(&mut self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let mut removed = BTreeMap::new();
        let scrubber = std::cell::RefCell::new(&mut self.scrubber);
        let clean = report::strip(
            bytes,
            &mut report::Stripping {
                keep_machine_code: self.keep_machine_code,
                text: &mut |text| Some(scrubber.borrow_mut().whole(text)),
                suspect: &|content| scrubber.borrow().suspects(content),
                command: &mut conditions_only,
                host: &mut |name| scrubber.borrow_mut().learn_host(name),
                removed: &mut removed,
            },
        )
        .map_err(|error| error.to_string())?;
        for (kind, count) in removed {
            *self.scrubber.removed.entry(kind).or_default() += count;
        }
        Ok(clean)
    }

    fn profile(&mut self, bytes: &[u8]) -> Result<String, String> {
        let mut profile = Profile::parse(bytes)?;
        let scrubber = &mut self.scrubber;
        let lines = |scrubber: &mut Scrubber, lines: &mut Vec<String>| {
            for line in lines {
                *line = scrubber.whole(line);
            }
        };
        lines(scrubber, &mut profile.identity.workload);
        let provenance = &mut profile.provenance;
        provenance.stripped = true;
        lines(scrubber, &mut provenance.build_argv);
        lines(scrubber, &mut provenance.overrides);
        let pseudonym = |scrubber: &mut Scrubber, uuid: &mut Option<String>| {
            if let Some(uuid) = uuid {
                *uuid = scrubber.gpu(uuid);
            }
        };
        pseudonym(scrubber, &mut provenance.gpu_uuid);
        provenance.sources = std::mem::take(&mut provenance.sources)
            .into_iter()
            .map(|(path, hash)| (scrubber.whole(&path), hash))
            .collect();
        for capture in &mut provenance.captures {
            pseudonym(scrubber, &mut capture.gpu_uuid);
            lines(scrubber, &mut capture.argv);
            for tuned in &mut capture.tuned {
                lines(scrubber, &mut tuned.chosen);
            }
            for process in capture
                .device
                .iter_mut()
                .flat_map(|s| &mut s.other_processes)
            {
                if process.name.take().is_some() {
                    scrubber.count("name of another process");
                }
            }
            for file in std::iter::once(&mut capture.report).chain(&mut capture.csv) {
                if let Some(hash) = self.hashes.get(&file.sha256) {
                    file.sha256.clone_from(hash);
                }
            }
        }
        // All other texts: messages of the compiler, the versions found for the pins.
        Ok(json(scrubber, &profile.to_json()))
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The options of ncu's command line that say how it measured: without them, the conditions of an
/// imported report are unknown.
fn conditions_only(line: &str) -> String {
    const CONDITIONS: [&str; 4] = [
        "--clock-control",
        "--cache-control",
        "--replay-mode",
        "--graph-profiling",
    ];
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut kept = vec!["ncu".to_owned()];
    for (at, word) in words.iter().enumerate() {
        let value = CONDITIONS
            .iter()
            .find_map(|name| match word.strip_prefix(name)? {
                "" => Some((name, *words.get(at + 1)?)),
                rest => Some((name, rest.strip_prefix('=')?)),
            });
        let spelled = |value: &str| value.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        if let Some((name, value)) = value.filter(|(_, value)| spelled(value)) {
            kept.push(format!("{name} {value}"));
        }
    }
    kept.join(" ")
}

/// Scrubs every text of a JSON document in place: numbers and order stay as they are written.
fn json(scrubber: &mut Scrubber, document: &str) -> String {
    let mut clean = String::with_capacity(document.len());
    let mut rest = document;
    while let Some(start) = rest.find('"') {
        clean.push_str(&rest[..start]);
        let literal = literal(&rest[start..]);
        let text: String = serde_json::from_str(literal).unwrap_or_default();
        let scrubbed = scrubber.whole(&text);
        if scrubbed == text {
            clean.push_str(literal);
        } else {
            clean.push_str(&serde_json::to_string(&scrubbed).unwrap_or_default());
        }
        rest = &rest[start + literal.len()..];
    }
    clean + rest
}

/// The text at the start of a JSON document, with its quotes.
fn literal(document: &str) -> &str {
    let mut escaped = false;
    for (at, c) in document.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return &document[..=at],
            _ => {}
        }
    }
    document
}

/// Scrubs the pages that ncu prints, with what the program printed around them.
fn csv(scrubber: &mut Scrubber, page: &str) -> String {
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
                    name == "Source" || report::identifies_the_gpu(name)
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

/// Whether bytes are a JSON document of bounded size.
fn is_json(bytes: &[u8]) -> bool {
    bounded_json(bytes).is_ok() && serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conditions_of_a_command_line_are_kept() {
        let line = "/opt/x/ncu --clock-control none --replay-mode=kernel -o /home/a/b ./p --cache-control $(id)";
        assert_eq!(
            conditions_only(line),
            "ncu --clock-control none --replay-mode kernel"
        );
    }

    #[test]
    fn texts_of_a_document_change_and_nothing_else_does() {
        let document = "{ \"a\\\"/b/c\": [1.50, \"/home/x/y\", null, \"\\u0041\"] }\n";
        assert_eq!(
            json(&mut Scrubber::default(), document),
            "{ \"a\\\"c\": [1.50, \"y\", null, \"\\u0041\"] }\n"
        );
    }

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
        let copy = |name: &str| strip_bytes(Path::new("x.csv"), page(name).as_bytes(), false);
        for (name, copied) in [("x", true), ("x\"\"y", true), ("x TOKEN=x\"y", false)] {
            assert!(
                ncu_report::csv::read(page(name).as_bytes()).is_ok(),
                "{name}"
            );
            assert_eq!(copy(name).is_ok(), copied, "{name}");
        }
    }

    #[test]
    fn a_table_between_the_rows_of_a_page_names_no_host() {
        let page = "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Block Size\",\"Grid Size\"\n\
                    \"0\",\"1\",\"p\",\"node7\",\"k\",\"(32, 1, 1)\",\"(1, 1, 1)\"\n\
                    \"GPU ID\",\"GPU Name\",\"NUMA ID\",\"CPU Affinity\"\n\
                    \"0\",\"NVIDIA H200\",\"0\",\"0-31\"\n";
        let clean = csv(&mut Scrubber::default(), page);
        assert_eq!(clean, page.replace("node7", "localhost"));
    }

    #[test]
    fn a_line_that_is_no_row_has_no_cells() {
        assert_eq!(cells("\"a\",\"b \"\"c\"\"\"\n").len(), 2);
        assert_eq!(cells("==PROF== \"x\": 0%\n").len(), 0);
        assert_eq!(cells("\"a\", then\n").len(), 0);
    }
}
