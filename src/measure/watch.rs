//! Events of a run, for its display.

use std::fmt;

use crate::config::Variant;

/// How long measurements take, by those of earlier runs, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimeLeft {
    /// With the fewest rounds.
    pub least_s: f64,
    /// With the most.
    pub most_s: f64,
}

impl std::ops::Add for TimeLeft {
    type Output = TimeLeft;

    fn add(self, other: TimeLeft) -> TimeLeft {
        TimeLeft {
            least_s: self.least_s + other.least_s,
            most_s: self.most_s + other.most_s,
        }
    }
}

/// `16 s to 1 min 4 s`.
impl fmt::Display for TimeLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (words(self.least_s), words(self.most_s));
        if least == most {
            return f.write_str(&most);
        }
        write!(f, "{least} to {most}")
    }
}

/// A time for people: `45 s`, `3 min 5 s`.
fn words(seconds: f64) -> String {
    let seconds = seconds.ceil().clamp(0.0, 1e9) as u64;
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// Is informed of the stages of a run.
pub trait Watch: Sync {
    /// So many variants go through the stages that follow, in one order.
    fn expects(&self, variants: usize);
    /// How long measuring takes from now on, and from the end of the next variant on; `None` where
    /// that is not known of all of them.
    fn left(&self, now: Option<TimeLeft>, after_next: Option<TimeLeft>);
    /// A stage of a variant begins.
    fn begins(&self, variant: &Variant, stage: &str);
    /// A stage of a variant ended; `outcome` is a short description.
    fn ended(&self, variant: &Variant, stage: &str, outcome: &str);
    /// Another run of this tool measures on the GPU.
    fn waits(&self);
    /// What concerns the run as a whole.
    fn notes(&self, text: &str);
    /// Something on the machine disturbs measurements.
    fn warns(&self, obstacle: &str);
}

/// Reports the base's stages as such.
pub(super) struct OfBase<'a>(pub &'a dyn Watch);

impl OfBase<'_> {
    fn name(stage: &str) -> String {
        format!("base {stage}")
    }
}

impl Watch for OfBase<'_> {
    fn expects(&self, variants: usize) {
        self.0.expects(variants);
    }

    fn left(&self, now: Option<TimeLeft>, after_next: Option<TimeLeft>) {
        self.0.left(now, after_next);
    }

    fn begins(&self, variant: &Variant, stage: &str) {
        self.0.begins(variant, &Self::name(stage));
    }

    fn ended(&self, variant: &Variant, stage: &str, outcome: &str) {
        self.0.ended(variant, &Self::name(stage), outcome);
    }

    fn waits(&self) {
        self.0.waits();
    }

    fn notes(&self, text: &str) {
        self.0.notes(text);
    }

    fn warns(&self, obstacle: &str) {
        self.0.warns(obstacle);
    }
}

/// Ignores all events.
pub(super) struct Silent;

impl Watch for Silent {
    fn expects(&self, _: usize) {}
    fn left(&self, _: Option<TimeLeft>, _: Option<TimeLeft>) {}
    fn begins(&self, _: &Variant, _: &str) {}
    fn ended(&self, _: &Variant, _: &str, _: &str) {}
    fn waits(&self) {}
    fn notes(&self, _: &str) {}
    fn warns(&self, _: &str) {}
}
