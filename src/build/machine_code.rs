//! The kernels of a program that this tool did not compile, from its machine code.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;

use crate::binary::{self, BinaryError, Compiled, CompiledKernel};
use crate::config::{Config, Recipe, Variant, is_pattern};
use crate::files::{most, read_regular_up_to};
use crate::finding::{Code, Error, Finding, Stop};
use crate::git;
use crate::hash::sha256_hex;
use crate::process;
use crate::terms::{joined, joined_or};
use crate::toolchain::Nvdisasm;
use ncu_report::base_name;

/// Reads the kernels of a variant that match its filter from the files that have its machine code: these, and
/// the sha256 of each file.
pub(super) fn compiled_in(
    config: &Config,
    variant: &Variant,
    files: &[String],
    nvdisasm: Option<&Nvdisasm>,
) -> Result<(Compiled, BTreeMap<String, String>), Stop> {
    let mut reader = Reader::new(config, variant, nvdisasm);
    let mut hashes = BTreeMap::new();
    for file in files {
        let path = config.root.join(file);
        let bytes = git::real_input(&path).and_then(|path| read_regular_up_to(&path, most::BINARY));
        let bytes = bytes.map_err(|error| {
            let first = match &variant.recipe {
                _ if error.kind() == ErrorKind::NotFound && is_pattern(file) => {
                    "name each file, because no patterns are taken here".to_owned()
                }
                Recipe::Command { build: Some(_), .. } => {
                    format!("sparsek-gate build {}", variant.id)
                }
                _ => "build it first".to_owned(),
            };
            let next = format!("{first}; or correct `program` and `libraries`");
            let message = format!("the machine code of `{file}` cannot be read: {error}");
            Finding::deny(Code::BuildFailed, &variant.id, message, next)
        })?;
        let read = reader.read(&bytes, &|_| true);
        read.map_err(|why| why.stop(|error| unreadable(variant, file, &error)))?;
        hashes.insert(file.clone(), sha256_hex(&bytes));
    }
    if reader.kernels.is_empty() {
        return Err(reader.no_kernel(files).into());
    }
    Ok((reader.compiled(), hashes))
}

fn unreadable(variant: &Variant, file: &str, error: &BinaryError) -> Finding {
    let next = match error {
        BinaryError::OtherTargets { .. } => {
            "build it for `toolchain.arch` too (`-gencode` of nvcc), or correct `toolchain.arch`"
        }
        BinaryError::NoProgram if file.ends_with(".cu") => {
            "it is a CUDA source: write `source` in the place of `run` and `program`"
        }
        BinaryError::NoProgram if [".py", ".sh"].iter().any(|it| file.ends_with(it)) => {
            "a script has none: name the `.so` of an extension in `libraries`; of kernels that are made while it runs (Triton, NVRTC) write `loaded_code = true` in the place of `program`: a measured check gates their code"
        }
        BinaryError::NoProgram | BinaryError::NoMachineCode => {
            "name the files that contain the kernels in `program` and `libraries`: executables, shared libraries, fatbins, cubins; where they have PTX alone, build machine code too: `-gencode arch=compute_90a,code=sm_90a`"
        }
        BinaryError::Ambiguous(_) => {
            "select the kernels with `kernels`, so that each name is there once"
        }
        _ => "build it again; `cuobjdump -lelf` lists what it contains",
    };
    let message = format!("the machine code of `{file}` cannot be read: {error}");
    Finding::deny(Code::BuildFailed, &variant.id, message, next)
}

/// Why a file gives no kernels.
pub(super) enum Unreadable {
    Binary(BinaryError),
    Stop(Stop),
}

impl Unreadable {
    /// What stops the work; `finding` is that of a file that is not as it should be.
    pub(super) fn stop(self, finding: impl FnOnce(BinaryError) -> Finding) -> Stop {
        match self {
            Unreadable::Binary(error) => finding(error).into(),
            Unreadable::Stop(stop) => stop,
        }
    }
}

