//! `sparsek-gate check`.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Plan, print};
use crate::baseline::{CaptureIndex, Store, changes_since, rederive, trust};
use crate::cli::CheckArgs;
use crate::config::{Config, Variant, VariantId};
use crate::device::Gpu;
use crate::error::Error;
use crate::files::{base_folder, variant_folder};
use crate::measure::{BaseProject, compile_against, measure, measure_against};
use crate::profile::{self, Profile, ProfileOrigin, Rung};
use crate::report::{self, Progress};
use crate::toolchain::unpinned;
use crate::verdict::{
    Code, Control, ExitCode, Finding, Mode, Origin, Outcome, Reference, Severity, VariantReport,
    Verdict, apply_waivers, below_counters, compare, compare_compiled, comparison_count, disturbed,
    incomplete, incomplete_compiled,
};

pub(super) fn run(config: &Path, arguments: &CheckArgs) -> Result<ExitCode, Error> {
    let plan = Plan::new(config, &arguments.selection, None)?;
    for path in &arguments.report {
        report::format_of(path)?;
        refuse_target(path, &plan, arguments.from.as_deref())?;
    }
    let store = Store::open(&plan.config.baselines)?;
    let mut outcome = match &arguments.from {
        None if arguments.r#static => compile_and_judge(&plan, &store, arguments)?,
        Some(folder) => {
            if !folder.is_dir() {
                return Err(Error::Usage(format!(
                    "`--from {}` is no folder",
                    folder.display()
                )));
            }
            let mut outcome = Outcome::new(Origin::Recorded(folder.display().to_string()));
            let recorded = read_recorded(folder, &plan, &mut outcome)?;
            let judge = Judge::new(&plan, &store, &mut outcome)?;
            judge.all(&recorded, &mut outcome);
            outcome
        }
        None => measure_and_judge(&plan, &store, arguments)?,
    };
    outcome
        .findings
        .extend(unchecked(&plan, &store, &arguments.selection.names)?);
    let judged = |variant: &VariantId, metric: &str| {
        let comparisons = outcome
            .variants
            .iter()
            .filter(|report| report.variant == *variant)
            .flat_map(|report| &report.comparisons);
        comparisons
            .filter(|comparison| comparison.metric == metric)
            .any(|comparison| !matches!(comparison.verdict, None | Some(Verdict::NotMeasured)))
    };
    let today = jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date();
    apply_waivers(&plan.config.waivers, today, &mut outcome.findings, judged);
    // The verdict first: a report that cannot be written must not take it along.
    print(&report::render(&outcome, arguments.format))?;
    for path in &arguments.report {
        report::write(&outcome, path)?;
    }
    Ok(outcome.exit_code())
}

/// Profiles to judge.
#[derive(Default)]
struct Profiles {
    heads: Vec<Profile>,
    /// Of the base revision, of the variants that were measured side by side.
    bases: Vec<Profile>,
    /// Of controls that were not themselves asked for.
    controls: Vec<Profile>,
    /// Of the static rung.
    compiled: Vec<Profile>,
    /// The same of the base revision.
    compiled_bases: Vec<Profile>,
}

/// What needs no GPU: builds the variants, and the base's where one is named, and judges the code.
fn compile_and_judge(plan: &Plan, store: &Store, arguments: &CheckArgs) -> Result<Outcome, Error> {
    let mut outcome = Outcome::new(Origin::Compiled);
    let base = arguments
        .against
        .as_deref()
        .map(|revision| BaseProject::check_out(&plan.config, revision))
        .transpose()?;
    let mut gated = Vec::new();
    for variant in plan.variants() {
        let Some(why) = variant.why_no_static_gate() else {
            gated.push(variant);
            continue;
        };
        let finding = Finding::deny(
            Code::NotMeasured,
            &variant.id,
            format!("the static gate says nothing of it: {why}"),
            format!("measure it: sparsek-gate check {}", variant.id),
        );
        outcome.findings.push(finding.warn());
    }
    let judge = Judge::new(plan, store, &mut outcome)?;
    let folder = plan.profiles(arguments.output.as_deref())?;
    let progress = Progress::new();
    let compiled = compile_against(&plan.config, base.as_ref(), &gated, &folder, &progress)?;
    drop(progress);
    outcome.findings.extend(compiled.findings);
    for variant in gated {
        judge.compiled(
            variant,
            &compiled.compiled,
            &compiled.compiled_bases,
            &mut outcome,
        );
    }
    Ok(outcome)
}

