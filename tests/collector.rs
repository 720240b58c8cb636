//! `profile.collector = "cupti"`: counters that CUPTI reads inside of the program. The injected library is
//! the real one; the driver, libcupti and the program that launches are stand-ins.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::common::stand_in::{Sources, compiled};
use crate::common::{self, Project, Ran, Report, install, repository};
use serde_json::json;

const CONFIG: &str = r#"
[toolchain]
ncu = "denied-ncu"
cupti = "libcupti.so.13"

[profile]
collector = "cupti"
clock_control = "none"
processes = 2
max_processes = 2
rounds = 1
max_rounds = 1

[metric.duration]
direction = "lower"
tolerance = { relative_percent = 3.0 }

[metric.tensor_core]
direction = "higher"
tolerance = { absolute = 1.0 }

[metric.dram_read]
level = "record"

[metric.registers]
counter = "launch__registers_per_thread"
level = "record"
direction = "lower"

[metric.stored_sectors]
counter = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
exact = true
counts = { bytes_written = 32 }

[suite.bsr_gemm]
args = ["plainly"]
verify_args = ["0"]
profile_args = ["{launches}"]
kernels = "regex:^bsr_gemm_"
work = { bytes_written = 268435456 }

[suite.bsr_gemm.variant.cp_async]
run = ["./program"]
inputs = ["program", "slower"]
expect = ["bsr_gemm_cp_async"]
"#;
const FOLDER: &str = ".sparsek-gate/profiles/bsr_gemm/cp_async";
const LOCKED: &str = "baselines/nvidia-h200+cupti-counters/bsr_gemm/cp_async.norm.txt";

/// A folder with the stand-ins; `None`, and said aloud, without a C compiler.
fn stand_ins() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            let library: &[&str] = &["-shared", "-fPIC"];
            let named: &[&str] = &["-shared", "-fPIC", "-Wl,-soname,libcuda.so"];
            let sources: Sources<'_> = &[
                ("launching_libcuda.c", "libcuda.so", named),
                ("range_profiler.c", "libcupti.so.13", library),
                ("launcher.c", "program", &[]),
            ];
            compiled("collector", sources)
        })
        .as_deref()
}

/// A machine with an H200 and CUPTI, and an ncu that measures nothing.
struct Machine {
    project: Project,
    driver: &'static Path,
    goes_wrong: &'static str,
}

impl Machine {
    fn new() -> Option<Machine> {
        let driver = stand_ins()?;
        let project = Project::empty();
        fs::create_dir(project.path("tmp")).unwrap();
        project.write("config.toml", format!("{}{CONFIG}", common::ENV_PASS));
        project.write(".gitignore", ".sparsek-gate/\n/tmp/\n/denied\n");
        project.write("slower", "0\n");
        for (name, from) in [
            ("denied-ncu", repository().join("tests/gpu/denied-ncu")),
            ("libcupti.so.13", driver.join("libcupti.so.13")),
            ("program", driver.join("program")),
        ] {
            install(&from, &project.path(name));
        }
        let machine = Machine {
            project,
            driver,
            goes_wrong: "",
        };
        machine.project.git(&["init", "--quiet"]);
        machine.commit();
        Some(machine)
    }

    fn locked() -> Option<Machine> {
        let machine = Machine::new()?;
        machine.run(&["profile"]).exits(0);
        machine.lock().exits(0);
        machine.commit();
        Some(machine)
    }

    #[track_caller]
    fn configured(self, from: &str, to: &str) -> Machine {
        self.project.replace("config.toml", from, to);
        self
    }

    /// With a program that does something else.
    #[track_caller]
    fn doing(self, how: &str) -> Machine {
        self.configured("\"plainly\"", &format!("\"{how}\""))
    }

    fn lock(&self) -> Ran {
        self.run(&["baseline", "--lock", "--reason", "first", "--who", "tester"])
    }

