//! A configuration with the variants that a run works on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::model::{Config, Recipe, Variant};
use super::selector::Selector;
use crate::disk;
use crate::files::{ends_in, resolved};
use crate::finding::Error;
use crate::terms::{VariantId, is_identifier};

/// Selected variants.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Variants or suites, by name or by a pattern such as `'suite/tma*'` [default: all that are not
    /// experimental]
    #[arg(value_name = "VARIANT")]
    pub names: Vec<String>,
    /// Include experimental variants.
    #[arg(long)]
    pub experimental: bool,
}

/// Whether a name ends as that of a report.
fn is_report(name: &Path) -> bool {
    ends_in(name, &["html", "json", "md", "sarif", "xml"])
}

/// A configuration, with copies of the variants that the arguments select. Constants of a trial
/// (`--define`) are set in the copies; the configuration's own variants stay as they are written.
#[derive(Clone, Debug)]
pub struct Selected {
    /// The configuration.
    pub config: Config,
    /// The variants.
    pub variants: Vec<Arc<Variant>>,
    /// Constants of a trial, `NAME=VALUE` (`--define`).
    pub overrides: Vec<String>,
    /// How they were selected.
    pub selection: Selection,
    selectors: Vec<Selector>,
}

impl Selected {
    /// Selects the variants of some names, or all. Experimental variants are selected only by name,
    /// or where all are included. `overrides` sets constants of nvcc in all of them.
    ///
    /// # Errors
    /// [`Error::Usage`] where nothing is selected, or a constant cannot be set.
    pub fn new(
        config: Config,
        selection: &Selection,
        overrides: &[String],
    ) -> Result<Selected, Error> {
        let selectors = selection.names.iter().map(|name| Selector::of(name));
        let selectors: Vec<_> = selectors.collect::<Result<_, _>>().map_err(Error::Usage)?;
        let variants = config.select(&selectors, selection.experimental);
        let mut variants = variants.map_err(Error::Usage)?;
        if variants.is_empty() {
            return Err(Error::Usage(
                "no variant is selected, because there are none, or experimental ones alone; name one, pass --experimental, or add `[suite.NAME.variant.NAME]`".to_owned(),
            ));
        }
        for text in overrides {
            define(&mut variants, text)?;
        }
        Ok(Selected {
            selection: selection.clone(),
            selectors,
            config,
            variants,
            overrides: overrides.to_vec(),
        })
    }

    /// The same, where only what lies within its tolerance with its whole interval passes.
    pub fn strict(mut self, strict: bool) -> Selected {
        for variant in self.variants.iter_mut().filter(|_| strict) {
            Arc::make_mut(variant).strict = true;
        }
        self
    }

    /// Whether the arguments mean all variants, or cover this one among others. It may be one that
    /// the configuration no longer contains.
    pub fn covers(&self, id: &VariantId) -> bool {
        self.selectors.is_empty() || self.selectors.iter().any(|one| one.covers(id))
    }

    /// The variants.
    pub fn variants(&self) -> Vec<&Variant> {
        self.variants.iter().map(Arc::as_ref).collect()
    }

    /// The folder of profiles: the named one, relative to the current folder, or the one in the work
    /// folder. It is absolute, because programs run in the configuration's folder.
    ///
    /// # Errors
    /// [`Error::Io`] where the current folder is not known.
    pub fn profiles(&self, named: Option<&Path>) -> Result<PathBuf, Error> {
        match named {
            Some(folder) if disk::is_file(folder) => Err(Error::Usage(format!(
                "`--output {}` is a file: name a folder",
                folder.display()
            ))),
            Some(folder) if !disk::is_there(folder) && is_report(folder) => {
                Err(Error::Usage(format!(
                    "`--output {0}` would be a folder of profiles; a report is written by `--report {0}`",
                    folder.display()
                )))
            }
            Some(folder) => {
                let whole = std::path::absolute(folder).map_err(Error::io("find", folder))?;
                match resolved(&whole).starts_with(resolved(&self.config.baselines)) {
                    false => Ok(whole),
                    true => Err(Error::Usage(format!(
                        "`--output {}` is in the folder of baselines: name another one, or leave the option out",
                        folder.display()
                    ))),
                }
            }
            None => Ok(self.config.work.join("profiles")),
        }
    }
}

/// Sets a constant of nvcc in all variants.
fn define(variants: &mut [Arc<Variant>], text: &str) -> Result<(), Error> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    if !is_identifier(name) {
        return Err(Error::Usage(format!(
            "`--define {text}`: `{name}` cannot be the name of a constant: write `-D NAME=VALUE`"
        )));
    }
    for variant in variants.iter_mut().map(Arc::make_mut) {
        match &mut variant.recipe {
            Recipe::Nvcc { defines, .. } => {
                defines.insert(name.to_owned(), value.to_owned());
            }
            Recipe::Command { .. } => {
                return Err(Error::Usage(format!(
                    "`--define` sets a constant of nvcc, and {} is not built by this tool",
                    variant.id
                )));
            }
        }
    }
    Ok(())
}
