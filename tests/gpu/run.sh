#!/usr/bin/env bash
# The tests that need a GPU, nvcc and ncu, in one call with a prebuilt binary:
#
#     cargo build --release && tests/gpu/run.sh target/release/sparsek-gate [OUTPUT [PART...]]
#
# Works in a copy of the repository and does not change the checkout. OUTPUT keeps captures and logs.
# PART is any of gate, chips, sanitizer, inputs, against, contention, python, misbehave, ladder, compare,
# resume, sick, slices, all, slurm, examples and frameworks. Without PART, all of them run but the
# last five: slices, all and slurm take minutes, and the others need CMake, PyTorch and Triton.
set -u
usage="usage: tests/gpu/run.sh BINARY [OUTPUT [PART...]]"
gate=$(realpath "${1:?$usage}")
output=${2:-}
parts=" ${*:3} "
[ "$parts" = "  " ] && parts=" gate chips sanitizer inputs against contention python misbehave ladder compare resume sick "
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/gate.XXXXXX")
[ -n "$output" ] && mkdir -p "$output" && output=$(realpath "$output")
trap 'rm -rf "$work" "$work.programs" "${log:-}" "${answer:-}"' EXIT
# The copy is not a change, even if a pipeline runs for one: no variable of a CI service is passed on.
services='CI|CONTINUOUS_INTEGRATION|GITHUB|GITLAB|BUILDKITE|JENKINS|HUDSON|CHANGE|ghprb|gitlab|TF_BUILD|BUILD_REASON'
services+='|SYSTEM_PULLREQUEST|BITBUCKET|TRAVIS|CIRCLE|DRONE|APPVEYOR|CIRRUS|SEMAPHORE|PROW|PULL|JOB_TYPE|TEAMCITY'
services+='|CF_|BUDDY|BITRISE|CODEBUILD'
while read -r name; do unset "$name"; done < <(compgen -e | grep -E "^($services)" | grep -v '^CUDA')
cp -r "$root/kernels" "$root/tests/gpu" "$work/"
cd "$work" || exit 70
# A key a line, for sed.
python3 gpu/lines.py <"$root/config.toml" >config.toml || exit 70
# Half of the processes, fewer launches and a shorter wait for what hangs: these tests are about the
# stages, not about the numbers.
sed -i -e 's/^processes = 4/processes = 2/' \
  -e 's/^launches = 20$/launches = 8/' \
  -e 's/^verify = { timeout_s = 10 }/verify = { timeout_s = 4 }/' config.toml
# The stages are the same on every Hopper GPU; the pins are about numbers.
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)
sed -i "s/^gpus = .*/gpus = [\"$gpu\"]/" config.toml
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin nvcc -O2 -arch=sm_90a -shared -Xcompiler -fPIC -o gpu/libdouble.so gpu/double.cu || exit 70
printf '.sparsek-gate/\n' >.gitignore
git init -q
commit() { git add -A 2>/dev/null && git -c user.name=tests -c user.email=tests@localhost commit -qm "$1"; }
commit base
# Outside of the project, where it would be a file that programs could read: see `paths.unread`.
log=$(mktemp "${TMPDIR:-/tmp}/gate-log.XXXXXX")
answer=$(mktemp "${TMPDIR:-/tmp}/gate-answer.XXXXXX")
passed=0 failed=0
# Some kernels, for tests of a stage that works with any kernel.
ladder=(bsr_gemm/baseline bsr_gemm/occupancy bsr_gemm/cp_async)
# A kernel of each kind: `check` of the whole project measures all of them.
kernels=(bsr_gemm/{baseline,cp_async} trajectory_resample/tma attention/wgmma)

# For what is told by any kernel, and takes a minute or two with several.
few=(bsr_gemm/cp_async bsr_gemm/occupancy trajectory_resample/tma attention/wgmma)

# expect NAME STATUS TEXT COMMAND...: the command must exit with STATUS and print TEXT.
expect() {
  local name=$1 status=$2 text=$3 start=$SECONDS got
  shift 3
  "$@" >"$log" 2>&1
  got=$?
  local found=not
  { [ -z "$text" ] || grep -qF -- "$text" "$log"; } && found=
  if [ "$got" = "$status" ] && [ -z "$found" ]; then
    passed=$((passed + 1))
    echo "ok    $name ($((SECONDS - start)) s)"
  else
    failed=$((failed + 1))
    echo "FAIL  $name: status $got (expected $status), \"$text\" $found in the output"
    sed 's/^/      | /' "$log" | tail -25
  fi
  [ -n "$output" ] && { echo "== $name: status $got"; cat "$log"; } >>"$output/log.txt"
}
# A project whose cp_async is worse, in worse.toml. Without its padding the kernel uses less shared
# memory than is stated: that only warns.
worse() {
  sed '/^\[suite.bsr_gemm.variant.cp_async\]/a defines = { SMEM_PAD = 0 }' config.toml >worse.toml
}
# Copies the kernels, what was built of them, and more, for a project of its own.
copy_to() {
  cp -r kernels "${@:2}" "$1/"
  [ -d .sparsek-gate/builds ] && mkdir "$1/.sparsek-gate" && cp -r .sparsek-gate/builds "$1/.sparsek-gate/"
}
# sanitize GROUP RESULT VARIANT...: every tool must have this result for every variant. Nothing is
# timed, so the tools run at the same time, each in a copy of the project.
sanitize() {
  local group=$1 result=$2 tool tools=(memcheck racecheck initcheck synccheck) runs=() status=0 one
  shift 2
  for tool in "${tools[@]}"; do
    mkdir -p "$work/$group/$tool"
    cp -r config.toml kernels .sparsek-gate "$work/$group/$tool/"
    (cd "$work/$group/$tool" && "$gate" verify --format json --sanitizer "$tool" "$@" >answer.json) &
    runs+=($!)
  done
  for one in "${runs[@]}"; do
    wait "$one" || status=$?
  done
  python3 - "$result" "$#" "${tools[@]/#/$work/$group/}" <<'P' || return 99
import json, sys
expected, variants, *folders = sys.argv[1:]
results = {}
for folder in folders:
    for variant in json.load(open(f"{folder}/answer.json"))["sanitizer"]["variants"]:
        for tool in variant["tools"]:
            results[f"{variant['variant']} {tool['tool']}"] = tool["result"]
other = {name: result for name, result in results.items() if result != expected}
print(f"{len(results)} results, of which not {expected}: {other}")
sys.exit(bool(other) or len(results) != 4 * int(variants))
P
  return "$status"
}
no_process_left() { ! pgrep -af "$work/.sparsek-gate|misbehave.py|sleep 600"; }

command -v ncu >/dev/null || echo "note: ncu is not on the PATH; the tool looks in the usual folders"
nvidia-smi -L

