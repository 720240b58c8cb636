//! Layers of settings: what the whole file and a suite set counts in each variant that does not set it.
//!
//! They are merged in the tree of the file, before anything becomes a structure: a value keeps its
//! position, so an error shows the line that it was written in.

use crate::terms::words;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// Tables that are merged key by key, from the whole file to a suite and to its variants.
const TABLES: [&str; 2] = ["profile", "verify"];

/// Keys that a variant takes from its suite where it has none of its own.
const OF_SUITE: [&str; 5] = words("verify_args profile_args sanitizer_args kernels work");

/// Writes the layers of each suite and variant into its table. What has another type than it should is
/// left for the reading of types.
pub(super) fn merge(tree: &mut DeTable<'_>) {
    let whole = tree.clone();
    for (_, suite) in tables(tree, "suite") {
        for key in TABLES {
            fill_table(suite, &whole, key);
        }
        let outer = suite.clone();
        for (_, variant) in tables(suite, "variant") {
            for key in TABLES {
                fill_table(variant, &outer, key);
            }
            for key in OF_SUITE {
                take(variant, &outer, key);
            }
            put_before(variant, &outer, "args");
        }
    }
}

/// The table of a key.
pub(super) fn table_of<'t, 'i>(
    table: &'t mut DeTable<'i>,
    key: &str,
) -> Option<&'t mut DeTable<'i>> {
    match table.get_mut(key)?.get_mut() {
        DeValue::Table(inner) => Some(inner),
        _ => None,
    }
}

/// The tables in the table of a key, with their names.
pub(super) fn tables<'t, 'i>(
    table: &'t mut DeTable<'i>,
    key: &str,
) -> impl Iterator<Item = (&'t str, &'t mut DeTable<'i>)> {
    let all = table_of(table, key).into_iter();
    let all = all.flat_map(|all| all.iter_mut());
    all.filter_map(|(name, value)| match value.get_mut() {
        DeValue::Table(inner) => Some((&**name.get_ref(), inner)),
        _ => None,
    })
}

/// Adds the keys of the outer table of this name that the inner one lacks.
fn fill_table<'i>(table: &mut DeTable<'i>, outer: &DeTable<'i>, key: &str) {
    take(table, outer, key);
    let from = outer.get(key).map(Spanned::get_ref);
    if let (Some(inner), Some(DeValue::Table(from))) = (table_of(table, key), from) {
        for (name, value) in from {
            inner.entry(name.clone()).or_insert(value.clone());
        }
    }
}

/// Adds the key of the outer table, where the inner one lacks it.
fn take<'i>(table: &mut DeTable<'i>, outer: &DeTable<'i>, key: &str) {
    if let Some((name, value)) = outer.get_key_value(key) {
        let name: &Spanned<DeString<'i>> = name;
        table.entry(name.clone()).or_insert(value.clone());
    }
}

/// Puts the items of the outer list before those of the inner one.
fn put_before<'i>(table: &mut DeTable<'i>, outer: &DeTable<'i>, key: &str) {
    let Some(inner) = table.get_mut(key) else {
        take(table, outer, key);
        return;
    };
    let outer = outer.get(key).map(Spanned::get_ref);
    if let (DeValue::Array(inner), Some(DeValue::Array(outer))) = (inner.get_mut(), outer) {
        let own = inner.clone();
        *inner = outer.iter().chain(own.iter()).cloned().collect();
    }
}
