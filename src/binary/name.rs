//! Mangled names as people, and ncu's filters, read them.

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
