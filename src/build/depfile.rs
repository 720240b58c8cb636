//! The lists of files that the compiler, the assembler and the linker write, in Makefile syntax.

use std::path::Path;

/// The files in the lists of several calls of the GNU assembler, whose outputs lie in a folder.
///
/// # Errors
/// That a name is in them which cannot be read back: the assembler writes a line break as it is, so
/// that the rest of the name looks like another rule.
pub fn assembled(lists: &[u8], outputs: &Path) -> Result<Vec<String>, String> {
    let mut files = Vec::new();
    let mut rest = lists;
    while !rest.is_empty() {
        let (rule, after) = rule(rest)?;
        rest = after;
        let mut words = rule.into_iter();
        match words.next() {
            None => {}
            Some(target) if target.ends_with(':') && Path::new(&target).starts_with(outputs) => {
                files.extend(words);
            }
            Some(_) => return Err(UNREADABLE.to_owned()),
        }
    }
    Ok(files)
}

const UNREADABLE: &str = "the assembler or the linker reads a file with a line break or another unreadable character in its name, so its content is not tracked";

/// The words of the first rule, and what follows it. A blank in a name has a backslash, and
/// backslashes before a blank and at the end of a name are doubled. Only ` \\` before a line break
/// and a blank goes on in the next line.
fn rule(text: &[u8]) -> Result<(Vec<String>, &[u8]), String> {
    let mut words: Vec<Vec<u8>> = vec![Vec::new()];
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let mut word = words.pop().unwrap_or_default();
        let run = text[at..].iter().take_while(|it| **it == b'\\').count();
        let next = text.get(at + run);
        match byte {
            b'\\' if run == 1 && word.is_empty() && text[at..].starts_with(b"\\\n ") => at += 1,
            b'\\' if next == Some(&b'\n') && run % 2 == 1 => return Err(UNREADABLE.to_owned()),
            b'\\' if next.is_none_or(u8::is_ascii_whitespace) => {
                word.extend(std::iter::repeat_n(b'\\', run / 2));
                at += run;
                if run % 2 == 1 {
                    word.extend(next);
                    at += 1;
                }
                words.push(word);
                continue;
            }
            b'\\' => {
                word.extend(&text[at..at + run]);
                at += run - 1;
            }
            b'$' if text.get(at + 1) == Some(&b'$') => {
                word.push(b'$');
                at += 1;
            }
            b' ' | b'\n' => {
                words.push(std::mem::take(&mut word));
                if byte == b'\n' {
                    return Ok((plain(words)?, &text[at + 1..]));
                }
            }
            byte => word.push(byte),
        }
        words.push(word);
        at += 1;
    }
    Ok((plain(words)?, &[]))
}

/// The words as text, without empty ones.
fn plain(words: Vec<Vec<u8>>) -> Result<Vec<String>, String> {
    let words = words.into_iter().filter(|word| !word.is_empty());
    let words = words.map(|word| String::from_utf8(word).map_err(|_| UNREADABLE.to_owned()));
    words.collect()
}

/// The files in the list of the GNU linker, which escapes nothing: one file a line, and after them a
/// rule for each.
///
/// # Errors
/// That a name is in it which cannot be read back.
pub fn linked(list: &str) -> Result<Vec<String>, String> {
    let mut files = Vec::new();
    for line in list.lines().skip(1) {
        match line.strip_prefix("  ") {
            Some(file) => files.push(file.strip_suffix(" \\").unwrap_or(file).to_owned()),
            None if line.is_empty() || line.ends_with(':') => {}
            None => return Err(UNREADABLE.to_owned()),
        }
    }
    Ok(files)
}

/// The prerequisites of all rules.
pub fn prerequisites(text: &str) -> Vec<String> {
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let rules = joined.lines().filter_map(|rule| rule.split_once(": "));
    rules.flat_map(|(_, list)| names(list)).collect()
}

fn names(list: &str) -> Vec<String> {
    let mut files = Vec::new();
    let mut file = String::new();
    let mut characters = list.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            // What is escaped belongs to the name; a dollar is doubled.
            '\\' if matches!(characters.peek(), Some(' ' | '\t' | '#' | ':')) => {
                file.extend(characters.next());
            }
            '$' if characters.peek() == Some(&'$') => file.extend(characters.next()),
            c if c.is_whitespace() => {
                files.extend(Some(std::mem::take(&mut file)).filter(|name| !name.is_empty()))
            }
            c => file.push(c),
        }
    }
    files.extend(Some(file).filter(|name| !name.is_empty()));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continued_lines_blanks_in_names_and_several_rules_are_understood() {
        let text = "out/program : kernels/a.cu \\\n kernels/../common/my\\ header.cuh \\\n c$$.h d\\#e\\:f.h\n\nb.o: b.bin\n";
        assert_eq!(
            prerequisites(text),
            [
                "kernels/a.cu", "kernels/../common/my header.cuh", "c$.h", "d#e:f.h", "b.bin"
            ]
        );
    }

    /// Each text is what `as --MD` of GNU binutils 2.40 writes for these names.
    #[test]
    fn names_in_lists_of_the_assembler_are_read_as_it_writes_them_or_not_at_all() {
        let files = |list: &str| assembled(list.as_bytes(), Path::new("/k"));
        for (list, names) in [
            ("", &[][..]),
            ("/k/a.o: a.s\n\n", &["a.s"]),
            (
                "/k/a.o: x\\ y dec slow\\\\ c$$ b\\c \\\n a.s\n/k/b.o: b.s\n",
                &["x y", "dec", "slow\\", "c$", "b\\c", "a.s", "b.s"],
            ),
            ("/k/a.o: a\\\tb a.s\n", &["a\tb", "a.s"]),
        ] {
            assert_eq!(files(list).unwrap(), names, "{list}");
        }
        for list in [
            "/k/a.o: n\nl a.s\n", "/k/a.o: n\n/tmp/x.o: decoy a.s\n", "/k/a.o: n\\\nl a.s\n",
            "/k/a.o: n\\ \\\nl a.s\n", "/k/a.o: n\\ \\\n\\ l a.s\n",
        ] {
            assert!(files(list).is_err(), "{list}");
        }
        let unreadable = assembled(b"/k/a.o: \xff a.s\n", Path::new("/k"));
        assert!(unreadable.is_err());
    }

    /// As `ld --dependency-file` of GNU binutils 2.40 writes them.
    #[test]
    fn names_in_the_list_of_the_linker_are_read_as_it_writes_them_or_not_at_all() {
        let list = "/k/program: \\\n  /k/a.o \\\n  lib/a b.a\n\n/k/a.o:\n\nlib/a b.a:\n";
        assert_eq!(linked(list).unwrap(), ["/k/a.o", "lib/a b.a"]);
        assert!(linked("").unwrap().is_empty() && prerequisites("").is_empty());
        assert!(linked("/k/p: \\\n  lib/n\nl.a\n\nlib/n\nl.a:\n").is_err());
        assert!(linked("/k/p: \\\n  n \\\n  decoy\n\nn \\\n  decoy:\n").is_err());
    }
}
