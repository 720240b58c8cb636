//! The selected variants against what is locked of them.

use std::collections::{BTreeMap, BTreeSet};

use super::variant_report::VariantReport;
use super::whole::{Origin, Outcome};
use crate::baseline::{Store, immutable_additions, lock_elsewhere, lock_in_git, verify_stored};
use crate::comparable::changed_conditions;
use crate::config::{Config, Selected, Variant};
use crate::evidence::{
    Examined, Purpose, SameClock, When, disturbed, incomplete, recorded_unpinned, stated_otherwise,
    unpinned,
};
use crate::finding::{Code, Error, Finding, Note, WarnReason, by_variant};
use crate::judge::compare::as_fast::shown_as_fast;
use crate::judge::compare::compiled::compare_compiled;
use crate::judge::compare::drift::{drifted, unvouched};
use crate::judge::compare::metric::{Case, Comparison};
use crate::judge::compare::mode::Mode;
use crate::judge::compare::profiles::{compare, compare_with_code, metrics_gone};
use crate::judge::explain::code::code_changes;
use crate::judge::explain::explanation::CodeChanges;
use crate::judge::explain::tuning::{tuning_changes, tuning_findings, unexplained_code};
use crate::judge::pair::share::KernelShare;
use crate::measure::{Captures, Locks, Source};
use crate::parallel;
use crate::profile::{Conditions, Profile, ProfileOrigin, TOTAL, Taken};
use crate::terms::{Tier, VariantId};
use crate::trust::Authority;
use crate::verdict::{Look, Stopping, Verdict};

/// The selected variants with what is locked of them.
pub struct Judge<'a> {
    /// The variants.
    pub(in crate::judge) plan: &'a Selected,
    /// By GPU model, of all variants of the suites that are judged.
    locked: BTreeMap<(String, VariantId), Profile>,
    /// The GPU models that a variant has a lock for.
    gpus: BTreeMap<VariantId, Vec<String>>,
    /// Immutable variants whose files differ from their lock.
    pub(in crate::judge) changed: BTreeSet<VariantId>,
    /// Locks that the change under review brings and that were accepted: GPU folder and variant.
    pub accepted: BTreeSet<(String, VariantId)>,
    /// Whether a variant must have a baseline. Without, two programs are compared with each other.
    needs_locks: bool,
    /// Whether counters are read whatever the times say.
    counts_always: bool,
}

/// What was compared of a variant, and what was found.
type Judgement = (VariantReport, Vec<Finding>);

/// The profiles of a variant that are judged together.
#[derive(Clone, Copy)]
struct Sides<'p> {
    variant: &'p Variant,
    current: &'p Profile,
    base: Option<&'p Profile>,
    locked: Option<&'p Profile>,
}

impl<'p> Sides<'p> {
    fn examined(self) -> Examined<'p> {
        let references = self.base.into_iter().chain(self.locked);
        Examined {
            variant: self.variant,
            current: self.current,
            references: references.collect(),
        }
    }
}

/// What the measured profile of a variant already led to a finding about: the same of its code is
/// not reported twice.
#[derive(Clone, Copy, Default)]
struct Reported {
    added_sources: bool,
    toolchain: bool,
    /// Its launches show their shared memory, and were compared with what the configuration states.
    launches: bool,
}

