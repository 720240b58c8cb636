//! Two profiles, kernel by kernel and metric by metric: comparisons and their findings.

pub(in crate::judge) mod as_fast;
pub(in crate::judge) mod comparison_finding;
pub(in crate::judge) mod compiled;
pub(in crate::judge) mod drift;
pub(in crate::judge) mod launch;
pub(in crate::judge) mod metric;
pub(in crate::judge) mod mode;
pub(in crate::judge) mod precision;
pub(in crate::judge) mod profiles;
pub(in crate::judge) mod speed;
pub(in crate::judge) mod total;
pub(in crate::judge) mod waits;
pub(in crate::judge) mod work;
