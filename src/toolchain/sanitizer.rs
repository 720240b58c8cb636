//! compute-sanitizer: how it is called and what its log means.
//!
//! The format of the log is documented nowhere; it is known from recordings of version 2025.3.1
//! (`tests/data/sanitizer`). Each line begins with `=========`. A record is a line of text and
//! indented lines below it; the last line is a summary with the counts.

use std::path::Path;

use serde::Serialize;

use super::find::{configured, in_toolkit};
use super::tool::Tool;
use crate::config::{SanitizerTool, Toolchain};
use crate::finding::Error;

/// A compute-sanitizer that was found. Its version is such as `2025.3.1.0`.
#[derive(Clone, Debug)]
pub struct Sanitizer(pub Tool);

/// The content of a log of compute-sanitizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SanitizerLog {
    /// Errors, also those that were not printed.
    pub errors: u64,
    /// Warnings; racecheck has them.
    pub warnings: u64,
    /// The first error that was printed, or else the first warning.
    pub first: Option<FirstError>,
}

/// An error in a log, as far as the log describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FirstError {
    /// What is wrong, in the tool's words.
    pub what: String,
    /// The kernel, with its parameters as the tool writes them. racecheck names none.
    pub kernel: Option<String>,
    /// The function that does it, which may be one that the compiler put into the kernel.
    pub function: Option<String>,
    /// `file:line` of the function, where the program was built with line numbers.
    pub location: Option<String>,
    /// `file:line` of its callers, the kernel's last.
    pub callers: Vec<String>,
    /// The address that was accessed.
    pub address: Option<String>,
    /// The whole record.
    #[serde(skip)]
    pub text: String,
}

impl Sanitizer {
    /// The exit status that it is asked for where it found errors (`--error-exitcode`). Otherwise
    /// it ends with the program's own.
    pub const ERROR_STATUS: i32 = 86;

    /// Finds compute-sanitizer (the configuration, the PATH, `CUDA_HOME`, `CUDA_PATH`, the usual
    /// folders) and asks it for its version.
    ///
    /// # Errors
    /// [`Error::Environment`], with the places that were looked at.
    pub fn locate(toolchain: &Toolchain, work: &Path) -> Result<Sanitizer, Error> {
        let configured = configured("compute_sanitizer", &toolchain.compute_sanitizer)?;
        let path = in_toolkit("compute-sanitizer", configured, None, Vec::new());
        let path = path.map_err(|places| {
            Error::environment(
                format!("no compute-sanitizer was found; {places}"),
                "install it (it comes with the CUDA toolkit), set `toolchain.compute_sanitizer`, \
                   or verify without --sanitizer and `verify.sanitizer`",
            )
        })?;
        Ok(Sanitizer(Tool::at(path, work)?.with_version()?))
    }

    /// The argv that runs `program` (itself an argv) under a tool.
    pub fn argv(&self, tool: SanitizerTool, log: &Path, program: &[String]) -> Vec<String> {
        let mut argv = vec![self.0.path.display().to_string()];
        let mut option = |name: &str, value: String| argv.extend([name.to_owned(), value]);
        option("--tool", tool.to_string());
        option("--target-processes", "all".to_owned());
        option("--error-exitcode", Self::ERROR_STATUS.to_string());
        // `%` begins a placeholder.
        option("--log-file", log.display().to_string().replace('%', "%%"));
        argv.extend(program.iter().cloned());
        argv
    }
}

impl SanitizerLog {
    /// Reads what was written to `--log-file`.
    ///
    /// # Errors
    /// Why the log cannot be used: it has no summary, or its records contradict the summary.
    pub fn parse(text: &str) -> Result<SanitizerLog, String> {
        let mut log = SanitizerLog::default();
        let mut summaries = 0;
        let mut records: Vec<Vec<&str>> = Vec::new();
        for line in text
            .lines()
            .filter_map(|line| line.strip_prefix("========="))
        {
            let indented = line.starts_with("  ");
            let words = line.trim();
            if words.is_empty() || words == "COMPUTE-SANITIZER" {
                continue;
            }
            if indented && let Some(record) = records.last_mut() {
                record.push(words);
            } else if let Some((errors, warnings)) = summary(words) {
                summaries += 1;
                log.errors = log.errors.saturating_add(errors);
                log.warnings = log.warnings.saturating_add(warnings);
            } else if !words.contains(" SUMMARY: ")
                && words != "Target application returned an error"
            {
                records.push(vec![words]);
            }
        }
        let mut found = records.iter();
        let error = found.find(|record| !record[0].starts_with("Warning"));
        if summaries == 0 {
            let cause = error.map(|record| format!(": {}", record[0]));
            return Err(format!("it wrote no summary{}", cause.unwrap_or_default()));
        }
        if let (0, Some(record)) = (log.errors, error) {
            return Err(format!(
                "its summary counts no error, but it reports: {}",
                record[0]
            ));
        }
        log.first = error
            .or_else(|| records.first())
            .map(|record| FirstError::of(record));
        Ok(log)
    }
}

