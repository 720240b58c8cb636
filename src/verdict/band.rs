//! The rule of the verdict on one metric, as mathematics on process values.
//!
//! The change of the current values against the base is judged by two bands around it. The alarm band is as
//! wide as it must be so that a whole check seldom raises an alarm; the pass band so that one
//! regression seldom passes. Both are quantiles of Student's t (1908), shared out over the
//! comparisons of a check and over the looks taken at growing samples (Bonferroni; Dunn, 1961).
//! That nothing changed is shown rather than assumed (two one-sided tests; Schuirmann, 1987).
//! `docs/verdict.md` has the formulas.

use super::quantile::upper_quantile;
use super::{Change, Verdict};
use crate::metric::{Direction, Tolerance};
use crate::statistics::{Samples, Scatter, farthest, mean};

/// Chance that a whole check raises any alarm where every change is exactly its tolerance.
const ALARM: f64 = 0.01;
/// Chance that one regression of exactly its tolerance is called the same.
const MISS: f64 = 0.01;
/// Machines from which the variance between them is estimated; of fewer the largest distance counts.
const FEWEST_MACHINES: usize = 4;
/// Chance that another machine is displaced further than is allowed, to one side, if machines vary
/// normally. They come in groups: 0.025 covered 94.9 % of the recorded displacements instead of 95 %.
const BEYOND_MACHINES: f64 = 0.02;
/// By how much a difference of two logarithms may be off from rounding alone.
const LOG_ROUNDING: f64 = 64.0 * f64::EPSILON;
/// By how much a difference may be off from rounding alone, as a share of the largest value.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// In which terms a change is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// As the logarithm of the ratio; the tolerance is in percent. Exchanging the sides mirrors a
    /// verdict exactly, and a factor on both cancels.
    Relative,
    /// As the difference; the tolerance is in the metric's unit.
    Absolute,
}

impl Scale {
    /// The terms of a tolerance, and its size: percent, or the metric's unit.
    pub fn of(tolerance: Tolerance) -> (Scale, f64) {
        match tolerance {
            Tolerance::RelativePercent(percent) => (Scale::Relative, percent),
            Tolerance::Absolute(value) => (Scale::Absolute, value),
        }
    }

    /// A tolerance as it is compared with a change: a logarithm, or the difference itself. NaN of what is
    /// no tolerance.
    pub(crate) fn in_terms(self, tolerance: f64, direction: Direction) -> f64 {
        match (self, direction) {
            _ if !(tolerance >= 0.0 && tolerance.is_finite()) => f64::NAN,
            (Scale::Absolute, _) => tolerance,
            (Scale::Relative, Direction::Lower | Direction::Equal) => (tolerance / 100.0).ln_1p(),
            (Scale::Relative, Direction::Higher) if tolerance >= 100.0 => f64::INFINITY,
            (Scale::Relative, Direction::Higher) => -(-tolerance / 100.0).ln_1p(),
        }
    }
}

/// What is asked of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// In which terms.
    pub scale: Scale,
    /// Which way the metric gets better.
    pub direction: Direction,
    /// How much worse is still no regression: percent, or the metric's unit.
    pub tolerance: f64,
    /// Comparisons judged in the whole check; at least one is assumed.
    pub comparisons: usize,
    /// The sample sizes at which a look is planned, ascending: rounds side by side, or current
    /// processes against a stored baseline. Without any, one look is taken at what is there.
    pub looks: Vec<usize>,
}

/// The verdict, and everything it follows from.
///
/// The numbers are those of the last look, in the terms of the change: percent of the base for a
/// relative one, otherwise the metric's unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// Current against base. A relative question about values that are not all positive is answered
    /// absolutely. Absent where nothing was measured.
    pub effect: Option<Change>,
    /// Half-width of the band that an alarm must clear; absent where no spread is known, or where
    /// it is beyond all numbers.
    pub alarm: Option<f64>,
    /// Half-width of the band that a pass must fit with; absent as the other is.
    pub pass: Option<f64>,
    /// Standard deviation of a process value; absent where no spread is known.
    pub sigma: Option<f64>,
    /// Its degrees of freedom.
    pub dof: usize,
    /// What the machines may differ by, part of both bands. Absent where it is not known, and
    /// side by side, where it cancels.
    pub allowance: Option<f64>,
    /// The change beyond which a regression would have been called, signed: the tolerance and the
    /// alarm band. Where any change is worse, the upper one of the two.
    pub threshold: Option<f64>,
    /// More samples may decide what is inconclusive.
    pub open: bool,
    /// Some look showed that it is not worse by more than the tolerance, and none that it is. An
    /// inconclusive verdict that is not worse need not fail a gate.
    pub not_worse: bool,
    /// Looks taken.
    pub looks: usize,
    /// Why.
    pub why: String,
}

/// The processes of one side, in the order of time.
#[derive(Clone, Copy, Debug)]
pub struct Timed<'a> {
    /// Their values.
    pub values: &'a [f64],
    /// When each ran: its place among the processes of both sides. Without a place for each, no trend
    /// is looked for.
    pub places: &'a [f64],
}

impl<'a> Timed<'a> {
    fn first(self, processes: usize) -> Timed<'a> {
        let places = self.places.get(..processes).unwrap_or_default();
        Timed {
            values: &self.values[..processes],
            places,
        }
    }
}

