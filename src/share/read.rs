//! Reading slices: which of them belong together, and what is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::contents::listed;
use crate::config::Selected;
use crate::disk;
use crate::evidence::SickGpu;
use crate::files::{recorded_folder, variant_folder};
use crate::finding::{Code, Error, Finding};
use crate::hash::{sha256_file, sha256_of};
use crate::judge::Recordings;
use crate::measure::{Found, SameProgram, SliceOf, SlicePart};
use crate::parallel;
use crate::terms::VariantId;

/// What slices must be of.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The plan that is judged.
    pub plan: &'a Selected,
    /// Its sha256.
    pub sha256: &'a str,
    /// The archive, where one is given: its sha256, and the variants that it says need no measurement.
    pub archive: Option<(&'a str, &'a [SameProgram])>,
    /// What is known of the slices in these folders.
    pub known: &'a BTreeMap<PathBuf, Known>,
}

/// What who had a slice measured knows of it.
#[derive(Clone, Debug)]
pub struct Known {
    /// Which one it is and where it was measured, in words for a message.
    pub words: String,
    /// The sha256 of its record, as it was written; otherwise why it was not measured, in words.
    pub record: Result<String, String>,
}

/// Slices that belong together.
#[derive(Debug, Default)]
pub struct Slices {
    /// Their profiles.
    pub recordings: Recordings,
    /// The variants that need no measurement, as the slices say.
    pub same_programs: Vec<SameProgram>,
    /// What the slices that are used measured, and on which GPUs.
    pub parts: Vec<SlicePart>,
    /// What the machines found besides, in the order of the slices.
    pub found: Vec<Found>,
    /// What is wrong with slices, and which variants were not measured therefore.
    pub findings: Vec<Finding>,
}

/// A slice that was read.
struct Slice<'f> {
    folder: &'f Path,
    of: SliceOf,
    found: Found,
    /// The files of each variant that is complete, by the paths from its folder, with their sha256.
    files: BTreeMap<VariantId, BTreeMap<String, String>>,
}

impl Slice<'_> {
    fn part(&self) -> SlicePart {
        let captures = &self.found.captures;
        // Its driver says nothing of GPUs that it did not measure on.
        let is_own = |gpu: &&SickGpu| {
            let mut parts = captures.gpus.iter();
            captures.gpus.is_empty() || parts.any(|part| part.uuid == gpu.uuid)
        };
        SlicePart {
            folder: self.folder.to_path_buf(),
            own: self.of.own().to_vec(),
            sick: captures.sick.iter().filter(is_own).cloned().collect(),
        }
    }

    /// What the slices of one check have in common: all but their places.
    fn common(&self) -> SliceOf {
        let mut common = self.of.clone();
        common.place.index = 1;
        // The archive says which they are, and who unpacks it has no git.
        if common.archive.is_some() {
            common.revisions = Default::default();
        }
        common
    }
}

/// The sha256 of a plan: the version of this tool, the selected variants and how each is measured. It is
/// the same in every checkout, and does not depend on what was locked.
///
/// # Errors
/// [`Error::Usage`], that it cannot be made.
pub fn plan_sha256(plan: &Selected) -> Result<String, Error> {
    let arch = &plan.config.toolchain.arch;
    let plan = (env!("CARGO_PKG_VERSION"), arch, plan.variants());
    sha256_of(&plan).map_err(Error::Usage)
}

/// Reads slices. What is wrong with one is a finding, and so is each variant that therefore was not
/// measured.
pub fn read_slices(folders: &[PathBuf], wanted: Wanted<'_>) -> Slices {
    let mut found = Slices::default();
    let mut reading = Reading {
        known: wanted.known.clone(),
        ..Reading::default()
    };
    for folder in folders {
        let known = wanted.known.get(folder).map(|known| &known.record);
        let slice = match known {
            Some(Err(why)) => Err(why.clone()),
            known => SliceOf::read(folder, known.and_then(|it| it.as_deref().ok())),
        };
        match slice {
            Ok((of, found)) => reading.slices.push(Slice {
                folder,
                of,
                found,
                files: BTreeMap::new(),
            }),
            Err(why) => reading.leave_out(folder, None, &why),
        }
    }
    reading.refuse(|slice| other_plan(slice, wanted).or_else(|| judges(slice)));
    let Some(common) = most_common(&reading.slices) else {
        let same = wanted.archive.map_or(&[][..], |(_, same)| same);
        found.same_programs = same.to_vec();
        found.findings = reading.findings;
        let unmeasured = nothing_of(wanted, same, &BTreeMap::new());
        found.findings.extend(unmeasured);
        // Each variant has a finding that says why it is not measured.
        found.recordings.measured = true;
        return found;
    };
    reading.refuse(|slice| differs(&slice.common(), &common));
    let (used, why_not) = reading.one_of_each(&common);
    found.recordings = recordings(&used, &common);
    found.findings = reading.findings;
    let folders = found.recordings.folders.iter().flatten();
    let there: BTreeSet<&VariantId> = folders.map(|(variant, _)| variant).collect();
    let said = used.iter().flat_map(|slice| &slice.found.captures.findings);
    let said = said.filter(|one| one.denies());
    let said: BTreeSet<&VariantId> = said.filter_map(|one| one.variant.as_ref()).collect();
    let is_there = |one: &Finding| {
        let mut id = one.variant.iter();
        id.any(|id| there.contains(id) || said.contains(id))
    };
    let unmeasured = nothing_of(wanted, &common.same_programs, &why_not).into_iter();
    found
        .findings
        .extend(unmeasured.filter(|one| !is_there(one)));
    found.same_programs = common.same_programs;
    found.parts = used.iter().map(Slice::part).collect();
    found.found = used.into_iter().map(|slice| slice.found).collect();
    found
}

