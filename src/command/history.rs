//! `sparsek-gate history`.

use std::path::Path;

use serde::Serialize;

use super::answer::answer;
use crate::baseline::Store;
use crate::cli::HistoryArgs;
use crate::config::{Config, suggest};
use crate::files::write_named;
use crate::finding::{Code, Error, ExitCode, Finding};
use crate::history::{Trend, judged_only, trend};
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
    let variant = named(&config, &store, &arguments.variant)?;
    let mut baselines = Vec::new();
    let mut findings = Vec::new();
    for stored in store.all_of(&variant)? {
        let gpu = &stored.gpu;
        let path = |ending| store.path(gpu, &variant, ending);
        match trend(&stored, &path("lock.toml"), &path("profile.json")) {
            Ok(found) => baselines.push(found),
            Err(cause) => findings.push(Finding::deny(
                Code::Tampered,
                &variant,
                format!("{gpu}: there is no history to believe: {cause}"),
                format!(
                    "restore the lock from a commit: git log -- {}",
                    path("lock.toml").display()
                ),
            )),
        }
    }
    if baselines.is_empty() && findings.is_empty() {
        findings.push(Finding::deny(
            Code::NewBaseline,
            &variant,
            "nothing is locked yet, so it has no history",
            format!("sparsek-gate baseline --lock --reason '...' {variant}"),
        ));
    }
    only(&config, &variant, &arguments.metric, &mut baselines)?;
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
            "`--output {}`: the ending says how it is drawn: .svg or .html",
            path.display()
        ))),
    }
}

/// The one variant of a name; also one that is locked and no longer configured.
fn named(config: &Config, store: &Store, name: &str) -> Result<VariantId, Error> {
    let mut known: Vec<VariantId> = config
        .variants()
        .map(|variant| variant.id.clone())
        .chain(store.variants()?)
        .collect();
    known.sort();
    known.dedup();
    let meant: Vec<&VariantId> = known
        .iter()
        .filter(|id| id.to_string() == name || id.variant == name)
        .collect();
    match meant.as_slice() {
        [id] => Ok((*id).clone()),
        [] => {
            let names: Vec<String> = known.iter().map(VariantId::to_string).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            Err(Error::Usage(format!(
                "no variant is called `{name}`: {}",
                suggest(name, &names)
            )))
        }
        several => Err(Error::Usage(format!(
            "`{name}` is the name of several variants: {}",
            several
                .iter()
                .map(|id| format!("`{id}`"))
                .collect::<Vec<String>>()
                .join(", ")
        ))),
    }
}

/// Keeps the metrics that were asked for, or those that are judged: the others explain.
fn only(
    config: &Config,
    variant: &VariantId,
    asked: &[String],
    baselines: &mut [Trend],
) -> Result<(), Error> {
    let all = || baselines.iter().flat_map(|baseline| &baseline.metrics);
    for name in asked {
        // Where no profile is to be had, each acceptance says so.
        if all().next().is_some() && !all().any(|course| course.metric == *name) {
            let mut known: Vec<&str> = all().map(|course| course.metric.as_str()).collect();
            known.sort_unstable();
            known.dedup();
            return Err(Error::Usage(format!(
                "`--metric {name}`: no accepted profile of {variant} that is here holds it: {}",
                suggest(name, &known)
            )));
        }
    }
    let configured = config.variants().find(|known| known.id == *variant);
    for baseline in baselines {
        match configured {
            _ if !asked.is_empty() => baseline
                .metrics
                .retain(|course| asked.contains(&course.metric)),
            Some(known) => judged_only(baseline, known),
            None => {}
        }
    }
    Ok(())
}
