//! Where the user states how a variant is measured. A next step names what is written there.

use serde::Serialize;

use crate::terms::{Tier, VariantId};

/// Where the settings of a variant come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum StatedBy {
    /// The configuration file.
    Configuration,
    /// The arguments of `compare`.
    Compare,
    /// Nobody: `init -- PROGRAM` chooses them.
    Init,
}

impl StatedBy {
    /// What to do where a measured process needs more time.
    pub(crate) fn more_time(self) -> &'static str {
        match self {
            StatedBy::Configuration => "raise `profile.timeout_s` if it is only slow",
            StatedBy::Compare => "raise --timeout if it is only slow",
            StatedBy::Init => "let it do less if it is only slow",
        }
    }

    /// What to do where the verifying run needs more time.
    pub(crate) fn more_time_to_verify(self) -> &'static str {
        match self {
            StatedBy::Configuration => "raise `verify.timeout_s` if it is only slow",
            StatedBy::Compare | StatedBy::Init => self.more_time(),
        }
    }

    /// What to do where a process launches less often than was asked for.
    pub(crate) fn fewer_launches(self) -> &'static str {
        match self {
            StatedBy::Configuration => {
                "make the program launch more often, or lower `launches` and `processes` in the configuration"
            }
            StatedBy::Compare => {
                "make the program launch more often, or lower --launches (and --counted-launches, where it is given)"
            }
            StatedBy::Init => "make the program launch more often",
        }
    }

    /// How ncu reads the counters instead of CUPTI.
    pub(crate) fn ncu_instead(self) -> &'static str {
        match self {
            StatedBy::Configuration => {
                "measure this variant with ncu: `profile = { collector = \"ncu\" }` in its table or that of its suite"
            }
            StatedBy::Compare => "measure with ncu: --collector ncu",
            StatedBy::Init => "measure with ncu",
        }
    }

    /// What to do where the launches that were asked for are those of other kernels.
    pub(crate) fn launches_of_each_kernel(self) -> &'static str {
        match self {
            StatedBy::Configuration => {
                "count the launches of each kernel by themselves: `per_kernel = true` under `profile`; or raise `launches` and `counted_launches`, which count over all kernels together"
            }
            StatedBy::Compare => {
                "raise --launches (and --counted-launches, where it is given), which count over all kernels together, or name the kernels: --kernels"
            }
            StatedBy::Init => "make the program launch more often",
        }
    }

    /// What to do where no launch is selected.
    pub(crate) fn other_kernels(self) -> &'static str {
        match self {
            StatedBy::Configuration => {
                "correct `kernels`, `skip` or the NVTX ranges of the variant"
            }
            StatedBy::Compare => {
                "state a program that launches kernels, or correct --kernels and --skip"
            }
            StatedBy::Init => "state a program that launches kernels",
        }
    }

    /// How a tier is accepted that measures less than the counters.
    pub(crate) fn accept_tier(self, tier: Tier) -> String {
        match self {
            StatedBy::Compare => "accept the times alone: --accept-kernel-times".to_owned(),
            StatedBy::Configuration | StatedBy::Init => {
                format!("accept the tier: `accept_tiers = [\"{tier}\"]` under `[profile]`")
            }
        }
    }

    /// What to do where a process launches kernels that are not measured.
    pub(crate) fn other_launches(self, variant: &VariantId) -> String {
        match self {
            StatedBy::Compare | StatedBy::Init => {
                "measure them too (--kernels), or remove them".to_owned()
            }
            StatedBy::Configuration => format!(
                "measure them too (`kernels`), remove them, or lock a baseline that has them: sparsek-gate baseline --lock --reason '...' {variant}"
            ),
        }
    }
}