part_gate() {
  expect "every variant builds" 0 "built" "$gate" build --experimental
  expect "an unchanged variant is not built again" 0 "unchanged" "$gate" build
  healthy() { local start=$SECONDS; "$gate" doctor || return; [ $((SECONDS - start)) -lt 10 ]; }
  expect "the doctor finds no problem, in less than 10 s" 0 " 0 warn, 0 fail, 0 skipped" healthy
  sed 's/^cuda = .*/cuda = "12"/; s/^driver = .*/driver = "<500"/' config.toml >pins.toml
  expect "a toolchain that differs from the pins ends the run" 3 "driver: " "$gate" -C pins.toml profile
  expect "and the doctor names it" 3 "toolchain.pins.driver" "$gate" -C pins.toml doctor
  profile_as_json() { "$gate" profile --format json "${kernels[@]}" >"$answer" && cat "$answer"; }
  expect "kernels of each kind are profiled" 0 "tensor_core" profile_as_json
  own_share() {
    python3 - "$answer" <<'P'
import json, sys
answer = json.load(open(sys.argv[1]))
share = 1 - answer["tools_wall_s"] / answer["wall_s"]
print(f"{100 * share:.2f} % of {answer['wall_s']:.2f} s")
sys.exit(not share < 0.05)
P
  }
  expect "the tool's own share of that is below 5 %" 0 "%" own_share
  cat "$log"
  expect "check without a baseline says so" 4 "new-baseline" "$gate" check --from .sparsek-gate/profiles "${kernels[@]}"
  expect "the profiles are locked" 0 "locked" "$gate" baseline --lock --reason "first measurement" --who tests "${kernels[@]}"
  expect "the shared memory of the launches is locked" 0 "dynamic_shared_bytes: 75776.00" cat baselines/*/bsr_gemm/cp_async.norm.txt
  expect "locked numbers are derived again from their captures" 0 "derived again" \
    "$gate" baseline --verify --captures .sparsek-gate/profiles "${kernels[@]}"
  expect "an unchanged kernel passes" 0 "exit code 0" "$gate" check -v cp_async
  grep -q "reused: correct" "$log"
  expect "what the profile verified is not verified again" 0 "" test $? = 0
  [ -n "$output" ] && cp -r .sparsek-gate/profiles "$work/second"

  worse
  expect "a kernel made worse fails" 1 "regressed" "$gate" -C worse.toml check cp_async
  wrong_shape() {
    sed 's/^dynamic_shared_bytes = 75776/dynamic_shared_bytes = 1024/' config.toml >shape.toml
    "$gate" -C shape.toml profile cp_async
  }
  expect "a launch that differs from the stated one is reported, and counts" 0 "but was launched with 75776: the launch counts" wrong_shape
  for fault in wrong_numbers skipped_tail less_work race; do
    expect "$fault fails before anything is timed" 5 "wrong-numbers" "$gate" profile "faults/$fault"
  done
  expect "profiled_less passes its verification" 0 "" "$gate" verify faults/profiled_less
  expect "and fails where it is measured" 5 "wrong-numbers" "$gate" profile faults/profiled_less
  for fault in crash out_of_bounds; do
    expect "$fault fails" 5 "program-failed" "$gate" profile "faults/$fault"
  done
  expect "a hanging kernel is killed at its time limit" 5 "timed-out" "$gate" profile hang
  expect "it leaves no process behind" 0 "" no_process_left

  cp -r baselines edited
  sed -i 's/^duration: ./duration: 9/' baselines/*/bsr_gemm/baseline.norm.txt
  expect "an edited baseline is found" 4 "tampered" "$gate" check bsr_gemm/baseline --from .sparsek-gate/profiles
  rm -rf baselines && mv edited baselines
  sed 's/^\[metric.dram_bw\]/&\ncounter = "dram__throughputt.avg.pct_of_peak_sustained_elapsed"/' config.toml >unknown.toml
  rm -rf .sparsek-gate/profiles
  expect "an unknown metric ends the run before any kernel" 2 "did you mean" "$gate" -C unknown.toml profile
  expect "and nothing was profiled" 0 "" test ! -e .sparsek-gate/profiles
}

