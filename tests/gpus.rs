//! Several GPUs of one host, with stand-ins of the driver and of ncu: a slice for each, one check.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

use crate::common::crash::{contents, kills, running, wait_for_orphans};
use crate::common::sealed;
use crate::common::stand_in::{Machine, UUID, all_measured};
use crate::common::{self, PATIENCE, Ran, Report, aloud};

/// The UUID of the second GPU.
const SECOND: &str = "GPU-00112233-4455-6677-8899-aabbccddeefe";
const ALL: &str = "check --gpus all";

/// A machine with two GPUs, and so many equal variants whose baselines are locked.
fn two_gpus(variants: u32) -> Machine {
    let machine = Machine::locked(variants);
    machine.with("CUDA_GPUS", "2")
}

/// The outcome of a run that exits so.
#[track_caller]
fn outcome(machine: &Machine, arguments: &str, code: i32) -> (Json, Ran) {
    let ran = machine.run(&format!("{arguments} --report json:tmp/outcome.json"));
    let outcome = machine.json("tmp/outcome.json");
    assert_eq!(outcome["exit_code"], code);
    (outcome, ran.exits(code))
}

/// The message of the first finding with a code.
fn message(outcome: &Json, code: &str) -> String {
    let mut findings = outcome["findings"].as_array().unwrap().iter();
    let found = findings.find(|one| one["code"] == code).unwrap();
    found["message"].as_str().unwrap().to_owned()
}

