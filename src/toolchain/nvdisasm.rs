//! The disassembler.

use std::path::Path;

use super::find::{find, in_toolkit, path_folders};
use super::query::query;
use super::tool::Tool;
use crate::binary::{Listing, listing, without_relocations};
use crate::config::Toolchain;
use crate::disk;
use crate::files::{most, read_regular_up_to};
use crate::finding::Error;
use crate::process;

/// An nvdisasm that was found. Its version is such as `V13.2.86`.
#[derive(Clone, Debug)]
pub struct Nvdisasm(pub Tool);

impl Nvdisasm {
    /// Finds nvdisasm beside the compiler or on the PATH; `None` where there is none. Without it
    /// instructions are not counted, and metrics that need the count are not measured.
    pub fn locate(toolkit: &Path, work: &Path) -> Option<Nvdisasm> {
        let mut folders = vec![toolkit.join("bin")];
        folders.extend(path_folders());
        let path = find("nvdisasm", None, &folders).ok()?;
        let tool = Tool::at(path, work).and_then(Tool::with_version);
        tool.ok().map(Nvdisasm)
    }

    /// The one beside the configured nvcc, on the PATH or in the usual toolkits, for machine code that
    /// no nvcc is called for; `None` where there is none.
    pub fn without_nvcc(toolchain: &Toolchain) -> Option<Nvdisasm> {
        let path = in_toolkit("nvdisasm", None, toolchain.nvcc.as_deref(), Vec::new()).ok()?;
        let version = String::new();
        Some(Nvdisasm(Tool { path, version }))
    }

    /// The instructions of a cubin as JSON.
    ///
    /// # Errors
    /// [`Error`] where it fails.
    pub fn disassemble(&self, cubin: &Path) -> Result<String, Error> {
        let [program, file] = [&self.0.path, cubin].map(|path| path.display().to_string());
        query(vec![program, "-json".to_owned(), file], &[]).or_else(|error| {
            // Version 13 crashes where the address of a `__shared__` variable is left to the linker.
            let bytes = read_regular_up_to(cubin, most::BINARY).unwrap_or_default();
            let linked = without_relocations(bytes).ok_or(error)?;
            self.disassemble_bytes(&linked)
        })
    }

    /// The same of a cubin that is given as its bytes.
    pub(crate) fn disassemble_bytes(&self, cubin: &[u8]) -> Result<String, Error> {
        let folder = process::scratch()?;
        let path = folder.path().join("code.cubin");
        disk::write(&path, cubin).map_err(Error::io("write", &path))?;
        self.disassemble(&path)
    }

    /// The instructions of a cubin, given as its bytes.
    ///
    /// # Errors
    /// [`Error`] where it fails, or its answer cannot be read.
    pub fn listing(&self, cubin: &[u8]) -> Result<Listing, Error> {
        let json = self.disassemble_bytes(cubin)?;
        listing(json.as_bytes()).map_err(|error| {
            Error::environment(
                error.to_string(),
                "install an nvdisasm that is as new as the compiler",
            )
        })
    }
}