/// Slices while they are sorted out.
#[derive(Default)]
struct Reading<'f> {
    slices: Vec<Slice<'f>>,
    findings: Vec<Finding>,
    /// As [`Wanted::known`].
    known: BTreeMap<PathBuf, Known>,
    /// Which slices were refused.
    refused: BTreeSet<u32>,
}

impl<'f> Reading<'f> {
    /// Refuses the slices of which `why_not` says why.
    fn refuse(&mut self, why_not: impl Fn(&Slice<'_>) -> Option<String>) {
        for slice in std::mem::take(&mut self.slices) {
            match why_not(&slice) {
                None => self.slices.push(slice),
                Some(why) => {
                    self.leave_out(slice.folder, Some(&slice), &why);
                    self.refused.insert(slice.of.place.index);
                }
            }
        }
    }

    /// Says why a folder is not used.
    fn leave_out(&mut self, folder: &Path, slice: Option<&Slice<'_>>, why: &str) {
        let place = match (self.known.get(folder), slice) {
            (Some(known), _) => format!("{} in {}", known.words, folder.display()),
            (None, Some(slice)) => {
                format!("slice {} in {}", slice.of.place, folder.display())
            }
            (None, None) => format!("the slice in {}", folder.display()),
        };
        let next = match SliceOf::is_in(folder) {
            true => again(self.known.contains_key(folder)),
            false => "name the folder that `profile --slice I/N --output DIR` wrote",
        };
        let message = format!("{place} is not used: {why}");
        self.findings
            .push(Finding::of_project(Code::SliceUnusable, message, next));
    }

    /// The one whole slice of each place, and why variants of the others were not measured.
    fn one_of_each(&mut self, common: &SliceOf) -> (Vec<Slice<'f>>, BTreeMap<VariantId, String>) {
        let count = common.slices.len();
        let mut used: Vec<Slice<'f>> = Vec::new();
        let mut why_not: BTreeMap<VariantId, String> = BTreeMap::new();
        for (index, own) in (1..).zip(&common.slices) {
            let slices = std::mem::take(&mut self.slices).into_iter();
            let (same, others) = slices.partition(|slice| slice.of.place.index == index);
            self.slices = others;
            let why = match self.one_whole(same, (index, count)) {
                Ok(slice) => {
                    used.push(slice);
                    continue;
                }
                Err(why) => format!("slice {index}/{count} should have measured it: {why}"),
            };
            why_not.extend(own.iter().map(|variant| (variant.clone(), why.clone())));
        }
        (used, why_not)
    }

    /// The one slice of a place, if its files are those that its records name; otherwise why there
    /// is none.
    fn one_whole(
        &mut self,
        mut same: Vec<Slice<'f>>,
        (index, count): (u32, usize),
    ) -> Result<Slice<'f>, String> {
        let Some(slice) = same.pop() else {
            if self.refused.contains(&index) {
                return Err("what was given of it is not used".to_owned());
            }
            self.findings.push(missing(index, count));
            return Err("it is missing".to_owned());
        };
        if !same.is_empty() {
            same.push(slice);
            let places = same.iter().map(|slice| slice.folder.display().to_string());
            let places: Vec<String> = places.collect();
            let why = format!("it was given {} times", same.len());
            let places = places.join(" and ");
            let message = format!("slice {index}/{count} is not used: {why}, in {places}");
            let next = "give one folder of each slice";
            let finding = Finding::of_project(Code::SliceUnusable, message, next);
            self.findings.push(finding);
            return Err(why);
        }
        match files(&slice) {
            Ok(files) => Ok(Slice { files, ..slice }),
            Err(why) => {
                self.leave_out(slice.folder, Some(&slice), &why);
                Err(why)
            }
        }
    }
}

