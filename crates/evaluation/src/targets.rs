//! The targets of the evaluation.

use super::share::Share;
use super::table::table;

/// One target.
struct Target {
    what: String,
    found: String,
    met: bool,
}

/// All targets.
#[derive(Default)]
pub struct Targets(Vec<Target>);

impl Targets {
    /// At most so many percent. A share of no check misses it.
    pub fn at_most(&mut self, what: &str, found: Share, limit: f64) {
        let met = found.percent() <= limit;
        self.add(format!("{what} at most {limit} %"), found, met);
    }

    /// At least so many percent. A share of no check misses it.
    pub fn at_least(&mut self, what: &str, found: Share, limit: f64) {
        let met = found.percent() >= limit;
        self.add(format!("{what} at least {limit} %"), found, met);
    }

    fn add(&mut self, what: String, found: Share, met: bool) {
        let found = format!("{:.3} %", found.percent());
        self.0.push(Target { what, found, met });
    }

    /// Those that were missed.
    pub fn missed(&self) -> Vec<String> {
        let missed = self.0.iter().filter(|target| !target.met);
        missed
            .map(|target| format!("{}; found {}", target.what, target.found))
            .collect()
    }

    pub fn table(&self) -> String {
        let rows = self.0.iter().map(|target| {
            let met = if target.met { "met" } else { "MISSED" };
            vec![target.what.clone(), target.found.clone(), met.to_owned()]
        });
        table(&["target", "found", ""], rows.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_no_check_misses_its_target() {
        let mut targets = Targets::default();
        targets.at_most("one", Share::default(), 100.0);
        targets.at_least("other", Share::default(), 0.0);
        targets.at_most("met", Share { hits: 1, of: 1000 }, 0.1);
        assert_eq!(targets.missed().len(), 2);
    }
}
