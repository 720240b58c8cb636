//! What decides a build, with the real compiler; and what happens if files change after it.

use std::fs;
use std::path::Path;

use crate::common::git::git;
use crate::common::stand_in::{Machine, UUID};
use crate::common::{self, Project, Ran, are_here, write_program};
use serde_json::Value as Json;
use sparsek_gate::hash::sha256_file;

const SOURCE: &str = "__global__ void k(float* x) { x[threadIdx.x] += 1; }\n\
                      int main() { k<<<1, 32>>>(nullptr); return 0; }\n";

/// A project with one variant, `s/v`, of `kernels/k.cu`.
fn project(head: &str, flags: &str) -> Project {
    let project = Project::empty();
    let config = format!(
        "[toolchain]\narch = \"sm_90a\"\n\n[metric.duration]\ndirection = \"lower\"\n\
         tolerance = '3 %'\n\n\
         [suite.s.variant.v]\nsource = \"kernels/k.cu\"\nflags = [{flags}]\n"
    );
    project.write("config.toml", config);
    project.write("kernels/k.cu", format!("{head}\n{SOURCE}"));
    project
}

fn build(project: &Project) -> Ran {
    project.run("build --format json")
}

/// What `build` says of the variant.
#[track_caller]
fn built(project: &Project) -> Json {
    let json = build(project).exits(0).json().0;
    json["variants"][0].clone()
}

/// The folder of the store, which is named by the key, and whether it was there before.
#[track_caller]
fn key(project: &Project) -> (String, bool) {
    let built = built(project);
    let program = built["program"][0].as_str().unwrap().to_owned();
    let key = program.rsplit('/').nth(1).unwrap().to_owned();
    (key, built["cached"] == true)
}

fn sources(project: &Project) -> Vec<String> {
    let (key, _) = key(project);
    let manifest = project.json(&format!(".sparsek-gate/builds/{key}/manifest.json"));
    let sources = manifest["sources"].as_object().unwrap();
    sources.keys().cloned().collect()
}

/// An object, or an archive with one.
fn object(project: &Project, path: &str, code: &str) {
    project.write("part.c", code);
    fs::create_dir_all(project.path(path).parent().unwrap()).unwrap();
    let archive = format!("rm -f {path} && ar rcs {path} part.o");
    let make = if path.ends_with(".a") {
        archive
    } else {
        format!("cp part.o {path}")
    };
    let script = format!("gcc -c -o part.o part.c && {make} && rm part.c part.o");
    project.shell(&script);
}

fn text(path: &std::path::Path) -> String {
    path.display().to_string()
}

/// Brings in everything that another file could change.
const HEAD: &str = r##"
#include "part/tile.h"
#include "link/../beside.h"
#if __has_include("slow.cu") || __has_include("slow") || __has_include("../other/slow.h")
int slow;
#elif __has_include("sub/slow.h")
int slower;
#endif
#ifdef __CUDA_ARCH__
#include "device.h"
#endif
asm(".pushsection .rodata\n"
    ".incbin \"data/a b\"\n"
    ".incbin \"data/a\tb\"\n"
    ".incbin \"data/a\\\\\"\n"
    ".incbin \"kernels/link/../slow.bin\"\n"
    ".macro x a b\n.\\a\\b \"data/macro\"\n.endm\nx inc bin\n"
    ".popsection");
extern "C" int part();
int use = part();
"##;

/// Files that the build opens.
const OPENED: [(&str, &str); 10] = [
    ("include/part/tile.h", "\n"),
    ("other/beside.h", "\n"),
    ("kernels/device.h", "// 1\n"),
    ("data/a b", "1"),
    ("data/a\tb", "1"),
    ("data/a\\", "1"),
    ("other/slow.bin", "1"),
    ("data/macro", "1"),
    ("pre.h", "\n"),
    ("lib/libscript.so", "INPUT(lib/libother.a)\n"),
];

