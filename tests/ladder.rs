//! What is measured where ncu may not read the counters. The driver's library, ncu and libcupti are
//! stand-ins; the kernel records are those that the injected library wrote on an H200.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::common::stand_in::{Machine, Sources, compiled};
use crate::common::{self, Arguments, Project, Ran, Report, aloud, install, repository};
use serde_json::json;
use sparsek_gate::capture::kernel_records::{Incomplete, ProcessRecords};

const CONFIG: &str = r#"
[toolchain]
ncu = "denied-ncu"
cupti = "libcupti.so.13"

[profile]
processes = 2

[metric.duration]
direction = "lower"
tolerance = '3 %'

[metric.dram_bw]
direction = "higher"
tolerance = '1'

[metric.dram_read]
level = "record"

[metric.stored_sectors]
counter = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
exact = true
counts = { bytes_written = 32 }

[suite.bsr_gemm]
profile_args = ["--mode", "profile"]
kernels = "regex:^bsr_gemm_"
work = { bytes_written = 268435456 }

[suite.bsr_gemm.variant.cp_async]
run = ["sh", "cp_async.sh"]
inputs = ["cp_async.sh"]
expect = ["bsr_gemm_cp_async"]
"#;
const PROFILE: &str = ".sparsek-gate/profiles/bsr_gemm/cp_async/profile.json";
const LOCKED: &str = "baselines/nvidia-h200+kernel-times/bsr_gemm/cp_async.norm.txt";

/// Stand-ins that a C compiler makes: a folder with `libcuda.so`, `libcupti.so.13` and `program`.
fn stand_ins() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let library: &[&str] = &["-shared", "-fPIC"];
        let sources: Sources<'_> = &[
            ("libcuda.c", "libcuda.so", library),
            ("libcuda.c", "libcuda.so.1", library),
            ("libcupti.c", "libcupti.so.13", library),
            ("program.c", "program", &[]),
        ];
        compiled("ladder", sources).unwrap()
    });
    &FOLDER
}

/// What the injected library does at the first work on the GPU.
const HOLD: &str =
    r#"[ -z "$SPARSEK_GATE_TURN" ] || while ! [ -e "$SPARSEK_GATE_TURN" ]; do kill -STOP $$; done"#;

/// What the injected library does once all is written.
const OVER: &str = r#"[ -z "$SPARSEK_GATE_TURN" ] || kill -STOP $$"#;

/// A program that leaves the records of an H200, all of them longer by so many percent, and never
/// twice the same. The further lines run before it in profiled runs.
fn program(percent: i64, profiled: &str) -> String {
    format!(
        r#"case " $* " in *" --mode profile "*) ;; *) exit 0 ;; esac
{profiled}
{HOLD}
echo run >>"$JOURNAL"
turn=$(wc -l <"$JOURNAL")
while read -r kind correlation start end rest; do
    case $kind in
    process) echo "process $correlation $start $end"; echo turn 0 1000 0 ;;
    k) echo "k $correlation $start $((end + (end - start) * {percent} / 100 + turn * 37)) $rest" ;;
    *) echo "$kind $correlation $start${{end:+ $end}}" ;;
    esac
done <"$RECORDS/cp_async.process" >"$SPARSEK_GATE_KERNEL_RECORDS.$$"
{OVER}
"#
    )
}

/// A machine with an H200 on which ncu may not read the counters, as far as the program sees.
fn machine() -> Machine {
    let machine = of(Project::empty());
    machine.write("config.toml", format!("{}{CONFIG}", common::ENV_PASS));
    let ignored = ".sparsek-gate/\n/tmp/\n/denied\n/journal*\n";
    machine.write(".gitignore", ignored);
    for (name, from) in [
        ("denied-ncu", repository().join("tests/gpu/denied-ncu")),
        ("libcupti.so.13", stand_ins().join("libcupti.so.13")),
    ] {
        install(&from, &machine.path(name));
    }
    machine.write("cp_async.sh", program(0, ""));
    machine.write("journal", "");
    machine.commit();
    machine
}

fn of(project: Project) -> Machine {
    let records = repository().join("tests/data/cupti").display().to_string();
    Machine::of(project, &[stand_ins()]).with("RECORDS", &records)
}

fn accepting(tier: &str) -> Machine {
    let machine = machine();
    let accepted = format!("[profile]\naccept_tiers = [\"{tier}\"]");
    machine.configure("[profile]", &accepted);
    machine.commit();
    machine
}

fn locked() -> Machine {
    static LOCKED: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let machine = accepting("kernel-times");
        machine.lock_measured();
        machine.commit();
        machine.packed()
    });
    of(Project::unpacked(&LOCKED))
}

fn lock(machine: &Machine) -> Ran {
    machine.run("baseline --lock --reason first --who tester")
}

fn profile(machine: &Machine, code: i32) -> Report {
    let ran = machine.run("profile --format json");
    ran.exits(code).json()
}

