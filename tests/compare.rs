//! `compare` of the real program, on a machine without a GPU: the driver's libraries and ncu are
//! stand-ins, the reports are those that the real ncu recorded on an H100.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::common::stand_in::{Machine, Sources, compiled, libraries};
use crate::common::{self, Arguments, PATIENCE, Ran, Report, install, repository};
use serde_json::Value as Json;
use sparsek_gate::judge::{Mode, VariantReport};
use sparsek_gate::verdict::Verdict;

/// The folder that the user is in.
const HERE: &str = "here";
/// The GPU of the recordings.
const GPU: &str = "NVIDIA H100 80GB HBM3";

/// What a program launches, a line for each kernel as the stand-in of CUPTI reads it, and the recording of
/// which variant the stand-in of ncu hands over for it.
#[derive(Clone, Copy)]
struct Launched<'a> {
    kernels: &'a str,
    recorded: &'a str,
    variant: &'a str,
}

const EQUAL: Launched<'_> = Launched {
    kernels: "bsr_gemm_cp_async 20 273180 64,64,1 128,1,1 75776",
    recorded: "compare/same",
    variant: "cp_async",
};
const WORSE: Launched<'_> = Launched {
    kernels: "bsr_gemm_cp_async 20 537140 64,64,1 128,1,1 65536",
    recorded: "compare/worse",
    variant: "cp_async",
};
const BASELINE: Launched<'_> = Launched {
    kernels: "bsr_gemm_baseline 20 387220 64,64,1 128,1,1 18944",
    recorded: "compare/same",
    variant: "baseline",
};
const WGMMA: Launched<'_> = Launched {
    kernels: "bsr_gemm_tma_wgmma 20 194900 2,64,1 384,1,1 197888",
    recorded: "compare/same",
    variant: "tma_wgmma",
};

/// Kernels of which nothing is recorded.
fn kernels(kernels: &str) -> Launched<'_> {
    Launched { kernels, ..EQUAL }
}

/// libcupti and a CUDA program that loads it, as far as they are seen.
fn stand_ins() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let sources: Sources<'_> = &[
            ("libcupti.c", "libcupti.so.13", &["-shared", "-fPIC"]),
            ("program.c", "program", &[]),
        ];
        compiled("compare", sources).unwrap()
    });
    &FOLDER
}

/// A machine whose current folder has two programs and nothing else.
fn machine(old: Launched<'_>, new: Launched<'_>) -> Machine {
    let [driver, nvml] = libraries();
    let machine = Machine::new().with_libraries(&[driver, nvml, stand_ins()]);
    let recordings = common::recordings();
    machine.ncu(&format!("export RECORDINGS='{}'", recordings.display()));
    symlink(stand_ins(), machine.path("toolkit/lib64")).unwrap();
    program(&machine, "bench_old", old);
    program(&machine, "bench_new", new);
    machine
}

/// A program that launches these kernels.
fn program(machine: &Machine, name: &str, launched: Launched<'_>) {
    machine.program(&format!("{HERE}/{name}"), &script(machine, launched));
}

fn script(machine: &Machine, launched: Launched<'_>) -> String {
    let Launched {
        kernels,
        recorded,
        variant,
    } = launched;
    let root = machine.path("");
    format!(
        r#"#!/bin/sh
if [ "$1" = --check ]; then echo "$0" >>'{root}/checked'; exit "$2"; fi
echo 'variant: {variant}'
echo 'recorded: {recorded}'
if [ "${{CUDA_INJECTION64_PATH-}}" ]; then
    echo "$0" >>'{root}/timed'
    STAND_IN_KERNELS='{kernels}' '{program}' launch || exit
fi
"#,
        root = root.display(),
        program = stand_ins().join("program").display(),
    )
}

fn gate(machine: &Machine, arguments: impl Arguments) -> Command {
    here(machine, &[vec!["compare"], arguments.list()].concat())
}

/// The program, in the folder of the user, with ncu on the PATH.
fn here(machine: &Machine, arguments: impl Arguments) -> Command {
    let mut command = machine.gate(arguments);
    let path = std::env::var("PATH").unwrap();
    let bin = machine.path("bin");
    command
        .current_dir(machine.path(HERE))
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("CUDA_HOME", machine.path("toolkit"))
        .env("CUDA_NAME", GPU);
    command
}

fn run(machine: &Machine, arguments: impl Arguments) -> Ran {
    let ran = Ran::by(&mut gate(machine, arguments));
    leaves_nothing(machine);
    ran
}

