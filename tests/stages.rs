//! `build` with a compiler that is a shell script, and the stages that need a GPU without one.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::crash::{contents, wait_until_it_has};
use crate::common::stand_in::HOST;
use crate::common::{self, Arguments, PATIENCE, Project, Ran};
use serde_json::Value as Json;

/// Answers as nvcc 13.0 does, and "compiles" to a script with the source in it. Every call is
/// noted. A source with `#error` fails with a message, one with `SLOW` takes its time, and one with
/// `BESIDE` waits until another one is compiled.
const NVCC: &str = r##"#!/bin/sh
if [ "$1" = --version ]; then
    echo 'nvcc: NVIDIA (R) Cuda compiler driver'
    echo 'Copyright (c) 2005-2025 NVIDIA Corporation'
    echo 'Built on Wed_Aug_20_01:58:59_PM_PDT_2025'
    echo 'Cuda compilation tools, release 13.0, V13.0.88'
    echo 'Build cuda_13.0.r13.0/compiler.36424714_0'
    exit 0
fi
flags=
while [ $# -gt 0 ]; do
    case $1 in
    -o) program=$2; shift ;;
    --keep-dir) kept=$2; shift ;;
    --keep) ;;
    -Xcompiler | -Xlinker) shift ;;
    *.cu) source=$1 ;;
    *) flags="$flags $1" ;;
    esac
    shift
done
echo "$source$flags" >>calls
if grep -q '#error' "$source"; then
    printf '%s(1): error: #error directive: "no such luck"   <tab>\t|`$x`\n' "$source" >&2
    echo '1 error detected in the compilation of "'"$source"'".' >&2
    exit 2
fi
if grep -q SLOW "$source"; then
    sleep 1
fi
if grep -q BESIDE "$source"; then
    echo begins >>beside
    tries=0
    while [ "$(wc -l <beside)" -lt 2 ] && [ $tries -lt 6000 ]; do tries=$((tries + 1)); sleep 0.05; done
    echo ends >>beside
fi
{ printf '#!/bin/sh\n# %s\n' "$flags"; sed 's/^/# /' "$source"; } >"$program"
chmod +x "$program"
sed -n 's/^#include "\(.*\)"/\1/p' "$source" | while read -r header; do
    sed 's/^/# /' "kernels/$header" >>"$program"
done
gcc -E -x c++ "$source" -o /dev/null
cp kernel.cubin "$kept"
echo "ptxas info    : Compiling entry function '_Z6kernelPf' for 'sm_90a'" >&2
echo "ptxas info    : Function properties for _Z6kernelPf" >&2
echo "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" >&2
echo "ptxas info    : Used 10 registers, used 1 barriers, 1024 bytes smem" >&2
"##;

/// The call by which it lists what it opened.
const LISTS: &str = "gcc -E -x c++ \"$source\" -o /dev/null";

const CONFIG: &str = r#"
[toolchain]
arch = "sm_90a"
nvcc = "toolkit/bin/nvcc"
flags = ["-O3"]

[metric.duration]
direction = "lower"
tolerance = '3 %'

[suite.s.variant.a]
source = "kernels/a.cu"

[suite.s.variant.b]
source = "kernels/b.cu"
defines = { TILE = 8, FAST = true, SLOWER = false }
"#;

fn project() -> Project {
    let project = Project::empty();
    project.write("config.toml", CONFIG);
    project.write("kernels/a.cu", "#include \"a.cuh\"\n// a\n");
    project.write("kernels/a.cuh", "// header of a\n");
    project.write("kernels/b.cu", "// b\n");
    // What nvcc 13.0.88 made of the kernel that the script claims to compile.
    let cubin = common::repository().join("tests/data/static/kernel.cubin");
    fs::copy(cubin, project.path("kernel.cubin")).unwrap();
    project.program("toolkit/bin/nvcc", NVCC);
    // What the real one prints of it: that takes it half a second.
    let listing = common::repository().join("tests/data/static/kernel.json");
    let disassembler = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then\n    \
         echo 'Cuda compilation tools, release 13.2, V13.2.86'\nelse\n    cat '{}'\nfi\n",
        listing.display()
    );
    project.program("toolkit/bin/nvdisasm", &disassembler);
    // nvcc needs a host compiler; this one only prints its version.
    project.program("host/g++", HOST);
    project
}

