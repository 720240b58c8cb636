//! The one place that prints.

use std::io::{self, Write};

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};

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

/// Prints a result on standard output. A reader that stops reading is no error.
///
/// # Errors
/// Where standard output cannot be written for another reason.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Prints a line of progress or advice on standard error.
pub fn say(line: &str) {
    // Nowhere is left to complain.
    let _ = writeln!(anstream::stderr().lock(), "{}", clean(line));
}

/// Prints why the run ends.
pub fn print_error(text: &str) {
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    let _ = writeln!(
        anstream::stderr().lock(),
        "{red}error:{red:#} {}",
        clean(text)
    );
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

/// JSON with what steers a terminal written as its number, where JSON itself does not ask for that:
/// it stands within strings only.
pub(super) fn json_for_terminals(json: String) -> String {
    let harmful = |c: char| c != '\n' && steers(c);
    if !json.contains(harmful) {
        return json;
    }
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if harmful(c) {
            text.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            text.push(c);
        }
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
    use super::clean;

    #[test]
    fn terminal_escapes_in_names_are_made_harmless() {
        assert_eq!(
            clean("a\x1b[31mb\u{202e}c\nd\te"),
            "a\u{fffd}[31mb\u{fffd}c\nd\te"
        );
    }
}
