//! What ptxas reports of the kernels it compiled: resources, and warnings about performance.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the compiler reports of one kernel (`-Xptxas -v`), or its machine code shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelResources {
    /// Registers a thread.
    pub registers: u32,
    /// Static shared memory a block, in bytes.
    pub shared_bytes: u32,
    /// Bytes of stores that spill registers; `None` where no compiler reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spill_store_bytes: Option<u32>,
    /// Bytes of loads that fetch spilled registers; `None` where no compiler reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spill_load_bytes: Option<u32>,
    /// Stack frame a thread, in bytes.
    pub stack_bytes: u32,
    /// Barriers.
    pub barriers: u32,
}

/// A warning of ptxas about performance: an `info` line with a code, which nvcc does not report as a
/// warning.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct CompilerWarning {
    /// `C7511`.
    pub code: String,
    /// Its text.
    pub message: String,
    /// Mangled name of the function, where it names one.
    pub function: Option<String>,
}

/// Reads ptxas's resource report (`-Xptxas -v`, on standard error) for one target, such as
/// `sm_90a`: mangled name to resources. Functions that a kernel calls and that were not inlined are
/// listed behind it; what they spill is the kernel's. The source can print lines of this form, too
/// (`#pragma message`), so a later line takes nothing away.
pub fn resource_report(log: &str, arch: &str) -> BTreeMap<String, KernelResources> {
    let mut kernels: BTreeMap<String, KernelResources> = BTreeMap::new();
    let mut current: Option<String> = None;
    let mut function = "";
    for line in log.lines() {
        if let Some(rest) = line.split("Compiling entry function '").nth(1) {
            let mut quoted = rest.split('\'');
            let name = quoted.next().map(str::to_owned);
            current = name.filter(|_| quoted.nth(1) == Some(arch));
            continue;
        }
        // The first line of another file or target.
        if line.contains(" bytes gmem") {
            current = None;
        }
        if let Some(name) = line.split("Function properties for ").nth(1) {
            function = name.trim();
            continue;
        }
        let Some(name) = &current else { continue };
        let before = |what: &str| number_before(line, what);
        if line.contains("bytes stack frame") {
            let kernel = kernels.entry(name.clone()).or_insert_with(reported);
            if function == name {
                let stack = before("bytes stack frame").unwrap_or(0);
                kernel.stack_bytes = kernel.stack_bytes.max(stack);
            }
            for (spilled, what) in [
                (&mut kernel.spill_store_bytes, "bytes spill stores"),
                (&mut kernel.spill_load_bytes, "bytes spill loads"),
            ] {
                let sum = spilled
                    .unwrap_or(0)
                    .saturating_add(before(what).unwrap_or(0));
                *spilled = Some(sum);
            }
        } else if let Some(registers) = line
            .contains(": Used ")
            .then(|| before("registers"))
            .flatten()
        {
            let kernel = kernels.entry(name.clone()).or_insert_with(reported);
            let most =
                |known: &mut u32, found: Option<u32>| *known = (*known).max(found.unwrap_or(0));
            most(&mut kernel.registers, Some(registers));
            most(&mut kernel.barriers, before("barriers"));
            most(&mut kernel.shared_bytes, before("bytes smem"));
        }
    }
    kernels
}

/// A kernel of which ptxas reports something: what it does not mention is 0.
fn reported() -> KernelResources {
    KernelResources {
        spill_store_bytes: Some(0),
        spill_load_bytes: Some(0),
        ..KernelResources::default()
    }
}

/// The lines of ptxas that carry a code such as `(C7511)`, each once.
pub fn compiler_warnings(log: &str) -> Vec<CompilerWarning> {
    let mut warnings: Vec<CompilerWarning> = log
        .lines()
        .filter_map(|line| {
            let rest = line.strip_prefix("ptxas ")?.split_once(": (")?.1;
            let (code, message) = rest.split_once(") ")?;
            let digits = code.strip_prefix('C')?;
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            let function = message
                .split_once("function '")
                .and_then(|(_, name)| name.split('\'').next());
            Some(CompilerWarning {
                code: code.to_owned(),
                message: message.to_owned(),
                function: function.map(str::to_owned),
            })
        })
        .collect();
    warnings.sort();
    warnings.dedup();
    warnings
}

