//! The census of machine instructions, from `nvdisasm -json`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::error::BinaryError;
use crate::terms::{joined, joined_or};

/// Instructions by opcode with its modifiers, of each kernel by mangled name.
pub type Census = BTreeMap<String, BTreeMap<String, u32>>;

#[derive(Deserialize)]
struct Function {
    #[serde(rename = "function-name")]
    name: String,
    #[serde(rename = "sass-instructions")]
    instructions: Vec<Instruction>,
}

#[derive(Deserialize)]
struct Instruction {
    opcode: String,
}

/// The functions in what `nvdisasm -json` printed, subroutines under the name of their kernel.
fn functions(json: &[u8]) -> Result<Vec<Function>, BinaryError> {
    let wrong = |error: serde_json::Error| BinaryError::Disassembly(error.to_string());
    let (_, mut functions): (serde::de::IgnoredAny, Vec<Function>) =
        serde_json::from_slice(json).map_err(wrong)?;
    let mut kernel: Option<String> = None;
    for function in &mut functions {
        if function.name.starts_with('$') {
            let alone = "a subroutine stands before any kernel".to_owned();
            function.name = kernel.clone().ok_or(BinaryError::Disassembly(alone))?;
        } else {
            kernel = Some(function.name.clone());
        }
    }
    Ok(functions)
}

/// Counts the instructions in what `nvdisasm -json` printed: a list of a header and the list of
/// functions. Subroutines that the compiler placed behind a kernel (`$__internal_...`) are its own.
///
/// # Errors
/// [`BinaryError::Disassembly`].
pub fn census(json: &[u8]) -> Result<Census, BinaryError> {
    let mut census = Census::new();
    for function in functions(json)? {
        let counts = census.entry(function.name).or_default();
        for instruction in function.instructions {
            let count = counts.entry(instruction.opcode).or_insert(0);
            *count = count.saturating_add(1);
        }
    }
    Ok(census)
}

/// What tcgen05's opcodes leave open, because a descriptor in a register says it.
const OPEN: [(&str, [&str; 3]); 2] = [
    ("fp16/bf16/tf32", ["fp16", "bf16", "tf32"]),
    ("fp8/fp6/fp4", ["fp8", "fp6", "fp4"]),
];

/// The types that the tensor cores multiply in two kernels, in words, where they are known to differ
/// and the second one has any. Products that had no tensor cores may have had the types of the second
/// one all the same, but for tf32, which takes the place of fp32.
pub fn other_source_types(
    was: &BTreeMap<String, u32>,
    is: &BTreeMap<String, u32>,
) -> Option<[String; 2]> {
    let mut sides = [source_types(was), source_types(is)];
    for (open, types) in OPEN {
        if !sides.iter().any(|side| side.contains(open)) {
            continue;
        }
        for side in &mut sides {
            let all = side.len();
            side.retain(|one| !types.contains(one));
            if side.len() < all {
                side.insert(open);
            }
        }
    }
    let [was, is] = &sides;
    let lowered = match was.is_empty() {
        true => is.contains("tf32"),
        false => was != is && !is.is_empty(),
    };
    lowered.then(|| [joined_or("no tensor cores", was, ", "), joined(is, ", ")])
}

/// Stores and atomics to memory that others read, with and without a copy engine.
const STORES: [&str; 12] = [
    "ST", "STG", "ATOM", "ATOMG", "RED", "REDG", "SUST", "SURED", "UTMASTG", "UTMAREDG", "UBLKCP",
    "UBLKRED",
];

/// Whether a kernel stored to memory that others read, and does not any more. What it calls may store.
pub fn loses_its_stores(was: &BTreeMap<String, u32>, is: &BTreeMap<String, u32>) -> bool {
    let has = |opcodes: &BTreeMap<String, u32>, bases: &[&str]| {
        let mut own = opcodes.keys().filter_map(|opcode| opcode.split('.').next());
        own.any(|base| bases.contains(&base))
    };
    has(was, &STORES) && !has(is, &STORES) && !has(is, &["CALL"])
}

