//! What moved together: which other counters of a kernel tell why it is slower.
//!
//! A cause is what the counters show, not a proof. The thresholds lie well above the noise of an
//! unchanged kernel (bank conflicts 0.002 %, DRAM bytes 0.06 %, instructions none).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metric::Comparison;
use super::stall::{stall_of_counter, stall_words};
use crate::metric::{DURATION_COUNTER, display_value};
use crate::verdict::{Change, Verdict};

const BANK_CONFLICTS: &str = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum";
const SHARED_WAVEFRONTS: &str = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum";
const INSTRUCTIONS: &str = "smsp__inst_executed.sum";
const LOCAL: [(&str, &str); 2] = [
    ("local loads", "smsp__inst_executed_op_local_ld.sum"),
    ("local stores", "smsp__inst_executed_op_local_st.sum"),
];
const TENSOR_FLOP: &str = "sm__ops_path_tensor_op_";
/// The first counts WMMA and WGMMA alike.
const TENSOR_INSTRUCTIONS: [&str; 2] = [
    "sm__inst_executed_pipe_tensor_op_hmma.sum",
    "sm__inst_executed_pipe_tensor.sum",
];
const FMA: [(&str, &str); 2] = [
    (
        "FMA operations of threads",
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    ),
    ("FMA instructions", "sm__inst_executed_pipe_fma.sum"),
];
/// What one count of an instruction outside of the tensor cores stands for.
const THREAD_FLOP: [(&str, f64); 9] = [
    ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 2.0),
    ("smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", 1.0),
    ("smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", 1.0),
    ("smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", 2.0),
    ("smsp__sass_thread_inst_executed_op_dadd_pred_on.sum", 1.0),
    ("smsp__sass_thread_inst_executed_op_dmul_pred_on.sum", 1.0),
    ("smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", 2.0),
    ("smsp__sass_thread_inst_executed_op_hadd_pred_on.sum", 1.0),
    ("smsp__sass_thread_inst_executed_op_hmul_pred_on.sum", 1.0),
];
const STORED_SECTORS: &str = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum";
const LOAD_SECTORS: &str = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum";
const LOAD_REQUESTS: &str = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum";
const BARRIER_STALL: &str = "smsp__warp_issue_stalled_barrier_per_warp_active.pct";
const DRAM: [(&str, &str); 2] = [
    ("DRAM reads", "dram__bytes_read.sum"),
    ("DRAM writes", "dram__bytes_write.sum"),
];
const L2: [(&str, &str, &str); 4] = [
    ("bytes", "lts__t_bytes.sum", "byte"),
    ("sectors", "lts__t_sectors.sum", ""),
    ("sectors read", "lts__t_sectors_op_read.sum", ""),
    ("sectors written", "lts__t_sectors_op_write.sum", ""),
];
const CLOCK: &str = "gpc__cycles_elapsed.avg.per_second";
const ACTIVE_WARPS: [&str; 2] = [
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm__warps_active.avg.pct_of_peak_sustained_elapsed",
];
const REGISTERS: &str = "launch__registers_per_thread";
const BLOCK_LIMIT: &str = "launch__occupancy_limit_";
/// Samples by what warps waited for, which only their sum makes a share of.
const SAMPLED_STALL: &str = "smsp__pcsamp_warps_issue_stalled_";

/// Most metrics in percent that are named beside the causes.
const NAMED_PERCENTAGES: usize = 3;
/// Points that such a metric moved by.
const POINTS_THAT_MATTER: f64 = 1.0;

/// Bank conflicts that were added matter from this share of the instructions, or of the accesses to
/// shared memory: a conflict costs about a cycle of the unit that an instruction also takes.
const CONFLICTS_THAT_MATTER: f64 = 0.02;
/// Where neither of them was measured.
const FEWEST_CONFLICTS: f64 = 100_000.0;

/// One thing that moved and tells why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// What kind of thing.
    pub kind: CauseKind,
    /// What moved, with both numbers, for people.
    pub text: String,
}

/// The kinds of causes, the most telling first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CauseKind {
    /// Local memory is used, or is used more: registers do not suffice, or an array that is indexed
    /// lies there. These counters do not tell which.
    RegisterSpills,
    /// What the tensor cores did is done elsewhere, or not at all.
    LostTensorCores,
    /// Fewer operations, or fewer sectors stored.
    LessWork,
    /// More operations, or more sectors stored.
    MoreWork,
    /// Threads of a warp wait for each other at the same bank of shared memory.
    BankConflicts,
    /// A load of a warp touches more sectors than it did.
    Uncoalesced,
    /// Warps wait for other warps at `__syncthreads` and the like.
    BarrierWaits,
    /// Warps wait longer for something else.
    Stalls,
    /// Fewer warps are there to hide the waiting of others.
    LowerOccupancy,
    /// More bytes from or to device memory.
    MoreDramTraffic,
    /// More traffic with the second-level cache.
    MoreL2Traffic,
    /// More instructions for whatever the work is.
    MoreInstructions,
    /// The machine ran slower, whatever the kernel does.
    LowerClock,
    /// The compiler made other machine code.
    OtherCode,
}

/// What moved between reference and current among the comparisons of one kernel, the most telling
/// first; nothing of what either side did not measure. Counters are known by their names, never by
/// their aliases.
pub fn causes(comparisons: &[Comparison]) -> Vec<Cause> {
    let moved = Moved::of(comparisons);
    [
        (CauseKind::RegisterSpills, register_spills(&moved)),
        (CauseKind::LostTensorCores, lost_tensor_cores(&moved)),
        (CauseKind::LessWork, other_work(&moved, true)),
        (CauseKind::MoreWork, other_work(&moved, false)),
        (CauseKind::BankConflicts, bank_conflicts(&moved)),
        (CauseKind::Uncoalesced, uncoalesced(&moved)),
        (CauseKind::BarrierWaits, barrier_waits(&moved)),
        (CauseKind::Stalls, stalls(&moved)),
        (CauseKind::LowerOccupancy, lower_occupancy(&moved)),
        (CauseKind::MoreDramTraffic, more_dram_traffic(&moved)),
        (CauseKind::MoreL2Traffic, more_l2_traffic(&moved)),
        (CauseKind::MoreInstructions, more_instructions(&moved)),
        (CauseKind::LowerClock, lower_clock(&moved)),
    ]
    .into_iter()
    .filter_map(|(kind, text)| Some(Cause { kind, text: text? }))
    .collect()
}

