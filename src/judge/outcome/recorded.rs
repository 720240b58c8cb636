//! Recorded profiles, and what their captures show against them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::recordings::Recordings;
use super::rules::Rules;
use super::variants::Judge;
use crate::baseline::{CaptureIndex, find_profile, rederive, rederive_loaded};
use crate::comparable::{changed_code, lacks_source};
use crate::config::{Config, Variant};
use crate::disk;
use crate::evidence::{conditions_unknown, import_again};
use crate::files::{PROFILE_FILE, STATIC_PROFILE_FILE, recorded_base_folder, recorded_folder};
use crate::finding::{Code, Error, Finding, WarnReason, by_variant};
use crate::measure::Captures;
use crate::parallel;
use crate::plan::Side;
use crate::profile::{Profile, ProfileOrigin};
use crate::terms::{Tier, VariantId, joined};
use crate::trust::{Authority, Consent, recorded_in_change, unlike_base};

/// Adds the recorded profiles of the selected variants to what is known of their captures. Their verdict
/// comes from their samples. Where these differ from the captures beside them, a finding says so: it
/// denies where a change is under review, and else warns.
///
/// # Errors
/// [`Error`] where files or git cannot be read; what concerns one variant is a finding.
pub fn examined(
    mut captures: Captures,
    recordings: &Recordings,
    rules: &Rules<'_>,
    consent: &Consent,
) -> Result<Captures, Error> {
    let judge = &rules.judge;
    let plan = judge.plan;
    let found = by_variant(rules.found().chain(&captures.findings));
    let mut reading = Reading {
        recordings,
        config: &plan.config,
        judge,
        authority: &rules.authority,
        found: &found,
        captures: Captures::default(),
        findings: Vec::new(),
        stale: BTreeSet::new(),
        explained: BTreeSet::new(),
    };
    let variants: Vec<(&Variant, &Path)> = plan
        .variants()
        .into_iter()
        .filter_map(|variant| Some((variant, recordings.of(&variant.id)?)))
        .collect();
    if recordings.measured {
        let explained = variants.iter().filter(|(one, _)| {
            let about = found.get(&one.id);
            is_explained(one, about.map_or(&[], Vec::as_slice))
        });
        reading.explained = explained.map(|(one, _)| one.id.clone()).collect();
    }
    // What takes long is done on all cores. Findings are made from it in the order of the variants.
    let sides: Vec<_> = variants
        .iter()
        .flat_map(|one| [(Side::Current, *one), (Side::Base, *one)])
        .collect();
    let read = parallel::map(&sides, |(side, (variant, folder))| {
        Recorded::read(folder, &plan.config, *side, variant)
    });
    for ((side, (variant, _)), recorded) in sides.iter().zip(read) {
        match side {
            Side::Base => reading.base(variant, recorded)?,
            Side::Current => reading.current(variant, recorded)?,
        }
    }
    for (variant, folder) in variants {
        reading.compiled(variant, folder);
    }
    reading.trials();
    if reading.is_change() {
        reading.other_bases()?;
        if recordings.packed_base.is_none() {
            let (checkout, folders) = (&plan.config.checkout, recordings.all());
            let brought = recorded_in_change(checkout, &rules.authority, &folders, consent)?;
            reading.findings.extend(brought);
        }
    }
    if let Some(commit) = &recordings.base {
        reading.beside_base(commit);
    }
    let (read, found) = (reading.captures, reading.findings);
    captures.add(read);
    captures.findings.extend(found);
    Ok(captures)
}

/// Whether a finding says why a variant was not measured: it fails the run, or its code alone may be
/// judged.
fn is_explained(variant: &Variant, about: &[&Finding]) -> bool {
    let code_alone = variant.accepts(Tier::Static) && variant.why_no_static_gate().is_none();
    about.iter().any(|one| code_alone || one.denies())
}

/// Whether a recording is of code that other programs launch.
fn is_library(folder: &Path) -> bool {
    let code = Profile::at(&folder.join(STATIC_PROFILE_FILE));
    code.is_ok_and(|code| code.is_some_and(|code| code.provenance.library))
}

/// A recorded profile, and what is found without the rest of the recording.
struct Recorded {
    /// Where it is.
    folder: PathBuf,
    profile: Result<Option<Profile>, Error>,
    /// What the captures beside it show against it.
    altered: Result<Vec<Finding>, Error>,
    /// That it is of other code than what is here.
    stale: Option<Finding>,
}

