//! Asks the tools behind nvcc which files they open: each call of the preprocessor by a variable
//! that GCC knows, the assembler by a flag. Both leave their lists in a folder.

use std::fs::{self, File, OpenOptions};
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

/// The lists of one build while it is under way.
pub(super) struct Opened {
    folder: TempDir,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<Vec<u8>>>,
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
    /// Why a list cannot be read.
    pub(super) fn files(mut self, outputs: &Path) -> Result<Vec<String>, String> {
        let mut files = prerequisites(&fs::read_to_string(self.headers()).unwrap_or_default());
        self.stop.store(true, Ordering::Relaxed);
        let assembled = self.reader.take().and_then(|reader| reader.join().ok());
        files.extend(depfile::assembled(&assembled.unwrap_or_default(), outputs)?);
        Ok(files)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Reads a pipe until nothing more comes after the build.
fn drain(mut pipe: File, stop: &AtomicBool) -> Vec<u8> {
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let last = stop.load(Ordering::Relaxed);
        match pipe.read(&mut buffer) {
            Ok(count) if count > 0 => read.extend_from_slice(&buffer[..count]),
            _ if last => return read,
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}
