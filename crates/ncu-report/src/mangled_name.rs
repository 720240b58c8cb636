//! Mangled names as people, and ncu's filters, read them.

use std::borrow::Cow;

use crate::function_name::function_name;

/// What the compiler writes in the place of an anonymous namespace.
const UNNAMED: &str = "_GLOBAL__N_";
/// What it writes before a `static` kernel where device code is linked apart (`-rdc=true`).
const STATIC: &str = "__nv_static_";

/// The name without what the compiler derived from the source's place: kernels of an anonymous
/// namespace, and `static` ones, hold the name of their file and a hash of its folder.
pub fn placeless(mangled: &str) -> Cow<'_, str> {
    // `__nv_static_`, a length, and that many characters between underscores.
    let own = mangled.strip_prefix(STATIC).and_then(|rest| {
        let (length, rest) = rest.split_once('_')?;
        rest.get(length.parse::<usize>().ok()?..)?.strip_prefix('_')
    });
    let mut rest = own.unwrap_or(mangled);
    if !rest.contains(UNNAMED) {
        return Cow::Borrowed(rest);
    }
    let mut name = String::new();
    while let Some(at) = rest.find(UNNAMED) {
        // A part of a mangled name stands behind its length.
        let before = rest[..at].trim_end_matches(|c: char| c.is_ascii_digit());
        let length = rest[before.len()..at].parse::<usize>().ok();
        let part = length.filter(|length| *length >= UNNAMED.len());
        let after = part.and_then(|length| rest.get(at + length..));
        name.push_str(before);
        name.push_str(UNNAMED);
        rest = after.unwrap_or(&rest[at + UNNAMED.len()..]);
    }
    name.push_str(rest);
    Cow::Owned(name)
}

/// The signature, where the name is a mangled one.
pub fn demangled(mangled: &str) -> Option<String> {
    let symbol = cpp_demangle::Symbol::new(mangled).ok()?;
    symbol.demangle().ok()
}

/// The function's name without namespaces, template arguments and parameters, as ncu matches it by
/// default (`--kernel-name-base function`); what is no name of the Itanium C++ ABI is its own.
pub fn base_name(mangled: &str) -> String {
    match demangled(mangled) {
        Some(signature) => function_name(&signature).to_owned(),
        None => mangled.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_the_source_is_no_part_of_a_name() {
        // Printed by nvcc 13.0.88 for one source in two folders.
        for (here, there) in [
            (
                "_ZN36_GLOBAL__N__56698014_4_k_cu_19ff7e903hidEPf",
                "_ZN36_GLOBAL__N__32ca3b44_4_k_cu_19ff7e903hidEPf",
            ),
            (
                "__nv_static_25__56698014_4_k_cu_19ff7e90__Z4statPf",
                "__nv_static_25__32ca3b44_4_k_cu_19ff7e90__Z4statPf",
            ),
            (
                "__nv_static_25__56698014_4_k_cu_19ff7e90__ZN36_GLOBAL__N__56698014_4_k_cu_19ff7e903hidEPf",
                "__nv_static_25__32ca3b44_4_k_cu_19ff7e90__ZN36_GLOBAL__N__32ca3b44_4_k_cu_19ff7e903hidEPf",
            ),
        ] {
            assert_eq!(placeless(here), placeless(there));
        }
        assert_eq!(
            placeless("_ZN36_GLOBAL__N__56698014_4_k_cu_19ff7e903hidEPf"),
            "_ZN_GLOBAL__N_3hidEPf"
        );
        assert_ne!(
            placeless("_ZN36_GLOBAL__N__56698014_4_k_cu_19ff7e903hidEPf"),
            placeless("_ZN36_GLOBAL__N__56698014_4_k_cu_19ff7e903hidEPi")
        );
        for odd in [
            "k",
            "__nv_static_9999__x",
            "__nv_static_",
            "_GLOBAL__N_",
            "3_GLOBAL__N_é",
            "99_GLOBAL__N_x",
            "_Z4overPf",
        ] {
            let _ = placeless(odd);
        }
        assert_eq!(placeless("_Z4overPf"), "_Z4overPf");
    }

    #[test]
    fn a_functions_name_is_what_ncu_calls_it() {
        // Mangled names and function names from reports of ncu 2025.3.1, and names by nvcc 13.0.88.
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
                "_ZN2at6native55_GLOBAL__N__11f7a751_22_DistributionUniform_cu_67fa25cf43distribution_elementwise_grid_stride_kernelIfLi4EZNS0_9templates4cuda21uniform_and_transformIffPNS_17CUDAGeneratorImplEZZZNS4_14uniform_kernelIS7_EEvRNS_18TensorIteratorBaseEddT_ENKUlvE_clEvENKUlvE0_clEvEUlfE_EEvSA_T1_T2_EUlP24curandStatePhilox4_32_10E0_ZNS1_27distribution_nullary_kernelIff6float4S7_SJ_SE_EEvSA_SG_RKT3_T4_EUlifE_EEvlNS_15PhiloxCudaStateESF_SG_",
                "distribution_elementwise_grid_stride_kernel",
            ),
            ("_ZL6staticPf", "static"),
            ("_Znonsense", "_Znonsense"),
            ("_Z99short", "_Z99short"),
            ("", ""),
            (
                "_ZN7sparsek17reference_compareENS_8OperandsEPNS_5TallyE",
                "reference_compare",
            ),
            ("_ZN5outer3runIZ4mainEUlvE_EEvT_", "run"),
            ("_ZN5outer3runI2OpIfEEEvT_", "run"),
            (
                "_ZN37_GLOBAL__N__c770f6f1_5_nm_cu_4d11ce8d6hiddenIfLi3EEEvPT_",
                "hidden",
            ),
        ];
        for (mangled, function) in names {
            assert_eq!(base_name(mangled), function, "{mangled}");
        }
    }
}
