//! Cubins: ELF files with one `.text.<kernel>` section a kernel, and NVIDIA's sections beside it.
//!
//! The attributes of `.nv.info` are those that `cuobjdump -elf` prints by name (`EIATTR_...`).

use std::collections::BTreeMap;

use object::{Object, ObjectSection, ObjectSymbol};

use super::error::BinaryError;
use crate::hash::sha256_hex;

const EIATTR_MAX_THREADS: u8 = 0x05;
const EIATTR_REQNTID: u8 = 0x10;
const EIATTR_REGCOUNT: u8 = 0x2f;
const EIATTR_NUM_BARRIERS: u8 = 0x4c;
/// An attribute that states the length of its payload; the payload of others is two bytes.
const FORMAT_SIZED: u8 = 4;

/// What a cubin contains of one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelCode {
    pub text_sha256: String,
    /// Static shared memory with what the driver reserves.
    pub shared_bytes: u32,
    pub constant_bytes: u32,
    pub registers: Option<u32>,
    /// `None` where this compiler does not state it.
    pub barriers: Option<u32>,
    pub max_threads: Option<u32>,
}

/// The kernels of a cubin, by mangled name.
pub(super) fn kernels(bytes: &[u8]) -> Result<BTreeMap<String, KernelCode>, BinaryError> {
    let wrong = |error: object::Error| BinaryError::Cubin(error.to_string());
    let file = object::read::elf::ElfFile64::<object::Endianness>::parse(bytes).map_err(wrong)?;
    let mut registers = BTreeMap::new();
    for section in file.sections() {
        if section.name().map_err(wrong)? == ".nv.info" {
            for (attribute, payload) in attributes(section.data().map_err(wrong)?)? {
                if let (EIATTR_REGCOUNT, [function, count]) = (attribute, words(payload).as_slice())
                {
                    let index = object::SymbolIndex(*function as usize);
                    let symbol = file.symbol_by_index(index).map_err(wrong)?;
                    registers.insert(symbol.name().map_err(wrong)?.to_owned(), *count);
                }
            }
        }
    }
    let size = |name: String| {
        file.section_by_name(&name)
            .map_or(0, |section| section.size())
    };
    let bounded = |value: u64| {
        u32::try_from(value).map_err(|_| BinaryError::Cubin(format!("a section of {value} bytes")))
    };
    let mut kernels = BTreeMap::new();
    for section in file.sections() {
        let Some(name) = section.name().map_err(wrong)?.strip_prefix(".text.") else {
            continue;
        };
        let mut max_threads = None;
        let mut barriers = None;
        let info = file.section_by_name(&format!(".nv.info.{name}"));
        if let Some(info) = info {
            barriers = Some(0);
            for (attribute, payload) in attributes(info.data().map_err(wrong)?)? {
                match attribute {
                    EIATTR_MAX_THREADS | EIATTR_REQNTID => {
                        let product = words(payload)
                            .iter()
                            .try_fold(1_u32, |product, side| product.checked_mul(*side));
                        max_threads = max_threads.or(product);
                    }
                    EIATTR_NUM_BARRIERS => barriers = payload.first().copied().map(u32::from),
                    _ => {}
                }
            }
        }
        kernels.insert(
            name.to_owned(),
            KernelCode {
                text_sha256: sha256_hex(section.data().map_err(wrong)?),
                shared_bytes: bounded(size(format!(".nv.shared.{name}")))?,
                constant_bytes: bounded(size(format!(".nv.constant0.{name}")))?,
                registers: registers.get(name).copied(),
                barriers,
                max_threads,
            },
        );
    }
    Ok(kernels)
}

/// The attributes of an `.nv.info` section: code and payload.
fn attributes(data: &[u8]) -> Result<Vec<(u8, &[u8])>, BinaryError> {
    let short = || BinaryError::Cubin("an attribute of .nv.info is cut short".to_owned());
    let mut found = Vec::new();
    let mut rest = data;
    while let [format, attribute, after @ ..] = rest {
        let (value, after) = after.split_at_checked(2).ok_or_else(short)?;
        if *format == FORMAT_SIZED {
            let length = usize::from(u16::from_le_bytes([value[0], value[1]]));
            let (payload, after) = after.split_at_checked(length).ok_or_else(short)?;
            found.push((*attribute, payload));
            rest = after;
        } else {
            found.push((*attribute, value));
            rest = after;
        }
    }
    Ok(found)
}

fn words(payload: &[u8]) -> Vec<u32> {
    payload
        .as_chunks::<4>()
        .0
        .iter()
        .map(|bytes| u32::from_le_bytes(*bytes))
        .collect()
}
