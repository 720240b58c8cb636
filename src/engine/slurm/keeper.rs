//! The process that submits the job of a check, and cancels it where the check ends before the job
//! does, also where the check is killed. Submitting belongs to it too: a check that is killed while
//! sbatch runs would not know whether there is a job.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use super::queue::{ask, cancel};
use crate::files::write_atomically;
use crate::finding::{Error, ExitCode};
use crate::process::RELEASED;

/// Where the keeper writes the number of the job.
pub(super) const SUBMITTED: &str = "submitted";
/// Where it writes why there is no job.
pub(super) const REFUSED: &str = "refused";
/// How long it tries to cancel: a controller may be restarted meanwhile.
const CANCELS: Duration = Duration::from_secs(1800);

/// Submits a job by an argv of sbatch with `--parsable`, and cancels the jobs of its name at the end
/// of standard input, unless [`RELEASED`] came before.
///
/// # Errors
/// [`Error::Io`] where the folder cannot be written.
pub fn keep(folder: &Path, name: &str, sbatch: &[String]) -> Result<ExitCode, Error> {
    let number = ask(sbatch, folder).and_then(|printed| {
        let text = String::from_utf8_lossy(&printed.stdout).into_owned();
        // `123`, or `123;cluster`. The user's own wrapper of sbatch may print more before.
        let last = text.lines().last().unwrap_or_default().trim();
        let number = last.split(';').next().unwrap_or_default();
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        match is_number {
            true => Ok(number.to_owned()),
            false => Err(format!("sbatch printed no number of a job: {last:?}")),
        }
    });
    let (file, text) = match &number {
        Ok(number) => (SUBMITTED, number),
        Err(why) => (REFUSED, why),
    };
    let path = folder.join(file);
    let written = write_atomically(&path, text.as_bytes());
    let mut said = Vec::new();
    if written.is_ok() && number.is_ok() {
        // The end of the check ends this, however it comes.
        let _ = std::io::stdin().lock().take(1).read_to_end(&mut said);
    }
    if said != [RELEASED] && !cancel(name, folder, CANCELS) {
        return Err(Error::Environment {
            what: format!("the jobs called {name} cannot be cancelled"),
            next: format!("scancel --name={name}"),
        });
    }
    written.map_err(Error::io("write", path))?;
    Ok(ExitCode::Pass)
}
