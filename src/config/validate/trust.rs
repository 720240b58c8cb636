//! `[trust]`.

use super::File;
use crate::config::raw::RawTrust;
use crate::config::{ConfigError, Trust};

impl File<'_> {
    pub(super) fn trust(&self, raw: RawTrust) -> Result<Trust, ConfigError> {
        let trust = Trust {
            public_keys: raw.public_keys.unwrap_or_default(),
            require_signature: raw.require_signature.unwrap_or(false),
        };
        if trust.require_signature && trust.public_keys.is_empty() {
            return Err(self.error(
                &["trust", "require_signature"],
                "`require_signature` needs `public_keys`: no signature could be checked",
            ));
        }
        Ok(trust)
    }
}