fn read_json(path: &Path) -> Json {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The UUIDs of the GPUs of a run, in the order of their slices.
fn uuids(outcome: &Json) -> Vec<&str> {
    let parts = outcome["gpus"].as_array().unwrap().iter();
    parts.map(|part| part["uuid"].as_str().unwrap()).collect()
}

/// The folders of the runs, the oldest first.
fn runs(machine: &Machine) -> Vec<PathBuf> {
    let all = fs::read_dir(machine.path(".sparsek-gate/gpus")).unwrap();
    let mut all: Vec<PathBuf> = all.map(|entry| entry.unwrap().path()).collect();
    all.sort_by_key(|path| path.metadata().unwrap().modified().unwrap());
    all
}

#[test]
fn a_check_on_all_gpus_is_one_check_with_a_slice_for_each() {
    let machine = two_gpus(3);
    let costs = machine.read(".sparsek-gate/costs.json");
    let (found, ran) = outcome(&machine, ALL, 0);
    all_measured(&found, 3);
    // What processes took on one GPU alone stays what it was.
    assert_eq!(machine.read(".sparsek-gate/costs.json"), costs);
    let second = format!("GPU {SECOND} (NVIDIA H200): ");
    common::contains(&ran.out, &[&second, "all GPUs together: build "]);
    assert_eq!(uuids(&found), [UUID, SECOND]);
    let mut measured = BTreeSet::new();
    for part in found["gpus"].as_array().unwrap() {
        let variants = part["variants"].as_array().unwrap();
        measured.extend(variants.iter().map(|variant| variant.as_str().unwrap()));
        assert!(part["processes"].as_u64().unwrap() >= 2 * variants.len() as u64);
        assert!(part["profile_s"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(measured.len(), 3);
    // What is said of a GPU names it.
    common::contains(&ran.err, &[&format!("{SECOND}:     profile")]);
    // Each profile is of the GPU of its slice, and what nobody needs again is gone.
    let [run] = &runs(&machine)[..] else {
        panic!("one run")
    };
    for (index, uuid) in [(1, UUID), (2, SECOND)] {
        let suite = run.join(format!("slices/{index}/bsr_gemm"));
        for variant in fs::read_dir(suite).unwrap() {
            let profile = read_json(&variant.unwrap().path().join("profile.json"));
            assert_eq!(profile["provenance"]["gpu_uuid"], uuid);
        }
    }
    assert!(!run.join("gate.tar.zst").exists() && !run.join("sparsek-gate").exists());

    // More GPUs than variants.
    let (found, ran) = outcome(&machine, "check --gpus all v-n_1", 0);
    assert_eq!(uuids(&found), [UUID]);
    ran.says(&format!(
        "{SECOND} has no part: 1 variant is to be measured"
    ));
    // By ordinal, among those that the user shows to programs.
    let machine = machine.with("CUDA_VISIBLE_DEVICES", SECOND);
    let (found, _) = outcome(&machine, "check --gpus 0 v-n_1", 0);
    assert_eq!(uuids(&found), [SECOND]);
}

#[test]
fn both_sides_are_measured_on_all_gpus() {
    let machine = two_gpus(2);
    let check = "check --gpus all --against HEAD --measure-all";
    let (found, _) = outcome(&machine, check, 0);
    all_measured(&found, 2);
    assert_eq!(uuids(&found), [UUID, SECOND]);
    let runs = runs(&machine);
    for index in 1..=2 {
        let suite = runs[0].join(format!("slices/{index}/bsr_gemm"));
        let variant = fs::read_dir(suite).unwrap().next().unwrap().unwrap().path();
        let [own, base] = ["profile.json", "base/profile.json"]
            .map(|name| read_json(&variant.join(name))["provenance"]["gpu_uuid"].clone());
        assert_eq!(own, base);
    }
}

#[test]
fn gpus_that_cannot_be_had_are_refused_before_anything_is_built() {
    let machine = two_gpus(2);
    let _ = fs::remove_dir_all(machine.path(".sparsek-gate"));
    let compiled = machine.compiled();
    let slips = "
2 | 3 | there is no GPU 2: the driver shows 0 (GPU-00112233-4455-
GPU-77 | 3 | there is no GPU GPU-77
GPU-0011 | 2 | that of several GPUs
1,1 | 2 | twice
some | 2 | names no GPU: write all, 0,2 or GPU-1a2b3c4d
all --static | 2 | cannot be used with
all --from x | 2 | cannot be used with
all --output x | 2 | cannot be used with";
    for [gpus, code, why] in &common::rows(slips) {
        let ran = machine.run(&format!("check --gpus {gpus}"));
        ran.ends(code.parse().unwrap(), why);
    }
    assert_eq!(machine.compiled(), compiled);
    // What a machine lacks is said once, and not by every GPU.
    fs::remove_file(machine.path("bin/ncu")).unwrap();
    let (_, ran) = outcome(&machine, ALL, 3);
    ran.says("bin/ncu");
    assert_eq!(machine.compiled(), compiled);
}

/// The GPUs that the latest profiles of a variant are from, where it was profiled on several.
fn measured_on(machine: &Machine, variant: &str) -> Vec<String> {
    let path = format!(".sparsek-gate/profiles/bsr_gemm/{variant}/variant.json");
    if !machine.path(&path).exists() {
        return Vec::new();
    }
    let record = sealed::content(&machine.project, &path);
    let on = record["on"].as_array().cloned().unwrap_or_default();
    let on = on.iter().map(|gpu| gpu.as_str().unwrap().to_owned());
    on.collect()
}

/// A run in the background.
fn start(machine: &Machine, arguments: &str) -> Child {
    let mut command = machine.gate(arguments);
    let command = command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::null()).spawn().unwrap()
}

/// Waits until so many processes of a machine have these words.
#[track_caller]
fn wait_for(machine: &Machine, words: &[&str], count: usize) -> Vec<i32> {
    let end = Instant::now() + PATIENCE;
    loop {
        let found = running(&machine.path(""), words);
        if found.len() >= count {
            return found;
        }
        assert!(Instant::now() < end, "{words:?}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn kill(pid: i32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

/// Lets no run lock a GPU: its thread fails once it measures.
fn refuse_lock(machine: &Machine, uuid: &str) -> PathBuf {
    let path = machine.path(&format!("tmp/sparsek-gate-{uuid}.lock"));
    let _ = fs::remove_file(&path);
    fs::create_dir(&path).unwrap();
    path
}

#[test]
fn a_run_that_is_interrupted_or_killed_leaves_no_program_on_any_gpu() {
    let machine = two_gpus(2);
    machine.slow(600.0);
    for (command, signal, code) in [
        (ALL, Signal::TERM, Some(130)),
        (ALL, Signal::INT, Some(130)),
        (ALL, Signal::KILL, None),
        ("profile --gpus all", Signal::KILL, None),
    ] {
        let mut run = start(&machine, command);
        wait_for(&machine, &["sleep 600"], 2);
        kill(Pid::from_child(&run).as_raw_nonzero().get(), signal);
        assert_eq!(run.wait().unwrap().code(), code, "{command} {signal:?}");
        // The programs would go on for longer than this waits.
        wait_for_orphans(&machine.path(""));
    }
}

#[test]
fn a_program_that_ends_ends_no_process_that_may_be_of_a_program_on_another_gpu() {
    let machine = two_gpus(2);
    let file = |name: &str| machine.path(&format!("tmp/{name}"));
    let [helper, begun, first, found] = ["helper", "begun", "first", "found"].map(file);
    // The program on the second GPU leaves a process without a mark and without a parent, and looks
    // whether it still runs after one on the first GPU has ended.
    machine.ncu(&format!(
        "case $1:$CUDA_VISIBLE_DEVICES in
         --import:* | --version:*) ;;
         *fe)
             if mkdir {found} 2>/dev/null; then
                 until [ -e {begun} ]; do sleep 0.05; done
                 (env -i /usr/bin/setsid /bin/sh -c 'echo $$ >{helper}; exec sleep 300' &)
                 until [ -s {helper} ] && [ -e {first} ]; do sleep 0.05; done
                 sleep 1
                 kill -0 $(cat {helper}) && touch {found}/runs
             fi ;;
         *)
             touch {begun}
             until [ -s {helper} ]; do sleep 0.05; done
             touch {first} ;;
         esac",
        helper = helper.display(),
        begun = begun.display(),
        first = first.display(),
        found = found.display(),
    ));
    let (outcome, _) = outcome(&machine, ALL, 0);
    all_measured(&outcome, 2);
    assert!(found.join("runs").exists());
    // At the end of its own program it ended.
    assert_eq!(running(&machine.path(""), &[]), [0; 0]);
}

#[test]
fn profiling_on_all_gpus_goes_on_where_it_was_interrupted() {
    let machine = two_gpus(2);
    let profile = "profile --gpus all --format json";
    let measured = || {
        let ran = machine.run(&format!("{profile} --resume"));
        let answer = ran.exits(0).json().0;
        assert_eq!(answer["profiles"].as_array().unwrap().len(), 4);
        let findings = answer["findings"].as_array().unwrap().iter();
        let resumed = findings.filter(|one| one["code"] == "resumed");
        let messages = resumed.map(|one| one["message"].as_str().unwrap());
        let on_gpu = |message: &str| message.split(": ").next().unwrap().to_owned();
        messages.map(on_gpu).collect::<BTreeSet<String>>()
    };
    // The first variant is whole on both GPUs, and the second one only begun.
    let slow = machine.path("tmp/slow");
    fs::write(&slow, "").unwrap();
    // A program could read the script of ncu, so that stays as it is.
    machine.ncu(&format!(
        "echo \"$*\" >>\"$ARGV\"; [ -e {} ] && case $* in *v-n_2/capture-1*) sleep 300 ;; esac",
        slow.display()
    ));
    let mut child = start(&machine, profile);
    wait_for(&machine, &["sleep 300"], 2);
    child.kill().unwrap();
    child.wait().unwrap();
    fs::remove_file(&slow).unwrap();
    let both = BTreeSet::from([UUID, SECOND].map(|uuid| format!("on {uuid}")));
    let _ = fs::remove_file(machine.path("argv"));
    assert_eq!(measured(), both);
    let calls = machine.ncu_calls().into_iter();
    let again = calls.filter(|call| call.contains("--export") && call.contains("v-n_1/"));
    assert_eq!(again.count(), 0);
    wait_for_orphans(&machine.path(""));
    // Both runs are over, and the profiles are those of all GPUs.
    let left = contents(&machine.path(".sparsek-gate/profiles"));
    let of_gpus = |path: &&PathBuf| path.ends_with("run.json") && path.components().count() == 2;
    let runs: Vec<&PathBuf> = left.keys().filter(of_gpus).collect();
    assert_eq!(runs.len(), 2);
    for path in runs {
        let path = format!(".sparsek-gate/profiles/{}", path.display());
        assert_eq!(sealed::content(&machine, &path)["state"], "said");
    }
    for variant in ["v-n_1", "v-n_2"] {
        assert_eq!(measured_on(&machine, variant), [UUID, SECOND]);
    }
    assert_eq!(measured(), BTreeSet::new());
}

#[test]
fn a_profile_that_a_program_on_another_gpu_changed_is_not_locked() {
    let machine = two_gpus(1);
    // The program on the second GPU waits for the end of the first, and edits its profile.
    let profiles = machine.path(".sparsek-gate/profiles");
    machine.ncu(&format!(
        "case $1:$CUDA_VISIBLE_DEVICES in
         --import:* | --version:*) ;;
         *fe)
             until [ -e '{0}' ]; do sleep 0.05; done
             sleep 1
             sed -i 's/\"launches\": [0-9]*/\"launches\": 7/' '{0}' ;;
         esac",
        profiles
            .join(UUID)
            .join("bsr_gemm/v-n_1/profile.json")
            .display()
    ));
    let ran = machine.run("profile --gpus all").exits(5);
    ran.says("changed after it was measured");
    assert_eq!(measured_on(&machine, "v-n_1"), [""; 0]);
}

#[test]
fn what_a_gpu_should_have_measured_whose_thread_failed_is_not_measured_and_the_others_go_on() {
    let machine = two_gpus(2);
    let lock = refuse_lock(&machine, SECOND);
    let (found, _) = outcome(&machine, ALL, 6);
    let why = format!("{} is no lock file", lock.display());
    let unusable = message(&found, "slice-unusable");
    common::contains(&unusable, &["slice 2/2", SECOND, &why]);
    assert!(message(&found, "not-measured").contains("slice 2/2"));
    let findings = found["findings"].as_array().unwrap();
    let unmeasured = findings.iter().find(|one| one["code"] == "not-measured");
    assert_eq!(unmeasured.unwrap()["next"], "run the check again");
    assert_eq!(found["variants"].as_array().unwrap().len(), 1);
    assert_eq!(uuids(&found), [UUID]);
}

#[test]
fn a_program_that_is_killed_on_one_gpu_fails_its_variant_alone() {
    let machine = two_gpus(2);
    machine.ncu(
        "case $1:$CUDA_VISIBLE_DEVICES in --import:* | --version:*) ;; *fe) kill -9 $$ ;; esac",
    );
    let found = Report(outcome(&machine, ALL, 5).0);
    assert_eq!(found.denied(), ["program-failed"]);
    let measured = found.0["variants"].as_array().unwrap();
    assert_eq!(measured.len(), 1);
    assert_ne!(measured[0]["variant"], found.0["findings"][0]["variant"]);
    assert!(running(&machine.path(""), &[]).is_empty());
}

/// What is killed in a run.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Check,
    /// A program on the first GPU, or on the second.
    Program(u32),
}

#[test]
fn whatever_is_killed_nothing_unmeasured_passes_and_no_process_is_left() {
    const VICTIMS: [Victim; 3] = [Victim::Check, Victim::Program(1), Victim::Program(2)];
    let machine = two_gpus(2);
    machine.slow(0.05);
    let report = machine.path("tmp/outcome.json");
    let begun = Instant::now();
    outcome(&machine, ALL, 0);
    let whole = begun.elapsed();
    let mut state = u64::from(std::process::id()) << 16 | 1;
    aloud(&format!("kills on two GPUs: seed {state}, {whole:?} a run"));
    let mut ended = std::collections::BTreeMap::new();
    for number in 0..kills(3) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let victim = VICTIMS[number as usize % VICTIMS.len()];
        let _ = fs::remove_file(&report);
        let mut check = start(&machine, "check --gpus all --report json:tmp/outcome.json");
        std::thread::sleep(whole.mul_f64((state % 1000) as f64 / 1000.0));
        let folder: &Path = &machine.path("");
        let found = match victim {
            Victim::Check => vec![Pid::from_child(&check).as_raw_nonzero().get()],
            Victim::Program(gpu) => running(folder, &["bin/ncu", &format!("/slices/{gpu}/")]),
        };
        if let Some(pid) = found.first() {
            kill(*pid, Signal::KILL);
        }
        let status = check.wait().unwrap();
        wait_for_orphans(folder);
        if status.code() == Some(0) {
            all_measured(&read_json(&report), 2);
        }
        let how = format!("{victim:?}: {:?}", status.code());
        *ended.entry(how).or_insert(0_u32) += 1;
    }
    aloud(&format!("kills on two GPUs: {ended:?}"));
}

