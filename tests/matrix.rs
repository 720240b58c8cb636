//! `matrix` of a variant: one table stands for many variants.

use crate::common::stand_in::Machine;
use crate::common::{self, Project, Ran, schema_complaints};
use sparsek_gate::config::{Config, Recipe, Variant};

/// A configuration with the suite `s`; its one metric is the duration.
fn with(suite: &str) -> String {
    format!(
        "[toolchain]\narch = \"sm_90a\"\n\n\
         [metric.duration]\ncounter = \"gpu__time_duration.sum\"\ndirection = \"lower\"\n\
         tolerance = '3 %'\n\n{suite}\n"
    )
}

fn parsed(suite: &str) -> Vec<Variant> {
    let text = with(suite);
    assert_eq!(schema_complaints(&text), Vec::<String>::new());
    let config = Config::parse("config.toml".as_ref(), &text);
    config.unwrap().variants().cloned().collect()
}

fn names(variants: &[Variant]) -> Vec<String> {
    variants.iter().map(|v| v.id.to_string()).collect()
}

const GEMM: &str = r#"
[suite.s.variant.gemm]
description = "{n} × {n}, {dtype}"
matrix = { n = [1024, 0x1000], dtype = ["f16", "bf16"] }
source = "{dtype}.cu"
defines = { N = "{n}", FAST = true }
args = ["--n", "{n}", "--seed", "{seed}", "{\"n\": 1}"]
env = { DTYPE = "{dtype}" }
verify_args = ["--{dtype}"]
"#;

#[test]
fn a_matrix_makes_a_variant_of_each_combination() {
    let variants = parsed(GEMM);
    assert_eq!(
        names(&variants),
        [
            "s/gemm-dtype_bf16-n_1024", "s/gemm-dtype_bf16-n_4096", "s/gemm-dtype_f16-n_1024",
            "s/gemm-dtype_f16-n_4096",
        ]
    );
    let last = &variants[3];
    assert_eq!(last.description, "4096 × 4096, f16");
    assert_eq!(last.args, ["--n", "4096", "--seed", "{seed}", "{\"n\": 1}"]);
    assert_eq!(last.env["DTYPE"], "f16");
    assert_eq!(last.verify_args, ["--f16"]);
    let Recipe::Nvcc {
        sources, defines, ..
    } = &last.recipe
    else {
        panic!("{:?}", last.recipe);
    };
    assert_eq!(sources, &["f16.cu"]);
    assert_eq!((&*defines["N"], &*defines["FAST"]), ("4096", ""));
}

#[test]
fn the_order_in_which_a_matrix_is_written_changes_no_name() {
    let other = GEMM.replace(
        "{ n = [1024, 0x1000], dtype = [\"f16\", \"bf16\"] }",
        "{ dtype = [\"bf16\", \"f16\"], n = [4096, 1024] }",
    );
    assert_ne!(GEMM, other);
    assert_eq!(
        format!("{:?}", parsed(GEMM)),
        format!("{:?}", parsed(&other))
    );
}

#[test]
fn a_named_value_is_a_text_or_any_number_of_arguments() {
    let variants = parsed(
        "[suite.s.variant.v]\nrun = [\"./v\", \"{mode}\", \"--at={at}\", \"{x}\"]\n\
         [suite.s.variant.v.matrix]\nat = { tmp = \"/tmp/{at} b\" }\nx = [1.50, true]\n\
         mode = { causal = [\"--causal\", \"1\"], full = [] }",
    );
    let run = |index: usize| match &variants[index].recipe {
        Recipe::Command { run, .. } => run.join("|"),
        recipe => panic!("{recipe:?}"),
    };
    assert_eq!(
        names(&variants),
        [
            "s/v-at_tmp-mode_causal-x_1_50", "s/v-at_tmp-mode_causal-x_true",
            "s/v-at_tmp-mode_full-x_1_50", "s/v-at_tmp-mode_full-x_true",
        ]
    );
    // What a value brings is not searched for placeholders.
    assert_eq!(run(0), "./v|--causal|1|--at=/tmp/{at} b|1.50");
    assert_eq!(run(3), "./v|--at=/tmp/{at} b|true");
}

