//! The text of a configuration while it is validated: positions for errors, and the checks that
//! many keys share.

use std::ops::Range;
use std::path::{Component, Path};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::config::error::ConfigError;
use crate::config::old_words::old_name;
use crate::terms::is_name;

/// The longest time limit accepted, one day: a larger number is a typing error.
const LONGEST_TIMEOUT_S: f64 = 86_400.0;

/// A configuration that is being validated.
pub(super) struct File<'a> {
    pub path: &'a Path,
    pub source: &'a str,
    pub tree: &'a DeTable<'a>,
}

impl File<'_> {
    /// The position of a key path's value, or of the nearest table around it that exists.
    pub(super) fn span(&self, keys: &[&str]) -> Option<Range<usize>> {
        let mut table = self.tree;
        let mut found = None;
        for (depth, key) in keys.iter().enumerate() {
            let Some((name, value)) = entry(table, key) else {
                break;
            };
            let last = depth + 1 == keys.len();
            match value.get_ref() {
                DeValue::Table(inner) => {
                    found = Some(name.span());
                    table = inner;
                }
                _ if last => found = Some(value.span()),
                _ => break,
            }
        }
        found
    }

    pub(super) fn error(&self, keys: &[&str], message: impl Into<String>) -> ConfigError {
        ConfigError::new(self.path, self.source, self.span(keys), message.into())
    }

    pub(super) fn timeout(&self, at: &[&str], seconds: f64) -> Result<Duration, ConfigError> {
        if seconds > 0.0 && seconds <= LONGEST_TIMEOUT_S {
            Ok(Duration::from_secs_f64(seconds))
        } else {
            Err(self.error(
                at,
                format!(
                    "`timeout_s` must be a number of seconds above 0, up to {LONGEST_TIMEOUT_S}"
                ),
            ))
        }
    }

    pub(super) fn name(&self, at: &[&str], name: &str) -> Result<(), ConfigError> {
        if is_name(name) {
            return Ok(());
        }
        Err(self
            .error(at, format!("`{name}` cannot be a name"))
            .help(Some(
            "a name has at most 64 letters, digits, `_` and `-`, and begins with a letter or digit"
                .into(),
        )))
    }

    pub(super) fn path_below(&self, at: &[&str], path: &str) -> Result<(), ConfigError> {
        let below = !path.is_empty()
            && Path::new(path)
                .components()
                .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if below {
            return Ok(());
        }
        Err(self.error(
            at,
            format!("`{path}` must be a path below the configuration's folder"),
        ))
    }
}

/// A key of a table with its value, also where it has its old name.
pub(super) fn entry<'t>(
    table: &'t DeTable<'t>,
    key: &str,
) -> Option<(&'t Spanned<DeString<'t>>, &'t Spanned<DeValue<'t>>)> {
    let named = |wanted: &str| table.get_key_value(wanted);
    named(key).or_else(|| named(old_name(key)?))
}
