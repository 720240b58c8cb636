//! Mistakes that people make, and what the tool answers: what is wrong, where, and what to do next.

use crate::common::{self, Project};

/// A configuration with one variant `s/v` that has these keys.
fn with(keys: &str) -> String {
    format!(
        "[toolchain]\narch = \"sm_90a\"\n\n\
         [metric.duration]\ncounter = \"gpu__time_duration.sum\"\ndirection = \"lower\"\n\
         tolerance = '3 %'\n\n\
         [suite.s.variant.v]\n{keys}\n"
    )
}

fn project(config: &[u8]) -> Project {
    let project = Project::empty();
    project.write("config.toml", config);
    project.write("k.cu", SOURCE);
    project.write("k.cpp", SOURCE);
    project.write("k.py", "pass\n");
    project.write("bench.sh", "true\n");
    project.write("stored.json", "{ \"schema\": 3 }");
    project.write(
        "old.json",
        "{ \"schema\": 1, \"exit_code\": 0, \"meaning\": \"passed\" }",
    );
    project.write("cut.json", "{ \"schema\": 1,\n  \"meaning\": \"pas");
    project.write("below/empty", "");
    project.write("old/profiles/empty", "");
    project.write("x.ncu-rep", "");
    project.write("t/v/profile.json", "{}");
    project.write("d/t/v/profile.json", "{}");
    project.write("d/t/v/capture-1.records", "");
    project.write("excel.csv", "ID;Process ID;Process Name\n0;1;bench\n");
    project.write("lib.cuh", "");
    project.write("index.cu", "int main() { return threadIdx.x; }\n");
    project.write("reports/a.ncu-rep", "");
    project.write("lib.cu", "__global__ void k() {}\n");
    project.write("bench.cu", "int main() { return 0; }\n");
    project.write("calls.cu", "int other();\nint main() { return other(); }\n");
    std::os::unix::fs::symlink("nowhere.cu", project.path("gone.cu")).unwrap();
    project
}

const SOURCE: &str = "__global__ void __launch_bounds__(128) softmax(float* x) { x[0] = 1; }\n\
    int main() { softmax<<<1, 1>>>(nullptr); }\n";

