//! The places of a variant's files, and atomic writes: a killed process leaves the old content or the
//! new.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::finding::Error;
use crate::terms::VariantId;

/// Name of the profile in a variant's folder.
pub const PROFILE_FILE: &str = "profile.json";
/// Name of the profile of the static tier beside it.
pub const STATIC_PROFILE_FILE: &str = "static.json";

/// Writes beside the target and renames into place.
///
/// # Errors
/// Where the folder of the target cannot be written.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".tmp-")
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    set_default_mode(file.path())?;
    file.persist(path).map_err(|error| error.error)?;
    sync_folder(folder)
}

/// Writes a file that the user named: through a link to its target, into a device or a pipe, and
/// anything else as [`write_atomically`] does.
///
/// # Errors
/// Where it cannot be written.
pub fn write_named(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(meta) if meta.is_file() => write_atomically(&path.canonicalize()?, bytes),
        Ok(_) => fs::OpenOptions::new()
            .write(true)
            .open(path)?
            .write_all(bytes),
        // A link that leads to no file yet.
        Err(_) if path.is_symlink() => fs::write(path, bytes),
        Err(_) => write_atomically(path, bytes),
    }
}

/// Largest text that is read whole, 64 MiB: a profile of a thousand kernels is a tenth of it.
const LARGEST_TEXT: u64 = 64 << 20;

/// Reads a regular file of bounded size. A device or a pipe may not end.
///
/// # Errors
/// Where it cannot be read, is not a regular file, or is too large.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    read_regular_up_to(path, LARGEST_TEXT)
}

/// The same with another bound, in bytes.
///
/// # Errors
/// As [`read_regular`].
pub fn read_regular_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let meta = fs::metadata(path)?;
    if !meta.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    if meta.len() > most {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("larger than {} MiB", most >> 20),
        ));
    }
    fs::read(path)
}

/// Makes renames within a folder durable.
///
/// # Errors
/// Where the folder cannot be opened.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Creates the work folder where it does not exist, and keeps a new one out of git.
///
/// # Errors
/// [`Error::Io`].
pub fn create_work_folder(work: &Path) -> Result<(), Error> {
    if work.exists() {
        return Ok(());
    }
    fs::create_dir_all(work).map_err(Error::io("create", work))?;
    let ignore = work.join(".gitignore");
    fs::write(&ignore, "*\n").map_err(Error::io("write", &ignore))
}

/// The folder of a variant's files below another.
pub fn variant_folder(base: &Path, variant: &VariantId) -> PathBuf {
    base.join(&variant.suite).join(&variant.variant)
}

/// In the folder of a variant: what an earlier run left, while a new run works beside it.
const EARLIER: &str = ".earlier";
/// The same, not complete yet.
const ASIDE: &str = ".earlier.next";
/// The same, no longer needed.
const DONE: &str = ".earlier.old";

/// The folder that the recorded files of a variant are read from: its own, or where a run was
/// killed, or is going on, the one with what the run before it left. It is one or the other as a
/// whole.
pub fn recorded_folder(base: &Path, variant: &VariantId) -> PathBuf {
    let folder = variant_folder(base, variant);
    let earlier = folder.join(EARLIER);
    if is_folder(&earlier) { earlier } else { folder }
}

/// The folder of the base's recorded files beside them.
pub fn recorded_base_folder(base: &Path, variant: &VariantId) -> PathBuf {
    recorded_folder(base, variant).join("base")
}

/// Creates and empties the folder of a variant for a run, as [`empty_variant_folder`] does. What
/// earlier runs left in it is kept, and is what is read, until [`settle`].
///
/// # Errors
/// [`Error::Io`]; what was there is unchanged, or kept.
pub fn set_aside(base: &Path, variant: &VariantId) -> Result<PathBuf, Error> {
    let folder = variant_folder(base, variant);
    fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    let earlier = folder.join(EARLIER);
    // Otherwise a run was killed: what is beside it is incomplete.
    if !is_folder(&earlier) {
        let aside = folder.join(ASIDE);
        remove_folder(&aside)?;
        link_files(&folder, &aside)?;
        let of_base = base_folder(base, variant);
        if is_folder(&of_base) {
            link_files(&of_base, &aside.join("base"))?;
        }
        fs::rename(&aside, &earlier).map_err(Error::io("create", &earlier))?;
        sync_folder(&folder).map_err(Error::io("write", &folder))?;
    }
    empty_variant_folder(base, variant)
}

