//! `inspect` and `import` on real captures, whole and damaged.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::common::{self, Project, Ran, repository};
use serde_json::{Value as Json, json};

fn data(name: &str) -> PathBuf {
    repository().join("tests/data/ncu").join(name)
}

fn inspect(name: &str, more: &str) -> Ran {
    let file = data(name);
    Project::empty().run(&format!("inspect {} {more}", file.display()))
}

fn inspected(name: &str) -> Json {
    inspect(name, "--format json").exits(0).json().0
}

#[test]
fn names_and_conditions_of_a_launch_are_shown() {
    let report = inspected("twenty_launches.ncu-rep");
    let launch = &report["launches"][0];
    assert_eq!(report["schema"], 1);
    assert_eq!(report["format"], "ncu-rep");
    assert_eq!(launch["kind"], "kernel");
    assert_eq!(launch["mangled"], "_Z13bsr_gemm_wmmaPKiS0_PK6__halfS3_Pfi");
    assert_eq!(launch["grid"], json!([64, 64, 1]));
    assert_eq!(launch["block"], json!([128, 1, 1]));
    assert_eq!(launch["clock_locked"], false);
    let text = |key: &str| report[key].as_str().unwrap();
    assert!(text("profiler_version").starts_with("2025.3.1"));
    assert!(text("command_line").contains("--clock-control none"));
    let duration = &launch["metrics"]["gpu__time_duration.sum"];
    assert_eq!(duration["unit"], "ns");
    // A page has the same by its own names.
    let page = inspected("twenty_launches.raw.csv");
    assert_eq!(page["format"], "csv");
    let of_page = &page["launches"][0];
    assert_eq!(of_page["grid"], launch["grid"]);
    let of_page = &of_page["metrics"]["gpu__time_duration.sum"]["value"];
    assert_eq!(of_page.as_f64(), duration["value"].as_f64());
}

#[test]
fn the_text_names_launches_metrics_and_units() {
    let one = "--metric gpu__time_duration.sum";
    let ran = inspect("twenty_launches.ncu-rep", one).ends(0, "1.71 ms");
    assert!(ran.out.starts_with("ncu-rep, 20 launches\n"), "{}", ran.out);
    // 20 and the command line.
    assert_eq!(ran.out.matches("gpu__time_duration.sum").count(), 21);
    assert!(!ran.out.contains("dram__bytes_write.avg"));
    let mistyped = "--metric gpu_time_duration";
    inspect("twenty_launches.ncu-rep", mistyped).ends(2, "did you mean `gpu__time_duration`?");
    for name in [
        "full_set.ncu-rep", "details_sections_and_rules.csv", "raw_scaled_units.csv",
    ] {
        inspect(name, "").ends(0, "launches");
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
        common::contains(&ran.out, &["metrics a launch: --metric TEXT"]);
        let more = file == "17.csv" || file == "60.csv";
        assert_eq!(ran.out.contains(" more kernels: --all"), more, "{file}");
    }
}

#[test]
fn the_overview_has_the_kernels_by_time_and_the_metrics_that_say_most() {
    let project = Project::empty();
    project.write("60.csv", page_of(60, "nsecond"));
    let ran = project.run("inspect 60.csv").exits(0);
    // 2 x (1 + ... + 60) us, and 60 times 1 ns.
    let expected = "60.00 us, 3.3 % of the time, 2 launches: kernel_59<very_long, very_long";
    assert_eq!(&ran.out.lines().nth(1).unwrap()[..expected.len()], expected);
    let expected = "    grid 8×1×1   block 32×1×1   registers 40 register/thread";
    assert_eq!(&ran.out.lines().nth(2).unwrap()[..expected.len()], expected);
    common::contains(&ran.out, &["\n44 more kernels: --all\n"]);
    let all = project.run("inspect 60.csv --all").exits(0);
    assert_eq!(all.out.matches("gpu__time_duration.sum").count(), 120);
    assert!(all.out.contains(&"very_long, ".repeat(40)));
    // Times of which the unit is not known have no sum: the order is that of the file.
    project.write("unknown.csv", page_of(60, "parsec"));
    let ran = project.run("inspect unknown.csv").exits(0);
    ran.says("\n1000.50 (unit unknown), 2 launches: kernel_0<");

    let ran = inspect("full_set.ncu-rep", "").exits(0);
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
        let is_there = ran.out.lines().any(|one| one == line);
        assert!(is_there, "{line}\n{}", ran.out);
    }
    // A details page names them by label.
    let words = "37.38 us, 75.3 % of the time, 3 launches: void k2<float, 8>(T1 *, int)";
    let ran = inspect("details_sections_and_rules.csv", "").ends(0, words);
    ran.says("warps_active     88.79 % (88.75 % to 88.93 %)");
}

