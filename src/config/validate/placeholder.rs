//! Placeholders in arguments: `{launches}`, `{result}`, `{seed}` and `{skip}`.

use super::file::File;
use crate::config::error::{ConfigError, nearest, suggest};

/// What the tool fills in.
pub(super) const KNOWN: [&str; 4] = ["launches", "result", "seed", "skip"];

impl File<'_> {
    /// Refuses a placeholder that is like a known one: the program would get it as text. Other text
    /// in braces may be the program's own. `table` is a variant, and `lists` are its lists of arguments
    /// by their keys.
    pub(super) fn placeholders(
        &self,
        table: &[&str],
        lists: [(&str, &[String]); 4],
    ) -> Result<(), ConfigError> {
        for (key, arguments) in lists {
            let wrong = arguments.iter().flat_map(|argument| in_braces(argument));
            let wrong = wrong
                .filter(|name| !KNOWN.contains(name))
                .find(|name| nearest(name, &KNOWN).is_some());
            if let Some(name) = wrong {
                let place = [table, &[key]].concat();
                let message = format!("`{{{name}}}` is no placeholder");
                let help = format!(
                    "{}; `{key}` may contain `{{launches}}`, `{{result}}`, `{{seed}}` and `{{skip}}`",
                    suggest(name, &KNOWN)
                );
                return Err(self.error(&place, message).help(help));
            }
        }
        Ok(())
    }
}

/// The words in braces.
fn in_braces(argument: &str) -> impl Iterator<Item = &str> {
    let parts = argument.split('{').skip(1);
    let names = parts.filter_map(|part| Some(part.split_once('}')?.0));
    names
        .filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '_') && !name.is_empty())
}