/// From here on what the run left in the folder of a variant is what is read.
///
/// # Errors
/// [`Error::Io`].
pub fn settle(base: &Path, variant: &VariantId) -> Result<(), Error> {
    let folder = variant_folder(base, variant);
    let (earlier, done) = (folder.join(EARLIER), folder.join(DONE));
    remove_folder(&done)?;
    if is_folder(&earlier) {
        fs::rename(&earlier, &done).map_err(Error::io("clear", &earlier))?;
        sync_folder(&folder).map_err(Error::io("write", &folder))?;
    }
    remove_folder(&done)
}

/// Least free space after a step that failed, in bytes. With less it may have failed because the
/// disk is full.
const ROOM: u64 = 1 << 20;

/// That the disk of a variant's folder is not full: what a run that failed is to replace would be
/// lost for nothing.
///
/// # Errors
/// [`Error::Io`].
pub fn has_room(base: &Path, variant: &VariantId) -> Result<(), Error> {
    let folder = variant_folder(base, variant);
    let free = rustix::fs::statvfs(&folder).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    match free {
        Ok(free) if free < ROOM => {
            let full = io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error());
            Err(Error::io("write", folder)(full))
        }
        _ => Ok(()),
    }
}

/// Puts back what was there before a run that was killed.
fn restore(base: &Path, variant: &VariantId) -> Result<(), Error> {
    let earlier = variant_folder(base, variant).join(EARLIER);
    if is_folder(&earlier) {
        let folder = empty_variant_folder(base, variant)?;
        link_files(&earlier, &folder)?;
        let of_base = earlier.join("base");
        if is_folder(&of_base) {
            link_files(&of_base, &base_folder(base, variant))?;
        }
    }
    settle(base, variant)
}

/// Makes the files of a run appear in another folder, too.
fn link_files(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir_all(to).map_err(Error::io("create", to))?;
    for path in left_in(from)? {
        let target = to.join(path.file_name().unwrap_or_default());
        // Some file systems have no links.
        fs::hard_link(&path, &target)
            .or_else(|_| fs::copy(&path, &target).map(drop))
            .map_err(Error::io("write", &target))?;
    }
    sync_folder(to).map_err(Error::io("write", to))
}

/// Whether it is a folder, and not a link to one.
fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

fn remove_folder(path: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("clear", path)(error))
        }
        _ => Ok(()),
    }
}

/// Creates the folder of a variant, and removes what earlier runs left in it and in its folder of the
/// base: a base of another run must not be taken for this one's. Other files stay.
///
/// # Errors
/// [`Error::Io`].
pub fn empty_variant_folder(base: &Path, variant: &VariantId) -> Result<PathBuf, Error> {
    let folder = variant_folder(base, variant);
    fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    clear(&folder)?;
    let of_base = base_folder(base, variant);
    if of_base.is_dir() {
        clear(&of_base)?;
    }
    Ok(folder)
}

fn clear(folder: &Path) -> Result<(), Error> {
    for path in left_in(folder)? {
        fs::remove_file(&path).map_err(Error::io("clear", &path))?;
    }
    Ok(())
}

/// The files in a folder that a run leaves there.
fn left_in(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    const LEFT: [&str; 9] = [
        // Of a write that was killed.
        ".tmp-",
        "capture-",
        "counting.",
        "imported.",
        "profile.json",
        "program.log",
        "result.json",
        "static.json",
        "sanitizer-",
    ];
    let mut left = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let path = entry.map_err(Error::io("read", folder))?.path();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        if name.is_some_and(|name| LEFT.iter().any(|left| name.starts_with(left))) && path.is_file()
        {
            left.push(path);
        }
    }
    Ok(left)
}

/// Removes the static profiles that an earlier build left of a variant below `output`, and of its
/// base: a profile that is not made again must not be taken for a current one.
///
/// # Errors
/// [`Error::Io`].
pub fn clear_compiled(output: &Path, variant: &VariantId) -> Result<(), Error> {
    restore(output, variant)?;
    for folder in [
        variant_folder(output, variant),
        base_folder(output, variant),
    ] {
        let path = folder.join(STATIC_PROFILE_FILE);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("clear", &path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Temporary files are private; a kept file is as readable as any file that a program creates.
fn set_default_mode(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}

/// Folder of the base's profile, where base and current were measured side by side.
pub fn base_folder(output: &Path, variant: &VariantId) -> PathBuf {
    variant_folder(output, variant).join("base")
}
