//! The smallest tolerances that the recorded noise allows, and which gates cannot fail.

use serde::Serialize;

use super::judged::Judged;
use super::noise::{Recorded, Varies};
use crate::config::Metric;
use crate::judge::comparison_count;
use crate::metric::{Direction, Tolerance};
use crate::profile::KernelProfile;
use crate::statistics::Samples;
use crate::terms::{Tier, VariantId};
use crate::verdict::{
    Bounds, Design, Deviation, Expected, KnownNoise, Needed, Population, ProcessCost, Question,
    Scale, Timed, Verdict, against_stored, cheapest, side_by_side,
};

/// Degrees of freedom between GPUs from which their differences are estimated: four GPUs have three.
const FEWEST_BETWEEN_GPUS: usize = 3;
/// Simulated checks that should stay open at a proposed tolerance, so that their share is no accident.
const OPEN_DRAWS: f64 = 10.0;
/// The fewest and the most simulated checks.
const DRAWS: [f64; 2] = [2_000.0, 20_000.0];

/// What the recorded noise says about the tolerances of one variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantTolerances {
    /// Which variant.
    pub variant: VariantId,
    /// The folder of its baseline: GPU model and tier.
    pub gpu: String,
    /// Its metrics that are judged by their size.
    pub metrics: Vec<MetricTolerances>,
}

/// The two tolerances of a metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricTolerances {
    /// The metric, as reports call it.
    pub metric: String,
    /// The metric whose slowest launches these tolerances (`tail_against` and `tail`) are about; `None` of
    /// all launches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail_of: Option<String>,
    /// The locked value, of the first kernel; `None` where it was not measured.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: Option<String>,
    /// How many kernels are judged.
    pub kernels: usize,
    /// Against the base, side by side (`against`).
    pub against: Gate,
    /// Against a stored baseline (`tolerance`).
    pub stored: Gate,
}

/// One tolerance, and what is expected of it. Of several kernels the noisiest counts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gate {
    /// As configured.
    pub configured: Tolerance,
    /// Expected share of unchanged checks in which this metric stays open or fails, in percent; `None`
    /// where the evidence does not say it.
    pub open_percent: Option<f64>,
    /// The smallest tolerance that the noise allows; `None` where `why` says why there is none.
    pub proposed: Option<Tolerance>,
    /// The same share at the proposed tolerance.
    pub proposed_open_percent: Option<f64>,
    /// How process values vary, in the terms of the tolerance.
    pub noise: Option<Noise>,
    /// How GPUs differ; only for stored baselines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between_gpus: Option<BetweenGpus>,
    /// Kernels of which not even the value zero would be a regression.
    pub cannot_fail: Vec<String>,
    /// Further kernels of which half of the value would be no regression.
    pub allows_half: Vec<String>,
    /// Why nothing is proposed.
    pub why: Option<String>,
}

/// A standard deviation, in percent or in the metric's unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Noise {
    /// The estimate.
    pub sigma: f64,
    /// Its degrees of freedom.
    pub dof: usize,
}

/// How GPUs of one model differ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BetweenGpus {
    /// Standard deviation of the values of GPUs; `None` where fewer than two can be compared.
    pub noise: Option<Noise>,
    /// GPUs that measured the same sources as another one; one where no two did.
    pub gpus: usize,
}

/// Proposes tolerances.
pub struct Tuner {
    expected: Expected,
    /// Share of unchanged checks of one variant that may stay open, 0 to 1.
    share: f64,
    /// Checks against a baseline have only the processes of a recording.
    recorded: bool,
    cost: ProcessCost,
}

/// One tolerance of one kernel.
struct OfKernel {
    needed: Option<Needed>,
    /// At the configured tolerance: side by side, other launches may be measured there.
    needed_as_configured: Option<Needed>,
    varies: Option<Varies>,
    why: Option<String>,
    allows: Allows,
}

/// How much of its value a metric may lose without being regressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allows {
    /// Less than half, or it gets worse by growing.
    Less,
    Half,
    All,
}

impl Tuner {
    /// For variants that make so many comparisons at most, and a share of their unchanged checks, in
    /// percent, that may stay open.
    pub fn new(open_share_percent: f64, comparisons: usize) -> Tuner {
        let share = open_share_percent / 100.0;
        let wanted = OPEN_DRAWS * comparisons.max(1) as f64 / share;
        Tuner {
            expected: Expected::new(wanted.clamp(DRAWS[0], DRAWS[1]) as usize),
            share,
            recorded: false,
            cost: ProcessCost::default(),
        }
    }

