//! Which of a program's launches are measured: what ncu does by `--kernel-name`, `--launch-skip`
//! and `--launch-count`.

use regex::Regex;

use super::records::KernelCapture;
use crate::config::{GraphProfiling, Variant};

/// The function's name without namespaces, template arguments and parameters, as ncu matches it by
/// default (`--kernel-name-base function`); what is no name of the Itanium C++ ABI is its own.
pub fn function_name(mangled: &str) -> &str {
    unmangled(mangled).unwrap_or(mangled)
}

/// A kernel is a function of a namespace: its name is the last of the plain names at the front.
fn unmangled(mangled: &str) -> Option<&str> {
    let rest = mangled.strip_prefix("_Z")?;
    let (nested, mut rest) = match rest.strip_prefix('N') {
        Some(rest) => (true, rest.strip_prefix("St").unwrap_or(rest)),
        None => (false, rest.strip_prefix("St").unwrap_or(rest)),
    };
    let mut last = None;
    loop {
        // Internal linkage.
        rest = rest.strip_prefix('L').unwrap_or(rest);
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return last;
        }
        let length: usize = rest.get(..digits)?.parse().ok()?;
        last = Some(rest.get(digits..digits.checked_add(length)?)?);
        rest = rest.get(digits + length..)?;
        if !nested {
            return last;
        }
    }
}

/// Which kernels are meant.
#[derive(Clone, Debug)]
pub enum Filter {
    /// All.
    All,
    /// The function of exactly this name.
    Name(String),
    /// Functions in whose name the pattern is found.
    Pattern(Regex),
}

impl Filter {
    /// Of `kernels` in the configuration.
    ///
    /// # Errors
    /// Says that a pattern is one that only ncu understands.
    pub fn of(kernels: Option<&str>) -> Result<Filter, String> {
        Ok(match kernels {
            None => Filter::All,
            Some(filter) => match filter.strip_prefix("regex:") {
                None => Filter::Name(filter.to_owned()),
                Some(pattern) => Filter::Pattern(Regex::new(pattern).map_err(|error| {
                    let text = error.to_string();
                    let last = text.lines().last().unwrap_or_default();
                    format!("the pattern `{pattern}` of `kernels` is one that only ncu understands: {last}")
                })?),
            },
        })
    }

    /// Whether a function is meant.
    pub fn matches(&self, function: &str) -> bool {
        match self {
            Filter::All => true,
            Filter::Name(name) => name == function,
            Filter::Pattern(pattern) => pattern.is_match(function),
        }
    }
}

/// Settings that select launches in a way that only ncu knows.
pub fn only_ncu_selects(variant: &Variant) -> Option<String> {
    const SELECTING: [&str; 8] = [
        "--kernel-name-base",
        "--kernel-id",
        "--filter-mode",
        "--nvtx",
        "--nvtx-include",
        "--nvtx-exclude",
        "--range-filter",
        "--devices",
    ];
    let settings = &variant.profile;
    let argument = settings.ncu_args.iter().find(|argument| {
        let name = argument.split('=').next().unwrap_or_default();
        SELECTING.contains(&name)
    });
    match () {
        () if !settings.nvtx.is_empty() => Some("`nvtx` selects by NVTX ranges".to_owned()),
        () if settings.profiler_range => Some(
            "`profiler_range` selects between cudaProfilerStart and cudaProfilerStop".to_owned(),
        ),
        () if settings.graph_profiling == GraphProfiling::Graph => {
            Some("`graph_profiling = \"graph\"` takes a whole CUDA graph for a launch".to_owned())
        }
        () => argument.map(|argument| format!("`ncu_args` selects by `{argument}`")),
    }
}

impl KernelCapture {
    /// Keeps the launches that are meant: of those that match, `count` after the first `skip`.
    pub fn select(&mut self, filter: &Filter, skip: u32, count: u32) {
        let launches = std::mem::take(&mut self.launches);
        self.launches = launches
            .into_iter()
            .filter(|(_, kernel)| filter.matches(function_name(&kernel.name)))
            .skip(skip as usize)
            .take(count as usize)
            .collect();
    }

    /// Function names of all launches, each once, in order.
    pub fn functions(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (_, kernel) in &self.launches {
            let name = function_name(&kernel.name);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_functions_name_is_what_ncu_calls_it() {
        // Mangled names and function names from reports of ncu 2025.3.1.
        let names = [
            ("_Z2k1Pfi", "k1"),
            ("_Z2k2IfLi8EEvPT_i", "k2"),
            ("_Z13bsr_gemm_wmmaPKiS0_PK6__halfS3_Pfi", "bsr_gemm_wmma"),
            ("bsr_gemm_cp_async", "bsr_gemm_cp_async"),
            (
                "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13AUnaryFunctorIfffNS0_15binary_internal10MulFunctorIfEEEESt5arrayIPcLm2EEEEviT0_T1_",
                "vectorized_elementwise_kernel",
            ),
            ("_ZN7sparsek11fill_normalEP7__half2mmf", "fill_normal"),
            (
                "_ZN2at6native55_GLOBAL__N__11f7a751_22_DistributionUniform_cu_67fa25cf43distribution_elementwise_grid_stride_kernelIfLi4EZEEvv",
                "distribution_elementwise_grid_stride_kernel",
            ),
            ("_ZL6staticPf", "static"),
            ("_Znonsense", "_Znonsense"),
            ("_Z99short", "_Z99short"),
            ("", ""),
        ];
        for (mangled, function) in names {
            assert_eq!(function_name(mangled), function, "{mangled}");
        }
    }

    #[test]
    fn a_name_is_matched_whole_and_a_pattern_anywhere() {
        let name = Filter::of(Some("gemm")).unwrap();
        assert!(name.matches("gemm") && !name.matches("bsr_gemm"));
        let pattern = Filter::of(Some("regex:gemm$")).unwrap();
        assert!(pattern.matches("bsr_gemm") && !pattern.matches("gemm_fast"));
        assert!(Filter::of(None).unwrap().matches("anything"));
    }

    #[test]
    fn a_pattern_that_only_ncu_understands_is_told_as_such() {
        let why = Filter::of(Some("regex:^(?!slow)")).unwrap_err();
        assert!(why.contains("only ncu understands"), "{why}");
    }
}