/// Errors and warnings that a summary counts. Other summary lines are about leaks, or about records
/// that were not printed.
fn summary(line: &str) -> Option<(u64, u64)> {
    let count = |text: &str, what: &str| -> Option<u64> {
        let (number, noun) = text.split_once(' ')?;
        let fits = noun.strip_suffix('s').unwrap_or(noun) == what;
        fits.then(|| number.replace(',', "").parse().ok()).flatten()
    };
    if let Some(errors) = line.strip_prefix("ERROR SUMMARY: ") {
        return Some((count(errors, "error")?, 0));
    }
    let (_, counts) = line.strip_prefix("RACECHECK SUMMARY: ")?.split_once('(')?;
    let (errors, warnings) = counts.strip_suffix(')')?.split_once(", ")?;
    Some((count(errors, "error")?, count(warnings, "warning")?))
}

impl FirstError {
    fn of(record: &[&str]) -> FirstError {
        let mut error = FirstError {
            what: record[0].to_owned(),
            text: record.join("\n"),
            ..FirstError::default()
        };
        for line in &record[1..] {
            if let Some(frame) = line.strip_prefix("at ").and_then(frame) {
                error.kernel = Some(frame.0.clone());
                error.function = Some(frame.0);
                error.location = frame.1;
            } else if let Some(frame) = line.strip_prefix("Device Frame: ").and_then(frame) {
                // The frames go outwards: the last is the kernel's.
                error.kernel = Some(frame.0);
                error.callers.extend(frame.1);
            } else if let Some(address) = address(line) {
                error.address = Some(address.to_owned());
            }
        }
        if record[0].contains("Race reported") {
            error.race(record);
        }
        error
    }

    /// The places of a race are in its text, and none of them has to be the kernel.
    fn race(&mut self, record: &[&str]) {
        let mut what = Vec::new();
        for line in record.iter().take(2) {
            let Some((access, place)) = line.split_once(" access at ") else {
                continue;
            };
            let access = access
                .trim_start_matches("Error: ")
                .trim_start_matches("Warning: ");
            let Some((function, location)) = frame(place) else {
                what.push(format!("{access} access"));
                continue;
            };
            let at = location.as_ref().unwrap_or(&function);
            what.push(format!("{access} access at {at}"));
            self.function.get_or_insert(function);
            if self.location.is_none() {
                self.location = location;
            }
        }
        if !what.is_empty() {
            self.what = what.join(" ");
        }
    }
}

/// Function and `file:line` of `function+0x1a90 in file:line`.
fn frame(text: &str) -> Option<(String, Option<String>)> {
    let (function, place) = text.rsplit_once("+0x")?;
    let location = place
        .split_once(" in ")
        .and_then(|(_, location)| location.split(" [").next());
    Some((function.to_owned(), location.map(str::to_owned)))
}

/// The address of `Access to 0x10300 is out of bounds`.
fn address(line: &str) -> Option<&str> {
    ["Access to ", "Access at ", "Address "]
        .iter()
        .find_map(|start| line.strip_prefix(start))?
        .split_whitespace()
        .next()
        .filter(|word| word.starts_with("0x"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_summaries_never_count_fewer_errors_than_one() {
        let summary = "========= ERROR SUMMARY: 18446744073709551615 errors\n";
        let log = SanitizerLog::parse(&summary.repeat(2)).unwrap();
        assert_eq!(log.errors, u64::MAX);
    }

    #[test]
    fn a_percent_sign_in_the_logs_path_is_no_placeholder() {
        let sanitizer = Sanitizer(Tool {
            path: "compute-sanitizer".into(),
            version: "2025.3.1.0".to_owned(),
        });
        let program = ["./kernel", "--size", "50%"].map(String::from);
        let argv = sanitizer.argv(SanitizerTool::Racecheck, Path::new("/50%/log"), &program);
        assert_eq!(
            argv.join(" "),
            "compute-sanitizer --tool racecheck --target-processes all --error-exitcode 86 \
             --log-file /50%%/log ./kernel --size 50%"
        );
    }
}
