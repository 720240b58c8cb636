//! Machine code is read where it is: in programs, shared libraries, fatbins and cubins that this
//! tool did not compile.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, Project, are_here, repository};
use serde_json::Value as Json;
use sparsek_gate::binary::{BinaryError, LaunchShape, ONLY_REPORTED, kernels_of, machine_code};

fn data(name: &str) -> Vec<u8> {
    fs::read(repository().join("tests/data/static").join(name)).unwrap()
}

/// The cubins of a file for a target.
fn cubins(file: &[u8], arch: &str) -> Result<Vec<Vec<u8>>, BinaryError> {
    let found = machine_code(file, arch)?;
    let cubins = found.iter().map(|code| Ok(code.cubin()?.into_owned()));
    cubins.collect()
}

#[track_caller]
fn fails(file: &[u8], arch: &str, words: &str) {
    let message = cubins(file, arch).unwrap_err().to_string();
    assert!(message.contains(words), "{words:?} is not in {message:?}");
}

/// Files with `kernel.cubin` for sm_90a beside another cubin for sm_80.
const FILES: [&str; 3] = ["kernel_zstd.fatbin", "kernel_lz4.fatbin", "host.o"];

#[test]
fn the_code_of_each_target_comes_out_of_every_container() {
    let expected = data("kernel.cubin");
    for name in FILES {
        let file = data(name);
        let found = cubins(&file, "sm_90a").unwrap();
        assert_eq!(found, std::slice::from_ref(&expected), "{name}");
        let other = cubins(&file, "sm_80").unwrap();
        assert_eq!(other.len(), 1, "{name}");
        assert_ne!(other[0], expected, "{name}");
    }
    assert_eq!(cubins(&expected, "sm_90a").unwrap(), [expected]);
}

#[test]
fn code_for_the_same_chip_without_the_suffix_is_used_and_code_for_another_is_not() {
    let expected = data("kernel.cubin");
    for name in FILES {
        let file = data(name);
        let found = cubins(&file, "sm_90").unwrap();
        assert_eq!(found, std::slice::from_ref(&expected), "{name}");
        fails(&file, "sm_100a", "no machine code for sm_100a");
        fails(&file, "sm_9", "only for sm_80, sm_90a");
    }
    fails(&expected, "sm_80", "only for sm_90");
}

#[test]
fn what_has_no_machine_code_is_an_error_in_words() {
    fails(
        b"#!/bin/sh\n", "sm_90a", "no ELF file, no fatbin and no cubin",
    );
    fails(b"", "sm_90a", "no ELF file");
    fails(b"\x7fELF", "sm_90a", "the ELF file cannot be read");
    let program = fs::read(std::env::current_exe().unwrap()).unwrap();
    fails(&program, "sm_90a", "no machine code of a GPU");
}

#[test]
fn a_file_that_is_cut_or_changed_is_an_error_or_another_file_and_never_a_panic() {
    for name in FILES {
        let whole = data(name);
        for length in 0..whole.len() {
            assert!(
                cubins(&whole[..length], "sm_90a").is_err(),
                "{name} {length}"
            );
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            for cubin in cubins(&bytes, "sm_90a").unwrap_or_default() {
                let _ = kernels_of(&cubin, "sm_90a");
            }
        }
    }
}

/// The fatbin with other numbers in the header of its first entry.
fn edited(name: &str, at: usize, number: &[u8]) -> Vec<u8> {
    const FIRST_ENTRY: usize = 16;
    let mut bytes = data(name);
    bytes[FIRST_ENTRY + at..][..number.len()].copy_from_slice(number);
    bytes
}

#[test]
fn sizes_that_a_container_only_states_cost_nothing() {
    for name in ["kernel_zstd.fatbin", "kernel_lz4.fatbin"] {
        for size in [u64::MAX, 1 << 40, 17 << 20] {
            let whole = size.to_le_bytes();
            fails(
                &edited(name, 56, &whole),
                "sm_90a",
                "more than this file may",
            );
            fails(&edited(name, 8, &whole), "sm_90a", "an entry is cut short");
        }
        let compressed = u32::MAX.to_le_bytes();
        fails(
            &edited(name, 16, &compressed),
            "sm_90a",
            "entry is cut short",
        );
        // Another size than that of the code.
        for size in [4079_u64, 4081, 0] {
            let file = edited(name, 56, &size.to_le_bytes());
            fails(&file, "sm_90a", "cannot be decompressed");
        }
    }
    // A frame that asks for a window of 64 MB: the frame's descriptor is behind its magic number.
    let mut frame = data("kernel_zstd.fatbin");
    frame[16 + 64 + 4..][..2].copy_from_slice(&[0, 0x80]);
    fails(&frame, "sm_90a", "window");
}

