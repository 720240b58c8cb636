//! A folder of profiles that were measured on several GPUs: `<folder>/<GPU>/<suite>/<variant>`. A file
//! in it says of which variants these are the latest, and which GPUs they are of.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::{bounded_json, most, read_regular_up_to, write_atomically};
use crate::finding::Error;
use crate::terms::VariantId;

/// The file in the folder.
const FILE: &str = "gpus.json";

/// The variants of a folder whose latest profiles are of several GPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnGpus {
    schema: u32,
    /// The folders of the profiles of each, one a GPU: the beginning of its UUID.
    variants: BTreeMap<String, Vec<String>>,
}

impl OnGpus {
    /// Version of the format.
    pub const SCHEMA: u32 = 1;

    /// Those of a folder.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Input`] where the file is damaged.
    pub fn of(folder: &Path) -> Result<OnGpus, Error> {
        let path = folder.join(FILE);
        let bytes = match read_regular_up_to(&path, most::TEXT) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(OnGpus::default()),
            Err(error) => return Err(Error::io("read", &path)(error)),
        };
        let damaged = |cause: String| Error::Input {
            cause: format!(
                "{cause}\n  next: remove it, and profile again: sparsek-gate profile --gpus all"
            ),
            path,
        };
        OnGpus::parse(&bytes).map_err(damaged)
    }

    /// Notes that the latest profiles of variants in a folder are those in these folders below it.
    ///
    /// # Errors
    /// As [`OnGpus::of`].
    pub fn note(folder: &Path, variants: &[&VariantId], gpus: &[String]) -> Result<(), Error> {
        let mut found = OnGpus::of(folder)?;
        for variant in variants {
            found.variants.insert(variant.to_string(), gpus.to_vec());
        }
        found.write(folder)
    }

    /// Notes that the latest profiles of variants in a folder are, or will be, others.
    ///
    /// # Errors
    /// As [`OnGpus::of`].
    pub fn forget(folder: &Path, variants: &[&VariantId]) -> Result<(), Error> {
        let mut found = OnGpus::of(folder)?;
        let before = found.variants.len();
        for variant in variants {
            found.variants.remove(&variant.to_string());
        }
        match found.variants.len() == before {
            true => Ok(()),
            false => found.write(folder),
        }
    }

    /// The folders of the latest profiles of a variant: one for each GPU, or the folder itself where
    /// there is one profile.
    ///
    /// # Errors
    /// As [`OnGpus::of`].
    pub fn folders(folder: &Path, variant: &VariantId) -> Result<Vec<PathBuf>, Error> {
        let found = OnGpus::of(folder)?;
        Ok(match found.variants.get(&variant.to_string()) {
            Some(gpus) => gpus.iter().map(|gpu| folder.join(gpu)).collect(),
            None => vec![folder.to_path_buf()],
        })
    }

    /// Reads the file's content.
    ///
    /// # Errors
    /// In words, what is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<OnGpus, String> {
        bounded_json(bytes)?;
        let found: OnGpus = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if found.schema != OnGpus::SCHEMA {
            return Err(format!(
                "it has schema {}, and this version reads {}",
                found.schema,
                OnGpus::SCHEMA
            ));
        }
        if let Some((variant, _)) = found.variants.iter().find(|(_, gpus)| gpus.is_empty()) {
            return Err(format!("it names no GPU of {variant:?}"));
        }
        // A name that leads out of the folder is none.
        let is_name = |name: &str| {
            let mut bytes = name.bytes();
            !name.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        match found.variants.values().flatten().find(|gpu| !is_name(gpu)) {
            Some(gpu) => Err(format!("{gpu:?} is no name of a GPU's folder")),
            None => Ok(found),
        }
    }

    fn write(&self, folder: &Path) -> Result<(), Error> {
        let written = OnGpus {
            schema: OnGpus::SCHEMA,
            variants: self.variants.clone(),
        };
        let path = folder.join(FILE);
        let mut text = serde_json::to_vec_pretty(&written).unwrap_or_default();
        text.push(b'\n');
        write_atomically(&path, &text).map_err(Error::io("write", &path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> VariantId {
        VariantId::try_from(name.to_owned()).unwrap()
    }

    #[test]
    fn the_latest_profiles_of_a_variant_are_those_of_the_gpus_until_it_is_profiled_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let (a, b) = (id("s/a"), id("s/b"));
        let folders = |variant| OnGpus::folders(path, variant).unwrap();
        assert_eq!(folders(&a), [path]);
        let gpus = ["GPU-1", "GPU-2"].map(str::to_owned);
        OnGpus::note(path, &[&a], &gpus).unwrap();
        OnGpus::note(path, &[&b], &gpus[..1]).unwrap();
        assert_eq!(folders(&a), [path.join("GPU-1"), path.join("GPU-2")]);
        assert_eq!(folders(&b), [path.join("GPU-1")]);
        OnGpus::forget(path, &[&a]).unwrap();
        assert_eq!(folders(&a), [path]);
        assert_eq!(folders(&b), [path.join("GPU-1")]);
    }

    #[test]
    fn a_damaged_file_or_one_that_leads_out_of_the_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for (text, why) in [
            ("{", "EOF"),
            (r#"{"schema": 2, "variants": {}}"#, "schema 2"),
            (
                r#"{"schema": 1, "variants": {"s/a": ["GPU-1", "../x"]}}"#,
                "no name of a GPU's folder",
            ),
            (r#"{"schema": 1, "variants": {"s/a": []}}"#, "names no GPU"),
        ] {
            std::fs::write(folder.path().join(FILE), text).unwrap();
            let said = OnGpus::folders(folder.path(), &id("s/a")).unwrap_err();
            assert!(said.to_string().contains(why), "{text}: {said}");
        }
    }
}
