//! The versions of tools, cached: to ask for one takes longer than a build that is cached.

use super::find::real;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::disk;
use crate::files::{most, read_regular_up_to};
use crate::finding::Error;

/// The version of a tool, as last asked for.
#[derive(Clone, Serialize, Deserialize)]
struct Version {
    /// Size and modification time of the program: they change when it is replaced.
    stamp: String,
    text: String,
}

/// A tool's version text, asked for once until the tool is replaced.
pub(crate) fn cached(
    work: &Path,
    program: &Path,
    ask: impl FnOnce() -> Result<String, Error>,
) -> Result<String, Error> {
    let store = work.join("versions.json");
    let stamp = disk::metadata(real(program))
        .map(|meta| format!("{} {} {}", meta.len(), meta.mtime(), meta.mtime_nsec()))
        .map_err(Error::io("read", program))?;
    let key = program.display().to_string();
    let mut versions: BTreeMap<String, Version> = read_regular_up_to(&store, most::CONFIG)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default();
    if let Some(known) = versions.get(&key).filter(|known| known.stamp == stamp) {
        return Ok(known.text.clone());
    }
    let text = ask()?;
    let entry = Version {
        stamp,
        text: text.clone(),
    };
    versions.insert(key, entry);
    // Only a cache: where it cannot be written, the tool is asked again.
    if let Ok(json) = serde_json::to_string_pretty(&versions)
        && crate::files::create_work_folder(work).is_ok()
    {
        let _ = crate::files::write_atomically(&store, json.as_bytes());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cached_version_keeps_the_work_folder_out_of_git() {
        let project = tempfile::tempdir().unwrap();
        let (work, tool) = (project.path().join("work"), project.path().join("tool"));
        std::fs::write(&tool, "").unwrap();
        let version = cached(&work, &tool, || Ok("1.0".to_owned())).unwrap();
        let again = cached(&work, &tool, || panic!("it is known")).unwrap();
        assert_eq!((version.as_str(), again.as_str()), ("1.0", "1.0"));
        let ignored = std::fs::read_to_string(work.join(".gitignore")).unwrap();
        assert_eq!(ignored, "*\n");
    }
}
