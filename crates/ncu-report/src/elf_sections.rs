//! Names of the sections of a cubin.

#![warn(clippy::arithmetic_side_effects)]

use object::elf::FileHeader64;
use object::read::elf::{ElfFile64, FileHeader as _, SectionHeader as _};
use object::{Endianness, SectionIndex};

/// A section header of a cubin.
pub(crate) type Header = <FileHeader64<Endianness> as object::read::elf::FileHeader>::SectionHeader;

/// Index, name and header of a section.
pub(crate) type Named<'a> = (SectionIndex, &'a [u8], &'a Header);

/// Every section with its name, in the order of the headers. A name without an end is empty.
///
/// Thousands of headers may refer to one name of megabytes, so that a search for the end of each
/// name takes quadratic time. The letters of all names together are therefore bounded by twice the
/// size of the file; those of a real file are a small part of it.
///
/// # Errors
/// A text, if the table of sections is damaged or the names are longer.
pub(crate) fn named_sections<'a>(
    file: &ElfFile64<'a, Endianness>,
) -> Result<Vec<Named<'a>>, String> {
    let (endian, data) = (file.endian(), file.data());
    let wrong = |error: object::Error| error.to_string();
    let table = file.elf_section_table();
    let mut left = data.len().saturating_mul(2);
    let index = file.elf_header().shstrndx(endian, data).map_err(wrong)?;
    let names = match index {
        0 => &[],
        index => table
            .section(SectionIndex(index as usize))
            .and_then(|section| section.data(endian, data))
            .map_err(wrong)?,
    };
    table
        .enumerate()
        .map(|(index, section)| {
            let start = usize::try_from(section.sh_name(endian)).unwrap_or(usize::MAX);
            let rest = names.get(start..).unwrap_or_default();
            let rest = rest.get(..left.min(rest.len())).unwrap_or_default();
            let name = rest.split(|&byte| byte == 0).next().unwrap_or_default();
            left = left
                .checked_sub(name.len().saturating_add(1))
                .ok_or("the names of the sections are longer than the file")?;
            Ok((index, name, section))
        })
        .collect()
}