impl<'a> Judge<'a> {
    /// Verifies every lock of the selected variants; what is wrong with one is a finding.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn new(plan: &'a Selected, store: &Store) -> Result<(Judge<'a>, Vec<Finding>), Error> {
        let mut findings = Vec::new();
        let mut judge = Judge {
            needs_locks: true,
            ..Judge::of_programs(plan, true)
        };
        let variants = plan.variants();
        let verified = parallel::map(&variants, |variant| -> Result<Vec<_>, Error> {
            let stored = store.all_of(&variant.id)?.into_iter();
            let verified = stored.map(|stored| {
                let (trusted, found) = verify_stored(&plan.config, variant, &stored);
                (stored.gpu, trusted, found)
            });
            Ok(verified.collect())
        });
        for (variant, verified) in variants.into_iter().zip(verified) {
            let mut gpus = Vec::new();
            for (gpu, trusted, found) in verified? {
                if found.iter().any(|one| one.code == Code::ImmutableChanged) {
                    judge.changed.insert(variant.id.clone());
                }
                findings.extend(found);
                gpus.push(gpu.clone());
                if let Some(trusted) = trusted {
                    let key = (gpu, variant.id.clone());
                    judge.locked.insert(key, trusted.profile);
                }
            }
            judge.gpus.insert(variant.id.clone(), gpus);
        }
        Ok((judge, findings))
    }

    /// Of programs that are compared with each other: nothing is locked of them. `counts_always` is whether
    /// counters are read whatever their times say.
    pub fn of_programs(plan: &'a Selected, counts_always: bool) -> Judge<'a> {
        Judge {
            plan,
            locked: BTreeMap::new(),
            gpus: BTreeMap::new(),
            changed: BTreeSet::new(),
            accepted: BTreeSet::new(),
            needs_locks: false,
            counts_always,
        }
    }

    /// Whether the author of the change under review supplied both sides of a comparison.
    fn is_brought(&self, captures: &Captures, outcome: &Outcome) -> bool {
        let recorded = matches!(captures.source, Source::Slices | Source::Recording(_));
        outcome.authority != Authority::WorkingTree && recorded
    }

    /// Whether a waiver names the metric, so that its regression does not decide.
    pub(in crate::judge) fn waived(&self, variant: &Variant, metric: &str) -> bool {
        let mut waivers = self.plan.config.waivers.iter();
        waivers.any(|waiver| waiver.variant == variant.id && waiver.metric == metric)
    }

    /// What is locked of them.
    pub fn locks(&self) -> Locks<'_> {
        let mut locks = Locks::new();
        for ((_, id), profile) in &self.locked {
            locks.entry(id.clone()).or_default().push(profile);
        }
        locks
    }

    /// The configuration.
    pub(in crate::judge) fn config(&self) -> &'a Config {
        &self.plan.config
    }

    /// What is locked of the variant of a profile, on its GPU model and tier.
    pub(in crate::judge) fn locked(&self, profile: &Profile) -> Option<&Profile> {
        let key = (profile.identity.folder(), profile.variant.clone());
        self.locked.get(&key)
    }

    /// The profiles of a variant among these, where it has a current one.
    fn sides<'p>(
        &'p self,
        variant: &'p Variant,
        [current, bases]: [&'p [Profile]; 2],
    ) -> Option<Sides<'p>> {
        let current = of(&variant.id, current)?;
        Some(Sides {
            variant,
            current,
            base: of(&variant.id, bases),
            locked: self.locked(current),
        })
    }

    /// Where the locked baseline of a profile comes from, where it has one.
    pub(crate) fn locked_origin(&self, profile: &Profile) -> Option<ProfileOrigin> {
        self.locked(profile).map(|locked| locked.provenance.origin)
    }

    /// Whether a profile is a complete and undisturbed measurement.
    pub(in crate::judge) fn is_sound(&self, variant: &Variant, profile: &Profile) -> bool {
        let disturbed = self.disturbed(variant, profile);
        incomplete(variant, profile).is_empty() && !disturbed.iter().any(Finding::denies)
    }

    /// What disturbed a profile that is compared with its baseline.
    fn disturbed(&self, variant: &Variant, profile: &Profile) -> Vec<Finding> {
        let clock = self.locked(profile).and_then(|locked| {
            SameClock::of(variant, locked, profile, |metric| metric.tolerance.stored)
        });
        disturbed(variant, profile, Purpose::Verdict(clock))
    }

    /// A profile against its baseline; `None` where nothing is locked for its GPU.
    pub(super) fn stored(&self, variant: &Variant, profile: &Profile) -> Option<Judgement> {
        let locked = self.locked(profile)?;
        let case = Case::new(variant, Mode::Stored, locked, profile);
        Some(compare(&case))
    }

    /// A profile against its base.
    fn against(&self, variant: &Variant, base: &Profile, current: &Profile) -> Judgement {
        compare(&Case::new(variant, self.beside(), base, current))
    }

    /// How what was measured side by side is compared.
    fn beside(&self) -> Mode {
        match self.needs_locks {
            true => Mode::Against,
            false => Mode::Programs,
        }
    }

    /// Judges all profiles.
    pub fn all(&self, profiles: &Captures, outcome: &mut Outcome) {
        let (so_far, found) = (&*outcome, by_variant(&outcome.findings));
        let parts = parallel::map(&self.plan.variants(), |variant| {
            let about = found.get(&variant.id).into_iter().flatten();
            let mut part = so_far.with(about.copied().cloned().collect());
            let known = part.findings.len();
            self.one(variant, profiles, &mut part);
            part.findings.drain(..known);
            part
        });
        // In the order of the variants, on any number of cores.
        for part in parts {
            outcome.variants.extend(part.variants);
            outcome.findings.extend(part.findings);
        }
    }

    /// Judges all profiles of a variant. `outcome` has what was found about it so far.
    fn one(&self, variant: &Variant, profiles: &Captures, outcome: &mut Outcome) {
        let measured = self.sides(variant, [&profiles.profiles, &profiles.bases]);
        let reported = match measured {
            Some(sides) => self.measured(sides, profiles, outcome),
            None => Reported::default(),
        };
        let has_gate = match profiles.source {
            Source::Compiler => variant.why_nothing_without_gpu().is_none(),
            _ => variant.why_no_static_gate().is_none(),
        };
        if !has_gate {
            return;
        }
        match self.sides(variant, [&profiles.compiled, &profiles.compiled_bases]) {
            Some(sides) => {
                let tuned = measured.and_then(|sides| {
                    let reference = sides.base.or(sides.locked)?;
                    Some(tuning_changes(reference, sides.current))
                });
                self.judge_code(
                    sides,
                    reported,
                    &tuned.unwrap_or_default(),
                    profiles,
                    outcome,
                );
            }
            None if outcome.denies(&variant.id) => {}
            None => {
                let (code, id) = (Code::ProfileMissing, &variant.id);
                let message = "it has no static profile: its compiled code is unknown";
                let mut locks = self.gpus.get(id).into_iter().flatten();
                let is_locked = locks.any(|folder| Tier::of_folder(folder) == Tier::Static);
                let origin = measured.map(|sides| sides.current.provenance.origin);
                // An import has no compiled code.
                outcome.findings.extend(match origin {
                    Some(ProfileOrigin::Imported) if !is_locked => None,
                    Some(ProfileOrigin::Imported) => {
                        let next = "import it without `--output`, then run `check --static`, which puts the profile of its code beside it";
                        Some(Finding::deny(code, id, message, next))
                    }
                    _ => Some(Finding::of(code, id, message)),
                });
            }
        }
    }

    /// Judges a measured profile.
    fn measured(&self, sides: Sides<'_>, profiles: &Captures, outcome: &mut Outcome) -> Reported {
        let (variant, current) = (sides.variant, sides.current);
        let answer = match sides.base {
            Some(base) => Some(self.beside_base(base, sides, profiles, outcome)),
            None => self.beside_lock(sides, profiles),
        };
        let is_new = answer.is_none() && self.is_new(variant, outcome);
        let judged = answer.is_some() || is_new;
        let added = added(sides);
        let examined = sides.examined();
        let pins = self.pins(sides, outcome);
        let reported = Reported {
            added_sources: added.is_some(),
            toolchain: !pins.is_empty(),
            launches: current.shows_launches(),
        };
        outcome.findings.extend(added);
        outcome.findings.extend(pins);
        match answer {
            Some((report, mut findings)) => {
                let conditions = other_conditions(sides, &findings);
                if !report.comparisons.is_empty()
                    && let Some(locked) = sides.locked
                {
                    findings.extend(metrics_gone(variant, locked));
                }
                outcome.variants.push(report);
                outcome.findings.extend(findings);
                outcome.findings.extend(conditions);
            }
            None => {
                examined.findings(When::Alone, &mut outcome.findings);
                if is_new {
                    let case = Case::new(variant, Mode::New, current, current);
                    let (report, found) = measured_with(&case, None);
                    outcome.variants.push(report.of_new());
                    outcome.findings.extend(found);
                }
            }
        }
        examined.findings(When::Judged, &mut outcome.findings);
        let lacking = self.without_lock(variant, current, judged);
        outcome.findings.extend(lacking);
        reported
    }

    fn beside_base(
        &self,
        base: &Profile,
        sides: Sides<'_>,
        profiles: &Captures,
        outcome: &Outcome,
    ) -> Judgement {
        let variant = sides.variant;
        let code = of(&variant.id, &profiles.compiled)
            .zip(of(&variant.id, &profiles.compiled_bases))
            .map(|(current, base)| code_changes(base, current));
        let case = Case::new(variant, self.beside(), base, sides.current);
        let (mut report, mut findings) = measured_with(&case, code);
        if let Some(stored) = self.stored(variant, sides.current) {
            self.allow(variant, sides.current, &mut findings, &stored);
        }
        if let Some((drift, _)) = self.stored(variant, base) {
            let locked = self.locked(base);
            findings.extend(drifted(variant, &drift, same_code(base, locked)));
            report.drift = drift.comparisons;
        }
        let vouches = |one: &Comparison| one.is_duration() && one.verdict.is_some();
        if self.is_brought(profiles, outcome) && !report.drift.iter().any(vouches) {
            findings.push(unvouched(variant, base));
        }
        (report, findings)
    }

    fn beside_lock(&self, sides: Sides<'_>, profiles: &Captures) -> Option<Judgement> {
        let code = of(&sides.variant.id, &profiles.compiled).and_then(|current| {
            let locked = self.locked(current)?;
            Some(code_changes(locked, current))
        });
        let case = Case::new(sides.variant, Mode::Stored, sides.locked?, sides.current);
        Some(measured_with(&case, code))
    }

    /// Judges the code of a variant.
    fn judge_code(
        &self,
        sides: Sides<'_>,
        reported: Reported,
        tuned: &CodeChanges,
        profiles: &Captures,
        outcome: &mut Outcome,
    ) {
        let (variant, current) = (sides.variant, sides.current);
        if !reported.added_sources && !self.changed.contains(&variant.id) {
            outcome.findings.extend(added(sides));
        }
        if !reported.toolchain {
            let pins = self.pins(sides, outcome);
            outcome.findings.extend(pins);
        }
        if let (Some(locked), false) = (sides.locked, reported.launches) {
            let otherwise = stated_otherwise(variant, locked);
            outcome.findings.extend(otherwise);
        }
        // What no launch showed is as the baseline has it; a statement can only make it stricter.
        let taken = match reported.launches {
            true => Taken::Unknown,
            false => Taken::UnknownOrStricter,
        };
        let with_launches = |side: &Profile, locked: Option<&Profile>| match locked {
            Some(locked) => side.with_launches_of(locked, taken),
            None => (side.clone(), BTreeSet::new()),
        };
        let (current, assumed) = with_launches(current, sides.locked);
        let base = sides.base.map(|base| with_launches(base, sides.locked).0);
        // A change cannot state a launch that suits it better than the base's.
        let (current, _) = with_launches(&current, base.as_ref());
        let sides = Sides {
            variant,
            current: &current,
            base: base.as_ref(),
            locked: sides.locked,
        };
        let examined = sides.examined();
        let (mut report, found) = self.compare_code(sides, tuned, profiles, outcome);
        let is_alone = report.mode == Mode::New;
        report.launched_as_locked(&assumed);
        outcome.variants.push(report);
        let found = found.into_iter().map(Finding::compiled);
        outcome.findings.extend(found);
        examined.findings(When::CodeJudged, &mut outcome.findings);
        let judged = !is_alone || current.kernels.is_empty() || self.is_new(variant, outcome);
        let lacking = self.without_lock(variant, sides.current, judged);
        outcome.findings.extend(lacking);
    }

    /// The code of a variant against its base, else its static baseline, else with nothing.
    fn compare_code(
        &self,
        sides: Sides<'_>,
        tuned: &CodeChanges,
        profiles: &Captures,
        outcome: &Outcome,
    ) -> Judgement {
        let (variant, current, locked) = (sides.variant, sides.current, sides.locked);
        let stored = |locked, current| {
            compare_compiled(&Case::new(variant, Mode::Stored, locked, current), false)
        };
        let (mode, reference) = match (sides.base, locked) {
            (Some(base), _) => (Mode::Against, base),
            (None, Some(locked)) => (Mode::Stored, locked),
            // Its values are shown before anything of it is locked.
            (None, None) => {
                let case = Case::new(variant, Mode::New, current, current);
                let (report, findings) = compare_compiled(&case, false);
                return (report.of_new(), findings);
            }
        };
        let case = Case::new(variant, mode, reference, current);
        let has_base = mode == Mode::Against;
        let as_fast = has_base && shown_as_fast(&variant.id, &outcome.variants, &outcome.findings);
        let (mut report, mut findings) = compare_compiled(&case, as_fast);
        if let Some(locked) = locked.filter(|_| has_base) {
            let stored = stored(locked, current);
            self.allow(variant, current, &mut findings, &stored);
        }
        findings.extend(unexplained_code(&case, tuned));
        if has_base && self.is_brought(profiles, outcome) {
            match locked {
                Some(locked) => {
                    let drift = stored(locked, reference).0;
                    let same_code = same_code(reference, Some(locked));
                    findings.extend(drifted(variant, &drift, same_code));
                    report.drift = drift.comparisons;
                }
                None => findings.push(unvouched(variant, reference)),
            }
        }
        (report, findings)
    }

    /// Tools, driver and GPU of each side that differ from the pinned versions. A recording is
    /// checked against the pins of today, not against those when it was made.
    fn pins(&self, sides: Sides<'_>, outcome: &Outcome) -> Vec<Finding> {
        let (own, of_base, of_locked) = match sides.current.identity.tier {
            Tier::Static => (
                "compiled", "its base was compiled", "its static baseline was compiled",
            ),
            _ => (
                "measured", "its base was measured", "its baseline was measured",
            ),
        };
        let pinned = |what, profile: Option<&Profile>| {
            let pins = profile.map_or(&[][..], |profile| &profile.provenance.pins);
            unpinned(&sides.variant.id, what, pins)
        };
        let own = match outcome.origin {
            Origin::Recorded(_) => recorded_unpinned(&self.plan.config.toolchain, sides.current),
            Origin::Measured | Origin::Compiled => pinned(own, Some(sides.current)),
        };
        let others = [pinned(of_base, sides.base), pinned(of_locked, sides.locked)];
        own.into_iter()
            .chain(others.into_iter().flatten())
            .collect()
    }

    /// Whether the lock that a profile would be compared with was accepted for this change.
    fn is_relocked(&self, variant: &Variant, profile: &Profile) -> bool {
        let key = (profile.identity.folder(), variant.id.clone());
        self.accepted.contains(&key)
    }

    /// Makes warnings of what an accepted baseline allows: what is worse than the base, and no worse than it,
    /// where the change locked it; and other kernels or launches than the base's, where nothing fails beside
    /// the baseline that counts. Of a change that is only its own once somebody accepted it, or where it is
    /// the first.
    fn allow(
        &self,
        variant: &Variant,
        current: &Profile,
        findings: &mut [Finding],
        (locked, beside_lock): &Judgement,
    ) {
        let is_as_locked =
            !locked.comparisons.is_empty() && !beside_lock.iter().any(Finding::denies);
        let is_within = |one: &Finding| {
            locked.comparisons.iter().any(|locked| {
                one.metric.as_ref() == Some(&locked.metric)
                    && one.kernel.as_ref() == Some(&locked.kernel)
                    && matches!(locked.verdict, Some(Verdict::Pass | Verdict::Improved))
            })
        };
        let is_allowed = |one: &&mut Finding| match one.code {
            _ if !one.denies() => false,
            Code::Regressed | Code::Inconclusive => {
                self.is_relocked(variant, current) && is_within(one)
            }
            Code::KernelsChanged | Code::LaunchChanged => is_as_locked,
            _ => false,
        };
        for finding in findings.iter_mut().filter(is_allowed) {
            let allowed = finding.clone().warn_for(WarnReason::LockAccepted);
            *finding = allowed.with(Note::Locked);
        }
    }

    /// Whether measured values of a variant are locked.
    pub(super) fn has_measured_lock(&self, id: &VariantId) -> bool {
        let mut folders = self.gpus.get(id).into_iter().flatten();
        folders.any(|folder| Tier::of_folder(folder) != Tier::Static)
    }

    /// Whether a run of a variant is locked that this tool measured: what is imported may have run elsewhere.
    pub(super) fn has_run(&self, id: &VariantId) -> bool {
        self.locked.iter().any(|((folder, locked), profile)| {
            locked == id
                && Tier::of_folder(folder) != Tier::Static
                && profile.provenance.origin == ProfileOrigin::Measured
        })
    }

    /// Whether the base has no such variant, and no baseline of it.
    fn is_new(&self, variant: &Variant, outcome: &Outcome) -> bool {
        let mut findings = outcome.findings.iter();
        let is_locked = self
            .gpus
            .get(&variant.id)
            .is_some_and(|gpus| !gpus.is_empty());
        !is_locked
            && findings.any(|one| one.concerns(&variant.id) && one.notes.contains(&Note::New))
    }

    /// The finding that a profile is compared with nothing: neither with its base nor with a baseline.
    fn without_lock(&self, variant: &Variant, profile: &Profile, judged: bool) -> Option<Finding> {
        if !self.needs_locks || judged {
            return None;
        }
        let tier = profile.identity.tier;
        let folders = self.gpus.get(&variant.id).map_or(&[][..], Vec::as_slice);
        // Compiled code has locks of its own.
        let gpus: Vec<&str> = folders
            .iter()
            .map(String::as_str)
            .filter(|folder| (Tier::of_folder(folder) == Tier::Static) == (tier == Tier::Static))
            .collect();
        let (what, how) = match tier {
            Tier::Static => ("static baseline", "compiled for"),
            _ => ("baseline", "measured on"),
        };
        if gpus.is_empty() {
            let message = format!("it has no {what} yet");
            let next = lock_in_git(&self.plan.config, profile)
                .or_else(|| lock_elsewhere(&self.plan.config, &variant.id))
                .or_else(|| {
                    let again = "restore the removed lock, and lock over it: its ledger goes on";
                    self.is_relocked(variant, profile).then(|| again.to_owned())
                })
                .unwrap_or_else(|| {
                    let lock = tier.lock_command(&variant.id);
                    format!("review its profile, lock it, and commit the lock: {lock}")
                });
            return Some(Finding::deny(Code::NewBaseline, &variant.id, message, next));
        }
        let is_trusted = |gpu: &&str| {
            let key = ((*gpu).to_owned(), variant.id.clone());
            self.locked.contains_key(&key)
        };
        if gpus.contains(&profile.identity.folder().as_str()) || !gpus.iter().any(is_trusted) {
            return None;
        }
        let message = format!(
            "it was {how} {} (tier {tier}), and has a baseline only for {}",
            profile.identity.gpu,
            gpus.join(", ")
        );
        let next = format!(
            "go back to one of these, or lock it here too: {}",
            tier.lock_command(&variant.id)
        );
        Some(Finding::deny(
            Code::NotComparable,
            &variant.id,
            message,
            next,
        ))
    }
}

