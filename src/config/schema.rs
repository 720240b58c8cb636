//! The JSON Schema of `config.toml`, for editors. It covers names, types and meanings; only the
//! validation covers what depends on several keys.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::{Map, Value};

use super::raw::RawConfig;
use crate::files::pretty_json;

/// The schema, draft 7, which is what the editors' TOML plugins read.
pub fn schema() -> String {
    let mut settings = SchemaSettings::draft07();
    // Before the others: they handle references that have neighbours, and this makes some.
    settings
        .transforms
        .insert(0, Box::new(RecursiveTransform(without_null)));
    let schema = settings
        .into_generator()
        .into_root_schema_for::<RawConfig>();
    pretty_json(&schema)
}

/// TOML has no null: what is optional is left out. Formats that only Rust knows go too.
fn without_null(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    // The text of each key states its default.
    object.remove("default");
    if object.get("format").is_some_and(|format| format != "date") {
        object.remove("format");
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(choices)) = object.get_mut("anyOf") else {
        return;
    };
    choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
    if let [Value::Object(only)] = &choices[..] {
        let only: Map<String, Value> = only.clone();
        object.remove("anyOf");
        object.extend(only);
    }
}
