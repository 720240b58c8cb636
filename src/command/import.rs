//! `sparsek-gate import`.

use super::answer::{answer, named, unreadable};
use super::judging::check_from;
use super::select::load;
use super::stored::recording_of;
use std::path::{Path, PathBuf};

use crate::capture::{self, Format};
use crate::cli::ImportArgs;
use crate::config::{Config, Selection, Variant};
use crate::disk;
use crate::evidence::{conditions_unknown, fewer_imported, incomplete, selects_none, unpinned};
use crate::files::{
    PROFILE_FILE, create_work_folder, most, read_regular_up_to, set_aside, settle, variant_folder,
    write_atomically,
};
use crate::finding::{Code, Error, ExitCode, Finding, WarnReason, with_files};
use crate::hash::sha256_hex;
use crate::metric::Role;
use crate::process::{self, Access};
use crate::profile::import::{importable, is_measured, other_program, profile_of, select};
use crate::profile::{Conditions, FileHash, Profile, norm_text};
use crate::profiler::judge_printed;
use crate::report::say;
use crate::terms::{Phase, first};
use ncu_report::{Recording, agree};

pub(super) fn run(config: &Path, arguments: &ImportArgs) -> Result<ExitCode, Error> {
    let selection = Selection {
        names: vec![arguments.variant.clone()],
        experimental: true,
    };
    let selected = load(config, &selection, &[])?;
    let [variant] = selected.variants.as_slice() else {
        return Err(Error::Usage(format!(
            "`{}` names several variants; name one as suite/variant",
            arguments.variant
        )));
    };
    let files = read(&selected.config, variant, &arguments.files)?;
    let stated = Conditions {
        clock_control: arguments.clock_control,
        cache_control: arguments.cache_control,
        replay_mode: arguments.replay_mode,
        graph_profiling: arguments.graph_profiling,
    };
    let (recordings, contents): (Vec<_>, Vec<_>) = files.into_iter().unzip();
    if let Some((at, shown)) = other_program(&recordings) {
        let [first, other] = [&arguments.files[0], &arguments.files[at]];
        let first = first.display();
        let cause = format!(
            "it is not of the program of {first}: {shown}; leave it out: all must be of one build"
        );
        return Err(Error::input(other, cause));
    }
    let profile = profile_of(variant, &recordings, &stated).map_err(|error| {
        Error::input(
            arguments.files.first().cloned().unwrap_or_default(),
            error.to_string(),
        )
    })?;
    let output = selected.profiles(arguments.output.as_deref())?;
    if arguments.output.is_none() {
        create_work_folder(&selected.config.work)?;
    }
    disk::create_dir_all(&output).map_err(Error::io("create", &output))?;
    let _alone = process::lock_folder(&output, Access::Writes, say)?;
    if is_measured(&output, &variant.id) {
        return Err(Error::Usage(format!(
            "{} contains a measured profile, which the import would delete; name another folder: --output DIR",
            variant_folder(&output, &variant.id).display()
        )));
    }
    let names = first(profile.kernels.iter().map(|one| one.name.clone()), 5);
    let compiled = Profile::recorded_static(&output, &variant.id);
    let compiled = compiled
        .ok()
        .flatten()
        .filter(|code| !code.kernels.is_empty());
    let has = |profile: &Profile, name: &str| profile.kernels.iter().any(|one| one.name == name);
    if compiled.is_some_and(|code| !profile.kernels.iter().any(|one| has(&code, &one.name))) {
        return Err(Error::Usage(format!(
            "the files have launches of {names}, and the compiled code of {} has no kernel of that name; name the variant that has it",
            variant.id
        )));
    }
    let expects = |one: &Variant| one.expect.iter().any(|name| has(&profile, name));
    let mut others = selected.config.variants();
    let other =
        others.find(|other| expects(other) && !expects(variant) && !variant.expect.is_empty());
    if let Some(Variant { id, .. }) = other {
        return Err(Error::Usage(format!(
            "the files have launches of {names}, which {id} expects and {} does not; name the variant that has them: --variant {id}",
            variant.id
        )));
    }
    if !process::may_publish() {
        return Err(Error::Interrupted);
    }
    let folder = set_aside(&output, &variant.id)?;
    for ((_, file), bytes) in recordings.iter().zip(&contents) {
        let path = folder.join(&file.file);
        write_atomically(&path, bytes).map_err(Error::io("write", &path))?;
    }
    profile.write(&folder.join(PROFILE_FILE))?;
    settle(&output, &variant.id)?;
    let gaps = recordings
        .iter()
        .filter_map(|(recording, _)| recording.gap.as_ref());
    let gaps = gaps.map(|gap| {
        let next = "import the whole page or the report, unless you left launches out yourself";
        Finding::deny(Code::CaptureUnreadable, &variant.id, gap, next)
            .warn_for(WarnReason::PartOfReport)
    });
    let mut findings = incomplete(variant, &profile);
    findings.extend(gaps);
    findings.extend(fewer_imported(variant, &profile));
    findings.extend(conditions_unknown(&profile));
    // Its counters may have other names than those of the configuration.
    let arch = selected
        .config
        .toolchain
        .arch_pin(&profile.identity.compute_capability);
    findings.extend(unpinned(&variant.id, "recorded", arch.as_slice()));
    answer(
        arguments.format,
        named("profile", &profile),
        &findings,
        || {
            let norm = norm_text(&profile).unwrap_or_else(|| "a value is missing\n".to_owned());
            let judge = match conditions_unknown(&profile) {
                Some(_) => String::new(),
                None => format!(
                    "judge it: {}\n",
                    check_from(&output, &variant.id.to_string())
                ),
            };
            with_files(format!(
                "imported {} launches of {names} on {} to {}\n{norm}{judge}",
                profile.launch_count(Phase::Timing),
                profile.identity.gpu,
                folder.join(PROFILE_FILE).display(),
            ))
        },
    )
}