# Every short name that docs/counters.md says this chip has, the first gate of README, and lower
# precision.
part_chips() {
  cp config.toml chips.toml
  local name
  # The fourth cell is "all", "all but" chips, or chips. 9.0 is Hopper.
  for name in $(awk -F ' [|] ' '/^[|] `/ && ($4 ~ /^all/) != ($4 ~ /9\.0/) { gsub(/[|` ]/, "", $1); print $1 }' "$root/docs/counters.md"); do
    grep -q "^\[metric\.$name\]" chips.toml && continue
    printf '[metric.%s]\nlevel = "record"\n' "$name" >>chips.toml
  done
  profile_chips() { "$gate" -C chips.toml profile --format json --output chips bsr_gemm/{cp_async,tma_wgmma} >"$answer" && cat "$answer"; }
  expect "every short name of this chip is configured" 0 "" "$gate" -C chips.toml list
  expect "and measured" 0 "tensor_flop_bf16" profile_chips
  shown_chips() { cat chips/bsr_gemm/*/*.norm.txt chips/*.norm.txt 2>/dev/null; grep -o '"wgmma_instructions"' -m1 "$answer"; }
  shown_chips | sort -u | head -80
  rm -rf chips chips.toml "$work.first" && mkdir "$work.first" && cd "$work.first" || exit 70
  mkdir kernels && cp "$root/tests/gpu/softmax.cu" kernels/ || exit 70
  sed -n '/^```toml/,/^```$/p' "$root/README.md" | sed '1d;/^```$/,$d' >config.toml
  printf '[profile]\nclock_control = "none"\n' >>config.toml
  cat config.toml
  expect "the first gate of README is profiled" 0 "softmax/cuda" "$gate" profile
  expect "and locked" 0 "locked" "$gate" baseline --lock --reason "first measurement" --who tests
  expect "and passes" 0 "exit code 0" "$gate" check
  rm config.toml
  expect "a new configuration is for this GPU" 0 "wrote config.toml" "$gate" init
  expect "and names its target" 0 'arch = "sm_90a"' grep '^arch' config.toml
  sed -i 's/sm_90a/sm_80/; s/^clock_control = "base"/clock_control = "none"/' config.toml
  sed -i 's#kernels/example.cu#kernels/softmax.cu#' config.toml
  expect "another target is refused with that of this GPU" 3 'arch = "sm_90a"' "$gate" profile cuda
  if has_torch "lower precision"; then
    local precision="python3 $root/tests/gpu/precision.py"
    expect "fp8 in place of bf16 is other work" 4 "bf16 → fp8" "$gate" compare "$precision bf16" "$precision fp8" --kernels product
    cat "$log"
    expect "tf32 in place of fp32 is other work" 4 "fp32 without tensor cores → tf32" "$gate" compare "$precision fp32" "$precision tf32" --kernels product
    cat "$log"
  fi
  cd "$work" || exit 70
}

part_sanitizer() {
  # The same for two halves at once.
  sanitize_halves() {
    local result=$1 first=${*:2:6} other
    # shellcheck disable=SC2086 # names of variants, without spaces
    sanitize first "$result" $first &
    other=$!
    sanitize second "$result" "${@:8}" && wait "$other"
  }
  # Runs a command beside the others; `ended` waits for it, prints what it printed, and ends as it did.
  begin() {
    local name=$1
    shift
    ("$@" >"$work/$name.log" 2>&1; echo $? >"$work/$name.status") &
    begun_as[$name]=$!
  }
  ended() {
    wait "${begun_as[$1]}"
    cat "$work/$1.log"
    return "$(<"$work/$1.status")"
  }
  # In a copy of the project, because two runs in one project disturb each other.
  in_copy() {
    local folder
    folder=$(mktemp -d -p "$work")
    cp -r config.toml kernels .sparsek-gate "$folder/" && cd "$folder" && "$@"
  }
  local -A begun_as=()
  "$gate" build --experimental >>"$log" 2>&1
  begin slow sanitize slow clean faults/bank_conflict faults/uncoalesced faults/spills faults/extra_sync faults/no_tensor_cores
  expect "the shipped kernels are clean under every tool" 0 "24 results" sanitize_halves clean \
    bsr_gemm/{baseline,occupancy,cp_async,warp_specialized,tma,tma_wgmma} \
    trajectory_resample/{baseline,warp_optimized,tma} attention/{scalar,wmma,wgmma,overlap}
  expect "the slow ones too" 0 "20 results" ended slow
  begin wrong sanitize wrong clean faults/wrong_numbers faults/skipped_tail faults/less_work
  begin race in_copy "$gate" verify --sanitizer racecheck faults/race
  begin bounds in_copy "$gate" verify --sanitizer memcheck faults/out_of_bounds
  begin crash in_copy "$gate" verify --sanitizer memcheck faults/crash
  expect "the sanitizer reports no error for wrong numbers" 5 "12 results" ended wrong
  expect "a race is found by racecheck" 5 "racecheck found" ended race
  expect "a write out of bounds is found by memcheck, with its line" 5 "in bsr_gemm_out_of_bounds at out_of_bounds.cu:" \
    ended bounds
  expect "a crash is found by memcheck" 5 "in bsr_gemm_crash at " ended crash
  asked() {
    sed 's/^\[verify\]/&\nsanitizer = ["racecheck"]/' config.toml >asked.toml
    "$gate" -C asked.toml profile faults/race
  }
  expect "a tool that the configuration asks for runs before any profile" 5 "racecheck found" asked
  expect "and nothing was profiled" 0 "" test ! -e .sparsek-gate/profiles/faults/race/profile.json
  sed 's|^\[toolchain\]|&\ncompute_sanitizer = "nowhere"|' config.toml >missing.toml
  expect "a missing compute-sanitizer is reported" 3 "which is no program" \
    "$gate" -C missing.toml verify --sanitizer memcheck cp_async
}

# Inputs that the suites do not measure: every kernel is right on them, and clean under every tool.
part_inputs() {
  local bsr=(bsr_gemm/{naive,wmma,baseline,occupancy,cp_async,ldmatrix,tma})
  local rings=(bsr_gemm/{producers,persistent,warp_specialized})
  local bf16=(bsr_gemm/{naive,wmma,ldmatrix,producers,persistent})
  local resample=(trajectory_resample{,_cached,_dense}/{baseline,warp_optimized,tma})
  local attention=(attention/{scalar,wmma,wgmma,overlap} attention_causal/{mma,wgmma,overlap})
  "$gate" build --experimental >>"$log" 2>&1
  mkdir inputs && copy_to inputs
  # Block-rows of 0 to 16 blocks, drawn anew, their columns in any order; times near each other and
  # far apart, in any order; some queries and keys far larger. Under the tools an odd number of
  # block-rows, rings that are used again, and trajectories with far more and far fewer targets than
  # samples.
  local drawn='"--seed", "{seed}", "--mode", "check"'
  sed -e "/^\[suite\.[a-z_]*\]/,/^$/s/\"--mode\", \"check\"/$drawn/" \
    -e '/^\[suite\.bsr_gemm\]/,/^$/{s/"--mode", "check"/"--irregular", "1", "--shuffled-columns", "1", &/
s/"--m", "256", "--n", "256"/"--m", "896", "--n", "512"/; s/"--blocks-per-row", "6"/"--blocks-per-row", "16"/}' \
    -e '/^\[suite\.trajectory_resample\]/,/^$/s/"--mode", "check"/"--times", "lognormal", "--shuffled", "1", &/' \
    -e '/^\[suite\.trajectory_resample_[a-z]*\]/,/^$/s/"--mode", "check"/"--times", "bursty", "--shuffled", "1", &/' \
    -e '/^\[suite\.trajectory_resample_cached\]/,/^$/s/"--steps", "37"/"--steps", "700"/' \
    -e '/^\[suite\.trajectory_resample_dense\]/,/^$/s/"--batch", "2", "--steps", "37", "--targets", "65", "--features", "64"/"--batch", "2200", "--steps", "4", "--targets", "64", "--features", "8"/' \
    -e '/^\[suite\.attention[a-z_]*\]/,/^$/s/"--mode", "check"/"--outliers", "1", &/' \
    -e '/^\[suite\.attention_causal\]/,/^$/s/"--sequence", "256"/"--sequence", "640"/' \
    config.toml >inputs/config.toml
  cd inputs || return
  expect "the inputs are in the configuration" 0 "12" grep -c '"--irregular"\|"--times"\|"--outliers"' config.toml
  expect "and those for the tools" 0 "5" \
    grep -c '"--m", "896".*"--blocks-per-row", "16"\|"--steps", "700"\|"--batch", "2200"\|"--sequence", "640"\|^verify_args.*"--irregular".*"{seed}"' config.toml
  expect "every kernel is right on inputs that are irregular, shuffled or far larger" 0 "26/26" \
    "$gate" verify "${bsr[@]}" "${rings[@]}" "${resample[@]}" "${attention[@]}"

  # edited SED FILE...: edits the files; fails where one stays as it is.
  edited() {
    local file
    for file in "${@:2}"; do
      cp "$file" "$work/unedited" && sed -i "$1" "$file"
      cmp -s "$file" "$work/unedited" && echo "$file was not edited" && return 1
    done
    rm "$work/unedited"
  }
  # copy FOLDER: of this project. within FOLDER COMMAND...
  copy() { mkdir "$1" && copy_to "$1" && cp config.toml "$1/"; }
  within() { (cd "$1" && "${@:2}"); }

  # Two thread blocks take all tiles, so that each goes on with another tile.
  copy again
  expect "in a copy two thread blocks take all tiles" 0 "" \
    edited 's/^inline int persistent_grid(int tiles, int resident) {/&\n  resident = 2;/' again/kernels/common/grid.cuh
  sanitize_families() {
    local runs=() run status=0
    sanitize inputs_bsr clean "${bsr[@]}" & runs+=($!)
    sanitize inputs_resample clean "${resample[@]}" & runs+=($!)
    sanitize inputs_attention clean "${attention[@]}" & runs+=($!)
    for run in "${runs[@]}"; do wait "$run" || status=$?; done
    return "$status"
  }
  expect "all kernels but three are clean under every tool" 0 "36 results" within again sanitize_families
  expect "producers, persistent and warp_specialized are clean under all but racecheck" 0 "" \
    within again "$gate" verify --sanitizer memcheck,initcheck,synccheck "${rings[@]}"
  # A lane that arrives for its warp, after __syncwarp, orders the reads of all its lanes. racecheck
  # takes it for the reads of that lane alone: kernels/README.md.
  expect "racecheck reports what is no race: one lane arrives for its warp" 5 "racecheck found" \
    within again "$gate" verify --sanitizer racecheck "${rings[@]}"
  every_lane_arrives='s/if (lane == 0) \(sparsek::barrier_arrive(empty\)/\1/
s/\(barrier_init(empty + stage, \)kConsumers/\132 * kConsumers/'
  expect "in a copy every lane arrives" 0 "" \
    edited "$every_lane_arrives" again/kernels/bsr_gemm/{producers,persistent,warp_specialized}.cu
  expect "and they are clean under racecheck" 0 "12 results" within again sanitize inputs_rings clean "${rings[@]}"

  # set_constants CONSTANTS SUITE VARIANT...: a script for sed that builds these variants with constants.
  set_constants() {
    printf '/^\[suite\\.%s\\.variant\\.\\(%s\\)\\]/a defines = { %s }\n' "$2" "$(IFS='|' && sed 's/|/\\|/g' <<<"${*:3}")" "$1"
  }
  copy bf16
  expect "a copy is in bf16" 0 "" \
    edited "$(set_constants 'ELEMENT_BF16 = 1' bsr_gemm naive wmma ldmatrix producers persistent)" bf16/config.toml
  expect "kernels for fp16 and bf16 are right in bf16" 0 "5/5" within bf16 "$gate" verify "${bf16[@]}"
  expect "every lane arrives there, too" 0 "" edited "$every_lane_arrives" bf16/kernels/bsr_gemm/{producers,persistent}.cu
  expect "and they are clean under every tool" 0 "20 results" within bf16 sanitize inputs_bf16 clean "${bf16[@]}"

  { set_constants 'STAGES = 2, COLUMN_AHEAD = 1' bsr_gemm cp_async
    set_constants 'STAGES = 3, SWIZZLE = 0, COLUMN_AHEAD = 1' bsr_gemm ldmatrix
    set_constants 'STAGES = 2, SWIZZLE = 0' bsr_gemm producers persistent warp_specialized tma
    set_constants 'KEYS = 256' attention wgmma overlap
    set_constants 'PING_PONG = 0' attention_causal overlap
    echo '/^\[suite\.attention\]/,/^$/s/"--sequence", "512"/"--sequence", "256"/'
  } >constants.sed
  sed -f constants.sed config.toml >constants.toml
  expect "other constants are in the configuration" 0 "9" grep -c '^defines.*\(STAGES\|KEYS\|PING_PONG\) = ' constants.toml
  expect "kernels are right with other constants" 0 "9/9" "$gate" -C constants.toml verify \
    bsr_gemm/{cp_async,ldmatrix,producers,persistent,warp_specialized,tma} attention/{wgmma,overlap} attention_causal/overlap
  { set_constants 'STAGES = 1' bsr_gemm cp_async ldmatrix producers persistent warp_specialized tma tma_wgmma
    set_constants 'STAGES = 1' attention_causal wgmma overlap
  } >constants.sed
  sed -f constants.sed config.toml >one_stage.toml
  none_compiles() {
    local status=0
    "$gate" -C one_stage.toml build "${rings[@]}" bsr_gemm/{cp_async,ldmatrix,tma,tma_wgmma} \
      attention_causal/{wgmma,overlap} >"$answer" 2>&1 || status=$?
    cat "$answer"
    [ "$(grep -c 'static assertion failed' "$answer")" = 9 ] && return "$status"
  }
  expect "a ring of one stage does not compile" 5 "" none_compiles

  expect "a number of blocks that tma_wgmma cannot hold is refused before any launch" 5 \
    "this kernel's registers take an even number from 6 to 16" "$gate" verify bsr_gemm/tma_wgmma
  copy even
  expect "in a copy every block-row has an even number of blocks from 6 to 16" 0 "" edited \
    's/count = draw_below(most + 1)/count = 6 + 2 * draw_below(6)/; s/counts\[empty\] = 0/counts[empty] = 6/' \
    even/kernels/bsr_gemm/problem.cuh
  expect "tma_wgmma is right on these" 0 "correct" within even "$gate" verify bsr_gemm/tma_wgmma
  expect "and clean under every tool" 0 "4 results" within even sanitize inputs_even clean bsr_gemm/tma_wgmma

  copy keys
  # The values follow the keys, and are as many. Those of the larger keys are 0.
  expect "in a copy the keys that outweigh all others have the value 0" 0 "" \
    edited '/^ *rows\[i\] = /a if (step == kOutlierKeys) rows[count + i] = static_cast<T>(0.0f);' keys/kernels/attention/outliers.cuh
  expect "attention_causal is right where a key with the value 0 outweighs all others" 0 "3/3" \
    within keys "$gate" verify attention_causal/{mma,wgmma,overlap}
  cp ../gpu/one_large_key.cuh keys/kernels/attention/outliers.cuh
  expect "attention is right where the last key outweighs all others" 0 "4/4" \
    within keys "$gate" verify attention/{scalar,wmma,wgmma,overlap}
  expect "in a copy V lies before K" 0 "" edited '/return {q,/{s/ k, v,/ v, k,/};/^ *return {q,$/,/};/{s/ k,$/ V,/;s/ v,$/ k,/;s/ V,$/ v,/}' \
    keys/kernels/{attention,attention_causal}/problem.cuh
  all_refuse() {
    local status=0
    "$gate" verify {attention,attention_causal}/{wgmma,overlap} >"$answer" 2>&1 || status=$?
    cat "$answer"
    [ "$(grep -c 'needs Q, K and V one after another' "$answer")" = 4 ] && return "$status"
  }
  expect "kernels with one tensor map refuse that" 5 "" within keys all_refuse
  cd "$work" && rm -rf inputs inputs_*
}

part_against() {
  if [ ! -d baselines ]; then
    "$gate" profile "${ladder[@]}" >>"$log" 2>&1
    "$gate" baseline --lock --reason "first measurement" --who tests "${ladder[@]}" >>"$log" 2>&1
  fi
  # Files that git does not know are changes.
  commit "the baselines"
  # Side by side with the revision that was committed above: the changes below are not committed.
  cost() {
    local start middle
    sed -i 's/^processes = 2/processes = 4/' config.toml
    start=$EPOCHREALTIME
    "$gate" profile bsr_gemm/cp_async >/dev/null || return
    middle=$EPOCHREALTIME
    "$gate" check -v --against HEAD --measure-all --report "json:$answer" bsr_gemm/cp_async || return
    # How many rounds an answer needs depends on the noise of the day. A profile has 5 processes:
    # four are timed, and one counts.
    python3 -c "
import json
profile = ($middle - $start) / 5
check = ($EPOCHREALTIME - $middle) / json.load(open('$answer'))['spent']['profiled']
print(f'a process of check --against {check:.2f} s, of profile {profile:.2f} s: {check / profile:.2f} times')
raise SystemExit(check > 1.5 * profile)"
  }
  expect "an unchanged kernel passes side by side, a process in at most 1.5 times one of a profile" 0 "times" cost
  tail -1 "$log"
  git checkout -q config.toml
  # Only a locked variant can be `same-program`.
  expect "without a change nothing is measured" 0 "same-program" \
    "$gate" check --against HEAD bsr_gemm/baseline bsr_gemm/cp_async
  expect "no worktree is left behind" 0 "" test "$(git worktree list | wc -l)" = 1
  slower() {
    sed -i '/^\[suite.bsr_gemm.variant.cp_async\]/,/^$/s|^source = .*|source = "kernels/faults/slower.cu"\ndefines = { KERNEL_NAME = "bsr_gemm_cp_async", EXTRA_WORK = 400 }|' config.toml
  }
  git checkout -q config.toml
  slower
  slower_check() { "$gate" check --against HEAD cp_async --report live.json; }
  expect "a kernel made slower by a little fails side by side" 1 "regressed" slower_check
  replay() {
    "$gate" check cp_async --from .sparsek-gate/profiles --report replay.json
    local status=$?
    python3 -c '
import json
live, replay = (json.load(open(name))["variants"] for name in ("live.json", "replay.json"))
assert live == replay' && return "$status"
  }
  expect "the recording gives the same verdict again" 1 "regressed" replay
  git checkout -q config.toml
  expect "a revision that does not exist is rejected" 2 "no such revision" "$gate" check --against nowhere
  worse_base() {
    sed -i '1s/^/#error "the base does not build"\n/' kernels/bsr_gemm/baseline.cu
    commit "a base that does not build"
    git checkout -q HEAD~1 -- kernels
    "$gate" check --against HEAD bsr_gemm/baseline
  }
  expect "a base that does not build is reported, and the stored baseline is used" 0 "base-unavailable" worse_base
}

part_contention() {
  both() { "$gate" profile bsr_gemm/baseline & "$gate" profile bsr_gemm/occupancy; local one=$?; wait $! && return "$one"; }
  expect "two runs on one GPU take turns" 0 "waiting for it" both

  # A process that only has a context on the GPU must be reported too.
  busy() {
    python3 gpu/context.py busy &
    local other=$! status
    while [ ! -e busy ] && kill -0 "$other"; do sleep 0.2; done
    "$gate" profile bsr_gemm/cp_async
    status=$?
    kill "$other"
    return "$status"
  }
  expect "another process on the GPU is reported" 6 "gpu-shared" busy
}

has_torch() {
  if [ -z "${torch:-}" ]; then
    torch=no
    python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null && torch=yes
  fi
  [ "$torch" = yes ] && return
  echo "skip  $1: no PyTorch with CUDA here (pip install torch)"
  return 1
}

part_python() {
  cd gpu || exit 70
  for variant in plain profiler_range graph_as_one graph_nodes; do
    expect "python/$variant is profiled" 0 "8 launches in 2 processes" "$gate" profile "python/$variant"
  done
  expect "two processes under one ncu are one capture" 0 "launches" "$gate" profile python/two_processes
  expect "three processes are three captures" 0 "12 launches" "$gate" profile python/three_processes
  expect "a Python variant is locked" 0 "locked" "$gate" baseline --lock --reason "first measurement" --who tests python/plain
  expect "an unchanged Python variant passes" 0 "exit code 0" "$gate" check python/plain
  cd ..
}

part_misbehave() {
  cd gpu || exit 70
  expect "a program that hangs under ncu is killed" 5 "timed-out" "$gate" profile hangs
  expect "with its grandchildren" 0 "" no_process_left
  expect "a program that crashes under ncu is identified" 5 "" "$gate" profile crashes
  expect "a program that fails under ncu is identified" 5 "program-failed" "$gate" profile fails
  expect "a program without kernels is identified" 5 "kernel-missing" "$gate" profile launches_nothing
  expect "a filter that matches nothing lists the kernels that ran" 5 "double_vector" "$gate" profile filter_matches_nothing
  expect "one launch is measured all the same" 0 "2 launches in 2 processes" "$gate" profile launches_once
  expect "an expected kernel that is missing is named" 5 "another_kernel" "$gate" profile lacks_a_kernel
  cd ..
}

# The counters cannot be denied for real here: a stand-in for ncu answers as documented for a user
# without the permission.
part_ladder() {
  local work_of=$work/ladder
  mkdir "$work_of"
  copy_to "$work_of" gpu
  git show HEAD:config.toml >"$work_of/config.toml"
  cd "$work_of" || exit 70
  # Processes of kernel times differ by up to 0.4 %, more than ncu's: a wider tolerance side by side.
  sed -i -e 's|^\[toolchain\]|[toolchain]\nncu = "gpu/denied-ncu"|' \
    -e 's|against = "0.[0-9]* %"|against = "1 %"|' config.toml
  expect "denied counters fail if no lower tier is accepted" 3 "no-permission" "$gate" profile "${ladder[@]}"
  expect "and ncu was tried once for all variants" 0 "" test "$(wc -l <gpu/denied)" = 1
  expect "the profile names the tier that measured it" 0 '"tier": "kernel-times"' \
    cat .sparsek-gate/profiles/bsr_gemm/cp_async/profile.json
  expect "it cannot be locked if its tier is not accepted" 3 "no-permission" \
    "$gate" baseline --lock --reason "no counters" --who tests "${ladder[@]}"
  sed -i 's|^\[profile\]|[profile]\naccept_tiers = ["kernel-times"]|' config.toml
  printf '.sparsek-gate/\ngpu/denied\n' >.gitignore
  git init -q && commit base
  expect "an accepted tier is profiled, with a warning" 0 "by kernel-times" "$gate" profile "${ladder[@]}"
  cp -r .sparsek-gate/profiles "$work/kernel-times"
  expect "it is locked in a folder of its own" 0 "+kernel-times: locked" \
    "$gate" baseline --lock --reason "no counters" --who tests "${ladder[@]}"
  expect "and derived again from the records" 0 "derived again" \
    "$gate" baseline --verify --captures .sparsek-gate/profiles "${ladder[@]}"
  expect "unchanged kernels pass on it" 0 "kernel-times without counters" "$gate" check -v "${ladder[@]}"
  expect "and side by side" 0 "exit code 0" "$gate" check --against HEAD bsr_gemm/cp_async
  sed 's|^ncu = .*||' config.toml >counters.toml
  expect "counters are not compared with it" 4 "(tier counters), and has a baseline only for" \
    "$gate" -C counters.toml check bsr_gemm/baseline
  sed '/^\[suite.bsr_gemm.variant.cp_async\]/a defines = { SMEM_PAD = 0 }' config.toml >worse.toml
  expect "a kernel made slower fails on it" 1 "regressed" "$gate" -C worse.toml check cp_async
  sed -i '/^\[suite.bsr_gemm.variant.cp_async\]/,/^$/s|^source = .*|source = "kernels/faults/slower.cu"\ndefines = { KERNEL_NAME = "bsr_gemm_cp_async", EXTRA_WORK = 400 }|' config.toml
  expect "and one made slower by a little, side by side" 1 "regressed" "$gate" check --against HEAD cp_async
  git checkout -q config.toml

  sed -e 's|^\[toolchain\]$|&\ncupti = "/nowhere/libcupti.so"|' config.toml >times.toml
  expect "without CUPTI nothing is measured" 3 "no-permission" "$gate" -C times.toml profile bsr_gemm/cp_async
  sed 's|"kernel-times"|"static"|' times.toml >code.toml
  expect "the static tier alone passes if it is accepted" 0 "cp_async (static)" \
    "$gate" -C code.toml check -v bsr_gemm/cp_async

  # After an idle time, as under ncu, a GPU runs a launch slower than without it, whatever is in its
  # caches. So both are measured after an idle time.
  agree() {
    sed -i -e 's|for (.*options.launches; ++i) launch();|for (std::int64_t i = 0; i < options.launches; ++i) { usleep(20000); launch(); }|' \
      -e '0,/^#include </s||#include <unistd.h>\n&|' kernels/common/harness.cuh
    grep -q usleep kernels/common/harness.cuh || { echo "kernels/common/harness.cuh has no loop of launches to pause in" && return 1; }
    local cache status
    "$gate" profile bsr_gemm/cp_async --output "$work/paused" || return
    sed -i -e '/^accept_tiers/d' -e '/^ncu = /d' config.toml
    for cache in all none; do
      sed -i "s/^cache_control = \"[a-z]*\"/cache_control = \"$cache\"/" config.toml
      "$gate" profile bsr_gemm/cp_async --output "$work/ncu-$cache" || return
    done
    python3 - "$work" <<'P'
import json, sys
work, apart = sys.argv[1], 0
def duration_us(folder):
    profile = json.load(open(f"{work}/{folder}/bsr_gemm/cp_async/profile.json"))
    return profile["kernels"][0]["metrics"]["duration"]["value"] / 1e3
for recorded, how in (("paused", "with pauses"), ("kernel-times", "in a row")):
    for cache in ("all", "none"):
        ours, ncu = duration_us(recorded), duration_us(f"ncu-{cache}")
        change = 100 * (ours / ncu - 1)
        if recorded == "paused":
            apart = max(apart, abs(change))
        print(f"cp_async {how}: {ours:.1f} us, by ncu with cache_control {cache} {ncu:.1f} us: {change:+.2f} %")
print(f"at most {apart:.2f} % apart")
sys.exit(not apart <= 3)
P
    status=$?
    git checkout -q .
    return "$status"
  }
  expect "recorded times agree with those of ncu" 0 "apart" agree
  grep "cache_control\|apart" "$log"

  cd gpu || exit 70
  sed -i -e 's|^\[toolchain\]|[toolchain]\nncu = "denied-ncu"|' -e 's|^\[profile\]|[profile]\naccept_tiers = ["kernel-times"]|' \
    -e 's|relative_percent = 5.0|relative_percent = 20.0|' config.toml
  for variant in plain two_processes; do
    expect "python/$variant is profiled by its records" 0 "by kernel-times" "$gate" profile "python/$variant"
  done
  expect "a selection that only ncu supports is reported" 3 "a whole CUDA graph" "$gate" profile python/graph_as_one
  expect "a Python variant is locked" 0 "locked" "$gate" baseline --lock --reason "no counters" --who tests python/plain
  expect "an unchanged Python variant passes" 0 "exit code 0" "$gate" check python/plain
  # Wall times of whole processes: they vary more than what is asked for, so only where it is asked for.
  if [ -n "${TURNS:-}" ]; then
    local injection cupti
    injection=$(ls "$PWD"/.sparsek-gate/cupti/injection-*.so)
    cupti=$(ls /usr/local/cuda/lib64/libcupti.so.1[2-9] 2>/dev/null | tail -1)
    wait "$compiling"
    expect "recording costs a program of a third of a second less than 5 %" 0 "recorded" \
      python3 injected.py "$injection" "$cupti" "$TURNS" "$work.programs/old" --m 8192 --n 8192 --k 8192 \
      --blocks-per-row 16 --mode profile --launches 20
    cat "$log"
    if has_torch "the cost of recording a PyTorch program"; then
      expect "recording costs a PyTorch program less than 5 %" 0 "recorded" \
        python3 injected.py "$injection" "$cupti" "$TURNS" python3 torch_double.py --launches 1000
      cat "$log"
    fi
  fi
  cd ../..
}

# The programs that `compare` compares.
programs() {
  local compile=(nvcc -arch=sm_90a -O3 -std=c++17 -lineinfo "$work/kernels/bsr_gemm/cp_async.cu" -lcuda)
  mkdir -p "$work.programs" && cd "$work.programs" && PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin || return
  "${compile[@]}" -o old && "${compile[@]}" -DSMEM_PAD=0 -o worse
}

part_compare() {
  local built=(--m 4096 --n 4096 --k 4096 --blocks-per-row 8 --mode)
  wait "$compiling" && cd "$work.programs" || exit 70
  measured() { echo "./$1 ${built[*]} profile --warmup 0 --launches {launches}"; }
  local filter=(--kernels regex:^bsr_gemm_)
  expect "a program beside itself passes" 0 "same: " "$gate" compare "$(measured old)" "$(measured old)" "${filter[@]}" --verify "./old ${built[*]} check"
  expect "a slower program fails, and the cause is named" 1 "bank conflicts" \
    "$gate" compare "$(measured old)" "$(measured worse)" "${filter[@]}"
  cat "$log"
  if has_torch "a PyTorch program beside itself"; then
    expect "a PyTorch program beside itself passes" 0 "same: " "$gate" compare \
      "python3 $root/tests/gpu/torch_double.py --launches 40" "python3 $root/tests/gpu/torch_double.py --launches 40"
    cat "$log"
  fi
  nvcc -O2 -arch=sm_90a -o computing "$root/tests/gpu/computing.cu" || exit 70
  local began=$SECONDS
  expect "a program that computes between its launches is the same as itself" 0 "same: " "$gate" compare ./computing ./computing
  cat "$log"
  grep -Eq "fewer start together|one whole turn|one after the other" "$log"
  expect "and gives its turns away meanwhile" 0 "" test $? = 1 -a $((SECONDS - began)) -lt 15
  expect "and is slower if it is after that" 1 "slower: " "$gate" compare ./computing "./computing --slow"
  expect "the kernels of one program" 0 "bsr_gemm_cp_async" "$gate" compare "$(measured old)" "${filter[@]}"
  cat "$log"
  expect "a configuration for what a program launches" 0 "config.toml" "$gate" init -- ./old "${built[@]}" profile --warmup 0 --launches 40
  cd "$work" || exit 70
}

# example NAME FILE SED...: the folder of `examples` as its user would copy it is profiled, locked,
# unchanged, and made slower by a change of FILE.
example() {
  local name=$1 file=$2
  shift 2
  rm -rf "${work:?}/$name"
  cp -r "$root/examples/$name" "$work/$name"
  cd "$work/$name" || exit 70
  sed -i 's/^processes = 4/processes = 2/' config.toml
  expect "examples/$name is profiled" 0 "profiles in" "$gate" profile
  expect "examples/$name is locked" 0 "locked" "$gate" baseline --lock --reason "first" --who tests
  git init -q && commit base
  expect "examples/$name passes unchanged" 0 "exit code 0" "$gate" check
  sed -i "$@" "$file"
  git diff --quiet && echo "FAIL  the change of $file changes nothing" && failed=$((failed + 1))
  expect "examples/$name fails when it is slower" 1 "regressed" "$gate" check
  cat "$log"
  cd "$work" || exit 70
}

# Slices of an archive, the GPUs of this host, and a check that is killed and goes on. One GPU is enough;
# of several, all are measured on.
# A project of its own below the working folder, with all kernels, in which the next parts work.
apart() {
  mkdir -p "$1"
  copy_to "$1" config.toml
  cd "$1" || exit 70
  printf '.sparsek-gate/\n' >.gitignore
  git init -q
}

part_slices() {
  local of_slices=$work/slices sha256 slice
  local some=(bsr_gemm/baseline bsr_gemm/cp_async trajectory_resample/tma attention/wgmma)
  local same=(--against HEAD --measure-all)
  apart "$of_slices"
  expect "every GPU profiles each variant" 0 "launches" "$gate" profile --gpus all "${some[@]}"
  expect "one lock is of all GPUs" 0 "locked" "$gate" baseline --lock --reason "first measurement" --who tests "${some[@]}"
  commit "the baselines"
  expect "an archive is packed" 0 "sha256" "$gate" archive --output "$work.gate.tar.zst" "${same[@]}" "${some[@]}"
  sha256=$(sha256sum "$work.gate.tar.zst")
  local archive=(--archive "$work.gate.tar.zst" --archive-sha256 "${sha256%% *}")
  for slice in 1 2; do
    expect "slice $slice is measured" 0 "is complete" \
      "$gate" profile "${archive[@]}" --slice "$slice/2" --output "$work.slices/$slice"
  done
  expect "together they are one check, and unchanged kernels pass" 0 "exit code 0" \
    "$gate" check --from "$work.slices" "${archive[@]}"
  expect "what a missing slice has is not measured" 6 "slice-unusable" \
    "$gate" check --from "$work.slices/1" "${archive[@]}"
  [ -n "$output" ] && tar czf "$output/slices.tgz" -C "$work.slices" .
  expect "a checkout is measured beside its base, for a check elsewhere" 0 "is complete" \
    "$gate" profile --against HEAD "${some[@]}" --output "$work.there"
  expect "which judges it as a recording" 0 "exit code 0" "$gate" check --from "$work.there" "${some[@]}"
  local alone together
  alone=$SECONDS
  expect "unchanged kernels pass on one GPU" 0 "exit code 0" "$gate" check "${same[@]}" "${some[@]}"
  together=$SECONDS
  expect "and on all GPUs at the same time" 0 "exit code 0" "$gate" check --gpus all "${same[@]}" "${some[@]}" --report together.json
  echo "      on one GPU $((together - alone)) s, on all $((SECONDS - together)) s"
  [ -n "$output" ] && cp together.json "$output/"
  cd "$work" || exit 70
  rm -rf "$of_slices" "$work.slices" "$work.there" "$work.gate.tar.zst"
}

# A check that is killed after its first variant.
part_resume() {
  local same=(--against HEAD --measure-all bsr_gemm/cp_async attention/wgmma)
  apart "$work/resume"
  expect "two kernels are profiled" 0 "launches" "$gate" profile "${same[@]:3}"
  expect "and locked" 0 "locked" "$gate" baseline --lock --reason "first measurement" --who tests "${same[@]:3}"
  commit "the baselines"
  # The records of that run are there.
  rm -rf .sparsek-gate/profiles
  interrupted() {
    local run
    "$gate" check "${same[@]}" >first.txt 2>&1 &
    run=$!
    # Once the first variant is complete.
    until compgen -G '.sparsek-gate/profiles/*/*/variant.json' >/dev/null; do
      sleep 0.1
      kill -0 "$run" || return 70
    done
    kill -9 "$run"
    wait "$run"
    "$gate" check "${same[@]}" --resume
  }
  expect "a check that was killed goes on with what is complete" 0 "resumed" interrupted
  cd "$work" || exit 70
  rm -rf "$work/resume"
}

