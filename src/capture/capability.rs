//! The compute capability that the tool's own capture files state.

use ncu_report::ReadError;

/// `9.0` as two numbers. It is in the third line of every such file.
///
/// # Errors
/// [`ReadError::Records`] where it is none.
pub(super) fn capability(text: &str) -> Result<(u64, u64), ReadError> {
    let numbers = text
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    numbers.ok_or_else(|| ReadError::Records {
        line: 3,
        problem: format!("no compute capability: {text:?}"),
    })
}
