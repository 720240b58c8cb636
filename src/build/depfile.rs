//! The compiler's list of headers (`-MD`), in Makefile syntax.

/// The prerequisites of the first rule.
pub fn prerequisites(text: &str) -> Vec<String> {
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let Some((_, list)) = joined.lines().next().and_then(|rule| rule.split_once(": ")) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    let mut file = String::new();
    let mut characters = list.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            // An escaped blank belongs to the name; a dollar is doubled.
            '\\' if characters.peek() == Some(&' ') => file.extend(characters.next()),
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
    fn continued_lines_and_blanks_in_names_are_understood() {
        let text = "out/program : kernels/a.cu \\\n kernels/../common/my\\ header.cuh \\\n c$$.h\n";
        assert_eq!(
            prerequisites(text),
            ["kernels/a.cu", "kernels/../common/my header.cuh", "c$.h"]
        );
    }

    #[test]
    fn an_empty_list_has_no_prerequisites() {
        assert!(prerequisites("").is_empty());
    }
}