fn measure_and_judge(plan: &Plan, store: &Store, arguments: &CheckArgs) -> Result<Outcome, Error> {
    let mut outcome = Outcome::new(Origin::Measured);
    // A slip in the revision is told before anything is asked of the machine.
    let base = arguments
        .against
        .as_deref()
        .map(|revision| BaseProject::check_out(&plan.config, revision))
        .transpose()?;
    // Without a GPU nothing can be measured, and that comes before what is wrong with a lock.
    Gpu::query(plan.config.device)?;
    let judge = Judge::new(plan, store, &mut outcome)?;
    let folder = plan.profiles(arguments.output.as_deref())?;
    let progress = Progress::new();
    let mut seen: BTreeMap<VariantId, Profile> = BTreeMap::new();
    let mut open = |variant: &Variant, profile: &Profile| {
        if variant.immutable {
            seen.insert(variant.id.clone(), profile.clone());
        }
        let control = judge.control(variant, |id| seen.get(id));
        judge
            .stored(variant, profile, control.as_ref())
            .is_some_and(|(report, _)| report.open(|metric| judge.waived(variant, metric)))
    };
    let measured = match &base {
        Some(base) => {
            let mut pair_open = |variant: &Variant, base: &Profile, head: &Profile| {
                judge
                    .against(variant, base, head)
                    .0
                    .open(|metric| judge.waived(variant, metric))
            };
            let mut measured = measure_against(
                &plan.config,
                base,
                &plan.variants(),
                &folder,
                &progress,
                &mut open,
                &mut pair_open,
            )?;
            // What has no base is judged against its stored baseline, and that needs a control.
            let alone: Vec<&str> = measured
                .profiles
                .iter()
                .filter(|head| {
                    !measured
                        .bases
                        .iter()
                        .any(|base| base.variant == head.variant)
                })
                .map(|head| head.variant.suite.as_str())
                .collect();
            let mut controls = judge.controls_to_add();
            controls.retain(|control| alone.contains(&control.id.suite.as_str()));
            if !controls.is_empty() {
                let further = measure(
                    &plan.config,
                    &controls,
                    &folder,
                    &[],
                    &progress,
                    &mut |_, _| false,
                )?;
                measured.profiles.extend(further.profiles);
                measured.findings.extend(further.findings);
            }
            measured
        }
        None => {
            // The controls first: what they say bounds the others' bands.
            let mut variants = plan.variants();
            variants.extend(judge.controls_to_add());
            variants.sort_by_key(|variant| !variant.immutable);
            measure(&plan.config, &variants, &folder, &[], &progress, &mut open)?
        }
    };
    drop(progress);
    // What is incomplete is told again, and in more words, by the comparison.
    let judged = |finding: &&Finding| {
        !measured
            .profiles
            .iter()
            .any(|profile| profile.variant == finding.variant)
            || matches!(finding.code, Code::BaseUnavailable | Code::LaunchMismatch)
    };
    outcome
        .findings
        .extend(measured.findings.iter().filter(judged).cloned());
    let (heads, controls) = measured
        .profiles
        .into_iter()
        .partition(|profile| plan.variants.iter().any(|v| v.id == profile.variant));
    let profiles = Profiles {
        heads,
        bases: measured.bases,
        controls,
        compiled: measured.compiled,
        compiled_bases: measured.compiled_bases,
    };
    judge.all(&profiles, &mut outcome);
    Ok(outcome)
}

/// A report must have a folder to lie in, and must not replace what the check reads.
fn refuse_target(path: &Path, plan: &Plan, from: Option<&Path>) -> Result<(), Error> {
    let whole = std::path::absolute(path).map_err(Error::io("find", path))?;
    if !whole.parent().is_some_and(Path::is_dir) {
        return Err(Error::Usage(format!(
            "`--report {}`: there is no such folder",
            path.display()
        )));
    }
    // Links and `..` lead to what they lead to.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let target = if whole.exists() {
        real(&whole)
    } else {
        real(whole.parent().unwrap_or(&whole))
    };
    let output = plan.profiles(None)?;
    let kept = [Some(plan.config.baselines.as_path()), from, Some(&output)];
    if whole.exists()
        && kept
            .iter()
            .flatten()
            .any(|folder| target.starts_with(real(folder)))
    {
        return Err(Error::Usage(format!(
            "`--report {}` would replace a file that the check reads",
            path.display()
        )));
    }
    Ok(())
}

