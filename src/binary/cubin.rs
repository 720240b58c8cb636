//! Cubins: ELF files with one `.text.<kernel>` section a kernel, and NVIDIA's sections beside it.
//!
//! The attributes of `.nv.info` are those that `cuobjdump -elf` prints by name (`EIATTR_...`).

use std::collections::{BTreeMap, HashMap};

use object::elf::{FileHeader64, SHT_RELA, SectionHeader64};
use object::pod::slice_from_bytes_mut;
use object::read::elf::{ElfFile64, FileHeader as _, SectionHeader as _};
use object::{
    Endianness, Object, ObjectKind, ObjectSection, ObjectSymbol, SectionFlags, SymbolFlags, U64,
};
use serde::{Deserialize, Serialize};

use super::error::BinaryError;
use super::occupancy::Limits;
use super::ptxas::KernelResources;
use crate::hash::sha256_hex;

const EIATTR_MAX_THREADS: u8 = 0x05;
const EIATTR_REQNTID: u8 = 0x10;
const EIATTR_FRAME_SIZE: u8 = 0x11;
const EIATTR_REGCOUNT: u8 = 0x2f;
const EIATTR_SHARED_SCRATCH: u8 = 0x32;
const EIATTR_CTA_PER_CLUSTER: u8 = 0x3d;
const EIATTR_NUM_BARRIERS: u8 = 0x4c;
/// An attribute that states the length of its payload; the payload of others is two bytes.
const FORMAT_SIZED: u8 = 4;
/// In `st_other`: a function that the host can launch.
const ENTRY: u8 = 0x10;
/// The most bytes of a version: `V13.0.88`.
const LONGEST_VERSION: usize = 20;
/// Begins the names of the sections with the code of a function.
const CODE: &str = ".text.";
/// Of a linked cubin with this symbol, the shared memory of each kernel begins with the driver's.
const RESERVED: &str = ".nv.reservedSmem.offset0";

/// What is known of a compiled kernel without running it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompiledKernel {
    /// What the cubin states, and what ptxas alone reports.
    #[serde(flatten)]
    pub resources: KernelResources,
    /// Shared memory a block that the driver reserves, in bytes: the kernel's section in the cubin
    /// less its own static shared memory. 0 for a kernel without such a section, although the driver
    /// reserves its share there too.
    pub driver_shared_bytes: u32,
    /// Constant bank 0, kernel arguments included, in bytes.
    pub constant_bytes: u32,
    /// Threads a block that `__launch_bounds__` allows, where it is stated.
    pub max_threads: Option<u32>,
    /// Shared memory a block into which registers spill, in bytes: part of the static shared memory,
    /// and none of the spilled bytes that ptxas reports.
    pub spill_shared_bytes: u32,
    /// Blocks of the cluster that the kernel is compiled for; 1 where only the launch may state one.
    pub cluster_blocks: u32,
    /// sha256 of the machine code (`.text` of the kernel), which `-lineinfo` does not change.
    pub text_sha256: String,
    /// How many performance warnings of ptxas are about it; `None` where ptxas's text is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performance_warnings: Option<u32>,
    /// Whether its PTX shows that it takes no dynamic shared memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_dynamic_shared: bool,
    /// Instructions by opcode with its modifiers; `None` where no disassembler was found.
    pub opcodes: Option<BTreeMap<String, u32>>,
}

/// What a cubin states of a function outside of the function's own sections.
#[derive(Default)]
struct Function {
    registers: Option<u32>,
    stack_bytes: Option<u32>,
    /// Whether the host can launch it; else kernels call it.
    launchable: bool,
}

/// Bytes that may still be read: sections and names of a damaged file may lie upon one another.
struct Budget(usize);

impl Budget {
    fn take(&mut self, bytes: usize) -> Result<(), BinaryError> {
        self.0 = self.0.checked_sub(bytes).ok_or_else(|| {
            BinaryError::Cubin("its sections are larger than the file".to_owned())
        })?;
        Ok(())
    }
}

