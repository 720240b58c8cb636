//! `sparsek-gate strip`.

use std::fmt::Write as _;

use super::answer::answer;
use super::from;
use crate::cli::StripArgs;
use crate::finding::{Error, ExitCode};
use crate::report::one_line;
use crate::strip::{Stripped, strip};
use crate::terms::{counted, joined_or};

pub(super) fn run(arguments: &StripArgs) -> Result<ExitCode, Error> {
    let _locked = from::locked(std::slice::from_ref(&arguments.from))?;
    let stripped = strip(&arguments.from, &arguments.to, arguments.keep_machine_code)?;
    answer(arguments.format, &stripped, &[], || {
        text(arguments, &stripped)
    })
}

fn text(arguments: &StripArgs, stripped: &Stripped) -> String {
    let to = one_line(&arguments.to.to_string_lossy());
    let files = counted(stripped.files.len(), "file", "files");
    let counts = stripped.removed.iter();
    let counts = counts.map(|(kind, count)| format!("{kind} ×{count}"));
    let counts = joined_or("nothing", counts, ", ");
    let mut text = format!("stripped {files} to {to}\n  removed: {counts}\n");
    for left in &stripped.not_copied {
        let _ = writeln!(
            text,
            "  not copied: {}: {}",
            one_line(&left.file.to_string_lossy()),
            left.why
        );
    }
    text.push_str("names of kernels, metrics and variants, source hashes and the arguments of programs are kept: check them before you publish\n");
    text
}
