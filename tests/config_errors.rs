//! What is wrong in `config.toml` is refused, with its line and the nearest right thing.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::path::Path;

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
public_keys = ["RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"]

[profile]
launches = 20
max_launches = 80
skip = 1
processes = 2
max_processes = 6
per_kernel = true
total = false
rounds = 3
max_rounds = 7
clock_control = "none"
cache_control = "all"
replay_mode = "kernel"
graph_profiling = "node"
profiler_range = false
timeout_s = 120.0
hotspots = true
retries = 1
accept_tiers = ["kernel-times"]

[verify]
timeout_s = 60
sanitizer = ["memcheck", "racecheck"]

[metric.duration]
counter = "gpu__time_duration.sum"
direction = "lower"
tolerance = { relative_percent = 3.0 }
against = { relative_percent = 0.5 }
tail = { relative_percent = 10.0 }
tail_against = { relative_percent = 5.0 }
phase = "timing"
min = 0
max = 1e9
level = "deny"

[metric.duration.on.s]
tolerance = { relative_percent = 4.0 }
against = { relative_percent = 1.0 }
tail = { relative_percent = 12.0 }
tail_against = { relative_percent = 7.0 }

[metric.sm_active]
direction = "higher"
tolerance = { absolute = 2.0 }
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
tolerance = { absolute = 4 }
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
work = { flop = 2048, bytes_written = 4096 }
env = { A = "b" }
immutable = true
control = false
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

/// Puts `to` in place of `from`, and expects a complaint in the line of `to` with these words.
#[track_caller]
fn refused(from: &str, to: &str, words: &[&str]) -> String {
    assert_eq!(EVERY_KEY.matches(from).count(), 1, "{from:?}");
    let config = EVERY_KEY.replacen(from, to, 1);
    let before = EVERY_KEY[..EVERY_KEY.find(from).unwrap()]
        .matches('\n')
        .count();
    let last = before + to.trim_end().matches('\n').count();
    let ran = load(&config).exits(2);
    assert_eq!(ran.out, "");
    let lines: Vec<String> = (before..=last)
        .map(|line| format!("config.toml:{}", line + 1))
        .collect();
    assert!(
        lines
            .iter()
            .any(|line| ran.err.contains(&format!("{line}:"))),
        "{lines:?} are not named in\n{}",
        ran.err
    );
    for word in words {
        assert!(ran.err.contains(word), "{word:?} is not in\n{}", ran.err);
    }
    ran.err
}

/// The schema for editors refuses it too.
#[track_caller]
fn refused_in_editors(from: &str, to: &str) {
    let complaints = schema_complaints(&EVERY_KEY.replacen(from, to, 1));
    assert_eq!(complaints.len(), 1, "{to}: {complaints:?}");
}

#[test]
fn the_configuration_with_every_key_is_accepted() {
    load(EVERY_KEY).exits(0);
    assert_eq!(schema_complaints(EVERY_KEY), Vec::<String>::new());
}

#[test]
fn a_placeholder_that_is_misspelled_is_named_and_other_braces_are_the_programs_own() {
    let of_suite = "profile_args = [\"--profile\"]\nkernels = \"regex:^k\"";
    let of_variant = "profile_args = [\"--profile\"]\nkernels = \"k\"";
    for (from, wrong) in [
        (of_suite, "{launch}"),
        (of_variant, "{results}"),
        (of_variant, "--out={Result}{seeds}"),
    ] {
        let to = from.replace("--profile", wrong);
        let name = wrong.rsplit('{').next().unwrap();
        refused(from, &to, &["is no placeholder", name, "`{launches}`"]);
    }
    for own in [
        "{m},{n}",
        "{\\\"a\\\": 1}",
        "{}",
        "{launches}{result}{seed}{skip}",
    ] {
        let text = EVERY_KEY.replacen(of_suite, &of_suite.replace("--profile", own), 1);
        load(&text).exits(0);
    }
}

#[test]
fn a_pattern_of_unread_files_is_a_path_from_the_top_of_the_repository() {
    for (pattern, why) in [
        ("docs/[", "unclosed character class"),
        ("/docs/**", "without a slash at its beginning"),
        ("", "without a slash at its beginning"),
    ] {
        let quoted = format!("\"{pattern}\"");
        refused("\"docs/**\"", &quoted, &[why, &format!("`{pattern}`")]);
    }
    refused(
        "unread = [\"*.md\", \"docs/**\"]",
        "unread = true",
        &["unread"],
    );
}

