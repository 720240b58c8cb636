//! Cells: numbers with thousands separators, texts, and the spellings of a missing value.

use super::marks;
use crate::value::Value;

/// The content of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cell<'a> {
    Missing,
    Number(Number),
    Text(&'a [u8]),
}

/// A printed number, as its decimal digits: scaling rounds it once at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number {
    digits: Digits,
    /// The number of printed decimals.
    pub(super) decimals: u8,
    /// What its separators show of the locale, see [`marks`].
    pub(super) marks: u16,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Digits {
    /// With the decimal point before the last decimals of them.
    Positive(u64),
    Negative(u64),
    /// A number in exponent form or with more digits than fit into 64 bits.
    Float(f64),
}

/// The text of a cell; what is not UTF-8 is replaced.
pub(super) fn text(cell: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(cell).into_owned();
    text.shrink_to_fit();
    text
}

/// The value of a cell with a whole number.
pub(super) fn number_u64(cell: &[u8]) -> Option<u64> {
    match Cell::parse(cell) {
        Cell::Number(number) => match number.value(0) {
            Value::Integer(number) => Some(number),
            _ => None,
        },
        _ => None,
    }
}

impl<'a> Cell<'a> {
    #[inline]
    pub(super) fn parse(cell: &'a [u8]) -> Cell<'a> {
        match decimal(cell) {
            Some(number) => Cell::Number(number),
            None => Cell::parse_rest(cell),
        }
    }

    #[cold]
    fn parse_rest(cell: &'a [u8]) -> Cell<'a> {
        const MISSING: &[&str] = &["", "no data", "n/a", "(!) n/a", "nan", "inf", "infinity"];
        let text = cell.trim_ascii();
        let unsigned = text
            .strip_prefix(b"-")
            .or(text.strip_prefix(b"+"))
            .unwrap_or(text);
        if MISSING
            .iter()
            .any(|missing| unsigned.eq_ignore_ascii_case(missing.as_bytes()))
        {
            return Cell::Missing;
        }
        let numeric = unsigned
            .first()
            .is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.')
            && text
                .iter()
                .all(|byte| byte.is_ascii_digit() || b".,+-eE".contains(byte));
        if !numeric {
            return Cell::Text(cell);
        }
        let plain: String = text
            .iter()
            .filter(|&&byte| byte != b',')
            .map(|&b| char::from(b))
            .collect();
        let commas = text.len() != plain.len();
        match plain.parse::<f64>() {
            // A comma outside a well-formed group separates the items of a list.
            Ok(number) if !commas || grouped(text) => {
                if number.is_finite() {
                    Cell::Number(Number {
                        digits: Digits::Float(number),
                        decimals: 0,
                        marks: 0,
                    })
                } else {
                    Cell::Missing
                }
            }
            _ => Cell::Text(cell),
        }
    }
}

/// Whether each comma of the whole part precedes a group of three digits.
fn grouped(number: &[u8]) -> bool {
    let whole = number
        .split(|byte| b".eE".contains(byte))
        .next()
        .unwrap_or_default();
    let whole = whole.strip_prefix(b"-").unwrap_or(whole);
    let mut groups = whole.split(|&byte| byte == b',');
    groups
        .next()
        .is_some_and(|first| (1..=3).contains(&first.len()))
        && groups.all(|group| group.len() == 3)
        && number
            .iter()
            .rposition(|&byte| byte == b',')
            .is_none_or(|comma| comma < whole.len() + 1)
}

/// Parses `1,234.56`; `None` for anything else, well-formed numbers of another form included.
#[inline]
fn decimal(cell: &[u8]) -> Option<Number> {
    let (negative, unsigned) = match cell {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, cell),
    };
    // 19 digits fit into 64 bits; with six separators and the point that is 26 bytes.
    if unsigned.is_empty() || unsigned.len() > 26 {
        return None;
    }
    let mut digits = 0_u64;
    let mut count = 0_u32;
    // Digits since the last comma, or since the beginning.
    let mut group = 0_u32;
    let mut commas = 0_u32;
    let mut bytes = unsigned.iter();
    let mut point = false;
    for &byte in bytes.by_ref() {
        match byte {
            b'0'..=b'9' => {
                digits = digits.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
                count += 1;
                group += 1;
            }
            b',' if group == 3 || (commas == 0 && (1..=3).contains(&group)) => {
                commas += 1;
                group = 0;
            }
            b'.' => {
                point = true;
                break;
            }
            _ => return None,
        }
    }
    if count == 0 || (commas > 0 && group != 3) {
        return None;
    }
    let mut decimals = 0_u8;
    for &byte in bytes {
        if !byte.is_ascii_digit() {
            return None;
        }
        digits = digits.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
        decimals += 1;
    }
    if count + u32::from(decimals) > 19 || (point && decimals == 0) {
        return None;
    }
    let marks = match (commas, decimals) {
        // Six decimals have a point under every locale.
        (0, 0 | 6) => 0,
        (0, 3) if group <= 3 && unsigned.first() != Some(&b'0') => marks::LONE_POINT,
        (0, _) => marks::POINT,
        (1, 0) => marks::LONE_COMMA,
        (_, 0) => marks::COMMA_GROUPS,
        (_, _) => marks::COMMA_GROUPS | marks::POINT,
    };
    Some(Number {
        digits: match negative {
            true => Digits::Negative(digits),
            false => Digits::Positive(digits),
        },
        decimals,
        marks,
    })
}

impl Number {
    /// The value in base units: the number times ten to the power of `exponent`.
    #[inline]
    pub(super) fn value(self, exponent: i8) -> Value {
        let scale = i32::from(exponent) - i32::from(self.decimals);
        match self.digits {
            Digits::Positive(digits) if exponent == 0 && self.decimals == 0 => {
                Value::Integer(digits)
            }
            Digits::Positive(digits) => finite(scaled(digits, scale)),
            Digits::Negative(digits) => finite(-scaled(digits, scale)),
            Digits::Float(number) => finite(number * 10_f64.powi(i32::from(exponent))),
        }
    }
}

#[inline]
fn finite(number: f64) -> Value {
    if number.is_finite() {
        Value::Float(number)
    } else {
        Value::Missing
    }
}

/// `digits` times a power of ten. Both factors are exact below 2^53 and 10^22, so the result is
/// rounded once and equals the parsed decimal text.
#[inline]
fn scaled(digits: u64, exponent: i32) -> f64 {
    const EXACT: [f64; 23] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
        1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    ];
    let power = usize::try_from(exponent.unsigned_abs())
        .ok()
        .and_then(|index| EXACT.get(index));
    match power {
        Some(power) if digits < 1 << 53 => {
            if exponent < 0 {
                digits as f64 / power
            } else {
                digits as f64 * power
            }
        }
        _ => parsed(digits, exponent),
    }
}

