//! The results, in tables for people, and their targets.

use sparsek_gate::config::{Metric, Variant};
use sparsek_gate::metric::Tolerance;

use super::data::{self, Data};
use super::gpus::{Counted, OfGpus};
use super::interval::{Interval, exact, upper_bound};
use super::models::{Locked, Model};
use super::parts::{LOCKED_ON, Trial, comparisons};
use super::shapes::{Shape, Unchanged};
use super::table::table;
use super::tally::{Check, Rate, Verdicts, mean_processes, odd};
use super::targets::{Target, Targets};
use super::{Settings, measured};

/// The metric in which a planted regression must be caught.
const CAUGHT_BY: &str = "duration";
/// Standard deviation of the values of GPUs up to which a kernel counts as alike on all, in percent.
const ALIKE: f64 = 0.4;
/// Confidence of the one-sided bound on the share of machines.
const CONFIDENCE: f64 = 0.95;

/// The report, as far as it is written.
pub struct Page<'a> {
    settings: &'a Settings,
    data: &'a Data,
    text: String,
    targets: Targets,
}

impl<'a> Page<'a> {
    pub fn new(settings: &'a Settings, data: &'a Data) -> Page<'a> {
        Page {
            settings,
            data,
            text: String::new(),
            targets: Targets::default(),
        }
    }

    /// The whole text, with the targets at its end.
    pub fn finish(mut self) -> (String, Targets) {
        self.heading("Targets");
        self.text.push_str(&self.targets.table());
        (self.text, self.targets)
    }

    fn heading(&mut self, text: &str) {
        let gap = if self.text.is_empty() { "" } else { "\n\n" };
        self.text.push_str(&format!("{gap}{text}\n\n"));
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn table(&mut self, header: &[&str], rows: Vec<Vec<String>>) {
        self.text.push_str(&table(header, rows));
    }

    pub fn data(&mut self) {
        let data = self.data;
        self.heading("The data");
        let machines = data.machines.len();
        self.line(&format!(
            "{} timed launches in {} starts on {machines} GPUs. `a ± b` is the mean of all rounds of a start with its 95 % interval; σ is the standard deviation of a process within its side.",
            data.launches(),
            data.starts.len(),
        ));
        self.line(&format!(
            "What happens on none of {machines} GPUs may happen on up to {} of all GPUs (95 %, one-sided). More draws from these rounds do not lower this bound.\n",
            percent(upper_bound(0, machines, CONFIDENCE)),
        ));
        let mut header = vec!["start", "GPU", "rounds"];
        header.extend(data.unchanged.iter().map(|variant| &*variant.id.variant));
        let rows = data.starts.iter().map(|start| {
            let rounds = |variants: &[Variant]| {
                let pair = variants
                    .first()
                    .and_then(|first| start.pairs.get(&first.id));
                pair.map_or(0, data::Pair::rounds)
            };
            let mut row = vec![
                start.name.clone(),
                start.gpu.clone(),
                format!("{} and {}", rounds(&data.unchanged), rounds(&data.planted)),
            ];
            row.extend(data.unchanged.iter().map(|variant| {
                let base = &start.pairs[&variant.id].base;
                let nanoseconds = measured::value(base, CAUGHT_BY).unwrap_or(f64::NAN);
                let sigma = measured::between(&start.pairs[&variant.id], CAUGHT_BY);
                format!(
                    "{:.2} µs, σ {:.3} %",
                    nanoseconds / 1e3,
                    sigma.unwrap_or(f64::NAN)
                )
            }));
            row
        });
        self.table(&header, rows.collect());
        for (what, variants) in [
            (
                "Current against base, the same code, in percent of the duration",
                &data.unchanged,
            ),
            (
                "Current against base, slower on purpose, in percent of the duration",
                &data.planted,
            ),
        ] {
            self.line(&format!("\n{what}:"));
            let mut header = vec!["start"];
            header.extend(variants.iter().map(|variant| &*variant.id.variant));
            let rows = data.starts.iter().map(|start| {
                let mut row = vec![start.name.clone()];
                row.extend(variants.iter().map(|variant| {
                    measured::effect(start, variant, CAUGHT_BY).map_or_else(String::new, |effect| {
                        let width = effect.half_width.unwrap_or(f64::NAN);
                        format!("{:+.3} ± {width:.3}", effect.mean)
                    })
                }));
                row
            });
            self.table(&header, rows.collect());
        }
    }

    pub fn against_unchanged(&mut self, trial: &Trial<'_>) -> Result<(), String> {
        self.heading("1. Unchanged kernels with --against: false alarms");
        self.line("As recorded, each round is used once, and a verdict that is inconclusive after the last recorded round stays so.\n");
        let mut rows = Vec::new();
        let mut by_metric = Vec::new();
        let recorded = trial.against_recorded();
        let rounds = mean_processes(&recorded) / data::A_ROUND as f64;
        rows.push(self.quiet_row("this run only, as recorded".to_owned(), &recorded, rounds));
        for learned in [false, true] {
            let checks = trial.against_unchanged(learned)?;
            let name = if learned {
                format!("and the baseline of {} GPUs, drawn", self.locked_on())
            } else {
                "this run only, drawn".to_owned()
            };
            rows.push(self.quiet_row(
                name,
                &checks,
                mean_processes(&checks) / data::A_ROUND as f64,
            ));
            if learned {
                by_metric = self.verdict_rows(&trial.unchanged, &checks);
                self.quiet_targets("1", &checks);
            }
        }
        self.table(&quiet_header("noise measured in", "rounds"), rows);
        self.line("\nBy metric, with the baseline's noise, as in the tool:");
        self.table(&VERDICTS, by_metric);
        Ok(())
    }

    pub fn stored_unchanged(&mut self, trial: &Trial<'_>) -> Result<(), String> {
        self.heading("2. Unchanged kernels against a baseline that other GPUs locked, with the control: false alarms");
        let mut rows = Vec::new();
        let mut by_metric = None;
        for machines in 1..=LOCKED_ON {
            if !trial.can_lock(machines) {
                continue;
            }
            let checks = trial.stored_unchanged(machines)?;
            rows.push(self.quiet_row(format!("{machines}"), &checks, mean_processes(&checks)));
            if machines == LOCKED_ON {
                by_metric = Some(self.verdict_rows(&trial.unchanged, &checks));
                self.quiet_targets("2", &checks);
            }
        }
        self.table(&quiet_header("GPUs locked on", "processes"), rows);
        match by_metric {
            Some(rows) => {
                self.line(&format!("\nBy metric, locked on {LOCKED_ON}:"));
                self.table(&VERDICTS, rows);
            }
            None => self.too_few("2"),
        }
        Ok(())
    }

    pub fn against_planted(&mut self, trial: &Trial<'_>) -> Result<(), String> {
        self.heading("3. Planted regressions with --against: caught");
        self.line("Each check has the unchanged suite and one planted variant, so all their comparisons share the chance of a false alarm.\n");
        let mut rows = Vec::new();
        let mut by_start = Vec::new();
        for planted in &trial.planted {
            let checks = trial.against_planted(planted)?;
            let rate = Rate::of(&checks, |check| check.caught(CAUGHT_BY));
            let target = match &*planted.id.variant {
                "slower_05" => Some(0.9),
                "slower_1" => Some(0.99),
                _ => None,
            };
            let rounds = mean_processes(&checks) / data::A_ROUND as f64;
            let mut row = self.caught_row(planted, &checks, &rate, target, rounds);
            let recorded = trial.planted_recorded(planted);
            let rate_recorded = Rate::of(&recorded, |check| check.caught(CAUGHT_BY));
            row.push(format!(
                "{} of {}",
                rate_recorded.hits(),
                rate_recorded.trials()
            ));
            rows.push(row);
            by_start.push((planted, rate));
            self.caught_target("3", planted, &checks, target);
        }
        let mut header = caught_header("rounds");
        header.push("as recorded");
        self.table(&header, rows);
        self.caught_by_machine(&by_start);
        Ok(())
    }

    pub fn stored_planted(&mut self, trial: &Trial<'_>) -> Result<(), String> {
        self.heading("4. Planted regressions against a baseline that other GPUs locked: caught");
        if !trial.can_lock(LOCKED_ON) {
            self.too_few("4");
            return Ok(());
        }
        self.line(&format!("The base is locked on {LOCKED_ON} GPUs, and the check runs on another, as for one more variant of the unchanged suite, with its control.\n"));
        let mut rows = Vec::new();
        let mut by_start = Vec::new();
        for planted in &trial.planted {
            if !is_large(planted) {
                continue;
            }
            let target = (planted.id.variant == "slower_5").then_some(0.99);
            let checks = trial.stored_planted(planted)?;
            let rate = Rate::of(&checks, |check| check.caught(CAUGHT_BY));
            rows.push(self.caught_row(planted, &checks, &rate, target, mean_processes(&checks)));
            by_start.push((planted, rate));
            self.caught_target("4", planted, &checks, target);
        }
        self.table(&caught_header("processes"), rows);
        self.caught_by_machine(&by_start);
        Ok(())
    }

    pub fn sweep(&mut self, trial: &Trial<'_>) -> Result<(), String> {
        self.heading("5. Other tolerances, one metric at a time; the others as shipped");
        let against: [(&str, &[f64]); 4] = [
            ("duration", &[0.15, 0.2, 0.25, 0.3]),
            ("sm_active", &[0.1, 0.2, 0.3, 0.5]),
            ("tensor_core", &[0.1, 0.15, 0.2, 0.3]),
            ("dram_bw", &[0.05, 0.1, 0.2, 0.3]),
        ];
        let mut rows = Vec::new();
        for (metric, tolerances) in against {
            for tolerance in tolerances {
                let trial = trial.with(metric, true, *tolerance);
                let checks = trial.against_unchanged(true)?;
                let mut row = sweep_row(&trial, metric, true, &checks);
                row.push(number(mean_processes(&checks) / data::A_ROUND as f64));
                for planted in &trial.planted {
                    if metric == CAUGHT_BY {
                        let checks = trial.against_planted(planted)?;
                        let rate = Rate::of(&checks, |check| check.caught(CAUGHT_BY));
                        row.push(percent(rate.share()));
                    }
                }
                rows.push(row);
            }
        }
        let mut header = sweep_header("rounds");
        header.extend(trial.planted.iter().map(|planted| &*planted.id.variant));
        self.line("With --against:");
        self.table(&header, rows);

        if !trial.can_lock(LOCKED_ON) {
            return Ok(());
        }
        let stored: [(&str, &[f64]); 4] = [
            ("duration", &[2.0, 2.5, 3.0, 3.5]),
            ("sm_active", &[0.5, 1.0, 1.5, 2.0]),
            ("tensor_core", &[0.5, 0.75, 1.0, 1.5]),
            ("dram_bw", &[0.5, 1.0, 1.5, 2.0]),
        ];
        let mut rows = Vec::new();
        for (metric, tolerances) in stored {
            for tolerance in tolerances {
                let trial = trial.with(metric, false, *tolerance);
                let checks = trial.stored_unchanged(LOCKED_ON)?;
                let mut row = sweep_row(&trial, metric, false, &checks);
                row.push(number(mean_processes(&checks)));
                for planted in trial.planted.iter().filter(|planted| is_large(planted)) {
                    if metric == CAUGHT_BY {
                        let checks = trial.stored_planted(planted)?;
                        let rate = Rate::of(&checks, |check| check.caught(CAUGHT_BY));
                        row.push(percent(rate.share()));
                    }
                }
                rows.push(row);
            }
        }
        let mut header = sweep_header("processes");
        let large = trial.planted.iter().filter(|planted| is_large(planted));
        header.extend(large.map(|planted| &*planted.id.variant));
        self.line(&format!(
            "\nAgainst a baseline locked on {LOCKED_ON} other GPUs:"
        ));
        self.table(&header, rows);
        Ok(())
    }

    /// Unchanged checks of all locked variants, whose processes vary in other ways.
    pub fn other_noise(&mut self, locked: &Locked) {
        self.heading(
            "6. Unchanged kernels with --against under other noise: checks that do not end with 0",
        );
        let checks = self.settings.checks;
        self.line(&format!(
            "{} comparisons of all locked variants in each check, each with the spread between processes of its own lock, at the launches of a check. The values are drawn and not recorded.\n",
            locked.comparisons(),
        ));
        let models = [
            (Model::Normal, Some(0.005)),
            (Model::Drift(1.0), Some(0.01)),
            (Model::HeavyTails, Some(0.1)),
            (Model::Outliers(0.05, 10.0), None),
        ];
        let mut rows = Vec::new();
        for (model, target) in models {
            let hits = locked.not_passed(model, checks, self.settings.seed);
            let interval = exact(hits, checks);
            let share = hits as f64 / checks as f64;
            let found = format!(
                "{} ({} to {})",
                percent(share),
                percent(interval.low),
                percent(interval.high)
            );
            if let Some(target) = target {
                self.targets.add(Target {
                    part: "6".to_owned(),
                    what: format!("{}: at most {} do not pass", model.words(), percent(target)),
                    // Of few checks, what the share may be at best decides.
                    met: interval.low <= target,
                    found: found.clone(),
                });
            }
            rows.push(vec![model.words(), checks.to_string(), found]);
        }
        self.table(&["noise", "checks", "do not pass (95 % interval)"], rows);
        self.a_little_slower(locked);
        self.unstable(locked);
    }

    /// Kernels with tight tolerances that take a little longer: how many are caught.
    fn a_little_slower(&mut self, locked: &Locked) {
        self.line("\nCaught if a kernel takes 0.5 % longer, of the variants whose duration may become at most 0.25 % worse side by side; noise and launches as above, normal.\n");
        let checks = self.settings.checks;
        let all = locked.caught(0.25, 0.5, checks, self.settings.seed);
        let mut rows = Vec::new();
        for (variant, caught) in all {
            let interval = exact(caught, checks);
            let found = format!(
                "{} ({} to {})",
                percent(caught as f64 / checks as f64),
                percent(interval.low),
                percent(interval.high)
            );
            self.targets.add(Target {
                part: "6".to_owned(),
                what: format!("{variant} slower by 0.5 % caught in at least 99 %"),
                met: interval.high >= 0.99,
                found: found.clone(),
            });
            rows.push(vec![variant.to_string(), checks.to_string(), found]);
        }
        self.table(&["variant", "checks", "caught (95 % interval)"], rows);
    }

    /// Kernels that became slower in a part of their processes: how many pass.
    fn unstable(&mut self, locked: &Locked) {
        self.line("A kernel that is slower by 10 % in a part of its current processes, and not in the base. A check that is decided after two processes a side sees only two current processes. The last column is the chance that neither is slow.\n");
        let mut rows = Vec::new();
        for share in [0.05, 0.1, 0.2, 0.3, 0.5] {
            let model = Model::Unstable(share, 10.0);
            let checks = self.settings.checks.div_ceil(10);
            let (judged, passed) = locked.passed(model, checks, self.settings.seed);
            rows.push(vec![
                model.words(),
                judged.to_string(),
                percent(passed as f64 / judged as f64),
                percent((1.0 - share).powi(2)),
            ]);
        }
        self.table(&["noise", "variants judged", "pass", "two are quick"], rows);
    }

    /// All variants against baselines of other GPUs, by the values that GPUs were recorded with.
    pub fn gpus(&mut self, all: &[OfGpus]) {
        self.heading(
            "7. Against a baseline that other GPUs locked, without a control: all variants",
        );
        self.line(&format!(
            "Recorded processes of every GPU, {} comparisons. *Within* is the share of displacements within the allowance, with all other GPUs locked and with {LOCKED_ON}. The other columns are of baselines of {LOCKED_ON} drawn GPUs: unchanged comparisons that do not pass, those with +5 % that are caught, and the smallest change of a list that is caught in 99 %. The last three are the same of baselines of 2 drawn GPUs.\n",
            all.len(),
        ));
        let checks = self.settings.checks.div_ceil(10);
        let (mut left_out, mut drawn) = (Counted::default(), Counted::default());
        let mut least_caught: Option<f64> = None;
        let mut rows = Vec::new();
        for one in all.iter().filter(|one| one.gpus() > LOCKED_ON) {
            let others = one.leaving_one_out(5.0);
            let of_drawn = one.drawn(LOCKED_ON, 5.0, checks, self.settings.seed);
            (left_out, drawn) = (left_out.and(others), drawn.and(of_drawn));
            if one.metric != CAUGHT_BY {
                continue;
            }
            let smallest = |machines| {
                one.caught_in_99_of_100(machines, checks, self.settings.seed)
                    .map_or_else(|| "more".to_owned(), |percent| format!("{percent} %"))
            };
            let of_two = one.drawn(2, 5.0, checks, self.settings.seed);
            if one.deviation() <= ALIKE {
                let caught = of_two.caught as f64 / of_two.checks as f64;
                least_caught = Some(least_caught.map_or(caught, |least| least.min(caught)));
            }
            rows.push(vec![
                one.variant.to_string(),
                one.gpus().to_string(),
                format!("{:.2} %", one.deviation()),
                format!("{} %", one.tolerance()),
                format!("{} of {}", others.within, others.checks),
                share(of_drawn.within, of_drawn.checks),
                share(of_drawn.not_passed, of_drawn.checks),
                share(of_drawn.caught, of_drawn.checks),
                smallest(LOCKED_ON),
                share(of_two.not_passed, of_two.checks),
                share(of_two.caught, of_two.checks),
                smallest(2),
            ]);
        }
        let four = format!("within, of {LOCKED_ON}");
        self.table(
            &[
                "duration of",
                "GPUs",
                "σ of GPUs",
                "tolerance",
                "within, of all others",
                &four,
                "do not pass",
                "+5 % caught",
                "99 % caught",
                "of 2: do not pass",
                "+5 % caught",
                "99 % caught",
            ],
            rows,
        );
        self.line(&format!(
            "\nAll judged metrics: {} of {} displacements within the allowance of all other GPUs, {} within that of {LOCKED_ON}; {} false alarms.",
            left_out.within,
            left_out.checks,
            share(drawn.within, drawn.checks),
            left_out.alarms + drawn.alarms,
        ));
        for machines in [2, 4] {
            let enough = all.iter().filter(|one| one.gpus() > LOCKED_ON);
            let counted = enough
                .map(|one| one.drawn(machines, 5.0, checks, self.settings.seed))
                .fold(Counted::default(), Counted::and);
            self.line(&format!(
                "Against baselines of {machines} drawn GPUs, in {} unchanged comparisons: {} displacements within the allowance, {} do not pass, {} false alarms.",
                counted.checks,
                share(counted.within, counted.checks),
                share(counted.not_passed, counted.checks),
                counted.alarms,
            ));
        }
        if self.settings.sweep {
            self.sweep_gpus(all);
        }
        if let Some(least) = least_caught {
            self.targets.add(Target {
                part: "7".to_owned(),
                what: format!(
                    "+5 % caught in at least 99 % where the σ of GPUs is at most {ALIKE} %, of baselines of 2"
                ),
                found: percent(least),
                met: least >= 0.99,
            });
        }
        let covered = left_out.within as f64 / left_out.checks as f64;
        self.targets.add(Target {
            part: "7".to_owned(),
            what: "at least 95 % of displacements within the allowance, leaving each GPU out"
                .to_owned(),
            found: percent(covered),
            met: covered >= 0.95,
        });
        self.targets.add(Target {
            part: "7".to_owned(),
            what: "no false alarm".to_owned(),
            found: (left_out.alarms + drawn.alarms).to_string(),
            met: left_out.alarms + drawn.alarms == 0,
        });
    }

    /// Kernels that became slower in a part of their launches or processes, side by side.
    pub fn shapes(&mut self, all: &[Unchanged]) {
        self.heading("8. Slower in a part of the launches or processes, with --against: checks that do not pass");
        let comparisons = comparisons(all.iter().map(|one| &one.variant));
        self.line(&format!(
            "Planted in the recorded durations of the current side. Each variant is checked by itself, with the chance of a false alarm shared among {comparisons} comparisons.\n"
        ));
        let checks = self.settings.checks.div_ceil(20);
        let mut header = vec!["variant", "unchanged"];
        header.extend(Shape::ALL.map(Shape::words));
        let rows = all.iter().map(|one| {
            let shapes = std::iter::once(None).chain(Shape::ALL.map(Some));
            let shares = shapes.map(|shape| {
                let hits = one.not_passed(shape, comparisons, checks, self.settings.seed);
                share(hits, checks)
            });
            std::iter::once(one.variant.id.to_string())
                .chain(shares)
                .collect()
        });
        let rows = rows.collect();
        self.table(&header, rows);
    }

    /// Other tolerances against a baseline: the share of unchanged comparisons that do not pass, and of
    /// those with +5 % that are caught.
    fn sweep_gpus(&mut self, all: &[OfGpus]) {
        let tolerances: [&[f64]; 2] = [
            &[2.0, 2.25, 2.5, 2.75, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0],
            &[0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0],
        ];
        let checks = self.settings.checks.div_ceil(10);
        for (name, metrics) in [(CAUGHT_BY, 0), ("the other metrics, without the change", 1)] {
            self.line(&format!("\nOther tolerances of {name}: do not pass / +5 % caught, locked on {LOCKED_ON} drawn GPUs"));
            let mut header = vec!["metric".to_owned(), "σ of GPUs".to_owned()];
            header.extend(tolerances[metrics].iter().map(f64::to_string));
            let rows = all
                .iter()
                .filter(|one| one.gpus() > LOCKED_ON && (one.metric == CAUGHT_BY) == (metrics == 0))
                .map(|one| {
                    let mut row = vec![
                        format!("{} {}", one.variant, one.metric),
                        format!("{:.3}", one.deviation()),
                    ];
                    row.extend(tolerances[metrics].iter().map(|tolerance| {
                        let one = one.with(*tolerance);
                        let counted = one.drawn(LOCKED_ON, 5.0, checks, self.settings.seed);
                        let part = |hits: usize| 100.0 * hits as f64 / counted.checks as f64;
                        match metrics {
                            0 => format!(
                                "{:.1} / {:.0}",
                                part(counted.not_passed),
                                part(counted.caught)
                            ),
                            _ => format!("{:.1}", part(counted.not_passed)),
                        }
                    }));
                    row
                })
                .collect();
            let header: Vec<&str> = header.iter().map(String::as_str).collect();
            self.table(&header, rows);
        }
    }

    fn locked_on(&self) -> usize {
        LOCKED_ON.min(self.data.machines.len() - 1)
    }

    fn too_few(&mut self, part: &str) {
        let text = format!(
            "{} GPUs are too few to lock on {LOCKED_ON} and check on another",
            self.data.machines.len()
        );
        self.line(&text);
        self.targets.add(Target {
            part: part.to_owned(),
            what: text,
            found: String::new(),
            met: false,
        });
    }

    fn quiet_row(&self, name: String, checks: &[Check], cost: f64) -> Vec<String> {
        let alarms = Rate::of(checks, Check::alarms);
        let failures = Rate::of(checks, Check::fails);
        let verdicts = Verdicts::of(checks, None);
        vec![
            name,
            checks.len().to_string(),
            format!("{}, {}", alarms.hits(), interval(alarms.on_these())),
            machines(&alarms, |share| share > 0.0),
            format!(
                "{}, {}",
                percent(failures.share()),
                failures
                    .over_machines(self.settings.seed)
                    .map_or_else(String::new, interval)
            ),
            percent(verdicts.inconclusive_share()),
            percent(verdicts.failing_share()),
            number(cost),
        ]
    }

    fn quiet_targets(&mut self, part: &str, checks: &[Check]) {
        let alarms = Rate::of(checks, Check::alarms).hits();
        self.targets.add(Target {
            part: part.to_owned(),
            what: "no false alarm".to_owned(),
            found: alarms.to_string(),
            met: alarms == 0,
        });
        let share = Verdicts::of(checks, None).failing_share();
        self.targets.add(Target {
            part: part.to_owned(),
            what: "at most 1 % of the verdicts inconclusive and failing".to_owned(),
            found: percent(share),
            met: share <= 0.01,
        });
        self.odd_target(part, checks);
    }

    fn caught_target(
        &mut self,
        part: &str,
        planted: &Variant,
        checks: &[Check],
        target: Option<f64>,
    ) {
        if let Some(least) = target {
            let share = Rate::of(checks, |check| check.caught(CAUGHT_BY)).share();
            self.targets.add(Target {
                part: part.to_owned(),
                what: format!(
                    "{} caught in at least {}",
                    planted.description,
                    percent(least)
                ),
                found: percent(share),
                met: share >= least,
            });
        }
        self.odd_target(part, checks);
    }

    /// Any other finding would mean that the data is not what it should be.
    fn odd_target(&mut self, part: &str, checks: &[Check]) {
        let odd = odd(checks);
        if !odd.is_empty() {
            self.targets.add(Target {
                part: part.to_owned(),
                what: "no finding besides the verdicts".to_owned(),
                found: odd.join(", "),
                met: false,
            });
        }
    }

    fn verdict_rows(&self, variants: &[Variant], checks: &[Check]) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for variant in variants {
            for metric in variant.metrics.iter().filter(|metric| !metric.exact) {
                let verdicts = Verdicts::of(checks, Some((&variant.id, &metric.alias)));
                if verdicts.total() == 0 {
                    continue;
                }
                let range = |range: Option<(f64, f64)>| {
                    range.map_or_else(String::new, |(low, high)| {
                        format!("{low:+.2} to {high:+.2}")
                    })
                };
                rows.push(vec![
                    variant.id.to_string(),
                    metric.alias.clone(),
                    verdicts.pass.to_string(),
                    verdicts.improved.to_string(),
                    verdicts.inconclusive.to_string(),
                    verdicts.failing.to_string(),
                    verdicts.regressed.to_string(),
                    range(verdicts.changes),
                    range(verdicts.allowances),
                ]);
            }
        }
        rows
    }

    fn caught_row(
        &self,
        planted: &Variant,
        checks: &[Check],
        rate: &Rate,
        target: Option<f64>,
        cost: f64,
    ) -> Vec<String> {
        let verdicts = Verdicts::of(checks, Some((&planted.id, CAUGHT_BY)));
        let shares = rate.shares();
        let extreme = |pick: fn(f64, f64) -> f64| shares.iter().copied().reduce(pick);
        vec![
            planted.description.clone(),
            checks.len().to_string(),
            format!("{}, {}", percent(rate.share()), interval(rate.on_these())),
            rate.over_machines(self.settings.seed)
                .map_or_else(String::new, interval),
            match (extreme(f64::min), extreme(f64::max)) {
                (Some(low), Some(high)) => format!("{} to {}", percent(low), percent(high)),
                _ => String::new(),
            },
            target.map_or_else(String::new, |least| machines(rate, |share| share < least)),
            verdicts.inconclusive.to_string(),
            verdicts.pass.to_string(),
            number(cost),
        ]
    }

    fn caught_by_machine(&mut self, rates: &[(&Variant, Rate)]) {
        self.line("\nCaught, by GPU:");
        let mut header = vec!["GPU"];
        header.extend(rates.iter().map(|(planted, _)| &*planted.id.variant));
        let rows = self
            .data
            .machines
            .iter()
            .enumerate()
            .map(|(index, starts)| {
                let mut row = vec![self.data.starts[starts[0]].gpu.clone()];
                let shares = rates.iter().map(|(_, rate)| rate.shares());
                row.extend(shares.map(|shares| {
                    shares
                        .get(index)
                        .map_or_else(String::new, |share| percent(*share))
                }));
                row
            });
        let rows = rows.collect();
        self.table(&header, rows);
    }
}

