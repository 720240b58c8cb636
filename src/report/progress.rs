//! The progress of a run, on standard error: a spinner on a terminal, and the same lines there and
//! elsewhere.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::detail::Detail;
use super::print::{clean, say};
use crate::config::Variant;
use crate::measure::Watch;
use crate::terms::VariantId;

/// Shows the stages of a run.
#[derive(Debug)]
pub struct Progress {
    detail: Detail,
    /// What each line begins with.
    prefix: String,
    spinner: Option<ProgressBar>,
    steps: Mutex<Steps>,
}

/// Where a run is, and what is said of it.
#[derive(Debug, Default)]
struct Steps {
    /// How many variants are expected.
    of: usize,
    /// Those that began, in the order in which they did.
    begun: Vec<VariantId>,
    /// Those that are worked on now, with their stages.
    active: Vec<(VariantId, String)>,
}

impl Steps {
    /// `3/12`; nothing of a single variant.
    fn place(&mut self, variant: &VariantId) -> String {
        let known = self.begun.iter().position(|begun| begun == variant);
        let at = known.unwrap_or_else(|| {
            self.begun.push(variant.clone());
            self.begun.len() - 1
        });
        match self.of {
            of if of > 1 && at < of => format!("{}/{of}", at + 1),
            _ => String::new(),
        }
    }

    /// What a stage that begins adds to the spinner.
    fn begins(&mut self, variant: &VariantId, stage: &str) -> String {
        self.place(variant);
        self.active.retain(|(active, _)| active != variant);
        self.active.push((variant.clone(), stage.to_owned()));
        self.message()
    }

    /// What goes on: `profile s/a (3/12)`.
    fn message(&mut self) -> String {
        let Some((variant, stage)) = self.active.first().cloned() else {
            return String::new();
        };
        let mut text = format!("{stage} {variant}");
        if let others @ 1.. = self.active.len() - 1 {
            text.push_str(&format!(" and {others} more"));
        }
        let place = self.place(&variant);
        if !place.is_empty() {
            text.push_str(&format!(" ({place})"));
        }
        text
    }

    /// The line of a stage that ended.
    fn ended(&mut self, variant: &VariantId, stage: &str, outcome: &str) -> String {
        let place = self.place(variant);
        self.active.retain(|(active, _)| active != variant);
        let width = format!("{0}/{0}", self.of).len();
        let place = match self.of {
            0 | 1 => String::new(),
            _ => format!("{place:>width$} "),
        };
        format!("{stage:>11} {place}{variant:<32} {outcome}")
    }
}

impl Progress {
    /// With a spinner if standard error is a terminal, and every line, or only what must be known while
    /// nothing but the verdict is asked for.
    pub fn with(detail: Detail) -> Progress {
        let shown = detail != Detail::Verdict && std::io::stderr().is_terminal();
        let spinner = shown.then(|| {
            let spinner = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
                spinner.set_style(style);
            }
            spinner.enable_steady_tick(Duration::from_millis(120));
            spinner
        });
        Progress {
            detail,
            prefix: String::new(),
            spinner,
            steps: Mutex::default(),
        }
    }

    /// Of one of several GPUs: every line begins with its name.
    pub fn of_gpu(detail: Detail, gpu: &str) -> Progress {
        Progress {
            detail,
            prefix: format!("{gpu}: "),
            spinner: None,
            steps: Mutex::default(),
        }
    }

    fn line(&self, text: &str) {
        let text = format!("{}{text}", self.prefix);
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| say(&text)),
            None => say(&text),
        }
    }

    fn step<T>(&self, take: impl FnOnce(&mut Steps) -> T) -> T {
        take(&mut self.steps.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Default for Progress {
    fn default() -> Self {
        Progress::with(Detail::default())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

impl Watch for Progress {
    fn expects(&self, variants: usize) {
        self.step(|steps| {
            *steps = Steps {
                of: variants,
                ..Steps::default()
            }
        });
    }

    fn begins(&self, variant: &Variant, stage: &str) {
        let message = self.step(|steps| steps.begins(&variant.id, stage));
        if let Some(spinner) = &self.spinner {
            spinner.set_message(clean(&message));
            spinner.reset_elapsed();
        }
    }

    fn ended(&self, variant: &Variant, stage: &str, outcome: &str) {
        let (line, message) = self.step(|steps| {
            let line = steps.ended(&variant.id, stage, outcome);
            (line, steps.message())
        });
        if let Some(spinner) = &self.spinner {
            spinner.set_message(clean(&message));
        }
        if self.detail != Detail::Verdict {
            self.line(&line);
        }
    }

    fn waits(&self, other: &str) {
        self.line(other);
    }

    fn notes(&self, text: &str) {
        if self.detail != Detail::Verdict {
            self.line(text);
        }
    }

    fn warns(&self, obstacle: &str) {
        self.line(&format!(
            "{obstacle}; profiles measured now cannot be locked"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(variant: &str) -> VariantId {
        VariantId::try_from(format!("s/{variant}")).unwrap()
    }

    fn of(of: usize) -> Steps {
        Steps {
            of,
            ..Steps::default()
        }
    }

    #[test]
    fn each_line_says_which_variant_of_how_many() {
        let mut steps = of(12);
        assert_eq!(steps.begins(&id("a"), "profile"), "profile s/a (1/12)");
        let line = steps.ended(&id("a"), "profile", "80 launches in 4 processes");
        assert!(line.starts_with("    profile  1/12 s/a  "), "{line}");
        assert!(line.ends_with("80 launches in 4 processes"), "{line}");
        // Measured again, it is the same variant.
        assert!(steps.begins(&id("a"), "profile").contains("(1/12)"));
        let line = steps.ended(&id("b"), "verify", "correct");
        assert!(line.contains(" 2/12 s/b ") && line.ends_with("correct"));
    }

    #[test]
    fn one_variant_of_one_has_no_number() {
        let mut steps = of(1);
        let line = steps.ended(&id("a"), "profile", "done");
        assert!(line.starts_with("    profile s/a"), "{line}");
        assert_eq!(steps.begins(&id("a"), "verify"), "verify s/a");
    }

    #[test]
    fn variants_that_are_built_at_once_are_counted_in_the_order_in_which_they_began() {
        let mut steps = of(3);
        assert_eq!(steps.begins(&id("a"), "build"), "build s/a (1/3)");
        let second = steps.begins(&id("b"), "build");
        assert_eq!(second, "build s/a and 1 more (1/3)");
        assert!(steps.ended(&id("b"), "build", "built").contains("2/3 s/b"));
        assert_eq!(steps.message(), "build s/a (1/3)");
    }
}