#[test]
fn denied_counters_fail_and_what_was_measured_all_the_same_is_labelled() {
    let machine = machine();
    let report = profile(&machine, 3);
    let mut denied = report.denied();
    denied.dedup();
    assert_eq!(denied, ["not-measured", "no-permission"]);
    assert_eq!(machine.read("denied"), "asked\n");
    let profile = machine.json(PROFILE);
    let identity = &profile["identity"];
    assert_eq!(identity["tier"], "kernel-times");
    // The settings of ncu mean nothing for what ncu did not measure.
    for condition in ["clock_control", "cache_control", "replay_mode"] {
        assert!(identity[condition].is_null(), "{condition}");
    }
    let metrics = identity["metrics"].as_object().unwrap();
    assert_eq!(metrics.keys().collect::<Vec<_>>(), ["duration"]);
    let samples = &profile["kernels"][0]["metrics"]["duration"]["samples"];
    assert_eq!(samples[0].as_array().unwrap().len(), 20);
    assert_eq!(samples[1][0], json!(268_253.0 + 2.0 * 37.0));
    assert_eq!(profile["provenance"]["profiler"], "CUPTI 130001");
    // What is recorded shows what else was launched: no further process is needed.
    assert_eq!(
        profile["provenance"]["launch_list"],
        json!({
            "measured": 20,
            "others": [{ "kernel": "fill_normal", "launches": 2, "between": 0 }],
            "kernels": [{
                "mangled": "bsr_gemm_cp_async", "grid": [64, 64, 1], "block": [128, 1, 1], "launches": 20
            }]
        })
    );
    assert_eq!(machine.read("journal").lines().count(), 2);
    let refused = lock(&machine).exits(3);
    assert!(refused.out.contains("no-permission"), "{}", refused.out);
    assert!(!machine.path("baselines").exists());
}

#[test]
fn an_accepted_tier_is_measured_locked_and_passes_with_a_warning() {
    let machine = locked();
    let values = "duration: 261035.87\ndynamic_shared_bytes: 75776.00\n";
    assert_eq!(machine.read(LOCKED), values);
    let verify = "baseline --verify --captures .sparsek-gate/profiles";
    machine.run(verify).ends(0, "derived again");
    let report = machine.check(&[], 0);
    assert_eq!(report.denied(), Vec::<String>::new());
    assert!(report.warns("no-permission"));
    assert_eq!(report.variant("cp_async")["tier"], "kernel-times");
    assert_eq!(report.verdict("cp_async", "duration"), "pass");
    for metric in ["dram_bw", "stored_sectors"] {
        let comparison = report.comparison("cp_async", metric);
        assert!(comparison["verdict"].is_null(), "{comparison:#}");
        let why = comparison["why"].as_str().unwrap();
        assert!(why.contains("cannot be measured by kernel-times"), "{why}");
    }
    let shown = machine.run("check -v").exits(0);
    common::contains(&shown.out, &["kernel-times without counters"]);
    let again = machine.check(&["--from", ".sparsek-gate/profiles"], 0);
    assert_eq!(again.verdict("cp_async", "duration"), "pass");
    // A file of kernel times is inspected and not imported.
    let file = ".sparsek-gate/profiles/bsr_gemm/cp_async/capture-1.records";
    let inspected = machine.run(&["inspect", file, "--format", "json"]).exits(0);
    let Report(inspected) = inspected.json();
    assert_eq!(inspected["launches"].as_array().unwrap().len(), 20);
    machine
        .run(&["import", file, "--variant", "bsr_gemm/cp_async"])
        .ends(2, "which cannot be imported");
}

#[test]
fn wrong_numbers_in_a_measured_process_fail_on_every_tier() {
    let machine = accepting("kernel-times");
    let reports =
        |correct: bool| format!("echo '{{\"correct\": {correct}}}' >\"$SPARSEK_GATE_RESULT\"");
    machine.write("cp_async.sh", program(0, &reports(true)));
    profile(&machine, 0);
    let measured = machine.json(PROFILE);
    let captures = measured["provenance"]["captures"].as_array().unwrap();
    assert!(captures.iter().all(|capture| capture["checked"] == true));
    machine.write("cp_async.sh", program(0, &reports(false)));
    assert!(profile(&machine, 5).denies("wrong-numbers"));
    assert!(!machine.path(PROFILE).exists());
}

#[test]
fn side_by_side_on_kernel_times_unchanged_code_passes_and_a_slower_kernel_fails() {
    let machine = locked();
    fs::remove_file(machine.path("denied")).unwrap();
    let report = machine.check(&["--against", "HEAD", "--measure-all"], 0);
    assert_eq!(report.variant("cp_async")["mode"], "against");
    assert_eq!(report.verdict("cp_async", "duration"), "pass");
    // ncu is asked once.
    assert_eq!(machine.read("denied"), "asked\n");
    machine.write("cp_async.sh", program(20, ""));
    let report = machine.check(&[], 1);
    assert_eq!(report.verdict("cp_async", "duration"), "regressed");
    let report = machine.check(&["--against", "HEAD"], 1);
    assert_eq!(report.variant("cp_async")["mode"], "against");
    assert_eq!(report.verdict("cp_async", "duration"), "regressed");
    assert!(report.warns("no-permission"));
}

/// The starts and the beginnings and ends of the work of the measured processes, in their order.
fn journal(machine: &Machine) -> Vec<String> {
    let journal = machine.read("journal");
    let lines = journal.lines().filter(|line| *line != "run");
    lines.map(str::to_owned).collect()
}

