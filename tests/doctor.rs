//! `sparsek-gate doctor`, on machines that stand-ins make up: whole ones, and each with one thing
//! wrong. It names that thing and what to do about it, and changes nothing.

use std::fs;
use std::path::Path;

use crate::common::stand_in::{Machine, UUID, libraries, library};
use crate::common::{self, Project, Ran, aloud};
use serde_json::Value as Json;

/// The checks of a run, by name.
struct Checks(Vec<Json>);

impl Checks {
    #[track_caller]
    fn of(ran: &Ran) -> Checks {
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
        let json = ran.json().0;
        assert_eq!(json["schema"], 1);
        assert_eq!(json["exit_code"], ran.code);
        Checks(json["checks"].as_array().unwrap().clone())
    }

    #[track_caller]
    fn get(&self, what: &str) -> &Json {
        let found: Vec<&Json> = self.0.iter().filter(|it| it["what"] == what).collect();
        assert_eq!(found.len(), 1, "{what}: {:#?}", self.0);
        found[0]
    }

    /// The check is in this state and says so, in these words (`; ` is between them), and has a next step
    /// where it is not as it should be.
    #[track_caller]
    fn says(&self, what: &str, state: &str, words: &str) {
        let check = self.get(what);
        assert_eq!(check["state"], state, "{check:#}");
        let next = check["next"].as_str().unwrap_or_default();
        let is_odd = matches!(state, "warn" | "fail");
        assert_eq!(!next.is_empty(), is_odd, "{check:#}");
        let text = format!("{} {next}", check["detail"].as_str().unwrap());
        common::contains(&text, &words.split("; ").collect::<Vec<_>>());
    }

    /// What is in this state.
    fn in_state(&self, state: &str) -> Vec<&str> {
        let of_state = self.0.iter().filter(|it| it["state"] == state);
        of_state.map(|it| it["what"].as_str().unwrap()).collect()
    }
}

#[track_caller]
fn examined(machine: &Machine, code: i32) -> Checks {
    let ran = machine.run("doctor --format json").exits(code);
    Checks::of(&ran)
}

/// A machine with one thing in its environment another: that check alone is not as it should be.
#[track_caller]
fn odd(name: &str, value: &str, what: &str, state: &str, words: &str) {
    let machine = Machine::new();
    let code = if state == "fail" { 3 } else { 0 };
    let checks = examined(&machine.with(name, value), code);
    checks.says(what, state, words);
    assert_eq!(checks.in_state(state), [what]);
    let other = if state == "fail" { "warn" } else { "fail" };
    assert_eq!(checks.in_state(other), Vec::<&str>::new());
}

#[test]
fn a_machine_that_is_as_pinned_is_all_green() {
    let machine = Machine::new();
    let checks = examined(&machine, 0);
    let all = checks.0.len();
    assert_eq!(checks.in_state("ok").len(), all, "{:#?}", checks.0);
    let rows = "
configuration | config.toml; 1 variant in 1 suite
nvcc | V13.0.88; as pinned (13.0)
host compiler | g++ (Debian 12.2.0-14) 12.2.0
ncu | 2025.3.1.0; as pinned (>=2025.3)
compute-sanitizer | 2025.3.1.0
driver | 580.159.04; as pinned (>=580); CUDA 13.0
GPU | NVIDIA H200; 140 GiB; GPU-00112233-4455-6677-8899-aabbccddeeff
target | compute capability 9.0; as pinned (sm_90a)
counters | gpu__time_duration.sum;  ns
clock control | not needed
MIG | off
ECC | on, no uncorrected error
temperature | 31 °C
other processes | none
GPU lock | free
";
    for [what, words] in &common::rows(rows) {
        checks.says(what, "ok", words);
    }
    let text = machine.run("doctor").exits(0).out;
    let words = [
        "everything that is configured works here",
        "\nok       nvcc   ",
    ];
    common::contains(&text, &words);
    assert!(!text.contains("next: "), "{text}");
}

