//! Files and folders that a change cannot redirect.
//!
//! A link in a checkout may have come with a change. None there is followed: to read, to write, to
//! rename or to remove. Outside of checkouts links belong to the machine, and are followed. A checkout
//! begins at a folder with `.git`. Nothing that is opened keeps its opener waiting.
//!
//! No other part of the tool calls these functions of [`std::fs`] (clippy.toml lists them), but for the
//! one that reads `/proc`. What may be a link all the same (sources, inputs, programs) is named by [`crate::git::real_input`] first.

#![expect(
    clippy::disallowed_methods,
    reason = "here they are called, below an open folder"
)]

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags, statat};
use rustix::io::Errno;

/// A place that need not exist: a name in an open folder.
struct Place {
    folder: OwnedFd,
    name: OsString,
}

impl Place {
    fn of(path: impl AsRef<Path>) -> io::Result<Place> {
        let path = path.as_ref();
        Ok(match path.file_name() {
            Some(name) => Place {
                folder: folder_after(0, folder_of(path))?,
                name: name.to_owned(),
            },
            // `/`, `.` and what ends in `..`.
            None => Place {
                folder: folder_after(0, path)?,
                name: OsString::from("."),
            },
        })
    }

    fn open(&self, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        rustix::fs::openat(&self.folder, &self.name, flags, mode)
    }

    /// Of what has the name, and be it a link.
    fn own_metadata(&self) -> io::Result<Metadata> {
        File::from(self.open(OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?).metadata()
    }

    fn is_link(&self) -> bool {
        self.own_metadata().is_ok_and(|meta| meta.is_symlink())
    }

    /// Where the link here leads; `None` of one that only the kernel can follow (`/proc/self/fd/1`).
    ///
    /// # Errors
    /// On a link in a checkout, and where it is none.
    fn behind(&self) -> io::Result<Option<PathBuf>> {
        let folder = path_of(&self.folder);
        if folder.as_os_str().is_empty() || checkout_of(&folder).is_some() {
            return Err(linked(&folder.join(&self.name)));
        }
        if rustix::fs::fstatfs(&self.folder)?.f_type == PROC {
            return Ok(None);
        }
        let target = rustix::fs::readlinkat(&self.folder, &self.name, Vec::new())?;
        Ok(Some(folder.join(OsString::from_vec(target.into_bytes()))))
    }

    /// What `make` makes with an unfinished file's name in the same folder, and the place.
    fn beside<T>(
        &self,
        make: impl Fn(&Place) -> rustix::io::Result<T>,
    ) -> rustix::io::Result<(Place, T)> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let aside = Place {
                folder: rustix::io::fcntl_dupfd_cloexec(&self.folder, 0)?,
                name: format!("{UNFINISHED}{}-{count}", std::process::id()).into(),
            };
            match make(&aside) {
                // Of a process with this number that was killed.
                Err(Errno::EXIST) => {}
                made => return Ok((aside, made?)),
            }
        }
    }

    /// For the functions that have no form with an open folder.
    fn path(&self) -> PathBuf {
        descriptor(&self.folder).join(&self.name)
    }
}

/// `PROC_SUPER_MAGIC` of `linux/magic.h`.
const PROC: rustix::fs::FsWord = 0x9fa0;

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a folder, after so many links.
fn folder_after(links: usize, path: &Path) -> io::Result<OwnedFd> {
    let flags = ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(CWD, path, FOLDER, Mode::empty(), flags) {
        // There are links, or this kernel or container has no such call.
        Err(Errno::LOOP | Errno::NOSYS | Errno::PERM | Errno::AGAIN) => walked(links, path),
        opened => Ok(opened?),
    }
}

/// The same, part by part.
fn walked(mut links: usize, path: &Path) -> io::Result<OwnedFd> {
    let mut folder = rustix::fs::open("/", FOLDER, Mode::empty())?;
    for part in std::path::absolute(path)?.components().skip(1) {
        let next = Place {
            folder,
            name: part.as_os_str().to_owned(),
        };
        let flags = FOLDER | OFlags::NOFOLLOW;
        folder = match rustix::fs::openat(&next.folder, &next.name, flags, Mode::empty()) {
            Err(Errno::LOOP | Errno::NOTDIR) if next.is_link() => {
                links += 1;
                match next.behind()? {
                    _ if links > MOST_LINKS => return Err(Errno::LOOP.into()),
                    Some(target) => folder_after(links, &target)?,
                    None => rustix::fs::openat(&next.folder, &next.name, FOLDER, Mode::empty())?,
                }
            }
            opened => opened?,
        };
    }
    Ok(folder)
}

