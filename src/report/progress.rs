//! The progress of a run, on standard error: a spinner on a terminal, lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::print::{clean, say};
use crate::config::Variant;
use crate::measure::Watch;

/// Shows the stages of a run.
#[derive(Debug)]
pub struct Progress {
    spinner: Option<ProgressBar>,
}

impl Progress {
    /// A spinner if standard error is a terminal.
    pub fn new() -> Progress {
        let spinner = std::io::stderr().is_terminal().then(|| {
            let spinner = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
                spinner.set_style(style);
            }
            spinner.enable_steady_tick(Duration::from_millis(120));
            spinner
        });
        Progress { spinner }
    }

    fn line(&self, text: &str) {
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| say(text)),
            None => say(text),
        }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Progress::new()
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
    fn begins(&self, variant: &Variant, stage: &str) {
        if let Some(spinner) = &self.spinner {
            spinner.set_message(clean(&format!("{stage} {}", variant.id)));
            spinner.reset_elapsed();
        }
    }

    fn ended(&self, variant: &Variant, stage: &str, outcome: &str) {
        self.line(&format!("{stage:>11} {:<32} {outcome}", variant.id));
    }

    fn waits(&self) {
        self.line("another sparsek-gate measures on this GPU; waiting for it to end");
    }

    fn notes(&self, text: &str) {
        self.line(text);
    }

    fn warns(&self, obstacle: &str) {
        self.line(&format!(
            "{obstacle}; profiles measured now cannot be locked"
        ));
    }
}
