//! Lists of words that are written as one text.

/// The words of a text, between single blanks. The compiler counts them.
pub(crate) const fn words<const N: usize>(text: &'static str) -> [&'static str; N] {
    let mut words = [""; N];
    let (mut rest, mut at) = (text, 0);
    while !rest.is_empty() {
        let mut end = 0;
        while end < rest.len() && rest.as_bytes()[end] != b' ' {
            end += 1;
        }
        (words[at], rest) = rest.split_at(end);
        rest = rest.trim_ascii_start();
        at += 1;
    }
    assert!(at == N, "the text has fewer words");
    words
}