fn build(project: &Project, arguments: &[&str]) -> Ran {
    build_as(project, "json", arguments)
}

fn build_as(project: &Project, format: &str, arguments: &[&str]) -> Ran {
    let all = [&["build", "--format", format], arguments].concat();
    Ran::of(&gate(project, &all).output().unwrap())
}

/// The program, with the host compiler of the project.
fn gate(project: &Project, arguments: impl Arguments) -> Command {
    let host = project.path("host").display().to_string();
    let path = std::env::var("PATH").unwrap();
    let mut command = project.gate_of(arguments);
    command.env("PATH", format!("{host}:{path}"));
    command
}

#[track_caller]
fn built(project: &Project, arguments: &[&str]) -> Vec<Json> {
    let json = build(project, arguments).exits(0).json().0;
    json["variants"].as_array().unwrap().clone()
}

/// Compilations since the last time this was asked.
fn compilations(project: &Project) -> Vec<String> {
    let calls = project.path("calls");
    let text = fs::read_to_string(&calls).unwrap_or_default();
    let _ = fs::remove_file(calls);
    let mut calls: Vec<String> = text.lines().map(str::to_owned).collect();
    calls.sort();
    calls
}

/// Sources that were compiled since the last time this was asked.
fn compiled(project: &Project) -> Vec<String> {
    compilations(project)
        .iter()
        .map(|call| call.split(' ').next().unwrap().to_owned())
        .collect()
}

#[test]
fn a_build_tells_program_flags_and_resources() {
    let project = project();
    let variants = built(&project, &[]);
    assert_eq!(variants.len(), 2);
    assert_eq!(variants[0]["variant"], "s/a");
    assert_eq!(variants[0]["cached"], false);
    common::contains(&program_of(&variants[0]), &["# // a\n"]);
    let kernel = &variants[0]["kernels"]["_Z6kernelPf"];
    let resources = ["registers", "shared_bytes"].map(|it| kernel[it].as_u64().unwrap());
    assert_eq!(resources, [10, 1024]);
    assert_eq!(kernel["opcodes"]["BAR.SYNC.DEFER_BLOCKING"], 1, "{kernel}");
    // No path of this machine.
    let flags = "-gencode=arch=compute_90a,code=sm_90a -Xptxas -v -O3 -DFAST -DTILE=8";
    let argv = format!("nvcc {flags} kernels/b.cu");
    let argv: Vec<&str> = argv.split(' ').collect();
    assert_eq!(variants[1]["build"], serde_json::json!(argv));
    let calls = compilations(&project);
    let expected = format!("kernels/b.cu {flags}");
    assert!(calls[1].starts_with(&expected), "{calls:?}");
}

/// The text of the "program" of a variant that was built.
fn program_of(built: &Json) -> String {
    fs::read_to_string(built["program"][0].as_str().unwrap()).unwrap()
}

#[test]
fn an_unchanged_variant_is_not_built_again() {
    let project = project();
    built(&project, &[]);
    assert_eq!(compiled(&project), ["kernels/a.cu", "kernels/b.cu"]);
    let variants = built(&project, &[]);
    assert_eq!(compiled(&project), Vec::<String>::new());
    assert!(variants.iter().all(|variant| variant["cached"] == true));
    // Nor by another date of the same content.
    project.write("kernels/a.cu", project.read("kernels/a.cu"));
    built(&project, &[]);
    assert_eq!(compiled(&project), Vec::<String>::new());
}

#[test]
fn whatever_decides_what_comes_out_builds_again_and_nothing_else() {
    let project = project();
    built(&project, &[]);
    compiled(&project);
    let builds = |arguments: &[&str], what: &str, sources: &[&str]| {
        built(&project, arguments);
        assert_eq!(compiled(&project), sources, "{what}");
    };
    let (a, b) = ("kernels/a.cu", "kernels/b.cu");
    project.write("kernels/a.cuh", "// another header of a\n");
    builds(&[], "header", &[a]);
    project.write(b, "// another b\n");
    builds(&[], "source", &[b]);
    project.configure("TILE = 8", "TILE = 16");
    builds(&[], "constant", &[b]);
    project.configure("\"-O3\"", "\"-O3\", \"-lineinfo\"");
    builds(&[], "flag", &[a, b]);
    project.configure("sm_90a", "sm_90");
    builds(&[], "target", &[a, b]);
    project.program("toolkit/bin/nvcc", &NVCC.replace("13.0.88", "13.1.80"));
    builds(&[], "compiler", &[a, b]);
    project.program("host/g++", &HOST.replace("12.2.0", "14.2.0"));
    builds(&[], "host compiler", &[a, b]);
    builds(&["a", "--define", "TRIAL=1"], "trial", &[a]);

    // What was built before is still there.
    project.configure("arch = \"sm_90\"", "arch = \"sm_90a\"");
    project.program("toolkit/bin/nvcc", NVCC);
    project.program("host/g++", HOST);
    builds(&[], "as before", &[]);
}