#[test]
fn nothing_is_left_behind_and_no_clock_is_locked_where_nothing_asks_for_it() {
    let machine = Machine::new();
    examined(&machine, 0);
    let mut calls = machine.ncu_calls();
    calls.retain(|call| !call.starts_with("--version"));
    let asked = "--clock-control none; --metrics gpu__time_duration.sum; probe ";
    let asked: Vec<&str> = asked.split("; ").collect();
    calls.iter().for_each(|call| common::contains(call, &asked));
    let left = fs::read_dir(machine.path("tmp")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    // The file by which runs take turns stays.
    assert_eq!(left, [&*format!("sparsek-gate-{UUID}.lock")]);
    assert!(!machine.path("baselines").exists());
    assert_eq!(machine.compiled(), Vec::<String>::new());
}

#[test]
fn clocks_are_locked_for_a_try_where_the_configuration_asks_for_it() {
    let machine = Machine::new();
    let machine = machine.configured("clock_control = \"none\"", "clock_control = \"base\"");
    let checks = examined(&machine, 3);
    let words = "could not lock; bsr_gemm/baseline; clock_control = \"none\"";
    checks.says("clock control", "fail", words);
    let machine = machine.with("CLOCKS", "lock");
    examined(&machine, 0).says("clock control", "ok", "ncu locks the clocks");
    common::contains(&machine.read("argv"), &["--clock-control base"]);
}

#[test]
fn without_cuda_and_without_a_driver_each_missing_thing_is_a_line() {
    let machine = Machine::new();
    if common::has_driver() {
        return;
    }
    fs::remove_dir_all(machine.path("toolkit")).unwrap();
    fs::remove_dir_all(machine.path("bin")).unwrap();
    fs::create_dir(machine.path("nothing")).unwrap();
    let nothing = machine.path("nothing");
    let machine = machine.with("PATH", &nothing.display().to_string());
    let machine = machine.with_libraries(&[&nothing]);
    let checks = examined(&machine, 3);
    let rows = "
nvcc | `toolchain.nvcc` is ; toolkit/bin/nvcc, which is no program
host compiler | g++; apt-get install g++
ncu | `toolchain.ncu` is ; bin/ncu
driver | libcuda.so.1 is not on this machine; install the NVIDIA driver
";
    for [what, words] in &common::rows(rows) {
        checks.says(what, "fail", words);
    }
    for what in ["GPU", "kernel launch", "counters", "clock control"] {
        checks.says(what, "skipped", "");
    }
    let text = machine.run("doctor").exits(3).out;
    assert!(text.contains("4 things to fix first"), "{text}");
    machine.drop_config_lines("nvcc = ");
    if !Path::new("/usr/local/cuda").exists() {
        let words = "no nvcc was found; pip install; nvidia-cuda-nvdisasm";
        examined(&machine, 3).says("nvcc", "fail", words);
    }
}

#[test]
fn a_damaged_library_of_the_driver_is_reported_with_the_loaders_message() {
    let machine = Machine::new();
    for (text, why) in [
        ("text", "file too short"),
        (&*"no library. ".repeat(99), "invalid ELF header"),
    ] {
        // Under both names, so that no real one is found.
        machine.write("broken/libcuda.so.1", text);
        let folder = machine.path("broken");
        if common::has_driver() {
            return;
        }
        let mut gate = machine.gate("doctor --format json");
        gate.env("LD_LIBRARY_PATH", folder);
        let ran = Ran::by(&mut gate).exits(3);
        let words = format!("cannot be loaded; broken/libcuda.so.1; {why}; reinstall the driver");
        Checks::of(&ran).says("driver", "fail", &words);
    }
}

#[test]
fn a_library_of_the_driver_that_lacks_a_function_is_reported_without_a_panic() {
    let machine = Machine::new();
    // Of all functions, and of those alone that launch a kernel.
    let whole = common::repository().join("tests/data/stand_in/libcuda.c");
    let whole = fs::read_to_string(whole).unwrap();
    let (start, rest) = whole.split_once("int cuModuleLoadData").unwrap();
    let (_, end) = rest.split_once("int cuModuleGetFunction").unwrap();
    let nothing = "int nothing(void) { return 0; }\n".to_owned();
    let lacking = format!("{start}int cuModuleGetFunction{end}");
    for (folder, source, what) in [
        ("lacks-all", nothing, "driver"),
        ("lacks-one", lacking, "kernel launch"),
    ] {
        machine.write("libcuda.c", source);
        let source = machine.path("libcuda.c");
        let folder = library(folder, "libcuda.so", &source);
        let folders = std::env::join_paths([&folder, &libraries()[1]]).unwrap();
        let mut gate = machine.gate("doctor --format json");
        let ran = Ran::by(gate.env("LD_LIBRARY_PATH", folders)).exits(3);
        let checks = Checks::of(&ran);
        checks.says(what, "fail", "libcuda.so.1 is broken; a function");
        assert_eq!(checks.in_state("fail"), [what]);
        checks.says("counters", "skipped", "");
    }
}

#[test]
fn a_launch_that_fails_is_attributed_to_the_driver_and_not_to_ncu() {
    let machine = Machine::new();
    let machine = machine.with("CUDA_LAUNCH", "fails");
    let checks = examined(&machine, 3);
    let words = "the NVIDIA driver reports; CUDA_ERROR_LAUNCH_FAILED; probe --device 0";
    checks.says("kernel launch", "fail", words);
    assert_eq!(checks.in_state("fail"), ["kernel launch"]);
    checks.says("counters", "skipped", "no kernel runs");
}

#[test]
fn a_tool_a_driver_or_a_gpu_that_is_not_as_pinned_fails_or_warns_as_configured() {
    let rows = "
NVCC_RELEASE | 12.4, V12.4.131 | nvcc | V12.4.131; `13.0` is pinned; toolchain.pins.cuda
NVML_DRIVER | 570.86.10 | driver | 570.86.10; `>=580` is pinned
CUDA_NAME | NVIDIA H100 | GPU | NVIDIA H100; `NVIDIA H200` is pinned
CUDA_MINOR | 3 | target | compute capability 9.3; `sm_90a`; toolchain.arch
";
    for [name, value, what, words] in &common::rows(rows) {
        odd(name, value, what, "fail", words);
        let pinned = "gpus = [\"NVIDIA H200\"]";
        let machine = Machine::new().configured(pinned, &format!("{pinned}\nmismatch = \"warn\""));
        examined(&machine.with(name, value), 0).says(what, "warn", words);
    }
    let machine = Machine::new();
    let machine = machine.configured("ncu = \">=2025.3\"", "ncu = \">=2026\"");
    examined(&machine, 3).says("ncu", "fail", "2025.3.1.0; `>=2026` is pinned");
}

#[test]
fn a_driver_of_unknown_version_differs_from_its_pin() {
    let machine = Machine::new();
    if Path::new("/proc/driver/nvidia/version").exists() {
        aloud("SKIPPED: this machine has an NVIDIA driver");
        return;
    }
    let checks = examined(&machine.with_libraries(&[&libraries()[0]]), 3);
    checks.says("driver", "fail", "of an unknown version; `>=580` is pinned");
    // Without NVML the GPU's state is unknown, which is a line of its own.
    checks.says("GPU state", "warn", "NVML; libnvidia-ml.so.1");
}

/// An ncu that says its version, and does this when it profiles.
fn ncu_that(does: &str) -> String {
    format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'Version 2025.3.1.0 (build 1)'; exit 0; fi\n{does}\n"
    )
}

