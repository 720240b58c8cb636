//! Every chip: which counters its configuration may name, and what its short names stand for.

use std::path::Path;

use sparsek_gate::config::Config;

/// The lines of README, for a target.
fn of_readme(arch: &str) -> String {
    let page = include_str!("../README.md");
    let lines = page.split("```toml\n").nth(1).unwrap();
    let lines = lines.split("```").next().unwrap();
    format!("[toolchain]\narch = \"{arch}\"\n{lines}")
}

/// The same with one metric.
fn of_duration(arch: &str) -> String {
    let metric = "[metric.duration]\ndirection = \"lower\"\ntolerance = '4 %'\n";
    format!("{}{metric}", of_readme(arch))
}

fn load(text: &str) -> Result<Config, String> {
    let config = Config::parse(Path::new("config.toml"), text);
    config.map_err(|error| error.to_string())
}

/// The counter of each metric, by its name.
fn counters(text: &str) -> Vec<(String, String)> {
    let config = load(text).unwrap();
    let variant = config.variants().next().unwrap();
    let metrics = variant.metrics.iter();
    let named = metrics.map(|metric| (metric.alias.clone(), metric.counter.clone()));
    named.collect()
}

/// The error of a target with one metric beside the duration.
fn refused(arch: &str, metric: &str, words: &[&str]) {
    let error = load(&format!("{}{metric}\n", of_duration(arch))).unwrap_err();
    for word in words {
        assert!(error.contains(word), "{word:?} is not in\n{error}");
    }
}

#[test]
fn the_lines_of_the_readme_are_a_configuration_on_every_chip() {
    for arch in [
        "sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100",
        "sm_100a", "sm_100f", "sm_103", "sm_103a", "sm_103f", "sm_110", "sm_110a", "sm_110f",
        "sm_120", "sm_120a", "sm_120f", "sm_121", "sm_121a", "sm_121f",
    ] {
        let duration = ("duration".to_owned(), "gpu__time_duration.sum".to_owned());
        assert!(counters(&of_readme(arch)).contains(&duration), "{arch}");
        assert_eq!(counters(&of_duration(arch)), [duration], "{arch}");
    }
}

#[test]
fn a_short_name_is_the_counter_of_the_chip() {
    let reads = |arch| {
        let metric = "[metric.dram_read]\nlevel = \"record\"\n";
        let found = counters(&format!("{}{metric}", of_duration(arch)));
        found
            .into_iter()
            .find(|(name, _)| name == "dram_read")
            .unwrap()
            .1
    };
    assert_eq!(reads("sm_80"), "dram__bytes_read.sum");
    assert_eq!(reads("sm_100a"), "dram__bytes_read.sum");
    assert_eq!(reads("sm_120"), "dram__bytes_op_read.sum");
}

#[test]
fn a_short_name_that_the_chip_cannot_measure_says_why_and_what_to_use() {
    for arch in ["sm_87", "sm_110", "sm_121a"] {
        let why = "shares the memory of the CPU";
        let words = [
            &format!("cannot be measured on `{arch}`"),
            why,
            "use `l2_throughput`",
        ];
        refused(
            arch,
            "[metric.dram_bw]\nlevel = \"record\"",
            &words.map(|word| word),
        );
    }
    refused(
        "sm_80",
        "[metric.wgmma_instructions]\nexact = true",
        &["only Hopper has WGMMA", "use `tensor_instructions`"],
    );
    refused(
        "sm_120",
        "[metric.tcgen05_instructions]\nexact = true",
        &[
            "compute capability 10.x and 11.0", "use `tensor_instructions`",
        ],
    );
    refused(
        "sm_89",
        "[metric.tma_bytes]\nexact = true",
        &["no tensor memory accelerator"],
    );
}

#[test]
fn a_counter_of_another_chip_is_refused_with_the_nearest_of_this_one() {
    refused(
        "sm_120",
        "[metric.reads]\nlevel = \"record\"\ncounter = \"dram__bytes_read.sum\"",
        &[
            "the chip `gb202` of `sm_120` has no counter `dram__bytes_read.sum`",
            "`dram__bytes_op_read.sum`",
        ],
    );
}

#[test]
fn tensor_flop_stands_for_one_metric_a_source_type() {
    let config = |arch: &str, more: &str| {
        let metric = "[metric.tensor_flop]\nexact = true\ncounts = { flop = 1 }\n";
        let suite = "[suite.gemm]\nmetrics = [\"duration\", \"tensor_flop\"]\nwork = { flop = 64 }\n\
             [suite.gemm.variant.v]\nrun = [\"x\"]\n";
        let lines = of_duration(arch);
        format!("{lines}{metric}{more}{suite}")
    };
    let names = |arch: &str, more: &str| -> Vec<String> {
        let metrics = counters(&config(arch, more)).into_iter();
        metrics
            .map(|(name, _)| name.replace("tensor_flop_", ""))
            .collect()
    };
    assert_eq!(
        names("sm_90a", ""),
        [
            "duration", "bf16", "fp16", "fp64", "fp8", "int1", "int8", "tf32"
        ]
    );
    assert_eq!(names("sm_70", ""), ["duration", "fp16_dst_fp16", "fp16"]);
    assert!(names("sm_100a", "").contains(&"fp4".to_owned()));
    let alone = format!(
        "{}[metric.tensor_flop_bf16]\nexact = true\n",
        of_duration("sm_80")
    );
    assert_eq!(
        counters(&alone)[1].1,
        "sm__ops_path_tensor_src_bf16_dst_fp32.sum"
    );
    refused(
        "sm_80",
        "[metric.tensor_flop_fp8]\nexact = true",
        &["cannot be measured on `sm_80`", "use `tensor_flop`"],
    );
    // One of them has settings of its own.
    let own = "[metric.tensor_flop_fp8]\nexact = true\nlevel = \"warn\"\n";
    let loaded = load(&config("sm_89", own)).unwrap();
    let metrics = &loaded.variants().next().unwrap().metrics;
    let warns = metrics
        .iter()
        .filter(|metric| metric.level == sparsek_gate::metric::Level::Warn);
    assert_eq!(
        warns.map(|metric| &*metric.alias).collect::<Vec<_>>(),
        ["tensor_flop_fp8"]
    );
    let waiver = "[[waiver]]\nvariant = \"gemm/v\"\nmetric = \"tensor_flop\"\nreason = \"fp8\"\n\
         who = \"Ada\"\nexpires = 2099-12-31\n";
    let waived = load(&format!("{}{waiver}", config("sm_90a", ""))).unwrap();
    assert_eq!(waived.waivers.len(), 7);
    // An error names the line that is written.
    let error = load(&config("sm_90a", "").replace("flop = 1", "flop = 0")).unwrap_err();
    assert!(error.contains("`counts` takes a number above 0"), "{error}");
    assert!(error.contains("counts = { flop = 0 }"), "{error}");
}
