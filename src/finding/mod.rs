//! Findings: one thing to report about one variant or the whole project, the exit code that it
//! leads to, and the errors that end a run.

mod code;
mod commands;
mod error;
mod exit_code;
mod lacks;
mod note;
mod severity;
mod stop;

pub use code::{Code, Reported};
pub use commands::{name_config, name_recordings, with_files};
pub use error::{Error, of_another_user};
pub use exit_code::ExitCode;
pub use lacks::machine_lacks;
pub use note::Note;
pub use severity::{Severity, WarnReason, severity};
pub use stop::Stop;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::terms::{VariantId, dimensions};

/// How a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Launch {
    /// Blocks in x, y, z.
    pub grid: [u64; 3],
    /// Threads a block in x, y, z.
    pub block: [u64; 3],
    /// Whether its kernel has no other grid or block. Text reports then omit both.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub only: bool,
}

impl Launch {
    /// For people.
    pub fn words(&self) -> String {
        let (grid, block) = (dimensions(self.grid), dimensions(self.block));
        format!("grid {grid}, block {block}")
    }
}

/// Which comparison of an outcome: no two of them have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Compared<'a> {
    /// The variant.
    pub variant: &'a VariantId,
    /// Whether its compiled code is compared, and not what was measured.
    pub compiled: bool,
    /// The kernel.
    pub kernel: &'a str,
    /// Grid and block; zeros where nothing is launched.
    pub shape: ([u64; 3], [u64; 3]),
    /// The metric's alias.
    pub metric: &'a str,
}

/// The values that a finding is about, for people, as far as it is about values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Values {
    /// What the reference reads.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<String>,
    /// What is read now.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub to: Option<String>,
    /// The difference.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub change: Option<String>,
    /// How far it may get worse, or the value that it must not be beyond.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<String>,
    /// What explains a third of it or more, the most important first. The message names it too.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub cause: Vec<String>,
    /// What changed between the builds of both sides, where a kernel got worse: files, flags, compiler.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub origin: Option<String>,
    /// What else changed. The message names it too.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub also_changed: Vec<String>,
}

impl Values {
    /// Whether it says what changed together with it.
    pub(crate) fn is_explained(&self) -> bool {
        !self.cause.is_empty() || !self.also_changed.is_empty()
    }
}

/// What changed, in parts of a sentence: `with it: …` the causes, `also changed: …` the rest.
pub(crate) fn in_words(named: &[String], also: &[String]) -> Vec<String> {
    let parts = [("with it", named), ("also changed", also)];
    let parts = parts.into_iter().filter(|(_, texts)| !texts.is_empty());
    parts
        .map(|(what, texts)| format!("{what}: {}", texts.join("; ")))
        .collect()
}

/// One thing to report about one variant, or about all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What kind of thing.
    pub code: Code,
    /// Whether it fails the run.
    pub severity: Severity,
    /// The variant it concerns; `None` where it concerns all of them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub variant: Option<VariantId>,
    /// Whether it concerns the compiled code, and not what was measured.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub compiled: bool,
    /// The kernel, where it concerns one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kernel: Option<String>,
    /// How that kernel is launched, where it concerns one launch.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub launch: Option<Box<Launch>>,
    /// The metric's alias, where it concerns one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub metric: Option<String>,
    /// The values that it is about.
    #[serde(flatten)]
    pub values: Box<Values>,
    /// What was found and why it is so.
    pub message: String,
    /// What to do about it.
    pub next: String,
    /// What became known after it was found. The message says it too.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<Note>,
    /// Output of a tool, as the tool wrote it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<String>,
    /// The token that `check --accept` takes for consent to what was found; `None` where nobody can
    /// consent to it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub accept: Option<String>,
}

/// The exit code of a run with these findings, and with `nothing` where none denies.
pub fn worst(findings: &[Finding], nothing: ExitCode) -> ExitCode {
    let denying = findings.iter().filter(|finding| finding.denies());
    let codes = denying.map(|finding| finding.code.exit_code());
    codes.fold(nothing, ExitCode::worse)
}

/// What was found about each variant.
pub fn by_variant<'a>(
    findings: impl IntoIterator<Item = &'a Finding>,
) -> BTreeMap<&'a VariantId, Vec<&'a Finding>> {
    let mut of = BTreeMap::new();
    for finding in findings {
        if let Some(variant) = &finding.variant {
            of.entry(variant).or_insert_with(Vec::new).push(finding);
        }
    }
    of
}

impl Finding {
    /// A finding with the usual next step of its code. It fails the run, unless its code only informs.
    pub fn of(code: Code, variant: &VariantId, message: impl Into<String>) -> Self {
        Finding::deny(code, variant, message, code.next_step_of(Some(variant)))
    }

