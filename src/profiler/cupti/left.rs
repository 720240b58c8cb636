//! The files that the injected library leaves, one a process, and what makes them no measurement of
//! a variant.

use std::fs;
use std::path::{Path, PathBuf};

use crate::config::Variant;
use crate::files::{most, read_regular_up_to};
use crate::finding::{Code, Error, Finding};
use crate::profiler::session::Session;

/// The files that processes wrote, `<prefix>.<pid>`, with their content; sorted.
pub(super) fn left(prefix: &Path) -> Result<Vec<(PathBuf, String)>, Error> {
    let mut found = Vec::new();
    for file in files(prefix)? {
        let bytes = read_regular_up_to(&file, most::RECORDS).map_err(Error::io("read", &file))?;
        found.push((file, String::from_utf8_lossy(&bytes).into_owned()));
    }
    Ok(found)
}

/// Removes them.
pub(super) fn remove(prefix: &Path) -> Result<(), Error> {
    for path in files(prefix)? {
        fs::remove_file(&path).map_err(Error::io("clear", &path))?;
    }
    Ok(())
}

fn files(prefix: &Path) -> Result<Vec<PathBuf>, Error> {
    let folder = prefix.parent().unwrap_or(Path::new("."));
    let name = prefix
        .file_name()
        .map(|name| format!("{}.", name.to_string_lossy()))
        .unwrap_or_default();
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let path = entry.map_err(Error::io("read", folder))?.path();
        let is_one = path
            .file_name()
            .is_some_and(|file| file.to_string_lossy().starts_with(&name));
        if is_one {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// That every launch ran on the one GPU that the program was given.
pub(super) fn on_one_device(
    session: &Session<'_>,
    mut devices: impl Iterator<Item = u32>,
) -> Result<(), Finding> {
    let other = devices.find(|device| *device != 0);
    other.map_or(Ok(()), |device| {
        let uuid = &session.gpu.uuid;
        let message =
            format!("the program launched on its device {device}, but it may only use {uuid}");
        let next = "do not change CUDA_VISIBLE_DEVICES in the program";
        Err(Finding::deny(
            Code::NotMeasured,
            &session.variant.id,
            message,
            next,
        ))
    })
}

/// The finding that no launch was selected of the kernels that were seen.
pub(super) fn none_selected(variant: &Variant, seen: &[String]) -> Finding {
    let seen = if seen.is_empty() {
        "no kernel at all".to_owned()
    } else {
        seen.join(", ")
    };
    let message = format!(
        "no recorded kernel was selected: the filter is {}, the program launched {seen}",
        variant.kernels.as_deref().unwrap_or("(none)")
    );
    Finding::of(Code::KernelMissing, &variant.id, message)
}

/// The finding that what a process left is damaged.
pub(super) fn unreadable(variant: &Variant, file: &Path, why: &dyn std::fmt::Display) -> Finding {
    let message = format!("{}: {why}", file.display());
    Finding::of(Code::CaptureUnreadable, &variant.id, message)
}
