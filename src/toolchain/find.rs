//! Where programs and toolkits are looked for.

use std::path::{Path, PathBuf};

/// The path of a program, or a description of where it was looked for.
pub(crate) fn find(
    name: &str,
    configured: Option<&Path>,
    folders: &[PathBuf],
) -> Result<PathBuf, String> {
    if let Some(path) = configured {
        return if is_program(path) {
            Ok(path.to_path_buf())
        } else {
            Err(format!("only at {}", path.display()))
        };
    }
    let candidates = folders.iter().map(|folder| folder.join(name));
    if let Some(path) = candidates.clone().find(|path| is_program(path)) {
        return Ok(path);
    }
    let on_path = path_folders();
    let mut places = vec!["the PATH".to_owned()];
    for (folder, candidate) in folders.iter().zip(candidates) {
        let place = candidate.display().to_string();
        if !on_path.contains(folder) && !places.contains(&place) {
            places.push(place);
        }
    }
    Err(format!("looked at {}", places.join(", ")))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path)
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

pub(crate) fn path_folders() -> Vec<PathBuf> {
    std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default()
}

/// Where CUDA toolkits are, in the order in which they are taken.
pub(crate) fn cuda_roots() -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"]
        .iter()
        .filter_map(|name| env_folder(name))
        .collect();
    roots.push("/usr/local/cuda".into());
    roots.extend(versioned("/usr/local", "cuda-"));
    roots
}

pub(crate) fn env_folder(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// Folders below `parent` whose names begin with `prefix`, the highest version first.
pub(crate) fn versioned(parent: &str, prefix: &str) -> Vec<PathBuf> {
    let mut found: Vec<(Vec<u64>, PathBuf)> = std::fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let version = name
                .strip_prefix(prefix)?
                .split('.')
                .map_while(|part| part.parse().ok())
                .collect();
            Some((version, entry.path()))
        })
        .collect();
    found.sort();
    found.reverse();
    found.into_iter().map(|(_, path)| path).collect()
}
