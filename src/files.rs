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
    const LEFT: [&str; 9] = [
        "capture-",
        "counting.",
        "imported.",
        "launches.",
        "profile.json",
        "program.log",
        "result.json",
        "static.json",
        "sanitizer-",
    ];
    for entry in fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let path = entry.map_err(Error::io("read", folder))?.path();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        if name.is_some_and(|name| LEFT.iter().any(|left| name.starts_with(left))) && path.is_file()
        {
            fs::remove_file(&path).map_err(Error::io("clear", &path))?;
        }
    }
    Ok(())
}

/// Removes the static profiles that an earlier build left of a variant below `output`, and of its
/// base: a profile that is not made again must not be taken for a current one.
///
/// # Errors
/// [`Error::Io`].
pub fn clear_compiled(output: &Path, variant: &VariantId) -> Result<(), Error> {
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
