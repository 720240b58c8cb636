//! A machine with an H200 and its whole toolchain, as far as the program sees: stand-ins of the
//! driver's libraries, of ncu, and of the compiler's folder.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, OnceLock};

use serde_json::Value as Json;

use super::{Arguments, Project, Ran, Report, aloud, handed_over, repository};

/// As the stand-in of the driver reports it.
pub const UUID: &str = "GPU-00112233-4455-6677-8899-aabbccddeeff";

/// Sources in `tests/data/stand_in`, each with the name of what is made of it and options of the
/// compiler.
pub type Sources<'a> = &'a [(&'a str, &'a str, &'a [&'a str])];

/// Libraries and programs that a C compiler makes, in a folder of this name; `None`, and said aloud,
/// without a compiler or git.
pub fn compiled(name: &str, sources: Sources<'_>) -> Option<PathBuf> {
    for program in ["cc", "git"] {
        if Command::new(program).arg("--version").output().is_err() {
            aloud(&format!(
                "SKIPPED: the {name} was not tested, there is no {program} on the PATH"
            ));
            return None;
        }
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    for (source, target, options) in sources {
        let fresh = folder.join(format!("built-{}", std::process::id()));
        let built = Command::new("cc")
            .args(["-O1", "-Wall", "-Wextra", "-Werror", "-pthread"])
            .args(*options)
            .arg("-o")
            .arg(&fresh)
            .arg(repository().join("tests/data/stand_in").join(source))
            .args(["-ldl", "-lm"])
            .output()
            .unwrap();
        Ran::of(&built).exits(0);
        fs::rename(fresh, folder.join(target)).unwrap();
    }
    Some(folder)
}

/// Answers as nvcc 13.0 does, and "compiles" to a script that prints what the stand-in of ncu wants
/// to hear. Every compilation is noted.
const NVCC: &str = r##"#!/bin/sh
if [ "$1" = --version ]; then
    echo "Cuda compilation tools, release ${NVCC_RELEASE-13.0, V13.0.88}"
    exit 0
fi
while [ $# -gt 0 ]; do
    case $1 in
    -o) program=$2; shift ;;
    *.cu) source=$1 ;;
    esac
    shift
done
gcc -E -x c++ "$source" -o /dev/null || exit 1
echo "$source" >>calls
printf '#!/bin/sh\necho "variant: baseline"\necho "recorded: h200"\n' >"$program"
chmod +x "$program"
"##;

/// Prints its version and that of its linker.
pub const HOST: &str = "#!/bin/sh\ncase $1 in\n-Wl,*) echo 'GNU ld (GNU Binutils) 2.40' ;;\n\
    *) echo 'g++ (Debian 12.2.0-14) 12.2.0' ;;\nesac\n";

/// Compiles a `.cu` of plain C with the host's compiler.
pub const NVCC_OF_C: &str = r##"#!/bin/sh
if [ "$1" = --version ]; then
    echo "Cuda compilation tools, release 13.0, V13.0.88"
    exit 0
fi
while [ $# -gt 0 ]; do
    case $1 in
    -o) program=$2; shift ;;
    *.cu) source=$1 ;;
    esac
    shift
done
gcc -x c "$source" -o "$program"
"##;

/// A variant whose program is that of `kernels/b.cu`.
pub const CP_ASYNC: &str = r#"
[suite.bsr_gemm.variant.cp_async]
source = "kernels/b.cu"
expect = ["bsr_gemm_cp_async"]
"#;

/// The source of a program for which the stand-in of ncu hands over the recording of a variant.
pub fn source_of(variant: &str) -> String {
    format!(
        "int puts(const char *);\nint main(void) {{\n\
         puts(\"variant: {variant}\\nrecorded: h200\");\nreturn 0;\n}}\n"
    )
}

/// The folder of a compiled stand-in of a library. Whoever builds the tests has `cc`, which links them.
pub fn library(folder: &str, name: &str, source: &Path) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    fs::create_dir_all(&folder).unwrap();
    let fresh = folder.join(format!("{name}.{}", std::process::id()));
    let built = Command::new("cc")
        .args([
            "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o",
        ])
        .arg(&fresh)
        .arg(source)
        .output()
        .unwrap();
    Ran::of(&built).exits(0);
    fs::rename(fresh, folder.join(name)).unwrap();
    folder
}

