//! What a queue says while it is measured.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::files::open_regular;

/// The most that is read of a log at once, in bytes.
const MOST: u64 = 64 << 10;

/// The lines of a log that grows.
#[derive(Debug)]
pub(super) struct Said {
    log: PathBuf,
    /// Up to here it was read, in bytes.
    read: u64,
}

impl Said {
    pub fn of(log: &Path) -> Said {
        Said {
            log: log.to_path_buf(),
            read: 0,
        }
    }

    /// The whole lines that were added since the last time. A line that has not ended stays for the
    /// next time, unless it is longer than what is read at once.
    pub fn lines(&mut self) -> Vec<String> {
        let bytes = self.added().unwrap_or_default();
        let is_full = bytes.len() as u64 == MOST;
        let whole = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => &bytes[..=at],
            None if is_full => &bytes[..],
            None => return Vec::new(),
        };
        self.read += whole.len() as u64;
        let text = String::from_utf8_lossy(whole);
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        lines.map(str::to_owned).collect()
    }

    fn added(&self) -> std::io::Result<Vec<u8>> {
        // A program under test can put anything in its place: opening a pipe would wait for ever.
        let mut file = open_regular(&self.log)?;
        file.seek(SeekFrom::Start(self.read))?;
        let mut bytes = Vec::new();
        file.take(MOST).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn each_whole_line_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut said = Said::of(&log);
        assert_eq!(said.lines(), [""; 0]);
        let mut file = File::create(&log).unwrap();
        file.write_all(b"a\n\nb").unwrap();
        assert_eq!(said.lines(), ["a"]);
        assert_eq!(said.lines(), [""; 0]);
        file.write_all(b"c\nd\n").unwrap();
        assert_eq!(said.lines(), ["bc", "d"]);
        // A line without an end must not be kept for ever.
        file.write_all(&vec![b'x'; MOST as usize + 1]).unwrap();
        assert_eq!(said.lines().concat().len() as u64, MOST);
        file.write_all(b"\n").unwrap();
        assert_eq!(said.lines(), ["x"]);
    }

    #[test]
    fn a_log_that_is_a_pipe_now_says_nothing_and_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let made = Command::new("mkfifo").arg(&log).status().unwrap();
        assert!(made.success());
        assert_eq!(Said::of(&log).lines(), [""; 0]);
    }
}