#[test]
fn a_file_that_is_foreign_or_cut_is_refused_with_what_it_is_and_where() {
    let project = Project::empty();
    let report = fs::read(data("four_metrics.ncu-rep")).unwrap();
    let page = fs::read(data("twenty_launches.raw.csv")).unwrap();
    let half = &report[..report.len() / 2];
    for (name, content, words) in [
        ("program", &b"\x7fELF\x02\x01\x01"[..], "an ELF file"),
        ("text", b"to be or not to be\n", "a text of 19 bytes"),
        ("other.nsys-rep", b"\0\x01\x02\xff\xfe", "Nsight Systems"),
        ("cut.ncu-rep", half, "cut.ncu-rep: byte "),
        // In the middle of a quoted cell.
        ("cut.csv", &page[..page.len() - 3], "cut.csv: line "),
    ] {
        project.write(name, content);
        let ran = project.run(&["inspect", name]).exits(2);
        assert_eq!(ran.says(words).says(name).out, "");
    }
}

#[test]
fn a_file_that_is_missing_or_cannot_be_opened_is_named() {
    let project = Project::empty();
    fs::create_dir(project.path("folder")).unwrap();
    for path in ["nowhere.ncu-rep", "folder"] {
        project.run(&["inspect", path]).ends(2, path);
    }
    let ran = importing().run("import nowhere.ncu-rep --variant wmma");
    ran.ends(2, "nowhere.ncu-rep");
}

const CONFIG: &str = r#"
[profile]
clock_control = "none"

[metric.duration]
direction = "lower"
tolerance = '3 %'

[metric.dram_bw]
direction = "higher"
tolerance = '2'

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

fn import(project: &Project, file: &str, more: &str) -> Ran {
    let file = data(file);
    let import = format!("import {} --variant recorded/wmma {more}", file.display());
    project.run(&import)
}

const PROFILES: &str = ".sparsek-gate/profiles";

/// Locks what was imported, knowingly.
fn lock(project: &Project, variant: &str) -> Ran {
    let lock = "baseline --lock --reason theirs --who w --accept-imported -v";
    project.run(&format!("{lock} {variant}"))
}

/// A check of what was imported.
fn check(project: &Project, variant: &str) -> Ran {
    project.run(&format!("check --from {PROFILES} {variant}"))
}

fn verify(project: &Project, variant: &str) -> Ran {
    project.run(&format!(
        "baseline --verify --captures {PROFILES} {variant}"
    ))
}

#[test]
fn an_imported_report_can_be_locked_and_checked_against() {
    let project = importing();
    let ran = import(&project, "twenty_launches.ncu-rep", "");
    ran.ends(0, "imported 20 launches of bsr_gemm_wmma on");
    let profile = project.json(&format!("{PROFILES}/recorded/wmma/profile.json"));
    assert_eq!(profile["provenance"]["origin"], "imported");
    // As `ncu --version` is read, which pins are compared with.
    assert_eq!(profile["provenance"]["profiler"], "2025.3.1.0");
    assert_eq!(profile["identity"]["clock_control"], "none");
    let samples = &profile["kernels"][0]["metrics"]["duration"]["samples"][0];
    assert_eq!(samples.as_array().unwrap().len(), 20);
    let ran = project.run("baseline --lock --reason theirs wmma");
    ran.ends(6, "--accept-imported");
    lock(&project, "wmma").ends(0, "duration: – → ");
    // Its values are compared; one process does not show how much processes differ.
    check(&project, "wmma")
        .ends(6, "+0.00 %")
        .says("how far its values are apart is not known")
        .says("imported");
    verify(&project, "wmma").exits(0);
}