/// The recorded profiles of the selected variants. Their verdict comes from their samples; where
/// these are not those of the captures beside them, a warning says so.
fn read_recorded(folder: &Path, plan: &Plan, outcome: &mut Outcome) -> Result<Profiles, Error> {
    let mut profiles = Profiles::default();
    for variant in plan.variants() {
        match Profile::recorded(folder, &variant.id) {
            // Left alone it would be judged as nothing, and nothing fails no gate.
            Ok(Some(profile)) if profile.variant != variant.id => {
                outcome.findings.push(Finding::deny(
                    Code::ProfileUnreadable,
                    &variant.id,
                    format!(
                        "{} holds a profile of {}",
                        variant_folder(folder, &variant.id).display(),
                        profile.variant
                    ),
                    "record it again".to_owned(),
                ));
            }
            Ok(Some(profile)) => {
                let captures = CaptureIndex::of(&variant_folder(folder, &variant.id))?;
                outcome
                    .findings
                    .extend(told(variant, rederive(variant, &profile, &captures)?));
                outcome
                    .findings
                    .extend(stale(&plan.config, variant, &profile));
                if profile.provenance.origin == ProfileOrigin::Imported {
                    outcome.findings.push(
                        Finding::deny(
                            Code::ProfileImported,
                            &variant.id,
                            "the profile was imported: how many launches were asked for, and of which code, is not known".to_owned(),
                            format!("measure it: sparsek-gate profile {}", variant.id),
                        )
                        .warn(),
                    );
                }
                profiles.heads.push(profile);
            }
            Ok(None) => outcome.findings.push(Finding::deny(
                Code::ProfileMissing,
                &variant.id,
                format!("{} holds no profile of it", folder.display()),
                format!(
                    "record one: sparsek-gate profile --output {} {}",
                    folder.display(),
                    variant.id
                ),
            )),
            Err(error @ (Error::Input { .. } | Error::Io { .. })) => {
                outcome.findings.push(Finding::deny(
                    Code::ProfileUnreadable,
                    &variant.id,
                    error.to_string(),
                    "record it again".to_owned(),
                ))
            }
            Err(error) => return Err(error),
        }
        let base = base_folder(folder, &variant.id).join(profile::FILE_NAME);
        // A link that leads nowhere is a base that cannot be read, not the lack of one.
        if !base
            .symlink_metadata()
            .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
        {
            match Profile::read(&base) {
                Ok(profile) if profile.variant == variant.id => {
                    let captures = CaptureIndex::of(&base_folder(folder, &variant.id))?;
                    let altered = rederive(variant, &profile, &captures)?;
                    let altered = told(variant, altered).into_iter().map(|finding| Finding {
                        message: format!("in the base: {}", finding.message),
                        ..finding
                    });
                    outcome.findings.extend(altered);
                    profiles.bases.push(profile);
                }
                Ok(profile) => outcome.findings.push(Finding::deny(
                    Code::ProfileUnreadable,
                    &variant.id,
                    format!("{} holds a profile of {}", base.display(), profile.variant),
                    "record it again".to_owned(),
                )),
                Err(error) => outcome.findings.push(Finding::deny(
                    Code::ProfileUnreadable,
                    &variant.id,
                    error.to_string(),
                    "record it again".to_owned(),
                )),
            }
        }
    }
    for variant in plan.variants() {
        let of_base = base_folder(folder, &variant.id).join(profile::STATIC_FILE_NAME);
        let found = [
            (Profile::recorded_static(folder, &variant.id), false),
            (Profile::at(&of_base), true),
        ];
        for (found, is_base) in found {
            let unreadable = match found {
                Ok(None) => continue,
                Ok(Some(profile))
                    if profile.variant == variant.id && profile.identity.rung == Rung::Static =>
                {
                    let told = outcome.findings.iter().any(|finding| {
                        finding.variant == variant.id && finding.code == Code::ProfileStale
                    });
                    if !is_base && !told {
                        let of_other_code = stale(&plan.config, variant, &profile);
                        outcome.findings.extend(of_other_code);
                    }
                    let place = if is_base {
                        &mut profiles.compiled_bases
                    } else {
                        &mut profiles.compiled
                    };
                    place.push(profile);
                    continue;
                }
                Ok(Some(profile)) => format!("it is a profile of {}", profile.variant),
                Err(error) => error.to_string(),
            };
            outcome.findings.push(Finding::deny(
                Code::ProfileUnreadable,
                &variant.id,
                format!("its static profile cannot be used: {unreadable}"),
                format!("make it again: sparsek-gate build {}", variant.id),
            ));
        }
    }
    // A control that was not asked for bounds the machine's difference all the same.
    let suites: Vec<&str> = plan
        .variants()
        .iter()
        .map(|variant| variant.id.suite.as_str())
        .collect();
    for variant in plan.config.variants().filter(|variant| variant.immutable) {
        if plan.variants.iter().any(|other| other.id == variant.id)
            || !suites.contains(&variant.id.suite.as_str())
        {
            continue;
        }
        match Profile::recorded(folder, &variant.id) {
            Ok(Some(profile)) if profile.variant == variant.id => {
                let captures = CaptureIndex::of(&variant_folder(folder, &variant.id))?;
                let altered = rederive(variant, &profile, &captures)?;
                outcome.findings.extend(told(variant, altered));
                profiles.controls.push(profile);
            }
            Ok(None) => {}
            unreadable => {
                let why = match unreadable {
                    Err(error) => error.to_string(),
                    Ok(_) => "it is the profile of another variant".to_owned(),
                };
                outcome.findings.push(Finding::deny(
                    Code::ProfileUnreadable,
                    &variant.id,
                    format!("the control cannot be read: {why}"),
                    "record it again, or take it out of the folder".to_owned(),
                ));
            }
        }
    }
    Ok(profiles)
}

