//! A large outcome, made of a recorded one by repetition.

use sparsek_gate::finding::Finding;
use sparsek_gate::judge::{Outcome, VariantReport};
use sparsek_gate::terms::VariantId;

/// An outcome of so many variants of so many kernels of so many metrics each: comparisons, causes and
/// findings are those of a recorded outcome, in turn, under names of their own. Without samples it is
/// a tenth of the size.
pub fn large(
    recorded: &Outcome,
    [variants, kernels, metrics]: [usize; 3],
    samples: bool,
) -> Outcome {
    let mut outcome = Outcome {
        variants: Vec::new(),
        findings: Vec::new(),
        places: Vec::new(),
        ..recorded.clone()
    };
    for at in 0..variants {
        let template = &recorded.variants[at % recorded.variants.len()];
        let mut report = VariantReport {
            variant: VariantId {
                suite: template.variant.suite.clone(),
                variant: format!("{}_{at}", template.variant.variant),
            },
            comparisons: Vec::new(),
            causes: Vec::new(),
            ..template.clone()
        };
        for place in &recorded.places {
            if place.variant == template.variant && place.kernel.is_none() {
                let mut place = place.clone();
                place.variant = report.variant.clone();
                outcome.places.push(place);
            }
        }
        for of_variant in 0..kernels {
            let kernel =
                format!("ns::gemm_{at}_{of_variant}<float, {of_variant}>(float const*, int)");
            for cause in &template.causes {
                let mut cause = cause.clone();
                cause.kernel.clone_from(&kernel);
                report.causes.push(cause);
            }
            for index in 0..metrics {
                let mut comparison =
                    template.comparisons[index % template.comparisons.len()].clone();
                let alias = comparison.metric.clone();
                let findings = recorded.findings.iter().filter(|finding| {
                    finding.concerns(&template.variant) && finding.metric.as_ref() == Some(&alias)
                });
                comparison.kernel.clone_from(&kernel);
                comparison.metric = format!("{alias}_{index}");
                if !samples {
                    comparison.samples = None;
                }
                outcome.findings.extend(findings.map(|finding| Finding {
                    variant: Some(report.variant.clone()),
                    kernel: Some(kernel.clone()),
                    metric: Some(comparison.metric.clone()),
                    ..finding.clone()
                }));
                report.comparisons.push(comparison);
            }
        }
        outcome.variants.push(report);
    }
    outcome
}
