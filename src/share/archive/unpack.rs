//! Reading an archive: with bounds, and without links or paths that lead out.

use rustix::fs::OFlags;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::frames::Decompressing;
use super::index::{
    BLOBS, INDEX, Index, PackedArtifact, PackedSide, Place, Word, is_below, is_sha256, most,
};
use crate::baseline::Store;
use crate::build::Artifact;
use crate::config::{Config, Selected};
use crate::disk;
use crate::files::{json, most as most_of_files, open_regular};
use crate::finding::Error;
use crate::hash::{Hashing, sha256_file, sha256_of};
use crate::measure::{BaseProject, Packed, Prebuilt, PrebuiltSide};
use crate::process;
use crate::trust::Grounds;

/// An archive, unpacked in a temporary folder.
pub struct Unpacked {
    /// sha256 of the file.
    pub sha256: String,
    /// The base that is measured beside its variants.
    pub base: Option<BaseProject>,
    /// What was built, and needs no measurement.
    pub packed: Packed,
    /// Everything is in it; removed at the end.
    _folder: TempDir,
}

/// An archive, with the variants and the rules that count.
pub type Unpacking = (Unpacked, Selected, Grounds);

/// Where the parts of an archive are put, in the folder that it is unpacked in.
const CURRENT: &str = "current";
const BASE: &str = "base";
const LOCKS: &str = "locks";

fn program_in(folder: &Path, sha256: &str, name: &str) -> PathBuf {
    folder.join("programs").join(sha256).join(name)
}

/// A file to be made of a content.
struct Target {
    path: PathBuf,
    executable: bool,
}

/// Unpacks an archive, and refuses one with another SHA-256 than is `expected`, where one is.
///
/// # Errors
/// [`Error::Input`] where it is damaged, too large, or not the expected one; [`Error::Io`].
pub fn unpack(file: &Path, expected: Option<&str>) -> Result<Unpacking, Error> {
    let refused = |cause: String| Error::input(file.to_path_buf(), cause);
    let refuse_another = |sha256: &str| match expected {
        Some(expected) if !expected.eq_ignore_ascii_case(sha256) => {
            let next = match expected.len() {
                64 => "it is another archive: take the file and the hash of one run of `archive`",
                _ => "a SHA-256 has 64 hexadecimal digits: give all that `archive` printed",
            };
            Err(refused(format!(
                "its SHA-256 is {sha256}, and {expected} was expected\n  next: {next}"
            )))
        }
        _ => Ok(()),
    };
    let opened = open_regular(file).map_err(Error::named(file))?;
    // Nothing of another archive is unpacked.
    if expected.is_some() {
        refuse_another(&sha256_file(file).map_err(Error::io("read", file))?)?;
    }
    let folder = process::scratch()?;
    // Programs run there, and messages name it.
    let real = folder
        .path()
        .canonicalize()
        .map_err(Error::io("find", folder.path()))?;
    let reader = Decompressing::new(Hashing::new(opened));
    let (index, sha256) = match read(reader, &real) {
        Ok(read) => read,
        Err(error) => {
            let why = Error::unless_full(folder.path(), error)?;
            return Err(refused(format!(
                "it cannot be unpacked as an archive of the gate (if it was one, it is cut: copy it again): {why}"
            )));
        }
    };
    // It may be another file by now.
    refuse_another(&sha256)?;
    project(index, sha256, &real, folder).map_err(|error| match error {
        Error::Usage(cause) | Error::Config(cause) => refused(cause),
        error => error,
    })
}

/// The paths of the files that an archive with this index would make, from the folder that it is
/// unpacked in. Nothing is written.
///
/// # Errors
/// In words, what is wrong with it.
pub fn indexed_paths(index: &[u8]) -> Result<Vec<PathBuf>, String> {
    let made = parsed(index).and_then(|index| targets(&index, Path::new("")));
    let made = made.map_err(|error| error.to_string())?;
    let targets = made.into_values().flatten();
    Ok(targets.map(|target| target.path).collect())
}

