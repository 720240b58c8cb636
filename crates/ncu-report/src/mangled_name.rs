//! Mangled names of kernels (Itanium C++ ABI) as people and ncu's filters read them.

use std::borrow::Cow;
use std::fmt;

use cpp_demangle::{DemangleOptions, DemangleWrite, Symbol};

use crate::function_name::function_name;
use crate::mangled_grammar::{function_part, is_plain};

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

/// Longest mangled name that is demangled, in bytes. Names of a few thousand bytes are usual.
const LONGEST_NAME: usize = 1 << 16;

/// The signature of a mangled name; `None` if the name is not mangled, or if it is none of a kernel:
/// longer than 64 KiB, nested more than 96 times, with an expression beyond operators, literals and
/// parameters, or with a signature of more than 4 KiB and 16 times its length.
///
/// ```
/// let signature = ncu_report::demangled("_Z2k1Pfi");
/// assert_eq!(signature.as_deref(), Some("k1(float*, int)"));
/// ```
pub fn demangled(mangled: &str) -> Option<String> {
    if mangled.len() > LONGEST_NAME || !is_plain(mangled) {
        return None;
    }
    let symbol = Symbol::new(mangled).ok()?;
    let mut out = Bounded {
        text: String::new(),
        left: mangled.len().saturating_mul(16).saturating_add(4096),
    };
    let written = symbol.structured_demangle(&mut out, &DemangleOptions::default());
    written.ok().map(|()| out.text)
}

/// A signature up to a length. A name may refer to its own parts again and again, so that each two
/// bytes double the signature.
struct Bounded {
    text: String,
    left: usize,
}

impl DemangleWrite for Bounded {
    fn write_string(&mut self, text: &str) -> fmt::Result {
        self.left = self.left.checked_sub(text.len()).ok_or(fmt::Error)?;
        self.text.push_str(text);
        Ok(())
    }
}

