//! Variants that were measured on several GPUs: `<folder>/<GPU>/<suite>/<variant>`. The record of such a
//! variant in the folder itself says so, until it is measured again.

use std::path::{Path, PathBuf};

use super::file::{read, sealed};
use super::record::VariantRecord;
use crate::disk;
use crate::files::{VARIANT_FILE, variant_folder, write_atomically};
use crate::finding::Error;
use crate::terms::VariantId;

/// Notes that the latest profiles of variants are those in these folders below the folder of a run.
///
/// # Errors
/// [`Error::Io`].
pub fn measured_on(folder: &Path, variants: &[VariantId], gpus: &[String]) -> Result<(), Error> {
    for variant in variants {
        let own = variant_folder(folder, variant);
        disk::create_dir_all(&own).map_err(Error::io("create", &own))?;
        let record = VariantRecord {
            on: gpus.to_vec(),
            ..VariantRecord::new(String::new(), variant)
        };
        let path = own.join(VARIANT_FILE);
        write_atomically(&path, &sealed(&record)).map_err(Error::io("write", &path))?;
    }
    Ok(())
}

/// The same of none: they will be others.
///
/// # Errors
/// [`Error::Io`]; [`Error::Input`] where a record is damaged.
pub fn measured_on_none(folder: &Path, variants: &[VariantId]) -> Result<(), Error> {
    for variant in variants {
        let path = variant_folder(folder, variant).join(VARIANT_FILE);
        if !on(&path)?.is_empty() {
            disk::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    }
    Ok(())
}

/// The folders of the latest profiles of a variant: one for each GPU, or the folder itself where there is
/// one profile.
///
/// # Errors
/// [`Error::Input`] where its record is damaged.
pub fn folders_of(folder: &Path, variant: &VariantId) -> Result<Vec<PathBuf>, Error> {
    let gpus = on(&variant_folder(folder, variant).join(VARIANT_FILE))?;
    Ok(match gpus.as_slice() {
        [] => vec![folder.to_path_buf()],
        gpus => gpus.iter().map(|gpu| folder.join(gpu)).collect(),
    })
}

/// The folders of GPUs that a record names.
fn on(path: &Path) -> Result<Vec<String>, Error> {
    // A name that leads out of the folder is none.
    let is_name = |name: &String| {
        let mut bytes = name.bytes();
        !name.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let record = read::<VariantRecord>(path);
    let on = record.map(|record| record.map_or_else(Vec::new, |(record, _)| record.on));
    let named = on.and_then(|on| match on.iter().find(|gpu| !is_name(gpu)) {
        Some(gpu) => Err(format!("{gpu:?} is no name of a GPU's folder")),
        None => Ok(on),
    });
    named.map_err(|why| {
        Error::input(
            path.to_path_buf(),
            format!("{why}\n  next: remove it, and profile again"),
        )
    })
}
