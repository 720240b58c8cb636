//! The wire format of protocol buffers, read in place
//! (<https://protobuf.dev/programming-guides/encoding/>).
//!
//! There is no recursion: the caller opens each nested message. Every offset in an error counts
//! from the beginning of the file.

use std::fmt::Display;

use crate::error::ReadError;
use crate::input::LONGEST_TEXT;

/// A part of the file, and the offset of its first byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) offset: usize,
}

impl<'a> Slice<'a> {
    /// Cuts `length` bytes off the front. `what` names them in the error.
    pub(super) fn take(&mut self, length: u64, what: impl Display) -> Result<Slice<'a>, ReadError> {
        let left = self.bytes.len();
        let Some((head, tail)) = usize::try_from(length)
            .ok()
            .and_then(|length| self.bytes.split_at_checked(length))
        else {
            return Err(ReadError::report(
                self.offset,
                format!("{what} needs {length} bytes, only {left} are left"),
            ));
        };
        let taken = Slice {
            bytes: head,
            offset: self.offset,
        };
        self.bytes = tail;
        self.offset = self.offset.saturating_add(head.len());
        Ok(taken)
    }

    /// Reads a length (u32, little-endian) and cuts off as many bytes.
    pub(super) fn take_sized(&mut self, what: impl Display) -> Result<Slice<'a>, ReadError> {
        let Some((length, _)) = self.bytes.split_first_chunk::<4>() else {
            return Err(ReadError::report(
                self.offset,
                format!(
                    "expected the length of {what} in four bytes, only {} bytes are left",
                    self.bytes.len()
                ),
            ));
        };
        let length = u32::from_le_bytes(*length);
        self.take(4, "a length")?;
        self.take(u64::from(length), what)
    }

    /// The bytes as a text; what is not UTF-8 is replaced. At most [`LONGEST_TEXT`] bytes.
    pub(super) fn text(&self) -> Result<String, ReadError> {
        if self.bytes.len() > LONGEST_TEXT {
            return Err(ReadError::report(
                self.offset,
                format!(
                    "a text has {} bytes, the limit is {LONGEST_TEXT}",
                    self.bytes.len()
                ),
            ));
        }
        let mut text = String::from_utf8_lossy(self.bytes).into_owned();
        text.shrink_to_fit();
        Ok(text)
    }

    /// The next field of the message, or `None` at its end.
    #[inline]
    pub(super) fn field(&mut self) -> Result<Option<Field<'a>>, ReadError> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let offset = self.offset;
        let key = self.varint()?;
        let number = key >> 3;
        if number == 0 || number > u64::from(u32::MAX >> 3) {
            return Err(ReadError::report(
                offset,
                format!("expected a field of a message, found the field number {number}"),
            ));
        }
        let data = match key & 7 {
            0 => Data::Integer(self.varint()?),
            1 => Data::Fixed64(self.fixed()?),
            2 => {
                let length = self.varint()?;
                Data::Bytes(self.take(length, "a field")?)
            }
            5 => Data::Fixed32(self.fixed()?),
            kind => {
                return Err(ReadError::report(
                    offset,
                    format!("expected a field of a message, found the wire type {kind}"),
                ));
            }
        };
        Ok(Some(Field {
            number,
            offset,
            data,
        }))
    }

    #[inline]
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "a shift by 63 at most, and an offset within the file"
    )]
    fn varint(&mut self) -> Result<u64, ReadError> {
        let mut value = 0_u64;
        for (index, &byte) in self.bytes.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                self.bytes = &self.bytes[index + 1..];
                self.offset += index + 1;
                return Ok(value);
            }
        }
        Err(ReadError::report(
            self.offset,
            match self.bytes.len() {
                0..10 => "the number is truncated",
                _ => "the number is longer than ten bytes",
            },
        ))
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let Some((value, rest)) = self.bytes.split_first_chunk::<N>() else {
            return Err(ReadError::report(
                self.offset,
                format!(
                    "expected a number of {N} bytes, only {} are left",
                    self.bytes.len()
                ),
            ));
        };
        self.bytes = rest;
        self.offset = self.offset.saturating_add(N);
        Ok(*value)
    }
}

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub(super) number: u64,
    offset: usize,
    data: Data<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Data<'a> {
    Integer(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    Bytes(Slice<'a>),
}

impl<'a> Field<'a> {
    /// The value of a varint field.
    #[inline]
    pub(super) fn integer(&self) -> Result<u64, ReadError> {
        match self.data {
            Data::Integer(value) => Ok(value),
            _ => Err(self.mismatch("an integer")),
        }
    }

    /// The low 32 bits of a varint field, as the libraries of the format read a 32-bit field.
    pub(super) fn integer_32(&self) -> Result<u32, ReadError> {
        Ok(self.integer()? as u32)
    }

    /// The value of a double field.
    #[inline]
    pub(super) fn double(&self) -> Result<f64, ReadError> {
        match self.data {
            Data::Fixed64(bytes) => Ok(f64::from_le_bytes(bytes)),
            _ => Err(self.mismatch("a double")),
        }
    }

    /// The value of a float field.
    pub(super) fn float(&self) -> Result<f32, ReadError> {
        match self.data {
            Data::Fixed32(bytes) => Ok(f32::from_le_bytes(bytes)),
            _ => Err(self.mismatch("a float")),
        }
    }

    /// The bytes of a string or of a nested message.
    #[inline]
    pub(super) fn bytes(&self) -> Result<Slice<'a>, ReadError> {
        match self.data {
            Data::Bytes(slice) => Ok(slice),
            _ => Err(self.mismatch("a string or a message")),
        }
    }

    fn mismatch(&self, expected: &str) -> ReadError {
        let found = match self.data {
            Data::Integer(_) => "an integer",
            Data::Fixed64(_) => "a number of 8 bytes",
            Data::Fixed32(_) => "a number of 4 bytes",
            Data::Bytes(_) => "a string or a message",
        };
        ReadError::report(
            self.offset,
            format!(
                "expected {expected} in field {}, found {found}",
                self.number
            ),
        )
    }
}