/// The program where no configuration says where ncu and libcupti are.
fn unconfigured(machine: &Machine, arguments: impl Arguments) -> Command {
    for (from, to) in [
        ("denied-ncu", "toolkit/bin/ncu"),
        ("libcupti.so.13", "toolkit/lib64/libcupti.so.13"),
    ] {
        if !machine.path(to).exists() {
            install(&machine.path(from), &machine.path(to));
        }
    }
    let _ = fs::remove_file(machine.path("config.toml"));
    let path = std::env::var("PATH").unwrap();
    let own = machine.path("toolkit/bin");
    let mut command = machine.gate(arguments);
    command.env("CUDA_HOME", machine.path("toolkit"));
    command.env("PATH", format!("{}:{path}", own.display()));
    command
}

/// `compare` of `cp_async.sh` with other programs, on a machine whose ncu may not read the counters.
fn compare(machine: &Machine, more: &[&str]) -> Command {
    let base = [
        "compare", "--env-pass", "JOURNAL,RECORDS", "--kernels", "regex:^bsr_gemm_",
        "sh cp_async.sh --mode profile",
    ];
    unconfigured(machine, &[&base, more].concat())
}

fn compare_with_itself(machine: &Machine) -> Command {
    machine.write("journal", "");
    compare(machine, &["sh cp_async.sh --mode profile"])
}

fn compared(machine: &Machine) -> Ran {
    Ran::by(&mut compare_with_itself(machine))
}

#[test]
fn programs_start_together_and_work_in_turn_and_one_after_the_other_where_they_cannot_be_held() {
    let machine = machine();
    let works = "echo begins >>\"$JOURNAL\"; sleep 0.05; echo ends >>\"$JOURNAL\"";
    let held = program(0, "echo starts >>\"$JOURNAL\"").replace(HOLD, &format!("{HOLD}\n{works}"));
    let held = format!("{held}echo leaves >>\"$JOURNAL\"\n");
    machine.write("cp_async.sh", &held);
    compared(&machine).exits(0);
    let lines = journal(&machine);
    let at = |wanted: &str| lines.iter().position(|line| line == wanted).unwrap();
    assert_eq!(lines[..2], ["starts", "starts"], "{lines:?}");
    let mut works = lines.clone();
    works.retain(|it| ["begins", "ends"].contains(&it.as_str()));
    let in_turn = works.chunks(2).all(|pair| pair == ["begins", "ends"]);
    assert!(in_turn, "{lines:?}");
    // Both of the first window have worked before one of them leaves.
    let before = lines[..at("leaves")].iter();
    let ends = before.filter(|line| *line == "ends");
    assert_eq!(ends.count(), 2, "{lines:?}");

    // Nothing holds it, as where another library in the program gets the calls.
    let alone = held.replace(HOLD, "").replace("; echo turn 0 1000 0", "");
    machine.write("cp_async.sh", alone.replace(OVER, ""));
    let ran = compared(&machine).exits(0);
    assert!(ran.err.contains("cannot be held"), "{}", ran.err);
    let lines = journal(&machine);
    // What two processes left that ran side by side does not count.
    let mut alone = lines[lines.len() - 24..].chunks(4);
    let one = ["starts", "begins", "ends", "leaves"];
    assert!(alone.all(|each| each == one), "{lines:?}");
}

#[test]
fn a_program_that_runs_in_the_turn_of_another_is_not_measured_beside_others() {
    let machine = machine();
    // Once one works, those that wait are woken.
    let wakes = "kill -CONT $(cat \"$JOURNAL\") 2>/dev/null; sleep 0.2";
    let held = program(0, "echo $$ >>\"$JOURNAL\"").replace("echo run", "echo $$");
    let held = held.replace(HOLD, &format!("{HOLD}\n{wakes}"));
    machine.write("cp_async.sh", held);
    let ran = compared(&machine).exits(0);
    let why = "one of them ran in the turn of another program";
    assert!(ran.err.contains(why), "{}", ran.err);
}

/// A program that leaves the GPU idle after its first work, and computes meanwhile.
fn computing(meanwhile: &str) -> String {
    format!(
        r#"case " $* " in *" --mode profile "*) ;; *) exit 0 ;; esac
own="$SPARSEK_GATE_KERNEL_RECORDS.$$"
{HOLD}
echo works >>"$JOURNAL"
head -1 "$RECORDS/cp_async.process" >"$own"
echo turn 0 1000 0 >>"$own"
if [ -n "$SPARSEK_GATE_TURN" ]; then
    echo idle 2000 >>"$own"
    kill -STOP $$
fi
{meanwhile}
sleep 0.2
echo computed >>"$JOURNAL"
{HOLD}
echo again >>"$JOURNAL"
longer=$(wc -l <"$JOURNAL")
echo turn 4 4000 1500 >>"$own"
while read -r kind correlation start end rest; do
    case $kind in
    k) echo "k $correlation $start $((end + longer * 37)) $rest" ;;
    end) echo "end $correlation $start" ;;
    esac
done <"$RECORDS/cp_async.process" >>"$own"
{OVER}
"#
    )
}