#[test]
fn compiled_code_alone_is_no_recording_and_shows_that_a_report_is_of_another_variant() {
    let project = importing();
    let missing = "contains no profile of it: no recorded/wmma/profile.json";
    fs::create_dir_all(project.path(PROFILES)).unwrap();
    check(&project, "wmma").ends(6, missing);
    let code = common::handed_over().join("h200/bsr_gemm/cp_async/static.json");
    let code = fs::read_to_string(code).unwrap();
    let code = code.replace("\"bsr_gemm/cp_async\"", "\"recorded/wmma\"");
    project.write(&format!("{PROFILES}/recorded/wmma/static.json"), code);
    // It is also of other sources.
    let ran = check(&project, "wmma").ends(4, missing);
    ran.says("it has compiled code alone: that is judged by `check --static`, without `--from`");
    import(&project, "twenty_launches.ncu-rep", "")
        .ends(2, "the files have launches of bsr_gemm_wmma")
        .says("the compiled code of recorded/wmma has no kernel of that name");
}

#[test]
fn several_imported_reports_are_processes_whose_spread_is_known() {
    let project = importing();
    let recorded = common::handed_over();
    // By folder and number.
    let import = |files: &[(&str, u32)]| {
        let path = |(folder, number): &(&str, u32)| {
            format!("{}/{folder}/capture-{number}.ncu-rep", recorded.display())
        };
        let files: Vec<String> = files.iter().map(path).collect();
        project.run(&format!(
            "import {} --variant recorded/other",
            files.join(" ")
        ))
    };
    let [one, two, three, four] = [1, 2, 3, 4].map(|number| ("h200/bsr_gemm/cp_async", number));
    import(&[one, two, one]).ends(2, "are of the same process");
    import(&[one, ("h200-worse/bsr_gemm/cp_async", 2)])
        .ends(2, "capture-2.ncu-rep: it is not of the program of")
        .says("bsr_gemm_cp_async has 65536 bytes of dynamic shared memory, there 75776");
    import(&[one, ("h200/bsr_gemm/baseline", 1)])
        .ends(2, "baseline/capture-1.ncu-rep: it is not of the program of")
        .says("it has bsr_gemm_baseline, and no launch of bsr_gemm_cp_async; leave it out");
    let ran =
        import(&[one, two, three, four]).ends(0, "imported 80 launches of bsr_gemm_cp_async on");
    assert!(!ran.out.contains("not-measured"), "{}", ran.out);
    lock(&project, "other").exits(0);
    verify(&project, "other").exits(0);
    check(&project, "other").ends(0, "same: +0.00 % ±");
    // What one process cannot show is not to be had by more of this tool's own.
    let fewer = "1 process was measured in the timing phase, but 4 were requested";
    import(&[one]).ends(0, fewer);
    lock(&project, "other").ends(0, fewer);
    check(&project, "other").ends(6, "more imported reports");
}

#[test]
fn an_import_takes_the_kernels_that_the_variant_selects() {
    let project = importing();
    let names = |project: &Project| -> Vec<String> {
        let profile = project.json(&format!("{PROFILES}/recorded/other/profile.json"));
        let kernels = profile["kernels"].as_array().unwrap().iter();
        let names = kernels.map(|kernel| kernel["name"].as_str().unwrap().to_owned());
        names.collect()
    };
    let file = data("two_kernels_three_times.ncu-rep");
    let unmeasured = "[metric.dram_bw]\ndirection = \"higher\"\ntolerance = '2'\n";
    let filter = |filter: &str| {
        let config = CONFIG.replace("regex:^bsr_gemm_", filter);
        project.write("config.toml", config.replace(unmeasured, ""));
        project.run(&format!(
            "import {} --variant recorded/other",
            file.display()
        ))
    };
    filter("regex:.").exits(0);
    let both = names(&project);
    assert_eq!(both.len(), 2);
    filter(&both[1]).exits(0);
    assert_eq!(names(&project), both[1..]);
    lock(&project, "other").exits(0);
    verify(&project, "other").exits(0);
    filter("nothing_of_it")
        .ends(2, "selects none of its kernels")
        .says(&both[0]);
}

#[test]
fn a_report_of_a_gpu_of_another_target_is_answered_with_the_key_of_the_target() {
    let project = importing();
    let target = "[toolchain]\narch = \"sm_80\"\n";
    project.write("config.toml", format!("{target}{CONFIG}"));
    import(&project, "twenty_launches.ncu-rep", "")
        .ends(0, "(its target: `arch = \"sm_90a\"`)")
        .says("next: state the GPU's target in `toolchain.arch`, or measure on a GPU that runs");
}