/// The path of a file or a folder without links.
///
/// # Errors
/// As [`open_as`].
pub fn real(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let open = OwnedFd::from(open_as(path, OFlags::PATH, 0)?);
    fs::read_link(descriptor(&open))
}

fn descriptor(of: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", of.as_raw_fd()))
}

/// The path of an open folder.
fn path_of(folder: &OwnedFd) -> PathBuf {
    fs::read_link(descriptor(folder)).unwrap_or_default()
}

/// The outermost folder with `.git` on the way to a path, which has no links.
pub fn checkout_of(path: &Path) -> Option<&Path> {
    let folders = path.ancestors().collect::<Vec<_>>().into_iter().rev();
    let mut folders = folders.filter(|folder| fs::symlink_metadata(folder.join(".git")).is_ok());
    folders.next()
}

/// The error on a link in a checkout.
fn linked(path: &Path) -> io::Error {
    let why = format!(
        "`{}` is a link in a checkout, which a change may have brought, and is not followed; put there what it leads to",
        path.display()
    );
    io::Error::new(io::ErrorKind::InvalidInput, Linked(why))
}

/// That a link is not followed, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Linked(String);

impl Linked {
    /// Whether this is the cause of an error.
    pub fn is_cause(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|cause| cause.is::<Linked>())
    }
}

/// Opens a file or a folder, which `flags` may create with the mode.
///
/// # Errors
/// Those of the system, and on a link in a checkout: so of all functions here.
pub fn open_as(path: impl AsRef<Path>, flags: OFlags, mode: u32) -> io::Result<File> {
    let mode = Mode::from_raw_mode(mode);
    let mut path = path.as_ref().to_path_buf();
    for _ in 0..=MOST_LINKS {
        let place = Place::of(&path)?;
        let opened = place.open(flags | OFlags::NOFOLLOW, mode).map(File::from);
        let opened = match opened {
            // With `PATH` a link is opened itself.
            Ok(file) if flags.contains(OFlags::PATH) && file.metadata()?.is_symlink() => {
                Err(Errno::LOOP)
            }
            opened => opened,
        };
        path = match opened {
            Err(Errno::LOOP) if flags.contains(OFlags::NOFOLLOW) => return Err(Errno::LOOP.into()),
            Err(Errno::LOOP | Errno::NOTDIR) if place.is_link() => match place.behind()? {
                Some(target) => target,
                None => return Ok(File::from(place.open(flags, mode)?)),
            },
            opened => return Ok(opened?),
        };
    }
    Err(Errno::LOOP.into())
}

/// Opens a file or a folder to read it.
///
/// # Errors
/// As [`open_as`].
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    open_as(path, OFlags::RDONLY, 0)
}

/// Opens a file to write it, which is empty then.
///
/// # Errors
/// As [`open_as`].
pub fn create(path: impl AsRef<Path>) -> io::Result<File> {
    open_as(path, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC, 0o666)
}

/// Opens a file to write it, which must not exist.
///
/// # Errors
/// As [`open_as`].
pub fn create_new(path: impl AsRef<Path>) -> io::Result<File> {
    open_as(path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, 0o666)
}

/// The bytes of a file.
///
/// # Errors
/// As [`open_as`].
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a file.
///
/// # Errors
/// As [`open_as`], and where it is not UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Writes a file in place.
///
/// # Errors
/// As [`open_as`].
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    create(path)?.write_all(bytes.as_ref())
}

/// How the name of a file begins that is not in its place yet.
pub const UNFINISHED: &str = ".tmp-";

