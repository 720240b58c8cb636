//! What is wrong in `config.toml` is refused, with its line and the nearest right thing.

use std::ops::Range;
use std::path::Path;

use clap::Parser as _;
use sparsek_gate::cli::Cli;
use sparsek_gate::config::Config;

use crate::common::{Project, Ran, schema_complaints};

/// One line a key, so that the line of an error shows the key.
const EVERY_KEY: &str = r#"env_pass = ["MY_DATA"]

[paths]
baselines = "baselines"
work = ".sparsek-gate"
unread = ["*.md", "docs/**"]

[toolchain]
arch = "sm_90a"
nvcc = "bin/nvcc"
ncu = "bin/ncu"
compute_sanitizer = "bin/compute-sanitizer"
flags = ["-O3"]

[trust]
accept = "code-owners"

[profile]
launches = 20
skip = 1
processes = 2
clock_control = "none"
cache_control = "all"
replay_mode = "kernel"
graph_profiling = "node"
profiler_range = false
timeout_s = 120.0
retries = 1
accept_tiers = ["kernel-times"]

[verify]
timeout_s = 60
sanitizer = ["memcheck", "racecheck"]

[metric.duration]
counter = "gpu__time_duration.sum"
direction = "lower"
tolerance = { stored = '3 %', against = '0.5 %' }
phase = "timing"
min = 0
max = 1e9
level = "deny"

[metric.duration.on]
s = { stored = '4 %', against = '1 %' }
"s/a" = '3 %'

[metric.sm_active]
direction = "higher"
tolerance = '2'
unless_faster = true

[metric.flop]
counter = "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32.sum"
exact = true
counts = { flop = 1 }

[metric.stored]
counter = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
exact = true
counts = { bytes_written = 32 }
variants = ["s/a", "s/b"]

[static.registers]
level = "warn"
tolerance = '4'
min = 1
max = 255

[static.wgmma_instructions]
level = "warn"

[suite.s]
description = "a suite"
args = ["--m", "8"]
verify_args = ["--check"]
sanitizer_args = ["--small"]
profile_args = ["--profile"]
kernels = "regex:^k"
metrics = ["duration", "flop", "stored"]
work = { flop = 1024, bytes_written = 4096 }

[suite.s.profile]
launches = 10

[suite.s.verify]
timeout_s = 5

[suite.s.variant.a]
description = "a variant"
source = "kernels/a.cu"
flags = ["-G"]
defines = { TILE = 8 }
args = ["--n", "8"]
verify_args = ["--check"]
sanitizer_args = ["--small"]
profile_args = ["--profile"]
kernels = "k"
expect = ["k"]
dynamic_shared_bytes = 1024
threads_per_block = 128
work = { flop = 2048, bytes_written = 4096 }
env = { A = "b" }
immutable = true
experimental = false
profile = { launches = 5 }
verify = { timeout_s = 5 }

[suite.s.variant.b]
build = ["make"]
run = ["./b"]
inputs = ["b.py"]
program = "build/b"
libraries = ["build/libb.so", "b.cubin"]
loaded_code = false

[suite.made.variant.c]
matrix = { n = [1, 0.5], mode = { fast = ["--fast", "{n}"], exact = [] } }
run = ["./c", "--n={n}", "{mode}"]

[[waiver]]
variant = "s/a"
metric = "duration"
reason = "the new driver"
who = "Ada"
expires = 2026-12-31
up_to = "5 %"

[toolchain.pins]
cuda = "13.0"
ncu = ">=2025.3, <2027"
driver = ">=580"
gpus = ["NVIDIA H*"]
mismatch = "warn"
"#;

fn project(config: &str) -> Project {
    let project = Project::empty();
    project.write("config.toml", config);
    project
}

/// What the library says of a configuration, as a command reports it.
fn load(config: &str) -> Ran {
    let (code, err) = match Config::parse(Path::new("config.toml"), config) {
        Ok(_) => (0, String::new()),
        Err(error) => (2, format!("error: {error}\n")),
    };
    let out = String::new();
    Ran { code, out, err }
}

