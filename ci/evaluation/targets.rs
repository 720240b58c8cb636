//! What must hold.

use super::table::table;

/// Something that must hold.
pub struct Target {
    /// Number of the question.
    pub part: String,
    pub what: String,
    pub found: String,
    pub held: bool,
}

/// All of them.
#[derive(Default)]
pub struct Targets(Vec<Target>);

impl Targets {
    pub fn add(&mut self, target: Target) {
        self.0.push(target);
    }

    pub fn missed(&self) -> Vec<String> {
        let missed = self.0.iter().filter(|target| !target.held);
        missed
            .map(|target| format!("{}. {}: {}", target.part, target.what, target.found))
            .collect()
    }

    pub fn table(&self) -> String {
        let rows = self.0.iter().map(|target| {
            let held = if target.held { "held" } else { "MISSED" };
            vec![
                target.part.clone(),
                target.what.clone(),
                target.found.clone(),
                held.to_owned(),
            ]
        });
        table(&["part", "target", "found", ""], rows.collect())
    }
}
