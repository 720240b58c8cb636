//! The one place that prints.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::sync::LazyLock;

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use regex::Regex;
use serde::Serialize;

/// Sets when colours are used, for the whole program.
pub fn color(choice: clap::ColorChoice) {
    match choice {
        clap::ColorChoice::Auto => ColorChoice::Auto,
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
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
    open_still(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Columns of the terminal that results are printed on; 100 where they go elsewhere.
pub fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let columns = size.map(|size| usize::from(size.ws_col));
    // Some terminals do not know theirs.
    columns.filter(|columns| *columns > 0).unwrap_or(100)
}

/// Prints text in parts of whole lines, as they are made: all of it may be many times as large as
/// the file that it is about.
///
/// # Errors
/// Those of [`print()`].
pub fn print_parts(make: impl FnOnce(&mut Part<'_>) -> io::Result<()>) -> io::Result<()> {
    // No style is in it, so none is looked for.
    print_written(|out| make(&mut |text: &str| out.write_all(inert(&clean(text)).as_bytes())))
}

/// Takes a part of a text that is printed.
pub type Part<'a> = dyn FnMut(&str) -> io::Result<()> + 'a;

/// Prints a value as JSON in which no character controls a terminal, as it is made.
///
/// # Errors
/// Those of [`print()`].
pub fn print_json(value: &impl Serialize) -> io::Result<()> {
    print_written(|out| {
        serde_json::to_writer_pretty(ForTerminals(&mut *out), value)?;
        out.write_all(b"\n")
    })
}

/// Prints what controls no terminal and no service, as it is made.
///
/// # Errors
/// Those of [`print()`].
pub fn print_written(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    open_still(write(&mut out).and_then(|()| out.flush()))
}

/// A reader that stops reading is not an error.
fn open_still(printed: io::Result<()>) -> io::Result<()> {
    match printed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Takes JSON, of which the serializer writes each part of a text at once, see
/// [`json_for_terminals`].
pub(super) struct ForTerminals<W>(pub W);

impl<W: Write> Write for ForTerminals<W> {
    fn write(&mut self, json: &[u8]) -> io::Result<usize> {
        // Most parts are punctuation, blanks and plain words.
        if json.is_ascii() && memchr::memchr2(b'#', 0x7f, json).is_none() {
            return self.0.write_all(json).map(|()| json.len());
        }
        let text = std::str::from_utf8(json).map_err(io::Error::other)?;
        let written = self
            .0
            .write_all(json_for_terminals(text.to_owned()).as_bytes());
        written.map(|()| json.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
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
    !text.contains(unseen) && inert(text) == text
}

/// Text from outside must not control the terminal, nor hide anything: characters that control a
/// reader or that nobody sees are written as their numbers, `\u{200b}`.
pub(crate) fn clean(text: &str) -> String {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => clean.push(c),
            c if unseen(c) => clean.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => clean.push(c),
        }
    }
    clean
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
    let harmful = |c: char| c != '\n' && unseen(c);
    let mut text = json;
    // Most of it is ASCII, and a look at bytes is short.
    let is_seen = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n');
    if !text.as_bytes().iter().all(is_seen) && text.contains(harmful) {
        text = text.chars().fold(String::new(), |mut text, c| {
            if harmful(c) {
                // JSON writes a character beyond 16 bits as two numbers.
                for unit in c.encode_utf16(&mut [0; 2]) {
                    text.push_str(&format!("\\u{unit:04x}"));
                }
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

/// Whether a reader does not see a character, or is controlled by it: control and format characters,
/// those that reorder text or end a line, those that fonts leave out, and those that are none.
/// What Unicode says of each is in the tables of the `regex` crate.
fn unseen(c: char) -> bool {
    static UNSEEN: LazyLock<Vec<(char, char)>> = LazyLock::new(|| {
        // The last is a pattern of no dots, which reads as a blank.
        let class = r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u{2800}]";
        let parsed = regex_syntax::parse(class);
        match parsed.as_ref().map(|class| class.kind()) {
            Ok(regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class))) => {
                class
                    .iter()
                    .map(|range| (range.start(), range.end()))
                    .collect()
            }
            // Rather all is hidden than nothing.
            _ => vec![('\0', char::MAX)],
        }
    });
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    let after = UNSEEN.partition_point(|(start, _)| *start <= c);
    after.checked_sub(1).is_some_and(|at| c <= UNSEEN[at].1)
}

/// The same in one line.
pub(crate) fn one_line(text: &str) -> String {
    clean(text).replace(['\n', '\t'], " ")
}

/// The start of a text, where there is no room for all of it.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// A text that is cut in its middle where it is too long.
pub(super) fn cut_middle(text: &str, most: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= most {
        return text.to_owned();
    }
    let ends = most.saturating_sub(1) / 2;
    let begin: String = letters[..most.saturating_sub(1 + ends)].iter().collect();
    let end: String = letters[letters.len() - ends..].iter().collect();
    format!("{begin}…{end}")
}

#[cfg(test)]
mod tests {
    use super::{clean, inert, json_for_terminals};

    #[test]
    fn every_character_that_nobody_sees_is_written_as_its_number() {
        // By their numbers, from one to another.
        let ranges = "0-8 b-1f 7f-9f ad-ad 34f-34f 61c-61c 115f-1160 17b4-17b5 180b-180f 200b-200f \
             2028-202e 2060-206f 2800-2800 3164-3164 fdd0-fdef fe00-fe0f feff-feff ffa0-ffa0 \
             fff0-fffb fffe-ffff 1d173-1d17a e0000-e0fff";
        let number = |text| u32::from_str_radix(text, 16).unwrap();
        let numbers = ranges.split_whitespace().flat_map(|range| {
            let (first, last) = range.split_once('-').unwrap();
            number(first)..=number(last)
        });
        for number in numbers {
            let c = char::from_u32(number).unwrap();
            assert_eq!(clean(&format!("a{c}b")), format!("a\\u{{{number:x}}}b"));
            let json = json_for_terminals(format!("\"{c}\""));
            assert!(json.is_ascii() && !json.contains(c), "{number:x}: {json}");
            if number > 0x1f {
                let read: String = serde_json::from_str(&json).unwrap();
                assert_eq!(read, c.to_string());
            }
        }
        let seen = "aé ß\u{a0}漢字 → ± µ 🚀 \u{301} – “”\nd\te";
        assert_eq!(clean(seen), seen);
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
