//! Which recorded profiles say something about a variant's tolerances.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::baseline::{Store, verify_stored};
use crate::comparable::{measured, words};
use crate::config::{Config, Variant};
use crate::files::{PROFILE_FILE, base_folder};
use crate::finding::{Error, Finding};
use crate::profile::{OnGpus, Profile};
use crate::terms::{Tier, VariantId};

/// Further profiles that were recorded of a variant, each with the folder that it was found in.
pub type Further<'f> = Vec<(&'f Path, Profile)>;

/// One baseline of a variant, with further profiles that can be compared with it.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// The folder of the baseline: GPU model and tier.
    pub gpu: String,
    /// What is locked.
    pub locked: Profile,
    /// Measured under the same conditions, from captures of their own.
    pub others: Vec<Profile>,
}

/// A variant or a profile that says nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Which variant.
    pub variant: VariantId,
    /// The folder of the profile; `None` of the whole variant.
    pub folder: Option<PathBuf>,
    /// Why.
    pub why: String,
}

/// What was found of a variant.
#[derive(Debug, Default)]
pub struct Gathered {
    /// One entry for each baseline that is not static.
    pub evidence: Vec<Evidence>,
    /// What is not used.
    pub left_out: Vec<LeftOut>,
    /// What is wrong with the baselines.
    pub findings: Vec<Finding>,
}

/// The profiles of a variant in these folders, and those of its bases.
///
/// # Errors
/// [`Error::Io`], or [`Error::Input`] of a file that is no profile.
pub fn further<'f>(folders: &'f [PathBuf], variant: &VariantId) -> Result<Further<'f>, Error> {
    let mut found = Vec::new();
    for folder in folders {
        for each in OnGpus::folders(folder, variant)? {
            let base = base_folder(&each, variant).join(PROFILE_FILE);
            let both = [Profile::recorded(&each, variant)?, Profile::at(&base)?];
            let both = both.into_iter().flatten();
            found.extend(both.map(|one| (folder.as_path(), one)));
        }
    }
    Ok(found)
}

/// The locked baselines of a variant, with the further profiles that belong to each.
///
/// # Errors
/// [`Error::Io`].
pub fn gather(
    config: &Config,
    store: &Store,
    variant: &Variant,
    further: &Further<'_>,
) -> Result<Gathered, Error> {
    let mut gathered = Gathered::default();
    for stored in store.all_of(&variant.id)? {
        if Tier::of_folder(&stored.gpu) == Tier::Static {
            continue;
        }
        let (trusted, findings) = verify_stored(config, variant, &stored);
        gathered.findings.extend(findings);
        gathered.evidence.extend(trusted.map(|trusted| Evidence {
            gpu: stored.gpu,
            locked: trusted.profile,
            others: Vec::new(),
        }));
    }
    let left_out = |folder: Option<&Path>, why: String| LeftOut {
        variant: variant.id.clone(),
        folder: folder.map(Path::to_path_buf),
        why,
    };
    if gathered.evidence.is_empty() {
        let why = format!(
            "it has no valid baseline that was measured on a GPU; to lock one: sparsek-gate baseline --lock --reason '...' {}",
            variant.id
        );
        gathered.left_out.push(left_out(None, why));
        return Ok(gathered);
    }
    for (folder, profile) in further {
        if let Err(why) = place(&mut gathered.evidence, variant, profile) {
            gathered.left_out.push(left_out(Some(folder), why));
        }
    }
    Ok(gathered)
}

/// Puts a profile beside the baseline that it can be compared with.
fn place(evidence: &mut [Evidence], variant: &Variant, profile: &Profile) -> Result<(), String> {
    if profile.variant != variant.id {
        return Err(format!("its profile is one of {}", profile.variant));
    }
    if !profile.provenance.overrides.is_empty() {
        return Err("it was measured with other constants (--define)".to_owned());
    }
    if profile.provenance.stripped {
        return Err("it is a stripped copy, which does not name its GPU".to_owned());
    }
    let mut why = String::new();
    for one in evidence {
        let differences = measured(&one.locked, profile);
        if !differences.is_empty() {
            why = format!("it was measured otherwise: {}", words(&differences, "; "));
            continue;
        }
        let known = std::iter::once(&one.locked).chain(&one.others);
        let known: BTreeSet<&str> = known.flat_map(captures).collect();
        // The same captures say nothing new; the baseline may have been locked from them.
        if captures(profile).all(|capture| !known.contains(capture)) {
            one.others.push(profile.clone());
        }
        return Ok(());
    }
    Err(why)
}

fn captures(profile: &Profile) -> impl Iterator<Item = &str> {
    let captures = profile.provenance.captures.iter();
    captures.map(|capture| capture.report.sha256.as_str())
}
