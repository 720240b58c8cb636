//! The machine code that a program loads while it runs, and what its autotuner chose, on a machine
//! without a GPU. The reports are those that ncu recorded on an H200, with the cubins in them.

use std::fs;

use crate::common::stand_in::Machine;
use crate::common::{self, repository};
use serde_json::Value as Json;

const KERNEL: &str = "bsr_gemm_wmma";
const MANGLED: &str = "_Z13bsr_gemm_wmmaPKiS0_PK6__halfS3_Pfi";

const CONFIG: &str = r#"
[toolchain]
arch = "sm_90a"
ncu = "bin/ncu"

[profile]
launches = 20
processes = 2
profiler_range = true
clock_control = "none"

[metric.duration]
direction = "lower"
tolerance = { stored = '3 %', against = '3 %' }

[static.tensor_instructions]
level = "record"
[static.wgmma_instructions]
level = "record"
[static.registers]
level = "deny"

[suite.s]
kernels = "bsr_gemm_wmma"

[suite.s.variant.v]
run = ["sh", "bench.sh"]
inputs = ["bench.sh"]
loaded_code = true
"#;

/// The sentence by which Triton reports what it chose.
fn sentence(chosen: &str) -> String {
    format!(
        "Triton autotuning for function {KERNEL} finished after 0.48s; best config selected: {chosen};"
    )
}

/// A project whose program has ncu hand over the recording `first`.
fn machine() -> Machine {
    let machine = Machine::new();
    machine.write("config.toml", CONFIG);
    machine.ncu(&format!(
        "export RECORDINGS='{}'",
        machine.path("recordings").display()
    ));
    for name in ["first", "again"] {
        record(&machine, name, |_| {});
    }
    program(&machine, "recorded: first", "");
    machine
}

/// A program that prints this, and the name of a recording.
fn program(machine: &Machine, recorded: &str, prints: &str) {
    let text = format!("echo 'variant: v'\necho '{recorded}'\ncat <<'END'\n{prints}\nEND\n");
    machine.write("bench.sh", text);
}

/// The recorded report under another name, with other bytes: no two processes leave the same.
fn record(machine: &Machine, name: &str, edit: impl Fn(&mut [u8])) {
    let folder = format!("recordings/{name}/bsr_gemm/v");
    let data = repository().join("tests/data/ncu");
    let csv = fs::read(data.join("twenty_launches.raw.csv")).unwrap();
    for capture in 1..=4 {
        let mut report = fs::read(data.join("twenty_launches.ncu-rep")).unwrap();
        // The name of the host, in the session.
        let host = report.windows(9).position(|bytes| bytes == b"127.0.0.1");
        let own = format!("127.0.{}.{capture}", name.len());
        report[host.unwrap()..][..own.len()].copy_from_slice(own.as_bytes());
        edit(&mut report);
        let path = format!("{folder}/capture-{capture}");
        machine.write(&format!("{path}.ncu-rep"), report);
        machine.write(&format!("{path}.csv"), &csv);
    }
}

/// Another instruction in the kernel: a byte of its `.text` is another one.
fn other_instruction(report: &mut [u8]) {
    let (start, cubin) = cubin(report);
    let file = object::read::elf::ElfFile64::<object::Endianness>::parse(&*cubin).unwrap();
    let section = object::Object::section_by_name(&file, &format!(".text.{MANGLED}")).unwrap();
    let (offset, size) = object::ObjectSection::file_range(&section).unwrap();
    let at = start + usize::try_from(offset + size / 2).unwrap();
    report[at] ^= 1;
}

/// The kernel takes more registers: what `.nv.info` states of it is another number.
fn more_registers(report: &mut [u8]) {
    let (start, cubin) = cubin(report);
    // EIATTR_REGCOUNT: format, attribute, size of the payload, index of the symbol, registers.
    let begins = [0x04, 0x2f, 0x08, 0x00];
    let at = (0..cubin.len() - 12)
        .find(|at| cubin[*at..].starts_with(&begins) && cubin[at + 8..at + 12] == [230, 0, 0, 0]);
    report[start + at.unwrap() + 8] = 240;
    other_instruction(report);
}

/// Where the cubin of a report begins, and its bytes.
fn cubin(report: &[u8]) -> (usize, Vec<u8>) {
    let codes = ncu_report::report::machine_code(report).unwrap();
    let cubin = codes[0].cubin.to_vec();
    let at = report.windows(cubin.len()).position(|bytes| bytes == cubin);
    (at.unwrap(), cubin)
}