/// Why a slice is not of the plan that is judged.
fn other_plan(slice: &Slice<'_>, wanted: Wanted<'_>) -> Option<String> {
    let (of, archive) = (&slice.of, &slice.of.archive);
    if wanted.archive.is_none() && (archive.is_some() || !of.same_programs.is_empty()) {
        return Some(
            "it is of an archive: only --archive FILE and --archive-sha256 HASH show by whose rules"
                .to_owned(),
        );
    }
    if let Some((wanted, _)) = wanted.archive
        && archive.as_deref() != Some(wanted)
    {
        let other = match archive {
            Some(other) => format!("the archive with SHA-256 {other}"),
            None => "no archive".to_owned(),
        };
        return Some(format!("it was made of {other}, and not of {wanted}"));
    }
    if of.tool != env!("CARGO_PKG_VERSION") {
        return Some(format!(
            "it is of another plan: sparsek-gate {} made it, and this is {}",
            of.tool,
            env!("CARGO_PKG_VERSION")
        ));
    }
    if let Some((_, same)) = wanted.archive
        && same != of.same_programs
    {
        return Some("it is of another plan: the archive leaves out other variants".to_owned());
    }
    let same = of.same_programs.iter().map(|same| &same.variant);
    let own: BTreeSet<&VariantId> = of.slices.iter().flatten().chain(same).collect();
    let planned = wanted.plan.variants.iter().map(|variant| &variant.id);
    let planned: BTreeSet<&VariantId> = planned.collect();
    let lacks = planned.difference(&own).map(|one| ("lacks", one));
    let more = own.difference(&planned).map(|one| ("has", one));
    if let Some((what, variant)) = lacks.chain(more).next() {
        return Some(format!(
            "it is of another plan, which {what} {variant}: the slices must have the selection and the configuration that are judged"
        ));
    }
    (of.plan != wanted.sha256).then(|| {
        "it is of another plan: the configuration that is judged measures these variants in another way".to_owned()
    })
}

