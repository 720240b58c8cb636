//! The verifying run again, under the tools of compute-sanitizer. They see what right numbers do
//! not show: a race that was won, a write past the end that hit nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::build::{Artifact, filled_argv, program_argv};
use crate::config::{Config, SanitizerTool, Variant};
use crate::files::{read_regular, variant_folder};
use crate::finding::{Code, Error, Finding, WarnReason};
use crate::process::{self, Ending, Invocation};
use crate::terms::{Phase, VariantId};
use crate::toolchain::{FirstError, Sanitizer, SanitizerLog};
use crate::verify::{asks_for_result, judge};

/// What the tools said of a variant.
#[derive(Clone, Debug, Serialize)]
pub struct SanitizedVariant {
    /// The variant.
    pub variant: VariantId,
    /// One entry a tool, in the order that they ran in.
    pub tools: Vec<Sanitized>,
}

/// What became of a run under a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SanitizerResult {
    /// The tool found nothing. The program's numbers may be wrong all the same.
    Clean,
    /// The tool found nothing but warnings.
    Warnings,
    /// The tool found errors.
    Errors,
    /// The tool said nothing that can be believed.
    Untrusted,
    /// The program was not run, because it did not end without the tool either.
    NotRun,
}

/// What a tool said of a variant.
#[derive(Clone, Debug, Serialize)]
pub struct Sanitized {
    /// The tool.
    pub tool: SanitizerTool,
    /// What became of it.
    pub result: SanitizerResult,
    /// Errors that it counted; `None` where it said nothing that can be believed.
    pub errors: Option<u64>,
    /// Warnings that it counted, likewise.
    pub warnings: Option<u64>,
    /// The first of them.
    pub first: Option<FirstError>,
    /// How the run ended; `None` where there was none.
    pub ending: Option<Ending>,
    /// How long the run took.
    #[serde(rename = "wall_s", serialize_with = "crate::verify::seconds")]
    pub wall: Duration,
    /// What was run.
    pub argv: Vec<String>,
    /// The tool's log.
    pub log: PathBuf,
}

impl Sanitized {
    /// In a few words.
    pub fn words(&self, finding: Option<&Finding>) -> String {
        match (finding, self.result) {
            (Some(finding), _) => finding.message.clone(),
            (None, SanitizerResult::NotRun) => "not run".to_owned(),
            (None, _) => {
                let program = match self.ending {
                    None | Some(Ending::Exited(0)) => String::new(),
                    Some(ending) => format!(", the program failed as without it ({ending})"),
                };
                format!("no errors{program}, {:.1} s", self.wall.as_secs_f64())
            }
        }
    }

    fn believe(&mut self, log: SanitizerLog) {
        self.result = match (log.errors, log.warnings) {
            (0, 0) => SanitizerResult::Clean,
            (0, _) => SanitizerResult::Warnings,
            _ => SanitizerResult::Errors,
        };
        self.errors = Some(log.errors);
        self.warnings = Some(log.warnings);
        self.first = log.first;
    }
}

/// Runs the program under a tool. `failed` is what the run without the tool was denied for: that
/// is not told again, so that wrong numbers and what the tool finds stay two things.
///
/// # Errors
/// [`Error`] where the machine failed; what the tool finds is a finding.
pub fn sanitize(
    config: &Config,
    variant: &Variant,
    artifact: &Artifact,
    failed: Option<Code>,
    sanitizer: &Sanitizer,
    tool: SanitizerTool,
    env: &BTreeMap<String, String>,
) -> Result<(Sanitized, Option<Finding>), Error> {
    let folder = variant_folder(&config.work.join("verify"), &variant.id);
    std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    let file = |ending: &str| folder.join(format!("sanitizer-{tool}.{ending}"));
    let (log, output, result) = (file("log"), file("program.log"), file("result.json"));
    let launches = variant.launches_needed(Phase::Timing);
    let (program, asks) = match &variant.sanitizer_args {
        Some(arguments) => (
            filled_argv(variant, artifact, arguments.iter(), &result, launches),
            asks_for_result(arguments),
        ),
        None => (
            program_argv(variant, artifact, &variant.verify_args, &result, launches),
            asks_for_result(&variant.verify_args),
        ),
    };
    let argv = sanitizer.argv(tool, &log, &program);
    let mut run = Run {
        variant,
        line: process::shell_line(&argv),
        output,
        said: Sanitized {
            tool,
            result: SanitizerResult::NotRun,
            errors: None,
            warnings: None,
            first: None,
            ending: None,
            wall: Duration::ZERO,
            argv,
            log,
        },
    };
    if matches!(failed, Some(Code::TimedOut | Code::NotStarted)) {
        return Ok((run.said, None));
    }
    let mut env = env.clone();
    env.extend(variant.env.clone());
    let invocation = Invocation {
        argv: run.said.argv.clone(),
        dir: config.root.clone(),
        env,
        timeout: variant.verify_timeout,
        stdout: run.output.clone(),
        stderr: run.output.clone(),
    };
    run.said.result = SanitizerResult::Untrusted;
    let finished = match invocation.run() {
        Ok(finished) => finished,
        Err(error) => {
            let finding =
                run.untrusted(&format!("compute-sanitizer could not be started: {error}"));
            return Ok((run.said, Some(finding)));
        }
    };
    run.said.ending = Some(finished.ending);
    run.said.wall = finished.wall;
    let finding = match finished.ending {
        Ending::Interrupted => return Err(Error::Interrupted),
        Ending::TimedOut => Some(run.timed_out()),
        Ending::Signalled(_) => Some(run.untrusted(&format!("it ended with {}", finished.ending))),
        Ending::Exited(status) => match read_log(&run.said.log, status) {
            Err(why) => Some(run.untrusted(&format!("{why} (exit status {status})"))),
            Ok(log) => {
                run.said.believe(log);
                run.program(finished.ending, &result, asks, failed)
                    .or_else(|| run.tool())
            }
        },
    };
    Ok((run.said, finding))
}

