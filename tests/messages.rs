//! Mistakes that people make, and what the tool answers: what is wrong, where, and what to do next.

use crate::common::{self, Project, aloud};

/// A configuration with one variant `s/v` that has these keys.
fn with(keys: &str) -> String {
    format!(
        "[toolchain]\narch = \"sm_90a\"\n\n\
         [metric.duration]\ncounter = \"gpu__time_duration.sum\"\ndirection = \"lower\"\n\
         tolerance = {{ relative_percent = 3.0 }}\n\n\
         [suite.s.variant.v]\n{keys}\n"
    )
}

fn project(config: &[u8]) -> Project {
    let project = Project::empty();
    project.write("config.toml", config);
    project.write("k.cu", SOURCE);
    project.write("bench.sh", "true\n");
    project
}

const SOURCE: &str = "__global__ void softmax(float* x) { x[0] = 1; }\n\
    int main() { softmax<<<1, 1>>>(nullptr); }\n";

/// A mistake in the keys of a variant, the command that meets it, its exit code, and what the answer
/// says: what is wrong, where, and the next step.
type Mistake = (
    &'static str,
    &'static [&'static str],
    i32,
    [&'static str; 3],
);

#[track_caller]
fn answers(config: &[u8], (mistake, arguments, code, words): Mistake) {
    let project = project(config);
    let ran = project.run(arguments).exits(code);
    let text = format!("{}{}", ran.out, ran.err);
    for word in words {
        assert!(text.contains(word), "{mistake}: {word:?} is not in\n{text}");
    }
}

const LIST: &[&str] = &["list"];
const BUILD: &[&str] = &["build"];
const STATIC: &[&str] = &["check", "--static"];