impl Recorded {
    /// Reads a profile and its captures.
    fn read(recording: &Path, config: &Config, side: Side, variant: &Variant) -> Recorded {
        let folder = match side {
            Side::Current => recorded_folder(recording, &variant.id),
            Side::Base => recorded_base_folder(recording, &variant.id),
        };
        let profile = match side {
            Side::Current => Profile::recorded(recording, &variant.id),
            Side::Base => base(&folder.join(PROFILE_FILE)),
        };
        let own = match &profile {
            Ok(Some(profile)) if profile.variant == variant.id => Some(profile),
            _ => None,
        };
        let altered = own.map_or(Ok(Vec::new()), |profile| {
            let captures = CaptureIndex::of(&folder)?;
            let mut found = rederive(variant, profile, &captures);
            if variant.loaded_code
                && let Ok(Some(compiled)) = Profile::at(&folder.join(STATIC_PROFILE_FILE))
            {
                let other = rederive_loaded(config, variant, profile, &compiled, &captures)?;
                found.extend(other);
            }
            Ok(found)
        });
        let current = own.filter(|_| side == Side::Current);
        Recorded {
            stale: current.and_then(|profile| stale(config, variant, profile)),
            folder,
            altered,
            profile,
        }
    }
}

/// The profile of a base, where there is one. A link that leads nowhere is a base that cannot be
/// read, and not the lack of one.
fn base(file: &Path) -> Result<Option<Profile>, Error> {
    let missing = disk::symlink_metadata(file).err();
    match missing.is_some_and(|error| error.kind() == ErrorKind::NotFound) {
        true => Ok(None),
        false => Profile::read(file).map(Some),
    }
}

struct Reading<'a> {
    recordings: &'a Recordings,
    config: &'a Config,
    judge: &'a Judge<'a>,
    authority: &'a Authority,
    /// What was found before.
    found: &'a BTreeMap<&'a VariantId, Vec<&'a Finding>>,
    captures: Captures,
    findings: Vec<Finding>,
    /// Variants whose measured profile is of other code.
    stale: BTreeSet<VariantId>,
    /// Variants of which a finding says why they were not measured.
    explained: BTreeSet<VariantId>,
}