#[test]
fn a_csv_says_less_than_a_report_and_what_it_lacks_must_be_stated() {
    let project = importing();
    import(&project, "twenty_launches.raw.csv", "").exits(0);
    // Two unknown conditions are not known to be the same.
    lock(&project, "wmma")
        .ends(6, "does not say how ncu measured")
        .says("--clock-control --cache-control --replay-mode --graph-profiling");
    let stated =
        "--clock-control none --cache-control all --replay-mode kernel --graph-profiling node";
    import(&project, "twenty_launches.raw.csv", stated).exits(0);
    lock(&project, "wmma").exits(0);
    let report = check(&project, "wmma --format json").exits(6).json();
    assert_eq!(report.denied_besides(&["inconclusive"]), [""; 0]);
    // The page of a report is no process of its own.
    let page = data("twenty_launches.raw.csv");
    import(&project, "twenty_launches.ncu-rep", page.to_str().unwrap())
        .ends(2, "are of the same process");
    let text = fs::read_to_string(&page).unwrap();
    let again = text.replace(",\"535\",", ",\"1\",");
    project.write("two.csv", text + &again);
    project.run("import two.csv --variant wmma").ends(
        2,
        "it has launches of several processes: make one file of each",
    );
    // A report says it itself.
    let state = |clock| import(&project, "twenty_launches.ncu-rep", clock);
    state("--clock-control none").exits(0);
    state("--clock-control base").ends(2, "others than the stated ones");
}

#[test]
fn a_recording_without_the_metrics_or_kernels_of_the_variant_is_told() {
    let project = importing();
    let file = "two_kernels_three_times.ncu-rep";
    import(&project, file, "").ends(2, "selects none of its kernels: k1, k2");
    project.configure("kernels = \"regex:^bsr_gemm_\"\n", "");
    let ran = import(&project, file, "").ends(5, "kernel-missing");
    ran.says("not-measured");
    let report = data("twenty_launches.ncu-rep");
    for (name, words) in [
        ("nobody", "no variant or suite is called `nobody`"),
        ("recorded", "names several variants"),
    ] {
        let ran = project.run(&["import", report.to_str().unwrap(), "--variant", name]);
        ran.ends(2, words);
    }
    project.configure(
        "variant.other]",
        "variant.other]\nexpect = [\"bsr_gemm_other\"]",
    );
    project
        .run(&["import", report.to_str().unwrap(), "--variant", "other"])
        .ends(2, "name the variant that has them: --variant recorded/wmma");
    project.write("foreign", "x");
    let ran = project.run("import foreign --variant wmma");
    ran.ends(2, "foreign");
}

#[test]
fn what_ncu_says_around_its_page_is_judged_as_in_a_run_of_this_tool() {
    let page = fs::read_to_string(data("twenty_launches.raw.csv")).unwrap();
    let project = importing();
    let import = || project.run("import page.csv --variant recorded/wmma");
    let messages = "
==ERROR== LaunchFailed | LaunchFailed
==ERROR== The application returned an error code (9). | error code (9)
==WARNING== The application returned an error code (9). | error code (9)
==ERROR== ERR_NVGPUCTRPERM - no permission | may not read the GPU's counters";
    for [before, words] in &common::rows(messages) {
        project.write("page.csv", format!("{before}\n{page}"));
        import().ends(2, words).says("page.csv");
        assert!(!project.path(PROFILES).exists());
        project.run("inspect page.csv").ends(0, before);
    }
    // What ncu always says, and what the program does.
    let around =
        format!("==WARNING== Note: Running with unmodified GPU clocks.\n==E== 7 (9)\n{page}");
    project.write("page.csv", around);
    import().exits(0);
}

#[test]
fn a_page_that_lacks_launches_is_imported_with_a_warning() {
    let page = fs::read_to_string(data("twenty_launches.raw.csv")).unwrap();
    let lines = page.lines().filter(|line| !line.starts_with("\"7\","));
    let project = importing();
    project.write("part.csv", lines.collect::<Vec<_>>().join("\n"));
    project
        .run("import part.csv --variant recorded/wmma")
        .ends(0, "imported 19 launches")
        .says("warning capture-unreadable")
        .says("launch 7 is missing before launch 8");
    let ran = project.run("inspect part.csv");
    ran.ends(0, "launch 7 is missing");
}

