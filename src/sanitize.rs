//! Repeats the verifying run under the tools of compute-sanitizer. They find what correct numbers do
//! not show: a race that had no effect, a write past the end that changed nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::build::{Artifact, Given, filled_argv, program_argv};
use crate::config::{Config, SanitizerTool, Variant};
use crate::disk;
use crate::files::{read_regular, variant_folder};
use crate::finding::{Code, Error, Finding, WarnReason};
use crate::process::{self, Ending, Invocation};
use crate::terms::{Seed, VariantId};
use crate::toolchain::{FirstError, Sanitizer, SanitizerLog};
use crate::verify::{asks_for_result, judge, remove_result, verify_given};

/// What the tools reported about a variant.
#[derive(Clone, Debug, Serialize)]
pub struct SanitizedVariant {
    /// The variant.
    pub variant: VariantId,
    /// One entry a tool, in the order that they ran in.
    pub tools: Vec<Sanitized>,
}

/// The result of a run under a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SanitizerResult {
    /// The tool found nothing. The program's numbers may be wrong nevertheless.
    Clean,
    /// The tool found warnings only.
    Warnings,
    /// The tool found errors.
    Errors,
    /// The tool's log is missing, incomplete or contradictory.
    Untrusted,
    /// The program was not run, because it did not end without the tool either.
    NotRun,
}

/// What a tool reported about a variant.
#[derive(Clone, Debug, Serialize)]
pub struct Sanitized {
    /// The tool.
    pub tool: SanitizerTool,
    /// The result.
    pub result: SanitizerResult,
    /// Errors that it counted; `None` where its log cannot be used.
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
    /// A short summary.
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

    fn record(&mut self, log: SanitizerLog) {
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

/// A verifying run to repeat under a tool.
#[derive(Clone, Copy)]
pub struct SanitizerRun<'a> {
    /// The project.
    pub config: &'a Config,
    /// The variant.
    pub variant: &'a Variant,
    /// Its program.
    pub artifact: &'a Artifact,
    /// The finding of the run without the tool. It is not reported again, so that wrong numbers and
    /// what the tool finds stay two findings.
    pub failed: Option<Code>,
    /// The installation.
    pub sanitizer: &'a Sanitizer,
    /// Its tool.
    pub tool: SanitizerTool,
    /// Variables added to the environment.
    pub env: &'a BTreeMap<String, String>,
    /// What the values of the program's inputs are made from.
    pub seed: Seed,
}

/// Runs the program under a tool.
///
/// # Errors
/// [`Error`] where the machine failed; what the tool finds is a finding.
pub fn sanitize(request: &SanitizerRun<'_>) -> Result<(Sanitized, Option<Finding>), Error> {
    let mut run = Run::new(request)?;
    if matches!(request.failed, Some(Code::TimedOut | Code::NotStarted)) {
        return Ok((run.outcome, None));
    }
    run.outcome.result = SanitizerResult::Untrusted;
    let finding = run.execute(request)?;
    Ok((run.outcome, finding))
}

/// The tool's log, where it and the exit status agree.
fn read_log(path: &Path, status: i32) -> Result<SanitizerLog, String> {
    let text = read_regular(path).map_err(|error| format!("its log cannot be read: {error}"))?;
    let log = SanitizerLog::parse(&String::from_utf8_lossy(&text))?;
    if log.errors == 0 && status == Sanitizer::ERROR_STATUS {
        return Err(
            "its log counts no error, but its exit status means that there are some".to_owned(),
        );
    }
    Ok(log)
}

/// The argv of the program for a run under a tool.
pub(crate) fn sanitized_argv(
    variant: &Variant,
    artifact: &Artifact,
    given: &Given<'_>,
) -> Vec<String> {
    match &variant.sanitizer_args {
        Some(arguments) => filled_argv(variant, artifact, arguments.iter(), given),
        None => program_argv(variant, artifact, &variant.verify_args, given),
    }
}

/// A run under a tool, and its outcome.
struct Run<'a> {
    variant: &'a Variant,
    outcome: Sanitized,
    /// Its output is what the program printed, and the tool besides its log.
    invocation: Invocation,
    /// The result file that the program may write.
    result: PathBuf,
    /// Whether its arguments name the result file.
    asks_for_result: bool,
    /// What was run, to be pasted.
    line: String,
}

