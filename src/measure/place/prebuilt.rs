//! Programs that were built on another machine.

use std::collections::{BTreeMap, BTreeSet};

use crate::build::Artifact;
use crate::config::Variant;
use crate::finding::Finding;
use crate::terms::VariantId;

/// What was built of both sides on another machine.
#[derive(Debug, Default)]
pub struct Prebuilt {
    /// Of the code that is judged.
    pub current: PrebuiltSide,
    /// Of the base.
    pub base: PrebuiltSide,
    /// The revision of the code that is judged.
    pub git: Option<String>,
}

/// What was built of one side.
#[derive(Debug, Default)]
pub struct PrebuiltSide {
    /// The programs.
    pub artifacts: BTreeMap<VariantId, Artifact>,
    /// Why the others could not be built.
    pub findings: Vec<Finding>,
}

impl PrebuiltSide {
    /// What was built of these variants, in their order, and the findings about them.
    pub(in crate::measure) fn of(
        &self,
        variants: &[&Variant],
    ) -> (Vec<Option<Artifact>>, Vec<Finding>) {
        let artifacts = variants
            .iter()
            .map(|variant| self.artifacts.get(&variant.id).cloned());
        let about = |finding: &&Finding| {
            let mut variants = variants.iter();
            variants.any(|variant| finding.concerns(&variant.id))
        };
        let findings = self.findings.iter().filter(about).cloned();
        (artifacts.collect(), findings.collect())
    }

    /// The versions of the compilers, each once.
    pub(in crate::measure) fn compilers(&self) -> BTreeSet<&str> {
        let artifacts = self.artifacts.values();
        artifacts
            .filter_map(|artifact| artifact.compiler.as_deref())
            .collect()
    }
}