#[test]
fn an_ncu_that_reads_no_counters_fails_with_every_exit_status_and_the_next_step_is_named() {
    let rows = r#"
echo '==PROF== Connected to process 12 (probe)'\necho '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0. For instructions on enabling permissions and to get more information see https://developer.nvidia.com/ERR_NVGPUCTRPERM'\nexit 1 | ERR_NVGPUCTRPERM; NVreg_RestrictProfilingToAdminUsers=0; /etc/modprobe.d/; --cap-add SYS_ADMIN
echo '==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) is concurrently collecting profiling data. See https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#faq for more details.'\nexit 9 | another profiler uses the counters
exit 0 | No such file
echo '==WARNING== No kernels were profiled.'; exit 0 | read no counter
echo '==ERROR== Failed to open/create lock file /tmp/nsight-compute-lock.'; exit 9 | TMPDIR
kill -SEGV $$ | signal 11
"#;
    for [answer, words] in &common::rows(rows) {
        let machine = Machine::new();
        machine.program("bin/ncu", &ncu_that(answer));
        let checks = examined(&machine, 3);
        checks.says("counters", "fail", words);
        let mut failed = vec!["counters"];
        if answer.contains("DCGM") {
            let words = "DCGM; dcgmi profile --pause; dcgmi profile --resume";
            checks.says("other profilers", "fail", words);
            failed.push("other profilers");
        }
        assert_eq!(checks.in_state("fail"), failed, "{answer}");
    }
}

#[test]
fn faults_that_the_gpu_reports_are_checks() {
    let rows = "
NVML_REASONS | 0x60 | throttling | fail | hw-thermal, sw-thermal; nvidia-smi
NVML_REASONS | 0x4 | throttling | warn | sw-power-cap
NVML_MIG | 1 | MIG | warn | on; nvidia-smi -i; -mig 0
NVML_ECC | 0 | ECC | warn | off; -e 1
NVML_ERRORS | 2 | ECC | fail | 2 memory errors could not be corrected
NVML_TEMPERATURE | 88 | temperature | warn | 88 °C; 92 °C
NVML_PROCESS | OWN | other processes | warn | OWN; cannot be locked; CUDA_VISIBLE_DEVICES
";
    let rows = rows.replace("OWN", &std::process::id().to_string());
    for [name, value, what, state, words] in &common::rows(&rows) {
        odd(name, value, what, state, words);
    }
}

#[test]
fn an_instance_of_a_split_gpu_is_reported_although_nvml_does_not_show_it() {
    let machine = Machine::new();
    let machine = machine
        .with("NVML_UUID", "GPU-another")
        .with("NVML_MIG", "1");
    let checks = examined(&machine, 0);
    checks.says("MIG", "warn", "on; -mig 0");
    checks.says("GPU state", "warn", UUID);
}

