//! Writing files so that a killed process leaves the old content or the new.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

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

/// Makes renames within a folder durable.
///
/// # Errors
/// Where the folder cannot be opened.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Temporary files are private; what is kept is as readable as any file a program creates.
fn set_default_mode(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}
