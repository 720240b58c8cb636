//! A single value of a metric.

use super::memory::Memory;
use super::wire::Slice;
use crate::error::ReadError;
use crate::value::Value;

/// Memory of a text without its letters, in bytes, rounded up.
const TEXT: usize = 96;

/// `ProfileMetricValue { 1: string, 2: float, 3: double, 4: uint32, 5: uint64 }`.
#[inline]
pub(super) fn scalar(mut message: Slice<'_>, memory: &mut Memory) -> Result<Value, ReadError> {
    let mut value = Value::Missing;
    let finite = |number: f64| match number.is_finite() {
        true => Value::Float(number),
        false => Value::Missing,
    };
    while let Some(field) = message.field()? {
        match field.number {
            1 => {
                let text = field.bytes()?;
                let value_text = text.text()?;
                memory.take(value_text.len().saturating_add(TEXT), text.offset())?;
                value = Value::Text(value_text.into());
            }
            2 => value = finite(f64::from(field.float()?)),
            3 => value = finite(field.double()?),
            4 => value = Value::Integer(u64::from(field.integer_32()?)),
            5 => value = Value::Integer(field.integer()?),
            _ => {}
        }
    }
    Ok(value)
}
