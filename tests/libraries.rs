//! Code that other programs launch: kernels without a `main`, and machine code that stands ready.

use crate::common::{Project, are_here};
use serde_json::json;

const SCALE: &str = r#"#include "twice.cuh"
__global__ void __launch_bounds__(256) scale(float *x, float a) {
    x[blockIdx.x * 256 + threadIdx.x] *= twice(a);
}
void launch_scale(float *x, float a, int n) { scale<<<n / 256, 256>>>(x, a); }
"#;
const TWICE: &str = "#pragma once\n__device__ inline float twice(float a) { return 2 * a; }\n";
const PART: &str = "extern __device__ float helper(float);\n\
    __global__ void __launch_bounds__(128) part(float *x) {\n\
        __shared__ float s[128]; s[threadIdx.x] = x[threadIdx.x]; __syncthreads();\n\
        x[threadIdx.x] = helper(s[127 - threadIdx.x]); }\n";
const CONFIG: &str = r#"
[toolchain]
arch = "sm_90a"

[suite.lib.variant]
plain.source = "../csrc/scale.cu"
cubin = { source = "../csrc/scale.cu", flags = ["--cubin"] }
shared = { source = "../csrc/scale.cu", flags = ["-shared", "-Xcompiler", "-fPIC"] }
part = { source = "../csrc/part.cu", flags = ["-dc"] }
both = { source = ["../csrc/part.cu", "../csrc/scale.cu"], flags = ["-rdc=true", "-c"] }
"#;

/// A repository with kernels beside the folder of its configuration.
fn library() -> Project {
    let project = Project::empty();
    project.write(".gitignore", ".sparsek-gate/\n");
    project.write("csrc/scale.cu", SCALE);
    project.write("csrc/twice.cuh", TWICE);
    project.write("csrc/part.cu", PART);
    project.write("gate/config.toml", CONFIG);
    project
}

const GATE: [&str; 2] = ["--config", "gate/config.toml"];

fn run(project: &Project, arguments: &str) -> crate::common::Ran {
    let arguments: Vec<&str> = arguments.split(' ').collect();
    project.run(&[&GATE[..], &arguments].concat())
}

#[test]
fn kernels_without_a_program_are_gated_by_their_code_in_every_form_that_nvcc_makes() {
    if !are_here(&["nvcc", "nvdisasm", "git"]) {
        return;
    }
    let project = library();
    project.commit();
    run(&project, "build")
        .ends(
            0,
            "lib/part part            24   0 byte  512 byte + ?  ≤ 100 %",
        )
        .says("  32 instructions, 2 global memory, 2 shared memory");
    let new = "the variant has no baseline yet";
    run(&project, "check --static")
        .ends(4, new)
        .says("lib/plain scale           8   0 byte");
    run(
        &project,
        "baseline --lock --static --reason first --who tests",
    )
    .exits(0);
    run(&project, "check --static").exits(0);
    project.write(
        "csrc/twice.cuh",
        TWICE.replace("2 * a", "a > 3 ? sinf(a) : 2 * a"),
    );
    let one = "4 metrics of 4 variants got worse by one change: `../csrc/twice.cuh`";
    run(&project, "check --static")
        .ends(1, one)
        .says("--reason '...' lib/both lib/cubin lib/plain lib/shared\n");
    run(&project, "check --static --against HEAD").ends(1, one);
}

#[test]
fn a_path_may_lie_beside_the_configuration_and_not_outside_of_its_repository() {
    let project = library();
    project.commit();
    for path in [
        "../../scale.cu", "../../../etc/scale.cu", "../csrc/../../scale.cu", "/scale.cu",
    ] {
        let config = CONFIG.replace(
            "plain.source = \"../csrc/scale.cu\"",
            &format!("plain.source = \"{path}\""),
        );
        project.write("gate/config.toml", config);
        run(&project, "list").ends(2, "must be a relative path");
    }
}

#[test]
fn machine_code_alone_makes_a_variant() {
    let project = Project::empty();
    let cubin = std::fs::read(crate::common::repository().join("tests/data/static/kernel.cubin"));
    project.write("build/kernel.cubin", cubin.unwrap());
    let config = "[toolchain]\narch = \"sm_90a\"\n[static.tensor_instructions]\nlevel = \"record\"\n\
        [static.wgmma_instructions]\nlevel = \"record\"\n[suite.s.variant.v]\nprogram = \"build/kernel.cubin\"\n";
    project.write("config.toml", config);
    project.run("build").exits(0);
    project
        .run("baseline --lock --static --reason x --who t")
        .exits(0);
    project.run("check --static").exits(0);
}

#[test]
fn a_program_that_becomes_a_library_does_not_pass_by_its_code() {
    let project = Project::whole();
    let recorded = crate::common::RECORDED;
    let path = format!("{recorded}/bsr_gemm/cp_async");
    project.edit(&format!("{path}/static.json"), |profile| {
        profile["provenance"]["library"] = json!(true);
    });
    std::fs::remove_file(project.path(&format!("{path}/profile.json"))).unwrap();
    let report = project.check(&["bsr_gemm/cp_async"], 6);
    report.denies_only(
        "not-measured",
        &["nothing of it runs, and its base or its baseline"],
    );
    if are_here(&["nvcc", "nvdisasm"]) {
        // Nor without a GPU, where the lock of a measurement shows that it ran.
        let source = "kernels/bsr_gemm/cp_async.cu";
        let text = project.read(source);
        project.write(source, text.replace("int main(", "int other("));
        let words = "nothing of it runs, and its base or its baseline";
        project
            .run("check --static bsr_gemm/cp_async")
            .ends(6, words);
        project.write(source, text);
    }
    // Where nothing of it was measured before, its code is all that there is.
    for file in std::fs::read_dir(project.path("baselines")).unwrap() {
        let folder = file.unwrap().path();
        if !folder.ends_with("sm-90a+static") {
            std::fs::remove_dir_all(folder).unwrap();
        }
    }
    project.check(&["bsr_gemm/cp_async"], 0);
}