/// Writes a file without a name, gives it one beside the target, and renames it into place: a killed process
/// leaves the old content or the new, and nothing else. `fill` writes it, and `before` is asked when it is
/// complete and nobody can see it. File systems without such files (NFS) have the name from the beginning.
///
/// # Errors
/// As [`open_as`], and those of `fill`.
pub fn replace<T, U>(
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<T>,
    before: impl FnOnce(&File) -> U,
) -> io::Result<(File, T, U)> {
    let mut place = Place::of(path)?;
    for _ in 0..MOST_LINKS {
        let target = place.is_link().then(|| place.behind()).transpose()?;
        match target.flatten() {
            Some(target) => place = Place::of(&target)?,
            None => break,
        }
    }
    // A device or a pipe would become a file.
    let there = statat(&place.folder, &place.name, AtFlags::SYMLINK_NOFOLLOW);
    let kind = there.map(|there| FileType::from_raw_mode(there.st_mode));
    if kind.is_ok_and(|kind| !matches!(kind, FileType::RegularFile | FileType::Directory)) {
        let why = format!(
            "`{}` is no regular file, and is not replaced",
            path.display()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mode = Mode::from_raw_mode(0o600);
    let unnamed = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let (mut file, mut named) = match rustix::fs::openat(&place.folder, ".", unnamed, mode) {
        Ok(file) => (File::from(file), None),
        Err(_) => {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
            let (aside, file) = place.beside(|aside| aside.open(flags, mode))?;
            (File::from(file), Some(aside))
        }
    };
    let written = (|| {
        let filled = fill(&mut file)?;
        file.set_permissions(Permissions::from_mode(0o644))?;
        file.sync_all()?;
        let asked = before(&file);
        let aside = match named.take() {
            Some(aside) => aside,
            None => {
                let (from, flags) = (descriptor(&file), AtFlags::SYMLINK_FOLLOW);
                let link = |aside: &Place| {
                    rustix::fs::linkat(CWD, &from, &aside.folder, &aside.name, flags)
                };
                place.beside(link)?.0
            }
        };
        let aside = named.insert(aside);
        rustix::fs::renameat(&aside.folder, &aside.name, &place.folder, &place.name)?;
        Ok((filled, asked))
    })();
    let (filled, asked) = written.inspect_err(|_: &io::Error| {
        if let Some(aside) = &named {
            let _ = rustix::fs::unlinkat(&aside.folder, &aside.name, AtFlags::empty());
        }
    })?;
    sync(folder_of(path))?;
    Ok((file, filled, asked))
}

/// Makes durable what was written to a file, or the renames in a folder.
///
/// # Errors
/// As [`open_as`].
pub fn sync(path: impl AsRef<Path>) -> io::Result<()> {
    open(path)?.sync_all()
}

/// Copies a file, with its mode.
///
/// # Errors
/// As [`open_as`].
pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let mut source = open(from)?;
    let mode = source.metadata()?.permissions();
    let mut target = create(to)?;
    io::copy(&mut source, &mut target)?;
    target.set_permissions(mode)
}

/// Gives a file a second name.
///
/// # Errors
/// As [`open_as`].
pub fn hard_link(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (from, to) = (Place::of(from)?, Place::of(to)?);
    let flags = AtFlags::empty();
    Ok(rustix::fs::linkat(
        &from.folder, &from.name, &to.folder, &to.name, flags,
    )?)
}

/// Renames a file, a folder or a link, onto another one where there is one.
///
/// # Errors
/// As [`open_as`].
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    rename_with(from, to, RenameFlags::empty())
}

/// The same, as the flags say.
///
/// # Errors
/// As [`open_as`].
pub fn rename_with(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    flags: RenameFlags,
) -> io::Result<()> {
    let (from, to) = (Place::of(from)?, Place::of(to)?);
    Ok(rustix::fs::renameat_with(
        &from.folder, &from.name, &to.folder, &to.name, flags,
    )?)
}

/// Creates a folder.
///
/// # Errors
/// As [`open_as`].
pub fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let place = Place::of(path)?;
    let mode = Mode::from_raw_mode(0o777);
    Ok(rustix::fs::mkdirat(&place.folder, &place.name, mode)?)
}

/// Creates a folder and those around it, where they do not exist.
///
/// # Errors
/// As [`open_as`], and where something else has the name.
pub fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    let created = match create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && folder_of(path) != path => {
            create_dir_all(folder_of(path))?;
            create_dir(path)
        }
        created => created,
    };
    match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            open_as(path, FOLDER, 0).map(drop)
        }
        created => created,
    }
}

/// Removes a file or a link.
///
/// # Errors
/// As [`open_as`].
pub fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    let place = Place::of(path)?;
    Ok(rustix::fs::unlinkat(
        &place.folder,
        &place.name,
        AtFlags::empty(),
    )?)
}

