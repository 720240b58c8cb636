//! The differences of a profile and the project as it is now: code and conditions.

use std::path::Path;

use crate::build::stated_flags;
use crate::config::{Config, Recipe, Variant};
use crate::disk;
use crate::files::read_regular;
use crate::git;
use crate::hash::sha256_hex;
use crate::profile::{Conditions, Profile, ProfileOrigin};
use crate::profiler::other_selection;
use crate::terms::{Tier, first};

/// The most files or flags that are named.
pub const NAMED: usize = 3;

/// Sources, headers and flags that changed since a profile was measured.
pub fn changed_code(config: &Config, variant: &Variant, profile: &Profile) -> Vec<String> {
    let sources = profile.provenance.sources.iter();
    let changed = sources.filter(|(path, measured)| {
        git::sha256_of_input(&config.root.join(path)).ok().as_ref() != Some(measured)
    });
    let (there, missing): (Vec<_>, Vec<_>) =
        changed.partition(|(path, _)| disk::is_there(config.root.join(path)));
    let named = |(path, sha256): (&String, &String)| match has_other_line_ends(
        &config.root.join(path),
        sha256,
    ) {
        true => format!("`{path}` (the ends of its lines alone)"),
        false => format!("`{path}`"),
    };
    let mut code: Vec<String> = there.into_iter().map(named).collect();
    if !missing.is_empty() {
        let missing = first(missing.into_iter().map(named), NAMED);
        let folder = config.root.display();
        code.push(format!(
            "{missing} (not there: paths count from the folder of the configuration, {folder})"
        ));
    }
    for named in own_sources(config, variant) {
        let listed = profile.provenance.sources.contains_key(&named);
        if profile.provenance.origin == ProfileOrigin::Measured && !listed {
            let why = match disk::is_there(config.root.join(&named)) {
                true => "not listed in the profile",
                false => "there is no such file",
            };
            code.push(format!("`{named}` ({why})"));
        }
    }
    // Constants of a trial are flags too, and are reported as such.
    if profile.provenance.overrides.is_empty() && !same_flags(config, variant, profile) {
        let stated = stated_flags(&config.toolchain, variant);
        let changed = changed_flags(&profile.provenance.build_argv, &stated);
        code.push(match variant.recipe {
            Recipe::Nvcc { .. } if changed.is_empty() => {
                "the flags in the configuration".to_owned()
            }
            Recipe::Nvcc { .. } => {
                let changed = first(changed.into_iter(), NAMED);
                format!("the flags in the configuration ({changed})")
            }
            Recipe::Command { .. } => "the build command in the configuration".to_owned(),
        });
    }
    code
}

/// Whether a file that had this SHA-256 has lines that end with CRLF since, as git for Windows checks
/// them out, and is the same otherwise.
pub fn has_other_line_ends(path: &Path, sha256: &str) -> bool {
    let bytes = read_regular(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.contains("\r\n") && sha256_hex(text.replace("\r\n", "\n").as_bytes()) == sha256
}

/// Whether a file that the configuration names as the variant's is not there.
pub fn lacks_source(config: &Config, variant: &Variant) -> bool {
    let sources = own_sources(config, variant);
    let is_there = |path: &String| disk::is_there(config.root.join(path));
    !sources.iter().all(is_there)
}

/// The flags that one command of nvcc has and another has not, each with a sign.
pub fn changed_flags(was: &[String], is: &[String]) -> Vec<String> {
    let flags = |argv: &[String], other: &[String], sign: char| -> Vec<String> {
        let flags = argv.iter().filter(|flag| flag.starts_with('-'));
        flags
            .filter(|flag| !other.contains(flag))
            .map(|flag| format!("{sign}`{flag}`"))
            .collect()
    };
    [flags(is, was, '+'), flags(was, is, '−')].concat()
}

/// The files that the configuration itself names as the variant's. Of what it names and is not
/// there, the name itself: no profile lists it.
fn own_sources(config: &Config, variant: &Variant) -> Vec<String> {
    config
        .own_files(variant)
        .unwrap_or_else(|_| match &variant.recipe {
            Recipe::Nvcc { sources, .. } => sources.clone(),
            Recipe::Command { inputs, .. } => inputs.clone(),
        })
}

fn same_flags(config: &Config, variant: &Variant, profile: &Profile) -> bool {
    let provenance = &profile.provenance;
    match (&variant.recipe, provenance.origin) {
        (_, ProfileOrigin::Imported) => true,
        // A stripped copy contains its commands only in part.
        (Recipe::Command { .. }, _) if provenance.stripped => true,
        (Recipe::Command { build, .. }, ProfileOrigin::Measured) => {
            provenance.build_argv == build.as_deref().unwrap_or_default()
        }
        // `nvcc FLAGS... SOURCES...`
        (Recipe::Nvcc { sources, .. }, ProfileOrigin::Measured) => {
            let stated = stated_flags(&config.toolchain, variant);
            let recorded = provenance.build_argv.get(1..).unwrap_or_default();
            let files = recorded.strip_prefix(&stated[..]);
            files.is_some_and(|files| {
                // One that the profile does not list is reported itself.
                let same = |(was, is)| was == is || !provenance.sources.contains_key(is);
                files.len() == sources.len() && files.iter().zip(sources).all(same)
            })
        }
    }
}

/// Conditions of the measurement that the configuration no longer names. Of an imported profile only the
/// workload is compared: the configuration did not set its conditions.
pub fn changed_conditions(variant: &Variant, profile: &Profile) -> Vec<String> {
    let mut changed = Vec::new();
    if profile.identity.tier == Tier::Static {
        return changed;
    }
    if profile.identity.workload != variant.args {
        changed.push("the workload in the configuration".to_owned());
    }
    let measured = profile.provenance.origin == ProfileOrigin::Measured;
    if measured && profile.identity.tier == Tier::Counters {
        let stated = Conditions::from(&variant.profile).named();
        let differing = stated.into_iter().zip(profile.identity.conditions.named());
        changed.extend(
            differing
                .filter(|(stated, measured)| stated != measured)
                .map(|((name, _), _)| format!("{name} in the configuration")),
        );
    }
    // What others select was not measured, and the next check would find it new.
    if measured && !profile.provenance.stripped {
        let mut captures = profile.provenance.captures.iter();
        changed.extend(captures.find_map(|it| other_selection(variant, it.phase?, &it.argv)));
    }
    changed
}
