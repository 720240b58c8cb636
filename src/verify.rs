//! Checks the numbers of a program before anything is timed. The program's own check decides.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::build::{Artifact, Given, program_argv};
use crate::config::{Config, Variant, Verification};
pub(crate) use crate::files::remove_file as remove_result;
use crate::files::{empty_variant_folder, if_there, json, open_regular, read_regular};
use crate::finding::{Code, Error, Finding, Stop, machine_lacks};
use crate::git;
use crate::process::{self, Ending, Invocation};
use crate::terms::{Phase, Seed};
use crate::toolchain::can_start;

/// A variant with correct numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Verified {
    /// How long the run took.
    #[serde(serialize_with = "seconds")]
    pub wall: Duration,
    /// What the values of its inputs were made from, where the program uses it.
    pub seed: Seed,
    /// The result file, where the program wrote one.
    pub result: Option<ResultFile>,
}

/// The machine-readable result that a program may write to the path it gets as `{result}` and in
/// `SPARSEK_GATE_RESULT`. Unknown fields are ignored; `correct` alone decides.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResultFile {
    /// Whether every checked number was within its tolerance.
    pub correct: Option<bool>,
    /// Largest absolute error.
    pub max_abs_error: Option<f64>,
    /// Largest error in units of the tolerance.
    pub max_error_over_tolerance: Option<f64>,
    /// Elements that were checked.
    pub checked: Option<u64>,
    /// Elements that were wrong.
    pub wrong: Option<u64>,
    /// Median time of a launch by the device's own events, in microseconds.
    pub median_us: Option<f64>,
}

pub(crate) fn seconds<S: serde::Serializer>(
    wall: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(wall.as_secs_f64())
}

/// Runs the program with its workload and its verifying arguments, on inputs from this seed.
///
/// # Errors
/// A finding where the run does not show correct numbers; an error where the machine failed.
pub fn verify(
    config: &Config,
    variant: &Variant,
    artifact: &Artifact,
    env: &BTreeMap<String, String>,
    seed: Seed,
) -> Result<Verified, Stop> {
    artifact.check_unaltered(&variant.id)?;
    let folder = empty_variant_folder(&config.work.join("verify"), &variant.id)?;
    let result_path = folder.join("result.json");
    remove_result(&result_path)?;
    let asks_for_result = asks_for_result(match &variant.verification {
        Verification::Command(argv) => argv,
        Verification::OwnRun | Verification::None => &variant.verify_args,
    });
    let log = folder.join("program.log");
    let given = verify_given(variant, &result_path, Some(seed));
    let run = Invocation {
        argv: verify_argv(variant, artifact, &given),
        dir: config.root.clone(),
        env: given.env(env, variant),
        timeout: variant.verify_timeout,
        stdout: log.clone(),
        stderr: log.clone(),
    };
    let line = process::shell_line(&run.argv);
    let deny = |code, message: String, next: String| {
        let finding = Finding::deny(code, &variant.id, message, next);
        Err(finding.detail(process::tail(&log, 12)).into())
    };
    let finished = match run.run() {
        Ok(finished) => finished,
        Err(error) => {
            let error = Error::unless_full(&log, error)?;
            let program = run.argv.first().map(String::as_str).unwrap_or_default();
            let why = why_not_startable(&config.root, program);
            let (message, next) = why.unwrap_or_else(|| {
                let message = format!("the program could not be started: {error}");
                (message, format!("let a script begin with the line `#!` and the program that runs it, without a carriage return; run it by hand: {line}"))
            });
            return deny(Code::NotStarted, message, next);
        }
    };
    let then_run = |next: &str| format!("{next}: {line}");
    match finished.ending {
        Ending::Interrupted => Err(Error::Interrupted.into()),
        Ending::TimedOut => deny(
            Code::TimedOut,
            format!(
                "the verifying run exceeded its time limit of {} s and was killed",
                variant.verify_timeout.as_secs_f64()
            ),
            then_run(
                "raise `verify.timeout_s` (`compare --timeout`) if it is only slow, or run it by hand",
            ),
        ),
        ending => match judge(ending, &result_path, asks_for_result) {
            Ok(result) => Ok(Verified {
                wall: finished.wall,
                seed,
                result,
            }),
            Err(failure) => {
                // Wrong numbers are those of a program that could compute them.
                let output = process::tail(&log, 12);
                if let (None, Some(lacks)) = (
                    read_result(&result_path),
                    machine_lacks(&variant.id, "the verifying run", &output),
                ) {
                    return Err(lacks.into());
                }
                let same = format!("{} with SPARSEK_GATE_SEED={seed}", failure.next);
                deny(failure.code, failure.message, then_run(&same))
            }
        },
    }
}

