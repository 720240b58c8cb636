//! The two libraries that measure inside of a program: the injected one, which is a part of this
//! program, and NVIDIA's libcupti, which is looked for.

use std::path::{Path, PathBuf};

use crate::config::Toolchain;
use crate::disk;
use crate::files::write_atomically;
use crate::finding::Error;
use crate::hash::sha256_hex;
use crate::terms::joined_or;
use crate::toolchain::{cuda_roots, path_folders};

/// `injection/`, compiled; empty where the tool was built for a system that the driver's
/// libraries do not run on.
const INJECTION: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libinjection.so"));

/// The path of the injected library below the work folder.
///
/// # Errors
/// Why there is no such library.
pub(super) fn injection_path(work: &Path) -> Result<PathBuf, String> {
    if INJECTION.is_empty() {
        return Err(
            "this build of sparsek-gate has no library to record kernels with: build it for Linux with glibc"
                .to_owned(),
        );
    }
    // A library that a program has mapped must not change, so its name is the hash of its content.
    let name = format!("injection-{}.so", &sha256_hex(INJECTION)[..16]);
    Ok(work.join("cupti").join(name))
}

/// Writes the injected library below the work folder, unless it is there.
pub(super) fn write_injection(work: &Path) -> Result<(), Error> {
    let Ok(path) = &injection_path(work) else {
        return Ok(());
    };
    if disk::read(path).is_ok_and(|bytes| bytes == INJECTION) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    disk::create_dir_all(folder).map_err(Error::io("create", folder))?;
    write_atomically(path, INJECTION).map_err(Error::io("write", path))
}

/// The libcupti of the highest CUDA version that the driver supports (up to `cuda`, `major.minor`),
/// of several the first: the configuration, the toolkits, the Python environments on the PATH,
/// Nsight Compute's own.
///
/// # Errors
/// Why there is none.
pub(super) fn find_libcupti(
    toolchain: &Toolchain,
    ncu: &Path,
    cuda: &str,
) -> Result<PathBuf, String> {
    if let Some(path) = &toolchain.cupti {
        return if disk::is_file(path) {
            Ok(path.clone())
        } else {
            Err(format!(
                "`toolchain.cupti` does not exist: {}",
                path.display()
            ))
        };
    }
    let supported: u32 = cuda
        .split('.')
        .next()
        .and_then(|major| major.parse().ok())
        .unwrap_or(u32::MAX);
    let folders = folders(ncu);
    let mut best: Option<((u32, u32), PathBuf)> = None;
    for folder in &folders {
        for (version, path) in libraries(folder) {
            let better = best.as_ref().is_none_or(|(best, _)| version > *best);
            if version.0 <= supported && better {
                best = Some((version, path));
            }
        }
    }
    best.map(|(_, path)| path).ok_or_else(|| {
        let none = "no folder: there is no CUDA toolkit and no Python environment with one";
        let places = folders.iter().map(|folder| folder.display().to_string());
        let places = joined_or(none, places, ", ");
        format!("no libcupti.so for CUDA {cuda} or older was found; looked in {places}")
    })
}

/// Folders that exist and may contain a libcupti.
fn folders(ncu: &Path) -> Vec<PathBuf> {
    let target = format!("targets/{}-linux/lib", std::env::consts::ARCH);
    let mut folders = Vec::new();
    for root in cuda_roots() {
        for below in ["extras/CUPTI/lib64", "lib64", &target, "lib"] {
            folders.push(root.join(below));
        }
    }
    for bin in path_folders() {
        let Some(lib) = bin.parent().map(|prefix| prefix.join("lib")) else {
            continue;
        };
        for python in entries(&lib, "python3") {
            for packages in ["site-packages", "dist-packages"] {
                let nvidia = python.join(packages).join("nvidia");
                for package in entries(&nvidia, "cu") {
                    folders.push(package.join("lib"));
                }
            }
        }
    }
    // `ncu` may be a link into an installation whose libraries lie some folders up.
    let real = disk::leads_to(ncu);
    for above in real.ancestors().skip(1).take(4) {
        folders.extend(entries(&above.join("host"), "target-linux"));
    }
    if let Some(path) = std::env::var_os("LD_LIBRARY_PATH") {
        folders.extend(std::env::split_paths(&path).filter(|folder| folder.is_absolute()));
    }
    folders.push(format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH).into());
    let mut seen = Vec::new();
    folders.retain(|folder| {
        let fresh = disk::is_dir(folder) && !seen.contains(folder);
        seen.push(folder.clone());
        fresh
    });
    folders
}

/// Entries of a folder whose names begin with `prefix`, sorted.
fn entries(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = disk::read_dir(folder).into_iter().flatten();
    let named = entries.filter(|entry| entry.text().starts_with(prefix));
    named.map(|entry| entry.path).collect()
}

/// The libraries of a folder with the CUDA version in their names: `libcupti.so.13`, or
/// `libcupti.so.12.9` as Nsight Compute ships them. A name such as `libcupti.so.2025.3.1` states
/// another version, and is the target of a link with a CUDA version.
fn libraries(folder: &Path) -> Vec<((u32, u32), PathBuf)> {
    entries(folder, "libcupti.so.")
        .into_iter()
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?;
            let mut parts = name.strip_prefix("libcupti.so.")?.split('.');
            let major: u32 = parts.next()?.parse().ok()?;
            let minor: u32 = parts.next().unwrap_or("0").parse().ok()?;
            // The records of older ones have another form.
            (12..1000)
                .contains(&major)
                .then_some(((major, minor), path))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_of_the_newest_cuda_that_the_driver_supports_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let ncu = folder.path().join("target/ncu");
        let host = folder.path().join("host/target-linux-x64");
        std::fs::create_dir_all(&host).unwrap();
        for name in ["11.8", "12.9", "14.0", "2025.3.1"] {
            std::fs::write(host.join(format!("libcupti.so.{name}")), "").unwrap();
        }
        let found: Vec<(u32, u32)> = libraries(&host).into_iter().map(|(v, _)| v).collect();
        assert_eq!(found, [(12, 9), (14, 0)]);
        assert!(folders(&ncu).contains(&host));
    }
}
