//! The flags of nvcc, and the options of the tools behind it, of which it is known which files they
//! read and that they run nothing.

/// What follows the name of a flag of nvcc.
#[derive(Clone, Copy)]
pub(super) enum Takes {
    Nothing,
    /// A value that this accepts.
    Value(fn(&str) -> bool),
    /// Macros, separated by commas.
    Macros,
    /// Files that the compiler includes, and lists itself.
    Includes,
    Headers,
    Libraries,
    Names,
    /// Options of another tool.
    Options(Tool),
}

/// A tool that nvcc passes options on to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Host,
    Ptxas,
    Nvlink,
    Linker,
}

/// The known flags, each with all of its names.
pub(super) const KNOWN: &[(&[&str], Takes)] = &[
    (&["lineinfo", "generate-line-info"], Takes::Nothing),
    (&["G", "device-debug", "g", "debug"], Takes::Nothing),
    (&["use_fast_math", "restrict"], Takes::Nothing),
    (&["expt-relaxed-constexpr"], Takes::Nothing),
    (&["extended-lambda", "expt-extended-lambda"], Takes::Nothing),
    (&["dlto", "dlink-time-opt"], Takes::Nothing),
    (&["extra-device-vectorization"], Takes::Nothing),
    (&["keep-device-functions"], Takes::Nothing),
    (&["src-in-ptx", "source-in-ptx"], Takes::Nothing),
    (&["res-usage", "resource-usage"], Takes::Nothing),
    (&["ewp", "extensible-whole-program"], Takes::Nothing),
    (&["no-compress", "no-exceptions", "noeh"], Takes::Nothing),
    (&["m64", "no-align-double"], Takes::Nothing),
    (
        &["nohdinitlist", "no-host-device-initializer-list"],
        Takes::Nothing,
    ),
    (
        &["nohdmoveforward", "no-host-device-move-forward"],
        Takes::Nothing,
    ),
    (&["allow-unsupported-compiler"], Takes::Nothing),
    (&["w", "disable-warnings", "Wreorder"], Takes::Nothing),
    (
        &["Wdefault-stream-launch", "Wmissing-launch-bounds"],
        Takes::Nothing,
    ),
    (&["Wext-lambda-captures-this"], Takes::Nothing),
    (&["Wno-deprecated-declarations"], Takes::Nothing),
    (&["Wno-deprecated-gpu-targets"], Takes::Nothing),
    (&["err-no", "display-error-number"], Takes::Nothing),
    (&["no-err-no", "no-display-error-number"], Takes::Nothing),
    (
        &["ftz", "prec-div", "prec-sqrt", "fmad"],
        Takes::Value(is_bool),
    ),
    (&["rdc", "relocatable-device-code"], Takes::Value(is_bool)),
    (&["static-global-template-stub"], Takes::Value(is_bool)),
    (
        &["device-entity-has-hidden-visibility"],
        Takes::Value(is_bool),
    ),
    (&["brief-diag", "brief-diagnostics"], Takes::Value(is_bool)),
    (&["device-stack-protector"], Takes::Value(is_bool)),
    (&["maxrregcount", "t", "threads"], Takes::Value(is_number)),
    (
        &["split-compile", "split-compile-extended"],
        Takes::Value(is_number),
    ),
    (
        &["ftemplate-depth", "ftemplate-backtrace-limit"],
        Takes::Value(is_number),
    ),
    (
        &["jtd", "jump-table-density", "m", "machine"],
        Takes::Value(is_number),
    ),
    (&["O", "optimize"], Takes::Value(is_number)),
    (
        &["std", "x", "default-stream", "cudart", "cudadevrt"],
        Takes::Value(is_word),
    ),
    (
        &["Ofc", "Ofast-compile", "dopt", "compress-mode"],
        Takes::Value(is_word),
    ),
    (
        &["opt-info", "optimization-info", "Werror"],
        Takes::Value(is_words),
    ),
    (
        &["diag-error", "diag-suppress", "diag-warn"],
        Takes::Value(is_words),
    ),
    (&["frandom-seed"], Takes::Value(is_word)),
    (
        &["arch", "gpu-architecture", "code", "gpu-code"],
        Takes::Value(is_target),
    ),
    (&["gencode", "generate-code"], Takes::Value(is_target)),
    (&["D", "define-macro", "U", "undefine-macro"], Takes::Macros),
    (&["include", "pre-include"], Takes::Includes),
    (
        &["I", "include-path", "isystem", "system-include"],
        Takes::Headers,
    ),
    (&["L", "library-path"], Takes::Libraries),
    (&["l", "library"], Takes::Names),
    (
        &["Xcompiler", "compiler-options"],
        Takes::Options(Tool::Host),
    ),
    (&["Xptxas", "ptxas-options"], Takes::Options(Tool::Ptxas)),
    (&["Xnvlink", "nvlink-options"], Takes::Options(Tool::Nvlink)),
    (&["Xlinker", "linker-options"], Takes::Options(Tool::Linker)),
];

/// Flags of one letter whose value may follow without a blank.
pub(super) const ATTACHED: [&str; 8] = ["O", "D", "U", "I", "L", "l", "m", "t"];

/// Flags of nvcc that begin with one of those letters and mean something else.
pub(super) const OTHERS: [&str; 5] = ["ldir", "lib", "link", "lto", "ltoir"];

