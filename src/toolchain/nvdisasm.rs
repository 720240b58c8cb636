//! The disassembler.

use std::path::Path;

use super::find::in_toolkit;
use super::nvcc::Nvcc;
use super::query::query;
use super::tool::Tool;
use crate::binary::without_relocations;
use crate::config::Toolchain;
use crate::disk;
use crate::finding::Error;
use crate::process;

/// An nvdisasm that was found. Its version is such as `V13.2.86`.
#[derive(Clone, Debug)]
pub struct Nvdisasm(pub Tool);

impl Nvdisasm {
    /// Finds nvdisasm: beside nvcc, on the PATH, in the usual toolkits. Without it instructions are not
    /// counted, and metrics that need the count are not measured.
    ///
    /// # Errors
    /// [`Error::Environment`], with the places that were looked at.
    pub fn locate(toolchain: &Toolchain, work: &Path) -> Result<Nvdisasm, Error> {
        let nvcc = Nvcc::compiler(toolchain, work).map(|nvcc| nvcc.path);
        let nvcc = nvcc.ok().or_else(|| toolchain.nvcc.clone());
        let path = in_toolkit("nvdisasm", None, nvcc.as_deref(), Vec::new());
        let path = path.map_err(|places| {
            Error::environment(
                format!("no nvdisasm was found; {places}"),
                "install it (it comes with the CUDA toolkit), or put it on the PATH",
            )
        })?;
        Tool::at(path, work).map(Nvdisasm)
    }

    /// The instructions of a cubin as JSON.
    ///
    /// # Errors
    /// [`Error`] where it fails.
    pub fn disassemble(&self, cubin: &[u8]) -> Result<String, Error> {
        let folder = process::scratch()?;
        let path = folder.path().join("code.cubin");
        disk::write(&path, cubin).map_err(Error::io("write", &path))?;
        let [program, file] = [&self.0.path, &path].map(|path| path.display().to_string());
        query(vec![program, "-json".to_owned(), file], &[]).or_else(|error| {
            // Version 13 crashes where the address of a `__shared__` variable is left to the linker.
            let linked = without_relocations(cubin.to_vec()).ok_or(error)?;
            self.disassemble(&linked)
        })
    }
}
