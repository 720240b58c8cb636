//! Reader of the CSV pages of `ncu` (`raw` and `details`).
