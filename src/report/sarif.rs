//! The report as SARIF 2.1.0.

use crate::verdict::Outcome;

pub(super) fn render(_outcome: &Outcome) -> String {
    String::new()
}