/// The function name of a mangled name, as ncu's filters match it by default (`--kernel-name-base
/// function`). A name that is not mangled is returned unchanged.
///
/// ```
/// assert_eq!(ncu_report::base_name("_Z2k2IfLi8EEvPT_i"), "k2");
/// assert_eq!(ncu_report::base_name("gemm"), "gemm");
/// ```
pub fn base_name(mangled: &str) -> String {
    match demangled(mangled) {
        Some(signature) => function_name(&signature).to_owned(),
        None => function_part(mangled).unwrap_or(mangled).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Names by nvcc 13.0.88 and from reports, and what a test makes of them.
    const NAMES: [&str; 9] = [
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13AUnaryFunctorIfffNS0_15binary_internal10MulFunctorIfEEEESt5arrayIPcLm2EEEEviT0_T1_",
        "_ZN2at6native55_GLOBAL__N__11f7a751_22_DistributionUniform_cu_67fa25cf43distribution_elementwise_grid_stride_kernelIfLi4EZNS0_9templates4cuda21uniform_and_transformIffPNS_17CUDAGeneratorImplEZZZNS4_14uniform_kernelIS7_EEvRNS_18TensorIteratorBaseEddT_ENKUlvE_clEvENKUlvE0_clEvEUlfE_EEvSA_T1_T2_EUlP24curandStatePhilox4_32_10E0_ZNS1_27distribution_nullary_kernelIff6float4S7_SJ_SE_EEvSA_SG_RKT3_T4_EUlifE_EEvlNS_15PhiloxCudaStateESF_SG_",
        "_Z13bsr_gemm_wmmaPKiS0_PK6__halfS3_Pfi",
        "_Z1kI1AIiES0_IS1_EEvPFvT_RA4_KfEM1BiDv4_fz",
        "_ZN5outer3runIZ4mainEUlvE_JLb1ELPv0EEEEvT_DpT0_",
        "_Z1kIXadL_Z1fvEEEvv",
        "_Z1kIiXaagtLi3ET_ntLb0EEEvv",
        "_ZZN1A1fEvE1x_0",
        "_ZNKSt6vectorIfSaIfEE4sizeEv",
    ];

    #[test]
    fn names_of_kernels_are_plain() {
        for name in NAMES {
            assert!(is_plain(name), "{name}");
            assert!(demangled(name).is_some(), "{name}");
        }
        assert_eq!(
            demangled("_Z1kIXadL_Z1fvEEEvv").as_deref(),
            Some("void k<&f()>()")
        );
    }

    #[test]
    fn a_crafted_name_is_not_demangled_for_ever() {
        let doubled: String = (0..20)
            .map(|part| format!("_IS{part}_S{part}_ES"))
            .collect();
        let digits = |number: u32| {
            char::from_digit(number, 36)
                .unwrap_or('_')
                .to_ascii_uppercase()
        };
        let chain: String = (0..30)
            .map(|n| format!("S_IS{0}_S{0}_E", digits(n)))
            .collect();
        let packs: String = (0..30)
            .map(|n| format!("JDpT{0}_DpT{0}_E", digits(n)))
            .collect();
        for name in [
            format!("_Z1f1AIiiE{doubled}"),
            format!("_Z1f1AIiiES_IS0_S0_E{chain}"),
            format!("_Z1fIJE{packs}EvDpTS_"),
            format!("_Z1fI1AI{}i", "S_I".repeat(40)),
            format!("_Z1fI1AIiE{}?", "S_I".repeat(40)),
            format!("_Z1fIX{}E", "nw".repeat(300)),
            format!("_Z1fIX{}i_", "nana".repeat(100)),
            format!("_ZN1Acv{}i{}EvE", "T_I".repeat(40), "E".repeat(40)),
            format!("_Z1f{}", "P".repeat(60_000)),
            format!("_Z1f{}", "i".repeat(60_000)),
            format!("_Z1f{}", "1A".repeat(30_000)),
            format!("_Z{}", "N1a".repeat(300)),
            format!("_Z{}", "Z1f".repeat(300)),
            "_Z".repeat(1_000_000),
        ] {
            let start = std::time::Instant::now();
            let signature = demangled(&name);
            let most = 16 * name.len() + 4096;
            assert!(signature.is_none_or(|text| text.len() <= most));
            let head = &name[..name.len().min(60)];
            assert!(start.elapsed().as_secs() < 5, "{head}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn the_demangler_reads_every_plain_name_at_once(
            first in 0..NAMES.len(),
            second in 0..NAMES.len(),
            cuts in prop::array::uniform4(0_usize..1000),
            inserted in "(S_I|S_|S0_I|T_I|T_|E|I|N|Z|1a|F|J|K|P|L|M|v|i|St|Ul|0_){0,4}",
        ) {
            // A piece of one name in another one, with a text between.
            let (first, second) = (NAMES[first], NAMES[second]);
            let [a, b, c, d] = cuts;
            let at = 2 + a % (first.len() - 2);
            let end = (at + b % 4).min(first.len());
            let from = 2 + c % (second.len() - 2);
            let to = (from + d % 40).min(second.len());
            let name = [&first[..at], &inserted, &second[from..to], &first[end..]].concat();
            if is_plain(&name) {
                let read = cpp_demangle::Symbol::new(&name);
                let expected = matches!(&read, Ok(_) | Err(cpp_demangle::error::Error::TooMuchRecursion));
                prop_assert!(expected, "{name}: {:?}", read.err());
            }
        }
    }

    #[test]
    fn a_member_without_a_name_in_it_is_no_plain_name() {
        assert!(!is_plain("_ZZN1A1fMEvE1x_0"));
    }

    #[test]
    fn a_name_does_not_depend_on_the_path_of_the_source() {
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
    fn the_base_name_is_the_one_that_ncu_uses() {
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
            (
                "_ZN2at6native55_GLOBAL__N__11f7a751_22_DistributionUniform_cu_67fa25cf43distribution_elementwise_grid_stride_kernelIfLi4EZNS0_9templates4cuda21uniform_and_transformIffPNS_17CUDAGeneratorImplEZZZNS4_14uniform_kernelIS7_EEvRNS_18TensorIteratorBaseEddT_ENKUlvE_clEvENKUlvE0_clEvEUlfE_EEvSA_T1_T2_EUlP24curandStatePhilox4_32_10E0_ZNS1_27distribution_nullary_kernelIff6float4S7_SJ_SE_EEvSA_SG_RKT3_T4_EUlifE_EEvlNS_15PhiloxCudaStateESF_SG_",
                "distribution_elementwise_grid_stride_kernel",
            ),
            ("_ZL6staticPf", "static"),
            ("_Znonsense", "_Znonsense"),
            ("_Z99short", "_Z99short"),
            // Not demangled: an expression with a conversion, in the template arguments.
            ("_ZN2ns1kIXcvifLi3EEEEvv", "k"),
            ("_Z1kIXcvifLi3EEEEvv", "k"),
            ("", ""),
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
