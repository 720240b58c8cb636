//! Keys that had another name once. They are still read; a rename alone changes no rule.

use toml::{Table, Value};

/// Where a key stands (`*` is any key), its old name and its name now.
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

/// The old name of a key, where it had one.
pub(super) fn old_name(key: &str) -> Option<&'static str> {
    let renamed = RENAMED.iter().find(|(_, _, now)| *now == key);
    renamed.map(|(_, old, _)| *old)
}

/// The same configuration with every key under the name that it has now.
pub(crate) fn in_current_words(mut table: Table) -> Table {
    for (place, old, now) in RENAMED {
        rename(&mut table, place, old, now);
    }
    table
}

fn rename(table: &mut Table, place: &[&str], old: &str, now: &str) {
    let Some((first, rest)) = place.split_first() else {
        // Both names at once are an error that reading the configuration reports.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_names_become_those_of_now_where_they_stand_and_nowhere_else() {
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
