//! Whether a stored baseline is what was locked, and what was locked is what was measured.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::lock::Lock;
use super::signature::unsigned;
use super::store::Stored;
use crate::build::stated_flags;
use crate::capture::{self, Format};
use crate::config::{Config, Variant};
use crate::finding::{Code, Error, Finding};
use crate::hash::{sha256_file, sha256_hex};
use crate::profile::import::conditions_of;
use crate::profile::{
    Derived, Hotspots, Identity, KernelProfile, Profile, ProfileOrigin, Series, Source, derive,
    norm_text,
};
use crate::terms::{Phase, Tier};
use ncu_report::Recording;

/// A baseline whose lock holds.
#[derive(Clone, Debug)]
pub struct Trusted {
    /// The locked profile.
    pub profile: Profile,
    /// Its lock.
    pub lock: Lock,
}

/// Checks a stored baseline against its lock, and an immutable variant's files against both.
/// Every contradiction is a finding; the profile is given only where the locked numbers hold.
pub fn trust(
    config: &Config,
    variant: &Variant,
    stored: &Stored,
) -> (Option<Trusted>, Vec<Finding>) {
    let (trusted, mut findings) = consistent(config, stored);
    if let Some(Ok(lock)) = stored.lock.as_deref().map(Lock::parse) {
        findings.extend(immutable_changes(config, variant, &lock));
    }
    (trusted, findings)
}

/// The same of what the files say by themselves and their signature, of a variant that the
/// configuration need not hold.
pub fn consistent(config: &Config, stored: &Stored) -> (Option<Trusted>, Vec<Finding>) {
    let mut findings = Vec::new();
    let id = &stored.variant;
    let name = |ending: &str| format!("{}/{}/{}.{ending}", stored.gpu, id.suite, id.variant);
    let restore = format!(
        "restore {} from version control, or lock anew: sparsek-gate baseline --lock --reason '...' {id}",
        config.baselines.join(&stored.gpu).join(&id.suite).display(),
    );
    let mut tampered = |message: String| {
        findings.push(Finding::deny(Code::Tampered, id, message, restore.clone()));
    };
    let lock = match stored.lock.as_deref().map(Lock::parse) {
        None => {
            tampered(format!("{} is missing", name("lock.toml")));
            return (None, findings);
        }
        Some(Err(cause)) => {
            tampered(format!("{} cannot be read: {cause}", name("lock.toml")));
            return (None, findings);
        }
        Some(Ok(lock)) => lock,
    };
    if lock.variant != *id {
        tampered(format!(
            "{} is the lock of {}",
            name("lock.toml"),
            lock.variant
        ));
    }
    for contradiction in lock.contradictions() {
        tampered(format!("{}: {contradiction}", name("lock.toml")));
    }
    let Some(entry) = lock.ledger.last() else {
        return (None, findings);
    };
    for (ending, content, locked) in [
        ("norm.txt", &stored.norm, &entry.norm_sha256),
        ("profile.json", &stored.profile, &entry.profile_sha256),
    ] {
        match content {
            None => tampered(format!("{} is missing", name(ending))),
            Some(bytes) if sha256_hex(bytes) != *locked => tampered(format!(
                "{} is not what was locked on {}: its sha256 is {}, the lock says {locked}",
                name(ending),
                entry.time,
                sha256_hex(bytes),
            )),
            Some(_) => {}
        }
    }
    let expected = format!("{}  {}.norm.txt\n", entry.norm_sha256, id.variant);
    match &stored.norm_sha256 {
        None => tampered(format!("{} is missing", name("norm.txt.sha256"))),
        Some(text) if *text != expected => tampered(format!(
            "{} does not hold the locked hash",
            name("norm.txt.sha256")
        )),
        Some(_) => {}
    }
    let profile = match stored.profile.as_deref().map(Profile::parse) {
        Some(Ok(profile)) => profile,
        Some(Err(cause)) => {
            tampered(format!("{}: {cause}", name("profile.json")));
            return (None, findings);
        }
        None => return (None, findings),
    };
    if profile.variant != *id {
        tampered(format!(
            "{} is the profile of {}",
            name("profile.json"),
            profile.variant
        ));
    }
    if profile.identity.folder() != stored.gpu {
        tampered(format!(
            "{} was measured on {}, by {}",
            name("profile.json"),
            profile.identity.gpu,
            profile.identity.tier
        ));
    }
    for (kernel, alias) in misstated(&profile) {
        tampered(format!(
            "{} states another value of `{alias}` of {kernel} than its samples come to",
            name("profile.json")
        ));
    }
    if norm_text(&profile).map(String::into_bytes) != stored.norm {
        tampered(format!(
            "{} does not hold the values of {}",
            name("norm.txt"),
            name("profile.json")
        ));
    }
    findings.extend(unsigned(&config.trust, stored));
    let holds = findings.is_empty();
    (holds.then_some(Trusted { profile, lock }), findings)
}

