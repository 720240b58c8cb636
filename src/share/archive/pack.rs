//! Writing an archive.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::frames::Compressing;
use super::index::{
    BLOBS, INDEX, Index, PackedArtifact, PackedBase, PackedFile, PackedSide, Packing, Place, Word,
    is_below, most,
};
use crate::build::Artifact;
use crate::config::{Config, Recipe};
use crate::disk::{self, folder_of, leads_to};
use crate::files::{entries, open_regular};
use crate::finding::Error;
use crate::git;
use crate::hash::{Hashing, sha256_file};
use crate::measure::{PrebuiltSide, Times};
use crate::parallel;
use crate::terms::VariantId;

/// What was packed.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// sha256 of the file.
    pub sha256: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Contents in it.
    pub contents: usize,
    /// Files that these make.
    pub files: usize,
}

/// The contents of an archive: where each is on this machine, by its sha256, with its size.
type Blobs = BTreeMap<String, (PathBuf, u64)>;

/// The file that is written. It may lie in the project, and is no part of it.
struct Output(PathBuf);

impl Output {
    fn new(path: &Path) -> Output {
        let folder = leads_to(folder_of(path));
        Output(folder.join(path.file_name().unwrap_or_default()))
    }

    /// Whether a file is this archive, finished or not.
    fn is(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default();
        let unfinished = name
            .as_encoded_bytes()
            .starts_with(disk::UNFINISHED.as_bytes());
        path == self.0 || unfinished && path.parent() == self.0.parent()
    }
}

/// Writes an archive. A killed run leaves no archive, or the earlier one.
///
/// # Errors
/// [`Error::Io`]; [`Error::Input`] where something cannot be packed.
pub fn pack(packing: Packing<'_>, output: &Path) -> Result<Summary, Error> {
    let refused = |cause: String| Error::input(output.to_path_buf(), cause);
    let mut blobs = Blobs::new();
    let index = index(packing, &Output::new(output), &mut blobs).map_err(refused)?;
    let files = index.current.files.len() + index.locks.len();
    let of_base = index.base.as_ref().and_then(|base| base.side.as_ref().ok());
    let files = files + of_base.map_or(0, |side| side.files.len());
    let bytes: u64 = blobs.values().map(|(_, size)| size).sum();
    if files > most::FILES || bytes > most::BYTES {
        return Err(refused(format!(
            "{files} files of {} MiB are too many to pack: name those that no program reads in `paths.unread`",
            bytes >> 20
        )));
    }
    let folder = folder_of(output);
    disk::create_dir_all(folder).map_err(Error::io("create", folder))?;
    let failed = |error: io::Error| Error::io("write", output)(error);
    let fill = |file: &mut File| write(&index, &blobs, file);
    let (_, (sha256, size), ()) = disk::replace(output, fill, |_| ()).map_err(failed)?;
    Ok(Summary {
        sha256,
        bytes: size,
        contents: blobs.len(),
        files,
    })
}

/// Writes the index and each content once, and returns the sha256 and the size of the file.
fn write(index: &Index, blobs: &Blobs, file: &mut File) -> io::Result<(String, u64)> {
    let text = serde_json::to_vec(index).map_err(io::Error::other)?;
    let hashing = Hashing::new(BufWriter::new(&mut *file));
    let mut tar = tar::Builder::new(Compressing::new(hashing));
    append(&mut tar, INDEX, text.len() as u64, text.as_slice())?;
    for (sha256, (path, size)) in blobs {
        let mut content = Hashing::new(open_regular(path)?);
        append(&mut tar, &format!("{BLOBS}{sha256}"), *size, &mut content)?;
        if content.sha256() != *sha256 {
            let why = format!("{} changed while it was packed", path.display());
            return Err(io::Error::other(why));
        }
    }
    let mut hashing = tar.into_inner()?.finish()?;
    hashing.flush()?;
    let sha256 = hashing.sha256();
    Ok((sha256, file.metadata()?.len()))
}

