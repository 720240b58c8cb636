//! What a command touches, as `strace` sees it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use regex::Regex;

use super::{aloud, are_here};

/// Calls that open files, or change the names in folders.
const CALLS: &str = "trace=open,openat,openat2,creat,mkdir,mkdirat,mknod,mknodat,rename,renameat,\
     renameat2,unlink,unlinkat,rmdir,link,linkat,symlink,symlinkat,truncate,chmod,fchmodat,?fchmodat2";

/// Whether `strace` may be used here; otherwise says aloud what is skipped.
pub fn can_watch() -> bool {
    if !are_here(&["strace"]) {
        return false;
    }
    let tried = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .status();
    let allowed = tried.is_ok_and(|status| status.success());
    if !allowed {
        aloud(
            "SKIPPED: this machine does not let a process watch another (`docker run --cap-add SYS_PTRACE`)",
        );
    }
    allowed
}

/// The paths that a command and its children opened, and those that they wrote, renamed or removed.
#[derive(Debug, Default)]
pub struct Touched {
    pub read: Vec<PathBuf>,
    pub written: Vec<PathBuf>,
}

/// Runs a command, with its variables and its folder, and watches it. The trace is written to a file.
pub fn watched(command: &Command, trace: &Path) -> (Output, Touched) {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-y", "-s", "4096", "-e", CALLS, "-o"]);
    strace
        .arg(trace)
        .arg(command.get_program())
        .args(command.get_args());
    let folder = command.get_current_dir().unwrap();
    strace.current_dir(folder);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => strace.env(name, value),
            None => strace.env_remove(name),
        };
    }
    let output = strace.output().unwrap();
    let text = String::from_utf8_lossy(&std::fs::read(trace).unwrap()).into_owned();
    (output, touched(&text, folder))
}

fn touched(trace: &str, folder: &Path) -> Touched {
    static OPENED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\) += \d+<(.*)>$").unwrap());
    static NAMED: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"(?:(?:\d+|AT_FDCWD)<([^>]*)>, )?"((?:[^"\\]|\\.)*)""#).unwrap()
    });
    let mut touched = Touched::default();
    for line in trace.lines() {
        let call = line
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .trim_start();
        if let (true, Some(opened)) = (call.starts_with("open"), OPENED.captures(line)) {
            let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"];
            let writes = writes.iter().any(|flag| line.contains(flag));
            match writes {
                true => touched.written.push(opened[1].into()),
                false => touched.read.push(opened[1].into()),
            }
        } else if line.ends_with("= 0") {
            for name in NAMED.captures_iter(call) {
                let base = name.get(1).map_or(folder, |base| Path::new(base.as_str()));
                touched.written.push(base.join(&name[2]));
            }
        }
    }
    touched
}
