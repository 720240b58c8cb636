//! What every form of a report states about itself. The table of all forms is in `forms.rs`.

use crate::judge::Outcome;

/// What a form does beyond showing the findings and the comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// It is for a terminal: it has colours, which a file does not keep.
    Terminal,
    /// It consists of commands to the service that keeps the log.
    Commands,
    /// It is appended to the summary of a GitHub step, which other programs write to as well.
    StepSummary,
}

/// One form of a report.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// As `--format` and `FORMAT:FILE` spell it.
    pub name: &'static str,
    /// The ends of file names that select it.
    pub endings: &'static [&'static str],
    /// What else it does.
    pub capability: Option<Capability>,
    /// Renders an outcome.
    pub render: fn(&Outcome) -> String,
}

impl Form {
    pub(super) const fn new(
        name: &'static str,
        endings: &'static [&'static str],
        render: fn(&Outcome) -> String,
    ) -> Form {
        Form {
            name,
            endings,
            capability: None,
            render,
        }
    }

    /// The form that also does this.
    pub(super) const fn that(self, capability: Capability) -> Form {
        Form {
            capability: Some(capability),
            ..self
        }
    }

    /// Whether it does this.
    pub fn has(&self, capability: Capability) -> bool {
        self.capability == Some(capability)
    }

    /// Renders an outcome.
    pub fn render(&self, outcome: &Outcome) -> String {
        (self.render)(outcome)
    }

    /// The same for a file: without colours.
    pub fn render_to_file(&self, outcome: &Outcome) -> String {
        let text = self.render(outcome);
        if self.has(Capability::Terminal) {
            anstream::adapter::strip_str(&text).to_string()
        } else {
            text
        }
    }
}
