//! The profilers of one machine.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::cupti::Cupti;
use super::ncu::Ncu;
use super::session::Profiler;
use crate::config::Toolchain;
use crate::disk;
use crate::finding::Error;
use crate::terms::Tier;

/// What identifies the file of a library: its path, its size in bytes, and when it was written, in
/// seconds and nanoseconds.
pub type LibraryFile = (OsString, u64, i64, i64);

/// The profilers of one machine, one a tier.
pub struct Profilers {
    toolchain: Toolchain,
    work: PathBuf,
    /// Looked for when it is needed first.
    ncu: OnceCell<Ncu>,
    cupti: Cupti,
}

impl Profilers {
    /// The profilers of a toolchain. No program is started yet.
    pub fn new(toolchain: &Toolchain, work: &Path) -> Profilers {
        Profilers {
            toolchain: toolchain.clone(),
            work: work.to_path_buf(),
            ncu: OnceCell::new(),
            cupti: Cupti::beside(&Ncu::path(toolchain).unwrap_or_default()),
        }
    }

    /// The program ncu.
    ///
    /// # Errors
    /// As [`Ncu::locate`].
    pub fn ncu(&self) -> Result<&Ncu, Error> {
        match self.ncu.get() {
            Some(ncu) => Ok(ncu),
            None => {
                let ncu = Ncu::locate(&self.toolchain, &self.work)?;
                Ok(self.ncu.get_or_init(|| ncu))
            }
        }
    }

    /// The same, where it was looked for.
    pub fn located(&self) -> Option<&Ncu> {
        self.ncu.get()
    }

    /// The libcupti that measures below ncu's tier; `None` where there is none.
    pub fn libcupti(&self, toolchain: &Toolchain, cuda: &str) -> Option<LibraryFile> {
        let path = self.cupti.libcupti(toolchain, cuda).ok()?;
        let path = path.canonicalize().ok()?;
        let meta = disk::metadata(&path).ok()?;
        let (bytes, seconds, nanoseconds) = (meta.len(), meta.mtime(), meta.mtime_nsec());
        Some((path.into_os_string(), bytes, seconds, nanoseconds))
    }

    /// The profiler of a tier.
    ///
    /// # Errors
    /// As [`Ncu::locate`]; [`Error::Usage`] for the static tier, where nothing runs.
    pub fn of(&self, tier: Tier) -> Result<&dyn Profiler, Error> {
        match tier {
            Tier::Counters => Ok(self.ncu()?),
            Tier::KernelTimes => Ok(&self.cupti),
            Tier::Static => Err(Error::Usage(
                "nothing runs on the static tier, so there is nothing to measure".to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::fs::{self, File};
    use std::os::unix::ffi::OsStrExt;
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_library_is_another_one_by_any_byte_of_its_path_its_size_and_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let written = |name: &[u8], text: &str, nanoseconds: u64| {
            let path = folder.path().join(OsStr::from_bytes(name));
            fs::write(&path, text).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(nanoseconds);
            File::open(&path).unwrap().set_modified(time).unwrap();
            let toolchain = Toolchain {
                cupti: Some(path),
                ..Toolchain::default()
            };
            let profilers = Profilers::new(&toolchain, folder.path());
            profilers.libcupti(&toolchain, "13.0").unwrap()
        };
        let one = written(b"lib\xff.so", "13", 1_000_000_001);
        assert_eq!(written(b"lib\xff.so", "31", 1_000_000_001), one);
        for (name, text, nanoseconds) in [
            (&b"lib\xfe.so"[..], "13", 1_000_000_001),
            (b"lib\\xff.so", "13", 1_000_000_001),
            (b"lib\xff.so", "130", 1_000_000_001),
            (b"lib\xff.so", "13", 1_000_000_002),
        ] {
            assert_ne!(written(name, text, nanoseconds), one);
        }
    }
}
