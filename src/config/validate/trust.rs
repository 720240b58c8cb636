//! `[trust]`.

use super::file::File;
use crate::config::error::ConfigError;
use crate::config::model::Trust;
use crate::config::raw::RawTrust;

impl File<'_> {
    pub(super) fn trust(&self, raw: RawTrust) -> Result<Trust, ConfigError> {
        let trust = Trust {
            public_keys: raw.public_keys.unwrap_or_default(),
            resume: raw.resume.unwrap_or(false),
        };
        for key in &trust.public_keys {
            if let Err(error) = minisign_verify::PublicKey::from_base64(key) {
                return Err(self
                    .error(
                        &["trust", "public_keys"],
                        format!("`{key}` is not a minisign public key: {error}"),
                    )
                    .help(Some(
                        "it is the second line of minisign.pub, 56 characters that begin with `RW`"
                            .into(),
                    )));
            }
        }
        Ok(trust)
    }
}
