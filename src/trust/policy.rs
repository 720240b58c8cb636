//! The configuration that a change is judged by: its own code, under the base's policy.
//!
//! The two files are merged as TOML, before anything is validated: every key is the base's, except
//! those that say how the code is built. A key that is added to the format is therefore policy
//! unless its entry says otherwise, see [`Key`].

use toml::{Table, Value};

use crate::config::{Key, KeyCounts};
use crate::terms::VariantId;

/// Whether a key path is one of the code rather than of the policy.
pub(super) fn is_code(path: &[&str]) -> bool {
    matches!(Key::at(path).counts, KeyCounts::Change | KeyCounts::Stated)
}

/// The code of the change under the base's policy. What only the base contains is left out, and
/// reported as removed. A suite that is new is taken as it is, with the metrics of the base.
pub(super) fn merged(base: &Table, head: &Table) -> Table {
    let mut merged = base.clone();
    let none = Table::new();
    take(
        &["toolchain"],
        table_of(&mut merged, "toolchain"),
        head.get("toolchain")
            .and_then(Value::as_table)
            .unwrap_or(&none),
    );
    let metrics = tables(base, "metric");
    let head_suites = tables(head, "suite");
    let suites = table_of(&mut merged, "suite");
    suites.retain(|name, _| head_suites.iter().any(|(other, _)| *other == name));
    for (name, head_suite) in head_suites {
        match suites.get_mut(name).and_then(Value::as_table_mut) {
            Some(suite) => merge_suite(name, suite, head_suite),
            None => {
                let mut suite = head_suite.clone();
                if let Some(Value::Array(named)) = suite.get_mut("metrics") {
                    named.retain(|alias| {
                        metrics
                            .iter()
                            .any(|(known, _)| alias.as_str() == Some(known))
                    });
                    if named.is_empty() {
                        suite.remove("metrics");
                    }
                }
                suites.insert(name.to_owned(), Value::Table(suite));
            }
        }
    }
    suites.retain(|_, suite| {
        let variants = suite.get("variant").and_then(Value::as_table);
        variants.is_some_and(|variants| !variants.is_empty())
    });
    let variants: Vec<String> = suites
        .iter()
        .flat_map(|(suite, table)| {
            let variants = table.get("variant").and_then(Value::as_table);
            let names = variants.into_iter().flat_map(Table::keys);
            names.map(move |variant| format!("{suite}/{variant}"))
        })
        .collect();
    let of_suite = |id: &str, name: &str| id.split('/').next() == Some(name);
    for (_, metric) in table_of(&mut merged, "metric").iter_mut() {
        if let Some(Value::Array(named)) = metric.get_mut("variants") {
            named.retain(|name| variants.iter().any(|id| name.as_str() == Some(id)));
        }
        if let Some(Value::Table(own)) = metric.get_mut("on") {
            own.retain(|name, _| variants.iter().any(|id| id == name || of_suite(id, name)));
        }
    }
    if let Some(Value::Array(waivers)) = merged.get_mut("waiver") {
        waivers.retain(|waiver| {
            let variant = waiver.get("variant").and_then(Value::as_str);
            variant.is_none_or(|variant| variants.iter().any(|id| id == variant))
        });
    }
    merged
}

fn merge_suite(name: &str, suite: &mut Table, head: &Table) {
    take(&["suite", name], suite, head);
    let head_variants = tables(head, "variant");
    let variants = table_of(suite, "variant");
    variants.retain(|name, _| head_variants.iter().any(|(other, _)| *other == name));
    for (variant, head_variant) in head_variants {
        let path = ["suite", name, "variant", variant];
        match variants.get_mut(variant).and_then(Value::as_table_mut) {
            Some(own) => take(&path, own, head_variant),
            None => {
                let mut own = head_variant.clone();
                own.retain(|key, _| !of_base_always(&path, key));
                variants.insert(variant.to_owned(), Value::Table(own));
            }
        }
    }
}

/// Whether a new variant may not set a key of its own.
pub(super) fn of_base_always(variant: &[&str], key: &str) -> bool {
    Key::at(&[variant, &[key]].concat()).counts == KeyCounts::BaseAlways
}

/// Takes the keys of the code from another table, and removes those that it lacks.
fn take(path: &[&str], table: &mut Table, from: &Table) {
    let is_code = |key: &str| is_code(&[path, &[key]].concat());
    table.retain(|key, _| !is_code(key));
    let taken = from.iter().filter(|(key, _)| is_code(key));
    table.extend(taken.map(|(key, value)| (key.clone(), value.clone())));
}

/// The tables in a table of tables.
fn tables<'t>(table: &'t Table, key: &str) -> Vec<(&'t str, &'t Table)> {
    let inner = table.get(key).and_then(Value::as_table);
    inner
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.as_str(), value.as_table()?)))
        .collect()
}

fn table_of<'t>(table: &'t mut Table, key: &str) -> &'t mut Table {
    let entry = table
        .entry(key)
        .or_insert_with(|| Value::Table(Table::new()));
    if !entry.is_table() {
        *entry = Value::Table(Table::new());
    }
    match entry {
        Value::Table(inner) => inner,
        _ => unreachable!("it was made a table"),
    }
}

/// The variant that a key path is about.
pub(super) fn variant_of(path: &[&str]) -> Option<VariantId> {
    match path {
        ["suite", suite, "variant", variant, ..] => {
            VariantId::try_from(format!("{suite}/{variant}")).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        toml::from_str(text).unwrap()
    }

    const BASE: &str = r#"
        [toolchain]
        arch = "sm_90a"
        flags = ["-O3"]
        [metric.duration]
        tolerance = '3 %'
        variants = ["s/a", "s/b"]
        on.s = '4 %'
        on."s/b" = '5 %'
        [suite.s]
        kernels = "k"
        [suite.s.variant.a]
        source = "a.cu"
        immutable = true
        [suite.s.variant.b]
        source = "b.cu"
        [[waiver]]
        variant = "s/b"
        metric = "duration"
    "#;

    #[test]
    fn the_code_is_the_changes_and_everything_else_the_bases() {
        let head = table(
            r#"
            [toolchain]
            ncu = "./ncu"
            flags = ["-O2"]
            [metric.duration]
            tolerance = '30 %'
            [suite.s]
            kernels = "other"
            [suite.s.variant.a]
            source = "moved.cu"
            some_key_of_the_future = 1
            program = "a_better_looking_one"
            libraries = []
            [suite.s.variant.new]
            source = "new.cu"
            profile = { launches = 1 }
            [suite.t.variant.x]
            source = "x.cu"
            "#,
        );
        let merged = merged(&table(BASE), &head);
        let expected = table(
            r#"
            [toolchain]
            arch = "sm_90a"
            flags = ["-O2"]
            [metric.duration]
            tolerance = '3 %'
            variants = ["s/a"]
            on.s = '4 %'
            [suite.s]
            kernels = "k"
            [suite.s.variant.a]
            source = "moved.cu"
            immutable = true
            [suite.s.variant.new]
            source = "new.cu"
            [suite.t.variant.x]
            source = "x.cu"
            "#,
        );
        let mut expected = expected;
        expected.insert("waiver".to_owned(), Value::Array(Vec::new()));
        assert_eq!(merged, expected);
    }

    #[test]
    fn two_equal_files_merge_to_themselves() {
        assert_eq!(merged(&table(BASE), &table(BASE)), table(BASE));
    }
}
