//! Everything that this library reads of a report against NVIDIA's own module, `ncu_report` of PyPI.
//!
//! The reports are those in the repository. `NCU_REPORT_FOLDER=FOLDER` compares those in another folder
//! instead, and prints a line for each:
//!
//! ```sh
//! NCU_REPORT_FOLDER=reports cargo test -p ncu-report --test nvidia_module
//! ```

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;
#[path = "common/nvidia.rs"]
mod nvidia;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ncu_report::{Launch, Value, report};
use nvidia::Nvidia;
use serde_json::Value as Json;

/// The share of the units that NVIDIA names which must be known, for the chips of the repository's reports.
const KNOWN: f64 = 0.999;

/// Says something also where the test passes.
fn aloud(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// What was compared.
#[derive(Default)]
struct Compared {
    launches: usize,
    values: usize,
    /// Of how many values NVIDIA names a unit, and of how many of these so do we.
    units: usize,
    known: usize,
    /// Of how many values only we name a unit.
    alone: usize,
    /// Names, sizes and values that are not equal.
    differences: Vec<String>,
    /// Units that are not equal.
    other_units: Vec<String>,
    /// The names of metrics without a unit.
    unknown: BTreeSet<String>,
}

impl Compared {
    /// Compares the launches of a file.
    fn file(path: &Path, theirs: &Json) -> Compared {
        let mut compared = Compared::default();
        let ours = match ncu_report::read_file(path) {
            Ok(recording) => recording.launches,
            Err(error) => {
                compared.differences.push(error.to_string());
                return compared;
            }
        };
        let Some(theirs) = theirs.as_array().filter(|all| all.len() == ours.len()) else {
            compared
                .differences
                .push(format!("{} launches, and {theirs:.200}", ours.len()));
            return compared;
        };
        compared.launches = ours.len();
        for (ours, theirs) in ours.iter().zip(theirs) {
            compared.launch(ours, theirs);
        }
        compared
    }

    fn equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, ours: T, theirs: T) {
        if ours != theirs {
            self.differences
                .push(format!("{what}: {ours:?}, not {theirs:?}"));
        }
    }

    fn launch(&mut self, ours: &Launch, theirs: &Json) {
        let kernel = &ours.kernel;
        let text = |name: &Option<String>| name.clone().unwrap_or_default();
        let names = [
            kernel.function.clone(),
            text(&kernel.demangled),
            text(&kernel.mangled),
        ];
        for (name, expected) in names.iter().zip(theirs["names"].as_array().unwrap()) {
            // Of a name that the file does not have, it gives another one.
            let is_another = names.iter().any(|other| expected == other);
            if !(name.is_empty() && is_another) {
                self.equal("name", name.as_str(), expected.as_str().unwrap());
            }
        }
        let metrics = theirs["metrics"].as_object().unwrap();
        let names: BTreeSet<&str> = ours.metrics.keys().map(|name| &**name).collect();
        let expected = metrics.keys().map(String::as_str).collect();
        self.equal("metrics", names, expected);
        for (name, size) in [("grid", ours.grid), ("block", ours.block)] {
            for (axis, size) in ["x", "y", "z"].iter().zip(size) {
                let metric = metrics.get(&format!("launch__{name}_dim_{axis}"));
                if let Some(expected) = metric.and_then(|metric| metric[0].as_u64()) {
                    self.equal(name, size, expected);
                }
            }
        }
        for (name, expected) in metrics {
            let Some(found) = ours.metrics.get(name) else {
                continue;
            };
            self.values += 1;
            if !is_read(&found.value, expected) {
                self.differences
                    .push(format!("{name}: {:?}, not {expected}", found.value));
            }
            let expected = expected[1].as_str().unwrap();
            match found.unit.symbol() {
                None if expected.is_empty() => {}
                None => {
                    self.units += 1;
                    self.unknown.insert(name.clone());
                }
                // Of metrics that its version does not know, and of old reports, it names none.
                Some(_) if expected.is_empty() => self.alone += 1,
                Some(unit) => {
                    self.units += 1;
                    self.known += 1;
                    // Of what sections derive, NVIDIA's unit differs from report to report; and a list
                    // of parts is a text.
                    let open = name.starts_with("derived_") || name.starts_with("breakdown:");
                    if unit != expected && !open {
                        self.other_units
                            .push(format!("{name}: {unit:?}, not {expected:?}"));
                    }
                }
            }
        }
    }

    fn line(&self, name: &str) -> String {
        let share = 100.0 * self.known as f64 / self.units.max(1) as f64;
        format!(
            "{name:60} {:5} launches {:8} values {:8} units, {share:6.2} % known, {} by us alone; differ: {} values, {} units",
            self.launches,
            self.values,
            self.units,
            self.alone,
            self.differences.len(),
            self.other_units.len()
        )
    }

    fn add(&mut self, name: &str, other: Compared) {
        self.launches += other.launches;
        self.values += other.values;
        self.units += other.units;
        self.known += other.known;
        self.alone += other.alone;
        let of_file = |one: &String| format!("{name}: {one}");
        let differences = other.differences.iter().map(of_file);
        self.differences.extend(differences);
        let units = other.other_units.iter().map(of_file);
        self.other_units.extend(units);
        self.unknown.extend(other.unknown);
    }
}

/// Whether a value is what NVIDIA's module reads: value, unit, number of instances.
fn is_read(ours: &Value, theirs: &Json) -> bool {
    // It reads 0 of a metric that has values by instance alone.
    let by_instance = theirs[0].as_f64() == Some(0.0) && theirs[2].as_u64() > Some(0);
    common::is_same(ours, &theirs[0]) || *ours == Value::Missing && by_instance
}

/// The reports in a folder and below it.
fn reports(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        let is_report = |it| report::ENDINGS.contains(&it) || it == "nsight-cuprof-report";
        if path.is_dir() {
            reports(&path, found);
        } else if ending.is_some_and(is_report) {
            found.push(path);
        }
    }
    found.sort();
}

#[test]
fn every_value_unit_name_and_size_of_every_report_is_that_of_nvidias_module() {
    let other = std::env::var_os("NCU_REPORT_FOLDER").map(PathBuf::from);
    let mut nvidia = match Nvidia::start(include_str!("common/nvidia.py")) {
        Ok(nvidia) => nvidia,
        Err(missing) => {
            aloud(&missing);
            return assert!(std::env::var_os("CI").is_none(), "CI has the module");
        }
    };
    let mut paths = Vec::new();
    reports(other.as_deref().unwrap_or(&common::folder()), &mut paths);
    let mut all = Compared::default();
    for path in &paths {
        let name = path.file_name().unwrap().to_string_lossy();
        let compared = Compared::file(path, &nvidia.read(path).unwrap());
        if other.is_some() {
            aloud(&compared.line(&name));
        }
        all.add(&name, compared);
    }
    if other.is_some() {
        aloud(&all.line(&format!("all {} files", paths.len())));
        aloud(&format!(
            "no unit: {:?}\nother units: {:#?}",
            all.unknown, all.other_units
        ));
    }
    let first = |all: &[String]| all[..all.len().min(20)].to_vec();
    let (none, line) = ([""; 0], all.line("all"));
    assert_eq!(first(&all.differences), none, "{line}");
    if other.is_none() {
        assert_eq!(first(&all.other_units), none, "{line}");
        let known = all.known as f64 / all.units as f64;
        assert!(all.values > 30_000 && known > KNOWN, "{line}");
    }
}
