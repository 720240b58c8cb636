//! The machine code that nvcc kept of a build.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use crate::binary;
use crate::disk;
use crate::files::{most, read_regular_up_to};

/// The cubins in a folder that have kernels. Where nvcc built for several targets, those for
/// `arch`; where kernels were linked in a step of their own, the linked ones, which run.
pub(super) fn cubins_in(folder: &Path, arch: &str) -> io::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let paths = disk::read_dir(folder)?.into_iter().map(|entry| entry.path);
    let is_cubin = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "cubin");
    let mut cubins: Vec<PathBuf> = paths.filter(is_cubin).collect();
    let stem = |path: &Path| {
        let stem = path.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    };
    // Built for several targets, they are named after the virtual one.
    let target = format!(".{}", arch.replacen("sm_", "compute_", 1));
    if cubins.iter().any(|path| stem(path).ends_with(&target)) {
        cubins.retain(|path| stem(path).ends_with(&target));
    }
    let linked = |path: &Path| stem(path).trim_end_matches(&target).ends_with("_dlink");
    let mut with_kernels = BTreeMap::new();
    for path in cubins {
        let cubin = read_regular_up_to(&path, most::BINARY)?;
        if binary::has_kernels(&cubin) {
            with_kernels.insert(path, cubin);
        }
    }
    if with_kernels.keys().any(|path| linked(path)) {
        with_kernels.retain(|path, _| linked(path));
    }
    Ok(with_kernels)
}

/// The kernels that take no dynamic shared memory, by the PTX in a folder.
pub(super) fn without_dynamic_shared(folder: &Path) -> io::Result<BTreeSet<String>> {
    let mut fixed = BTreeSet::new();
    for path in disk::read_dir(folder)?.into_iter().map(|entry| entry.path) {
        if path.extension().is_some_and(|ending| ending == "ptx") {
            let ptx = read_regular_up_to(&path, most::BINARY)?;
            fixed.extend(binary::without_dynamic_shared(&String::from_utf8_lossy(
                &ptx,
            )));
        }
    }
    Ok(fixed)
}
