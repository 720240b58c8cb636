//! Compiler targets and the chips they stand for.

use ncu_report::Chip;

/// The compute capability that a target of nvcc stands for: `sm_90a` for 9.0, `sm_103f` for 10.3.
/// `None` where the text is no target.
pub fn capability_of_arch(arch: &str) -> Option<(u64, u64)> {
    let number = arch.strip_prefix("sm_")?;
    let number = number.strip_suffix(['a', 'f']).unwrap_or(number);
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    let (major, minor) = number.split_at_checked(number.len().checked_sub(1)?)?;
    let capability = (major.parse().ok()?, minor.parse().ok()?);
    is_number.then_some(capability)
}

/// The target of all that a compute capability `major.minor` has: from Hopper on, its own instructions
/// need the suffix.
pub fn arch_of_capability(capability: &str) -> Option<String> {
    let (major, minor) = capability.split_once('.')?;
    let (major, minor): (u64, u64) = (major.parse().ok()?, minor.parse().ok()?);
    let suffix = if major >= 9 { "a" } else { "" };
    Some(format!("sm_{major}{minor}{suffix}"))
}

/// The chip that a target stands for; `None` where its metrics are not known.
pub fn chip_of_arch(arch: &str) -> Option<Chip> {
    let (major, minor) = capability_of_arch(arch)?;
    Chip::from_compute_capability(major, minor)
}

/// The targets whose chips are known.
pub fn known_archs() -> Vec<String> {
    let targets =
        (70..130).filter_map(|it| arch_of_capability(&format!("{}.{}", it / 10, it % 10)));
    targets
        .filter(|arch| chip_of_arch(arch).is_some())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_told_from_other_texts() {
        for (arch, capability, chip) in [
            ("sm_70", (7, 0), "gv100"),
            ("sm_75", (7, 5), "tu102"),
            ("sm_80", (8, 0), "ga100"),
            ("sm_86", (8, 6), "ga102"),
            ("sm_87", (8, 7), "ga10b"),
            ("sm_89", (8, 9), "ad102"),
            ("sm_90", (9, 0), "gh100"),
            ("sm_90a", (9, 0), "gh100"),
            ("sm_100a", (10, 0), "gb100"),
            ("sm_100f", (10, 0), "gb100"),
            ("sm_103", (10, 3), "gb110"),
            ("sm_110", (11, 0), "gb10b"),
            ("sm_120a", (12, 0), "gb202"),
            ("sm_121", (12, 1), "gb20b"),
        ] {
            assert_eq!(capability_of_arch(arch), Some(capability), "{arch}");
            assert_eq!(chip_of_arch(arch).unwrap().name(), chip, "{arch}");
        }
        for (capability, arch) in [("8.9", "sm_89"), ("9.0", "sm_90a"), ("12.1", "sm_121a")] {
            assert_eq!(arch_of_capability(capability).as_deref(), Some(arch));
        }
        assert_eq!(arch_of_capability("9"), None);
        assert_eq!(capability_of_arch("sm_61"), Some((6, 1)));
        assert_eq!(chip_of_arch("sm_61"), None);
        for text in [
            "sm_", "sm_9", "compute_90a", "sm_9x", "sm_90aa", "sm_é", "90a", "sm_90ab",
        ] {
            assert_eq!(capability_of_arch(text), None, "{text}");
        }
    }
}