/// Metrics whose stated value or spread is not that of their samples: people read the one, and the
/// other is judged.
fn misstated(profile: &Profile) -> Vec<(&str, &str)> {
    let near = |stated: Option<f64>, is: Option<f64>| match (stated, is) {
        (Some(stated), Some(is)) => (stated - is).abs() <= 1e-9 * stated.abs().max(is.abs()),
        (stated, is) => stated == is,
    };
    let mut found = Vec::new();
    for kernel in &profile.kernels {
        for (alias, series) in &kernel.metrics {
            let phase = profile
                .identity
                .metrics
                .get(alias)
                .map(|metric| metric.phase);
            let machines = phase.map_or_else(Vec::new, |phase| profile.machines(phase));
            let again = Series::new(series.samples.clone(), &machines);
            let same = near(series.value, again.value)
                && near(series.within, again.within)
                && near(series.between, again.between)
                && near(series.machines, again.machines);
            if !same {
                found.push((kernel.name.as_str(), alias.as_str()));
            }
        }
    }
    found
}

/// Changes of an immutable variant's files and flags since they were locked.
fn immutable_changes(config: &Config, variant: &Variant, lock: &Lock) -> Vec<Finding> {
    let change = |message: String| {
        Finding::deny(
            Code::ImmutableChanged,
            &variant.id,
            message,
            "an immutable reference stays as it was locked: undo the change, or make a new variant of it".to_owned(),
        )
    };
    let mut findings = Vec::new();
    match (lock.immutable, variant.immutable) {
        (true, false) => findings.push(change("the configuration no longer marks it immutable, its lock does".to_owned())),
        (false, true) => findings.push(change(
            "the configuration marks it immutable, its lock does not hold its sources: lock it again".to_owned(),
        )),
        _ => {}
    }
    if !lock.immutable {
        return findings;
    }
    for (path, locked) in &lock.sources {
        match sha256_file(&config.root.join(path)) {
            Ok(hash) if hash == *locked => {}
            Ok(hash) => findings.push(change(format!(
                "`{path}` changed since it was locked (sha256 {hash}, locked {locked})"
            ))),
            Err(error) => findings.push(change(format!("`{path}` cannot be read: {error}"))),
        }
    }
    let flags = stated_flags(&config.toolchain, variant);
    if flags != lock.flags {
        let only = |these: &[String], those: &[String]| -> String {
            let list: Vec<&str> = these
                .iter()
                .filter(|flag| !those.contains(flag))
                .map(String::as_str)
                .collect();
            if list.is_empty() {
                "nothing".to_owned()
            } else {
                list.join(" ")
            }
        };
        let (came, went) = (only(&flags, &lock.flags), only(&lock.flags, &flags));
        findings.push(change(if came == went {
            format!(
                "its flags stand in another order or number than was locked: {}, locked {}",
                flags.join(" "),
                lock.flags.join(" ")
            )
        } else {
            format!("its flags changed since they were locked: {came} came, {went} went")
        }));
    }
    findings
}

/// What the names of captures end in.
const ENDINGS: [&str; 4] = ["ncu-rep", "csv", "records", "times"];

/// Files of a folder by their sha256, to find captures wherever they were put.
#[derive(Debug, Default)]
pub struct CaptureIndex {
    by_hash: BTreeMap<String, PathBuf>,
    /// Names of those in the folder itself, where a profile's own captures lie.
    beside: BTreeSet<String>,
}

