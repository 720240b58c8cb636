//! `sparsek-gate import`.

use super::answer::{answer, unreadable};
use super::select::load;
use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::capture;
use crate::cli::{ImportArgs, Selection};
use crate::config::Variant;
use crate::evidence::incomplete;
use crate::files::{
    PROFILE_FILE, create_work_folder, empty_variant_folder, variant_folder, write_atomically,
};
use crate::finding::{Error, ExitCode};
use crate::hash::sha256_hex;
use crate::profile::import::profile_of;
use crate::profile::{Conditions, FileHash, Profile, ProfileOrigin, norm_text};
use crate::terms::Phase;

#[derive(Serialize)]
struct Content {
    profile: Profile,
}

pub(super) fn run(config: &Path, arguments: &ImportArgs) -> Result<ExitCode, Error> {
    let selection = Selection {
        names: vec![arguments.variant.clone()],
        experimental: true,
    };
    let selected = load(config, &selection, None)?;
    let [variant] = selected.variants.as_slice() else {
        return Err(Error::Usage(format!(
            "`{}` names several variants; write suite/variant",
            arguments.variant
        )));
    };
    let input = |cause: String| Error::Input {
        path: arguments.file.clone(),
        cause,
    };
    let (format, recording) =
        capture::read_file(&arguments.file).map_err(|error| unreadable(&arguments.file, error))?;
    let bytes = fs::read(&arguments.file).map_err(Error::io("read", &arguments.file))?;
    let ending = match format {
        capture::Format::Report => "ncu-rep",
        capture::Format::Csv => "csv",
        capture::Format::KernelRecords | capture::Format::EventTimes => {
            return Err(Error::Usage(format!(
                "{} holds times that were taken without counters: a profile of them is measured, not imported",
                arguments.file.display()
            )));
        }
    };
    let file = FileHash {
        file: format!("imported.{ending}"),
        sha256: sha256_hex(&bytes),
    };
    let stated = Conditions {
        clock_control: arguments.clock_control,
        cache_control: arguments.cache_control,
        replay_mode: arguments.replay_mode,
        graph_profiling: arguments.graph_profiling,
    };
    let profile = profile_of(variant, &recording, &file, &stated)
        .map_err(|error| input(error.to_string()))?;
    let output = selected.profiles(arguments.output.as_deref())?;
    refuse_to_replace(&output, variant)?;
    if arguments.output.is_none() {
        create_work_folder(&selected.config.work)?;
    }
    let folder = empty_variant_folder(&output, &variant.id)?;
    let capture_path = folder.join(&file.file);
    write_atomically(&capture_path, &bytes).map_err(Error::io("write", &capture_path))?;
    let path = folder.join(PROFILE_FILE);
    write_atomically(&path, profile.to_json().as_bytes()).map_err(Error::io("write", &path))?;
    let findings = incomplete(variant, &profile);
    answer(
        arguments.format,
        &Content {
            profile: profile.clone(),
        },
        &findings,
        || {
            let norm = norm_text(&profile).unwrap_or_else(|| "a value is missing\n".to_owned());
            format!(
                "imported {} launches on {} to {}\n{norm}",
                profile.launch_count(Phase::Timing),
                profile.identity.gpu,
                path.display()
            )
        },
    )
}

/// What this tool measured must not be cleared away by an import.
fn refuse_to_replace(output: &Path, variant: &Variant) -> Result<(), Error> {
    let measured = Profile::recorded(output, &variant.id).is_ok_and(|profile| {
        profile.is_some_and(|profile| profile.provenance.origin == ProfileOrigin::Measured)
    });
    if measured {
        return Err(Error::Usage(format!(
            "{} holds a measured profile, which the import would clear away; name another folder with --output",
            variant_folder(output, &variant.id).display()
        )));
    }
    Ok(())
}
