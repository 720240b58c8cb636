//! The verifying run again, under the tools of compute-sanitizer. They see what right numbers do
//! not show: a race that was won, a write past the end that hit nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::build::Artifact;
use crate::config::{Config, SanitizerTool, Variant, VariantId};
use crate::error::Error;
use crate::files::{read_regular, variant_folder};
use crate::process::{self, Ending, Invocation};
use crate::toolchain::{FirstError, Sanitizer, SanitizerLog};
use crate::verdict::{Code, Finding};
use crate::verify::{asks_for_result, filled_argv, judge, program_argv};

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
    let launches = variant.launches_needed(crate::config::Pass::Timing);
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
    let mut said = Sanitized {
        tool,
        result: SanitizerResult::NotRun,
        errors: None,
        warnings: None,
        first: None,
        ending: None,
        wall: Duration::ZERO,
        argv: sanitizer.argv(tool, &log, &program),
        log: log.clone(),
    };
    if matches!(failed, Some(Code::TimedOut | Code::NotStarted)) {
        return Ok((said, None));
    }
    let mut env = env.clone();
    env.extend(variant.env.clone());
    let run = Invocation {
        argv: said.argv.clone(),
        dir: config.root.clone(),
        env,
        timeout: variant.verify_timeout,
        stdout: output.clone(),
        stderr: output.clone(),
    };
    let line = process::shell_line(&run.argv);
    let deny = |code, message: String, next: &str| {
        Finding::deny(code, &variant.id, message, format!("{next}: {line}"))
    };
    let untrusted = |why: String| {
        let tails = [process::tail(&log, 6), process::tail(&output, 6)];
        let tails: Vec<String> = tails.into_iter().filter(|tail| !tail.is_empty()).collect();
        deny(
            Code::Sanitizer,
            format!("{tool} does not tell whether there are errors: {why}"),
            "run it by hand",
        )
        .detail(tails.join("\n"))
    };
    said.result = SanitizerResult::Untrusted;
    let finished = match run.run() {
        Ok(finished) => finished,
        Err(error) => {
            let finding = untrusted(format!("compute-sanitizer could not be started: {error}"));
            return Ok((said, Some(finding)));
        }
    };
    said.ending = Some(finished.ending);
    said.wall = finished.wall;
    let status = match finished.ending {
        Ending::Interrupted => return Err(Error::Interrupted),
        Ending::TimedOut => {
            let finding = deny(
                Code::TimedOut,
                format!(
                    "the verifying run under {tool} passed its time limit of {} s and was killed",
                    variant.verify_timeout.as_secs_f64()
                ),
                "raise `verify.timeout_s`, give a smaller problem in `sanitizer_args`, or run it by hand",
            );
            return Ok((said, Some(finding.detail(process::tail(&output, 12)))));
        }
        Ending::Signalled(_) => {
            let finding = untrusted(format!("it ended with {}", finished.ending));
            return Ok((said, Some(finding)));
        }
        Ending::Exited(status) => status,
    };
    let parsed = read_regular(&log)
        .map_err(|error| format!("its log cannot be read: {error}"))
        .and_then(|text| SanitizerLog::parse(&String::from_utf8_lossy(&text)))
        .and_then(|log| match log.errors {
            0 if status == Sanitizer::ERROR_STATUS => Err(format!(
                "it counts no error and ends with {}, as it does with errors",
                finished.ending
            )),
            _ => Ok(log),
        });
    match parsed {
        Ok(log) => said.believe(log),
        Err(why) => {
            let finding = untrusted(format!("{why} ({})", finished.ending));
            return Ok((said, Some(finding)));
        }
    }
    let detail = said.first.as_ref().map(|first| first.text.clone());
    let finding = match said.result {
        SanitizerResult::Errors => {
            let finding = deny(Code::Sanitizer, found(&said, "error"), "run it by hand");
            Some(finding.detail(detail.unwrap_or_default()))
        }
        _ => match judge(finished.ending, &result, asks) {
            // Without its result a program may not have run at all.
            Err(failure) if failed.is_none() || failure.code == Code::ResultUnreadable => Some(
                deny(
                    failure.code,
                    format!("under {tool}, which found no error: {}", failure.message),
                    &failure.next,
                )
                .detail(process::tail(&output, 12)),
            ),
            _ if said.result == SanitizerResult::Warnings => {
                let finding = deny(Code::Sanitizer, found(&said, "warning"), "run it by hand");
                Some(finding.warn().detail(detail.unwrap_or_default()))
            }
            _ => None,
        },
    };
    let kernel = said.first.as_ref().and_then(|first| first.kernel.clone());
    let finding = match (finding, kernel) {
        (Some(finding), Some(kernel)) if finding.code == Code::Sanitizer => {
            Some(finding.kernel(kernel))
        }
        (finding, _) => finding,
    };
    Ok((said, finding))
}

/// `memcheck found 2 errors, the first in kernel at file:line: ...`.
fn found(said: &Sanitized, what: &str) -> String {
    let count = match what {
        "error" => said.errors,
        _ => said.warnings,
    }
    .unwrap_or_default();
    let plural = if count == 1 { "" } else { "s" };
    let mut text = format!("{} found {count} {what}{plural}", said.tool);
    let Some(first) = &said.first else {
        return text;
    };
    text.push_str(if count == 1 { ":" } else { ", the first:" });
    text.push_str(&format!(" {}", first.what));
    // A race says its two places itself.
    if let Some(kernel) = &first.kernel {
        text.push_str(&format!(" in {kernel}"));
        if let Some(location) = &first.location {
            text.push_str(&format!(" at {location}"));
        }
        if !first.callers.is_empty() {
            text.push_str(&format!(", called from {}", first.callers.join(", ")));
        }
    }
    if let Some(address) = &first.address {
        text.push_str(&format!(", address {address}"));
    }
    text
}
