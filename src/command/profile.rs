//! `sparsek-gate profile`.

use super::answer::answer;
use super::dry_run;
use super::select::{load, variable};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;

use crate::cli::ProfileArgs;
use crate::finding::{Error, ExitCode};
use crate::measure::{Batch, Order, RecordUse, measure};
use crate::profile::{Profile, norm_text};
use crate::report::Progress;
use crate::terms::Tier;
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
    answer(arguments.format, &content, &findings, || {
        let mut text = String::new();
        for profile in &content.profiles {
            let norm = norm_text(profile).unwrap_or_else(|| "a value is missing\n".to_owned());
            let tier = match profile.identity.tier {
                Tier::Counters => String::new(),
                Tier::InProcessCounters => ", by CUPTI in the program".to_owned(),
                lower => format!(", by {lower} without counters"),
            };
            text.push_str(&format!(
                "\n{} on {}{tier}\n",
                profile.variant, profile.identity.gpu
            ));
            for line in norm.lines() {
                text.push_str(&format!("  {line}\n"));
            }
        }
        text.push_str(&format!(
            "\n{:.1} s, {:.1} s of it in nvcc, the programs and ncu; profiles in {}\n",
            content.wall_s,
            content.tools_wall_s,
            content.folder.display()
        ));
        text
    })
}
