//! The locked baselines of the past: the ledger says what was accepted, and git's commits contain
//! the files.
//!
//! A past profile counts only if its sha256 is the one in the ledger's entry, so only accepted
//! numbers are shown. Where a profile is missing, the reason is shown instead.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::baseline::{Entry, Lock, Store, Stored};
use crate::config::{Config, suggest};
use crate::finding::{Code, Error, Finding};
use crate::git::{self, Version};
use crate::hash::sha256_hex;
use crate::metric::Level;
use crate::process;
use crate::profile::Profile;
use crate::terms::{Tier, VariantId};

/// How the metrics of one baseline went from acceptance to acceptance.
#[derive(Clone, Debug, Serialize)]
pub struct Trend {
    /// Which variant.
    pub variant: VariantId,
    /// The folder of baselines: GPU model and tier.
    pub gpu: String,
    /// How it was measured.
    pub tier: Tier,
    /// The oldest first.
    pub acceptances: Vec<Acceptance>,
    /// Each metric of each kernel, by name.
    pub metrics: Vec<Course>,
}

/// One acceptance, and where its profile is.
#[derive(Clone, Debug, Serialize)]
pub struct Acceptance {
    /// What the lock says of it.
    #[serde(flatten)]
    pub entry: Entry,
    /// The oldest commit whose lock contains it; `None` where this repository has none.
    pub commit: Option<String>,
    /// Why there are no values of it.
    pub missing: Option<String>,
}

/// One metric of one kernel over the acceptances.
#[derive(Clone, Debug, Serialize)]
pub struct Course {
    /// The kernel, by a name that no other of its profile has.
    pub kernel: String,
    /// The alias.
    pub metric: String,
    /// The counter behind it. Under another counter an alias is another metric.
    pub counter: String,
    /// Its unit.
    pub unit: Option<String>,
    /// One an acceptance; `None` where its profile is missing or lacks the metric.
    pub values: Vec<Option<Point>>,
}

/// An accepted value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// In the counter's unit.
    pub value: f64,
    /// By how much processes differ (standard deviation), or machines (the largest distance from
    /// their centre), whichever is more. `None` where it was locked from one process.
    pub noise: Option<f64>,
}

impl Trend {
    /// Whether there are kernels to distinguish by their names.
    pub fn several_kernels(&self) -> bool {
        let mut kernels = self.metrics.iter().map(|course| &course.kernel);
        let first = kernels.next();
        kernels.any(|kernel| Some(kernel) != first)
    }
}

/// The history of every baseline of a variant, and findings on those that have none.
///
/// # Errors
/// [`Error::Io`].
pub fn trends(store: &Store, variant: &VariantId) -> Result<(Vec<Trend>, Vec<Finding>), Error> {
    let mut baselines = Vec::new();
    let mut findings = Vec::new();
    for stored in store.all_of(variant)? {
        if process::interrupted() {
            return Err(Error::Interrupted);
        }
        let gpu = &stored.gpu;
        let path = |ending| store.path(gpu, variant, ending);
        match trend(&stored, &path("lock.toml"), &path("profile.json")) {
            Ok(found) => baselines.push(found),
            Err(cause) => findings.push(Finding::deny(
                Code::Tampered,
                variant,
                format!("{gpu}: there is no valid history: {cause}"),
                format!(
                    "restore the lock from a commit: git log -- {}",
                    path("lock.toml").display()
                ),
            )),
        }
    }
    if baselines.is_empty() && findings.is_empty() {
        findings.push(Finding::deny(
            Code::NewBaseline,
            variant,
            "nothing is locked yet, so it has no history",
            format!("sparsek-gate baseline --lock --reason '...' {variant}"),
        ));
    }
    Ok((baselines, findings))
}

/// The history of a stored baseline. Its two files are looked up in the commits of the repository
/// around them.
fn trend(stored: &Stored, lock_file: &Path, profile_file: &Path) -> Result<Trend, String> {
    let shown = lock_file.display();
    let text = stored.lock.as_deref();
    let text = text.ok_or_else(|| format!("{shown} is missing"))?;
    let lock = Lock::parse(text).map_err(|cause| format!("{shown}: {cause}"))?;
    let contradictions = lock.contradictions();
    if !contradictions.is_empty() {
        return Err(format!("{shown}: {}", contradictions.join("; ")));
    }
    let commits = commits(&git::versions(lock_file).unwrap_or_default());
    let versions = git::versions(profile_file);
    let past = versions.as_deref().unwrap_or_default().iter();
    let contents = past
        .map(|version| version.content.as_slice())
        .chain(stored.profile.as_deref());
    let by_hash: BTreeMap<String, &[u8]> = contents
        .map(|content| (sha256_hex(content), content))
        .collect();
    let absent = match &versions {
        Err(cause) => cause.as_str(),
        Ok(_) if lock_file.parent().is_some_and(git::is_shallow) => {
            "no commit in this shallow clone contains the profile: git fetch --unshallow"
        }
        Ok(_) => "no commit here contains the profile",
    };
    let mut acceptances = Vec::new();
    let mut profiles = Vec::new();
    for entry in &lock.ledger {
        let profile = by_hash
            .get(&entry.profile_sha256)
            .ok_or_else(|| absent.to_owned())
            .and_then(|content| Profile::parse(content));
        acceptances.push(Acceptance {
            entry: entry.clone(),
            commit: commits.get(&entry.hash()).cloned(),
            missing: profile.as_ref().err().cloned(),
        });
        profiles.push(profile.ok());
    }
    Ok(Trend {
        variant: stored.variant.clone(),
        gpu: stored.gpu.clone(),
        tier: Tier::of_folder(&stored.gpu),
        acceptances,
        metrics: courses(&profiles),
    })
}

