//! A single value of a metric.

use super::memory::Memory;
use super::wire::{Slice, whole_varint};
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

/// The value of a message whose only field is a `uint64`; `None` for any other message, damaged or
/// not. [`scalar`] gives the same value.
#[inline(always)]
pub(super) fn single_integer(message: &[u8]) -> Option<u64> {
    const UINT64: u8 = 5 << 3;
    let (&UINT64, number) = message.split_first()? else {
        return None;
    };
    whole_varint(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_single_integer_is_the_value_that_any_reader_gives(
            key in prop_oneof![3 => Just(0x28_u8), 1 => any::<u8>()],
            number in proptest::collection::vec(any::<u8>(), 0..12),
            as_one_number in any::<bool>(),
        ) {
            let mut bytes = vec![key];
            bytes.extend(&number);
            if as_one_number && let [_, first @ .., last] = &mut bytes[..] {
                first.iter_mut().for_each(|byte| *byte |= 0x80);
                *last &= 0x7f;
            }
            let message = Slice::of_file(&bytes);
            let any = scalar(message, &mut Memory::for_file(bytes.len()));
            if let Some(number) = single_integer(&bytes) {
                prop_assert_eq!(any.ok(), Some(Value::Integer(number)));
            } else if as_one_number && key == 0x28 && (1..10).contains(&number.len()) {
                prop_assert!(false, "{bytes:x?} was not read");
            }
        }
    }
}