/// Files that appear and decide.
const APPEARING: [&str; 9] = [
    "kernels/slow.cu", "kernels/slow", "other/slow.h", "kernels/sub/slow.h", "kernels/part/tile.h",
    "part/tile.h", "kernels/cuda_runtime.h", "fatbinary_section.h", "lib/libm.a",
];

/// Whether the build of the only variant is reused. The compiler is not started: it gets no folder for
/// temporary files, and that is an error.
#[track_caller]
fn is_reused_with(project: &Project, variables: &[(&str, &str)]) -> bool {
    let mut command = project.gate_of("build --format json");
    command.envs(variables.iter().copied());
    let ran = Ran::by(command.env("TMPDIR", "/none"));
    if ran.code == 0 {
        assert_eq!(ran.json().0["variants"][0]["cached"], true);
        return true;
    }
    ran.ends(3, "/none");
    false
}

#[track_caller]
fn is_reused(project: &Project) -> bool {
    is_reused_with(project, &[])
}

#[test]
fn each_file_that_was_opened_or_could_be_found_instead_decides_whether_a_build_is_reused() {
    if !are_here(&["nvcc", "nvdisasm", "g++"]) {
        return;
    }
    let flags = "\"-Iinclude\", \"-include\", \"pre.h\", \"lib/part.o\", \"-Llib\", \"-lother\", \
                 \"-lscript\", \"-DA=1,B=2\"";
    let project = project("", flags);
    project.write("kernels/k.cu", format!("{HEAD}\n{SOURCE}"));
    for (path, text) in OPENED {
        project.write(path, text);
    }
    project.write("other/sub/a", "");
    std::os::unix::fs::symlink("../other/sub", project.path("kernels/link")).unwrap();
    for decoy in ["kernels/slow.bin", "kernels/beside.h"] {
        project.write(decoy, "a decoy");
    }
    object(&project, "lib/part.o", "int part() { return 1; }");
    object(&project, "lib/libother.a", "int other() { return 1; }");
    let (first, _) = key(&project);
    assert_eq!(key(&project), (first, true));
    let expected = [
        "data/a\tb", "data/a b", "data/a\\", "data/macro", "include/part/tile.h",
        "kernels/device.h", "kernels/k.cu", "kernels/link/../beside.h", "kernels/link/../slow.bin",
        "lib/libother.a", "lib/libscript.so", "lib/part.o", "pre.h",
    ];
    assert_eq!(sources(&project), expected);

    let opened = OPENED.iter().map(|(path, _)| *path);
    for path in opened.chain(["lib/part.o", "lib/libother.a"]) {
        let before = fs::read(project.path(path)).unwrap();
        fs::write(project.path(path), [&before[..], b" "].concat()).unwrap();
        assert!(!is_reused(&project), "{path:?} changed");
        fs::remove_file(project.path(path)).unwrap();
        assert!(!is_reused(&project), "{path:?} is gone");
        fs::write(project.path(path), before).unwrap();
    }
    assert!(is_reused(&project), "everything is as before");
    for path in APPEARING {
        project.write(path, "");
        assert!(!is_reused(&project), "{path} appeared");
        fs::remove_file(project.path(path)).unwrap();
    }
    // What no tool would find.
    for path in ["kernels/new.h", "kernels/report.md", "target/part/tile.h"] {
        project.write(path, "");
    }
    assert!(is_reused(&project), "nothing that decides is there");
    for (from, to) in [("-DA=1,B=2", "-DA=1,B=3"), ("\"pre.h\"", "\"part/tile.h\"")] {
        project.configure(from, to);
        assert!(!is_reused(&project), "{to}");
        project.configure(to, from);
    }
    assert!(is_reused(&project));
    for variable in [
        ("CPATH", "elsewhere"),
        ("NVCC_APPEND_FLAGS", "-allow-unsupported-compiler"),
        ("SOURCE_DATE_EPOCH", "1"),
    ] {
        assert!(!is_reused_with(&project, &[variable]), "{variable:?}");
    }
}