    /// Of checks against a baseline that judge a recording of the first look's processes, if so.
    #[must_use]
    pub fn of_recordings(self, recorded: bool) -> Tuner {
        Tuner { recorded, ..self }
    }

    /// What the noise says about each metric of a variant. `control` is what was recorded of the variant
    /// of its suite that never changes, if it is another one.
    pub fn propose(&self, one: &Recorded<'_>, control: Option<&Recorded<'_>>) -> VariantTolerances {
        let comparisons = comparisons(one);
        let least = OPEN_DRAWS / DRAWS[1];
        let share = (self.share / comparisons.max(1) as f64).max(least);
        let configured_launches = self.launches(one);
        let metrics = Judged::all_of(one.variant).map(|judged| {
            let kernels = &one.locked.kernels;
            let samples = kernels
                .iter()
                .filter_map(|kernel| one.samples(kernel, judged));
            let of =
                |gate: &dyn Fn(&KernelProfile) -> OfKernel| -> Vec<(&KernelProfile, OfKernel)> {
                    kernels
                        .iter()
                        .map(|kernel| (kernel, gate(kernel)))
                        .collect()
                };
            let against =
                of(&|kernel| self.against(one, kernel, judged, configured_launches, comparisons));
            let stored = of(&|kernel| self.stored(one, control, kernel, judged, comparisons));
            let metric = judged.metric;
            let definition = one.locked.identity.metrics.get(&metric.alias);
            MetricTolerances {
                metric: judged.name(),
                tail_of: judged.tail_of().map(str::to_owned),
                value: samples.map(|samples| samples.value()).next(),
                unit: definition.and_then(|definition| definition.unit.clone()),
                kernels: kernels.len(),
                against: gate(judged.against, metric.direction, share, &against, false),
                stored: gate(judged.tolerance, metric.direction, share, &stored, true),
            }
        });
        VariantTolerances {
            variant: one.variant.id.clone(),
            gpu: one.gpu.to_owned(),
            metrics: metrics.collect(),
        }
    }

    /// Launches of a process side by side, as a check chooses them under the configured tolerances.
    fn launches(&self, one: &Recorded<'_>) -> u32 {
        let settings = &one.variant.profile;
        // As a check, which leaves the slowest launches out of this choice.
        let judged = Judged::all_of(one.variant).filter(|judged| judged.tail_of().is_none());
        let samples: Vec<(Samples, Tolerance)> = judged
            .flat_map(|judged| {
                one.locked
                    .kernels
                    .iter()
                    .map(move |kernel| (judged, kernel))
            })
            .filter_map(|(judged, kernel)| Some((one.samples(kernel, judged)?, judged.against)))
            .collect();
        let known = samples.iter().map(|(samples, tolerance)| {
            let (scale, tolerance) = Scale::of(*tolerance);
            KnownNoise {
                samples,
                scale,
                tolerance,
            }
        });
        let bounds = Bounds {
            least: settings.launches,
            most: settings.max_launches.max(settings.launches),
            looks: settings.round_looks(),
        };
        cheapest(&known.collect::<Vec<_>>(), &bounds, self.cost).launches
    }

