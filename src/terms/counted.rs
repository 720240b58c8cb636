//! How many there are of something, in words; and a grid or a block.

/// `1 variant`, `2 variants`.
pub(crate) fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// `1 more row`, `2 more rows`, of each kind of which there is any.
pub(crate) fn more(kinds: &[(usize, &str)]) -> Vec<String> {
    let any = kinds.iter().filter(|(count, _)| *count > 0);
    any.map(|(count, kind)| counted(*count, &format!("more {kind}"), &format!("more {kind}s")))
        .collect()
}

/// Texts with another one between them.
pub(crate) fn joined(texts: impl IntoIterator<Item: AsRef<str>>, between: &str) -> String {
    let mut joined = String::new();
    for (at, text) in texts.into_iter().enumerate() {
        joined.push_str(if at > 0 { between } else { "" });
        joined.push_str(text.as_ref());
    }
    joined
}

/// The same, and the word for none where there is no text.
pub(crate) fn joined_or(
    none: &str,
    texts: impl IntoIterator<Item: AsRef<str>>,
    between: &str,
) -> String {
    let mut texts = texts.into_iter().peekable();
    match texts.peek() {
        None => none.to_owned(),
        Some(_) => joined(texts, between),
    }
}

/// The first of some names, and how many more there are.
pub(crate) fn first(names: impl ExactSizeIterator<Item = String>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let first = joined(names.take(most), ", ");
    match more {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// A grid or a block: `(64, 64, 1)`.
pub(crate) fn dimensions([x, y, z]: [u64; 3]) -> String {
    format!("({x}, {y}, {z})")
}