#[test]
fn a_mistake_in_a_variant_is_answered_with_what_where_and_the_next_step() {
    let mistakes: &[Mistake] = &[
        (
            "source = \"k.cu\"\nprofile = { launches = -3 }",
            LIST,
            2,
            [
                "expected a whole number, 0 or more",
                "launches = -3",
                "sparsek-gate generate schema",
            ],
        ),
        (
            "source = \"k.cu\"\nprofile = { launches = \"x\" }",
            LIST,
            2,
            [
                "expected a whole number, 0 or more",
                "launches = \"x\"",
                "sparsek-gate generate schema",
            ],
        ),
        (
            "source = \"k.cu",
            LIST,
            2,
            [
                "invalid basic string",
                "source = \"k.cu",
                "sparsek-gate generate schema",
            ],
        ),
        (
            "source = \"k.cu\"\nkernels = \"regex:[\"",
            LIST,
            2,
            [
                "not a regular expression: unclosed character class",
                "kernels = \"regex:[\"",
                "without `regex:`",
            ],
        ),
        (
            "source = \"k.cu\"\nkernels = \"regex:(?!slow)max\"",
            LIST,
            2,
            [
                "only ncu can read this pattern",
                "look-around",
                "regex:^(first|second)_",
            ],
        ),
        (
            "source = \"k.cu\"\nmatrix = { tile = [64, 128] }",
            LIST,
            2,
            [
                "nothing uses the axis `tile`",
                "matrix = { tile = [64, 128] }",
                "write `{tile}` where the variant uses it",
            ],
        ),
        (
            "source = \"k.cu\"\nmatrix = { tile = [] }",
            LIST,
            2,
            [
                "the axis `tile` has no values",
                "matrix = { tile = [] }",
                "give it a value, or remove the axis",
            ],
        ),
        (
            "source = \"k.cu\"\nprofile = { lauches = 3 }",
            LIST,
            2,
            [
                "unknown key `lauches`",
                "config.toml:11:13",
                "did you mean `launches`?",
            ],
        ),
        (
            "source = \"k.cu\"\nkernel = \"k\"",
            LIST,
            2,
            [
                "unknown key `kernel`",
                "config.toml:11:1",
                "did you mean `kernels`?",
            ],
        ),
        (
            "source = \"k.cu\"\n[suit.x]",
            LIST,
            2,
            ["unknown key `suit`", "[suit.x]", "did you mean `suite`?"],
        ),
        (
            "source = \"k.cu\"\n[metric.m]\ncounter = \"gpu__time_duratio.sum\"\ndirection = \"lower\"\ntolerance = { absolute = 1 }",
            LIST,
            2,
            [
                "the chip `gh100` has no counter",
                "gpu__time_duratio.sum",
                "did you mean `gpu__time_duration.sum`?",
            ],
        ),
        (
            "source = \"k.cu\"\n[metric.m]\ncounter = \"gpu__time_duration.sum\"\ndirection = \"down\"\ntolerance = { absolute = 1 }",
            LIST,
            2,
            [
                "unknown value `down`",
                "direction = \"down\"",
                "known are `higher`, `lower`, `equal`",
            ],
        ),
        (
            "source = \"k.cu\"\n[metric.m]\ncounter = \"gpu__time_duration.sum\"\ndirection = \"lower\"",
            LIST,
            2,
            [
                "it needs a `tolerance`",
                "[metric.m]",
                "`{ relative_percent = 2.0 }`",
            ],
        ),
        (
            "source = \"k.cu\"\n[metric.m]\ncounter = \"gpu__time_duration.sum\"\ndirection = \"lower\"\ntolerance = { relative_percent = -1 }",
            LIST,
            2,
            [
                "a tolerance must be",
                "tolerance = { relative_percent = -1 }",
                "a finite number, 0 or more",
            ],
        ),
        (
            "source = \"k.cu\"\n[[waiver]]\nvariant = \"s/w\"",
            LIST,
            2,
            [
                "missing field `metric`",
                "[[waiver]]",
                "sparsek-gate generate schema",
            ],
        ),
        (
            "run = [\"sh\", \"bench.sh\"]\nsource = \"k.cu\"",
            LIST,
            2,
            [
                "either a `source` or a `run`",
                "run = [\"sh\", \"bench.sh\"]",
                "not both",
            ],
        ),
        (
            "",
            LIST,
            2,
            [
                "the variant `s/v` needs",
                "[suite.s.variant.v]",
                "a `source` (a .cu file) or a `run` (a command)",
            ],
        ),
        (
            "run = []",
            LIST,
            2,
            [
                "`run` is a program and its arguments",
                "run = []",
                "[\"python3\", \"kernel.py\"]",
            ],
        ),
        (
            "run = [\"-x\"]",
            LIST,
            2,
            [
                "`run` begins with a program",
                "run = [\"-x\"]",
                "not with an option",
            ],
        ),
        (
            "source = \"../k.cu\"",
            LIST,
            2,
            [
                "`../k.cu` must be",
                "source = \"../k.cu\"",
                "a path below the configuration's folder",
            ],
        ),
        (
            "run = [\"sh\", \"bench.sh\"]\nprogram = \"../x\"",
            LIST,
            2,
            [
                "`../x` must be",
                "program = \"../x\"",
                "a path below the configuration's folder",
            ],
        ),
        (
            "run = [\"sh\", \"bench.sh\"]\nprofile_args = [\"{launch}\"]",
            LIST,
            2,
            [
                "`{launch}` is no placeholder",
                "profile_args",
                "did you mean `launches`?",
            ],
        ),
        (
            "run = [\"sh\", \"bench.sh\"]\nprofile_args = [\"{results}\"]",
            LIST,
            2,
            [
                "`{results}` is no placeholder",
                "profile_args",
                "did you mean `result`?",
            ],
        ),
        (
            "source = \"k.cu\"\nexpect = \"x\"",
            LIST,
            2,
            ["expected a list", "expect = \"x\"", "such as `[\"one\"]`"],
        ),
        (
            "source = \"k.cu\"\nimmutable = 1",
            LIST,
            2,
            [
                "invalid type",
                "immutable = 1",
                "expected `true` or `false`",
            ],
        ),
        (
            "source = \"k.cu\"\nprofile = { timeout_s = 0 }",
            LIST,
            2,
            [
                "`timeout_s` must be",
                "timeout_s = 0",
                "seconds above 0, up to 86400",
            ],
        ),
        (
            "source = \"k.cu\"\nprofile = { rounds = 3, max_rounds = 2 }",
            LIST,
            2,
            [
                "`max_rounds` is 2",
                "max_rounds = 2",
                "fewer than the 3 that are always measured",
            ],
        ),
        (
            "source = \"k.cu\"\nprofile = { clock_control = \"bse\" }",
            LIST,
            2,
            [
                "unknown value `bse`",
                "clock_control = \"bse\"",
                "did you mean `base`?",
            ],
        ),
        (
            "source = \"k.cu\"\nprofile = { accept_tiers = [\"kernel-time\"] }",
            LIST,
            2,
            [
                "unknown value `kernel-time`",
                "accept_tiers",
                "did you mean `kernel-times`?",
            ],
        ),
        (
            "source = \"k.cu\"\nprofile = { collector = \"cupty\" }",
            LIST,
            2,
            [
                "unknown value `cupty`",
                "collector = \"cupty\"",
                "did you mean `cupti`?",
            ],
        ),
        (
            "source = \"k.cu\"\nprofile = { collector = \"cupti\" }",
            LIST,
            2,
            [
                "`clock_control` does not work with `collector = \"cupti\"`",
                "collector",
                "set `clock_control = \"none\"`",
            ],
        ),
        (
            "source = \"k.cu\"\nverify = { sanitizer = [\"memchek\"] }",
            LIST,
            2,
            [
                "unknown value `memchek`",
                "sanitizer = [\"memchek\"]",
                "did you mean `memcheck`?",
            ],
        ),
        (
            "source = \"k.cu\"\ndefines = { \"a b\" = 1 }",
            LIST,
            2,
            [
                "`a b` cannot be the name",
                "defines = { \"a b\" = 1 }",
                "a preprocessor constant",
            ],
        ),
        (
            "source = \"k.cu\"\ninputs = [\"k.cuh\"]",
            LIST,
            2,
            [
                "`inputs` belongs to a variant with `run`",
                "inputs = [\"k.cuh\"]",
                "not to one with `source`",
            ],
        ),
        (
            "run = [\"sh\", \"bench.sh\"]\nflags = [\"-O3\"]",
            LIST,
            2,
            [
                "`flags` belongs to a variant with `source`",
                "flags = [\"-O3\"]",
                "not to one with `run`",
            ],
        ),
        (
            "run = [\"sh\", \"bench.sh\"]\nimmutable = true",
            LIST,
            2,
            [
                "an immutable variant with `run` needs `inputs`",
                "immutable = true",
                "the files that must not change",
            ],
        ),
        (
            "run = [\"sh\", \"bench.sh\"]\ninputs = [\"none.py\"]",
            BUILD,
            5,
            [
                "the input `none.py` cannot be read",
                "s/v",
                "check `inputs` of s/v",
            ],
        ),
        (
            "source = [\"a/k.cu\", \"b/k.cu\"]",
            LIST,
            2,
            [
                "two sources are called `k.cu`",
                "source = [\"a/k.cu\", \"b/k.cu\"]",
                "rename one of them",
            ],
        ),
        (
            "run = [\"sh\", \"bench.sh\"]\ninputs = [\"src/*.py\"]",
            BUILD,
            2,
            [
                "matches no file",
                "`src/*.py` in `inputs` of s/v",
                "next: correct the pattern",
            ],
        ),
        (
            "run = [\"sh\", \"bench.sh\"]\ninputs = [\"src/[a\"]",
            LIST,
            2,
            [
                "cannot be read as a pattern",
                "inputs = [\"src/[a\"]",
                "`**` for any folders",
            ],
        ),
        (
            "run = [\"sh\", \"bench.sh\"]\nprogram = \"bench.sh\"",
            BUILD,
            5,
            [
                "it is no ELF file, no fatbin and no cubin",
                "`bench.sh`",
                "`program` and `libraries` of s/v",
            ],
        ),
        (
            "source = \"k.cu\"\n[toolchain.pins]\ncuda = \"latest\"",
            LIST,
            2,
            [
                "`latest` is not a version",
                "cuda = \"latest\"",
                "write `13.0`",
            ],
        ),
        (
            "source = \"k.cu\"\n[[waiver]]\nvariant = \"s/v\"\nuntil = \"2027-01-01\"",
            LIST,
            2,
            ["unknown key `until`", "until = \"2027-01-01\"", "`expires`"],
        ),
        (
            "source = \"k.cu\"\n[metric.duration.on]\n\"s/w\" = { against = { absolute = 1 } }",
            LIST,
            2,
            [
                "no suite and no variant is called `s/w`",
                "\"s/w\" =",
                "did you mean `s/v`?",
            ],
        ),
        (
            "source = \"k.cu\"\n[static.registrs]\nlevel = \"record\"",
            LIST,
            2,
            [
                "no static metric is called `registrs`",
                "[static.registrs]",
                "did you mean `registers`?",
            ],
        ),
        (
            "source = \"k.cu\"\n[static.registers]\nlevel = \"recrd\"",
            LIST,
            2,
            [
                "unknown value `recrd`",
                "level = \"recrd\"",
                "did you mean `record`?",
            ],
        ),
        (
            "source = \"k.cu\"\n[suite.s.variant.v]",
            LIST,
            2,
            [
                "duplicate key",
                "config.toml:11:",
                "write each table and each key once",
            ],
        ),
        (
            "source = \"k.cu\"\n[suite.\"a b\".variant.v]\nsource = \"k.cu\"",
            LIST,
            2,
            [
                "`a b` cannot be a name",
                "[suite.\"a b\".variant.v]",
                "at most 64 letters, digits",
            ],
        ),
        (
            "source = \"k.cu\"\nprofile = { processes = 0 }",
            LIST,
            2,
            [
                "`processes` must be",
                "processes = 0",
                "a number from 1 to 10000",
            ],
        ),
        (
            "source = \"k.cu\"\nprofile = { launches = 0 }",
            LIST,
            2,
            [
                "`launches` must be",
                "launches = 0",
                "a number from 1 to 10000",
            ],
        ),
        (
            "source = \"k.cu\"\nprofile = { skip = 1.5 }",
            LIST,
            2,
            [
                "floating point `1.5`",
                "skip = 1.5",
                "expected a whole number, 0 or more",
            ],
        ),
        (
            "source = \"k.cu\"\nprofile = { per_kernels = true }",
            LIST,
            2,
            [
                "unknown key `per_kernels`",
                "per_kernels = true",
                "did you mean `per_kernel`?",
            ],
        ),
        (
            "source = \"k.cu\"\nargs = \"range\"",
            LIST,
            2,
            ["expected a list", "args = \"range\"", "such as `[\"one\"]`"],
        ),
        (
            "run = [\"sh\", \"bench.sh\"]\nlibraries = [\"a.so\", \"a.so\"]",
            LIST,
            2,
            [
                "`a.so`",
                "libraries = [\"a.so\", \"a.so\"]",
                "is named twice",
            ],
        ),
        (
            "run = [\"sh\", \"bench.sh\"]\nlibraries = [\"a.so\"]\nloaded_code = true",
            LIST,
            2,
            [
                "`loaded_code` does not work with `program` and `libraries`",
                "loaded_code = true",
                "make two variants",
            ],
        ),
        (
            "source = \"k.cu\"\n[profile]\nskip = -1",
            LIST,
            2,
            [
                "integer `-1`",
                "skip = -1",
                "expected a whole number, 0 or more",
            ],
        ),
        (
            "source = \"k.cu\"\n[paths]\nbaselines = \"/abs\"",
            LIST,
            2,
            [
                "`baselines` must be",
                "baselines = \"/abs\"",
                "a folder below the configuration's folder",
            ],
        ),
        (
            "source = \"k.cu\"\n[paths]\nunread = [\"[\"]",
            LIST,
            2,
            ["`[` cannot be read", "unread = [\"[\"]", "missing ']'"],
        ),
        (
            "source = \"k.cu\"\nwork = { flop = 1 }",
            LIST,
            2,
            [
                "nothing counts the declared `flop`",
                "work = { flop = 1 }",
                "give an exact metric of the suite",
            ],
        ),
        (
            "run = [\"sh\", \"bench.sh\"]\nbuild = [\"make -j4\"]",
            BUILD,
            5,
            [
                "there is no program with the name `make -j4`",
                "s/v",
                "build = [\"make\", \"-j4\"]",
            ],
        ),
        (
            "run = [\"sh\", \"bench.sh\"]\nbuild = [\"no-such-tool\", \"all\"]",
            BUILD,
            5,
            [
                "the program `no-such-tool` was not found",
                "s/v",
                "correct `build` of the variant",
            ],
        ),
        (
            "run = [\"sh\", \"bench.sh\"]",
            &["baseline", "--lock", "--reason", " "],
            2,
            [
                "--reason must say why",
                "accepted",
                "--reason \"128-bit loads\"",
            ],
        ),
    ];
    for mistake in mistakes {
        answers(with(mistake.0).as_bytes(), *mistake);
    }
}

