//! Values and their units.

use std::fmt;
use std::sync::Arc;

use crate::catalog::Unit;

/// A value with its unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The value.
    pub value: Value,
    /// The unit of the value.
    pub unit: Unit,
}

/// The value of a metric. A missing value is a state and never a number.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(u64),
    /// A finite floating-point number.
    Float(f64),
    /// A text, such as the name of the device, which launches share. Its size is one pointer, so that it
    /// does not enlarge the value.
    Text(Arc<String>),
    /// No scalar: an empty cell, `no data`, `n/a`, or a number that is not finite.
    Missing,
}

impl Value {
    /// The number, if the value is one. Integers above 2^53 are rounded.
    pub fn number(&self) -> Option<f64> {
        match *self {
            Value::Integer(number) => Some(number as f64),
            Value::Float(number) if number.is_finite() => Some(number),
            Value::Float(_) | Value::Text(_) | Value::Missing => None,
        }
    }

    /// The text, if the value is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The number or the text; `missing` for a missing value.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(number) => fmt::Display::fmt(number, f),
            Value::Float(number) => fmt::Display::fmt(number, f),
            Value::Text(text) => f.pad(text),
            Value::Missing => f.pad("missing"),
        }
    }
}
