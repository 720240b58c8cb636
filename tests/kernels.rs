//! The shipped kernels compile with the pinned compiler, and as their headers say.

use crate::common::{self, are_here};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use sparsek_gate::capture;
use sparsek_gate::config::Config;
use sparsek_gate::evidence::launch_mismatches;
use sparsek_gate::profile::Profile;

/// What is built: every kernel that is no fault, and each fault whose code a test looks at. The others run on a
/// GPU (tests/gpu/run.sh).
const BUILT: [&str; 17] = [
    "attention", "attention_causal", "bsr_gemm", "trajectory_resample",
    "trajectory_resample_cached", "trajectory_resample_dense", "faults/combined",
    "faults/extra_sync", "faults/less_work", "faults/no_tensor_cores", "faults/renamed",
    "faults/skipped_tail", "faults/slower_0", "faults/slower_05", "faults/slower_5",
    "faults/spills", "faults/uncoalesced",
];

/// Variants built in a copy of the kernels.
struct Build {
    folder: PathBuf,
    variants: Vec<serde_json::Value>,
}

/// All of them, once for all tests: a compiler takes its time.
static BUILD: LazyLock<Build> = LazyLock::new(Build::new);

impl Build {
    fn new() -> Self {
        let root = env!("CARGO_MANIFEST_DIR");
        // Kept from run to run, so that what did not change is not compiled again.
        let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
        std::fs::create_dir_all(&work).unwrap();
        for copied in ["kernels", "baselines"] {
            let _ = std::fs::remove_dir_all(work.join(copied));
        }
        let copied = Command::new("cp")
            .args(["-r", &format!("{root}/kernels")])
            .arg(&work)
            .status();
        assert!(copied.unwrap().success());
        // Of the programs only the machine code of the kernels is read, which `-O` leaves alone.
        let config = std::fs::read_to_string(format!("{root}/config.toml")).unwrap();
        assert!(config.contains("\"-O3\""));
        let config = config.replace("\"-O3\"", "\"-O0\"");
        let suites = config
            .lines()
            .filter_map(|line| line.strip_prefix("[suite."));
        let suites = suites.map(|line| line.split(['.', ']']).next().unwrap());
        for suite in suites.filter(|suite| *suite != "faults") {
            assert!(BUILT.contains(&suite), "{suite} is not built");
        }
        std::fs::write(work.join("config.toml"), config).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_sparsek-gate"))
            .current_dir(&work)
            .args(["build", "--experimental", "--format", "json"])
            .args(BUILT)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        Self {
            folder: work,
            variants: answer["variants"].as_array().unwrap().clone(),
        }
    }

    /// The instructions of a variant's kernel, with their encoding, one a line.
    fn machine_code(&self, name: &str, kernel: &str) -> Vec<String> {
        let variant = self.variants.iter().find(|one| one["variant"] == name);
        let program = variant.unwrap()["program"][0].as_str().unwrap();
        machine_code(kernel, Path::new(program))
    }
}

/// The instructions of a kernel in a program or cubin, with their encoding, one a line.
fn machine_code(kernel: &str, of: &Path) -> Vec<String> {
    let output = Command::new("cuobjdump")
        .args(["-sass", "-fun", kernel])
        .arg(of)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", of.display());
    let code: Vec<String> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter(|line| line.trim_start().starts_with("/*"))
        .map(str::to_owned)
        .collect();
    assert!(!code.is_empty(), "{}", of.display());
    code
}

