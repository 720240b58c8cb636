//! What a machine can do for this tool, one check after the other, as data. Nothing is changed:
//! no setting of the GPU, and no file but what a probe leaves in a temporary folder.

mod counters;
mod gpu;
mod place;
mod tools;

use serde::Serialize;

use crate::config::{Config, Mismatch, Pin};
use crate::device::Gpu;
use crate::finding::{Error, ExitCode};

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As it should be.
    Ok,
    /// The tool works all the same, or not as well.
    Warn,
    /// Something that the configuration needs does not work.
    Fail,
    /// Not needed, or not to be told without something that failed.
    Skipped,
}

impl State {
    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Warn => "warn",
            State::Fail => "fail",
            State::Skipped => "skipped",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What.
    pub what: &'static str,
    /// How it came out.
    pub state: State,
    /// What was seen.
    pub detail: String,
    /// The command or the setting that mends it, where it is not as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Check {
    fn ok(what: &'static str, detail: impl Into<String>) -> Check {
        Check {
            what,
            state: State::Ok,
            detail: detail.into(),
            next: None,
        }
    }

    fn skipped(what: &'static str, detail: impl Into<String>) -> Check {
        Check {
            state: State::Skipped,
            ..Check::ok(what, detail)
        }
    }

    fn warn(what: &'static str, detail: impl Into<String>, next: impl Into<String>) -> Check {
        Check {
            state: State::Warn,
            next: Some(next.into()),
            ..Check::ok(what, detail)
        }
    }

    fn fail(what: &'static str, detail: impl Into<String>, next: impl Into<String>) -> Check {
        Check {
            state: State::Fail,
            ..Check::warn(what, detail, next)
        }
    }

    fn of_error(what: &'static str, error: &Error) -> Check {
        match error {
            Error::Environment { what: seen, next } => Check::fail(what, seen, next),
            error => Check::fail(what, error.to_string(), "see why the system refuses that"),
        }
    }

    /// What was seen, held against its pin.
    fn pinned(what: &'static str, detail: String, pin: Option<&Pin>, config: &Config) -> Check {
        match pin {
            None => Check::ok(what, detail),
            Some(pin) if pin.held => {
                Check::ok(what, format!("{detail}, as pinned ({})", pin.wanted))
            }
            Some(pin) => Check {
                state: match config.toolchain.pins.mismatch {
                    Mismatch::Deny => State::Fail,
                    Mismatch::Warn => State::Warn,
                },
                ..Check::fail(
                    what,
                    format!("{detail}, where `{}` is pinned", pin.wanted),
                    format!(
                        "install what is pinned, or change `{}` in {}",
                        if pin.what == "arch" {
                            "toolchain.arch".to_owned()
                        } else {
                            format!("toolchain.pins.{}", pin.what)
                        },
                        config.path.display()
                    ),
                )
            },
        }
    }

    /// The same where nothing that is configured needs it.
    fn unless_needed(self, needed: bool, why: &str) -> Check {
        if needed || self.state != State::Fail {
            return self;
        }
        Check::skipped(self.what, format!("{why}: {}", self.detail))
    }
}

/// What is examined.
#[derive(Debug)]
pub struct Patient<'a> {
    /// The configuration, or the defaults.
    pub config: &'a Config,
    /// Whether there is a configuration.
    pub configured: bool,
}

/// Examines the machine.
///
/// # Errors
/// [`Error::Interrupted`], or where the system gives no temporary folder. What is wrong with the
/// machine is a check.
pub fn examine(patient: &Patient<'_>) -> Result<Vec<Check>, Error> {
    let config = patient.config;
    let mut checks = vec![configuration(patient)];
    let tools = tools::checks(patient, &mut checks);
    let gpu = match Gpu::query(config.device) {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            checks.push(Check::of_error("driver", &error));
            None
        }
    };
    match &gpu {
        Some(gpu) => gpu::checks(patient, gpu, &mut checks),
        None => checks.push(Check::skipped("GPU", "without a driver there is none")),
    }
    counters::checks(patient, gpu.as_ref(), tools.ncu.as_ref(), &mut checks)?;
    place::checks(patient, gpu.as_ref(), &tools, &mut checks);
    if crate::process::interrupted() {
        return Err(Error::Interrupted);
    }
    Ok(checks)
}

/// What a run with these checks exits with.
pub fn exit_code(checks: &[Check]) -> ExitCode {
    if checks.iter().any(|check| check.state == State::Fail) {
        ExitCode::Environment
    } else {
        ExitCode::Pass
    }
}

fn configuration(patient: &Patient<'_>) -> Check {
    let config = patient.config;
    if !patient.configured {
        return Check::skipped(
            "configuration",
            format!(
                "there is no {} here: what follows is held against the defaults (`sparsek-gate init` writes one)",
                config.path.display()
            ),
        );
    }
    Check::ok(
        "configuration",
        format!(
            "{}: {} variants in {} suites",
            config.path.display(),
            config.variants().count(),
            config.suites.len()
        ),
    )
}
