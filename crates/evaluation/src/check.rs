//! One simulated check, judged with the library exactly as `sparsek-gate check` does.

use std::collections::BTreeMap;

use sparsek_gate::comparable::merge;
use sparsek_gate::config::Variant;
use sparsek_gate::finding::{Code, Finding, Severity};
use sparsek_gate::judge::{Case, Control, Reference, VariantReport, compare};
use sparsek_gate::profile::Profile;
use sparsek_gate::terms::VariantId;
use sparsek_gate::verdict::{Change, Verdict};

use super::data::{A_ROUND, Data, Pair, Start, of_launches, of_rounds};
use super::random::Random;

/// Baselines, by variant.
pub type Locks = BTreeMap<VariantId, Profile>;

/// The verdict on one metric of one variant.
pub struct Said {
    pub variant: VariantId,
    pub metric: String,
    pub verdict: Verdict,
    pub not_worse: bool,
    /// In percent, or in the metric's unit.
    pub change: f64,
    /// The machine allowance, in the same unit as the change.
    pub allowance: Option<f64>,
    /// A counter of the work: reported, but not counted among the verdicts.
    pub exact: bool,
}

/// The result of one variant.
#[derive(Default)]
pub struct Answer {
    pub said: Vec<Said>,
    /// Processes of the current side that were measured before the answer.
    pub processes: usize,
    /// Codes of findings that fail a check for a reason other than a verdict. There must be none.
    pub odd: Vec<&'static str>,
}

impl Answer {
    fn new(report: &VariantReport, findings: &[Finding], processes: usize) -> Answer {
        let said = report.comparisons.iter().filter_map(|comparison| {
            Some(Said {
                variant: report.variant.clone(),
                metric: comparison.metric.clone(),
                verdict: comparison.verdict?,
                not_worse: comparison.not_worse,
                change: match comparison.change {
                    Some(Change::RelativePercent(value) | Change::Absolute(value)) => value,
                    None => f64::NAN,
                },
                allowance: comparison.allowance,
                exact: comparison.exact,
            })
        });
        let by_verdict = [Code::Regressed, Code::Inconclusive, Code::WorkChanged];
        Answer {
            said: said.collect(),
            processes,
            odd: findings
                .iter()
                .filter(|finding| finding.severity == Severity::Deny)
                .filter(|finding| !by_verdict.contains(&finding.code))
                .map(|finding| finding.code.as_str())
                .collect(),
        }
    }
}

/// Whether both sides of a pair are the same code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sides {
    Same,
    Planted,
}

/// Base and current side of a pair, exchanged at random if they are the same code.
pub fn drawn_sides<'p>(
    pair: &'p Pair,
    sides: Sides,
    random: &mut Random,
) -> (&'p Profile, &'p Profile) {
    if sides == Sides::Same && random.coin() {
        (&pair.head, &pair.base)
    } else {
        (&pair.base, &pair.head)
    }
}

/// `check --against`: judges these rounds one after the other, until the verdict is clear or no
/// round is left.
pub fn against(
    variant: &Variant,
    (base, head): (&Profile, &Profile),
    rounds: &[usize],
    learned: Option<&Profile>,
    comparisons: usize,
) -> Answer {
    let mut answer = Answer::default();
    let first = variant.profile.rounds as usize;
    for look in first..=variant.profile.max_rounds as usize {
        let rounds = &rounds[..rounds.len().min(look)];
        let (base, head) = (of_rounds(base, rounds), of_rounds(head, rounds));
        let reference = Reference::base(&base, learned);
        let (report, findings) = compare(&Case::new(variant, reference, &head, comparisons));
        answer = Answer::new(&report, &findings, A_ROUND * rounds.len());
        if !report.open(|_| false) || rounds.len() < look {
            break;
        }
    }
    answer
}

/// A check against a baseline: draws processes of one side, by whole rounds, until the verdict is
/// clear or the maximum is reached. Also returns the profile that was judged last.
pub fn stored(
    variant: &Variant,
    side: &Profile,
    rounds: usize,
    locked: &Profile,
    control: Option<&Control>,
    comparisons: usize,
    random: &mut Random,
) -> (Answer, Profile) {
    let most = (variant.profile.max_processes as usize).div_ceil(A_ROUND);
    let drawn = random.with_replacement(most, rounds);
    let mut last = None;
    for look in variant.profile.process_looks() {
        let now = of_rounds(side, &drawn[..(look as usize).div_ceil(A_ROUND)]);
        let reference = Reference::stored(locked, control);
        let (report, findings) = compare(&Case::new(variant, reference, &now, comparisons));
        let processes = now.provenance.processes as usize;
        let open = report.open(|_| false);
        last = Some((Answer::new(&report, &findings, processes), now));
        if !open {
            break;
        }
    }
    // There is always at least one look.
    last.unwrap_or_else(|| (Answer::default(), side.clone()))
}

/// Locks variants on one start of each of these machines: as many processes as a profile has, drawn
/// by whole rounds, each with its first launches where these are limited. Of an unchanged pair it locks either side, of a planted one the base.
pub fn lock(
    data: &Data,
    machines: &[usize],
    variants: &[(&Variant, Sides)],
    launches: Option<usize>,
    random: &mut Random,
) -> Result<Locks, String> {
    let starts: Vec<&Start> = machines
        .iter()
        .map(|machine| {
            let starts = &data.machines[*machine];
            &data.starts[starts[random.below(starts.len())]]
        })
        .collect();
    let mut locks = Locks::new();
    for (variant, sides) in variants {
        let processes = variant.profile.processes as usize;
        let mut profiles = Vec::new();
        for start in &starts {
            let pair = &start.pairs[&variant.id];
            let (side, _) = drawn_sides(pair, *sides, random);
            let drawn = random.with_replacement(processes.div_ceil(A_ROUND), pair.rounds());
            let profile = of_rounds(side, &drawn);
            profiles.push(match launches {
                Some(launches) => of_launches(&profile, launches),
                None => profile,
            });
        }
        if profiles.is_empty() {
            continue;
        }
        locks.insert(variant.id.clone(), merge(profiles)?);
    }
    Ok(locks)
}
