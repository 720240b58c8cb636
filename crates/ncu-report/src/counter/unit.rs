//! Units of counter values.

/// A unit's spelling. A thin reference, because every value of every launch holds one.
pub type Symbol = &'static &'static str;

/// The unit of a value, spelt as ncu spells base units (`ns`, `byte`, `%`, `byte/cycle` ...).
///
/// A unit that is not known stays [`Unit::Unknown`]; it is never guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A known unit; the empty symbol means a plain number without a unit.
    Known(Symbol),
    /// Nothing says which unit the value is in.
    Unknown,
}

impl Unit {
    /// A plain number.
    pub const NONE: Unit = Unit::Known(&"");

    /// The symbol, or `None` where the unit is unknown.
    pub fn symbol(&self) -> Option<&'static str> {
        match self {
            Unit::Known(symbol) => Some(symbol),
            Unit::Unknown => None,
        }
    }

    /// The factor to the base unit and the base unit's symbol, or `None` for a unit that is not
    /// known: `Mbyte/s` gives `(1e6, "byte/s")`.
    ///
    /// ncu scales by powers of 1000, bytes included. Spellings of older versions (`usecond`,
    /// `byte/second`, `cycle/nsecond`) are understood too.
    pub fn to_base(symbol: &str) -> Option<(f64, &'static str)> {
        let (exponent, base) = decimal_scale(symbol)?;
        Some((10_f64.powi(i32::from(exponent)), *base))
    }

    /// The unit with this symbol, unknown where that is no unit of ncu's.
    pub fn named(symbol: &str) -> Unit {
        let quotient = || {
            let (above, below) = symbol.split_once('/')?;
            quotient(above, below)
        };
        listed(BASE, symbol)
            .or_else(quotient)
            .map_or(Unit::Unknown, Unit::Known)
    }

    /// `above` a `below`, unknown where one of them is no unit of ncu's.
    pub(crate) fn per(above: &str, below: &str) -> Unit {
        quotient(above, below).map_or(Unit::Unknown, Unit::Known)
    }
}

/// Symbols that ncu prints for unscaled values.
const BASE: &[&str] = &[
    "",
    "%",
    "%/byte",
    "%/register",
    "SM",
    "block",
    "branches",
    "byte",
    "cluster",
    "cycle",
    "hz",
    "inst",
    "ns",
    "ops",
    "pass",
    "register",
    "request",
    "sample",
    "sector",
    "sectors",
    "tag",
    "thread",
    "warp",
];

/// The power of ten to the base unit, and the base unit.
pub(crate) fn decimal_scale(symbol: &str) -> Option<(i8, Symbol)> {
    if let Some(base) = listed(BASE, symbol) {
        return Some((0, base));
    }
    if let Some(exponent) = time_exponent(symbol) {
        return Some((exponent, &"ns"));
    }
    let Some((above, below)) = symbol.split_once('/') else {
        return prefixed(symbol);
    };
    let (exponent, above) = match listed(BASE, above) {
        Some(base) => (0, base),
        None => prefixed(above)?,
    };
    if above.is_empty() {
        return None;
    }
    // A rate: seconds are the only denominator that scales, because `/s` is its base spelling.
    if let Some(per) = time_exponent(below).or((below == "ns").then_some(0)) {
        let exponent = exponent + 9 - per;
        let base = match *above {
            "cycle" => &"hz",
            _ => quotient(above, "s")?,
        };
        return Some((exponent, base));
    }
    Some((exponent, quotient(above, below)?))
}

fn listed(list: &'static [&'static str], symbol: &str) -> Option<Symbol> {
    list.iter().find(|known| **known == symbol)
}

/// Power of ten from a time to nanoseconds.
fn time_exponent(symbol: &str) -> Option<i8> {
    Some(match symbol {
        "nsecond" => 0,
        "us" | "usecond" => 3,
        "ms" | "msecond" => 6,
        "s" | "second" => 9,
        _ => return None,
    })
}

/// `Kbyte`, `Ghz`, and `M` alone for plain numbers.
fn prefixed(symbol: &str) -> Option<(i8, Symbol)> {
    let exponent = match symbol.as_bytes().first()? {
        b'K' => 3,
        b'M' => 6,
        b'G' => 9,
        b'T' => 12,
        b'P' => 15,
        _ => return None,
    };
    let base = listed(&["", "byte", "hz"], symbol.get(1..)?)?;
    Some((exponent, base))
}

/// `above/below` as a symbol, or `None` where one of them is no unit of ncu's.
///
/// The symbols are part of the program, so that a unit is copied like a number.
fn quotient(above: &str, below: &str) -> Option<Symbol> {
    // Scaled units below the stroke are left out on purpose: ncu prints `2,614 %/byte` as
    // `2.614 %/Kbyte`, which contradicts itself.
    macro_rules! quotients {
        ($($above:literal)*) => {
            match above {
                "" => Some(&""),
                $($above => match below {
                    "block" => Some(&concat!($above, "/block")),
                    "byte" => Some(&concat!($above, "/byte")),
                    "cycle" => Some(&concat!($above, "/cycle")),
                    "inst" => Some(&concat!($above, "/inst")),
                    "register" => Some(&concat!($above, "/register")),
                    "request" => Some(&concat!($above, "/request")),
                    "s" => Some(&concat!($above, "/s")),
                    "sector" => Some(&concat!($above, "/sector")),
                    "thread" => Some(&concat!($above, "/thread")),
                    "warp" => Some(&concat!($above, "/warp")),
                    _ => None,
                },)*
                _ => None,
            }
        };
    }
    quotients! {
        "%" "SM" "block" "branches" "byte" "cluster" "cycle" "hz" "inst" "ns" "ops" "pass"
        "register" "request" "sample" "sector" "sectors" "tag" "thread" "warp"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scaled_unit_gives_its_factor_and_its_base() {
        for (symbol, factor, base) in [
            ("", 1.0, ""),
            ("ns", 1.0, "ns"),
            ("us", 1e3, "ns"),
            ("msecond", 1e6, "ns"),
            ("s", 1e9, "ns"),
            ("Kbyte", 1e3, "byte"),
            ("Mbyte", 1e6, "byte"),
            ("Tbyte/s", 1e12, "byte/s"),
            ("Gbyte/second", 1e9, "byte/s"),
            ("Kbyte/block", 1e3, "byte/block"),
            ("Ghz", 1e9, "hz"),
            ("cycle/nsecond", 1e9, "hz"),
            ("cycle/usecond", 1e6, "hz"),
            ("byte/cycle", 1.0, "byte/cycle"),
            ("thread/warp", 1.0, "thread/warp"),
            ("M", 1e6, ""),
            ("%/register", 1.0, "%/register"),
        ] {
            assert_eq!(Unit::to_base(symbol), Some((factor, base)), "{symbol}");
        }
    }

    #[test]
    fn an_unknown_unit_has_no_base() {
        for symbol in [
            "furlong",
            "Kfoo",
            "%/Kbyte",
            "byte/",
            "/s",
            "K/s",
            "Xbyte",
            "K/furlong",
            "byte/Kbyte",
            "é",
        ] {
            assert_eq!(Unit::to_base(symbol), None, "{symbol}");
        }
    }
}