#[test]
fn a_build_that_asks_for_files_by_made_up_names_is_not_reused() {
    if !are_here(&["nvcc", "nvdisasm", "g++"]) {
        return;
    }
    let head = "#define CAT(a, b) a##b\n#ifdef __CUDA_ARCH__\n#if CAT(__has_, include)(\"slow.dat\")\n\
                static_assert(true, \"slow\");\n#endif\n#endif";
    let project = project(head, "");
    key(&project);
    assert!(!is_reused(&project));
}

#[test]
fn a_file_of_the_assembler_with_an_unreadable_name_is_refused() {
    if !are_here(&["nvcc", "nvdisasm", "g++"]) {
        return;
    }
    // The assembler's list does not say where such a name ends.
    for (written, file) in [("slow\\nx", &b"slow\nx"[..]), ("slow\\\\377", b"slow\xff")] {
        let head =
            format!("asm(\".pushsection .rodata\\n.incbin \\\"{written}\\\"\\n.popsection\");");
        let project = project(&head, "");
        let name = std::os::unix::ffi::OsStrExt::from_bytes(file);
        let name: &std::ffi::OsStr = name;
        fs::write(project.path("").join(name), "1").unwrap();
        project.write("slow", "a decoy");
        build(&project).ends(5, "its content is not tracked");
    }
}

#[test]
fn libraries_that_a_variable_names_decide_too_and_are_not_loaded_into_the_compiler() {
    if !are_here(&["nvcc", "nvdisasm", "g++"]) {
        return;
    }
    let head = "#include <cmath>\nint use(double x) { return int(std::cosh(x)); }";
    let project = project(head, "");
    fs::create_dir(project.path(".git")).unwrap();
    // The loader ends a tool that finds one of these first.
    project.write("loaded/libz.so.1", "not a library\n");
    for name in ["libc.so.6", "libm.so.6", "libz.so.1", "libstdc++.so.6"] {
        project.write(name, "not a library\n");
    }
    let is_reused = || {
        let mut gate = project.gate_of("build --format json");
        gate.env("LIBRARY_PATH", project.path("lib"));
        gate.env("LD_LIBRARY_PATH", project.path("loaded"));
        let json = Ran::by(&mut gate).exits(0).json().0;
        json["variants"][0]["cached"] == true
    };
    let library = |code| object(&project, "lib/libm.a", code);
    library("double cosh(double x) { return 1; }");
    assert!(!is_reused());
    assert!(is_reused());
    library("double cosh(double x) { return 2; }");
    assert!(!is_reused());
}

#[test]
fn a_source_is_listed_as_it_was_compiled_also_if_it_is_saved_before_the_build_ends() {
    if !are_here(&["nvcc", "nvdisasm", "g++"]) {
        return;
    }
    let path = std::env::var_os("PATH").unwrap();
    let find = |name: &str| {
        let mut folders = std::env::split_paths(&path);
        folders.find(|folder| folder.join(name).is_file()).unwrap()
    };
    let project = project("", "");
    let source = project.path("kernels/k.cu");
    let compiled = sha256_file(&source).unwrap();
    // A toolkit whose disassembler, which runs after the compiler, saves the source.
    let toolkit = tempfile::tempdir().unwrap();
    let (bin, lib) = (toolkit.path().join("bin"), toolkit.path().join("lib"));
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(find("nvcc").parent().unwrap().join("lib"), lib).unwrap();
    for (name, first) in [
        ("nvcc", ":".to_owned()),
        (
            "nvdisasm",
            format!("[ \"$1\" != -json ] || echo >>{}", text(&source)),
        ),
    ] {
        let tool = bin.join(name);
        let real = find(name).join(name);
        let script = format!("#!/bin/sh\n{first}\nexec {} \"$@\"\n", text(&real));
        write_program(&tool, &script);
    }
    let toolchain = format!("[toolchain]\nnvcc = \"{}\"\n", text(&bin.join("nvcc")));
    project.configure("[toolchain]\n", &toolchain);
    let built = built(&project);
    assert_ne!(sha256_file(&source).unwrap(), compiled, "{built}");
    let manifest = Path::new(built["program"][0].as_str().unwrap()).with_file_name("manifest.json");
    let manifest: Json = serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap();
    assert_eq!(manifest["sources"]["kernels/k.cu"], compiled);
}

