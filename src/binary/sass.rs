//! The census of machine instructions, from `nvdisasm -json`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::BinaryError;

/// Instructions by opcode with its modifiers, of each kernel by mangled name.
pub type Census = BTreeMap<String, BTreeMap<String, u32>>;

/// The text of each instruction by its offset, of each kernel by mangled name.
pub type Listing = BTreeMap<String, BTreeMap<u64, String>>;

/// Bytes of an instruction, on every chip from Volta on.
const INSTRUCTION_BYTES: u64 = 16;

#[derive(Deserialize)]
struct Function {
    #[serde(rename = "function-name")]
    name: String,
    #[serde(default)]
    start: u64,
    #[serde(rename = "sass-instructions")]
    instructions: Vec<Instruction>,
}

#[derive(Deserialize)]
struct Instruction {
    #[serde(default)]
    predicate: String,
    opcode: String,
    #[serde(default)]
    operands: String,
}

/// Counts the instructions in what `nvdisasm -json` printed: a list of a header and the list of
/// functions. Subroutines that the compiler placed behind a kernel (`$__internal_...`) are its own.
///
/// # Errors
/// [`BinaryError::Disassembly`].
pub fn census(json: &[u8]) -> Result<Census, BinaryError> {
    let wrong = |error: serde_json::Error| BinaryError::Disassembly(error.to_string());
    let (_, functions): (serde::de::IgnoredAny, Vec<Function>) =
        serde_json::from_slice(json).map_err(wrong)?;
    let mut census = Census::new();
    let mut kernel = None;
    for function in functions {
        if !function.name.starts_with('$') {
            kernel = Some(function.name);
        }
        let Some(name) = &kernel else {
            return Err(BinaryError::Disassembly(
                "a subroutine stands before any kernel".to_owned(),
            ));
        };
        let counts = census.entry(name.clone()).or_default();
        for instruction in function.instructions {
            let count = counts.entry(instruction.opcode).or_insert(0);
            *count = count.saturating_add(1);
        }
    }
    Ok(census)
}

/// The instructions in what `nvdisasm -json` printed, those of subroutines among their kernel's.
///
/// # Errors
/// [`BinaryError::Disassembly`].
pub fn listing(json: &[u8]) -> Result<Listing, BinaryError> {
    let wrong = |error: serde_json::Error| BinaryError::Disassembly(error.to_string());
    let (_, functions): (serde::de::IgnoredAny, Vec<Function>) =
        serde_json::from_slice(json).map_err(wrong)?;
    let mut listing = Listing::new();
    let mut kernel = String::new();
    for function in functions {
        if !function.name.starts_with('$') {
            kernel = function.name;
        }
        let instructions = listing.entry(kernel.clone()).or_default();
        for (instruction, index) in function.instructions.into_iter().zip(0_u64..) {
            let offset = index
                .checked_mul(INSTRUCTION_BYTES)
                .and_then(|offset| offset.checked_add(function.start))
                .ok_or_else(|| {
                    let start = function.start;
                    BinaryError::Disassembly(format!("a function begins at byte {start}"))
                })?;
            let parts = [
                instruction.predicate,
                instruction.opcode,
                instruction.operands.replace(',', ", "),
            ];
            instructions.insert(offset, parts.join(" ").trim().to_owned());
        }
    }
    Ok(listing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_instruction_lies_before_the_function_that_it_is_in() {
        let listing_from = |start: u64| {
            let json = format!(
                r#"[{{}}, [{{"function-name": "k", "start": {start}, "sass-instructions": [{{"opcode": "NOP"}}, {{"opcode": "EXIT"}}]}}]]"#
            );
            listing(json.as_bytes())
        };
        assert_eq!(listing_from(32).unwrap()["k"][&48], "EXIT");
        assert!(listing_from(u64::MAX - 8).is_err());
    }
}