/// Whether it is large enough for the wider tolerance of a stored baseline.
fn is_large(planted: &Variant) -> bool {
    matches!(&*planted.id.variant, "slower_2" | "slower_5")
}

const VERDICTS: [&str; 9] = [
    "variant",
    "metric",
    "pass",
    "improved",
    "inconclusive",
    "failing",
    "regressed",
    "change",
    "allowance",
];

fn quiet_header<'h>(what: &'h str, cost: &'h str) -> Vec<&'h str> {
    vec![
        what,
        "checks",
        "with an alarm, on these GPUs",
        "GPUs with an alarm",
        "failing checks, over GPUs",
        "inconclusive",
        "failing",
        cost,
    ]
}

fn caught_header(cost: &str) -> Vec<&str> {
    vec![
        "planted",
        "checks",
        "caught, on these GPUs",
        "over GPUs",
        "by GPU",
        "GPUs below target",
        "inconclusive",
        "pass",
        cost,
    ]
}

fn sweep_header(cost: &str) -> Vec<&str> {
    vec![
        "metric",
        "tolerance",
        "alarms",
        "improved",
        "inconclusive",
        "failing",
        cost,
    ]
}

/// A row with the verdicts on that metric only.
fn sweep_row(trial: &Trial<'_>, metric: &str, side_by_side: bool, checks: &[Check]) -> Vec<String> {
    let mut all = Verdicts::default();
    let mut tolerance = String::new();
    for variant in &trial.unchanged {
        let of = |other: &&Metric| other.alias == metric;
        if let Some(metric) = variant.metrics.iter().find(of) {
            all.join(&Verdicts::of(checks, Some((&variant.id, &metric.alias))));
            tolerance = match if side_by_side {
                metric.against
            } else {
                metric.tolerance
            } {
                Tolerance::RelativePercent(value) => format!("{value} %"),
                Tolerance::Absolute(value) => format!("{value}"),
            };
        }
    }
    vec![
        metric.to_owned(),
        tolerance,
        all.regressed.to_string(),
        all.improved.to_string(),
        percent(all.inconclusive_share()),
        percent(all.failing_share()),
    ]
}

/// The number of machines, and the upper bound of their share of all machines.
fn machines(rate: &Rate, is: impl Fn(f64) -> bool) -> String {
    let shares = rate.shares();
    let hits = shares.iter().filter(|share| is(**share)).count();
    let bound = upper_bound(hits, shares.len(), CONFIDENCE);
    format!("{hits} of {}, ≤ {} of all", shares.len(), percent(bound))
}

fn interval(interval: Interval) -> String {
    format!("{} to {}", percent(interval.low), percent(interval.high))
}

fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    // Rounding must not hide a single hit or miss.
    if (0.0..1.0).contains(&percent) && percent > 0.0 || (99.0..100.0).contains(&percent) {
        format!("{percent:.2} %")
    } else {
        format!("{percent:.1} %")
    }
}

fn share(hits: usize, of: usize) -> String {
    percent(hits as f64 / of as f64)
}

fn number(value: f64) -> String {
    format!("{value:.2}")
}
