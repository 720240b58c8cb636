//! Asks the tools behind nvcc which files they open: each call of the preprocessor by a variable
//! that GCC knows, the assembler by a flag. Both leave their lists in a folder.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, mkfifoat};
use tempfile::TempDir;

use super::depfile::{self, prerequisites};
use crate::files::{most, read_text_up_to};

/// The lists of one build while it is under way.
pub(super) struct Opened {
    folder: TempDir,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

impl Opened {
    /// Prepares the lists. Their paths contain nothing that a shell reads as more than a word.
    pub(super) fn prepare() -> io::Result<Opened> {
        let plain = |path: &Path| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
            path.to_str().is_some_and(|path| path.chars().all(plain))
        };
        let folder = tempfile::tempdir()?;
        let folder = match plain(folder.path()) {
            true => folder,
            false => tempfile::tempdir_in("/tmp")?,
        };
        let path = folder.path().join("assembled.d");
        // Each call of the assembler truncates its list. A pipe keeps all of them.
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR)?;
        let pipe = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default())
            .open(&path)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        Ok(Opened {
            folder,
            stop,
            reader: Some(std::thread::spawn(move || drain(pipe, &stopped))),
        })
    }

    /// Where GCC lists the headers of each call (`SUNPRO_DEPENDENCIES`).
    pub(super) fn headers(&self) -> PathBuf {
        self.folder.path().join("included.d")
    }

    /// The flags that make the host's assembler list its files.
    pub(super) fn assembler_flags(&self) -> [String; 2] {
        let path = self.folder.path().join("assembled.d");
        let list = format!("-Xassembler,--MD,-Xassembler,{}", path.display());
        ["-Xcompiler".to_owned(), list]
    }

    /// The files of all lists, after the build ended. `outputs` is the folder of what was assembled.
    ///
    /// # Errors
    /// Why a list cannot be read: what is not in it would not be tracked.
    pub(super) fn files(mut self, outputs: &Path) -> Result<Vec<String>, String> {
        let unreadable =
            |error: io::Error| format!("a list of opened files cannot be read: {error}");
        // Not every host compiler writes it.
        let headers = match read_text_up_to(&self.headers(), most::TEXT) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            headers => headers.map_err(unreadable)?,
        };
        self.stop.store(true, Ordering::Relaxed);
        let assembled = match self.reader.take().map(JoinHandle::join) {
            Some(Ok(assembled)) => assembled.map_err(unreadable)?,
            _ => return Err("the list of assembled files was not read".to_owned()),
        };
        let mut files = prerequisites(&headers);
        files.extend(depfile::assembled(&assembled, outputs)?);
        Ok(files)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Reads a pipe until nothing more comes after the build.
fn drain(mut pipe: File, stop: &AtomicBool) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let last = stop.load(Ordering::Relaxed);
        match pipe.read(&mut buffer) {
            // What is too large is read on: the assembler must not wait for its reader.
            Ok(count) if count > 0 && read.len() as u64 <= most::TEXT => {
                read.extend_from_slice(&buffer[..count]);
            }
            Ok(count) if count > 0 => {}
            _ if last && read.len() as u64 > most::TEXT => {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            _ if last => return Ok(read),
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_list_that_cannot_be_read_is_an_error_and_not_an_empty_list() {
        let lists = |headers: &[u8], assembled: &[u8]| {
            let opened = Opened::prepare().unwrap();
            fs::write(opened.headers(), headers).unwrap();
            fs::write(opened.folder.path().join("assembled.d"), assembled).unwrap();
            opened.files(Path::new("/out"))
        };
        assert_eq!(
            lists(b"a.o: a.h\n", b"/out/a.o: a.bin\n").unwrap(),
            ["a.h", "a.bin"]
        );
        assert!(lists(b"a.o: a.h \xff.h\n", b"").is_err());
        assert!(lists(b"", b"/out/a.o: \xff.bin\n").is_err());
        assert!(lists(b"", b"").unwrap().is_empty());
    }
}
