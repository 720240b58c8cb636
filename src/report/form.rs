//! What every form of a report states about itself. The table of all forms is in `forms.rs`.

use std::io::{self, Write};

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
    /// How it is made.
    pub rendering: Rendering,
}

/// How a form is made of an outcome.
#[derive(Clone, Copy, Debug)]
pub enum Rendering {
    /// As a whole.
    Whole(fn(&Outcome) -> String),
    /// Part after part: all of it may take more memory than the outcome.
    InParts(fn(&Outcome, &mut dyn Write) -> io::Result<()>),
}

impl Form {
    pub(super) const fn new(
        name: &'static str,
        endings: &'static [&'static str],
        rendering: Rendering,
    ) -> Form {
        Form {
            name,
            endings,
            capability: None,
            rendering,
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

    /// Renders an outcome into a file: without colours.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn write(&self, outcome: &Outcome, file: &mut dyn Write) -> io::Result<()> {
        match self.rendering {
            Rendering::InParts(write) => write(outcome, file),
            Rendering::Whole(render) => {
                let text = render(outcome);
                match self.has(Capability::Terminal) {
                    true => write!(file, "{}", anstream::adapter::strip_str(&text)),
                    false => file.write_all(text.as_bytes()),
                }
            }
        }
    }
}
