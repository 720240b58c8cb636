//! What a run measured of its variants, and what it found.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cost::Spent;
use super::verified::ReusedVerification;
use crate::evidence::{SetAside, SickGpu, of_a_process, set_aside};
use crate::finding::Finding;
use crate::profile::Profile;
use crate::terms::VariantId;
use crate::verdict::Schedule;

/// A variant that was taken over from an interrupted run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resumed {
    /// The variant.
    pub variant: VariantId,
    /// When the interrupted run began, RFC 3339, UTC.
    pub began: String,
}

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Fresh profiles, of the variants that could be measured.
    pub profiles: Vec<Profile>,
    /// Fresh profiles of the base revision, of the variants that were measured side by side.
    pub bases: Vec<Profile>,
    /// Static profiles of the variants that were built by the compiler.
    pub compiled: Vec<Profile>,
    /// The same of the base revision.
    pub compiled_bases: Vec<Profile>,
    /// Why the others could not be measured, and what else happened.
    pub findings: Vec<Finding>,
    /// What the profiles lack. Who compares them finds it again, and reports it in more detail.
    pub gaps: Vec<Finding>,
    /// Verifications of earlier runs that were not repeated.
    pub reused: Vec<ReusedVerification>,
    /// Time inside the programs that were started.
    #[serde(skip)]
    pub spent: Spent,
    /// The variants that were taken over from an interrupted run.
    #[serde(skip)]
    pub resumed: Vec<Resumed>,
    /// How many launches were chosen for variants that were measured side by side.
    pub schedules: Vec<(VariantId, Schedule)>,
    /// The files that no program may change once they are written, with their hashes.
    #[serde(skip)]
    pub sealed: BTreeMap<PathBuf, String>,
    /// The GPU, where its driver reported a defect: all that it measured is set aside then.
    #[serde(skip)]
    pub sick: Vec<SickGpu>,
    /// Variants that were not begun, because the GPU was sick before.
    #[serde(skip)]
    pub not_begun: Vec<VariantId>,
}

impl Measured {
    /// Sets aside all that sick GPUs measured in this run, whether it passes or fails: neither counts. The
    /// captures in `folder` stay.
    pub fn set_aside(&mut self, sick: Vec<SickGpu>, folder: &Path) {
        if sick.is_empty() {
            return;
        }
        sick.into_iter().for_each(|gpu| gpu.add_to(&mut self.sick));
        let found = self.findings.iter().filter(|one| of_a_process(one.code));
        let found = found.filter_map(|one| one.variant.as_ref());
        let measured = self.profiles.iter().chain(&self.bases);
        let on_sick = measured.filter(|one| self.sick.iter().any(|gpu| gpu.measured(one)));
        let variants = on_sick.map(|one| &one.variant).chain(found);
        let variants: BTreeSet<VariantId> = variants.chain(&self.not_begun).cloned().collect();
        for profiles in [&mut self.profiles, &mut self.bases] {
            profiles.retain(|one| !variants.contains(&one.variant));
        }
        self.schedules.retain(|(one, _)| !variants.contains(one));
        let concerned =
            |one: &Finding| one.variant.as_ref().is_some_and(|id| variants.contains(id));
        self.gaps.retain(|gap| !concerned(gap));
        let aside = self.sick.iter().map(|gpu| SetAside {
            gpu: gpu.clone(),
            folder: folder.to_path_buf(),
            variants: variants.clone(),
        });
        set_aside(&mut self.findings, &aside.collect::<Vec<_>>());
    }

    /// Adds what else was measured. Of a static profile the latest counts.
    pub fn add(&mut self, further: Measured) {
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
        self.schedules.extend(further.schedules);
        self.sealed.extend(further.sealed);
        further
            .sick
            .into_iter()
            .for_each(|gpu| gpu.add_to(&mut self.sick));
        self.not_begun.extend(further.not_begun);
    }
}
