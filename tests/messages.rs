//! Mistakes that people make, and what the tool answers: what is wrong, where, and what to do next.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use common::{Project, aloud};

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
                "sparsek-gate schema",
            ],
        ),
        (
            "source = \"k.cu\"\nprofile = { launches = \"x\" }",
            LIST,
            2,
            [
                "expected a whole number, 0 or more",
                "launches = \"x\"",
                "sparsek-gate schema",
            ],
        ),
        (
            "source = \"k.cu",
            LIST,
            2,
            [
                "invalid basic string",
                "source = \"k.cu",
                "sparsek-gate schema",
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
            "source = \"k.cu\"\nprofile = { ncu_args = [\"--set full\"] }",
            LIST,
            2,
            [
                "`--set full` is two arguments",
                "ncu_args",
                "write \"--set\", \"full\"",
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
            [
                wrong_filter,
                "s/v",
                "correct `kernels` of the variant, or of its suite",
            ],
        ),
        (
            "source = \"k.cu\"\nexpect = [\"softmin\"]",
            STATIC,
            5,
            [
                "did not produce the expected kernel `softmin`",
                "compiled kernels: softmax",
                "correct `expect`",
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
