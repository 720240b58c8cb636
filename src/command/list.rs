//! `sparsek-gate list`.

use std::path::Path;

use serde::Serialize;

use super::answer::{answer, named, print};
use super::select::select;
use crate::baseline::Store;
use crate::cli::ListArgs;
use crate::config::{Config, Recipe, Variant};
use crate::finding::{Error, ExitCode};
use crate::profile::Profile;
use crate::report::one_line;
use crate::terms::{VariantId, joined};

/// A variant, as it is listed.
#[derive(Serialize)]
struct Listed {
    variant: VariantId,
    description: String,
    /// The source, or the command.
    program: String,
    immutable: bool,
    experimental: bool,
    /// Functions that its baselines contain, or that the configuration expects.
    kernels: Vec<String>,
    /// Folders of its baselines: GPU model and tier.
    baselines: Vec<String>,
}

pub(super) fn run(config: &Path, arguments: &ListArgs) -> Result<ExitCode, Error> {
    let config = Config::load(config)?;
    if arguments.names_only && arguments.selection.names.is_empty() {
        print(&(config.selectable().join("\n") + "\n"))?;
        return Ok(ExitCode::Pass);
    }
    let store = Store::open(&config.baselines)?;
    let mut selection = arguments.selection.clone();
    // Everything is shown, unless something is named.
    selection.experimental |= selection.names.is_empty();
    let selected = select(config, &selection, &[])?;
    if arguments.names_only {
        let names = selected.variants.iter().map(|one| format!("{}\n", one.id));
        print(&names.collect::<String>())?;
        return Ok(ExitCode::Pass);
    }
    let listed = selected.variants.iter();
    let variants = listed
        .map(|variant| listed_variant(&selected.config, variant, &store))
        .collect::<Result<Vec<Listed>, _>>()?;
    let content = named("variants", &variants);
    answer(arguments.format, content, &[], || text(&variants))
}

fn listed_variant(config: &Config, variant: &Variant, store: &Store) -> Result<Listed, Error> {
    let baselines = store.gpus_of(&variant.id)?;
    let profiles = baselines.iter().filter_map(|gpu| {
        // It is not verified.
        Profile::read(&store.path(gpu, &variant.id, "profile.json")).ok()
    });
    let mut kernels: Vec<String> = profiles
        .flat_map(|profile| profile.kernels)
        .map(|kernel| kernel.name)
        .chain(variant.expect.iter().cloned())
        .collect();
    kernels.sort();
    kernels.dedup();
    Ok(Listed {
        variant: variant.id.clone(),
        description: config.describe(variant),
        program: match &variant.recipe {
            Recipe::Nvcc { sources, .. } => sources.join(" "),
            Recipe::Command { run, .. } => run.join(" "),
        },
        immutable: variant.immutable,
        experimental: variant.experimental,
        kernels,
        baselines,
    })
}

/// A block a variant: its name and marks, its program, kernels and baselines.
fn text(variants: &[Listed]) -> String {
    let mut text = String::new();
    for one in variants {
        let marks = [
            (one.immutable, "immutable"),
            (one.experimental, "experimental"),
            (one.baselines.is_empty(), "no baseline"),
        ];
        let marks = marks.into_iter().filter(|(is, _)| *is);
        let marks = match joined(marks.map(|(_, mark)| mark), ", ") {
            none if none.is_empty() => none,
            marks => format!(" ({marks})"),
        };
        text.push_str(&format!("{}{marks}\n", one.variant));
        let rows = [
            ("", one.description.clone()),
            ("program", one.program.clone()),
            ("kernels", one.kernels.join(", ")),
            ("baselines", one.baselines.join(", ")),
        ];
        for (name, value) in rows {
            if !value.is_empty() {
                let value = one_line(&value);
                text.push_str(format!("  {name:<10}{value}").trim_end());
                text.push('\n');
            }
        }
    }
    text
}
