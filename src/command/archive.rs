//! `sparsek-gate archive`.

use std::path::Path;

use serde::Serialize;

use super::answer;
use super::judging::Judging;
use crate::cli::{ArchiveArgs, Format, Selection};
use crate::config::Config;
use crate::finding::{Error, ExitCode, Finding};
use crate::measure::{
    BaseProject, Packed, Place, Plan, Prebuilt, SameProgram, Spent, Times, programs,
};
use crate::report::{self, Progress};
use crate::share::{Packing, SelectedNames, Summary, Unpacked, pack};
use crate::terms::counted;
use crate::trust::Grounds;

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
    let selection = &arguments.selection;
    let against = arguments.against.as_deref();
    let judging = Judging::in_checkout(current, &arguments.trusted, against, selection)?;
    let Done {
        content: packed,
        findings,
        ..
    } = done(
        &judging, selection, arguments.measure_all, &arguments.output,
    )?;
    let format = arguments.format;
    // `check --from` judges: what was found so far is in the archive.
    answer::answer(format, &packed, &findings, || text(&packed))?;
    if format == Format::Text && findings.iter().any(Finding::denies) {
        report::say("these findings are part of the archive; `check --from` judges them");
    }
    Ok(ExitCode::Pass)
}

/// Packs what was selected, and prints nothing but progress.
pub(super) fn done(
    judging: &Judging,
    selection: &Selection,
    measure_all: bool,
    file: &Path,
) -> Result<Done, Error> {
    let plan = &judging.plan;
    let base = judging.check_out_base()?;
    let rules = judging.rules()?;
    // What is compiled is kept in the cache of builds; the profiles of it are made again.
    let output = tempfile::tempdir().map_err(Error::io("create", std::env::temp_dir()))?;
    let to_build = Plan {
        selected: plan,
        base: base.as_ref(),
        part: None,
        locks: rules.judge.locks(),
        measure_all,
    };
    let watch = Progress::new();
    let place = Place::new(output.path(), &watch);
    let (programs, same_programs, spent) = programs(&to_build, &place)?;
    let selected = SelectedNames {
        names: selection.names.clone(),
        experimental: selection.experimental,
    };
    let packing = Packing {
        plan,
        selected: &selected,
        base: base.as_ref(),
        programs: &programs,
        same_programs: &same_programs,
        authority: &judging.grounds.authority,
        findings: &judging.grounds.findings,
        locks: judging.store().root(),
    };
    let packed = Content {
        archive: file.display().to_string(),
        summary: pack(packing, file)?,
        variants: plan.variants.len(),
        same_programs: same_programs.len(),
    };
    let findings = judging
        .grounds
        .findings
        .iter()
        .chain(&programs.current.findings);
    let findings: Vec<Finding> = findings.cloned().collect();
    Ok(Done {
        content: packed,
        findings,
        spent,
        to_measure: plan.variants.len() - same_programs.len(),
    })
}

fn text(packed: &Content) -> String {
    let Content {
        archive,
        variants,
        same_programs,
        summary,
    } = packed;
    let Summary {
        sha256,
        bytes,
        contents,
        files,
    } = summary;
    let same = match same_programs {
        0 => String::new(),
        count => format!("; {count} need no measurement, because their program is the base's"),
    };
    let variants = counted(*variants, "variant", "variants");
    format!(
        "{archive}: {variants}{same}; {files} files of {contents} contents, {bytes} bytes\nsha256 {sha256}\n  next: sparsek-gate profile --archive {archive} --output DIR, on a machine with a GPU\n"
    )
}

/// An archive, ready to be measured or judged by.
pub(super) struct Opened {
    pub judging: Judging,
    pub sha256: String,
    pub base: Option<BaseProject>,
    pub programs: Prebuilt,
    pub same_programs: Vec<SameProgram>,
    pub times: Times,
    /// sha256 of the list of all files of both sides.
    pub files: String,
    /// Everything is in it; removed at the end.
    _folder: tempfile::TempDir,
}

impl Opened {
    /// What was built, and needs no measurement.
    pub fn packed(&self) -> Packed<'_> {
        Packed {
            programs: &self.programs,
            same_programs: &self.same_programs,
            files: &self.files,
        }
    }
}

/// Unpacks an archive.
pub(super) fn open(file: &Path, expected: Option<&str>) -> Result<Opened, Error> {
    let Unpacked {
        sha256,
        plan,
        base,
        programs,
        same_programs,
        authority,
        findings,
        store,
        times,
        files,
        folder,
    } = crate::share::unpack(file, expected)?;
    let grounds = Grounds::packed(plan.config.clone(), store, authority, findings);
    Ok(Opened {
        judging: Judging::of(grounds, plan, None)?,
        sha256,
        base,
        programs,
        same_programs,
        times,
        files,
        _folder: folder,
    })
}
