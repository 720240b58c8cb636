//! Variants that are built or measured now, and then judged.

use std::collections::BTreeMap;
use std::path::Path;

use super::chosen_launches::ChosenLaunches;
use super::outcome::Outcome;
use super::same_program::SameProgram;
use super::variants::{Judge, Profiles};
use crate::config::{Selected, Variant};
use crate::device::Gpu;
use crate::finding::{Code, Error, Finding, WarnReason};
use crate::measure::{
    BaseProject, Batch, Bench, ChangedFiles, Measured, Order, Prebuilt, RecordUse, RunFile, Spent,
    Watch, build, compile, measure,
};
use crate::profile::Profile;
use crate::terms::VariantId;

/// What to build or measure, where the profiles go, and what shows the progress.
#[derive(Clone, Copy)]
pub struct Fresh<'a> {
    /// The variants.
    pub selected: &'a Selected,
    /// The base revision, where one is compared with.
    pub base: Option<&'a BaseProject>,
    /// The folder of the profiles.
    pub output: &'a Path,
    /// Shows the stages.
    pub watch: &'a dyn Watch,
    /// Whether variants are measured whose program is the base's.
    pub measure_all: bool,
    /// What is done with records of verifications.
    pub records: RecordUse,
    /// What another machine built, where nothing is built here.
    pub packed: Option<Packed<'a>>,
    /// Where it is noted what is measured, for another run to go on with.
    pub run_file: Option<&'a RunFile>,
    /// The variants of one slice, where not all are measured here.
    pub part: Option<&'a [VariantId]>,
}

/// What another machine built, and found out.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    /// The programs.
    pub programs: &'a Prebuilt,
    /// The variants that need no measurement.
    pub same_programs: &'a [SameProgram],
    /// sha256 of the list of all files that came with them.
    pub files: &'a str,
}