type Elf<'data> = ElfFile64<'data, Endianness>;

fn wrong(error: object::Error) -> BinaryError {
    BinaryError::Cubin(error.to_string())
}

/// Whether a cubin has kernels, or functions that kernels call; `true` for one that cannot be read.
pub fn has_kernels(cubin: &[u8]) -> bool {
    Elf::parse(cubin).map_or(true, |file| {
        let mut names = file.sections().map(|section| section.name());
        names.any(|name| name.map_or(true, |name| name.starts_with(CODE)))
    })
}

/// The kernels of a cubin for this target, by mangled name, as far as the cubin itself describes
/// them: what only the compiler reports is not known.
///
/// # Errors
/// [`BinaryError::Cubin`].
pub fn kernels_of(
    bytes: &[u8],
    arch: &str,
) -> Result<BTreeMap<String, CompiledKernel>, BinaryError> {
    /// Of the chips that are not in the table.
    const DRIVER_SHARE: u32 = 1024;
    let share = Limits::of_arch(arch).map_or(DRIVER_SHARE, |limits| limits.driver_shared_bytes);
    let file = Elf::parse(bytes).map_err(wrong)?;
    let mut names = Budget(bytes.len().saturating_mul(4));
    let functions = functions(&file, &mut names)?;
    let mut sections = HashMap::new();
    for section in file.sections() {
        let name = section.name().map_err(wrong)?;
        names.take(name.len())?;
        sections.entry(name).or_insert_with(|| section.index());
    }
    let of = |kind: &str, name: &str| {
        let index = sections.get(format!("{kind}{name}").as_str())?;
        file.section_by_index(*index).ok()
    };
    let bounded = |value: u64| {
        u32::try_from(value).map_err(|_| BinaryError::Cubin(format!("a section of {value} bytes")))
    };
    let size = |kind: &str, name: &str| bounded(of(kind, name).map_or(0, |found| found.size()));
    let reserved = file.kind() == ObjectKind::Executable && functions.contains_key(RESERVED);
    let mut content = Budget(bytes.len());
    let mut kernels = BTreeMap::new();
    for section in file.sections() {
        let name = section.name().map_err(wrong)?.strip_prefix(CODE);
        let function = name.and_then(|name| Some((name, functions.get(name)?)));
        let Some((name, function)) = function.filter(|(_, function)| function.launchable) else {
            continue;
        };
        let unstated =
            |what| BinaryError::Cubin(format!("it does not state the {what} of `{name}`"));
        let text = section.data().map_err(wrong)?;
        let info = of(".nv.info.", name).ok_or_else(|| unstated("barriers"))?;
        let info = info.data().map_err(wrong)?;
        content.take(text.len())?;
        content.take(info.len())?;
        let shared = size(".nv.shared.", name)?;
        let own = shared.checked_sub(share).filter(|_| reserved);
        let mut kernel = CompiledKernel {
            resources: KernelResources {
                registers: function.registers.ok_or_else(|| unstated("registers"))?,
                shared_bytes: own.unwrap_or(shared),
                stack_bytes: function
                    .stack_bytes
                    .ok_or_else(|| unstated("stack frame"))?,
                barriers: barriers_in_flags(&section),
                ..KernelResources::default()
            },
            driver_shared_bytes: own.map_or(0, |_| share),
            text_sha256: sha256_hex(text),
            constant_bytes: size(".nv.constant0.", name)?,
            cluster_blocks: 1,
            ..CompiledKernel::default()
        };
        kernel.add_attributes(info)?;
        kernels.insert(name.to_owned(), kernel);
    }
    Ok(kernels)
}

/// The version of the compiler that made a cubin, `V13.0.88`; `None` where it does not state one.
pub fn compiler_of(cubin: &[u8]) -> Option<String> {
    let file = Elf::parse(cubin).ok()?;
    let note = file.section_by_name(".note.nv.tkinfo")?.data().ok()?;
    let release = memchr::memmem::find(note, b", release ")?;
    let release = note.get(release..)?;
    let version = release.get(memchr::memmem::find(release, b", V")? + 2..)?;
    let length = version
        .iter()
        .take(LONGEST_VERSION)
        .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'V' | b'.'))
        .count();
    Some(String::from_utf8_lossy(&version[..length]).into_owned())
}