impl CaptureIndex {
    /// Hashes every report and CSV below a folder. One that cannot be read is as good as missing.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn of(folder: &Path) -> Result<CaptureIndex, Error> {
        let mut index = CaptureIndex::default();
        index.add(folder)?;
        let beside = index.by_hash.values().filter_map(|path| {
            let is_beside = path.parent() == Some(folder);
            is_beside.then(|| path.file_name()?.to_str().map(str::to_owned))?
        });
        index.beside = beside.collect();
        Ok(index)
    }

    /// Adds what is below another folder.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn add(&mut self, folder: &Path) -> Result<(), Error> {
        for entry in fs::read_dir(folder).map_err(Error::io("read", folder))? {
            let entry = entry.map_err(Error::io("read", folder))?;
            let path = entry.path();
            // Links to folders are not followed: they may lead in a circle.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.add(&path)?;
            } else if path
                .extension()
                .is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
                && let Ok(hash) = sha256_file(&path)
            {
                self.by_hash.insert(hash, path);
            }
        }
        Ok(())
    }
}

/// Derives a profile's kernels from its captures again, and says where they differ from it.
///
/// # Errors
/// [`Error::Io`].
pub fn rederive(
    variant: &Variant,
    profile: &Profile,
    captures: &CaptureIndex,
) -> Result<Vec<Finding>, Error> {
    let again = format!("profile it again: sparsek-gate profile {}", variant.id);
    let deny = |code, message: String| Finding::deny(code, &variant.id, message, again.clone());
    let mut findings = Vec::new();
    let mut read = |file: &crate::profile::FileHash| -> Result<Option<(Format, Recording)>, Error> {
        let Some(path) = captures.by_hash.get(&file.sha256) else {
            if captures.beside.contains(&file.file) {
                findings.push(deny(
                    Code::ProfileAltered,
                    format!(
                        "the capture `{}` beside it is not the one that the profile names (sha256 {})",
                        file.file, file.sha256
                    ),
                ));
                return Ok(None);
            }
            findings.push(deny(
                Code::CaptureMissing,
                format!(
                    "the capture `{}` (sha256 {}) that the profile names is not there",
                    file.file, file.sha256
                ),
            ));
            return Ok(None);
        };
        match capture::read_file(path) {
            Ok((format, recording)) => Ok(Some((format, recording))),
            Err(error) => {
                findings.push(deny(Code::CaptureUnreadable, error.to_string()));
                Ok(None)
            }
        }
    };
    let mut recordings = Vec::new();
    let mut formats = Vec::new();
    for record in &profile.provenance.captures {
        let report = read(&record.report)?;
        let csv = record.csv.as_ref().map(&mut read).transpose()?.flatten();
        formats.push((report.as_ref().map(|(format, _)| *format), csv.is_some()));
        recordings.push((
            record,
            report.map(|(_, report)| report),
            csv.map(|(_, csv)| csv),
        ));
    }
    if !findings.is_empty() {
        return Ok(findings);
    }
    if let Some(what) = not_this_tools(profile, &formats) {
        findings.push(deny(Code::ProfileAltered, what));
        return Ok(findings);
    }
    let sources: Vec<Source<'_>> = recordings
        .iter()
        .filter_map(|(record, report, csv)| {
            Some(Source {
                report: report.as_ref()?,
                csv: csv.as_ref(),
                phase: record.phase,
                gpu_uuid: record.gpu_uuid.as_deref(),
            })
        })
        .collect();
    for source in &sources {
        findings.extend(
            other_conditions(&profile.identity, source.report)
                .map(|what| deny(Code::ProfileAltered, what)),
        );
    }
    let counters = profile
        .identity
        .metrics
        .iter()
        .map(|(alias, metric)| (alias.clone(), (metric.counter.clone(), metric.phase)))
        .collect();
    match derive(&counters, &sources, profile.provenance.sources.keys()) {
        Err(error) => findings.push(deny(
            Code::ProfileAltered,
            format!("the captures make no profile: {error}"),
        )),
        Ok(derived) => findings.extend(difference(profile, &derived).map(|what| {
            deny(
                Code::ProfileAltered,
                format!("the profile is not what its captures hold: {what}"),
            )
        })),
    }
    Ok(findings)
}