#[test]
fn every_variant_is_profiled_on_all_gpus_and_one_call_locks_them() {
    let machine = two_gpus(2);
    let project = &machine.project;
    let compiled = machine.compiled();
    let ran = machine.run("profile --gpus all --format json").exits(0);
    let answer = ran.json().0;
    assert_eq!(answer["profiles"].as_array().unwrap().len(), 4);
    let gpus = answer["gpus"].as_array().unwrap();
    assert_eq!(gpus.len(), 2);
    for (gpu, uuid) in gpus.iter().zip([UUID, SECOND]) {
        let folder = Path::new(gpu["folder"].as_str().unwrap());
        assert!(folder.ends_with(format!(".sparsek-gate/profiles/{uuid}")));
        for variant in ["v-n_1", "v-n_2"] {
            let profile = folder.join(format!("bsr_gemm/{variant}/profile.json"));
            let profile = read_json(&profile);
            assert_eq!(profile["provenance"]["gpu_uuid"], uuid);
        }
    }
    // Nothing changed, so nothing is built. The two equal builds before were one or two.
    assert_eq!(machine.compiled(), compiled);
    let lock = ["baseline", "--lock", "--reason", "from two GPUs"];
    let locked = |variant: &str| {
        let path = format!("baselines/nvidia-h200/bsr_gemm/{variant}.profile.json");
        let text = project.read(&path);
        [UUID, SECOND].map(|uuid| text.contains(uuid))
    };
    machine.run(&lock).exits(0);
    assert_eq!(locked("v-n_1"), [true, true]);
    // A variant that is profiled again on one GPU is locked from that, and the others as before.
    machine.run("profile v-n_2").exits(0);
    machine.run(&lock).exits(0);
    assert_eq!(locked("v-n_1"), [true, true]);
    assert_eq!(locked("v-n_2"), [true, false]);
    machine.run(ALL).exits(0);

    // A GPU that fails: nothing is locked from fewer GPUs than were asked for.
    let lock = refuse_lock(&machine, SECOND);
    let ran = machine.run("profile --gpus all").exits(6);
    ran.says(&format!(
        "nothing counts of the profiles on {SECOND}: {} is no lock file",
        lock.display()
    ));
    for variant in ["v-n_1", "v-n_2"] {
        assert_eq!(measured_on(&machine, variant), [""; 0]);
    }
}