#[test]
fn an_interrupted_doctor_leaves_no_process_and_no_file() {
    let machine = Machine::new();
    let waits = "echo $$ >\"$ARGV.new\"; mv \"$ARGV.new\" \"$ARGV\"; exec sleep 300";
    machine.program("bin/ncu", &ncu_that(waits));
    let mut child = machine.gate("doctor").spawn().unwrap();
    let started = machine.path("argv");
    while !started.exists() {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "before it was interrupted: {ended:?}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let sleeper = machine.read("argv");
    let stat = fs::read_to_string(format!("/proc/{}/stat", sleeper.trim()));
    let ended = stat.map_or(true, |stat| stat.contains(") Z "));
    assert!(ended, "{sleeper} still runs");
    assert_eq!(fs::read_dir(machine.path("tmp")).unwrap().count(), 1);
}

#[test]
fn a_profile_beside_another_process_is_warned_of_before_it_is_measured() {
    let machine = Machine::new();
    let machine = machine.with("NVML_PROCESS", &std::process::id().to_string());
    let ran = machine.run("profile").exits(6);
    let warned = ran.err.find("another process is on the GPU").unwrap();
    let measured = ran.err.find("profile bsr_gemm").unwrap();
    assert!(warned < measured, "{}", ran.err);
    let ran = machine.run("baseline --lock --reason first --who tester");
    ran.ends(6, "gpu-shared")
        .says("not locked, and has no baseline");
}

#[test]
fn a_lock_of_a_running_process_is_reported_and_one_that_was_left_is_not() {
    let machine = Machine::new();
    let path = machine.path(&format!("tmp/sparsek-gate-{UUID}.lock"));
    let file = fs::File::create(&path).unwrap();
    examined(&machine, 0).says("GPU lock", "ok", "free");
    file.lock().unwrap();
    let before = machine.ncu_calls();
    let checks = examined(&machine, 0);
    let own = std::process::id().to_string();
    let words = format!("which is running; {own}; kill {own}");
    checks.says("GPU lock", "warn", &words);
    // ncu would fail beside the other.
    checks.says("counters", "skipped", "another sparsek-gate");
    assert_eq!(machine.ncu_calls(), before);
}

#[test]
fn a_lock_of_ncus_that_cannot_be_opened_fails() {
    let machine = Machine::new();
    machine.write("tmp/nsight-compute-lock", "");
    examined(&machine, 0).says("ncu lock", "ok", "can be taken");
    // A folder is what not even root can open so.
    fs::remove_file(machine.path("tmp/nsight-compute-lock")).unwrap();
    fs::create_dir(machine.path("tmp/nsight-compute-lock")).unwrap();
    let checks = examined(&machine, 3);
    checks.says("ncu lock", "fail", "nsight-compute-lock; TMPDIR");
}

#[test]
fn a_work_folder_that_is_a_file_fails() {
    let machine = Machine::new();
    machine.write(".sparsek-gate", "");
    examined(&machine, 3).says("work folder", "fail", "not a folder; remove it");
}

#[test]
fn without_a_configuration_the_defaults_are_examined_and_nothing_is_left_there() {
    let machine = Machine::new();
    let empty = Project::empty();
    let own = ["bin", "toolkit/bin", "host"].map(|folder| machine.path(folder));
    let path = own.into_iter().chain(["/usr/bin".into(), "/bin".into()]);
    let path = std::env::join_paths(path).unwrap();
    let mut gate = machine.gate("doctor --format json");
    gate.current_dir(empty.path("")).env("PATH", &path);
    let ran = Ran::by(&mut gate).exits(0);
    let checks = Checks::of(&ran);
    let words = "there is no config.toml; init";
    checks.says("configuration", "skipped", words);
    checks.says("target", "skipped", "no configuration asks");
    for what in ["nvcc", "ncu", "GPU", "counters"] {
        checks.says(what, "ok", "");
    }
    // The default locks clocks; nobody asked for that here.
    checks.says("clock control", "ok", "not tried");
    assert_eq!(fs::read_dir(empty.path("")).unwrap().count(), 0);

    let mut named = machine.gate("-C no-such.toml doctor");
    Ran::of(&named.current_dir(empty.path("")).output().unwrap()).exits(2);
}

#[test]
fn a_compiler_that_no_variant_needs_is_not_missed() {
    let machine = Machine::new();
    fs::remove_dir_all(machine.path("toolkit")).unwrap();
    let machine = machine.configured(
        "source = \"kernels/a.cu\"",
        "run = [\"sh\", \"a.sh\"]\ninputs = [\"kernels/a.cu\"]",
    );
    let checks = examined(&machine, 0);
    checks.says("nvcc", "skipped", "not needed");
    for tool in ["nvdisasm", "compute-sanitizer"] {
        let state = checks.get(tool)["state"].as_str().unwrap();
        assert!(matches!(state, "warn" | "ok"), "{tool}: {state}");
    }
}