impl From<BinaryError> for Unreadable {
    fn from(error: BinaryError) -> Self {
        Unreadable::Binary(error)
    }
}

/// Collects the selected kernels of cubins.
pub(super) struct Reader<'a> {
    arch: &'a str,
    variant: &'a Variant,
    nvdisasm: Option<&'a Nvdisasm>,
    kernels: BTreeMap<String, CompiledKernel>,
    /// Names of kernels that the filter leaves out.
    others: BTreeSet<String>,
    /// Versions of the compilers that made what is selected.
    compilers: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    /// Nothing is read yet.
    pub(super) fn new(
        config: &'a Config,
        variant: &'a Variant,
        nvdisasm: Option<&'a Nvdisasm>,
    ) -> Reader<'a> {
        Reader {
            arch: &config.toolchain.arch,
            variant,
            nvdisasm,
            kernels: BTreeMap::new(),
            others: BTreeSet::new(),
            compilers: BTreeSet::new(),
        }
    }

    /// The kernels so far.
    pub(super) fn compiled(self) -> Compiled {
        let compilers = joined(self.compilers, ", ");
        Compiled {
            kernels: self.kernels,
            warnings: Vec::new(),
            stated_compiler: (!compilers.is_empty()).then_some(compilers),
        }
    }

    /// Reads the kernels of a file that match, of those whose mangled names `ran` is true of.
    pub(super) fn read(
        &mut self,
        file: &[u8],
        ran: &dyn Fn(&str) -> bool,
    ) -> Result<(), Unreadable> {
        let filter = self.variant.kernel_filter();
        for code in binary::machine_code(file, self.arch)? {
            let cubin = code.cubin()?;
            let mut selected = BTreeMap::new();
            for (mangled, kernel) in binary::kernels_of(&cubin, self.arch)? {
                let name = base_name(&mangled);
                if filter.matches(&name) && ran(&mangled) {
                    selected.insert(mangled, kernel);
                } else if self.others.len() < MOST_NAMED {
                    self.others.insert(name);
                }
            }
            if selected.is_empty() {
                continue;
            }
            self.compilers.extend(binary::compiler_of(&cubin));
            count(self.nvdisasm, &cubin, &mut selected)?;
            for (name, kernel) in selected {
                // Each file that instantiates a template has its kernels.
                match self.kernels.get(&name) {
                    Some(known) if *known != kernel => {
                        return Err(BinaryError::Ambiguous(name).into());
                    }
                    Some(_) => {}
                    None => drop(self.kernels.insert(name, kernel)),
                }
            }
        }
        Ok(())
    }

    fn no_kernel(&self, files: &[String]) -> Finding {
        let quoted = |name: &String| format!("`{name}`");
        let names = joined_or("none at all", self.others.iter().map(quoted), ", ");
        let files = joined(files.iter().map(quoted), ", ");
        let message = format!("no kernel of {files} matches `kernels`; among its kernels: {names}");
        Finding::of(Code::KernelMissing, &self.variant.id, message)
    }
}

/// Counts the instructions of kernels, where there is a disassembler that reads their code: some versions
/// crash on code that is not linked yet.
pub(super) fn count(
    nvdisasm: Option<&Nvdisasm>,
    cubin: &[u8],
    kernels: &mut BTreeMap<String, CompiledKernel>,
) -> Result<(), Unreadable> {
    let Some(nvdisasm) = nvdisasm else {
        return Ok(());
    };
    let json = match nvdisasm.disassemble(cubin) {
        Ok(json) => json,
        Err(Error::Environment { .. }) if !process::interrupted() => return Ok(()),
        Err(error) => return Err(Unreadable::Stop(error.into())),
    };
    let mut census = binary::census(json.as_bytes())?;
    for (name, kernel) in kernels {
        let missing = || BinaryError::Disassembly(format!("it lacks `{name}`"));
        kernel.opcodes = Some(census.remove(name).ok_or_else(missing)?);
    }
    Ok(())
}

/// The most names of kernels that a message lists.
const MOST_NAMED: usize = 10;
