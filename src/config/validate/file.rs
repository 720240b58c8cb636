//! The text of a configuration while it is validated: positions for errors, and the checks that
//! many keys share.

use std::ops::Range;
use std::path::{Component, Path};

use ncu_report::Chip;
use toml::de::{DeTable, DeValue};

use crate::binary::Limits;
use crate::config::error::ConfigError;
use crate::config::model::Metric;
use crate::disk;
use crate::terms::{is_name, words};

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
            let Some((name, value)) = table.get_key_value(*key) else {
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

    pub(super) fn name(&self, at: &[&str], name: &str) -> Result<(), ConfigError> {
        if is_name(name) {
            return Ok(());
        }
        Err(self.error(at, format!("`{name}` cannot be a name")).help(
            "a name has at most 64 letters, digits, `_` and `-`, and begins with a letter or digit",
        ))
    }

    /// Refuses what looks like a path to a shell or a linker, and is none here.
    pub(super) fn literal(&self, at: &[&str], path: &str) -> Result<(), ConfigError> {
        let help = match path.chars().next() {
            Some('~' | '$') => "`~` and variables are not expanded: write the path itself",
            Some('-') => "name a file: `build/libmine.so`, and not `-lmine`",
            _ => return Ok(()),
        };
        Err(self.error(at, format!("`{path}` is no path")).help(help))
    }

    pub(super) fn path_below(&self, at: &[&str], path: &str) -> Result<(), ConfigError> {
        self.literal(at, path)?;
        let below = !path.is_empty()
            && Path::new(path)
                .components()
                .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if below {
            return Ok(());
        }
        let error = self.error(
            at,
            format!("`{path}` must be a relative path below the configuration's folder"),
        );
        let folder = self.path.canonicalize().unwrap_or_default();
        let inside = folder
            .parent()
            .and_then(|it| Path::new(path).strip_prefix(it).ok());
        Err(match inside {
            Some(inside) => error.help(format!("write `{}`", inside.display())),
            None => error,
        })
    }

    /// Refuses a flag of nvcc that names a target: what is judged is the code for that of `[toolchain]`.
    pub(super) fn no_target(&self, at: &[&str], flags: &[String]) -> Result<(), ConfigError> {
        const TARGETS: [&str; 6] =
            words("arch gpu-architecture code gpu-code gencode generate-code");
        let names_one = |flag: &&String| {
            let body = flag.strip_prefix('-').map(|it| it.trim_start_matches('-'));
            body.is_some_and(|it| TARGETS.contains(&it.split(['=', ' ']).next().unwrap_or(it)))
        };
        let Some(flag) = flags.iter().find(names_one) else {
            return Ok(());
        };
        let error = self.error(at, format!("the flag `{flag}` names a target"));
        Err(error.help("remove the flag: `toolchain.arch` names the target"))
    }

    /// Accepts a path below the configuration's folder, or elsewhere in its repository.
    pub(super) fn path_in_repository(&self, at: &[&str], path: &str) -> Result<(), ConfigError> {
        if !Path::new(path).starts_with("..") {
            return self.path_below(at, path);
        }
        let folder = self.path.canonicalize().unwrap_or_default();
        let levels = folder.parent().and_then(|folder| {
            let below = folder.strip_prefix(disk::checkout_of(folder)?).ok()?;
            Some(below.components().count())
        });
        let parts = Path::new(path).components();
        let ups = parts
            .clone()
            .take_while(|part| *part == Component::ParentDir);
        let ups = ups.count();
        let plain = parts
            .skip(ups)
            .all(|part| matches!(part, Component::Normal(_)));
        if plain && levels.is_some_and(|levels| ups <= levels) {
            return Ok(());
        }
        Err(self.error(
            at,
            format!("`{path}` must be a relative path below the configuration's folder, or elsewhere in its repository"),
        ))
    }
}

/// What the whole configuration gives every suite.
pub(super) struct Common<'a> {
    pub metrics: &'a [Metric],
    /// The chip of the target, where it is known.
    pub chip: Option<Chip>,
    pub static_metrics: &'a [Metric],
    /// Those of variants whose machine code is read without the text of a compiler.
    pub code_metrics: &'a [Metric],
    /// What a multiprocessor of the target has, where it is known.
    pub limits: Option<Limits>,
}