/// Why a program cannot be started in a folder, and the next step.
pub fn why_not_startable(root: &Path, program: &str) -> Option<(String, String)> {
    if can_start(program, root) {
        return None;
    }
    let path = root.join(program);
    let is_file = git::is_input_file(&path);
    let mut begin = [0; 4];
    let read = open_regular(&path).and_then(|mut file| file.read_exact(&mut begin));
    let is_other = read.is_ok() && begin != *b"\x7fELF" && !begin.starts_with(b"#!");
    let (what, next) = match (is_file, program.contains('/')) {
        (true, _) if is_other => (
            format!("`{program}` is no program: it begins as no binary and as no script (`#!`)"),
            "name what runs it, such as python3; of measurements that `compare` shows the names end in .ncu-rep, .csv or .json, and packed ones are unpacked before".to_owned(),
        ),
        (true, true) => (
            format!("the file `{program}` is not executable"),
            format!(
                "make it executable (chmod +x {program}), or name what runs it, such as python3"
            ),
        ),
        (true, false) => (
            format!("there is no program `{program}` on the PATH"),
            format!("write ./{program}: a name without a slash is looked up on the PATH"),
        ),
        _ if program.starts_with(['~', '$']) => (
            format!("there is no program `{program}`"),
            "`~` and variables are not expanded here: write the path itself".to_owned(),
        ),
        (false, _) => (
            format!("there is no program `{program}`"),
            format!(
                "correct its name, or build it; programs run in {}",
                root.display()
            ),
        ),
    };
    Some((what, next))
}

/// The finding that a program of a variant cannot be started, because there is none.
pub fn missing_program(root: &Path, variant: &Variant, program: &str) -> Option<Finding> {
    let (what, next) = why_not_startable(root, program)?;
    Some(Finding::deny(Code::NotStarted, &variant.id, what, next))
}

/// What the verifying run is given.
pub(crate) fn verify_given<'a>(
    variant: &Variant,
    result: &'a Path,
    seed: Option<Seed>,
) -> Given<'a> {
    Given {
        result,
        launches: variant.launches_needed(Phase::Timing),
        seed,
    }
}

/// The argv of the verifying run.
pub(crate) fn verify_argv(
    variant: &Variant,
    artifact: &Artifact,
    given: &Given<'_>,
) -> Vec<String> {
    match &variant.verification {
        Verification::Command(argv) => {
            let words = argv.iter();
            words.map(|word| given.argument(variant, word)).collect()
        }
        Verification::OwnRun | Verification::None => {
            program_argv(variant, artifact, &variant.verify_args, given)
        }
    }
}

/// Why a run of the program does not show correct numbers.
pub(crate) struct Failure {
    /// The code of the finding.
    pub code: Code,
    /// What was found.
    pub message: String,
    /// What to do; the argv to paste is appended.
    pub next: String,
}

/// What a process that was measured wrote of its own numbers.
pub(crate) enum Proof {
    /// Nothing, and it did not have to.
    None,
    /// They are correct.
    Correct,
    /// They are wrong, however the process ended.
    Wrong(Failure),
    /// It does not say that they are correct. Where the profiler failed, that is the cause.
    Unusable(Failure),
}

