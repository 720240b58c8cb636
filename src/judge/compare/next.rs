//! Next steps that several findings name.

use super::mode::Mode;
use crate::config::Variant;
use crate::terms::Tier;

/// What to do where a kernel got worse.
pub(crate) fn fix_or_accept(variant: &Variant, mode: Mode, tier: Tier) -> String {
    match mode {
        Mode::Stored => format!("fix the kernel, or accept it: {}", tier.lock_command(&variant.id)),
        Mode::Against | Mode::New => format!(
            "fix the kernel, or accept it with a `[[waiver]]`: `variant = \"{}\"`, `metric`, `reason`, `who`, and `up_to` such as `\"5 %\"`",
            variant.id
        ),
        Mode::Programs if tier == Tier::Static => {
            "compare the sources, flags and compilers of both".to_owned()
        }
        Mode::Programs => "keep the captures (--output DIR), and compare all metrics of two of them: sparsek-gate compare A B".to_owned(),
    }
}