/// Neither in the folder of the user nor in that of temporary files.
#[track_caller]
fn leaves_nothing(machine: &Machine) {
    let names = |folder: &str| {
        let entries = fs::read_dir(machine.path(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.ends_with(".lock")).collect();
        names.sort();
        names
    };
    assert_eq!(names(HERE), ["bench_new", "bench_old"]);
    assert_eq!(names("tmp"), [""; 0]);
}

#[track_caller]
fn json(machine: &Machine, arguments: &[&str], code: i32) -> Report {
    let arguments = [arguments, &["--format", "json"]].concat();
    let report = run(machine, &arguments).exits(code).json();
    assert_eq!(report.0["exit_code"], code);
    report
}

const BOTH: [&str; 2] = ["./bench_old --n 4096", "./bench_new --n 4096"];

#[test]
fn two_equal_programs_pass_without_ncu_and_the_report_says_what_was_compared() {
    let machine = machine(EQUAL, EQUAL);
    let report = json(&machine, &BOTH, 0);
    assert_eq!(report.denied(), [""; 0]);
    let variant = &report.0["variants"][0];
    assert_eq!(variant["variant"], "compare/bench_new");
    assert_eq!(variant["mode"], "programs");
    assert_eq!(report.0["programs"]["base"]["argv"][0], "./bench_old");
    assert!(variant["reference"]["git"].is_null());
    for metric in ["sm_active", "tensor_core", "dram_bw"] {
        let comparison = of_kernel(&report, "bsr_gemm_cp_async", metric);
        assert!(comparison["verdict"].is_null(), "{comparison:#}");
    }
    for kernel in ["(total)", "bsr_gemm_cp_async"] {
        let comparison = of_kernel(&report, kernel, "duration");
        assert_eq!(comparison["verdict"], "pass");
    }
    let words = "side by side: base `./bench_old --n 4096`, current `./bench_new --n 4096`";
    run(&machine, &BOTH)
        .ends(0, words)
        .says("nothing verified the numbers")
        .says("same: ");
    assert_eq!(machine.ncu_calls(), [""; 0]);
    let counted = [&BOTH[..], &["--counters"]].concat();
    let report = json(&machine, &counted, 0);
    assert_eq!(report.0["variants"][0]["tier"], "counters");
}

#[test]
fn equal_programs_are_measured_on_where_their_sum_is_known_poorly() {
    let report = json(&machine(EQUAL, EQUAL), &BOTH, 0);
    let is_coarse = |band: f64, mode: Mode, verdict: Verdict| {
        let report = serde_json::from_value(report.0["variants"][0].clone());
        let mut report: VariantReport = report.unwrap();
        let mut comparisons = report.comparisons.iter_mut();
        let sum = comparisons.find(|one| one.kernel == "(total)").unwrap();
        assert_eq!(sum.verdict, Some(Verdict::Pass));
        (sum.band, sum.verdict) = (Some(band), Some(verdict));
        report.mode = mode;
        report.is_coarse()
    };
    assert!(is_coarse(0.31, Mode::Programs, Verdict::Pass));
    assert!(!is_coarse(0.3, Mode::Programs, Verdict::Pass));
    assert!(!is_coarse(0.31, Mode::Against, Verdict::Pass));
    assert!(!is_coarse(0.31, Mode::Programs, Verdict::Regressed));
}

/// The next step of the first finding with this code.
#[track_caller]
fn next<'a>(report: &'a Report, code: &str) -> &'a str {
    report.fields(code, "next")[0]
}

/// The comparison of a metric of a kernel.
#[track_caller]
fn of_kernel<'a>(report: &'a Report, kernel: &str, metric: &str) -> &'a Json {
    let comparisons = report.0["variants"][0]["comparisons"].as_array().unwrap();
    let is_it = |one: &&Json| one["kernel"] == kernel && one["metric"] == metric;
    comparisons.iter().find(is_it).unwrap()
}

/// The verdict on the sum of all kernels.
#[track_caller]
fn verdict(report: &Report) -> &str {
    let total = of_kernel(report, "(total)", "duration");
    total["verdict"].as_str().unwrap()
}

#[test]
fn a_slower_program_fails_and_the_report_names_the_kernel_and_the_cause() {
    let machine = machine(EQUAL, WORSE);
    let report = json(&machine, &BOTH, 1);
    assert_eq!(report.denied(), ["regressed"; 2]);
    let of_kernel = |one: &&Json| one["kernel"] == "bsr_gemm_cp_async";
    let denied = report.findings("deny");
    let message = denied.into_iter().find(of_kernel).unwrap()["message"].to_string();
    let words = ["`duration` of bsr_gemm_cp_async", "bank conflicts"];
    common::contains(&message, &words);
    // What of a unit's peak is used is explained too.
    let causes = &report.0["variants"][0]["causes"][0];
    assert!(causes["percentages"].to_string().contains("tensor_core"));
    let ran = run(&machine, &BOTH).exits(1);
    assert!(ran.out.starts_with("slower: +"), "{}", ran.out);
    assert!(!next(&report, "regressed").contains("baseline"));
    // The other way round it is faster, by more than a gate would believe without a review.
    let back = [BOTH[1], BOTH[0]];
    let report = json(&machine, &back, 0);
    assert_eq!(verdict(&report), "improved");
}