impl Fresh<'_> {
    /// What needs no GPU: builds the variants, and the base's where there is one, and judges the
    /// code.
    ///
    /// # Errors
    /// [`Error`] where the machine failed.
    pub fn compile(&self, judge: &Judge<'_>, outcome: &mut Outcome) -> Result<(), Error> {
        let mut gated = Vec::new();
        for variant in &self.selected.variants {
            match variant.why_nothing_without_gpu() {
                None => gated.push(variant),
                Some(why) => outcome.findings.push(no_static_gate(variant, why)),
            }
        }
        let batch = self.batch(&gated);
        let compiled = compile(batch, self.base, self.output)?;
        outcome.findings.extend(compiled.findings);
        outcome.spent = Some(compiled.spent);
        for variant in gated {
            let (current, bases) = (&compiled.compiled, &compiled.compiled_bases);
            judge.compiled(variant, current, bases, outcome);
        }
        Ok(())
    }

    /// Measures the variants, beside the base where there is one, and judges them.
    ///
    /// # Errors
    /// [`Error`] where the machine failed.
    pub fn measure(&self, judge: &Judge<'_>, outcome: &mut Outcome) -> Result<(), Error> {
        let mut measured = self.measured(judge, outcome)?;
        // Only now: a control that deviates speaks of what was measured before it, too.
        let profiles = Profiles {
            current: std::mem::take(&mut measured.profiles),
            bases: std::mem::take(&mut measured.bases),
            compiled: std::mem::take(&mut measured.compiled),
            ..Profiles::default()
        };
        let sick = judge.sick_gpus(&profiles);
        measured.profiles = profiles.current;
        measured.bases = profiles.bases;
        measured.compiled = profiles.compiled;
        measured.set_aside(sick, self.output);
        outcome.sick_gpus.append(&mut measured.sick);
        outcome.spent = Some(measured.spent);
        let chosen = measured.schedules.into_iter();
        outcome.chosen_launches = chosen
            .map(|(variant, schedule)| ChosenLaunches::new(variant, schedule))
            .collect();
        outcome.reused_verifications = measured.reused;
        outcome.resumed = measured.resumed;
        // The comparison finds the gaps again.
        outcome.findings.extend(measured.findings);
        let selected = &self.selected.variants;
        let (current, controls) = measured
            .profiles
            .into_iter()
            .partition(|profile| selected.iter().any(|one| one.id == profile.variant));
        let profiles = Profiles {
            current,
            bases: measured.bases,
            controls,
            compiled: measured.compiled,
            compiled_bases: measured.compiled_bases,
        };
        judge.all(&profiles, outcome);
        Ok(())
    }

    /// Measures the variants, beside the base where there is one, and judges only whether more has to
    /// be measured. The outcome gets those that need no measurement.
    ///
    /// # Errors
    /// [`Error`] where the machine failed.
    pub fn measured(&self, judge: &Judge<'_>, outcome: &mut Outcome) -> Result<Measured, Error> {
        match self.base {
            Some(base) => self.side_by_side(base, judge, outcome),
            None => self.alone(judge),
        }
    }

    /// Builds the variants, and the base's where there is one, to be measured on another machine: the
    /// programs, and the variants that need no measurement.
    ///
    /// # Errors
    /// [`Error`] where the machine failed.
    pub fn programs(
        &self,
        judge: &Judge<'_>,
    ) -> Result<(Prebuilt, Vec<SameProgram>, Spent), Error> {
        let variants = match self.base {
            Some(_) => self.selected.variants(),
            None => measuring_order(self.selected, judge),
        };
        // A variant that has no base on the machine that measures is judged beside a control.
        let mut variants = variants;
        for control in judge.controls_to_add() {
            if !variants.iter().any(|variant| variant.id == control.id) {
                variants.push(control);
            }
        }
        let order = Order {
            base: self.base,
            ..self.order(&variants)
        };
        let built = build(order)?;
        let mut same = Vec::new();
        if let Some(base) = self.base
            && let Some(changed) = self.changed(base, &variants)
        {
            let Selected {
                config, variants, ..
            } = self.selected;
            same = judge.same_programs(config, &built, base, &changed, self.watch);
            same.retain(|same| variants.iter().any(|one| one.id == same.variant));
        }
        let mut programs = built.programs();
        let measured = built.unmeasured();
        programs.current.findings = measured.findings;
        Ok((programs, same, measured.spent))
    }

    /// Whether a variant is measured here, for its own verdict.
    fn is_own(&self, variant: &VariantId) -> bool {
        self.part.is_none_or(|part| part.contains(variant))
    }

    /// Whether a variant of the suite is measured here.
    fn has_suite(&self, suite: &str) -> bool {
        let mut part = self.part.into_iter().flatten();
        self.part.is_none() || part.any(|own| own.suite == suite)
    }

    fn batch<'b>(&'b self, variants: &'b [&'b Variant]) -> Batch<'b> {
        Batch {
            config: &self.selected.config,
            variants,
            watch: self.watch,
        }
    }

    fn order<'b>(&'b self, variants: &'b [&'b Variant]) -> Order<'b> {
        Order {
            batch: self.batch(variants),
            base: None,
            output: self.output,
            overrides: &[],
            records: self.records,
            prebuilt: self.packed.map(|packed| packed.programs),
            packed_files: self.packed.map(|packed| packed.files),
            run_file: self.run_file,
        }
    }

    fn alone(&self, judge: &Judge<'_>) -> Result<Measured, Error> {
        let mut variants = measuring_order(self.selected, judge);
        // A control is measured on every GPU whose variants it is for.
        variants.retain(|variant| {
            let control = variant.immutable && judge.is_locked(&variant.id);
            self.is_own(&variant.id) || control && self.has_suite(&variant.id.suite)
        });
        if variants.is_empty() {
            return Ok(Measured::default());
        }
        let mut seen: BTreeMap<VariantId, Profile> = BTreeMap::new();
        measure(self.order(&variants), &mut |variant, profile, _| {
            still_open(judge, &mut seen, variant, profile)
        })
    }

    fn side_by_side(
        &self,
        base: &BaseProject,
        judge: &Judge<'_>,
        outcome: &mut Outcome,
    ) -> Result<Measured, Error> {
        let mut variants = self.selected.variants();
        if let Some(packed) = self.packed {
            let same = packed.same_programs;
            outcome.same_programs = same.to_vec();
            variants.retain(|variant| !same.iter().any(|same| same.variant == variant.id));
        }
        variants.retain(|variant| self.is_own(&variant.id));
        if variants.is_empty() {
            return Ok(Measured::default());
        }
        let order = Order {
            base: Some(base),
            ..self.order(&variants)
        };
        let changed = match self.packed {
            Some(_) => None,
            None => self.changed(base, &variants),
        };
        let must_measure = |changed: &ChangedFiles| variants.iter().any(|one| changed.concern(one));
        // What the machine lacks is reported before anything is built, where it is surely needed.
        let bench = match changed.as_ref().is_none_or(&must_measure) {
            true => Some(self.bench(order)?),
            false => None,
        };
        let mut built = build(order)?;
        if let Some(changed) = changed {
            let config = &self.selected.config;
            outcome.same_programs = judge.same_programs(config, &built, base, &changed, self.watch);
            let same = outcome.same_programs.iter();
            let same: Vec<VariantId> = same.map(|same| same.variant.clone()).collect();
            built.leave_out(&same)?;
        }
        if built.is_empty() {
            return Ok(built.unmeasured());
        }
        let bench = match bench {
            Some(bench) => bench,
            None => self.bench(order)?,
        };
        let mut seen: BTreeMap<VariantId, Profile> = BTreeMap::new();
        let choose = |variant: &Variant, gpu: &Gpu, cost| judge.schedule(variant, gpu, cost);
        let mut measured =
            built.measure(bench, &choose, &mut |variant, profile, base| match base {
                Some(base) => {
                    let (report, _) = judge.against(variant, base, profile);
                    let waived = |metric: &str| judge.waived(variant, metric);
                    match profile.provenance.processes < 2 * variant.profile.max_rounds {
                        true => report.open(waived),
                        false => report.replaces_rounds(waived),
                    }
                }
                None => still_open(judge, &mut seen, variant, profile),
            })?;
        self.add_controls(judge, &mut measured)?;
        Ok(measured)
    }

    /// The machine that measures. A missing GPU is reported before anything else that is missing.
    fn bench<'b>(&self, order: Order<'b>) -> Result<Bench<'b>, Error> {
        Gpu::query(self.selected.config.device)?;
        Bench::new(order.batch, order.overrides, order.prebuilt)
    }

    /// What changed since the base; `None` where everything is to be measured, or where git cannot
    /// say it.
    fn changed(&self, base: &BaseProject, variants: &[&Variant]) -> Option<ChangedFiles> {
        if self.measure_all {
            return None;
        }
        ChangedFiles::since(base, &self.selected.config, variants)
            .inspect_err(|why| {
                let text = format!(
                    "every variant is measured, because git cannot say what changed: {why}"
                );
                self.watch.notes(&text);
            })
            .ok()
    }

    /// Measures the controls of variants that have no base to be measured beside.
    fn add_controls(&self, judge: &Judge<'_>, measured: &mut Measured) -> Result<(), Error> {
        if !measured.sick.is_empty() {
            return Ok(());
        }
        // Variants without a base are judged against their baselines, and that needs a control.
        let has_base = |current: &&Profile| {
            let mut bases = measured.bases.iter();
            bases.any(|base| base.variant == current.variant)
        };
        let alone: Vec<&str> = measured
            .profiles
            .iter()
            .filter(|current| !has_base(current))
            .map(|current| current.variant.suite.as_str())
            .collect();
        let mut controls = judge.controls_to_add();
        if self.part.is_some() {
            let variants = self.selected.variants();
            let others = variants.into_iter().filter(|one| !self.is_own(&one.id));
            controls.extend(others.filter(|one| one.immutable && judge.is_locked(&one.id)));
        }
        controls.retain(|control| alone.contains(&control.id.suite.as_str()));
        if !controls.is_empty() {
            let further = measure(self.order(&controls), &mut |_, _, _| false)?;
            // What the GPU measured before it became sick does not count either.
            measured.set_aside(further.sick.clone(), self.output);
            measured.add(further);
        }
        Ok(())
    }
}