/// What has a symbol, by name, as the table of symbols and `.nv.info` describe them.
fn functions<'data>(
    file: &Elf<'data>,
    names: &mut Budget,
) -> Result<HashMap<&'data str, Function>, BinaryError> {
    let mut functions: HashMap<&str, Function> = HashMap::new();
    for symbol in file.symbols() {
        if let (SymbolFlags::Elf { st_other, .. }, Ok(name)) = (symbol.flags(), symbol.name()) {
            names.take(name.len())?;
            functions.entry(name).or_default().launchable |= st_other.0 & ENTRY != 0;
        }
    }
    if let Some(section) = file.section_by_name(".nv.info") {
        for (attribute, payload) in attributes(section.data().map_err(wrong)?)? {
            if !matches!(attribute, EIATTR_REGCOUNT | EIATTR_FRAME_SIZE) {
                continue;
            }
            let [function, value] = words(payload)[..] else {
                continue;
            };
            let index = object::SymbolIndex(function as usize);
            let symbol = file.symbol_by_index(index).map_err(wrong)?;
            let name = symbol.name().map_err(wrong)?;
            names.take(name.len())?;
            let function = functions.entry(name).or_default();
            match attribute {
                EIATTR_REGCOUNT => function.registers = Some(value),
                _ => function.stack_bytes = Some(value),
            }
        }
    }
    Ok(functions)
}

/// The cubin without the addresses that are left to the linker; `None` where there are none.
pub fn without_relocations(mut cubin: Vec<u8>) -> Option<Vec<u8>> {
    let header = FileHeader64::<Endianness>::parse(&*cubin).ok()?;
    let endian = header.endian().ok()?;
    let count = usize::from(header.e_shnum(endian));
    let table = usize::try_from(header.e_shoff(endian)).ok()?;
    let table = cubin.get_mut(table..)?;
    let (sections, _) = slice_from_bytes_mut::<SectionHeader64<Endianness>>(table, count).ok()?;
    let mut found = false;
    for section in sections {
        if section.sh_type(endian) == SHT_RELA && section.sh_size(endian) > 0 {
            section.sh_size = U64::new(endian, 0);
            found = true;
        }
    }
    found.then_some(cubin)
}

/// The barriers of a kernel, where a compiler before CUDA 13 states them: in the flags of its section.
fn barriers_in_flags<'data>(section: &impl ObjectSection<'data>) -> u32 {
    match section.flags() {
        SectionFlags::Elf { sh_flags, .. } => u32::try_from(sh_flags.0 >> 20 & 0x7f).unwrap_or(0),
        _ => 0,
    }
}

impl CompiledKernel {
    /// Adds what the kernel's own `.nv.info` says of it.
    fn add_attributes(&mut self, info: &[u8]) -> Result<(), BinaryError> {
        let product = |payload| {
            let mut sides = words(payload).into_iter();
            sides.try_fold(1_u32, |product, side| product.checked_mul(side))
        };
        for (attribute, payload) in attributes(info)? {
            match attribute {
                EIATTR_MAX_THREADS | EIATTR_REQNTID => {
                    self.max_threads = self.max_threads.or(product(payload));
                }
                EIATTR_CTA_PER_CLUSTER => self.cluster_blocks = product(payload).unwrap_or(1),
                // Where it begins, and how large it is.
                EIATTR_SHARED_SCRATCH => {
                    self.spill_shared_bytes = words(payload).get(1).copied().unwrap_or(0);
                }
                EIATTR_NUM_BARRIERS => {
                    let barriers = payload.first().map(|barriers| u32::from(*barriers));
                    self.resources.barriers = barriers.unwrap_or(self.resources.barriers);
                }
                _ => {}
            }
        }
        Ok(())
    }
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