/// The machine code of cp_async in the form that the faults were made from.
fn cp_async_of_the_faults() -> Vec<String> {
    let root = env!("CARGO_MANIFEST_DIR");
    let folder = tempfile::tempdir().unwrap();
    let cubin = folder.path().join("cp_async.cubin");
    let output = Command::new("nvcc")
        .args(["-gencode=arch=compute_90a,code=sm_90a", "-O3", "-std=c++17"])
        .args(["-lineinfo", "-DCOLUMN_AHEAD=1", "-cubin", "-o"])
        .arg(&cubin)
        .arg(format!("{root}/kernels/bsr_gemm/cp_async.cu"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    machine_code("bsr_gemm_cp_async", &cubin)
}

fn count(code: &[String], instruction: &str) -> usize {
    code.iter()
        .filter(|line| line.contains(instruction))
        .count()
}

#[test]
#[ignore = "compiles 38 variants; `.ci/run` runs it"]
fn every_shipped_kernel_compiles_and_only_the_one_that_is_meant_to_spills_registers() {
    if !are_here(&["nvcc"]) {
        return;
    }
    let named = |variant: &serde_json::Value| variant["variant"].as_str().unwrap().to_owned();
    let is_twin = |variant: &&serde_json::Value| named(variant).ends_with("/triton");
    let (twins, compiled): (Vec<_>, Vec<_>) = BUILD.variants.iter().partition(is_twin);
    assert_eq!((twins.len(), compiled.len()), (5, 38));
    for variant in compiled {
        let name = named(variant);
        let kernels = variant["kernels"].as_object().unwrap();
        let families = ["bsr_gemm_", "trajectory_resample_", "attention_"];
        let of_a_family = |kernel: &str| families.iter().any(|family| kernel.starts_with(family));
        assert!(kernels.keys().any(|kernel| of_a_family(kernel)), "{name}");
        for (kernel, resources) in kernels {
            let spills = kernel == "bsr_gemm_spills";
            for bytes in ["spill_store_bytes", "spill_load_bytes"] {
                let bytes = resources[bytes].as_u64().unwrap();
                assert_eq!(bytes > 0, spills, "{name}: {kernel}");
            }
            assert!(
                resources["registers"]
                    .as_u64()
                    .is_some_and(|registers| registers > 0),
                "{name}: {kernel}"
            );
        }
    }
}

#[test]
#[ignore = "compiles 38 variants; `.ci/run` runs it"]
fn what_the_compiler_makes_of_the_shipped_kernels_is_what_is_locked() {
    if !are_here(&["nvcc", "nvdisasm"]) {
        return;
    }
    let build = &*BUILD;
    let locked = Path::new(env!("CARGO_MANIFEST_DIR")).join("baselines");
    let copied = Command::new("cp")
        .args(["-r", locked.to_str().unwrap()])
        .arg(&build.folder)
        .status();
    assert!(copied.unwrap().success());
    let mut check = Command::new(env!("CARGO_BIN_EXE_sparsek-gate"));
    common::outside_pull_request(&mut check);
    let output = check
        .current_dir(&build.folder)
        .args(["check", "--static", "--format", "json"])
        .output()
        .unwrap();
    let outcome: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = outcome["findings"].as_array().unwrap();
    let text = |finding: &serde_json::Value, key: &str| finding[key].as_str().unwrap().to_owned();
    let denied = findings.iter().filter(|one| one["severity"] == "deny");
    for finding in denied {
        // The only difference to what is locked is that of this test, see `Build::new`.
        let (code, message) = (text(finding, "code"), text(finding, "message"));
        assert_eq!(code, "immutable-changed", "{message}");
        let only = "its flags changed since they were locked: +`-O0`, −`-O3`";
        assert!(message.starts_with(only), "{message}");
    }
    assert_eq!(outcome["variants"].as_array().unwrap().len(), 18);

    let mut compared = 0;
    for suite in std::fs::read_dir(locked.join("sm-90a+static")).unwrap() {
        let suite = suite.unwrap();
        for entry in std::fs::read_dir(suite.path()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let Some(variant) = name.strip_suffix(".profile.json") else {
                continue;
            };
            let id = Path::new(&suite.file_name()).join(variant);
            let now = Path::new(".sparsek-gate/profiles").join(&id);
            let code = |path: &Path| Profile::read(path).unwrap().kernels[0].code.clone();
            let now = build.folder.join(now).join("static.json");
            assert_eq!(code(&now), code(&path), "{}", id.display());
            compared += 1;
        }
    }
    assert_eq!(compared, 18);
}

#[test]
#[ignore = "compiles 38 variants; `.ci/run` runs it"]
fn faults_compile_to_what_ncu_reported_of_them_on_an_h200() {
    if !are_here(&["nvcc", "nvdisasm"]) {
        return;
    }
    let build = &*BUILD;
    let config = Config::load(&build.folder.join("config.toml"))
        .map_err(|error| error.to_string())
        .unwrap();
    let mut compared = 0;
    let recorded = common::repository().join("tests/data/static/launches");
    for entry in std::fs::read_dir(recorded).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let mut recording = capture::read_file(&path).unwrap().1;
        let id = format!("faults/{name}");
        let variant = config
            .variants()
            .find(|variant| variant.id.to_string() == id)
            .unwrap();
        let compiled = format!(".sparsek-gate/profiles/{id}/static.json");
        let compiled = Profile::read(&build.folder.join(compiled)).unwrap();
        assert_eq!(compiled.kernels.len(), 1, "{name}");
        // They were recorded in the place of cp_async, most of them under its name.
        for launch in &mut recording.launches {
            std::sync::Arc::make_mut(&mut launch.kernel)
                .function
                .clone_from(&compiled.kernels[0].name);
        }
        assert_eq!(
            launch_mismatches(variant, &compiled, [&recording]),
            [],
            "{name}"
        );
        compared += 1;
    }
    assert_eq!(compared, 8);
}

#[test]
#[ignore = "compiles 38 variants; `.ci/run` runs it"]
fn the_machine_code_of_a_fault_differs_from_a_sound_kernel_as_its_header_says() {
    if !are_here(&["nvcc", "cuobjdump"]) {
        return;
    }
    let build = &*BUILD;
    let sound = cp_async_of_the_faults();
    let slower = |name| build.machine_code(name, "bsr_gemm_slower");
    assert!(slower("faults/slower_0") == sound);
    assert!(slower("faults/slower_5") != sound);
    assert!(slower("faults/slower_5") == slower("faults/slower_05"));

    let extra_sync = build.machine_code("faults/extra_sync", "bsr_gemm_extra_sync");
    assert_eq!(
        count(&extra_sync, "BAR.SYNC"),
        count(&sound, "BAR.SYNC") + 16
    );
    assert_eq!(count(&extra_sync, "HMMA"), count(&sound, "HMMA"));

    let plain = build.machine_code("faults/no_tensor_cores", "bsr_gemm_no_tensor_cores");
    assert!(count(&sound, "HMMA") > 0);
    assert_eq!(count(&plain, "HMMA"), 0);
    assert!(count(&plain, "FFMA") > 0);
}

/// Runs nvcc with these arguments, and fails with what it said.
fn compile(arguments: &[String]) {
    let output = Command::new("nvcc").args(arguments).output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}\n{log}");
}