/// What most slices have in common; of several the first's. A slice that lists a variant twice has
/// nothing in common with others.
fn most_common(slices: &[Slice<'_>]) -> Option<SliceOf> {
    let mut all: Vec<(SliceOf, usize)> = Vec::new();
    for slice in slices {
        let common = slice.common();
        match all.iter_mut().find(|(other, _)| *other == common) {
            Some((_, count)) => *count += 1,
            None => all.push((common, 1)),
        }
    }
    // Of several that are as common, the first.
    let best = all.into_iter().rev().max_by_key(|(_, count)| *count);
    best.map(|(common, _)| common)
}

/// How a slice differs from what most of them have in common.
fn differs(own: &SliceOf, common: &SliceOf) -> Option<String> {
    let (count, others) = (own.slices.len(), common.slices.len());
    if count != others {
        return Some(format!(
            "it is of another plan: one of {count} slices, and most have {others}"
        ));
    }
    if own.archive != common.archive {
        let other = |archive: &Option<String>| archive.clone().unwrap_or_else(|| "none".to_owned());
        return Some(format!(
            "it is from another archive ({}) than most ({})",
            other(&own.archive),
            other(&common.archive)
        ));
    }
    if own.revisions != common.revisions {
        let words = |[own, base]: &[Option<String>; 2]| {
            let name = |one: &Option<String>| one.clone().unwrap_or_else(|| "none".to_owned());
            format!("{} beside {}", name(own), name(base))
        };
        let (own, most) = (words(&own.revisions), words(&common.revisions));
        return Some(format!(
            "it measured other revisions ({own}) than most ({most})"
        ));
    }
    (own.slices != common.slices)
        .then(|| "it is of another plan: it shares the variants out in another way".to_owned())
}

/// That a slice states a finding on the rules, which only the run that judges may have. Otherwise the
/// machine that measured would choose the words that ask for consent.
fn judges(slice: &Slice<'_>) -> Option<String> {
    let mut findings = slice.found.captures.findings.iter();
    let found = findings.find(|one| one.accept.is_some() || one.code.is_of_rules())?;
    let code = found.code.as_str();
    Some(format!("it states `{code}`, which no measurement finds"))
}

/// The files of each complete variant of a slice, with their sha256, if they are those that its record
/// names; otherwise how they differ, in words.
fn files(slice: &Slice<'_>) -> Result<BTreeMap<VariantId, BTreeMap<String, String>>, String> {
    let variants: Vec<&VariantId> = slice.found.variants.keys().collect();
    let files = parallel::map(&variants, |variant| {
        let folder = variant_folder(slice.folder, variant);
        // A link may lead elsewhere by the time that its files are read.
        if folder.ancestors().take(2).any(disk::is_link) {
            return Err(format!("the folder of {variant} is a link"));
        }
        let named = slice.found.files_of(slice.folder, variant)?;
        let files = listed(&folder)?;
        if let Some(missing) = named.keys().find(|name| !files.contains_key(*name)) {
            return Err(format!("it was cut off: `{variant}/{missing}` is missing"));
        }
        if let Some(more) = files.keys().find(|name| !named.contains_key(*name)) {
            return Err(format!("`{variant}/{more}` was added to it"));
        }
        let files: Vec<(String, PathBuf)> = files.into_iter().collect();
        let hashes = parallel::map(&files, |(_, path)| sha256_file(path));
        for ((name, _), hash) in files.iter().zip(hashes) {
            let hash = hash.map_err(|error| format!("`{name}` cannot be read: {error}"))?;
            if named.get(name) != Some(&hash) {
                return Err(format!(
                    "it was cut off or changed: `{variant}/{name}` is not what was written"
                ));
            }
        }
        Ok(((*variant).clone(), named))
    });
    files.into_iter().collect()
}

/// Where the profiles of each variant are: with its own slice.
fn recordings(slices: &[Slice<'_>], common: &SliceOf) -> Recordings {
    let folders = slices.iter().flat_map(|slice| {
        let own = slice.of.own().iter();
        let complete = own.filter(|variant| slice.files.contains_key(variant));
        complete.map(|variant| (variant.clone(), slice.folder.to_path_buf()))
    });
    let [_, base] = common.revisions.clone();
    Recordings {
        measured: true,
        base,
        folders: Some(folders.collect()),
        ..Recordings::default()
    }
}

/// Where recordings have the profiles of each variant. Of one that more than one has, nobody says which
/// counts: it is in none, and a finding says so.
pub fn recordings_in(
    folders: &[PathBuf],
    shown: &str,
    plan: &Selected,
) -> (Recordings, Vec<Finding>) {
    if let [folder] = folders {
        let recordings = Recordings {
            shown: folder.clone(),
            ..Recordings::default()
        };
        return (recordings, Vec::new());
    }
    let mut findings = Vec::new();
    let mut of_each = BTreeMap::new();
    for variant in plan.config.variants() {
        let id = &variant.id;
        let has = |folder: &&PathBuf| disk::is_there(recorded_folder(folder, id));
        let found: Vec<&PathBuf> = folders.iter().filter(has).collect();
        match (&found[..], folders.first()) {
            ([_, .., _], _) if plan.variants.iter().any(|one| one.id == *id) => {
                let places: Vec<String> =
                    found.iter().map(|one| one.display().to_string()).collect();
                let message = format!(
                    "it is recorded {} times: in {}",
                    found.len(),
                    places.join(" and ")
                );
                let next = format!(
                    "give one recording of each variant; two are shown side by side: sparsek-gate compare {}/{id} {}/{id}",
                    found[0].display(),
                    found[1].display()
                );
                findings.push(Finding::deny(Code::NotMeasured, id, message, next));
            }
            ([one, ..], _) => drop(of_each.insert(id.clone(), (*one).clone())),
            // There it is looked for, and missed.
            ([], first) => drop(first.map(|first| of_each.insert(id.clone(), first.clone()))),
        }
    }
    let recordings = Recordings {
        shown: PathBuf::from(shown),
        folders: Some(of_each),
        ..Recordings::default()
    };
    (recordings, findings)
}

/// What to do where a slice is missing that this check had measured, or another one.
fn again(is_own: bool) -> &'static str {
    match is_own {
        true => "run the check again",
        false => "run that slice again, and check all of them together",
    }
}

/// The findings on all variants of a plan, as if no slice measured them.
fn nothing_of(
    wanted: Wanted<'_>,
    same_programs: &[SameProgram],
    why_not: &BTreeMap<VariantId, String>,
) -> Vec<Finding> {
    let left_out: BTreeSet<&VariantId> = same_programs.iter().map(|same| &same.variant).collect();
    let variants = wanted.plan.variants.iter().map(|variant| &variant.id);
    let next = again(!wanted.known.is_empty());
    variants
        .filter(|variant| !left_out.contains(variant))
        .map(|variant| {
            let why = why_not
                .get(variant)
                .map_or("no slice measured it", String::as_str);
            Finding::deny(Code::NotMeasured, variant, why, next)
        })
        .collect()
}

fn missing(index: u32, count: usize) -> Finding {
    Finding::of_project(
        Code::SliceUnusable,
        format!("slice {index}/{count} is missing: no folder has it"),
        format!(
            "run it as the others: sparsek-gate profile … --slice {index}/{count} --output DIR; then check all of them together"
        ),
    )
}
