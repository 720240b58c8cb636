//! Kernels under other noise than was recorded: a machine that drifts, heavy tails, and processes that
//! are far from their siblings; and kernels that are slower by a little, at the locked noise.
//!
//! Every variant that is locked takes part, with the spread between processes of its own lock. The
//! values of processes are drawn, not recorded, and each metric by itself; real metrics of one process
//! vary together.

use sparsek_gate::baseline::{Store, verify_stored};
use sparsek_gate::config::{Config, Variant};
use sparsek_gate::metric::{Direction, Level, Tolerance};
use sparsek_gate::plan::{Side, VariantPlan};
use sparsek_gate::statistics::Samples;
use sparsek_gate::terms::{Phase, Tier, VariantId};
use sparsek_gate::verdict::{Decision, Question, Scale, Timed, Verdict, side_by_side};

use super::random::Random;

const DURATION: &str = "duration";

/// What a process takes, in seconds, where the drift is stated by the minute: measured under ncu on
/// one H200 with 20 launches, 1.8 to 2.8 s.
const PROCESS_S: f64 = 2.0;

/// How the values of processes vary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// Normally.
    Normal,
    /// Normally, on a machine that becomes slower by so many percent a minute.
    Drift(f64),
    /// As Student's t with three degrees of freedom, with the same standard deviation.
    HeavyTails,
    /// Normally, but this share of processes is slower by so many percent.
    Outliers(f64, f64),
    /// Normally, but this share of the current processes alone is slower by so many percent: a kernel
    /// that became unstable.
    Unstable(f64, f64),
    /// Normally, and the current kernel takes so many percent longer.
    Slower(f64),
}

impl Model {
    /// In words.
    pub fn words(self) -> String {
        match self {
            Model::Normal => "normal".to_owned(),
            Model::Drift(percent) => format!("drift of {percent} % a minute"),
            Model::HeavyTails => "heavy tails (t3)".to_owned(),
            Model::Outliers(share, percent) => {
                format!("{:.0} % of processes +{percent} %", 100.0 * share)
            }
            Model::Unstable(share, percent) => {
                format!("{:.0} % of current processes +{percent} %", 100.0 * share)
            }
            Model::Slower(percent) => format!("+{percent} %"),
        }
    }
}

/// One metric of one kernel: its level, its noise and what is asked of it.
struct Series {
    metric: String,
    level: f64,
    sigma: f64,
    question: Question,
}

/// The metrics of one variant that a check judges by their size.
struct Suite {
    variant: VariantId,
    series: Vec<Series>,
}

/// All locked variants of a configuration.
pub struct Locked(Vec<Suite>);

impl Locked {
    /// Reads the locks of every variant.
    pub fn read(config: &Config) -> Result<Locked, String> {
        let store = Store::open(&config.baselines).map_err(|error| error.to_string())?;
        let mut variants = Vec::new();
        for variant in config.variants().filter(|variant| !variant.experimental) {
            let stored = store.all_of(&variant.id);
            for stored in stored.map_err(|error| error.to_string())? {
                let (trusted, _) = verify_stored(config, variant, &stored);
                let profile = trusted.map(|trusted| trusted.profile);
                let Some(profile) =
                    profile.filter(|profile| profile.identity.tier == Tier::Counters)
                else {
                    continue;
                };
                let mut known = Vec::new();
                for kernel in &profile.kernels {
                    for metric in &variant.metrics {
                        let judged = metric.level == Level::Deny
                            && !metric.exact
                            && metric.phase == Phase::Timing;
                        let samples = profile.samples(kernel, &metric.alias);
                        if let (true, Some(samples)) = (judged, samples) {
                            known.push((&metric.alias, samples, metric.against, metric.direction));
                        }
                    }
                }
                variants.push(series(variant, &known));
            }
        }
        let comparisons = variants.iter().map(|suite| suite.series.len()).sum();
        for series in variants.iter_mut().flat_map(|suite| &mut suite.series) {
            series.question.comparisons = comparisons;
        }
        Ok(Locked(variants))
    }

    /// How many comparisons a check makes.
    pub fn comparisons(&self) -> usize {
        self.0.iter().map(|suite| suite.series.len()).sum()
    }

    /// How many of so many unchanged checks do not end with 0.
    pub fn not_passed(&self, model: Model, checks: usize, seed: u64) -> usize {
        let ends = |number: &usize| {
            let mut random = Random::new(seed, &model.words(), *number);
            let mut passed = self.0.iter().map(|suite| suite.passes(model, &mut random));
            !passed.all(|passed| passed)
        };
        (0..checks).filter(ends).count()
    }

    /// How many variants so many checks judge, and how many of these pass.
    pub fn passed(&self, model: Model, checks: usize, seed: u64) -> (usize, usize) {
        let of_one = |number: usize| {
            let mut random = Random::new(seed, &model.words(), number);
            let mut passed = 0;
            for suite in &self.0 {
                passed += usize::from(suite.passes(model, &mut random));
            }
            passed
        };
        (checks * self.0.len(), (0..checks).map(of_one).sum())
    }