/// Flags in a file, programs of the change, words for a shell. None may leave `ran` or a program.
#[test]
fn flags_that_read_untracked_files_or_run_programs_of_the_change_are_refused() {
    if !are_here(&["nvcc", "nvdisasm", "g++"]) {
        return;
    }
    const FLAGS: [&str; 5] = [
        "\"-run\"", "\"-ccbin\", \"./tools/g++\"", "\"-Xcompiler\", \"-B./tools/\"",
        "\"--options-file\", \"opts.txt\"", "\"-DX=1,@opts.txt\"",
    ];
    for flags in FLAGS {
        for (place, config) in [
            ("variant", format!("flags = [{flags}]")),
            ("toolchain", "flags = []".to_owned()),
        ] {
            let project = project("", "");
            project.configure("flags = []", &config);
            if place == "toolchain" {
                let arch = "arch = \"sm_90a\"\n";
                project.configure(arch, &format!("{arch}flags = [{flags}]\n"));
            }
            project.write("opts.txt", "-O1\n");
            project.program("tools/g++", "#!/bin/sh\ntouch ran\n");
            let checked = project.run("check --static --format json");
            let report = checked.exits(5).json();
            let message = report.message("build-failed");
            assert!(message.contains("refused"), "{place} {flags}: {message}");
            for left in ["ran", "elsewhere"] {
                assert!(!project.path(left).exists(), "{place} {flags}");
            }
        }
    }
}

#[test]
fn texts_of_the_configuration_reach_no_shell() {
    if !are_here(&["nvcc", "nvdisasm", "g++"]) {
        return;
    }
    // nvcc runs its tools through a shell, and quotes some of its arguments only.
    for (from, to) in [
        ("flags = []", "defines = { X = \"`touch ran`\" }"),
        (
            "flags = []",
            "defines = { X = \"\\\\\\\\\\\"; touch ran; \\\\\\\\\\\"\" }",
        ),
        ("kernels/k.cu", "kernels/$(touch ran).cu"),
        ("kernels/k.cu", "-run"),
        ("kernels/k.cu", "@opts.cu"),
    ] {
        let project = project("", "");
        project.configure(from, to);
        for source in ["kernels/$(touch ran).cu", "-run", "@opts.cu"] {
            project.write(source, SOURCE);
        }
        let ran = build(&project);
        assert!(ran.code == 5 || ran.code == 2, "{to}: {}", ran.err);
        assert!(!project.path("ran").exists(), "{to}");
    }
    // A text that only looks so reaches the source as it is.
    let project = project(
        "static_assert(sizeof(NAME) == 9, \"\"); int a[] = { LIST };",
        "",
    );
    let defines = "defines = { NAME = \"\\\"a b; c'\\\"\\\"|\\\"\", LIST = \"(1 < 2) & 1\" }";
    project.configure("flags = []", defines);
    build(&project).exits(0);
}

#[test]
fn a_configuration_or_a_work_folder_that_is_named_by_two_dots_builds() {
    if !are_here(&["nvcc", "nvdisasm", "g++"]) {
        return;
    }
    let project = project("", "");
    let mut gate = project.gate_of("build -C ../config.toml");
    Ran::by(gate.current_dir(project.path("kernels"))).exits(0);
    // The same build, wherever it is asked for.
    assert_eq!(sources(&project), ["kernels/k.cu"]);
    let (_, is_known) = key(&project);
    assert!(is_known);
    let beside = tempfile::tempdir().unwrap();
    let name = beside.path().file_name().unwrap().to_str().unwrap();
    let config = project.read("config.toml");
    project.write(
        "config.toml",
        format!("{config}[paths]\nwork = \"../{name}\"\n"),
    );
    build(&project).exits(0);
}

