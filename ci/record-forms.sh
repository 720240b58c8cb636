#!/usr/bin/env bash
# Records one small report of every form that the GPUs of this machine can make, with pages of ncu's CSV:
#
#     ci/record-forms.sh OUTPUT
#
# It needs nvcc, ncu and the right to read counters, and no cargo. OUTPUT/forms.tar.gz has what was
# recorded, OUTPUT/forms.txt what failed. For tests/data/ncu/forms, without names of machines:
#
#     tar -xzf forms.tar.gz && sparsek-gate strip forms tests/data/ncu/forms
set -eu
mkdir -p "${1:?usage: ci/record-forms.sh OUTPUT}"
output=$(realpath "$1")
source=$(realpath "$(dirname "$0")/../tests/gpu/forms.cu")
# Reports state the folder that ncu ran in: nobody's.
run=${RUN:-/opt/run}
mkdir -p "$run/forms"
cd "$run"
export HOME=$run LC_ALL=C
exec 3>"$output/forms.txt"
nvcc --version | tail -2 >&3
ncu --version | tail -1 >&3
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader >&3 || true
nvcc -std=c++17 -O2 -lineinfo --extended-lambda -arch=native -o program "$source" -lcuda

# quietly NAME COMMAND...: with a time limit. Says when it failed, and how it ended.
quietly() {
  local name=$1 status=0
  shift
  timeout 60 "$@" || status=$?
  [ "$status" = 0 ] || echo "FAILED ($status) $name: $*" >&3
}

# page NAME REPORT OPTION...: a page of a report.
page() {
  local name=$1 report=$2
  shift 2
  quietly "$name" ncu --config-file off --import "$report" --csv "$@" >"forms/$name.csv" 2>>forms/log.txt
}

# record NAME PROGRAM OPTION...: a report of the program, and its raw page.
record() {
  local name=$1 program=$2 report
  shift 2
  # shellcheck disable=SC2086
  quietly "$name" ncu --config-file off --clock-control none --force-overwrite --export "forms/$name" "$@" \
    $program >>forms/log.txt 2>&1
  for report in "forms/$name".ncu-rep*; do
    [ -e "$report" ] || continue
    page "$name.raw" "$report" --page raw --print-units base
    echo "$(stat -c %s "$report") bytes $report" >&3
    return
  done
  echo "NO REPORT $name" >&3
}

sections=()
for section in $(ncu --config-file off --list-sections | awk 'NR > 2 && $1 ~ /^[A-Z][A-Za-z0-9_]+$/ && $1 != "Identifier" { print $1 }'); do
  sections+=(--section "$section")
done
[ "${#sections[@]}" -gt 0 ] || sections=(--set full)
echo "${#sections[@]} words of sections: ${sections[*]}" >&3
some=gpu__time_duration.sum,sm__cycles_active.avg,sm__inst_executed.sum,dram__bytes.sum,lts__t_sectors.sum

# Templates, lambdas, namespaces without a name, a cluster: seven launches.
record kernels './program kernels' --set basic
record all_sections './program kernels' --launch-skip 4 --launch-count 1 "${sections[@]}"
record full_set './program kernels' --launch-skip 6 --launch-count 1 --set full --import-source yes
record source_counters './program kernels' --launch-skip 1 --launch-count 3 --section SourceCounters --import-source yes
record graph_whole './program graph' --graph-profiling graph --set basic
record graph_nodes './program graph' --graph-profiling node --metrics "$some"
record range_replay './program ranges' --replay-mode range --metrics "$some"
record app_range './program ranges' --replay-mode app-range --metrics "$some"
record application_replay './program nvtx' --replay-mode application --set basic
record pm_sampling './program sampling' --section PmSampling --section PmSampling_WarpStates
record nvtx './program nvtx' --nvtx --nvtx-include 'outer/' --metrics "$some"
record contexts './program contexts' --metrics "$some"
record cooperative './program cooperative' --metrics "$some"
printf '#!/bin/sh\n./program nvtx && ./program cooperative\n' >both
chmod +x both
record processes './both' --target-processes all --metrics "$some"
if [ "$(nvidia-smi --list-gpus | wc -l)" -gt 1 ]; then record devices './program devices' --metrics "$some"; fi

# Every rollup and submetric of a few counters, and whole families of counters.
rollups=
for counter in sm__inst_executed l1tex__m_xbar2l1tex_read_bytes gpu__time_duration sm__cycles_elapsed dram__bytes_read; do
  for rollup in sum avg min max; do
    for submetric in '' .per_second .per_cycle_active .per_cycle_elapsed .peak_sustained .peak_sustained_active \
      .peak_sustained_active.per_second .peak_sustained_elapsed .peak_sustained_elapsed.per_second \
      .pct_of_peak_sustained_active .pct_of_peak_sustained_elapsed; do
      rollups+=$counter.$rollup$submetric,
    done
  done
done
for ratio in smsp__inst_executed_per_warp l1tex__t_sector_hit_rate smsp__thread_inst_executed_per_inst_executed \
  lts__t_sector_hit_rate smsp__average_warps_issue_stalled_barrier_per_issue_active; do
  rollups+=$ratio.ratio,$ratio.max_rate,$ratio.pct,
done
record rollups './program nvtx' --launch-count 1 --metrics "${rollups%,}"
record families './program kernels' --launch-skip 1 --launch-count 1 \
  --metrics 'regex:^(dram__|lts__t_|l1tex__t_|l1tex__data_|sm__inst_executed_pipe_|smsp__average_)'

# What a CSV looks like besides.
kernels=forms/kernels.ncu-rep
[ -e "$kernels" ] || kernels=forms/kernels.ncu-repz
page kernels.details "$kernels" --page details --print-details all
page kernels.details_base "$kernels" --page details --print-units base
page kernels.raw_auto "$kernels" --page raw --print-units auto
page kernels.raw_mangled "$kernels" --page raw --print-kernel-base mangled
page kernels.raw_function "$kernels" --page raw --print-kernel-base function
page kernels.summary_gpu "$kernels" --page details --print-summary per-gpu
page kernels.summary_kernel "$kernels" --page details --print-summary per-kernel
page kernels.session "$kernels" --page session
for report in forms/all_sections.ncu-rep*; do
  page all_sections.instances "$report" --page raw --print-metric-instances values
  page all_sections.details "$report" --page details --print-details all --print-metric-instances details
done
for report in forms/source_counters.ncu-rep*; do page source_counters.source "$report" --page source --print-source sass; done

tar -czf "$output/forms.tar.gz" forms
ls -l "$output" >&3
cat "$output/forms.txt"
cd /
rm -rf "$run/forms" "$run/program" "$run/both"