#[test]
fn a_header_that_comes_to_be_included_is_watched_from_then_on() {
    let project = project();
    built(&project, &[]);
    project.write("kernels/b.cu", "#include \"new.cuh\"\n// b\n");
    project.write("kernels/new.cuh", "// 1\n");
    built(&project, &[]);
    compiled(&project);
    project.write("kernels/new.cuh", "// 2\n");
    let variants = built(&project, &[]);
    assert_eq!(compiled(&project), ["kernels/b.cu"]);
    common::contains(&program_of(&variants[1]), &["# // 2"]);
    // Back to what was there: the first build of it serves.
    project.write("kernels/b.cu", "// b\n");
    let variants = built(&project, &[]);
    assert!(!program_of(&variants[1]).contains("new"));
}

#[test]
fn a_source_or_header_that_changes_while_it_is_compiled_makes_no_build() {
    for path in ["kernels/a.cu", "kernels/a.cuh"] {
        let project = project();
        // As if somebody saved the file after the compiler had read it.
        let edit = format!(
            "{LISTS}\nif [ ! -e edited ]; then touch edited; sleep 0.05; echo '// edited' >>{path}; fi\n"
        );
        let edits = NVCC.replace(&format!("{LISTS}\n"), &edit);
        project.program("toolkit/bin/nvcc", &edits);
        let report = build(&project, &["a"]).exits(5).json();
        report.tells_all("build-failed", &[path]);
        compiled(&project);
        let variants = built(&project, &["a"]);
        assert_eq!(compiled(&project), ["kernels/a.cu"]);
        common::contains(&program_of(&variants[0]), &["// edited"]);
    }
}

#[test]
fn a_damaged_build_is_built_again() {
    let damages: [fn(&std::path::Path); 6] = [
        // The list of what the compiler opened.
        |folder| {
            for entry in fs::read_dir(folder.parent().unwrap()).unwrap() {
                let path = entry.unwrap().path();
                if path.to_str().unwrap().ends_with(".opened.json") {
                    fs::write(path, "[").unwrap();
                }
            }
        },
        |folder| fs::write(folder.join("program"), "#!/bin/sh\necho tampered\n").unwrap(),
        |folder| fs::remove_file(folder.join("program")).unwrap(),
        |folder| fs::write(folder.join("manifest.json"), "{").unwrap(),
        |folder| fs::remove_file(folder.join("manifest.json")).unwrap(),
        |folder| fs::remove_dir_all(folder).unwrap(),
    ];
    for (index, damage) in damages.into_iter().enumerate() {
        let project = project();
        let before = built(&project, &["a"]);
        compiled(&project);
        let program = before[0]["program"][0].as_str().unwrap();
        damage(std::path::Path::new(program).parent().unwrap());
        let after = built(&project, &["a"]);
        assert_eq!(compiled(&project), ["kernels/a.cu"], "damage {index}");
        assert_eq!(after[0]["sha256"], before[0]["sha256"], "damage {index}");
        assert!(program_of(&before[0]).contains("# // a"), "damage {index}");
    }
}