#[test]
fn checkouts_in_different_folders_have_the_same_key() {
    if !are_here(&["nvcc", "nvdisasm", "g++"]) {
        return;
    }
    let [one, other] = [(); 2].map(|()| {
        let flags = "\"-Iinclude\", \"-lineinfo\", \"-Xcompiler\", \"-g\"";
        let project = project("#include \"tile.h\"", flags);
        project.write("include/tile.h", "// a header\n");
        let (key, _) = key(&project);
        assert_eq!(sources(&project), ["include/tile.h", "kernels/k.cu"]);
        key
    });
    assert_eq!(one, other);
}

#[test]
fn an_immutable_variant_may_not_ask_whether_files_exist() {
    if !are_here(&["nvcc", "nvdisasm", "g++"]) {
        return;
    }
    let project = project("#if __has_include(\"slow\")\nint slow;\n#endif", "");
    project.configure("flags = []", "flags = []\nimmutable = true");
    build(&project).ends(5, "__has_include");
}

#[test]
fn an_immutable_variant_whose_assembler_file_changed_fails() {
    if !are_here(&["nvcc", "nvdisasm", "g++"]) {
        return;
    }
    let head = "asm(\".pushsection .rodata\\n.incbin \\\"slow.bin\\\"\\n.popsection\");";
    let project = project(head, "");
    project.configure("flags = []", "flags = []\nimmutable = true");
    project.write("slow.bin", "1");
    project.write(".gitignore", ".sparsek-gate/\n");
    project.run("build").exits(0);
    let lock = common::words("baseline --lock --static --reason first --who tester");
    project.run(&lock).exits(0);
    project.run("check --static").exits(0);
    project.write("slow.bin", "2");
    let report = project.run("check --static --format json");
    let report = report.exits(4).json();
    assert!(report.message("immutable-changed").contains("slow.bin"));
}

/// A machine with one variant that is run by a script.
fn measured(run: &str, at_profile: &str) -> Machine {
    let own = format!("run = [{run}]\ninputs = [\"input\"]");
    let machine = Machine::new().configured("source = \"kernels/a.cu\"", &own);
    machine.write("input", "1\n");
    let text = format!(
        "#!/bin/sh\ncase \" $* \" in *\" --mode profile \"*) {at_profile} ;; esac\n\
         echo 'variant: baseline'\necho 'recorded: h200'\n"
    );
    machine.program("program.sh", &text);
    let arguments = "profile_args = [\"--mode\", \"profile\"]\nwork = { flop";
    machine.configured("work = { flop", arguments)
}

#[test]
fn a_program_that_changes_what_was_hashed_fails_and_leaves_no_profile() {
    assert!(!UUID.is_empty());
    let edits_itself = "sed -i 's/x y/y x/' program.sh";
    let (alone, by_shell) = ("\"./program.sh\"", "\"sh\", \"program.sh\"");
    for (run, does, changes) in [
        (alone, ":", None),
        (alone, "echo 2 >input", Some("`input`")),
        (alone, "echo 2 >input; echo 1 >input", Some("`input`")),
        (alone, "cp -p input other; mv other input", Some("`input`")),
        (alone, "rm input", Some("`input`")),
        (alone, "touch -d @1 input", Some("`input`")),
        (alone, edits_itself, Some("`program.sh`")),
        (by_shell, edits_itself, Some("`program.sh`")),
    ] {
        let machine = measured(run, does);
        let profile = machine.path(".sparsek-gate/profiles/bsr_gemm/baseline/profile.json");
        let ran = machine.run("profile --format json");
        let Some(changes) = changes else {
            ran.exits(0);
            assert!(profile.exists());
            continue;
        };
        let report = ran.exits(5).json();
        let messages = report.fields("altered-during-run", "message");
        let of_measured = |one: &&&str| one.contains("what was measured is not what was built");
        let message = messages.iter().find(of_measured).unwrap();
        assert!(message.contains(changes), "{run} {does}: {message}");
        assert!(!profile.exists(), "{run} {does}");
    }
}