fn append<W: Write>(
    tar: &mut tar::Builder<W>,
    name: &str,
    size: u64,
    content: impl io::Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_size(size);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    tar.append_data(&mut header, name, content)
}

fn index(packing: Packing<'_>, output: &Output, blobs: &mut Blobs) -> Result<Index, String> {
    let Packing { plan, programs, .. } = packing;
    let config = &plan.config;
    let top = top_of(&config.root);
    let current = side(config, &top, &programs.current, output, blobs)?;
    let base = match packing.base {
        None => None,
        Some(base) => Some(PackedBase {
            commit: base.commit().unwrap_or_default().to_owned(),
            side: match base.config() {
                Err(why) => Err(why.to_owned()),
                Ok(config) => {
                    let top = base.checkout().unwrap_or(&config.root).to_path_buf();
                    Ok(side(config, &top, &programs.base, output, blobs)?)
                }
            },
        }),
    };
    Ok(Index {
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        selected: plan.selection.clone(),
        authority: packing.authority.clone(),
        findings: packing.findings.to_vec(),
        git: programs.git.clone(),
        same_programs: packing.same_programs.to_vec(),
        times: Times::of(&config.work),
        current,
        base,
        locks: locks(packing.locks, blobs)?,
        blobs: blobs
            .iter()
            .map(|(sha256, (_, size))| (sha256.clone(), *size))
            .collect(),
    })
}

/// The top of a project's checkout; its own folder where it is in none.
fn top_of(root: &Path) -> PathBuf {
    let top = git::repository(root).ok().map(|repository| repository.top);
    match top {
        Some(top) if leads_to(root).starts_with(&top) => top,
        _ => root.to_path_buf(),
    }
}

/// A project, with the files that its programs could read.
fn side(
    config: &Config,
    top: &Path,
    built: &PrebuiltSide,
    output: &Output,
    blobs: &mut Blobs,
) -> Result<PackedSide, String> {
    let (top, root) = (leads_to(top), leads_to(&config.root));
    let below = |path: &Path| -> Option<String> {
        let below = path.strip_prefix(&top).ok()?.to_str()?;
        is_below(below).then(|| below.to_owned())
    };
    let (work, baselines) = (leads_to(&config.work), leads_to(&config.baselines));
    // The checkout of a base lies in the work folder.
    let in_work = |path: &Path| path.starts_with(&work) && !top.starts_with(&work);
    let mut wanted = git::shown(&top).unwrap_or_default();
    wanted.retain(|path| {
        let whole = top.join(path);
        !config.unread.contains(path) && !whole.starts_with(&baselines) && !output.is(&whole)
    });
    // What is ignored by git, and yet a part of what is measured.
    let own = config.variants().filter_map(|variant| {
        let mut own = config.own_files(variant).ok()?;
        if let Recipe::Command { code, .. } = &variant.recipe {
            own.extend(code.iter().cloned());
        }
        Some(own)
    });
    let sources = built
        .artifacts
        .values()
        .flat_map(|artifact| artifact.sources.keys().cloned());
    let own = own
        .flatten()
        .chain(sources)
        .map(|path| leads_to(&root.join(path)));
    wanted.extend(own.filter_map(|path| below(&path)));
    let config_path = root.join(config.path.file_name().unwrap_or_default());
    let config_file = below(&config_path).ok_or("the configuration is not in its checkout")?;
    let place = |path: &Path, sha256: &str| -> Option<Place> {
        let path = leads_to(path);
        match below(&path) {
            Some(below) if !in_work(&path) => Some(Place::Checkout(below)),
            _ => {
                let name = path.file_name()?.to_str()?.to_owned();
                Some(Place::Program(sha256.to_owned(), name))
            }
        }
    };
    let artifacts = built.artifacts.iter().map(|(id, artifact)| {
        let nameless = || format!("a program of {id} has a name that is not UTF-8");
        let packed = artifact_of(artifact, &place).ok_or_else(nameless)?;
        Ok((id.clone(), packed))
    });
    let artifacts: BTreeMap<VariantId, PackedArtifact> =
        artifacts.collect::<Result<_, String>>()?;
    let programs = artifacts.values().flat_map(|artifact| &artifact.programs);
    wanted.extend(programs.filter_map(|(place, _)| match place {
        Place::Checkout(path) => Some(path.clone()),
        Place::Program(..) => None,
    }));
    wanted.sort_unstable();
    wanted.dedup();
    wanted.retain(|path| is_below(path) && !in_work(&leads_to(&top.join(path))));
    let paths: Vec<(String, PathBuf)> = wanted
        .into_iter()
        .filter_map(|path| Some((path.clone(), git::real_input(&top.join(&path)).ok()?)))
        // A link out of the checkout leads to nothing that is packed, and a folder is no file.
        .filter(|(_, path)| path.starts_with(&top) && disk::is_file(path))
        .collect();
    let files = contents(&paths, blobs)?;
    let programs = built.artifacts.values();
    let programs = programs.flat_map(|artifact| artifact.programs.keys());
    let programs: Vec<(String, PathBuf)> = programs
        .map(|path| (path.display().to_string(), path.clone()))
        .collect();
    contents(&programs, blobs)?;
    Ok(PackedSide {
        config_file,
        config: config.text.clone(),
        files,
        artifacts,
        findings: built.findings.clone(),
    })
}