#[test]
fn the_compilers_words_reach_the_user_as_they_are() {
    let project = project();
    project.write("kernels/a.cu", "#error no such luck\n");
    let text = "kernels/a.cu(1): error: #error directive: \"no such luck\"   <tab>\t|`$x`";
    let report = build(&project, &[]).exits(5).json();
    assert_eq!(report.denied(), ["build-failed"]);
    let detail = report.findings("deny")[0]["detail"].as_str().unwrap();
    assert!(detail.starts_with(text), "{detail}");
    assert!(detail.contains("1 error detected in the compilation"));
    // The other variant was built all the same.
    assert_eq!(report.0["variants"].as_array().unwrap().len(), 1);
    // The reader of the text sees the same words; only what steers a terminal is shown otherwise.
    build_as(&project, "text", &[]).ends(5, text);
    // Nothing of a failed build is kept for a success.
    let again = build(&project, &[]).exits(5).json();
    assert_eq!(again.denied(), ["build-failed"]);
    assert_eq!(scratch(&project), Vec::<String>::new());
}

/// Folders of builds that are under way.
fn scratch(project: &Project) -> Vec<String> {
    fs::read_dir(project.path(".sparsek-gate/builds"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".building-"))
        .collect()
}

#[test]
fn a_missing_source_is_a_finding_of_its_variant() {
    let project = project();
    fs::remove_file(project.path("kernels/a.cu")).unwrap();
    let report = build(&project, &[]).exits(5).json();
    report.denies_only("build-failed", &["there is no source `kernels/a.cu`"]);
    let project = self::project();
    fs::remove_file(project.path("kernels/a.cuh")).unwrap();
    build(&project, &["a"]).exits(5);
}

#[test]
fn variants_are_built_side_by_side_and_reported_in_order() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        common::aloud("SKIPPED: one processor builds one variant at a time");
        return;
    }
    let project = project();
    for path in ["kernels/a.cu", "kernels/b.cu"] {
        project.write(path, format!("// BESIDE {path}\n"));
    }
    let variants = built(&project, &[]);
    let names: Vec<&Json> = variants.iter().map(|variant| &variant["variant"]).collect();
    assert_eq!(names, ["s/a", "s/b"]);
    let beside = project.read("beside");
    assert!(beside.starts_with("begins\nbegins\n"), "{beside}");
}

#[test]
fn two_builds_of_the_same_at_once_both_succeed() {
    let project = project();
    project.write("kernels/a.cu", "// SLOW\n");
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| built(&project, &["a"])))
            .collect();
        for run in runs {
            let variants = run.join().unwrap();
            common::contains(&program_of(&variants[0]), &["SLOW"]);
        }
    });
    assert_eq!(scratch(&project), Vec::<String>::new());
}

#[test]
fn an_interrupted_or_killed_build_leaves_no_compiler_and_no_half_build() {
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::KILL, None)] {
        let project = project();
        fs::create_dir(project.path("tmp")).unwrap();
        project.write("kernels/a.cu", "// a\n");
        let noted = "echo \"$source$flags\" >>calls";
        let sleeps = NVCC.replace(noted, "echo $$ >pid; sleep 600");
        project.program("toolkit/bin/nvcc", &sleeps);
        let mut build = gate(&project, "build a");
        let mut child = build.env("TMPDIR", project.path("tmp")).spawn().unwrap();
        let end = Instant::now() + PATIENCE;
        while !fs::read_to_string(project.path("pid")).is_ok_and(|pid| pid.ends_with('\n')) {
            assert!(Instant::now() < end, "the compiler never began");
            std::thread::sleep(Duration::from_millis(10));
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), code);
        if signal == Signal::KILL {
            wait_until_it_has(&project.path("tmp"), &[]);
            wait_until_it_has(&project.path(".sparsek-gate/builds"), &[]);
        }
        assert_eq!(contents(&project.path("tmp")).len(), 0);
        let compiler = project.read("pid");
        let state = fs::read_to_string(format!("/proc/{}/stat", compiler.trim()));
        let ended = state.as_ref().map_or(true, |stat| stat.contains(") Z "));
        assert!(ended, "{state:?}");
        assert_eq!(scratch(&project), Vec::<String>::new());
    }
}

#[test]
fn a_missing_or_broken_compiler_is_told_before_anything_is_built() {
    let project = project();
    fs::remove_file(project.path("toolkit/bin/nvcc")).unwrap();
    build(&project, &[])
        .ends(3, "`toolchain.nvcc` is ")
        .says("toolkit/bin/nvcc, which is no program");
    project.program("toolkit/bin/nvcc", "#!/bin/sh\necho broken >&2; exit 1\n");
    build(&project, &[]).ends(3, "broken");
    project.program("toolkit/bin/nvcc", "#!/bin/sh\necho hello\n");
    build(&project, &[]).ends(3, "names no version");
}