/// A project whose one variant is made of two sources, each with a header of its own.
fn of_two_sources() -> Project {
    let project = project("", "");
    project.configure(
        "source = \"kernels/k.cu\"",
        "source = [\"kernels/k.cu\", \"more/other.cu\"]",
    );
    project.write(
        "kernels/k.cu",
        "#include \"of_k.cuh\"\n__global__ void k(float* x) { x[0] = K; }\n\
         void other();\nint main() { k<<<1, 1>>>(nullptr); other(); return 0; }\n",
    );
    project.write("kernels/of_k.cuh", "#define K 1\n");
    project.write(
        "more/other.cu",
        "#if __has_include(\"late.cuh\")\n#include \"late.cuh\"\n#endif\n#include \"of_other.cuh\"\n\
         __global__ void second(float* x) { x[0] = OTHER; }\n\
         void other() { second<<<1, 1>>>(nullptr); }\n",
    );
    project.write("more/of_other.cuh", "#define OTHER 2\n");
    project
}

#[test]
fn several_sources_make_one_program_and_the_key_has_all_of_their_files() {
    if !are_here(&["nvcc", "nvdisasm", "g++"]) {
        return;
    }
    let project = of_two_sources();
    let (first, cached) = key(&project);
    assert!(!cached);
    let own = [
        "kernels/k.cu", "kernels/of_k.cuh", "more/of_other.cuh", "more/other.cu",
    ];
    assert_eq!(sources(&project), own);
    assert_eq!(key(&project), (first.clone(), true));
    let manifest = project.json(&format!(".sparsek-gate/builds/{first}/manifest.json"));
    let kernels = manifest["compiled"]["kernels"].as_object().unwrap();
    assert!(kernels.keys().eq(["_Z1kPf", "_Z6secondPf"]), "{kernels:?}");

    for (file, text) in [
        ("kernels/of_k.cuh", "#define K 1\n"),
        ("more/of_other.cuh", "#define OTHER 2\n"),
    ] {
        project.write(file, "");
        assert!(!is_reused(&project), "{file}");
        project.write(file, text);
        assert!(is_reused(&project), "{file}");
    }
    // The order decides how the program is linked.
    project.configure(
        "[\"kernels/k.cu\", \"more/other.cu\"]", "[\"more/other.cu\", \"kernels/k.cu\"]",
    );
    assert!(!is_reused(&project));
    project.write("more/late.cuh", "");
    assert!(!is_reused(&project));
}

#[test]
fn a_kernel_that_two_sources_define_is_not_read_as_one() {
    if !are_here(&["nvcc", "nvdisasm", "g++"]) {
        return;
    }
    let project = of_two_sources();
    for (file, body) in [
        ("kernels/k.cu", "x[1] = 1;"),
        ("more/other.cu", "x[2] = 2;"),
    ] {
        let text = project.read(file);
        let same = format!(
            "static __global__ void same(float* x) {{ {body} }}\n\
             void* of_{}() {{ return (void*)same; }}\n",
            file.len()
        );
        project.write(file, format!("{text}{same}"));
    }
    build(&project).ends(
        5,
        "give each kernel of the sources a name or a namespace of its own",
    );
}

