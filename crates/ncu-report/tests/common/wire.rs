//! Messages that reports are made of, written by hand.

/// A message in the wire format, as far as the tests need it.
#[derive(Clone, Default)]
pub struct Message(pub Vec<u8>);

impl Message {
    pub fn varint(mut self, mut value: u64) -> Message {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }

    pub fn integer(self, number: u64, value: u64) -> Message {
        self.varint(number << 3).varint(value)
    }

    pub fn bytes(self, number: u64, value: &[u8]) -> Message {
        let mut message = self.varint(number << 3 | 2).varint(value.len() as u64);
        message.0.extend(value);
        message
    }

    pub fn float(self, number: u64, value: f32) -> Message {
        let mut message = self.varint(number << 3 | 5);
        message.0.extend(value.to_le_bytes());
        message
    }

    pub fn double(self, number: u64, value: f64) -> Message {
        let mut message = self.varint(number << 3 | 1);
        message.0.extend(value.to_le_bytes());
        message
    }

    /// Messages as values of one field.
    pub fn repeated(number: u64, values: impl IntoIterator<Item = Message>) -> Message {
        let add = |all: Message, value: Message| all.bytes(number, &value.0);
        values.into_iter().fold(Message::default(), add)
    }

    /// The message after its size.
    pub fn sized(&self) -> Vec<u8> {
        [&(self.0.len() as u32).to_le_bytes(), &self.0[..]].concat()
    }
}