#[test]
fn a_small_file_with_many_metrics_or_slow_patterns_costs_little() {
    let config = |metrics: usize, suites: usize, kernels: &str| {
        let mut text = "[toolchain]\narch = \"sm_90a\"\n".to_owned();
        for at in 0..metrics {
            text += &format!(
                "[metric.m{at}]\ncounter = \"sm__cycles_active.sum\"\ndirection = \"lower\"\ntolerance = {{ relative_percent = 3.0 }}\n"
            );
        }
        for at in 0..suites {
            text += &format!(
                "[suite.s{at}]\nkernels = '{kernels}'\n[suite.s{at}.variant.v]\nsource = \"k.cu\"\n"
            );
        }
        text
    };
    let plan = |config: &str| {
        let project = project(config);
        project.write("k.cu", "");
        project.run(&["check", "--dry-run"])
    };
    plan(&config(800, 800, "k"))
        .exits(2)
        .says("the variants have 640000 metrics in all, and 100000 is the most");
    // Without a bound each of them takes half a second to compile in a build for tests.
    let begun = std::time::Instant::now();
    plan(&config(1, 300, r"regex:(\w{90})")).exits(0);
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
                Some((key, _)) => key,
                None => continue,
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
fn a_typo_in_a_small_table_within_a_line_is_refused_too() {
    refused(
        "{ relative_percent = 3.0 }",
        "{ relative_percents = 3.0 }",
        &[
            "unknown key `relative_percents`",
            "did you mean `relative_percent`?",
        ],
    );
    refused(
        "{ absolute = 2.0 }",
        "{ absolut = 2.0 }",
        &["did you mean `absolute`?"],
    );
    refused(
        "profile = { launches = 5 }",
        "profile = { launch = 5 }",
        &["unknown key `launch`", "did you mean `launches`?"],
    );
    refused(
        "verify = { timeout_s = 5 }",
        "verify = { timeout = 5 }",
        &["did you mean `timeout_s`?"],
    );
    for wrong in ["MY_*", "MY_DATA=1", "1ST", "", "MY DATA"] {
        refused(
            "[\"MY_DATA\"]",
            &format!("[\"MY_DATA\", \"{wrong}\"]"),
            &[
                "config.toml:1:",
                &format!("`{wrong}` cannot be the name of an environment variable"),
                "no pattern and no value",
            ],
        );
    }
    refused(
        "[toolchain]",
        "[toolchains]",
        &["unknown key `toolchains`", "did you mean `toolchain`?"],
    );
    refused(
        "[suite.s]",
        "[suit.s]",
        &["unknown key `suit`", "did you mean `suite`?"],
    );
    refused(
        "[metric.duration]",
        "[metrics.duration]",
        &["did you mean `metric`?"],
    );
    refused(
        "[suite.s.variant.b]",
        "[suite.s.variants.b]",
        &["did you mean `variant`?"],
    );
}

#[test]
fn a_static_metric_that_the_target_cannot_have_is_refused() {
    refused(
        "[static.wgmma_instructions]",
        "[static.tcgen05_instructions]",
        &[
            "code for `sm_90a` cannot have `tcgen05_instructions`",
            "`tensor_instructions` counts those of every chip",
        ],
    );
}

#[test]
fn a_static_metric_without_effect_is_refused() {
    refused(
        "[static.registers]",
        "[static.register]",
        &[
            "no static metric is called `register`",
            "did you mean `registers`?",
        ],
    );
    refused(
        "min = 1\nmax = 255",
        "min = 256\nmax = 255",
        &["`min` is larger than `max`"],
    );
    refused("max = 255", "max = inf", &["`max` must be a finite number"]);
    refused(
        "level = \"warn\"\ntolerance = { absolute = 4 }\nmin = 1",
        "level = \"record\"\nmin = 1",
        &["only recorded"],
    );
    refused(
        "[static.wgmma_instructions]\nlevel = \"warn\"",
        "[static.wgmma_instructions]\ntolerance = { absolute = 1 }",
        &["it takes no tolerance"],
    );
    refused("{ absolute = 4 }", "{ absolute = -4 }", &["0 or more"]);
}

#[test]
fn a_value_of_another_type_is_refused() {
    for (from, to) in [
        ("skip = 1", "skip = \"first\""),
        ("skip = 1", "skip = -1"),
        ("launches = 20", "launches = 2.5"),
        ("launches = 20", "launches = \"20\""),
        ("flags = [\"-O3\"]", "flags = \"-O3\""),
        ("args = [\"--m\", \"8\"]", "args = [\"--m\", 8]"),
        ("experimental = false", "experimental = \"no\""),
        ("arch = \"sm_90a\"", "arch = 90"),
        ("timeout_s = 120.0", "timeout_s = \"2 min\""),
        ("env = { A = \"b\" }", "env = { A = 1 }"),
        ("defines = { TILE = 8 }", "defines = { TILE = 8.5 }"),
        (
            "metrics = [\"duration\", \"flop\", \"stored\"]",
            "metrics = \"duration\"",
        ),
        ("counter = \"gpu__time_duration.sum\"", "counter = 1"),
        ("run = [\"./b\"]", "run = \"./b\""),
        ("max = 255", "max = \"many\""),
        ("dynamic_shared_bytes = 1024", "dynamic_shared_bytes = -1"),
    ] {
        refused(from, to, &[]);
        refused_in_editors(from, to);
    }
}

#[test]
fn a_value_that_is_no_choice_is_refused_with_the_nearest() {
    for (from, to, words) in [
        (
            "direction = \"lower\"",
            "direction = \"lowr\"",
            "did you mean `lower`?",
        ),
        (
            "level = \"deny\"",
            "level = \"denny\"",
            "did you mean `deny`?",
        ),
        (
            "level = \"deny\"",
            "level = \"fatal\"",
            "known are `deny`, `warn`, `record`",
        ),
        (
            "clock_control = \"none\"",
            "clock_control = \"bass\"",
            "did you mean `base`?",
        ),
        (
            "cache_control = \"all\"",
            "cache_control = \"al\"",
            "did you mean `all`?",
        ),
        (
            "replay_mode = \"kernel\"",
            "replay_mode = \"kernels\"",
            "did you mean `kernel`?",
        ),
        (
            "graph_profiling = \"node\"",
            "graph_profiling = \"nodes\"",
            "did you mean `node`?",
        ),
        (
            "sanitizer = [\"memcheck\", \"racecheck\"]",
            "sanitizer = [\"memcheck\", \"racechek\"]",
            "did you mean `racecheck`?",
        ),
    ] {
        refused(from, to, &["unknown value", words]);
        refused_in_editors(from, to);
    }
}

#[test]
fn numbers_out_of_their_range_are_refused() {
    for (from, to, words) in [
        (
            "launches = 20",
            "launches = 0",
            "`launches` must be a number from 1 to 10000",
        ),
        (
            "launches = 20",
            "launches = 10001",
            "`launches` must be a number from 1 to 10000",
        ),
        (
            "processes = 2",
            "processes = 0",
            "`processes` must be a number from 1 to 10000",
        ),
        (
            "launches = 10",
            "launches = 0",
            "`launches` must be a number from 1 to 10000",
        ),
        (
            "launches = 5",
            "launches = 0",
            "`launches` must be a number from 1 to 10000",
        ),
        ("timeout_s = 120.0", "timeout_s = 0", "above 0"),
        ("timeout_s = 120.0", "timeout_s = -1.0", "above 0"),
        ("timeout_s = 120.0", "timeout_s = nan", "above 0"),
        ("timeout_s = 120.0", "timeout_s = inf", "above 0"),
        ("timeout_s = 120.0", "timeout_s = 1e300", "above 0"),
        (
            "verify = { timeout_s = 5 }",
            "verify = { timeout_s = nan }",
            "above 0",
        ),
        (
            "relative_percent = 3.0",
            "relative_percent = -0.1",
            "a finite number, 0 or more",
        ),
        (
            "relative_percent = 3.0",
            "relative_percent = nan",
            "a finite number, 0 or more",
        ),
        (
            "relative_percent = 3.0",
            "relative_percent = inf",
            "a finite number, 0 or more",
        ),
        (
            "absolute = 2.0",
            "absolute = -2.0",
            "a finite number, 0 or more",
        ),
        (
            "absolute = 2.0",
            "absolute = nan",
            "a finite number, 0 or more",
        ),
        ("min = 0", "min = nan", "`min` must be a finite number"),
        ("max = 1e9", "max = inf", "`max` must be a finite number"),
        ("min = 0", "min = 2e9", "`min` is larger than `max`"),
    ] {
        refused(from, to, &[words]);
    }
}

#[test]
fn more_looks_are_no_fewer_than_the_first() {
    refused(
        "max_rounds = 7",
        "max_rounds = 2",
        &["`max_rounds` is 2, fewer than the 3 that are always measured"],
    );
    refused(
        "max_processes = 6",
        "max_processes = 1",
        &["`max_processes` is 1, fewer than the 2 that are always measured"],
    );
    refused(
        "max_launches = 80",
        "max_launches = 19",
        &["`max_launches` is 19, fewer than the 20 that are always measured"],
    );
    for setting in ["max_launches = 80", "max_rounds = 7", "max_processes = 6"] {
        let name = setting.split(' ').next().unwrap();
        let words = format!("`{name}` must be a number from 1 to 10000");
        refused(setting, &format!("{name} = 0"), &[&words]);
        refused(setting, &format!("{name} = 10001"), &[&words]);
    }
    // A variant may ask for more than the whole configuration allows at most.
    let config = EVERY_KEY.replacen("profile = { launches = 5 }", "profile = { rounds = 9 }", 1);
    load(&config)
        .exits(2)
        .says("`max_rounds` is 7, fewer than the 9");
}

#[test]
fn an_exact_metric_has_no_tolerance_and_is_counted() {
    for (line, words) in [
        (
            "tolerance = { absolute = 0 }",
            "an exact metric has no tolerance",
        ),
        (
            "against = { relative_percent = 0.1 }",
            "an exact metric has no tolerance",
        ),
        ("phase = \"timing\"", "its phase must be `counting`"),
    ] {
        refused(
            "exact = true\ncounts = { flop = 1 }",
            &format!("exact = true\n{line}\ncounts = {{ flop = 1 }}"),
            &[words],
        );
    }
    refused(
        "phase = \"timing\"",
        "phase = \"time\"",
        &["did you mean `timing`?"],
    );
    refused(
        "exact = true\ncounts = { flop = 1 }",
        "exact = 1\ncounts = { flop = 1 }",
        &[],
    );
}

#[test]
fn against_is_a_tolerance_like_the_other() {
    for (to, words) in [
        (
            "against = { relative_percent = -1 }",
            "a finite number, 0 or more",
        ),
        (
            "against = { relative_percent = nan }",
            "a finite number, 0 or more",
        ),
        ("against = {}", "either `relative_percent` or `absolute`"),
        (
            "against = { relative_percent = 1, absolute = 1 }",
            "either `relative_percent` or `absolute`",
        ),
        ("against = { absolut = 1 }", "did you mean `absolute`?"),
    ] {
        refused("against = { relative_percent = 0.5 }", to, &[words]);
    }
}

#[test]
fn what_counts_the_work_is_exact_and_gated_and_counts_one_thing() {
    let exact = "exact = true\ncounts = { flop = 1 }";
    refused(
        exact,
        "direction = \"equal\"\ntolerance = { absolute = 0 }\ncounts = { flop = 1 }",
        &["must be `exact`"],
    );
    refused(
        exact,
        "exact = true\nlevel = \"record\"\ncounts = { flop = 1 }",
        &["not only recorded"],
    );
    for (counts, words) in [
        ("{}", "either `flop` or `bytes_written`"),
        (
            "{ flop = 1, bytes_written = 32 }",
            "either `flop` or `bytes_written`",
        ),
        ("{ flop = 0 }", "a number above 0"),
        ("{ flop = -2 }", "a number above 0"),
        ("{ flop = nan }", "a number above 0"),
        ("{ flop = inf }", "a number above 0"),
        ("{ flops = 1 }", "did you mean `flop`?"),
    ] {
        refused(exact, &format!("exact = true\ncounts = {counts}"), &[words]);
    }
}

#[test]
fn declared_work_that_nothing_counts_is_refused() {
    for (metrics, key) in [
        ("metrics = [\"duration\", \"stored\"]", "flop"),
        ("metrics = [\"duration\", \"flop\"]", "bytes_written"),
    ] {
        let config =
            EVERY_KEY.replacen("metrics = [\"duration\", \"flop\", \"stored\"]", metrics, 1);
        let ran = load(&config).exits(2);
        let words = format!("nothing counts the declared `{key}`");
        assert!(ran.err.contains(&words), "{}", ran.err);
        assert!(
            ran.err.contains(&format!("counts = {{ {key} = ... }}")),
            "{}",
            ran.err
        );
    }
    let own = EVERY_KEY
        .replacen(
            "metrics = [\"duration\", \"flop\", \"stored\"]",
            "metrics = [\"duration\", \"flop\"]",
            1,
        )
        .replacen(
            "work = { flop = 1024, bytes_written = 4096 }",
            "work = { flop = 1024 }",
            1,
        );
    let ran = load(&own).exits(2);
    assert!(
        ran.err
            .contains("nothing counts the declared `bytes_written`")
            && ran
                .err
                .contains("work = { flop = 2048, bytes_written = 4096 }"),
        "{}",
        ran.err
    );
    for work in ["{ flop = -1 }", "{ flop = 1.5 }", "{ bytes = 1 }"] {
        refused(
            "work = { flop = 1024, bytes_written = 4096 }",
            &format!("work = {work}"),
            &[],
        );
    }
}

#[test]
fn a_metric_of_some_variants_names_them_and_leaves_the_others_a_gate() {
    let both = "variants = [\"s/a\", \"s/b\"]";
    refused(
        both,
        "variants = [\"s/a\", \"s/bb\"]",
        &["no variant is called `s/bb`", "`s/b`"],
    );
    refused(
        both,
        "variants = [\"s/a\"]",
        &["nothing counts the declared `bytes_written` of `s/b`"],
    );
    let config = EVERY_KEY
        .replacen(
            "metrics = [\"duration\", \"flop\", \"stored\"]",
            "metrics = [\"stored\"]",
            1,
        )
        .replacen("work = { flop = 1024, bytes_written = 4096 }", "", 1)
        .replacen("work = { flop = 2048, bytes_written = 4096 }", "", 1)
        .replacen(both, "variants = [\"s/a\"]", 1);
    let ran = load(&config).exits(2);
    let words = "without `stored`, `s/b` gates nothing";
    assert!(ran.err.contains(words), "{}", ran.err);
}

#[test]
fn tolerances_of_some_kernels_name_them_and_a_metric_that_has_one() {
    refused(
        "[metric.duration.on.s]",
        "[metric.duration.on.t]",
        &["no suite and no variant is called `t`", "`s`"],
    );
    refused(
        "counts = { flop = 1 }\n",
        "counts = { flop = 1 }\non.s.tolerance = { absolute = 1 }\n",
        &["`flop` is not judged by a tolerance"],
    );
    refused(
        "counts = { flop = 1 }\n",
        "counts = { flop = 1 }\n\n[metric.duration.on.\"s/a\"]\n",
        &["it has none of `tolerance`, `against`, `tail` and `tail_against`"],
    );
    refused(
        "tolerance = { relative_percent = 4.0 }",
        "tolerance = { relative_percent = -4.0 }",
        &[],
    );
}

#[test]
fn a_waiver_names_a_variant_a_metric_a_day_and_who_answers() {
    for (from, to, words) in [
        (
            "variant = \"s/a\"",
            "variant = \"s/x\"",
            "there is no variant `s/x`",
        ),
        (
            "variant = \"s/a\"",
            "variant = \"a\"",
            "there is no variant `a`",
        ),
        (
            "metric = \"duration\"\nreason",
            "metric = \"durations\"\nreason",
            "did you mean `duration`?",
        ),
        // A metric that the suite does not measure.
        (
            "metric = \"duration\"\nreason",
            "metric = \"sm_active\"\nreason",
            "has no metric `sm_active` to waive",
        ),
        (
            "reason = \"the new driver\"",
            "reason = \" \"",
            "needs a `reason`",
        ),
        (
            "reason = \"the new driver\"",
            "reason = \"two\\nlines\"",
            "needs a `reason`, in one line",
        ),
        ("who = \"Ada\"", "who = \"\"", "needs a `who`"),
        ("who = \"Ada\"\n", "", "missing field `who`"),
        ("expires = 2026-12-31", "", "missing field `expires`"),
        (
            "expires = 2026-12-31",
            "expires = \"never\"",
            "a day such as 2026-12-31",
        ),
        (
            "expires = 2026-12-31",
            "expires = \"2026-02-30\"",
            "a day such as 2026-12-31",
        ),
        (
            "expires = 2026-12-31",
            "expires = 2026",
            "a date such as 2026-12-31",
        ),
        (
            "expires = 2026-12-31",
            "expires = 12:00:00",
            "a day such as 2026-12-31",
        ),
    ] {
        assert_eq!(EVERY_KEY.matches(from).count(), 1, "{from:?}");
        let ran = load(&EVERY_KEY.replacen(from, to, 1)).exits(2);
        assert!(ran.err.contains(words), "{words:?} is not in\n{}", ran.err);
        // The table, at least.
        let first = EVERY_KEY[..EVERY_KEY.find("[[waiver]]").unwrap()]
            .lines()
            .count()
            + 1;
        let named =
            (first..first + 7).any(|line| ran.err.contains(&format!("config.toml:{line}:")));
        assert!(named, "no line of the waiver is named in\n{}", ran.err);
    }
    for day in ["\"2026-12-31\"", "2026-12-31"] {
        load(&EVERY_KEY.replacen("2026-12-31", day, 1)).exits(0);
    }
}

#[test]
fn a_complaint_about_the_second_waiver_points_at_it() {
    let second = "\n[[waiver]]\nvariant = \"s/nowhere\"\nmetric = \"duration\"\n\
                  reason = \"r\"\nwho = \"w\"\nexpires = 2026-12-31\n";
    let from = EVERY_KEY.lines().count() + 2;
    let ran = load(&format!("{EVERY_KEY}{second}")).exits(2);
    let named = (from..from + 6).any(|line| ran.err.contains(&format!("config.toml:{line}:")));
    assert!(named, "{}", ran.err);
}

#[test]
fn a_tolerance_on_a_metric_of_the_counting_phase_is_refused() {
    refused(
        "phase = \"timing\"",
        "phase = \"counting\"",
        &["the counting phase is one process"],
    );
}

#[test]
fn the_time_limit_of_a_suites_checks_is_complained_about_where_it_stands() {
    refused(
        "[suite.s.verify]\ntimeout_s = 5",
        "[suite.s.verify]\ntimeout_s = 0",
        &["above 0"],
    );
    refused(
        "[verify]\ntimeout_s = 60",
        "[verify]\ntimeout_s = 0",
        &["above 0"],
    );
}

#[test]
fn a_gated_metric_says_which_way_is_better_and_by_how_much_it_may_move() {
    refused(
        "[metric.sm_active]\ndirection = \"higher\"\n",
        "[metric.sm_active]\n",
        &["`sm_active` is gated, so it needs a `direction`"],
    );
    refused(
        "[metric.sm_active]\ndirection = \"higher\"\ntolerance = { absolute = 2.0 }\n",
        "[metric.sm_active]\ndirection = \"higher\"\n",
        &["`sm_active` is gated, so it needs a `tolerance`"],
    );
    for tolerance in ["{ absolute = 1.0, relative_percent = 1.0 }", "{}"] {
        refused(
            "{ absolute = 2.0 }",
            tolerance,
            &["either `relative_percent` or `absolute`"],
        );
    }
}

#[test]
fn a_limit_on_a_metric_that_is_only_recorded_is_refused() {
    refused(
        "min = 0\nmax = 1e9\nlevel = \"deny\"",
        "max = 1e9\nlevel = \"record\"",
        &["`max` has no effect", "`duration` is only recorded"],
    );
}

#[test]
fn unless_faster_needs_a_duration_and_does_not_excuse_it() {
    refused(
        "level = \"deny\"",
        "unless_faster = true",
        &["has no meaning for the duration itself"],
    );
    let config = EVERY_KEY.replacen("gpu__time_duration.sum", "sm__cycles_elapsed.max", 1);
    let lines = config.split_inclusive('\n');
    let config: String = lines.filter(|line| !line.starts_with("tail")).collect();
    load(&config).exits(2).says("gpu__time_duration.sum");
}

#[test]
fn a_tail_is_of_a_duration_that_is_judged_and_better_lower() {
    let tail = "tail = { relative_percent = 10.0 }";
    let of_suite = "tail = { relative_percent = 12.0 }\n";
    refused(tail, "tail = { relative_percent = -1 }", &["0 or more"]);
    refused(tail, "tail = { relative_percent = 100 }", &["below 100 %"]);
    refused(tail, "tail = 10", &["tail"]);
    let equal = EVERY_KEY.replacen("direction = \"lower\"", "direction = \"equal\"", 1);
    load(&equal).exits(2).says("needs `direction = \"lower\"`");
    let without = "`tail_against` has no effect without `tail`";
    refused(&format!("{tail}\n"), "", &[without]);
    let other = "only a duration that is judged by a tolerance has a tail";
    refused(
        "unless_faster = true",
        "unless_faster = true\ntail = { absolute = 1 }",
        &[other],
    );
    refused(
        "counts = { flop = 1 }",
        "counts = { flop = 1 }\ntail = { absolute = 1 }",
        &[other],
    );
    refused(
        of_suite,
        "tail = { relative_percent = nan }\n",
        &["finite number"],
    );
    // A waiver of the slowest launches names them, and they must be judged.
    let waived = "metric = \"duration\"\n";
    let named = "metric = \"duration.tail\"\n";
    load(&EVERY_KEY.replacen(waived, named, 1)).exits(0);
    let unknown = EVERY_KEY.replacen(waived, "metric = \"sm_active.tail\"\n", 1);
    load(&unknown)
        .exits(2)
        .says("has no metric `sm_active.tail` to waive");
}

#[test]
fn a_counter_that_the_chip_does_not_have_is_refused_with_the_nearest() {
    refused(
        "gpu__time_duration.sum",
        "gpu__time_durations.sum",
        &[
            "the chip `gh100` has no counter `gpu__time_durations.sum`",
            "did you mean `gpu__time_duration.sum`?",
        ],
    );
    refused(
        "gpu__time_duration.sum",
        "gpu__time_duration.summ",
        &["did you mean `gpu__time_duration.sum`?"],
    );
}

#[test]
fn an_alias_that_is_not_built_in_needs_a_counter() {
    refused(
        "[metric.sm_active]",
        "[metric.sm_activ]",
        &[
            "`sm_activ` is not a built-in name on `sm_90a`",
            "did you mean `sm_active`?",
        ],
    );
}

#[test]
fn a_suite_names_metrics_that_exist() {
    refused(
        "metrics = [\"duration\", \"flop\", \"stored\"]",
        "metrics = [\"durations\"]",
        &[
            "no metric is called `durations`",
            "did you mean `duration`?",
        ],
    );
    refused(
        "metrics = [\"duration\", \"flop\", \"stored\"]",
        "metrics = []",
        &["a suite without metrics gates nothing"],
    );
}

#[test]
fn a_target_that_is_no_gpu_is_refused() {
    for arch in ["hopper", "", "sm_", "compute_90", "sm_90a -G"] {
        refused(
            "arch = \"sm_90a\"",
            &format!("arch = \"{arch}\""),
            &["is not a GPU target", "such as `sm_90a`"],
        );
    }
}

#[test]
fn a_name_cannot_leave_its_folder() {
    for name in [
        "../x",
        "..",
        ".",
        "",
        "a/b",
        "/etc",
        "a b",
        "-a",
        ".hidden",
        "a\\u0000b",
        "ä",
    ] {
        for (from, to) in [
            (
                "[suite.s.variant.b]",
                format!("[suite.s.variant.\"{name}\"]"),
            ),
            (
                "[metric.sm_active]",
                format!(
                    "[metric.\"{name}\"]\ncounter = \"sm__cycles_active.avg.pct_of_peak_sustained_elapsed\""
                ),
            ),
        ] {
            refused(from, &to, &["cannot be a name"]);
        }
        let config = EVERY_KEY.replace("suite.s", &format!("suite.\"{name}\""));
        load(&config)
            .exits(2)
            .says("cannot be a name")
            .says("config.toml:");
    }
    let long = "x".repeat(65);
    refused(
        "[suite.s.variant.b]",
        &format!("[suite.s.variant.{long}]"),
        &["cannot be a name"],
    );
}

#[test]
fn a_path_stays_below_the_configuration() {
    for path in ["../a.cu", "/a.cu", "kernels/../../a.cu", ""] {
        refused(
            "\"kernels/a.cu\"",
            &format!("\"{path}\""),
            &["must be a path below"],
        );
        refused(
            "inputs = [\"b.py\"]",
            &format!("inputs = [\"{path}\"]"),
            &["must be a path below"],
        );
        refused(
            "program = \"build/b\"",
            &format!("program = \"{path}\""),
            &["must be a path below"],
        );
        refused(
            "\"build/libb.so\"",
            &format!("\"{path}\""),
            &["must be a path below"],
        );
    }
}

#[test]
fn the_baselines_are_not_the_project_itself() {
    for path in ["", ".", "./", "kernels/..", "/"] {
        refused(
            "baselines = \"baselines\"",
            &format!("baselines = \"{path}\""),
            &["`baselines` must"],
        );
    }
    refused(
        "work = \".sparsek-gate\"",
        "work = \"\"",
        &["`work` must name a folder"],
    );
}

#[test]
fn a_variant_has_a_source_or_a_command_and_what_belongs_to_it() {
    refused(
        "source = \"kernels/a.cu\"",
        "source = \"kernels/a.cu\"\nrun = [\"./a\"]",
        &["a `source` or a `run`, not both"],
    );
    refused(
        "[suite.s.variant.b]\nbuild = [\"make\"]\nrun = [\"./b\"]\ninputs = [\"b.py\"]\n",
        "[suite.s.variant.b]\ndescription = \"empty\"\n",
        &["needs a `source` (a .cu file) or a `run` (a command)"],
    );
    refused(
        "flags = [\"-G\"]",
        "build = [\"make\"]",
        &["`build` belongs to a variant with `run`"],
    );
    refused(
        "flags = [\"-G\"]",
        "inputs = [\"a\"]",
        &["`inputs` belongs to a variant with `run`"],
    );
    refused(
        "flags = [\"-G\"]",
        "program = \"a\"",
        &["`program` belongs to a variant with `run`"],
    );
    refused(
        "flags = [\"-G\"]",
        "libraries = [\"a.so\"]",
        &["`libraries` belongs to a variant with `run`"],
    );
    refused(
        "flags = [\"-G\"]",
        "loaded_code = true",
        &["`loaded_code` belongs to a variant with `run`"],
    );
    refused(
        "loaded_code = false",
        "loaded_code = true",
        &["`loaded_code` does not work with `program` and `libraries`"],
    );
    refused(
        "loaded_code = false",
        "loaded_code = \"yes\"",
        &["loaded_code = \"yes\""],
    );
    refused(
        "control = false",
        "control = \"baseline\"",
        &["control = \"baseline\""],
    );
    refused(
        "\"build/libb.so\"",
        "\"build/b\"",
        &["`build/b` is named twice"],
    );
    refused(
        "build = [\"make\"]",
        "flags = [\"-G\"]",
        &["`flags` belongs to a variant with `source`"],
    );
    refused(
        "build = [\"make\"]",
        "defines = { A = 1 }",
        &["`defines` belongs to a variant with `source`"],
    );
    for argv in ["[]", "[\"\"]"] {
        refused(
            "run = [\"./b\"]",
            &format!("run = {argv}"),
            &["`run` is a program and its arguments"],
        );
        refused(
            "build = [\"make\"]",
            &format!("build = {argv}"),
            &["`build` is a program and its arguments"],
        );
    }
    for program in ["--kernel-id", "@options"] {
        refused(
            "run = [\"./b\"]",
            &format!("run = [\"{program}\", \"./b\"]"),
            &["`run` begins with a program"],
        );
    }
    refused(
        "inputs = [\"b.py\"]",
        "immutable = true",
        &["needs `inputs`"],
    );
    for name in ["1A", "A B", "A=1", ""] {
        refused(
            "{ TILE = 8 }",
            &format!("{{ \"{name}\" = 8 }}"),
            &["cannot be the name of a preprocessor constant"],
        );
    }
}

#[test]
fn a_suite_without_variants_and_a_file_without_metrics_gate_nothing() {
    let without_metrics = EVERY_KEY.replace("[metric.duration]", "[metric]\n[x.duration]");
    load(&without_metrics).exits(2);
    load("")
        .exits(2)
        .says("no metric is defined")
        .says("sparsek-gate init");
    load("[metric.duration]\ndirection = \"lower\"\ntolerance = { absolute = 1 }\n[suite.s]\n")
        .exits(2)
        .says("config.toml:4")
        .says("the suite `s` has no variants");
}

#[test]
fn a_filter_that_is_no_regular_expression_is_refused() {
    refused("kernels = \"regex:^k\"", "kernels = \"regex:^(k\"", &[]);
    refused(
        "kernels = \"k\"",
        "kernels = \"regex:[k\"",
        &["not a regular expression"],
    );
}

#[test]
fn launches_of_each_kernel_are_not_counted_where_something_else_is_a_launch() {
    refused(
        "graph_profiling = \"node\"",
        "graph_profiling = \"graph\"",
        &["`per_kernel` does not work with `graph_profiling = \"graph\"`"],
    );
    refused(
        "replay_mode = \"kernel\"",
        "replay_mode = \"range\"",
        &["`per_kernel` does not work with `replay_mode = \"range\"`"],
    );
    refused(
        "kernels = \"regex:^k\"",
        "kernels = \"regex:^(?:k|l)\"",
        &["a filter with `:` does not work with `per_kernel`"],
    );
    refused(
        "per_kernel = true\ntotal = false",
        "per_kernel = false\ntotal = true",
        &["`total` needs `per_kernel = true`"],
    );
    let config = EVERY_KEY
        .replacen("total = false", "total = true", 1)
        .replacen("metrics = [\"duration\", ", "metrics = [", 1);
    let words = "`total` needs a metric of the counter gpu__time_duration.sum that is judged";
    load(&config).exits(2).says(words);
}

#[test]
fn a_pin_is_a_version_or_bounds_on_one_and_a_gpu_has_a_name() {
    for (from, to, word) in [
        (r#"cuda = "13.0""#, r#"cuda = "latest""#, "`latest`"),
        (r#"cuda = "13.0""#, r#"cuda = "^13""#, "`^13`"),
        (">=2025.3, <2027", ">=2025.3, <", "`<`"),
        (r#"driver = ">=580""#, r#"driver = """#, "``"),
    ] {
        let words = [word, "is not a version", ">=2025.3, <2027"];
        refused(from, to, &words);
    }
    refused(
        "NVIDIA H*",
        " ",
        &["a GPU model has a name", "nvidia-smi -L"],
    );
    refused(
        r#"mismatch = "warn""#,
        r#"mismatch = "warm""#,
        &["unknown value `warm`", "did you mean `warn`?"],
    );
    refused(r#"cuda = "13.0""#, "cuda = 13.0", &[]);
}

#[test]
fn a_key_that_stands_twice_is_refused() {
    refused("skip = 1", "skip = 1\nskip = 2", &["duplicate key"]);
    load(&format!("{EVERY_KEY}\n[toolchain]\n"))
        .exits(2)
        .says("duplicate key");
}

#[test]
fn a_file_that_is_missing_or_no_toml_is_refused() {
    Project::empty()
        .run(&["check"])
        .exits(2)
        .says("config.toml: cannot read the configuration")
        .says("`sparsek-gate init` writes one");
    Project::empty()
        .run(&["check", "--config", "other/place.toml"])
        .exits(2)
        .says("other/place.toml");
    for text in [
        "{\"metric\": {}}",
        "metric = ",
        "[metric",
        "\u{0}",
        "<xml/>",
    ] {
        load(text).exits(2).says("config.toml:1");
    }
    let project = Project::empty();
    project.write("config.toml", b"\xff\xfe\x00");
    project.run(&["check"]).exits(2).says("config.toml");
    let project = Project::empty();
    std::fs::create_dir(project.path("config.toml")).unwrap();
    project.run(&["check"]).exits(2).says("config.toml");
}

#[test]
fn every_command_reads_the_configuration_first() {
    let project = project("[metric.duration]\ndirektion = \"lower\"\n");
    for arguments in [
        vec!["build"],
        vec!["verify"],
        vec!["profile"],
        vec!["check"],
        vec!["check", "--from", "."],
        vec!["baseline", "--lock", "--reason", "x"],
        vec!["baseline", "--verify"],
        vec!["import", "config.toml", "--variant", "x"],
    ] {
        project
            .run(&arguments)
            .exits(2)
            .says("config.toml:2")
            .says("did you mean `direction`?");
    }
}

#[test]
fn a_slip_on_the_command_line_is_usage() {
    let project = project(EVERY_KEY);
    for arguments in [
        vec![],
        vec!["chekc"],
        vec!["check", "--form", "x"],
        vec!["check", "--format", "yaml"],
        vec!["baseline"],
        vec!["baseline", "--lock"],
        vec!["baseline", "--lock", "--verify", "--reason", "x"],
        vec!["baseline", "--show", "nobody"],
        vec!["import", "x.ncu-rep"],
        vec!["build", "--define", "1=2"],
        vec!["build", "b", "--define", "A=2"],
    ] {
        project.run(&arguments).exits(2);
    }
    project.run(&["--help"]).exits(0).says("Exit codes");
    project.run(&["--version"]).exits(0);
}

#[test]
fn init_writes_a_configuration_once() {
    let project = Project::empty();
    project.run(&["init"]).exits(0).says("wrote config.toml");
    project.run(&["baseline", "--show"]).exits(0);
    project.run(&["init"]).exits(2).says("--force");
    project.write("config.toml", "broken");
    project.run(&["init", "--force"]).exits(0);
    project.run(&["baseline", "--show"]).exits(0);
}

#[test]
fn the_words_of_a_complaint() {
    insta::assert_snapshot!(
        "unknown_key",
        refused("direction = \"lower\"", "direktion = \"lower\"", &[])
    );
    insta::assert_snapshot!(
        "unknown_counter",
        refused("gpu__time_duration.sum", "gpu__time_durations.sum", &[])
    );
    insta::assert_snapshot!(
        "wrong_type",
        refused("launches = 20", "launches = \"20\"", &[])
    );
    insta::assert_snapshot!(
        "name_that_leaves",
        refused("[suite.s.variant.b]", "[suite.s.variant.\"../b\"]", &[])
    );
    insta::assert_snapshot!(
        "source_and_run",
        refused(
            "source = \"kernels/a.cu\"",
            "source = \"kernels/a.cu\"\nrun = [\"./a\"]",
            &[]
        )
    );
    insta::assert_snapshot!(
        "missing_file",
        Project::empty().run(&["check"]).exits(2).err
    );
}

#[test]
fn a_filter_that_only_ncu_understands_is_left_to_ncu() {
    let project = Project::empty();
    let filter = "regex:^bsr_(?!reference).*";
    let config = format!(
        "[metric.duration]\ndirection = \"lower\"\ntolerance = {{ absolute = 1.0 }}\n\
         [suite.s]\nkernels = '{filter}'\n[suite.s.variant.v]\nrun = [\"true\"]\n"
    );
    project.write("config.toml", config);
    project.run(&["baseline", "--show"]).exits(0);
}

#[test]
fn sources_that_cannot_be_compiled_together_are_refused() {
    for (list, words) in [
        ("[]", "`source` is an empty list"),
        (
            "[\"a.cu\", \"b.cpp\"]",
            "`b.cpp` of a list of sources is no CUDA source",
        ),
        (
            "[\"a.cu\", \".cu\"]",
            "`.cu` of a list of sources is no CUDA source",
        ),
        ("[\"x/a.cu\", \"y/a.cu\"]", "two sources are called `a.cu`"),
        ("[\"a.cu\", \"a.cu\"]", "two sources are called `a.cu`"),
        (
            "[\"a.cu\", \"b_dlink.cu\"]",
            "`b_dlink.cu` cannot be in a list of sources",
        ),
        (
            "[\"a.compute_90a.cu\", \"b.cu\"]",
            "rename the file: no further dot",
        ),
        ("[\"a.cu\", \"../b.cu\"]", "must be a path below"),
        ("[\"a.cu\", 1]", "a text, or a list of texts"),
    ] {
        refused(
            "source = \"kernels/a.cu\"",
            &format!("source = {list}"),
            &[words],
        );
    }
    let several = EVERY_KEY.replacen("\"kernels/a.cu\"", "[\"kernels/a.cu\", \"b.cu\"]", 1);
    load(&several).exits(0);
    assert_eq!(schema_complaints(&several), Vec::<String>::new());
}