#[test]
fn a_kernel_of_which_ncu_measures_no_launch_is_judged_by_its_time() {
    let two =
        |launched: Launched<'_>| format!("{}\nother 20 300000 64,1,1 128,1,1 0", launched.kernels);
    let (old, new) = (two(EQUAL), two(WORSE));
    let with = |launched, kernels| Launched {
        kernels,
        ..launched
    };
    let machine = machine(with(EQUAL, &old), with(WORSE, &new));
    let report = json(&machine, &BOTH, 1);
    assert_eq!(report.denied_besides(&["regressed"]), [""; 0]);
    let counted = of_kernel(&report, "other", "stored_sectors");
    assert!(counted["verdict"].is_null());
    let why = counted["why"].as_str().unwrap();
    assert!(why.starts_with("ncu measured no launch of it"), "{why}");
    assert_eq!(of_kernel(&report, "other", "duration")["verdict"], "pass");
}

#[test]
fn kernels_of_other_names_are_compared_where_each_program_has_one() {
    let machine = machine(BASELINE, EQUAL);
    let report = json(&machine, &BOTH, 0);
    let words = [
        "`bsr_gemm_baseline` of the base",
        "`bsr_gemm_cp_async`, because each program launches one kernel",
    ];
    report.tells_all("kernels-changed", &words);
    assert_eq!(verdict(&report), "improved");
}

#[test]
fn one_program_is_a_table_of_its_kernels_and_is_compared_with_nothing() {
    let machine = machine(EQUAL, EQUAL);
    let ran = run(&machine, &BOTH[..1]).exits(0);
    let row = |line: &&str| line.trim_start().starts_with("bsr_gemm_cp_async  ");
    let row = ran.out.lines().find(row).unwrap();
    common::contains(
        row,
        &["(64, 64, 1)", "(128, 1, 1)", "100.00 %", "us", "248"],
    );
    common::contains(&ran.out, &["bound by the L2 cache: L2 at 90 % of its peak"]);
    let report = json(&machine, &BOTH[..1], 0);
    assert_eq!(report.0["gpu"], GPU);
    let [kernel] = &report.0["kernels"].as_array().unwrap()[..] else {
        panic!("{:#}", report.0);
    };
    assert_eq!(kernel["launches"], 40);
    assert_eq!(kernel["registers"], 248.0);
    assert_eq!(kernel["bound"]["unit"], "L2");
    for arguments in [["--report", "x.html"], ["--format", "html"]] {
        let ran = run(&machine, &[&BOTH[..1], &arguments].concat());
        ran.ends(2, "of two programs that are measured: state these");
    }
}

#[test]
fn a_mistake_in_the_arguments_ends_with_2_and_names_the_argument() {
    let machine = machine(EQUAL, EQUAL);
    let [old, new] = BOTH;
    for (arguments, words) in [
        (&[old, "./bench_new 'x"][..], "`./bench_new 'x`"),
        (&[old, " "], "it names no program"),
        (&[old, "''"], "it names no program"),
        (&[old, new, "--verify", "a \"b"], "--verify `a \"b`"),
        (&[old, "./bench_new && ./bench_old"], "sh -c"),
        (&[old, "N=4096 ./bench_new"], "env N=4096 PROGRAM"),
        (&[old, new, "--verify", "./a >log"], "--verify `./a >log`"),
        (&[old, "--verify", "a", "--verify", "b"], "2 --verify for 1"),
        (&[old, new, "--kernels", "regex:("], "regex:("),
        (&[old, new, "--kernels", "regex:(?!a)"], "only by ncu"),
        (&[old, new, "--kernels", ""], "it names no kernel"),
        (&[old, new, "--kernels", "regex:(?:a|b)"], "a `:` in it"),
        (&[old, new, "--tolerance", "100"], "below 100"),
        (&[old, new, "--launches", "0"], "--launches"),
        (&[old, new, "--report", "no/where.html"], "does not exist"),
        (
            &[old, new, new],
            "3 programs are named, and at most two are compared",
        ),
        (&[], "COMMAND"),
    ] {
        run(&machine, arguments).ends(2, words);
    }
    assert_eq!(machine.ncu_calls(), [""; 0]);
}

#[test]
fn a_program_that_is_missing_on_either_side_is_named() {
    let machine = machine(EQUAL, EQUAL);
    let script = machine.path(&format!("{HERE}/bench_old"));
    fs::set_permissions(script, fs::Permissions::from_mode(0o644)).unwrap();
    for (programs, what) in [
        (["./bench_new", "./bench_neu"], "no program `./bench_neu`"),
        (["./bench_alt", "./bench_new"], "no program `./bench_alt`"),
        (["bench_new", "./bench_new"], "write ./bench_new"),
        (BOTH, "`./bench_old` is not executable"),
    ] {
        run(&machine, &programs).exits(2).says(what);
    }
    assert_eq!(started(&machine), 0);
}

#[test]
fn a_next_step_names_the_option() {
    let machine = machine(EQUAL, EQUAL);
    let next = |arguments: &[&str], code: i32, finding: &str| {
        let report = json(&machine, &[&BOTH, arguments].concat(), code);
        self::next(&report, finding).to_owned()
    };
    machine.program(&format!("{HERE}/bench_old"), "#!/bin/sh\nexit 0\n");
    let kernels = next(&[], 5, "kernel-missing");
    assert!(kernels.contains("--kernels` and `--skip"), "{kernels}");
    machine.program(&format!("{HERE}/bench_old"), "#!/bin/sh\nsleep 60\n");
    let slow = next(&["--timeout", "1"], 5, "timed-out");
    assert!(slow.contains("compare --timeout"), "{slow}");
    let verify = ["--timeout", "1", "--verify", "./bench_old"];
    let slow = next(&verify, 5, "timed-out");
    assert!(slow.contains("compare --timeout"), "{slow}");
}

