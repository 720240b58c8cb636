//! Whether a profile is what its captures contain.

use std::collections::BTreeSet;
use std::path::Path;

use super::capture_index::CaptureIndex;
use crate::capture::Format;
use crate::config::Variant;
use crate::disk;
use crate::files::{LFS_POINTER, read_regular};
use crate::finding::{Code, Error, Finding};
use crate::hash::sha256_file;
use crate::profile::import::conditions_of;
use crate::profile::{
    CaptureRecord, Derived, FileHash, Identity, KernelProfile, Profile, ProfileOrigin, Source,
    derive,
};
use crate::terms::{Phase, Tier};
use crate::verify::Proof;
use ncu_report::Recording;

/// Derives a profile's kernels from its captures again, and reports where they differ from it.
pub fn rederive(variant: &Variant, profile: &Profile, captures: &CaptureIndex) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut recordings = Vec::new();
    for record in &profile.provenance.captures {
        let mut read = |file| {
            let unread = |(code, message)| findings.push(Finding::of(code, &variant.id, message));
            read(profile, captures, file).map_err(unread).ok()
        };
        let report = read(&record.report);
        let csv = record.csv.as_ref().and_then(read);
        recordings.extend(report.map(|report| (record, report, csv)));
    }
    let mut checked = profile.provenance.captures.iter().filter(|it| it.checked);
    findings.extend(checked.find_map(|record| unproven(variant, captures, record)));
    if !findings.is_empty() {
        return findings;
    }
    let altered = |what| Finding::of(Code::ProfileAltered, &variant.id, what);
    if let Some(what) = not_this_tools(profile, &recordings) {
        return vec![altered(what)];
    }
    let sources = recordings.iter().map(|(record, (_, report), csv)| Source {
        report,
        csv: csv.as_ref().map(|(_, csv)| csv),
        phase: record.phase,
        gpu_uuid: record.gpu_uuid.as_deref(),
    });
    let sources: Vec<Source<'_>> = sources.collect();
    let mut differences: Vec<String> = sources
        .iter()
        .filter_map(|source| other_conditions(&profile.identity, source.report))
        .collect();
    differences.extend(other_numbers(variant, profile, &sources));
    differences.into_iter().map(altered).collect()
}

