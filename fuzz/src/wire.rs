//! A report as a tree of messages, for mutations that keep its lengths and counts right.

use crate::random::Random;

/// Deepest message in a message.
const DEEPEST: usize = 8;

/// Largest number of a field in a report.
const LARGEST_NUMBER: u64 = 64;

/// Names that the reader asks for.
const NAMES: [&str; 10] = [
    "inst_executed",
    "smsp__pcsamp_sample_count",
    "smsp__pcsamp_warps_issue_stalled_wait",
    "smsp__pcsamp_warps_issue_stalled_wait_not_issued",
    "device__attribute_compute_capability_major",
    "device__attribute_compute_capability_minor",
    "launch__grid_dim_x",
    "launch__device_id",
    "gpu__time_duration.sum",
    "",
];

/// Integers at the ends of what readers calculate with.
const INTEGERS: [u64; 12] = [
    0,
    1,
    2,
    7,
    127,
    128,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    1 << 53,
    i64::MAX as u64,
    u64::MAX,
];

const DOUBLES: [f64; 8] = [
    0.0,
    -0.0,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    1e306,
    5e-324,
    -1.0,
];

pub type Message = Vec<Field>;

#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub number: u64,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Integer(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    Bytes(Vec<u8>),
    Message(Message),
}

/// A block: its header, and the messages of its payload.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub header: Message,
    pub payload: Vec<Message>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub header: Message,
    pub blocks: Vec<Block>,
}

const PAYLOAD_SIZE: u64 = 5;

impl Report {
    pub fn read(bytes: &[u8]) -> Option<Report> {
        let mut rest = bytes.strip_prefix(b"NVR\0")?;
        let header = message(sized(&mut rest)?, 0)?;
        let mut blocks = Vec::new();
        while !rest.is_empty() {
            let mut header = message(sized(&mut rest)?, 0)?;
            let mut size = 0;
            header.retain(|field| match field.content {
                Content::Integer(value) if field.number == PAYLOAD_SIZE => {
                    size = value;
                    false
                }
                _ => true,
            });
            let (mut payload, after) = rest.split_at_checked(usize::try_from(size).ok()?)?;
            rest = after;
            let mut messages = Vec::new();
            while !payload.is_empty() {
                messages.push(message(sized(&mut payload)?, 0)?);
            }
            blocks.push(Block {
                header,
                payload: messages,
            });
        }
        Some(Report { header, blocks })
    }

    pub fn write(&self) -> Vec<u8> {
        let mut out = b"NVR\0".to_vec();
        write_sized(&mut out, &written(&self.header));
        for block in &self.blocks {
            let mut payload = Vec::new();
            for message in &block.payload {
                write_sized(&mut payload, &written(message));
            }
            let mut header = written(&block.header);
            write_varint(&mut header, PAYLOAD_SIZE << 3);
            write_varint(&mut header, payload.len() as u64);
            write_sized(&mut out, &header);
            out.extend(payload);
        }
        out
    }

    /// Every message of the report that has fields.
    pub fn messages(&mut self) -> Vec<&mut Message> {
        let mut found = Vec::new();
        for block in &mut self.blocks {
            collect(&mut block.header, &mut found);
            for message in &mut block.payload {
                collect(message, &mut found);
            }
        }
        found
    }
}

/// A pointer to each message cannot be kept beside one to a message in it: the innermost only.
fn collect<'m>(message: &'m mut Message, found: &mut Vec<&'m mut Message>) {
    let nested = |field: &Field| matches!(field.content, Content::Message(_));
    if !message.iter().any(nested) {
        found.push(message);
        return;
    }
    for field in message {
        if let Content::Message(inner) = &mut field.content {
            collect(inner, found);
        }
    }
}

fn sized<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let (content, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = after;
    Some(content)
}

fn write_sized(out: &mut Vec<u8>, content: &[u8]) {
    out.extend((content.len() as u32).to_le_bytes());
    out.extend(content);
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for index in 0..10 {
        let byte = *rest.get(index)?;
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            *rest = &rest[index + 1..];
            return Some(value);
        }
    }
    None
}

fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn message(mut rest: &[u8], depth: usize) -> Option<Message> {
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let key = varint(&mut rest)?;
        let number = key >> 3;
        if !(1..=LARGEST_NUMBER).contains(&number) {
            return None;
        }
        let content = match key & 7 {
            0 => Content::Integer(varint(&mut rest)?),
            1 => Content::Fixed64(fixed(&mut rest)?),
            5 => Content::Fixed32(fixed(&mut rest)?),
            2 => {
                let length = usize::try_from(varint(&mut rest)?).ok()?;
                let (bytes, after) = rest.split_at_checked(length)?;
                rest = after;
                match message(bytes, depth + 1) {
                    Some(inner) if !inner.is_empty() && depth < DEEPEST => Content::Message(inner),
                    _ => Content::Bytes(bytes.to_vec()),
                }
            }
            _ => return None,
        };
        fields.push(Field { number, content });
    }
    Some(fields)
}

