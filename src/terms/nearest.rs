//! The name that was meant by a mistyped one.

/// The known name most similar to a wrong one, if any is similar enough.
pub(crate) fn nearest<'a>(wrong: &str, known: &'a [impl AsRef<str>]) -> Option<&'a str> {
    known
        .iter()
        .map(AsRef::as_ref)
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .filter(|(distance, name)| {
            let longer = name.chars().count().max(wrong.chars().count());
            // A slip seldom changes the first letter.
            *distance <= longer / 3 + usize::from(name.chars().next() == wrong.chars().next())
        })
        .min()
        .map(|(_, name)| name)
}
