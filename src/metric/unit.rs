//! Units of counter values.

use std::borrow::Cow;

/// The unit of a value, spelt as ncu spells base units (`ns`, `byte`, `%`, `byte/cycle` ...).
///
/// A unit that is not known stays [`Unit::Unknown`]; it is never guessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A known unit; the empty symbol means a plain number without a unit.
    Known(Cow<'static, str>),
    /// Nothing says which unit the value is in.
    Unknown,
}

impl Unit {
    /// A plain number.
    pub const NONE: Unit = Unit::Known(Cow::Borrowed(""));

    /// The symbol, or `None` where the unit is unknown.
    pub fn symbol(&self) -> Option<&str> {
        match self {
            Unit::Known(symbol) => Some(symbol),
            Unit::Unknown => None,
        }
    }
}
