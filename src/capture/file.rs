//! What the capture files of this tool have in common.

use ncu_report::ReadError;

/// `9.0` as two numbers. It is in the third line of the tool's own capture files.
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

/// Refuses more launches than a bounded memory has room for: a file states one in few bytes. `each` is
/// the size of a name and its values.
pub(super) fn fits(launches: usize, each: usize) -> Result<(), String> {
    // Bytes of the launches of one file together, and about what one takes besides.
    const MOST_MEMORY: usize = 48 << 20;
    const LAUNCH: usize = 1024;
    let most = MOST_MEMORY / each.saturating_mul(2).saturating_add(LAUNCH);
    match launches > most {
        true => Err(format!(
            "{launches} launches of a kernel with a name of {each} bytes; at most {most} are read"
        )),
        false => Ok(()),
    }
}
