//! Every target of nvcc, from Turing to Blackwell: what its kernels have, and how many blocks fit.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::common::{self, Project, aloud, are_here, repository};
use crate::machine_code::run;
use sparsek_gate::binary::{
    CompiledKernel, LaunchShape, Limits, ResourceUse, census, kernels_of, machine_code, spills,
};

/// All targets of nvcc 13.0. One call of nvcc compiles no chip for two kinds of them.
const TARGETS: [&[&str]; 3] = [
    &[
        "75", "80", "86", "87", "88", "89", "90", "100", "103", "110", "120", "121",
    ],
    &["90a", "100a", "103a", "110a", "120a", "121a"],
    &["100f", "103f", "110f", "120f", "121f"],
];

/// `tests/data/static/generations.cu` for all targets: the fatbin of each, and what ptxas printed.
fn compiled() -> Vec<(&'static str, Vec<u8>, String)> {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let source = repository().join("tests/data/static/generations.cu");
    let compile = |targets: &'static [&'static str]| {
        let name = format!("{}.fatbin", targets[0]);
        let mut arguments: Vec<String> = targets
            .iter()
            .map(|target| format!("-gencode=arch=compute_{target},code=sm_{target}"))
            .collect();
        let options = ["--threads=2", "-Xptxas", "-v", "-fatbin", "-o", &name];
        arguments.extend(options.map(str::to_owned));
        arguments.push(source.display().to_string());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let log = run(folder, "nvcc", &arguments);
        let fatbin = fs::read(folder.join(name)).unwrap();
        let of = |target| (target, fatbin.clone(), log.clone());
        targets.iter().copied().map(of).collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let compilations = TARGETS.map(|targets| scope.spawn(move || compile(targets)));
        let finished = compilations.map(|one| one.join().unwrap());
        finished.into_iter().flatten().collect()
    })
}

/// Of chips with the same instructions one is disassembled, with each suffix once: that takes longest.
const DISASSEMBLED: [&str; 9] = [
    "75", "86", "89", "90a", "100f", "103a", "110a", "120", "121a",
];

/// The kernels of a cubin with their instructions.
fn kernels(cubin: &[u8], arch: &str) -> BTreeMap<String, CompiledKernel> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), cubin).unwrap();
    let json = Command::new("nvdisasm")
        .arg("-json")
        .arg(file.path())
        .output()
        .unwrap();
    let counted = census(&json.stdout).unwrap();
    let mut kernels = kernels_of(cubin, arch).unwrap();
    for (name, kernel) in &mut kernels {
        kernel.opcodes = Some(counted[name].clone());
    }
    kernels
}

