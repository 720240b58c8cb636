//! `env_pass`.

use super::file::File;
use crate::config::error::ConfigError;

impl File<'_> {
    pub(super) fn env_pass(&self, names: Vec<String>) -> Result<Vec<String>, ConfigError> {
        let is_name = |name: &str| {
            !name.is_empty()
                && !name.starts_with(|c: char| c.is_ascii_digit())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        for name in &names {
            if !is_name(name) {
                return Err(self
                    .error(
                        &["env_pass"],
                        format!("`{name}` cannot be the name of an environment variable"),
                    )
                    .help(Some(
                        "each variable is named whole: letters, digits and `_`, no pattern and no value; \
                         `env` of a variant sets a value"
                            .into(),
                    )));
            }
        }
        Ok(names)
    }
}
