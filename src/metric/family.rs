//! Counters that come in families, known by parts of their names.

use crate::terms::words;

/// Operations on the tensor cores; what stands between names the types, and before them, in some, the
/// instruction.
const TENSOR_FLOP: (&str, &str) = ("sm__ops_path_tensor_", ".sum");
/// Before the types of the operands.
const SOURCE: &str = "src_";
/// The type that products are added up in where a name does not say it.
const ADDED_UP_IN_FP32: &str = "_dst_fp32";
/// Blocks that one resource lets a multiprocessor run; the rest names the resource.
const BLOCK_LIMIT: &str = "launch__occupancy_limit_";
/// Floating-point instructions of threads; what stands between names the instruction.
const THREAD_FLOP: (&str, &str) = ("smsp__sass_thread_inst_executed_op_", "_pred_on.sum");
/// What the name of a metric contains that describes the machine, the launch or the profiler, and
/// not what the kernel did.
const CIRCUMSTANCE: [&str; 8] =
    words("device__attribute_ profiler__ numa__ nvlink__ c2clink__ launch__ pcsamp_ derived__");

fn between<'c>(counter: &'c str, (before, after): (&str, &str)) -> Option<&'c str> {
    counter.strip_prefix(before)?.strip_suffix(after)
}

/// The path of a counter of FLOP on the tensor cores: `op_hmma_src_fp16_dst_fp32`, or of all
/// instructions `src_fp16`.
fn tensor_flop_path(counter: &str) -> Option<&str> {
    between(counter, TENSOR_FLOP)
}

/// Whether a counter is one of FLOP on the tensor cores.
pub(crate) fn is_tensor_flop(counter: &str) -> bool {
    tensor_flop_path(counter).is_some()
}

/// Whether what a counter of FLOP on the tensor cores counts is a part of what another one counts: a
/// path that goes on after that of the other, or has an instruction where the other has none.
pub(crate) fn is_part_of(counter: &str, other: &str) -> bool {
    let (Some(path), Some(whole)) = (tensor_flop_path(counter), tensor_flop_path(other)) else {
        return false;
    };
    let of_all = |path| str::find(path, SOURCE).map_or("", |at| &path[at..]);
    let goes_on = |path: &str| {
        path.strip_prefix(whole)
            .is_some_and(|rest| rest.starts_with('_'))
    };
    goes_on(path) || path != whole && (of_all(path) == whole || goes_on(of_all(path)))
}

/// The source type of a counter of all operations of that type on the tensor cores: `bf16`, or
/// `fp16_dst_fp16` where they are added up in that type and not in fp32. Counters of one instruction
/// are parts of these.
pub(crate) fn tensor_flop_type(counter: &str) -> Option<&str> {
    tensor_flop_path(counter)?.strip_prefix(SOURCE)?;
    source_type(counter)
}

/// The type of the operands of what a counter counts, on the tensor cores or outside of them; `None` of
/// a counter that is not of one type.
pub(crate) fn source_type(counter: &str) -> Option<&str> {
    match between(counter, THREAD_FLOP) {
        Some("ffma") => return Some("fp32 without tensor cores"),
        Some("dfma") => return Some("fp64 without tensor cores"),
        Some("hfma") => return Some("fp16 without tensor cores"),
        _ => {}
    }
    let (_, types) = tensor_flop_path(counter)?.split_once(SOURCE)?;
    let is_part = types.contains("sparsity") || types.contains("realtime");
    (!is_part).then(|| types.strip_suffix(ADDED_UP_IN_FP32).unwrap_or(types))
}

/// FLOP of one count of a floating-point instruction outside of the tensor cores; `None` of any
/// other counter. A fused multiply-add is two.
pub(crate) fn thread_flop(counter: &str) -> Option<f64> {
    match between(counter, THREAD_FLOP)? {
        "ffma" | "dfma" | "hfma" => Some(2.0),
        "fadd" | "fmul" | "dadd" | "dmul" | "hadd" | "hmul" => Some(1.0),
        _ => None,
    }
}