/// How many programs were started to be measured.
fn started(machine: &Machine) -> usize {
    let timed = fs::read_to_string(machine.path("timed")).unwrap_or_default();
    timed.lines().count() + machine.read("journal").lines().count()
}

#[test]
fn nothing_is_measured_where_the_numbers_of_a_program_are_wrong() {
    let machine = machine(EQUAL, EQUAL);
    let [right, wrong] = ["./bench_old --check 0", "./bench_new --check 1"];
    for (checks, side) in [
        (&["--verify", right, "--verify", wrong][..], "the program's"),
        (&["--verify", wrong, "--verify", right], "in the base"),
        (&["--verify", wrong], "the program's"),
    ] {
        let report = json(&machine, &[&BOTH, checks].concat(), 5);
        assert_eq!(report.denied(), ["wrong-numbers"]);
        let message = report.message("wrong-numbers");
        assert!(message.starts_with(side), "{message}");
    }
    assert_eq!(started(&machine), 0);
    // One check is run once.
    machine.write("checked", "");
    run(&machine, &[&BOTH[..], &["--verify", right]].concat())
        .ends(0, "verified by `./bench_old --check 0`");
    let checked = machine.read("checked");
    assert!(checked.ends_with("/bench_old\n"), "{checked}");
    assert_eq!(checked.lines().count(), 1, "{checked}");
}

#[test]
fn the_check_gets_the_result_file_that_it_asks_for() {
    let machine = machine(EQUAL, EQUAL);
    let check = |result: &str| format!("sh -c 'echo \"$1\" >\"$0\"' {{result}} '{result}'");
    let verified = |check: &str, code: i32| {
        let report = json(&machine, &[&BOTH[..], &["--verify", check]].concat(), code);
        report.denied()
    };
    assert_eq!(verified(&check("{\"correct\": true}"), 0), [""; 0]);
    assert_eq!(
        verified(&check("{\"correct\": false}"), 5),
        ["wrong-numbers"]
    );
    assert_eq!(verified("true {result}", 5), ["program-failed"]);
}

#[test]
fn a_script_that_changes_while_it_is_measured_is_no_measurement() {
    let machine = machine(EQUAL, EQUAL);
    let script = machine.read(&format!("{HERE}/bench_new"));
    let text = format!("{script}echo '# changed' >>\"$0\"\n");
    machine.program(&format!("{HERE}/bench_new"), &text);
    for command in ["./bench_new", "/bin/sh -e bench_new {seed}"] {
        let report = json(&machine, &[BOTH[0], command], 5);
        assert!(report.denies("altered-during-run"));
    }
    // What the program writes is not the program.
    let text = format!("{script}echo more >>\"$1\"\n");
    machine.program(&format!("{HERE}/bench_new"), &text);
    json(&machine, &[BOTH[0], "sh bench_new ../argv"], 0);
}

#[test]
fn a_program_that_does_other_work_is_not_faster_unless_its_numbers_are_checked() {
    // Of `tma_wgmma` the hardware counts the same FLOP under another name.
    let machine = machine(EQUAL, WGMMA);
    let report = json(&machine, &BOTH, 4);
    assert!(report.denied().iter().all(|code| code == "work-changed"));
    let ran = run(&machine, &BOTH).exits(4);
    assert!(!ran.out.contains("faster"), "{}", ran.out);
    assert!(ran.out.starts_with("other work: bsr_gemm_tma_wgmma; "));
    // The other way round it is slower, and the other work explains it.
    let back = [BOTH[1], BOTH[0]];
    let slower = json(&machine, &back, 1);
    assert_eq!(slower.denied(), ["regressed"; 2]);
    assert!(slower.warns("work-changed"));
    assert!(next(&report, "work-changed").contains("--verify"));
    let check = ["--verify", "./bench_new --check 0"];
    let report = json(&machine, &[&BOTH[..], &check].concat(), 0);
    assert_eq!(verdict(&report), "improved");
}

#[test]
fn a_program_that_fails_under_the_profiler_ends_with_5_and_one_without_kernels_too() {
    let machine = machine(EQUAL, EQUAL);
    machine.program(&format!("{HERE}/bench_old"), "#!/bin/sh\nexit 3\n");
    let report = json(&machine, &BOTH, 5);
    let denied = report.findings("deny");
    assert_eq!(denied.len(), 1, "{denied:#?}");
    let message = denied[0]["message"].as_str().unwrap();
    assert!(message.starts_with("in the base: "), "{message}");
    machine.program(&format!("{HERE}/bench_old"), "#!/bin/sh\nexit 0\n");
    let report = json(&machine, &BOTH, 5);
    let message = report.message("kernel-missing");
    assert!(message.starts_with("in the base: "), "{message}");
}

