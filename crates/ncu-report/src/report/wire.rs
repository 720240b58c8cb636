//! The wire format of protocol buffers, read in place
//! (<https://protobuf.dev/programming-guides/encoding/>).
//!
//! There is no recursion: the caller opens each nested message. Every offset in an error counts
//! from the beginning of the file.

use std::fmt::Display;

use crate::error::ReadError;
use crate::limits::LONGEST_TEXT;

/// A part of the file, and where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice<'a> {
    pub(super) bytes: &'a [u8],
    /// Offset in the file of the first byte after this part. Unlike the offset of the first byte it
    /// stays the same while the part is read.
    end: usize,
}

impl<'a> Slice<'a> {
    /// The whole file.
    pub(super) fn of_file(bytes: &'a [u8]) -> Slice<'a> {
        Slice {
            bytes,
            end: bytes.len(),
        }
    }

    /// Offset of the first byte in the file.
    #[inline(always)]
    pub(super) fn offset(&self) -> usize {
        self.end.wrapping_sub(self.bytes.len())
    }

    /// Cuts `length` bytes off the front. `what` names them in the error.
    pub(super) fn take(&mut self, length: u64, what: impl Display) -> Result<Slice<'a>, ReadError> {
        self.cut(length).ok_or_else(|| self.too_short(length, what))
    }

    /// Cuts `length` bytes off the front; `None` where fewer are left.
    #[inline(always)]
    fn cut(&mut self, length: u64) -> Option<Slice<'a>> {
        let length = usize::try_from(length).ok()?;
        let (head, tail) = self.bytes.split_at_checked(length)?;
        self.bytes = tail;
        Some(Slice {
            bytes: head,
            end: self.offset(),
        })
    }

    #[cold]
    #[inline(never)]
    fn too_short(self, length: u64, what: impl Display) -> ReadError {
        let left = self.bytes.len();
        ReadError::report(
            self.offset(),
            format!(
                "{what} needs {length} bytes, only {left} are left: the file is cut, or has something else at its end: copy it again"
            ),
        )
    }

    /// Reads a length (u32, little-endian) and cuts off as many bytes.
    pub(super) fn take_sized(&mut self, what: impl Display) -> Result<Slice<'a>, ReadError> {
        let length = self.take(4, format_args!("the length of {what}"))?;
        let length = length.bytes.first_chunk().copied().unwrap_or_default();
        self.take(u32::from_le_bytes(length).into(), what)
    }

    /// The bytes as a text; what is not UTF-8 is replaced. At most [`LONGEST_TEXT`] bytes.
    pub(super) fn text(&self) -> Result<String, ReadError> {
        if self.bytes.len() > LONGEST_TEXT {
            return Err(ReadError::report(
                self.offset(),
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
    ///
    /// A report has some fields for each value of each instruction. This is inlined, and what is
    /// rare takes the slice by value and not by reference, so that a slice stays in registers.
    #[inline(always)]
    pub(super) fn field(&mut self) -> Result<Option<Field<'a>>, ReadError> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let offset = self.offset();
        let key = self.varint()?;
        let number = key >> 3;
        if number == 0 || number > u64::from(u32::MAX >> 3) {
            return Err(no_field(offset, "field number", number));
        }
        let data = match key & 7 {
            0 => Data::Integer(self.varint()?),
            1 => Data::Fixed64(self.fixed()?),
            2 => Data::Bytes(self.sized_field()?),
            5 => Data::Fixed32(self.fixed()?),
            kind => return Err(no_field(offset, "wire type", kind)),
        };
        Ok(Some(Field {
            number,
            offset,
            data,
        }))
    }

    /// The number in the field `number`, the last of several.
    pub(super) fn integer(mut self, number: u64) -> Result<Option<u64>, ReadError> {
        let mut found = None;
        while let Some(field) = self.field()? {
            if field.number == number {
                found = Some(field.integer()?);
            }
        }
        Ok(found)
    }

    /// Calls `each` for each text or message in the field `number`.
    pub(super) fn each(
        mut self,
        number: u64,
        mut each: impl FnMut(Slice<'a>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        while let Some(field) = self.field()? {
            if field.number == number {
                each(field.bytes()?)?;
            }
        }
        Ok(())
    }

    /// Reads a length and cuts off as many bytes.
    #[inline(always)]
    fn sized_field(&mut self) -> Result<Slice<'a>, ReadError> {
        let length = self.varint()?;
        match self.cut(length) {
            Some(taken) => Ok(taken),
            None => Err(self.too_short(length, "a field")),
        }
    }

    #[inline(always)]
    fn varint(&mut self) -> Result<u64, ReadError> {
        // Most numbers are keys, lengths and counts below 128.
        let (value, length) = match self.bytes {
            [byte @ ..0x80, ..] => (u64::from(*byte), 1),
            bytes => match long_varint(bytes) {
                Some(found) => found,
                None => return Err(self.no_number()),
            },
        };
        self.bytes = self.bytes.get(length..).unwrap_or_default();
        Ok(value)
    }

    #[cold]
    #[inline(never)]
    fn no_number(self) -> ReadError {
        ReadError::report(
            self.offset(),
            match self.bytes.len() {
                0..10 => "the number is truncated",
                _ => "the number is longer than ten bytes",
            },
        )
    }

    #[inline(always)]
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let Some((value, rest)) = self.bytes.split_first_chunk::<N>() else {
            return Err(self.truncated_number(N));
        };
        self.bytes = rest;
        Ok(*value)
    }

    #[cold]
    #[inline(never)]
    fn truncated_number(self, bytes: usize) -> ReadError {
        ReadError::report(
            self.offset(),
            format!(
                "expected a number of {bytes} bytes, only {} are left",
                self.bytes.len()
            ),
        )
    }
}

/// The number that the bytes begin with, and its length; `None` where it does not end.
#[inline(never)]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a shift by 63 at most, and a length of ten at most"
)]
fn long_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (index, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if *byte < 0x80 {
            return Some((value, index + 1));
        }
    }
    None
}

#[cold]
#[inline(never)]
fn no_field(offset: usize, what: &str, found: u64) -> ReadError {
    ReadError::report(
        offset,
        format!(
            "expected a field of a message, found the {what} {found}: the file is damaged, copy it again as binary"
        ),
    )
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

    #[cold]
    #[inline(never)]
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