#[test]
fn programs_that_leave_the_gpu_idle_compute_side_by_side_and_have_another_turn() {
    let machine = machine();
    machine.write("cp_async.sh", computing(""));
    let ran = compared(&machine).exits(0);
    assert!(!ran.err.contains(" processes "), "{}", ran.err);
    let lines = journal(&machine);
    // As many start together as there are cores, two at least.
    let together = lines.iter().take_while(|line| *line == "works").count();
    assert!(together >= 2, "{lines:?}");
    for (at, what) in [(1, "computed"), (2, "again")] {
        let mut then = lines[at * together..(at + 1) * together].iter();
        assert!(then.all(|line| line == what), "{lines:?}");
    }
}

#[test]
fn what_others_write_between_two_turns_of_a_program_is_found() {
    let machine = machine();
    let all = "\"${SPARSEK_GATE_KERNEL_RECORDS%/*}\"/*.process.*";
    // Also a file of another that is gone.
    for does in [format!("sed -i s/1000/1001/ {all}"), format!("rm -f {all}")] {
        machine.write("cp_async.sh", computing(&does));
        compared(&machine).ends(5, "changed while the program ran");
    }
    let launches = "k 9 3000 3500 0 1 7 1 1 1 1 1 1 1 0 0 0 name";
    for line in [launches, "turn 0 5000 9", "idle 5000"] {
        let adds = format!("for one in {all}; do echo '{line}' >>$one; done");
        machine.write("cp_async.sh", computing(&adds));
        let expected = "each has one whole turn: its processes cannot be held at their first work on the GPU: one of them ran in the turn of another program";
        compared(&machine).says(expected);
    }
}

#[test]
fn a_turn_is_over_once_all_processes_of_a_program_have_written_what_they_did() {
    let machine = machine();
    // Another process of it ends later than the first.
    let begins =
        "other=$SPARSEK_GATE_KERNEL_RECORDS.99999\necho 'process 99999 cupti 130001' >$other";
    let ends = "echo 'end 0 0' >>$other";
    let program = program(0, begins).replace(OVER, &format!("{OVER}\n{ends}"));
    machine.write("cp_async.sh", program);
    let ran = compared(&machine).exits(0);
    assert!(!ran.err.contains(" processes "), "{}", ran.err);
}

#[test]
fn a_program_that_fails_beside_others_is_measured_alone() {
    let machine = machine();
    // As where the memory of the GPU is too small for two.
    let claims =
        "exec 9>\"$JOURNAL.claimed\"\nflock -n 9 || { echo refused >>\"$JOURNAL\"; exit 3; }";
    machine.write("cp_async.sh", program(0, claims));
    let ran = compared(&machine).exits(0);
    assert!(ran.err.contains("fewer start together"), "{}", ran.err);
    ran.says("measured again, with fewer beside it");
    assert!(journal(&machine).contains(&"refused".to_owned()));
}

#[test]
fn a_program_that_waits_for_what_another_one_has_is_measured_after_it() {
    let machine = machine();
    let waits = "exec 9>\"$JOURNAL.claimed\"\nflock 9";
    machine.write("cp_async.sh", program(0, waits));
    let mut command = compare_with_itself(&machine);
    let ran = Ran::of(&command.args(["--timeout", "2"]).output().unwrap()).exits(0);
    assert!(ran.err.contains("one runs after the other"), "{}", ran.err);
}

#[test]
fn an_interrupt_while_programs_wait_for_their_turn_leaves_no_process() {
    let machine = machine();
    let never = "echo $$ >>\"$JOURNAL\"";
    let held = program(0, never).replace(HOLD, &format!("{HOLD}\nsleep 60"));
    machine.write("cp_async.sh", held);
    let mut run = compare_with_itself(&machine).spawn().unwrap();
    let holds = |pid: &String| state_of(pid).as_deref() == Some("T");
    while !journal(&machine).iter().any(holds) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    send("-INT", run.id());
    assert_eq!(run.wait().unwrap().code(), Some(130));
    let pids = journal(&machine);
    assert!(pids.iter().all(|pid| state_of(pid).is_none()), "{pids:?}");
}

/// The state of a process, where there is one.
fn state_of(pid: &str) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.split(' ').nth(2).map(str::to_owned)
}