#[test]
fn an_entry_that_is_compressed_in_an_unknown_way_is_refused() {
    let both = 0x10_a011_u64.to_le_bytes();
    let file = edited("kernel_zstd.fatbin", 40, &both);
    fails(&file, "sm_90a", "compressed in an unknown way");
}

#[test]
fn what_a_cubin_says_of_its_kernel_is_known_and_what_only_a_compiler_says_is_not() {
    let kernels = kernels_of(&data("kernel.cubin"), "sm_90a").unwrap();
    let kernel = &kernels["_Z6kernelPf"];
    let metrics = kernel.metrics("sm_90a", LaunchShape::default(), &[]);
    let metrics: BTreeMap<_, _> = metrics
        .into_iter()
        .map(|(metric, value)| (metric.name, value))
        .collect();
    for (name, value) in [
        ("registers", Some(10.0)),
        ("static_shared_bytes", Some(1024.0)),
        ("driver_shared_bytes", Some(1024.0)),
        ("barriers", Some(1.0)),
        ("stack_bytes", Some(0.0)),
        ("spill_bytes", None),
        ("spill_load_bytes", None),
        ("spill_store_bytes", None),
        ("performance_warnings", None),
        ("tensor_instructions", None),
    ] {
        assert_eq!(metrics[name], value, "{name}");
    }
}