#[test]
#[ignore = "compiles 38 variants; `.ci/run` runs it"]
fn the_peers_can_call_a_kernel_of_each_family() {
    if !are_here(&["nvcc"]) {
        return;
    }
    let root = env!("CARGO_MANIFEST_DIR");
    let folder = tempfile::tempdir().unwrap();
    for (family, variant) in [
        ("bsr_gemm", "cp_async"),
        ("trajectory_resample", "baseline"),
        ("attention", "scalar"),
        ("attention_causal", "mma"),
    ] {
        // The front end alone: the machine code is that of the variant.
        compile(&[
            "-gencode=arch=compute_90a,code=sm_90a".to_owned(),
            "-std=c++17".to_owned(),
            "--cuda".to_owned(),
            format!("-DVARIANT=\"{root}/kernels/{family}/{variant}.cu\""),
            format!("{root}/kernels/peers/bind.cu"),
            "-o".to_owned(),
            folder.path().join(family).display().to_string(),
        ]);
    }
}

#[test]
#[ignore = "compiles 38 variants; `.ci/run` runs it"]
fn operands_that_a_kernel_cannot_take_are_refused_before_the_launch() {
    if !are_here(&["nvcc"]) {
        return;
    }
    let root = env!("CARGO_MANIFEST_DIR");
    let folder = tempfile::tempdir().unwrap();
    let shifted = |operand| format!("the address of {operand} is not a multiple of 16 bytes");
    let blocks = |number| format!("block-row 1 has {number} blocks");
    for (kernel, refused) in [
        ("tma", vec![("A", shifted("the blocks of A"))]),
        (
            "tma_wgmma",
            ["0", "1", "4", "7", "18"]
                .map(|number| (number, blocks(number)))
                .to_vec(),
        ),
    ] {
        let program = folder.path().join(kernel);
        // Without machine code, which takes the compiler longer: nothing is launched.
        compile(&[
            "-gencode=arch=compute_90a,code=compute_90a".to_owned(),
            "-std=c++17".to_owned(),
            format!("-DKERNEL=\"{root}/kernels/bsr_gemm/{kernel}.cu\""),
            format!("{root}/tests/data/kernels/refused_operands.cu"),
            "-o".to_owned(),
            program.display().to_string(),
        ]);
        let of_both = [("B", shifted("B")), ("C", shifted("C"))];
        for (what, reason) in refused.into_iter().chain(of_both) {
            let output = Command::new(&program).arg(what).output().unwrap();
            let log = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{kernel} {what}: {log}");
            assert!(log.contains(&reason), "{kernel} {what}: {log}");
        }
    }
}