#[test]
fn without_ncu_the_times_are_compared_and_the_report_says_that_no_counter_was_read() {
    let machine = machine(EQUAL, WORSE);
    fs::remove_file(machine.path("bin/ncu")).unwrap();
    run(&machine, &[BOTH[0], BOTH[0]]).exits(0);
    let equal = [BOTH[0], BOTH[0], "--counters"];
    assert_eq!(json(&machine, &equal, 0).warned(), ["profiler-unsupported"]);
    let report = json(&machine, &BOTH, 1);
    assert_eq!(report.denied(), ["regressed"; 2]);
    assert_eq!(report.0["variants"][0]["tier"], "kernel-times");
    let said = "no counter was read: no ncu (NVIDIA Nsight Compute) was found";
    let warned = report.findings("warn");
    let said = |one: &&&Json| one["message"].as_str().unwrap().starts_with(said);
    assert_eq!(warned.iter().filter(said).count(), 1, "{warned:#?}");
    // As where the driver keeps the counters to administrators.
    install(
        &repository().join("tests/gpu/denied-ncu"),
        &machine.path("bin/ncu"),
    );
    let report = json(&machine, &BOTH, 1);
    report.tells_all("no-permission", &["no counter was read: "]);
}

#[test]
fn without_a_gpu_or_what_measures_the_report_says_what_is_missing() {
    let machine = machine(EQUAL, EQUAL);
    fs::remove_file(machine.path("toolkit/lib64")).unwrap();
    let [driver, nvml] = libraries();
    let machine = machine.with_libraries(&[driver, nvml]);
    run(&machine, &BOTH).ends(3, "libcupti");
    fs::remove_file(machine.path("bin/ncu")).unwrap();
    run(&machine, &BOTH[..1]).ends(3, "ncu");
    let machine = machine.with_libraries(&[]);
    for programs in [&BOTH[..], &BOTH[..1]] {
        run(&machine, programs).ends(3, "driver");
    }
}

/// The first line, and the lines of the kernels, of a run that ends with this code.
#[track_caller]
fn screen(machine: &Machine, arguments: &[&str], code: i32) -> (String, Vec<String>) {
    let ran = run(machine, arguments).exits(code);
    let first = ran.out.lines().next().unwrap().to_owned();
    let rows = ran.out.split("\n\n").nth(1).unwrap();
    (first, rows.lines().map(str::to_owned).collect())
}

/// The row that begins with a name.
#[track_caller]
fn row<'a>(rows: &'a [String], name: &str) -> &'a str {
    let found = rows.iter().filter(|row| row.starts_with(name));
    let found: Vec<&String> = found.collect();
    assert_eq!(found.len(), 1, "{name}: {rows:#?}");
    found[0]
}

/// Two programs that launch these kernels, and no ncu.
fn timed(old: &str, new: &str) -> Machine {
    let machine = machine(kernels(old), kernels(new));
    fs::remove_file(machine.path("bin/ncu")).unwrap();
    machine
}

const STEP: &str = "gemm 20 100000 64,1,1 128,1,1 0\nsoftmax 20 50000 64,1,1 128,1,1 0\n\
                    copy 20 1000 64,1,1 128,1,1 0";

#[test]
fn a_program_that_launches_more_than_can_be_measured_is_named_with_the_way_out() {
    let mut kernels = String::new();
    for kernel in 0..64 {
        kernels += &format!("k{kernel} 4200 5000 64,1,1 128,1,1 0\n");
    }
    let many = Launched {
        kernels: &kernels,
        ..EQUAL
    };
    let machine = machine(EQUAL, many);
    let report = json(&machine, &BOTH, 6);
    assert_eq!(report.denied(), ["not-measured"]);
    report.tells_all("not-measured", &["launched 268800 kernels", "262144"]);
    run(&machine, &BOTH).says("compare --kernels");
}

#[test]
fn a_gpu_that_waits_longer_between_the_same_kernels_is_named_and_fails_nothing() {
    let machine = timed(STEP, STEP);
    let (first, rows) = screen(&machine, &BOTH, 0);
    assert!(!first.contains("waits"), "{first}");
    row(
        &rows,
        "between kernels the GPU waits 1.9 % → 1.9 % of the time",
    );
    let text = script(&machine, kernels(STEP));
    let text = text.replace(
        "    STAND_IN_KERNELS",
        "    STAND_IN_GAP=20000 STAND_IN_KERNELS",
    );
    machine.program(&format!("{HERE}/bench_new"), &text);
    let (first, rows) = screen(&machine, &BOTH, 0);
    assert!(first.starts_with("same: "), "{first}");
    // 59 gaps that are 19 us longer.
    let said = "; the GPU waits 1.12 ms longer between kernels";
    assert!(first.ends_with(said), "{first}");
    row(&rows, "between kernels the GPU waits 1.9 % → 28.");
    // Less of it is no bad news.
    let turned = [BOTH[1], BOTH[0]];
    let (first, _) = screen(&machine, &turned, 0);
    assert!(!first.contains("waits"), "{first}");
}