/// Judges process values measured in one run, two processes a side and round, taken in turn so that
/// both sides have the same mean place in each round. What a machine drifts linearly within a round
/// cancels in the change; from two rounds on, a linear trend over the run is taken out of the noise.
///
/// Only whole rounds count, except that one process a side is judged where there is no round.
/// `learned` are the samples of a locked baseline; their spread between processes counts with
/// this run's. It is left out of a relative question where one of its values is not positive.
///
/// A planned look, once its samples are there, never changes: more rounds never turn a clear verdict
/// into another clear one. With fewer rounds than the first planned
/// look, one look is taken at those, which later ones replace.
pub fn side_by_side(
    base: Timed<'_>,
    current: Timed<'_>,
    learned: Option<&Samples>,
    question: &Question,
) -> Decision {
    for side in [base, current] {
        if let Some(why) = gap(side.values) {
            return not_measured(why);
        }
    }
    let rounds = base.values.len().min(current.values.len()) / 2;
    let look = |rounds: usize| {
        let processes = (2 * rounds).max(1);
        let (base_side, current_side) = (base.first(processes), current.first(processes));
        let terms = Terms::of(question, base_side.values.iter().chain(current_side.values));
        let base = terms.convert(base_side.values);
        let current = terms.convert(current_side.values);
        let by_round: Vec<f64> = base
            .chunks(2)
            .zip(current.chunks(2))
            .map(|(base, current)| mean(current) - mean(base))
            .collect();
        let learned = learned.map_or(Scatter::default(), |samples| terms.scatter(samples));
        let own = own_scatter([(&base, base_side.places), (&current, current_side.places)]);
        let (spread, dof) = terms.spread(own, learned);
        Evidence {
            effect: mean(&by_round),
            spread,
            dof,
            errors: (2.0 / processes as f64).sqrt(),
            allowance: None,
            terms,
        }
    };
    decide(question, rounds, look)
}

/// How much the process values of both sides, each with their places, vary by themselves. In a single
/// round the trend would cost half of the evidence of the noise.
fn own_scatter(sides: [(&[f64], &[f64]); 2]) -> Scatter {
    let placed =
        |(values, places): &(&[f64], &[f64])| values.len() > 2 && values.len() == places.len();
    match sides.iter().all(placed) {
        true => Scatter::without_trend(sides),
        false => sides.iter().map(|(values, _)| Scatter::of(values)).sum(),
    }
}

/// Judges the process values of one machine against a locked baseline of one or more machines.
///
/// `control` is by how much the unchanged control kernel reads otherwise than in its baseline, in
/// the terms of the question: the logarithm of the ratio, or the difference in the metric's unit.
/// Its sign is ignored. The larger of it and what the locked machines show by themselves is what the
/// machines may differ by: the prediction interval of a further one, or of fewer than four the largest
/// distance. It widens both bands by itself and never
/// moves the change.
pub fn against_stored(
    locked: &Samples,
    now: &[f64],
    control: Option<f64>,
    question: &Question,
) -> Decision {
    let before = locked.process_values();
    if let Some(why) = gap(now) {
        return not_measured(why);
    }
    if control.is_some_and(|control| !control.is_finite()) {
        return not_measured("the control kernel's value is not a number");
    }
    let look = |processes: usize| {
        let now = &now[..processes];
        let terms = Terms::of(question, before.iter().flatten().chain(now));
        let machines: Vec<Vec<f64>> = before.iter().map(|values| terms.convert(values)).collect();
        let now = terms.convert(now);
        let means: Vec<f64> = machines.iter().map(|values| mean(values)).collect();
        // The variance of a mean of means, in process variances.
        let locked_share = machines
            .iter()
            .map(|values| 1.0 / values.len() as f64)
            .sum::<f64>()
            / (machines.len() as f64).powi(2);
        let control = control.map(|control| terms.control(control.abs(), question.scale));
        let (spread, dof) = terms.spread(Scatter::of(&now), terms.scatter(locked));
        Evidence {
            effect: mean(&now) - mean(&means),
            spread,
            dof,
            errors: (1.0 / processes as f64 + locked_share).sqrt(),
            allowance: control
                .into_iter()
                .chain(displacement(&means))
                .max_by(f64::total_cmp),
            terms,
        }
    };
    decide(question, now.len(), look)
}

/// How far a further machine may lie from the mean of the locked ones, which have these values; `None`
/// of a single one.
///
/// Of four or more it is the prediction interval of one further normal value: the quantile of
/// Student's t that so few machines need. Of fewer, their variance is not known well enough for
/// that, and the largest distance of a locked machine counts.
fn displacement(means: &[f64]) -> Option<f64> {
    let machines = means.len();
    if machines < FEWEST_MACHINES {
        return farthest(means);
    }
    let deviation = Scatter::of(means).sigma()?;
    let of_a_difference = (1.0 + 1.0 / machines as f64).sqrt();
    Some(upper_quantile(machines - 1, BEYOND_MACHINES) * deviation * of_a_difference)
}

/// The terms of one look: those of the question, unless its values are not all positive.
#[derive(Clone, Copy)]
struct Terms {
    /// Values are compared by their logarithms.
    log: bool,
    /// How much worse is no regression, in these terms; NaN where the question's is no tolerance.
    tolerance: f64,
    /// A ratio was asked for and cannot be had, and all values are equal.
    same: bool,
    /// The largest magnitude among the values, in the metric's unit.
    largest: f64,
    /// What a difference may be off by from rounding, in these terms.
    rounding: f64,
}

