//! From captures to the outcome, by the rules of a run. Nothing here runs a program or asks git.

use std::collections::BTreeSet;

use super::variant_report::VariantReport;
use super::variants::{Judge, of};
use super::waiver::waive;
use super::whole::{Origin, Outcome};
use crate::config::{Selected, Variant};
use crate::finding::{Code, Finding, Note};
use crate::measure::{Captures, Source, Spent};
use crate::profile::{Profile, ProfileOrigin};
use crate::terms::{Tier, VariantId};
use crate::trust::Authority;

/// By what a run judges.
pub struct Rules<'a> {
    /// The variants, and what is locked of them.
    pub judge: Judge<'a>,
    /// Whose rules they are.
    pub authority: Authority,
    /// What was found before anything was measured.
    pub findings: Vec<Finding>,
    /// What is wrong with locks.
    pub of_locks: Vec<Finding>,
    /// Locked variants that are not judged.
    pub unchecked: Vec<Finding>,
}

impl<'a> Rules<'a> {
    /// Of two programs that are compared with each other: nothing is locked of them. `counts_always` is
    /// whether counters are read whatever their times say.
    pub fn of_programs(plan: &'a Selected, counts_always: bool) -> Rules<'a> {
        Rules {
            judge: Judge::of_programs(plan, counts_always),
            authority: Authority::default(),
            findings: Vec::new(),
            of_locks: Vec::new(),
            unchecked: Vec::new(),
        }
    }

    /// All that was found without captures.
    pub(in crate::judge) fn found(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().chain(&self.of_locks)
    }
}

/// Judges captures.
pub fn judge(mut captures: Captures, rules: &Rules<'_>) -> Outcome {
    let Rules { judge, .. } = rules;
    captures.sort();
    let mut outcome = Outcome::new(match &captures.source {
        Source::Here | Source::Slices => Origin::Measured,
        Source::Compiler => Origin::Compiled,
        Source::Recording(shown) => Origin::Recorded(shown.clone()),
    });
    outcome.authority = rules.authority.clone();
    outcome.findings.clone_from(&rules.findings);
    let is_recording = matches!(captures.source, Source::Recording(_));
    if !is_recording {
        outcome.findings.extend(rules.of_locks.iter().cloned());
    }
    if !is_recording || !captures.parts.is_empty() {
        // Only now: an immutable variant that deviates speaks of what was measured before it, too.
        captures.set_aside(judge.sick_gpus(&captures));
    }
    outcome.findings.append(&mut captures.findings);
    if is_recording {
        outcome.findings.extend(rules.of_locks.iter().cloned());
    }
    judge.all(&captures, &mut outcome);
    if matches!(outcome.authority, Authority::Revision { begins: true, .. }) {
        // It is said once, and not of each variant.
        let is_of_variant = |one: &Finding| one.notes.contains(&Note::New);
        outcome.findings.retain(|one| !is_of_variant(one));
    }
    outcome.same_programs = captures.same_programs;
    outcome.reused_verifications = captures.reused;
    outcome.resumed = captures.resumed;
    outcome.sick_gpus = captures.sick;
    outcome.gpus = captures.gpus;
    outcome.spent = (captures.spent != Spent::default()).then_some(captures.spent);
    outcome.findings.extend(rules.unchecked.iter().cloned());
    await_consent(&mut outcome.findings);
    name_expected_by_base(&mut outcome.findings);
    let variants = judge.plan.variants.iter().filter(|one| one.immutable);
    let imported = variants.filter(|one| {
        let profile = of(&one.id, &captures.profiles);
        profile.is_some_and(|it| it.provenance.origin == ProfileOrigin::Imported)
    });
    name_consent_to_immutable(&mut outcome.findings, imported.map(|one| one.id.clone()));
    waive(&judge.config().waivers, &mut outcome);
    account_for_all(
        judge,
        &captures.source,
        [&captures.compiled, &captures.compiled_bases],
        &mut outcome,
    );
    outcome
}

/// What the change does to a baseline already is not to be done again: somebody must accept it. And no profile
/// of other code is locked.
fn await_consent(findings: &mut [Finding]) {
    for (code, note) in [
        (Code::Relocked, Note::Relocked),
        (Code::ProfileStale, Note::Stale),
    ] {
        let is_relocked = code == Code::Relocked;
        let waits = |one: &&Finding| one.code == code && (one.denies() || !is_relocked);
        let waiting = findings.iter().filter(waits);
        let waiting: BTreeSet<_> = waiting.filter_map(|one| one.variant.clone()).collect();
        let waits = |finding: &&mut Finding| {
            let is_proposed = |words: &str| finding.next.contains(words);
            let of_lock = match is_relocked {
                true => finding.code == Code::VariantGone || is_proposed("baseline --lock"),
                false => is_proposed("or accept it: ") || is_proposed("meant, lock it: "),
            };
            of_lock
                && finding
                    .variant
                    .as_ref()
                    .is_some_and(|id| waiting.contains(id))
        };
        for finding in findings.iter_mut().filter(waits) {
            let in_base = finding.notes.contains(&Note::InBase);
            *finding = finding.clone().with(note.clone());
            // Without the change it stays.
            if is_relocked && in_base {
                let (what, of_this) = ("undo the change, or have what it", "have what this change");
                finding.next = finding.next.replace(what, of_this);
            }
        }
    }
}

/// Which kernels are expected is the base's word until what the change says of it is accepted.
fn name_expected_by_base(findings: &mut [Finding]) {
    let keys = [".expect`", ".kernels`"];
    let says = |one: &&Finding| {
        one.code == Code::PolicyChanged
            && one.denies()
            && keys.iter().any(|key| one.message.contains(key))
    };
    let changed: Vec<_> = findings.iter().filter(says).cloned().collect();
    let is_of =
        |other: &Finding, one: &Finding| other.variant.is_none() || other.variant == one.variant;
    for one in findings.iter_mut() {
        let mut changed = changed.iter();
        if one.code == Code::KernelMissing && changed.any(|other| is_of(other, one)) {
            one.next = "the target branch's `expect` and `kernels` count until those of this change are accepted: `policy-changed` says how".to_owned();
        }
    }
}

/// No lock replaces that of an immutable variant whose code changed, or is not known as that of an import,
/// but on purpose.
fn name_consent_to_immutable(findings: &mut [Finding], imported: impl Iterator<Item = VariantId>) {
    let is_changed = |one: &&Finding| one.code == Code::ImmutableChanged;
    let changed = findings.iter().filter(is_changed);
    let changed = changed.filter_map(|one| one.variant.clone());
    let changed: BTreeSet<_> = changed.chain(imported).collect();
    for one in findings.iter_mut() {
        let is_of_it = one.variant.as_ref().is_some_and(|id| changed.contains(id));
        if is_of_it
            && one.code != Code::ImmutableChanged
            && !one.next.contains("--accept-immutable")
        {
            let lock = "baseline --lock --accept-immutable ";
            one.next = one.next.replace("baseline --lock ", lock);
        }
    }
}

/// Each planned variant was judged, needs no measurement, or fails the run. A finding that captures
/// brought may be waived, and then explains nothing.
fn account_for_all(
    judge: &Judge<'_>,
    source: &Source,
    [compiled, bases]: [&[Profile]; 2],
    outcome: &mut Outcome,
) {
    let is_static = |report: &&VariantReport| report.tier == Tier::Static;
    let (of_code, measured): (Vec<_>, Vec<_>) = outcome.variants.iter().partition(is_static);
    let of_code: BTreeSet<&VariantId> = of_code.iter().map(|one| &one.variant).collect();
    let denied = outcome.findings.iter().filter(|one| one.denies());
    let accounted: BTreeSet<&VariantId> = measured
        .iter()
        .map(|one| &one.variant)
        .chain(outcome.same_programs.iter().map(|same| &same.variant))
        .chain(denied.filter_map(|one| one.variant.as_ref()))
        .collect();
    let is_library = |profiles: &[Profile], id: &VariantId| {
        of(id, profiles).is_some_and(|one| one.provenance.library)
    };
    let is_accounted = |variant: &&Variant| {
        let id = &variant.id;
        // What ran before must run.
        let ran = judge.has_measured_lock(id) || of(id, bases).is_some() && !is_library(bases, id);
        let by_code = variant.accepts(Tier::Static) || is_library(compiled, id) && !ran;
        match source {
            // Nothing runs now, and whether the base ever ran is not known.
            Source::Compiler if by_code || !is_library(compiled, id) => true,
            Source::Compiler => accounted.contains(id) || !judge.has_run(id),
            _ => accounted.contains(id) || by_code && of_code.contains(id),
        }
    };
    let (message, next) = match source {
        Source::Slices => (
            "its slice has no measurement of it",
            "run its slice again, and check all of them together",
        ),
        _ => ("nothing measured it", "measure it again"),
    };
    let missing: Vec<Finding> = judge
        .plan
        .variants()
        .into_iter()
        .filter(|variant| !is_accounted(variant))
        .map(|variant| match is_library(compiled, &variant.id) {
            true => Finding::deny(
                Code::NotMeasured,
                &variant.id,
                "nothing of it runs, and its base or its baseline was measured",
                "give it a `main` or a `run` again, or remove the baseline of what it measured",
            ),
            false => Finding::deny(Code::NotMeasured, &variant.id, message, next),
        })
        .collect();
    outcome.findings.extend(missing);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_only_the_base_expects_is_expected_until_that_change_is_accepted() {
        let [v, w] = ["s/v", "s/w"].map(|id| VariantId::try_from(id.to_owned()).unwrap());
        let changed = "this change changes `suite.s.variant.v.expect` from [] to []";
        let mut findings = vec![
            Finding::of(Code::KernelMissing, &v, ""),
            Finding::of(Code::KernelMissing, &w, ""),
            Finding::of(Code::PolicyChanged, &v, changed),
        ];
        name_expected_by_base(&mut findings);
        let named = findings
            .iter()
            .map(|one| one.next.contains("`policy-changed` says how"));
        assert_eq!(named.collect::<Vec<_>>(), [true, false, false]);
    }
}
