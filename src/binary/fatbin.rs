//! Fatbins: containers of machine code for several chips, as nvcc puts them into programs.
//!
//! A container is a header of 16 bytes and entries. Each entry has a header of at least 64 bytes and
//! a payload: PTX or a cubin, which may be compressed with LZ4 or Zstandard. No document of NVIDIA
//! describes it; what is read here is what nvcc 13.0 writes and `cuobjdump -xelf` extracts.

use std::borrow::Cow;
use std::io::Read;

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use super::error::BinaryError;

/// The first bytes of a container.
pub(super) const MAGIC: [u8; 4] = 0xBA55_ED50_u32.to_le_bytes();
const CONTAINER_HEADER: usize = 16;
/// What every entry has, in bytes.
const ENTRY_HEADER: usize = 64;
const KIND_CUBIN: u16 = 2;
const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
/// Code for one chip alone (`sm_90a`).
const FLAG_CHIP: u64 = 0x10_0000;
/// Code for the chips of one family (`sm_100f`).
const FLAG_FAMILY: u64 = 0x20_0000;

/// How a payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    Plain,
    Lz4,
    Zstd,
}

/// One cubin of a file, which may be compressed.
#[derive(Clone, Debug)]
pub struct MachineCode<'a> {
    /// What it was compiled for: `sm_90a`. Of a loose cubin only the number is known.
    pub target: String,
    payload: &'a [u8],
    stored: Stored,
    /// Bytes of the cubin, as the header says.
    pub(super) size: u64,
    /// The most bytes that it may have.
    most: u64,
}

/// The cubins of the containers that stand one behind the other in a section or a file, each of at most
/// `most` bytes.
pub(super) fn cubins(bytes: &[u8], most: u64) -> Result<Vec<MachineCode<'_>>, BinaryError> {
    let mut found = Vec::new();
    let mut rest = bytes;
    loop {
        // Containers begin at multiples of 8 bytes, zeros fill what is between them.
        let zeros = rest.iter().take_while(|byte| **byte == 0).count();
        rest = &rest[zeros..];
        if rest.is_empty() {
            return Ok(found);
        }
        // What is shorter than a header is cut short.
        if rest.len() >= CONTAINER_HEADER && !rest.starts_with(&MAGIC) {
            return Err(wrong("a container does not begin as one does"));
        }
        let size = |header: &[u8]| u32_at(header, 4) >> 16;
        let [_, container, after] = part(rest, "a container", CONTAINER_HEADER, size)?;
        entries(container, most, &mut found)?;
        rest = after;
    }
}

fn wrong(why: impl Into<String>) -> BinaryError {
    BinaryError::Fatbin(why.into())
}

/// The header of the container or the entry that bytes begin with, what is in it, and what is behind it.
fn part<'a>(
    bytes: &'a [u8],
    what: &str,
    least: usize,
    header_size: impl Fn(&[u8]) -> u32,
) -> Result<[&'a [u8]; 3], BinaryError> {
    let cut = || wrong(format!("{what} is cut short"));
    let header = bytes.get(..least).ok_or_else(cut)?;
    let header_size = usize::try_from(header_size(header)).map_err(|_| cut())?;
    if header_size < least {
        let why = format!("{what} has a header of {header_size} bytes");
        return Err(wrong(why));
    }
    let body = bytes.get(header_size..).ok_or_else(cut)?;
    let size = usize::try_from(u64_at(header, 8)).map_err(|_| cut())?;
    let (content, after) = body.split_at_checked(size).ok_or_else(cut)?;
    Ok([header, content, after])
}

fn entries<'a>(
    mut rest: &'a [u8],
    most: u64,
    found: &mut Vec<MachineCode<'a>>,
) -> Result<(), BinaryError> {
    while !rest.is_empty() {
        let size = |header: &[u8]| u32_at(header, 4);
        let [header, payload, after] = part(rest, "an entry", ENTRY_HEADER, size)?;
        rest = after;
        // PTX runs on no chip, nor does code that is not final, such as that of link-time optimization.
        if u16::from_le_bytes([header[0], header[1]]) == KIND_CUBIN {
            found.push(entry(header, payload, most)?);
        }
    }
    Ok(())
}