/// What the captures of a recorded profile say against it, as warnings. Recordings without any
/// captures are common, and one line tells it.
fn told(variant: &Variant, findings: Vec<Finding>) -> Vec<Finding> {
    let missing = |finding: &Finding| finding.code == Code::CaptureMissing;
    if findings.len() > 1 && findings.iter().all(missing) {
        let one = Finding::deny(
            Code::CaptureMissing,
            &variant.id,
            format!(
                "{} captures that the profile names are not there: its numbers were not derived again",
                findings.len()
            ),
            "keep the captures beside the profile where its numbers must be proved".to_owned(),
        );
        return vec![one.warn()];
    }
    findings.into_iter().map(Finding::warn).collect()
}

/// A recorded profile of other code than what is here may be judged, and the report says so.
fn stale(config: &Config, variant: &Variant, profile: &Profile) -> Option<Finding> {
    let code = changes_since(config, variant, profile).code;
    let finding = Finding::deny(
        Code::ProfileStale,
        &variant.id,
        format!(
            "{} changed since the profile was recorded: the verdict is on that code, not on this",
            code.join(", ")
        ),
        format!("record it again: sparsek-gate profile {}", variant.id),
    );
    (!code.is_empty()).then(|| finding.warn())
}

/// Locked variants that a check of everything, or of their suite, left out: taking a variant out
/// of the configuration must not take it out of the gate unseen. Nor must one whose code is no
/// longer gated.
fn unchecked(plan: &Plan, store: &Store, names: &[String]) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    for id in store.variants()? {
        let meant = names.is_empty() || names.contains(&id.suite);
        if !meant || plan.variants.iter().any(|variant| variant.id == id) {
            continue;
        }
        let why = match plan.config.variant(&id) {
            None => "the configuration does not hold it",
            Some(_) => "it is experimental, and was not asked for (--experimental)",
        };
        findings.push(Finding::deny(
            Code::VariantGone,
            &id,
            format!("it is locked and was not checked: {why}"),
            format!(
                "put it back, or remove its baseline from {}",
                plan.config.baselines.display()
            ),
        ));
    }
    for variant in &plan.variants {
        let folders = store.gpus_of(&variant.id)?;
        let mut compiled = folders
            .iter()
            .filter(|folder| Rung::of_folder(folder) == Rung::Static);
        let (Some(why), Some(folder)) = (variant.why_no_static_gate(), compiled.next()) else {
            continue;
        };
        findings.push(Finding::deny(
            Code::VariantGone,
            &variant.id,
            format!("what the compiler makes of it is locked and was not checked: {why}"),
            format!(
                "put it back, or remove its baseline from {}",
                plan.config.baselines.join(folder).display()
            ),
        ));
    }
    Ok(findings)
}

