//! What moved together in a kernel that got worse.

use std::collections::BTreeMap;

use super::cause::{Cause, CauseKind, causes, slower};
use crate::judge::compare::metric::Comparison;
use crate::judge::outcome::variant_report::KernelCauses;

/// How the compiler's code of each kernel differs, by the kernel's name.
pub(crate) type CodeChanges = BTreeMap<String, String>;

/// Why a kernel got worse, as far as its counters and its code show it.
pub(crate) struct Explanation {
    pub causes: Option<KernelCauses>,
    /// What explains it, in words, for the finding.
    pub named: Vec<String>,
    /// What else changed.
    pub also: Vec<String>,
}

impl Explanation {
    /// Of the kernel `name`; `code` is how the compiler's code of it differs.
    pub fn new(name: &str, comparisons: &[Comparison], code: Option<String>) -> Explanation {
        let mut causes = causes(comparisons);
        let counters = causes.iter().map(|cause| (cause.is_named(), cause.words()));
        let (named, also): (Vec<_>, Vec<_>) = counters
            .chain(code.clone().map(|text| (false, text)))
            .partition(|(is_named, _)| *is_named);
        let words = |all: Vec<(bool, String)>| all.into_iter().map(|(_, text)| text).collect();
        causes.extend(code.map(Cause::of_code));
        let (duration, percentages) = slower(comparisons).unzip();
        let percentages = percentages.unwrap_or_default();
        let any = !causes.is_empty() || !percentages.is_empty();
        Explanation {
            causes: any.then(|| KernelCauses {
                kernel: name.to_owned(),
                duration,
                percentages,
                causes,
            }),
            named: words(named),
            also: words(also),
        }
    }
}

impl Cause {
    /// Other machine code.
    pub(crate) fn of_code(text: String) -> Cause {
        Cause {
            kind: CauseKind::OtherCode,
            text,
            share: None,
        }
    }
}
