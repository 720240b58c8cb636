//! The targets of the evaluation.

use super::table::table;

/// One target.
pub struct Target {
    /// Number of the part of the report.
    pub part: String,
    pub what: String,
    pub found: String,
    pub met: bool,
}

/// All targets.
#[derive(Default)]
pub struct Targets(Vec<Target>);

impl Targets {
    pub fn add(&mut self, target: Target) {
        self.0.push(target);
    }

    pub fn missed(&self) -> Vec<String> {
        let missed = self.0.iter().filter(|target| !target.met);
        missed
            .map(|target| format!("{}. {}: {}", target.part, target.what, target.found))
            .collect()
    }

    pub fn table(&self) -> String {
        let rows = self.0.iter().map(|target| {
            let met = if target.met { "met" } else { "MISSED" };
            vec![
                target.part.clone(),
                target.what.clone(),
                target.found.clone(),
                met.to_owned(),
            ]
        });
        table(&["part", "target", "found", ""], rows.collect())
    }
}
