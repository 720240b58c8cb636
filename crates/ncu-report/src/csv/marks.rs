//! What the separators of a number show of its locale, as bits.

/// `8.83`: a decimal point.
pub(super) const POINT: u16 = 1;
/// `1,234,567` or `4,096.50`.
pub(super) const COMMA_GROUPS: u16 = 1 << 1;
/// `27,584`: under C a group, and never a decimal comma with three decimals.
pub(super) const LONE_COMMA: u16 = 1 << 2;
/// `27.584`: not decided by itself.
pub(super) const LONE_POINT: u16 = 1 << 3;
/// `8,83`: a decimal comma.
pub(super) const COMMA: u16 = 1 << 4;
/// `1.234.567`.
pub(super) const POINT_GROUPS: u16 = 1 << 5;
/// `1 234 567`, also with spaces that do not break.
pub(super) const SPACE_GROUPS: u16 = 1 << 6;
/// `1'234'567`.
pub(super) const QUOTE_GROUPS: u16 = 1 << 7;
/// `12,34,567`.
pub(super) const INDIAN_GROUPS: u16 = 1 << 8;
/// What the usual reading of a number understands.
pub(super) const USUAL: u16 = POINT | COMMA_GROUPS | LONE_COMMA | LONE_POINT;