#[test]
fn what_a_program_writes_to_the_slice_of_another_gpu_is_found() {
    let machine = two_gpus(2);
    let folder = machine.path(".sparsek-gate/gpus");
    // The program on the second GPU waits for the end of the first slice, edits its record, and seals
    // that again.
    machine.ncu(&format!(
        "case $1:$CUDA_VISIBLE_DEVICES in
         --import:* | --version:*) ;;
         *fe)
             record=$(echo {0}/*)/slices/1/run.json
             until grep -q '\"found\":' \"$record\"; do sleep 0.05; done
             content=$(sed -e 's/^{{\"sha256\":\"[0-9a-f]*\",\"content\"://' -e 's/}}$//' \
                 -e 's/\"profiled\":[0-9]*/\"profiled\":1000/g' \"$record\")
             sha256=$(printf %s \"$content\" | sha256sum | cut -c -64)
             printf '{{\"sha256\":\"%s\",\"content\":%s}}\n' \"$sha256\" \"$content\" >\"$record.new\"
             mv \"$record.new\" \"$record\" ;;
         esac",
        folder.display()
    ));
    let (found, _) = outcome(&machine, ALL, 6);
    let words = ["slice 1/2", UUID, "run.json is not what was written"];
    common::contains(&message(&found, "slice-unusable"), &words);
    assert_eq!(uuids(&found), [SECOND]);
    // It is a record all the same.
    let record = runs(&machine)[0].join("slices/1/run.json");
    let name = record.strip_prefix(machine.path("")).unwrap();
    let record = sealed::content(&machine.project, name.to_str().unwrap());
    assert_eq!(record["found"]["captures"]["spent"]["profiled"], 1000);
}