/// The variants in the order in which they are measured alone, with the controls that they need.
/// The controls come first: what they read bounds the others' bands.
pub fn measuring_order<'a>(selected: &'a Selected, judge: &Judge<'a>) -> Vec<&'a Variant> {
    let mut variants = selected.variants();
    variants.extend(judge.controls_to_add());
    variants.sort_by_key(|variant| !variant.immutable);
    variants
}

/// Whether the answer of a variant that is measured alone is still open. `seen` are the controls
/// that were measured before it.
fn still_open(
    judge: &Judge<'_>,
    seen: &mut BTreeMap<VariantId, Profile>,
    variant: &Variant,
    profile: &Profile,
) -> bool {
    if variant.immutable {
        seen.insert(variant.id.clone(), profile.clone());
    }
    let control = judge.control(variant, |id| seen.get(id));
    judge
        .stored(variant, profile, control.as_ref())
        .is_some_and(|(report, _)| report.open(|metric| judge.waived(variant, metric)))
}

fn no_static_gate(variant: &Variant, why: &str) -> Finding {
    let message = format!("the static gate cannot judge it: {why}");
    let next = format!("measure it: sparsek-gate check {}", variant.id);
    Finding::deny(Code::NotMeasured, &variant.id, message, next).warn_for(WarnReason::NoStaticGate)
}