/// The folders with the stand-ins of libcuda and of NVML.
pub fn libraries() -> &'static [PathBuf; 2] {
    static FOLDERS: LazyLock<[PathBuf; 2]> = LazyLock::new(|| {
        // By the name that is looked for first: a real one must not be found before it.
        [
            ("machine-libcuda", "libcuda.so", "libcuda.c"),
            ("machine-nvml", "libnvidia-ml.so.1", "libnvidia-ml.c"),
        ]
        .map(|(folder, name, source)| {
            let source = repository().join("tests/data/stand_in").join(source);
            library(folder, name, &source)
        })
    });
    &FOLDERS
}

/// A project on that machine.
pub struct Machine {
    pub project: Project,
    libraries: Vec<PathBuf>,
    env: Vec<(String, String)>,
}

impl Machine {
    /// Everything is as the repository's configuration pins it. One variant is built by nvcc.
    pub fn new() -> Machine {
        let [driver, nvml] = libraries();
        let machine = Machine::of(Project::empty(), &[driver, nvml]);
        let project = &machine.project;
        let text = super::configuration();
        let (settings, _) = text.split_once("[suite.").unwrap();
        // The stand-in of nvcc makes no machine code, so none is gated.
        let (settings, _) = settings.split_once("[static.").unwrap();
        let settings = format!("{settings}{}", super::recorded_only());
        let settings = settings.replacen(
            "[toolchain]\n",
            "[toolchain]\nnvcc = \"toolkit/bin/nvcc\"\nncu = \"bin/ncu\"\n\
             compute_sanitizer = \"toolkit/bin/compute-sanitizer\"\n",
            1,
        );
        let suite = r#"
[suite.bsr_gemm]
kernels = "regex:^bsr_gemm_"
args = ["--m", "8192", "--n", "8192", "--k", "8192", "--blocks-per-row", "16"]
work = { flop = 68719476736, bytes_written = 268435456 }

[suite.bsr_gemm.variant.baseline]
source = "kernels/a.cu"
expect = ["bsr_gemm_baseline"]
"#;
        let passed = super::ENV_PASS;
        project.write("config.toml", format!("{passed}{settings}{suite}"));
        project.write("kernels/a.cu", "int main() {}\n");
        project.write("journal", "");
        project.write("reports", "");
        machine.program("toolkit/bin/nvcc", NVCC);
        let cuda = "Cuda compilation tools, release 13.0, V13.0.85";
        let sanitizer = "Version 2025.3.1.0 (build 36400806) (public-release)";
        for (tool, says) in [
            ("cuobjdump", cuda),
            ("nvdisasm", cuda),
            ("compute-sanitizer", sanitizer),
        ] {
            machine.program(
                &format!("toolkit/bin/{tool}"),
                &format!(
                    "#!/bin/sh\nif [ \"$1\" = --version ]; then echo '{says}'; \
                     else echo \"ELF file    1: a.${{TARGET-sm_90a}}.cubin\"; fi\n"
                ),
            );
        }
        machine.program("host/g++", HOST);
        machine.ncu("echo \"$*\" >>\"$ARGV\"");
        machine
    }

    /// That machine with another project, and with these libraries of the driver.
    pub fn of(project: Project, libraries: &[&Path]) -> Machine {
        for folder in ["tmp", "home"] {
            fs::create_dir_all(project.path(folder)).unwrap();
        }
        Machine {
            project,
            libraries: libraries.iter().map(|it| it.to_path_buf()).collect(),
            env: Vec::new(),
        }
    }

    /// A machine with the project of one that was made before, see [`Project::packed`].
    pub fn once(made: &OnceLock<Vec<u8>>, make: impl FnOnce() -> Machine) -> Machine {
        let packed = made.get_or_init(|| make().project.packed());
        let [driver, nvml] = libraries();
        let machine = Machine::of(Project::unpacked(packed), &[driver, nvml]);
        // It names the folder of the project.
        machine.ncu("echo \"$*\" >>\"$ARGV\"");
        machine
    }

    /// With programs that a C compiler makes, and these variants besides `baseline`.
    pub fn with_programs(self, variants: &str) -> Machine {
        self.program("toolkit/bin/nvcc", NVCC_OF_C);
        let project = &self.project;
        project.write("config.toml", project.read("config.toml") + variants);
        project.write("kernels/a.cu", source_of("baseline"));
        project.write("kernels/b.cu", source_of("cp_async"));
        self
    }

    /// With so many equal variants, whose baselines are locked, and everything committed.
    pub fn locked(variants: u32) -> Machine {
        static LOCKED: [OnceLock<Vec<u8>>; 4] = [const { OnceLock::new() }; 4];
        let Some(made) = LOCKED.get(variants as usize) else {
            return Machine::lock(variants);
        };
        let machine = Machine::once(made, || Machine::lock(variants));
        machine.commit();
        machine
    }