/// Options of the host compiler that take no value.
pub(super) const HOST: &[&str] = &[
    "-O",
    "-O0",
    "-O1",
    "-O2",
    "-O3",
    "-Og",
    "-Os",
    "-Ofast",
    "-g",
    "-g0",
    "-g1",
    "-g2",
    "-g3",
    "-ggdb",
    "-w",
    "-s",
    "-pipe",
    "-pthread",
    "-fopenmp",
    "-fopenmp-simd",
    "-pedantic",
    "-pedantic-errors",
    "-rdynamic",
    "-pie",
    "-no-pie",
    "-static-libgcc",
    "-static-libstdc++",
    "-fPIC",
    "-fpic",
    "-fPIE",
    "-fpie",
    "-ffast-math",
    "-fpermissive",
    "-fexceptions",
    "-frtti",
    "-funroll-loops",
    "-funroll-all-loops",
    "-finline-functions",
    "-fomit-frame-pointer",
    "-fstrict-aliasing",
    "-fstrict-overflow",
    "-fwrapv",
    "-ftrapv",
    "-fsigned-char",
    "-funsigned-char",
    "-fshort-enums",
    "-fstack-protector",
    "-fstack-protector-strong",
    "-fstack-protector-all",
    "-fstack-clash-protection",
    "-fdata-sections",
    "-ffunction-sections",
    "-ftree-vectorize",
    "-fassociative-math",
    "-freciprocal-math",
    "-ffinite-math-only",
    "-funsafe-math-optimizations",
    "-frounding-math",
    "-fmath-errno",
    "-fconcepts",
    "-fcoroutines",
    "-fvisibility-inlines-hidden",
];

/// Options of the host compiler that end in a value.
pub(super) const HOST_VALUES: &[&str] = &[
    "-std=",
    "-fvisibility=",
    "-fmax-errors=",
    "-ftemplate-depth=",
    "-finline-limit=",
    "-fconstexpr-depth=",
    "-fconstexpr-loop-limit=",
    "-fconstexpr-ops-limit=",
    "-ffp-contract=",
    "-fcf-protection=",
    "-fdiagnostics-color=",
    "-fsanitize=",
    "-fabi-version=",
];

/// Options of ptxas that take no value.
pub(super) const PTXAS: &[&str] = &[
    "v",
    "verbose",
    "w",
    "disable-warnings",
    "Werror",
    "warning-as-error",
    "g",
    "device-debug",
    "lineinfo",
    "generate-line-info",
    "warn-spills",
    "warn-on-spills",
    "warn-lmem-usage",
    "warn-on-local-memory-usage",
    "warn-double-usage",
    "warn-on-double-precision-use",
    "O0",
    "O1",
    "O2",
    "O3",
    "O4",
    "no-bb-merge",
    "dont-merge-basicblocks",
    "ret-end",
    "return-at-end",
    "preserve-relocs",
    "opt-fp-atomics",
    "optimize-float-atomics",
    "disable-optimizer-consts",
    "disable-optimizer-constants",
    "sp-bounds-check",
    "suppress-debug-info",
    "suppress-double-demote-warning",
    "suppress-stack-size-warning",
    "suppress-async-bulk-multicast-advisory-warning",
    "suppress-sparse-mma-advisory-info",
    "override-directive-values",
    "make-errors-visible-at-exit",
    "ewp",
    "extensible-whole-program",
    "allow-expensive-optimizations",
    "legacy-bar-warp-wide-behavior",
];

/// Options of ptxas that take a value.
pub(super) const PTXAS_VALUES: &[&str] = &[
    "O",
    "opt-level",
    "maxrregcount",
    "func-maxrregcount",
    "device-function-maxrregcount",
    "dlcm",
    "def-load-cache",
    "dscm",
    "def-store-cache",
    "flcm",
    "force-load-cache",
    "fscm",
    "force-store-cache",
    "maxntid",
    "minnctapersm",
    "regUsageLevel",
    "register-usage-level",
    "fmad",
    "pic",
    "position-independent-code",
    "split-compile",
    "Ofc",
    "Ofast-compile",
    "allow-expensive-optimizations",
    "device-stack-protector",
];

/// Options of nvlink.
pub(super) const NVLINK: &[&str] = &[
    "v",
    "verbose",
    "w",
    "disable-warnings",
    "O0",
    "O1",
    "O2",
    "O3",
];

/// Options of the linker that take no value.
pub(super) const LINKER: &[&str] = &[
    "as-needed",
    "no-as-needed",
    "gc-sections",
    "no-gc-sections",
    "strip-all",
    "strip-debug",
    "s",
    "S",
    "export-dynamic",
    "E",
    "no-undefined",
    "O1",
    "O2",
    "start-group",
    "end-group",
    "whole-archive",
    "no-whole-archive",
    "push-state",
    "pop-state",
    "enable-new-dtags",
    "disable-new-dtags",
    "build-id",
    "Bstatic",
    "Bdynamic",
    "Bsymbolic",
];

/// Options of the linker that take a value.
pub(super) const LINKER_VALUES: &[&str] = &["z", "hash-style", "build-id"];

fn is_bool(value: &str) -> bool {
    matches!(value, "true" | "false")
}

fn is_number(value: &str) -> bool {
    !value.is_empty() && value.chars().all(|c| c.is_ascii_digit())
}

pub(super) fn is_word(value: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || "_+-".contains(c);
    !value.starts_with('-') && !value.is_empty() && value.chars().all(part)
}

fn is_words(value: &str) -> bool {
    value.split(',').all(is_word)
}

/// A target of the code, which is not asked of the machine.
fn is_target(value: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || "_,=[]".contains(c);
    !value.is_empty() && value.chars().all(part) && !value.contains("native")
}

impl Tool {
    /// As messages name it.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Host => "the host compiler",
            Tool::Ptxas => "ptxas",
            Tool::Nvlink => "nvlink",
            Tool::Linker => "the linker",
        }
    }
}
