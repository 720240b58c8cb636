//! What is known of a key besides its type and its range. The structures of the configuration state it
//! beside the key, and the schema carries it:
//!
//! * `x-counts`: whose value counts where a change is judged. `change`: the change's. `stated`: the
//!   change's too, and only a measurement verifies it. `base`: the base's, and a new variant may not
//!   set it. Without it: the base's, and a new variant sets its own.
//! * `x-stricter`: which value is the stricter one. Without it every change may loosen the gate.
//! * `x-absent`: what counts where the key is absent. Without it that depends on other keys.

use std::sync::LazyLock;

use serde_json::Value;

use super::schema::schema;

/// Whose value of a key counts where a change is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    /// The base's; a new variant sets its own.
    Base,
    /// The base's; a new variant may not set it.
    BaseAlways,
    /// The change's: it describes the code.
    Change,
    /// The change's: a number of the code that only a measurement verifies.
    Stated,
}

/// What is known of a key.
#[derive(Debug)]
pub(crate) struct Key {
    /// Whose value counts.
    pub counts: Counts,
    /// Which value is the stricter one: `more`, `less`, `true`, `false`, `fewer` or `further` items of
    /// a list, `level` or `tolerance`.
    pub stricter: Option<&'static str>,
    /// What counts where the key is absent.
    pub absent: Option<toml::Value>,
}

static SCHEMA: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&schema()).unwrap_or_default());

impl Key {
    /// The key at a path of tables. What is within a value has that value's properties.
    pub(crate) fn at(path: &[&str]) -> Key {
        let mut node = Some(&*SCHEMA);
        let mut counts = Counts::Base;
        for part in path {
            node = node.and_then(|table| entry(table, part));
            counts = match text(node, "x-counts") {
                Some("change") => Counts::Change,
                Some("stated") => Counts::Stated,
                Some("base") => Counts::BaseAlways,
                _ => counts,
            };
        }
        // A suite's or a variant's table has what is outside of it.
        let inherits = matches!(path, ["suite", .., "profile" | "verify", _]);
        let absent = node.and_then(|node| node.get("x-absent"));
        Key {
            counts,
            stricter: text(node, "x-stricter").or_else(|| text(node.map(resolved), "x-stricter")),
            absent: absent
                .filter(|_| !inherits)
                .and_then(|value| toml::Value::try_from(value).ok()),
        }
    }
}

fn text(node: Option<&'static Value>, name: &str) -> Option<&'static str> {
    node?.get(name)?.as_str()
}

/// An entry of a table of the schema: a key, or what each name stands for.
fn entry(table: &'static Value, key: &str) -> Option<&'static Value> {
    let table = resolved(table);
    let table = table.get("items").map_or(table, resolved);
    let named = table.get("properties").and_then(|keys| keys.get(key));
    named.or_else(|| table.get("additionalProperties"))
}

/// The table that a part of the schema refers to, or itself.
fn resolved(node: &'static Value) -> &'static Value {
    let of_all = || node.get("allOf")?.get(0)?.get("$ref");
    let name = node.get("$ref").or_else(of_all).and_then(Value::as_str);
    let name = name.and_then(|name| name.strip_prefix("#/definitions/"));
    name.and_then(|name| SCHEMA.get("definitions")?.get(name))
        .unwrap_or(node)
}

/// What the tables of the schema with a key say of it, by the name of the table; the whole file has none.
fn described(key: &str) -> impl Iterator<Item = (&'static str, &'static Value)> {
    let tables = SCHEMA.get("definitions").and_then(Value::as_object);
    let tables = tables.into_iter().flatten();
    let tables = tables.map(|(name, table)| (&**name, table));
    let tables = std::iter::once(("", &*SCHEMA)).chain(tables);
    tables.filter_map(move |(name, table)| Some((name, table.get("properties")?.get(key)?)))
}

/// The tables that a key belongs to, in words, whether it is a table itself or not; `None` for an unknown
/// key.
pub(crate) fn home(key: &str, is_table: bool) -> Option<String> {
    let is_alike = |node| (text(Some(resolved(node)), "type") == Some("object")) == is_table;
    let place = |name| match name {
        "" if key == "env_pass" => "the top of the file, before the first `[table]`".to_owned(),
        "" if key == "waiver" => "a table of its own, `[[waiver]]`".to_owned(),
        "" => format!("the top of the file: `[{key}]` in no other table"),
        "variant" => "`[suite.NAME.variant.NAME]`".to_owned(),
        "pins" => "`[toolchain.pins]`".to_owned(),
        "profile" | "verify" => {
            format!("`[{name}]`, `[suite.NAME.{name}]` or `[suite.NAME.variant.NAME.{name}]`")
        }
        "suite" | "metric" | "static" => format!("`[{name}.NAME]`"),
        "tolerances" => {
            "`tolerance = { stored = \"4 %\", against = \"0.5 %\" }` of `[metric.NAME]`".to_owned()
        }
        "counts" => "`counts` of `[metric.NAME]`".to_owned(),
        "work" => "`work` of a suite or variant".to_owned(),
        name => format!("`[{name}]`"),
    };
    let places = described(key).filter(|(_, node)| is_alike(node));
    let places: Vec<String> = places.map(|(name, _)| place(name)).collect();
    let more = match key {
        "on" | "variants" => {
            "; a `[static.NAME]` is for every variant, and a `[[waiver]]` excuses one of them"
        }
        "unless_faster" => "; of a `[static.NAME]` it is `unless_as_fast`",
        "direction" => "; that of a `[static.NAME]` is fixed, so remove it there",
        _ => "",
    };
    (!places.is_empty()).then(|| format!("`{key}` belongs to {}{more}", places.join(" or ")))
}

/// What the key at a path of tables, or the only one of its name, means.
pub(super) fn meaning(path: &[&str]) -> Option<String> {
    let node = path
        .iter()
        .try_fold(&*SCHEMA, |table, key| entry(table, key));
    let of_name = || match described(path.last()?).collect::<Vec<_>>()[..] {
        [(_, node)] => text(Some(node), "description"),
        _ => None,
    };
    let text = text(node, "description").or_else(of_name)?;
    let values = node.and_then(|it| resolved(it).get("oneOf")?.as_array());
    let values = values.into_iter().flatten();
    let values = values.filter_map(|value| Some(format!("`{}`", value.get("const")?.as_str()?)));
    let known = match values.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => none,
        known => format!(" Known are {known}."),
    };
    Some(text.replace('\n', " ") + &known)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Every key of the schema, by the path of its tables; `*` stands for any name.
    pub(crate) fn all() -> Vec<Vec<String>> {
        fn walk(node: &'static Value, path: &[String], found: &mut Vec<Vec<String>>) {
            let table = resolved(node);
            let keys = table.get("properties").and_then(Value::as_object);
            let names = table
                .get("additionalProperties")
                .filter(|any| any.is_object());
            let any = names.map(|any| ("*".to_owned(), any));
            let keys = keys.into_iter().flatten();
            for (key, inner) in keys.map(|(key, inner)| (key.clone(), inner)).chain(any) {
                let path = [path, &[key]].concat();
                walk(inner, &path, found);
                found.push(path);
            }
        }
        let mut found = Vec::new();
        walk(&SCHEMA, &[], &mut found);
        found.sort();
        found
    }
}