/// The duration and the percentages of a kernel that became slower, each in a few words: what
/// moved by more than its noise, most first.
pub(crate) fn slower(comparisons: &[Comparison]) -> Option<(String, Vec<String>)> {
    let duration = comparisons.iter().find(|comparison| {
        comparison.counter == DURATION_COUNTER && comparison.verdict == Some(Verdict::Regressed)
    })?;
    let change = duration.change?.display(duration.unit.as_deref());
    let mut percentages: Vec<(f64, String)> = comparisons
        .iter()
        .filter(|comparison| comparison.unit.as_deref() == Some("%"))
        // What warps wait for has words of its own.
        .filter(|comparison| stall_of_counter(&comparison.counter).is_none())
        .filter_map(|comparison| {
            let Some(change @ Change::Absolute(points)) = comparison.change else {
                return None;
            };
            let noise = comparison.band?.max(POINTS_THAT_MATTER);
            let text = format!("`{}` {}", comparison.metric, change.display(Some("%")));
            (points.abs() > noise).then_some((points.abs(), text))
        })
        .collect();
    percentages.sort_by(|a, b| b.0.total_cmp(&a.0));
    let named = percentages.into_iter().take(NAMED_PERCENTAGES);
    Some((
        format!("`{}` {change}", duration.metric),
        named.map(|(_, text)| text).collect(),
    ))
}

/// A counter's reference and current value, in its unit.
#[derive(Clone, Copy, Debug)]
struct Step {
    was: f64,
    is: f64,
    /// The same for the same work.
    exact: bool,
}

impl Step {
    /// By more than this factor, or from nothing at all.
    fn grew(self, factor: f64) -> bool {
        self.is > self.was && self.is > self.was * factor
    }

    /// To less than this factor.
    fn fell(self, factor: f64) -> bool {
        self.is < self.was * factor
    }

    /// `-25.0 %, `, where that says anything.
    fn percent(self) -> String {
        let percent = (self.is / self.was - 1.0) * 100.0;
        if !percent.is_finite() || percent.abs() < 0.05 {
            return String::new();
        }
        format!("{percent:+.1} %, ")
    }

    /// ` ×2.5`, where there was anything before.
    fn times(self) -> String {
        match self.is / self.was {
            ratio if !ratio.is_finite() => String::new(),
            ratio if ratio >= 10.0 => format!(" ×{ratio:.0}"),
            ratio => format!(" ×{ratio:.1}"),
        }
    }

    /// `0.66 M → 84.45 M`: both in the larger one's scale, unless that leaves too little of the
    /// smaller one.
    fn counts(self, unit: &str) -> String {
        let large = scale(self.was.max(self.is));
        let told = |value: f64| {
            let in_large = value == 0.0 || value / large.0 >= 0.1;
            in_scale(value, if in_large { large } else { scale(value) }, unit)
        };
        let (was, is) = (told(self.was), told(self.is));
        if was == is && self.was != self.is {
            return format!(
                "{} → {}",
                self.was,
                format!("{} {unit}", self.is).trim_end()
            );
        }
        format!("{was} → {is}")
    }
}

/// A count for people: `51.54 GFLOP`, `12`.
pub(crate) fn counted(value: f64, unit: &str) -> String {
    in_scale(value, scale(value), unit)
}

fn scale(value: f64) -> (f64, &'static str) {
    [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")]
        .into_iter()
        .find(|(factor, _)| value.abs() >= *factor)
        .unwrap_or((1.0, ""))
}

fn in_scale(value: f64, (factor, prefix): (f64, &str), unit: &str) -> String {
    if value == 0.0 || (factor == 1.0 && value.fract() == 0.0) {
        return format!("{value} {unit}").trim_end().to_owned();
    }
    format!("{:.2} {prefix}{unit}", value / factor)
        .trim_end()
        .to_owned()
}

/// Every counter that both sides measured, each once.
struct Moved<'a>(Vec<(&'a str, Step)>);