/// A log that can be believed, beside the exit status that came with it.
fn read_log(path: &Path, status: i32) -> Result<SanitizerLog, String> {
    let text = read_regular(path).map_err(|error| format!("its log cannot be read: {error}"))?;
    let log = SanitizerLog::parse(&String::from_utf8_lossy(&text))?;
    if log.errors == 0 && status == Sanitizer::ERROR_STATUS {
        return Err("it counts no error and exits as if there were some".to_owned());
    }
    Ok(log)
}

/// A run under a tool, and what it makes to tell.
struct Run<'a> {
    variant: &'a Variant,
    said: Sanitized,
    /// What the program printed, and the tool besides its log.
    output: PathBuf,
    /// What was run, to be pasted.
    line: String,
}

impl Run<'_> {
    fn deny(&self, code: Code, message: String, next: &str) -> Finding {
        let next = format!("{next}: {}", self.line);
        Finding::deny(code, &self.variant.id, message, next)
    }

    fn untrusted(&self, why: &str) -> Finding {
        let tails = [&self.said.log, &self.output].map(|path| process::tail(path, 6));
        self.deny(
            Code::Sanitizer,
            format!(
                "{} does not tell whether there are errors: {why}",
                self.said.tool
            ),
            "run it by hand",
        )
        .detail(tails.join("\n").trim())
    }

    fn timed_out(&self) -> Finding {
        self.deny(
            Code::TimedOut,
            format!(
                "the verifying run under {} passed its time limit of {} s and was killed",
                self.said.tool,
                self.variant.verify_timeout.as_secs_f64()
            ),
            "raise `verify.timeout_s`, give a smaller problem in `sanitizer_args`, or run it by hand",
        )
        .detail(process::tail(&self.output, 12))
    }

    /// What is wrong with the program where the tool found no error, unless it is known.
    fn program(
        &self,
        ending: Ending,
        result: &Path,
        asks_for_result: bool,
        failed: Option<Code>,
    ) -> Option<Finding> {
        if self.said.result == SanitizerResult::Errors {
            return None;
        }
        let failure = judge(ending, result, asks_for_result).err()?;
        // Without its result a program may not have run at all.
        let new = failed.is_none() || failure.code == Code::ResultUnreadable;
        new.then(|| {
            self.deny(
                failure.code,
                format!(
                    "under {}, which found no error: {}",
                    self.said.tool, failure.message
                ),
                &failure.next,
            )
            .detail(process::tail(&self.output, 12))
        })
    }

    /// What the tool found.
    fn tool(&self) -> Option<Finding> {
        let said = &self.said;
        let finding = match said.result {
            SanitizerResult::Errors => {
                let message = found(said, said.errors?, "error");
                self.deny(Code::Sanitizer, message, "run it by hand")
            }
            SanitizerResult::Warnings => {
                let message = found(said, said.warnings?, "warning");
                self.deny(Code::Sanitizer, message, "run it by hand")
                    .warn_for(WarnReason::ToolWarned)
            }
            _ => return None,
        };
        let Some(first) = &said.first else {
            return Some(finding);
        };
        let finding = finding.detail(first.text.clone());
        Some(match &first.kernel {
            Some(kernel) => finding.kernel(kernel.clone()),
            None => finding,
        })
    }
}

/// `memcheck found 2 errors, the first: ... in kernel at file:line`.
fn found(said: &Sanitized, count: u64, what: &str) -> String {
    let (plural, first) = match count {
        1 => ("", ""),
        _ => ("s", ", the first"),
    };
    let mut text = format!("{} found {count} {what}{plural}", said.tool);
    let Some(error) = &said.first else {
        return text;
    };
    text.push_str(&format!("{first}: {}", error.what));
    // A race says its two places itself.
    if let Some(kernel) = &error.kernel {
        text.push_str(&format!(" in {kernel}"));
        if let Some(location) = &error.location {
            text.push_str(&format!(" at {location}"));
        }
        if !error.callers.is_empty() {
            text.push_str(&format!(", called from {}", error.callers.join(", ")));
        }
    }
    if let Some(address) = &error.address {
        text.push_str(&format!(", address {address}"));
    }
    text
}
