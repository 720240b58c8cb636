//! The types that a kernel multiplies: a product of bf16 that became one of fp8 is other work, however
//! fast it is.

use std::collections::{BTreeMap, BTreeSet};

use super::metric::{Comparison, Launched};
use super::mode::Mode;
use crate::config::Variant;
use crate::finding::{Code, Finding, WarnReason};
use crate::metric::{Level, is_part_of, source_type};

/// A kernel with its operations by type, before and now.
#[derive(Default)]
struct Types<'c> {
    counted: BTreeMap<&'c str, (f64, f64)>,
    comparisons: Vec<&'c Comparison>,
}

impl<'c> Types<'c> {
    fn add(&mut self, source: &'c str, comparison: &'c Comparison) -> Option<()> {
        let (was, is) = (comparison.reference?.value, comparison.current?.value);
        let sum = self.counted.entry(source).or_default();
        *sum = (sum.0 + was, sum.1 + is);
        self.comparisons.push(comparison);
        Some(())
    }

    /// The types that are multiplied less than before, and those that are multiplied more, where a type
    /// is new or is gone.
    fn changed(&self) -> Option<(String, String)> {
        let named = |keep: &dyn Fn(f64, f64) -> bool| {
            let kept = self.counted.iter().filter(|(_, (was, is))| keep(*was, *is));
            kept.map(|(name, _)| *name).collect::<Vec<_>>()
        };
        let (gone, new) = (
            named(&|was, is| was > 0.0 && is == 0.0),
            named(&|was, is| was == 0.0 && is > 0.0),
        );
        let (less, more) = (named(&|was, is| is < was), named(&|was, is| is > was));
        let (from, to) = match (gone.is_empty(), new.is_empty()) {
            (false, false) => (gone, new),
            (false, true) => (gone, more),
            (true, false) => (less, new),
            (true, true) => return None,
        };
        (!from.is_empty() && !to.is_empty()).then(|| (from.join(", "), to.join(", ")))
    }
}

/// A finding for each kernel that multiplies other types than before, and the kernels that it stands
/// for: what their counters of single types say is said by it.
pub(in crate::judge) fn precision_findings(
    variant: &Variant,
    comparisons: &[Comparison],
    mode: Mode,
    next: &str,
) -> (Vec<Finding>, BTreeSet<Launched>) {
    let mut kernels: BTreeMap<Launched, Types<'_>> = BTreeMap::new();
    for comparison in comparisons {
        let of_kernel = |other: &&Comparison| other.launched() == comparison.launched();
        let mut others = comparisons.iter().filter(of_kernel);
        let is_part = others.any(|other| is_part_of(&comparison.counter, &other.counter));
        if let Some(source) = source_type(&comparison.counter).filter(|_| !is_part) {
            let types = kernels.entry(comparison.launched()).or_default();
            types.add(source, comparison);
        }
    }
    let mut findings = Vec::new();
    let mut changed = BTreeSet::new();
    for (kernel, types) in kernels {
        let (Some((from, to)), Some(first)) = (types.changed(), types.comparisons.first()) else {
            continue;
        };
        let judged = types.comparisons.iter().any(|one| one.level == Level::Deny);
        let finding = Finding::deny(
            Code::WorkChanged,
            &variant.id,
            format!(
                "{}: the source type of its products changed: {from} → {to}; it does other work than the {}, so its speed does not compare",
                first.kernel,
                mode.reference()
            ),
            next.to_owned(),
        );
        findings
            .push(first.finding(finding.warn_for((!judged).then_some(WarnReason::MetricLevel))));
        changed.insert(kernel);
    }
    (findings, changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::explain::cause::tests::comparison;

    fn changed(counted: &[(&str, f64, f64)]) -> Option<(String, String)> {
        let mut types = Types::default();
        let counted = counted.iter();
        let comparisons: Vec<_> = counted
            .map(|(it, was, is)| comparison(it, *was, *is))
            .collect();
        for comparison in &comparisons {
            let source = source_type(&comparison.counter).unwrap();
            types.add(source, comparison).unwrap();
        }
        types.changed()
    }

    #[test]
    fn a_type_that_took_the_place_of_another_is_named_with_it() {
        const BF16: &str = "sm__ops_path_tensor_src_bf16_dst_fp32.sum";
        const FP8: &str = "sm__ops_path_tensor_src_fp8.sum";
        const TF32: &str = "sm__ops_path_tensor_src_tf32_dst_fp32.sum";
        const FFMA: &str = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum";
        let is = |from: &str, to: &str| Some((from.to_owned(), to.to_owned()));
        let fp32 = source_type(FFMA).unwrap();
        for (counted, expected) in [
            // All products, and half of them: the other half stays.
            ([(BF16, 8.0, 0.0), (FP8, 0.0, 8.0)], is("bf16", "fp8")),
            ([(BF16, 8.0, 4.0), (FP8, 0.0, 4.0)], is("bf16", "fp8")),
            // Scalar products of fp32, of which a few are left.
            ([(FFMA, 9.0, 1.0), (TF32, 0.0, 8.0)], is(fp32, "tf32")),
            ([(FFMA, 1.0, 9.0), (TF32, 8.0, 0.0)], is("tf32", fp32)),
            // More work, less work, or the same, of the same types.
            ([(BF16, 8.0, 9.0), (FFMA, 9.0, 1.0)], None),
            ([(BF16, 8.0, 0.0), (FFMA, 1.0, 1.0)], None),
            ([(BF16, 8.0, 8.0), (FP8, 0.0, 0.0)], None),
        ] {
            assert_eq!(changed(&counted), expected, "{counted:?}");
        }
    }
}
