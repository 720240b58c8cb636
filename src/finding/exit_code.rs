//! What the process exits with, and which of two codes wins.

/// What the process exits with. One code, one meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ExitCode {
    /// Every gate passed.
    Pass = 0,
    /// A gated metric regressed.
    Regressed = 1,
    /// Usage or configuration.
    Usage = 2,
    /// A tool, the GPU or the permission is missing.
    Environment = 3,
    /// A baseline is missing, tampered with or not comparable, or the kernel does other work.
    Baseline = 4,
    /// A variant failed: build, wrong numbers, crash, time-out, unreadable output.
    Failed = 5,
    /// Inconclusive or not measured, and nothing worse.
    Inconclusive = 6,
    /// A defect of this program.
    Internal = 70,
    /// Stopped by a signal.
    Interrupted = 130,
}

impl ExitCode {
    /// All of them, the worst first.
    pub const ALL: [ExitCode; 9] = [
        ExitCode::Interrupted,
        ExitCode::Internal,
        ExitCode::Usage,
        ExitCode::Failed,
        ExitCode::Environment,
        ExitCode::Baseline,
        ExitCode::Regressed,
        ExitCode::Inconclusive,
        ExitCode::Pass,
    ];

    /// Which of two codes a run with both ends with: a broken build never reads as "slower".
    pub fn worse(self, other: ExitCode) -> ExitCode {
        Self::ALL
            .into_iter()
            .find(|code| *code == self || *code == other)
            .unwrap_or(self)
    }

    /// The code of this number; another number is a defect of this program.
    pub fn of(number: u8) -> ExitCode {
        Self::ALL
            .into_iter()
            .find(|code| *code as u8 == number)
            .unwrap_or(ExitCode::Internal)
    }

    /// A few words for people.
    pub fn meaning(self) -> &'static str {
        match self {
            ExitCode::Pass => "every gate passed",
            ExitCode::Regressed => "a gated metric regressed",
            ExitCode::Usage => "usage or configuration",
            ExitCode::Environment => "a tool, the GPU or a permission is missing",
            ExitCode::Baseline => {
                "a baseline is missing, tampered with or not comparable, or other work was done"
            }
            ExitCode::Failed => "a variant failed",
            ExitCode::Inconclusive => "inconclusive or not measured",
            ExitCode::Internal => "internal error",
            ExitCode::Interrupted => "interrupted",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_variant_outranks_a_tampered_baseline_and_that_a_regression() {
        use ExitCode::*;
        let order = [Failed, Baseline, Regressed, Inconclusive, Pass];
        for (better, worse) in order
            .iter()
            .enumerate()
            .flat_map(|(at, worse)| order[at..].iter().map(move |b| (b, worse)))
        {
            assert_eq!(better.worse(*worse), *worse);
            assert_eq!(worse.worse(*better), *worse);
        }
    }
}