/// What was recorded, in a file of this name and hash; and the file's content.
type File = ((Recording, FileHash), Vec<u8>);

/// Whether two recordings have the same launches of the same process: one may be a page of the other.
fn is_of_same_process(one: &Recording, other: &Recording) -> bool {
    const DURATION: &str = Role::Duration.counter();
    let process = |of: &Recording| {
        let timed = (of.launches.iter()).find(|launch| launch.metrics.get(DURATION).is_some());
        timed.and_then(|launch| launch.process_id)
    };
    let is_page = |report, page| agree(report, page, &[DURATION]).is_ok();
    let same = process(one).is_some_and(|it| process(other) == Some(it));
    one == other || same && (is_page(one, other) || is_page(other, one))
}

/// Reads the files, with the launches that the variant selects.
fn read(config: &Config, variant: &Variant, paths: &[PathBuf]) -> Result<Vec<File>, Error> {
    let mut files: Vec<File> = Vec::new();
    for (path, number) in paths.iter().zip(1..) {
        if disk::is_dir(path) {
            let judge = check_from(&recording_of(path), &variant.id.to_string());
            let folder = path.display();
            return Err(Error::Usage(format!(
                "{folder}: a folder is not imported\n  next: name its files: {folder}/*.ncu-rep; of profiles of this tool: {judge}"
            )));
        }
        let (format, mut recording) =
            capture::read_file(path).map_err(|error| unreadable(path, error))?;
        let bytes = read_regular_up_to(path, most::BINARY).map_err(Error::io("read", path))?;
        if let Some(cause) = judge_printed(&recording.messages) {
            let path = path.clone();
            return Err(Error::input(path, cause));
        }
        let Some(ending) = importable(format, &bytes) else {
            return Err(Error::Usage(format!(
                "{} contains what only this tool measures, which cannot be imported; measure it: sparsek-gate profile",
                path.display()
            )));
        };
        select(variant, &mut recording).map_err(|names| {
            let names: Vec<String> = names.into_iter().collect();
            let expects = |one: &&Variant| one.expect.iter().any(|name| names.contains(name));
            let other = config.variants().find(expects);
            let next = other.map_or_else(String::new, |Variant { id, .. }| {
                format!("; {id} expects that: --variant {id}")
            });
            let why = selects_none(variant, "its kernels", &names) + &next;
            Error::input(path.clone(), why)
        })?;
        let mut processes = recording.launches.iter().map(|launch| launch.process_id);
        let process = processes.next();
        if format == Format::Csv && processes.any(|it| Some(it) != process) {
            let cause = "it has launches of several processes: make one file of each";
            return Err(Error::input(path, cause));
        }
        let stem = match paths.len() {
            1 => "imported".to_owned(),
            _ => format!("imported-{number}"),
        };
        let file = FileHash {
            file: format!("{stem}.{ending}"),
            sha256: sha256_hex(&bytes),
        };
        let is_again = |((other, _), _): &File| is_of_same_process(other, &recording);
        if let Some(at) = files.iter().position(is_again) {
            return Err(Error::Usage(format!(
                "{} and {} are of the same process, and each file must be of one of its own: leave one out",
                paths[at].display(),
                path.display()
            )));
        }
        files.push(((recording, file), bytes));
    }
    Ok(files)
}
