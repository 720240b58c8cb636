//! `config.toml`: read raw, validated once into [`Config`]; nothing later reads the raw form.

mod choices;
mod error;
mod input_files;
mod kernel_filter;
mod key;
mod launches;
mod layers;
mod load;
mod model;
mod pinned;
mod pins;
mod program;
mod python_imports;
mod range;
mod raw;
mod schema;
mod selected;
mod selector;
mod stated_by;
mod tolerance;
mod unread;
mod validate;
mod version_range;

pub use choices::{CacheControl, ClockControl, GraphProfiling, ReplayMode, SanitizerTool};
pub use error::ConfigError;
pub use kernel_filter::KernelFilter;
#[cfg(test)]
pub(crate) use key::tests::all as all_keys;
pub(crate) use key::{Counts as KeyCounts, Key, home};
pub use launches::LaunchSelection;
pub use model::{
    Accept, Config, Counts, FILE_NAME, Metric, ProfileSettings, Recipe, Suite, Toolchain, Trust,
    Variant, Verification, Waiver, Work,
};
pub use pins::{Mismatch, Pin, Pins};
pub use program::{Program, ProgramSettings, Purpose};
pub use schema::schema;
pub use selected::{Selected, Selection};
pub(crate) use selector::is_pattern;
pub use stated_by::StatedBy;
pub use unread::Unread;
pub(crate) use validate::table;
pub use version_range::VersionRange;
pub(crate) use version_range::numbers;

#[cfg(test)]
pub(crate) mod tests {
    use super::{Config, Variant};

    /// With a metric `duration`, which may rise by 3 %, and with this.
    pub(crate) fn config(text: &str) -> Config {
        let text = format!(
            "[toolchain]\narch = \"sm_90a\"\n[metric.duration]\ndirection = \"lower\"\n\
             tolerance = '3 %'\n{text}"
        );
        Config::parse("/p/config.toml".as_ref(), &text).unwrap()
    }

    /// The first variant of such a configuration.
    pub(crate) fn variant(text: &str) -> Variant {
        config(text).variants().next().unwrap().clone()
    }
}
