//! Units of values.

/// The spelling of a unit. A thin reference, because every value of every launch has one.
pub type Symbol = &'static &'static str;

/// The unit of a value, in ncu's spelling of base units: `ns`, `byte`, `%`, `byte/cycle` …
///
/// A unit that is not known is [`Unit::Unknown`]. It is never guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A known unit. The empty symbol is a plain number without a unit.
    Known(Symbol),
    /// Neither the file nor the name of the metric states the unit.
    Unknown,
}

impl Unit {
    /// A plain number.
    pub const NONE: Unit = Unit::Known(&"");

    /// The symbol; `None` where the unit is unknown.
    pub fn symbol(&self) -> Option<&'static str> {
        match self {
            Unit::Known(symbol) => Some(symbol),
            Unit::Unknown => None,
        }
    }

    /// The base unit with this symbol; [`Unit::Unknown`] where ncu has no such base unit.
    pub fn named(symbol: &str) -> Unit {
        let quotient = || {
            let (above, below) = symbol.split_once('/')?;
            quotient(uncounted(above), below)
        };
        listed(BASE, symbol)
            .or_else(quotient)
            .map_or(Unit::Unknown, Unit::Known)
    }

    /// The quotient of two units; [`Unit::Unknown`] where ncu has no such base unit.
    pub(crate) fn per(above: &str, below: &str) -> Unit {
        quotient(above, below).map_or(Unit::Unknown, Unit::Known)
    }
}

/// Symbols that ncu prints for unscaled values.
const BASE: &[&str] = &[
    "", "%", "%/byte", "%/register", "SM", "block", "branches", "byte", "cluster", "cycle", "hz",
    "inst", "ns", "ops", "pass", "register", "request", "sample", "sector", "sectors", "tag",
    "thread", "warp",
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
    let (exponent, above) = match listed(BASE, uncounted(above)) {
        Some(base) => (0, base),
        None => prefixed(above)?,
    };
    // A rate. Its base spelling is `/s`, and only times are scaled denominators.
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

/// Plain counts by something are `1/s`, and were `/s`.
fn uncounted(above: &str) -> &str {
    if above == "1" { "" } else { above }
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

/// `Kbyte`, `Ghz`, and `M` for plain numbers.
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

/// `above/below` as a symbol; `None` where ncu has no such unit.
///
/// The symbols are part of the program, so that a unit is copied like a number.
fn quotient(above: &str, below: &str) -> Option<Symbol> {
    // Scaled denominators are unknown on purpose: ncu prints `2,614 %/byte` as `2.614 %/Kbyte`,
    // which contradicts itself.
    macro_rules! quotients {
        ($($above:literal)*) => {
            match above {
                "" => match below {
                    "cycle" => Some(&"1/cycle"),
                    "s" => Some(&"1/s"),
                    _ => None,
                },
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
    fn a_scaled_unit_gives_its_power_of_ten_and_its_base() {
        for (symbol, exponent, base) in [
            ("", 0, ""),
            ("ns", 0, "ns"),
            ("us", 3, "ns"),
            ("msecond", 6, "ns"),
            ("s", 9, "ns"),
            ("Kbyte", 3, "byte"),
            ("Mbyte", 6, "byte"),
            ("Tbyte/s", 12, "byte/s"),
            ("Gbyte/second", 9, "byte/s"),
            ("Kbyte/block", 3, "byte/block"),
            ("Ghz", 9, "hz"),
            ("cycle/nsecond", 9, "hz"),
            ("cycle/usecond", 6, "hz"),
            ("byte/cycle", 0, "byte/cycle"),
            ("thread/warp", 0, "thread/warp"),
            ("M", 6, ""),
            ("/s", 0, "1/s"),
            ("1/s", 0, "1/s"),
            ("/nsecond", 9, "1/s"),
            ("/usecond", 6, "1/s"),
            ("G/s", 9, "1/s"),
            ("1/cycle", 0, "1/cycle"),
            ("%/register", 0, "%/register"),
        ] {
            assert_eq!(decimal_scale(symbol), Some((exponent, &base)), "{symbol}");
        }
    }

    #[test]
    fn an_unknown_unit_has_no_base() {
        for symbol in [
            "furlong", "Kfoo", "%/Kbyte", "byte/", "Xbyte", "K/furlong", "byte/Kbyte", "é",
        ] {
            assert_eq!(decimal_scale(symbol), None, "{symbol}");
        }
    }
}
