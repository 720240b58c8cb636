//! Events of a run, for its display.

use crate::config::Variant;

/// Is informed of the stages of a run, of each in a method that does nothing by default.
pub trait Watch: Sync {
    /// So many variants go through the stages that follow, in one order.
    fn expects(&self, _variants: usize) {}
    /// A stage of a variant begins.
    fn begins(&self, _variant: &Variant, _stage: &str) {}
    /// A stage of a variant ended; the last text is a short description.
    fn ended(&self, _variant: &Variant, _stage: &str, _outcome: &str) {}
    /// Another run of this tool is waited for: which one, and where.
    fn waits(&self, _other: &str) {}
    /// What concerns the run as a whole.
    fn notes(&self, _text: &str) {}
    /// Something on the machine disturbs measurements.
    fn warns(&self, _obstacle: &str) {}
}

/// Reports the base's stages as such; what concerns the run is reported by its own [`Watch`].
pub(super) struct OfBase<'a>(pub &'a dyn Watch);

impl Watch for OfBase<'_> {
    fn expects(&self, variants: usize) {
        self.0.expects(variants);
    }

    fn begins(&self, variant: &Variant, stage: &str) {
        self.0.begins(variant, &format!("base {stage}"));
    }

    fn ended(&self, variant: &Variant, stage: &str, outcome: &str) {
        self.0.ended(variant, &format!("base {stage}"), outcome);
    }
}

/// Ignores all events.
pub struct Silent;

impl Watch for Silent {}