#[test]
fn what_only_one_generation_has_is_counted_for_every_target_that_nvcc_knows() {
    if !are_here(&["nvcc", "nvdisasm", "g++"]) {
        return;
    }
    for (target, fatbin, log) in compiled() {
        let arch = format!("sm_{target}");
        let code = machine_code(&fatbin, &arch).unwrap();
        assert_eq!(code.len(), 1, "{arch}");
        assert_eq!(code[0].target, arch);
        let cubin = code[0].cubin().unwrap();
        let counted = DISASSEMBLED.contains(&target);
        let kernels = match counted {
            true => kernels(&cubin, &arch),
            false => kernels_of(&cubin, &arch).unwrap(),
        };
        assert!(
            kernels.keys().eq(spills(&log, &arch).keys()),
            "{arch}: {log}"
        );
        for (name, kernel) in &kernels {
            let begin = format!("'{name}' for '{arch}'");
            let mut reported = log.split("Compiling entry function ");
            let reported = reported.find(|it| it.starts_with(&begin)).unwrap();
            let of = &kernel.resources;
            let mut stated = vec![
                format!(" {} bytes stack frame,", of.stack_bytes),
                format!(
                    "Used {} registers, used {} barriers",
                    of.registers, of.barriers
                ),
            ];
            stated
                .extend((of.shared_bytes > 0).then(|| format!(", {} bytes smem", of.shared_bytes)));
            assert!(
                stated.iter().all(|it| reported.contains(it)),
                "{reported}: {kernel:?}"
            );
        }

        let value = |kernel: &str, name: &str| {
            let metrics = kernels
                .get(kernel)?
                .metrics(&arch, LaunchShape::default(), &[]);
            let found = metrics.into_iter().find(|(metric, _)| metric.name == name);
            found.and_then(|(_, value)| value)
        };
        let number: u32 = target.trim_end_matches(['a', 'f']).parse().unwrap();
        let suffixed = target.ends_with(['a', 'f']);
        let datacenter = (100..120).contains(&number);
        let (hopper, tensor_memory) = (number == 90 && suffixed, datacenter && suffixed);
        let since = |first: u32, count: f64| if number >= first { count } else { 0.0 };
        let of_ada = f64::from(number == 89 || number >= 120);
        let products = 1.0 + since(80, 2.0) + of_ada;
        let copied = since(80, 1.0) - since(90, 1.0);
        let given_away = (hopper || tensor_memory).then_some(2.0);
        let four = tensor_memory.then_some(4.0);
        let own = |generation: bool| generation.then_some(0.0);
        for (kernel, name, expected) in [
            ("products", "mma_instructions", Some(products)),
            ("products", "tensor_instructions", Some(products)),
            ("products", "wgmma_instructions", own(number == 90)),
            ("products", "tcgen05_instructions", own(datacenter)),
            ("products", "cluster_blocks", Some(1.0)),
            ("products", "setmaxnreg_instructions", Some(0.0)),
            ("products", "spill_shared_bytes", Some(0.0)),
            ("copies", "async_copy_instructions", Some(copied)),
            ("copies", "tma_instructions", Some(since(90, 1.0))),
            ("copies", "driver_shared_bytes", Some(since(80, 1024.0))),
            ("cluster", "cluster_blocks", (number >= 90).then_some(8.0)),
            ("roles", "setmaxnreg_instructions", given_away),
            ("warp_group", "wgmma_instructions", hopper.then_some(1.0)),
            ("warp_group", "tensor_instructions", hopper.then_some(1.0)),
            ("tensor_memory", "tcgen05_instructions", four),
            ("tensor_memory", "tensor_instructions", four),
        ] {
            let expected = expected.filter(|_| counted || !name.ends_with("_instructions"));
            let found = value(kernel, name);
            assert_eq!(found, expected, "{name} of {kernel} for {arch}");
        }
        // A whole number of registers of each of its 128 threads, beside the array of its own.
        let spilled = value("spills", "spill_shared_bytes").unwrap();
        assert!(spilled > 0.0 && spilled % (4.0 * 128.0) == 0.0, "{arch}");
        let whole = value("spills", "static_shared_bytes").unwrap();
        assert!(whole >= spilled + 1024.0, "{arch}: {whole} {spilled}");
    }
}

#[test]
fn a_program_of_each_generation_is_locked_and_checked_and_the_loss_of_its_tensor_cores_fails() {
    if !are_here(&["nvcc", "nvdisasm", "g++"]) {
        return;
    }
    let source = fs::read_to_string(repository().join("tests/data/static/generations.cu")).unwrap();
    for (arch, kernel, own) in [
        ("sm_75", "products", None),
        ("sm_103f", "tensor_memory", Some("tcgen05_instructions")),
    ] {
        let project = Project::empty();
        let config = format!(
            "[toolchain]\narch = \"{arch}\"\n\n[metric.duration]\ncounter = \"gpu__time_duration.sum\"\n\
             direction = \"lower\"\ntolerance = '3 %'\n\n\
             [suite.s.variant.v]\nsource = \"k.cu\"\nkernels = \"{kernel}\"\n"
        );
        project.write("config.toml", config);
        project.write("k.cu", &source);
        project.run("build").exits(0);
        let lock = common::words("baseline --lock --static --reason first --who tester");
        project.run(&lock).exits(0);
        let check = ["check", "--static", "--format", "json"];
        project.run(&check).exits(0);
        let Some(own) = own else { continue };
        project.write("k.cu", format!("#define OF_WARPS\n{source}"));
        let report = project.run(&check).exits(4).json();
        let findings = report.findings("deny");
        let types = format!("of {kernel}: fp16/bf16/tf32, fp8/fp6/fp4 → fp16/bf16/tf32;");
        report.tells_all("work-changed", &[&types]);
        let lost = format!("`{own}` of {kernel}: ");
        let names_it =
            |finding: &&serde_json::Value| finding["message"].as_str().unwrap().starts_with(&lost);
        assert!(findings.iter().any(names_it), "{findings:?}");
    }
}