/// The index, and the sha256 of the archive. The files of each content are made.
fn read<R: Read>(
    mut reader: Decompressing<Hashing<R>>,
    folder: &Path,
) -> io::Result<(Index, String)> {
    let mut archive = tar::Archive::new(&mut reader);
    // Without extensions: neither long names nor sparse files nor attributes.
    let mut entries = archive.entries()?.raw(true);
    let mut first = entries.next().ok_or_else(|| damaged("it is empty"))??;
    let index = index(&mut first)?;
    let mut targets = targets(&index, folder)?;
    for entry in entries {
        let mut entry = entry?;
        let name = name_of(&entry)?;
        let sha256 = name.strip_prefix(BLOBS).unwrap_or_default().to_owned();
        let size = index.blobs.get(&sha256);
        let (Some(size), Some(made_of)) = (size, targets.remove(&sha256)) else {
            return Err(damaged(&format!("`{name}` is not in its index, or twice")));
        };
        if entry.size() != *size {
            return Err(damaged(&format!(
                "`{name}` has another size than its index says"
            )));
        }
        make(&mut entry, &sha256, &made_of)?;
    }
    if let Some(missing) = targets.keys().next() {
        return Err(damaged(&format!(
            "it was cut off: `{BLOBS}{missing}` is missing"
        )));
    }
    // What follows the end of a tar, and the rest of the file, belong to its hash.
    io::copy(&mut (&mut reader).take(most::PADDING), &mut io::sink())?;
    if reader.read(&mut [0])? > 0 {
        return Err(damaged("it goes on behind its end"));
    }
    Ok((index, reader.into_inner().sha256()))
}

fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

/// The name of a regular file in a tar.
fn name_of<R: Read>(entry: &tar::Entry<'_, R>) -> io::Result<String> {
    let bytes = entry.path_bytes();
    let name = String::from_utf8_lossy(&bytes).into_owned();
    match entry.header().entry_type() {
        tar::EntryType::Regular => Ok(name),
        _ => Err(damaged(&format!("`{name}` is not a regular file"))),
    }
}

/// Reads the index, which comes first.
fn index<R: Read>(entry: &mut tar::Entry<'_, R>) -> io::Result<Index> {
    if name_of(entry)? != INDEX || entry.size() > most_of_files::TEXT {
        return Err(damaged("it is no archive of sparsek-gate"));
    }
    let mut bytes = Vec::new();
    entry.take(most_of_files::TEXT).read_to_end(&mut bytes)?;
    parsed(&bytes)
}

fn parsed(bytes: &[u8]) -> io::Result<Index> {
    /// What the index of every version has.
    #[derive(serde::Deserialize)]
    struct OfAnyVersion {
        tool: String,
    }
    let is_damaged = |why: String| damaged(&format!("its {INDEX} is damaged: {why}"));
    let OfAnyVersion { tool } = json(bytes).map_err(is_damaged)?;
    match tool == env!("CARGO_PKG_VERSION") {
        true => json(bytes).map_err(is_damaged),
        false => Err(damaged(&format!(
            "sparsek-gate {tool} packed it, and this is {}: use the same version",
            env!("CARGO_PKG_VERSION")
        ))),
    }
}

/// The files that are made of each content.
fn targets(index: &Index, all: &Path) -> io::Result<BTreeMap<String, Vec<Target>>> {
    let mut targets: BTreeMap<String, Vec<Target>> = index
        .blobs
        .keys()
        .map(|sha256| (sha256.clone(), Vec::new()))
        .collect();
    let (mut count, mut bytes) = (0_usize, 0_u64);
    let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
    let mut add = |sha256: &str, path: PathBuf, executable: bool| -> io::Result<()> {
        if !seen.insert(path.clone()) {
            return Ok(());
        }
        let size = index.blobs.get(sha256).copied().unwrap_or_default();
        (count, bytes) = (count + 1, bytes.saturating_add(size));
        if count > most::FILES || bytes > most::BYTES {
            return Err(damaged("it has too many files, or they are too large"));
        }
        let of = targets.get_mut(sha256);
        let of = of.ok_or_else(|| damaged("its index names a content that it does not list"))?;
        of.push(Target { path, executable });
        Ok(())
    };
    let inside = |path: &str| match is_below(path) {
        true => Ok(()),
        false => Err(damaged(&format!("`{path}` leads out of the archive"))),
    };
    let of_base = index.base.as_ref().and_then(|base| base.side.as_ref().ok());
    let sides = [
        (Some(&index.current), all.join(CURRENT)),
        (of_base, all.join(BASE)),
    ];
    for (side, folder) in sides {
        let Some(side) = side else { continue };
        inside(&side.config_file)?;
        for (path, file) in &side.files {
            inside(path)?;
            add(&file.sha256, folder.join(path), file.executable)?;
        }
        for artifact in side.artifacts.values() {
            for (place, sha256) in &artifact.programs {
                match place {
                    Place::Checkout(path) => inside(path)?,
                    Place::Program(of, name) => {
                        inside(name)?;
                        if of != sha256 || name.contains('/') {
                            return Err(damaged(&format!("`{name}` is no name of a program")));
                        }
                        add(sha256, program_in(all, of, name), true)?;
                    }
                }
            }
            let is_listed = |word: &Word| match word {
                Word::Text(_) => true,
                Word::File(place) => artifact.programs.iter().any(|(known, _)| known == place),
            };
            if !artifact.run.iter().all(is_listed) {
                return Err(damaged("its index runs a program that it does not list"));
            }
        }
    }
    for (path, sha256) in &index.locks {
        inside(path)?;
        add(sha256, all.join(LOCKS).join(path), false)?;
    }
    if index.blobs.len() > most::FILES || !index.blobs.keys().all(|sha256| is_sha256(sha256)) {
        return Err(damaged("its index lists contents that are none"));
    }
    Ok(targets)
}

