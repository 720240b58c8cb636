//! The name that was meant by a mistyped one.

/// The known name most similar to a wrong one, if any is similar enough, or one of its words.
pub(crate) fn nearest<'a>(wrong: &str, known: &'a [impl AsRef<str>]) -> Option<&'a str> {
    let names = || known.iter().map(AsRef::as_ref);
    let mut words = wrong.rsplit(['_', '-']);
    names()
        .map(|name| {
            let distance = strsim::damerau_levenshtein(&wrong.to_lowercase(), &name.to_lowercase());
            (distance, name)
        })
        .filter(|(distance, name)| {
            let longer = name.chars().count().max(wrong.chars().count());
            // A slip seldom changes the first letter.
            *distance <= longer / 3 + usize::from(name.chars().next() == wrong.chars().next())
        })
        .min()
        .map(|(_, name)| name)
        .or_else(|| words.find_map(|word| names().find(|name| *name == word)))
}
