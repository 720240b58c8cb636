//! Mangled names of kernels (Itanium C++ ABI) as ncu's filters read them.

use std::borrow::Cow;

/// The compiler's name for an anonymous namespace.
const UNNAMED: &str = "_GLOBAL__N_";
/// The compiler's prefix of a `static` kernel if device code is linked separately (`-rdc=true`).
const STATIC: &str = "__nv_static_";

/// A mangled name without the parts that depend on the path of the source. nvcc adds the name of
/// the file and a hash of its folder to kernels in an anonymous namespace, and to `static` ones.
///
/// ```
/// use ncu_report::placeless;
///
/// let name = placeless("_ZN36_GLOBAL__N__56698014_4_k_cu_19ff7e903hidEPf");
/// assert_eq!(name, "_ZN_GLOBAL__N_3hidEPf");
/// assert_eq!(placeless("_Z4overPf"), "_Z4overPf");
/// ```
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
        // The length of a part precedes it in a mangled name.
        let before = rest[..at].trim_end_matches(|c: char| c.is_ascii_digit());
        let length = rest[before.len()..at].parse::<usize>().ok();
        let part = length.filter(|length| *length >= UNNAMED.len());
        let after = part.and_then(|length| rest.get(at.checked_add(length)?..));
        name.push_str(before);
        name.push_str(UNNAMED);
        rest = after.unwrap_or(&rest[at + UNNAMED.len()..]);
    }
    name.push_str(rest);
    Cow::Owned(name)
}

/// The function name of a mangled name, as ncu's filters match it by default (`--kernel-name-base
/// function`). A name that is not mangled is returned unchanged.
///
/// ```
/// assert_eq!(ncu_report::base_name("_Z2k2IfLi8EEvPT_i"), "k2");
/// assert_eq!(ncu_report::base_name("gemm"), "gemm");
/// ```
pub fn base_name(mangled: &str) -> String {
    function_part(mangled).unwrap_or(mangled).to_owned()
}

/// The last name before the template arguments and parameters. No kernel is a member of a class, so
/// the first template arguments are its own.
fn function_part(mangled: &str) -> Option<&str> {
    let rest = mangled.strip_prefix("_Z")?;
    let nested = rest.strip_prefix('N');
    let mut rest = nested.unwrap_or(rest);
    let mut last = None;
    while nested.is_some() || last.is_none() {
        match rest.as_bytes().first()? {
            b'S' => rest = rest.strip_prefix("St")?,
            b'L' => rest = rest.get(1..)?,
            b'0'..=b'9' => {
                let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
                let length = rest.strip_suffix(after)?.parse().ok()?;
                last = after.get(..length);
                rest = after.get(length..)?;
            }
            b'I' | b'E' => break,
            _ => return None,
        }
    }
    last.filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_does_not_depend_on_the_path_of_the_source() {
        // Printed by nvcc 13.0.88 for one source in two folders.
        for here in [
            "_ZN36_GLOBAL__N__56698014_4_k_cu_19ff7e903hidEPf",
            "__nv_static_25__56698014_4_k_cu_19ff7e90__Z4statPf",
            "__nv_static_25__56698014_4_k_cu_19ff7e90__ZN36_GLOBAL__N__56698014_4_k_cu_19ff7e903hidEPf",
        ] {
            let there = here.replace("56698014", "32ca3b44");
            assert_eq!(placeless(here), placeless(&there));
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
            "k", "__nv_static_9999__x", "__nv_static_", "_GLOBAL__N_", "3_GLOBAL__N_é",
            "99_GLOBAL__N_x", "_Z4overPf",
        ] {
            let _ = placeless(odd);
        }
        assert_eq!(placeless("_Z4overPf"), "_Z4overPf");
    }

    #[test]
    fn the_base_name_is_the_one_that_ncu_uses() {
        // Mangled names and function names from reports of ncu 2025.3.1, and names by nvcc 13.0.88.
        let names = "
            k1 _Z2k1Pfi
            k2 _Z2k2IfLi8EEvPT_i
            bsr_gemm_wmma _Z13bsr_gemm_wmmaPKiS0_PK6__halfS3_Pfi
            bsr_gemm_cp_async bsr_gemm_cp_async
            vectorized_elementwise_kernel _ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13AUnaryFunctorIfffNS0_15binary_internal10MulFunctorIfEEEESt5arrayIPcLm2EEEEviT0_T1_
            distribution_elementwise_grid_stride_kernel _ZN2at6native55_GLOBAL__N__11f7a751_22_DistributionUniform_cu_67fa25cf43distribution_elementwise_grid_stride_kernelIfLi4EZNS0_9templates4cuda21uniform_and_transformIffPNS_17CUDAGeneratorImplEZZZNS4_14uniform_kernelIS7_EEvRNS_18TensorIteratorBaseEddT_ENKUlvE_clEvENKUlvE0_clEvEUlfE_EEvSA_T1_T2_EUlP24curandStatePhilox4_32_10E0_ZNS1_27distribution_nullary_kernelIff6float4S7_SJ_SE_EEvSA_SG_RKT3_T4_EUlifE_EEvlNS_15PhiloxCudaStateESF_SG_
            static _ZL6staticPf
            k _ZN2ns1kIXcvifLi3EEEEvv
            k _Z1kIXcvifLi3EEEEvv
            a\u{e9} _Z3a\u{e9}b
            run _ZN5outer3runIZ4mainEUlvE_EEvT_
            run _ZN5outer3runI2OpIfEEEvT_
            hidden _ZN37_GLOBAL__N__c770f6f1_5_nm_cu_4d11ce8d6hiddenIfLi3EEEvPT_";
        for name in names.trim().lines() {
            let (function, mangled) = name.trim().split_once(' ').unwrap();
            assert_eq!(base_name(mangled), function, "{mangled}");
        }
        for odd in [
            "_Znonsense", "_Z99short", "", "_Z", "_ZN3abc", "_Z0v", "_Z2a\u{e9}",
            "_Z99999999999999999999a",
        ] {
            assert_eq!(base_name(odd), odd);
        }
    }
}