#[test]
fn a_source_reads_no_file_outside_of_its_checkout_unless_flags_list_its_folder() {
    if !are_here(&["nvcc", "nvdisasm", "g++"]) {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().canonicalize().unwrap();
    fs::write(outside.join("token.h"), "// machine\n#define VALUE 1\n").unwrap();
    fs::write(outside.join("netrc"), "machine-token @ \"x\n").unwrap();
    fs::write(outside.join("error"), "#error machine-token\n").unwrap();
    let place = outside.display();
    let computed = |name: &str| format!("#define NAME \"{place}/{name}\"\n#include NAME");
    let up = "../".repeat(20);
    for head in [
        format!("#include \"{place}/netrc\""),
        format!("#include <{place}/token.h>"),
        format!(" /**/ # /* x */ incl\\\nude \"{place}/netrc\""),
        format!("#include \"{up}{place}/token.h\""),
        "#include \"own.cuh\"".to_owned(),
        format!("asm(\".include \\\"{place}/netrc\\\"\");"),
        format!("asm(\".inc\" \"lude \\\"{place}/netrc\\\"\");"),
        format!(
            "asm(\".pushsection .rodata\\n.inc\" \"bin \\\"{place}/netrc\\\"\\n.popsection\");"
        ),
        computed("token.h"),
        computed("netrc"),
        computed("error"),
    ] {
        let project = project(&head, "");
        project.write("kernels/own.cuh", format!("#include \"{place}/netrc\"\n"));
        let ran = build(&project).ends(5, "which is neither in the checkout");
        assert!(!ran.out.contains("machine-token"), "{head}: {}", ran.out);
    }
    // A folder that flags list, and one beside the project in its checkout.
    let listed = project("#include <token.h>", &format!("\"-I{place}\""));
    build(&listed).exits(0);
    // Behind a link that came with a commit, and behind one that did not.
    let linked = project("#include \"folder/token.h\"", "");
    git(&linked.path(""), "init --quiet");
    std::os::unix::fs::symlink(&outside, linked.path("kernels/folder")).unwrap();
    build(&linked).exits(0);
    fs::remove_dir_all(linked.path(".sparsek-gate")).unwrap();
    git(&linked.path(""), "add --all");
    build(&linked).ends(5, "which is neither in the checkout");
    // What is off, missing, or a folder with the name of a header is not read.
    let off = format!(
        "#ifdef NOWHERE\n#include \"{place}/none.h\"\n#include \"../../none.h\"\n#endif\n#include <random>"
    );
    let named = project(&off, "\"-Isrc\"");
    named.write("src/random/own.h", "");
    build(&named).exits(0);
    // A committed link lists nothing, also for a header that is named as a whole.
    let listing = project(&format!("#include \"{place}/token.h\""), "\"-Iext\"");
    git(&listing.path(""), "init --quiet");
    std::os::unix::fs::symlink(&outside, listing.path("ext")).unwrap();
    git(&listing.path(""), "add --all");
    build(&listing).ends(5, "which is neither in the checkout");
    // A header and an archive behind links that stay in the checkout.
    let inside = project(
        "#include \"folder/own.h\"", "\"-Llib\", \"-lown\", \"-Ifar\"",
    );
    git(&inside.path(""), "init --quiet");
    // Found in another folder than the one of the file that names it.
    inside.write(
        "real/own.h",
        "#include \"far.h\"\n#include \"cuda_fp16.h\"\n",
    );
    inside.write("far/far.h", "");
    fs::create_dir(inside.path("lib")).unwrap();
    object(&inside, "real.a", "int own;");
    for (link, target) in [("kernels/folder", "../real"), ("lib/libown.a", "../real.a")] {
        std::os::unix::fs::symlink(target, inside.path(link)).unwrap();
    }
    git(&inside.path(""), "add --all");
    key(&inside);
    assert!(is_reused(&inside));
    inside.write("real/own.h", "// another");
    assert!(!is_reused(&inside));
    let checkout = Project::empty();
    checkout.write(".git/HEAD", "");
    checkout.write("common.h", "");
    let beside = project("#include \"../../common.h\"", "");
    for file in ["config.toml", "kernels/k.cu"] {
        checkout.write(&format!("part/{file}"), beside.read(file));
    }
    checkout.run("build -C part/config.toml").exits(0);
}
