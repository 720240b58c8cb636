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
            c if c.is_control() || is_bidirectional_control(c) => '\u{fffd}',
            // Some readers end a line at these.
            '\u{2028}' | '\u{2029}' => '\u{fffd}',
            c => c,
        })
        .collect()
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