const INTO_SLICES: &str = "profile --gpus all --output tmp/d";

/// Measures a check on both GPUs, for who judges it later: a slice on each.
#[track_caller]
fn both_measure(machine: &Machine, of: &str) {
    let ran = machine.run(&format!("{INTO_SLICES} {of}")).exits(0);
    ran.says("2 slices in").says("nothing is judged yet");
    for (index, uuid) in [(1, UUID), (2, SECOND)] {
        let record = sealed::content(&machine.project, &format!("tmp/d/{index}/run.json"));
        assert_eq!(record["state"], "said");
        assert_eq!(record["found"]["captures"]["gpus"][0]["uuid"], uuid);
    }
    wait_for_orphans(&machine.path(""));
}

/// A further archive of the checkout, as a check takes it.
fn packed(machine: &Machine) -> String {
    let packed = machine.run("archive --output tmp/a.tar.zst --format json");
    let sha256 = packed.exits(0).json().0["sha256"].take();
    let sha256 = sha256.as_str().unwrap();
    format!("--archive tmp/a.tar.zst --archive-sha256 {sha256}")
}

#[test]
fn all_gpus_measure_an_archive_that_is_judged_later() {
    let machine = two_gpus(2);
    let by = packed(&machine);
    both_measure(&machine, "--archive tmp/a.tar.zst");
    let judge = |from: &str| format!("check --from {from} {by}");
    let (found, _) = outcome(&machine, &judge("tmp/d"), 0);
    all_measured(&found, 2);
    assert_eq!(uuids(&found), [UUID, SECOND]);
    let (lacks, _) = outcome(&machine, &judge("tmp/d/1"), 6);
    for code in ["slice-unusable", "not-measured"] {
        message(&lacks, code);
    }

    // A GPU that cannot measure is named, and the other one's slice counts.
    let lock = refuse_lock(&machine, SECOND);
    let ran = machine.run(&format!("{INTO_SLICES} --archive tmp/a.tar.zst"));
    ran.ends(6, &format!("slice 2/2 on {SECOND} is not used"))
        .says(&format!("{} is no lock file", lock.display()));
    outcome(&machine, &judge("tmp/d"), 6);
}

