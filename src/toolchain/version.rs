//! The versions of tools, cached: to ask for one takes longer than a build that is cached.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::disk::{self, leads_to};
use crate::files::{most, read_regular_up_to};
use crate::finding::Error;

/// A tool's version text, asked for once until the tool is replaced.
pub(crate) fn cached(
    work: &Path,
    program: &Path,
    ask: impl FnOnce() -> Result<String, Error>,
) -> Result<String, Error> {
    let store = work.join("versions.json");
    let meta = disk::metadata(leads_to(program)).map_err(Error::io("read", program))?;
    let (size, seconds, parts) = (meta.len(), meta.mtime(), meta.mtime_nsec());
    // They change when it is replaced.
    let key = format!("{} {size} {seconds} {parts}", program.display());
    let mut versions: BTreeMap<String, String> = read_regular_up_to(&store, most::CONFIG)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default();
    if let Some(known) = versions.get(&key) {
        return Ok(known.clone());
    }
    let text = ask()?;
    versions.insert(key, text.clone());
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