/// What was built, with the place of each file of a program; `None` where one has no name in UTF-8.
fn artifact_of(
    artifact: &Artifact,
    place: &dyn Fn(&Path, &str) -> Option<Place>,
) -> Option<PackedArtifact> {
    let mut programs = Vec::new();
    for (path, sha256) in &artifact.programs {
        programs.push((path, place(path, sha256)?, sha256.clone()));
    }
    let run = artifact.run.iter().map(|word| {
        let mut programs = programs.iter();
        let found = programs.find(|(path, _, _)| path.as_path() == Path::new(word));
        match found {
            Some((_, place, _)) => Word::File(place.clone()),
            None => Word::Text(word.clone()),
        }
    });
    Some(PackedArtifact {
        run: run.collect(),
        programs: programs
            .iter()
            .map(|(_, place, sha256)| (place.clone(), sha256.clone()))
            .collect(),
        artifact: artifact.clone(),
    })
}

/// Adds the contents of files, and returns the files by their names.
fn contents(
    paths: &[(String, PathBuf)],
    blobs: &mut Blobs,
) -> Result<BTreeMap<String, PackedFile>, String> {
    let read = parallel::map(paths, |(_, path)| -> io::Result<(String, u64, bool)> {
        let meta = open_regular(path)?.metadata()?;
        let executable = meta.permissions().mode() & 0o111 != 0;
        Ok((sha256_file(path)?, meta.len(), executable))
    });
    let mut files = BTreeMap::new();
    for ((name, path), read) in paths.iter().zip(read) {
        let (sha256, size, executable) =
            read.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        blobs
            .entry(sha256.clone())
            .or_insert_with(|| (path.clone(), size));
        files.insert(name.clone(), PackedFile { sha256, executable });
    }
    Ok(files)
}

/// Adds the locks, and returns their hashes by their paths.
fn locks(folder: &Path, blobs: &mut Blobs) -> Result<BTreeMap<String, String>, String> {
    let mut paths = Vec::new();
    // Baselines are two folders deep.
    list(folder, 4, &mut paths).map_err(|error| error.to_string())?;
    let below = |path: PathBuf| {
        let name = path.strip_prefix(folder).ok()?.to_str()?.to_owned();
        Some((name, path))
    };
    let paths: Vec<_> = paths.into_iter().filter_map(below).collect();
    let files = contents(&paths, blobs)?;
    let hashes = files.into_iter().map(|(name, file)| (name, file.sha256));
    Ok(hashes.collect())
}

/// A lock that is a link counts as missing.
fn list(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    for entry in entries(folder)? {
        if entry.is_dir() && depth > 0 {
            list(&entry.path, depth - 1, found)?;
        } else if entry.is_file() {
            found.push(entry.path);
        }
    }
    Ok(())
}
