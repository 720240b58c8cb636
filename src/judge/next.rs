//! Next steps that several findings name.

use crate::config::Variant;
use crate::terms::Tier;

/// The command that locks a new baseline of a variant, of what this tier measured or compiled.
pub(crate) fn lock_command(variant: &Variant, tier: Tier) -> String {
    let only = if tier == Tier::Static {
        " --static"
    } else {
        ""
    };
    format!(
        "sparsek-gate baseline --lock{only} --reason '...' {}",
        variant.id
    )
}

/// What accepts a change that is compared with its base, and not with a baseline.
pub(crate) const WAIVE: &str = "accept it for a time with a `[[waiver]]`";

/// Where to look for what makes one program slower than another.
pub(crate) const EVERY_METRIC: &str = "keep the captures (--output DIR), and compare all metrics of two of them: sparsek-gate compare A B";
