//! `compare` of machine code: without a GPU, without a configuration.

use crate::common::{Project, are_here, repository};
use std::fs;
use std::path::PathBuf;

const KERNELS: &str = r#"
__global__ void __launch_bounds__(256) scale(float *x, float a) {
#ifdef FIRST
    x[threadIdx.x] *= a;
#else
    // All of them are live at once.
    float all[64], sum = a;
    for (int i = 0; i < 64; ++i)
        all[i] = x[threadIdx.x + i];
    for (int i = 0; i < 64; ++i)
        sum = sum * all[i] + 1;
    for (int i = 0; i < 64; ++i)
        sum = sum * all[i] - 1;
    x[threadIdx.x] = sum;
#endif
}
#ifdef FIRST
__global__ void first(float *x) { x[threadIdx.x] += 1; }
#else
__global__ void second(float *x) { x[threadIdx.x] += 2; }
#endif
"#;

/// Builds a form of the kernels by hand.
fn nvcc(project: &Project, arguments: &str) {
    let ran = std::process::Command::new("nvcc")
        .args(arguments.split(' '))
        .current_dir(project.path(""))
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

#[test]
fn libraries_objects_and_cubins_are_compared_by_their_code() {
    if !are_here(&["nvcc", "nvdisasm", "g++"]) {
        return;
    }
    let project = Project::empty();
    project.write("k.cu", KERNELS);
    let (before, now) = ("-DFIRST", "-DSECOND");
    for (form, file) in [
        ("-arch=sm_90a -shared -Xcompiler -fPIC", "libk.so"),
        ("-arch=sm_90a -c", "k.o"),
        ("-arch=sm_90a -cubin", "k.cubin"),
        (
            "-gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90 -fatbin",
            "k.fatbin",
        ),
    ] {
        for (folder, defines) in [("old", before), ("new", now)] {
            fs::create_dir_all(project.path(folder)).unwrap();
            nvcc(
                &project,
                &format!("{form} {defines} -o {folder}/{file} k.cu"),
            );
        }
        let (old, new) = (format!("old/{file}"), format!("new/{file}"));
        let compare = |one: &str, other: &str| project.run(&["compare", one, other]);
        let occupancy = " scale occupancy (static) 100.00 % → ";
        compare(&old, &new)
            .ends(1, "worse: sm_")
            .says(if file == "k.fatbin" {
                "2 kernels gone, 2 kernels new"
            } else {
                "1 kernel gone, 1 kernel new"
            })
            .says(occupancy)
            .says("  new: 24 instructions")
            .says("  gone: 24 instructions")
            .says("`registers` of scale: ");
        compare(&new, &old).ends(0, "PASS");
        compare(&old, &old).ends(0, "PASS");
        let report = project
            .run(&["compare", &old, &new, "--format", "json"])
            .json();
        let targets = report.0["variants"].as_array().unwrap().len();
        assert_eq!(targets, if file == "k.fatbin" { 2 } else { 1 });
    }
    project
        .run("compare old/libk.so new/libk.so --format markdown")
        .ends(1, "    kernel ");
    nvcc(
        &project,
        "-arch=sm_90a -cubin -DFIRST -Dscale=other -Dfirst=one -o other.cubin k.cu",
    );
    project
        .run("compare old/k.cubin other.cubin")
        .ends(6, "no kernel is on both sides");
}

#[test]
fn what_is_no_machine_code_for_a_common_target_is_refused() {
    let project = Project::empty();
    for file in ["kernel.cubin", "kernel_zstd.fatbin"] {
        let from = repository().join("tests/data/static").join(file);
        fs::copy(from, project.path(file)).unwrap();
    }
    project.write("text.so", "no machine code");
    let compare = |arguments: &[&str]| project.run(&[&["compare"], arguments].concat());
    compare(&["kernel.cubin", "kernel.cubin"]).ends(0, "PASS");
    compare(&["kernel.cubin", "text.so"]).ends(2, "no ELF file");
    compare(&["kernel.cubin"]).ends(2, "state two files");
    compare(&["--static", "kernel.cubin", "missing"]).ends(2, "there is no file missing");
    compare(&["--nvcc", "nvcc"]).ends(2, "state `--nvcc` twice");
    compare(&["kernel.cubin", "kernel.cubin", "--kernels", "k"]).ends(2, "for programs that run");
    project.write("k.cu", KERNELS);
    compare(&["k.cu", "kernel.cubin"]).ends(2, "or variants with `--nvcc`");
    compare(&["--static"]).ends(2, "required");
}

/// The nvcc of another release, where it is installed.
fn other_nvcc() -> Option<PathBuf> {
    let libraries = repository().join("target/cuda-next/venv/lib");
    let mut versions = fs::read_dir(libraries).into_iter().flatten().flatten();
    let nvcc = versions.find_map(|folder| {
        let nvcc = folder.path().join("site-packages/nvidia/cu13/bin/nvcc");
        nvcc.exists().then_some(nvcc)
    });
    if nvcc.is_none() {
        crate::common::aloud(
            "SKIPPED: two compilers, no second one is here; \
             `ci/install-cuda.sh target/cuda-next 13.2.1` installs it",
        );
        assert!(std::env::var_os("CI").is_none(), "CI has a second compiler");
    }
    nvcc
}

#[test]
fn another_compiler_is_a_change_like_any_other() {
    if !are_here(&["nvcc", "nvdisasm"]) {
        return;
    }
    let Some(next) = other_nvcc() else { return };
    let root = repository();
    let source = "kernels/bsr_gemm/baseline.cu";
    let project = Project::empty();
    crate::common::copy(&root.join("kernels"), &project.path("kernels"));
    let config = format!(
        "[toolchain]\narch = \"sm_90a\"\nflags = [\"-O3\", \"-std=c++17\", \"-Ikernels\"]\n\
         [suite.s.variant.v]\nsource = \"{source}\"\n"
    );
    project.write("config.toml", config);
    let nvcc = std::env::var("CUDA_HOME").unwrap() + "/bin/nvcc";
    let next = next.display().to_string();
    // As nvcc 13.0.88 and 13.2.78 compile it.
    project
        .run(&["compare", "--nvcc", &nvcc, "--nvcc", &next, "s/v"])
        .ends(0, "592 → 600 instructions");
    project
        .run(&["compare", "--nvcc", &nvcc, "--nvcc", &nvcc])
        .ends(0, "PASS");
    project
        .run(&["compare", "--nvcc", &nvcc, "--nvcc", "/missing/nvcc"])
        .ends(2, "is no program");
}