impl Reading<'_> {
    /// Whether a change is under review: its author made the recording, and others judge it.
    fn is_change(&self) -> bool {
        *self.authority != Authority::WorkingTree
    }

    /// The measured profile of a variant. Without one nothing would be judged.
    fn current(&mut self, variant: &Variant, recorded: Recorded) -> Result<(), Error> {
        let finding = match recorded.profile {
            Ok(Some(profile))
                if profile.variant == variant.id && profile.identity.tier != Tier::Static =>
            {
                self.altered(variant, recorded.altered?, |finding| finding);
                if let Some(stale) = recorded.stale {
                    self.stale.insert(variant.id.clone());
                    self.findings.push(stale);
                }
                self.findings.extend(stripped(variant, &profile));
                self.findings.extend(self.imported(variant, &profile));
                self.findings.extend(conditions_unknown(&profile));
                self.captures.profiles.push(profile);
                return Ok(());
            }
            Ok(Some(profile)) => of_another(variant, &recorded.folder, &profile),
            Ok(None) if self.explained.contains(&variant.id) => return Ok(()),
            Ok(None) if is_library(&recorded.folder) => return Ok(()),
            Ok(None) => {
                let shown = self.recordings.shown.display();
                let (code, id) = (Code::ProfileMissing, &variant.id);
                let message = format!("{shown} contains no profile of it: no {id}/{PROFILE_FILE}");
                let is_compiled = disk::is_file(recorded.folder.join(STATIC_PROFILE_FILE));
                let next = find_profile(&self.recordings.shown, &recorded.folder, id);
                let code_alone = "it has compiled code alone: that is judged by `check --static`, without `--from`; what a GPU measures is recorded by `profile --output DIR`";
                let next = next.or_else(|| is_compiled.then(|| code_alone.to_owned()));
                Finding::of(code, id, message).or_next(next)
            }
            Err(error @ (Error::Input { .. } | Error::Io { .. })) => {
                Finding::unreadable(&variant.id, &error.to_string())
            }
            Err(error) => return Err(error),
        };
        self.findings.push(finding);
        Ok(())
    }

    /// The profile of the base revision, where there is one.
    fn base(&mut self, variant: &Variant, recorded: Recorded) -> Result<(), Error> {
        match recorded.profile {
            Ok(None) => {}
            Ok(Some(profile)) if profile.variant == variant.id => {
                self.altered(variant, recorded.altered?, Finding::in_base);
                self.captures.bases.push(profile);
            }
            Ok(Some(profile)) => {
                let file = recorded.folder.join(PROFILE_FILE);
                self.findings.push(of_another(variant, &file, &profile));
            }
            Err(error) => self
                .findings
                .push(Finding::unreadable(&variant.id, &error.to_string())),
        }
        Ok(())
    }

    /// The static profiles of a variant and of its base, where there are any.
    fn compiled(&mut self, variant: &Variant, folder: &Path) {
        let found = Profile::recorded_static(folder, &variant.id);
        if let Some(profile) = self.static_profile(variant, found) {
            if !self.stale.contains(&variant.id) {
                self.findings.extend(stale(self.config, variant, &profile));
            }
            self.captures.compiled.push(profile);
        }
        let file = recorded_base_folder(folder, &variant.id).join(STATIC_PROFILE_FILE);
        let profile = self.static_profile(variant, Profile::at(&file));
        self.captures.compiled_bases.extend(profile);
    }

    fn static_profile(
        &mut self,
        variant: &Variant,
        found: Result<Option<Profile>, Error>,
    ) -> Option<Profile> {
        let why = match found {
            Ok(None) => return None,
            Ok(Some(profile))
                if profile.variant == variant.id && profile.identity.tier == Tier::Static =>
            {
                return Some(profile);
            }
            Ok(Some(profile)) => {
                let (id, tier) = (&profile.variant, profile.identity.tier);
                format!("it is a profile of {id}, by {tier}")
            }
            Err(error) => error.to_string(),
        };
        let message = format!("its static profile cannot be used: {why}");
        self.findings
            .push(Finding::unreadable(&variant.id, &message));
        None
    }

    /// What the captures beside a profile show against it.
    fn altered(&mut self, variant: &Variant, found: Vec<Finding>, side: fn(Finding) -> Finding) {
        let found = merged_if_all_missing(variant, found).into_iter();
        // Nobody can check its values otherwise, and its author vouches for them then.
        let reason = (!self.is_change()).then_some(WarnReason::NoReview);
        self.findings
            .extend(found.map(|finding| side(finding.warn_for(reason))));
    }

    /// An imported profile says little of its code: in a change it must not replace a measured one.
    fn imported(&self, variant: &Variant, profile: &Profile) -> Option<Finding> {
        let locked = self.judge.locked_origin(profile);
        let replaces_measured = self.is_change() && locked == Some(ProfileOrigin::Measured);
        let measure = (locked == Some(ProfileOrigin::Imported))
            .then(|| format!("measure it: `sparsek-gate profile {}`", variant.id));
        (profile.provenance.origin == ProfileOrigin::Imported).then(|| {
            let message =
                "the profile was imported: the requested launches and the measured code are unknown";
            Finding::of(Code::ProfileImported, &variant.id, message)
            .or_next(import_again(profile).or(measure))
            .warn_for((!replaces_measured).then_some(WarnReason::ImportAllowed))
        })
    }

    /// Profiles with overridden constants are not of the code under review.
    fn trials(&mut self) {
        let profiles = self.captures.profiles.iter();
        let mut trials: Vec<Finding> = profiles
            .chain(&self.captures.compiled)
            .filter_map(trial)
            .collect();
        trials.sort_by(|one, other| one.variant.cmp(&other.variant));
        trials.dedup();
        let reason = (!self.is_change()).then_some(WarnReason::NoReview);
        let trials = trials.into_iter();
        self.findings
            .extend(trials.map(|finding| finding.warn_for(reason)));
    }

    /// The author of both sides could choose what to be compared with: the base must be made
    /// from the sources of the base commit.
    fn other_bases(&mut self) -> Result<(), Error> {
        let bases = self.captures.bases.iter();
        for base in bases.chain(&self.captures.compiled_bases) {
            let sources = &base.provenance.sources;
            let unlike = match &self.recordings.packed_base {
                None => unlike_base(&self.config.root, self.authority, sources)?,
                Some(Some(packed)) => packed.unlike(sources),
                Some(None) => Vec::new(),
            };
            if !unlike.is_empty() {
                self.findings.push(of_other_base(base, &unlike));
            }
        }
        Ok(())
    }

    /// Where it is known which base is measured, each variant must have been measured beside it, unless a
    /// finding says why it was not.
    fn beside_base(&mut self, commit: &String) {
        let excused = |id: &VariantId| {
            let mut about = self.found.get(id).into_iter().flatten();
            about.any(|one| one.code == Code::BaseUnavailable || one.denies())
        };
        let bases = self.captures.bases.iter();
        let bases: BTreeMap<&VariantId, &Profile> =
            bases.map(|base| (&base.variant, base)).collect();
        for current in &self.captures.profiles {
            let base = bases.get(&current.variant);
            let why = match base {
                None if excused(&current.variant) => continue,
                None => "its slice measured no base beside it, and does not say why".to_owned(),
                Some(base) if base.provenance.git.as_ref() == Some(commit) => continue,
                Some(_) => format!("its base is not the commit {commit} that the slices name"),
            };
            let next = "run its slice again, and check all of them together";
            let finding = Finding::deny(Code::NotMeasured, &current.variant, why, next);
            self.findings.push(finding);
        }
    }
}