/// What a look sees, in its terms.
struct Evidence {
    terms: Terms,
    /// Current less base.
    effect: f64,
    /// Standard deviation of a process value.
    spread: Option<f64>,
    /// Its degrees of freedom.
    dof: usize,
    /// Standard error of the effect over the standard deviation.
    errors: f64,
    /// What the machines may differ by.
    allowance: Option<f64>,
}

/// Half-widths of the bands of a look, in its terms.
struct Bands {
    alarm: f64,
    pass: f64,
}

/// Where a change lies, whatever its noise.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Estimate {
    Worse,
    Better,
    Same,
}

/// The kinds of claim that some look made.
#[derive(Default)]
struct Claims {
    regressed: bool,
    improved: bool,
    same: bool,
    not_worse: bool,
}

impl Terms {
    fn of<'v>(question: &Question, values: impl Iterator<Item = &'v f64> + Clone) -> Terms {
        let largest = values
            .clone()
            .fold(0.0, |most: f64, value| most.max(value.abs()));
        let relative = question.scale == Scale::Relative;
        let log = relative && values.clone().all(|value| *value > 0.0);
        let first = values.clone().next();
        let same = relative && !log && values.clone().all(|value| Some(value) == first);
        let asked = question.tolerance;
        let tolerance = match relative && !log {
            // A share of nothing is nothing.
            true if asked >= 0.0 && asked.is_finite() => 0.0,
            _ => question.scale.in_terms(asked, question.direction),
        };
        Terms {
            log,
            tolerance,
            same,
            largest,
            rounding: if log {
                LOG_ROUNDING
            } else {
                ROUNDING * largest
            },
        }
    }

    fn convert(&self, values: &[f64]) -> Vec<f64> {
        let converted = |value: &f64| if self.log { value.ln() } else { *value };
        values.iter().map(converted).collect()
    }

    /// Of the process values of locked samples within their machines; nothing where they have no
    /// logarithm.
    fn scatter(&self, samples: &Samples) -> Scatter {
        let machines = samples.process_values();
        if self.log && machines.iter().flatten().any(|value| *value <= 0.0) {
            return Scatter::default();
        }
        machines
            .iter()
            .map(|values| Scatter::of(&self.convert(values)))
            .sum()
    }

    /// Standard deviation of a process value and its degrees of freedom: of all that is known,
    /// but never less than this run shows by itself. Where this run is the noisier one, what it
    /// was pooled with does not describe it: counting that freedom too would make the bands too
    /// narrow for the chances they promise.
    fn spread(&self, own: Scatter, learned: Scatter) -> (Option<f64>, usize) {
        let all = own.and(learned);
        if self.same {
            return (Some(0.0), all.dof.max(1));
        }
        match (all.sigma(), own.sigma()) {
            (Some(pooled), Some(shown)) if shown > pooled => (Some(shown), own.dof),
            (pooled, _) => (pooled, all.dof),
        }
    }

    /// A control's displacement in these terms. That of a ratio is a share of the largest value
    /// where no ratio could be had.
    fn control(&self, displacement: f64, scale: Scale) -> f64 {
        if scale == Scale::Relative && !self.log {
            self.largest * displacement.exp_m1()
        } else {
            displacement
        }
    }

    /// Percent of a logarithm; otherwise the difference itself.
    fn shown(&self, difference: f64) -> f64 {
        if self.log {
            difference.exp_m1() * 100.0
        } else {
            difference
        }
    }
}

impl Evidence {
    fn bands(&self, alarm_chance: f64, pass_chance: f64) -> Option<Bands> {
        let error = self.spread? * self.errors;
        let allowance = self.allowance.unwrap_or(0.0);
        Some(Bands {
            alarm: upper_quantile(self.dof, alarm_chance) * error + allowance,
            pass: upper_quantile(self.dof, pass_chance) * error + allowance,
        })
    }

    /// How much worse, in the metric's direction.
    fn worse(&self, direction: Direction) -> f64 {
        match direction {
            Direction::Lower => self.effect,
            Direction::Higher => -self.effect,
            Direction::Equal => self.effect.abs(),
        }
    }

    /// Written so that a comparison with NaN claims nothing.
    fn claim(&self, bands: &Bands, direction: Direction, claims: &mut Claims) {
        let worse = self.worse(direction);
        let limit = self.terms.tolerance + self.terms.rounding;
        claims.regressed |= worse - bands.alarm > limit;
        claims.improved |= direction != Direction::Equal && -worse - bands.alarm > limit;
        // An infinite tolerance would pass infinite noise.
        let known = bands.pass.is_finite();
        claims.same |= known && worse.abs() + bands.pass <= limit;
        claims.not_worse |= known && worse + bands.pass <= limit;
    }

    /// What the change by itself, without its noise, comes to.
    fn estimate(&self, direction: Direction) -> Estimate {
        let worse = self.worse(direction);
        let limit = self.terms.tolerance + self.terms.rounding;
        if worse > limit {
            Estimate::Worse
        } else if -worse > limit {
            Estimate::Better
        } else {
            Estimate::Same
        }
    }

    /// Even without noise the machines would leave this change open.
    fn hidden_by_machines(&self) -> bool {
        let (limit, change) = (self.terms.tolerance, self.effect.abs());
        self.allowance
            .is_some_and(|allowance| allowance >= limit && change - allowance <= limit)
    }
}

