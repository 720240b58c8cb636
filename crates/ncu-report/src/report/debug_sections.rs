//! Cubins without debug information.

use object::Endianness;
use object::read::elf::{ElfFile64, SectionHeader as _};

use crate::elf_sections::named_sections;

/// A copy of a cubin with zeros in its debug sections, which contain the paths and the lines of
/// the sources. `None` where the cubin cannot be read, so its sections are not known.
pub(super) fn without_debug_sections(cubin: &[u8]) -> Option<Vec<u8>> {
    let file = ElfFile64::<Endianness>::parse(cubin).ok()?;
    let sections = named_sections(&file).ok()?;
    let mut copy = cubin.to_vec();
    // Sections of a real file do not overlap. Many that do would take quadratic time.
    let mut left = cubin.len();
    for (_, name, section) in sections {
        let name = std::str::from_utf8(name).ok()?;
        // `.note.nv.tkinfo` and `.comment` contain the command lines of the compiler's tools.
        let is_debug = name.contains("debug") || name == ".note.nv.tkinfo" || name == ".comment";
        if let (true, Some((start, size))) = (is_debug, section.file_range(file.endian())) {
            let (start, size) = (usize::try_from(start).ok()?, usize::try_from(size).ok()?);
            left = left.checked_sub(size)?;
            copy.get_mut(start..start.checked_add(size)?)?.fill(0);
        }
    }
    Some(copy)
}