/// The selected variants with what is locked of them.
struct Judge<'a> {
    plan: &'a Plan,
    /// By GPU model, of all variants of the suites that are judged.
    locked: BTreeMap<(String, VariantId), Profile>,
    /// The GPU models that a variant has a lock for.
    gpus: BTreeMap<VariantId, Vec<String>>,
}

impl<'a> Judge<'a> {
    /// Verifies every lock of the selected variants; what is wrong with one is a finding.
    fn new(plan: &'a Plan, store: &Store, outcome: &mut Outcome) -> Result<Judge<'a>, Error> {
        let mut judge = Judge {
            plan,
            locked: BTreeMap::new(),
            gpus: BTreeMap::new(),
        };
        let selected = plan.variants();
        let controls = plan.config.variants().filter(|variant| {
            variant.immutable
                && !selected.iter().any(|other| other.id == variant.id)
                && selected
                    .iter()
                    .any(|other| other.id.suite == variant.id.suite)
        });
        for variant in selected.iter().copied().chain(controls) {
            let gpus = store.gpus_of(&variant.id)?;
            for gpu in &gpus {
                let Some(stored) = store.load(gpu, &variant.id)? else {
                    continue;
                };
                let (trusted, findings) = trust(&plan.config, variant, &stored);
                outcome.findings.extend(findings);
                if let Some(trusted) = trusted {
                    let key = (gpu.clone(), variant.id.clone());
                    judge.locked.insert(key, trusted.profile);
                }
            }
            judge.gpus.insert(variant.id.clone(), gpus);
        }
        Ok(judge)
    }

    /// How many comparisons the check judges, where all profiles are of the rung and the GPU model
    /// of this one.
    fn comparisons(&self, profile: &Profile) -> usize {
        let (folder, rung) = (profile.identity.folder(), profile.identity.rung);
        let counted = self.plan.variants().into_iter().map(|variant| {
            let key = (folder.clone(), variant.id.clone());
            (variant, self.locked.get(&key))
        });
        comparison_count(rung, counted).max(1)
    }

    /// Whether a waiver names the metric, so that its regression does not decide.
    fn waived(&self, variant: &Variant, metric: &str) -> bool {
        let mut waivers = self.plan.config.waivers.iter();
        waivers.any(|waiver| waiver.variant == variant.id && waiver.metric == metric)
    }

    /// What is locked of a variant on the GPU model of a profile.
    fn locked(&self, id: &VariantId, profile: &Profile) -> Option<&Profile> {
        self.locked.get(&(profile.identity.folder(), id.clone()))
    }

    /// Unchanged variants that must be measured beside those that were asked for.
    fn controls_to_add(&self) -> Vec<&'a Variant> {
        let plan = self.plan;
        plan.config
            .variants()
            .filter(|variant| {
                let mut locked = self.locked.keys();
                variant.immutable
                    && locked.any(|(folder, id)| {
                        *id == variant.id && Rung::of_folder(folder) != Rung::Static
                    })
            })
            .filter(|variant| !plan.variants.iter().any(|other| other.id == variant.id))
            .collect()
    }