#[test]
fn kernels_that_appear_and_vanish_are_rows_and_only_a_larger_sum_fails() {
    let replaced = |by: &str| STEP.replace("softmax 20 50000", by);
    let machine = timed(STEP, &replaced("fused 20 50000"));
    let (first, rows) = screen(&machine, &BOTH, 0);
    assert!(first.starts_with("same: "), "{first}");
    let said = "; 1 kernel gone, 1 new, largest fused 33 %";
    assert!(first.ends_with(said), "{first}");
    assert!(row(&rows, "fused ").ends_with(" new"));
    assert!(row(&rows, "softmax ").ends_with(" gone"));
    assert!(row(&rows, "gemm ").contains(" 66.2 % "));
    assert!(
        rows.iter().all(|row| row.chars().count() <= 80),
        "{rows:#?}"
    );
    let report = json(&machine, &BOTH, 0);
    assert_eq!(report.denied(), [""; 0]);
    // ncu was to be asked for what differs, and the rows say the rest.
    assert_eq!(report.warned(), ["profiler-unsupported"]);

    program(&machine, "bench_new", kernels(&replaced("fused 20 51000")));
    let (first, _) = screen(&machine, &BOTH, 1);
    assert!(first.starts_with("slower: +0.6"), "{first}");
    // What takes longer is on one side alone, and no counter is asked for.
    let report = json(&machine, &BOTH, 1);
    assert_eq!(report.denied(), ["regressed"]);
    assert_eq!(report.warned(), [""; 0]);
    let quiet = run(&machine, &[&BOTH[..], &["-q"]].concat()).exits(1);
    assert_eq!(quiet.out.lines().count(), 1, "{}", quiet.out);

    // It vanishes, and its work with it.
    let without = STEP.replace("softmax 20 50000 64,1,1 128,1,1 0\n", "");
    program(&machine, "bench_new", kernels(&without));
    let (first, _) = screen(&machine, &BOTH, 0);
    assert!(first.starts_with("faster: -33."), "{first}");
    assert!(first.ends_with("; 1 kernel gone"), "{first}");
    let back = [BOTH[1], BOTH[0]];
    let (first, _) = screen(&machine, &back, 1);
    assert!(first.ends_with("; 1 kernel new, largest softmax 33 %"));
}

#[test]
fn a_kernel_with_a_small_share_is_judged_through_the_sum_unless_it_is_named() {
    let copies = |by: &str| STEP.replace("copy 20 1000", by);
    let machine = timed(STEP, &copies("copy 20 1300"));
    let of_copy = |report: &Report| {
        let comparison = of_kernel(report, "copy", "duration");
        assert!(comparison["change"]["relative_percent"].as_f64().unwrap() > 20.0);
        comparison["verdict"].clone()
    };
    let report = json(&machine, &BOTH, 0);
    assert_eq!(verdict(&report), "pass");
    assert!(of_copy(&report).is_null());
    let named = [&BOTH[..], &["--kernels", "regex:^(gemm|copy)$"]].concat();
    let report = json(&machine, &named, 1);
    assert_eq!(of_copy(&report), "regressed");
    let (first, _) = screen(&machine, &named, 1);
    // The clock of each stand-in differs a little.
    assert!(
        ["slower: copy +29.9", "slower: copy +30."]
            .iter()
            .any(|begin| first.starts_with(begin)),
        "{first}"
    );
    assert!(first.contains("; the sum of all kernels +0."), "{first}");

    program(&machine, "bench_new", kernels(&copies("copy 20 2000")));
    let report = json(&machine, &BOTH, 1);
    assert_eq!(report.denied(), ["regressed"]);
    assert_eq!(verdict(&report), "regressed");
    assert!(of_copy(&report).is_null());
    // No launch takes longer, but there are more.
    program(&machine, "bench_new", kernels(&copies("copy 40 1000")));
    let (first, rows) = screen(&machine, &BOTH, 1);
    assert!(first.starts_with("slower: +0.6"), "{first}");
    assert!(row(&rows, "copy ").contains(" 1.3 % "), "{rows:#?}");
}

#[test]
fn each_shape_of_a_kernel_has_its_share_and_its_row() {
    let shapes =
        |large: u32| format!("gemm 20 {large} 64,1,1 128,1,1 0\ngemm 20 25000 8,1,1 128,1,1 0\n");
    let machine = timed(&shapes(75_000), &shapes(80_000));
    let (_, rows) = screen(&machine, &BOTH, 1);
    let [large, small] = ["gemm (64, 1, 1) ", "gemm (8, 1, 1) "].map(|name| row(&rows, name));
    assert!(large.contains(" 76.2 % ") && large.ends_with(" slower"));
    assert!(small.contains(" 25.0 % ") && !small.ends_with(" slower"));
    let report = json(&machine, &BOTH, 1);
    let shares = report.0["variants"][0]["shares"].as_array().unwrap();
    let grids: Vec<&Json> = shares.iter().map(|share| &share["grid"][0]).collect();
    assert_eq!(grids, [64, 8]);
    for side in ["reference", "current"] {
        let percent = shares.iter().map(|share| share[side].as_f64().unwrap());
        assert!((percent.sum::<f64>() - 100.0).abs() < 1e-6);
    }
}

