//! The parts of the evaluation, each with many checks.

use sparsek_gate::config::Variant;
use sparsek_gate::judge::{Control, comparison_count};
use sparsek_gate::metric::Tolerance;
use sparsek_gate::terms::Tier;

use super::Settings;
use super::check::{Answer, Locks, Sides, against, drawn_sides, lock, stored};
use super::data::{Data, Pair};
use super::random::Random;
use super::tally::Check;

/// Machines that a baseline is locked on.
pub const LOCKED_ON: usize = 7;

/// The data, and the variants with the tolerances to try.
pub struct Trial<'a> {
    data: &'a Data,
    seed: u64,
    /// Number drawn for each part.
    checks: usize,
    /// Launches of each locked process, where they are limited.
    locked_launches: Option<usize>,
    pub unchanged: Vec<Variant>,
    pub planted: Vec<Variant>,
}

impl<'a> Trial<'a> {
    pub fn new(data: &'a Data, settings: &'a Settings) -> Trial<'a> {
        Trial {
            data,
            seed: settings.seed,
            checks: settings.checks,
            locked_launches: settings.locked_launches,
            unchanged: data.unchanged.clone(),
            planted: data.planted.clone(),
        }
    }

    /// The same with another tolerance of a metric, side by side or against a baseline, and with a
    /// quarter of the checks.
    pub fn with(&self, metric: &str, side_by_side: bool, value: f64) -> Trial<'a> {
        let changed = |variants: &[Variant]| {
            let mut variants = variants.to_vec();
            let metrics = variants.iter_mut().flat_map(|variant| &mut variant.metrics);
            for metric in metrics.filter(|other| other.alias == metric) {
                let tolerance = if side_by_side {
                    &mut metric.against
                } else {
                    &mut metric.tolerance
                };
                match tolerance {
                    Tolerance::RelativePercent(old) | Tolerance::Absolute(old) => *old = value,
                }
            }
            variants
        };
        Trial {
            unchanged: changed(&self.unchanged),
            planted: changed(&self.planted),
            checks: self.checks.div_ceil(4),
            ..*self
        }
    }

    /// Whether there are enough machines to lock a baseline on so many of them and check on another.
    pub fn can_lock(&self, machines: usize) -> bool {
        self.data.machines.len() > machines
    }

    /// Unchanged kernels with `check --against`. If `learned`, the noise of a baseline from other
    /// machines counts too.
    pub fn against_unchanged(&self, learned: bool) -> Result<Vec<Check>, String> {
        let count = comparisons(&self.unchanged);
        self.each("against unchanged", |machine, random| {
            let locks = if learned {
                let others = self.others(machine, LOCKED_ON, random);
                lock(
                    self.data,
                    &others,
                    &same(&self.unchanged),
                    self.locked_launches,
                    random,
                )?
            } else {
                Locks::new()
            };
            let start = self.start(machine, random);
            let answers = self.unchanged.iter().map(|variant| {
                let pair = &self.data.starts[start].pairs[&variant.id];
                let sides = drawn_sides(pair, Sides::Same, random);
                let rounds = drawn_rounds(variant, pair, random);
                against(variant, sides, &rounds, locks.get(&variant.id), count)
            });
            Ok(answers.collect())
        })
    }

    /// The same on the rounds as they were recorded, each used once: two checks for each start, one
    /// of them with exchanged sides.
    pub fn against_recorded(&self) -> Vec<Check> {
        let count = comparisons(&self.unchanged);
        let mut checks = Vec::new();
        for (machine, starts) in self.data.machines.iter().enumerate() {
            for start in starts {
                for exchanged in [false, true] {
                    let answers = self.unchanged.iter().map(|variant| {
                        let pair = &self.data.starts[*start].pairs[&variant.id];
                        let sides = if exchanged {
                            (&pair.head, &pair.base)
                        } else {
                            (&pair.base, &pair.head)
                        };
                        let rounds: Vec<usize> = (0..pair.rounds()).collect();
                        against(variant, sides, &rounds, None, count)
                    });
                    let answers = answers.collect();
                    checks.push(Check { machine, answers });
                }
            }
        }
        checks
    }

    /// Unchanged kernels against a baseline that was locked on `machines` other machines.
    pub fn stored_unchanged(&self, machines: usize) -> Result<Vec<Check>, String> {
        let count = comparisons(&self.unchanged);
        // The control first, as `check` measures.
        let mut variants: Vec<&Variant> = self.unchanged.iter().collect();
        variants.sort_by_key(|variant| !variant.immutable);
        let purpose = format!("stored on {machines}, unchanged");
        self.each(&purpose, |machine, random| {
            let others = self.others(machine, machines, random);
            let locks = lock(
                self.data,
                &others,
                &same(&self.unchanged),
                self.locked_launches,
                random,
            )?;
            let start = self.start(machine, random);
            let mut control = None;
            let mut answers = Vec::new();
            for variant in &variants {
                let pair = &self.data.starts[start].pairs[&variant.id];
                let side = if random.coin() {
                    &pair.head
                } else {
                    &pair.base
                };
                let locked = &locks[&variant.id];
                let (answer, now) = stored(
                    variant,
                    side,
                    pair.rounds(),
                    locked,
                    control.as_ref(),
                    count,
                    random,
                );
                if variant.immutable && control.is_none() {
                    control = Some(Control::new(variant, variant, locked, &now));
                }
                answers.push(answer);
            }
            Ok(answers)
        })
    }

    /// A planted regression with `check --against`, beside the unchanged suite: only its own
    /// verdicts. The other variants affect these only by the number of comparisons.
    pub fn against_planted(&self, planted: &Variant) -> Result<Vec<Check>, String> {
        let count = comparisons(self.unchanged.iter().chain([planted]));
        let purpose = format!("against {}", planted.id);
        self.each(&purpose, |machine, random| {
            let others = self.others(machine, LOCKED_ON, random);
            let locks = lock(
                self.data,
                &others,
                &[(planted, Sides::Planted)],
                self.locked_launches,
                random,
            )?;
            let pair = &self.data.starts[self.start(machine, random)].pairs[&planted.id];
            let sides = drawn_sides(pair, Sides::Planted, random);
            let rounds = drawn_rounds(planted, pair, random);
            let learned = locks.get(&planted.id);
            Ok(vec![against(planted, sides, &rounds, learned, count)])
        })
    }

    /// The same on the rounds as they were recorded, one check for each start.
    pub fn planted_recorded(&self, planted: &Variant) -> Vec<Check> {
        let count = comparisons(self.unchanged.iter().chain([planted]));
        let mut checks = Vec::new();
        for (machine, starts) in self.data.machines.iter().enumerate() {
            for start in starts {
                let pair = &self.data.starts[*start].pairs[&planted.id];
                let rounds: Vec<usize> = (0..pair.rounds()).collect();
                let answers = vec![against(
                    planted,
                    (&pair.base, &pair.head),
                    &rounds,
                    None,
                    count,
                )];
                checks.push(Check { machine, answers });
            }
        }
        checks
    }

    /// A planted regression against a baseline of its base that was locked on other machines. The
    /// unchanged suite's control shows how this machine differs.
    pub fn stored_planted(&self, planted: &Variant) -> Result<Vec<Check>, String> {
        let count = comparisons(self.unchanged.iter().chain([planted]));
        let control = self.unchanged.iter().find(|variant| variant.immutable);
        let mut locking = vec![(planted, Sides::Planted)];
        locking.extend(control.map(|variant| (variant, Sides::Same)));
        let purpose = format!("stored {}", planted.id);
        self.each(&purpose, |machine, random| {
            let others = self.others(machine, LOCKED_ON, random);
            let locks = lock(self.data, &others, &locking, self.locked_launches, random)?;
            let pairs = &self.data.starts[self.start(machine, random)].pairs;
            let control = control.map(|variant| {
                let pair = &pairs[&variant.id];
                let side = if random.coin() {
                    &pair.head
                } else {
                    &pair.base
                };
                let locked = &locks[&variant.id];
                let (_, now) = stored(variant, side, pair.rounds(), locked, None, count, random);
                Control::new(variant, planted, locked, &now)
            });
            let pair = &pairs[&planted.id];
            let (answer, _) = stored(
                planted,
                &pair.head,
                pair.rounds(),
                &locks[&planted.id],
                control.as_ref(),
                count,
                random,
            );
            Ok(vec![answer])
        })
    }

    /// One of the starts of a machine.
    fn start(&self, machine: usize, random: &mut Random) -> usize {
        let starts = &self.data.machines[machine];
        starts[random.below(starts.len())]
    }

    /// `count` other machines.
    fn others(&self, machine: usize, count: usize, random: &mut Random) -> Vec<usize> {
        let others = (0..self.data.machines.len()).filter(|other| *other != machine);
        random.distinct(count, others.collect())
    }

    /// The requested number of checks, shared evenly among the machines. Each has its own random
    /// numbers, so the number of threads has no effect on the result.
    fn each(
        &self,
        purpose: &str,
        check: impl Fn(usize, &mut Random) -> Result<Vec<Answer>, String> + Sync,
    ) -> Result<Vec<Check>, String> {
        let one = |number: usize| {
            let machine = number % self.data.machines.len();
            let mut random = Random::new(self.seed, purpose, number);
            check(machine, &mut random).map(|answers| Check { machine, answers })
        };
        let checks = self.checks;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = checks.div_ceil(threads).max(1);
        std::thread::scope(|scope| {
            let running: Vec<_> = (0..checks)
                .step_by(share)
                .map(|first| {
                    let numbers = first..checks.min(first + share);
                    let one = &one;
                    scope.spawn(move || numbers.map(one).collect::<Result<Vec<Check>, String>>())
                })
                .collect();
            let mut all = Vec::with_capacity(checks);
            for part in running {
                match part.join() {
                    Ok(part) => all.extend(part?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(all)
        })
    }
}

/// As many rounds as a check may take.
fn drawn_rounds(variant: &Variant, pair: &Pair, random: &mut Random) -> Vec<usize> {
    random.with_replacement(variant.profile.max_rounds as usize, pair.rounds())
}

fn same(variants: &[Variant]) -> Vec<(&Variant, Sides)> {
    variants
        .iter()
        .map(|variant| (variant, Sides::Same))
        .collect()
}

/// Each variant here has one kernel.
pub fn comparisons<'v>(variants: impl IntoIterator<Item = &'v Variant>) -> usize {
    comparison_count(
        Tier::Counters,
        variants.into_iter().map(|variant| (variant, None)),
    )
}