    fn against(
        &self,
        one: &Recorded<'_>,
        kernel: &KernelProfile,
        judged: Judged<'_>,
        configured_launches: u32,
        comparisons: usize,
    ) -> OfKernel {
        let settings = &one.variant.profile;
        let most = settings.max_launches.max(settings.launches);
        let metric = judged.metric;
        let (scale, _) = Scale::of(judged.against);
        let looks = settings.round_looks();
        let Some(locked) = one.samples(kernel, judged) else {
            return OfKernel::without("it was not measured");
        };
        let design = design(&locked, &looks, metric.direction);
        let varies = |launches| one.varies(kernel, judged, scale, launches);
        let needed = |varies: Option<Varies>| {
            let processes = varies?.processes.filter(|one| one.sigma > 0.0)?;
            Some(self.expected.side_by_side(&design, processes))
        };
        let planned = looks.iter().copied().max().unwrap_or(1) as usize;
        let question = question(metric, judged.against, &looks, comparisons);
        let values = locked.process_values().concat();
        let base: Vec<f64> = values.iter().copied().cycle().take(2 * planned).collect();
        fn side(values: &[f64]) -> Timed<'_> {
            Timed {
                values,
                places: &[],
            }
        }
        let allows = allows(metric, |part| {
            let left: Vec<f64> = base.iter().map(|value| part * value).collect();
            side_by_side(side(&base), side(&left), Some(&locked), &question).verdict
        });
        OfKernel {
            needed: needed(varies(most)),
            needed_as_configured: needed(varies(configured_launches)),
            why: why_no_noise(varies(most)),
            varies: varies(most),
            allows,
        }
    }

    fn stored(
        &self,
        one: &Recorded<'_>,
        control: Option<&Recorded<'_>>,
        kernel: &KernelProfile,
        judged: Judged<'_>,
        comparisons: usize,
    ) -> OfKernel {
        let settings = &one.variant.profile;
        let metric = judged.metric;
        let (scale, _) = Scale::of(judged.tolerance);
        let looks = settings.process_looks();
        let Some(locked) = one.samples(kernel, judged) else {
            return OfKernel::without("it was not measured");
        };
        let varies = one.varies(kernel, judged, scale, settings.launches);
        let known = varies.filter(|one| {
            one.machines
                .is_some_and(|it| it.dof >= FEWEST_BETWEEN_GPUS && it.sigma > 0.0)
        });
        let own = known.and_then(|varies| varies.population());
        let control = control.and_then(|control| displaced(control, judged, scale));
        let needed = own.map(|own| {
            let design = design(&locked, &looks, metric.direction);
            let processes = match self.recorded {
                true => looks.iter().min(),
                false => looks.iter().max(),
            };
            let processes = processes.map_or(1, |look| *look as usize);
            self.expected.stored(&design, processes, own, control)
        });
        let question = question(metric, judged.tolerance, &looks, comparisons);
        let allows = allows(metric, |part| {
            let left = vec![part * locked.value(); settings.max_processes as usize];
            against_stored(&locked, &left, None, &question).verdict
        });
        let why = why_no_noise(varies).or_else(|| {
            let gpus = varies.map_or(1, |varies| varies.gpus);
            let few = needed.is_none();
            few.then(|| {
                let s = if gpus == 1 { "" } else { "s" };
                format!("the same sources were recorded on {gpus} GPU{s}, and 4 are needed: name recordings with --from")
            })
        });
        OfKernel {
            needed_as_configured: needed.clone(),
            needed,
            varies,
            why,
            allows,
        }
    }
}

impl OfKernel {
    fn without(why: &str) -> OfKernel {
        OfKernel {
            needed: None,
            needed_as_configured: None,
            varies: None,
            why: Some(why.to_owned()),
            allows: Allows::Less,
        }
    }
}

/// How many comparisons a check of one variant makes.
pub fn comparisons(one: &Recorded<'_>) -> usize {
    let tier: Tier = one.locked.identity.tier;
    comparison_count(tier, std::iter::once((one.variant, Some(one.locked))))
}

fn design(locked: &Samples, looks: &[u32], direction: Direction) -> Design {
    Design {
        looks: looks.iter().map(|look| *look as usize).collect(),
        locked: locked.machines().iter().map(Vec::len).collect(),
        equal: direction == Direction::Equal,
    }
}

fn question(metric: &Metric, tolerance: Tolerance, looks: &[u32], comparisons: usize) -> Question {
    let (scale, tolerance) = Scale::of(tolerance);
    Question {
        scale,
        direction: metric.direction,
        tolerance,
        comparisons,
        looks: looks.iter().map(|look| *look as usize).collect(),
    }
}

/// By the verdicts on a part of its value. Only what gets worse by falling has an end.
fn allows(metric: &Metric, verdict: impl Fn(f64) -> Verdict) -> Allows {
    match metric.direction {
        Direction::Higher if verdict(0.0) != Verdict::Regressed => Allows::All,
        Direction::Higher if verdict(0.5) != Verdict::Regressed => Allows::Half,
        _ => Allows::Less,
    }
}

