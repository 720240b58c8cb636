//! The configuration in the commands that are printed.

use std::path::Path;
use std::sync::OnceLock;

/// The configuration that printed commands name, as a shell reads it; unset for the usual one.
static CONFIG: OnceLock<String> = OnceLock::new();

/// Lets every printed command read this configuration.
pub fn name_config(path: &Path) {
    let path = path.to_string_lossy();
    let _ = CONFIG.set(shell_words::quote(&path).into_owned());
}

/// A text whose commands read the configuration that this run reads.
pub fn with_config(text: String) -> String {
    const COMMANDS: [&str; 10] = [
        "archive", "baseline", "build", "check", "doctor", "import", "list", "plan", "profile",
        "verify",
    ];
    let Some(config) = CONFIG.get() else {
        return text;
    };
    COMMANDS.iter().fold(text, |text, name| {
        let (command, named) = (
            format!("sparsek-gate {name}"),
            format!("sparsek-gate -C {config} {name}"),
        );
        text.replace(&command, &named)
    })
}
