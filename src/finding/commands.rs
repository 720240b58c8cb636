//! The files in the commands that are printed.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The option of printed commands for the configuration; unset for the usual one.
static CONFIG: OnceLock<String> = OnceLock::new();
/// The options of printed commands that lock, for what was judged; unset for what was measured last.
static RECORDINGS: OnceLock<String> = OnceLock::new();

/// The options that lock an immutable variant as it was built last.
const BUILT: &str = "--accept-immutable --static ";

/// The option that locks what was imported.
const ACCEPTED: &str = "--accept-imported ";

/// Lets every printed command read this configuration.
pub fn name_config(path: &Path) {
    let _ = CONFIG.set(option("-C", path));
}

/// Lets every printed command that locks read these recordings, which may be imported.
pub fn name_recordings<'a>(folders: impl Iterator<Item = &'a PathBuf>, imported: bool) {
    let options = folders.map(|folder| option("--from", folder));
    let accepted = imported.then(|| ACCEPTED.to_owned());
    let _ = RECORDINGS.set(options.chain(accepted).collect());
}

fn option(name: &str, path: &Path) -> String {
    format!("{name} {} ", shell_words::quote(&path.to_string_lossy()))
}

/// A text whose commands that lock have these options, each once: what was found before may be said again.
fn of_recordings(text: &str, options: &str) -> String {
    const LOCK: &str = "baseline --lock ";
    let mut parts = text.split(LOCK);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (own, rest) = part.split_at(part.find("--reason").unwrap_or(0));
        let mut own = own.replace(options, "");
        if options.ends_with(ACCEPTED) {
            own = own.replace(ACCEPTED, "");
        }
        // The new code of an immutable variant is in no recording.
        let variant = rest.split(' ').nth(2).filter(|_| own == BUILT);
        let options = match variant {
            Some(variant) => {
                let step = format!("build {variant}; sparsek-gate ");
                if !whole.ends_with(&step) {
                    whole += &step;
                }
                ""
            }
            None => options,
        };
        whole += &format!("{LOCK}{options}{own}{rest}");
    }
    whole
}

/// A text whose commands read the files that this run reads.
pub fn with_files(text: String) -> String {
    const COMMANDS: [&str; 10] = [
        "archive", "baseline", "build", "check", "doctor", "import", "list", "plan", "profile",
        "verify",
    ];
    let text = match RECORDINGS.get() {
        Some(options) if !options.is_empty() => of_recordings(&text, options),
        _ => text,
    };
    let Some(config) = CONFIG.get() else {
        return text;
    };
    COMMANDS.iter().fold(text, |text, name| {
        let command = format!("sparsek-gate {name}");
        text.replace(&command, &format!("sparsek-gate {config}{name}"))
    })
}
