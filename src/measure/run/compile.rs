//! Builds variants and keeps what the compiler made, which needs no GPU.

use std::path::{Path, PathBuf};

use crate::build::build_log;
use crate::config::{Config, Recipe, Variant};
use crate::disk;
use crate::files::{clear_compiled, variant_folder};
use crate::finding::{Code, Error, Finding, WarnReason};
use crate::measure::captures::{Captures, Source};
use crate::measure::place::order::{Place, Plan};
use crate::measure::watch::OfBase;

/// What needs no GPU: builds the variants of a plan, and the base's where there is one, and measures
/// nothing. Where a base cannot be built a finding says why. No program of the change runs, and so no
/// `build` command of it.
///
/// # Errors
/// [`Error`] where the machine failed; what concerns one variant is a finding.
pub fn compile(plan: &Plan<'_>, place: &Place<'_>) -> Result<Captures, Error> {
    let mut measured = Captures {
        source: Source::Compiler,
        ..Captures::default()
    };
    let mut gated = Vec::new();
    for variant in plan.selected.variants() {
        match variant.why_nothing_without_gpu() {
            None => gated.push(variant),
            Some(why) => measured.findings.push(no_static_gate(variant, why)),
        }
    }
    let (batch, output) = (plan.order(place, &gated).batch, place.output);
    let git = crate::git::revision(&batch.config.root);
    let started = std::time::Instant::now();
    // The base first: a build command of the change could write to the base's sources.
    let built = match plan.base {
        Some(base) => base.build(batch.variants, None, &OfBase(batch.watch))?,
        None => Vec::new(),
    };
    let (artifacts, findings) = batch.build_with(false)?;
    let old = batch.variants.iter();
    let old = old.filter_map(|variant| older_than_input(batch.config, variant));
    measured.findings.extend(old);
    measured.findings.extend(findings);
    measured.spent.build_s += started.elapsed().as_secs_f64();
    for variant in batch.variants {
        clear_compiled(output, &variant.id)?;
    }
    measured.compiled = batch.keep_compiled(
        &artifacts,
        |id| variant_folder(output, id),
        &[],
        git.as_deref(),
    )?;
    if let Some(base) = plan.base {
        measured.compiled_bases = base.keep_compiled(&built, output)?;
    }
    let not_built = built.into_iter().filter_map(Result::err);
    measured.findings.extend(not_built);
    Ok(measured)
}

fn no_static_gate(variant: &Variant, why: &str) -> Finding {
    let message = format!("the static gate cannot judge it: {why}");
    let name = match &variant.recipe {
        Recipe::Command { code, .. } if code.is_empty() && !variant.loaded_code => {
            "name the files with its kernels in `program` or `libraries`, or "
        }
        _ => "",
    };
    let next = format!("{name}measure it: sparsek-gate check {}", variant.id);
    Finding::deny(Code::NotMeasured, &variant.id, message, next).warn_for(WarnReason::NoStaticGate)
}

/// That an input of a program which stands ready was changed after it was built, or that nobody knows.
fn older_than_input(config: &Config, variant: &Variant) -> Option<Finding> {
    let Recipe::Command {
        code, build, run, ..
    } = &variant.recipe
    else {
        return None;
    };
    let time = |file: &Path| disk::metadata(config.root.join(file)).ok()?.modified().ok();
    let (made, program) = code
        .iter()
        .filter_map(|file| Some((time(file.as_ref())?, file)))
        .min()?;
    // A command that had nothing to do leaves the program as it is.
    let built = time(&build_log(config, &variant.id)).max(Some(made));
    let inputs = config.own_files(variant).ok()?;
    let command = build.iter().map(|_| &config.path);
    let mut files = inputs
        .iter()
        .map(Path::new)
        .chain(command.map(PathBuf::as_path));
    let newer = files.find(|file| time(file) > built).map(Path::display);
    let (message, next) = match (newer, build) {
        (Some(newer), _) => (
            format!("`{newer}` changed after `{program}` was built, which may be old code"),
            match build {
                Some(_) => format!("sparsek-gate build {}", variant.id),
                None => format!("build `{program}` again"),
            },
        ),
        (None, Some(_)) if inputs.is_empty() => (
            format!(
                "no `build` runs here, and it is not known whether `{program}` is older than its sources"
            ),
            format!(
                "name these in `inputs`, and build it before: sparsek-gate build {}",
                variant.id
            ),
        ),
        (None, None) if inputs.is_empty() && !run.is_empty() => (
            format!("it is not known whether `{program}` is older than its sources"),
            "name these in `inputs`, or the command that builds it in `build`".to_owned(),
        ),
        _ => return None,
    };
    let finding = Finding::deny(Code::ProfileStale, &variant.id, message, next);
    Some(finding.warn_for(WarnReason::OlderProgram))
}
