//! Outcomes to render.

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

/// So many variants of so many kernels of so many metrics, made of the judged ones of
/// [`every_verdict`]: each has samples.
pub fn large(variants: usize, kernels: usize, metrics: usize) -> Outcome {
    let mut outcome = every_verdict();
    let judged: Vec<_> = outcome
        .variants
        .iter()
        .flat_map(|report| &report.comparisons)
        .filter(|comparison| comparison.samples.is_some())
        .cloned()
        .collect();
    let model = outcome
        .variants
        .iter()
        .find(|report| report.comparisons.iter().any(|c| c.samples.is_some()))
        .unwrap()
        .clone();
    outcome.variants = (0..variants)
        .map(|variant| {
            let mut report = model.clone();
            report.variant.variant = format!("variant_{variant}");
            report.comparisons = (0..kernels * metrics)
                .map(|at| {
                    let mut comparison = judged[at % judged.len()].clone();
                    comparison.kernel = format!("kernel_{variant}_{}<float, 128>", at / metrics);
                    comparison.metric = format!("{}_{}", comparison.metric, at % metrics);
                    comparison
                })
                .collect();
            report
        })
        .collect();
    outcome
}