#[test]
fn a_cubin_of_an_older_compiler_for_volta_states_what_its_ptxas_reported() {
    let cubin = fs::read(repository().join("tests/data/static/volta.cubin")).unwrap();
    let code = machine_code(&cubin, "sm_70").unwrap();
    assert_eq!(code[0].target, "sm_70");
    let kernel = &kernels_of(&cubin, "sm_70").unwrap()["volta"];
    let launch = LaunchShape {
        dynamic_shared_bytes: Some(0),
        threads: Some(128),
    };
    let metrics = kernel.metrics("sm_70", launch, &[]);
    let value = |name| {
        metrics
            .iter()
            .find(|(metric, _)| metric.name == name)
            .unwrap()
            .1
    };
    for (name, expected) in [
        ("registers", Some(22.0)),
        ("barriers", Some(5.0)),
        ("static_shared_bytes", Some(1024.0)),
        ("driver_shared_bytes", Some(0.0)),
        // 64 warps, and registers for 85.
        ("occupancy", Some(100.0)),
        // nvdisasm of CUDA 13.1 and later does not read it.
        ("tensor_instructions", None),
    ] {
        assert_eq!(value(name), expected, "{name}");
    }
}

/// The include folder of the CUDA toolkit that nvcc belongs to.
fn occupancy_header() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let nvcc = std::env::split_paths(&paths).map(|folder| folder.join("nvcc"));
    let nvcc = nvcc.filter_map(|path| path.canonicalize().ok());
    let mut folders = nvcc.filter_map(|path| Some(path.parent()?.parent()?.join("include")));
    folders.find(|folder| folder.join("cuda_occupancy.h").is_file())
}

/// Reads lines of a chip and a block, and prints the blocks that fit by each limit, and at all.
const BY_NVIDIA: &str = r#"
#include <cstdio>
#include <cuda_occupancy.h>
int main() {
  int major, minor, warps, all, reserved, threads, registers, shared, barriers;
  while (scanf("%d %d %d %d %d %d %d %d %d", &major, &minor, &warps, &all, &reserved, &threads, &registers, &shared, &barriers) == 9) {
    cudaOccDeviceProp chip;
    chip.computeMajor = major;
    chip.computeMinor = minor;
    chip.maxThreadsPerBlock = 1024;
    chip.maxThreadsPerMultiprocessor = warps * 32;
    chip.regsPerBlock = chip.regsPerMultiprocessor = 65536;
    chip.warpSize = 32;
    chip.sharedMemPerBlock = 48 << 10;
    chip.sharedMemPerMultiprocessor = all;
    chip.sharedMemPerBlockOptin = all - reserved;
    chip.reservedSharedMemPerBlock = reserved;
    chip.numSms = 1;
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = 1024;
    kernel.numRegs = registers;
    kernel.sharedSizeBytes = 0;
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = shared;
    kernel.numBlockBarriers = barriers;
    kernel.virtualResourceCount = 0;
    cudaOccDeviceState state;
    cudaOccResult found;
    int status = cudaOccMaxActiveBlocksPerMultiprocessor(&found, &chip, &kernel, &state, threads, shared);
    if (status) { printf("status %d\n", status); continue; }
    printf("%d %d %d %d %d\n", found.blockLimitBlocks, found.blockLimitWarps, found.blockLimitRegs,
           found.blockLimitSharedMem, found.activeBlocksPerMultiprocessor);
  }
}
"#;

/// The targets without suffix, and those of Volta, which only older compilers know.
fn chips() -> impl Iterator<Item = (String, Limits)> {
    let known = ["70", "72"].iter().chain(TARGETS[0]);
    known.map(|chip| {
        let limits = Limits::of_arch(&format!("sm_{chip}")).unwrap();
        ((*chip).to_owned(), limits)
    })
}

