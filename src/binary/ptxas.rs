//! What ptxas reports of the kernels it compiled: resources, and warnings about performance.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the machine code of a kernel shows, and what only its compiler reports (`-Xptxas -v`).
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

/// The bytes that each kernel spills, stored and loaded, by mangled name: reads ptxas's resource report
/// (`-Xptxas -v`, on standard error) for one target, such as `sm_90a`. Functions that a kernel calls and
/// that were not inlined are listed behind it; what they spill is the kernel's. The source can print
/// lines of this form, too (`#pragma message`), so a later line takes nothing away.
pub fn spills(log: &str, arch: &str) -> BTreeMap<String, [u32; 2]> {
    let mut kernels: BTreeMap<String, [u32; 2]> = BTreeMap::new();
    let mut current: Option<String> = None;
    for line in log.lines() {
        if let Some(rest) = line.split("Compiling entry function '").nth(1) {
            let mut quoted = rest.split('\'');
            let name = quoted.next().map(str::to_owned);
            current = name.filter(|_| quoted.nth(1) == Some(arch));
        } else if line.contains(" bytes gmem") {
            // The first line of another file or target.
            current = None;
        }
        let Some(name) = &current else { continue };
        let spilled = kernels.entry(name.clone()).or_default();
        for (sum, what) in spilled
            .iter_mut()
            .zip(["bytes spill stores", "bytes spill loads"])
        {
            *sum = sum.saturating_add(number_before(line, what).unwrap_or(0));
        }
    }
    kernels
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
        assert!(spills(log, "sm_80").is_empty());
        let expected = BTreeMap::from([("_Z7spillerPfi".to_owned(), [1048, 1100])]);
        assert_eq!(spills(log, "sm_90a"), expected);
    }

    #[test]
    fn a_number_that_is_too_large_is_not_taken_for_none() {
        for (stored, loaded, expected) in [
            ("134217728", "4294967295", [1 << 27, u32::MAX]),
            ("99999999999", "18446744073709551616", [u32::MAX; 2]),
        ] {
            let log = format!(
                "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n    \
                 0 bytes stack frame, {stored} bytes spill stores, {loaded} bytes spill loads\n"
            );
            assert_eq!(spills(&log, "sm_90a")["k"], expected);
        }
    }

    #[test]
    fn what_the_source_prints_takes_nothing_away() {
        let log = "\
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    480 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
k.cu:3:148: note: '#pragma message:
";
        let printed = "\
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
";
        assert_eq!(spills(log, "sm_90a")["k"], [8, 4]);
        for both in [[log, printed], [printed, log]] {
            assert_eq!(spills(&both.concat(), "sm_90a")["k"], [8, 4]);
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
        assert_eq!(spills(log, "sm_90a")["_Z5alphaPfi"], [1208, 1208]);
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
