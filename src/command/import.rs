//! `sparsek-gate import`.

use super::answer::{answer, unreadable};
use super::select::load;
use std::path::Path;

use serde::Serialize;

use crate::capture;
use crate::cli::{ImportArgs, Selection};
use crate::evidence::incomplete;
use crate::files::{
    PROFILE_FILE, create_work_folder, most, read_regular_up_to, set_aside, settle, variant_folder,
    write_atomically,
};
use crate::finding::{Error, ExitCode};
use crate::hash::sha256_hex;
use crate::profile::import::{importable, is_measured, profile_of};
use crate::profile::{Conditions, FileHash, Profile, norm_text};
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
            "`{}` names several variants; name one as suite/variant",
            arguments.variant
        )));
    };
    let input = |cause: String| Error::Input {
        path: arguments.file.clone(),
        cause,
    };
    let (format, recording) =
        capture::read_file(&arguments.file).map_err(|error| unreadable(&arguments.file, error))?;
    let bytes = read_regular_up_to(&arguments.file, most::BINARY)
        .map_err(Error::io("read", &arguments.file))?;
    let Some(ending) = importable(format) else {
        return Err(Error::Usage(format!(
            "{} contains what only this tool measures, which cannot be imported; measure it: sparsek-gate profile",
            arguments.file.display()
        )));
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
    if is_measured(&output, &variant.id) {
        return Err(Error::Usage(format!(
            "{} contains a measured profile, which the import would delete; name another folder: --output DIR",
            variant_folder(&output, &variant.id).display()
        )));
    }
    if arguments.output.is_none() {
        create_work_folder(&selected.config.work)?;
    }
    let folder = set_aside(&output, &variant.id)?;
    let capture_path = folder.join(&file.file);
    write_atomically(&capture_path, &bytes).map_err(Error::io("write", &capture_path))?;
    let path = folder.join(PROFILE_FILE);
    write_atomically(&path, profile.to_json().as_bytes()).map_err(Error::io("write", &path))?;
    settle(&output, &variant.id)?;
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