fn of_another(variant: &Variant, place: &Path, profile: &Profile) -> Finding {
    let (place, other) = (place.display(), &profile.variant);
    if *other == variant.id {
        let message = format!("{place} has its static profile in the place of the measured one");
        return Finding::unreadable(&variant.id, &message);
    }
    let message = format!("{place} contains a profile of {other}");
    let next = format!(
        "move it to the folder {other}, or record {} again",
        variant.id
    );
    Finding::deny(Code::CaptureUnreadable, &variant.id, message, next)
}

fn of_other_base(base: &Profile, unlike: &[&str]) -> Finding {
    let files = joined(unlike.iter().map(|path| format!("`{path}`")), ", ");
    let message =
        format!("the recorded base was built from different sources than the base commit: {files}");
    let next =
        "record both again beside that revision: sparsek-gate check --against REV --output FOLDER";
    Finding::deny(Code::ProfileStale, &base.variant, message, next)
}

fn trial(profile: &Profile) -> Option<Finding> {
    let overrides = &profile.provenance.overrides;
    (!overrides.is_empty()).then(|| {
        let message = format!(
            "it was measured with --define {}, which the configuration does not say: the verdict is on that code, not on this",
            overrides.join(" ")
        );
        Finding::of(Code::ProfileStale, &profile.variant, message)
    })
}

/// Recordings without any captures are common: one finding replaces those of each capture.
fn merged_if_all_missing(variant: &Variant, found: Vec<Finding>) -> Vec<Finding> {
    let missing = |finding: &Finding| finding.code == Code::CaptureMissing;
    if found.len() < 2 || !found.iter().all(missing) {
        return found;
    }
    let message = format!(
        "{} captures that the profile names are not there: its numbers were not derived again",
        found.len()
    );
    vec![Finding::of(Code::CaptureMissing, &variant.id, message)]
}

/// A stripped copy may be judged, and the report says so.
fn stripped(variant: &Variant, profile: &Profile) -> Option<Finding> {
    profile.provenance.stripped.then(|| {
        let message =
            "the profile is a stripped copy: its captures are not those that were measured";
        Finding::of(Code::ProfileStripped, &variant.id, message).warn_for(WarnReason::SamplesKept)
    })
}

/// The finding that a recorded profile is of other code than what is here.
fn stale(config: &Config, variant: &Variant, profile: &Profile) -> Option<Finding> {
    let sources = profile.provenance.sources.keys();
    let mut denied = sources.filter_map(|path| Error::if_denied(&config.root.join(path)).err());
    if let Some(error) = denied.next() {
        return Some(Finding::unreadable(&variant.id, &error.to_string()));
    }
    let code = changed_code(config, variant, profile);
    (!code.is_empty()).then(|| {
        let message = format!(
            "{} changed since the profile was recorded: the verdict is on that code, not on this",
            code.join(", ")
        );
        let is_gone = lacks_source(config, variant);
        let next = is_gone.then(|| "correct `source` or `inputs` of the variant, or move the configuration back: paths count from its folder".to_owned());
        Finding::of(Code::ProfileStale, &variant.id, message).or_next(next)
    })
}