/// How the numbers that the captures contain differ from the profile's.
fn other_numbers(variant: &Variant, profile: &Profile, sources: &[Source<'_>]) -> Option<String> {
    let counters = profile
        .identity
        .metrics
        .iter()
        .map(|(alias, metric)| (alias.clone(), (metric.counter.clone(), metric.phase)))
        .collect();
    match derive(&counters, sources) {
        Err(error) => Some(format!("no profile can be made of its captures: {error}")),
        Ok(mut derived) => {
            if profile.provenance.origin == ProfileOrigin::Imported {
                leave_out(variant, profile, &mut derived);
            }
            difference(profile, &derived)
                .map(|what| format!("the profile differs from its captures: {what}"))
        }
    }
}

/// Leaves out what an import leaves out: kernels that the variant does not select. Profiles that were
/// imported before have them.
fn leave_out(variant: &Variant, profile: &Profile, derived: &mut Derived) {
    let filter = variant.kernel_filter();
    let has = |name: &str| profile.kernels.iter().any(|kernel| kernel.name == name);
    derived
        .kernels
        .retain(|kernel| filter.matches(&kernel.name) || has(&kernel.name));
}

/// A capture as it was read.
type Capture = (Format, Recording);

/// Reads a capture that a profile names. `Err` where it is missing or cannot be read.
fn read(
    profile: &Profile,
    captures: &CaptureIndex,
    file: &FileHash,
) -> Result<Capture, (Code, String)> {
    let (name, sha256) = (&file.file, &file.sha256);
    let mut named = captures.named(name, &profile.variant);
    Err(match captures.read(file) {
        Some(Ok(found)) => return Ok(found),
        Some(Err(error)) => (Code::CaptureUnreadable, error.to_string()),
        None if named.clone().any(is_pointer) => (
            Code::CaptureMissing,
            format!("the capture `{name}` is a pointer of Git LFS to the file: git lfs pull"),
        ),
        None if named.any(|path| is_other(profile, name, path)) => (
            Code::ProfileAltered,
            format!(
                "the capture `{name}` beside the profile is not the one that the profile names (sha256 {sha256})"
            ),
        ),
        None => (
            Code::CaptureMissing,
            format!("the capture `{name}` (sha256 {sha256}) that the profile names is missing"),
        ),
    })
}

/// Whether Git LFS put a pointer in the place of a file.
fn is_pointer(path: &Path) -> bool {
    read_regular(path).is_ok_and(|bytes| bytes.starts_with(LFS_POINTER))
}

/// Whether a file has the name of a capture, and is none of the profile's of that name.
fn is_other(profile: &Profile, name: &str, path: &Path) -> bool {
    let captures = profile.provenance.captures.iter();
    let files = captures.flat_map(|one| std::iter::once(&one.report).chain(&one.csv));
    let mut own = files.filter(|file| file.file == name);
    sha256_file(path).is_ok_and(|found| !own.any(|own| own.sha256 == found))
}

/// That a process was correct by the profile, and not by the file that it wrote beside its capture.
fn unproven(variant: &Variant, captures: &CaptureIndex, record: &CaptureRecord) -> Option<Finding> {
    let mut places = captures.named(&record.report.file, &variant.id);
    let path = places.find_map(|capture| {
        let path = capture.with_extension("result.json");
        (!matches!(Proof::read(&path, true), Proof::Correct)).then_some(path)
    })?;
    let shown = path.file_name()?.display();
    let (code, why) = match Error::if_denied(&path) {
        Err(error) => return Some(Finding::unreadable(&variant.id, &error.to_string())),
        Ok(()) if disk::is_there(&path) => (Code::ProfileAltered, "beside it does not"),
        Ok(()) => (Code::CaptureMissing, "is not beside it"),
    };
    let message = format!("the profile says that its process was correct, and `{shown}` {why}");
    Some(Finding::of(code, &variant.id, message))
}

/// Why the captures cannot be those of this tool: one report with its CSV for each process, none twice.
fn not_this_tools(
    profile: &Profile,
    recordings: &[(&CaptureRecord, Capture, Option<Capture>)],
) -> Option<String> {
    let reports: BTreeSet<&str> = profile
        .provenance
        .captures
        .iter()
        .map(|record| record.report.sha256.as_str())
        .collect();
    if profile.provenance.origin != ProfileOrigin::Measured {
        return (reports.len() != recordings.len()).then(|| {
            format!(
                "it names {} different reports for {} captures",
                reports.len(),
                recordings.len()
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
        || reports.len() != recordings.len()
        || of_phase(Phase::Timing) + of_phase(Phase::Counting) != recordings.len()
    {
        return Some(format!(
            "it names {} different reports, {} of the timing phase, for {processes} profiler processes",
            reports.len(),
            of_phase(Phase::Timing)
        ));
    }
    let tier = profile.identity.tier;
    let whole = |(record, (format, _), csv): &(&CaptureRecord, Capture, Option<Capture>)| {
        let tier = match record.phase {
            Some(Phase::Timing) if profile.provenance.as_it_runs => Tier::KernelTimes,
            _ => tier,
        };
        let of_tier = format.tier() == tier && *format != Format::Csv;
        of_tier && csv.is_some() == (tier == Tier::Counters)
    };
    (!recordings.iter().all(whole)).then(|| match tier {
        Tier::Counters => {
            "a measured profile has a report file and its CSV for each process".to_owned()
        }
        lower => format!("a profile of {lower} has one file for each process"),
    })
}

/// A condition that the report's own command line contradicts.
fn other_conditions(identity: &Identity, report: &Recording) -> Option<String> {
    let recorded = conditions_of(report).named();
    recorded
        .into_iter()
        .zip(identity.conditions.named())
        .find(|((_, recorded), (_, stated))| recorded.is_some() && recorded != stated)
        .map(|((what, recorded), (_, stated))| {
            format!(
                "{what} was {} by the report's own command line, and the profile says {}",
                recorded.unwrap_or("unknown"),
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
        let plain = |kernel: &KernelProfile| KernelProfile {
            // Profiles of older versions do not have it.
            dynamic_shared_bytes: match stated.dynamic_shared_bytes.is_empty() {
                true => Vec::new(),
                false => kernel.dynamic_shared_bytes.clone(),
            },
            ..kernel.clone()
        };
        let (stated, found) = (&plain(stated), &plain(found));
        if stated == found {
            continue;
        }
        let metric = found
            .metrics
            .iter()
            .find(|(alias, series)| stated.metrics.get(*alias) != Some(series));
        return Some(match metric {
            Some((alias, _)) => format!("`{alias}` of {} has other samples", found.name),
            None => format!(
                "the kernel `{}` has other names, grid, block or dynamic shared memory",
                found.name
            ),
        });
    }
    None
}
