//! `[profile]`, in each of the tables that may contain one.

use super::file::File;
use crate::config::choices::{GraphProfiling, ReplayMode};
use crate::config::error::ConfigError;
use crate::config::model::ProfileSettings;

impl File<'_> {
    /// Settings whose values may not work together; `at` is their table.
    pub(super) fn profile(
        &self,
        at: &[&str],
        settings: &ProfileSettings,
    ) -> Result<ProfileSettings, ConfigError> {
        let settings = settings.clone().settled();
        self.countable(at, &settings)?;
        Ok(settings)
    }

    /// That launches can be counted by kernel, where they are.
    fn countable(&self, at: &[&str], settings: &ProfileSettings) -> Result<(), ConfigError> {
        if !settings.per_kernel && settings.total {
            let message =
                "`total` needs `per_kernel = true`: every kernel of a step must be measured";
            return Err(self.wrong_setting(at, "total", message.to_owned()));
        }
        if !settings.per_kernel {
            return Ok(());
        }
        if settings.graph_profiling == GraphProfiling::Graph {
            let message = "`per_kernel` does not work with `graph_profiling = \"graph\"`: a whole CUDA graph is no launch of a kernel";
            return Err(self.wrong_setting(at, "graph_profiling", message.to_owned()));
        }
        if matches!(
            settings.replay_mode,
            ReplayMode::Range | ReplayMode::ApplicationRange
        ) {
            let message = format!(
                "`per_kernel` does not work with `replay_mode = \"{}\"`: a range is no launch of a kernel",
                settings.replay_mode
            );
            return Err(self.wrong_setting(at, "replay_mode", message));
        }
        Ok(())
    }

    fn wrong_setting(&self, at: &[&str], setting: &str, message: String) -> ConfigError {
        self.error(&[at, &[setting]].concat(), message)
    }
}