    fn commit(&self) {
        self.project.git(&["add", "--all"]);
        self.project
            .git(&["commit", "--quiet", "--allow-empty", "--message", "a step"]);
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let output = self
            .project
            .gate()
            .args(arguments)
            .env("LD_LIBRARY_PATH", self.driver)
            .env("JOURNAL", self.project.path("tmp/journal"))
            .env("STAND_IN_CUPTI", self.goes_wrong)
            .env("TMPDIR", self.project.path("tmp"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env_remove("CUDA_VISIBLE_DEVICES")
            .output()
            .unwrap();
        Ran::of(&output)
    }

    #[track_caller]
    fn profile(&self, code: i32) -> Report {
        self.run(&["profile", "--format", "json"])
            .exits(code)
            .json()
    }

    #[track_caller]
    fn check(&self, arguments: &[&str], code: i32) -> Report {
        let all = [&["check", "--format", "json"], arguments].concat();
        self.run(&all).exits(code).json()
    }

    /// What happened in the program, in order.
    fn journal(&self) -> Vec<String> {
        let text = fs::read_to_string(self.project.path("tmp/journal")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

#[test]
fn counters_are_read_in_the_program_and_ncu_is_not_run() {
    let Some(machine) = Machine::new() else {
        return;
    };
    assert_eq!(machine.profile(0).denied(), Vec::<String>::new());
    assert!(!machine.project.path("denied").exists(), "ncu measured");
    let profile = machine.project.json(&format!("{FOLDER}/profile.json"));
    let identity = &profile["identity"];
    assert_eq!(identity["tier"], "cupti-counters");
    assert_eq!(identity["clock_control"], "none");
    assert_eq!(identity["cache_control"], "all");
    assert_eq!(identity["replay_mode"], "kernel");
    assert_eq!(identity["metrics"]["dram_read"]["unit"], "byte");
    assert_eq!(identity["metrics"]["duration"]["unit"], "ns");
    assert_eq!(profile["provenance"]["profiler"], "CUPTI 130001");
    let kernel = &profile["kernels"][0];
    assert_eq!(kernel["name"], "bsr_gemm_cp_async");
    assert_eq!(kernel["grid"], json!([64, 32, 1]));
    assert_eq!(kernel["block"], json!([128, 1, 1]));
    assert_eq!(profile["kernels"].as_array().unwrap().len(), 1);
    // The values are read back exactly, and a launch has those of its own range.
    let samples = |metric: &str| kernel["metrics"][metric]["samples"][0].as_array().unwrap();
    assert_eq!(samples("duration").len(), 20);
    assert_eq!(samples("tensor_core")[7], json!(40.1 + 0.001 * 7.0));
    let first = samples("duration")[0].as_f64().unwrap();
    assert_eq!(samples("duration")[9].as_f64().unwrap(), first + 4.0 * 64.0);
    assert_eq!(samples("registers")[0], json!(128.0));
    assert_eq!(samples("stored_sectors")[0], json!(8_388_608.0));
    assert_eq!(
        profile["provenance"]["launch_list"],
        json!({
            "measured": 20,
            "others": [{ "kernel": "fill_normal", "launches": 22, "between": 19 }]
        })
    );
}

#[test]
fn before_each_measured_launch_the_caches_are_flushed_by_a_module_that_is_loaded_anew() {
    let Some(machine) = Machine::new() else {
        return;
    };
    machine.profile(0);
    // The kernel of the flush is measured once before, and its values are dropped.
    let first = ["start", "memset", "load", "discard", "stop"];
    let one = ["memset", "load", "discard", "start", "stop"];
    let of_counting = [one, one].concat();
    // Two processes of 20 launches, and one that counts two; each gives its memory back.
    let of_timing = one.repeat(20);
    let mut expected: Vec<&str> = Vec::new();
    for launches in [of_counting, of_timing.clone(), of_timing] {
        expected.extend(first.into_iter().chain(launches));
        expected.push("free");
    }
    assert_eq!(machine.journal(), expected);
}

#[test]
fn without_cache_control_nothing_is_flushed_and_skipped_launches_are_not_measured() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let machine = machine.configured(
        "clock_control = \"none\"",
        "clock_control = \"none\"\ncache_control = \"none\"\nskip = 3\nlaunches = 5",
    );
    machine.profile(0);
    assert_eq!(machine.journal(), ["start", "stop"].repeat(2 + 5 + 5));
    let profile = machine.project.json(&format!("{FOLDER}/profile.json"));
    // The first is the fourth that is selected: two launches and three pairs were before it.
    let read = &profile["kernels"][0]["metrics"]["dram_read"]["samples"][0][0];
    assert_eq!(read, &json!(158_975_872.0 + 32.0 * 8.0));
    assert_eq!(profile["provenance"]["launch_list"]["measured"], 5);
    let others = &profile["provenance"]["launch_list"]["others"];
    assert!(
        others
            .to_string()
            .contains("bsr_gemm_cp_async\",\"launches\":3"),
        "{others}"
    );
}

#[test]
fn counters_of_cupti_are_locked_in_a_folder_of_their_own_and_unchanged_code_passes() {
    let Some(machine) = Machine::locked() else {
        return;
    };
    let locked = machine.project.read(LOCKED);
    assert!(locked.contains("stored_sectors: 8388608.00\n"), "{locked}");
    let captures = [
        "baseline",
        "--verify",
        "--captures",
        ".sparsek-gate/profiles",
    ];
    machine.run(&captures).exits(0).says("derived again");
    let report = machine.check(&[], 0);
    assert_eq!(report.denied(), Vec::<String>::new());
    assert!(!report.warned().contains(&"no-permission".to_owned()));
    assert_eq!(report.variant("cp_async")["tier"], "cupti-counters");
    for metric in ["duration", "tensor_core", "stored_sectors"] {
        assert_eq!(report.verdict("cp_async", metric), "pass", "{metric}");
    }
    let shown = machine.run(&["check", "-v", "--from", ".sparsek-gate/profiles"]);
    shown
        .exits(0)
        .says("bsr_gemm/cp_async (cupti-counters)")
        .says("counters read by CUPTI in the program");
    assert!(!machine.project.path("denied").exists(), "ncu measured");
}

#[test]
fn a_kernel_that_became_slower_fails_alone_and_side_by_side() {
    let Some(machine) = Machine::locked() else {
        return;
    };
    machine.project.write("slower", "20\n");
    let report = machine.check(&[], 1);
    assert_eq!(report.verdict("cp_async", "duration"), "regressed");
    assert_eq!(report.verdict("cp_async", "tensor_core"), "pass");
    let report = machine.check(&["--against", "HEAD"], 1);
    assert_eq!(report.variant("cp_async")["mode"], "against");
    assert_eq!(report.variant("cp_async")["tier"], "cupti-counters");
    assert_eq!(report.verdict("cp_async", "duration"), "regressed");
}

#[test]
fn an_edited_capture_or_profile_is_found() {
    let Some(machine) = Machine::locked() else {
        return;
    };
    machine
        .project
        .edit(&format!("{FOLDER}/profile.json"), |profile| {
            profile["kernels"][0]["metrics"]["duration"]["samples"][0][3] = json!(200_000.0);
        });
    let report = machine.check(&["--from", ".sparsek-gate/profiles"], 0);
    assert!(report.message("profile-altered").contains("other samples"));
    machine.lock().exits(4).says("profile-altered");
    let capture = format!("{FOLDER}/capture-1.counters");
    let text = machine.project.read(&capture);
    machine
        .project
        .write(&capture, text.replace(" 128 1024 ", " 127 1024 "));
    machine.lock().exits(4).says("capture-1.counters");
}

/// What goes wrong in libcupti, and what is said of it.
#[test]
fn what_cupti_refuses_or_does_not_know_is_no_measurement() {
    let Some(mut machine) = Machine::new() else {
        return;
    };
    for (how, code, finding, why) in [
        (
            "busy",
            3,
            "profiler-busy",
            "another profiler uses the counters",
        ),
        ("nan", 6, "not-measured", "has no value of"),
        ("dropped", 6, "not-measured", "dropped 2"),
        ("ranges", 6, "not-measured", "other kernels ran beside them"),
        (
            "stops",
            6,
            "not-measured",
            "cuptiRangeProfilerStop answered 999",
        ),
        (
            "no counter",
            6,
            "not-measured",
            "ConfigAddMetrics answered 17 for the counter l1tex__t_sectors",
        ),
        (
            "second device",
            6,
            "not-measured",
            "launched on its device 1",
        ),
    ] {
        machine.goes_wrong = how;
        let report = machine.profile(code);
        assert_eq!(report.denied(), [finding], "{how}");
        let message = report.message(finding);
        assert!(message.contains(why), "{how}: {message}");
        let profile = machine.project.path(&format!("{FOLDER}/profile.json"));
        assert!(!profile.exists(), "{how}: a profile was kept");
    }
}

#[test]
fn a_kernel_too_short_for_cupti_is_not_measured_by_it() {
    let Some(machine) = Machine::new() else {
        return;
    };
    // In percent: 260 us become 10.4 us, and 5.2 us.
    machine.project.write("slower", "-96\n");
    machine.profile(0);
    machine.project.write("slower", "-98\n");
    let report = machine.profile(6);
    assert_eq!(report.denied(), ["not-measured"]);
    let message = report.message("not-measured");
    for words in ["bsr_gemm_cp_async takes 5.", "shorter than 10.00 us"] {
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn each_kernel_is_measured_as_often_as_is_asked_for_where_it_is_counted_by_itself() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let machine = machine
        .configured("work = { bytes_written = 268435456 }\n", "")
        .configured("regex:^bsr_gemm_", "regex:^(bsr_gemm|fill)_")
        .configured(
            "clock_control = \"none\"",
            "clock_control = \"none\"\nskip = 1\nlaunches = 5\nper_kernel = true",
        );
    assert_eq!(machine.profile(0).denied(), Vec::<String>::new());
    let profile = machine.project.json(&format!("{FOLDER}/profile.json"));
    let kernels = profile["kernels"].as_array().unwrap();
    let names: Vec<&str> = kernels
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    // In the order of their first measured launches: `fill` is launched twice before.
    assert_eq!(names, ["fill_normal", "bsr_gemm_cp_async"]);
    for kernel in kernels {
        for (metric, launches) in [("duration", 5), ("stored_sectors", 2)] {
            for process in kernel["metrics"][metric]["samples"].as_array().unwrap() {
                assert_eq!(process.as_array().unwrap().len(), launches, "{metric}");
            }
        }
    }
    // Its command line asks for six of each, and it makes six of the one and eight of the other.
    let listed = &profile["provenance"]["launch_list"];
    assert_eq!(
        (&listed["measured"], &listed["others"]),
        (&json!(10), &json!([]))
    );
    let launches = listed["kernels"].as_array().unwrap().iter();
    let launches: Vec<&serde_json::Value> = launches.map(|one| &one["launches"]).collect();
    assert_eq!(launches, [8, 6]);

    // A program that launches a kernel less often than it did where its launches were listed.
    let report = machine.doing("few").profile(6);
    let message = report.message("not-measured");
    assert!(
        message.contains("4 are measured after the first 1 of each"),
        "{message}"
    );
}

#[test]
fn the_total_of_all_kernels_is_locked_and_judged_beside_each() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let machine = machine
        .configured("work = { bytes_written = 268435456 }\n", "")
        .configured("regex:^bsr_gemm_", "regex:^(bsr_gemm|fill)_")
        .configured(
            "clock_control = \"none\"",
            "clock_control = \"none\"\nskip = 1\nper_kernel = true\ntotal = true",
        );
    machine.profile(0);
    machine.lock().exits(0);
    machine.commit();
    let norm = machine.project.read(LOCKED);
    let line = norm
        .lines()
        .find(|line| line.starts_with("(total)/duration: "));
    let value: f64 = line.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    let of = |kernel: &str| -> f64 {
        let line = norm
            .lines()
            .find(|line| line.starts_with(&format!("{kernel}/duration: ")));
        line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
    };
    // 21 steps: 21 launches of the one, and 23 of the other. A value is a mean without outliers, and
    // a total has all launches.
    let sum = of("bsr_gemm_cp_async") + of("fill_normal") * 23.0 / 21.0;
    assert!((value / sum - 1.0).abs() < 0.01, "{value} {sum}\n{norm}");

    let short = machine.run(&["check"]).exits(0);
    assert!(short.out.contains("duration of (total) "), "{}", short.out);
    let shown = machine.run(&["check", "-v"]).exits(0);
    assert!(
        shown.out.contains("(total): fill_normal 5"),
        "{}",
        shown.out
    );
    machine.project.write("slower", "20\n");
    for arguments in [&["check"][..], &["check", "--against", "HEAD"]] {
        let shown = machine.run(arguments).exits(1);
        assert!(
            shown.out.contains("`duration` of (total): "),
            "{}",
            shown.out
        );
    }
}

/// What the program does otherwise than where its launches were listed, and what is said of it.
#[test]
fn a_program_whose_launches_are_not_those_that_were_listed_is_not_measured() {
    for (how, code, finding, why) in [
        (
            "few",
            6,
            "not-measured",
            "1 launches of selected kernels; 2 are measured",
        ),
        ("leaves", 6, "not-measured", "have no end"),
        (
            "unlisted",
            6,
            "not-measured",
            "launched bsr_gemm_late, which the process that listed",
        ),
        (
            "graph",
            6,
            "not-measured",
            "a CUDA graph launches bsr_gemm_cp_async",
        ),
        ("late graph", 6, "not-measured", "launches by cuGraphLaunch"),
        ("captures", 6, "not-measured", "launched into a CUDA graph"),
        ("two", 6, "not-measured", "both launched selected kernels"),
        ("crashes", 5, "program-failed", "SIGABRT"),
    ] {
        let Some(machine) = Machine::new() else {
            return;
        };
        let report = machine.doing(how).profile(code);
        assert_eq!(report.denied(), [finding], "{how}");
        let message = report.message(finding);
        assert!(message.contains(why), "{how}: {message}");
    }
}

#[test]
fn kernels_that_are_not_selected_change_nothing_also_from_another_thread() {
    for how in ["other", "threads"] {
        let Some(machine) = Machine::new() else {
            return;
        };
        let machine = machine.doing(how);
        assert_eq!(machine.profile(0).denied(), Vec::<String>::new(), "{how}");
        let profile = machine.project.json(&format!("{FOLDER}/profile.json"));
        assert_eq!(profile["kernels"].as_array().unwrap().len(), 1, "{how}");
    }
}

#[test]
fn a_filter_that_selects_nothing_names_the_kernels_that_were_launched() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let machine = machine.configured("\"regex:^bsr_gemm_\"", "\"regex:^gemm\"");
    let report = machine.profile(5);
    let message = report.message("kernel-missing");
    assert!(message.contains("bsr_gemm_cp_async"), "{message}");
}

#[test]
fn denied_counters_fail_as_ncus_do_and_what_was_measured_all_the_same_is_labelled() {
    let Some(mut machine) = Machine::new() else {
        return;
    };
    machine.goes_wrong = "denied";
    let report = machine.profile(3);
    assert!(report.denied().contains(&"no-permission".to_owned()));
    let profile = machine.project.json(&format!("{FOLDER}/profile.json"));
    assert_eq!(profile["identity"]["tier"], "kernel-times");
    machine.lock().exits(3).says("no-permission");
    // Without kernel times nothing is measured, and the reason is that the right is missing.
    let machine = machine.configured(
        "[suite.bsr_gemm]\n",
        "[suite.bsr_gemm]\nmetrics = [\"tensor_core\"]\n",
    );
    let machine = machine.configured("work = { bytes_written = 268435456 }\n", "");
    let report = machine.profile(3);
    assert_eq!(report.denied(), ["no-permission"]);
    let message = report.message("no-permission");
    assert!(message.contains("CUPTI may not read"), "{message}");
}

#[test]
fn where_the_counters_are_denied_an_accepted_tier_measures_instead() {
    let Some(mut machine) = Machine::new() else {
        return;
    };
    machine.goes_wrong = "denied";
    let machine = machine.configured("[profile]", "[profile]\naccept_tiers = [\"kernel-times\"]");
    let report = machine.profile(0);
    assert!(report.warned().contains(&"no-permission".to_owned()));
    let profile = machine.project.json(&format!("{FOLDER}/profile.json"));
    assert_eq!(profile["identity"]["tier"], "kernel-times");
}

#[test]
fn what_one_collector_measured_is_not_compared_with_a_lock_of_the_other() {
    let Some(machine) = Machine::locked() else {
        return;
    };
    // By the configuration, which names another collector than measured.
    let collector = "collector = \"cupti\"\n";
    machine.project.replace("config.toml", collector, "");
    let report = machine.check(&["--from", ".sparsek-gate/profiles"], 4);
    let message = report.message("not-comparable");
    assert!(message.contains("the tier of measurement"), "{message}");
    // By the folder: these counters are not ncu's.
    let machine = machine.configured("[profile]\n", "[profile]\ncollector = \"cupti\"\n");
    let folder = machine.project.path("baselines/nvidia-h200+cupti-counters");
    let of_ncu = machine.project.path("baselines/nvidia-h200");
    fs::rename(folder, of_ncu).unwrap();
    let report = machine.check(&["--from", ".sparsek-gate/profiles"], 4);
    assert!(report.message("tampered").contains("by cupti-counters"));

    // And the reverse: ncu's recordings under a configuration that names CUPTI.
    let project = Project::shipped();
    let text = common::configuration();
    let (before, after) = text.split_once("[profile]\n").unwrap();
    let plain: String = after
        .lines()
        .filter(|line| !line.starts_with("hotspots = "))
        .map(|line| format!("{line}\n"))
        .collect();
    project.write(
        "config.toml",
        format!("{before}[profile]\ncollector = \"cupti\"\n{plain}"),
    );
    let report = project.check(&["cp_async"], 4);
    let message = report.message("not-comparable");
    assert!(message.contains("the tier of measurement"), "{message}");
}

#[test]
fn a_setting_that_only_ncu_can_honour_is_refused_beside_cupti() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let clocks = "clock_control = \"none\"\n";
    for (setting, named) in [
        (
            "",
            "`clock_control` does not work with `collector = \"cupti\"`",
        ),
        (
            "clock_control = \"base\"\n",
            "`clock_control` does not work",
        ),
        (
            "replay_mode = \"application\"\n",
            "`replay_mode` does not work",
        ),
        (
            "graph_profiling = \"graph\"\n",
            "`graph_profiling` does not work",
        ),
        ("profiler_range = true\n", "`profiler_range` does not work"),
        ("hotspots = true\n", "`hotspots` does not work"),
    ] {
        let with = match setting.contains("clock") || setting.is_empty() {
            true => CONFIG.replacen(clocks, setting, 1),
            false => CONFIG.replacen(clocks, &format!("{clocks}{setting}"), 1),
        };
        machine.project.write("config.toml", with);
        machine.run(&["profile"]).exits(2).says(named);
    }
    let slip = CONFIG.replacen("\"cupti\"\nclock", "\"cpti\"\nclock", 1);
    machine.project.write("config.toml", slip);
    machine
        .run(&["profile"])
        .exits(2)
        .says("cpti")
        .says("did you mean `cupti`?");
}

#[test]
fn a_dry_run_shows_that_launches_are_listed_before_they_are_measured() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let shown = machine.run(&["profile", "--dry-run"]).exits(0);
    assert!(!shown.out.contains("denied-ncu"), "{}", shown.out);
    let place = |what: &str| shown.out.find(what).unwrap();
    assert!(place("  launches current") < place("  counting current"));
    assert!(place("  counting current") < place("  timing current"));
}

#[test]
fn the_doctor_looks_for_libcupti_where_a_variant_needs_it() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let found = machine.run(&["doctor"]);
    assert!(
        found.out.contains("libcupti.so.13, for `collector"),
        "{}",
        found.out
    );
    fs::remove_file(machine.project.path("libcupti.so.13")).unwrap();
    let missing = machine.run(&["doctor"]).exits(3);
    let why = "`toolchain.cupti` does not exist";
    assert!(missing.out.contains(why), "{}", missing.out);
    let report = machine.profile(3);
    let findings = report.0["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| {
        let message = finding["message"].as_str().unwrap();
        finding["code"] == "profiler-unsupported" && message.contains(why)
    }));
    // Without the collector it is not needed.
    let machine = machine.configured("collector = \"cupti\"\n", "");
    let without = machine.run(&["doctor"]);
    assert!(!without.out.contains("libcupti"), "{}", without.out);
}

