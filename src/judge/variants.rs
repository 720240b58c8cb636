//! The selected variants against what is locked of them.

use crate::evidence::{
    below_counters, disturbed, incomplete, incomplete_compiled, recorded_unpinned, unpinned,
};
use std::collections::BTreeMap;

use crate::baseline::{Store, changes_since, immutable_additions, verify_stored};
use crate::config::{Selected, Variant};
use crate::finding::{Code, Error, Finding, Severity};
use crate::judge::{
    Control, Mode, Origin, Outcome, Reference, VariantReport, compare, compare_compiled,
    comparison_count, explain_by_code,
};
use crate::profile::{Profile, ProfileOrigin};
use crate::terms::{Tier, VariantId};
use crate::trust::Authority;
use crate::verdict::Verdict;

/// Profiles to judge.
#[derive(Default)]
pub struct Profiles {
    pub heads: Vec<Profile>,
    /// Of the base revision, of the variants that were measured side by side.
    pub bases: Vec<Profile>,
    /// Of controls that were not themselves asked for.
    pub controls: Vec<Profile>,
    /// Of the static tier.
    pub compiled: Vec<Profile>,
    /// The same of the base revision.
    pub compiled_bases: Vec<Profile>,
}

/// The selected variants with what is locked of them.
pub struct Judge<'a> {
    plan: &'a Selected,
    /// By GPU model, of all variants of the suites that are judged.
    locked: BTreeMap<(String, VariantId), Profile>,
    /// The GPU models that a variant has a lock for.
    gpus: BTreeMap<VariantId, Vec<String>>,
}