/// Removes a folder that is empty.
///
/// # Errors
/// As [`open_as`].
pub fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let place = Place::of(path)?;
    let flags = AtFlags::REMOVEDIR;
    Ok(rustix::fs::unlinkat(&place.folder, &place.name, flags)?)
}

/// Whether this user may change what is in a folder.
///
/// # Errors
/// Why not; as [`open_as`].
pub fn may_change(path: impl AsRef<Path>) -> io::Result<()> {
    let place = Place::of(path)?;
    let (access, none) = (rustix::fs::Access::WRITE_OK, AtFlags::empty());
    rustix::fs::accessat(place.folder, place.name, access, none).map_err(Into::into)
}

/// Removes a folder with all that is in it; of a link the link.
///
/// # Errors
/// As [`open_as`].
pub fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    fs::remove_dir_all(Place::of(path)?.path())
}

/// What a file or a folder is; of a link in a checkout that of the link.
///
/// # Errors
/// As [`open_as`].
pub fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let own = symlink_metadata(&path)?;
    if !own.is_symlink() {
        return Ok(own);
    }
    match open_as(path, OFlags::PATH, 0) {
        Err(error) if Linked::is_cause(&error) => Ok(own),
        opened => opened?.metadata(),
    }
}

/// What has the path; of a link that of the link.
///
/// # Errors
/// As [`open_as`].
pub fn symlink_metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    Place::of(path)?.own_metadata()
}

/// Where a link leads.
///
/// # Errors
/// As [`open_as`], and where it is none.
pub fn read_link(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let place = Place::of(path)?;
    let target = rustix::fs::readlinkat(&place.folder, &place.name, Vec::new())?;
    Ok(OsString::from_vec(target.into_bytes()).into())
}

/// Whether anything has the path, and be it a link that leads nowhere.
pub fn is_there(path: impl AsRef<Path>) -> bool {
    symlink_metadata(path).is_ok()
}

/// What of a path this user may not read: it, or the first folder on the way to it that cannot be
/// searched. `None` where the user may read it, or it is not there.
pub fn denied(path: impl AsRef<Path>) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let refused = |at: &&Path| {
        let access = match *at == path {
            false => Access::EXEC_OK,
            true if is_dir(at) => Access::READ_OK | Access::EXEC_OK,
            true => Access::READ_OK,
        };
        rustix::fs::accessat(CWD, *at, access, AtFlags::EACCESS) == Err(Errno::ACCESS)
    };
    path.ancestors().filter(refused).last().map(PathBuf::from)
}

/// Whether it is a regular file.
pub fn is_file(path: impl AsRef<Path>) -> bool {
    metadata(path).is_ok_and(|meta| meta.is_file())
}

/// Whether it is a folder.
pub fn is_dir(path: impl AsRef<Path>) -> bool {
    metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// Whether it is a link.
pub fn is_link(path: impl AsRef<Path>) -> bool {
    symlink_metadata(path).is_ok_and(|meta| meta.is_symlink())
}

/// What lies in a folder.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where it is.
    pub path: PathBuf,
    kind: FileType,
}

impl Entry {
    /// Its name.
    pub fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    /// The name, as far as it is UTF-8.
    pub fn text(&self) -> String {
        self.name().to_string_lossy().into_owned()
    }

    /// Whether it is a folder, and no link to one.
    pub fn is_dir(&self) -> bool {
        self.kind.is_dir()
    }

    /// Whether it is a regular file, and no link to one.
    pub fn is_file(&self) -> bool {
        self.kind.is_file()
    }

    /// Whether it is a link.
    pub fn is_link(&self) -> bool {
        self.kind.is_symlink()
    }
}

/// What lies in a folder, sorted by name.
///
/// # Errors
/// As [`open_as`].
pub fn read_dir(path: impl AsRef<Path>) -> io::Result<Vec<Entry>> {
    let path = path.as_ref();
    let folder = open_as(path, OFlags::RDONLY | OFlags::DIRECTORY, 0)?;
    let mut entries = Vec::new();
    for entry in rustix::fs::Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not say it here.
            FileType::Unknown => match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                // It went meanwhile.
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            },
            known => known,
        };
        entries.push(Entry {
            path: path.join(OsStr::from_bytes(name.to_bytes())),
            kind,
        });
    }
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(entries)
}

