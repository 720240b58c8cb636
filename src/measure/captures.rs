//! What a run measured of its variants, and what it found.

use std::collections::BTreeSet;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cost::Spent;
use crate::evidence::{SetAside, SickGpu, of_a_process, set_aside};
use crate::finding::Finding;
use crate::measure::key::verified::ReusedVerification;
use crate::profile::Profile;
use crate::terms::VariantId;

/// A variant that was taken over from an interrupted run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resumed {
    /// The variant.
    pub variant: VariantId,
    /// When the interrupted run began, RFC 3339, UTC.
    pub began: String,
}

/// What one GPU measured of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuPart {
    /// Its UUID.
    pub uuid: String,
    /// The name of its model.
    pub name: String,
    /// What it measured.
    pub variants: Vec<VariantId>,
    /// Processes that were profiled.
    pub processes: u32,
    /// Seconds in these processes.
    pub profile_s: f64,
    /// Seconds from the first variant to the last; of several slices together.
    pub wall_s: f64,
}

impl GpuPart {
    /// Adds a part to others: to that of the same GPU, which measured one after the other.
    pub fn add_to(self, parts: &mut Vec<GpuPart>) {
        let Some(part) = parts.iter_mut().find(|part| part.uuid == self.uuid) else {
            parts.push(self);
            return;
        };
        for variant in self.variants {
            if !part.variants.contains(&variant) {
                part.variants.push(variant);
            }
        }
        part.processes = part.processes.saturating_add(self.processes);
        part.profile_s += self.profile_s;
        part.wall_s += self.wall_s;
    }
}

/// A variant whose program is the base's, byte for byte: nothing of it was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SameProgram {
    /// Which one.
    pub variant: VariantId,
    /// The commit of the base.
    pub base: String,
    /// sha256 of the program, where it is one file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub program: Option<String>,
    /// The locked values that its hard limits were judged on, in words.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub limits: Vec<String>,
}

/// What one slice of a check measured, and on which GPU.
#[derive(Clone, Debug)]
pub struct SlicePart {
    /// Its folder.
    pub folder: PathBuf,
    /// The variants that it had to measure.
    pub own: Vec<VariantId>,
    /// The GPU, where its driver reported a defect.
    pub sick: Vec<SickGpu>,
}

/// Where captures come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// This run measured.
    #[default]
    Here,
    /// This run compiled, and measured nothing.
    Compiler,
    /// Slices that were measured for this check.
    Slices,
    /// A recording, as reports call it: its author's word.
    Recording(String),
}

/// What was measured and found. A file has it without the profiles, which have files of their own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Captures {
    /// Fresh profiles, of the variants that could be measured.
    #[serde(skip)]
    pub profiles: Vec<Profile>,
    /// Fresh profiles of the base revision, of the variants that were measured side by side.
    #[serde(skip)]
    pub bases: Vec<Profile>,
    /// Static profiles of the variants that were built by the compiler.
    #[serde(skip)]
    pub compiled: Vec<Profile>,
    /// The same of the base revision.
    #[serde(skip)]
    pub compiled_bases: Vec<Profile>,
    /// Why the others could not be measured, and what else happened.
    pub findings: Vec<Finding>,
    /// What the profiles lack. Who compares them finds it again, and reports it in more detail.
    pub gaps: Vec<Finding>,
    /// Verifications of earlier runs that were not repeated.
    pub reused: Vec<ReusedVerification>,
    /// Time inside the programs that were started.
    pub spent: Spent,
    /// The variants that were taken over from an interrupted run.
    pub resumed: Vec<Resumed>,
    /// The GPU, where its driver reported a defect: all that it measured is set aside then.
    pub sick: Vec<SickGpu>,
    /// What each GPU did, where slices were measured.
    pub gpus: Vec<GpuPart>,
    /// The variants that need no measurement.
    #[serde(skip)]
    pub same_programs: Vec<SameProgram>,
    /// Variants that were not begun, because the GPU was sick before.
    #[serde(skip)]
    pub not_begun: Vec<VariantId>,
    /// Where they come from.
    #[serde(skip)]
    pub source: Source,
    /// The slices that they were read from.
    #[serde(skip)]
    pub parts: Vec<SlicePart>,
    /// The folder of this run's captures.
    #[serde(skip)]
    pub folder: PathBuf,
}

