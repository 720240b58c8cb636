//! The versions of tools, remembered: asking takes longer than a build that is cached.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::finding::Error;

/// Versions of the tools at a path, as last asked for.
#[derive(Default, Serialize, Deserialize)]
struct Versions {
    entries: BTreeMap<String, Version>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Version {
    /// Size and modification time of the program: what tells that it was replaced.
    stamp: String,
    text: String,
}

/// A tool's version text, asked for once for as long as the tool is not replaced.
pub(crate) fn remembered(
    work: &Path,
    program: &Path,
    ask: impl FnOnce() -> Result<String, Error>,
) -> Result<String, Error> {
    let store = work.join("versions.json");
    let stamp = std::fs::metadata(program)
        .map(|meta| format!("{} {} {}", meta.len(), meta.mtime(), meta.mtime_nsec()))
        .map_err(Error::io("read", program))?;
    let key = program.display().to_string();
    let mut versions: Versions = std::fs::read(&store)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default();
    if let Some(known) = versions
        .entries
        .get(&key)
        .filter(|known| known.stamp == stamp)
    {
        return Ok(known.text.clone());
    }
    let text = ask()?;
    let entry = Version {
        stamp,
        text: text.clone(),
    };
    versions.entries.insert(key, entry);
    // Only a memory: where it cannot be kept, the tool is asked again.
    if let Ok(json) = serde_json::to_string_pretty(&versions) {
        let _ = crate::files::create_work_folder(work);
        let _ = crate::files::write_atomically(&store, json.as_bytes());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_first_leaves_the_work_folder_out_of_git() {
        let project = tempfile::tempdir().unwrap();
        let (work, tool) = (project.path().join("work"), project.path().join("tool"));
        std::fs::write(&tool, "").unwrap();
        let version = remembered(&work, &tool, || Ok("1.0".to_owned())).unwrap();
        let again = remembered(&work, &tool, || panic!("it is known")).unwrap();
        assert_eq!((version.as_str(), again.as_str()), ("1.0", "1.0"));
        let ignored = std::fs::read_to_string(work.join(".gitignore")).unwrap();
        assert_eq!(ignored, "*\n");
    }
}