fn why_no_noise(varies: Option<Varies>) -> Option<String> {
    let why = match varies.map(|varies| varies.processes) {
        None => "a recorded value is not positive, so there is no ratio",
        Some(None) => {
            "only one process was recorded on each GPU; name recordings of several processes with --from"
        }
        Some(Some(processes)) if processes.sigma <= 0.0 => "the recorded values never vary",
        Some(Some(_)) => return None,
    };
    Some(why.to_owned())
}

/// How a control is displaced, in the terms of a tolerance of another variant; of several kernels the one
/// that GPUs displace most. `None` where that is not known.
fn displaced(control: &Recorded<'_>, judged: Judged<'_>, scale: Scale) -> Option<Population> {
    let own = control.variant.metrics.iter();
    let own = own
        .clone()
        .find(|own| own.alias == judged.metric.alias && !own.exact)?;
    let own = Judged {
        metric: own,
        ..judged
    };
    let launches = control.variant.profile.launches;
    let kernels = control.locked.kernels.iter();
    let known = kernels.filter_map(|kernel| {
        let varies = control.varies(kernel, own, scale, launches)?;
        let enough = varies.machines?.dof >= FEWEST_BETWEEN_GPUS;
        varies.population().filter(|_| enough)
    });
    known.max_by(|one, other| one.machines.sigma.total_cmp(&other.machines.sigma))
}

/// The tolerance of all kernels of a metric.
fn gate(
    configured: Tolerance,
    direction: Direction,
    share: f64,
    kernels: &[(&KernelProfile, OfKernel)],
    stored: bool,
) -> Gate {
    let (scale, tolerance) = Scale::of(configured);
    let of = |value: f64| match scale {
        Scale::Relative => Tolerance::RelativePercent(value),
        Scale::Absolute => Tolerance::Absolute(value),
    };
    let mut why = kernels.iter().find_map(|(_, one)| one.why.clone());
    let known: Option<Vec<&Needed>> = kernels.iter().map(|(_, one)| one.needed.as_ref()).collect();
    let smallest = |needed: &&Needed| needed.smallest(scale, direction, share);
    let proposed = known
        .filter(|known| !known.is_empty() && why.is_none())
        .map(|known| known.iter().map(smallest).collect::<Option<Vec<f64>>>());
    let proposed = proposed.and_then(|each| {
        if each.is_none() {
            why = Some("the noise allows no tolerance below 100 %".to_owned());
        }
        each?.into_iter().max_by(f64::total_cmp)
    });
    let open = |tolerance: f64, needed: &dyn Fn(&OfKernel) -> Option<Needed>| {
        let tolerance = scale.in_terms(tolerance, direction);
        let each: Option<Vec<f64>> = kernels
            .iter()
            .map(|(_, one)| Some(1.0 - needed(one)?.open_share(tolerance)))
            .collect();
        each.filter(|each| !each.is_empty())
            .map(|each| 100.0 * (1.0 - each.iter().product::<f64>()))
    };
    let shown = |deviation: Deviation| Noise {
        sigma: match scale {
            Scale::Relative => 100.0 * deviation.sigma.exp_m1(),
            Scale::Absolute => deviation.sigma,
        },
        dof: deviation.dof,
    };
    let varies = kernels.iter().filter_map(|(_, one)| one.varies);
    let processes = varies.clone().filter_map(|varies| varies.processes);
    let between = varies.max_by(|one, other| {
        let sigma = |varies: &Varies| varies.machines.map_or(-1.0, |one| one.sigma);
        sigma(one).total_cmp(&sigma(other))
    });
    let that_allow = |allows: Allows| -> Vec<String> {
        let kernels = kernels.iter().filter(|(_, one)| one.allows == allows);
        kernels.map(|(kernel, _)| kernel.name.clone()).collect()
    };
    Gate {
        configured,
        open_percent: open(tolerance, &|one| one.needed_as_configured.clone()),
        proposed: proposed.map(of),
        proposed_open_percent: proposed.and_then(|value| open(value, &|one| one.needed.clone())),
        noise: processes
            .max_by(|a, b| a.sigma.total_cmp(&b.sigma))
            .map(shown),
        between_gpus: between.filter(|_| stored).map(|varies| BetweenGpus {
            noise: varies.machines.map(shown),
            gpus: varies.gpus,
        }),
        cannot_fail: that_allow(Allows::All),
        allows_half: that_allow(Allows::Half),
        why,
    }
}
