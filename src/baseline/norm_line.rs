//! Two normalized texts, line by line.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

/// One line of the normalized text, old and new.
#[derive(Debug, Serialize)]
pub struct NormLine {
    /// The name before the colon.
    pub name: String,
    /// Its old value; absent where the line is new.
    pub old: Option<String>,
    /// Its new value; absent where the line was removed.
    pub new: Option<String>,
}

/// Every line of either text, by name.
pub fn norm_lines(old: &str, new: &str) -> Vec<NormLine> {
    let values = |text: &str| -> BTreeMap<String, String> {
        text.lines()
            .filter_map(|line| line.rsplit_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    };
    let (old, new) = (values(old), values(new));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    names
        .into_iter()
        .map(|name| NormLine {
            name: name.clone(),
            old: old.get(name).cloned(),
            new: new.get(name).cloned(),
        })
        .collect()
}