/// Takes the planned looks that the available samples reach, and joins their claims. What is shown, and
/// what no claim may contradict, is of all samples, also of those beyond the last look.
fn decide(question: &Question, available: usize, look: impl Fn(usize) -> Evidence) -> Decision {
    let mut planned = question.looks.clone();
    planned.retain(|samples| *samples > 0);
    planned.sort_unstable();
    planned.dedup();
    let shares = planned.len().max(1) as f64;
    planned.retain(|samples| *samples <= available);
    if planned.is_empty() {
        planned.push(available);
    }
    // Where any change is worse, an alarm may come from either side.
    let sides = if question.direction == Direction::Equal {
        2.0
    } else {
        1.0
    };
    let alarm_chance = ALARM / (question.comparisons.max(1) as f64 * shares * sides);
    let pass_chance = MISS / shares;

    let seen = |samples: usize| {
        let evidence = look(samples);
        let bands = evidence.bands(alarm_chance, pass_chance);
        (evidence, bands)
    };
    let mut claims = Claims::default();
    for samples in &planned {
        if let (evidence, Some(bands)) = seen(*samples) {
            evidence.claim(&bands, question.direction, &mut claims);
        }
    }
    let (evidence, bands) = seen(available);
    let (verdict, open, why) = conclude(&claims, &evidence, bands.is_some(), question.direction);

    let terms = evidence.terms;
    let shown = |of: &dyn Fn(&Bands) -> f64| {
        let width = bands.as_ref().map(|bands| terms.shown(of(bands)));
        width.filter(|width| width.is_finite())
    };
    let upward = if question.direction == Direction::Higher {
        -1.0
    } else {
        1.0
    };
    Decision {
        verdict,
        effect: Some(if terms.log {
            Change::RelativePercent(terms.shown(evidence.effect))
        } else {
            Change::Absolute(evidence.effect)
        }),
        alarm: shown(&|bands| bands.alarm),
        pass: shown(&|bands| bands.pass),
        sigma: evidence.spread.map(|sigma| terms.shown(sigma)),
        dof: evidence.dof,
        allowance: evidence.allowance.map(|allowance| terms.shown(allowance)),
        threshold: shown(&|bands| upward * (terms.tolerance + bands.alarm)),
        open,
        not_worse: claims.not_worse
            && !claims.regressed
            && evidence.estimate(question.direction) != Estimate::Worse,
        looks: planned.len(),
        why: why.to_owned(),
    }
}

/// The verdict, whether it is open, and why.
fn conclude(
    claims: &Claims,
    last: &Evidence,
    spread_known: bool,
    direction: Direction,
) -> (Verdict, bool, &'static str) {
    let says = last.estimate(direction);
    match (claims.regressed, claims.improved, claims.same) {
        // What is measured later and noisily must not hide behind an early claim.
        (true, false, false) if says != Estimate::Worse => CONTRADICTION,
        (false, true, false) if says != Estimate::Better => CONTRADICTION,
        (false, false, true) if says != Estimate::Same => CONTRADICTION,
        (true, false, false) if direction == Direction::Equal => (
            Verdict::Regressed,
            false,
            "changed by more than the tolerance and the noise",
        ),
        (true, false, false) => (
            Verdict::Regressed,
            false,
            "worse by more than the tolerance and the noise",
        ),
        (false, true, false) => (
            Verdict::Improved,
            false,
            "better by more than the tolerance and the noise",
        ),
        (false, false, true) => (Verdict::Pass, false, "within the tolerance"),
        (false, false, false) => {
            let (open, why) = if !(last.terms.tolerance >= 0.0) {
                (false, "the tolerance is negative or not a finite number")
            } else if !spread_known {
                (
                    true,
                    "the spread between processes is not known: one process a side, and no baseline to learn it from",
                )
            } else if last.hidden_by_machines() {
                (
                    false,
                    "the machines may differ by more than the tolerance: measure side by side",
                )
            } else {
                (
                    true,
                    "the noise reaches across the tolerance: measure more processes",
                )
            };
            (Verdict::Inconclusive, open, why)
        }
        _ => CONTRADICTION,
    }
}

const CONTRADICTION: (Verdict, bool, &str) = (
    Verdict::Inconclusive,
    false,
    "the samples contradict each other: the looks at fewer and at more do not agree",
);

/// Why a side has no process value to judge.
fn gap(values: &[f64]) -> Option<&'static str> {
    if values.is_empty() {
        Some("there is no sample")
    } else if values.iter().any(|value| !value.is_finite()) {
        Some("a sample is not a finite number")
    } else {
        None
    }
}

fn not_measured(why: &str) -> Decision {
    Decision::nothing(Verdict::NotMeasured, false, why.to_owned())
}

