//! A command line that is one argument: split into words as a shell does, and run without one.

use crate::finding::Error;
use crate::terms::is_identifier;

/// The words of a command line. What only a shell does is refused: without one, a program would get
/// `&&` as an argument, and what follows would neither run nor be measured.
///
/// # Errors
/// [`Error::Usage`] with the name of the argument.
pub(super) fn words(argument: &str, text: &str) -> Result<Vec<String>, Error> {
    let refused = |why: &str| Err(Error::Usage(format!("{argument} `{text}`: {why}")));
    let Ok(words) = shell_words::split(text) else {
        return refused("a quote or a backslash at its end is not closed");
    };
    if let Some(c) = for_a_shell(text) {
        let named = match c {
            '`' => "a backquote".to_owned(),
            c => format!("`{c}`"),
        };
        return refused(&format!(
            "{named} is for a shell, and none reads it: quote it, or name the shell: sh -c '...'"
        ));
    }
    match words.first().map_or("", String::as_str) {
        "" => refused("it names no program"),
        first if is_assignment(first) => refused(&format!(
            "`{first}` is no program: to set a variable, write env {first} PROGRAM"
        )),
        _ => Ok(words),
    }
}

/// The first character that a shell would act on, and not pass to the program.
fn for_a_shell(text: &str) -> Option<char> {
    let mut quote = None;
    let mut begins_word = true;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => {
                characters.next();
            }
            (None, '\'' | '"') => quote = Some(c),
            (None, '|' | '&' | ';' | '<' | '>') | (_, '`') => return Some(c),
            (None, '#') if begins_word => return Some(c),
            (_, '$') if characters.peek().is_some_and(|next| is_expanded(*next)) => return Some(c),
            _ => {}
        }
        begins_word = quote.is_none() && c.is_whitespace();
    }
    None
}

/// Whether a shell expands a `$` before this character.
fn is_expanded(next: char) -> bool {
    next.is_ascii_alphanumeric() || "_{(@*?!#$".contains(next)
}

/// Whether a shell would set a variable by this word: `NAME=value`.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(is_identifier)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why_not(text: &str) -> Option<String> {
        words("COMMAND", text).err().map(|error| error.to_string())
    }

    #[test]
    fn what_only_a_shell_does_is_refused() {
        for (text, character) in [
            ("./a && ./b", '&'),
            ("./a; ./b", ';'),
            ("./a | tee log", '|'),
            ("./a > log", '>'),
            ("./a 2>log", '>'),
            ("./a <input", '<'),
            ("./a $N", '$'),
            ("./a \"$(nproc)\"", '$'),
            ("./a --color #fff", '#'),
        ] {
            let why = why_not(text).unwrap();
            let named = format!("`{character}` is for a shell");
            assert!(why.contains(&named) && why.contains("sh -c"), "{why}");
        }
        for text in ["./a `nproc`", "./a \"`nproc`\""] {
            let why = why_not(text).unwrap();
            assert!(why.contains("a backquote is for a shell"), "{why}");
        }
        let why = why_not("N=4 ./a").unwrap();
        assert!(why.ends_with("write env N=4 PROGRAM"), "{why}");
    }

    #[test]
    fn what_is_quoted_is_passed_as_it_stands() {
        for text in [
            "./a '&&' \\; 'k<int>' '$N' '#fff' \"a|b\" \"\\$N\"",
            "./a a#b ^k$ \"^k$\" N=4",
            "sh -c './a && ./b'",
            "./N=4",
        ] {
            assert_eq!(why_not(text), None, "{text}");
        }
        assert_eq!(
            words("COMMAND", "./a 'x y' \"z\"").unwrap(),
            ["./a", "x y", "z"]
        );
    }
}
