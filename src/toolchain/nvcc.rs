//! The CUDA compiler.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tool::Tool;
use super::version::remembered;
use super::{env_folder, find, path_folders, query, versioned};
use crate::config::Toolchain;
use crate::error::Error;

/// Environment variables that change what nvcc does.
const INFLUENCES: &[&str] = &[
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "NVCC_CCBIN",
    "CPATH",
    "CPLUS_INCLUDE_PATH",
];

/// An nvcc that was found.
#[derive(Clone, Debug)]
pub struct Nvcc {
    /// The program.
    pub path: PathBuf,
    /// `V13.0.88`, as `nvcc --version` prints it.
    pub version: String,
    /// The host compiler's first line of `--version`.
    pub host_compiler: String,
}

/// What the compiler reports of one kernel (`-Xptxas -v`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelResources {
    /// Registers a thread.
    pub registers: u32,
    /// Static shared memory a block, in bytes.
    pub shared_bytes: u32,
    /// Bytes of stores that spill registers.
    pub spill_store_bytes: u32,
    /// Bytes of loads that fetch spilled registers.
    pub spill_load_bytes: u32,
    /// Stack frame a thread, in bytes.
    pub stack_bytes: u32,
    /// Barriers.
    pub barriers: u32,
}

/// What ptxas says that costs performance: an `info` line with a code, of which nvcc makes no
/// warning.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct CompilerWarning {
    /// `C7511`.
    pub code: String,
    /// What it says.
    pub message: String,
    /// Mangled name of the function, where it names one.
    pub function: Option<String>,
}

impl Nvcc {
    /// Finds nvcc: the configuration, `CUDA_HOME`, `CUDA_PATH`, the PATH, the usual folders, the
    /// layout of NVIDIA's Python wheels in the active virtual environment.
    ///
    /// # Errors
    /// [`Error::Environment`], with the places that were looked at.
    pub fn locate(toolchain: &Toolchain, work: &Path) -> Result<Nvcc, Error> {
        Nvcc::refuse_unstated_flags()?;
        let compiler = Nvcc::compiler(toolchain, work)?;
        Ok(Nvcc {
            path: compiler.path,
            version: compiler.version,
            host_compiler: Nvcc::host_compiler(work)?.1,
        })
    }

