//! What the compiler made is read right, and what does not fit together is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use sparsek_gate::binary::{
    BinaryError, CompiledKernel, CompilerWarning, LaunchShape, Limits, ResourceUse, census,
    compiled, kernels_of,
};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/static")
        .join(name)
}

const KERNEL: &str = "_Z6kernelPf";

/// As ptxas reported the kernel of `kernel.cu`.
fn reported() -> BTreeMap<String, [u32; 2]> {
    BTreeMap::from([(KERNEL.to_owned(), [0, 0])])
}

fn kernels_in(cubin: &str) -> Vec<(String, CompiledKernel)> {
    let kernels = kernels_of(&fs::read(data(cubin)).unwrap(), "sm_90a");
    kernels.unwrap().into_iter().collect()
}

fn kernel_of(cubin: &str) -> CompiledKernel {
    let mut counted = census(&fs::read(data("kernel.json")).unwrap()).unwrap();
    let compiled = compiled(&reported(), Vec::new(), kernels_in(cubin)).unwrap();
    CompiledKernel {
        opcodes: counted.remove(KERNEL),
        ..compiled.kernels[KERNEL].clone()
    }
}

fn metric(kernel: &CompiledKernel, launch: LaunchShape, name: &str) -> Option<f64> {
    let metrics = kernel.metrics("sm_90a", launch, &[]);
    metrics
        .into_iter()
        .find(|(metric, _)| metric.name == name)
        .unwrap()
        .1
}

#[test]
fn a_block_without_shared_memory_takes_the_drivers_share_of_a_known_chip() {
    let kernel = kernel_of("no_shared.cubin");
    let share = |arch| {
        let metrics = kernel.metrics(arch, LaunchShape::default(), &[]);
        let found = metrics
            .into_iter()
            .find(|(metric, _)| metric.name == "driver_shared_bytes");
        found.unwrap().1
    };
    // As ncu reports it of trajectory_resample/baseline on an H200.
    assert_eq!(share("sm_90a"), Some(1024.0));
    // Before Ampere the driver takes none.
    assert_eq!(share("sm_75"), Some(0.0));
    assert_eq!(share("sm_35"), None);
}

#[test]
fn report_cubin_and_disassembly_make_one_kernel() {
    let kernel = kernel_of("kernel.cubin");
    let value = |name| metric(&kernel, LaunchShape::default(), name);
    assert_eq!(value("registers"), Some(10.0));
    assert_eq!(value("static_shared_bytes"), Some(1024.0));
    assert_eq!(value("driver_shared_bytes"), Some(1024.0));
    assert_eq!(value("barriers"), Some(1.0));
    assert_eq!(value("spill_bytes"), Some(0.0));
    assert_eq!(value("wgmma_instructions"), Some(0.0));
    let counted = kernel.opcodes.as_ref().unwrap();
    assert_eq!(counted["BAR.SYNC.DEFER_BLOCKING"], 1);
    assert_eq!(counted["EXIT"], 1);
    let all: u32 = counted.values().sum();
    assert_eq!(value("instructions"), Some(f64::from(all)));
}

#[test]
fn line_information_does_not_change_the_hash_of_the_machine_code() {
    let (plain, lines) = ("kernel.cubin", "kernel_lineinfo.cubin");
    assert_ne!(
        fs::read(data(plain)).unwrap(),
        fs::read(data(lines)).unwrap()
    );
    assert_eq!(kernel_of(plain).text_sha256, kernel_of(lines).text_sha256);
}

#[test]
fn a_kernel_that_no_cubin_holds_or_that_several_hold_is_refused() {
    let mut report = reported();
    report.insert("another".to_owned(), [0, 0]);
    let kernels = kernels_in("kernel.cubin");
    let error = compiled(&report, Vec::new(), kernels.clone()).unwrap_err();
    assert!(matches!(error, BinaryError::NoCode(name) if name == "another"));
    let twice = [kernels.clone(), kernels].concat();
    let error = compiled(&reported(), Vec::new(), twice).unwrap_err();
    assert!(matches!(error, BinaryError::Ambiguous(name) if name == KERNEL));
}

#[test]
fn a_damaged_cubin_is_an_error_or_reads_the_same_and_never_a_panic() {
    let whole = fs::read(data("kernel.cubin")).unwrap();
    for length in (0..whole.len()).step_by(7) {
        assert!(kernels_of(&whole[..length], "sm_90a").is_err());
    }
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        let _ = kernels_of(&bytes, "sm_90a");
    }
}

#[test]
fn what_is_no_disassembly_is_an_error() {
    for text in [
        "", "[]", "{}", "[{}, [{\"function-name\": \"k\"}]]", "[{}, 3]",
    ] {
        assert!(census(text.as_bytes()).is_err(), "{text}");
    }
    let orphan = r#"[{}, [{"function-name": "$sub", "sass-instructions": []}]]"#;
    assert!(census(orphan.as_bytes()).is_err());
}