/// The types that the tensor cores multiply, by the opcodes of a kernel.
fn source_types(opcodes: &BTreeMap<String, u32>) -> BTreeSet<&'static str> {
    let mut types = BTreeSet::new();
    for opcode in opcodes.keys() {
        let mut parts = opcode.split('.');
        let base = parts.next().unwrap_or_default();
        let mut stated = parts
            .filter_map(|part| match (base, part) {
                ("HMMA" | "HGMMA", "BF16") => Some("bf16"),
                ("HMMA" | "HGMMA", "TF32") => Some("tf32"),
                ("QMMA" | "QGMMA", "E4M3" | "E5M2") => Some("fp8"),
                ("QMMA" | "QGMMA", "E2M3" | "E3M2") => Some("fp6"),
                ("QMMA", "E2M1") => Some("fp4"),
                ("IMMA" | "IGMMA", "S4" | "U4") => Some("int4"),
                _ => None,
            })
            .peekable();
        let unstated = match base {
            "HMMA" | "HGMMA" => Some("fp16"),
            "IMMA" | "IGMMA" | "UTCIMMA" => Some("int8"),
            "BMMA" | "BGMMA" => Some("single bits"),
            "DMMA" => Some("fp64"),
            "OMMA" | "UTCOMMA" => Some("fp4"),
            "UTCHMMA" => Some(OPEN[0].0),
            "UTCQMMA" => Some(OPEN[1].0),
            _ => None,
        };
        types.extend(unstated.filter(|_| stated.peek().is_none()));
        types.extend(stated);
    }
    types
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_types_of_tensor_cores_are_what_the_opcodes_say() {
        // As nvdisasm 13.2.86 prints them for sm_75 to sm_121a.
        for (opcode, expected) in [
            ("HMMA.1688.F32", &["fp16"][..]),
            ("HMMA.16816.F32.BF16", &["bf16"]),
            ("HMMA.1688.F32.TF32", &["tf32"]),
            ("HMMA.SP.16816.F32.BF16", &["bf16"]),
            ("QMMA.SF.16832.F32.E4M3.E4M3.E8", &["fp8"]),
            ("OMMA.SF.16864.F32.E2M1.E2M1.E8", &["fp4"]),
            ("HGMMA.64x256x16.F32.BF16", &["bf16"]),
            ("QGMMA.64x64x32.F32.E4M3.E5M2", &["fp8"]),
            ("QMMA.16832.F32.E4M3.E2M1", &["fp4", "fp8"]),
            ("IMMA.16832.S8.S8", &["int8"]),
            ("IMMA.8832.U4.S4", &["int4"]),
            ("DMMA.8x8x4", &["fp64"]),
            ("UTCHMMA.WS", &["fp16/bf16/tf32"]),
            ("UTCQMMA", &["fp8/fp6/fp4"]),
            ("UTCOMMA.4X", &["fp4"]),
            ("HFMA2.MMA", &[]),
            ("F2FP.BF16.F32.PACK_AB", &[]),
        ] {
            let opcodes = BTreeMap::from([(opcode.to_owned(), 1)]);
            assert!(source_types(&opcodes).iter().eq(expected), "{opcode}");
        }
    }

    #[test]
    fn source_types_differ_only_where_that_is_known() {
        let opcodes = |names: &str| {
            let names = names.split_whitespace();
            names.map(|name| (name.to_owned(), 1)).collect()
        };
        let table = "
HMMA.16816.F32.BF16 | QMMA.16832.F32.E4M3.E4M3 | bf16 -> fp8
FFMA | HMMA.1688.F32.TF32 | no tensor cores -> tf32
FFMA | HMMA.16816.F32 |
HMMA.1688.F32 FFMA | HGMMA.64x8x16.F32 |
HMMA.1688.F32.TF32 | FFMA |
UTCHMMA | HMMA.16816.F32.BF16 |
UTCHMMA UTCOMMA | UTCHMMA | fp16/bf16/tf32, fp4 -> fp16/bf16/tf32
UTCHMMA | UTCQMMA | fp16/bf16/tf32 -> fp8/fp6/fp4
UTCQMMA | UTCQMMA UTCOMMA |
";
        for row in table.trim().lines() {
            let row: Vec<&str> = row.split('|').map(str::trim).collect();
            let found = other_source_types(&opcodes(row[0]), &opcodes(row[1]));
            let found = found.map(|sides| sides.join(" -> ")).unwrap_or_default();
            assert_eq!([found.as_str()], row[2..], "{row:?}");
        }
    }
}