    fn lock(variants: u32) -> Machine {
        let machine = Machine::new();
        let numbers: Vec<String> = (1..=variants).map(|it| it.to_string()).collect();
        let matrix = format!(
            "[suite.bsr_gemm.variant.v]\nmatrix = {{ n = [{}] }}\nenv = {{ N = \"{{n}}\" }}\nsource",
            numbers.join(", ")
        );
        let machine = machine.configured("[suite.bsr_gemm.variant.baseline]\nsource", &matrix);
        let project = &machine.project;
        project.write(
            ".gitignore",
            "/.sparsek-gate/\n/journal*\n/reports\n/argv\n/calls\n/tmp/\n/home/\n",
        );
        machine.lock_measured();
        project.commit();
        machine
    }

    /// ncu takes so many seconds more for each process.
    pub fn slow(&self, seconds: f64) {
        self.ncu(&format!(
            "case $1 in --import | --version) ;; *) sleep {seconds} ;; esac"
        ));
    }

    /// Its ncu: a script for sh, and then the recorded reports are handed over. Programs get no
    /// variable of the tests.
    pub fn ncu(&self, first: &str) {
        self.program(
            "bin/ncu",
            &format!(
                "#!/bin/sh\nexport ARGV='{}' RECORDINGS='{}' JOURNAL='{}' REPORTS='{}'\n\
                 {first}\nexec {} \"$@\"\n",
                self.path("argv").display(),
                handed_over().display(),
                self.path("journal").display(),
                self.path("reports").display(),
                repository().join("tests/data/stand_in/ncu").display()
            ),
        );
    }

    /// With a variable in the program's environment.
    pub fn with(mut self, name: &str, value: &str) -> Machine {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With other libraries of the driver.
    pub fn with_libraries(mut self, folders: &[&Path]) -> Machine {
        self.libraries = folders.iter().map(|folder| folder.to_path_buf()).collect();
        self
    }

    /// Replaces a text of the configuration that must be there once.
    #[track_caller]
    pub fn configured(self, from: &str, to: &str) -> Machine {
        self.configure(from, to);
        self
    }

    /// The program on this machine.
    pub fn gate(&self, arguments: impl Arguments) -> Command {
        let path = std::env::var("PATH").unwrap();
        let libraries = std::env::join_paths(&self.libraries).unwrap();
        let mut command = self.project.gate_of(arguments);
        command
            .env("PATH", format!("{}:{path}", self.path("host").display()))
            .env("LD_LIBRARY_PATH", libraries)
            .env("ARGV", self.path("argv"))
            .env("JOURNAL", self.path("journal"))
            .env("HOME", self.path("home"))
            // The lock on the GPU is one of this machine's alone.
            .env("TMPDIR", self.path("tmp"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env_remove("CUDA_HOME")
            .env_remove("CUDA_PATH")
            .env_remove("CUDA_VISIBLE_DEVICES")
            .envs(self.env.iter().cloned());
        command
    }

    pub fn run(&self, arguments: impl Arguments) -> Ran {
        Ran::by(&mut self.gate(arguments))
    }

    /// `check` in its JSON form.
    #[track_caller]
    pub fn check(&self, arguments: &[&str], code: i32) -> Report {
        let all = [&["check", "--format", "json"], arguments].concat();
        self.run(&all).exits(code).json()
    }

    /// A repository that does not track what stand-ins and runs leave, nor these paths, a line each.
    pub fn without(&self, more: &str) {
        self.git("init --quiet");
        let ours = "/.sparsek-gate/\n/journal*\n/reports\n/argv\n/tmp/\n/home/\n";
        self.write(".git/info/exclude", format!("{ours}{more}"));
    }

    /// Profiles all variants, and locks what was measured.
    #[track_caller]
    pub fn lock_measured(&self) {
        self.run("profile").exits(0);
        let lock = ["baseline", "--lock", "--reason", "first", "--who", "tester"];
        self.run(&lock).exits(0);
    }

    /// The argv of every call of ncu.
    pub fn ncu_calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("argv")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The sources that were compiled.
    pub fn compiled(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Deref for Machine {
    type Target = Project;

    fn deref(&self) -> &Project {
        &self.project
    }
}

/// Every variant of an outcome was measured.
#[track_caller]
pub fn all_measured(outcome: &Json, variants: usize) {
    let found = outcome["variants"].as_array().unwrap();
    assert_eq!(found.len(), variants);
    for variant in found {
        let comparisons = variant["comparisons"].as_array().unwrap();
        let judged = comparisons.iter().filter(|it| it["verdict"] == "pass");
        assert!(judged.count() > 0, "{variant:#}");
    }
}
