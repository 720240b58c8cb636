//! `--dry-run` of `check` and `profile`: prints the plan.

use std::path::Path;

use super::answer::answer;
use crate::baseline::Store;
use crate::cli::{CheckArgs, Format, ProfileArgs};
use crate::config::{Selected, Variant};
use crate::finding::{Error, ExitCode};
use crate::judge::Judge;
use crate::measure::{BaseProject, Plan};
use crate::plan::{PlanOf, planned};
use crate::process;

/// What `profile` would do.
pub(super) fn of_profile(selected: &Selected, arguments: &ProfileArgs) -> Result<ExitCode, Error> {
    process::start_nothing();
    let variants: Vec<PlanOf<'_>> = selected
        .variants
        .iter()
        .map(|variant| PlanOf {
            config: &selected.config,
            variant,
            base: None,
            measured: true,
        })
        .collect();
    let output = selected.profiles(arguments.output.as_deref())?;
    print(&variants, &output, arguments.format)
}

/// What `check` would do with these locks.
pub(super) fn of_check(
    selected: &Selected,
    store: &Store,
    arguments: &CheckArgs,
    against: Option<&str>,
) -> Result<ExitCode, Error> {
    let format = match arguments.format.name {
        "text" => Format::Text,
        "json" => Format::Json,
        other => {
            return Err(Error::Usage(format!(
                "`--dry-run` prints text or json, not {other}"
            )));
        }
    };
    let base = against
        .map(|commit| BaseProject::check_out(&selected.config, commit))
        .transpose()?;
    process::start_nothing();
    let measured = !arguments.r#static;
    let (judge, _) = Judge::new(selected, store)?;
    let variants: Vec<&Variant> = match (&base, measured) {
        (None, true) => Plan {
            selected,
            base: None,
            part: None,
            locks: judge.locks(),
            measure_all: false,
        }
        .alone(),
        _ => selected.variants(),
    };
    let variants: Vec<PlanOf<'_>> = variants
        .into_iter()
        .filter(|variant| measured || variant.why_nothing_without_gpu().is_none())
        .map(|variant| PlanOf {
            config: &selected.config,
            variant,
            base: base.as_ref().map(|base| base.side(variant)),
            measured,
        })
        .collect();
    let output = selected.profiles(arguments.output.as_deref())?;
    print(&variants, &output, format)
}

fn print(variants: &[PlanOf<'_>], output: &Path, format: Format) -> Result<ExitCode, Error> {
    let planned = planned(variants, output);
    answer(format, &planned, &[], || planned.text())
}
