//! How the compiler's code of two kernels differs: registers, spills, instructions.

use std::collections::{BTreeMap, BTreeSet};

use super::explanation::CodeChanges;
use crate::comparable::compiled;
use crate::evidence::static_value;
use crate::judge::compare::metric::Pair;
use crate::judge::compare::mode::Mode;
use crate::judge::pair::kernels::pair_kernels;
use crate::profile::{KernelProfile, Profile};
use crate::terms::{first, joined};

/// Most opcodes that a difference of machine code names.
const NAMED_OPCODES: usize = 6;

/// Opcodes of tensor cores, memory and barriers: what the others are for.
const TELLING: [&str; 32] = [
    "HMMA", "IMMA", "BMMA", "DMMA", "QMMA", "OMMA", "HGMMA", "IGMMA", "BGMMA", "QGMMA", "UTCHMMA",
    "UTCIMMA", "UTCOMMA", "UTCQMMA", "LDTM", "STTM", "LDG", "STG", "LDGSTS", "LDS", "LDSM", "STS",
    "STSM", "LDL", "STL", "UTMALDG", "UTMASTG", "UBLKCP", "BAR", "MEMBAR", "WARPSYNC", "CALL",
];

/// What the hardware has a limited number of, in words.
const RESOURCES: [(&str, &str); 4] = [
    ("registers", "registers"),
    ("spill_bytes", "spilled bytes"),
    ("stack_bytes", "stack bytes"),
    ("static_shared_bytes", "static shared bytes"),
];

/// How the code of each kernel differs between two static profiles, by the kernel's name. Code of
/// another compiler differs everywhere, and kernels that share a name cannot be assigned to those
/// of a run: neither explains anything.
pub(crate) fn code_changes(reference: &Profile, current: &Profile) -> CodeChanges {
    if !compiled(reference, current).is_empty() {
        return CodeChanges::new();
    }
    pair_kernels(reference, current, Mode::Against, false)
        .pairs()
        .filter(|pair| current.label(pair.current) == pair.current.name)
        .filter_map(|pair| Some((pair.current.name.clone(), resources_and_code(pair)?)))
        .collect()
}

/// What a thread or block takes, and how the machine code differs; `None` where both are the same.
fn resources_and_code(pair: Pair<'_>) -> Option<String> {
    if pair.reference.text_sha256() == pair.current.text_sha256() {
        return None;
    }
    let steps = RESOURCES.iter().filter_map(|(name, words)| {
        let (was, is) = (
            static_value(pair.reference, name)?,
            static_value(pair.current, name)?,
        );
        (was != is).then(|| format!("{words} {was} → {is}"))
    });
    let parts: Vec<String> = steps.chain(telling_opcodes(pair)).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The instructions that matter for speed and that there are more or fewer of: `SASS: 12 HMMA
/// fewer, 40 LDL more`.
fn telling_opcodes(pair: Pair<'_>) -> Option<String> {
    let counts = |kernel: &KernelProfile| -> Option<BTreeMap<String, u32>> {
        let mut counts = BTreeMap::new();
        for (opcode, count) in kernel.code.as_ref()?.opcodes.as_ref()? {
            let base = opcode.split('.').next().unwrap_or(opcode);
            if TELLING.contains(&base) {
                let sum: &mut u32 = counts.entry(base.to_owned()).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
        Some(counts)
    };
    let (was, is) = (counts(pair.reference)?, counts(pair.current)?);
    let mut steps: Vec<(i64, &str)> = changed_counts(&was, &is)
        .map(|(opcode, was, is)| (i64::from(is) - i64::from(was), opcode))
        .collect();
    steps.sort_by_key(|(step, opcode)| (std::cmp::Reverse(step.abs()), *opcode));
    let named = steps.iter().take(NAMED_OPCODES).map(|(step, opcode)| {
        let way = if *step > 0 { "more" } else { "fewer" };
        format!("{} {opcode} {way}", step.abs())
    });
    (!steps.is_empty()).then(|| format!("SASS: {}", joined(named, ", ")))
}

/// Opcodes of which there are more or fewer, by their names, with both numbers.
fn changed_counts<'c>(
    was: &'c BTreeMap<String, u32>,
    is: &'c BTreeMap<String, u32>,
) -> impl Iterator<Item = (&'c str, u32, u32)> {
    let opcodes: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let count = |side: &BTreeMap<String, u32>, opcode| side.get(opcode).copied().unwrap_or(0);
    let counts = opcodes
        .into_iter()
        .map(move |opcode| (opcode.as_str(), count(was, opcode), count(is, opcode)));
    counts.filter(|(_, was, is)| was != is)
}

/// How the machine code of two kernels differs, in a few opcodes; those that changed most first.
pub(crate) fn code_difference(pair: Pair<'_>) -> Option<String> {
    let (was, is) = (pair.reference.code.as_ref()?, pair.current.code.as_ref()?);
    if was.text_sha256 == is.text_sha256 {
        return Some("the machine code is the same".to_owned());
    }
    let (was, is) = (was.opcodes.as_ref()?, is.opcodes.as_ref()?);
    // Padding follows from the rest.
    let mut steps: Vec<(&str, u32, u32)> = changed_counts(was, is)
        .filter(|(opcode, _, _)| *opcode != "NOP")
        .collect();
    // Instructions that are new, or all gone, come first.
    steps.sort_by_key(|(_, was, is)| {
        (
            std::cmp::Reverse(*was == 0 || *is == 0),
            std::cmp::Reverse(was.abs_diff(*is)),
        )
    });
    if steps.is_empty() {
        return Some("the same instructions in another order".to_owned());
    }
    let steps = steps.iter();
    let steps = steps.map(|(opcode, was, is)| format!("{opcode} {was} → {is}"));
    let what = match steps.len() > NAMED_OPCODES {
        true => " opcodes",
        false => "",
    };
    Some(format!(
        "machine code: {}{what}",
        first(steps, NAMED_OPCODES)
    ))
}
