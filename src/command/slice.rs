//! `sparsek-gate check --slice`: one machine's part of the measurements, and no verdict.

use std::path::Path;

use super::answer;
use super::check::refuse_without_folder;
use super::judging::Judging;
use super::select::variable;
use crate::cli::CheckArgs;
use crate::config::{Config, Selected};
use crate::finding::{Error, ExitCode};
use crate::plan::{SliceAsked, SlicePlace, shared_out};
use crate::slice::{Manifest, SliceFolder, copy_recorded, plan_sha256};
use crate::terms::VariantId;

pub(super) fn run(
    config: &Path,
    arguments: &CheckArgs,
    asked: SliceAsked,
) -> Result<ExitCode, Error> {
    let place = asked.place(&variable);
    let place = place.map_err(|why| Error::Usage(format!("`--slice auto`: {why}")))?;
    let Some(output) = &arguments.slice_output else {
        return Err(Error::Usage(
            "`--slice` requires `--slice-output DIR`".to_owned(),
        ));
    };
    match &arguments.from {
        Some(recording) => of_recording(config, arguments, recording, place, output),
        None => Err(Error::Usage(
            "`--slice` requires `--archive FILE`, or `--from DIR`\n  next: sparsek-gate archive --output gate.tar.zst".to_owned(),
        )),
    }
}

/// Copies one slice's part of a recording.
fn of_recording(
    config: &Path,
    arguments: &CheckArgs,
    recording: &Path,
    place: SlicePlace,
    output: &Path,
) -> Result<ExitCode, Error> {
    let current = Config::load(config)?;
    refuse_without_folder(recording)?;
    let judging = Judging::in_checkout(current, &arguments.trusted, None, &arguments.selection)?;
    let plan = &judging.plan;
    let variants: Vec<VariantId> = plan.variants.iter().map(|one| one.id.clone()).collect();
    let slices = shared_out(&variants, place.count, |_| None);
    let own = slices
        .get(place.index as usize - 1)
        .cloned()
        .unwrap_or_default();
    let controls = controls_beside(plan, &own);
    let folder = SliceFolder::create(output)?;
    for variant in own.iter().chain(&controls) {
        copy_recorded(recording, variant, &folder.profiles())?;
    }
    let count = own.len();
    folder.finish(Manifest {
        schema: Manifest::SCHEMA,
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        plan: plan_sha256(plan),
        place,
        archive: None,
        recording: Some(recording.display().to_string()),
        slices,
        same_programs: Vec::new(),
        controls,
        run: None,
        files: std::collections::BTreeMap::new(),
    })?;
    say_whole(place, count, output)
}

/// The unchanged variants that bound the others' bands on this machine.
fn controls_beside(plan: &Selected, own: &[VariantId]) -> Vec<VariantId> {
    let of_suite = |suite: &str| own.iter().any(|variant| variant.suite == suite);
    let immutable = plan.config.variants().filter(|variant| variant.immutable);
    let controls = immutable.map(|variant| &variant.id);
    controls
        .filter(|variant| of_suite(&variant.suite) && !own.contains(variant))
        .cloned()
        .collect()
}

fn say_whole(place: SlicePlace, variants: usize, output: &Path) -> Result<ExitCode, Error> {
    let variants = match variants {
        1 => "1 variant".to_owned(),
        count => format!("{count} variants"),
    };
    answer::print(&crate::report::clean(&format!(
        "slice {place} is complete: {variants} in {}; nothing is judged yet\n  next: sparsek-gate merge, with the folders of all {} slices\n",
        output.display(),
        place.count
    )))?;
    Ok(ExitCode::Pass)
}
