//! The axes of a matrix, as they are written.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::error::ConfigError;
use crate::config::validate::variant::PLACEHOLDERS;

/// The key of a matrix in the table of a variant.
pub(super) const KEY: &str = "matrix";

/// What each variant of a matrix has one value of.
pub(super) struct Axis {
    pub name: String,
    /// Where its values are written.
    pub span: Range<usize>,
    /// At least one.
    pub values: Vec<Value>,
}

/// A value of an axis.
pub(super) struct Value {
    /// As it stands in the names of variants.
    pub name: String,
    pub stands_for: StandsFor,
}

/// What the placeholder of an axis is replaced by.
pub(super) enum StandsFor {
    /// A text, also within another one.
    Text(String),
    /// Any number of arguments, in the place of one.
    Arguments(Vec<String>),
}

const SHAPE: &str =
    "`matrix = { n = [1024, 4096], mode = { fast = [\"--fast\"], exact = [] } }` has two axes";

/// The axes of a matrix, in the order of their names.
pub(super) fn axes(matrix: &Spanned<DeValue<'_>>) -> Result<Vec<Axis>, ConfigError> {
    let DeValue::Table(table) = matrix.get_ref() else {
        return Err(ConfigError::at(
            matrix.span(),
            "`matrix` must be a table of its axes",
            SHAPE,
        ));
    };
    if table.is_empty() {
        return Err(ConfigError::at(
            matrix.span(),
            "`matrix` has no axes",
            SHAPE,
        ));
    }
    table
        .iter()
        .map(|(key, values)| axis(key.get_ref(), key.span(), values))
        .collect()
}

fn axis(name: &str, at: Range<usize>, values: &Spanned<DeValue<'_>>) -> Result<Axis, ConfigError> {
    if !is_axis_name(name) {
        return Err(ConfigError::at(
            at,
            format!("`{name}` cannot be the name of an axis"),
            "an axis has lower-case letters, digits and `_`, and begins with a letter",
        ));
    }
    if PLACEHOLDERS.contains(&name) {
        return Err(ConfigError::at(
            at,
            format!(
                "`{name}` cannot be the name of an axis: `{{{name}}}` is filled in for each process"
            ),
            "give the axis another name",
        ));
    }
    let read = match values.get_ref() {
        DeValue::Array(list) => list.iter().map(|value| listed(name, value)).collect(),
        DeValue::Table(table) => named(name, table),
        _ => {
            return Err(ConfigError::at(
                values.span(),
                format!("the axis `{name}` must be a list of values, or a table of named values"),
                SHAPE,
            ));
        }
    };
    let read: Vec<Value> = read?;
    if read.is_empty() {
        return Err(ConfigError::at(
            values.span(),
            format!("the axis `{name}` has no values, so the matrix produces no variant"),
            "give it a value, or remove the axis",
        ));
    }
    for (index, value) in read.iter().enumerate() {
        if read[..index].iter().any(|other| other.name == value.name) {
            return Err(ConfigError::at(
                values.span(),
                format!(
                    "the axis `{name}` has two values that are `{}` in names of variants",
                    value.name
                ),
                format!("remove one, or give it another name: `{name} = {{ name = \"value\" }}`"),
            ));
        }
    }
    Ok(Axis {
        name: name.to_owned(),
        span: values.span(),
        values: read,
    })
}

/// A value of a list: its text is its name.
fn listed(axis: &str, value: &Spanned<DeValue<'_>>) -> Result<Value, ConfigError> {
    let give_a_name = || format!("give it a name: `{axis} = {{ name = \"value\", … }}`");
    let text = match value.get_ref() {
        DeValue::Array(_) => {
            return Err(ConfigError::at(
                value.span(),
                format!("a list of arguments needs a name in the axis `{axis}`"),
                format!(
                    "such as `{axis} = {{ small = [\"--m\", \"64\"], large = [\"--m\", \"4096\"] }}`"
                ),
            ));
        }
        scalar => text(scalar).ok_or_else(|| not_a_value(axis, value))?,
    };
    // 0.5 is `0_5` in a name.
    let name = text.replace('.', "_");
    if !is_part_of_name(&name) {
        return Err(ConfigError::at(
            value.span(),
            format!("`{text}` of the axis `{axis}` cannot stand in the name of a variant"),
            give_a_name(),
        ));
    }
    Ok(Value {
        name,
        stands_for: StandsFor::Text(text),
    })
}

/// The values of a table: names, and what they stand for.
fn named(axis: &str, table: &DeTable<'_>) -> Result<Vec<Value>, ConfigError> {
    let value = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let name: &toml::de::DeString<'_> = key.get_ref();
        if !is_part_of_name(name) {
            return Err(ConfigError::at(
                key.span(),
                format!("`{name}` of the axis `{axis}` cannot stand in the name of a variant"),
                "the name of a value has letters, digits, `_` and `-`",
            ));
        }
        let stands_for = match value.get_ref() {
            DeValue::Array(list) => {
                let arguments = list.iter().map(|item| match item.get_ref() {
                    DeValue::String(text) => Ok(text.to_string()),
                    _ => Err(not_a_value(axis, item)),
                });
                StandsFor::Arguments(arguments.collect::<Result<_, _>>()?)
            }
            scalar => StandsFor::Text(text(scalar).ok_or_else(|| not_a_value(axis, value))?),
        };
        Ok(Value {
            name: name.to_string(),
            stands_for,
        })
    };
    table.iter().map(value).collect()
}

fn not_a_value(axis: &str, value: &Spanned<DeValue<'_>>) -> ConfigError {
    ConfigError::at(
        value.span(),
        format!("this cannot be a value of the axis `{axis}`"),
        "a value is a text, a number, a boolean, or, with a name, a list of arguments (texts)",
    )
}

/// A text, number or boolean as an argument. Decimals stay as they are written.
fn text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => {
            let number = i64::from_str_radix(number.as_str(), number.radix());
            number.ok().map(|number| number.to_string())
        }
        DeValue::Float(number) => {
            let finite = number.as_str().parse::<f64>().is_ok_and(f64::is_finite);
            finite.then(|| number.as_str().to_owned())
        }
        DeValue::Boolean(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// Whether `{name}` can be a placeholder of a matrix.
pub(super) fn is_axis_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn is_part_of_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}
