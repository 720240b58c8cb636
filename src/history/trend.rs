//! The trend of a stored baseline: each acceptance with its values.

use std::collections::BTreeMap;
use std::path::Path;

use super::past::PastProfile;
use crate::baseline::{EffectEntry, Lock, Store, Stored, parse_effects};
use crate::finding::{Code, Error, Finding};
use crate::git::{self, Version};
use crate::hash::sha256_hex;
use crate::profile::{Acceptance, Course, EffectCourse, LevelChange, Point, Trend};
use crate::statistics::median;
use crate::terms::{Tier, VariantId};
use crate::verdict::change_points;

/// The chance that the course of a metric whose level never changed shows a change.
const FALSE_ALARMS: f64 = 0.01;

/// The history of every baseline of a variant, and findings on those that have none.
///
/// # Errors
/// [`Error::Io`].
pub fn trends(store: &Store, variant: &VariantId) -> Result<(Vec<Trend>, Vec<Finding>), Error> {
    let mut baselines = Vec::new();
    let mut findings = Vec::new();
    for stored in store.all_of(variant)? {
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

/// The history of a stored baseline. `lock_file` and `profile_file` are looked up in the commits of
/// the repository around them.
///
/// # Errors
/// Says what is wrong with the lock.
pub fn trend(stored: &Stored, lock_file: &Path, profile_file: &Path) -> Result<Trend, String> {
    let text = stored
        .lock
        .as_deref()
        .ok_or_else(|| format!("{} is missing", lock_file.display()))?;
    let lock = Lock::parse(text).map_err(|cause| format!("{}: {cause}", lock_file.display()))?;
    let contradictions = lock.contradictions();
    if !contradictions.is_empty() {
        return Err(format!(
            "{}: {}",
            lock_file.display(),
            contradictions.join("; ")
        ));
    }
    let effects = stored.effects.as_deref().unwrap_or_default();
    let effects = parse_effects(effects).map_err(|cause| format!("its effects.jsonl: {cause}"))?;
    let locks = git::versions(lock_file);
    let profiles = git::versions(profile_file);
    let commits = commits(locks.as_deref().unwrap_or_default());
    let mut by_hash: BTreeMap<String, &[u8]> = BTreeMap::new();
    let past = profiles.as_deref().unwrap_or_default();
    for content in past
        .iter()
        .map(|version| version.content.as_slice())
        .chain(stored.profile.as_deref())
    {
        by_hash.insert(sha256_hex(content), content);
    }
    let absent = profiles
        .as_ref()
        .map_or_else(String::clone, |_| absent(lock_file));
    let mut acceptances = Vec::new();
    let mut read = Vec::new();
    for entry in &lock.ledger {
        let (profile, missing) = match by_hash.get(&entry.profile_sha256) {
            None => (None, Some(absent.clone())),
            Some(content) => match PastProfile::parse(content) {
                Ok(profile) => (Some(profile), None),
                Err(cause) => (None, Some(cause)),
            },
        };
        acceptances.push(Acceptance {
            time: entry.time.clone(),
            who: entry.who.clone(),
            reason: entry.reason.clone(),
            commit: commits.get(&entry.hash()).cloned(),
            profile_sha256: entry.profile_sha256.clone(),
            norm_sha256: entry.norm_sha256.clone(),
            missing,
            note: profile.as_ref().and_then(|profile| profile.note.clone()),
        });
        read.push(profile);
    }
    Ok(Trend {
        variant: stored.variant.clone(),
        gpu: stored.gpu.clone(),
        tier: Tier::of_folder(&stored.gpu),
        acceptances,
        metrics: courses(&read),
        effects: effect_courses(&effects),
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

fn absent(file: &Path) -> String {
    if file.parent().is_some_and(git::is_shallow) {
        "no commit in this shallow clone contains the profile: git fetch --unshallow".to_owned()
    } else {
        "no commit here contains the profile".to_owned()
    }
}

/// One course a kernel, alias, counter and unit, over all acceptances.
fn courses(profiles: &[Option<PastProfile>]) -> Vec<Course> {
    type Key = (String, String, String, Option<String>);
    let mut found: BTreeMap<Key, Vec<Option<Point>>> = BTreeMap::new();
    for (at, profile) in profiles.iter().enumerate() {
        for (kernel, series) in profile.iter().flat_map(PastProfile::series) {
            let Some(value) = series.value.filter(|value| value.is_finite()) else {
                continue;
            };
            let key = (
                kernel.to_owned(),
                series.alias.clone(),
                series.counter.clone(),
                series.unit.clone(),
            );
            let values = found
                .entry(key)
                .or_insert_with(|| vec![None; profiles.len()]);
            values[at] = Some(Point {
                value,
                noise: series.noise,
            });
        }
    }
    found
        .into_iter()
        .map(|((kernel, metric, counter, unit), values)| Course {
            kernel,
            metric,
            counter,
            unit,
            changes: changes(&values),
            values,
        })
        .collect()
}

/// The recorded effects on each metric of each kernel.
fn effect_courses(entries: &[EffectEntry]) -> Vec<EffectCourse> {
    type Key<'a> = (&'a str, &'a str, bool);
    let mut found: BTreeMap<Key<'_>, (Vec<f64>, Vec<String>)> = BTreeMap::new();
    for entry in entries {
        for one in &entry.effects {
            let key = (one.kernel.as_str(), one.metric.as_str(), one.relative);
            let (effects, commits) = found.entry(key).or_default();
            effects.push(one.effect);
            commits.push(entry.commit.clone().unwrap_or_else(|| entry.time.clone()));
        }
    }
    let courses = found.into_iter();
    let courses = courses.map(|((kernel, metric, relative), (effects, commits))| {
        let shown = |size: f64| {
            if relative {
                size.exp_m1() * 100.0
            } else {
                size
            }
        };
        EffectCourse {
            kernel: kernel.to_owned(),
            metric: metric.to_owned(),
            relative,
            total: shown(effects.iter().sum()),
            changes: change_points(&effects, FALSE_ALARMS),
            effects: effects.into_iter().map(shown).collect(),
            commits,
        }
    });
    courses.collect()
}

/// Where the level of accepted values changed. What is not known is left out.
fn changes(values: &[Option<Point>]) -> Vec<LevelChange> {
    let (places, known): (Vec<usize>, Vec<f64>) = values
        .iter()
        .enumerate()
        .filter_map(|(at, point)| Some((at, (*point)?.value)))
        .unzip();
    let starts = change_points(&known, FALSE_ALARMS);
    let level = |from: usize, to: usize| median(&known[from..to]);
    starts
        .iter()
        .enumerate()
        .filter_map(|(index, start)| {
            let before = index.checked_sub(1).map_or(0, |index| starts[index]);
            let end = starts.get(index + 1).copied().unwrap_or(known.len());
            Some(LevelChange {
                at: places[*start],
                before: level(before, *start)?,
                after: level(*start, end)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_changes_with_an_acceptance_and_a_gap_is_no_value() {
        let point = |value| Some(Point { value, noise: None });
        let mut values = vec![point(270.0); 7];
        values.extend([None, None]);
        values.extend(vec![point(280.0); 6]);
        let found = changes(&values);
        let expected = LevelChange {
            at: 9,
            before: 270.0,
            after: 280.0,
        };
        assert_eq!(found, [expected]);
        assert_eq!(changes(&values[..11]), []);
    }
}