impl<'a> Moved<'a> {
    fn of(comparisons: &'a [Comparison]) -> Moved<'a> {
        let mut moved: Vec<(&str, Step)> = Vec::new();
        for comparison in comparisons {
            // What cannot be compared has no change: its unit or its counter is another one.
            let (Some(was), Some(is), Some(_)) =
                (comparison.reference, comparison.current, comparison.change)
            else {
                continue;
            };
            // What lies within its noise did not move.
            let still = matches!(
                (comparison.change, comparison.band),
                (Some(Change::RelativePercent(size) | Change::Absolute(size)), Some(band))
                    if size.abs() <= band
            );
            let step = Step {
                was: was.value,
                is: if still { was.value } else { is.value },
                exact: comparison.exact,
            };
            let sane = |value: f64| value.is_finite() && value >= 0.0;
            let new = moved.iter().all(|(name, _)| *name != comparison.counter);
            if sane(step.was) && sane(step.is) && new {
                moved.push((&comparison.counter, step));
            }
        }
        Moved(moved)
    }

    fn get(&self, counter: &str) -> Option<Step> {
        let (_, step) = self.0.iter().find(|(name, _)| *name == counter)?;
        Some(*step)
    }

    /// The sum over the counters that have a weight; exact where each of them is.
    fn sum(&self, weight: impl Fn(&str) -> Option<f64>) -> Option<Step> {
        self.0
            .iter()
            .filter_map(|(counter, step)| {
                let weight = weight(counter)?;
                Some(Step {
                    was: weight * step.was,
                    is: weight * step.is,
                    exact: step.exact,
                })
            })
            .reduce(|sum, step| Step {
                was: sum.was + step.was,
                is: sum.is + step.is,
                exact: sum.exact && step.exact,
            })
    }

    /// Whether it counts operations of the tensor cores that no other counter also counts: such as
    /// `.._src_fp16_dst_fp32` beside `.._src_fp16`.
    fn is_tensor_flop(&self, counter: &str) -> bool {
        let base = |counter: &'a str| counter.strip_suffix(".sum");
        counter.starts_with(TENSOR_FLOP)
            && counter.ends_with(".sum")
            && !self.0.iter().any(|(other, _)| {
                let total = base(other).filter(|total| total.starts_with(TENSOR_FLOP));
                let rest = total.and_then(|total| counter.strip_prefix(total));
                rest.is_some_and(|rest| rest.starts_with('_'))
            })
    }

    fn tensor_flop(&self) -> Option<Step> {
        self.sum(|counter| self.is_tensor_flop(counter).then_some(1.0))
    }
}

fn register_spills(moved: &Moved<'_>) -> Option<String> {
    let grown: Vec<String> = LOCAL
        .iter()
        .filter_map(|(name, counter)| {
            let step = moved.get(counter).filter(|step| step.grew(1.01))?;
            Some(format!("{name} {}", step.counts("")))
        })
        .collect();
    (!grown.is_empty()).then(|| {
        format!(
            "register spills, or arrays in local memory: {}",
            grown.join(", ")
        )
    })
}

fn lost_tensor_cores(moved: &Moved<'_>) -> Option<String> {
    let used = |step: &Step| step.was > 0.0;
    let flop = moved.tensor_flop().filter(used);
    let instructions = TENSOR_INSTRUCTIONS
        .iter()
        .find_map(|counter| moved.get(counter))
        .filter(used);
    // Operations that another counter took over (WGMMA reads 0 as WMMA, bf16 as fp16) leave the
    // instructions; larger instructions leave the operations. Only both together are a loss.
    let seen: Vec<Step> = [flop, instructions].into_iter().flatten().collect();
    let gone = !seen.is_empty() && seen.iter().all(|step| step.is == 0.0);
    let fewer = !seen.is_empty() && seen.iter().all(|step| step.fell(0.9));
    let elsewhere: Vec<String> = FMA
        .iter()
        .filter_map(|(name, counter)| {
            let step = moved.get(counter).filter(|step| step.grew(1.01))?;
            Some(format!(", {name} {}", step.counts("")))
        })
        .collect();
    if !(gone || fewer && !elsewhere.is_empty()) {
        return None;
    }
    let told = flop
        .map(|step| step.counts("FLOP"))
        .or_else(|| Some(format!("{} instructions", instructions?.counts(""))))?;
    let what = if gone {
        "tensor cores no longer used"
    } else {
        "tensor cores used less"
    };
    Some(format!("{what}: {told}{}", elsewhere.concat()))
}

/// Operations and stored sectors, of which there are fewer or more.
fn other_work(moved: &Moved<'_>, fewer: bool) -> Option<String> {
    let flop = |counter: &str| {
        if moved.is_tensor_flop(counter) {
            return Some(1.0);
        }
        let (_, flop) = THREAD_FLOP.iter().find(|(name, _)| *name == counter)?;
        Some(*flop)
    };
    let parts: Vec<String> = [
        ("operations", "FLOP", moved.sum(flop)),
        ("sectors stored", "", moved.get(STORED_SECTORS)),
    ]
    .into_iter()
    .filter_map(|(name, unit, step)| {
        // What the data decides varies a little.
        let step = step.filter(|step| {
            let (less, more) = if step.exact { (1.0, 1.0) } else { (0.99, 1.01) };
            if fewer {
                step.fell(less)
            } else {
                step.grew(more)
            }
        })?;
        Some(format!("{name} {}{}", step.percent(), step.counts(unit)))
    })
    .collect();
    let what = if fewer { "less work" } else { "more work" };
    (!parts.is_empty()).then(|| format!("{what}: {}", parts.join("; ")))
}

fn bank_conflicts(moved: &Moved<'_>) -> Option<String> {
    let step = moved.get(BANK_CONFLICTS)?;
    let more = step.is - step.was;
    let measure = [SHARED_WAVEFRONTS, INSTRUCTIONS]
        .iter()
        .filter_map(|counter| moved.get(counter))
        .map(|step| step.is)
        .filter(|executed| *executed > 0.0)
        .max_by(f64::total_cmp);
    let fewest = measure.map_or(FEWEST_CONFLICTS, |executed| {
        CONFLICTS_THAT_MATTER * executed
    });
    let grew = more > 0.0 && step.is >= 2.0 * step.was && more >= fewest;
    grew.then(|| {
        format!(
            "shared-memory bank conflicts{} ({})",
            step.times(),
            step.counts("")
        )
    })
}

fn uncoalesced(moved: &Moved<'_>) -> Option<String> {
    let sectors = moved.get(LOAD_SECTORS)?;
    if let Some(requests) = moved.get(LOAD_REQUESTS)
        && requests.was > 0.0
        && requests.is > 0.0
    {
        let each = Step {
            was: sectors.was / requests.was,
            is: sectors.is / requests.is,
            exact: false,
        };
        // Wider loads also take more sectors a request, and no more of them for the same work.
        let work = moved
            .tensor_flop()
            .filter(|step| step.was > 0.0 && step.is > 0.0)
            .map_or(1.0, |step| step.is / step.was);
        if each.grew(1.2) && sectors.is > sectors.was * work * 1.05 {
            return Some(format!(
                "uncoalesced global loads: {:.2} → {:.2} sectors a request (sectors {})",
                each.was,
                each.is,
                sectors.counts("")
            ));
        }
    }
    sectors.grew(1.2).then(|| {
        format!(
            "global loads touch more sectors:{} ({})",
            sectors.times(),
            sectors.counts("")
        )
    })
}

fn barrier_waits(moved: &Moved<'_>) -> Option<String> {
    let step = moved.get(BARRIER_STALL)?;
    let waits = step.is > step.was + 5.0 && step.is > step.was * 1.5;
    waits.then(|| {
        format!(
            "warps wait at barriers: {:.2} % → {:.2} % of the time they are active",
            step.was, step.is
        )
    })
}

/// What warps wait for, other than barriers where these have their own counter.
fn stalls(moved: &Moved<'_>) -> Option<String> {
    let samples: f64 = moved
        .0
        .iter()
        .filter(|(counter, _)| counter.starts_with(SAMPLED_STALL))
        .map(|(_, step)| step.was)
        .sum();
    let mut longer: Vec<(f64, String)> = Vec::new();
    for (counter, step) in &moved.0 {
        let Some(reason) = stall_of_counter(counter).filter(|_| *counter != BARRIER_STALL) else {
            continue;
        };
        // Those that issue, or could, wait for nothing.
        if matches!(reason, "selected" | "not_selected") {
            continue;
        }
        let (least, told) = if counter.ends_with(".pct") {
            let told = format!("{:.2} % → {:.2} % of the time", step.was, step.is);
            (5.0, told)
        } else if counter.starts_with(SAMPLED_STALL) {
            let told = format!("{} samples", step.counts(""));
            ((0.05 * samples).max(1.0), told)
        } else if counter.ends_with(".ratio") {
            let told = format!("{:.2} → {:.2} cycles an instruction", step.was, step.is);
            (0.5, told)
        } else {
            // How many warps, of which the time is not known.
            continue;
        };
        if step.is > step.was + least && step.grew(1.5) {
            let text = format!("{} {told}", stall_words(reason));
            longer.push(((step.is - step.was) / least, text));
        }
    }
    longer.sort_by(|a, b| b.0.total_cmp(&a.0));
    let texts: Vec<String> = longer.into_iter().take(2).map(|(_, text)| text).collect();
    (!texts.is_empty()).then(|| format!("warps wait longer: {}", texts.join(", ")))
}

fn lower_occupancy(moved: &Moved<'_>) -> Option<String> {
    let measured = ACTIVE_WARPS.iter().find_map(|counter| moved.get(counter));
    // What would fit says nothing where as many warps were active.
    if measured.is_some_and(|step| step.is >= step.was) {
        return None;
    }
    let active = measured.filter(|step| step.is < step.was - 5.0);
    let limits: Vec<(&str, Step)> = moved
        .0
        .iter()
        .filter_map(|(counter, step)| Some((counter.strip_prefix(BLOCK_LIMIT)?, *step)))
        .collect();
    let fewest = |side: fn(&Step) -> f64| {
        let limits = limits.iter().map(|(name, step)| (*name, side(step)));
        limits.min_by(|a, b| a.1.total_cmp(&b.1))
    };
    let fewer = fewest(|step| step.was)
        .zip(fewest(|step| step.is))
        .filter(|((_, was), (_, is))| is < was);
    if active.is_none() && fewer.is_none() {
        return None;
    }
    let what = match active {
        Some(_) => "fewer active warps",
        None => "room for fewer blocks",
    };
    let mut parts = Vec::new();
    if let Some(step) = active {
        parts.push(format!(
            "{:.2} % → {:.2} % of those possible",
            step.was, step.is
        ));
    }
    if let Some(((_, was), (by, is))) = fewer {
        let by = by.replace('_', " ");
        parts.push(format!(
            "{was} → {is} blocks fit a multiprocessor, bounded by {by}"
        ));
    }
    if let Some(step) = moved.get(REGISTERS).filter(|step| step.is > step.was) {
        parts.push(format!("registers {} → {} a thread", step.was, step.is));
    }
    Some(format!("{what}: {}", parts.join(", ")))
}

fn more_l2_traffic(moved: &Moved<'_>) -> Option<String> {
    let (name, step, unit) = L2.iter().find_map(|(name, counter, unit)| {
        let step = moved.get(counter).filter(|step| step.grew(1.05))?;
        Some((name, step, unit))
    })?;
    let both = match *unit {
        "" => step.counts(""),
        unit => {
            let shown = |value| display_value(value, Some(unit));
            format!("{} → {}", shown(step.was), shown(step.is))
        }
    };
    Some(format!("more L2 traffic: {name} {}{both}", step.percent()))
}

fn more_dram_traffic(moved: &Moved<'_>) -> Option<String> {
    let all: f64 = DRAM
        .iter()
        .filter_map(|(_, counter)| moved.get(counter))
        .map(|step| step.was)
        .sum();
    let grown: Vec<String> = DRAM
        .iter()
        .filter_map(|(name, counter)| {
            let step = moved.get(counter)?;
            // A few bytes that double are no traffic.
            let grew = step.grew(1.05) && step.is - step.was > 0.05 * all;
            let bytes = |value| display_value(value, Some("byte"));
            grew.then(|| {
                format!(
                    "{name} {}{} → {}",
                    step.percent(),
                    bytes(step.was),
                    bytes(step.is)
                )
            })
        })
        .collect();
    (!grown.is_empty()).then(|| format!("more DRAM traffic: {}", grown.join("; ")))
}

fn more_instructions(moved: &Moved<'_>) -> Option<String> {
    let step = moved.get(INSTRUCTIONS).filter(|step| step.grew(1.01))?;
    Some(format!(
        "more instructions: {}{}",
        step.percent(),
        step.counts("")
    ))
}

fn lower_clock(moved: &Moved<'_>) -> Option<String> {
    let step = moved.get(CLOCK).filter(|step| step.fell(0.995))?;
    // What runs by this clock takes longer by as much; what waits for memory does not.
    let slower = moved
        .get(DURATION_COUNTER)
        .filter(|duration| duration.grew(1.0) && step.is > 0.0)
        .map(|duration| {
            let percent = |ratio: f64| (ratio - 1.0) * 100.0;
            format!(
                ", which alone lengthens the time by at most {:.1} %; it grew by {:.1} %",
                percent(step.was / step.is),
                percent(duration.is / duration.was)
            )
        })
        .unwrap_or_default();
    Some(format!(
        "lower clock: {}{:.0} MHz → {:.0} MHz{slower}",
        step.percent(),
        step.was / 1e6,
        step.is / 1e6
    ))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::judge::metric::Summary;
    use crate::metric::{Direction, Level, Tolerance};
    use crate::verdict::Change;
    use CauseKind::*;

    const WMMA: &str = "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32.sum";
    const WGMMA: &str = "sm__ops_path_tensor_op_hgmma_src_fp16.sum";
    const HMMA: &str = "sm__inst_executed_pipe_tensor_op_hmma.sum";
    const FFMA: &str = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum";
    const FMA_PIPE: &str = "sm__inst_executed_pipe_fma.sum";
    const LOCAL_LOADS: &str = "smsp__inst_executed_op_local_ld.sum";
    const LOCAL_STORES: &str = "smsp__inst_executed_op_local_st.sum";
    const DRAM_READ: &str = "dram__bytes_read.sum";
    const DRAM_WRITE: &str = "dram__bytes_write.sum";

    fn summary(value: f64) -> Summary {
        Summary {
            value,
            launches: 2,
            processes: 1,
            machines: 1,
            within: None,
            between: None,
            spread: None,
        }
    }

    /// As `judge` makes one of a counter that is only recorded.
    pub(in crate::judge) fn comparison(counter: &str, was: f64, is: f64) -> Comparison {
        Comparison {
            kernel: "bsr_gemm_x".to_owned(),
            grid: [64, 64, 1],
            block: [128, 1, 1],
            metric: "m".to_owned(),
            counter: counter.to_owned(),
            unit: None,
            direction: Direction::Equal,
            level: Level::Record,
            exact: false,
            never_zero: false,
            tolerance: Tolerance::Absolute(0.0),
            reference: Some(summary(was)),
            current: Some(summary(is)),
            samples: None,
            change: Some(if was == 0.0 {
                Change::Absolute(is)
            } else {
                Change::RelativePercent((is / was - 1.0) * 100.0)
            }),
            band: None,
            allowance: None,
            threshold: None,
            verdict: None,
            open: false,
            not_worse: false,
            why: String::new(),
        }
    }

    /// The unchanged kernel on one H200: the baseline's counters.
    const BASELINE: [(&str, f64); 12] = [
        (WMMA, 68_719_476_736.0),
        (WGMMA, 0.0),
        (HMMA, 16_777_216.0),
        (FMA_PIPE, 14_811_136.0),
        (INSTRUCTIONS, 50_020_352.0),
        (LOAD_REQUESTS, 2_392_064.0),
        (LOAD_SECTORS, 33_849_344.0),
        (STORED_SECTORS, 8_388_608.0),
        (LOCAL_LOADS, 0.0),
        (LOCAL_STORES, 0.0),
        (BARRIER_STALL, 3.69),
        (CLOCK, 1.755e9),
    ];

    /// All counters of the baseline kernel, exact ones marked, with these changed.
    fn changed(changes: &[(&str, f64)]) -> Vec<Comparison> {
        BASELINE
            .iter()
            .map(|(counter, was)| {
                let now = changes.iter().find(|(name, _)| name == counter);
                let mut comparison = comparison(counter, *was, now.map_or(*was, |(_, is)| *is));
                comparison.exact = ![BARRIER_STALL, CLOCK].contains(counter);
                comparison
            })
            .collect()
    }

    fn of(steps: &[(&str, f64, f64)]) -> Vec<Comparison> {
        steps
            .iter()
            .map(|(counter, was, is)| comparison(counter, *was, *is))
            .collect()
    }

    fn kinds(comparisons: &[Comparison]) -> Vec<CauseKind> {
        causes(comparisons).iter().map(|cause| cause.kind).collect()
    }

    fn only(comparisons: &[Comparison], kind: CauseKind) -> String {
        let causes = causes(comparisons);
        assert_eq!(causes.len(), 1, "{causes:?}");
        assert_eq!(causes[0].kind, kind);
        causes[0].text.clone()
    }

    #[test]
    fn an_unchanged_kernel_has_no_cause_and_neither_has_its_noise() {
        assert!(causes(&changed(&[])).is_empty());
        assert!(causes(&[]).is_empty());
        let noisy = of(&[
            (BANK_CONFLICTS, 655_668.0, 655_681.0),
            (DRAM_READ, 142.6e6, 142.7e6),
            (DRAM_WRITE, 262.0e6, 262.2e6),
            (CLOCK, 1.755e9, 1.750e9),
            (BARRIER_STALL, 3.69, 4.2),
            (INSTRUCTIONS, 66_568_192.0, 66_568_192.0),
        ]);
        assert!(causes(&noisy).is_empty(), "{:?}", causes(&noisy));
    }

    #[test]
    fn bank_conflicts_of_an_unpadded_tile() {
        let text = only(
            &of(&[
                (BANK_CONFLICTS, 655_668.0, 84_445_144.0),
                (INSTRUCTIONS, 66_568_192.0, 66_568_192.0),
            ]),
            BankConflicts,
        );
        assert_eq!(text, "shared-memory bank conflicts ×129 (0.66 M → 84.45 M)");
    }

    #[test]
    fn few_bank_conflicts_are_no_cause_however_they_grow() {
        let beside = |was, is, counter, executed| {
            kinds(&of(&[
                (BANK_CONFLICTS, was, is),
                (counter, executed, executed),
            ]))
        };
        assert!(beside(12.0, 4_800.0, INSTRUCTIONS, 66_568_192.0).is_empty());
        assert!(beside(0.0, 655_668.0, INSTRUCTIONS, 66_568_192.0).is_empty());
        assert_eq!(beside(0.0, 655_668.0, INSTRUCTIONS, 6e6), [BankConflicts]);
        assert!(beside(0.0, 655_668.0, SHARED_WAVEFRONTS, 66_568_192.0).is_empty());
        // Many, and not twice as many.
        assert!(beside(60e6, 119e6, INSTRUCTIONS, 66_568_192.0).is_empty());
        assert_eq!(
            beside(60e6, 120e6, INSTRUCTIONS, 66_568_192.0),
            [BankConflicts]
        );
        // Without anything to measure them by.
        assert!(kinds(&of(&[(BANK_CONFLICTS, 0.0, 99_999.0)])).is_empty());
        assert_eq!(
            kinds(&of(&[(BANK_CONFLICTS, 0.0, 100_000.0)])),
            [BankConflicts]
        );
    }

    #[test]
    fn register_spills_from_nothing_and_more_of_them() {
        assert_eq!(
            only(&changed(&[(LOCAL_LOADS, 12.3e6)]), RegisterSpills),
            "register spills, or arrays in local memory: local loads 0 → 12.30 M"
        );
        assert_eq!(
            only(
                &of(&[(LOCAL_LOADS, 1e6, 2e6), (LOCAL_STORES, 0.0, 512.0)]),
                RegisterSpills
            ),
            "register spills, or arrays in local memory: local loads 1.00 M → 2.00 M, local stores 0 → 512"
        );
        assert!(
            kinds(&of(&[
                (LOCAL_LOADS, 2e6, 1e6),
                (LOCAL_STORES, 1e6, 1.009e6)
            ]))
            .is_empty()
        );
    }

    #[test]
    fn tensor_cores_that_are_lost_altogether() {
        let lost = changed(&[(WMMA, 0.0), (HMMA, 0.0), (FMA_PIPE, 1.1e9)]);
        let causes = causes(&lost);
        assert_eq!(kinds(&lost), [LostTensorCores, LessWork]);
        assert_eq!(
            causes[0].text,
            "tensor cores no longer used: 68.72 GFLOP → 0 FLOP, FMA instructions 14.81 M → 1.10 G"
        );
        // The same operations on the other units are no less work.
        let mut moved = changed(&[(WMMA, 0.0), (HMMA, 0.0)]);
        let mut ffma = comparison(FFMA, 0.0, 34_359_738_368.0);
        ffma.exact = true;
        moved.push(ffma);
        assert_eq!(kinds(&moved), [LostTensorCores]);
        // Whichever of the two was measured.
        assert_eq!(kinds(&of(&[(HMMA, 16_777_216.0, 0.0)])), [LostTensorCores]);
        assert_eq!(
            kinds(&of(&[(WMMA, 6.9e10, 0.0)])),
            [LostTensorCores, LessWork]
        );
    }

    #[test]
    fn tensor_cores_that_are_lost_in_part_only_where_others_do_their_work() {
        let part = [(WMMA, 51_539_607_552.0), (HMMA, 12_582_912.0)];
        assert_eq!(kinds(&changed(&part)), [LessWork]);
        let with_fma = [part[0], part[1], (FMA_PIPE, 280e6)];
        let causes = causes(&changed(&with_fma));
        assert_eq!(causes.len(), 2);
        assert_eq!(
            causes[0].text,
            "tensor cores used less: 68.72 GFLOP → 51.54 GFLOP, FMA instructions 14.81 M → 280.00 M"
        );
        assert_eq!(
            kinds(&of(&[(HMMA, 100.0, 91.0), (FMA_PIPE, 100.0, 200.0)])),
            []
        );
    }

    #[test]
    fn other_tensor_instructions_are_no_loss() {
        // WMMA to WGMMA: the operations move to another counter, and each instruction does more.
        let wgmma = changed(&[
            (WMMA, 0.0),
            (WGMMA, 68_719_476_736.0),
            (HMMA, 131_072.0),
            (FMA_PIPE, 20e6),
        ]);
        assert!(causes(&wgmma).is_empty(), "{:?}", causes(&wgmma));
        // fp16 to bf16, whose counter is not measured: fewer operations are counted, and the
        // tensor cores are as busy.
        let bf16 = changed(&[(WMMA, 0.0), (FMA_PIPE, 20e6)]);
        assert_eq!(kinds(&bf16), [LessWork]);
    }

    #[test]
    fn a_total_and_its_parts_count_once() {
        let counters = of(&[
            ("sm__ops_path_tensor_op_hmma_src_fp16.sum", 4e9, 2e9),
            (WMMA, 4e9, 2e9),
            (
                "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum",
                4e9,
                2e9,
            ),
        ]);
        assert_eq!(
            only(&counters, LessWork),
            "less work: operations -50.0 %, 4.00 GFLOP → 2.00 GFLOP"
        );
    }

    #[test]
    fn work_that_changed_either_way() {
        assert_eq!(
            only(&changed(&[(WMMA, 51_539_607_552.0)]), LessWork),
            "less work: operations -25.0 %, 68.72 GFLOP → 51.54 GFLOP"
        );
        assert_eq!(
            only(&changed(&[(STORED_SECTORS, 16_777_216.0)]), MoreWork),
            "more work: sectors stored +100.0 %, 8.39 M → 16.78 M"
        );
        assert_eq!(
            kinds(&changed(&[
                (WMMA, 51_539_607_552.0),
                (STORED_SECTORS, 16_777_216.0)
            ])),
            [LessWork, MoreWork]
        );
        assert_eq!(
            only(&changed(&[(WMMA, 68_719_476_735.0)]), LessWork),
            "less work: operations 68719476736 → 68719476735 FLOP"
        );
        // Not exact: the data decide.
        assert!(kinds(&of(&[(FFMA, 1e9, 1.005e9)])).is_empty());
        assert_eq!(kinds(&of(&[(FFMA, 1e9, 1.02e9)])), [MoreWork]);
    }

    #[test]
    fn loads_that_are_no_longer_coalesced() {
        assert_eq!(
            only(&changed(&[(LOAD_SECTORS, 67_698_688.0)]), Uncoalesced),
            "uncoalesced global loads: 14.15 → 28.30 sectors a request (sectors 33.85 M → 67.70 M)"
        );
        // Sectors alone, and sectors with as many more requests.
        let text = "global loads touch more sectors: ×2.0 (33.85 M → 67.70 M)";
        assert_eq!(
            only(
                &of(&[(LOAD_SECTORS, 33_849_344.0, 67_698_688.0)]),
                Uncoalesced
            ),
            text
        );
        assert_eq!(
            only(
                &changed(&[(LOAD_SECTORS, 67_698_688.0), (LOAD_REQUESTS, 4_784_128.0)]),
                Uncoalesced
            ),
            text
        );
        assert!(causes(&changed(&[(LOAD_SECTORS, 40_000_000.0)])).is_empty());
    }

    #[test]
    fn wider_loads_are_not_uncoalesced() {
        assert!(causes(&changed(&[(LOAD_REQUESTS, 598_016.0)])).is_empty());
        // Half of the work with as many sectors is.
        assert_eq!(
            kinds(&changed(&[
                (LOAD_REQUESTS, 1_196_032.0),
                (WMMA, 34_359_738_368.0),
                (HMMA, 8_388_608.0),
            ])),
            [LessWork, Uncoalesced]
        );
        // Half of the work with half of everything is not.
        assert_eq!(
            kinds(&changed(&[
                (LOAD_REQUESTS, 598_016.0),
                (LOAD_SECTORS, 16_924_672.0),
                (WMMA, 34_359_738_368.0),
                (HMMA, 8_388_608.0),
            ])),
            [LessWork]
        );
    }

    #[test]
    fn barrier_waits_by_points_and_by_half() {
        assert_eq!(
            only(&changed(&[(BARRIER_STALL, 12.1)]), BarrierWaits),
            "warps wait at barriers: 3.69 % → 12.10 % of the time they are active"
        );
        // Doubled and few points; many points and not by half.
        assert!(kinds(&changed(&[(BARRIER_STALL, 8.6)])).is_empty());
        assert!(kinds(&of(&[(BARRIER_STALL, 40.0, 50.0)])).is_empty());
        assert_eq!(kinds(&of(&[(BARRIER_STALL, 40.0, 61.0)])), [BarrierWaits]);
    }

    #[test]
    fn instructions_and_clock_and_traffic() {
        assert_eq!(
            only(&changed(&[(INSTRUCTIONS, 66_568_192.0)]), MoreInstructions),
            "more instructions: +33.1 %, 50.02 M → 66.57 M"
        );
        assert!(kinds(&changed(&[(INSTRUCTIONS, 50_500_000.0)])).is_empty());
        assert_eq!(
            only(&changed(&[(CLOCK, 1.620e9)]), LowerClock),
            "lower clock: -7.7 %, 1755 MHz → 1620 MHz"
        );
        assert!(kinds(&changed(&[(CLOCK, 1.747e9)])).is_empty());
        assert_eq!(kinds(&changed(&[(CLOCK, 1.746e9)])), [LowerClock]);
        let dram = of(&[(DRAM_READ, 142.6e6, 285.2e6), (DRAM_WRITE, 262e6, 262e6)]);
        assert_eq!(
            only(&dram, MoreDramTraffic),
            "more DRAM traffic: DRAM reads +100.0 %, 142.60 MB → 285.20 MB"
        );
        // Few bytes beside many.
        let few = of(&[(DRAM_READ, 142.6e6, 142.6e6), (DRAM_WRITE, 1e6, 2e6)]);
        assert!(kinds(&few).is_empty());
        assert_eq!(kinds(&of(&[(DRAM_WRITE, 1e6, 2e6)])), [MoreDramTraffic]);
    }

    #[test]
    fn stalls_of_every_form_are_told_in_words_where_they_grew() {
        const MIO: &str = "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio";
        const LONG: &str = "smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct";
        const SELECTED: &str = "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio";
        assert_eq!(
            only(&of(&[(MIO, 0.5, 3.2), (LONG, 30.0, 31.0)]), Stalls),
            "warps wait longer: waiting for the queue to shared memory and special functions (mio throttle) 0.50 → 3.20 cycles an instruction"
        );
        assert_eq!(
            only(&of(&[(LONG, 10.0, 40.0), (MIO, 0.5, 0.9)]), Stalls),
            "warps wait longer: waiting for global or local memory (long scoreboard) 10.00 % → 40.00 % of the time"
        );
        assert!(kinds(&of(&[(SELECTED, 1.0, 9.0)])).is_empty());
        let sampled = of(&[
            ("smsp__pcsamp_warps_issue_stalled_wait", 1000.0, 4000.0),
            ("smsp__pcsamp_warps_issue_stalled_barrier", 9000.0, 9100.0),
        ]);
        assert!(only(&sampled, Stalls).contains("1.00 k → 4.00 k samples"));
        // Warps, and no cycles.
        let warps = "smsp__warps_issue_stalled_long_scoreboard.avg";
        assert!(kinds(&of(&[(warps, 1.0, 9.0)])).is_empty());
    }

    #[test]
    fn fewer_warps_are_a_cause_with_what_bounds_them() {
        let fewer = of(&[
            (
                "sm__warps_active.avg.pct_of_peak_sustained_active",
                62.5,
                37.5,
            ),
            ("launch__occupancy_limit_registers", 4.0, 3.0),
            ("launch__occupancy_limit_warps", 16.0, 16.0),
            (REGISTERS, 128.0, 168.0),
        ]);
        assert_eq!(
            only(&fewer, LowerOccupancy),
            "fewer active warps: 62.50 % → 37.50 % of those possible, 4 → 3 blocks fit a multiprocessor, bounded by registers, registers 128 → 168 a thread"
        );
        // Fewer would fit, and as many were active.
        let limit = ("launch__occupancy_limit_registers", 4.0, 3.0);
        let active = "sm__warps_active.avg.pct_of_peak_sustained_active";
        assert!(kinds(&of(&[(active, 12.5, 12.5), limit])).is_empty());
        let unknown =
            "room for fewer blocks: 4 → 3 blocks fit a multiprocessor, bounded by registers";
        assert_eq!(only(&of(&[limit]), LowerOccupancy), unknown);
        // A limit that does not bound, and registers that cost no block.
        let same = of(&[
            ("launch__occupancy_limit_registers", 4.0, 4.0),
            ("launch__occupancy_limit_warps", 16.0, 8.0),
            (REGISTERS, 120.0, 128.0),
        ]);
        assert!(kinds(&same).is_empty());
    }

    #[test]
    fn a_lower_clock_says_how_much_of_the_time_it_explains() {
        let slower = of(&[(CLOCK, 1.80e9, 1.71e9), (DURATION_COUNTER, 100e3, 108.1e3)]);
        assert_eq!(
            only(&slower, LowerClock),
            "lower clock: -5.0 %, 1800 MHz → 1710 MHz, which alone lengthens the time by at most 5.3 %; it grew by 8.1 %"
        );
        assert_eq!(
            only(&of(&[("lts__t_bytes.sum", 1e9, 2e9)]), MoreL2Traffic),
            "more L2 traffic: bytes +100.0 %, 1.00 GB → 2.00 GB"
        );
    }

    #[test]
    fn what_moved_within_its_noise_is_no_cause() {
        let mut noisy = comparison(CLOCK, 1.755e9, 1.6e9);
        assert_eq!(kinds(&[noisy.clone()]), [LowerClock]);
        noisy.band = Some(20.0);
        assert!(kinds(&[noisy]).is_empty());
    }

    #[test]
    fn a_regression_of_duration_is_told_with_the_percentages_that_moved_most() {
        let percent = |name: &str, was: f64, points: f64, band: f64| Comparison {
            metric: name.to_owned(),
            unit: Some("%".to_owned()),
            change: Some(Change::Absolute(points)),
            band: Some(band),
            ..comparison(name, was, was + points)
        };
        let mut duration = comparison(DURATION_COUNTER, 100e3, 108.1e3);
        duration.metric = "duration".to_owned();
        let rest = [
            percent("tensor_core", 40.0, -9.0, 0.2),
            percent("dram_bw", 30.0, -2.5, 0.2),
            percent("sm_active", 97.0, -3.0, 5.0),
            percent("l1", 50.0, 0.5, 0.1),
        ];
        let all = |duration: &Comparison| [std::slice::from_ref(duration), &rest[..]].concat();
        assert_eq!(slower(&all(&duration)), None);
        duration.verdict = Some(Verdict::Regressed);
        let (duration, percentages) = slower(&all(&duration)).unwrap();
        assert_eq!(duration, "`duration` +8.10 %");
        assert_eq!(
            percentages,
            ["`tensor_core` -9.00 pt", "`dram_bw` -2.50 pt"]
        );
    }

    #[test]
    fn combined_faults_are_all_named_the_most_telling_first() {
        let mut all = changed(&[
            (CLOCK, 1.6e9),
            (INSTRUCTIONS, 66_568_192.0),
            (BARRIER_STALL, 20.0),
            (LOAD_SECTORS, 67_698_688.0),
            (STORED_SECTORS, 16_777_216.0),
            (WMMA, 34_359_738_368.0),
            (HMMA, 8_388_608.0),
            (FMA_PIPE, 280e6),
            (LOCAL_LOADS, 1e6),
        ]);
        all.extend(of(&[
            (DRAM_READ, 142.6e6, 285.2e6),
            (BANK_CONFLICTS, 655_668.0, 84_445_144.0),
        ]));
        let expected = [
            RegisterSpills,
            LostTensorCores,
            LessWork,
            MoreWork,
            BankConflicts,
            Uncoalesced,
            BarrierWaits,
            MoreDramTraffic,
            MoreInstructions,
            LowerClock,
        ];
        assert_eq!(kinds(&all), expected);
        all.reverse();
        assert_eq!(kinds(&all), expected);
    }

    #[test]
    fn what_cannot_be_compared_moves_nothing() {
        let spilled = comparison(LOCAL_LOADS, 0.0, 1e6);
        let without = |change: fn(&mut Comparison)| {
            let mut comparison = spilled.clone();
            change(&mut comparison);
            kinds(&[comparison])
        };
        assert_eq!(without(|_| ()), [RegisterSpills]);
        assert!(without(|comparison| comparison.change = None).is_empty());
        assert!(without(|comparison| comparison.reference = None).is_empty());
        assert!(without(|comparison| comparison.current = None).is_empty());
        assert!(kinds(&of(&[(LOCAL_LOADS, 0.0, f64::INFINITY)])).is_empty());
        // Under two aliases, and under any.
        let mut twice = changed(&[(WMMA, 51_539_607_552.0)]);
        twice.push(Comparison {
            metric: "another".to_owned(),
            ..twice[0].clone()
        });
        assert!(only(&twice, LessWork).contains("68.72 GFLOP → 51.54 GFLOP"));
    }

    #[test]
    fn kinds_are_written_in_kebab_case() {
        let cause = Cause {
            kind: LostTensorCores,
            text: "t".to_owned(),
        };
        let text = serde_json::to_string(&cause).unwrap();
        assert_eq!(text, r#"{"kind":"lost-tensor-cores","text":"t"}"#);
        assert_eq!(serde_json::from_str::<Cause>(&text).unwrap(), cause);
    }
}
