//! Two programs that are compared with each other, without a configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{Program, Verification};
use crate::judge::outcome::variant_report::VariantReport;
use crate::process::shell_line;

/// The programs of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedPrograms {
    /// What is compared with.
    pub base: ComparedProgram,
    /// What is judged.
    pub current: ComparedProgram,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedProgram {
    /// Its command line.
    pub argv: Vec<String>,
    /// The command that checked the numbers before anything was measured; `None` where none did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub verified_by: Option<Vec<String>>,
}

impl From<&Program> for ComparedProgram {
    fn from(program: &Program) -> ComparedProgram {
        ComparedProgram {
            argv: program.argv.clone(),
            verified_by: match &program.verification {
                Verification::Command(argv) => Some(argv.clone()),
                Verification::OwnRun | Verification::None => None,
            },
        }
    }
}

impl ComparedPrograms {
    /// Which is which, and what shows that their numbers are right, in one sentence.
    pub fn words(&self, reports: &[VariantReport]) -> String {
        let (base, current) = (shell_line(&self.base.argv), shell_line(&self.current.argv));
        let checks: Vec<String> = [&self.base, &self.current]
            .iter()
            .filter_map(|side| Some(format!("`{}`", shell_line(side.verified_by.as_ref()?))))
            .collect();
        let verified = match checks.is_empty() {
            true if check_themselves(reports) => {
                "the measured processes checked their numbers".to_owned()
            }
            true => "nothing verified the numbers (--verify CMD)".to_owned(),
            false => format!("verified by {}", checks.join(" and ")),
        };
        format!("base `{base}`, current `{current}`; without baselines; {verified}")
    }
}

/// Whether every measured process reported that its own numbers are right.
fn check_themselves(reports: &[VariantReport]) -> bool {
    let mut sides = reports
        .iter()
        .flat_map(|report| [&report.reference, &report.current]);
    !reports.is_empty() && sides.all(|side| side.checked)
}