#[test]
fn all_gpus_measure_both_sides_of_a_check_that_is_judged_later() {
    let machine = two_gpus(2);
    both_measure(&machine, "--against HEAD");
    let places = [
        "1/bsr_gemm/v-n_1", "1/bsr_gemm/v-n_2", "2/bsr_gemm/v-n_1", "2/bsr_gemm/v-n_2",
    ];
    let bases = places.map(|place| machine.path(&format!("tmp/d/{place}/base/profile.json")));
    assert_eq!(bases.iter().filter(|base| base.is_file()).count(), 2);
    // They are judged as slices of a checkout, without what was packed for the GPUs.
    let (found, _) = outcome(&machine, "check --from tmp/d", 0);
    all_measured(&found, 2);
    assert_eq!(uuids(&found), [UUID, SECOND]);
    assert_eq!(found["origin"]["kind"], "recorded");
    outcome(&machine, "check --from tmp/d/2", 6);
    let by = format!("check --from tmp/d {}", packed(&machine));
    outcome(&machine, &by, 6);
}

#[test]
fn slices_on_all_gpus_resume_their_own_runs() {
    let machine = two_gpus(4);
    machine.slow(0.1);
    let mut run = start(&machine, &format!("{INTO_SLICES} --against HEAD"));
    let has_one = |index: u32| {
        let suite = machine.path(&format!("tmp/d/{index}/bsr_gemm"));
        let mut variants = fs::read_dir(suite).into_iter().flatten().flatten();
        variants.any(|variant| variant.path().join("variant.json").exists())
    };
    let end = Instant::now() + PATIENCE;
    while !(has_one(1) && has_one(2)) {
        assert!(Instant::now() < end && run.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    wait_for_orphans(&machine.path(""));
    let unjudged = machine.run("check --from tmp/d").exits(6);
    unjudged.says("it was cut off: its run did not end");
    // A program could read the script of ncu, so that stays as it is.
    both_measure(&machine, "--against HEAD --resume");
    let (found, _) = outcome(&machine, "check --from tmp/d", 0);
    all_measured(&found, 4);
    let resumed = found["resumed"].as_array().unwrap();
    assert!(resumed.len() >= 2, "{resumed:?}");
}