/// Why the captures cannot be what this tool leaves: a report and its CSV a process, none twice.
fn not_this_tools(profile: &Profile, formats: &[(Option<Format>, bool)]) -> Option<String> {
    let reports: BTreeSet<&str> = profile
        .provenance
        .captures
        .iter()
        .map(|record| record.report.sha256.as_str())
        .collect();
    if profile.provenance.origin != ProfileOrigin::Measured {
        return (reports.len() != formats.len()).then(|| {
            format!(
                "it names {} different reports for {} captures",
                reports.len(),
                formats.len()
            )
        });
    }
    let of_phase = |phase: Phase| {
        let captures = &profile.provenance.captures;
        captures
            .iter()
            .filter(|record| record.phase == Some(phase))
            .count()
    };
    let processes = profile.provenance.processes as usize;
    if of_phase(Phase::Timing) != processes
        || reports.len() != formats.len()
        || of_phase(Phase::Timing) + of_phase(Phase::Counting) != formats.len()
    {
        return Some(format!(
            "it names {} different reports, {} of the timing phase, for {processes} profiler processes",
            reports.len(),
            of_phase(Phase::Timing)
        ));
    }
    let tier = profile.identity.tier;
    let whole = |(format, has_csv): &(Option<Format>, bool)| {
        let of_tier = format.is_some_and(|format| format.tier() == tier && format != Format::Csv);
        of_tier && *has_csv == (tier == Tier::Counters)
    };
    (!formats.iter().all(whole)).then(|| match tier {
        Tier::Counters => {
            "a measured profile has a report file and its CSV for each process".to_owned()
        }
        lower => format!("a profile of {lower} has one file of them for each process"),
    })
}

/// A condition that the report's own command line contradicts.
fn other_conditions(identity: &Identity, report: &Recording) -> Option<String> {
    let held = conditions_of(report).named();
    held.into_iter()
        .zip(identity.conditions.named())
        .find(|((_, held), (_, stated))| held.is_some() && held != stated)
        .map(|((what, held), (_, stated))| {
            format!(
                "{what} was {} by the report's own command line, and the profile says {}",
                held.unwrap_or("unknown"),
                stated.unwrap_or("unknown")
            )
        })
}

fn difference(profile: &Profile, derived: &Derived) -> Option<String> {
    if profile.identity.gpu != derived.gpu
        || profile.identity.compute_capability != derived.compute_capability
    {
        return Some(format!("they were taken on {}", derived.gpu));
    }
    if profile.identity.metrics != derived.metrics {
        return Some("the units differ".to_owned());
    }
    if profile.kernels.len() != derived.kernels.len() {
        return Some(format!(
            "{} kernels, not {}",
            derived.kernels.len(),
            profile.kernels.len()
        ));
    }
    for (stated, found) in profile.kernels.iter().zip(&derived.kernels) {
        // Naming instructions takes a disassembler, which the captures do not hold, and naming lines
        // the machine code, which a stripped copy lacks.
        let plain = |kernel: &KernelProfile| KernelProfile {
            hotspots: kernel
                .hotspots
                .as_ref()
                .filter(|_| !profile.provenance.stripped)
                .map(Hotspots::without_instructions),
            ..kernel.clone()
        };
        let (stated, found) = (&plain(stated), &plain(found));
        if stated == found {
            continue;
        }
        if stated.hotspots != found.hotspots {
            return Some(format!("{} has other hotspots", found.name));
        }
        let metric = found
            .metrics
            .iter()
            .find(|(alias, series)| stated.metrics.get(*alias) != Some(series));
        return Some(match metric {
            Some((alias, _)) => format!("`{alias}` of {} has other samples", found.name),
            None => format!("the kernel `{}` has other names, grid or block", found.name),
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_not_that_of_its_samples_is_found() {
        let path = "baselines/nvidia-h200/bsr_gemm/cp_async.profile.json";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let mut profile = Profile::parse(&fs::read(path).unwrap()).unwrap();
        assert_eq!(misstated(&profile), []);
        let series = profile.kernels[0].metrics.get_mut("duration").unwrap();
        series.value = series.value.map(|value| value * 0.95);
        assert_eq!(misstated(&profile), [("bsr_gemm_cp_async", "duration")]);
    }
}
