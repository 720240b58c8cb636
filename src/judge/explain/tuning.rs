//! Other configurations of autotuned kernels than in the reference.

use std::collections::{BTreeMap, BTreeSet};

use super::explanation::CodeChanges;
use crate::comparable::compiled;
use crate::evidence::chosen;
use crate::finding::{Code, Finding, WarnReason};
use crate::judge::compare::metric::Case;
use crate::judge::compare::mode::Mode;
use crate::judge::pair::kernels::pair_kernels;
use crate::profile::Profile;

/// How the choice of an autotuner differs, by the name of the kernel: `num_warps 4 → 8 (M: 128, …)`.
/// Nothing is said of a kernel of which a side does not report it, or whose choice varied from
/// process to process and contains the other's.
pub(crate) fn tuning_changes(reference: &Profile, current: &Profile) -> CodeChanges {
    let (was, is) = (chosen(reference), chosen(current));
    let mut changes = CodeChanges::new();
    for (kernel, is) in is {
        let Some(was) = was.get(kernel) else { continue };
        if !is.is_disjoint(was) {
            continue;
        }
        let text = match (was.iter().next(), is.iter().next()) {
            (Some([was]), Some([is])) => difference(was, is),
            (Some(was), Some(is)) => format!("{} → {}", was.join(" and "), is.join(" and ")),
            _ => continue,
        };
        changes.insert(kernel.to_owned(), text);
    }
    changes
}

/// The settings that differ between two configurations, and the whole of the second.
fn difference(was: &str, is: &str) -> String {
    let settings = |text: &str| -> Option<BTreeMap<String, String>> {
        let pairs = text.split(", ").map(|pair| {
            let (name, value) = pair.split_once(": ")?;
            Some((name.to_owned(), value.to_owned()))
        });
        pairs.collect()
    };
    let (Some(before), Some(now)) = (settings(was), settings(is)) else {
        return format!("{was} → {is}");
    };
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let steps = names.into_iter();
    let steps: Vec<String> = steps
        .filter(|name| before.get(*name) != now.get(*name))
        .map(|name| {
            let value = |side: &BTreeMap<String, String>| {
                side.get(name).map_or("not set", String::as_str).to_owned()
            };
            format!("{name} {} → {}", value(&before), value(&now))
        })
        .collect();
    match steps.is_empty() {
        true => format!("{was} → {is}"),
        false => format!("{} (now {is})", steps.join(", ")),
    }
}

/// The findings on what autotuners chose otherwise.
pub(crate) fn tuning_findings(case: &Case<'_>, changes: &CodeChanges) -> Vec<Finding> {
    let filter = case.variant.kernel_filter();
    let changes = changes.iter().filter(|(kernel, _)| filter.matches(kernel));
    let reference = case.mode.reference();
    changes
        .map(|(kernel, text)| {
            let message = format!("`{kernel}` is tuned otherwise than in the {reference}: {text}");
            finding(case, message).kernel(kernel)
        })
        .collect()
}

/// Kernels whose loaded machine code is other code, although the files of the variant and the compiler
/// are the same: something chose differently. `reported` are those of which it is known what.
pub(crate) fn unexplained_code(case: &Case<'_>, reported: &CodeChanges) -> Vec<Finding> {
    let (reference, current, mode) = (case.reference, case.current, case.mode);
    let (was, is) = (&reference.provenance, &current.provenance);
    let known = !is.sources.is_empty() && was.sources == is.sources;
    if !case.variant.loaded_code || !known || !compiled(reference, current).is_empty() {
        return Vec::new();
    }
    let pairing = pair_kernels(reference, current, mode, false);
    let other = pairing.pairs().filter(|pair| {
        let same = pair.reference.text_sha256() == pair.current.text_sha256();
        !same && !reported.contains_key(&pair.current.name)
    });
    let reference = mode.reference();
    other
        .map(|pair| {
            let name = &pair.current.name;
            let message = format!(
                "`{name}` is other machine code than in the {reference}, and its files and its compiler are the same: an autotuner or a setting of the compiler chose otherwise"
            );
            let next = "find out why, by its candidates, its compiler and the driver; lock a new baseline if it is meant";
            Finding { next: next.to_owned(), ..finding(case, message) }.kernel(name)
        })
        .collect()
}

fn finding(case: &Case<'_>, message: String) -> Finding {
    let beside = (case.mode != Mode::Stored).then_some(WarnReason::SideBySide);
    Finding::of(Code::TuningChanged, &case.variant.id, message).warn_for(beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_that_differ_are_named() {
        for (was, is, expected) in [
            (
                "M: 128, num_warps: 4",
                "M: 128, num_warps: 8",
                "num_warps 4 → 8 (now M: 128, num_warps: 8)",
            ),
            (
                "M: 128",
                "M: 64, maxnreg: None",
                "M 128 → 64, maxnreg not set → None (now M: 64, maxnreg: None)",
            ),
            ("a fast one", "another", "a fast one → another"),
            ("A: 1, B: 2", "B: 2, A: 1", "A: 1, B: 2 → B: 2, A: 1"),
        ] {
            assert_eq!(difference(was, is), expected);
        }
    }
}