impl<'a> Judge<'a> {
    /// Verifies every lock of the selected variants; what is wrong with one is a finding.
    pub fn new(plan: &'a Selected, store: &Store) -> Result<(Judge<'a>, Vec<Finding>), Error> {
        let mut found = Vec::new();
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
            let mut gpus = Vec::new();
            for stored in store.all_of(&variant.id)? {
                let (trusted, findings) = verify_stored(&plan.config, variant, &stored);
                found.extend(findings);
                gpus.push(stored.gpu.clone());
                if let Some(trusted) = trusted {
                    let key = (stored.gpu, variant.id.clone());
                    judge.locked.insert(key, trusted.profile);
                }
            }
            judge.gpus.insert(variant.id.clone(), gpus);
        }
        Ok((judge, found))
    }

    /// How many comparisons the check judges, where all profiles are of the tier and the GPU model
    /// of this one.
    fn comparisons(&self, profile: &Profile) -> usize {
        let (folder, tier) = (profile.identity.folder(), profile.identity.tier);
        let counted = self.plan.variants().into_iter().map(|variant| {
            let key = (folder.clone(), variant.id.clone());
            (variant, self.locked.get(&key))
        });
        comparison_count(tier, counted).max(1)
    }

    /// Whether a waiver names the metric, so that its regression does not decide.
    pub fn waived(&self, variant: &Variant, metric: &str) -> bool {
        let mut waivers = self.plan.config.waivers.iter();
        waivers.any(|waiver| waiver.variant == variant.id && waiver.metric == metric)
    }

    /// What is locked of a variant on the GPU model of a profile.
    fn locked(&self, id: &VariantId, profile: &Profile) -> Option<&Profile> {
        self.locked.get(&(profile.identity.folder(), id.clone()))
    }

    /// Unchanged variants that must be measured beside those that were asked for.
    pub fn controls_to_add(&self) -> Vec<&'a Variant> {
        let plan = self.plan;
        plan.config
            .variants()
            .filter(|variant| {
                let mut locked = self.locked.keys();
                variant.immutable
                    && locked.any(|(folder, id)| {
                        *id == variant.id && Tier::of_folder(folder) != Tier::Static
                    })
            })
            .filter(|variant| !plan.variants.iter().any(|other| other.id == variant.id))
            .collect()
    }

    /// What the immutable variant of the suite says of this machine.
    pub fn control<'p>(
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
                let control = Control::new(other, variant, self.locked(&other.id, now)?, now);
                (sound && !control.displacements.is_empty()).then_some(control)
            })
            .next()
    }

    pub fn stored(
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

    pub fn against(
        &self,
        variant: &Variant,
        base: &Profile,
        head: &Profile,
    ) -> (VariantReport, Vec<Finding>) {
        let learned = self.locked(&variant.id, head);
        let reference = Reference::Base { base, learned };
        compare(variant, &reference, head, self.comparisons(head))
    }

    pub fn all(&self, profiles: &Profiles, outcome: &mut Outcome) {
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
            let told = outcome.findings.len();
            let judged = outcome.variants.len();
            if let Some(profile) = of(&profiles.heads) {
                self.one(variant, &profile, of(&profiles.bases), profiles, outcome);
                self.by_code(variant, profiles, told, judged, outcome);
            }
            if variant.has_static_gate() {
                let (heads, bases) = (&profiles.compiled, &profiles.compiled_bases);
                self.compiled(variant, heads, bases, outcome);
            }
        }
    }

    /// Explains what got worse when it ran by what the compiler made otherwise, in the findings and
    /// the report from these places on.
    fn by_code(
        &self,
        variant: &Variant,
        profiles: &Profiles,
        findings_from: usize,
        reports_from: usize,
        outcome: &mut Outcome,
    ) {
        let of = |profiles: &'_ [Profile]| -> Option<Profile> {
            let mut profiles = profiles.iter();
            profiles
                .find(|profile| profile.variant == variant.id)
                .cloned()
        };
        let Some(current) = of(&profiles.compiled) else {
            return;
        };
        let against = outcome
            .variants
            .get(reports_from)
            .is_some_and(|report| report.mode == Mode::Against);
        let reference = match against {
            true => of(&profiles.compiled_bases),
            false => self.locked(&variant.id, &current).cloned(),
        };
        if let (Some(reference), Some(report)) = (reference, outcome.variants.get_mut(reports_from))
        {
            let findings = &mut outcome.findings[findings_from..];
            explain_by_code(variant, &reference, &current, report, findings);
        }
    }

    /// Whether the baseline that a profile is judged by was measured. Then so must be the profile:
    /// an imported one says little of its code.
    pub(crate) fn is_locked_measured(&self, profile: &Profile) -> bool {
        self.locked(&profile.variant, profile)
            .is_some_and(|locked| locked.provenance.origin == ProfileOrigin::Measured)
    }

    /// Judges what the compiler made of a variant.
    pub fn compiled(
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
                .any(|finding| finding.concerns(&variant.id) && finding.severity == Severity::Deny);
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
        let told_already = outcome
            .findings
            .iter()
            .any(|finding| finding.concerns(&variant.id) && finding.code == Code::ImmutableChanged);
        if !told_already {
            let additions = locked.and_then(|locked| immutable_additions(variant, locked, head));
            outcome.findings.extend(additions);
        }
        // Of what was measured too it is told already.
        let told = outcome.findings.iter().any(|finding| {
            finding.concerns(&variant.id) && finding.code == Code::ToolchainMismatch
        });
        if !told {
            let is_recorded = matches!(outcome.origin, Origin::Recorded(_));
            let toolchain = &self.plan.config.toolchain;
            if is_recorded {
                outcome.findings.extend(recorded_unpinned(toolchain, head));
            }
            for (what, profile) in [
                ("compiled", Some(head).filter(|_| !is_recorded)),
                ("its base was compiled", of(variant, bases)),
                ("its static baseline was compiled", locked),
            ] {
                let pins = profile.map_or(&[][..], |profile| &profile.provenance.pins);
                outcome.findings.extend(unpinned(&variant.id, what, pins));
            }
        }
        let (report, findings) = match (of(variant, bases), locked) {
            (Some(base), locked) => {
                let (mut report, mut findings) =
                    compare_compiled(variant, base, Mode::Against, head);
                match locked {
                    Some(locked) if is_brought(outcome) => {
                        let (drift, _) = compare_compiled(variant, locked, Mode::Stored, base);
                        let same_code = locked.provenance.sources == base.provenance.sources;
                        findings.extend(drifted(variant, &drift, same_code));
                        report.drift = drift.comparisons;
                    }
                    None if is_brought(outcome) => findings.push(unvouched(variant, base)),
                    _ => {}
                }
                (report, findings)
            }
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
                let drift = self.stored(variant, base, None);
                if drift.is_none() && is_brought(outcome) {
                    findings.push(unvouched(variant, base));
                }
                if let Some((drift, _)) = drift {
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
        let additions = locked.and_then(|locked| immutable_additions(variant, locked, profile));
        outcome.findings.extend(additions);
        // A recording is held to what is pinned now, not to what was when it was made.
        let is_recorded = matches!(outcome.origin, Origin::Recorded(_));
        let toolchain = &self.plan.config.toolchain;
        if is_recorded {
            outcome
                .findings
                .extend(recorded_unpinned(toolchain, profile));
        }
        for (what, profile) in [
            ("measured", Some(profile).filter(|_| !is_recorded)),
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
            let tier = below_counters(variant, profile);
            let gaps = incomplete(variant, profile);
            outcome.findings.extend(gaps.into_iter().chain(tier));
        }
        outcome
            .findings
            .extend(self.without_lock(variant, profile, judged));
    }

    /// What the lock of a variant lacks for it to be judged.
    fn without_lock(&self, variant: &Variant, profile: &Profile, judged: bool) -> Option<Finding> {
        let tier = profile.identity.tier;
        let folders = self.gpus.get(&variant.id).map_or(&[][..], Vec::as_slice);
        // What the compiler made has locks of its own.
        let gpus: Vec<&str> = folders
            .iter()
            .map(String::as_str)
            .filter(|folder| (Tier::of_folder(folder) == Tier::Static) == (tier == Tier::Static))
            .collect();
        let (what, only) = match tier {
            Tier::Static => ("static baseline", " --static"),
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
                    profile.identity.tier,
                    gpus.join(", ")
                ),
                format!("measure on such a GPU, or lock a baseline for this one: {lock}"),
            ))
        } else {
            None
        }
    }
}

/// Whether both sides of a comparison were brought by whoever proposes the change.
fn is_brought(outcome: &Outcome) -> bool {
    outcome.authority != Authority::WorkingTree && matches!(outcome.origin, Origin::Recorded(_))
}

/// A base that nothing locked says anything of.
fn unvouched(variant: &Variant, base: &Profile) -> Finding {
    Finding::deny(
        Code::Drift,
        &variant.id,
        format!(
            "it is compared with the base in the recording alone, whose numbers no baseline on {} bears out",
            base.identity.gpu
        ),
        "lock a baseline on that GPU, or measure side by side where the change cannot write",
    )
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
        })
        .collect()
}

/// Locked variants that a check of everything, or of their suite, left out: taking a variant out
/// of the configuration must not take it out of the gate unseen. Nor must one whose code is no
/// longer gated.
pub fn unchecked(plan: &Selected, store: &Store, names: &[String]) -> Result<Vec<Finding>, Error> {
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
            .filter(|folder| Tier::of_folder(folder) == Tier::Static);
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
