//! Where the time of a run goes, and how long the next one will take.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::files::{create_work_folder, json, most, read_regular_up_to, write_atomically};
use crate::plan::{Task, VariantPlan};
use crate::terms::{VariantId, counted};

/// Time inside the programs that a run starts, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// In compilers and build commands.
    pub build_s: f64,
    /// In the programs' own checks, also under compute-sanitizer.
    pub verify_s: f64,
    /// In profilers, with the programs that they measure.
    pub profile_s: f64,
    /// Of that, until the first launch of each process was measured, where its profiler shows that.
    #[serde(default)]
    pub start_s: f64,
    /// Processes that were profiled.
    pub profiled: u32,
    /// Verifying runs, each with its runs under compute-sanitizer. They are counted in this run alone.
    #[serde(skip)]
    pub verified: u32,
}

impl Spent {
    /// Time in all of them, in seconds.
    pub fn sum_s(&self) -> f64 {
        self.build_s + self.verify_s + self.profile_s
    }
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, other: Spent) {
        self.build_s += other.build_s;
        self.verify_s += other.verify_s;
        self.profile_s += other.profile_s;
        self.start_s += other.start_s;
        self.profiled += other.profiled;
        self.verified += other.verified;
    }
}

/// What one process of a variant took, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Each {
    verify_s: f64,
    profile_s: f64,
}

/// The file of [`Times`] in the work folder.
const FILE: &str = "costs.json";

/// What earlier runs took, on this machine or on another one: it is displayed, and decides how a plan
/// is shared out, and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Times(BTreeMap<String, Each>);

impl Times {
    /// Those in a work folder. A file that cannot be read has none.
    pub fn of(work: &Path) -> Times {
        let read = || -> Option<Times> {
            let bytes = read_regular_up_to(&work.join(FILE), most::CONFIG).ok()?;
            let Times(read) = json(&bytes).ok()?;
            read.values().all(Each::is_sound).then_some(Times(read))
        };
        read().unwrap_or_default()
    }

    /// How long a variant takes with the fewest rounds, in seconds; `None` where it never ran.
    pub fn seconds(&self, plan: &VariantPlan) -> Option<f64> {
        let each = self.0.get(&plan.variant.to_string())?;
        Some(each.of(plan).least_s)
    }

    /// Notes them in a work folder, of variants that `is_known`. What is no time is left out.
    pub fn note_all(&self, work: &Path, is_known: impl Fn(&str) -> bool) {
        let sound = |(name, each): &(&String, &Each)| each.is_sound() && is_known(name);
        let new: Vec<(&String, &Each)> = self.0.iter().filter(sound).collect();
        if new.is_empty() || create_work_folder(work).is_err() {
            return;
        }
        let mut times = Times::of(work);
        for (name, each) in new {
            times.0.insert(name.clone(), each.clone());
        }
        times.write(work);
    }

    /// Notes in a work folder what a variant took.
    pub(super) fn note(work: &Path, variant: &VariantId, cost: Spent) {
        if cost.profiled == 0 {
            return;
        }
        let mut times = Times::of(work);
        let each = times.0.entry(variant.to_string()).or_default();
        // Where a verification was reused, the time of an earlier one stays.
        if cost.verified > 0 {
            each.verify_s = cost.verify_s / f64::from(cost.verified);
        }
        each.profile_s = cost.profile_s / f64::from(cost.profiled);
        times.write(work);
    }

    /// Nothing depends on the file, so a failed write is ignored.
    fn write(&self, work: &Path) {
        let text = serde_json::to_vec(self).unwrap_or_default();
        let _ = write_atomically(&work.join(FILE), &text);
    }

    /// How long variants will take with the fewest rounds and with the most, in words; `None` where
    /// nothing is known of any of them.
    pub(super) fn expected(&self, plans: &[VariantPlan]) -> Option<String> {
        let known = plans.iter().filter_map(|plan| {
            let each = self.0.get(&plan.variant.to_string())?;
            Some(each.of(plan))
        });
        let known: Vec<Takes> = known.collect();
        let unknown = plans.len() - known.len();
        let all = known.iter().copied().reduce(|sum, one| Takes {
            least_s: sum.least_s + one.least_s,
            most_s: sum.most_s + one.most_s,
        })?;
        let mut text = format!(
            "measuring {} will take {all}, by the times of earlier runs",
            counted(known.len(), "variant", "variants")
        );
        if unknown > 0 {
            text.push_str(&format!(
                "; {} never ran here",
                counted(unknown, "variant", "variants")
            ));
        }
        Some(text)
    }
}

/// How long measurements take, by those of earlier runs, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Takes {
    /// With the fewest rounds.
    least_s: f64,
    /// With the most.
    most_s: f64,
}

/// `16 s to 1 min 4 s`.
impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (duration_words(self.least_s), duration_words(self.most_s));
        if least == most {
            return f.write_str(&most);
        }
        write!(f, "{least} to {most}")
    }
}

/// A time for people: `45 s`, `3 min 5 s`.
fn duration_words(seconds: f64) -> String {
    let seconds = seconds.ceil().clamp(0.0, 1e9) as u64;
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

impl Each {
    fn is_sound(&self) -> bool {
        self.verify_s >= 0.0 && self.profile_s >= 0.0
    }

    /// The time of a plan.
    fn of(&self, plan: &VariantPlan) -> Takes {
        let count = |task: fn(Task) -> bool| {
            let jobs = plan.once.iter().filter(|job| task(job.task));
            jobs.count() as f64
        };
        let once = count(|task| task == Task::Verify) * self.verify_s
            + count(|task| matches!(task, Task::Measure(_))) * self.profile_s;
        let rounds = |rounds: u32| {
            let rounds = plan.rounds.iter().take(rounds as usize);
            rounds.map(Vec::len).sum::<usize>() as f64 * self.profile_s
        };
        let (least, most) = plan.bounds();
        Takes {
            least_s: once + rounds(least),
            most_s: once + rounds(most),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::config;

    #[test]
    fn what_earlier_runs_took_says_how_long_the_next_one_takes() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path();
        let config =
            config("[suite.s.variant.a]\nrun = [\"a\"]\n[suite.s.variant.b]\nrun = [\"b\"]\n");
        let plans: Vec<VariantPlan> = config.variants().map(VariantPlan::side_by_side).collect();
        assert_eq!(Times::of(work).expected(&plans), None);

        let cost = Spent {
            verify_s: 4.0,
            verified: 2,
            profile_s: 30.0,
            profiled: 10,
            ..Spent::default()
        };
        Times::note(work, &plans[0].variant, cost);
        // 2 s twice, and 3 s for each process of 3 to 10 rounds of four.
        let expected = || Times::of(work).expected(&plans);
        assert_eq!(
            expected().unwrap(),
            "measuring 1 variant will take 40 s to 2 min 4 s, by the times of earlier runs; 1 variant never ran here"
        );
        Times::note(work, &plans[1].variant, cost);
        assert_eq!(
            expected().unwrap(),
            "measuring 2 variants will take 1 min 20 s to 4 min 8 s, by the times of earlier runs"
        );
        for garbage in [
            "",
            "{",
            "[]",
            "{\"s/a\": {\"verify_s\": -1.0, \"profile_s\": 1.0}}",
            "{\"s/a\": {\"verify_s\": 1.0, \"profile_s\": -1.0}}",
        ] {
            std::fs::write(work.join(FILE), garbage).unwrap();
            assert_eq!(Times::of(work).expected(&plans), None, "{garbage}");
        }
    }
}