impl Stopping for Judge<'_> {
    fn look(&self, variant: &Variant, current: &Profile, base: Option<&Profile>) -> Look {
        let judged = match base {
            Some(base) => Some(self.against(variant, base, current)),
            None => self
                .stored(variant, current)
                .or_else(|| self.stored(variant, &with_counters(variant, current))),
        };
        judged.map_or_else(Look::default, |(report, _)| Look {
            open: report.open(|metric| self.waived(variant, metric)),
            coarse: report.is_coarse(),
            so_far: report.sum().and_then(Comparison::interval),
        })
    }

    /// Of two programs, whether one may have done less work, or counters may say why it is slower. Where only
    /// it launches a kernel of that name, and each kernel of both is as fast, they say nothing.
    fn counts(&self, variant: &Variant, current: &Profile, base: Option<&Profile>) -> bool {
        let Some(base) = base.filter(|_| !self.counts_always) else {
            return true;
        };
        let (report, findings) = self.against(variant, base, current);
        let differs = |verdict| !matches!(verdict, Verdict::Pass | Verdict::NotMeasured);
        if report.sum().and_then(|sum| sum.verdict) == Some(Verdict::Regressed) {
            let mut kernels = report.comparisons.iter().filter(|one| one.kernel != TOTAL);
            let fails = |verdict| differs(verdict) && verdict != Verdict::Improved;
            let is_old = |kernel: &str| {
                let mut shares = report.shares.iter();
                shares.any(|share| share.kernel == kernel && share.reference.is_some())
            };
            let mut shares = report.shares.iter();
            return kernels.any(|one| one.verdict.is_some_and(fails))
                || !shares.any(|share| share.reference.is_none() && !is_old(&share.kernel));
        }
        let mut verdicts = report.comparisons.iter().filter_map(|one| one.verdict);
        let changed =
            |one: &Finding| matches!(one.code, Code::KernelsChanged | Code::LaunchChanged);
        let is_unpaired = |one: &KernelShare| one.reference.is_none() || one.current.is_none();
        verdicts.any(differs)
            || findings.iter().any(changed)
            || report.shares.iter().any(is_unpaired)
    }

    fn counts_always(&self) -> bool {
        self.counts_always
    }
}

