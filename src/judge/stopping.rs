//! When a variant is measured enough, by the verdict on it so far.

use super::variants::Judge;
use crate::config::Variant;
use crate::profile::Profile;
use crate::verdict::Stopping;

impl Stopping for Judge<'_> {
    /// Whether the verdict is not clear yet.
    fn is_open(
        &self,
        variant: &Variant,
        current: &Profile,
        base: Option<&Profile>,
        before: &[Profile],
    ) -> bool {
        let waived = |metric: &str| self.waived(variant, metric);
        let Some(base) = base else {
            let control = self.control(variant, |id| {
                before.iter().find(|other| other.variant == *id)
            });
            return self
                .stored(variant, current, control.as_ref())
                .is_some_and(|(report, _)| report.open(waived));
        };
        self.against(variant, base, current).0.open(waived)
    }
}