#[test]
fn a_program_that_its_change_only_states_the_code_of_is_not_measured() {
    let machine = machine();
    let report = fs::read(repository().join("tests/data/ncu/twenty_launches.ncu-rep")).unwrap();
    machine.write("k.cubin", cubin(&report).1);
    machine.write("config.toml", CONFIG.replace("loaded_code = true\n", ""));
    machine.commit();
    let run = "run = [\"sh\", \"bench.sh\"]\ninputs = [\"bench.sh\"]\n";
    let config = machine.read("config.toml");
    assert!(config.contains(run), "{config}");
    machine.write(
        "config.toml",
        config.replace(run, "program = \"k.cubin\"\n"),
    );
    machine
        .run("check --against HEAD")
        .says("nothing of it runs, and its base does")
        .says("not-measured s/v");
}

#[test]
fn the_static_profile_of_a_program_is_made_again_with_what_its_launches_have() {
    let machine = machine();
    let report = fs::read(repository().join("tests/data/ncu/twenty_launches.ncu-rep")).unwrap();
    machine.write("k.cubin", cubin(&report).1);
    let stated = "program = \"k.cubin\"\ndynamic_shared_bytes = 100000";
    machine.write("config.toml", CONFIG.replace("loaded_code = true", stated));
    let metric = |name: &str| {
        let path = ".sparsek-gate/profiles/s/v/static.json";
        let profile: Json = machine.json(path);
        profile["kernels"][0]["metrics"][name]["value"].clone()
    };
    machine.run("build").exits(0);
    assert_eq!(metric("dynamic_shared_bytes"), 100_000.0);
    assert_eq!(metric("occupancy_limit_shared_mem"), 1.0);
    machine.run("profile").ends(
        0,
        "`dynamic_shared_bytes` 100000, but was launched with 0: the launch counts",
    );
    assert_eq!(metric("dynamic_shared_bytes"), 0.0);
    assert_eq!(metric("occupancy_limit_shared_mem"), 13.0);
}

