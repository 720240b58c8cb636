//! Asks the tools behind nvcc which files they open: each call of the preprocessor by a variable
//! that GCC knows, the assembler and the linker by flags. They leave their lists in a folder.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, mkfifoat};
use tempfile::TempDir;

use super::depfile::{self, prerequisites};
use crate::disk;
use crate::files::{most, read_text_up_to};
use crate::process;

/// The lists of one build while it is under way.
pub(super) struct Opened {
    folder: TempDir,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

impl Opened {
    /// Prepares the lists. Their paths contain nothing that a shell reads as more than a word.
    pub(super) fn prepare(folder: TempDir) -> io::Result<Opened> {
        let plain = |path: &Path| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
            path.to_str().is_some_and(|path| path.chars().all(plain))
        };
        let folder = match plain(folder.path()) {
            true => folder,
            false => process::scratch_in(Path::new("/tmp"), "sparsek-gate-")?,
        };
        let path = folder.path().join("assembled.d");
        // Each call of the assembler truncates its list. A pipe keeps all of them.
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR)?;
        let pipe = disk::open_as(&path, OFlags::RDWR, 0)?;
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

    /// The flags that make the host's assembler list its files, and its linker where it can.
    pub(super) fn flags(&self, linker_lists: bool) -> Vec<String> {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let list = format!("-Xassembler,--MD,-Xassembler,{}", path("assembled.d"));
        let mut flags = vec!["-Xcompiler".to_owned(), list];
        if linker_lists {
            flags.push("-Xlinker".to_owned());
            flags.push(format!("--dependency-file={}", path(LINKED)));
        }
        flags
    }

    /// The files of all lists, after the build ended. `outputs` is the folder of what was assembled.
    ///
    /// # Errors
    /// Why a list cannot be read: what is not in it would not be tracked.
    pub(super) fn files(mut self, outputs: &Path) -> Result<Lists, String> {
        let read = |path: PathBuf| {
            let text = read_text_up_to(&path, most::TEXT);
            text.map_err(|error| format!("a list of opened files cannot be read: {error}"))
        };
        self.stop.store(true, Ordering::Relaxed);
        let assembled = match self.reader.take().map(JoinHandle::join) {
            Some(Ok(Ok(assembled))) => depfile::assembled(&assembled, outputs)?,
            _ => return Err("the list of assembled files cannot be read".to_owned()),
        };
        let linked = self.folder.path().join(LINKED);
        let linked = match disk::is_there(&linked) {
            true => depfile::linked(&read(linked)?)?,
            false => Vec::new(),
        };
        Ok(Lists {
            included: prerequisites(&read(self.headers())?),
            others: assembled.into_iter().chain(linked).collect(),
        })
    }
}

/// The files that the tools behind nvcc opened. Some of them they made themselves.
pub(super) struct Lists {
    /// Sources and headers.
    pub included: Vec<String>,
    /// What the assembler and the linker read.
    pub others: Vec<String>,
}

const LINKED: &str = "linked.d";

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
            let opened = Opened::prepare(process::scratch().unwrap()).unwrap();
            fs::write(opened.headers(), headers).unwrap();
            fs::write(opened.folder.path().join("assembled.d"), assembled).unwrap();
            let lists = opened.files(Path::new("/out"))?;
            Ok::<_, String>([lists.included, lists.others].concat())
        };
        assert_eq!(
            lists(b"a.o: a.h\n", b"/out/a.o: a.bin\n").unwrap(),
            ["a.h", "a.bin"]
        );
        assert!(lists(b"a.o: a.h \xff.h\n", b"").is_err());
        assert!(lists(b"", b"/out/a.o: \xff.bin\n").is_err());
        assert!(lists(b"", b"").unwrap().is_empty());
        // A host compiler that lists nothing.
        let opened = Opened::prepare(process::scratch().unwrap()).unwrap();
        assert!(opened.files(Path::new("/out")).is_err());
    }
}