/// Mistakes, one a line: the keys of the variant | the command that meets it | its exit code | what is wrong,
/// where, and the next step. `\n` is the end of a line. What is wrong in the configuration alone has its table
/// in `tests/config_errors.rs`.
const MISTAKES: &str = r#"
run = ["sh", "bench.sh"]\ninputs = ["none.py"] | build | 5 | the input `none.py` cannot be read; s/v; check `inputs` of s/v
run = ["sh", "bench.sh"]\ninputs = ["src/*.py"] | build | 2 | matches no file; `src/*.py` in `inputs` of s/v; next: correct the pattern
run = ["sh", "bench.sh"]\nprogram = "bench.sh" | build | 5 | it is no ELF file, no fatbin and no cubin; `bench.sh`; a script has none: name the `.so` of an extension in `libraries`; `loaded_code = true` in the place of `program`
run = ["sh", "bench.sh"]\nprogram = "k.cpp" | build | 5 | it is no ELF file, no fatbin and no cubin; `program` and `libraries`; where they have PTX alone, build machine code too
run = ["sh", "bench.sh"]\nbuild = ["true"]\nprogram = "bin/zz" | build | 5 | the build succeeded, but there is no file `bin/zz`; let `build` make it, or correct `program` and `libraries` of s/v
run = ["sh", "bench.sh"]\nloaded_code = true | check --static | 6 | so that only a measurement shows it; next: measure it: sparsek-gate check s/v
run = ["sh", "bench.sh"] | check --static | 6 | this tool does not build its program, and no `program` that counts is stated; name the files with its kernels in `program` or `libraries`
run = ["sh", "bench.sh"]\nprogram = "lib.cu" | build | 5 | it is a CUDA source: write `source`
libraries = ["be*.so"] | build | 5 | the machine code of `be*.so` cannot be read; next: name each file, because no patterns are taken here
run = ["sh bench.sh"] | list | 2 | `sh bench.sh` is several arguments in one; write an item for each: ["sh", "bench.sh"]
run = ["sh", "bench.sh"]\nbuild = ["make -j4"] | build | 2 | `make -j4` is several arguments in one; write an item for each: ["make", "-j4"]
run = ["sh", "bench.sh"]\nbuild = ["no-such-tool", "all"] | build | 5 | the program `no-such-tool` was not found; s/v; correct `build` of the variant
run = ["./none"]\nbuild = ["true"] | build | 5 | the build succeeded, but there is no program `./none`; let `build` make it, or correct `run` of s/v
source = "k.cu"\n[paths]\nwork = "." | list | 2 | `work` must be a folder of its own; write `.sparsek-gate`
source = "k.cu" | list w | 2 | no variant or suite is called `w`; known are `s`, `s/v`, `v`; several words of `--reason` are quoted (`sparsek-gate list` shows all
source = "k.cu" | check --report :out.md | 2 | `--report :out.md` names no form before the colon
source = "k.cu" | check --pull-request '' | 2 | the variable that names it is empty: leave the option out
source = "k.cu" | -C below init | 2 | below is a folder: name the file: `-C below/config.toml`
source = "k.cu" | list ./k.cu | 2 | it is a file, and variants have names
source = "k.cu" | list ss/v* | 2 | no variant or suite matches `ss/v*`; did you mean `s/v*`?
source = "k.cu"\nexperimental = true | list s | 2 | `s` has experimental variants alone: pass --experimental, or name one, such as s/v
source = "k.cu" | list s/x* | 2 | no variant or suite matches `s/x*`; `s` has v (`sparsek-gate list` shows all
source = "k.cu" | check --report text:k.cu | 2 | `--report k.cu` would replace a file that is read
source = "k.cu" | archive --output k.cu | 2 | `--output k.cu` would replace a file that is read
source = "k.cu" | baseline --show --from x | 2 | '--show' cannot be used with '--from <DIR>'
source = "k.cu" | compare --against x k.cu | 2 | `against` belongs to `tolerance = { stored = "4 %", against = "0.5 %" }` of `[metric.NAME]`
source = "k.cu" | check --report out.foo | 2 | selects no form; `--report out.foo`; The endings are: .txt (text)
source = "k.cu" | profile --slice 1/2 | 2 | required arguments were not provided; --output <DIR>
source = "k.cu" | profile --archive none.zst --output d | 2 | there is no file; none.zst
source = "k.cu" | profile --archive bench.sh --archive-sha256 0 --output d | 2 | bench.sh; and 0 was expected; next: a SHA-256 has 64 hexadecimal digits
source = "k.cu" | profile --archive bench.sh --archive-sha256 0000000000000000000000000000000000000000000000000000000000000000 --output d | 2 | next: it is another archive: take the file and the hash of one run of `archive`
source = "k.cu" | check --from . --from nowhere | 2 | is not a folder; `--from nowhere`; `profile --output DIR` makes one
source = "k.cu" | check --from d --archive gate.tar.zst | 2 | required arguments were not provided; --archive-sha256 <HASH>
source = "k.cu" | check --from old.tar.zst | 2 | unpack the archive, and name its folder that has SUITE/VARIANT/profile.json
source = "k.cu" | check --from nowhere | 2 | is not a folder; `--from nowhere`; `profile --output DIR` makes one
source = "k.cu" | check --from x.ncu-rep | 2 | is not a folder; `--from x.ncu-rep`; next: sparsek-gate import x.ncu-rep --variant SUITE/VARIANT, then sparsek-gate check --from .sparsek-gate/profiles SUITE/VARIANT
source = "k.cu" | check --from d/t/v/capture-1.records | 2 | is not a folder; next: name the folder above SUITE/VARIANT: --from DIR
source = "k.cu" | compare --tolerance -5% ./a ./b | 2 | no number is negative here
source = "k.cu" | check --from t/v/profile.json | 2 | is not a folder; next: name the folder above SUITE/VARIANT: --from DIR
source = "k.cu" | check --from stored.json | 2 | is not a folder; next: name the folder that has SUITE/VARIANT/profile.json
source = "k.cu" | import old --variant s/v | 2 | old: a folder is not imported; next: name its files: old/*.ncu-rep; sparsek-gate check --from old s/v
source = "k.cu" | import excel.csv --variant s/v | 2 | it is a page of ncu that another program wrote again; name the report, or the page as ncu printed it
source = "k.cu" | import d/t/v --variant s/v | 2 | of profiles of this tool: sparsek-gate check --from d s/v
source = "k.cu" | import t/v --variant s/v | 2 | of profiles of this tool: sparsek-gate check --from /
source = "k.cu" | compare x.ncu-rep x.ncu-rep --tolerance 1 --strict | 2 | --tolerance, --strict: no effect on stored measurements; for a verdict; sparsek-gate import x.ncu-rep MORE --variant SUITE/VARIANT; check --from .sparsek-gate/profiles; files of two processes at least
source = "k.cu" | compare d/t/v d/t/v/profile.json --strict | 2 | beside a config.toml: sparsek-gate baseline --lock --reason '...' --from /; /d SUITE/VARIANT; sparsek-gate check --from /
source = "k.cu" | compare old.json stored.json | 2 | old.json: not a profile: it has no `kernels`; the outcome of a check is rendered by `sparsek-gate report`
source = "k.cu" | compare d/t/v/capture-1.records d/t/v/capture-1.records | 2 | d/t/v/capture-1.records: it is kernel records of this tool, and no program; next: name the folder that has it and profile.json: d/t/v
source = "k.cu" | compare stored.json stored.json --verify true --kernels k --skip 0 --launches 20 --timeout 300 --counters --clock-control none --gpu 0 --env-pass A --output d | 2 | --verify, --kernels, --skip, --launches, --timeout, --counters, --clock-control, --gpu, --env-pass, --output: no effect
source = "k.cu" | compare './a --n' ./b ./c | 2 | 3 programs are named, and at most two are compared
source = "k.cu" | compare ./a 4 ./b | 2 | each as one argument: compare './a 4' ./b
source = "k.cu" | compare --tolerance -1 ./none 'sh bench.sh' | 2 | --tolerance; must be at least 0 and below 100
source = "k.cu" | compare --tolerance '1 %' ./none 'sh bench.sh' | 2 | there is no program `./none`
source = "k.cu" | compare --tolerance 0,5 ./none 'sh bench.sh' | 2 | not a number of percent, such as 0.5
source = "k.cu" | generate completion bash | 2 | `generate completions SHELL`
source = "k.cu" | compare ./none 'sh bench.sh' | 2 | there is no program `./none`; correct its name, or build it
source = "k.cu" | compare ./bench.sh | 2 | `./bench.sh` is no program; name what runs it, such as python3; packed ones are unpacked before
source = "k.cu" | compare ./bench.sh k.py | 2 | `./bench.sh` is no program
source = "k.cu" | compare k.py ./bench.sh | 2 | `k.py` is no program
source = "k.cu" | compare --kernels regex:( ./a ./b | 2 | the pattern `(` of `kernels` is not a regular expression: unclosed group
source = "k.cu" | compare --kernels regex:^(?!a) ./a ./b | 2 | is understood only by ncu: look-around
source = "k.cu" | init --force ./bench --n 4096 | 2 | `sparsek-gate init --force -- ./bench --n 4096`
source = "k.cu" | plan --against nope --format slurm | 0 | this clone has no revision `nope`
source = "k.cu" | --config list | 2 | `list` was taken for the value of an option
source = "k.cu" | check --from old | 6 | old contains no profile of it; s/v; next: name the folder in it: `--from old/profiles`
source = "k.cu" | check --accept zz | 2 | takes the token that the finding prints; `--accept zz`; 64 hexadecimal digits
source = "k.cu" | check --accept "0000000000000000000000000000000000000000000000000000000000000000 0000000000000000000000000000000000000000000000000000000000000000" | 2 | several have a comma between them: `--accept A,B`
source = "k.cu" | inspect bench.sh | 2 | no CSV header of ncu; bench.sh; found a text of ; name a `.ncu-rep`
source = "k.cu" | inspect stored.json | 2 | it is a JSON file; stored.json; name a report
source = "k.cu" | inspect . | 2 | not a regular file but a folder
source = "k.cu" | inspect none.ncu-rep | 2 | there is no file; none.ncu-rep
source = "k.cu" | report none.json | 2 | there is no file; none.json
source = "k.cu" | report bench.sh | 2 | it is not the outcome of a check; bench.sh; check --report outcome.json
source = "k.cu" | report stored.json | 2 | it is not the outcome of a check; stored.json; check --report outcome.json
source = "k.cu" | profile --archive bench.sh --output d | 2 | cannot be unpacked as an archive of the gate; bench.sh
source = "k.cu" | profile --output config.toml | 2 | `--output config.toml` is a file: name a folder
source = "k.cu"\n[paths]\nwork = "." | list | 2 | `work` must be a folder of its own
source = "k.cu"\n[paths]\nwork = "baselines" | list | 2 | `work` must be a folder of its own
source = "k.cu"\n[paths]\nwork = "baselines/.." | list | 2 | `work` must be a folder of its own
source = "k.cu"\n[paths]\nwork = "../" | list | 2 | `work` must be a folder of its own
run = ["sh", "bench.sh"]\nbuild = ["true"]\n[paths]\nwork = "below" | build | 2 | the work folder; below has a file of something else (`empty`), and no `.gitignore`; next: name a folder of its own in `paths.work`
source = "k.cu" | report old.json | 2 | its schema is 1, but this version reads schema; old.json; run the check again
source = "k.cu" | report cut.json | 2 | it is cut, or empty: it ends in line 2; cut.json; copy the file again
source = "k.cu" | report old.json --report markdown:below | 2 | it is a folder; `--report below`; name a file in it
source = "k.cu" | check --against '' | 2 | found no tag: fetch the tags, or make one
source = "k.cu" | check --format xml | 2 | 'xml'; a similar value exists: 'junit'
source = "k.cu" | check --tolerance 3 | 2 | '--tolerance'; in the configuration, `tolerance` belongs to `[metric.NAME]`
source = "k.cu" | --static check | 2 | '--static'; options of a command follow it: `check --static`
source = "k.cu" | check --json | 2 | '--json'; tip: `--format json`
source = "k.cu" | check -f json | 2 | '-f'; tip: `--format json`
source = "k.cu" | baseline --update | 2 | tip: `baseline --lock --reason TEXT` locks
source = "k.cu" | baseline --unlock s/v | 2 | tip: `git rm 'baselines/*/SUITE/VARIANT.*'` removes a baseline
source = "k.cu" | baseline --list | 2 | `baseline --show` what is locked
source = "k.cu" | generate man check | 2 | `--output man1`, and `man man1/sparsek-gate-check.1`
source = "k.cu" | check --report out.JSON | 2 | selects no form: write `--report json:out.JSON`
source = "k.cu" | check --report html | 2 | write `--report html:FILE`
source = "k.cu" | compare '~/a' ./bench.sh | 2 | there is no program `~/a`; `~` and variables are not expanded here
source = "k.cu" | check --static -o baselines/x | 2 | `--output baselines/x` is in the folder of baselines
run = ["./none"] | build | 5 | there is no program `./none`; correct its name, or build it
run = ["python3", "none.py"] | build | 5 | there is no program `none.py`; correct its name
source = "k.cu" | baseline --lok | 2 | did you mean `--lock`?
source = "k.cu" | report o.json -o r.html | 2 | `--report FILE` of `check` and `report`
source = "k.cu" | lock | 2 | 'lock'; `baseline --lock --reason TEXT` locks
source = "k.cu" | run s/v | 2 | 'run'; `check` measures and judges
source = "k.cu" | compare ./a --n 1 ./b --n 1 | 2 | '--n'; compare './a --n 1' './b --n 1'
source = "k.cu" | compare ./a 1 ./b 1 | 2 | each as one argument: compare './a 1' './b 1'
source = "k.cu" | compare k.cu k.cu | 2 | it is no ELF file; k.cu; with machine code of a GPU (`nvcc -arch=sm_90a`)
source = "k.cu" | compare x.ncu-rep k.cu | 2 | k.cu is no report of ncu, no CSV and no profile; x.ncu-rep is compared with one of these
source = "k.cu" | compare --static /bin/sh /bin/sh | 2 | it has no machine code of a GPU: PTX is not compared; /bin/sh; with machine code of a GPU
source = "k.cu" | compare --static './k.cu --n 5' k.cu | 2 | is no file; `./k.cu --n 5`; without arguments
source = "k.cu" | compare --static s/v s/v | 2 | `s/v` is a variant, and `compare` takes files and programs; next: compare two revisions of it by `check --against REV s/v`
source = "k.cu" | compare './k.cu --n 5' s/v | 2 | `s/v` is a variant; `build s/v --format json` has the path of its program
source = "k.cu" | compare --nvcc no/nvcc --nvcc nvcc | 2 | no/nvcc` is no program; `--nvcc; name the file of a toolkit
source = "k.cu" | baseline --verify --captures nowhere | 2 | is not a folder; `--captures nowhere`; next: name the folder that has SUITE/VARIANT/profile.json
source = "k.cu" | check t/v0/x9 | 2 | no variant or suite is called `t/v0/x9`: known are `s`, `s/v`, `v` (`sparsek-gate list` shows all
source = "k.cu" | build -D -DTILE=4 | 2 | `--define -DTILE=4`; write `-D NAME=VALUE`
source = "k.cu" | init k.cu | 2 | run `sparsek-gate init`, and write `source = "k.cu"` in its config.toml
source = "k.cu" | baseline --lock --in-ci --reason x --from nowhere | 2 | is not a folder; `--from nowhere`; `profile --output DIR` makes one
source = "k.cu" | check -static | 2 | did you mean `--static`?
source = "k.cu" | check --suite s | 2 | names of variants and suites are arguments: `check SUITE/VARIANT`
source = "k.cu" | profile --static | 2 | `--static` is an option of `baseline`, `check`, `compare`
source = "k.cu" | build --arch sm_80 | 2 | in the configuration, `arch` belongs to `[toolchain]`
source = "k.cu" | compare --gpus 1 ./a ./b | 2 | did you mean `--gpu`?
source = "k.cu" | compare --json ./a ./b | 2 | tip: `--format json`
source = "k.cu" | compare a.ncu-rep b.ncu-rep | 2 | there is no file a.ncu-rep
source = "k.cu" | generate man man1 | 2 | tip: `--output man1`
source = "k.cu" | clean | 2 | tip: remove the work folder `.sparsek-gate`
source = "k.cu" | lsit | 2 | did you mean `list`?
source = "k.cu" | check --static -o report.md | 2 | a report is written by `--report report.md`
source = "k.cu" | check --report a.md,b.json | 2 | state `--report` once for each file
source = "k.cu" | check --against refs/remotes/origin/ | 2 | the variable that names the branch is empty
source = "k.cu" | check --static --against below/ | 3 | not a git repository
source = "k.cu" | compare --timeout 10m ./a ./b | 2 | it is a whole number, 1 to 86400
source = "k.cu" | compare --gpu first ./a ./b | 2 | it is a whole number, 0 or more
source = "k.cu" | check --from below --measure-all | 2 | cannot be used with
source = "k.cu" | check --update-baseline | 2 | tip: `baseline --lock --reason TEXT` locks what was measured
source = "k.cu" | check --kernel-name softmax | 2 | tip: `kernels` in the configuration, or `--kernels` of `compare`, selects kernels
source = "k.cu" | check static | 2 | the option is `--static`
source = "k.cu" | check s/v,s/w | 2 | several names are arguments of their own: `SUITE/A SUITE/B`
source = "k.cu" | check k.cu | 2 | a pattern of names is quoted
source = "k.cu" | -C below check | 2 | not a regular file but a folder; `-C` takes the file of the configuration
source = "k.cu" | -C . check | 2 | name the file: `-C ./config.toml`
source = "k.cu" | compare --nvcc nvcc --nvcc no/nvcc | 2 | no/nvcc` is no program
source = "k.cu" | baseline lock --reason x | 2 | did you mean `--lock`?
source = "k.cu" | archive --output . | 2 | `--output .`: it is a folder: name a file in it
source = "k.cu" | check --static --against '' | 2 | the variable that names the branch is empty; leave the option out
source = "k.cu" | check --static --against 'refs/remotes/origin/${{ github.base_ref }}' | 2 | nothing replaced the variable in it; in a script write "refs/remotes/origin/$GITHUB_BASE_REF"
source = "k.cu" | init ./bench --n 4 | 2 | a program follows `--`: `sparsek-gate init -- ./bench --n 4`
source = "k.cu" | compare . ./nope | 2 | there is no file or folder ./nope
source = "k.cu" | plan --slices 50 | 0 | slice 1/1: 1 variant
source = "k.cu" | baseline --verify | 4 | it has no baseline yet; s/v; baseline --lock --reason; `--static`: its compiled code
source = "k.cu" | compare './a "b' | 2 | a quote or a backslash at its end is not closed; `./a "b`
source = "k.cu" | compare below below | 2 | there is no below/profile.json; name the folder of one variant: DIR/SUITE/VARIANT
source = "k.cu" | -C other.toml check | 2 | cannot read the configuration; other.toml; name the one that is there: `-C config.toml`
source = "k.cu" | compare --rounds 5 ./a ./b | 2 | '--rounds'; one of a program stands in its quotes: compare './a --rounds' ./b
source = "k.cu" | baseline --static --reason x | 2 | did you mean `--lock`?
source = "k.cu" | init | 2 | config.toml exists; --force replaces it
source = "k.cu" | check s/ --from d | 2 | no variant or suite is called `s/`; `s` has v
source = "k.cu" | check t --from d | 2 | the recording has `t`, and config.toml has no such variant
source = "k.cu" | list --names w | 2 | no variant or suite is called `w`
source = "k.cu" | list S/v | 2 | did you mean `s/v`?
source = "k.cu" | compare reports reports | 2 | there is no reports/profile.json; next: name a report in it: reports/a.ncu-rep
"#;

/// As [`MISTAKES`]: those that the compiler finds.
const COMPILED: &str = r#"
source = "*.cu" | build | 5 | there is no source `*.cu`: each file is named; check `source` of s/v in config.toml, a path from the folder of that file and no pattern
source = "gone.cu" | build | 5 | the source `gone.cu` is no file; it is a link to `nowhere.cu`
source = "k.cu"\ndefines = { TBP = 64 } | build | 0 | no file of this project names `TBP`: check the name
source = "k.cu"\nflags = ["-G"] | check --static | 4 | the flag `-G` switches the optimization of device code off; `-lineinfo` keeps the lines
source = "bench.cu" | check --static | 5 | kernel-missing; has no kernel; name a source that defines a `__global__` function
source = "k.cu" | build -D TPB=64 | 0 | no file of this project names `TPB`: check the name; a build with `-D` is not locked: put a constant that stays into `defines`
source = "k.cpp" | build | 5 | '__global__' does not name a type; s/v; rename the source to `.cu`
source = "k.cu"\nflags = ["-I$HOME/include"] | build | 5 | variables are not expanded: write the path itself; check `flags` of s/v
source = "k.cu"\nflags = ["-march=native"] | build | 5 | it is one of the host compiler: write `-Xcompiler=-march=native`
source = "k.cu"\nflags = ["-I include -DSMALL=1"] | build | 5 | one argument is one item: write `["-I", "include", "-DSMALL=1"]`
source = "k.cu"\nflags = ["-DFOO BAR"] | build | 5 | a constant is one word: write `"-DFOO=BAR"`
source = "k.cu"\nflags = ["O3"] | build | 5 | the flag `O3` is refused: did you mean `-O3`?
source = "k.cu"\nflags = ["lineinfo"] | build | 5 | did you mean `-lineinfo`?
source = "k.cu"\nflags = ["-03"] | build | 5 | did you mean `-O3`?
source = "k.cu"\nflags = ["-DA=1 -lineinfo"] | build | 5 | one argument is one item: write `["-DA=1", "-lineinfo"]`
source = "calls.cu" | build | 5 | undefined reference; name each file that defines it: `source = ["a.cu", "b.cu"]`
source = "k.cu"\nflags = ["-run"] | build | 5 | the flag `-run` is refused: this tool does not know which files and programs it uses
source = "k.cu"\nflags = ["-Xptxas=--warn-on-spillz"] | build | 5 | for ptxas is refused: did you mean `--warn-on-spills`?
source = "k.cu"\nkernels = "softmax|none" | check --static | 5 | (it is one name: the pattern is `regex:^(softmax|none)$`)
source = "k.cu"\nflags = ["-O9x"] | build | 5 | the flag `-O9x` is refused: nvcc takes a number: write `-O3`
source = "k.cu"\nflags = ["--use_fst_math"] | build | 5 | the flag `--use_fst_math` is refused: did you mean `--use_fast_math`?; check `flags` of s/v
source = "k.cu"\nflags = ["-Xptxas -dlcm=ca"] | build | 5 | is refused: one argument is one item: write `["-Xptxas", "-dlcm=ca"]`
source = "k.cu"\nflags = ["-ccbin", "g++"] | build | 5 | the flag `-ccbin` is refused: the environment variable NVCC_CCBIN names the host compiler
source = "k.cu"\nflags = ["-std=c++99"] | build | 5 | Value 'c++99' is not defined for option 'std'; s/v; fix the source or the flags
source = "k.cu"\nthreads_per_block = 256 | check --static | 4 | launch-mismatch s/v; stated to have `threads_per_block` 256, but its launch bounds allow 128
source = "k.cu"\nkernels = "softmin" | check --static | 5 | `kernels = "softmin"` selects none of the compiled kernels: softmax; s/v; compare `kernels`, `expect`
source = "k.cu"\nkernels = "soft*" | check --static | 5 | `kernels = "soft*"` selects none of the compiled kernels (it is one name: the pattern is `regex:^(soft.*)$`): softmax; s/v
source = "k.cu"\n[metric.registers]\ndirection = "lower"\ntolerance = "8" | check --static | 4 | the tolerance of `[metric.registers]` is for what a run measures alone; state it in `[static.registers]` too
source = "index.cu" | build | 5 | __device_builtin_variable_; give the function that uses `blockIdx` or `threadIdx` its `__global__`
source = "lib.cuh" | build | 5 | `source` names a header: name the `.cu` that includes it
source = ["k.cu", "bench.cu"] | build | 5 | multiple definition of `main'; each source with a `main` is a variant of its own
source = "k.cu"\nflags = ["-lnone"] | build | 5 | cannot find -lnone; name the folder of that library, such as `-L/usr/local/lib` in `flags`
source = "k.py" | build | 5 | Don't know what to do with; s/v; `source` is for nvcc; of another program write `run`
source = "k.cu"\nexpect = ["softmin"] | check --static | 5 | did not produce the expected kernel `softmin`; compiled kernels: softmax; compare `kernels`, `expect`
"#;

/// As [`MISTAKES`], on a machine without a GPU.
const WITHOUT_GPU: &str = r#"
libraries = ["x.so"] | check | 3 | next: no selected variant has a `main` to run: `sparsek-gate check --static` judges its code
source = "lib.cu" | verify | 3 | next: no selected variant has a `main` to run: `sparsek-gate check --static` judges its code
source = "lib.cu" | profile | 3 | next: no selected variant has a `main` to run
source = "k.cu" | verify | 3 | no GPU can be used
"#;

#[track_caller]
fn answers(config: &[u8], command: &str, code: &str, words: &str) {
    let arguments = shell_words::split(command).unwrap();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ran = project(config).run(&arguments);
    let ran = ran.exits(code.parse().unwrap());
    for word in words.split("; ") {
        assert!(
            ran.out.contains(word) || ran.err.contains(word),
            "{command}: {word:?} is not in\n{}{}",
            ran.out,
            ran.err
        );
    }
}

fn each_answers(mistakes: &str) {
    for mistake in mistakes.trim().lines() {
        let cells: Vec<&str> = mistake.split(" | ").collect();
        let config = with(&cells[0].replace("\\n", "\n"));
        answers(config.as_bytes(), cells[1], cells[2], cells[3]);
    }
}

#[test]
fn a_mistake_is_answered_with_what_where_and_the_next_step() {
    each_answers(MISTAKES);
}

#[test]
fn an_option_that_is_unknown_is_not_offered_as_a_value() {
    let ran = project(with("source = \"k.cu\"").as_bytes()).run("list -v");
    let ran = ran.ends(2, "unexpected argument '-v'");
    assert!(!ran.err.contains("as a value"), "{}", ran.err);
}

#[test]
fn a_configuration_that_is_not_utf8_is_answered_with_the_command_that_converts_it() {
    let text = with("source = \"k.cu\" # \u{e9}");
    let latin1: Vec<u8> = text
        .chars()
        .map(|c| u8::try_from(c as u32).unwrap())
        .collect();
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for config in [latin1, utf16] {
        let words = "not a text in UTF-8; config.toml; iconv -f";
        answers(&config, "list", "2", words);
    }
}

#[test]
fn a_tool_that_the_configuration_names_wrongly_is_answered_with_its_key() {
    let missing = "no/tool, which is no program; correct the path";
    for (key, command, path, words) in [
        ("nvcc", "build", "no/tool", missing),
        ("ncu", "profile", "no/tool", missing),
        (
            "nvcc", "build", "k.cu", "which is no program; correct the path",
        ),
    ] {
        let named = format!("[toolchain]\n{key} = \"{path}\"");
        let config = with("run = [\"true\"]").replace("[toolchain]", &named);
        let config = match key {
            "nvcc" => config.replace("run = [\"true\"]", "source = \"k.cu\""),
            _ => config,
        };
        let words = format!("`toolchain.{key}` is; {words}");
        answers(config.as_bytes(), command, "3", &words);
    }
}

#[test]
fn a_host_compiler_that_is_not_there_is_answered_with_the_variable_that_names_it() {
    let project = project(with("source = \"k.cu\"").as_bytes());
    for (name, value) in [
        ("NVCC_CCBIN", "clang++-99"),
        ("NVCC_PREPEND_FLAGS", "-ccbin clang++-99"),
        ("NVCC_APPEND_FLAGS", "-ccbin=clang++-99"),
    ] {
        let mut gate = project.gate();
        let ran = gate.arg("build").env(name, value).output().unwrap();
        common::Ran::of(&ran)
            .ends(
                3,
                "needs a host compiler and `clang++-99` is not on the PATH",
            )
            .says(&format!("{name} is `{value}`"))
            .says(&format!("correct or unset {name}"));
    }
}

#[test]
fn a_command_below_the_project_is_answered_with_the_folder_of_the_configuration() {
    let project = project(with("source = \"k.cu\"").as_bytes());
    let mut gate = project.gate();
    gate.arg("list").current_dir(project.path("below"));
    let ran = common::Ran::of(&gate.output().unwrap()).exits(2);
    ran.says(&format!(
        "run it in {}, which has one",
        project.path("").canonicalize().unwrap().display()
    ));
}

#[test]
fn an_unknown_revision_is_answered_with_how_to_list_those_that_there_are() {
    let project = project(with("source = \"k.cu\"").as_bytes());
    for arguments in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["commit", "-qm", "first"],
    ] {
        common::git::git(&project.path(""), arguments);
    }
    let ran = project.run("check --against nonsense").exits(2);
    ran.says("`--against nonsense`: there is no such revision")
        .says("next: name a branch, a tag or a commit");
}

#[test]
fn a_source_in_a_submodule_that_is_not_there_is_answered_with_the_command_that_brings_it() {
    if !common::are_here(&["nvcc"]) {
        return;
    }
    let project = project(with("source = \"lib/k.cu\"").as_bytes());
    let submodule = format!("160000,{},lib", "1".repeat(40));
    for arguments in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["commit", "-qm", "first"],
        &["update-index", "--add", "--cacheinfo", &submodule],
    ] {
        common::git::git(&project.path(""), arguments);
    }
    let ran = project.run(&["build"]).exits(5);
    ran.says("there is no source `lib/k.cu`")
        .says("next: check out its submodule: git submodule update --init lib");
}

#[test]
fn without_a_gpu_variants_of_which_nothing_runs_are_answered_with_the_static_check() {
    if common::are_here(&["nvcc"]) && !common::has_driver() {
        each_answers(WITHOUT_GPU);
    }
}

#[test]
fn a_mistake_that_the_compiler_finds_is_answered_with_the_key_to_correct() {
    if !common::are_here(&["nvcc"]) {
        return;
    }
    each_answers(COMPILED);
    let checked = |keys: &str, more: &str| {
        let project = project(format!("{}{more}", with(keys)).as_bytes());
        project.run("check --static --format json").json()
    };
    // The command that is printed locks an edited reference.
    let reference = project(with("source = \"k.cu\"\nimmutable = true").as_bytes());
    let lock = |more: &str| {
        let words = format!("baseline --lock{more} --static --reason ... s/v");
        let _ = reference.run("check --static");
        reference.run(&words.split(' ').collect::<Vec<_>>())
    };
    lock("").exits(0);
    reference.write("k.cu", format!("{SOURCE}// edited\n"));
    reference.run("check --static").exits(4).says(
        "to lock it anyway: sparsek-gate baseline --lock --accept-immutable --static --reason '...' s/v",
    );
    lock(" --accept-immutable").exits(0);
    reference.run("check --static").exits(0);
    // Nothing of it is to be locked.
    let report = checked("source = \"k.cu\"\nkernels = \"softmin\"", "");
    assert_eq!(report.denied(), ["kernel-missing"]);
    // Beside no baseline nothing is the same.
    let report = checked("source = \"k.cu\"", "[static.registers]\nmax = 1\n");
    assert_eq!(report.denied(), ["limit-exceeded", "new-baseline"]);
    let message = report.message("limit-exceeded");
    assert!(message.ends_with("above its limit of 1"), "{message}");
    // What the kernels that were compiled need is not why.
    let config = with("source = \"k.cu\"\nflags = [\"-lnone\"]");
    let linked = project(config.as_bytes());
    let ran = linked.run("build").exits(5);
    assert!(
        ran.out.contains("cannot find -lnone") && !ran.out.contains("bytes gmem"),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains("bytes stack frame"), "{}", ran.out);
    let config = with("source = \"k.cu\"").replace("sm_90a", "sm_999");
    let words = "Unsupported gpu architecture; s/v; correct `toolchain.arch`";
    answers(config.as_bytes(), "build", "5", words);
    let volta = with("source = \"k.cu\"").replace("sm_90a", "sm_70");
    let words = "CUDA 13 removed all chips before Turing";
    answers(volta.as_bytes(), "build", "5", words);
}