#[test]
fn a_duration_that_is_none_is_named_with_its_place() {
    let page = fs::read_to_string(data("twenty_launches.raw.csv")).unwrap();
    for [from, to, words] in &common::rows(
        r#"
"1,712,896" | "-5" | `gpu__time_duration.sum` is -5 in launch 2 of process 1
"1,712,896" | "0" | `gpu__time_duration.sum` is 0 in launch 2 of process 1
"ns" | "cycle" | the unit of `gpu__time_duration.sum` is `cycle`, which is no time
"#,
    ) {
        let project = importing();
        assert!(page.contains(from), "{from}");
        project.write("page.csv", page.replace(from, to));
        let import = project.run("import page.csv --variant recorded/wmma");
        import
            .ends(6, words)
            .says("import the report itself, or its page as ncu printed it");
    }
}

#[test]
fn a_page_that_does_not_name_the_gpu_is_answered_with_the_page_that_does() {
    let ran = import(&importing(), "details_with_program_output.csv", "");
    let ran = ran.ends(2, "a details page does not").says("--page raw");
    assert!(!ran.err.contains("device__attribute"), "{}", ran.err);
}

#[test]
fn a_recording_in_the_folder_it_is_imported_to_is_not_lost() {
    let project = importing();
    let place = format!("{PROFILES}/recorded/wmma/mine.ncu-rep");
    project.write(&place, fs::read(data("four_metrics.ncu-rep")).unwrap());
    let imported = format!("{PROFILES}/recorded/wmma/imported.ncu-rep");
    for file in [&place, &imported] {
        let import = format!("import {file} --variant recorded/wmma");
        project.run(&import).exits(0);
    }
    assert!(project.path(&imported).exists());
}

/// Runs the tool as nobody, whose the project becomes; `None` where root alone can do that.
fn by_nobody(project: &Project) -> Option<impl Fn(&[&str]) -> Ran> {
    let mut owner = Command::new("chown");
    let owned = owner.args(["-R", "65534:65534"]).arg(project.path(""));
    if !owned.output().unwrap().status.success() || !common::are_here(&["setpriv"]) {
        common::aloud("SKIPPED: another user, which only root can become");
        return None;
    }
    // The folder of temporary files may be closed to others.
    let folder = project.path("");
    let above = folder.ancestors().nth(1).unwrap();
    let mut mode = fs::metadata(above).unwrap().permissions();
    mode.set_mode(mode.mode() | 0o011);
    fs::set_permissions(above, mode).unwrap();
    let gate = project.gate();
    Some(move |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(gate.get_program()).args(arguments);
        command.current_dir(&folder);
        for (name, value) in gate.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("TMPDIR", &folder);
        Ran::by(&mut command)
    })
}

#[test]
fn what_this_user_may_not_read_is_named_with_the_right_that_it_lacks() {
    let project = Project::shipped();
    let Some(run) = by_nobody(&project) else {
        return;
    };
    let recording = "recorded/bsr_gemm/cp_async";
    for (path, rights) in [
        ("baselines/nvidia-h200", "a+rx"),
        ("baselines", "a+rx"),
        (recording, "a+rx"),
        (&format!("{recording}/counting.csv"), "a+r"),
        (&format!("{recording}/capture-1.result.json"), "a+r"),
        ("kernels/bsr_gemm/cp_async.cu", "a+r"),
        ("kernels/bsr_gemm/problem.cuh", "a+r"),
        ("kernels/bsr_gemm", "a+rx"),
    ] {
        let whole = project.path(path);
        let before = fs::metadata(&whole).unwrap().permissions();
        fs::set_permissions(&whole, fs::Permissions::from_mode(0o000)).unwrap();
        let ran = run(&["check", "--from", "recorded", "cp_async"]);
        let next = format!("next: let this user read it: chmod {rights} ");
        common::contains(&format!("{}{}", ran.out, ran.err), &[&next, path]);
        fs::set_permissions(&whole, before).unwrap();
    }
    run(&["check", "--from", "recorded", "cp_async"]).exits(0);
}

#[test]
fn a_work_folder_of_another_user_is_answered_with_whose_it_is() {
    let project = importing();
    fs::create_dir(project.path(".sparsek-gate")).unwrap();
    let file = data("twenty_launches.ncu-rep");
    fs::copy(file, project.path("x.ncu-rep")).unwrap();
    let Some(run) = by_nobody(&project) else {
        return;
    };
    let root = Some(0);
    std::os::unix::fs::chown(project.path(".sparsek-gate"), root, root).unwrap();
    run(&["import", "x.ncu-rep", "--variant", "recorded/wmma"])
        .ends(3, "Permission denied")
        .says(".sparsek-gate back to this user, as after a run with sudo: sudo chown -R ");
    run(&["doctor"]).says(".sparsek-gate cannot be written: ");
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
