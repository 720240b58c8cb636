//! The profilers of one machine.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;

use super::cupti::Cupti;
use super::ncu::Ncu;
use super::session::Profiler;
use crate::config::Toolchain;
use crate::finding::Error;
use crate::terms::Tier;

/// What identifies the file of a library: its path, its size in bytes, and when it was written, in
/// seconds and nanoseconds.
pub type LibraryFile = (OsString, u64, i64, i64);

/// The profilers of one machine, one a tier.
pub struct Profilers {
    ncu: Ncu,
    cupti: Cupti,
}

impl Profilers {
    /// The profilers beside an installation of ncu. Nothing else is looked for yet.
    pub fn new(ncu: Ncu) -> Profilers {
        Profilers {
            cupti: Cupti::beside(&ncu.path),
            ncu,
        }
    }

    /// What lists all launches of a program.
    pub fn lister(&self) -> &Cupti {
        &self.cupti
    }

    /// The libcupti that measures below ncu's tier; `None` where there is none.
    pub fn libcupti(&self, toolchain: &Toolchain, cuda: &str) -> Option<LibraryFile> {
        let path = self.cupti.libcupti(toolchain, cuda).ok()?;
        let path = path.canonicalize().ok()?;
        let meta = path.metadata().ok()?;
        let (bytes, seconds, nanoseconds) = (meta.len(), meta.mtime(), meta.mtime_nsec());
        Some((path.into_os_string(), bytes, seconds, nanoseconds))
    }

    /// The profiler of a tier.
    ///
    /// # Errors
    /// [`Error::Usage`] for the static tier, where nothing runs.
    pub fn of(&self, tier: Tier) -> Result<&dyn Profiler, Error> {
        match tier {
            Tier::Counters => Ok(&self.ncu),
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
            let ncu = Ncu {
                path: "/ncu".into(),
                version: String::new(),
            };
            let toolchain = Toolchain {
                cupti: Some(path),
                ..Toolchain::default()
            };
            Profilers::new(ncu).libcupti(&toolchain, "13.0").unwrap()
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