#[test]
fn as_many_blocks_fit_on_every_chip_as_by_nvidias_own_computation() {
    if !are_here(&["nvcc", "g++"]) {
        return;
    }
    let Some(include) = occupancy_header() else {
        aloud(
            "SKIPPED: occupancy, the toolkit of this nvcc has no cuda_occupancy.h; \
             `ci/install-cuda.sh target/cuda && source target/cuda/env.sh` installs one",
        );
        assert!(std::env::var_os("CI").is_none(), "CI has the header");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("by_nvidia.cpp"), BY_NVIDIA).unwrap();
    let include = format!("-I{}", include.display());
    let options = [&include, "by_nvidia.cpp", "-o", "by_nvidia"];
    run(folder, "g++", &options);

    let mut asked = String::new();
    let mut own = String::new();
    for (chip, limits) in chips() {
        let (major, minor) = chip.split_at(chip.len() - 1);
        let Limits {
            warps,
            shared_bytes: all,
            driver_shared_bytes: reserved,
            ..
        } = limits;
        for threads in [1, 32, 33, 64, 96, 128, 160, 256, 384, 512, 768, 1024] {
            for registers in [16, 24, 32, 40, 64, 72, 96, 128, 168, 200, 255] {
                let sizes = [
                    0, 1, 128, 129, 1024, 4000, 8192, 20_000, 49_152, 60_000, 99_000, 150_000,
                    232_448,
                ];
                for shared in sizes.into_iter().chain([all - reserved]) {
                    for barriers in [0, 1, 2, 3, 16] {
                        writeln!(asked, "{major} {minor} {warps} {all} {reserved} {threads} {registers} {shared} {barriers}").unwrap();
                        let found = limits.occupancy(ResourceUse {
                            threads,
                            registers,
                            shared_bytes: shared + reserved,
                            barriers,
                        });
                        let found = found.unwrap();
                        let resident = found.percent * f64::from(warps) / 100.0;
                        let blocks = resident.round() as u32 / threads.div_ceil(32);
                        let by = [found.limit_blocks, found.limit_warps, found.limit_registers];
                        let [by_blocks, by_warps, by_registers] = by;
                        let by_shared = found.limit_shared_mem;
                        writeln!(
                            own,
                            "{by_blocks} {by_warps} {by_registers} {by_shared} {blocks}"
                        )
                        .unwrap();
                    }
                }
            }
        }
    }
    fs::write(folder.join("asked"), &asked).unwrap();
    let printed = Command::new(folder.join("by_nvidia"))
        .stdin(fs::File::open(folder.join("asked")).unwrap())
        .output()
        .unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert_eq!(printed.lines().count(), asked.lines().count());
    for ((asked, own), theirs) in asked.lines().zip(own.lines()).zip(printed.lines()) {
        // Without shared memory NVIDIA states no limit, and here it is that of the blocks.
        let theirs = theirs.replace(
            " 2147483647 ",
            &format!(" {} ", own.split(' ').next().unwrap()),
        );
        assert_eq!(own, theirs, "{asked}");
    }
}

#[test]
fn ptxas_accepts_as_many_warps_and_blocks_on_every_chip_as_are_known_here_and_no_more() {
    if !are_here(&["ptxas"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // ptxas of CUDA 13 does not know Volta.
    for (chip, limits) in chips().skip(2) {
        let quarter = limits.warps * 32 / 4;
        let mut text = format!(".version 9.0\n.target sm_{chip}\n.address_size 64\n");
        for (name, threads, blocks) in [
            ("blocks", 32, limits.blocks),
            ("more_blocks", 32, limits.blocks + 1),
            ("warps", quarter, 4),
            ("more_warps", quarter + 32, 4),
        ] {
            writeln!(
                text,
                ".visible .entry {name}()\n.maxntid {threads}\n.minnctapersm {blocks}\n{{ ret; }}"
            )
            .unwrap();
        }
        fs::write(folder.join("k.ptx"), &text).unwrap();
        let target = format!("-arch=sm_{chip}");
        let log = run(folder, "ptxas", &[&target, "k.ptx", "-o", "k.cubin"]);
        let refused: Vec<&str> = log
            .lines()
            .filter(|line| line.contains("minnctapersm") && line.contains("out of range"))
            .filter_map(|line| line.split("for entry ").nth(1)?.split(' ').next())
            .collect();
        let mut refused = refused;
        refused.sort_unstable();
        assert_eq!(refused, ["more_blocks", "more_warps"], "sm_{chip}: {log}");
    }
}
