//! Errors that end a run. What concerns one variant only is a finding, see [`crate::verdict`].

use crate::disk::{self, Linked};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use thiserror::Error;

use super::ExitCode;

/// Why a run cannot go on.
#[derive(Debug, Error)]
pub enum Error {
    /// `config.toml` is missing or wrong.
    #[error("{0}")]
    Config(String),
    /// The command line asks for something that does not exist.
    #[error("{0}")]
    Usage(String),
    /// A tool, the GPU, or a right is missing.
    #[error("{what}\n  next: {next}")]
    Environment {
        /// What is missing, and how that was seen.
        what: String,
        /// What to do about it.
        next: String,
    },
    /// The store of baselines cannot be read or written as a whole.
    #[error("{0}")]
    Baseline(String),
    /// A file that the user named is not what it should be.
    #[error("{}: {cause}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// The operating system refused.
    #[error("cannot {action} {}: {source}{}", path.display(), next_step(action, path, source))]
    Io {
        /// Verb: `read`, `write`, `create` ...
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Its answer.
        source: std::io::Error,
    },
    /// The user, or the system, asked the run to stop.
    #[error("interrupted; everything that was started has been stopped")]
    Interrupted,
}

/// What to do where the disk is full, or a file is another user's. Every file is written beside the old
/// one, or as a whole.
fn next_step(action: &str, path: &Path, source: &std::io::Error) -> String {
    let next = match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some(
            "free space on the disk of this path, and run the command again; what was there before is kept".to_owned(),
        ),
        ErrorKind::PermissionDenied => Some(of_another_user(path).unwrap_or_else(|| match action {
            "read" => {
                let path = disk::denied(path).unwrap_or_else(|| path.to_path_buf());
                let rights = if disk::is_dir(&path) { "a+rx" } else { "a+r" };
                let path = shell_words::quote(&path.to_string_lossy()).into_owned();
                format!("let this user read it: chmod {rights} {path}")
            }
            _ => "let this user write there, or name another place: of a report, `paths.work` for the work folder, TMPDIR for the temporary one".to_owned(),
        })),
        ErrorKind::ReadOnlyFilesystem => {
            Some("make it writable, or name another place: `paths.work` for the work folder, TMPDIR for the temporary one".to_owned())
        }
        ErrorKind::NotADirectory => {
            Some("a file is where a folder must be: name another place, in `paths.work` or `paths.baselines` if it is the folder of that key".to_owned())
        }
        _ if source.raw_os_error() == Some(Errno::FBIG.raw_os_error()) => Some(
            "raise the limit of the file size (`ulimit -f`), and run the command again; what was there before is kept".to_owned(),
        ),
        _ => None,
    };
    next.map_or_else(String::new, |next| format!("\n  next: {next}"))
}

/// What to do where another user owns what is in a folder of this user.
pub fn of_another_user(path: &Path) -> Option<String> {
    let user = rustix::process::geteuid().as_raw();
    let owner = |path: &Path| disk::metadata(path).ok().map(|it| it.uid());
    let path = disk::leads_to(path);
    let mut folders = path.ancestors().zip(path.ancestors().skip(1));
    let (top, _) = folders.find(|(own, above)| {
        owner(above) == Some(user) && owner(own).is_some_and(|owner| owner != user)
    })?;
    let top = top.display();
    Some(format!(
        "give {top} back to this user, as after a run with sudo: sudo chown -R \"$(id -u)\" '{top}'"
    ))
}

impl Error {
    /// An [`Error::Environment`]: what is missing, and what to do about it.
    pub fn environment(what: impl Into<String>, next: impl Into<String>) -> Error {
        Error::Environment {
            what: what.into(),
            next: next.into(),
        }
    }

    /// An [`Error::Input`]: the file, and what is wrong with it.
    pub fn input(path: impl Into<PathBuf>, cause: impl Into<String>) -> Error {
        Error::Input {
            path: path.into(),
            cause: cause.into(),
        }
    }

    /// For `map_err`: an [`Error::Io`] with its action and path.
    pub fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Error::Io {
            action,
            path,
            source,
        }
    }

    /// That this user may not read a file, or a folder on the way to it.
    ///
    /// # Errors
    /// [`Error::Io`], if so.
    pub fn if_denied(path: &Path) -> Result<(), Error> {
        let denied = ErrorKind::PermissionDenied.into();
        disk::denied(path).map_or(Ok(()), |path| Err(Error::io("read", path)(denied)))
    }

    /// The answer of the system, where it is not that the disk of `path` is full: then the run
    /// cannot go on, whatever step it was in.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn unless_full(path: &Path, source: std::io::Error) -> Result<std::io::Error, Error> {
        match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                Err(Error::io("write", path)(source))
            }
            _ => Ok(source),
        }
    }

    /// For `map_err`: the answer to reading a file that the user named, which may not exist.
    pub fn named(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| match source.kind() {
            ErrorKind::NotFound => Error::Usage(format!("there is no file {}", path.display())),
            ErrorKind::InvalidInput if !Linked::is_cause(&source) => {
                Error::Usage(format!("{}: {source}", path.display()))
            }
            _ => Error::io("read", path)(source),
        }
    }

    /// The exit code that this error ends the program with.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Error::Config(_) | Error::Usage(_) | Error::Input { .. } => ExitCode::Usage,
            Error::Io { source, .. } if Linked::is_cause(source) => ExitCode::Baseline,
            Error::Environment { .. } | Error::Io { .. } => ExitCode::Environment,
            Error::Baseline(_) => ExitCode::Baseline,
            Error::Interrupted => ExitCode::Interrupted,
        }
    }
}