#[test]
fn a_subroutine_behind_a_kernel_is_counted_with_it() {
    let text = r#"[{}, [
        {"function-name": "k", "sass-instructions": [{"opcode": "MUFU.RCP"}]},
        {"function-name": "$__internal_0_$div", "sass-instructions": [{"opcode": "FFMA"}, {"opcode": "FFMA"}]}
    ]]"#;
    let counted = census(text.as_bytes()).unwrap();
    assert_eq!(counted["k"]["FFMA"], 2);
    assert_eq!(counted.len(), 1);
}

#[test]
fn a_warning_counts_for_the_kernel_it_names_and_one_about_none_for_all() {
    let warning = |function: Option<&str>| CompilerWarning {
        code: "C7511".to_owned(),
        message: "Potential Performance Loss".to_owned(),
        function: function.map(str::to_owned),
    };
    let warnings = vec![
        warning(Some(KERNEL)),
        warning(Some("a function that kernels call")),
        warning(None),
    ];
    let compiled = compiled(&reported(), warnings, kernels_in("kernel.cubin")).unwrap();
    assert_eq!(compiled.kernels[KERNEL].performance_warnings, Some(3));
    assert_eq!(compiled.warnings[1].function, None);
}

#[test]
fn occupancy_is_what_ncu_reports_of_launches_on_an_h200() {
    // Of the recordings: threads, registers, shared memory with the driver's share; then the limits
    // by registers, shared memory and warps as launch__occupancy_limit_* has them. The second limit
    // is known only where the whole of shared memory was carved out.
    let launches = [
        (128, 232, 19_968, 2, None, 16),
        (128, 248, 76_800, 2, Some(3), 16),
        (256, 128, 19_968, 2, None, 8),
        (128, 248, 66_560, 2, Some(3), 16),
        (128, 202, 19_968, 2, None, 16),
        (128, 128, 76_800, 4, Some(3), 16),
    ];
    let chip = Limits::of_arch("sm_90a").unwrap();
    for (threads, registers, shared_bytes, by_registers, by_shared, by_warps) in launches {
        let block = ResourceUse {
            threads,
            registers,
            shared_bytes,
            barriers: 1,
        };
        let occupancy = chip.occupancy(block).unwrap();
        assert_eq!(occupancy.limit_registers, by_registers, "{block:?}");
        assert_eq!(occupancy.limit_warps, by_warps, "{block:?}");
        if let Some(by_shared) = by_shared {
            assert_eq!(occupancy.limit_shared_mem, by_shared, "{block:?}");
        }
        assert_eq!(occupancy.limit_blocks, 32);
    }
}

#[test]
fn occupancy_is_not_known_where_the_launch_is_not() {
    let kernel = kernel_of("kernel.cubin");
    let unstated = LaunchShape::default();
    assert_eq!(metric(&kernel, unstated, "occupancy"), None);
    let stated = LaunchShape {
        dynamic_shared_bytes: Some(0),
        threads: Some(256),
    };
    assert_eq!(metric(&kernel, stated, "occupancy"), Some(100.0));
    assert!(
        kernel
            .metrics("sm_35", stated, &[])
            .iter()
            .any(|(metric, value)| { metric.name == "occupancy" && value.is_none() })
    );
}

#[test]
fn occupancy_is_that_of_the_launch_where_one_was_seen() {
    let kernel = CompiledKernel {
        max_threads: None,
        ..kernel_of("kernel.cubin")
    };
    let shape = |bytes, threads| LaunchShape {
        dynamic_shared_bytes: bytes,
        threads,
    };
    let value = |kernel: &CompiledKernel, stated, launched: &[LaunchShape], name: &str| {
        let metrics = kernel.metrics("sm_90a", stated, launched);
        let found = metrics.into_iter().find(|(metric, _)| metric.name == name);
        found.unwrap().1
    };
    let stated = shape(Some(0), Some(256));
    let bytes = "dynamic_shared_bytes";
    let large = shape(Some(100 << 10), Some(256));
    assert_eq!(value(&kernel, stated, &[], bytes), Some(0.0));
    assert_eq!(value(&kernel, stated, &[large], bytes), Some(102_400.0));
    assert_eq!(value(&kernel, stated, &[large], "occupancy"), Some(25.0));
    // Of several the one with the lowest occupancy, in any order; one that is not known comes first.
    for several in [[large, stated], [stated, large]] {
        assert_eq!(value(&kernel, stated, &several, "occupancy"), Some(25.0));
    }
    let unknown = shape(None, Some(256));
    let unstated = LaunchShape::default();
    assert_eq!(
        value(&kernel, unstated, &[large, unknown], "occupancy"),
        None
    );
    // What a launch does not show is as it is stated.
    assert_eq!(value(&kernel, stated, &[unknown], bytes), Some(0.0));
    // Launch bounds count before the launch, and the launch before what is stated.
    let threads = "threads_per_block";
    let bounded = CompiledKernel {
        max_threads: Some(512),
        ..kernel.clone()
    };
    assert_eq!(value(&kernel, unstated, &[large], threads), Some(256.0));
    assert_eq!(value(&bounded, unstated, &[large], threads), Some(512.0));
    let stated = shape(None, Some(128));
    assert_eq!(value(&bounded, stated, &[], threads), Some(128.0));
    assert_eq!(value(&bounded, stated, &[large], threads), Some(256.0));
}
