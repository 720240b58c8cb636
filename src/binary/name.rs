//! Mangled names as people, and ncu's filters, read them.

use std::borrow::Cow;

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

/// The function's name as ncu's `--kernel-name-base function` has it: no scope, no template
/// arguments, no parameters.
pub fn base_name(mangled: &str) -> String {
    let Some(signature) = demangled(mangled) else {
        return mangled.to_owned();
    };
    // Parameters and template arguments are what stands in brackets; scopes end in `::`.
    let mut name = String::new();
    let mut depth = 0_u32;
    let unnamed = signature.replace("(anonymous namespace)", "");
    for c in unnamed.chars() {
        match c {
            '(' if depth == 0 => break,
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            ':' | ' ' => name.clear(),
            c => name.push(c),
        }
    }
    if name.is_empty() {
        mangled.to_owned()
    } else {
        name
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
    fn a_mangled_name_becomes_the_functions() {
        for (mangled, name) in [
            ("bsr_gemm_cp_async", "bsr_gemm_cp_async"),
            (
                "_ZN7sparsek17reference_compareENS_8OperandsEPNS_5TallyE",
                "reference_compare",
            ),
            ("_Z7spillerPfi", "spiller"),
            ("_Z2k2IfLi8EEvPT_i", "k2"),
            ("_ZN5outer3runIZ4mainEUlvE_EEvT_", "run"),
            ("_ZN5outer3runI2OpIfEEEvT_", "run"),
            (
                "_ZN37_GLOBAL__N__c770f6f1_5_nm_cu_4d11ce8d6hiddenIfLi3EEEvPT_",
                "hidden",
            ),
        ] {
            assert_eq!(base_name(mangled), name, "{mangled}");
        }
    }
}
