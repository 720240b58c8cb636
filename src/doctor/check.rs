//! One check of the machine, as data.

use serde::Serialize;

use crate::config::{Config, Mismatch, Pin};
use crate::finding::Error;
use crate::terms::spelled;

spelled! {
    /// The result of a check.
    State {
        /// As it should be.
        Ok = "ok",
        /// The tool works nevertheless, or not as well.
        Warn = "warn",
        /// Something that the configuration needs does not work.
        Fail = "fail",
        /// Not needed, or not possible without something that failed.
        Skipped = "skipped",
    }
}

/// The configuration that a machine is examined for.
#[derive(Debug)]
pub struct Setup<'a> {
    /// The configuration, or the defaults.
    pub config: &'a Config,
    /// Whether there is a configuration.
    pub configured: bool,
}

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name.
    pub what: &'static str,
    /// The result.
    pub state: State,
    /// What was found.
    pub detail: String,
    /// The command or the setting that corrects it, where it is not as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Check {
    pub(super) fn ok(what: &'static str, detail: impl Into<String>) -> Check {
        Check {
            what,
            state: State::Ok,
            detail: detail.into(),
            next: None,
        }
    }

    pub(super) fn skipped(what: &'static str, detail: impl Into<String>) -> Check {
        Check {
            state: State::Skipped,
            ..Check::ok(what, detail)
        }
    }

    pub(super) fn warn(
        what: &'static str,
        detail: impl Into<String>,
        next: impl Into<String>,
    ) -> Check {
        Check {
            state: State::Warn,
            next: Some(next.into()),
            ..Check::ok(what, detail)
        }
    }

    pub(super) fn fail(
        what: &'static str,
        detail: impl Into<String>,
        next: impl Into<String>,
    ) -> Check {
        Check {
            state: State::Fail,
            ..Check::warn(what, detail, next)
        }
    }

    pub(super) fn of_error(what: &'static str, error: &Error) -> Check {
        match error {
            Error::Environment { what: found, next } => Check::fail(what, found, next),
            error => Check::fail(
                what,
                error.to_string(),
                "find out why the system does not allow it",
            ),
        }
    }

    /// What was found, compared with its pin.
    pub(super) fn pinned(
        what: &'static str,
        detail: String,
        pin: Option<&Pin>,
        config: &Config,
    ) -> Check {
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
                        "install the pinned version, or change `{}` in {}",
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

    /// The same, skipped if it failed and nothing that is configured needs it.
    pub(super) fn unless_needed(self, needed: bool, why: &str) -> Check {
        if needed || self.state != State::Fail {
            return self;
        }
        Check::skipped(self.what, format!("{why}: {}", self.detail))
    }
}
