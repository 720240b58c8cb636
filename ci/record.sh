#!/usr/bin/env bash
# Records the profiles that this repository ships, on a GPU machine, with a prebuilt binary:
#
#     ci/record.sh BINARY OUTPUT WHAT...
#
# WHAT is any of
#     profile   every shipped variant, with its captures: to lock, or to judge as a later run
#     worse     bsr_gemm/cp_async without its shared-memory padding, with its captures
#     rounds    three unchanged kernels and the planted slowdowns, side by side with their base
#     unchanged the other variants, unchanged, side by side with themselves
#     some      the fastest of each suite and warp_specialized, in the same way
#     compare   what `compare` reads of the programs of tests/compare.rs
#     faults    the faults that a correct check does not find, each built as cp_async
#
# Works in a clone of this repository and does not change the checkout. ci/recordings/README.md
# says which folder is made from what. Logs and argv are dropped from every profile that is
# complete: nothing in the repository reads them. Those of a measurement that failed stay.
set -eu
gate=$(realpath "${1:?usage: ci/record.sh BINARY OUTPUT WHAT...}")
mkdir -p "${2:?usage: ci/record.sh BINARY OUTPUT WHAT...}"
output=$(realpath "$2")
shift 2
work=$(mktemp -d "${TMPDIR:-/tmp}/record.XXXXXX")
trap 'rm -rf "$work"' EXIT
git clone -q "$(dirname "$0")/.." "$work/project"
cd "$work/project"
unset CI

# At this revision the planted slowdowns have no effect: the same machine code, EXTRA_WORK = 1.
planted_base=0924db763ba2c9208fc0e07a0986b6458717f514

# fault NAME SOURCE DEFINES [blind]: builds cp_async from another source. If the kernel gets another
# name, none is expected. With `blind` the check only runs the program and does not verify numbers.
fault() {
  local settings="source = \"kernels/faults/$2.cu\""
  if [ -n "$3" ]; then settings+=", defines = { $3 }"; fi
  case $3 in *bsr_gemm_cp_async*) settings+=', expect = ["bsr_gemm_cp_async"]' ;; esac
  if [ -n "${4:-}" ]; then
    settings+=', verify_args = ["--mode", "profile", "--launches", "1"]'
    settings+=', profile_args = ["--mode", "profile", "--launches", "{launches}"]'
  fi
  settings=$settings awk '
    /^\[/ { inside = ($0 == "[suite.bsr_gemm]") }
    inside && /^variant\.cp_async = / { $0 = "variant.cp_async = { " ENVIRON["settings"] " }" }
    { print }' config.toml >fault.toml
  "$gate" -C fault.toml profile --output "$output/faults/$1" bsr_gemm/cp_async >"$output/$1.txt" 2>&1 ||
    echo "$1 failed: see $output/$1.txt"
}

for what in "$@"; do
  case $what in
    profile) "$gate" profile --output "$output/profile" ;;
    worse) "$gate" profile --output "$output/worse" --define SMEM_PAD=0 bsr_gemm/cp_async ;;
    rounds)
      # Not every state of this repository has a matching baseline for them: only the samples matter.
      "$gate" check --baseline-ref none --against HEAD --measure-all --output "$output/rounds/aa" \
        bsr_gemm/baseline bsr_gemm/occupancy bsr_gemm/cp_async || true
      "$gate" check --baseline-ref none --against "$planted_base" faults/slower_05 faults/slower_1 faults/slower_2 \
        faults/slower_5 --output "$output/rounds/planted" || true
      ;;
    unchanged)
      "$gate" check --baseline-ref none --against HEAD --measure-all --output "$output/unchanged/aa" \
        bsr_gemm/warp_specialized bsr_gemm/tma bsr_gemm/tma_wgmma attention trajectory_resample \
        trajectory_resample_cached trajectory_resample_dense || true
      ;;
    some)
      "$gate" check --baseline-ref none --against HEAD --measure-all --output "$output/unchanged/aa" \
        bsr_gemm/warp_specialized bsr_gemm/tma_wgmma attention/wgmma trajectory_resample/tma \
        trajectory_resample_cached/tma trajectory_resample_dense/tma || true
      ;;
    compare)
      counted=$(echo l1tex__t_sectors_pipe_lsu_mem_global_op_{ld,st}.sum smsp__inst_executed{,_op_local_ld,_op_local_st}.sum \
        smsp__sass_thread_inst_executed_op_ffma_pred_on.sum \
        sm__ops_path_tensor_src_{bf16_dst_fp32,fp16,fp64,fp8,int1,int8,tf32_dst_fp32}.sum | tr ' ' ,)
      timed=$(echo dram__bytes_{read,write}.sum {dram,sm,lts}__throughput.avg.pct_of_peak_sustained_elapsed \
        gpc__cycles_elapsed.avg.per_second gpu__time_duration.sum l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum \
        launch__registers_per_thread sm__{,pipe_tensor_}cycles_active.avg.pct_of_peak_sustained_elapsed | tr ' ' ,)
      # capture NAME LAUNCHES METRICS
      capture() {
        ncu --config-file off --metrics "$3" --kernel-name regex:^bsr_gemm_ --launch-count "$2" --clock-control none \
          --cache-control all --import-sass no --export "$to/$1" --force-overwrite ./program --m 8192 --n 8192 \
          --k 8192 --blocks-per-row 16 --mode profile --warmup 0 --launches "$2"
        ncu --config-file off --import "$to/$1.ncu-rep" --csv --page raw --print-units base >"$to/$1.csv"
      }
      for program in same/{baseline,cp_async,tma_wgmma} worse/cp_async; do
        to=$output/compare/${program%/*}/bsr_gemm/${program#*/}
        mkdir -p "$to"
        define=()
        [ "${program%/*}" = same ] || define=(-DSMEM_PAD=0)
        nvcc -gencode=arch=compute_90a,code=sm_90a -O3 -std=c++17 -lineinfo "${define[@]}" -o program \
          "kernels/bsr_gemm/${program#*/}.cu" -lcuda
        capture counting 2 "$timed,$counted"
        # Of one program alone.
        [ "$program" = same/cp_async ] || continue
        for process in 1 2 3 4; do capture "capture-$process" 20 "$timed"; done
      done
      ;;
    faults)
      same='KERNEL_NAME = "bsr_gemm_cp_async"'
      fault uncoalesced uncoalesced "$same"
      fault spills spills "$same"
      fault extra_sync extra_sync "$same"
      fault combined bank_conflict "$same, EXTRA_SYNC = 2"
      fault renamed bank_conflict 'KERNEL_NAME = "bsr_gemm_fast_path"'
      fault no_tensor_cores no_tensor_cores ''
      fault less_work less_work "$same" blind
      fault skipped_tail skipped_tail '' blind
      ;;
    *) echo "unknown: $what" >&2 && exit 2 ;;
  esac
done
nvidia-smi -L | tee "$output/gpu.txt"
find "$output" -name profile.json -printf '%h\n' | while IFS= read -r folder; do
  rm -f "$folder"/*.argv "$folder"/*.log
done