#[test]
fn produced_variants_are_named_selected_waived_and_given_tolerances_like_others() {
    let project = Project::empty();
    let rules = "[metric.sm_active]\ndirection = \"higher\"\ntolerance = '1'\n\
                 variants = [\"s/v-n_1\"]\non.\"s/v-n_1\" = '2'\n\
                 [[waiver]]\nvariant = \"s/v-n_2\"\nmetric = \"duration\"\nreason = \"r\"\nwho = \"w\"\nexpires = 2099-01-01\n\
                 [suite.s.variant.v]\nmatrix.n = [1, 2]\nrun = [\"./v\", \"{n}\"]\n[suite.s.variant.w]\nrun = [\"./w\"]";
    project.write("config.toml", with(rules));
    let list = |names: &[&str]| project.run(&[&["list", "--names"], names].concat());
    assert_eq!(
        list(&[]).exits(0).out,
        "s\ns/v-n_1\ns/v-n_2\ns/w\nv-n_1\nv-n_2\nw\n"
    );
    let config = Config::load(&project.path("config.toml")).unwrap();
    let has_sm_active = |name: &str| {
        let mut variants = config.variants();
        let variant = variants.find(|one| one.id.to_string() == name).unwrap();
        variant
            .metrics
            .iter()
            .any(|metric| metric.alias == "sm_active")
    };
    assert!(has_sm_active("s/v-n_1") && !has_sm_active("s/v-n_2"));
    let shown = |name: &str| project.run(&["list", name]).exits(0).out;
    assert!(shown("v-n_1").contains("./v 1") && shown("v-n_2").contains("./v 2"));
    let glob = shown("s/v-*");
    assert!(glob.contains("./v 1") && glob.contains("./v 2") && !glob.contains("./w"));
    project
        .run("list s/v")
        .ends(2, "'s/v-*' selects all variants that begin with it");
    for (from, to, words) in [
        ("[\"s/v-n_1\"]", "[\"s/v\"]", "no variant is called `s/v`"),
        ("\"s/v-n_2\"", "\"s/v-n_3\"", "did you mean `s/v-n_1`?"),
    ] {
        project.write("config.toml", with(&rules.replacen(from, to, 1)));
        list(&[]).ends(2, words);
    }
}

/// What is said of a variant `s/v` with these keys.
#[track_caller]
fn refused(keys: &str, words: [&str; 3]) {
    let project = Project::empty();
    project.write("config.toml", with(&format!("[suite.s.variant.v]\n{keys}")));
    let ran = project.run("list").exits(2);
    for word in words {
        assert!(ran.err.contains(word), "{word:?} is not in\n{}", ran.err);
    }
}

#[test]
fn a_wrong_matrix_is_refused_with_its_line_and_a_next_step() {
    let run = "run = [\"./v\", \"{n}\"]\n";
    let rows = r#"
matrix = [1, 2] | :11:10 | must be a table of its axes
matrix = {} | :11:10 | `matrix` has no axes
matrix.n = [] | :11:12 | the axis `n` has no values
matrix.n = {} | :11:12 | the axis `n` has no values
matrix.n = 3 | :11:12 | must be a list of values
matrix.N = [3] | :11:8 | `N` cannot be the name of an axis
matrix.seed = [3] |  | `seed` cannot be the name
matrix.n = ["a b"] | :11:13 | `a b` of the axis `n` cannot stand in the name
matrix.n = [""] | :11:13 | cannot stand in the name
matrix.n = [1e+9] | :11:13 | `1e+9` of the axis `n`
matrix.n = [nan] | :11:13 | cannot be a value of the axis `n`
matrix.n = [2026-01-01] | :11:13 | cannot be a value of the axis `n`
matrix.n = [["--n"]] | :11:13 | a list of arguments needs a name
matrix.n = { "a b" = 1 } | :11:14 | `a b` of the axis `n` cannot stand
matrix.n = { a = [1] } | :11:19 | cannot be a value of the axis `n`
matrix.n = { a = { b = 1 } } | :11:18 | cannot be a value of the axis `n`
matrix.n = [1, "1"] | :11:12 | two values that are `1` in names
matrix.n = [0.5, "0_5"] | :11:12 | two values that are `0_5` in names
matrix = { n = [1], m = [2] } | :11:25 | nothing uses the axis `m`
matrix = { n = [1], m = [2] }\ndescription = "{m}" | :11:25 | nothing uses the axis `m`
matrix.n = [1]\nargs = ["{mode}"] | :12:9 | `{mode}` is neither an axis of the matrix
matrix.size = [1] | :10:15 | `{n}` is neither an axis of the matrix
matrix.n = [1]\nargs = ["{seeds}"] | :12:9 | `{seeds}` is neither
matrix.n = { a = ["x"] }\nargs = ["-n{n}"] | :12:9 | cannot stand in the text `-n{n}`
matrix.n = { a = ["x"] }\nkernels = "{n}" | :12:11 | cannot stand in the text `{n}`
matrix.n = [1]\n[suite.s.variant.v-n_1]\nrun = ["./w"] | :9:18 | produces `s/v-n_1`, and another variant has that name
matrix.n = ["1-m_2"]\n[suite.s.variant.v-n_1]\nmatrix.m = [2]\nrun = ["{m}"] | :12:18 | `s/v-n_1-m_2`, and the matrix of `s/v` produces it, too
matrix = { n = ["1", "1-o_2"], o = ["2-o_3", "3"] }\nargs = ["{o}"] | :9:18 | `s/v-n_1-o_2-o_3`, and two of its combinations
matrix.n = ["0123456789012345678901234567890123456789012345678901234567890"] | :9:18 | which cannot be a name
"#;
    for [matrix, place, words] in common::rows(rows) {
        refused(&format!("{run}{matrix}"), [&place, &words, "= help: "]);
    }
}

