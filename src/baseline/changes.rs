//! Whether a profile is still one of the project as it is: same conditions, same code.

use crate::build::stated_flags;
use crate::config::{Config, Recipe, Variant};
use crate::hash::sha256_file;
use crate::profile::{Conditions, Profile, ProfileOrigin};
use crate::terms::Tier;

/// What changed in the project since a profile was measured, each in a few words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Conditions of the measurement that the configuration no longer names.
    pub conditions: Vec<String>,
    /// Sources, headers and flags.
    pub code: Vec<String>,
}

/// Compares a profile with the configuration and the files that it was measured from.
pub fn changes_since(config: &Config, variant: &Variant, profile: &Profile) -> Changes {
    let mut code: Vec<String> = profile
        .provenance
        .sources
        .iter()
        .filter(|(path, measured)| {
            sha256_file(&config.root.join(path)).ok().as_ref() != Some(measured)
        })
        .map(|(path, _)| format!("`{path}`"))
        .collect();
    for named in own_sources(variant) {
        let listed = profile.provenance.sources.contains_key(named);
        if profile.provenance.origin == ProfileOrigin::Measured && !listed {
            code.push(format!("`{named}`, which the profile does not list,"));
        }
    }
    // Constants of a trial are flags too; such a profile says so itself.
    if profile.provenance.overrides.is_empty() && !same_flags(config, variant, profile) {
        code.push(
            match variant.recipe {
                Recipe::Nvcc { .. } => "the flags in the configuration",
                Recipe::Command { .. } => "how the configuration builds it",
            }
            .to_owned(),
        );
    }
    Changes {
        conditions: changed_conditions(variant, profile),
        code,
    }
}

/// The files that the configuration itself names as the variant's.
fn own_sources(variant: &Variant) -> &[String] {
    match &variant.recipe {
        Recipe::Nvcc { source, .. } => std::slice::from_ref(source),
        Recipe::Command { inputs, .. } => inputs,
    }
}

fn same_flags(config: &Config, variant: &Variant, profile: &Profile) -> bool {
    let provenance = &profile.provenance;
    match (&variant.recipe, provenance.origin) {
        (_, ProfileOrigin::Imported) => true,
        // A stripped copy holds its commands only in part.
        (Recipe::Command { .. }, _) if provenance.stripped => true,
        (Recipe::Command { build, .. }, ProfileOrigin::Measured) => {
            provenance.build_argv == build.as_deref().unwrap_or_default()
        }
        // `nvcc FLAGS... SOURCE`
        (Recipe::Nvcc { source, .. }, ProfileOrigin::Measured) => {
            let stated = stated_flags(&config.toolchain, variant);
            let expected = stated.iter().chain([source]);
            provenance.build_argv.iter().skip(1).eq(expected)
        }
    }
}

/// What an imported profile was taken under is not the configuration's to say, but for the
/// workload.
fn changed_conditions(variant: &Variant, profile: &Profile) -> Vec<String> {
    let mut changed = Vec::new();
    if profile.identity.tier == Tier::Static {
        return changed;
    }
    if profile.identity.workload != variant.args {
        changed.push("the workload in the configuration".to_owned());
    }
    let by_ncu = profile.identity.tier == Tier::Counters;
    if profile.provenance.origin == ProfileOrigin::Measured && by_ncu {
        let stated = Conditions::from(&variant.profile).named();
        let differing = stated.into_iter().zip(profile.identity.conditions.named());
        changed.extend(
            differing
                .filter(|(stated, measured)| stated != measured)
                .map(|((what, _), _)| format!("{what} in the configuration")),
        );
    }
    changed
}