fn fixed<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (value, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*value)
}

fn written(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    for Field { number, content } in message {
        let key = |kind: u64| number << 3 | kind;
        match content {
            Content::Integer(value) => {
                write_varint(&mut out, key(0));
                write_varint(&mut out, *value);
            }
            Content::Fixed64(bytes) => {
                write_varint(&mut out, key(1));
                out.extend(bytes);
            }
            Content::Fixed32(bytes) => {
                write_varint(&mut out, key(5));
                out.extend(bytes);
            }
            Content::Bytes(bytes) => {
                write_varint(&mut out, key(2));
                write_varint(&mut out, bytes.len() as u64);
                out.extend(bytes);
            }
            Content::Message(inner) => {
                let inner = written(inner);
                write_varint(&mut out, key(2));
                write_varint(&mut out, inner.len() as u64);
                out.extend(inner);
            }
        }
    }
    out
}

/// The report with one to four changes; `None` where it is none.
pub fn mutated(bytes: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let mut report = Report::read(bytes)?;
    for _ in 0..1 + random.below(4) {
        change(&mut report, random);
    }
    Some(report.write())
}

fn change(report: &mut Report, random: &mut Random) {
    match random.below(16) {
        0 => list(&mut report.blocks, random),
        1 | 2 if !report.blocks.is_empty() => {
            let at = random.below(report.blocks.len());
            list(&mut report.blocks[at].payload, random);
        }
        3 | 4 if !report.blocks.is_empty() => {
            let at = random.below(report.blocks.len());
            let block = &mut report.blocks[at];
            let messages = &mut block.payload;
            let chosen = match random.below(messages.len() + 1) {
                0 => &mut block.header,
                index => &mut messages[index - 1],
            };
            descend(chosen, random);
        }
        _ => {
            let mut messages = report.messages();
            if !messages.is_empty() {
                let at = random.below(messages.len());
                let other = messages[random.below(messages.len())].first().cloned();
                fields(messages[at], other, random);
            }
        }
    }
}

/// Changes the list of fields of a message at any depth.
fn descend(message: &mut Message, random: &mut Random) {
    let nested = message
        .iter_mut()
        .filter_map(|field| match &mut field.content {
            Content::Message(inner) => Some(inner),
            _ => None,
        });
    let mut nested: Vec<&mut Message> = nested.collect();
    if !nested.is_empty() && random.below(3) > 0 {
        let at = random.below(nested.len());
        descend(nested.swap_remove(at), random);
    } else {
        list(message, random);
    }
}

fn list<T: Clone>(items: &mut Vec<T>, random: &mut Random) {
    if items.is_empty() {
        return;
    }
    let (one, other) = (random.below(items.len()), random.below(items.len()));
    match random.below(5) {
        0 => drop(items.remove(one)),
        1 => items.swap(one, other),
        2 => items.insert(one, items[other].clone()),
        3 => {
            let copy = items[one].clone();
            items.extend(std::iter::repeat_n(copy, 1 + random.below(30)));
        }
        _ => items.truncate(one),
    }
}

fn fields(message: &mut Message, other: Option<Field>, random: &mut Random) {
    if message.is_empty() || random.below(8) == 0 {
        message.extend(other);
        return;
    }
    if random.below(4) == 0 {
        return list(message, random);
    }
    let at = random.below(message.len());
    let field = &mut message[at];
    if random.below(8) == 0 {
        field.number = 1 + random.below(25) as u64;
        return;
    }
    match &mut field.content {
        Content::Integer(value) => {
            *value = match random.below(4) {
                0 => value.wrapping_add(1),
                1 => value.wrapping_sub(1),
                2 => random.next() >> random.below(64),
                _ => *random.pick(&INTEGERS),
            }
        }
        Content::Fixed64(bytes) => {
            *bytes = match random.below(2) {
                0 => random.pick(&DOUBLES).to_le_bytes(),
                _ => random.next().to_le_bytes(),
            }
        }
        Content::Fixed32(bytes) => *bytes = (random.next() as u32).to_le_bytes(),
        Content::Bytes(bytes) => match random.below(3) {
            0 => *bytes = random.pick(&NAMES).as_bytes().to_vec(),
            1 => list(bytes, random),
            _ if bytes.is_empty() => {}
            _ => {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
        },
        Content::Message(_) => {}
    }
}