    /// Refuses flags that the environment adds to every compilation: no profile and no lock would
    /// know of them. What only names the host compiler is let pass, as Conda sets it.
    fn refuse_unstated_flags() -> Result<(), Error> {
        for name in ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"] {
            let value = std::env::var_os(name).unwrap_or_default();
            let value = value.to_string_lossy();
            let mut words = value.split_whitespace();
            while let Some(word) = words.next() {
                match word.split_once('=').map_or(word, |(flag, _)| flag) {
                    "-ccbin" | "--compiler-bindir" => {
                        if !word.contains('=') {
                            words.next();
                        }
                    }
                    "-allow-unsupported-compiler" | "--allow-unsupported-compiler" => {}
                    _ => {
                        return Err(Error::Environment {
                            what: format!(
                                "the environment variable {name} adds `{word}` to every compilation, and no profile or lock would tell of it"
                            ),
                            next: format!(
                                "unset {name}, and put the flags into `toolchain.flags` of the configuration"
                            ),
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// nvcc alone, which compiles nothing without a host compiler.
    ///
    /// # Errors
    /// [`Error::Environment`], with the places that were looked at.
    pub fn compiler(toolchain: &Toolchain, work: &Path) -> Result<Tool, Error> {
        let mut folders: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"]
            .iter()
            .filter_map(|name| env_folder(name))
            .map(|root| root.join("bin"))
            .collect();
        folders.extend(path_folders());
        folders.push("/usr/local/cuda/bin".into());
        folders.extend(
            versioned("/usr/local", "cuda-")
                .into_iter()
                .map(|root| root.join("bin")),
        );
        folders.push("/opt/cuda/bin".into());
        folders.extend(wheel_folders());
        let path = find("nvcc", toolchain.nvcc.as_deref(), &folders).map_err(|places| {
            Error::Environment {
                what: format!("no nvcc was found; {places}"),
                next: "install the CUDA toolkit, or `pip install 'cuda-toolkit[nvcc,nvvm,crt,cudart,cccl]==13.0.2'` \
                       in a virtual environment, and set CUDA_HOME or `toolchain.nvcc`"
                    .to_owned(),
            }
        })?;
        let compiler = Tool::at(path, work)?;
        if compiler.version.is_empty() {
            return Err(Error::Environment {
                what: format!("`{} --version` names no version", compiler.path.display()),
                next: "check the installation".to_owned(),
            });
        }
        Ok(compiler)
    }

    /// The host compiler of nvcc, and the first line that it says of itself.
    ///
    /// # Errors
    /// [`Error::Environment`] where it is not on the PATH.
    pub fn host_compiler(work: &Path) -> Result<(PathBuf, String), Error> {
        let host = std::env::var("NVCC_CCBIN").unwrap_or_else(|_| "g++".to_owned());
        let host_path = find(
            &host,
            host.contains('/').then(|| Path::new(&host)),
            &path_folders(),
        );
        let path = host_path.map_err(|_| Error::Environment {
            what: format!("nvcc needs a host compiler and `{host}` is not on the PATH"),
            next: "install g++ (Debian: `apt-get install g++`), or set NVCC_CCBIN".to_owned(),
        })?;
        let program = path.display().to_string();
        let banner = remembered(work, &path, || query(vec![program, "--version".to_owned()]))?;
        let line = banner.lines().next().unwrap_or_default().to_owned();
        Ok((path, line))
    }

    /// Everything besides argv, sources and headers that decides what comes out.
    pub fn fingerprint(&self) -> String {
        let mut text = format!("{}\n{}\n", self.version, self.host_compiler);
        for name in INFLUENCES {
            if let Some(value) = std::env::var_os(name) {
                text.push_str(&format!("{name}={}\n", value.to_string_lossy()));
            }
        }
        text
    }

    /// The argv that compiles, up to where the output goes and what is compiled.
    pub fn argv(
        &self,
        toolchain: &Toolchain,
        flags: &[String],
        defines: &BTreeMap<String, String>,
    ) -> Vec<String> {
        let mut argv = vec![self.path.display().to_string()];
        argv.extend(nvcc_flags(toolchain, flags, defines));
        argv.extend(
            self.library_folder()
                .map(|folder| format!("-L{}", folder.display())),
        );
        argv
    }

    /// Further arguments: compile to `program`, write the list of headers to `depfile`, and leave
    /// the cubins in the folder `kept`.
    pub fn output(program: &Path, depfile: &Path, kept: &Path) -> Vec<String> {
        vec![
            "--keep".to_owned(),
            "--keep-dir".to_owned(),
            kept.display().to_string(),
            "-MD".to_owned(),
            "-MF".to_owned(),
            depfile.display().to_string(),
            "-o".to_owned(),
            program.display().to_string(),
        ]
    }

    /// The folder of the toolkit, with links resolved.
    pub fn root(&self) -> PathBuf {
        let program = self
            .path
            .canonicalize()
            .unwrap_or_else(|_| self.path.clone());
        program
            .parent()
            .and_then(Path::parent)
            .map(Path::to_path_buf)
            .unwrap_or(program)
    }

    /// The wheels keep libraries in `lib`; nvcc looks in `lib64`.
    fn library_folder(&self) -> Option<PathBuf> {
        let root = self.path.parent()?.parent()?;
        let folder = root.join("lib");
        (!root.join("lib64").exists() && folder.join("libcudart_static.a").exists())
            .then_some(folder)
    }
}

/// The part of the argv that decides what comes out: no path of this machine.
pub fn nvcc_flags(
    toolchain: &Toolchain,
    flags: &[String],
    defines: &BTreeMap<String, String>,
) -> Vec<String> {
    let arch = &toolchain.arch;
    let virtual_arch = arch.replacen("sm_", "compute_", 1);
    // `-arch=sm_90a` fails for programs: ptxas then also runs for plain sm_90.
    let mut argv = vec![
        format!("-gencode=arch={virtual_arch},code={arch}"),
        "-Xptxas".to_owned(),
        "-v".to_owned(),
    ];
    argv.extend(toolchain.flags.iter().cloned());
    argv.extend(flags.iter().cloned());
    argv.extend(defines.iter().map(|(name, value)| match value.as_str() {
        "" => format!("-D{name}"),
        value => format!("-D{name}={value}"),
    }));
    argv
}

fn wheel_folders() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for root in ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .iter()
        .filter_map(|name| env_folder(name))
    {
        let lib = root.join("lib").display().to_string();
        for python in versioned(&lib, "python") {
            let nvidia = python.join("site-packages/nvidia").display().to_string();
            folders.extend(
                versioned(&nvidia, "cu")
                    .into_iter()
                    .map(|cuda| cuda.join("bin")),
            );
        }
    }
    folders
}

/// Reads ptxas's resource report (`-Xptxas -v`, on standard error) for one target, such as
/// `sm_90a`: mangled name to resources. Functions that a kernel calls and that were not inlined are
/// listed behind it; what they spill is the kernel's.
pub fn resource_report(log: &str, arch: &str) -> BTreeMap<String, KernelResources> {
    let mut kernels: BTreeMap<String, KernelResources> = BTreeMap::new();
    let mut current: Option<String> = None;
    let mut function = "";
    for line in log.lines() {
        if let Some(rest) = line.split("Compiling entry function '").nth(1) {
            let mut quoted = rest.split('\'');
            let name = quoted.next().map(str::to_owned);
            current = name.filter(|_| quoted.nth(1) == Some(arch));
            continue;
        }
        // The first line of another file or target.
        if line.contains(" bytes gmem") {
            current = None;
        }
        if let Some(name) = line.split("Function properties for ").nth(1) {
            function = name.trim();
            continue;
        }
        let Some(name) = &current else { continue };
        let before = |what: &str| number_before(line, what);
        if line.contains("bytes stack frame") {
            let kernel = kernels.entry(name.clone()).or_default();
            if function == name {
                kernel.stack_bytes = before("bytes stack frame").unwrap_or(0);
            }
            for (spilled, what) in [
                (&mut kernel.spill_store_bytes, "bytes spill stores"),
                (&mut kernel.spill_load_bytes, "bytes spill loads"),
            ] {
                *spilled = spilled.saturating_add(before(what).unwrap_or(0));
            }
        } else if let Some(registers) = line
            .contains(": Used ")
            .then(|| before("registers"))
            .flatten()
        {
            let kernel = kernels.entry(name.clone()).or_default();
            kernel.registers = registers;
            kernel.barriers = before("barriers").unwrap_or(0);
            kernel.shared_bytes = before("bytes smem").unwrap_or(0);
        }
    }
    kernels
}

/// The lines of ptxas that carry a code such as `(C7511)`, each once.
pub fn compiler_warnings(log: &str) -> Vec<CompilerWarning> {
    let mut warnings: Vec<CompilerWarning> = log
        .lines()
        .filter_map(|line| {
            let rest = line.strip_prefix("ptxas ")?.split_once(": (")?.1;
            let (code, message) = rest.split_once(") ")?;
            let digits = code.strip_prefix('C')?;
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            let function = message
                .split_once("function '")
                .and_then(|(_, name)| name.split('\'').next());
            Some(CompilerWarning {
                code: code.to_owned(),
                message: message.to_owned(),
                function: function.map(str::to_owned),
            })
        })
        .collect();
    warnings.sort();
    warnings.dedup();
    warnings
}

fn number_before(line: &str, what: &str) -> Option<u32> {
    let before = &line[..line.find(what)?];
    before.split_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resource_report_of_ptxas_is_read() {
        // Printed by nvcc 13.0.88 for sm_90a.
        let log = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z7spillerPfi' for 'sm_90a'
ptxas info    : Function properties for _Z7spillerPfi
    480 bytes stack frame, 1048 bytes spill stores, 1100 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 480 bytes cumulative stack size, 16384 bytes smem
";
        assert!(resource_report(log, "sm_80").is_empty());
        let report = resource_report(log, "sm_90a");
        let spiller = KernelResources {
            registers: 32,
            shared_bytes: 16384,
            spill_store_bytes: 1048,
            spill_load_bytes: 1100,
            stack_bytes: 480,
            barriers: 1,
        };
        assert_eq!(
            report,
            BTreeMap::from([("_Z7spillerPfi".to_owned(), spiller)])
        );
    }

    #[test]
    fn what_a_called_function_spills_is_its_kernels() {
        // Printed by nvcc 13.0.88 for a kernel that calls a `__noinline__` function.
        let log = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z5alphaPfi' for 'sm_90a'
ptxas info    : Function properties for _Z5alphaPfi
    648 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 648 bytes cumulative stack size
ptxas info    : Compile time = 23.148 ms
ptxas info    : Function properties for _Z3devPfi
    0 bytes stack frame, 1200 bytes spill stores, 1204 bytes spill loads
ptxas info    : 0 bytes gmem
ptxas info    : Function properties for _Z6anotherPfi
    0 bytes stack frame, 7 bytes spill stores, 7 bytes spill loads
";
        let alpha = &resource_report(log, "sm_90a")["_Z5alphaPfi"];
        assert_eq!(alpha.registers, 32);
        assert_eq!(alpha.stack_bytes, 648);
        assert_eq!(alpha.spill_store_bytes, 1208);
        assert_eq!(alpha.spill_load_bytes, 1208);
    }

    #[test]
    fn what_costs_performance_is_found_among_the_information() {
        // Printed by nvcc 13.0.88 for tests/data/static/performance_loss.cu.
        let log = "\
ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.
ptxas info    : (C7519) warpgroup.arrive is injected in around line 43 by compiler to allow use of registers in GMMA in function 'serialized'
ptxas info    : (C7517) warpgroup.wait is injected in around line 40 by compiler to allow use of registers defined by GMMA in function 'serialized'
ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources for the wgmma pipeline in the function 'serialized'
ptxas info    : 0 bytes gmem
";
        let told = compiler_warnings(log);
        let found: Vec<(&str, Option<&str>)> = told
            .iter()
            .map(|warning| (warning.code.as_str(), warning.function.as_deref()))
            .collect();
        let serialized = Some("serialized");
        assert_eq!(
            found,
            [
                ("C7508", None),
                ("C7511", serialized),
                ("C7517", serialized),
                ("C7519", serialized)
            ]
        );
        assert!(told[1].message.contains("are serialized"));
    }
}
