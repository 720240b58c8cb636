//! The compiler's lists of headers (`-MD`) and the assembler's of files, in Makefile syntax.

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
    use super::prerequisites;

    #[test]
    fn continued_lines_blanks_in_names_and_several_rules_are_understood() {
        let text = "out/program : kernels/a.cu \\\n kernels/../common/my\\ header.cuh \\\n c$$.h d\\#e\\:f.h\n\nb.o: b.bin\n";
        assert_eq!(
            prerequisites(text),
            [
                "kernels/a.cu",
                "kernels/../common/my header.cuh",
                "c$.h",
                "d#e:f.h",
                "b.bin"
            ]
        );
    }

    #[test]
    fn an_empty_list_has_no_prerequisites() {
        assert!(prerequisites("").is_empty());
    }
}