# What a program does to a GPU is no defect of the GPU.
part_sick() {
  expect "a kernel that crashes fails its variant, and makes no GPU sick" 5 "" "$gate" profile faults/crash
}

# Locks every kernel on all GPUs of this host, and checks all of them there, unchanged. This part is
# about the numbers, so it measures as config.toml has it.
part_all() {
  apart "$work/all"
  python3 "$root/tests/gpu/lines.py" <"$root/config.toml" | sed "s/^gpus = .*/gpus = [\"$gpu\"]/" >config.toml
  expect "every GPU profiles every kernel" 0 "launches" "$gate" profile --gpus all
  expect "one call locks them from all GPUs" 0 ": locked;" \
    "$gate" baseline --lock --reason "first measurement" --who tests
  commit "the baselines"
  expect "unchanged they pass on all GPUs at the same time" 0 "exit code 0" \
    "$gate" check --gpus all --against HEAD --measure-all --report all.json
  [ -n "$output" ] && cp all.json "$output/" && tar czf "$output/all.tgz" baselines
  cd "$work" || exit 70
  rm -rf "$work/all"
}

# Starts a cluster of one node, this host with its GPUs, with everything in a folder.
start_cluster() {
  local folder=$1 gpus=$2 user
  user=$(id -un)
  mkdir -p "$folder/state" "$folder/spool"
  export SLURM_CONF=$folder/slurm.conf
  printf 'NodeName=localhost Name=gpu Count=%s File=/dev/nvidia[0-%s]\n' "$gpus" $((gpus - 1)) >"$folder/gres.conf"
  # slurmd initializes control groups even where nothing uses them.
  printf 'CgroupPlugin=cgroup/v1\nIgnoreSystemd=yes\n' >"$folder/cgroup.conf"
  cat >"$SLURM_CONF" <<END
ClusterName=gate
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=26817
SlurmdPort=26818
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
ReturnToService=2
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
GresTypes=gpu
SlurmdParameters=config_overrides
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
NodeName=localhost NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=100 State=UNKNOWN Gres=gpu:$gpus
PartitionName=gpu Nodes=localhost Default=YES MaxTime=24:00:00 State=UP
END
  slurmctld -D -i &
  slurmd -D -N localhost &
  for _ in $(seq 100); do
    sinfo --noheader --format=%T | grep -q idle && return 0
    sleep 0.2
  done
  tail -n 20 "$folder"/slurm*.log
  return 1
}

