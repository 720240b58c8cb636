//! Units as metric systems want them: base units, spelled as words.

/// The base unit of a counter's unit, spelled with letters, digits and `_`, and what a value in the
/// counter's unit is divided by to be in the base unit. `None` of a plain count.
pub fn base_unit(unit: Option<&str>) -> Option<(String, f64)> {
    let unit = unit.unwrap_or_default();
    let known = match unit {
        "" => return None,
        "ns" => ("seconds", 1e9),
        "%" => ("ratio", 100.0),
        "byte" => ("bytes", 1.0),
        "byte/s" => ("bytes_per_second", 1.0),
        "hz" => ("hertz", 1.0),
        _ => ("", 1.0),
    };
    let name = match known.0 {
        "" => spelled(&unit.replace('/', "_per_")),
        name => name.to_owned(),
    };
    Some((name, known.1))
}

/// A text of letters, digits and `_` alone.
pub fn spelled(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_base_units_in_words() {
        for (unit, name, divisor) in [
            ("ns", "seconds", 1e9),
            ("%", "ratio", 100.0),
            ("byte", "bytes", 1.0),
            ("register/thread", "register_per_thread", 1.0),
            ("inst", "inst", 1.0),
            ("a b%", "a_b_", 1.0),
        ] {
            assert_eq!(base_unit(Some(unit)), Some((name.to_owned(), divisor)));
        }
        assert_eq!(base_unit(Some("")), None);
        assert_eq!(base_unit(None), None);
    }
}