impl Decision {
    /// Without any number.
    pub(super) fn nothing(verdict: Verdict, open: bool, why: String) -> Decision {
        Decision {
            verdict,
            effect: None,
            alarm: None,
            pass: None,
            sigma: None,
            dof: 0,
            allowance: None,
            threshold: None,
            open,
            not_worse: false,
            looks: 0,
            why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::RoundOrder;

    /// Values of both sides in rounds of alternating order.
    fn in_turn(
        base: &[f64],
        current: &[f64],
        learned: Option<&Samples>,
        question: &Question,
    ) -> Decision {
        let rounds = base.len().max(current.len()).div_ceil(2);
        let places = RoundOrder::Alternating.places(rounds);
        let timed = |values, side: usize| Timed {
            values,
            places: &places[side],
        };
        side_by_side(timed(base, 0), timed(current, 1), learned, question)
    }

    fn question(scale: Scale, direction: Direction, tolerance: f64, looks: &[usize]) -> Question {
        Question {
            scale,
            direction,
            tolerance,
            comparisons: 1,
            looks: looks.to_vec(),
        }
    }

    fn lower(tolerance: f64) -> Question {
        question(Scale::Absolute, Direction::Lower, tolerance, &[1])
    }

    fn relative(direction: Direction, percent: f64) -> Question {
        question(Scale::Relative, direction, percent, &[1])
    }

    fn close(found: Option<f64>, expected: f64) {
        let found = found.unwrap();
        let most = 1e-6 * expected.abs().max(1.0);
        assert!((found - expected).abs() < most, "{found}, not {expected}");
    }

    fn locked(machines: &[&[f64]]) -> Samples {
        let machine = |values: &&[f64]| values.iter().map(|value| vec![*value]).collect();
        Samples::new(machines.iter().map(machine).collect()).unwrap()
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Fisher and Yates; with one, two and four degrees of freedom there are closed forms.
        close(Some(upper_quantile(1, 0.01)), 31.820_515_953_8);
        close(Some(upper_quantile(2, 0.01)), 6.964_556_734_3);
        close(Some(upper_quantile(4, 0.01)), 3.746_947_387_98);
        close(Some(upper_quantile(10, 0.005)), 3.169_272_672_6);
        close(Some(upper_quantile(30, 0.05)), 1.697_260_886_6);
    }

    #[test]
    fn one_round_by_hand() {
        // Squares 2 and 2 with two degrees of freedom: sigma is the root of 2, and so is the error
        // of the difference of two means of two. Both bands are 6.9646 of it.
        let (base, current) = ([100.0, 102.0], [110.0, 112.0]);
        let decision = in_turn(&base, &current, None, &lower(0.1));
        assert_eq!(decision.effect, Some(Change::Absolute(10.0)));
        close(decision.sigma, 2.0_f64.sqrt());
        assert_eq!(decision.dof, 2);
        close(decision.alarm, 9.849_370);
        close(decision.pass, 9.849_370);
        close(decision.threshold, 9.949_370);
        assert_eq!(decision.allowance, None);
        assert_eq!(decision.verdict, Verdict::Regressed);
        assert!(!decision.open && !decision.not_worse);
        let within = |tolerance| in_turn(&base, &current, None, &lower(tolerance));
        assert_eq!(within(1.0).verdict, Verdict::Inconclusive);
        assert!(within(1.0).open);
        assert_eq!(within(19.9).verdict, Verdict::Pass);
        assert_eq!(within(19.8).verdict, Verdict::Inconclusive);
        let decision = in_turn(&current, &base, None, &lower(0.1));
        assert_eq!(decision.verdict, Verdict::Improved);
        assert!(decision.not_worse);
    }

    #[test]
    fn an_alarm_is_shared_over_comparisons_and_looks_and_a_miss_over_looks() {
        let asked = Question {
            comparisons: 2,
            looks: vec![1, 2],
            ..lower(1.0)
        };
        let decision = in_turn(&[100.0, 102.0], &[110.0, 112.0], None, &asked);
        // Chances of 0.0025 and 0.005 with two degrees of freedom.
        close(decision.alarm, 14.089_048 * 2.0_f64.sqrt());
        close(decision.pass, 9.924_843 * 2.0_f64.sqrt());
        assert_eq!(decision.looks, 1);
        // Where any change is worse, either side may alarm: 0.00125.
        let equal = Question {
            direction: Direction::Equal,
            ..asked
        };
        let decision = in_turn(&[100.0, 102.0], &[110.0, 112.0], None, &equal);
        close(decision.alarm, 19.962_480 * 2.0_f64.sqrt());
        close(decision.pass, 9.924_843 * 2.0_f64.sqrt());
    }

    #[test]
    fn drift_that_is_linear_within_a_round_cancels() {
        let asked = question(Scale::Absolute, Direction::Lower, 1.0, &[1, 2]);
        // Base, current, current, base, and the other way round: the machine drifts by 3 a process.
        let at = |time: usize| 1000.0 + 3.0 * time as f64;
        let base = [at(0), at(3), at(5), at(6)];
        let current = [at(1) + 2.0, at(2) + 2.0, at(4) + 2.0, at(7) + 2.0];
        let decision = in_turn(&base, &current, None, &asked);
        assert_eq!(decision.effect, Some(Change::Absolute(2.0)));
        // Nothing else varies.
        assert_eq!((decision.verdict, decision.dof), (Verdict::Regressed, 5));
        close(decision.sigma, 0.0);
        // In one round the drift counts as noise.
        let first = in_turn(&base[..2], &current[..2], None, &asked);
        assert_eq!((first.verdict, first.dof), (Verdict::Inconclusive, 2));
    }

    #[test]
    fn the_trend_costs_one_degree_of_freedom_and_is_found_by_hand() {
        // Places 0, 3, 5, 6 and 1, 2, 4, 7, all about 3.5: squares 21 and 21. The values of the base
        // rise with the place but for the last, by 0, 3, 5 and 2; those of current stay.
        let base = [100.0, 103.0, 105.0, 102.0];
        let current = [100.0; 4];
        // Of the base: squares 13 about 102.5; products 3.5 × 2.5 - 0.5 × 0.5 + 1.5 × 2.5
        // - 2.5 × 0.5.
        let left: f64 = 13.0 - 11.0 * 11.0 / 42.0;
        let asked = question(Scale::Absolute, Direction::Lower, 1.0, &[2]);
        let decision = in_turn(&base, &current, None, &asked);
        assert_eq!(decision.dof, 5);
        close(decision.sigma, (left / 5.0).sqrt());
        // Without places there is no trend to look for.
        let unplaced = |values| Timed {
            values,
            places: &[],
        };
        let decision = side_by_side(unplaced(&base), unplaced(&current), None, &asked);
        assert_eq!(decision.dof, 6);
        close(decision.sigma, (13.0_f64 / 6.0).sqrt());
    }

    #[test]
    fn without_noise_a_change_of_exactly_the_tolerance_is_within_it() {
        let noiseless = |value: f64| [value; 6];
        let verdict = |direction, base: f64, current: f64| {
            let asked = relative(direction, 0.2);
            in_turn(&noiseless(base), &noiseless(current), None, &asked).verdict
        };
        use Direction::{Equal, Higher, Lower};
        for base in [1.0, 1000.0, 3e9, 1e-6] {
            assert_eq!(verdict(Lower, base, base * 1.002), Verdict::Pass, "{base}");
            assert_eq!(verdict(Lower, base, base * 1.0021), Verdict::Regressed);
            assert_eq!(verdict(Lower, base * 1.0021, base), Verdict::Improved);
            assert_eq!(verdict(Higher, base, base * 0.998), Verdict::Pass);
            assert_eq!(verdict(Higher, base, base * 0.9979), Verdict::Regressed);
            assert_eq!(verdict(Higher, base * 0.9979, base), Verdict::Improved);
            assert_eq!(verdict(Equal, base, base * 1.0021), Verdict::Regressed);
            assert_eq!(verdict(Equal, base, base * 0.9979), Verdict::Regressed);
            assert_eq!(verdict(Equal, base, base * 1.001), Verdict::Pass);
        }
    }

    #[test]
    fn a_counter_that_never_varies_passes_only_without_change_where_none_is_tolerated() {
        for scale in [Scale::Relative, Scale::Absolute] {
            let asked = question(scale, Direction::Lower, 0.0, &[1]);
            let verdict =
                |base: f64, current: f64| in_turn(&[base; 4], &[current; 4], None, &asked).verdict;
            assert_eq!(verdict(1e12, 1e12), Verdict::Pass);
            assert_eq!(verdict(0.1, 0.1), Verdict::Pass);
            assert_eq!(verdict(1e12, 1e12 + 1.0), Verdict::Regressed);
            assert_eq!(verdict(0.0, 0.0), Verdict::Pass);
            assert_eq!(verdict(0.0, 1.0), Verdict::Regressed);
            assert_eq!(verdict(1.0, 0.0), Verdict::Improved);
        }
    }

    #[test]
    fn a_share_of_nothing_is_nothing() {
        let asked = relative(Direction::Lower, 50.0);
        // Even one process a side shows that zero stayed zero.
        let decision = in_turn(&[0.0], &[0.0], None, &asked);
        assert_eq!(decision.verdict, Verdict::Pass);
        assert_eq!(decision.effect, Some(Change::Absolute(0.0)));
        assert_eq!(decision.pass, Some(0.0));
        let decision = in_turn(&[0.0, 0.0], &[0.0, 0.1], None, &asked);
        assert_eq!(decision.verdict, Verdict::Inconclusive);
        assert_eq!(decision.effect, Some(Change::Absolute(0.05)));
    }

    #[test]
    fn a_rise_of_all_is_never_too_much_of_a_metric_that_should_rise() {
        let asked = relative(Direction::Higher, 100.0);
        let decision = in_turn(&[8.0, 9.0], &[1.0, 1.1], None, &asked);
        assert_eq!(decision.verdict, Verdict::Pass);
        close(decision.threshold, -100.0);
    }

    #[test]
    fn a_relative_change_is_shown_in_percent() {
        for (direction, threshold) in [(Direction::Lower, 1.0), (Direction::Higher, -1.0)] {
            let asked = relative(direction, 1.0);
            let decision = in_turn(&[50.0; 2], &[51.0; 2], None, &asked);
            let Some(Change::RelativePercent(percent)) = decision.effect else {
                panic!("{decision:?}");
            };
            close(Some(percent), 2.0);
            close(decision.threshold, threshold);
        }
    }

    #[test]
    fn one_process_a_side_is_judged_only_with_a_learned_spread() {
        let decision = in_turn(&[10.0], &[20.0], None, &lower(1.0));
        assert_eq!(decision.verdict, Verdict::Inconclusive);
        assert_eq!(decision.effect, Some(Change::Absolute(10.0)));
        assert!(decision.open && decision.alarm.is_none());
        // Squares 2 with one degree of freedom: 31.82 of twice one.
        let learned = locked(&[&[10.0, 12.0]]);
        let decision = in_turn(&[10.0], &[20.0], Some(&learned), &lower(1.0));
        assert_eq!(decision.dof, 1);
        close(decision.alarm, 31.820_516 * 2.0);
        let one = locked(&[&[10.0], &[12.0]]);
        let decision = in_turn(&[10.0], &[20.0], Some(&one), &lower(1.0));
        assert!(decision.alarm.is_none());
    }

    #[test]
    fn a_learned_spread_never_hides_that_this_run_is_noisier() {
        let judged = |learned: &[f64], asked: &Question| {
            let learned = locked(&[learned]);
            in_turn(&[100.0, 102.0], &[110.0, 112.0], Some(&learned), asked)
        };
        let decision = judged(&[100.0; 9], &lower(1.0));
        close(decision.sigma, 2.0_f64.sqrt());
        assert_eq!(decision.dof, 2);
        // Squares of 32 with one, and 4 with two.
        let decision = judged(&[100.0, 108.0], &lower(1.0));
        close(decision.sigma, 12.0_f64.sqrt());
        assert_eq!(decision.dof, 3);
        // Zero has no logarithm.
        let zero = judged(&[0.0, 108.0], &relative(Direction::Lower, 1.0));
        assert_eq!(zero.dof, 2);
    }

    #[test]
    fn a_stored_baseline_by_hand() {
        // Machines at 11 and 15, so the center is 13 and they spread by 2. Squares 2 + 8 + 2 with
        // four degrees of freedom; the error is the root of 3 (1/2 + (1/2 + 1/3)/4).
        let before = locked(&[&[10.0, 12.0], &[13.0, 15.0, 17.0]]);
        let asked = question(Scale::Absolute, Direction::Lower, 1.0, &[2]);
        let decision = against_stored(&before, &[16.0, 18.0], Some(-1.5), &asked);
        assert_eq!(decision.effect, Some(Change::Absolute(4.0)));
        close(decision.sigma, 3.0_f64.sqrt());
        assert_eq!(decision.dof, 4);
        assert_eq!(decision.allowance, Some(2.0));
        close(decision.alarm, 7.462_067);
        assert_eq!(decision.verdict, Verdict::Inconclusive);
        let decision = against_stored(&before, &[16.0, 18.0], Some(-3.0), &asked);
        assert_eq!(decision.effect, Some(Change::Absolute(4.0)));
        assert_eq!(decision.allowance, Some(3.0));
        close(decision.alarm, 8.462_067);
        assert_eq!(decision.pass, decision.alarm);
    }

    #[test]
    fn of_four_machines_the_prediction_of_a_fifth_is_allowed_and_of_three_the_largest_distance() {
        let allowed = |machines: &[f64]| {
            let machines: Vec<[f64; 2]> = machines.iter().map(|at| [*at; 2]).collect();
            let machines: Vec<&[f64]> = machines.iter().map(<[f64; 2]>::as_slice).collect();
            let asked = question(Scale::Absolute, Direction::Lower, 1.0, &[2]);
            against_stored(&locked(&machines), &[13.0; 2], None, &asked).allowance
        };
        assert_eq!(allowed(&[10.0, 12.0, 17.0]), Some(4.0));
        // The variance of 10, 12, 14 and 16 is 20/3; t with three degrees of freedom exceeds 3.481909
        // with a chance of 2 %.
        close(
            allowed(&[10.0, 12.0, 14.0, 16.0]),
            3.481_909 * (20.0_f64 / 3.0 * 1.25).sqrt(),
        );
        assert_eq!(allowed(&[10.0; 4]), Some(0.0));
    }

    #[test]
    fn without_a_control_and_a_second_machine_it_is_not_known_how_machines_differ() {
        let before = locked(&[&[10.0, 12.0]]);
        let decision = against_stored(&before, &[16.0, 18.0], None, &lower(1.0));
        assert_eq!(decision.allowance, None);
        let decision = against_stored(&before, &[16.0, 18.0], Some(0.0), &lower(1.0));
        assert_eq!(decision.allowance, Some(0.0));
    }

    #[test]
    fn what_the_machines_hide_is_not_left_open() {
        let before = locked(&[&[100.0; 4]]);
        let asked = relative(Direction::Lower, 1.0);
        let judged = |now: f64, percent: f64| {
            let control = Some((percent / 100.0).ln_1p());
            against_stored(&before, &[now; 4], control, &asked)
        };
        let decision = judged(101.5, 2.0);
        assert_eq!(decision.verdict, Verdict::Inconclusive);
        assert!(!decision.open);
        close(decision.allowance, 2.0);
        assert_eq!(judged(104.0, 2.0).verdict, Verdict::Regressed);
        assert_eq!(judged(100.1, 0.5).verdict, Verdict::Pass);
    }

    #[test]
    fn a_control_of_a_ratio_is_a_share_where_there_is_no_ratio() {
        let asked = relative(Direction::Lower, 1.0);
        let control = Some(1.5_f64.ln());
        let before = locked(&[&[0.0, 0.0]]);
        let decision = against_stored(&before, &[4.0, 4.0], control, &asked);
        close(decision.allowance, 2.0);
        assert_eq!(decision.verdict, Verdict::Regressed);
        let decision = against_stored(&before, &[0.0, 0.0], control, &asked);
        assert_eq!(decision.verdict, Verdict::Pass);
    }

    #[test]
    fn an_early_pass_does_not_hide_what_is_measured_later() {
        let learned = locked(&[&[100.0; 4]]);
        let asked = question(Scale::Absolute, Direction::Lower, 1.0, &[1, 2]);
        let (base, current) = ([100.0; 4], [100.0, 100.0, 100.0, 150.0]);
        let first = in_turn(&base[..2], &current[..2], Some(&learned), &asked);
        assert_eq!(first.verdict, Verdict::Pass);
        let later = in_turn(&base, &current, Some(&learned), &asked);
        assert_eq!(later.verdict, Verdict::Inconclusive);
        assert!(!later.not_worse);
    }

    #[test]
    fn looks_that_disagree_decide_nothing() {
        // Nothing varies in the first round: worse by 11. Then the changes are -11 and 11 each
        // round.
        let asked = |tolerance| question(Scale::Absolute, Direction::Lower, tolerance, &[1, 4]);
        let base = [100.0; 8];
        let current = [111.0, 111.0, 89.0, 89.0].repeat(2);
        let first = in_turn(&base[..2], &current[..2], None, &asked(10.0));
        assert_eq!(first.verdict, Verdict::Regressed);
        // At the second look the change is 0 and the band about 20: nothing new is claimed, and
        // what was claimed is no longer what the samples say.
        let later = in_turn(&base, &current, None, &asked(10.0));
        assert_eq!((later.verdict, later.looks), (Verdict::Inconclusive, 2));
        // After a first round that is worse by 11, 39 without any change.
        let mut current = [100.0; 80];
        current[..2].fill(111.0);
        let base = [100.0; 80];
        let both = question(Scale::Absolute, Direction::Lower, 10.0, &[1, 40]);
        let later = in_turn(&base, &current, None, &both);
        assert_eq!(later.verdict, Verdict::Inconclusive);
        assert!(!later.open && !later.not_worse);
        assert!(later.why.contains("contradict"), "{}", later.why);
    }

    /// Two machines of four processes that differ by 0.1 %.
    fn quiet_lock() -> Samples {
        let machine: &[f64] = &[100.0, 100.1, 99.9, 100.0];
        locked(&[machine, machine])
    }

    #[test]
    fn a_process_far_from_its_siblings_leaves_the_comparison_open() {
        let learned = quiet_lock();
        let asked = question(Scale::Relative, Direction::Lower, 1.0, &[1, 2, 3, 4, 5]);
        let quiet = [100.0, 100.1, 99.9, 100.0].repeat(3);
        for side in [0, 1] {
            let mut sides = [quiet.clone(), quiet.clone()];
            sides[side][1] = 109.0;
            for rounds in 1..=5 {
                let [base, current] = sides.each_ref().map(|side| &side[..2 * rounds]);
                let decision = in_turn(base, current, Some(&learned), &asked);
                let ended = (decision.verdict, decision.open, decision.not_worse);
                assert_eq!(ended, (Verdict::Inconclusive, true, false), "{decision:?}");
            }
        }
    }

    #[test]
    fn a_kernel_that_is_slow_in_half_of_its_processes_never_passes() {
        let learned = quiet_lock();
        let asked = question(Scale::Relative, Direction::Lower, 1.0, &[1, 2, 3, 4, 5]);
        let base = [100.0, 100.1, 99.9, 100.0].repeat(10);
        let current: Vec<f64> = [100.0, 103.0].repeat(20);
        for rounds in 1..=20 {
            let (base, current) = (&base[..2 * rounds], &current[..2 * rounds]);
            let decision = in_turn(base, current, Some(&learned), &asked);
            assert_ne!(decision.verdict, Verdict::Pass, "{rounds} rounds");
            assert!(!decision.not_worse, "{rounds} rounds");
        }
    }

    #[test]
    fn looks_are_taken_where_planned_and_otherwise_at_what_is_there() {
        let asked = |looks: &[usize]| question(Scale::Absolute, Direction::Lower, 1.0, looks);
        let (base, current) = ([1.0; 7], [5.0; 9]);
        let taken = |looks: &[usize]| in_turn(&base, &current, None, &asked(looks));
        assert_eq!(taken(&[1, 2, 3, 4]).looks, 3);
        assert_eq!(taken(&[4, 5]).looks, 1);
        // Two processes a side and round, less one a side and one for the trend.
        assert_eq!(taken(&[4, 5]).dof, 9);
        assert_eq!(taken(&[2, 5]).looks, 1);
        // Shown is what all of it gives.
        assert_eq!(taken(&[2, 5]).dof, 9);
        assert_eq!(taken(&[]).dof, 9);
        assert_eq!(taken(&[0]).dof, 9);
        let before = locked(&[&[1.0, 1.0]]);
        let decision = against_stored(&before, &[5.0; 7], None, &asked(&[3, 6, 9]));
        assert_eq!((decision.looks, decision.dof), (2, 7));
    }

    #[test]
    fn no_number_is_not_measured() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let decision = in_turn(&[1.0, 1.0], &[1.0, bad], None, &lower(1.0));
            assert_eq!(decision.verdict, Verdict::NotMeasured);
            assert_eq!(decision.effect, None);
            let before = locked(&[&[1.0, 1.0]]);
            let decision = against_stored(&before, &[1.0, 1.0], Some(bad), &lower(1.0));
            assert_eq!(decision.verdict, Verdict::NotMeasured);
            let decision = in_turn(&[1.0, 1.0], &[1.0, 1.0], None, &lower(bad));
            assert_eq!(decision.verdict, Verdict::Inconclusive);
            assert!(!decision.not_worse && !decision.open);
        }
        let decision = in_turn(&[], &[1.0], None, &lower(1.0));
        assert_eq!(decision.verdict, Verdict::NotMeasured);
    }
}
