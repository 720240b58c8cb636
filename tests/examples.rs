//! The folders of `examples/`, as far as they go without a GPU.

use std::process::Command;

use crate::common::{self, Project, are_here, copy, repository};
use sparsek_gate::config::{Config, Variant};
use sparsek_gate::plan::VariantPlan;

const EXAMPLES: [&str; 4] = ["benchmark", "cmake", "pytorch", "triton"];

/// An example as somebody copies it.
fn copied(name: &str) -> Project {
    let project = Project::empty();
    copy(&repository().join("examples").join(name), &project.path(""));
    project
}

fn lock(project: &Project) {
    let lock = common::words("baseline --lock --static --reason first --who tests");
    project.run("build").exits(0);
    project.run(&lock).exits(0);
    project.run("check --static").ends(0, "PASS");
}

#[test]
fn every_example_has_a_configuration_that_is_valid_and_one_screen_about_it() {
    for name in EXAMPLES {
        let project = copied(name);
        project.run("list").exits(0);
        let text = project.read("README.md");
        assert!(text.lines().count() <= 40, "{name} has a long README");
        let config = Config::load(&project.path("config.toml")).unwrap();
        let timed = |variant: &Variant| !VariantPlan::alone(variant).rounds.is_empty();
        assert!(config.variants().all(timed), "{name}");
        assert!(text.contains("config.toml"), "{name}");
    }
}

#[test]
fn the_examples_of_python_are_valid_python() {
    if !are_here(&["python3"]) {
        return;
    }
    for script in [
        "pytorch/block.py", "triton/bench.py", "triton/matmul.py", "triton/softmax.py",
    ] {
        let source = std::fs::read_to_string(repository().join("examples").join(script)).unwrap();
        let parsed = Command::new("python3")
            .args(["-c", "import ast, sys; ast.parse(sys.argv[1])", &source])
            .status();
        assert!(parsed.unwrap().success(), "{script}");
    }
}

#[test]
fn the_benchmark_fails_when_a_thread_keeps_more_of_the_row() {
    if !are_here(&["nvcc", "nvdisasm"]) {
        return;
    }
    let project = copied("benchmark");
    lock(&project);
    project.replace(
        "softmax.cu", "constexpr int THREADS = 256;", "constexpr int THREADS = 64;",
    );
    project.run("check --static").ends(
        1,
        "regressed softmax/registers: `registers` of softmax_registers",
    );
}

#[test]
fn the_cmake_project_is_built_once_and_fails_when_the_library_gets_worse() {
    if !are_here(&["cmake", "make", "nvcc", "nvdisasm"]) {
        return;
    }
    let project = copied("cmake");
    lock(&project);
    let kept = "const float4 p = x[i], q = y[i];";
    let indexed = "float4 all[8];\n    for (int k = 0; k < 8; ++k)\n        all[k] = y[(i + k) % size];\n    \
                   const float4 p = x[i], q = all[int(p.x) & 7];";
    project.replace("vector_ops.cu", kept, indexed);
    project.run("build").exits(0);
    project
        .run("check --static")
        .ends(1, "regressed axpy/library: `stack_bytes` of axpy_kernel");
}
