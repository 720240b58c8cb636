//! `sparsek-gate history`.

use std::path::Path;

use serde::Serialize;

use super::answer::answer;
use crate::baseline::Store;
use crate::cli::HistoryArgs;
use crate::config::Config;
use crate::files::write_named;
use crate::finding::{Error, ExitCode};
use crate::history::{Trend, all_trends, find_variant, keep_metrics, trends};
use crate::report::{
    history_page, history_site, history_text, page_name, plot, refuse_foreign, say, write_site,
};
use crate::terms::VariantId;

pub(super) fn run(config: &Path, arguments: &HistoryArgs) -> Result<ExitCode, Error> {
    #[derive(Serialize)]
    struct Content {
        variant: VariantId,
        baselines: Vec<Trend>,
    }
    let name = match (&arguments.variant, &arguments.output) {
        (Some(name), _) => name,
        (None, Some(folder)) => return site(config, arguments, folder),
        // The parser of the command line asks for one of the two.
        (None, None) => return Err(Error::Usage("name a variant, or `--all`".to_owned())),
    };
    if let Some(path) = &arguments.output {
        drawn_as(path)?;
    }
    let config = Config::load(config)?;
    let store = Store::open(&config.baselines)?;
    let variant = find_variant(&config, &store, name)?;
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

/// Writes the history of all variants as a site.
fn site(config: &Path, arguments: &HistoryArgs, folder: &Path) -> Result<ExitCode, Error> {
    #[derive(Serialize)]
    struct Content<'a> {
        folder: &'a Path,
        pages: Vec<PageOf>,
    }
    #[derive(Serialize)]
    struct PageOf {
        variant: VariantId,
        file: Option<String>,
        baselines: Vec<String>,
    }
    // Before git is asked for every version of every file.
    refuse_foreign(folder)?;
    let config = Config::load(config)?;
    let store = Store::open(&config.baselines)?;
    let (past, findings) = all_trends(&config, &store, &arguments.metric)?;
    let pages = history_site(&past);
    write_site(folder, &pages)?;
    let content = Content {
        folder,
        pages: past
            .iter()
            .map(|one| PageOf {
                variant: one.variant.clone(),
                file: (!one.baselines.is_empty()).then(|| page_name(&one.variant)),
                baselines: one.baselines.iter().map(|it| it.gpu.clone()).collect(),
            })
            .collect(),
    };
    answer(arguments.format, &content, &findings, || {
        let shown = folder.display();
        format!(
            "wrote {} pages to {shown}: open {shown}/index.html\n",
            pages.len()
        )
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
