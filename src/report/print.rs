//! The one place that prints.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::LazyLock;

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use regex::Regex;

use crate::cli::Color;

/// Sets when colours are used, for the whole program.
pub fn color(choice: Color) {
    match choice {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    }
    .write_global();
}

/// Prints a result on standard output: text, of which nothing is a command of the service that
/// keeps the log. A reader that stops reading is no error.
///
/// # Errors
/// Where standard output cannot be written for another reason.
pub fn print(text: &str) -> io::Result<()> {
    print_commands(&inert(text))
}

/// The same of what is meant to command that service.
///
/// # Errors
/// Those of [`print()`].
pub fn print_commands(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Prints a line of progress or advice on standard error.
pub fn say(line: &str) {
    // Nowhere is left to complain.
    let _ = writeln!(anstream::stderr().lock(), "{}", inert(&clean(line)));
}

/// Prints why the run ends.
pub fn print_error(text: &str) {
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    let _ = writeln!(
        anstream::stderr().lock(),
        "{red}error:{red:#} {}",
        inert(&clean(text))
    );
}

/// Whether a text in one line steers neither a terminal nor the service that keeps a log.
pub fn is_plain(text: &str) -> bool {
    !text.contains(steers) && inert(text) == text
}

/// Text from outside must not steer the terminal: control characters are shown, not sent.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if steers(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Text that no service takes for its commands when it stands in a log: GitHub's begin a line with
/// `::`, after blanks if there are some, Azure's, TeamCity's and GitHub's older ones hold `##[` or
/// `##word[`. A word joiner takes them apart.
pub(super) fn inert(text: &str) -> Cow<'_, str> {
    static COMMAND: LazyLock<Option<Regex>> = LazyLock::new(|| {
        // The styles of this program may be taken out of a line before a service reads it.
        Regex::new(r"(?m)(^(?:\s|\x1b\[[0-9;]*m)*:)(:)|(##)([A-Za-z]*\[)").ok()
    });
    match COMMAND.as_ref() {
        Some(command) => command.replace_all(text, "$1$3\u{2060}$2$4"),
        None => Cow::Borrowed(text),
    }
}

/// JSON with what steers a terminal written as its number, where JSON itself does not ask for that:
/// it stands within strings only.
pub(crate) fn json_for_terminals(json: String) -> String {
    let harmful = |c: char| c != '\n' && steers(c);
    let mut text = json;
    if text.contains(harmful) {
        text = text.chars().fold(String::new(), |mut text, c| {
            if harmful(c) {
                text.push_str(&format!("\\u{:04x}", u32::from(c)));
            } else {
                text.push(c);
            }
            text
        });
    }
    // What a log's service would take for a command, see `inert`.
    if text.contains("##") {
        text = text.replace("##", "#\\u0023");
    }
    text
}

/// Whether a character does something else than be seen: control characters, what reorders text,
/// and what some readers end a line at.
fn steers(c: char) -> bool {
    c.is_control() || is_bidirectional_control(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The same in one line, for what stands in a line of its own.
pub(crate) fn one_line(text: &str) -> String {
    clean(text).replace(['\n', '\t'], " ")
}

/// These reorder what stands around them.
fn is_bidirectional_control(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::{clean, inert, json_for_terminals};

    #[test]
    fn terminal_escapes_in_names_are_made_harmless() {
        assert_eq!(
            clean("a\x1b[31mb\u{202e}c\nd\te"),
            "a\u{fffd}[31mb\u{fffd}c\nd\te"
        );
    }

    #[test]
    fn nothing_in_a_log_is_a_command_of_its_service() {
        for (text, harmless) in [
            ("::error::x", ":\u{2060}:error::x"),
            ("a\n \u{a0}::x", "a\n \u{a0}:\u{2060}:x"),
            ("\x1b[2m ::x", "\x1b[2m :\u{2060}:x"),
            ("a ##[error]b", "a ##\u{2060}[error]b"),
            ("##vso[task.complete]", "##\u{2060}vso[task.complete]"),
            ("a::b ## c [d]", "a::b ## c [d]"),
        ] {
            assert_eq!(inert(text), harmless);
        }
        let json = json_for_terminals("[\"##[error]\u{9b}\"]".to_owned());
        assert_eq!(json, "[\"#\\u0023[error]\\u009b\"]");
        assert_eq!(
            serde_json::from_str::<Vec<String>>(&json).unwrap(),
            ["##[error]\u{9b}"]
        );
    }
}