    /// The same with a next step of its own.
    pub fn deny(
        code: Code,
        variant: &VariantId,
        message: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Finding {
            variant: Some(variant.clone()),
            ..Finding::of_project(code, message, next)
        }
    }

    /// With this next step, where there is a better one than that of its code.
    pub fn or_next(mut self, next: Option<String>) -> Self {
        self.next = next.unwrap_or(self.next);
        self
    }

    /// The same of no single variant.
    pub fn of_project(code: Code, message: impl Into<String>, next: impl Into<String>) -> Self {
        Finding {
            code,
            severity: severity(code, None),
            variant: None,
            compiled: false,
            kernel: None,
            launch: None,
            metric: None,
            values: Box::default(),
            message: message.into(),
            next: with_files(next.into()),
            notes: Vec::new(),
            detail: None,
            accept: None,
        }
    }

    /// Whether it concerns this variant.
    pub fn concerns(&self, variant: &VariantId) -> bool {
        self.variant.as_ref() == Some(variant)
    }

    /// The name of what it concerns, for people: the variant, and the grid where one kernel has
    /// several.
    pub fn subject(&self) -> String {
        let variant = self.variant.as_ref();
        let name = variant.map_or_else(|| "all variants".to_owned(), VariantId::to_string);
        match self.one_of_several() {
            Some(launch) => format!("{name}, {}", launch.words()),
            None => name,
        }
    }

    /// The comparison that it is about, where it names one.
    pub fn compared(&self) -> Option<Compared<'_>> {
        let launch = self.launch.as_ref();
        Some(Compared {
            variant: self.variant.as_ref()?,
            compiled: self.compiled,
            kernel: self.kernel.as_deref()?,
            shape: launch.map_or_else(Default::default, |one| (one.grid, one.block)),
            metric: self.metric.as_deref()?,
        })
    }

    /// How its kernel is launched, where the kernel has other grids or blocks too.
    pub fn one_of_several(&self) -> Option<&Launch> {
        self.launch.as_deref().filter(|launch| !launch.only)
    }

    /// That a file of a recording cannot be read, by an error that may have a next step.
    pub fn unreadable(variant: &VariantId, why: &str) -> Finding {
        match why.split_once("\n  next: ") {
            Some((why, next)) => Finding::deny(Code::CaptureUnreadable, variant, why, next),
            None => Finding::of(Code::CaptureUnreadable, variant, why),
        }
    }

    /// As a warning, where there is a reason for one that excuses its code.
    pub fn warn_for(mut self, reason: impl Into<Option<WarnReason>>) -> Self {
        if severity(self.code, reason.into()) == Severity::Warn {
            self.severity = Severity::Warn;
        }
        self
    }

    /// With what became known later: the only place that changes its message and its next step.
    pub fn with(mut self, note: Note) -> Self {
        self.message = note.in_message(self.message);
        self.next = note.in_next_step(self.next);
        self.notes.push(note);
        self
    }

    /// The same of the base revision, beside which the current one was measured.
    pub fn in_base(self) -> Self {
        self.with(Note::InBase)
    }

    /// Adds its causes, and what else changed.
    pub fn explain(&mut self, named: &[String], also: &[String]) {
        for part in in_words(named, also) {
            self.message = format!("{}; {part}", self.message);
        }
        (self.values.cause, self.values.also_changed) = (named.to_vec(), also.to_vec());
    }

    /// Whether it says that a kernel got worse.
    pub fn says_worse(&self) -> bool {
        matches!(
            self.code,
            Code::Regressed | Code::LimitExceeded | Code::WorkChanged
        )
    }

    /// Whether it fails the run.
    pub fn denies(&self) -> bool {
        self.severity == Severity::Deny
    }

    /// The same of the compiled code.
    pub fn compiled(mut self) -> Self {
        self.compiled = true;
        self.next = self
            .next
            .replace("--lock --reason", "--lock --static --reason");
        self
    }

    /// With the kernel it concerns.
    pub fn kernel(mut self, kernel: impl Into<String>) -> Self {
        self.kernel = Some(kernel.into());
        self
    }

    /// With the metric it concerns.
    pub fn metric(mut self, alias: impl Into<String>) -> Self {
        self.metric = Some(alias.into());
        self
    }

    /// With how that kernel is launched, where it is launched at all, and whether it has no other
    /// grid or block.
    pub fn launched(mut self, grid: [u64; 3], block: [u64; 3], only: bool) -> Self {
        let is_launched = grid != [0; 3];
        self.launch = is_launched.then(|| Box::new(Launch { grid, block, only }));
        self
    }

    /// With a tool's own output.
    pub fn detail(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.detail = (!text.trim().is_empty()).then_some(text);
        self
    }
}