impl<'a> Run<'a> {
    fn new(request: &SanitizerRun<'a>) -> Result<Run<'a>, Error> {
        let (variant, artifact, tool) = (request.variant, request.artifact, request.tool);
        let folder = variant_folder(&request.config.work.join("verify"), &variant.id);
        disk::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let file = |ending: &str| folder.join(format!("sanitizer-{tool}.{ending}"));
        let (log, result) = (file("log"), file("result.json"));
        remove_result(&result)?;
        let given = verify_given(variant, &result, Some(request.seed));
        let program = sanitized_argv(variant, artifact, &given);
        let arguments = variant.sanitizer_args.as_ref();
        let asks_for_result = asks_for_result(arguments.unwrap_or(&variant.verify_args));
        let argv = request.sanitizer.argv(tool, &log, &program);
        Ok(Run {
            variant,
            line: process::shell_line(&argv),
            invocation: Invocation {
                argv: argv.clone(),
                dir: request.config.root.clone(),
                env: given.env(request.env, variant),
                timeout: variant.verify_timeout,
                stdout: file("program.log"),
                stderr: file("program.log"),
            },
            result,
            asks_for_result,
            outcome: Sanitized {
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
        })
    }

    fn execute(&mut self, request: &SanitizerRun<'_>) -> Result<Option<Finding>, Error> {
        let finished = match self.invocation.run() {
            Ok(finished) => finished,
            Err(error) => {
                let error = Error::unless_full(&self.invocation.stdout, error)?;
                let why = format!("compute-sanitizer could not be started: {error}");
                return Ok(Some(self.untrusted(&why)));
            }
        };
        self.outcome.ending = Some(finished.ending);
        self.outcome.wall = finished.wall;
        Ok(match finished.ending {
            Ending::Interrupted => return Err(Error::Interrupted),
            Ending::TimedOut => Some(self.timed_out()),
            Ending::Signalled(_) | Ending::PrintedTooMuch | Ending::Left(_) => {
                Some(self.untrusted(&format!("it ended with {}", finished.ending)))
            }
            Ending::Exited(status) => match read_log(&self.outcome.log, status) {
                Err(why) => Some(self.untrusted(&format!("{why} (exit status {status})"))),
                Ok(log) => {
                    self.outcome.record(log);
                    self.of_program(finished.ending, request.failed)
                        .or_else(|| self.of_tool())
                }
            },
        })
    }

    fn deny(&self, code: Code, message: String, next: &str) -> Finding {
        let next = format!("{next}: {}", self.line);
        Finding::deny(code, &self.variant.id, message, next)
    }

    fn untrusted(&self, why: &str) -> Finding {
        let tails = [&self.outcome.log, &self.invocation.stdout].map(|path| process::tail(path, 6));
        self.deny(
            Code::Sanitizer,
            format!("{} gave no usable result: {why}", self.outcome.tool),
            "run it by hand",
        )
        .detail(tails.join("\n").trim())
    }

    fn timed_out(&self) -> Finding {
        self.deny(
            Code::TimedOut,
            format!(
                "the verifying run under {} exceeded its time limit of {} s and was killed",
                self.outcome.tool,
                self.variant.verify_timeout.as_secs_f64()
            ),
            "raise `verify.timeout_s`, give a smaller problem in `sanitizer_args`, or run it by hand",
        )
        .detail(process::tail(&self.invocation.stdout, 12))
    }

    /// What is wrong with the program where the tool found no error, unless the run without the tool
    /// showed it.
    fn of_program(&self, ending: Ending, failed: Option<Code>) -> Option<Finding> {
        if self.outcome.result == SanitizerResult::Errors {
            return None;
        }
        let failure = judge(ending, &self.result, self.asks_for_result).err()?;
        // Without its result a program may not have run at all.
        let no_result = failure.code == Code::ProgramFailed && ending == Ending::Exited(0);
        let new = failed.is_none() || no_result;
        new.then(|| {
            self.deny(
                failure.code,
                format!(
                    "under {}, which found no error: {}",
                    self.outcome.tool, failure.message
                ),
                &failure.next,
            )
            .detail(process::tail(&self.invocation.stdout, 12))
        })
    }

    /// What the tool found.
    fn of_tool(&self) -> Option<Finding> {
        let outcome = &self.outcome;
        let finding = match outcome.result {
            SanitizerResult::Errors => {
                let message = found(outcome, outcome.errors?, "error");
                self.deny(Code::Sanitizer, message, "run it by hand")
            }
            SanitizerResult::Warnings => {
                let message = found(outcome, outcome.warnings?, "warning");
                self.deny(Code::Sanitizer, message, "run it by hand")
                    .warn_for(WarnReason::ToolWarned)
            }
            _ => return None,
        };
        let Some(first) = &outcome.first else {
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
fn found(outcome: &Sanitized, count: u64, what: &str) -> String {
    let (plural, first) = match count {
        1 => ("", ""),
        _ => ("s", ", the first"),
    };
    let mut text = format!("{} found {count} {what}{plural}", outcome.tool);
    let Some(error) = &outcome.first else {
        return text;
    };
    text.push_str(&format!("{first}: {}", error.what));
    // The text of a race names its two places.
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
