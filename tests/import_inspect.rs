//! `inspect` and `import` on real captures, whole and damaged.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::common::{Project, Ran, repository};
use serde_json::{Value as Json, json};

const REPORTS: [&str; 5] = [
    "four_metrics",
    "full_set",
    "graph_as_one",
    "twenty_launches",
    "two_kernels_three_times",
];

fn data(name: &str) -> PathBuf {
    repository().join("tests/data/ncu").join(name)
}

fn inspect(path: &str, more: &[&str]) -> Ran {
    let mut arguments = vec!["inspect", path];
    arguments.extend(more);
    Project::empty().run(&arguments)
}

fn inspected(name: &str) -> Json {
    inspect(data(name).to_str().unwrap(), &["--format", "json"])
        .exits(0)
        .json()
        .0
}

/// What the file says of the launch itself, as NVIDIA's reading gives it among the metrics.
fn dimensions(truth: &Json, what: &str) -> Json {
    let part = |axis: &str| truth["metrics"][format!("launch__{what}_dim_{axis}")][0].clone();
    json!([part("x"), part("y"), part("z")])
}

#[test]
fn every_report_is_shown_as_nvidia_reads_it() {
    let mut compared = 0;
    for name in REPORTS {
        let ours = inspected(&format!("{name}.ncu-rep"));
        assert_eq!(ours["schema"], 1);
        assert_eq!(ours["format"], "ncu-rep");
        let truth: Vec<Json> =
            serde_json::from_slice(&fs::read(data(&format!("{name}.truth.json"))).unwrap())
                .unwrap();
        let launches = ours["launches"].as_array().unwrap();
        assert_eq!(launches.len(), truth.len(), "{name}");
        for (launch, truth) in launches.iter().zip(&truth) {
            assert_eq!(launch["kernel"], truth["name"], "{name}");
            for what in ["grid", "block"] {
                let expected = dimensions(truth, what);
                if expected[0].is_number() {
                    assert_eq!(launch[what], expected, "{name} {what}");
                }
            }
            let metrics = launch["metrics"].as_object().unwrap();
            let theirs = truth["metrics"].as_object().unwrap();
            assert_eq!(metrics.len(), theirs.len(), "{name}");
            for (counter, expected) in theirs {
                let (value, unit) = (&metrics[counter]["value"], &metrics[counter]["unit"]);
                let same = match (value, &expected[0]) {
                    (Json::Null, Json::Null) => true,
                    // Their reading of a metric without any value.
                    (Json::Null, Json::String(text)) => text == "None",
                    (Json::Null, Json::Number(zero)) => zero.as_f64() == Some(0.0),
                    (Json::Number(ours), Json::Number(theirs)) => {
                        ours.as_f64().map(f64::to_bits) == theirs.as_f64().map(f64::to_bits)
                    }
                    (ours, theirs) => ours == theirs,
                };
                assert!(
                    same,
                    "{name}: {counter}: {value} instead of {}",
                    expected[0]
                );
                // A unit may be unknown; it is never another one. A list of parts is a text.
                assert!(
                    unit.is_null() || *unit == expected[1] || counter.starts_with("breakdown:"),
                    "{name}: {counter}: {unit} instead of {}",
                    expected[1]
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 10_000, "{compared}");
}

#[test]
fn names_and_conditions_of_a_launch_are_shown() {
    let report = inspected("twenty_launches.ncu-rep");
    let launch = &report["launches"][0];
    assert_eq!(launch["kind"], "kernel");
    assert_eq!(launch["mangled"], "_Z13bsr_gemm_wmmaPKiS0_PK6__halfS3_Pfi");
    assert_eq!(launch["grid"], json!([64, 64, 1]));
    assert_eq!(launch["block"], json!([128, 1, 1]));
    assert_eq!(launch["clock_locked"], false);
    assert!(
        report["profiler_version"]
            .as_str()
            .unwrap()
            .starts_with("2025.3.1")
    );
    assert!(
        report["command_line"]
            .as_str()
            .unwrap()
            .contains("--clock-control none")
    );
    assert_eq!(
        inspected("graph_as_one.ncu-rep")["launches"][0]["kind"],
        "graph"
    );
}

#[test]
fn a_csv_page_holds_what_its_report_holds() {
    for name in REPORTS {
        let (csv, report) = (
            inspected(&format!("{name}.raw.csv")),
            inspected(&format!("{name}.ncu-rep")),
        );
        assert_eq!(csv["format"], "csv");
        let launches = |json: &Json| json["launches"].as_array().unwrap().clone();
        assert_eq!(launches(&csv).len(), launches(&report).len(), "{name}");
        let counter = "gpu__time_duration.sum";
        for (csv, report) in launches(&csv).iter().zip(&launches(&report)) {
            assert_eq!(csv["grid"], report["grid"]);
            assert_eq!(csv["block"], report["block"]);
            if report["metrics"][counter].is_object() {
                assert_eq!(csv["metrics"][counter]["unit"], "ns");
                assert_eq!(
                    csv["metrics"][counter]["value"].as_f64(),
                    report["metrics"][counter]["value"].as_f64()
                );
            }
        }
    }
}

#[test]
fn the_text_names_launches_metrics_and_units() {
    let report = data("twenty_launches.ncu-rep");
    let ran = inspect(
        report.to_str().unwrap(),
        &["--metric", "gpu__time_duration.sum"],
    )
    .exits(0);
    assert!(ran.out.starts_with("ncu-rep, 20 launches\n"), "{}", ran.out);
    assert_eq!(
        ran.out.matches("gpu__time_duration.sum").count(),
        21,
        "20 and the command line"
    );
    assert!(ran.out.contains("1.71 ms"), "{}", ran.out);
    assert!(!ran.out.contains("dram__bytes_write.avg"));
    for name in [
        "full_set.ncu-rep",
        "details_sections_and_rules.csv",
        "raw_two_processes.csv",
        "raw_scaled_units.csv",
    ] {
        inspect(data(name).to_str().unwrap(), &[])
            .exits(0)
            .says("launches");
    }
}

/// A raw page with so many kernels: the later, the longer, each launched twice. With a unit row of its own.
fn page_of(kernels: u32, unit: &str) -> String {
    let mut page = String::from(
        "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\
         \"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"gpu__time_duration.sum\",\
         \"launch__registers_per_thread\"\n",
    );
    page += &format!("{}\"{unit}\",\"register/thread\"\n", "\"\",".repeat(11));
    for launch in 0..2 * kernels {
        let kernel = launch % kernels;
        let name = format!("kernel_{kernel}<{}>(int)", "very_long, ".repeat(40));
        let time = 1000 * (kernel + 1) + launch / kernels;
        page += &format!(
            "\"{launch}\",\"1\",\"p\",\"h\",\"{name}\",\"1\",\"7\",\"(32, 1, 1)\",\"(8, 1, 1)\",\
             \"0\",\"9.0\",\"{time}\",\"40\"\n"
        );
    }
    page
}

#[test]
fn the_overview_of_any_file_fits_a_screen() {
    let project = Project::empty();
    let mut files: Vec<String> = Vec::new();
    for kernels in [1, 2, 3, 8, 9, 17, 60] {
        let name = format!("{kernels}.csv");
        project.write(&name, page_of(kernels, "nsecond"));
        files.push(name);
    }
    for entry in fs::read_dir(data("")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        if name.ends_with(".ncu-rep") || name.ends_with(".raw.csv") {
            files.push(name);
        }
    }
    assert!(files.len() > 15);
    for file in &files {
        let ran = project.run(&["inspect", file]).exits(0);
        assert!(ran.out.lines().count() <= 40, "{file}:\n{}", ran.out);
        for line in ran.out.lines() {
            assert!(line.chars().count() <= 100, "{file}: {line}");
            assert!(!line.trim().is_empty(), "{file}:\n{}", ran.out);
        }
        assert!(
            ran.out.contains("metrics a launch: --metric TEXT"),
            "{}",
            ran.out
        );
        let more = file == "17.csv" || file == "60.csv";
        assert_eq!(
            ran.out.contains(" more kernels: --all"),
            more,
            "{}",
            ran.out
        );
    }
}

#[test]
fn the_overview_has_the_kernels_by_time_and_the_metrics_that_say_most() {
    let project = Project::empty();
    project.write("60.csv", page_of(60, "nsecond"));
    let ran = project.run(&["inspect", "60.csv"]).exits(0);
    // 2 x (1 + ... + 60) us, and 60 times 1 ns.
    let expected = "60.00 us, 3.3 % of the time, 2 launches: kernel_59<very_long, very_long";
    assert_eq!(&ran.out.lines().nth(1).unwrap()[..expected.len()], expected);
    let expected = "    grid 8×1×1   block 32×1×1   registers 40 register/thread";
    assert!(
        ran.out.lines().nth(2).unwrap().starts_with(expected),
        "{}",
        ran.out
    );
    assert!(
        ran.out.contains("\n44 more kernels: --all\n"),
        "{}",
        ran.out
    );
    let all = project.run(&["inspect", "60.csv", "--all"]).exits(0);
    assert_eq!(all.out.matches("gpu__time_duration.sum").count(), 120);
    assert!(all.out.contains(&"very_long, ".repeat(40)));
    // Times of which the unit is not known have no sum: the order is that of the file.
    project.write("unknown.csv", page_of(60, "parsec"));
    let ran = project.run(&["inspect", "unknown.csv"]).exits(0);
    let first = ran.out.lines().nth(1).unwrap();
    assert!(
        first.starts_with("1000.50 (unit unknown), 2 launches: kernel_0<"),
        "{first}"
    );

    let ran = inspect(data("full_set.ncu-rep").to_str().unwrap(), &[]).exits(0);
    for line in [
        "1.71 ms: bsr_gemm_wmma(const int *, const int *, const __half *, const __half *, float *, int)",
        "    grid             64×64×1",
        "    block            128×1×1",
        "    sm_throughput    14.66 %",
        "    tensor_core      6.17 %",
        "    dram_bw          8.82 %",
        "    l2_throughput    13.58 %",
        "    warps_active     12.29 %",
        "    registers        230 register/thread",
        "    shared memory    16384 byte/block",
        "    blocks an SM     2 (limit: registers)",
        "    longest wait     long_scoreboard, 8.65 cycles an instruction",
        "    bank_conflicts   176859367",
        "2243 metrics a launch: --metric TEXT lists those with TEXT in their names, --all lists all",
    ] {
        assert!(
            ran.out.lines().any(|one| one == line),
            "{line}\n{}",
            ran.out
        );
    }
    // A details page names them by label.
    inspect(
        data("details_sections_and_rules.csv").to_str().unwrap(),
        &[],
    )
    .exits(0)
    .says("37.38 us, 75.3 % of the time, 3 launches: void k2<float, 8>(T1 *, int)")
    .says("warps_active     88.79 % (88.75 % to 88.93 %)");
}

#[test]
fn a_truncated_report_is_refused_with_the_offset() {
    let whole = fs::read(data("four_metrics.ncu-rep")).unwrap();
    let project = Project::empty();
    for part in 1..16 {
        project.write("cut.ncu-rep", &whole[..whole.len() * part / 16]);
        let ran = project
            .run(&["inspect", "cut.ncu-rep"])
            .exits(5)
            .says("cut.ncu-rep: byte ");
        assert_eq!(ran.out, "");
    }
}

#[test]
fn a_truncated_csv_page_is_refused_with_the_line() {
    let whole = fs::read_to_string(data("twenty_launches.raw.csv")).unwrap();
    let project = Project::empty();
    // In the middle of a quoted cell.
    project.write("cut.csv", &whole[..whole.rfind("\",\"").unwrap() + 4]);
    project
        .run(&["inspect", "cut.csv"])
        .exits(5)
        .says("cut.csv: line ");
}

#[test]
fn a_foreign_file_is_refused_with_what_it_is() {
    let project = Project::empty();
    for (name, content, words) in [
        ("empty", &b""[..], "an empty file"),
        ("program", b"\x7fELF\x02\x01\x01", "an ELF file"),
        ("archive", b"PK\x03\x04", "a zip archive"),
        ("systems", b"SQLite format 3\0", "an SQLite database"),
        ("text", b"to be or not to be\n", "to be or not to be"),
        ("noise", b"\0\x01\x02\xff\xfe", "5 bytes"),
        ("other.nsys-rep", b"\0\x01\x02\xff\xfe", "Nsight Systems"),
    ] {
        project.write(name, content);
        project
            .run(&["inspect", name])
            .exits(5)
            .says(words)
            .says(name);
    }
    inspect(data("no_kernels_profiled.txt").to_str().unwrap(), &[])
        .exits(5)
        .says("no kernels were profiled");
}

#[test]
fn a_file_that_is_missing_or_cannot_be_opened_is_named() {
    let project = Project::empty();
    fs::create_dir(project.path("folder")).unwrap();
    for (path, exit) in [("nowhere.ncu-rep", 2), ("folder", 3)] {
        project.run(&["inspect", path]).exits(exit).says(path);
    }
    let project = Project::unlocked();
    project
        .run(&["import", "nowhere.ncu-rep", "--variant", "cp_async"])
        .exits(2)
        .says("nowhere.ncu-rep");
}

#[test]
fn a_hostile_kernel_name_does_not_reach_the_terminal() {
    let csv = fs::read_to_string(data("four_metrics.raw.csv")).unwrap();
    assert!(csv.contains("bsr_gemm_wmma"));
    let project = Project::empty();
    project.write(
        "evil.csv",
        csv.replace("bsr_gemm_wmma", "bsr\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}"),
    );
    for more in [&[][..], &["--all"], &["--color", "always"]] {
        let mut arguments = vec!["inspect", "evil.csv"];
        arguments.extend(more);
        let ran = project.run(&arguments).exits(0);
        for sign in ['\u{1b}', '\u{7}', '\u{202e}'] {
            assert!(!ran.out.contains(sign), "{sign:?}");
        }
    }
    // In JSON it is data, and escaped as such.
    let ran = project
        .run(&["inspect", "evil.csv", "--format", "json"])
        .exits(0);
    assert!(!ran.out.contains('\u{1b}'));
    // A file's own name reaches error messages.
    let name = "evil\u{1b}[2J.csv";
    project.write(name, "no csv\u{1b}[2J");
    let ran = project.run(&["inspect", name]).exits(5);
    assert!(!ran.err.contains('\u{1b}'), "{}", ran.err);
}

const CONFIG: &str = r#"
[profile]
clock_control = "none"

[metric.duration]
direction = "lower"
tolerance = { relative_percent = 3.0 }

[metric.dram_bw]
direction = "higher"
tolerance = { absolute = 2.0 }

[suite.recorded]
kernels = "regex:^bsr_gemm_"

[suite.recorded.variant.wmma]
run = ["./elsewhere"]
expect = ["bsr_gemm_wmma"]

[suite.recorded.variant.other]
run = ["./elsewhere"]
"#;

fn importing() -> Project {
    let project = Project::empty();
    project.write("config.toml", CONFIG);
    project
}

fn import(project: &Project, file: &str, more: &[&str]) -> Ran {
    let path = data(file);
    let mut arguments = vec![
        "import",
        path.to_str().unwrap(),
        "--variant",
        "recorded/wmma",
    ];
    arguments.extend(more);
    project.run(&arguments)
}

const PROFILES: &str = ".sparsek-gate/profiles";

#[test]
fn an_imported_report_can_be_locked_and_checked_against() {
    let project = importing();
    import(&project, "twenty_launches.ncu-rep", &[])
        .exits(0)
        .says("imported 20 launches on NVIDIA H200");
    let profile = project.json(&format!("{PROFILES}/recorded/wmma/profile.json"));
    assert_eq!(profile["provenance"]["origin"], "imported");
    assert_eq!(profile["identity"]["clock_control"], "none");
    assert_eq!(
        profile["kernels"][0]["metrics"]["duration"]["samples"][0]
            .as_array()
            .unwrap()
            .len(),
        20
    );
    let lock = |more: &[&str]| {
        let mut arguments = vec![
            "baseline", "--lock", "--reason", "theirs", "--who", "w", "wmma",
        ];
        arguments.extend(more);
        project.run(&arguments)
    };
    lock(&[]).exits(6).says("--accept-imported");
    lock(&["--accept-imported", "-v"])
        .exits(0)
        .says("duration: – → ");
    // Its values are compared; one process does not show how much processes differ.
    project
        .run(&["check", "--from", PROFILES, "wmma"])
        .exits(6)
        .says("+0.00 %")
        .says("the spread between processes is not known")
        .says("imported");
    project
        .run(&["baseline", "--verify", "--captures", PROFILES, "wmma"])
        .exits(0);
}

#[test]
fn several_imported_reports_are_processes_whose_spread_is_known() {
    let project = importing();
    let capture = |number: u32| {
        let path = format!("ci/recordings/h200/bsr_gemm/cp_async/capture-{number}.ncu-rep");
        repository().join(path).to_str().unwrap().to_owned()
    };
    let import = |numbers: &[u32]| {
        let files: Vec<String> = numbers.iter().map(|number| capture(*number)).collect();
        let files = files.iter().map(String::as_str);
        let end = ["--variant", "recorded/other"];
        project.run(
            &["import"]
                .into_iter()
                .chain(files)
                .chain(end)
                .collect::<Vec<_>>(),
        )
    };
    import(&[1, 2, 1]).exits(2).says("a copy of another file");
    import(&[1, 2, 3, 4])
        .exits(0)
        .says("imported 80 launches on NVIDIA H200");
    let lock = [
        "baseline",
        "--lock",
        "--reason",
        "x",
        "--accept-imported",
        "other",
    ];
    project.run(&lock).exits(0);
    project
        .run(&["baseline", "--verify", "--captures", PROFILES, "other"])
        .exits(0);
    project
        .run(&["check", "--from", PROFILES, "other"])
        .exits(0)
        .says("duration +0.00 % ±");
    import(&[1]).exits(0);
    project.run(&lock).exits(0);
    project
        .run(&["check", "--from", PROFILES, "other"])
        .exits(6)
        .says("more imported reports");
}

#[test]
fn an_import_takes_the_kernels_that_the_variant_selects() {
    let project = importing();
    let names = |project: &Project| -> Vec<String> {
        let profile = project.json(&format!("{PROFILES}/recorded/other/profile.json"));
        let kernels = profile["kernels"].as_array().unwrap().iter();
        kernels
            .map(|kernel| kernel["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let file = data("two_kernels_three_times.ncu-rep");
    let arguments = [
        "import",
        file.to_str().unwrap(),
        "--variant",
        "recorded/other",
    ];
    let filter = |filter: &str| {
        project.write(
            "config.toml",
            CONFIG.replace("regex:^bsr_gemm_", filter).replace(
                "[metric.dram_bw]\ndirection = \"higher\"\ntolerance = { absolute = 2.0 }\n",
                "",
            ),
        );
        project.run(&arguments)
    };
    filter("regex:.").exits(0);
    let both = names(&project);
    assert_eq!(both.len(), 2);
    filter(&both[1]).exits(0);
    assert_eq!(names(&project), both[1..]);
    let lock = [
        "baseline",
        "--lock",
        "--reason",
        "x",
        "--accept-imported",
        "other",
    ];
    project.run(&lock).exits(0);
    project
        .run(&["baseline", "--verify", "--captures", PROFILES, "other"])
        .exits(0);
    filter("nothing_of_it")
        .exits(5)
        .says("selects none of its kernels")
        .says(&both[0]);
}

#[test]
fn a_single_imported_launch_is_inconclusive() {
    let project = importing();
    import(&project, "four_metrics.ncu-rep", &[]).exits(0);
    project
        .run(&[
            "baseline",
            "--lock",
            "--reason",
            "x",
            "--who",
            "w",
            "--accept-imported",
            "wmma",
        ])
        .exits(0);
    project
        .run(&["check", "--from", PROFILES, "wmma"])
        .exits(6)
        .says("the spread between processes is not known");
}

#[test]
fn a_csv_says_less_than_a_report_and_what_it_lacks_must_be_stated() {
    let project = importing();
    import(&project, "twenty_launches.raw.csv", &[]).exits(0);
    project
        .run(&[
            "baseline",
            "--lock",
            "--reason",
            "x",
            "--who",
            "w",
            "--accept-imported",
            "wmma",
        ])
        .exits(0);
    // Two unknown conditions are not known to be the same.
    project
        .run(&["check", "--from", PROFILES, "wmma"])
        .exits(4)
        .says("clock control was unknown, is unknown");
    let stated = [
        "--clock-control",
        "none",
        "--cache-control",
        "all",
        "--replay-mode",
        "kernel",
        "--graph-profiling",
        "node",
    ];
    import(&project, "twenty_launches.raw.csv", &stated).exits(0);
    project
        .run(&[
            "baseline",
            "--lock",
            "--reason",
            "x",
            "--who",
            "w",
            "--accept-imported",
            "wmma",
        ])
        .exits(0);
    let ran = project.run(&["check", "--from", PROFILES, "wmma", "--format", "json"]);
    let mut denied = ran.exits(6).json().denied();
    denied.dedup();
    assert_eq!(denied, ["inconclusive"]);
    import(
        &project,
        "twenty_launches.raw.csv",
        &["--clock-control", "fast"],
    )
    .exits(2);
}

#[test]
fn what_the_report_holds_outranks_what_is_stated() {
    let project = importing();
    import(
        &project,
        "twenty_launches.ncu-rep",
        &["--clock-control", "base"],
    )
    .exits(0);
    let profile = project.json(&format!("{PROFILES}/recorded/wmma/profile.json"));
    assert_eq!(profile["identity"]["clock_control"], "none");
}

#[test]
fn a_recording_without_the_metrics_or_kernels_of_the_variant_is_told() {
    let project = importing();
    import(&project, "two_kernels_three_times.ncu-rep", &[])
        .exits(5)
        .says("selects none of its kernels: k1, k2");
    project.replace("config.toml", "kernels = \"regex:^bsr_gemm_\"\n", "");
    import(&project, "two_kernels_three_times.ncu-rep", &[])
        .exits(5)
        .says("kernel-missing")
        .says("not-measured");
    project
        .run(&[
            "import",
            data("twenty_launches.ncu-rep").to_str().unwrap(),
            "--variant",
            "nobody",
        ])
        .exits(2)
        .says("no variant or suite is called `nobody`");
    project
        .run(&[
            "import",
            data("twenty_launches.ncu-rep").to_str().unwrap(),
            "--variant",
            "recorded",
        ])
        .exits(2)
        .says("names several variants");
    project.write("foreign", "x");
    project
        .run(&["import", "foreign", "--variant", "wmma"])
        .exits(5)
        .says("foreign");
}

#[test]
fn what_ncu_says_around_its_page_is_judged_as_in_a_run_of_this_tool() {
    let page = fs::read_to_string(data("twenty_launches.raw.csv")).unwrap();
    let project = importing();
    for (before, words) in [
        ("==ERROR== LaunchFailed", "LaunchFailed"),
        (
            "==ERROR== The application returned an error code (9).",
            "error code (9)",
        ),
        (
            "==WARNING== The application returned an error code (9).",
            "error code (9)",
        ),
        (
            "==ERROR== ERR_NVGPUCTRPERM - no permission",
            "may not read the GPU's counters",
        ),
    ] {
        project.write("page.csv", format!("{before}\n{page}"));
        let arguments = ["import", "page.csv", "--variant", "recorded/wmma"];
        project
            .run(&arguments)
            .exits(5)
            .says(words)
            .says("page.csv");
        assert!(!project.path(PROFILES).exists());
        project.run(&["inspect", "page.csv"]).exits(0).says(before);
    }
    // What ncu always says, and what the program does.
    let around =
        format!("==WARNING== Note: Running with unmodified GPU clocks.\n==E== 7 (9)\n{page}");
    project.write("page.csv", around);
    project
        .run(&["import", "page.csv", "--variant", "recorded/wmma"])
        .exits(0);
}

#[test]
fn a_page_that_lacks_launches_is_imported_with_a_warning() {
    let page = fs::read_to_string(data("twenty_launches.raw.csv")).unwrap();
    let lines = page.lines().filter(|line| !line.starts_with("\"7\","));
    let project = importing();
    project.write("part.csv", lines.collect::<Vec<_>>().join("\n"));
    project
        .run(&["import", "part.csv", "--variant", "recorded/wmma"])
        .exits(0)
        .says("imported 19 launches")
        .says("warning capture-unreadable")
        .says("launch 7 is missing before launch 8");
    project
        .run(&["inspect", "part.csv"])
        .exits(0)
        .says("launch 7 is missing");
}

#[test]
fn a_page_that_does_not_name_the_gpu_is_answered_with_the_page_that_does() {
    let ran = import(&importing(), "details_with_program_output.csv", &[]);
    let ran = ran
        .exits(5)
        .says("a details page does not")
        .says("--page raw");
    assert!(!ran.err.contains("device__attribute"), "{}", ran.err);
}

#[test]
fn a_recording_in_the_folder_it_is_imported_to_is_not_lost() {
    let project = importing();
    let place = format!("{PROFILES}/recorded/wmma/mine.ncu-rep");
    project.write(&place, fs::read(data("four_metrics.ncu-rep")).unwrap());
    project
        .run(&["import", &place, "--variant", "recorded/wmma"])
        .exits(0);
    let imported = format!("{PROFILES}/recorded/wmma/imported.ncu-rep");
    project
        .run(&["import", &imported, "--variant", "recorded/wmma"])
        .exits(0);
    assert!(project.path(&imported).exists());
}

#[test]
fn names_of_files_command_neither_a_terminal_nor_a_log() {
    let project = Project::empty();
    let name = "x\n::error::a\x1b[31m ##[error]b.csv";
    fs::copy(data("full_set.raw.csv"), project.path(name)).unwrap();
    let missing = format!("no {name}");
    let calls: [&[&str]; 7] = [
        &["inspect", name],
        &["inspect", &missing],
        &["inspect", name, name],
        &["compare", name, name],
        &["report", name],
        &["strip", name, "copy"],
        &[name],
    ];
    for arguments in calls {
        let ran = project.run(arguments);
        for text in [&ran.out, &ran.err] {
            let commands = text.lines().any(|line| line.trim_start().starts_with("::"));
            let unsafe_text = commands || text.contains("##[") || text.contains('\x1b');
            assert!(!unsafe_text, "{arguments:?}: {text}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_is_an_error_and_nothing_waits_for_it() {
    let project = Project::empty();
    let made = Command::new("mkfifo").arg(project.path("pipe")).status();
    assert!(made.unwrap().success());
    for arguments in [["inspect", "pipe"], ["inspect", "/dev/zero"]] {
        let ran = project.run(&arguments);
        assert!(ran.err.contains("not a regular file"), "{}", ran.err);
    }
}
