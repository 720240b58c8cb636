//! Compiler targets and the chips they stand for.

use ncu_report::Chip;

/// The chip that a target of nvcc (`sm_90a`) stands for: its counter table and the name that
/// `ncu --query-metrics --chips` gives it. `None` where the text is no target; the name is empty
/// for targets of chips that are not listed here.
pub fn chip_of_arch(arch: &str) -> Option<(Chip, &'static str)> {
    let number = arch.strip_prefix("sm_")?.trim_end_matches(['a', 'f']);
    if number.len() < 2 || !number.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    Some(match number {
        "75" => (Chip::Other, "tu102"),
        "80" => (Chip::Other, "ga100"),
        "86" => (Chip::Other, "ga102"),
        "89" => (Chip::Other, "ad102"),
        "90" => (Chip::Gh100, "gh100"),
        "100" => (Chip::Other, "gb100"),
        "120" => (Chip::Other, "gb202"),
        _ => (Chip::Other, ""),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_told_from_other_texts() {
        assert_eq!(chip_of_arch("sm_90a"), Some((Chip::Gh100, "gh100")));
        assert_eq!(chip_of_arch("sm_80"), Some((Chip::Other, "ga100")));
        assert_eq!(chip_of_arch("sm_"), None);
        assert_eq!(chip_of_arch("compute_90a"), None);
        assert_eq!(chip_of_arch("sm_9x"), None);
    }
}