/// Edits of [`EVERY_KEY`] that are refused, one a line: what is replaced | by what | the parts of the complaint.
/// `\n` is the end of a line, `&&` a further edit, `-` nothing. The complaint names a line of the edit.
const REFUSED: &str = r#"
# A misspelled placeholder is named.
profile_args = ["--profile"]\nkernels = "regex:^k" | profile_args = ["{launch}"]\nkernels = "regex:^k" | `{launch}` is no placeholder; did you mean `launches`?
profile_args = ["--profile"]\nkernels = "k" | profile_args = ["{results}"]\nkernels = "k" | `{results}` is no placeholder; did you mean `result`?; `{launches}`
profile_args = ["--profile"]\nkernels = "k" | profile_args = ["--out={Result}{seeds}"]\nkernels = "k" | `{Result}` is no placeholder; did you mean `result`?
profile_args = ["--profile"]\nkernels = "k" | profile_args = ["{ launches }"]\nkernels = "k" | `{ launches }` is no placeholder; did you mean `launches`?
# A pattern of unread files is a path from the top of the repository.
"docs/**" | "docs/[" | unclosed character class; `docs/[`
"docs/**" | "/docs/**" | without a slash at its beginning; `/docs/**`
"docs/**" | "" | without a slash at its beginning; ``
unread = ["*.md", "docs/**"] | unread = true | unread
# A typo in a small table within a line, and in the name of a table.
{ stored = '3 %', | { store = '3 %', | unknown key `store`; did you mean `stored`?
{ stored = '4 %', | { store = '4 %', | unknown key `store`; did you mean `stored`?
profile = { launches = 5 } | profile = { launch = 5 } | unknown key `launch`; did you mean `launches`?
verify = { timeout_s = 5 } | verify = { timeout = 5 } | did you mean `timeout_s`?
against = '0.5 %' | againts = '0.5 %' | did you mean `against`?
[toolchain] | [toolchains] | unknown key `toolchains`; did you mean `toolchain`?
[suite.s] | [suit.s] | unknown key `suit`; did you mean `suite`?
tolerance = { stored = '3 %', against = '0.5 %' } | stored = "3 %" | `stored` belongs to `tolerance = { stored = "4 %", against = "0.5 %" }` of `[metric.NAME]`
[static.wgmma_instructions]\nlevel = "warn" | [static.instructions]\ntolerance = "5 %" | `tolerance` has no effect: `instructions` is only recorded; set its `level`
[metric.duration] | [metrics.duration] | did you mean `metric`?
# A key of another table is answered with its own.
direction = "lower" | direction = "higher" | `duration` is better where it is lower, not higher
direction = "higher" | direction = "lower" | `sm_active` is better where it is higher
exact = true\ncounts = { flop = 1 } | exact = true\narch = "sm_90" | `arch` belongs to `[toolchain]`
description = "a suite" | source = "k.cu" | `source` belongs to `[suite.NAME.variant.NAME]`
description = "a suite" | defines = { TILE = 4 } | `defines` belongs to `[suite.NAME.variant.NAME]`
description = "a suite" | matrix = { n = [1] } | `matrix` belongs to `[suite.NAME.variant.NAME]`
description = "a suite" | static = { registers = { min = 1 } } | `static` belongs to the top of the file
description = "a suite" | title = "a suite" | = help: known are `description`
env_pass = ["MY_DATA"] | version = 1 | remove it: `[toolchain.pins]` has versions
metrics = ["duration", "flop", "stored"] | metrics = ["sm_active", "flop", "stored"] | `unless_faster` of `sm_active`; add `duration` to `metrics`
metrics = ["duration", "flop", "stored"] | metrics = ["flop", "stored", "flop"] | `flop` is named twice
[metric.sm_active] | [metric.fma]\nexact = true\n[metric.sm_active] | needs a `counter`; by default it is `counter = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"`
description = "a suite" | launches = 5 | `launches` belongs to `[profile]`, `[suite.NAME.profile]` or `[suite.NAME.variant.NAME.profile]`
description = "a variant" | arch = "sm_90" | `arch` belongs to `[toolchain]`
[suite.s.profile] | [suite.s.metric] | `metric` belongs to the top of the file: `[metric]` in no other table
description = "a variant" | env_pass = ["A"] | `env_pass` belongs to the top of the file, before the first `[table]`
# A value of another type is answered with what the key means.
defines = { TILE = 8 } | defines = ["TILE=8"] | `-D` constants, such as `{ TILE = 64 }`
clock_control = "none" | clock_control = true | expected a text; Whether ncu locks the clocks; `base`
kernels = "k" | kernels = ["k"] | `NAME` or `regex:PATTERN`
env = { A = "b" } | env = ["A=b"] | such as `{ NAME = "value" }`
graph_profiling = "node" | graph_profiling = true | expected a text; Known are `node`, `graph`.
accept = "code-owners" | accept = ["@org/owners"] | expected a text; Known are `code-owners`.
[metric.sm_active] | [metric.sm_active]\non = "s/a" | expected a table; `on."SUITE/VARIANT" = "1 %"`
# A path and a pattern have no escapes.
source = "kernels/a.cu" | source = "kernels\a.cu" | write `/` in paths
gpu__time_duration.sum | achieved_occupancy | `ncu --query-metrics` lists all
[suite.s.variant.b] | [suite.s.variants.b] | did you mean `variant`?
expires = 2026-12-31 | until = 2026-12-31 | unknown key `until`; `expires`
# A variable of the environment is named by itself.
["MY_DATA"] | ["MY_*"] | `MY_*` cannot be the name of an environment variable; no pattern and no value
["MY_DATA"] | ["MY_DATA=1"] | `MY_DATA=1` cannot be the name of an environment variable
["MY_DATA"] | ["1ST"] | `1ST` cannot be the name of an environment variable
["MY_DATA"] | [""] | `` cannot be the name of an environment variable
["MY_DATA"] | ["MY DATA"] | `MY DATA` cannot be the name of an environment variable
# A static metric that the target cannot have, or that has no effect.
[static.wgmma_instructions] | [static.tcgen05_instructions] | code for `sm_90a` cannot have `tcgen05_instructions`; `tensor_instructions` counts those of every chip
[static.registers] | [static.duration] | no static metric is called `duration`; a run measures it, and no compiler: `[metric.duration]`
[static.registers] | [static.regs] | no static metric is called `regs`; did you mean `registers`?
[static.registers] | [static.shared_bytes] | no static metric is called `shared_bytes`; did you mean `driver_shared_bytes` or `dynamic_shared_bytes` or `spill_shared_bytes` or `static_shared_bytes`?
[static.registers] | [static.register] | no static metric is called `register`; did you mean `registers`?
min = 1\nmax = 255 | min = 256\nmax = 255 | `min` is larger than `max`
[toolchain.pins] | [metric.gpu__time_duration.sum]\ndirection = "lower"\n\n[toolchain.pins] | unknown key `sum`; the name of a metric is your own, and its `counter` is ncu's name
[toolchain.pins] | [metric.twin]\ncounter = "gpu__time_duration.sum"\ndirection = "lower"\ntolerance = "1 %"\n\n[toolchain.pins] | `duration` and `twin` read one counter, gpu__time_duration.sum; remove one of them
max = 255 | max = inf | `max` must be a finite number
level = "warn"\ntolerance = '4'\nmin = 1 | level = "record"\nmin = 1 | only recorded
[static.wgmma_instructions]\nlevel = "warn" | [static.wgmma_instructions]\ntolerance = '1' | it takes no tolerance
'4' | '-4' | "-4" is no tolerance
'4' | { stored = '4' } | a text, such as `"4 %"` or `"1.5"`
# Numbers have a range.
launches = 20 | launches = 0 | `launches` must be a number from 1 to 10000
launches = 20 | launches = 10001 | `launches` must be a number from 1 to 10000
processes = 2 | processes = 0 | `processes` must be a number from 1 to 10000
launches = 10 | launches = 0 | `launches` must be a number from 1 to 10000
launches = 5 | launches = 0 | `launches` must be a number from 1 to 10000
timeout_s = 120.0 | timeout_s = 0 | seconds above 0, up to 86400
timeout_s = 120.0 | timeout_s = -1.0 | above 0
timeout_s = 120.0 | timeout_s = nan | above 0
timeout_s = 120.0 | timeout_s = inf | above 0
timeout_s = 120.0 | timeout_s = 1e300 | above 0
verify = { timeout_s = 5 } | verify = { timeout_s = nan } | above 0
[suite.s.verify]\ntimeout_s = 5 | [suite.s.verify]\ntimeout_s = 0 | above 0
[verify]\ntimeout_s = 60 | [verify]\ntimeout_s = 0 | above 0
stored = '3 %' | stored = '-0.1 %' | "-0.1 %" is no tolerance; `"4 %"` of the value, below 100 %, or `"1.5"` in the metric's unit
stored = '3 %' | stored = 'nan %' | is no tolerance
stored = '3 %' | stored = 'inf' | is no tolerance
stored = '3 %' | stored = '100 %' | is no tolerance
stored = '3 %' | stored = '' | is no tolerance
stored = '3 %' | stored = '3 percent' | is no tolerance
stored = '3 %' | stored = 3 | expected a text, such as `"4 %"` or `"1.5"`
tolerance = '2' | tolerance = '-2' | is no tolerance
tolerance = '2' | tolerance = 2 | expected a text, such as `"4 %"` or `"1.5"`, or a table of `stored` and `against`
tolerance = '2' | tolerance = ['2'] | expected a text
against = '1 %' | against = '-1 %' | is no tolerance
"s/a" = '3 %' | "s/a" = 'three' | is no tolerance
min = 0 | min = nan | `min` must be a finite number
max = 1e9 | max = inf | `max` must be a finite number
min = 0 | min = 2e9 | `min` is larger than `max`
# A metric that is judged has a tolerance.
tolerance = '2' | tolerance = {} | it has none of `stored` and `against`
[metric.sm_active]\ndirection = "higher"\n | [metric.sm_active]\n | `sm_active` is gated, so it needs a `direction`; add `direction = "higher"`; your own `[metric]` tables replace
[metric.sm_active]\ndirection = "higher"\ntolerance = '2'\n | [metric.sm_active]\ndirection = "higher"\n | `sm_active` is gated, so it needs a `tolerance`; `"4 %"`
min = 0\nmax = 1e9\nlevel = "deny" | max = 1e9\nlevel = "record" | `max` has no effect; `duration` is only recorded
phase = "timing" | phase = "counting" | the counting phase is one process
s = { stored | t = { stored | no suite and no variant is called `t`; `s`
counts = { flop = 1 }\n | counts = { flop = 1 }\non.s = '1'\n | `on` has no effect with `exact = true` of `flop`; remove one of them
"s/a" = '3 %' | "s/a" = {} | it has none of `stored` and `against`
# An exact metric has no tolerance and is counted.
exact = true\ncounts = { flop = 1 } | exact = true\ntolerance = '0'\ncounts = { flop = 1 } | an exact metric has no tolerance
exact = true\ncounts = { flop = 1 } | exact = true\ntolerance = { against = '0.1 %' }\ncounts = { flop = 1 } | an exact metric has no tolerance
exact = true\ncounts = { flop = 1 } | exact = true\nphase = "timing"\ncounts = { flop = 1 } | its phase must be `counting`
# What counts the work is exact and gated, and counts one thing.
exact = true\ncounts = { flop = 1 } | direction = "equal"\ntolerance = '0'\ncounts = { flop = 1 } | must be `exact`
exact = true\ncounts = { flop = 1 } | counts = { flop = 1 } | must be `exact`
exact = true\ncounts = { flop = 1 } | exact = true\nlevel = "record"\ncounts = { flop = 1 } | not only recorded
counts = { flop = 1 } | counts = {} | either `flop` or `bytes_written`
counts = { flop = 1 } | counts = { flop = 1, bytes_written = 32 } | either `flop` or `bytes_written`
counts = { flop = 1 } | counts = { flop = 0 } | a number above 0
counts = { flop = 1 } | counts = { flop = -2 } | a number above 0
counts = { flop = 1 } | counts = { flop = nan } | a number above 0
counts = { flop = 1 } | counts = { flop = inf } | a number above 0
counts = { flop = 1 } | counts = { flops = 1 } | did you mean `flop`?
variants = ["s/a", "s/b"] | variants = ["s/a"] | nothing counts the declared `bytes_written` of `s/b`
variants = ["s/a", "s/b"] | variants = ["s/a", "s/bb"] | no variant is called `s/bb`; `s/b`
work = { flop = 1024, bytes_written = 4096 } | work = { flop = -1 }
work = { flop = 1024, bytes_written = 4096 } | work = { flop = 1.5 }
work = { flop = 1024, bytes_written = 4096 } | work = { bytes = 1 }
# `unless_faster` does not excuse the duration.
direction = "higher"\ntolerance = '2'\nunless_faster = true | exact = true | `exact` is for counts: a time or a percentage differs from launch to launch
level = "deny" | unless_faster = true | has no meaning for the duration itself
# A counter is one that the chip has.
sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32.sum | sm__inst_executed_pipe_tc.sum | other chips have it: correct `toolchain.arch`
gpu__time_duration.sum | gpu__time_duration.summ | did you mean `gpu__time_duration.sum`?
[metric.sm_active] | [metric.sm_activ] | `sm_activ` is not a built-in name on `sm_90a`; did you mean `sm_active`?
metrics = ["duration", "flop", "stored"] | metrics = ["durations"] | no metric is called `durations`; did you mean `duration`?
metrics = ["duration", "flop", "stored"] | metrics = ["dram_raed"] | no metric is called `dram_raed`; did you mean `dram_read`?
metrics = ["duration", "flop", "stored"] | metrics = ["dram_read"] | known are `duration`; or add `[metric.dram_read]`, and a table for each default metric that stays
metrics = ["duration", "flop", "stored"] | metrics = [] | a suite without metrics gates nothing
# A target is a GPU.
arch = "sm_90a" | arch = ["sm_80", "sm_90a"] | each target has a configuration of its own (`-C FILE`)
arch = "sm_90a" | arch = "hopper" | is not a GPU target; `sm_90a`
arch = "sm_90a" | arch = "NVIDIA B200" | the target of that GPU is `sm_100a`
arch = "sm_90a" | arch = "fast" | is not a GPU target; such as `sm_90a`
arch = "sm_90a" | arch = "" | is not a GPU target
arch = "sm_90a" | arch = "sm_" | is not a GPU target
arch = "sm_90a" | arch = "compute_90" | is not a GPU target
arch = "sm_90a" | arch = "sm_90a -G" | is not a GPU target
# The baselines are not the project itself.
baselines = "baselines" | baselines = "" | `baselines` must
baselines = "baselines" | baselines = "." | `baselines` must
baselines = "baselines" | baselines = "./" | `baselines` must
baselines = "baselines" | baselines = "kernels/.." | `baselines` must
baselines = "baselines" | baselines = "/abs" | `baselines` must be; a folder below the configuration's folder
work = ".sparsek-gate" | work = "" | `work` must name a folder
# A variant has a source or a command, and what belongs to it.
[suite.s.variant.b]\nbuild = ["make"]\nrun = ["./b"]\ninputs = ["b.py"]\nprogram = "build/b"\nlibraries = ["build/libb.so", "b.cubin"]\n | [suite.s.variant.b]\ndescription = "empty"\n | needs a `source` (a .cu file), a `run` (a command)
flags = ["-G"] | build = ["make"] | `build` belongs to a variant with `run`
flags = ["-G"] | inputs = ["a"] | `inputs` belongs to a variant with `run`; not to one with `source`
flags = ["-G"] | program = "a" | `program` belongs to a variant with `run`
flags = ["-G"] | libraries = ["a.so"] | `libraries` belongs to a variant with `run`
flags = ["-G"] | loaded_code = true | `loaded_code` belongs to a variant with `run`
build = ["make"] | flags = ["-G"] | `flags` belongs to a variant with `source`; not to one with `run`
build = ["make"] | defines = { A = 1 } | `defines` belongs to a variant with `source`
loaded_code = false | loaded_code = true | `loaded_code` does not work with `program` and `libraries`; make two variants
"build/libb.so" | "build/b" | `build/b` is named twice
run = ["./b"] | run = [] | `run` is a program and its arguments; ["python3", "kernel.py"]
run = ["./b"] | run = [""] | `run` is a program and its arguments
build = ["make"] | build = [] | `build` is a program and its arguments
build = ["make"] | build = [""] | `build` is a program and its arguments
run = ["./b"] | run = ["--kernel-id", "./b"] | `run` begins with a program; not with an option
run = ["./b"] | run = ["@options", "./b"] | `run` begins with a program
build = ["make"] | build = ["make", ">", "log"] | `build` is run without a shell; write `build = ["sh", "-c", "make > log"]`
build = ["make"] | build = ["make; cp a b"] | `build` is run without a shell; ["sh", "-c", "make
run = ["./b"] | run = ["./b", "2>&1"] | `run` is run without a shell; ["sh", "-c", "./b 2>&1"]
flags = ["-G"] | flags = ["-arch=sm_80"] | the flag `-arch=sm_80` names a target; `toolchain.arch`
flags = ["-G"] | flags = ["-gencode arch=compute_80,code=sm_80"] | names a target; remove the flag
flags = ["-G"] | flags = ["-gencode", "arch=compute_80,code=sm_80"] | the flag `-gencode` names a target
flags = ["-O3"] | flags = ["--gpu-code=sm_80"] | the flag `--gpu-code=sm_80` names a target
[suite.s.variant.b]\nbuild | [suite.s.cuda]\nbuild | unknown key `cuda`; a variant is `[suite.NAME.variant.cuda]`
inputs = ["b.py"] | immutable = true | an immutable variant with `run` needs `inputs`; the files that must not change
inputs = ["b.py"] | inputs = ["src/[a"] | cannot be read as a pattern; `**` for any folders
{ TILE = 8 } | { "1A" = 8 } | cannot be the name of a preprocessor constant
{ TILE = 8 } | { "A B" = 8 } | `A B` cannot be the name of a preprocessor constant
{ TILE = 8 } | { "A=1" = 8 } | cannot be the name of a preprocessor constant
{ TILE = 8 } | { "" = 8 } | cannot be the name of a preprocessor constant
{ n = [1, 0.5], | { n = [1, 0.5], tile = [64, 128], | nothing uses the axis `tile`; write `{tile}` where the variant uses it
{ n = [1, 0.5], | { n = [], | the axis `n` has no values; give it a value, or remove the axis
# Sources that cannot be compiled together.
source = "kernels/a.cu" | source = [] | `source` is an empty list
source = "kernels/a.cu" | source = ["a.cu", "b.cpp"] | `b.cpp` of a list of sources is no CUDA source
args = ["--n", "8"] | args = ["--n 8"] | `--n 8` is several arguments in one; write an item for each: ["--n", "8"]
source = "kernels/a.cu" | source = ["a.cu", ".cu"] | `.cu` of a list of sources is no CUDA source
source = "kernels/a.cu" | source = ["x/a.cu", "y/a.cu"] | two sources are called `a.cu`; rename one of them
source = "kernels/a.cu" | source = ["a.cu", "a.cu"] | two sources are called `a.cu`
source = "kernels/a.cu" | source = ["a.cu", "b_dlink.cu"] | `b_dlink.cu` cannot be in a list of sources
source = "kernels/a.cu" | source = ["a.compute_90a.cu", "b.cu"] | rename the file: no further dot
source = "kernels/a.cu" | source = ["a.cu", "../b.cu"] | must be a relative path below
source = "kernels/a.cu" | source = ["a.cu", 1] | a text, or a list of texts
# A filter of kernels is a regular expression.
kernels = "regex:^k" | kernels = "regex:^(k"
arch = "sm_90a" | arch = "compute_90a" | is not a GPU target; did you mean `sm_90a`?
arch = "sm_90a" | arch = "9.0" | is not a GPU target; did you mean `sm_90`?
arch = "sm_90a" | arch = "sm_90a,sm_80" | is not a GPU target; state one: each target has a configuration of its own
kernels = "k" | kernels = "" | selects nothing: it is empty; leave it out for every kernel
kernels = "k" | kernels = "regex:[k" | not a regular expression: unclosed character class; without `regex:`
kernels = "k" | kernels = "regex:(?!slow)k" | only ncu can read this pattern; look-around; regex:^(first|second)_
# The launches of each kernel are not counted where something else is a launch.
kernels = "regex:^k" | kernels = "regex:^(?:k|l)" | a filter must have no `:`
# Those whose review accepts.
accept = "code-owners" | accept = "owners" | unknown value `owners`; known are `code-owners`
# A tier is one that there is.
accept_tiers = ["kernel-times"] | accept_tiers = ["kernel-time"] | unknown value `kernel-time`; did you mean `kernel-times`?
# A pin is a version or bounds on one, and a GPU has a name.
cuda = "13.0" | cuda = "latest" | `latest` is not a version; >=2025.3, <2027; write `13.0`
cuda = "13.0" | cuda = "^13" | `^13` is not a version
>=2025.3, <2027 | >=2025.3, < | `<` is not a version
driver = ">=580" | driver = "" | `` is not a version
NVIDIA H* | \u0020 | a GPU model has a name; nvidia-smi -L
# The complaint is about the second waiver.
[toolchain.pins] | [[waiver]]\nvariant = "s/nowhere"\nmetric = "duration"\nreason = "r"\nwho = "w"\nexpires = 2026-12-31\n\n[toolchain.pins] | there is no variant `s/nowhere`
# A shell or a linker would know these; they are no paths.
baselines = "baselines" | baselines = "~/baselines" | `~/baselines` is no path; `~` and variables are not expanded
work = ".sparsek-gate" | work = "$SCRATCH/work" | `$SCRATCH/work` is no path
source = "kernels/a.cu" | source = "~/a.cu" | `~/a.cu` is no path
program = "build/b" | program = "$HOME/b" | `$HOME/b` is no path
"build/libb.so" | "-lcublas" | `-lcublas` is no path; name a file: `build/libmine.so`
run = ["./b"] | run = ["~/b"] | `~/b` is no path
# What only a shell does before the program starts.
run = ["./b"] | run = ["CUDA_VISIBLE_DEVICES=0", "./b"] | `run` is run without a shell; write `env = { CUDA_VISIBLE_DEVICES = "0" }`, and `run` without it
run = ["./b"] | run = ["A=1 ./b"] | `run` is run without a shell; ["sh", "-c", "A=1 ./b"]
build = ["make"] | build = ["CC=gcc", "make"] | `build` is run without a shell; ["sh", "-c", "CC=gcc make"]
build = ["make"] | build = ["cd", "src"] | `build` is run without a shell; ["sh", "-c", "cd src && ..."]
build = ["make"] | build = ["cd", "src", "&&", "make"] | ["sh", "-c", "cd src && make"]
profile_args = ["--profile"]\nkernels = "k" | profile_args = ["--n", "$LAUNCHES"]\nkernels = "k" | no shell replaces `$LAUNCHES`; may contain `{launches}`
profile_args = ["--profile"]\nkernels = "k" | profile_args = ["${N}"]\nkernels = "k" | no shell replaces `${N}`; write the value itself
"--n", "8" | "$HOME/m" | no shell replaces `$HOME/m`; write the value itself
"--n", "8" | "--m=~/m" | no shell replaces `--m=~/m`
"--n", "8" | "--m", "|", "cat" | no shell reads `|`; remove it
env = { A = "b" } | env = { PATH = "/opt/bin:$PATH" } | no shell replaces `/opt/bin:$PATH`; `env_pass` at the top of the file
env = { A = "b" } | env = { "A=b" = "1" } | `A=b` cannot be the name of an environment variable; `env = { NAME = "value" }`
nvcc = "bin/nvcc" | nvcc = "~/bin/nvcc" | `~/bin/nvcc` is no path; `~` and variables are not expanded
# More than a block of the chip can have.
dynamic_shared_bytes = 1024 | dynamic_shared_bytes = 232449 | a block has at most 232448 bytes of shared memory on this chip
# A slip within the table is likelier than a key of another one.
phase = "timing" | variant = "s/a" | unknown key `variant`; did you mean `variants`?
gpus = ["NVIDIA H*"] | gpu = ["NVIDIA H*"] | unknown key `gpu`; did you mean `gpus`?
# The name of a variant has a slash, and is quoted.
"s/a" = '3 %' | x.cuda = '3 %' | unknown key `cuda`; in `on`, a variant is quoted: `"SUITE/cuda"`
[metric.sm_active] | [metric.sm_active.on.s.cuda]\nstored = '1 %'\n\n[metric.sm_active] | in `on`, a variant is quoted: `"SUITE/cuda"`
# A key that stands a table too high.
[static.wgmma_instructions] | [static]\ntolerance = "5 %"\n\n[static.wgmma_instructions] | `tolerance` belongs to `[metric.NAME]` or `[static.NAME]`
[suite.s.variant.a] | [suite.s.variant]\nsource = "k.cu"\n\n[suite.s.variant.a] | `source` belongs to `[suite.NAME.variant.NAME]`
[suite.s.variant.a] | [suite.s.variant]\ncuda = "k.cu"\n\n[suite.s.variant.a] | write `[suite.s.variant.cuda]`, and below it keys such as `source`
# A file that is no TOML.
expires = 2026-12-31 | expires = 31.12.2026 | write a day: `expires = 2026-12-31`
source = "kernels/a.cu" | source = "kernels/a.cu", "b.cu" | several values are a list: `["a", "b"]`
[suite.s.variant.b] | [suite.my s.variant.b] | unclosed table; a name has no blank
cuda = "13.0" | cuda = ">14, <12" | no version is within `>14, <12`
cuda = "13.0" | nvcc = "13.0" | unknown key `nvcc`; the release of nvcc is `cuda`
unread = ["*.md", "docs/**"] | unread = ["!docs"] | `!` excepts nothing
defines = { TILE = 8 } | defines = { TILE = [4, 8] } | expected a whole number, a text or a boolean; `matrix` makes a variant of each value
flags = ["-O3"] | nvcc_flags = ["-O3"] | unknown key `nvcc_flags`; did you mean `flags`?
counter = "gpu__time_duration.sum" | counter = "dram_read_throughput" | has no counter `dram_read_throughput`; `ncu --query-metrics` lists all
skip = 1 | skip = 1\nskip = 2 | duplicate key; write each table and each key once: this is in line
[verify]\n | [toolchain]\n[verify]\n | duplicate key
source = "kernels/a.cu" | source = "kernels/a.cu | invalid basic string
"#;

/// As [`REFUSED`]: wrong types and unknown choices, which the schema for editors refuses as well.
const REFUSED_IN_EDITORS_TOO: &str = r#"
skip = 1 | skip = "first"
skip = 1 | skip = -1 | integer `-1`; expected a whole number, 0 or more
launches = 20 | launches = 2.5 | floating point `2.5`; expected a whole number, 0 or more
launches = 20 | launches = "20" | Launches of each kernel in one process
flags = ["-O3"] | flags = "-O3"
expect = ["k"] | expect = "k" | expected a list, such as `["k"]`
build = ["make"] | build = "make; cp a b" | expected a list, such as `["sh", "-c", "make; cp a b"]`
run = ["./b"] | run = "A=1 ./a --n 4" | expected a list, such as `["sh", "-c", "A=1 ./a --n 4"]`
expect = ["k"] | expect = "the k" | expected a list, such as `["the k"]`
args = ["--m", "8"] | args = ["--m", 8]
experimental = false | experimental = "no"
immutable = true | immutable = 1 | expected `true` or `false`
loaded_code = false | loaded_code = "yes" | loaded_code = "yes"
arch = "sm_90a" | arch = 90
timeout_s = 120.0 | timeout_s = "2 min"
env = { A = "b" } | env = { A = 1 }
defines = { TILE = 8 } | defines = { TILE = 8.5 }
metrics = ["duration", "flop", "stored"] | metrics = "duration"
counter = "gpu__time_duration.sum" | counter = 1
exact = true\ncounts = { flop = 1 } | exact = 1\ncounts = { flop = 1 }
run = ["./b"] | run = "./b"
max = 255 | max = "many"
dynamic_shared_bytes = 1024 | dynamic_shared_bytes = -1
threads_per_block = 128 | threads_per_block = -1
threads_per_block = 128 | threads_per_block = 1025 | a block has 1 to 1024 threads
cuda = "13.0" | cuda = 13.0
direction = "lower" | direction = "lowr" | unknown value `lowr`; did you mean `lower`?
direction = "lower" | direction = "down" | unknown value `down`; known are `higher`, `lower`, `equal`
level = "deny" | level = "denny" | unknown value `denny`; did you mean `deny`?
level = "deny" | level = "error" | unknown value `error`; known are `deny`, `warn`, `record`
level = "deny" | level = "fatal" | unknown value `fatal`; known are `deny`, `warn`, `record`
phase = "timing" | phase = "time" | unknown value `time`; did you mean `timing`?
clock_control = "none" | clock_control = "bass" | unknown value `bass`; did you mean `base`?
cache_control = "all" | cache_control = "al" | unknown value `al`; did you mean `all`?
replay_mode = "kernel" | replay_mode = "kernels" | unknown value `kernels`; did you mean `kernel`?
graph_profiling = "node" | graph_profiling = "nodes" | unknown value `nodes`; did you mean `node`?
["memcheck", "racecheck"] | ["memcheck", "racechek"] | unknown value `racechek`; did you mean `racecheck`?
mismatch = "warn" | mismatch = "warm" | unknown value `warm`; did you mean `warn`?
"#;

/// As [`REFUSED`], of the waiver: the complaint names a line of it.
const REFUSED_WAIVERS: &str = r#"
variant = "s/a" | variant = "s/x" | there is no variant `s/x`
variant = "s/a" | variant = "a" | there is no variant `a`: write suite/variant
variant = "s/a" | variant = "s/aa" | there is no variant `s/aa` for a waiver; did you mean `s/a`?
metric = "duration"\nreason | metric = "durations"\nreason | did you mean `duration`?
metric = "duration"\nreason | metric = "sm_active"\nreason | has no metric `sm_active` to waive
reason = "the new driver" | reason = " " | needs a `reason`
reason = "the new driver" | reason = "two\u000alines" | needs a `reason`, in one line
who = "Ada" | who = "" | needs a `who`
who = "Ada"\n | - | `who` is missing
expires = 2026-12-31 | expires = "never" | a day such as 2026-12-31
expires = 2026-12-31 | expires = "2026-02-30" | a day such as 2026-12-31
expires = 2026-12-31 | expires = 2026 | a date such as 2026-12-31
expires = 2026-12-31 | expires = 12:00:00 | a day such as 2026-12-31
up_to = "5 %" | up_to = "much" | tolerance
metric = "duration"\nreason | metric = "instructions"\nreason | `instructions` is only recorded: there is nothing to waive
metric = "duration"\nreason && up_to = "5 %" | metric = "spill_bytes"\nreason && # | and that of `spill_bytes` is 0: it needs an `up_to`; `up_to = "20 %"`
up_to = "5 %" | up_to = 5 | a text, such as
up_to = "5 %" | up_to = "-5 %" | tolerance
"#;

/// As [`REFUSED`]: the complaint names a line that was not edited, or none.
const REFUSED_ELSEWHERE: &str = r#"
"flop", "stored"] | "stored"] | nothing counts the declared `flop`; counts = { flop = 2 } }` below `[metric]`, or remove `flop`; docs/counters.md
"flop", "stored"] | "flop"] | nothing counts the declared `bytes_written`; counts = { bytes_written = 32 } }` below `[metric]`, or remove `bytes_written`
"flop", "stored"] && { flop = 1024, bytes_written = 4096 } | "flop"] && { flop = 1024 } | nothing counts the declared `bytes_written`; work = { flop = 2048, bytes_written = 4096 }
["duration", "flop", "stored"] && work = { flop = 1024, bytes_written = 4096 } && work = { flop = 2048, bytes_written = 4096 } && , "s/b"] | ["stored"] && - && - && ] | without `stored`, `s/b` gates nothing
"gpu__time_duration.sum" | "sm__cycles_elapsed.max" | gpu__time_duration.sum
[metric.duration] | [metric]\n[x.duration] | unknown key `x`
"flop", "stored"] | "flop", "stored", "gpu__time_duration.sum"] | it is the counter of `duration`
"flop", "stored"] | "flop", "stored", "ocupancy"] | did you mean `occupancy`? the compiler's output has it: `[static.occupancy]`
"flop", "stored"] | "flop", "stored", "*"] | leave `metrics` out: all is the default
[metric.stored]\ncounter = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum" | [metric.spill_bytes] | `[static.spill_bytes]`, for every variant
timeout_s = 120.0 | timeout_s = "5m" | Seconds after which ncu and everything below it is killed
[metric.sm_active]\ndirection = "higher" | [metric.registers] | `[static.registers]`, for every variant
[suite.s.profile] | [profile.s] | write `[suite.s.profile]`
launches = 20 | gpu = 1 | `--gpus` of `check` and `profile` selects GPUs
[static.wgmma_instructions]\nlevel = "warn" | [static]\nwgmma_instructions = 3 | write `[static.wgmma_instructions]`, and below it keys such as `level` and `tolerance`
[static.wgmma_instructions]\nlevel = "warn" | [static]\nwgmma_instructions = "warn" | write `wgmma_instructions = { level = "warn" }`
clock_control = "none" | clock_control = none | a text needs quotes; write `"none"`
defines = { TILE = 8 } | defines = { A = "8", B = "4 } | a text in this line has no closing `"`
defines = { TILE = 8 } | defines = { B = "4 } | a text in this line has no closing `"`
run = ["./c", "--n={n}", "{mode}"] | run = ["./c, "--n={n}", "{mode}"] | a text in this line has no closing `"`
description = "a suite" | description = “a suite” | write plain quotation marks
[[waiver]] | [waiver] | write `[[waiver]]`, each a table of its own
"#;

/// Edits of [`EVERY_KEY`] that are accepted.
const ACCEPTED: &str = r#"
# Other braces than those of a placeholder are the program's own.
profile_args = ["--profile"]\nkernels = "k" | profile_args = ["{m},{n}"]\nkernels = "k"
profile_args = ["--profile"]\nkernels = "k" | profile_args = ["{\"a\": 1}", "{}"]\nkernels = "k"
profile_args = ["--profile"]\nkernels = "k" | profile_args = ["{launches}{result}{seed}{skip}"]\nkernels = "k"
expires = 2026-12-31 | expires = "2026-12-31"
source = "kernels/a.cu" | source = ["kernels/a.cu", "b.cu"]
"#;

/// The rows of such a table: the configuration that the edits make, the lines of the first edit, and the
/// parts of the complaint.
fn rows(table: &'static str) -> impl Iterator<Item = (String, Range<usize>, Vec<&'static str>)> {
    let lines = table.trim().lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let cells: Vec<&str> = line.split(" | ").collect();
        let texts = |cell: &str| -> Vec<String> {
            let text = |edit: &str| match edit {
                "-" => String::new(),
                edit => edit.replace("\\n", "\n"),
            };
            cell.split(" && ").map(text).collect()
        };
        let edits = texts(cells[0]).into_iter().zip(texts(cells[1]));
        let mut config = EVERY_KEY.to_owned();
        let mut lines = None;
        for (from, to) in edits {
            assert_eq!(EVERY_KEY.matches(&from).count(), 1, "{from:?} in {line}");
            let at = |end: usize| EVERY_KEY[..end].matches('\n').count() + 1;
            let first = at(EVERY_KEY.find(&from).unwrap());
            lines.get_or_insert(first..first + to.trim_end().matches('\n').count() + 1);
            config = config.replacen(&from, &to, 1);
        }
        let says = cells
            .get(2)
            .map_or(vec![], |cell| cell.split("; ").collect());
        (config, lines.unwrap(), says)
    })
}

/// What is wrong with how a configuration is refused: at one of these lines, with these words.
fn fault(config: &str, mut lines: Range<usize>, says: &[&str]) -> Option<String> {
    let ran = load(config);
    let complaint = ran.err;
    let named = lines.any(|line| complaint.contains(&format!("config.toml:{line}:")));
    let missing = says.iter().find(|words| !complaint.contains(*words));
    let right = ran.code == 2 && named && missing.is_none();
    (!right).then(|| format!("not in one of its lines, or without {missing:?}:\n{complaint}"))
}

#[test]
fn what_is_wrong_is_refused_at_its_line_with_the_right_thing() {
    let before = &EVERY_KEY[..EVERY_KEY.find("[[waiver]]").unwrap()];
    let waiver = before.matches('\n').count() + 1;
    let refused = rows(REFUSED)
        .chain(rows(REFUSED_IN_EDITORS_TOO))
        .chain(rows(REFUSED_WAIVERS).map(|(config, _, says)| (config, waiver..waiver + 8, says)))
        .chain(rows(REFUSED_ELSEWHERE).map(|(config, _, says)| (config, 1..999, says)));
    let faults = refused.filter_map(|(config, lines, says)| fault(&config, lines, &says));
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let in_editors = rows(REFUSED_IN_EDITORS_TOO);
    let accepted = in_editors.filter(|(config, ..)| schema_complaints(config).len() != 1);
    let accepted: Vec<_> = accepted.map(|(_, lines, says)| (lines, says)).collect();
    assert_eq!(accepted, []);
    for (config, ..) in rows(ACCEPTED) {
        load(&config).exits(0);
        assert_eq!(schema_complaints(&config), Vec::<String>::new());
    }
}

/// The complaint about an edit, which says these words.
#[track_caller]
fn complaint(from: &str, to: &str, says: &str) -> String {
    assert_eq!(EVERY_KEY.matches(from).count(), 1, "{from:?}");
    let config = EVERY_KEY.replacen(from, to, 1);
    assert_eq!(fault(&config, 1..999, &[says]), None);
    load(&config).err
}

#[test]
fn a_conflict_that_a_merge_left_is_called_one() {
    let conflict = format!("[metric]\n<<<<<<< HEAD\n=======\n>>>>>>> change\n{EVERY_KEY}");
    let said = load(&conflict).err;
    assert!(
        said.contains("config.toml:2: git left a conflict of a merge here"),
        "{said}"
    );
}

#[test]
fn a_name_cannot_leave_its_folder() {
    let names = ".. . a/b /etc -a .hidden a\\u0000b ä";
    let long = "x".repeat(65);
    for name in names.split(' ').chain(["../x", "", "a b", &long]) {
        for (from, to) in [
            (
                "[suite.s.variant.b]",
                format!("[suite.s.variant.\"{name}\"]"),
            ),
            (
                "[metric.sm_active]",
                format!("[metric.\"{name}\"]\ncounter = \"sm__cycles_active.max\""),
            ),
        ] {
            complaint(from, &to, "cannot be a name");
        }
        let config = EVERY_KEY.replace("suite.s", &format!("suite.\"{name}\""));
        assert_eq!(fault(&config, 1..999, &["cannot be a name"]), None);
    }
}

#[test]
fn a_path_stays_below_the_configuration() {
    for path in ["../a.cu", "/a.cu", "kernels/../../a.cu", ""] {
        for own in [
            "\"kernels/a.cu\"", "\"b.py\"", "\"build/b\"", "\"build/libb.so\"",
        ] {
            let words = "must be a relative path below the configuration's folder";
            complaint(own, &format!("\"{path}\""), words);
        }
    }
}

#[test]
fn the_configuration_with_every_key_is_accepted() {
    load(EVERY_KEY).exits(0);
    assert_eq!(schema_complaints(EVERY_KEY), Vec::<String>::new());
}

#[test]
fn a_small_file_with_many_metrics_or_slow_patterns_costs_little() {
    let config = |metrics: usize, suites: usize, kernels: &str| {
        let mut text = "[toolchain]\narch = \"sm_90a\"\n".to_owned();
        for at in 0..metrics {
            text += &format!(
                "[metric.m{at}]\ncounter = \"sm__cycles_active.sum\"\ndirection = \"lower\"\ntolerance = '3 %'\n"
            );
        }
        for at in 0..suites {
            text += &format!(
                "[suite.s{at}]\nkernels = '{kernels}'\n[suite.s{at}.variant.v]\nsource = \"k.cu\"\n"
            );
        }
        text
    };
    let list = |config: &str| {
        let project = project(config);
        project.write("k.cu", "");
        project.run("list")
    };
    list(&config(800, 800, "k")).ends(
        2,
        "the variants have 640000 metrics in all, and 100000 is the most",
    );
    // Without a bound each of them takes half a second to compile in a build for tests.
    let begun = std::time::Instant::now();
    list(&config(1, 300, r"regex:(\w{90})")).exits(0);
    assert!(begun.elapsed() < std::time::Duration::from_secs(120));
}

#[test]
fn a_typo_of_any_key_of_any_table_is_refused_with_its_line_and_the_right_name() {
    let mut tables = 0;
    let mut keys = 0;
    for (index, line) in EVERY_KEY.lines().enumerate() {
        if line.starts_with('[') {
            tables += 1;
        }
        // `[metric.duration]` ends in a name that people choose; `[profile]` does not.
        let bare = |line: &'static str| {
            // `[[waiver]]` is a table too.
            let inner = line.strip_prefix('[')?.strip_suffix(']')?;
            let list = inner.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
            Some(list.unwrap_or(inner))
        };
        let key = match bare(line) {
            Some(table) if table.contains(".variant.") || table.starts_with("metric.") => continue,
            Some(table) if table == "suite.s" || table.starts_with("static.") => continue,
            Some(table) => table.rsplit('.').next().unwrap(),
            None => match line.split_once(" = ") {
                // The names of suites and variants are no keys.
                Some(("s" | "\"s/a\"", _)) | None => continue,
                Some((key, _)) => key,
            },
        };
        keys += 1;
        let typo = format!("{key}x");
        let wrong = line.replacen(key, &typo, 1);
        let config: Vec<&str> = EVERY_KEY
            .lines()
            .enumerate()
            .map(|(at, line)| if at == index { wrong.as_str() } else { line })
            .collect();
        let config = config.join("\n");
        let ran = load(&config).exits(2);
        assert_ne!(schema_complaints(&config), Vec::<String>::new(), "{typo}");
        for words in [
            format!("config.toml:{}:", index + 1),
            format!("unknown key `{typo}`"),
            format!("did you mean `{key}`?"),
        ] {
            assert!(ran.err.contains(&words), "{words:?} is not in\n{}", ran.err);
        }
    }
    assert!(tables > 13 && keys > 60, "{tables} tables, {keys} keys");
}

#[test]
fn a_suite_without_variants_and_a_file_without_metrics_gate_nothing() {
    for text in ["", "[toolchain]\narch = \"sm_90a\"\n"] {
        let none = load(text).ends(2, "no suite is configured");
        none.says("`sparsek-gate init` writes");
    }
    let suite = "[suite.s.variant.v]\nrun = [\"x\"]\n";
    load(&format!("[metric]\n{suite}")).ends(2, "no metric is defined");
    load(&format!("[toolchain]\narch = \"sm_91\"\n{suite}"))
        .ends(2, "config.toml:2:8")
        .says("the chip of `sm_91` is not known")
        .says("`sm_89`, `sm_90a`, `sm_100a`");
    project("[metric.duration]\ndirection = \"lower\"\ntolerance = '1'\n")
        .run("list")
        .ends(2, "there are none");
    load("[metric.duration]\nlevel = \"record\"\n[suite.s.variant.v]\nrun = [\"x\"]\n")
        .ends(2, "gates nothing");
    load("[metric.duration]\ndirection = \"lower\"\ntolerance = '1'\n[suite.s]\n")
        .ends(2, "config.toml:4")
        .says("the suite `s` has no variants");
}

#[test]
fn a_file_that_is_missing_or_no_toml_is_refused() {
    Project::empty()
        .run("check")
        .ends(2, "config.toml: cannot read the configuration")
        .says("`sparsek-gate init` writes one");
    Project::empty()
        .run("check --config other/place.toml")
        .ends(2, "other/place.toml");
    for text in [
        "{\"metric\": {}}", "metric = ", "[metric", "\u{0}", "<xml/>",
    ] {
        load(text).ends(2, "config.toml:1");
    }
    load("{\"suite\": {}}")
        .ends(2, "config.toml:1:1: ")
        .says("write TOML, and not JSON");
    let project = Project::empty();
    std::fs::create_dir(project.path("config.toml")).unwrap();
    project.run("check").ends(2, "config.toml");
}

#[test]
fn every_command_reads_the_configuration_first() {
    let project = project("[metric.duration]\ndirektion = \"lower\"\n");
    for arguments in [
        vec!["build"],
        vec!["verify"],
        vec!["profile"],
        vec!["check", "--from", "."],
        vec!["baseline", "--verify"],
        vec!["import", "config.toml", "--variant", "x"],
    ] {
        project
            .run(&arguments)
            .ends(2, "config.toml:2")
            .says("did you mean `direction`?");
    }
}

#[test]
fn a_slip_on_the_command_line_is_usage() {
    let slips = "\n
        baseline --lock
        baseline --lock --verify --reason x
        check --archive a.zst --against HEAD
        check --static --from x
        check --slice 1/2
        check --from d --archive a.zst
        check --archive a.zst --archive-sha256 0
        profile --archive a.zst
        profile --archive a.zst --output d --against HEAD
        profile --slice 1/2 --output d --gpus all
        profile --slice 9/8 --output d";
    for slip in slips.lines() {
        let arguments = ["sparsek-gate"].into_iter().chain(slip.split_whitespace());
        assert!(Cli::try_parse_from(arguments).is_err(), "{slip}");
    }
    let project = project(EVERY_KEY);
    for arguments in [
        &["chekc"][..],
        &["baseline", "--show", "nobody"],
        &["build", "--define", "1=2"],
        &["build", "b", "--define", "A=2"],
    ] {
        project.run(arguments).exits(2);
    }
    project.run("--help").ends(0, "Exit codes");
    project.run("--version").exits(0);
}

#[test]
fn init_writes_a_configuration_once() {
    let project = Project::empty();
    project.run("init").ends(0, "wrote config.toml");
    let short = project.read("config.toml");
    project.run("baseline --show").exits(0);
    project.run("init").ends(2, "--force");
    project.write("config.toml", "broken");
    project.run("init --force").exits(0);
    assert_eq!(project.read("config.toml"), short);
    project.run("init --force --all").exits(0);
    assert!(project.read("config.toml").contains("[[waiver]]"));
    project.run("baseline --show").exits(0);
}

#[test]
fn the_words_of_a_complaint() {
    let rows = r#"
unknown_key | direction = "lower" | direktion = "lower"
unknown_counter | gpu__time_duration.sum | gpu__time_durations.sum
wrong_type | launches = 20 | launches = "20"
name_that_leaves | s.variant.b] | s.variant."../b"]
source_and_run | "kernels/a.cu" | "kernels/a.cu"\nrun = ["./a"]
"#;
    for [name, from, to] in crate::common::rows(rows) {
        insta::assert_snapshot!(name.as_str(), complaint(&from, &to, ""));
    }
    let missing = Project::empty().run("check").exits(2).err;
    insta::assert_snapshot!("missing_file", missing);
}

#[test]
fn a_filter_that_only_ncu_understands_is_left_to_ncu() {
    load(
        "[metric.duration]\ndirection = \"lower\"\ntolerance = '1'\n\
         [suite.s]\nkernels = 'regex:^bsr_(?!reference).*'\n[suite.s.variant.v]\nrun = [\"true\"]\n",
    )
    .exits(0);
}

#[test]
fn a_configuration_without_metrics_has_those_by_default_that_its_chip_can_measure() {
    let metrics = |text: &str| {
        let config = format!("{text}[suite.s.variant.v]\nrun = [\"x\"]\n");
        let config = Config::parse(Path::new("config.toml"), &config).unwrap();
        let variant = config.variants().next().unwrap().clone();
        variant.metrics
    };
    let names = |arch: &str| -> Vec<String> {
        let all = metrics(&format!("[toolchain]\narch = \"{arch}\"\n"));
        all.into_iter().map(|metric| metric.alias).collect()
    };
    let hopper = names("sm_90a");
    for name in "duration sm_active tensor_core dram_bw stored_sectors fma".split(' ') {
        assert!(hopper.contains(&name.to_owned()), "{hopper:?}");
    }
    assert!(hopper.iter().any(|name| name.starts_with("tensor_flop_")));
    // Orin has no counters of its memory.
    let orin = names("sm_87");
    assert!(orin.contains(&"duration".to_owned()) && !orin.contains(&"dram_bw".to_owned()));
    // One metric of the user's own is all that counts then.
    let own = metrics("[metric.duration]\ndirection = \"lower\"\ntolerance = '1 %'\n");
    assert_eq!(own.len(), 1);
}
