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

/// A value that is a whole number.
pub fn number(value: u64) -> Message {
    Message::default().integer(5, value)
}

/// A metric with this value.
pub fn metric(id: u64, value: Message) -> Message {
    Message::default().integer(1, id).bytes(2, &value.0)
}

/// A kernel result with these metrics.
pub fn result(metrics: impl IntoIterator<Item = Message>) -> Message {
    Message::repeated(13, metrics)
}

/// A table of names of metrics.
pub fn strings(names: &[&[u8]]) -> Vec<u8> {
    let add = |table: Message, name: &&[u8]| table.bytes(1, name);
    names.iter().fold(Message::default(), add).0
}

/// A report with these blocks: the header without the size of the payload, and the parts of that.
pub fn report(version: u64, blocks: &[(Message, Vec<Message>)]) -> Vec<u8> {
    let mut file = ncu_report::report::MAGIC.to_vec();
    file.extend(Message::default().integer(1, version).sized());
    for (header, parts) in blocks {
        let payload: Vec<u8> = parts.iter().flat_map(Message::sized).collect();
        file.extend(header.clone().integer(5, payload.len() as u64).sized());
        file.extend(payload);
    }
    file
}

/// A report of one block with these names of metrics, sources and kernel results.
pub fn report_of(names: &[&[u8]], sources: &[Message], results: &[Message]) -> Vec<u8> {
    let header = Message::default()
        .integer(1, sources.len() as u64)
        .integer(2, results.len() as u64)
        .bytes(4, &strings(names));
    report(7, &[(header, [sources, results].concat())])
}
