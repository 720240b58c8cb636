//! `sparsek-gate tune`.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::answer::answer;
use super::select::select;
use crate::baseline::Store;
use crate::cli::TuneArgs;
use crate::config::{Config, Variant};
use crate::finding::{Error, ExitCode};
use crate::report::tolerances_text;
use crate::tolerances::{
    Evidence, Gathered, LeftOut, Recorded, Tuner, VariantTolerances, comparisons, further, gather,
    toml_lines,
};

#[derive(Serialize)]
struct Content {
    open_share_percent: f64,
    recorded: bool,
    variants: Vec<VariantTolerances>,
    left_out: Vec<LeftOut>,
    /// The proposals that differ from the configuration, as its lines.
    toml: String,
}

pub(super) fn run(config: &Path, arguments: &TuneArgs) -> Result<ExitCode, Error> {
    let selected = select(Config::load(config)?, &arguments.selection, None)?;
    let config = &selected.config;
    for folder in &arguments.from {
        is_folder(folder)?;
    }
    let store = Store::open(&config.baselines)?;
    let read = |variant: &Variant| -> Result<Gathered, Error> {
        let further = further(&arguments.from, &variant.id)?;
        gather(config, &store, variant, &further)
    };
    let mut found = Vec::new();
    for variant in &selected.variants {
        found.push((variant, read(variant)?));
    }
    unused(&arguments.from, &selected.variants)?;
    let most = found.iter().flat_map(|(variant, gathered)| {
        let evidence = gathered.evidence.iter();
        evidence.map(|one| comparisons(&recorded(variant, one)))
    });
    let tuner = Tuner::new(arguments.open_share, most.max().unwrap_or(1));
    let tuner = tuner.of_recordings(arguments.recorded);
    let mut content = Content {
        open_share_percent: arguments.open_share,
        recorded: arguments.recorded,
        variants: Vec::new(),
        left_out: Vec::new(),
        toml: String::new(),
    };
    let mut findings = Vec::new();
    for (variant, gathered) in found {
        let control = config.variants().find(|other| {
            other.immutable && other.id.suite == variant.id.suite && other.id != variant.id
        });
        let control = control.filter(|_| variant.control);
        let of_control = control.map(read).transpose()?;
        for one in &gathered.evidence {
            let beside = of_control.as_ref().and_then(|gathered| {
                let mut evidence = gathered.evidence.iter();
                evidence.find(|other| other.gpu == one.gpu)
            });
            let control = control.zip(beside);
            let control = control.map(|(variant, evidence)| recorded(variant, evidence));
            let proposed = tuner.propose(&recorded(variant, one), control.as_ref());
            content.variants.push(proposed);
        }
        content.left_out.extend(gathered.left_out);
        findings.extend(gathered.findings);
    }
    content.toml = toml_lines(&content.variants);
    answer(arguments.format, &content, &findings, || {
        tolerances_text(&content.variants, &content.left_out, &content.toml)
    })
}

fn recorded<'a>(variant: &'a Variant, evidence: &'a Evidence) -> Recorded<'a> {
    Recorded {
        variant,
        gpu: &evidence.gpu,
        locked: &evidence.locked,
        others: evidence.others.iter().collect(),
    }
}

fn is_folder(folder: &Path) -> Result<(), Error> {
    match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(Error::Usage(format!(
            "`--from {}`: it is not a folder",
            folder.display()
        ))),
        Err(error) => Err(Error::named(folder)(error)),
    }
}

/// A folder without any profile of the variants is a mistake.
fn unused(folders: &[PathBuf], variants: &[Variant]) -> Result<(), Error> {
    for folder in folders {
        let has = |variant: &Variant| -> Result<bool, Error> {
            Ok(!further(std::slice::from_ref(folder), &variant.id)?.is_empty())
        };
        let mut any = false;
        for variant in variants {
            any |= has(variant)?;
        }
        if !any {
            return Err(Error::Usage(format!(
                "`--from {}`: it has no profile of a selected variant (SUITE/VARIANT/profile.json); name the folder that `profile --output` wrote",
                folder.display()
            )));
        }
    }
    Ok(())
}
