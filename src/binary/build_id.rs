//! What the linker calls a program.

use object::elf::{ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, ReadRef};

/// The shortest ID that is taken for a hash of the content: a shorter one may be written by hand.
const LEAST_BYTES: usize = 16;

/// The ID that the linker made of the content of a program (`--build-id`), in hex; `None` where it
/// made none of at least 16 bytes. Only what names it is read of the file.
pub fn build_id<'data>(program: impl ReadRef<'data>) -> Option<String> {
    let header = FileHeader64::<Endianness>::parse(program).ok()?;
    let endian = header.endian().ok()?;
    for segment in header.program_headers(endian, program).ok()? {
        let notes = segment.notes(endian, program).ok()?;
        for note in notes.into_iter().flatten().flatten() {
            let is_id = note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID;
            if is_id && note.desc().len() >= LEAST_BYTES {
                let id = note.desc().iter().map(|byte| format!("{byte:02x}"));
                return Some(id.collect());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::loading::tests::program;
    use super::*;

    #[test]
    fn the_id_that_the_linker_made_is_read_and_a_program_without_one_has_none() {
        let linked = |option: &str| program("int main(void) { return 0; }", &[option]);
        let id = "00c0ffee".repeat(4);
        let Some(named) = linked(&format!("-Wl,--build-id=0x{id}")) else {
            return;
        };
        assert_eq!(build_id(&named[..]), Some(id));
        assert_eq!(build_id(&named[..100]), None);
        for without in ["-Wl,--build-id=none", "-Wl,--build-id=0x00c0ffee"] {
            assert_eq!(build_id(&linked(without).unwrap()[..]), None, "{without}");
        }
    }
}