impl Proof {
    /// Of the result file of a process. `required`: its arguments give it the file.
    pub fn read(result_path: &Path, required: bool) -> Proof {
        let unusable = |code, message: String| {
            Proof::Unusable(Failure {
                code,
                message,
                next: "run it by hand".to_owned(),
            })
        };
        let result = match read_result(result_path) {
            None if required => {
                return unusable(
                    Code::ProgramFailed,
                    "it did not write the result file that it was given, so that nothing shows the numbers of the measured launches".to_owned(),
                );
            }
            None => return Proof::None,
            Some(Err(why)) => {
                return unusable(
                    Code::ProgramFailed,
                    format!("its result file cannot be read: {why}"),
                );
            }
            Some(Ok(result)) => result,
        };
        match result.correct {
            Some(true) => Proof::Correct,
            Some(false) => Proof::Wrong(Failure {
                code: Code::WrongNumbers,
                message: format!(
                    "the measured launches computed wrong numbers: {}",
                    describe(&result)
                ),
                next: "a variant with wrong numbers is never compared; run it by hand".to_owned(),
            }),
            None => unusable(
                Code::WrongNumbers,
                format!(
                    "its result file does not report correct numbers: {}",
                    describe(&result)
                ),
            ),
        }
    }
}

/// The result file of a process, if it left one.
fn read_result(path: &Path) -> Option<Result<ResultFile, String>> {
    let text = if_there(read_regular(path)).transpose()?;
    let text = text.map_err(|error| error.to_string());
    Some(text.and_then(|text| json(&text)))
}

/// The result file of a run that ended, or why the run does not show correct numbers.
pub(crate) fn judge(
    ending: Ending,
    result_path: &Path,
    asks_for_result: bool,
) -> Result<Option<ResultFile>, Failure> {
    let result = read_result(result_path);
    let fail = |code, message: String, next: &str| {
        Err(Failure {
            code,
            message,
            next: next.to_owned(),
        })
    };
    match (ending, result) {
        (Ending::Exited(0), Some(Err(error))) => fail(
            Code::ProgramFailed,
            format!("the program exited 0, but its result file cannot be read: {error}"),
            &format!(
                "it should be JSON with `correct`, in which null is written for NaN, see {}; run it by hand",
                result_path.display()
            ),
        ),
        (Ending::Exited(0), Some(Ok(result))) if result.correct != Some(true) => fail(
            Code::WrongNumbers,
            format!(
                "the program exited 0, but its result file does not report correct numbers: {}",
                describe(&result)
            ),
            "run it by hand",
        ),
        (Ending::Exited(0), None) if asks_for_result => fail(
            Code::ProgramFailed,
            "the program exited 0 without writing the result file it was given".to_owned(),
            "run it by hand",
        ),
        (Ending::Exited(0), result) => Ok(result.and_then(Result::ok)),
        (Ending::Exited(_), Some(Ok(result))) if result.correct == Some(false) => fail(
            Code::WrongNumbers,
            format!(
                "the program's own check failed ({ending}): {}",
                describe(&result)
            ),
            "a variant with wrong numbers is never profiled; run it by hand",
        ),
        // A program that writes a result file would have reported a failed check in it.
        (Ending::Exited(_), _) if asks_for_result => fail(
            Code::ProgramFailed,
            format!("the program failed before or after the check of its numbers ({ending})"),
            "run it by hand",
        ),
        (Ending::Exited(_), _) => fail(
            Code::WrongNumbers,
            format!("the program's own check failed ({ending})"),
            "a variant with wrong numbers is never profiled; run it by hand",
        ),
        (ending, _) => fail(
            Code::ProgramFailed,
            format!("the verifying run ended with {ending}"),
            "run it by hand, or under compute-sanitizer (`verify --sanitizer memcheck`)",
        ),
    }
}

/// Whether arguments give the program a file to write its result to.
pub(crate) fn asks_for_result(arguments: &[String]) -> bool {
    arguments
        .iter()
        .any(|argument| argument.contains("{result}"))
}

fn describe(result: &ResultFile) -> String {
    let mut parts = vec![match result.correct {
        Some(true) => "correct".to_owned(),
        Some(false) => "not correct".to_owned(),
        None => "it has no `correct`: true or false".to_owned(),
    }];
    if let (Some(wrong), Some(checked)) = (result.wrong, result.checked) {
        parts.push(format!("{wrong} of {checked} wrong"));
    }
    if let Some(ratio) = result.max_error_over_tolerance {
        parts.push(format!("largest error {ratio:.3} × tolerance"));
    }
    parts.join(", ")
}
