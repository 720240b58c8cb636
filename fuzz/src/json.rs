//! Mutations of JSON as a tree: values of any kind at any place, where a mutation of bytes mostly
//! makes a text that is no JSON.

use serde_json::{Map, Number, Value};

use crate::random::Random;

/// Numbers at the ends of what readers calculate with.
const NUMBERS: [&str; 24] = [
    "0", "-0.0", "1", "-1", "2", "3", "4", "100", "0.5", "1e-300", "5e-324", "1e300", "1e306",
    "1.7976931348623157e308", "-1e300", "4294967295", "4294967296", "9007199254740993",
    "9223372036854775807", "18446744073709551615", "-9223372036854775808", "1e15", "1e-15",
    "1000000",
];

/// Texts that some form of a report may take for its own.
const TEXTS: [&str; 18] = [
    "", "x", "a/b", "../../x", "\u{0}", "\u{1b}[31m", "\u{200b}\u{feff}", "]]>", "</script><b>",
    "::error::x", "a|b\n\n# c", "`x`", "&amp;<>\"'", "\u{202e}abc", "%0A", "_Z4gemmPf",
    "2026-11-21T07:03:19Z", "NVIDIA H200",
];

/// The text with one to four changes; `None` where it is no JSON.
pub fn mutated(text: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let mut document: Value = serde_json::from_slice(text).ok()?;
    for _ in 0..1 + random.below(4) {
        change(&mut document, random);
    }
    serde_json::to_vec(&document).ok()
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// The value at a place in the order of the text.
fn at<'v>(value: &'v mut Value, place: &mut usize) -> Option<&'v mut Value> {
    if *place == 0 {
        return Some(value);
    }
    *place -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| at(item, place)),
        Value::Object(fields) => fields.values_mut().find_map(|field| at(field, place)),
        _ => None,
    }
}

fn change(document: &mut Value, random: &mut Random) {
    let all = count(document);
    let mut other = random.below(all);
    let other = at(document, &mut other).map(|value| value.clone());
    let mut place = random.below(all);
    let Some(value) = at(document, &mut place) else {
        return;
    };
    match (random.below(12), &mut *value) {
        (0, _) => *value = Value::Null,
        (1, _) => *value = other.unwrap_or_default(),
        (2, _) => *value = Value::String((*random.pick(&TEXTS)).to_owned()),
        (3, Value::String(text)) => lengthen(text, random),
        (4..=6, Value::Array(items)) if !items.is_empty() => list(items, random),
        (4..=6, Value::Object(fields)) if !fields.is_empty() => object(fields, random),
        (4..=6, Value::Array(items)) => items.extend(other),
        (7, Value::Number(number)) => near(number, random),
        (8, Value::Bool(flag)) => *flag = !*flag,
        _ => *value = number(random.pick::<&str>(&NUMBERS)),
    }
}

fn number(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// A number that is one more or less, a multiple, or a part of it.
fn near(number: &mut Number, random: &mut Random) {
    let Some(value) = number.as_f64() else { return };
    let value = match random.below(6) {
        0 => value + 1.0,
        1 => value - 1.0,
        2 => value * 1e3,
        3 => value * 1e-3,
        4 => -value,
        _ => value * (1.0 + random.below(1000) as f64 * 1e-5),
    };
    if number.is_u64() && value >= 0.0 {
        *number = Number::from(value as u64);
    } else if let Some(value) = Number::from_f64(value) {
        *number = value;
    }
}

fn lengthen(text: &mut String, random: &mut Random) {
    match random.below(4) {
        0 => text.push_str(random.pick::<&str>(&TEXTS)),
        1 => *text = text.repeat(1 + random.below(8)),
        2 => *text = text.chars().rev().collect(),
        _ => drop(text.pop()),
    }
}

fn list(items: &mut Vec<Value>, random: &mut Random) {
    let place = random.below(items.len());
    match random.below(5) {
        0 => drop(items.remove(place)),
        1 => items.truncate(place),
        2 => {
            let other = random.below(items.len());
            items.swap(place, other);
        }
        3 => items.insert(place, items[place].clone()),
        _ => {
            let item = items[place].clone();
            items.extend(std::iter::repeat_n(item, 1 + random.below(20)));
        }
    }
}

fn object(fields: &mut Map<String, Value>, random: &mut Random) {
    let names: Vec<String> = fields.keys().cloned().collect();
    let name = random.pick(&names);
    match random.below(4) {
        0 => drop(fields.remove(name)),
        1 => {
            let other = fields[random.pick(&names)].clone();
            fields.insert(name.clone(), other);
        }
        2 => {
            let value = fields[name].clone();
            fields.insert((*random.pick(&TEXTS)).to_owned(), value);
        }
        _ => {
            let value = fields.remove(name).unwrap_or_default();
            fields.insert(format!("{name}2"), value);
        }
    }
}