#[test]
fn code_that_a_program_loads_is_kept_locked_and_compared() {
    let machine = machine();
    machine.lock_measured();
    let profile: Json = machine.json(".sparsek-gate/profiles/s/v/static.json");
    let kernels = profile["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), 1, "only what was measured");
    assert_eq!(kernels[0]["mangled"], MANGLED);
    // As `cuobjdump -res-usage` prints them of the same cubin.
    assert_eq!(kernels[0]["metrics"]["registers"]["value"], 230.0);
    assert_eq!(
        kernels[0]["metrics"]["static_shared_bytes"]["value"],
        16384.0
    );
    // As the launches have it.
    let dynamic = &kernels[0]["metrics"]["dynamic_shared_bytes"];
    assert_eq!(dynamic["value"], 0.0);
    assert_eq!(profile["identity"]["tier"], "static");
    let argv = machine.read(".sparsek-gate/profiles/s/v/capture-1.argv");
    assert!(argv.contains("--import-sass yes"), "{argv}");
    assert!(
        machine
            .path("baselines/sm-90a+static/s/v.lock.toml")
            .is_file()
    );

    let same = machine.check(&[], 0);
    assert_eq!(same.fields("tuning-changed", "message"), [""; 0]);
    // The same files, and other code.
    record(&machine, "first", more_registers);
    let other = machine.check(&[], 4);
    // Behind it stand the instructions that differ, where there is a disassembler.
    let regressed = other.fields("regressed", "message");
    let said = "`registers` of bsr_gemm_wmma: 230 → 240 (tolerance 0)";
    assert!(
        regressed.len() == 1 && regressed[0].starts_with(said),
        "{regressed:?}"
    );
    other.tells_all(
        "tuning-changed",
        &["its files and its compiler are the same"],
    );
    // Other files: no autotuner is needed for other code.
    program(&machine, "recorded: first", "# other");
    let other = machine.check(&[], 1);
    assert_eq!(other.fields("tuning-changed", "message"), [""; 0]);
    assert_eq!(other.fields("regressed", "message").len(), 1);
}

#[test]
fn what_an_autotuner_chose_otherwise_is_named_as_the_cause() {
    let machine = machine();
    program(
        &machine,
        "recorded: first",
        &sentence("M: 128, num_warps: 4, num_stages: 3"),
    );
    machine.lock_measured();
    program(
        &machine,
        "recorded: again",
        &sentence("M: 128, num_warps: 8, num_stages: 3"),
    );
    record(&machine, "again", more_registers);
    let found = machine.check(&[], 4);
    let why = "`bsr_gemm_wmma` is tuned otherwise than in the baseline: num_warps 4 → 8 (now M: 128, num_warps: 8, num_stages: 3)";
    assert_eq!(found.fields("tuning-changed", "message"), [why]);
    assert_eq!(found.fields("regressed", "message").len(), 1);
}

#[test]
fn a_process_that_tunes_what_it_measures_is_refused_after_the_first() {
    let machine = machine();
    let config = CONFIG.replace("profiler_range = true\n", "");
    machine.write("config.toml", config);
    program(&machine, "recorded: first", &sentence("M: 128"));
    let ran = machine.run("profile").exits(6);
    ran.says("the measured process tuned `bsr_gemm_wmma`")
        .says("profiler_range = true");
    let profiled = machine.read("journal");
    assert_eq!(profiled.lines().count(), 1, "{profiled}");
    // Of a kernel that is not measured it may tune what it likes.
    program(
        &machine,
        "recorded: first",
        &sentence("M: 128").replace(KERNEL, "another"),
    );
    machine.run("profile").exits(0);
}

#[test]
fn code_that_differs_from_process_to_process_is_no_static_profile() {
    let machine = machine();
    record(&machine, "again", other_instruction);
    program(&machine, "recorded: first again", "");
    machine
        .run("profile")
        .ends(6, "code-varies")
        .says("`_Z13bsr_gemm_wmma")
        .says("TRITON_CACHE_AUTOTUNING");
    machine
        .run("baseline --lock --reason first --who Ada")
        .ends(6, "it has no static profile");
}

#[test]
fn code_that_was_not_kept_is_said_and_the_measured_profile_stays() {
    let machine = machine();
    record(&machine, "first", |report| {
        let (start, _) = cubin(report);
        report[start] = 0;
    });
    machine
        .run("profile")
        .ends(6, "the machine code that it loaded is not known");
    assert!(
        machine
            .path(".sparsek-gate/profiles/s/v/profile.json")
            .is_file()
    );
    assert!(
        !machine
            .path(".sparsek-gate/profiles/s/v/static.json")
            .exists()
    );
}

#[test]
fn without_a_gpu_loaded_code_is_reported_as_not_judged() {
    let machine = machine();
    machine.lock_measured();
    machine
        .run("check --static")
        .says("the static gate cannot judge it: its machine code is loaded while it runs")
        .says("next: measure it: sparsek-gate check s/v");
}

#[test]
fn a_static_profile_that_is_not_that_of_its_captures_is_found_and_not_locked() {
    let machine = machine();
    machine.lock_measured();
    let path = ".sparsek-gate/profiles/s/v/static.json";
    machine.edit(path, |profile| {
        profile["kernels"][0]["code"]["text_sha256"] = "0".repeat(64).into();
    });
    let from = machine.path(".sparsek-gate/profiles");
    let ran = machine.run(&["check", "--from", from.to_str().unwrap()]);
    ran.says("the static profile differs from the captures: `bsr_gemm_wmma` has other code");
    machine
        .run("baseline --lock --reason again --who Ada")
        .ends(4, "profile-altered");
}

/// A slower kernel of which nothing but the choice of its autotuner is known.
#[test]
fn a_regression_names_the_choice_of_the_autotuner_first() {
    let machine = Machine::new();
    let config = CONFIG
        .replace("loaded_code = true\n", "")
        .replace("bsr_gemm_wmma", "bsr_gemm_cp_async");
    machine.write("config.toml", config);
    let program = |recorded: &str, warps: u32| {
        let says = sentence(&format!("M: 128, num_warps: {warps}"));
        let says = says.replace(KERNEL, "bsr_gemm_cp_async");
        let text =
            format!("echo 'variant: cp_async'\necho 'recorded: {recorded}'\necho '{says}'\n");
        machine.write("bench.sh", text);
    };
    program("h200", 4);
    machine.without("");
    machine.lock_measured();
    machine.commit();
    program("h200-worse", 8);
    let steps = "num_warps 4 → 8 (now M: 128, num_warps: 8)";
    // Beside the base the change is judged for what it does, against the lock it is a change.
    for (arguments, code, severity) in [(&[][..], 4, "deny"), (&["--against", "HEAD"], 1, "warn")] {
        let report = machine.check(arguments, code);
        let regressed = report.fields("regressed", "message");
        common::contains(regressed[0], &["also changed: ", steps]);
        report.tells_all("tuning-changed", &[steps]);
        assert_eq!(report.fields("tuning-changed", "severity"), [severity]);
    }
}

#[test]
fn processes_that_choose_differently_are_a_warning_where_no_code_is_gated() {
    let machine = machine();
    let config = CONFIG.replace("loaded_code = true\n", "");
    machine.write("config.toml", config);
    let text = "n=$(grep -c . journal)\necho 'variant: v'\necho 'recorded: first'\n\
        echo \"Triton autotuning for function bsr_gemm_wmma finished after 1s; best config selected: N: $n;\"\n";
    machine.write("bench.sh", text);
    machine
        .run("profile")
        .ends(0, "warning code-varies s/v")
        .says("chose different configurations of `bsr_gemm_wmma`: N: 0; N: 1");
}
