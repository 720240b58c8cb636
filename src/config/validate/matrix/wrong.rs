//! What is wrong with a matrix.

use std::ops::Range;

/// The place in the file, what is wrong, and the next step.
pub(in crate::config::validate) struct Wrong {
    pub span: Range<usize>,
    pub message: String,
    pub help: String,
}

pub(super) fn wrong(
    span: Range<usize>,
    message: impl Into<String>,
    help: impl Into<String>,
) -> Box<Wrong> {
    Box::new(Wrong {
        span,
        message: message.into(),
        help: help.into(),
    })
}