/// Makes files of a content, which must have its hash.
fn make(content: &mut dyn Read, sha256: &str, targets: &[Target]) -> io::Result<()> {
    let mut content = Hashing::new(content);
    let Some((first, others)) = targets.split_first() else {
        io::copy(&mut content, &mut io::sink())?;
        return Ok(());
    };
    let create = |target: &Target| -> io::Result<fs::File> {
        let folder = target.path.parent().unwrap_or(Path::new("."));
        disk::create_dir_all(folder)?;
        let mode = if target.executable { 0o755 } else { 0o644 };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        disk::open_as(&target.path, flags, mode)
    };
    io::copy(&mut content, &mut create(first)?)?;
    if content.sha256() != sha256 {
        return Err(damaged(&format!(
            "`{BLOBS}{sha256}` has another content than its name says"
        )));
    }
    for target in others {
        io::copy(&mut open_regular(&first.path)?, &mut create(target)?)?;
    }
    Ok(())
}

/// The project in an unpacked archive.
fn project(index: Index, sha256: String, all: &Path, folder: TempDir) -> Result<Unpacking, Error> {
    let of_base = index.base.as_ref().and_then(|base| base.side.as_ref().ok());
    let files = [Some(&index.current), of_base].map(|side| side.map(|side| &side.files));
    let files = sha256_of(&files).map_err(Error::Usage)?;
    let Index { current, base, .. } = index;
    let load = |side: &PackedSide, top: &Path| -> Result<Config, Error> {
        let path = top.join(&side.config_file);
        let parent = path.parent().unwrap_or(top);
        disk::create_dir_all(parent).map_err(Error::io("create", parent))?;
        let config = Config::parse(&path, &side.config)?;
        Ok(Config {
            work: all.join("work"),
            baselines: all.join(LOCKS),
            ..config
        })
    };
    let config = load(&current, &all.join(CURRENT))?;
    disk::create_dir_all(&config.work).map_err(Error::io("create", &config.work))?;
    let mut programs = Prebuilt {
        current: prebuilt(current, &all.join(CURRENT), all),
        base: PrebuiltSide::default(),
        git: index.git,
    };
    let base = match base {
        None => None,
        Some(base) => {
            let of_base = match base.side {
                Err(why) => Err(why),
                Ok(side) => {
                    let config = load(&side, &all.join(BASE))?;
                    programs.base = prebuilt(side, &all.join(BASE), all);
                    Ok(config)
                }
            };
            Some(BaseProject::packed(base.commit, of_base, &config))
        }
    };
    let plan = Selected::new(config, &index.selected, &[])?;
    let (config, store) = (plan.config.clone(), Store::open(&all.join(LOCKS))?);
    let grounds = Grounds::settled(config, store, index.authority, index.findings);
    let unpacked = Unpacked {
        sha256,
        base,
        packed: Packed {
            programs,
            same_programs: index.same_programs,
            times: index.times,
            files,
        },
        _folder: folder,
    };
    Ok((unpacked, plan, grounds))
}

/// What was built of a side. Its paths were looked at before anything was unpacked.
fn prebuilt(side: PackedSide, top: &Path, all: &Path) -> PrebuiltSide {
    let path_of = |place: &Place| match place {
        Place::Checkout(path) => top.join(path),
        Place::Program(sha256, name) => program_in(all, sha256, name),
    };
    let artifact = |packed: PackedArtifact| {
        let words = packed.run.into_iter().map(|word| match word {
            Word::Text(text) => text,
            Word::File(place) => path_of(&place).display().to_string(),
        });
        let programs = packed.programs.into_iter();
        Artifact {
            run: words.collect(),
            programs: programs
                .map(|(place, sha256)| (path_of(&place), sha256))
                .collect(),
            cached: true,
            ..packed.artifact
        }
    };
    let artifacts = side.artifacts.into_iter();
    PrebuiltSide {
        artifacts: artifacts
            .map(|(id, packed)| (id, artifact(packed)))
            .collect(),
        findings: side.findings,
    }
}
