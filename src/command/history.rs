//! `sparsek-gate history`.

use std::path::Path;

use serde::Serialize;

use super::answer::answer;
use crate::baseline::Store;
use crate::cli::HistoryArgs;
use crate::config::Config;
use crate::files::write_named;
use crate::finding::{Error, ExitCode};
use crate::history::{Trend, find_variant, keep_metrics, trends};
use crate::report::{history_page, history_text, plot, say};
use crate::terms::VariantId;

pub(super) fn run(config: &Path, arguments: &HistoryArgs) -> Result<ExitCode, Error> {
    #[derive(Serialize)]
    struct Content {
        variant: VariantId,
        baselines: Vec<Trend>,
    }
    if let Some(path) = &arguments.output {
        drawn_as(path)?;
    }
    let config = Config::load(config)?;
    let store = Store::open(&config.baselines)?;
    let variant = find_variant(&config, &store, &arguments.variant)?;
    let (mut baselines, findings) = trends(&store, &variant)?;
    keep_metrics(&config, &variant, &arguments.metric, &mut baselines)?;
    if let Some(path) = &arguments.output {
        let text = match drawn_as(path)? {
            Form::Page => history_page(&baselines),
            Form::Picture => plot::trend_file(&baselines).map_err(|cause| Error::Input {
                path: path.clone(),
                cause,
            })?,
        };
        write_named(path, text.as_bytes()).map_err(Error::io("write", path))?;
        say(&format!("wrote {}", path.display()));
    }
    let content = Content { variant, baselines };
    answer(arguments.format, &content, &findings, || {
        history_text(&content.baselines)
    })
}

enum Form {
    Picture,
    Page,
}

fn drawn_as(path: &Path) -> Result<Form, Error> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("svg") => Ok(Form::Picture),
        Some("html") => Ok(Form::Page),
        _ => Err(Error::Usage(format!(
            "`--output {}`: the file must end in .svg or .html",
            path.display()
        ))),
    }
}
