//! `sparsek-gate history`.

use std::path::Path;

use serde::Serialize;

use super::answer::answer;
use crate::baseline::Store;
use crate::cli::HistoryArgs;
use crate::config::Config;
use crate::finding::{Error, ExitCode};
use crate::history::{Trend, find_variant, keep_metrics, trends};
use crate::report::history_text;
use crate::terms::VariantId;

pub(super) fn run(config: &Path, arguments: &HistoryArgs) -> Result<ExitCode, Error> {
    #[derive(Serialize)]
    struct Content {
        variant: VariantId,
        baselines: Vec<Trend>,
    }
    let config = Config::load(config)?;
    let store = Store::open(&config.baselines)?;
    let variant = find_variant(&config, &store, &arguments.variant)?;
    let (mut baselines, findings) = trends(&store, &variant)?;
    keep_metrics(&config, &variant, &arguments.metric, &mut baselines)?;
    let content = Content { variant, baselines };
    answer(arguments.format, &content, &findings, || {
        history_text(&content.baselines)
    })
}