#[test]
fn a_variant_of_any_command_is_built_by_its_own() {
    let project = project();
    project.write(
        "config.toml",
        "[metric.duration]\ndirection = \"lower\"\ntolerance = '1'\n\
         [suite.s.variant.c]\nbuild = [\"./make it\", \"a b\", \"$HOME\"]\nrun = [\"./run\", \"x\"]\ninputs = [\"in.py\"]\nenv = { COLOR = \"blue\" }\n",
    );
    let makes = "#!/bin/sh\necho \"$COLOR|$1|$2|$(pwd)\" >made\n: >run\nchmod +x run\n";
    project.program("make it", makes);
    project.write("in.py", "print()\n");
    let variants = built(&project, &[]);
    // argv, never a shell string; in the configuration's folder, with the variant's environment.
    let made = project.read("made");
    assert!(made.starts_with("blue|a b|$HOME|/"), "{made}");
    let commands = [&variants[0]["program"], &variants[0]["build"]].map(Json::to_string);
    let expected = ["[\"./run\",\"x\"]", "[\"./make it\",\"a b\",\"$HOME\"]"];
    assert_eq!(commands, expected);

    fs::remove_file(project.path("in.py")).unwrap();
    let report = build(&project, &[]).exits(5).json();
    report.tells_all("build-failed", &["the input `in.py` cannot be read"]);

    project.write("in.py", "print()\n");
    project.program("make it", "#!/bin/sh\necho 'it does not go' >&2; exit 3\n");
    let report = build(&project, &[]).exits(5).json();
    report.tells_all("build-failed", &["exit status 3"]);
    let detail = report.findings("deny")[0]["detail"].as_str();
    assert_eq!(detail.unwrap().trim(), "it does not go");

    fs::remove_file(project.path("make it")).unwrap();
    let ran = project.run("build").exits(2);
    ran.says("`./make it` is several arguments in one");
}

#[test]
fn without_a_gpu_the_stages_that_need_one_say_so_and_exit_3() {
    if common::has_driver() {
        return;
    }
    let project = project();
    project.program(
        "bin/ncu",
        "#!/bin/sh\necho 'NVIDIA (R) Nsight Compute Command Line Profiler'\necho 'Version 2025.3.1.0 (build 36398880) (public-release)'\n",
    );
    project.configure("flags = [\"-O3\"]", "flags = [\"-O3\"]\nncu = \"bin/ncu\"");
    for command in ["verify", "profile", "check"] {
        let ran = project.run(&[command]).exits(3);
        let words = ["no GPU can be used", "next: ", "check --static"];
        common::contains(&ran.err, &words);
        let defect = ran.err.contains("panicked") || ran.err.contains("defect");
        assert!(!defect, "{command}: {}", ran.err);
        assert_eq!(ran.out, "", "{command}");
    }
    // Without ncu that is said first, but for a check, which looks for the baselines of this GPU.
    fs::remove_file(project.path("bin/ncu")).unwrap();
    project.run("profile").ends(3, "bin/ncu").says("next: ");
    project.run("check").ends(3, "no GPU").says("next: ");
}

#[test]
fn flags_that_only_the_environment_states_are_refused() {
    let project = project();
    let run = |arguments: &[&str], name: &str, flags: &str| {
        let mut command = gate(&project, arguments);
        Ran::of(&command.env(name, flags).output().unwrap())
    };
    let build = |name: &str, flags: &str| run(&["build"], name, flags);
    build("NVCC_APPEND_FLAGS", "-maxrregcount=24")
        .ends(3, "NVCC_APPEND_FLAGS adds `-maxrregcount=24`")
        .says("`toolchain.flags`");
    build("NVCC_PREPEND_FLAGS", "-ccbin g++ -G").ends(3, "adds `-G`");
    run(&["doctor"], "NVCC_APPEND_FLAGS", "-G").ends(3, "adds `-G`");
    assert_eq!(compiled(&project), Vec::<String>::new());
    build(
        "NVCC_PREPEND_FLAGS",
        "-ccbin=g++ --allow-unsupported-compiler",
    )
    .exits(0);
    build("NVCC_APPEND_FLAGS", "").exits(0);
}