/// The resource of a counter of how many blocks it lets a multiprocessor run: `registers`.
pub(crate) fn block_limit(counter: &str) -> Option<&str> {
    counter.strip_prefix(BLOCK_LIMIT)
}

/// Whether a counter is how long something took, in any summary over its units.
pub(crate) fn is_time(counter: &str) -> bool {
    counter.starts_with("gpu__time_duration")
}

/// The least and the most, in percent, that a counter of percentages can be; `None` for any other.
///
/// The limits are those of real runs of an H200, with room. In the reports below `tests/data/ncu`
/// (3,354 such values) the maximum over units reaches 101.1, as each unit is counted against one
/// elapsed time and not against its own; a ratio of two counters reaches 100.003, as they were
/// counted in two replay passes; averages end at 98.9, and at 98.2 in 960 launches on nine GPUs of
/// unchanged kernels.
pub fn bounds(counter: &str) -> Option<(f64, f64)> {
    let (_, part) = counter.split_once('.')?;
    if part.contains("max.pct_of_peak_") {
        Some((0.0, 102.0))
    } else if part.contains(".pct_of_peak_") || part == "pct" || part.ends_with(".pct") {
        Some((0.0, 100.5))
    } else {
        None
    }
}

/// Whether a metric describes the machine, the launch or the profiler.
pub(crate) fn is_circumstance(metric: &str) -> bool {
    CIRCUMSTANCE.iter().any(|part| metric.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Role;

    #[test]
    fn families_are_known_by_their_names() {
        let hgmma = "sm__ops_path_tensor_op_hgmma_src_fp16.sum";
        assert_eq!(tensor_flop_path(hgmma), Some("op_hgmma_src_fp16"));
        assert!(is_part_of(hgmma, "sm__ops_path_tensor_src_fp16.sum"));
        let to_fp16 = "sm__ops_path_tensor_src_fp16_dst_fp16.sum";
        for (counter, source) in [
            ("sm__ops_path_tensor_src_bf16_dst_fp32.sum", Some("bf16")),
            (to_fp16, Some("fp16_dst_fp16")),
            ("sm__ops_path_tensor_src_fp8.sum", Some("fp8")),
            ("sm__ops_path_tensor_src_fp8_sparsity_on.sum", None),
            ("sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32.sum", None),
            ("smsp__ops_path_tensor_src_fp8.sum", None),
        ] {
            assert_eq!(tensor_flop_type(counter), source, "{counter}");
        }
        assert_eq!(thread_flop(Role::ThreadFfma.counter()), Some(2.0));
        let integer = "smsp__sass_thread_inst_executed_op_integer_pred_on.sum";
        assert_eq!(thread_flop(integer), None);
        let limit = "launch__occupancy_limit_shared_mem";
        assert_eq!(block_limit(limit), Some("shared_mem"));
        assert!(is_time("gpu__time_duration.max"));
        assert!(is_circumstance("smsp__pcsamp_interval_cycles"));
    }

    #[test]
    fn a_percentage_has_bounds_and_nothing_else_has() {
        let most = "sm__cycles_active.max.pct_of_peak_sustained_elapsed";
        assert_eq!(bounds(most), Some((0.0, 102.0)));
        for counter in [
            "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
            "sm__inst_executed_pipe_alu.sum.pct_of_peak_sustained_active",
            "sm__warps_active.min.pct_of_peak_sustained_active",
            "lts__t_sector_hit_rate.pct",
            "FBSP.TriageCompute.dramc__throughput.avg.pct_of_peak_sustained_elapsed",
        ] {
            assert_eq!(bounds(counter), Some((0.0, 100.5)), "{counter}");
        }
        for counter in [
            "gpu__time_duration.sum",
            "dram__bytes_read.sum",
            "smsp__inst_executed.avg.per_cycle_active",
            "derived__pct_occupancy_per_block_size",
            "l1tex__data_bank_conflicts_pipe_lsu.max",
        ] {
            assert_eq!(bounds(counter), None, "{counter}");
        }
    }
}