#[cold]
fn parsed(digits: u64, exponent: i32) -> f64 {
    format!("{digits}e{exponent}").parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(cell: &str, exponent: i8) -> Value {
        match Cell::parse(cell.as_bytes()) {
            Cell::Number(number) => number.value(exponent),
            Cell::Missing => Value::Missing,
            Cell::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned().into()),
        }
    }

    #[test]
    fn numbers_are_read_with_and_without_separators() {
        assert_eq!(value("0", 0), Value::Integer(0));
        assert_eq!(value("1,750,816", 0), Value::Integer(1_750_816));
        assert_eq!(value("8.83", 0), Value::Float(8.83));
        assert_eq!(value("3,191,035,683.20", 0), Value::Float(3_191_035_683.2));
        assert_eq!(value("-1,234.5", 0), Value::Float(-1234.5));
        assert_eq!(value("1e+3", 0), Value::Float(1000.0));
        assert_eq!(
            value("18446744073709551615", 0),
            Value::Float(18446744073709551615.0)
        );
    }

    proptest::proptest! {
        #[test]
        fn decimals_equal_what_the_standard_library_parses(digits: u64, decimals in 0_usize..20) {
            let digits = digits / 10;
            let text = format!("{digits:020}");
            let (whole, fraction) = text.split_at(20 - decimals);
            let text = format!("{whole}.{fraction}");
            let expected: f64 = text.parse().unwrap();
            let read = scaled(digits, -i32::try_from(decimals).unwrap());
            proptest::prop_assert_eq!(read.to_bits(), expected.to_bits());
        }
    }

    #[test]
    fn a_scaled_number_becomes_the_nearest_one_in_base_units() {
        assert_eq!(value("12.224000", 3), Value::Float(12224.0));
        assert_eq!(value("3.186955", 9), Value::Float(3_186_955_000.0));
        assert_eq!(value("0.1", 3), Value::Float(100.0));
        assert_eq!(value("5", 6), Value::Float(5e6));
        assert_eq!(value("9999999999999999.99", 3), Value::Float(1e19));
    }

    #[test]
    fn an_empty_cell_is_missing_and_never_zero() {
        for cell in [
            "", " ", "-", "no data", "nan", "-nan", "NaN", "n/a", "(!) n/a", "inf", "-inf", "1e999",
        ] {
            assert_eq!(value(cell, 0), Value::Missing, "{cell:?}");
        }
    }

    #[test]
    fn what_is_not_a_number_is_a_text() {
        for cell in [
            "NVIDIA H200", "0,1", "1,2345", "12,34.5", ",1", "1,", "1.2.3", "1.5,000", "0-47",
            "0x10", "1234,567", "4,294,967,29x",
        ] {
            assert_eq!(
                value(cell, 0),
                Value::Text(cell.to_owned().into()),
                "{cell:?}"
            );
        }
    }
}