fn send(signal: &str, pid: u32) {
    let mut kill = Command::new("kill");
    let sent = kill.args([signal, &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn an_accepted_tier_that_is_accepted_no_longer_fails_again() {
    let machine = locked();
    let accepted = "accept_tiers = [\"kernel-times\"]\n";
    machine.configure(accepted, "");
    let report = machine.check(&["--from", ".sparsek-gate/profiles"], 3);
    assert!(report.denies("no-permission"));
    assert_eq!(report.verdict("cp_async", "dram_bw"), "not-measured");
    assert_eq!(report.verdict("cp_async", "duration"), "pass");
}

#[test]
fn a_profile_of_one_tier_is_never_compared_with_a_baseline_of_another() {
    let project = Project::shipped();
    project.edit_profile("cp_async", |profile| {
        // The recording is of a version that named the key so.
        profile["identity"]["tier"] = json!("kernel-times");
    });
    let report = project.check(&["cp_async"], 3);
    let words = "(tier kernel-times), and has a baseline only for nvidia-h200";
    report.tells_all("not-comparable", &[words]);
    assert_eq!(report.0["variants"], json!([]));

    // Put into the folder of another tier by hand, it does not fit that folder.
    let machine = locked();
    let folder = machine.path("baselines/nvidia-h200+kernel-times");
    fs::rename(folder, machine.path("baselines/nvidia-h200")).unwrap();
    let report = machine.check(&["--from", ".sparsek-gate/profiles"], 4);
    report.tells_all("tampered", &["by kernel-times"]);
}

/// What goes wrong while kernels are recorded, and what is said of it.
#[test]
fn what_was_not_recorded_in_full_is_no_measurement() {
    let records = "\"$SPARSEK_GATE_KERNEL_RECORDS.$$\"";
    let recorded = "\"$RECORDS/cp_async.process\"";
    let cases = r#"
nothing is recorded | exit 0 | 3 | profiler-unsupported | none initialized CUDA
CUPTI is not there | cp "$RECORDS/no-cupti.process" RECORDS; exit 0 | 3 | profiler-unsupported | cannot open shared object file
it leaves early | cp "$RECORDS/left-early.process" RECORDS; exit 0 | 6 | not-measured | have no end
records are dropped | sed 's/^end 22 0/end 22 5/' RECORDED >RECORDS; exit 0 | 6 | not-measured | dropped 5
it launches something else | cp "$RECORDS/cupti-12.process" RECORDS; exit 0 | 5 | kernel-missing | the program launched small
it chooses its own GPU | sed -E 's/^(k [0-9]+ [0-9]+ [0-9]+) 0/\1 1/' RECORDED >RECORDS; exit 0 | 6 | not-measured | launched on its device 1
the file is something else | echo hello >RECORDS; exit 0 | 5 | capture-unreadable | names no process
it fails | exit 7 | 5 | program-failed | exit status 7
it crashes | kill -SEGV $$ | 5 | program-failed | SIGSEGV
"#;
    let cases = cases.replace(" RECORDED", &format!(" {recorded}"));
    let cases = cases.replace("RECORDS;", &format!("{records};"));
    let machine = accepting("kernel-times");
    for [case, lines, code, finding, why] in common::rows(&cases) {
        machine.write("cp_async.sh", program(0, &lines));
        let report = profile(&machine, code.parse().unwrap());
        assert_eq!(report.denied()[0], finding, "{case}");
        report.tells_all(&finding, &[&why]);
        // Why ncu did not measure is reported too, where it was tried.
        let is_tried = ["profiler-unsupported", "kernel-missing"].contains(&finding.as_str());
        assert_eq!(report.warns("no-permission"), is_tried, "{case}");
    }
}

#[test]
fn a_setting_that_only_ncu_can_honour_leaves_the_tier_out_of_reach() {
    let machine = accepting("kernel-times");
    let with = CONFIG.replace("[profile]", "[profile]\ngraph_profiling = \"graph\"");
    machine.write("config.toml", with);
    let report = profile(&machine, 3);
    assert_eq!(report.denied(), ["no-permission", "profiler-unsupported"]);
    report.tells_all("profiler-unsupported", &["a whole CUDA graph"]);
}

#[test]
fn a_profiler_that_does_not_work_at_all_is_stepped_down_from_too() {
    let machine = accepting("kernel-times");
    let ncu = machine.read("denied-ncu");
    let (before, _) = ncu.split_once("echo '==ERROR==").unwrap();
    // As ncu says under gVisor.
    let text = "echo '==ERROR== Failed to initialize the profiler: LibraryNotLoaded'\nexit 1\n";
    fs::write(machine.path("denied-ncu"), format!("{before}{text}")).unwrap();
    profile(&machine, 0);
    assert_eq!(machine.json(PROFILE)["identity"]["tier"], "kernel-times");
}

#[test]
fn a_variant_of_which_no_lower_tier_measures_anything_is_denied() {
    let machine = accepting("kernel-times");
    let lone = "[suite.other.variant.lone]\nrun = [\"sh\", \"cp_async.sh\"]\n";
    let suite = format!("\n[suite.other]\nmetrics = [\"dram_bw\"]\n{lone}");
    machine.append("config.toml", &suite);
    machine.commit();
    // Whether it is the first to be denied or not.
    for names in ["bsr_gemm other", "other"] {
        let profiled = machine.run(&format!("profile --format json {names}"));
        assert_eq!(profiled.exits(3).json().denied(), ["no-permission"]);
        let check = format!("check --against HEAD --format json {names}");
        let report = machine.run(&check).exits(3).json();
        assert!(report.denies("no-permission"));
    }
}

#[test]
fn other_failures_of_ncu_are_not_stepped_down_from() {
    let machine = accepting("kernel-times");
    let ncu = machine.read("denied-ncu");
    let (before, _) = ncu.split_once("echo '==ERROR==").unwrap();
    for (said, code, finding) in [
        (
            "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) is concurrently collecting profiling data.",
            3,
            "profiler-busy",
        ),
        ("==ERROR== something else", 5, "profiler-failed"),
    ] {
        let text = format!("{before}echo '{said}'\nexit 9\n");
        fs::write(machine.path("denied-ncu"), text).unwrap();
        assert_eq!(profile(&machine, code).denied(), [finding]);
        assert!(!machine.path(PROFILE).exists());
    }
}

#[test]
fn without_cupti_no_tier_is_left() {
    let machine = accepting("kernel-times");
    fs::remove_file(machine.path("libcupti.so.13")).unwrap();
    let report = profile(&machine, 3);
    assert_eq!(report.denied(), ["profiler-unsupported"]);
    assert!(report.warns("no-permission"));
    report.tells_all("profiler-unsupported", &["does not exist"]);
}

#[test]
fn an_edited_record_is_found() {
    let machine = locked();
    machine.edit(PROFILE, |profile| {
        profile["kernels"][0]["metrics"]["duration"]["samples"][0][3] = json!(200_000.0);
    });
    let report = machine.check(&["--from", ".sparsek-gate/profiles"], 0);
    report.tells_all("profile-altered", &["other samples"]);
    lock(&machine).ends(4, "profile-altered");
}

#[test]
fn a_tier_that_does_not_exist_is_a_slip_in_the_configuration() {
    let project = Project::shipped();
    for (slip, meant) in [
        ("kernel_times", "kernel-times"),
        ("event-times", "kernel-times"),
        ("counters", "static"),
    ] {
        let accepted = format!("[profile]\naccept_tiers = [\"{slip}\"]");
        let whole = common::configuration();
        project.write("config.toml", whole.replacen("[profile]", &accepted, 1));
        project
            .run(&["check", "--from", common::RECORDED])
            .ends(2, &format!("unknown value `{slip}`"))
            .says(meant);
    }
}

/// A stand-in program with the injected library, as it is embedded in this program.
fn with_injection(machine: &Machine, how: &str, records: &Path) -> Command {
    let folder = machine.path(".sparsek-gate/cupti");
    let injection = fs::read_dir(&folder).unwrap().next().unwrap();
    let mut command = Command::new(stand_ins().join("program"));
    command
        .arg(how)
        .env("CUDA_INJECTION64_PATH", injection.unwrap().path())
        .env("SPARSEK_GATE_CUPTI", stand_ins().join("libcupti.so.13"))
        .env("SPARSEK_GATE_KERNEL_RECORDS", records.join("process"))
        .env("LD_LIBRARY_PATH", stand_ins());
    command
}

/// What the injected library writes about a stand-in program; with a setting in the environment, which
/// the tool sets for `profiler_range`.
fn injected(
    machine: &Machine,
    how: &str,
    goes_wrong: &str,
    setting: Option<&str>,
) -> (Option<i32>, Vec<String>) {
    let left = machine.path(&format!("tmp/{how}{goes_wrong}{}", setting.is_some()));
    fs::create_dir(&left).unwrap();
    let status = with_injection(machine, how, &left)
        .envs(setting.map(|name| (name, "1")))
        .env("STAND_IN_CUPTI", goes_wrong)
        .status()
        .unwrap();
    let texts = fs::read_dir(&left)
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    (status.code(), texts)
}

fn is_unfinished(text: &str) -> bool {
    let read = ProcessRecords::parse(text);
    matches!(read, Err(Incomplete::Unfinished { .. }))
}

#[test]
fn launches_outside_of_the_ranges_of_the_profiler_are_not_recorded() {
    const RANGE: Option<&str> = Some("SPARSEK_GATE_PROFILER_RANGE");
    let machine = accepting("kernel-times");
    profile(&machine, 0);
    for (how, setting, expected) in [
        ("range", RANGE, &[2, 3][..]),
        // Without a range nothing is in one.
        ("exit", RANGE, &[]),
        ("range", None, &[1, 2, 3, 4]),
    ] {
        let (status, texts) = injected(&machine, how, "", setting);
        assert_eq!(status, Some(0));
        let process = ProcessRecords::parse(&texts[0]).unwrap();
        let kernels = process.kernels.iter().map(|kernel| kernel.correlation);
        assert_eq!(kernels.collect::<Vec<_>>(), expected, "{}", texts[0]);
    }
    let (status, texts) = injected(&machine, "exit", "subscribed", RANGE);
    assert_eq!(status, Some(0));
    let message = ProcessRecords::parse(&texts[0]).unwrap_err().to_string();
    assert!(message.contains("cuptiSubscribe answered 39"), "{message}");
}

/// A stand-in program that is held by the injected library.
struct HeldProgram {
    program: std::process::Child,
    turn: PathBuf,
    log: PathBuf,
    records: PathBuf,
}

impl Drop for HeldProgram {
    fn drop(&mut self) {
        let _ = self.program.kill();
    }
}

impl HeldProgram {
    /// `tool` is the number of the process that holds it.
    fn start(machine: &Machine, how: &str, tool: u32) -> HeldProgram {
        profile(machine, 0);
        let [turn, log, records] =
            ["turn", "log", "records"].map(|it| machine.path(&format!("tmp/{it}")));
        fs::create_dir(&records).unwrap();
        let mut program = with_injection(machine, how, &records);
        program.env("SPARSEK_GATE_TURN", &turn);
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
        let tool = format!("{tool} {}", namespace.display());
        program.env("SPARSEK_GATE_PROCESS", tool);
        let program = program
            .stdout(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        HeldProgram {
            program,
            turn,
            log,
            records,
        }
    }

    /// Waits until it has stopped itself; what it has printed and written until then.
    fn stops(&self) -> (String, String) {
        while state_of(&self.program.id().to_string()).as_deref() != Some("T") {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let mut written = fs::read_dir(&self.records).unwrap();
        let written = written.next().unwrap().unwrap().path();
        let [printed, written] =
            [&self.log, &written].map(|path| fs::read_to_string(path).unwrap());
        (printed, written)
    }

    fn gets_its_turn(&self) {
        fs::write(&self.turn, "").unwrap();
        self.go_on();
    }

    fn ends(mut self) {
        self.go_on();
        assert_eq!(self.program.wait().unwrap().code(), Some(0));
    }

    fn go_on(&self) {
        send("-CONT", self.program.id());
        // A stop of before is not seen for the next one.
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn the_injected_library_holds_a_program_at_its_first_work_and_whenever_it_leaves_the_gpu_idle() {
    let machine = accepting("kernel-times");
    let held = HeldProgram::start(&machine, "pauses", std::process::id());
    assert_eq!(held.stops().0, "allocated\n");
    // Somebody else's signal is not its turn.
    held.go_on();
    assert_eq!(held.stops().0, "allocated\n");
    held.gets_its_turn();
    // While it captures, nothing waits for the GPU.
    let (printed, written) = held.stops();
    assert_eq!(printed, "allocated\ncaptured\n");
    let last = written.lines().last().unwrap();
    assert!(last.starts_with("idle "), "{written}");
    assert_eq!(written.matches("\nk ").count(), 4);
    // It computes without a turn, and waits for one at its next work.
    fs::remove_file(&held.turn).unwrap();
    let stood = std::time::Duration::from_millis(300);
    std::thread::sleep(stood);
    held.go_on();
    let computed = "allocated\ncaptured\ncomputed\n".to_owned();
    assert_eq!(held.stops(), (computed, written));
    held.gets_its_turn();
    // All is written before it stops again, and it ends outside of its turn.
    let written = held.stops().1;
    assert_eq!(ProcessRecords::parse(&written).unwrap().turn, Some(2));
    // The time in which it stood still is known, and shorter than that between its turns.
    let numbers = |line: &str| -> Vec<u64> {
        let words = line.split(' ').skip(1);
        words.map(|word| word.parse().unwrap()).collect()
    };
    let of = |what: &str| {
        let lines = written.lines().filter(|line| line.starts_with(what));
        lines.map(numbers).collect::<Vec<_>>()
    };
    let (turns, idle) = (of("turn "), of("idle "));
    let between = turns[1][1] - idle[0][0];
    let stood = stood.as_nanos()..=u128::from(between);
    assert!(stood.contains(&u128::from(turns[1][2])), "{written}");
    held.ends();
}

#[test]
fn a_program_whose_turn_goes_on_when_it_leaves_the_gpu_idle_is_not_stopped_for_that_again() {
    let machine = accepting("kernel-times");
    let held = HeldProgram::start(&machine, "pauses", std::process::id());
    held.stops();
    held.gets_its_turn();
    assert!(held.stops().1.lines().last().unwrap().starts_with("idle "));
    let other = held.turn.with_extension("other");
    fs::write(&other, "").unwrap();
    fs::rename(other, &held.turn).unwrap();
    held.go_on();
    let (printed, written) = held.stops();
    assert!(printed.ends_with("computed\n"), "{printed}");
    let last = written.lines().last().unwrap();
    assert!(last.starts_with("end "), "{written}");
    let after_idle = written.split("\nidle ").nth(1).unwrap().lines().nth(1);
    assert!(after_idle.unwrap().starts_with("turn 0 "), "{written}");
    held.ends();
}

#[test]
fn a_program_that_starts_itself_again_keeps_what_it_recorded_before() {
    let machine = accepting("kernel-times");
    profile(&machine, 0);
    let (status, mut texts) = injected(&machine, "exec", "", None);
    assert_eq!(status, Some(0));
    texts.sort_by_key(String::len);
    let [first, second] = &texts[..] else {
        panic!("{texts:?}")
    };
    assert!(is_unfinished(first));
    assert_eq!(ProcessRecords::parse(second).unwrap().kernels.len(), 4);
}

#[test]
fn a_program_that_works_in_two_contexts_keeps_its_turn() {
    let machine = accepting("kernel-times");
    let held = HeldProgram::start(&machine, "contexts", std::process::id());
    held.stops();
    held.gets_its_turn();
    let written = held.stops().1;
    assert!(!written.contains("\nidle "), "{written}");
    held.ends();
}

#[test]
fn a_held_program_ends_where_the_tool_was_killed() {
    let machine = accepting("kernel-times");
    let mut tool = Command::new("sleep").arg("300").spawn().unwrap();
    let mut held = HeldProgram::start(&machine, "launch", tool.id());
    held.stops();
    tool.kill().unwrap();
    tool.wait().unwrap();
    held.go_on();
    let status = held.program.wait().unwrap();
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    assert_eq!(signal, Some(9));
}

#[test]
fn a_range_of_the_profiler_is_asked_for_where_the_configuration_has_one() {
    let machine = accepting("kernel-times");
    let asked = "echo \"${SPARSEK_GATE_PROFILER_RANGE-no}\" >>asked";
    machine.write("cp_async.sh", program(0, asked));
    profile(&machine, 0);
    let range = "[profile]\nprofiler_range = true";
    machine.configure("[profile]", range);
    profile(&machine, 0);
    let lines = machine.read("asked");
    let answers: std::collections::BTreeSet<&str> = lines.lines().collect();
    assert_eq!(answers.into_iter().collect::<Vec<_>>(), ["1", "no"]);
}

#[test]
fn the_injected_library_writes_what_cupti_hands_over_and_never_stops_the_program() {
    let machine = accepting("kernel-times");
    profile(&machine, 0);
    for how in ["exit", "fork"] {
        let (status, texts) = injected(&machine, how, "", None);
        assert_eq!(status, Some(0));
        assert_eq!(texts.len(), 1, "{texts:?}");
        let process = ProcessRecords::parse(&texts[0]).unwrap();
        assert_eq!(process.cupti_version, 130001);
        let records = process.kernels.iter();
        let records = records.map(|it| (it.correlation, it.duration_ns(), &*it.name));
        let names = ["_Z5firstPf", "_ZN1a6secondIiEEvv"].into_iter().cycle();
        let expected = (1..=4).zip(names);
        let expected = expected.map(|(at, name)| (at, Some(100_000 * at), name));
        assert!(records.eq(expected), "{}", texts[0]);
        let kernel = &process.kernels[0];
        assert_eq!((kernel.grid, kernel.block), ([64, 32, 16], [128, 64, 32]));
        let shared = [kernel.static_shared, kernel.dynamic_shared];
        assert_eq!((kernel.registers, shared), (40, [1024, 2048]));
    }
    let (status, texts) = injected(&machine, "_exit", "", None);
    assert_eq!(status, Some(0));
    assert!(is_unfinished(&texts[0]));
    for (goes_wrong, why) in [
        ("old", "is older than 14"),
        ("refuses", "cuptiActivityRegisterCallbacks answered 39"),
        ("flush", "cuptiActivityFlushAll answered 999"),
        ("drops", "CUPTI dropped 6 of the records"),
    ] {
        let (status, texts) = injected(&machine, "exit", goes_wrong, None);
        assert_eq!(status, Some(0), "{goes_wrong}");
        let message = ProcessRecords::parse(&texts[0]).unwrap_err().to_string();
        assert!(message.contains(why), "{goes_wrong}: {message}");
    }
}

#[test]
fn what_the_compiler_made_passes_alone_only_where_that_tier_is_accepted() {
    if Command::new("nvcc").arg("--version").output().is_err() {
        aloud(
            "SKIPPED: the static tier, there is no nvcc on the PATH; \
             `ci/install-cuda.sh target/cuda && source target/cuda/env.sh` installs one",
        );
        return;
    }
    let machine = accepting("static");
    let project = &machine.project;
    let source = fs::read(repository().join("tests/data/static/ladder.cu")).unwrap();
    project.write("ladder.cu", source);
    let config = project.read("config.toml");
    let (head, _) = config.split_once("[suite.").unwrap();
    let suite = "[suite.bsr_gemm.variant.held]\nsource = \"ladder.cu\"\nkernels = \"held\"\n";
    // Nothing declares its work here, and without a libcupti there are no kernel times either.
    let head = head.replace("counts = { bytes_written = 32 }\n", "");
    let head = head.replace("\"libcupti.so.13\"", "\"nowhere.so\"");
    project.write("config.toml", format!("{head}{suite}"));
    machine.run("build").exits(0);
    let lock = common::words("baseline --lock --static --reason first --who tester");
    machine.run(&lock).exits(0);

    let report = machine.check(&[], 0);
    assert_eq!(report.denied(), Vec::<String>::new());
    assert!(report.warns("no-permission"), "{:?}", report.warned());
    let variants = report.0["variants"].as_array().unwrap().iter();
    assert!(variants.map(|variant| &variant["tier"]).eq(["static"]));

    project.configure("accept_tiers = [\"static\"]\n", "");
    let report = machine.check(&[], 3);
    assert!(report.denies("no-permission"), "{:?}", report.denied());
}

#[test]
fn programs_are_compared_by_the_times_of_their_kernels_without_a_right_to_the_counters() {
    let machine = machine();
    machine.write("slow.sh", program(5, ""));
    let compare = |more: &[&str], code: i32| {
        let more = [more, &["--format", "json"]].concat();
        Ran::by(&mut compare(&machine, &more)).exits(code).json()
    };
    let report = compare(&["sh slow.sh --mode profile"], 1);
    // The sum, and the kernel.
    assert_eq!(report.denied(), ["regressed", "regressed"]);
    assert_eq!(report.0["variants"][0]["tier"], "kernel-times");
    compare(&["sh cp_async.sh --mode profile"], 0);
    let report = compare(&[], 0);
    let kernel = &report.0["kernels"][0];
    assert_eq!(kernel["kernel"], "bsr_gemm_cp_async");
    assert!(kernel["duration_ns"].is_number() && kernel["bound"].is_null());
    // What a configuration needs here is not left to be found out by its first use.
    let text = format!(
        "export RECORDS='{}' JOURNAL='{}'\nexec sh cp_async.sh --mode profile\n",
        repository().join("tests/data/cupti").display(),
        machine.path("journal").display()
    );
    machine.write("alone.sh", text);
    let mut init = unconfigured(&machine, "init -- sh alone.sh --mode profile");
    let ran = Ran::by(&mut init).exits(0);
    assert!(machine.path("config.toml").is_file());
    ran.says("warning no-permission")
        .says("accept the tier: `accept_tiers` under `[profile]`");
}