# The script for Slurm on a cluster of this host.
part_slurm() {
  local gpus cluster=$work.cluster
  export PATH=$PATH:/usr/sbin
  if ! command -v slurmctld slurmd sbatch >/dev/null; then
    echo "SKIPPED: Slurm is not installed (apt-get install slurmctld slurmd slurm-client)"
    return 0
  fi
  gpus=$(nvidia-smi -L | grep -c '^GPU')
  apart "$work/slurm"
  expect "each kernel is profiled" 0 "launches" "$gate" profile "${few[@]}"
  expect "and locked" 0 "locked" "$gate" baseline --lock --reason "first measurement" --who tests "${few[@]}"
  commit "the baselines"
  expect "a cluster of this host starts" 0 "" start_cluster "$cluster" "$gpus"
  mkdir bin && ln -s "$gate" bin/sparsek-gate
  "$gate" plan --format slurm --slices "$gpus" --against HEAD "${few[@]}" |
    sed 's/ archive / archive --measure-all /; $s/$/ --report slurm.json/' >gate.sh
  PATH=$PWD/bin:$PATH expect "slices on the GPUs of a cluster are one check" 0 "exit code 0" \
    sh gate.sh
  expect "no job is left" 0 "" test -z "$(squeue --noheader)"
  [ -n "$output" ] && cp slurm.json "$output/"
  pkill -F "$cluster/slurmd.pid"
  pkill -F "$cluster/slurmctld.pid"
  cd "$work" || exit 70
  rm -rf "$work/slurm" "$cluster"
}

