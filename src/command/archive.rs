//! `sparsek-gate archive`.

use std::path::Path;

use serde::Serialize;

use super::answer;
use super::judging::{Judging, refuse_target};
use crate::cli::{ArchiveArgs, Format};
use crate::config::Config;
use crate::finding::{Error, ExitCode, Finding};
use crate::measure::{Place, Plan, Spent, programs};
use crate::process;
use crate::report::{self, Progress};
use crate::share::{Packing, Summary, Unpacked, pack, unpack};
use crate::terms::counted;

/// What was packed, for scripts.
#[derive(Serialize)]
pub(super) struct Content {
    archive: String,
    #[serde(flatten)]
    pub summary: Summary,
    variants: usize,
    same_programs: usize,
}

/// What was packed, and what was found meanwhile.
pub(super) struct Done {
    pub content: Content,
    pub findings: Vec<Finding>,
    pub spent: Spent,
    /// How many variants need a measurement.
    pub to_measure: usize,
}

pub(super) fn run(config: &Path, arguments: &ArchiveArgs) -> Result<ExitCode, Error> {
    let current = Config::load(config)?;
    refuse_target("--output", &arguments.output, Some(&current), &[])?;
    let against = arguments.against.as_deref();
    let judging = Judging::in_checkout(current, &arguments.trusted, against, &arguments.selection)?;
    let (all, output) = (arguments.measure_all, &arguments.output);
    let Done {
        content: packed,
        findings,
        ..
    } = done(&judging, all, output)?;
    let format = arguments.format;
    // `check --from` judges: what was found so far is in the archive.
    answer::answer(format, &packed, &findings, || text(&packed))?;
    if format == Format::Text && findings.iter().any(Finding::denies) {
        report::say("these findings are part of the archive; `check --from` judges them");
    }
    Ok(ExitCode::Pass)
}

/// Packs what was selected, and prints nothing but progress.
pub(super) fn done(judging: &Judging, measure_all: bool, file: &Path) -> Result<Done, Error> {
    let plan = &judging.plan;
    let base = judging.check_out_base()?;
    let rules = judging.rules()?;
    // What is compiled is kept in the cache of builds; the profiles of it are made again.
    let output = process::scratch()?;
    let to_build = Plan {
        selected: plan,
        base: base.as_ref(),
        part: None,
        locks: rules.judge.locks(),
        measure_all,
    };
    let watch = Progress::default();
    let place = Place::new(output.path(), &watch);
    let (programs, same_programs, spent) = programs(&to_build, &place)?;
    let found = [
        &judging.grounds.findings[..],
        &judging.grounds.consent.unused(),
    ]
    .concat();
    let packing = Packing {
        plan,
        base: base.as_ref(),
        programs: &programs,
        same_programs: &same_programs,
        authority: &judging.grounds.authority,
        findings: &found,
        locks: judging.grounds.store.root(),
    };
    let packed = Content {
        archive: file.display().to_string(),
        summary: pack(packing, file)?,
        variants: plan.variants.len(),
        same_programs: same_programs.len(),
    };
    let findings = [found, programs.current.findings].concat();
    Ok(Done {
        content: packed,
        findings,
        spent,
        to_measure: plan.variants.len() - same_programs.len(),
    })
}

fn text(packed: &Content) -> String {
    let (archive, summary) = (&packed.archive, &packed.summary);
    let same = match packed.same_programs {
        0 => String::new(),
        count => format!("; {count} need no measurement, because their program is the base's"),
    };
    let variants = counted(packed.variants, "variant", "variants");
    format!(
        "{archive}: {variants}{same}; {} files of {} contents, {} bytes\nsha256 {}\n  next: sparsek-gate profile --archive {archive} --output DIR, on a machine with a GPU\n",
        summary.files, summary.contents, summary.bytes, summary.sha256
    )
}

/// An archive, ready to be measured or judged by.
pub(super) struct Opened {
    pub judging: Judging,
    pub unpacked: Unpacked,
}

/// Unpacks an archive.
pub(super) fn open(file: &Path, expected: Option<&str>) -> Result<Opened, Error> {
    let (unpacked, plan, grounds) = unpack(file, expected)?;
    let judging = Judging::of(grounds, plan, None)?;
    Ok(Opened { judging, unpacked })
}