#[test]
fn a_small_file_cannot_state_a_matrix_without_bound() {
    let list = |count: usize| {
        let numbers: Vec<String> = (0..count).map(|n| n.to_string()).collect();
        numbers.join(", ")
    };
    let axes = format!("matrix = {{ n = [{}], m = [{}] }}\n", list(16), list(17));
    refused(
        &format!("{axes}run = [\"{{n}}\", \"{{m}}\"]"),
        [
            "produces 272 variants, and 256 is the most",
            ":9:18",
            "smaller matrix",
        ],
    );
    let many: String = ('a'..='z')
        .map(|name| format!("{name} = [{}]\n", list(1000)))
        .collect();
    refused(
        &format!("run = [\"{{n}}\"]\n[suite.s.variant.v.matrix]\n{many}"),
        ["and 256 is the most", ":9:18", "leave out values"],
    );
    let items = vec!["\"{n}\""; 5000].join(", ");
    let arguments = vec!["\"x\""; 5000].join(", ");
    refused(
        &format!("matrix.n = {{ a = [{arguments}] }}\nrun = [\"./v\"]\nargs = [{items}]"),
        ["more than 16 MiB of settings", ":12:", "leave out values"],
    );
}

/// A machine whose suite has a matrix of two variants, measured and locked.
fn locked() -> Machine {
    let machine = Machine::new();
    let machine = machine.configured(
        "source = \"kernels/a.cu\"",
        "source = \"kernels/a.cu\"\nmatrix = { tile = [64, 128], mode = { fast = [\"--fast\"] } }\n\
         defines = { TILE = \"{tile}\" }\nargs = [\"{mode}\"]",
    );
    machine.lock_measured();
    machine.run("check").exits(0);
    machine.write(".gitignore", ".sparsek-gate/\n");
    machine.commit();
    machine
}

fn checked(machine: &Machine) -> Ran {
    machine.run("check --baseline-ref HEAD --format json")
}

#[test]
fn a_variant_that_the_matrix_no_longer_produces_is_reported_as_removed() {
    let machine = locked();
    // The same matrix in other words changes no rule.
    let change = |from: &str, to: &str| machine.configure(from, to);
    change("tile = [64, 128]", "tile = [128, 0x40]");
    let report = checked(&machine).exits(0).json();
    assert_eq!(report.denied(), Vec::<String>::new());

    change("tile = [128, 0x40]", "tile = [64, 256]");
    let report = checked(&machine).exits(4).json();
    let mut denied = report.denied();
    denied.sort();
    assert_eq!(denied, ["new-baseline", "variant-gone"]);
    let of = |code: &str| report.fields(code, "variant");
    assert_eq!(of("variant-gone"), ["bsr_gemm/baseline-mode_fast-tile_128"]);
    assert_eq!(of("new-baseline"), ["bsr_gemm/baseline-mode_fast-tile_256"]);
}

#[test]
fn what_a_value_stands_for_is_a_rule_of_the_base() {
    let machine = locked();
    let change = |from: &str, to: &str| machine.configure(from, to);
    change("fast = [\"--fast\"]", "fast = [\"--smaller\"]");
    let report = checked(&machine).exits(4).json();
    for (finding, tile) in report.findings("deny").into_iter().zip(["128", "64"]) {
        assert_eq!(finding["code"], "policy-changed");
        let variant = format!("variant.baseline-mode_fast-tile_{tile}.args`");
        let message = finding["message"].as_str().unwrap();
        common::contains(message, &[&variant, "to [\"--smaller\"]"]);
    }
    let calls = machine.ncu_calls();
    assert!(calls.iter().any(|call| call.contains(" --fast")));
    assert!(!calls.iter().any(|call| call.contains("--smaller")));
}
