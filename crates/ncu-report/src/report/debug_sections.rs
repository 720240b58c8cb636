//! Cubins without debug information.

use object::{Object as _, ObjectSection as _};

/// A copy of a cubin with zeros in its debug sections, which contain the paths and the lines of
/// the sources. `None` where the cubin cannot be read, so its sections are not known.
pub(super) fn without_debug_sections(cubin: &[u8]) -> Option<Vec<u8>> {
    let file = object::File::parse(cubin).ok()?;
    let mut copy = cubin.to_vec();
    for section in file.sections() {
        let name = section.name().ok()?;
        // `.note.nv.tkinfo` and `.comment` contain the command lines of the compiler's tools.
        let is_debug = name.contains("debug") || name == ".note.nv.tkinfo" || name == ".comment";
        if let (true, Some((start, size))) = (is_debug, section.file_range()) {
            let start = usize::try_from(start).ok()?;
            let end = start.checked_add(usize::try_from(size).ok()?)?;
            copy.get_mut(start..end)?.fill(0);
        }
    }
    Some(copy)
}