/// The profile that times of a program as it runs belong to once ncu has counted, which it does last.
fn with_counters(variant: &Variant, current: &Profile) -> Profile {
    let mut profile = current.clone();
    profile.identity.tier = Tier::Counters;
    profile.identity.conditions = Conditions::from(&variant.profile);
    profile
}

/// The profile of a variant, of profiles in the order of their variants.
pub(super) fn of<'p>(id: &VariantId, profiles: &'p [Profile]) -> Option<&'p Profile> {
    let at = profiles.partition_point(|profile| profile.variant < *id);
    profiles.get(at).filter(|profile| profile.variant == *id)
}

/// How the code of kernels differs, with what an autotuner chose first: it is the cause.
fn with_tuning(mut code: CodeChanges, tuned: &CodeChanges) -> CodeChanges {
    for (kernel, text) in tuned {
        let text = format!("tuned otherwise: {text}");
        let whole = code.get(kernel).map(|code| format!("{text}; {code}"));
        code.insert(kernel.clone(), whole.unwrap_or(text));
    }
    code
}

fn same_code(base: &Profile, locked: Option<&Profile>) -> bool {
    locked.is_some_and(|locked| locked.provenance.sources == base.provenance.sources)
}

fn added(sides: Sides<'_>) -> Option<Finding> {
    immutable_additions(sides.variant, sides.locked?, sides.current)
}

/// A profile against a reference, where it may be known how the code and what an autotuner chose
/// differ.
fn measured_with(case: &Case<'_>, code: Option<CodeChanges>) -> Judgement {
    let tuned = tuning_changes(case.reference, case.current);
    let code = with_tuning(code.unwrap_or_default(), &tuned);
    let (report, mut findings) = compare_with_code(case, code);
    findings.extend(tuning_findings(case, &tuned));
    (report, findings)
}

/// Conditions in the configuration that neither profile was measured under. That the profiles
/// are not comparable with each other is enough said.
fn other_conditions(sides: Sides<'_>, findings: &[Finding]) -> Option<Finding> {
    let conditions = changed_conditions(sides.variant, sides.current);
    let not_comparable = |finding: &Finding| finding.code == Code::NotComparable;
    (!conditions.is_empty() && !findings.iter().any(not_comparable)).then(|| {
        let conditions = conditions.join(", ");
        let message = format!("{conditions} changed since baseline and profile were measured");
        let id = &sides.variant.id;
        let next = format!("undo that change of the configuration, or measure again, `sparsek-gate profile {id}`, and lock the new profile");
        Finding::deny(Code::NotComparable, id, message, next)
    })
}
