//! Outcomes to render.

use super::outcome;
use sparsek_gate::judge::Outcome;
use sparsek_gate::report::{Form, Rendering};

/// In a form, with the styles of a terminal.
pub fn render(form: &Form, outcome: &Outcome) -> String {
    match form.rendering {
        Rendering::Whole(render) => render(outcome),
        Rendering::InParts(write) => {
            let mut text = Vec::new();
            write(outcome, &mut text).unwrap();
            String::from_utf8(text).unwrap()
        }
    }
}

/// Judged from recordings, with every verdict in it.
pub fn every_verdict() -> Outcome {
    serde_json::from_str(include_str!("../data/outcomes/every_verdict.json")).unwrap()
}

/// So many variants of so many kernels of so many metrics, with samples, and the findings of [`every_verdict`].
pub fn large(size: [usize; 3]) -> Outcome {
    let mut recorded = every_verdict();
    let reports = recorded.variants.iter();
    let judged = reports.flat_map(|report| report.comparisons.clone());
    let judged: Vec<_> = judged.filter(|one| one.samples.is_some()).collect();
    recorded.variants.truncate(1);
    recorded.variants[0].comparisons = judged;
    recorded.variants[0].causes.clear();
    Outcome {
        findings: recorded.findings.clone(),
        ..outcome::large(&recorded, size, true)
    }
}