    /// What the immutable variant of the suite says of this machine.
    fn control<'p>(
        &self,
        variant: &Variant,
        profile: impl Fn(&VariantId) -> Option<&'p Profile>,
    ) -> Option<Control> {
        let candidates = self.plan.config.variants().filter(|other| {
            other.immutable && other.id.suite == variant.id.suite && other.id != variant.id
        });
        candidates
            .filter_map(|other| {
                let now = profile(&other.id)?;
                // One that is not a whole and undisturbed measurement bounds nothing.
                let sound = incomplete(other, now).is_empty()
                    && disturbed(other, now)
                        .iter()
                        .all(|finding| finding.severity == Severity::Warn);
                let control = Control::new(other, self.locked(&other.id, now)?, now);
                (sound && !control.displacements.is_empty()).then_some(control)
            })
            .next()
    }

    fn stored(
        &self,
        variant: &Variant,
        profile: &Profile,
        control: Option<&Control>,
    ) -> Option<(VariantReport, Vec<Finding>)> {
        let locked = self.locked(&variant.id, profile)?;
        let reference = Reference::Stored { locked, control };
        Some(compare(
            variant,
            &reference,
            profile,
            self.comparisons(profile),
        ))
    }

    fn against(
        &self,
        variant: &Variant,
        base: &Profile,
        head: &Profile,
    ) -> (VariantReport, Vec<Finding>) {
        let learned = self.locked(&variant.id, head);
        let reference = Reference::Base { base, learned };
        compare(variant, &reference, head, self.comparisons(head))
    }

    fn all(&self, profiles: &Profiles, outcome: &mut Outcome) {
        // A control that was measured along is itself not judged, but it must be sound.
        let stored = profiles.heads.iter().any(|head| {
            !profiles
                .bases
                .iter()
                .any(|base| base.variant == head.variant)
        });
        for control in profiles.controls.iter().filter(|_| stored) {
            if let Some(variant) = self.plan.config.variant(&control.variant) {
                outcome.findings.extend(incomplete(variant, control));
                outcome.findings.extend(disturbed(variant, control));
            }
        }
        for variant in self.plan.variants() {
            let of = |profiles: &'_ [Profile]| {
                profiles
                    .iter()
                    .find(|profile| profile.variant == variant.id)
                    .cloned()
            };
            if let Some(profile) = of(&profiles.heads) {
                self.one(variant, &profile, of(&profiles.bases), profiles, outcome);
            }
            if variant.has_static_gate() {
                let (heads, bases) = (&profiles.compiled, &profiles.compiled_bases);
                self.compiled(variant, heads, bases, outcome);
            }
        }
    }

    /// Judges what the compiler made of a variant.
    fn compiled(
        &self,
        variant: &Variant,
        heads: &[Profile],
        bases: &[Profile],
        outcome: &mut Outcome,
    ) {
        fn of<'p>(variant: &Variant, profiles: &'p [Profile]) -> Option<&'p Profile> {
            let mut profiles = profiles.iter();
            profiles.find(|profile| profile.variant == variant.id)
        }
        let Some(head) = of(variant, heads) else {
            // Why it could not be built, or read, is told already.
            let told = outcome
                .findings
                .iter()
                .any(|finding| finding.variant == variant.id && finding.severity == Severity::Deny);
            if !told {
                outcome.findings.push(Finding::deny(
                    Code::ProfileMissing,
                    &variant.id,
                    "there is no static profile of it: what the compiler made is not known"
                        .to_owned(),
                    format!("build it: sparsek-gate check --static {}", variant.id),
                ));
            }
            return;
        };
        let locked = self.locked(&variant.id, head);
        // Of what was measured too it is told already.
        let told = outcome.findings.iter().any(|finding| {
            finding.variant == variant.id && finding.code == Code::ToolchainMismatch
        });
        if !told {
            for (what, profile) in [
                ("compiled", Some(head)),
                ("its base was compiled", of(variant, bases)),
                ("its static baseline was compiled", locked),
            ] {
                let pins = profile.map_or(&[][..], |profile| &profile.provenance.pins);
                outcome.findings.extend(unpinned(&variant.id, what, pins));
            }
        }
        let (report, findings) = match (of(variant, bases), locked) {
            (Some(base), _) => compare_compiled(variant, base, Mode::Against, head),
            (None, Some(locked)) => compare_compiled(variant, locked, Mode::Stored, head),
            (None, None) => {
                outcome.findings.extend(incomplete_compiled(variant, head));
                outcome
                    .findings
                    .extend(self.without_lock(variant, head, false));
                return;
            }
        };
        outcome.variants.push(report);
        outcome.findings.extend(findings);
        outcome
            .findings
            .extend(self.without_lock(variant, head, true));
    }

    fn one(
        &self,
        variant: &Variant,
        profile: &Profile,
        base: Option<Profile>,
        profiles: &Profiles,
        outcome: &mut Outcome,
    ) {
        // A control of another GPU says nothing of this one.
        let control = self.control(variant, |id| {
            let mut all = profiles.heads.iter().chain(&profiles.controls);
            all.find(|other| other.variant == *id && other.gpu_uuids() == profile.gpu_uuids())
        });
        let answer = match &base {
            Some(base) => {
                let (mut report, mut findings) = self.against(variant, base, profile);
                if let Some((drift, _)) = self.stored(variant, base, None) {
                    let locked = self.locked(&variant.id, base);
                    let same_code = locked
                        .is_some_and(|locked| locked.provenance.sources == base.provenance.sources);
                    findings.extend(drifted(variant, &drift, same_code));
                    report.drift = drift.comparisons;
                }
                Some((report, findings))
            }
            None => self.stored(variant, profile, control.as_ref()),
        };
        let judged = answer.is_some();
        let locked = self.locked(&variant.id, profile);
        for (what, profile) in [
            ("measured", Some(profile)),
            ("its base was measured", base.as_ref()),
            ("its baseline was measured", locked),
        ] {
            let pins = profile.map_or(&[][..], |profile| &profile.provenance.pins);
            outcome.findings.extend(unpinned(&variant.id, what, pins));
        }
        if let Some((report, findings)) = answer {
            let comparable = findings
                .iter()
                .all(|finding| finding.code != Code::NotComparable);
            outcome.variants.push(report);
            outcome.findings.extend(findings);
            let conditions = changes_since(&self.plan.config, variant, profile).conditions;
            if comparable && !conditions.is_empty() {
                outcome.findings.push(Finding::deny(
                    Code::NotComparable,
                    &variant.id,
                    format!(
                        "{} changed since baseline and profile were measured",
                        conditions.join(", ")
                    ),
                    format!("measure both again: sparsek-gate profile {}", variant.id),
                ));
            }
        } else {
            let rung = below_counters(variant, profile);
            let gaps = incomplete(variant, profile);
            outcome.findings.extend(gaps.into_iter().chain(rung));
        }
        outcome
            .findings
            .extend(self.without_lock(variant, profile, judged));
    }

    /// What the lock of a variant lacks for it to be judged.
    fn without_lock(&self, variant: &Variant, profile: &Profile, judged: bool) -> Option<Finding> {
        let rung = profile.identity.rung;
        let folders = self.gpus.get(&variant.id).map_or(&[][..], Vec::as_slice);
        // What the compiler made has locks of its own.
        let gpus: Vec<&str> = folders
            .iter()
            .map(String::as_str)
            .filter(|folder| (Rung::of_folder(folder) == Rung::Static) == (rung == Rung::Static))
            .collect();
        let (what, only) = match rung {
            Rung::Static => ("static baseline", " --static"),
            _ => ("baseline", ""),
        };
        let lock = format!(
            "sparsek-gate baseline --lock{only} --reason '...' {}",
            variant.id
        );
        if gpus.is_empty() {
            Some(Finding::deny(
                Code::NewBaseline,
                &variant.id,
                format!("it has no {what} yet"),
                format!("review its profile and lock it: {lock}"),
            ))
        } else if !judged && !gpus.contains(&profile.identity.folder().as_str()) {
            Some(Finding::deny(
                Code::NotComparable,
                &variant.id,
                format!(
                    "it was measured on {} by {}, and has a baseline only for {}",
                    profile.identity.gpu,
                    profile.identity.rung,
                    gpus.join(", ")
                ),
                format!("measure on such a GPU, or lock a baseline for this one: {lock}"),
            ))
        } else {
            None
        }
    }
}

/// Where the base itself is not where it was locked.
fn drifted(variant: &Variant, drift: &VariantReport, same_code: bool) -> Vec<Finding> {
    let why = if same_code {
        "machine, driver or toolchain moved"
    } else {
        "its code is not the code that was locked"
    };
    let moved = drift.comparisons.iter().filter(|comparison| {
        matches!(
            comparison.verdict,
            Some(Verdict::Regressed | Verdict::Improved)
        )
    });
    moved
        .map(|comparison| {
            let unit = comparison.unit.as_deref();
            let change = comparison
                .change
                .map(|change| change.display(unit))
                .unwrap_or_default();
            Finding::deny(
                Code::Drift,
                &variant.id,
                format!(
                    "the base reads {change} in `{}` of {} against its locked baseline: {why}, not this change",
                    comparison.metric, comparison.kernel
                ),
                "look at the driver, the clocks and the compiler; lock the base anew where that is how it is now".to_owned(),
            )
            .kernel(&comparison.kernel)
            .metric(&comparison.metric)
            .warn()
        })
        .collect()
}
