//! Machine code where it lies: in executables, shared libraries, fatbins and cubins.

use std::collections::BTreeSet;

use object::elf::EM_CUDA;
use object::read::elf::ElfFile64;
use object::{Endianness, FileFlags, Object, ObjectSection};

use super::error::BinaryError;
use super::fatbin::{self, MachineCode};
use crate::metric::capability_of_arch;
use crate::terms::joined;

const ELF: [u8; 4] = *b"\x7fELF";
/// Code that is linked, and runs.
const LINKED: &str = ".nv_fatbin";
/// Code that a device linker still has to link. In a program the linked code is beside it.
const RELOCATABLE: &str = "__nv_relfatbin";
/// Bytes of one cubin besides twice the file's.
const SMALL: u64 = 16 << 20;
/// How much larger than the file all its cubins for one target may be, besides [`SMALL`].
const LARGEST_RATIO: u64 = 32;

/// The cubins of a file for a compiler's target such as `sm_90a`: of an ELF program or library of 64
/// bits, a fatbin, or a cubin. Where it has code for the same chip with and without that suffix,
/// the code with the suffix of `arch` is returned.
///
/// # Errors
/// [`BinaryError`] where the file is none of these, is damaged, or has no code for this chip.
pub fn machine_code<'a>(file: &'a [u8], arch: &str) -> Result<Vec<MachineCode<'a>>, BinaryError> {
    let chosen = chosen(all_code(file)?, arch)?;
    let sizes = chosen.iter().map(|code| code.size);
    let whole = sizes.fold(0, u64::saturating_add);
    let bound = (file.len() as u64).saturating_mul(LARGEST_RATIO);
    if whole > bound.saturating_add(SMALL) {
        return Err(BinaryError::Fatbin(format!(
            "the code for {arch} states {whole} bytes, more than this file may contain"
        )));
    }
    Ok(chosen)
}

/// The targets that a file has machine code for, such as `sm_90a`.
///
/// # Errors
/// As [`machine_code`].
pub fn targets(file: &[u8]) -> Result<BTreeSet<String>, BinaryError> {
    Ok(all_code(file)?
        .into_iter()
        .map(|code| code.target)
        .collect())
}

/// Every cubin of a file.
fn all_code(file: &[u8]) -> Result<Vec<MachineCode<'_>>, BinaryError> {
    let most = (file.len() as u64).saturating_mul(2).saturating_add(SMALL);
    let mut all = Vec::new();
    if file.starts_with(&fatbin::MAGIC) {
        all.extend(fatbin::cubins(file, most)?);
    } else if file.starts_with(&ELF) {
        let wrong = |error: object::Error| BinaryError::Program(error.to_string());
        let elf = ElfFile64::<Endianness>::parse(file).map_err(wrong)?;
        if elf.elf_header().e_machine.get(elf.endian()) == EM_CUDA {
            all.push(MachineCode::loose(target_of(&elf), file));
        } else {
            for name in [LINKED, RELOCATABLE] {
                // A program has one such section, an object file may have many.
                for section in elf.sections() {
                    if section.name().map_err(wrong)? == name {
                        all.extend(fatbin::cubins(section.data().map_err(wrong)?, most)?);
                    }
                }
                if !all.is_empty() {
                    break;
                }
            }
        }
    } else {
        return Err(BinaryError::NoProgram);
    }
    Ok(all)
}

/// What a cubin was compiled for. Its flags have the number of the chip, and no suffix.
fn target_of(elf: &ElfFile64<'_, Endianness>) -> String {
    /// The first version whose flags have the number in the second byte.
    const SECOND_BYTE: u8 = 8;
    let FileFlags::Elf {
        abi_version,
        e_flags,
        ..
    } = elf.flags()
    else {
        return "no chip".to_owned();
    };
    let number = if abi_version >= SECOND_BYTE {
        e_flags.0 >> 8 & 0xff
    } else {
        e_flags.0 & 0xff
    };
    format!("sm_{number}")
}

fn chosen<'a>(all: Vec<MachineCode<'a>>, arch: &str) -> Result<Vec<MachineCode<'a>>, BinaryError> {
    if all.is_empty() {
        return Err(BinaryError::NoMachineCode);
    }
    let (exact, other): (Vec<_>, Vec<_>) = all.into_iter().partition(|code| code.target == arch);
    if !exact.is_empty() {
        return Ok(exact);
    }
    let targets: BTreeSet<String> = other.iter().map(|code| code.target.clone()).collect();
    let is_same = |code: &MachineCode<'_>| {
        let chip = capability_of_arch(&code.target);
        chip.is_some() && chip == capability_of_arch(arch)
    };
    let same: Vec<_> = other.into_iter().filter(is_same).collect();
    if same.is_empty() {
        return Err(BinaryError::OtherTargets {
            arch: arch.to_owned(),
            found: joined(targets, ", "),
        });
    }
    Ok(same)
}
