//! Whether a program may load code, or start other programs, while it runs.

use crate::terms::words;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol};

/// Libraries of C and C++, and that of the driver.
const OF_SYSTEM: [&str; 9] =
    words("ld-linux libc. libcuda. libdl. libgcc_s. libm. libpthread. librt. libstdc++.");

/// CUDA's own libraries. They load no code of a project either.
const OF_TOOLKIT: [&str; 10] = words(
    "libcublas. libcublasLt. libcudart. libcufft. libcufftw. libcurand. libcusolver. \
     libcusolverMg. libcusparse. libnvToolsExt.",
);

/// Beginnings of the names of functions that load code from files or start other programs. A
/// program with CUDA's static runtime imports none of them.
const LOADING: [&str; 6] =
    words("cuLibraryLoad cuLinkAddFile cuModuleLoad cudaLibraryLoad exec fexec");

/// Names of others. Many names begin like these.
const STARTING: [&str; 4] = ["fork", "popen", "system", "vfork"];

/// Compilers that run inside of a program. Their names stand in it as text, also where they are
/// linked statically or opened by name.
const COMPILERS: [&[u8]; 3] = [b"nvrtc", b"nvJitLink", b"libpython"];

/// Why a program may load code of the project while it runs, in words; `None` where nothing in it
/// says so. Only an ELF program of 64 bits is known.
pub fn loads_at_run_time(program: &[u8]) -> Option<String> {
    let Ok(file) = ElfFile64::<Endianness>::parse(program) else {
        return Some("it is no 64-bit ELF program".to_owned());
    };
    for compiler in COMPILERS {
        if contains(program, compiler) {
            return Some(format!("it names {}", String::from_utf8_lossy(compiler)));
        }
    }
    let Ok(libraries) = needed(&file) else {
        return Some("its list of libraries cannot be read".to_owned());
    };
    if libraries.is_empty() {
        // Linked statically, or without the tables that are read here.
        return Some("it lists no libraries".to_owned());
    }
    for library in libraries {
        let mut harmless = OF_SYSTEM.iter().chain(&OF_TOOLKIT);
        if !harmless.any(|known| library.starts_with(known)) {
            return Some(format!("it is linked with {library}"));
        }
    }
    let mut imported = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_undefined());
    imported.find_map(|symbol| {
        let name = symbol.name().unwrap_or_default();
        let loads = LOADING.iter().any(|beginning| name.starts_with(beginning))
            || STARTING.contains(&name)
            || name.contains("_spawn");
        loads.then(|| format!("it calls {name}"))
    })
}

/// Whether a program that [`loads_at_run_time`] finds nothing in is linked with no libraries but
/// those of the system and of the driver: another version of the toolkit's would be other code.
pub fn needs_system_alone(program: &[u8]) -> bool {
    let libraries = ElfFile64::<Endianness>::parse(program).and_then(|file| needed(&file));
    libraries.is_ok_and(|libraries| {
        let of_system = |name: &String| OF_SYSTEM.iter().any(|known| name.starts_with(known));
        libraries.iter().all(of_system)
    })
}

/// The shared libraries that a program is linked with.
///
/// # Errors
/// Where the list cannot be read.
fn needed(file: &ElfFile64<'_, Endianness>) -> object::Result<Vec<String>> {
    let libraries = file.import_libraries()?;
    let names = libraries.map(|library| Ok(String::from_utf8_lossy(library?.name()).into_owned()));
    names.collect()
}

/// Whether a program contains a text.
pub fn contains(program: &[u8], text: &[u8]) -> bool {
    !text.is_empty() && memchr::memmem::find(program, text).is_some()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::process::Command;

    /// A program of this C source, linked with these options; `None` where there is no compiler.
    pub fn program(source: &str, options: &[&str]) -> Option<Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("program.c"), source).unwrap();
        let compiler = Command::new("cc")
            .args(["program.c", "-o", "program"])
            .args(options)
            .current_dir(folder.path())
            .status();
        match compiler {
            Ok(status) => assert!(status.success()),
            Err(_) => {
                let said = b"SKIPPED: there is no C compiler (apt install gcc)\n";
                let _ = std::io::Write::write_all(&mut std::io::stderr(), said);
                return None;
            }
        }
        Some(std::fs::read(at("program")).unwrap())
    }

    #[test]
    fn a_program_that_loads_code_or_starts_others_is_known() {
        let cases = [
            ("int main(void) { return 0; }", None),
            (
                "#include <dlfcn.h>\nint main(void) { return dlopen(\"libm.so.6\", 1) == 0; }",
                None,
            ),
            (
                "#include <stdlib.h>\nint main(void) { return system(\"true\"); }",
                Some("it calls system"),
            ),
            (
                "#include <unistd.h>\nint main(void) { return execv(\"a\", 0); }",
                Some("it calls execv"),
            ),
            (
                "const char *compiler = \"libnvrtc.so.13\"; int main(void) { return compiler[0]; }",
                Some("it names nvrtc"),
            ),
        ];
        for (source, expected) in cases {
            let Some(program) = program(source, &["-rdynamic"]) else {
                return;
            };
            assert_eq!(loads_at_run_time(&program).as_deref(), expected, "{source}");
        }
        let starts = "#include <stdlib.h>\nint main(void) { return system(\"true\"); }";
        if let Some(program) = program(starts, &["-static"]) {
            let why = loads_at_run_time(&program);
            assert_eq!(why.as_deref(), Some("it lists no libraries"));
        }
        if let Some(mut program) = program(starts, &[]) {
            // The header says that there are no sections, and the loader does not ask.
            program[40..48].fill(0);
            program[58..64].fill(0);
            let why = loads_at_run_time(&program);
            assert!(why.is_some());
        }
        let other = ["-Wl,--no-as-needed", "-l:libutil.so.1"];
        if let Some(program) = program("int main(void) { return 0; }", &other) {
            let why = loads_at_run_time(&program);
            assert_eq!(why.as_deref(), Some("it is linked with libutil.so.1"));
        }
        let script = loads_at_run_time(b"#!/bin/sh\n");
        assert_eq!(script.as_deref(), Some("it is no 64-bit ELF program"));
    }
}
