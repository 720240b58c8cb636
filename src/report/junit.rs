//! The report as JUnit XML.

use crate::verdict::Outcome;

pub(super) fn render(_outcome: &Outcome) -> String {
    String::new()
}