fn entry<'a>(header: &[u8], payload: &'a [u8], most: u64) -> Result<MachineCode<'a>, BinaryError> {
    let flags = u64_at(header, 40);
    let stored = match (flags & FLAG_LZ4 != 0, flags & FLAG_ZSTD != 0) {
        (false, false) => Stored::Plain,
        (true, false) => Stored::Lz4,
        (false, true) => Stored::Zstd,
        (true, true) => return Err(wrong("an entry is compressed in an unknown way")),
    };
    let suffix = if flags & FLAG_CHIP != 0 {
        "a"
    } else if flags & FLAG_FAMILY != 0 {
        "f"
    } else {
        ""
    };
    // Of a compressed payload, the bytes behind its end are padding.
    let (payload, size) = if stored == Stored::Plain {
        (payload, payload.len() as u64)
    } else {
        let compressed = usize::try_from(u32_at(header, 16)).ok();
        let compressed = compressed.and_then(|length| payload.get(..length));
        let cut = || wrong("a compressed entry is cut short");
        (compressed.ok_or_else(cut)?, u64_at(header, 56))
    };
    Ok(MachineCode {
        target: format!("sm_{}{suffix}", u32_at(header, 28)),
        payload,
        stored,
        size,
        most,
    })
}

impl<'a> MachineCode<'a> {
    /// The cubin that is a file of its own.
    pub(super) fn loose(target: String, payload: &'a [u8]) -> MachineCode<'a> {
        let size = payload.len() as u64;
        MachineCode {
            target,
            payload,
            stored: Stored::Plain,
            size,
            most: size,
        }
    }

    /// The cubin.
    ///
    /// # Errors
    /// [`BinaryError::Fatbin`] where it cannot be decompressed, or is larger than its file may have.
    pub fn cubin(&self) -> Result<Cow<'a, [u8]>, BinaryError> {
        let (target, most) = (&self.target, self.most);
        let undone = |why: String| {
            wrong(format!(
                "the code for {target} cannot be decompressed: {why}"
            ))
        };
        let size = usize::try_from(self.size)
            .ok()
            .filter(|_| self.size <= most)
            .ok_or_else(|| {
                let size = self.size;
                wrong(format!(
                    "the code for {target} states {size} bytes, more than this file may contain"
                ))
            })?;
        let code = match self.stored {
            Stored::Plain => return Ok(Cow::Borrowed(self.payload)),
            Stored::Lz4 => {
                let mut code = vec![0; size];
                let length = lz4_flex::block::decompress_into(self.payload, &mut code)
                    .map_err(|error| undone(error.to_string()))?;
                code.truncate(length);
                code
            }
            Stored::Zstd => unpacked(self.payload, most, size).map_err(undone)?,
        };
        if code.len() != size {
            return Err(undone(format!(
                "it has {} bytes, and its header says {size}",
                code.len()
            )));
        }
        Ok(Cow::Owned(code))
    }
}

/// One frame of Zstandard, and at most one byte more than `size`.
fn unpacked(frame: &[u8], window: u64, size: usize) -> Result<Vec<u8>, String> {
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(window);
    let reader = StreamingDecoder::new_with_decoder(frame, decoder);
    let reader = reader.map_err(|error| error.to_string())?;
    let mut code = Vec::with_capacity(size);
    let mut reader = reader.take((size as u64).saturating_add(1));
    reader
        .read_to_end(&mut code)
        .map_err(|error| error.to_string())?;
    Ok(code)
}

fn u32_at(header: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&header[at..at + 4]);
    u32::from_le_bytes(word)
}

fn u64_at(header: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&header[at..at + 8]);
    u64::from_le_bytes(word)
}
