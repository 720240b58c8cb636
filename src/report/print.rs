//! The one place that prints.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::LazyLock;

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use regex::Regex;

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Sets when colours are used, for the whole program.
pub fn color(choice: Color) {
    match choice {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    }
    .write_global();
}

/// Prints a result on standard output, so that the service that keeps the log finds no command in
/// it. A reader that stops reading is not an error.
///
/// # Errors
/// Where standard output cannot be written for another reason.
pub fn print(text: &str) -> io::Result<()> {
    print_commands(&inert(text))
}

/// The same for text that consists of commands to that service.
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
    // An error here cannot be reported anywhere.
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

/// Whether a text in one line controls neither a terminal nor the service that keeps a log.
pub fn is_plain(text: &str) -> bool {
    !text.contains(controls) && inert(text) == text
}

/// Text from outside must not control the terminal: control characters are replaced.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if controls(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Text in which no service finds a command when it reads a log: GitHub's begin a line with
/// `::`, after blanks if there are some, Azure's, TeamCity's and GitHub's older ones contain `##[` or
/// `##word[`. A word joiner breaks them.
pub(super) fn inert(text: &str) -> Cow<'_, str> {
    static COMMAND: LazyLock<Option<Regex>> = LazyLock::new(|| {
        // The styles of this program may be removed from a line before a service reads it.
        Regex::new(r"(?m)(^(?:\s|\x1b\[[0-9;]*m)*:)(:)|(##)([A-Za-z]*\[)").ok()
    });
    match COMMAND.as_ref() {
        Some(command) => command.replace_all(text, "$1$3\u{2060}$2$4"),
        None => Cow::Borrowed(text),
    }
}

/// JSON in which characters that control a terminal are written as their numbers, where JSON itself
/// does not require it. They occur within strings only.
pub(crate) fn json_for_terminals(json: String) -> String {
    let harmful = |c: char| c != '\n' && controls(c);
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
    // A log's service would read it as a command, see `inert`.
    if text.contains("##") {
        text = text.replace("##", "#\\u0023");
    }
    text
}

/// Whether a character controls its reader: control characters, characters that reorder text, and
/// those at which some readers end a line.
fn controls(c: char) -> bool {
    c.is_control() || is_bidirectional_control(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The same in one line.
pub(crate) fn one_line(text: &str) -> String {
    clean(text).replace(['\n', '\t'], " ")
}

/// These reorder the text around them.
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
    fn no_text_in_a_log_is_a_command_to_its_service() {
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
