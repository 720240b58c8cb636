//! Keys that were renamed. The old names are still read, and a rename alone changes no rule.

use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

/// The tables of a key (`*` is any name), its old name and its name now.
const RENAMED: [(&[&str], &str, &str); 4] = [
    (&["profile"], "accept_rungs", "accept_tiers"),
    (&["suite", "*", "profile"], "accept_rungs", "accept_tiers"),
    (
        &["suite", "*", "variant", "*", "profile"],
        "accept_rungs",
        "accept_tiers",
    ),
    (&["metric", "*"], "pass", "phase"),
];

/// Old and new name of every key that was renamed.
pub(super) fn renamed() -> impl Iterator<Item = (&'static str, &'static str)> {
    RENAMED.into_iter().map(|(_, old, now)| (old, now))
}

/// The old name of a key that was renamed.
pub(super) fn old_name(key: &str) -> Option<&'static str> {
    let renamed = RENAMED.iter().find(|(_, _, now)| *now == key);
    renamed.map(|(_, old, _)| *old)
}

/// The same configuration with every key under the name that it has now.
pub(super) fn in_current_words(mut table: Table) -> Table {
    for (place, old, now) in RENAMED {
        rename(&mut table, place, old, now);
    }
    table
}

fn rename(table: &mut Table, place: &[&str], old: &str, now: &str) {
    let Some((first, rest)) = place.split_first() else {
        // Both names at once are an error, see `twice_named`.
        if !table.contains_key(now)
            && let Some(value) = table.remove(old)
        {
            table.insert(now.to_owned(), value);
        }
        return;
    };
    for (key, value) in table.iter_mut() {
        if (*first == "*" || *first == key.as_str())
            && let Value::Table(inner) = value
        {
            rename(inner, rest, old, now);
        }
    }
}

/// A key that is set under both of its names: the table that it is in, the old name, the new name.
pub(super) fn twice_named(tree: &DeTable<'_>) -> Option<(Vec<String>, &'static str, &'static str)> {
    RENAMED.iter().find_map(|(place, old, now)| {
        let table = tables(tree, place).into_iter().find(|(_, table)| {
            let has = |key: &str| table.iter().any(|(name, _)| name.get_ref() == key);
            has(old) && has(now)
        });
        table.map(|(path, _)| (path, *old, *now))
    })
}

/// The tables at a place, with their paths.
fn tables<'t>(tree: &'t DeTable<'t>, place: &[&str]) -> Vec<(Vec<String>, &'t DeTable<'t>)> {
    let mut found = vec![(Vec::new(), tree)];
    for part in place {
        let inner = found.iter().flat_map(|(path, table)| {
            table.iter().filter_map(move |(name, value)| {
                let name = name.get_ref();
                let DeValue::Table(inner) = value.get_ref() else {
                    return None;
                };
                let path = path.iter().cloned().chain([name.to_string()]);
                (*part == "*" || *part == name.as_ref()).then(|| (path.collect(), inner))
            })
        });
        found = inner.collect();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_renamed_in_their_tables_and_nowhere_else() {
        let table = |text: &str| -> Table { toml::from_str(text).unwrap() };
        let old = "pass = 1\n[profile]\naccept_rungs = ['static']\n[metric.m]\npass = 'timing'\n\
                   [suite.s.variant.v]\nenv = { pass = 'x', accept_rungs = 'y' }\n\
                   [suite.s.variant.v.profile]\naccept_rungs = ['static']\n";
        let now = "pass = 1\n[profile]\naccept_tiers = ['static']\n[metric.m]\nphase = 'timing'\n\
                   [suite.s.variant.v]\nenv = { pass = 'x', accept_rungs = 'y' }\n\
                   [suite.s.variant.v.profile]\naccept_tiers = ['static']\n";
        assert_eq!(in_current_words(table(old)), table(now));
        assert_eq!(in_current_words(table(now)), table(now));
    }
}
