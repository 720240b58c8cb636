//! Cubins without debug information.

use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _};

/// A copy of a cubin with zeros in its debug sections, which contain the paths and the lines of
/// the sources. `None` where the cubin cannot be read, so its sections are not known.
pub(super) fn without_debug_sections(cubin: &[u8]) -> Option<Vec<u8>> {
    let file = ElfFile64::<Endianness>::parse(cubin).ok()?;
    let mut copy = cubin.to_vec();
    // Sections of a real file do not overlap, and neither do their names. Many that do would take
    // quadratic time.
    let (mut left, mut letters) = (cubin.len(), cubin.len());
    for section in file.sections() {
        let name = section.name().ok()?;
        letters = letters.checked_sub(name.len())?;
        // `.note.nv.tkinfo` and `.comment` contain the command lines of the compiler's tools.
        let is_debug = name.contains("debug") || name == ".note.nv.tkinfo" || name == ".comment";
        if let (true, Some((start, size))) = (is_debug, section.file_range()) {
            let (start, size) = (usize::try_from(start).ok()?, usize::try_from(size).ok()?);
            left = left.checked_sub(size)?;
            copy.get_mut(start..start.checked_add(size)?)?.fill(0);
        }
    }
    Some(copy)
}