#[test]
fn what_differs_from_process_to_process_is_part_of_the_sum() {
    let machine = timed(STEP, STEP);
    // Every second process of a program gets 1 for `$odd`.
    let program = |name: &str, kernels_of: &str| {
        let count = format!(
            "    n=0\n    while ! mkdir '{}/'\"${{0##*/}}$n\" 2>/dev/null; do n=$((n + 1)); done\n    \
             odd=$((n % 2))\n    STAND_IN_KERNELS=\"",
            machine.path("home").display()
        );
        let text = script(&machine, kernels(kernels_of));
        let text = text.replace("    STAND_IN_KERNELS='", &count);
        let text = text.replace("0' '", "0\" '");
        machine.program(&format!("{HERE}/{name}"), &text);
    };
    let both = |with: &str| {
        let step = STEP.replace("gemm 20", with);
        program("bench_old", &step);
        program("bench_new", &step);
    };
    both("gemm$odd 20");
    let (first, rows) = screen(&machine, &BOTH, 0);
    assert!(first.starts_with("same: "), "{first}");
    for name in ["gemm0 ", "gemm1 "] {
        assert!(row(&rows, name).ends_with(" varies"), "{rows:#?}");
    }
    let report = json(&machine, &BOTH, 0);
    assert!(of_kernel(&report, "gemm1", "duration")["verdict"].is_null());
    // A program that chooses how often it launches is not slower where it chose a larger number.
    both("gemm $((20 + 2 * odd))");
    let (first, _) = screen(&machine, &BOTH, 0);
    assert!(first.starts_with("same: "), "{first}");
    // A number that none of the base's processes chose is more work, and so is one that is always the
    // largest of them.
    for more in ["gemm 24", "gemm 22"] {
        program("bench_new", &STEP.replace("gemm 20", more));
        let (first, _) = screen(&machine, &BOTH, if more == "gemm 24" { 1 } else { 6 });
        assert!(!first.starts_with("same: "), "{first}");
    }
    // One that takes longer in some processes takes longer.
    both("gemm$odd 20");
    program(
        "bench_new",
        &STEP.replace("gemm 20 100000", "gemm$odd 20 102000"),
    );
    let (first, _) = screen(&machine, &BOTH, 1);
    assert!(first.starts_with("slower: +1.3"), "{first}");
}

#[test]
fn reports_and_captures_are_kept_where_they_are_asked_for() {
    let machine = machine(EQUAL, WORSE);
    for folder in ["reports-of", "work"] {
        fs::create_dir(machine.path(folder)).unwrap();
    }
    let reports = ["html", "md", "json"].map(|ending| format!("../reports-of/out.{ending}"));
    let mut arguments = BOTH.to_vec();
    for report in &reports {
        arguments.extend(["--report", report]);
    }
    arguments.extend(["--output", "../kept", "--work", "../work"]);
    run(&machine, &arguments).exits(1);
    for file in ["profile.json", "base/profile.json"] {
        let path = format!("kept/compare/bench_new/{file}");
        assert!(machine.path(&path).is_file(), "{path}");
    }
    for file in ["out.html", "out.md"] {
        let text = machine.read(&format!("reports-of/{file}"));
        assert!(text.contains("n 4096"), "{file}: {text}");
    }
    // The outcome is rendered again as it was.
    machine
        .run("report reports-of/out.json")
        .ends(0, "base `./bench_old --n 4096`");
}

