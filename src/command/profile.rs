//! `sparsek-gate profile`.

use super::answer::answer_in;
use super::select::{load, variable};
use super::{dry_run, resume};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;

use crate::cli::ProfileArgs;
use crate::finding::{Error, ExitCode};
use crate::measure::{Batch, Journal, Order, RecordUse, measure};
use crate::profile::Profile;
use crate::report::{Progress, profiles_text};
use crate::trust;

#[derive(Serialize)]
struct Content {
    folder: PathBuf,
    wall_s: f64,
    tools_wall_s: f64,
    profiles: Vec<Profile>,
}

pub(super) fn run(config: &Path, arguments: &ProfileArgs) -> Result<ExitCode, Error> {
    let start = Instant::now();
    let selected = load(config, &arguments.selection, Some(&arguments.trial))?;
    let folder = selected.profiles(arguments.output.as_deref())?;
    if arguments.dry_run {
        return dry_run::of_profile(&selected, arguments);
    }
    resume::refuse_unreviewed(arguments.resume, &selected.config)?;
    let journal = Journal::of(&folder, &selected.config.work, arguments.resume);
    let progress = Progress::new();
    let order = Order {
        batch: Batch {
            config: &selected.config,
            variants: &selected.variants(),
            watch: &progress,
        },
        base: None,
        output: &folder,
        overrides: &selected.overrides,
        // What is locked was verified in the run that measured it.
        records: RecordUse {
            reads: false,
            writes: trust::is_of_reviewed_code(&selected.config.root, variable),
        },
        prebuilt: None,
        archive: None,
        journal: Some(&journal),
    };
    let measured = measure(order, &mut |_, _, _| false)?;
    drop(progress);
    let content = Content {
        folder,
        wall_s: start.elapsed().as_secs_f64(),
        tools_wall_s: measured.spent.sum_s(),
        profiles: measured.profiles,
    };
    let findings = [measured.findings, measured.gaps].concat();
    let detail = arguments.verbosity.detail();
    let code = answer_in(detail, arguments.format, &content, &findings, || {
        format!(
            "{}\n{:.1} s, {:.1} s of it in nvcc, the programs and ncu; profiles in {}\n",
            profiles_text(&content.profiles, detail),
            content.wall_s,
            content.tools_wall_s,
            content.folder.display()
        )
    })?;
    journal.end();
    Ok(code)
}