/// A number that is too large is the largest, so that no resource of many looks like one of none.
fn number_before(line: &str, what: &str) -> Option<u32> {
    let before = &line[..line.find(what)?];
    let word = before.split_whitespace().next_back()?;
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| word.parse().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resource_report_of_ptxas_is_read() {
        // Printed by nvcc 13.0.88 for sm_90a.
        let log = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z7spillerPfi' for 'sm_90a'
ptxas info    : Function properties for _Z7spillerPfi
    480 bytes stack frame, 1048 bytes spill stores, 1100 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 480 bytes cumulative stack size, 16384 bytes smem
";
        assert!(resource_report(log, "sm_80").is_empty());
        let report = resource_report(log, "sm_90a");
        let spiller = KernelResources {
            registers: 32,
            shared_bytes: 16384,
            spill_store_bytes: Some(1048),
            spill_load_bytes: Some(1100),
            stack_bytes: 480,
            barriers: 1,
        };
        let expected = BTreeMap::from([("_Z7spillerPfi".to_owned(), spiller)]);
        assert_eq!(report, expected);
    }

    #[test]
    fn a_number_that_is_too_large_is_not_taken_for_none() {
        for (registers, smem, expected) in [
            ("134217728", "4294967295", [1 << 27, u32::MAX]),
            ("99999999999", "18446744073709551616", [u32::MAX; 2]),
        ] {
            let log = format!(
                "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n\
                 ptxas info    : Used {registers} registers, used 1 barriers, {smem} bytes smem\n"
            );
            let kernel = &resource_report(&log, "sm_90a")["k"];
            assert_eq!([kernel.registers, kernel.shared_bytes], expected);
        }
    }

    #[test]
    fn what_the_source_prints_takes_nothing_away() {
        let log = "\
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    480 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 480 bytes cumulative stack size, 16384 bytes smem
k.cu:3:148: note: '#pragma message:
";
        let printed = "\
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
";
        let report = resource_report(log, "sm_90a");
        assert_eq!(report["k"].stack_bytes, 480);
        for both in [[log, printed], [printed, log]] {
            assert_eq!(resource_report(&both.concat(), "sm_90a"), report);
        }
    }

    #[test]
    fn what_a_called_function_spills_is_its_kernels() {
        // Printed by nvcc 13.0.88 for a kernel that calls a `__noinline__` function.
        let log = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z5alphaPfi' for 'sm_90a'
ptxas info    : Function properties for _Z5alphaPfi
    648 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 648 bytes cumulative stack size
ptxas info    : Compile time = 23.148 ms
ptxas info    : Function properties for _Z3devPfi
    0 bytes stack frame, 1200 bytes spill stores, 1204 bytes spill loads
ptxas info    : 0 bytes gmem
ptxas info    : Function properties for _Z6anotherPfi
    0 bytes stack frame, 7 bytes spill stores, 7 bytes spill loads
";
        let alpha = &resource_report(log, "sm_90a")["_Z5alphaPfi"];
        assert_eq!(alpha.registers, 32);
        assert_eq!(alpha.stack_bytes, 648);
        assert_eq!(alpha.spill_store_bytes, Some(1208));
        assert_eq!(alpha.spill_load_bytes, Some(1208));
    }

    #[test]
    fn performance_warnings_are_found_among_the_information() {
        // Printed by nvcc 13.0.88 for tests/data/static/performance_loss.cu.
        let log = "\
ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.
ptxas info    : (C7519) warpgroup.arrive is injected in around line 43 by compiler to allow use of registers in GMMA in function 'serialized'
ptxas info    : (C7517) warpgroup.wait is injected in around line 40 by compiler to allow use of registers defined by GMMA in function 'serialized'
ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources for the wgmma pipeline in the function 'serialized'
ptxas info    : 0 bytes gmem
";
        let warnings = compiler_warnings(log);
        let codes: Vec<&str> = warnings.iter().map(|it| it.code.as_str()).collect();
        assert_eq!(codes, ["C7508", "C7511", "C7517", "C7519"]);
        assert_eq!(warnings[0].function, None);
        let serialized = Some("serialized");
        assert!(
            warnings[1..]
                .iter()
                .all(|it| it.function.as_deref() == serialized)
        );
        assert!(warnings[1].message.contains("are serialized"));
    }
}
