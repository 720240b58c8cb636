//! Credentials that the configuration passes to the code of a change.

use crate::config::Config;
use crate::finding::{Code, Finding};
use crate::process::is_credential;

/// A warning for each name in `env_pass` that is, by the name, a credential's.
pub fn credentials(config: &Config) -> Vec<Finding> {
    let names = config.env_pass.iter().filter(|name| is_credential(name));
    names
        .map(|name| {
            Finding::of_project(
                Code::CredentialPassed,
                format!(
                    "`env_pass` gives `{name}` to the programs under test, which are code of the change"
                ),
                format!("remove `{name}` from `env_pass` in {}", config.path.display()),
            )
        })
        .collect()
}