/// The folder that a path lies in; of a mere name the current one.
pub fn folder_of(path: &Path) -> &Path {
    let parent = path.parent();
    let parent = parent.filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Where a path leads, through all links wherever they lie; itself where it leads to nothing.
pub fn leads_to(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Every link on the way to a path, and the end of the way, without links.
///
/// # Errors
/// Where there is no current folder.
pub fn stops(path: &Path) -> io::Result<Vec<PathBuf>> {
    let path = std::path::absolute(path)?;
    let parts = |path: &Path| -> Vec<OsString> {
        let parts = path.components().rev();
        parts.map(|part| part.as_os_str().to_owned()).collect()
    };
    let mut ahead = parts(&path);
    let (mut way, mut found) = (PathBuf::new(), Vec::new());
    while let Some(part) = ahead.pop() {
        // git knows no path with such a part.
        if part == "." {
            continue;
        }
        if part == ".." {
            way.pop();
            continue;
        }
        // An absolute target starts at the root again.
        way.push(part);
        if let Ok(target) = fs::read_link(&way) {
            found.push(way.clone());
            if found.len() > MOST_LINKS {
                break;
            }
            way.pop();
            ahead.extend(parts(&target));
        }
    }
    found.push(way);
    Ok(found)
}

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};

    use super::*;

    /// A checkout with links of every kind, beside a folder that no change may reach.
    fn scratch() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (checkout, victim) = (root.join("checkout"), root.join("victim"));
        for made in [
            checkout.join(".git"),
            checkout.join("own"),
            victim.join("in"),
        ] {
            fs::create_dir_all(made).unwrap();
        }
        fs::write(victim.join("file"), "secret").unwrap();
        fs::write(checkout.join("own/file"), "own").unwrap();
        for (link, target) in [
            ("folder", "../victim"),
            ("file", "../victim/file"),
            ("missing", "../victim/new"),
            ("inner", "own"),
            ("own/up", "../../victim"),
        ] {
            symlink(target, checkout.join(link)).unwrap();
        }
        (folder, checkout, victim)
    }

    #[test]
    fn nothing_in_a_checkout_is_done_through_a_link() {
        let (_folder, checkout, victim) = scratch();
        type Act = fn(&Path) -> io::Result<()>;
        let acts: [(&str, Act); 16] = [
            ("open", |path| open(path).map(drop)),
            ("read", |path| read(path).map(drop)),
            ("read_to_string", |path| read_to_string(path).map(drop)),
            ("read_dir", |path| read_dir(path).map(drop)),
            ("write", |path| write(path, "new")),
            ("create", |path| create(path).map(drop)),
            ("replace", |path| {
                replace(path, |file| file.write_all(b"new"), |_| ()).map(drop)
            }),
            ("create_dir_all", |path| create_dir_all(path)),
            ("real", |path| real(path).map(drop)),
            ("create_new below", |path| {
                create_new(path.join("below")).map(drop)
            }),
            ("create_dir below", |path| create_dir(path.join("below"))),
            ("remove_file below", |path| remove_file(path.join("file"))),
            ("remove_dir below", |path| remove_dir(path.join("in"))),
            ("remove_dir_all below", |path| {
                remove_dir_all(path.join("in"))
            }),
            ("rename below", |path| {
                rename(path.join("file"), path.join("moved"))
            }),
            ("hard_link below", |path| {
                hard_link(path.join("file"), path.join("linked"))
            }),
        ];
        for link in ["folder", "file", "missing", "own/up", "folder/in", "inner"] {
            for (name, act) in acts {
                let error = act(&checkout.join(link)).unwrap_err();
                assert!(Linked::is_cause(&error), "{name} {link}: {error}");
            }
        }
        let left = |folder: &Path| {
            let entries = read_dir(folder).unwrap().into_iter();
            entries.map(|entry| entry.text()).collect::<Vec<_>>()
        };
        assert_eq!(left(&victim), ["file", "in"]);
        assert_eq!(left(&checkout.join("own")), ["file", "up"]);
        assert_eq!(fs::read(victim.join("file")).unwrap(), b"secret");
        let error = open(checkout.join("own/up/file")).unwrap_err().to_string();
        assert!(error.contains("checkout/own/up` is a link"), "{error}");
        // A link itself is seen, and can be removed.
        assert!(is_link(checkout.join("file")) && !is_file(checkout.join("file")));
        remove_file(checkout.join("file")).unwrap();
        remove_dir_all(checkout.join("folder")).unwrap();
        assert_eq!(left(&victim), ["file", "in"]);
    }

    #[test]
    fn without_openat2_the_same_links_are_followed() {
        let (_folder, checkout, victim) = scratch();
        for (path, is_followed) in [
            (checkout.clone(), true),
            (checkout.join("own/../own"), true),
            (checkout.join("folder"), false),
            (checkout.join("inner"), false),
            (victim.join("../checkout/own/up/in"), false),
        ] {
            assert_eq!(walked(0, &path).is_ok(), is_followed, "{}", path.display());
            assert_eq!(
                folder_after(0, &path).is_ok(),
                is_followed,
                "{}",
                path.display()
            );
        }
    }

    #[test]
    fn outside_of_a_checkout_links_are_followed_up_to_it() {
        let (folder, checkout, victim) = scratch();
        let root = folder.path();
        symlink("victim", root.join("to_victim")).unwrap();
        symlink("checkout", root.join("to_checkout")).unwrap();
        assert_eq!(read(root.join("to_victim/file")).unwrap(), b"secret");
        write(root.join("to_victim/file"), "new").unwrap();
        assert_eq!(read(victim.join("file")).unwrap(), b"new");
        assert_eq!(read(root.join("to_checkout/own/file")).unwrap(), b"own");
        assert!(read(root.join("to_checkout/inner/file")).is_err());
        assert_eq!(checkout_of(&checkout.join("own")), Some(checkout.as_path()));
        assert_eq!(
            real(root.join("to_checkout")).unwrap(),
            checkout.canonicalize().unwrap()
        );
        // A link of the machine may lead through one of the change.
        symlink("checkout/folder", root.join("through")).unwrap();
        symlink("checkout/file", root.join("through_file")).unwrap();
        for path in ["through", "through/file", "through_file"] {
            let error = open(root.join(path)).unwrap_err();
            assert!(Linked::is_cause(&error), "{path}: {error}");
        }
        symlink("round", root.join("round")).unwrap();
        assert!(open(root.join("round")).is_err() && open(root.join("round/in")).is_err());
        // Links of the system lead to no path.
        assert!(read("/proc/self/status").is_ok() && is_dir("/proc/self/fd"));
    }

    #[test]
    fn a_file_has_no_name_before_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let names = || read_dir(folder.path()).unwrap().len();
        let seen = replace(&path, |_| Ok(names()), |_| names()).unwrap();
        assert_eq!((seen.1, seen.2, names()), (0, 0, 1));
    }

    #[test]
    fn a_file_that_cannot_be_replaced_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let fails = |_: &mut File| Err::<(), _>(io::Error::other("full"));
        assert!(replace(&path, fails, |_| ()).is_err());
        assert!(read_dir(folder.path()).unwrap().is_empty());
    }

    #[test]
    fn the_stops_on_a_way_are_its_links_and_its_end_without_dots() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("v1")).unwrap();
        symlink("./v1/../v1/./ncu", root.join("ncu")).unwrap();
        let found = stops(&root.join("ncu")).unwrap();
        let texts: Vec<&OsStr> = found.iter().map(|path| path.as_os_str()).collect();
        assert_eq!(texts, [root.join("ncu"), root.join("v1/ncu")]);
    }

    #[test]
    fn a_pipe_is_not_replaced_and_a_link_of_the_machine_leads_to_what_is() {
        let (_folder, checkout, victim) = scratch();
        let outside = checkout.parent().unwrap();
        let pipe = victim.join("pipe");
        rustix::fs::mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        symlink("victim/pipe", outside.join("to_pipe")).unwrap();
        symlink("victim/file", outside.join("to_file")).unwrap();
        let write = |path: &Path| replace(path, |file| file.write_all(b"new"), |_| ());
        for path in [pipe.clone(), outside.join("to_pipe")] {
            assert!(write(&path).is_err(), "{}", path.display());
            assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        }
        write(&outside.join("to_file")).unwrap();
        assert_eq!(fs::read_to_string(victim.join("file")).unwrap(), "new");
        assert!(
            fs::symlink_metadata(outside.join("to_file"))
                .unwrap()
                .is_symlink()
        );
    }
}