#[test]
fn a_file_of_counters_is_inspected_and_not_imported() {
    let Some(machine) = Machine::new() else {
        return;
    };
    machine.profile(0);
    let file = format!("{FOLDER}/capture-1.counters");
    machine
        .run(&["inspect", &file])
        .exits(0)
        .says("counter-records")
        .says("bsr_gemm_cp_async");
    machine
        .run(&["import", &file, "--variant", "bsr_gemm/cp_async"])
        .exits(2)
        .says("which cannot be imported");
}

/// Compares the program with itself on this machine, which also has a toolkit and ncu on the PATH.
fn compare(machine: &Machine, arguments: &[&str], code: i32) -> Ran {
    install(
        &machine.driver.join("libcupti.so.13"),
        &machine.project.path("toolkit/lib64/libcupti.so.13"),
    );
    install(
        &repository().join("tests/gpu/denied-ncu"),
        &machine.project.path("bin/ncu"),
    );
    let path = std::env::var("PATH").unwrap();
    let program = "./program plainly {launches}";
    let output = machine
        .project
        .gate()
        .args([&["compare", program, program][..], arguments].concat())
        .env("LD_LIBRARY_PATH", machine.driver)
        .env("JOURNAL", machine.project.path("tmp/journal"))
        .env("TMPDIR", machine.project.path("tmp"))
        .env("CUDA_HOME", machine.project.path("toolkit"))
        .env(
            "PATH",
            format!("{}:{path}", machine.project.path("bin").display()),
        )
        .args(["--env-pass", "LD_LIBRARY_PATH,JOURNAL"])
        .args(["--kernels", "regex:^bsr_gemm_"])
        .output()
        .unwrap();
    Ran::of(&output).exits(code)
}

#[test]
fn two_programs_are_compared_by_cupti_where_it_measures_their_kernels() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let ncu = |machine: &Machine| machine.project.path("bin/denied").exists();
    let ran = compare(&machine, &["--verify", "true"], 0);
    assert!(ran.out.contains("cupti-counters"), "{}", ran.out);
    assert!(!ncu(&machine), "ncu measured");
    // The two short runs have no line, and leave nothing.
    assert_eq!(ran.err.matches("base launches").count(), 1, "{}", ran.err);
    // 5.2 us: the counters of ncu are asked for, and denied.
    machine.project.write("slower", "-98\n");
    let ran = compare(&machine, &["--verify", "true"], 3);
    assert!(ran.err.contains("no-permission") || ran.out.contains("no-permission"));
    assert!(ncu(&machine), "ncu was not asked");
    let ran = compare(&machine, &["--verify", "true", "--collector", "cupti"], 6);
    let next = "next: measure with ncu";
    assert!(ran.out.contains(next), "{}", ran.out);
}