    /// Of each variant whose duration has at most this tolerance side by side, in percent: how many of so
    /// many checks find that it regressed, if it takes so many percent longer.
    pub fn caught(
        &self,
        tolerance: f64,
        percent: f64,
        checks: usize,
        seed: u64,
    ) -> Vec<(&VariantId, usize)> {
        let is_tight = |suite: &&Suite| {
            let mut series = suite.series.iter();
            series.any(|one| one.metric == DURATION && one.question.tolerance <= tolerance)
        };
        let model = Model::Slower(percent);
        let of_one = |suite: &Suite| {
            let purpose = format!("{} {}", suite.variant, model.words());
            let caught = |number: &usize| {
                let mut random = Random::new(seed, &purpose, *number);
                let decisions = suite.decisions(model, &mut random);
                let mut of_metrics = suite.series.iter().zip(&decisions);
                of_metrics.any(|(series, decision)| {
                    series.metric == DURATION && decision.verdict == Verdict::Regressed
                })
            };
            (0..checks).filter(caught).count()
        };
        let tight = self.0.iter().filter(is_tight);
        tight.map(|suite| (&suite.variant, of_one(suite))).collect()
    }
}

/// The metrics of a variant, with as many launches as a check measures.
fn series(variant: &Variant, known: &[(&String, Samples, Tolerance, Direction)]) -> Suite {
    let looks = variant.profile.round_looks();
    let launches = variant.profile.launches as usize;
    let one =
        |(metric, samples, tolerance, direction): &(&String, Samples, Tolerance, Direction)| {
            let (scale, tolerance) = Scale::of(*tolerance);
            let noise = samples.with_launches(launches).noise();
            Series {
                metric: metric.to_string(),
                level: samples.value(),
                sigma: noise.between.unwrap_or(0.0),
                question: Question {
                    scale,
                    direction: *direction,
                    tolerance,
                    comparisons: 1,
                    looks: looks.iter().map(|look| *look as usize).collect(),
                },
            }
        };
    Suite {
        variant: variant.id.clone(),
        series: known.iter().map(one).collect(),
    }
}

/// The processes of both sides of one metric, and of its baseline.
struct Drawn {
    base: Vec<f64>,
    current: Vec<f64>,
    learned: Option<Samples>,
}

impl Suite {
    fn passes(&self, model: Model, random: &mut Random) -> bool {
        self.decisions(model, random).iter().all(|decision| {
            let inconclusive = decision.verdict == Verdict::Inconclusive;
            matches!(decision.verdict, Verdict::Pass | Verdict::Improved)
                || inconclusive && decision.not_worse
        })
    }

    /// Measures round by round until no metric is open, and judges.
    fn decisions(&self, model: Model, random: &mut Random) -> Vec<Decision> {
        let most = self.series.iter().flat_map(|series| &series.question.looks);
        let rounds = most.copied().max().unwrap_or(1);
        let places = VariantPlan::ORDER.places(rounds);
        let slow = |side: Side, random: &mut Random| match (model, side) {
            (Model::Outliers(share, _), _) | (Model::Unstable(share, _), Side::Current) => {
                random.uniform() < share
            }
            _ => false,
        };
        let mut far = |side| (0..2 * rounds).map(|_| slow(side, random)).collect();
        let far: [Vec<bool>; 2] = [far(Side::Base), far(Side::Current)];
        let draw = |series: &Series| series.draw(model, &places, &far, random);
        let drawn: Vec<Drawn> = self.series.iter().map(draw).collect();
        let mut round = 1;
        loop {
            let decisions: Vec<Decision> = self
                .series
                .iter()
                .zip(&drawn)
                .map(|(series, drawn)| series.judge(drawn, &places, round))
                .collect();
            let open = |decision: &Decision| {
                let decided = decision.not_worse && decision.verdict == Verdict::Inconclusive;
                decision.open && !decided
            };
            if round == rounds || !decisions.iter().any(open) {
                return decisions;
            }
            round += 1;
        }
    }
}

impl Series {
    fn draw(
        &self,
        model: Model,
        places: &[Vec<f64>; 2],
        far: &[Vec<bool>; 2],
        random: &mut Random,
    ) -> Drawn {
        let slower = match self.question.direction {
            Direction::Higher => -1.0,
            Direction::Lower | Direction::Equal => 1.0,
        };
        let noise = |random: &mut Random| match model {
            Model::HeavyTails => {
                let squares: f64 = (0..3).map(|_| random.normal().powi(2)).sum();
                // The variance of t with three degrees of freedom is three.
                random.normal() / (squares / 3.0).sqrt() / 3.0_f64.sqrt()
            }
            _ => random.normal(),
        };
        let side = |side: usize, random: &mut Random| -> Vec<f64> {
            let processes = places[side].iter().zip(&far[side]);
            processes
                .map(|(place, far)| {
                    let factor = match model {
                        Model::Drift(percent) => 1.0 + percent / 100.0 * place * PROCESS_S / 60.0,
                        Model::Outliers(_, percent) | Model::Unstable(_, percent) if *far => {
                            1.0 + percent / 100.0
                        }
                        Model::Slower(percent) if side == 1 && self.metric == DURATION => {
                            1.0 + percent / 100.0
                        }
                        _ => 1.0,
                    };
                    self.level * factor.powf(slower) + self.sigma * noise(random)
                })
                .collect()
        };
        let (base, current) = (side(0, random), side(1, random));
        // Locked on two machines in four processes each, as the shipped baselines are.
        let machine = |random: &mut Random| -> Vec<Vec<f64>> {
            let process = |_| vec![self.level + self.sigma * noise(random)];
            (0..4).map(process).collect()
        };
        let learned = Samples::new(vec![machine(random), machine(random)]);
        Drawn {
            base,
            current,
            learned,
        }
    }

    fn judge(&self, drawn: &Drawn, places: &[Vec<f64>; 2], rounds: usize) -> Decision {
        let side = |values, places| Timed { values, places };
        let base = side(&drawn.base[..2 * rounds], &places[0][..2 * rounds]);
        let current = side(&drawn.current[..2 * rounds], &places[1][..2 * rounds]);
        side_by_side(base, current, drawn.learned.as_ref(), &self.question)
    }
}
