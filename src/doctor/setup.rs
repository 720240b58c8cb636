//! The configuration that a machine is examined for.

use crate::config::Config;

/// The configuration that a machine is examined for.
#[derive(Debug)]
pub struct Setup<'a> {
    /// The configuration, or the defaults.
    pub config: &'a Config,
    /// Whether there is a configuration.
    pub configured: bool,
}
