//! Why the code of a program cannot be read.

use thiserror::Error;

/// Why the code of a program cannot be read.
#[derive(Debug, Error)]
pub enum BinaryError {
    /// A cubin is not an ELF file of the expected form.
    #[error("the cubin cannot be read: {0}")]
    Cubin(String),
    /// A program or library is not an ELF file of the expected form.
    #[error("the ELF file cannot be read: {0}")]
    Program(String),
    /// A file is none that has machine code.
    #[error("it is no ELF file, no fatbin and no cubin")]
    NoProgram,
    /// A program without machine code of a GPU.
    #[error("it contains no machine code of a GPU (no cubin in `.nv_fatbin`; PTX is none)")]
    NoMachineCode,
    /// The machine code is for other chips.
    #[error("it contains no machine code for {arch}, only for {found}")]
    OtherTargets {
        /// What is configured.
        arch: String,
        /// The targets that were found.
        found: String,
    },
    /// A fatbin is not of the expected form.
    #[error("the fatbin cannot be read: {0}")]
    Fatbin(String),
    /// Two kernels of one name.
    #[error("it contains two different kernels with the name `{0}`")]
    Ambiguous(String),
    /// The compiler reported a kernel that is in no cubin.
    #[error("the compiler reported the kernel `{0}`, but it is in no cubin of the build")]
    NoCode(String),
    /// The disassembler's output has an unknown form.
    #[error("the disassembly cannot be read: {0}")]
    Disassembly(String),
}