/// The oldest commit with each entry of a ledger, by the entry's hash.
fn commits(newest_first: &[Version]) -> BTreeMap<String, String> {
    let mut commits = BTreeMap::new();
    for version in newest_first.iter().rev() {
        let Ok(lock) = Lock::parse(&String::from_utf8_lossy(&version.content)) else {
            continue;
        };
        for entry in &lock.ledger {
            commits
                .entry(entry.hash())
                .or_insert_with(|| version.commit.clone());
        }
    }
    commits
}

/// One course for each kernel, alias, counter and unit, over all acceptances.
fn courses(profiles: &[Option<Profile>]) -> Vec<Course> {
    type Key = (String, String, String, Option<String>);
    let mut found: BTreeMap<Key, Vec<Option<Point>>> = BTreeMap::new();
    for (at, profile) in profiles.iter().enumerate() {
        let Some(profile) = profile else { continue };
        for kernel in &profile.kernels {
            for (alias, series) in &kernel.metrics {
                let known = profile.identity.metrics.get(alias);
                let (Some(known), Some(value)) = (known, series.value) else {
                    continue;
                };
                let label = profile.label(kernel).to_owned();
                let key = (
                    label,
                    alias.clone(),
                    known.counter.clone(),
                    known.unit.clone(),
                );
                let values = found
                    .entry(key)
                    .or_insert_with(|| vec![None; profiles.len()]);
                let noise = profile.samples(kernel, alias).and_then(|samples| {
                    let noise = samples.noise();
                    noise
                        .between
                        .into_iter()
                        .chain(noise.machines)
                        .reduce(f64::max)
                });
                values[at] = Some(Point { value, noise });
            }
        }
    }
    let courses = found.into_iter();
    let courses = courses.map(|((kernel, metric, counter, unit), values)| Course {
        kernel,
        metric,
        counter,
        unit,
        values,
    });
    courses.collect()
}

/// The one variant of a name. It may be locked and no longer configured.
///
/// # Errors
/// [`Error::Usage`] where no variant or several have the name; [`Error::Io`].
pub fn find_variant(config: &Config, store: &Store, name: &str) -> Result<VariantId, Error> {
    let configured = config.variants().map(|variant| variant.id.clone());
    let mut known: Vec<VariantId> = configured.chain(store.variants()?).collect();
    known.sort();
    known.dedup();
    let names: Vec<String> = known.iter().map(VariantId::to_string).collect();
    let is_meant = |id: &&VariantId| id.to_string() == name || id.variant == name;
    let meant: Vec<&VariantId> = known.iter().filter(is_meant).collect();
    match meant.as_slice() {
        [id] => Ok((*id).clone()),
        [] => Err(Error::Usage(format!(
            "no variant is called `{name}`: {}",
            suggest(name, &names)
        ))),
        several => {
            let several: Vec<String> = several.iter().map(|id| format!("`{id}`")).collect();
            Err(Error::Usage(format!(
                "`{name}` is the name of several variants: {}",
                several.join(", ")
            )))
        }
    }
}

/// Keeps the metrics that were `asked` for, or those that are judged: the others only explain.
///
/// # Errors
/// [`Error::Usage`] where no accepted profile has a metric that was asked for.
pub fn keep_metrics(
    config: &Config,
    variant: &VariantId,
    asked: &[String],
    baselines: &mut [Trend],
) -> Result<(), Error> {
    let all = baselines.iter().flat_map(|baseline| &baseline.metrics);
    let mut known: Vec<&str> = all.map(|course| course.metric.as_str()).collect();
    known.sort_unstable();
    known.dedup();
    // Where no profile is available, each acceptance says so.
    let mut unknown = asked.iter().filter(|name| !known.contains(&name.as_str()));
    if let (false, Some(name)) = (known.is_empty(), unknown.next()) {
        return Err(Error::Usage(format!(
            "`--metric {name}`: no available accepted profile of {variant} contains it: {}",
            suggest(name, &known)
        )));
    }
    let configured = config.variants().find(|known| known.id == *variant);
    for baseline in baselines {
        let judged = configured.map(|variant| match baseline.tier {
            Tier::Static => &variant.static_metrics,
            _ => &variant.metrics,
        });
        let is_judged = |alias: &str| {
            judged.is_none_or(|metrics| {
                let mut metrics = metrics.iter();
                metrics.any(|metric| metric.alias == alias && metric.level != Level::Record)
            })
        };
        baseline.metrics.retain(|course| match asked {
            [] => is_judged(&course.metric),
            asked => asked.contains(&course.metric),
        });
    }
    Ok(())
}