/// Two kernels. The second needs many registers.
const SOURCE: &str = r"
__global__ void light(float* x) {
  __shared__ float staged[64];
  staged[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = staged[63 - threadIdx.x];
}
__global__ void heavy(float* x, int n) {
  float a[40];
  for (int i = 0; i < 40; i++) a[i] = x[i * n + threadIdx.x];
  for (int j = 0; j < n; j++)
    for (int i = 0; i < 40; i++) a[i] = a[i] * a[(i * 7 + 3) % 40] + 1;
  for (int i = 0; i < 40; i++) x[i * n + threadIdx.x] = a[i];
}
int main() { light<<<1, 64>>>(nullptr); heavy<<<1, 64>>>(nullptr, 8); return 0; }
";
const BOTH: [&str; 4] = [
    "-gencode",
    "arch=compute_90a,code=sm_90a",
    "-gencode",
    "arch=compute_80,code=[sm_80,compute_80]",
];

pub fn run(folder: &Path, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {log}");
    log
}

/// Links host code. The CUDA runtime, which the toolchain of the tests lacks, is left out.
fn link(folder: &Path, options: &[&str]) {
    let runtime = ["-Wl,--unresolved-symbols=ignore-all"];
    run(folder, "g++", &[&runtime[..], options].concat());
}

/// What `cuobjdump` extracts of a file for sm_90a, by content.
fn extracted(file: &Path) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    run(
        folder.path(),
        "cuobjdump",
        &["-xelf", "sm_90a", file.to_str().unwrap()],
    );
    let mut found: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    found.sort();
    found.iter().map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn every_file_that_nvcc_makes_gives_what_cuobjdump_extracts() {
    if !are_here(&["nvcc", "cuobjdump", "g++"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("k.cu"), SOURCE).unwrap();
    let compiled = |options: &[&str]| run(folder, "nvcc", &[options, &["k.cu"]].concat());
    let mut files = Vec::new();
    for mode in ["size", "speed"] {
        let object = format!("{mode}.o");
        let modes = ["-Xfatbin", "-compress-all", "-compress-mode", mode];
        compiled(&[&BOTH[..], &modes, &["-c", "-o", &object]].concat());
        link(folder, &["-o", mode, &object]);
        files.push(mode);
    }
    compiled(&[&BOTH[..], &["--no-compress", "-fatbin", "-o", "k.fatbin"]].concat());
    compiled(&["-arch=sm_90a", "-Xcompiler", "-fPIC", "-c", "-o", "pic.o"]);
    link(folder, &["-shared", "-o", "libk.so", "pic.o"]);
    // Linked by the device linker: only what it linked runs.
    compiled(&["-arch=sm_90a", "-rdc=true", "-c", "-o", "rdc.o"]);
    run(
        folder,
        "nvcc",
        &["-arch=sm_90a", "-dlink", "-o", "dlink.o", "rdc.o"],
    );
    link(folder, &["-o", "rdc", "rdc.o", "dlink.o"]);
    files.extend(["k.fatbin", "libk.so", "rdc", "rdc.o"]);
    for name in files {
        let file = fs::read(folder.join(name)).unwrap();
        let own = cubins(&file, "sm_90a").unwrap();
        assert_eq!(own.len(), 1, "{name}");
        assert!(own == extracted(&folder.join(name)), "{name}");
        let kernels = kernels_of(&own[0], "sm_90a").unwrap();
        let names: Vec<&String> = kernels.keys().collect();
        assert_eq!(names, ["_Z5heavyPfi", "_Z5lightPf"], "{name}");
    }
}

/// A project with one variant, `s/v`, whose program is made elsewhere.
fn project(keys: &str) -> Project {
    let project = Project::empty();
    let config = format!(
        "[toolchain]\narch = \"sm_90a\"\n\n[metric.duration]\ncounter = \"gpu__time_duration.sum\"\ndirection = \"lower\"\n\
         tolerance = '3 %'\n\n\
         [static.tensor_instructions]\nlevel = \"record\"\n\
         [static.wgmma_instructions]\nlevel = \"record\"\n\
         [static.registers]\nlevel = \"deny\"\n\n\
         [suite.s.variant.v]\nrun = [\"sh\", \"bench.sh\"]\n{keys}\n"
    );
    project.write("config.toml", config);
    project.write("bench.sh", "exec build/bench\n");
    project
}

const LOCK: [&str; 7] = [
    "baseline", "--lock", "--static", "--reason", "first", "--who", "tester",
];

#[track_caller]
fn checked(project: &Project, code: i32) -> common::Report {
    project
        .run("check --static --format json")
        .exits(code)
        .json()
}

#[track_caller]
fn refused(project: &Project, code: i32, finding: &str, words: &str) {
    let ran = project.run("build --format json").exits(code);
    let json: Json = ran.json().0;
    let findings = json["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0]["code"], finding);
    let message = findings[0]["message"].as_str().unwrap();
    assert!(message.contains(words), "{words:?} is not in {message:?}");
}

#[test]
fn a_program_that_stands_ready_is_locked_and_checked_without_a_gpu_or_a_compiler() {
    let project = project("program = \"build/bench\"");
    project.write("build/bench", data("host.o"));
    project.run("build").exits(0);
    project.run(&LOCK).exits(0);
    let report = checked(&project, 0);
    let comparisons = report.0["variants"][0]["comparisons"].as_array().unwrap();
    let gated: Vec<&str> = comparisons
        .iter()
        .filter(|row| !row["verdict"].is_null())
        .map(|row| row["metric"].as_str().unwrap())
        .collect();
    assert_eq!(gated, ["registers", "stack_bytes"]);
    // What only a compiler reports is not there, and is not 0.
    let absent = |row: &Json| ONLY_REPORTED.contains(&row["metric"].as_str().unwrap());
    assert!(!comparisons.iter().any(absent), "{comparisons:?}");

    let unknown = "spilled bytes and the compiler's warnings are not known";
    project.run("check --static").ends(0, unknown);

    // Another program, with more registers for this target: the kernel of sm_80 has fewer.
    let mut other = data("kernel_zstd.fatbin");
    other[16 + 28] = 80;
    other[16 + 64 + 1016 + 28] = 90;
    project.write("build/bench", &other);
    checked(&project, 0);
    project.run("build").exits(0);
    project.run(&LOCK).exits(0);
    project.write("build/bench", data("host.o"));
    let report = checked(&project, 1);
    report.denies_only("regressed", &["`registers` of kernel: 8 → 10"]);
}

#[test]
fn a_program_whose_command_does_not_run_here_is_named_where_it_may_be_old() {
    let project = project("build = [\"true\"]\nprogram = \"build/bench\"");
    project.write("build/bench", data("host.o"));
    project.run("build").exits(0);
    project.run(&LOCK).exits(0);
    project
        .run("check --static")
        .ends(
            0,
            "it is not known whether `build/bench` is older than its sources",
        )
        .says("name these in `inputs`, and build it before: sparsek-gate build s/v");
    let keys = "build = [\"true\"]";
    project.configure(keys, &format!("{keys}\ninputs = [\"bench.sh\"]"));
    project.run("build").exits(0);
    let report = checked(&project, 0);
    assert_eq!(report.warned(), Vec::<String>::new());
    // The command may be another since.
    let config = fs::File::open(project.path("config.toml")).unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(9);
    config.set_modified(later).unwrap();
    let words = "`config.toml` changed after `build/bench` was built, which may be old code";
    project.run("check --static").ends(0, words);
    assert_eq!(checked(&project, 0).warned(), ["profile-stale"]);
}

#[test]
fn what_cannot_be_read_is_a_finding_that_names_the_file() {
    let bench = project("program = \"build/bench\"");
    let words = "the machine code of `build/bench` cannot be read";
    refused(&bench, 5, "build-failed", words);
    bench.write("build/bench", "#!/bin/sh\n");
    refused(
        &bench, 5, "build-failed", "no ELF file, no fatbin and no cubin",
    );
    let whole = data("kernel_lz4.fatbin");
    bench.write("build/bench", &whole[..1000]);
    refused(&bench, 5, "build-failed", "a container is cut short");
    bench.write("build/bench", data("host.o"));
    let own = "[static.wgmma_instructions]\nlevel = \"record\"\n";
    bench.configure(own, "");
    bench.configure("sm_90a", "sm_86");
    let words = "no machine code for sm_86, only for sm_80, sm_90a";
    refused(&bench, 5, "build-failed", words);

    let filtered = project("program = \"build/bench\"\nkernels = \"gemm\"");
    filtered.write("build/bench", data("host.o"));
    let words = "no kernel of `build/bench` matches `kernels`; among its kernels: `kernel`";
    refused(&filtered, 5, "kernel-missing", words);
}

#[test]
fn two_different_kernels_of_one_name_are_refused_and_two_copies_are_one() {
    let twice = project("program = \"build/bench\"\nlibraries = [\"x.cubin\"]");
    twice.write("build/bench", data("host.o"));
    twice.write("x.cubin", data("kernel.cubin"));
    twice.run("build").exits(0);
    twice.write("x.cubin", data("no_shared.cubin"));
    refused(
        &twice, 5, "build-failed", "two different kernels with the name",
    );
}

#[test]
fn code_of_another_compiler_is_not_compared() {
    let cubin = project("libraries = [\"x.cubin\"]");
    let code = data("kernel.cubin");
    cubin.write("x.cubin", &code);
    cubin.run("build").exits(0);
    cubin.run(&LOCK).exits(0);
    let version = b", V13.0.";
    let at = code.windows(8).position(|bytes| bytes == version).unwrap();
    let mut other = code;
    other[at + 6] = b'1';
    cubin.write("x.cubin", &other);
    let report = checked(&cubin, 4);
    assert_eq!(report.denied(), ["not-comparable"]);
    let message = report.message("not-comparable");
    let words = "the compiler was V13.0.88, is V13.1.88";
    assert!(message.contains(words), "{message}");
}

#[test]
fn a_static_check_runs_no_build_command_and_reads_what_the_command_made() {
    let keys = "build = [\"sh\", \"make.sh\"]\nprogram = \"build/bench\"";
    let project = project(keys);
    project.write("host.o", data("host.o"));
    let make = "echo made >>made\nmkdir -p build\ncp host.o build/bench\n";
    project.write("make.sh", make);
    project.write(".gitignore", "*.json\n");
    project.git("init --quiet");
    project.run("build").exits(0);
    project
        .run(&LOCK)
        .ends(0, "git ignores files of the baselines");
    assert_eq!(project.read("made"), "made\n");
    checked(&project, 0);
    assert_eq!(project.read("made"), "made\n");
    fs::remove_file(project.path("build/bench")).unwrap();
    let report = checked(&project, 5);
    assert!(report.denies("build-failed"));
    report.tells_all("build-failed", &["`build/bench`"]);
    let check = ["check", "--static"];
    project.run(&check).ends(5, "next: sparsek-gate build ");
    assert_eq!(project.read("made"), "made\n");
}

#[test]
fn fewer_registers_that_spill_and_more_registers_fail_the_static_check_of_a_program() {
    if !are_here(&["nvcc", "nvdisasm", "g++"]) {
        return;
    }
    let project = project("program = \"build/bench\"\nkernels = \"heavy\"\nexpect = [\"heavy\"]");
    let config = project.read("config.toml");
    project.write(
        "config.toml",
        config.replace("level = \"record\"", "max = 1e9"),
    );
    project.write("k.cu", SOURCE);
    let build = |limit: &str| {
        let folder = project.path("");
        fs::create_dir_all(project.path("build")).unwrap();
        let options = ["-maxrregcount", limit, "-c", "-o", "k.o", "k.cu"];
        run(&folder, "nvcc", &[&BOTH[..], &options].concat());
        link(&folder, &["-o", "build/bench", "k.o"]);
    };
    build("64");
    project.run("build").exits(0);
    project.run(&LOCK).exits(0);
    checked(&project, 0);
    build("128");
    let report = checked(&project, 1);
    report.denies_only("regressed", &["`registers` of heavy: 64 → "]);
    build("24");
    let report = checked(&project, 1);
    assert_eq!(report.denied(), ["regressed"]);
    let message = report.message("regressed");
    assert!(message.contains("`stack_bytes` of heavy: "), "{message}");
    assert!(message.contains("STL"), "{message}");
}