#[test]
fn a_mistake_on_the_command_line_is_answered_with_what_where_and_the_next_step() {
    let mistakes: &[Mistake] = &[
        (
            "source = \"k.cu\"",
            &["list", "w"],
            2,
            [
                "no variant or suite is called `w`",
                "did you mean `s`?",
                "`sparsek-gate list` shows all",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["list", "s/x*"],
            2,
            [
                "no variant or suite is called `s/x*`",
                "did you mean `s/v`?",
                "`sparsek-gate list` shows all",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["build", "t/v"],
            2,
            [
                "no variant or suite is called `t/v`",
                "did you mean `s/v`?",
                "`sparsek-gate list` shows all",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["check", "--report", "out.foo"],
            2,
            [
                "selects no form",
                "`--report out.foo`",
                "The endings are: .txt (text)",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["check", "--report"],
            2,
            ["a value is required", "--report", "try '--help'"],
        ),
        (
            "source = \"k.cu\"",
            &[
                "check",
                "--slice",
                "9/8",
                "--slice-output",
                "d",
                "--from",
                "r",
            ],
            2,
            ["--slice <I/N>", "there is no slice 9", "from 1 to 8"],
        ),
        (
            "source = \"k.cu\"",
            &["check", "--slice", "1/2"],
            2,
            ["required", "--slice-output <DIR>", "try '--help'"],
        ),
        (
            "source = \"k.cu\"",
            &["check", "--slice", "1/2", "--slice-output", "d"],
            2,
            [
                "`--slice` requires",
                "--archive FILE",
                "next: sparsek-gate archive",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["check", "--from", "nowhere", "--from", "nowhere2"],
            6,
            [
                "the slice in nowhere is not used",
                "there is no such folder",
                "next: run that slice again",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["check", "--from", "d", "--archive", "gate.tar.zst"],
            2,
            [
                "`--from` with `--archive`",
                "requires `--archive-sha256 HASH`",
                "next: take it from the job",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["check", "--archive", "gate.tar.zst", "--against", "HEAD"],
            2,
            ["--archive <FILE>", "cannot be used with", "--against <REV>"],
        ),
        (
            "source = \"k.cu\"",
            &["chek"],
            2,
            [
                "unrecognized subcommand",
                "chek",
                "a similar subcommand exists: 'check'",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["check", "--agianst", "main"],
            2,
            [
                "unexpected argument",
                "--agianst",
                "a similar argument exists: '--against'",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["check", "--from", "nowhere"],
            2,
            [
                "is not a folder",
                "`--from nowhere`",
                "`profile --output DIR` makes one",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["inspect", "bench.sh"],
            5,
            [
                "no CSV header of ncu",
                "bench.sh",
                "found a text that begins with \"true",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["inspect", "none.ncu-rep"],
            2,
            ["there is no file", "none.ncu-rep", "there is no file"],
        ),
        (
            "source = \"k.cu\"",
            &["report", "none.json"],
            2,
            ["there is no file", "none.json", "there is no file"],
        ),
        (
            "source = \"k.cu\"",
            &["report", "bench.sh"],
            5,
            [
                "it is not the outcome of a check",
                "bench.sh",
                "check --report outcome.json",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["history", "s/v"],
            4,
            ["nothing is locked yet", "s/v", "baseline --lock --reason"],
        ),
        (
            "source = \"k.cu\"",
            &["baseline", "--verify"],
            4,
            ["it has no baseline yet", "s/v", "baseline --lock --reason"],
        ),
        (
            "source = \"k.cu\"",
            &["compare", "./a \"b"],
            2,
            [
                "a quote or a backslash at its end is not closed",
                "`./a \"b`",
                "not closed",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["generate", "completions", "fishy"],
            2,
            [
                "invalid value 'fishy'",
                "<SHELL>",
                "a similar value exists: 'fish'",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["-C", "other.toml", "check"],
            2,
            [
                "cannot read the configuration",
                "other.toml",
                "`sparsek-gate init` writes one",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["check", "--static", "--from", "x"],
            2,
            [
                "'--static' cannot be used with",
                "--from <DIR>",
                "Usage: sparsek-gate check",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["check", "--format", "yaml"],
            2,
            [
                "invalid value 'yaml'",
                "--format <FORMAT>",
                "possible values: text, markdown",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["baseline", "--lock"],
            2,
            [
                "required arguments were not provided",
                "--reason <TEXT>",
                "Usage: sparsek-gate baseline",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["verify", "--sanitizer", "memchek"],
            2,
            [
                "invalid value 'memchek'",
                "--sanitizer <TOOL>",
                "a similar value exists: 'memcheck'",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["check", "--accept", "zz"],
            2,
            [
                "takes the token that the finding prints",
                "`--accept zz`",
                "64 hexadecimal digits",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["plan", "--slices", "257", "--format", "github"],
            2,
            [
                "runs at most 256 jobs of one kind",
                "`--slices 257`",
                "next: --slices 256, or fewer",
            ],
        ),
        (
            "source = \"k.cu\"",
            &["compare", ".", "."],
            3,
            ["cannot read", "./profile.json", "No such file"],
        ),
        (
            "source = \"k.cu\"",
            &["init"],
            2,
            ["config.toml exists", "config.toml", "--force replaces it"],
        ),
    ];
    for mistake in mistakes {
        answers(with(mistake.0).as_bytes(), *mistake);
    }
}

#[test]
fn a_configuration_that_is_not_utf8_is_answered_with_the_command_that_converts_it() {
    let text = with("source = \"k.cu\" # \u{e9}");
    let latin1: Vec<u8> = text
        .chars()
        .map(|c| u8::try_from(c as u32).unwrap())
        .collect();
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (name, config) in [("Latin-1", latin1), ("UTF-16", utf16)] {
        let words = ["not a text in UTF-8", "config.toml", "iconv -f"];
        answers(&config, (name, LIST, 2, words));
    }
}

#[test]
fn an_unknown_revision_is_answered_with_how_to_list_those_that_there_are() {
    if !common::git::has_git("an unknown revision") {
        return;
    }
    let project = project(with("source = \"k.cu\"").as_bytes());
    for arguments in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["commit", "-qm", "first"],
    ] {
        common::git::git(&project.path(""), arguments);
    }
    let ran = project.run(&["check", "--against", "nonsense"]).exits(2);
    assert!(
        ran.err
            .contains("`--against nonsense`: there is no such revision"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("next: name a branch, a tag or a commit"),
        "{}",
        ran.err
    );
}

#[test]
fn a_mistake_that_the_compiler_finds_is_answered_with_the_key_to_correct() {
    if std::process::Command::new("nvcc")
        .arg("--version")
        .output()
        .is_err()
    {
        aloud("SKIPPED: nvcc is not on the PATH: ci/install-cuda.sh target/cuda");
        return;
    }
    let wrong_filter = "`kernels = \"softmin\"` selects none of the compiled kernels: softmax";
    let mistakes: &[Mistake] = &[
        (
            "source = \"k.cu\"\nkernels = \"softmin\"",
            STATIC,
            5,
            [wrong_filter, "s/v", "compare `kernels` and `expect`"],
        ),
        (
            "source = \"k.cu\"\nexpect = [\"softmin\"]",
            STATIC,
            5,
            [
                "did not produce the expected kernel `softmin`",
                "compiled kernels: softmax",
                "compare `kernels` and `expect`",
            ],
        ),
    ];
    for mistake in mistakes {
        answers(with(mistake.0).as_bytes(), *mistake);
    }
    let config = with("source = \"k.cu\"").replace("sm_90a", "sm_999");
    let words = [
        "Unsupported gpu architecture",
        "s/v",
        "correct `toolchain.arch`",
    ];
    answers(
        config.as_bytes(),
        ("an unknown architecture", BUILD, 5, words),
    );
}