part_examples() {
  # The loads of a warp are in 32 sectors, and no longer in four.
  example benchmark softmax.cu -e 's/most = fmaxf(most, row\[i\]);/most = fmaxf(most, row[i * 65 % COLUMNS]);/'
  if command -v cmake >/dev/null; then
    # Neighbours in a warp are no longer neighbours in memory.
    example cmake vector_ops.cu -e '0,/ + threadIdx.x;/s// + threadIdx.x) * 4099 % size;/' \
      -e '0,/= std::size_t{blockIdx.x} \* THREADS/s//= (std::size_t{blockIdx.x} * THREADS/'
    cd "$work/cmake" || exit 70
    expect "and side by side" 1 "regressed" "$gate" check --against HEAD axpy/library
    cd "$work" || exit 70
  else
    echo "skip  examples/cmake: no CMake here (pip install cmake)"
  fi
}

# The same of the examples in Python.
part_frameworks() {
  has_torch "the examples of Python" || return 0
  # Each program reads another row too.
  example triton softmax.py \
    -e '/values = tl.load/a \    values += 0 * tl.load(x + (row + 8192) % 16384 * columns + offsets, mask=inside, other=0.0)'
  cd "$work/triton" || exit 70
  expect "what Triton compiled is locked" 0 "matmul_kernel" \
    grep -h matmul_kernel baselines/*+static/matmul/triton.profile.json
  expect "what the autotuner chose is recorded" 0 "num_stages" \
    grep -h num_stages baselines/nvidia-*/matmul/triton.profile.json
  sed -i -e 's/num_stages=[34]/num_stages=2/' matmul.py
  expect "another choice of the autotuner is named" 4 "tuning-changed" "$gate" check matmul
  git checkout -q matmul.py
  # Each process tunes anew, and nothing says where that ends.
  sed -i -e 's/^profiler_range.*//' -e '/^env = /d' config.toml
  expect "tuning in the measured range is refused" 6 "code-varies" "$gate" profile matmul
  cd "$work" || exit 70
  # A product in single precision, which is another kernel.
  example pytorch block.py -e 's/return x + hidden @ down/return x + (hidden.float() @ down.float()).to(x.dtype)/'
}

for part in $parts; do
  declare -F "part_$part" >/dev/null || { echo "unknown part: $part" >&2 && exit 2; }
done
# While the first parts build.
(programs) & compiling=$!
for part in $parts; do
  begun=$SECONDS
  "part_$part"
  echo "part  $part: $((SECONDS - begun)) s"
done
if [ -n "$output" ]; then
  tar czf "$output/work.tgz" --exclude=builds .sparsek-gate second baselines gpu/.sparsek-gate gpu/baselines \
    kernel-times paused ncu-all ncu-none ladder/baselines ladder/gpu/baselines ladder/gpu/.sparsek-gate 2>/dev/null
fi
echo "$passed passed, $failed failed, $SECONDS s"
[ "$failed" = 0 ]