impl Captures {
    /// Puts the profiles into the order of their variants.
    pub(crate) fn sort(&mut self) {
        let measured = [&mut self.profiles, &mut self.bases];
        let compiled = [&mut self.compiled, &mut self.compiled_bases];
        for profiles in measured.into_iter().chain(compiled) {
            profiles.sort_by(|one, other| one.variant.cmp(&other.variant));
        }
    }

    /// Sets aside all that sick GPUs measured, before the symptom and after, whether it passes or fails:
    /// neither counts. The files stay.
    pub fn set_aside(&mut self, sick: Vec<SickGpu>) {
        if sick.is_empty() && self.parts.is_empty() {
            return;
        }
        sick.into_iter().for_each(|gpu| gpu.add_to(&mut self.sick));
        self.sick.sort_by(|one, other| one.uuid.cmp(&other.uuid));
        if self.sick.is_empty() {
            return;
        }
        let measured_on = |gpu: &SickGpu| -> BTreeSet<&VariantId> {
            let all = self.profiles.iter().chain(&self.bases);
            let on_gpu = all.filter(|one| gpu.measured(one));
            on_gpu.map(|one| &one.variant).collect()
        };
        let found = self.findings.iter().filter(|one| of_a_process(one.code));
        let found = found.filter_map(|one| one.variant.as_ref());
        let on_sick = self.sick.iter().flat_map(measured_on);
        let concerned: BTreeSet<&VariantId> = on_sick.chain(found).chain(&self.not_begun).collect();
        let here = [SlicePart {
            folder: self.folder.clone(),
            own: concerned.iter().copied().cloned().collect(),
            sick: self.sick.clone(),
        }];
        let parts = match self.parts.is_empty() {
            true => &here[..],
            false => &self.parts,
        };
        let aside = self.sick.iter().map(|gpu| {
            let measured = measured_on(gpu);
            let is_of_gpu = |part: &&SlicePart| {
                let sick = part.sick.iter().any(|one| one.uuid == gpu.uuid);
                sick || part.own.iter().any(|one| measured.contains(one))
            };
            let of_gpu: Vec<&SlicePart> = parts.iter().filter(is_of_gpu).collect();
            let own = of_gpu.iter().flat_map(|part| &part.own);
            let folder = of_gpu.first().map(|part| part.folder.clone());
            SetAside {
                folder: folder.unwrap_or_default(),
                variants: own.filter(|one| concerned.contains(one)).cloned().collect(),
                gpu: gpu.clone(),
            }
        });
        let aside: Vec<SetAside> = aside.collect();
        let variants: BTreeSet<&VariantId> = aside.iter().flat_map(|one| &one.variants).collect();
        for profiles in [&mut self.profiles, &mut self.bases] {
            profiles.retain(|one| !variants.contains(&one.variant));
        }
        let concerned =
            |one: &Finding| one.variant.as_ref().is_some_and(|id| variants.contains(id));
        self.gaps.retain(|gap| !concerned(gap));
        set_aside(&mut self.findings, &aside);
    }

    /// Adds what else was measured. Of a static profile the latest counts.
    pub fn add(&mut self, further: Captures) {
        self.profiles.extend(further.profiles);
        self.bases.extend(further.bases);
        for (all, further) in [
            (&mut self.compiled, further.compiled),
            (&mut self.compiled_bases, further.compiled_bases),
        ] {
            for profile in further {
                all.retain(|other| other.variant != profile.variant);
                all.push(profile);
            }
        }
        self.findings.extend(further.findings);
        self.gaps.extend(further.gaps);
        self.reused.extend(further.reused);
        self.spent += further.spent;
        self.resumed.extend(further.resumed);
        further
            .gpus
            .into_iter()
            .for_each(|part| part.add_to(&mut self.gpus));
        further
            .sick
            .into_iter()
            .for_each(|gpu| gpu.add_to(&mut self.sick));
        self.not_begun.extend(further.not_begun);
    }
}