#[test]
fn an_interrupted_comparison_leaves_nothing() {
    let machine = machine(EQUAL, EQUAL);
    let slow = "#!/bin/sh\necho here >>../started\nsleep 600\n";
    machine.program(&format!("{HERE}/bench_old"), slow);
    let mut child = gate(&machine, &BOTH).spawn().unwrap();
    let end = Instant::now() + PATIENCE;
    while !machine.path("started").exists() {
        assert!(Instant::now() < end, "nothing was started");
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    leaves_nothing(&machine);
}

/// `init` with a program, in the folder of the user.
fn init(machine: &Machine, program: &[&str]) -> Ran {
    Ran::by(&mut here(machine, &[&["init", "--"], program].concat()))
}

#[test]
fn init_with_a_program_writes_a_suite_for_what_it_launches() {
    let machine = machine(EQUAL, EQUAL);
    let ran = init(
        &machine,
        &["./bench_old", "--name", "a \"b\" \\", "bench_new"],
    )
    .exits(0);
    assert!(ran.out.contains("wrote config.toml"), "{}", ran.out);
    // More was asked for, and nothing is wrong with that.
    common::contains(&ran.err, &["20 launches in 1 process\n"]);
    let text = machine.read(&format!("{HERE}/config.toml"));
    for part in [
        "100.0 % 20 × bsr_gemm_cp_async, grid (64, 64, 1), block (128, 1, 1)",
        "profile = { launches = 19, skip = 1 }",
        "expect = [\"bsr_gemm_cp_async\"]",
        // A file of the command line, but not what is built.
        "\ninputs = [\"bench_new\"]",
        "\n# program = \"./bench_old\"",
        "clock_control = \"none\"",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let config: toml::Table = toml::from_str(&text).unwrap();
    let run = &config["suite"]["bench_old"]["variant"]["main"]["run"];
    assert_eq!(run[2].as_str(), Some("a \"b\" \\"));
    assert!(
        machine
            .path(HERE)
            .join(".sparsek-gate.schema.json")
            .is_file()
    );
    assert!(!machine.path(HERE).join(".sparsek-gate").exists());
    let stated = text.lines();
    let stated = stated.filter(|line| !line.is_empty() && !line.starts_with('#'));
    assert!(stated.count() <= 20, "{text}");
    // It is not overwritten.
    init(&machine, &["./bench_old"]).ends(2, "--force");
    // With every key, and the same suite.
    let arguments = ["init", "--all", "--force", "--", "./bench_old"];
    let ran = Ran::by(&mut here(&machine, &arguments));
    ran.exits(0);
    let all = machine.read(&format!("{HERE}/config.toml"));
    for part in ["profile = { launches = 19, skip = 1 }", "# [[waiver]]"] {
        assert!(all.contains(part), "{part}\n{all}");
    }
    assert!(!all.contains("[suite.example"), "{all}");
}

#[test]
fn init_runs_the_program_where_its_configuration_will_run_it() {
    let machine = machine(EQUAL, EQUAL);
    let bench = machine.read(&format!("{HERE}/bench_old"));
    machine.program(&format!("{HERE}/gate/bench"), &bench);
    machine.write(&format!("{HERE}/gate/input"), "");
    let init = |program: &[&str]| {
        let options = ["init", "--force", "-C", "here/gate/config.toml", "--"];
        let mut command = here(&machine, &[&options, program].concat());
        Ran::by(command.current_dir(machine.path("")))
    };
    init(&["here/bench_old"]).ends(5, "programs run in ");
    init(&["./bench", "input"]).exits(0);
    let written = || machine.read("here/gate/config.toml");
    assert!(written().contains("\ninputs = [\"input\"]"));
    // No word ends the comment that it is in.
    machine.program(&format!("{HERE}/gate/b\nx"), &bench);
    init(&["./b\nx", "a\u{1b}\"\\"]).exits(0);
    let config: toml::Table = toml::from_str(&written()).unwrap();
    let run = &config["suite"]["b_x"]["variant"]["main"]["run"];
    assert_eq!(run[0].as_str(), Some("./b\nx"));
    assert_eq!(run[1].as_str(), Some("a\u{1b}\"\\"));
}

#[test]
fn init_with_a_program_that_launches_nothing_writes_nothing() {
    let machine = machine(EQUAL, EQUAL);
    machine.program(&format!("{HERE}/bench_old"), "#!/bin/sh\nexit 0\n");
    init(&machine, &["./bench_old"]).ends(5, "kernel-missing");
    init(&machine, &["./bench_none"]).ends(5, "`./bench_none`");
    leaves_nothing(&machine);
}

/// A history of a program: the first commit is good, the second does not build, the fourth is slower.
#[test]
fn git_bisect_run_with_the_documented_script_finds_the_slower_commit() {
    let machine = machine(EQUAL, EQUAL);
    let project = &machine.project;
    project.git("init --quiet");
    project.write(".git/info/exclude", "*\n!/bench.sh\n");
    let mut commits = Vec::new();
    let [fast, slow] = [EQUAL, WORSE].map(|launched| script(&machine, launched));
    for text in [
        format!("{fast}# good"),
        "if".to_owned(),
        format!("{fast}# as fast"),
        format!("{slow}# slower"),
        format!("{slow}# as slow"),
    ] {
        project.write("bench.sh", text + "\n");
        project.git("add bench.sh");
        project.git(&["commit", "--quiet", "--message", "a step"]);
        commits.push(project.git("rev-parse HEAD").trim().to_owned());
    }
    let page = fs::read_to_string(common::repository().join("docs/daily.md")).unwrap();
    let fence = "```sh needs: a GPU, as the file /tmp/step.sh\n";
    let (_, script) = page.split_once(fence).unwrap();
    let (script, _) = script.split_once("```").unwrap();
    let build = "sh -n bench.sh && install -m 755 bench.sh";
    let good = project.path("tmp/bench").display().to_string();
    let script = script
        .replace("make bench", &format!("{{ {build} bench; }}"))
        .replace(
            "sparsek-gate compare",
            &format!("{} compare", env!("CARGO_BIN_EXE_sparsek-gate")),
        )
        .replace("/tmp/good/bench", &good);
    project.write("tmp/step.sh", script);
    let shell = format!(
        "git checkout --quiet {first} && {build} {good} && git checkout --quiet - &&
         git bisect start HEAD {first} && git bisect run sh tmp/step.sh",
        first = commits[0]
    );
    let gate = gate(&machine, &[]);
    let env = gate
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let run = Command::new("sh")
        .args(["-c", &shell])
        .current_dir(project.path(""))
        .envs(env)
        .output()
        .unwrap();
    let culprit = format!("{} is the first bad commit", commits[3]);
    Ran::of(&run).ends(0, &culprit);
}
