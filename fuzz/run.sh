#!/usr/bin/env bash
# Runs the fuzz targets. Fails where one of them found an input that a reader does not withstand.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: fuzz/run.sh [OPTION...]
Without an option: builds, and runs all targets for about half a minute together, with the same seed
each time. With --minutes or --hours each sitting has a seed of its own.

  --minutes M     run all targets for M minutes together
  --hours H       the same in hours, with an optimized build
  --target NAME   only this target; repeatable
  --jobs N        targets that run at the same time (default 2)
  --out DIR       folder of new inputs, logs and statistics (default fuzz/found)
  --build         only build, and print the path of the program
  --binary PATH   run this program; nothing is built, and no cargo is needed
  --merge DIR     add the inputs found in DIR to the corpus, minimized
TEXT
}

here=$(cd "$(dirname "$0")" && pwd)
seconds=30 seed=1 jobs=2 out=$here/found binary='' merge='' only_build='' profile=short
targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --minutes) seconds=$((60 * ${2:?a number of minutes})) seed=0 && shift ;;
    --hours) seconds=$((3600 * ${2:?a number of hours})) seed=0 profile=long && shift ;;
    --target) targets+=("${2:?the name of a target}") && shift ;;
    --jobs) jobs=${2:?a number} && shift ;;
    --out) out=${2:?a folder} && shift ;;
    --build) only_build=yes ;;
    --binary) binary=${2:?the path of a program} && shift ;;
    --merge) merge=${2:?a folder} && shift ;;
    -h | --help) usage && exit ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift
done

# Coverage as libFuzzer reads it, from a stable compiler. With a target named, cargo does not use
# these flags for build scripts and macros, which cannot be linked with them.
build() {
  local flags=(-Cpasses=sancov-module) option host
  for option in level=4 inline-8bit-counters pc-table trace-compares; do
    flags+=("-Cllvm-args=-sanitizer-coverage-$option")
  done
  host=$(rustc -vV | sed -n 's/^host: //p')
  RUSTFLAGS="${flags[*]}" CARGO_INCREMENTAL=0 \
    cargo build --locked --manifest-path "$here/Cargo.toml" --target-dir "$here/target" \
    --target "$host" --profile "$profile" >&2
  binary=$here/target/$host/$profile/sparsek-gate-fuzz
}

[ -n "$binary" ] || build
binary=$(realpath "$binary")
if [ -n "$only_build" ]; then
  echo "$binary"
  exit
fi

declare -A largest
names=()
while read -r name bytes; do
  largest[$name]=$bytes
  names+=("$name")
done < <("$binary")
[ ${#targets[@]} -gt 0 ] || targets=("${names[@]}")
for target in "${targets[@]}"; do
  if [ -z "${largest[$target]:-}" ]; then
    echo "there is no target \`$target\`; the targets are: ${names[*]}" >&2
    exit 2
  fi
done

# An input that takes long for lack of a processor is not a hang: the program itself limits its own
# time and memory more closely.
options() {
  printf '%s\n' "-max_len=${largest[$1]}" -timeout=30 -rss_limit_mb=1024 -verbosity=1 \
    "-artifact_prefix=$out/$1/reproducer-"
  [ ! -f "$here/dictionaries/$1" ] || echo "-dict=$here/dictionaries/$1"
}

if [ -n "$merge" ]; then
  for target in "${targets[@]}"; do
    mkdir -p "$out/$target" "$here/corpus/$target"
    folders=("$here/corpus/$target")
    [ ! -d "$merge/$target/found" ] || folders+=("$merge/$target/found")
    new=$(mktemp -d)
    mapfile -t arguments < <(options "$target")
    # Only edges count: inputs that take one more often are found again soon.
    FUZZ_TARGET=$target "$binary" "${arguments[@]}" -use_counters=0 -set_cover_merge=1 \
      "$new" "${folders[@]}" >"$out/$target/merge.log" 2>&1
    rm -r "$here/corpus/$target"
    mv "$new" "$here/corpus/$target"
    chmod 755 "$here/corpus/$target"
    echo "$target: $(find "$here/corpus/$target" -type f | wc -l) inputs"
  done
  exit
fi

run() {
  local target=$1 time=$2 status=0 arguments
  mkdir -p "$out/$target/found" "$here/corpus/$target"
  mapfile -t arguments < <(options "$target")
  # Without options the inputs are the same each time: a failure comes from a change, and not by chance.
  FUZZ_TARGET=$target "$binary" "${arguments[@]}" "-seed=$seed" "-max_total_time=$time" -print_final_stats=1 \
    "$out/$target/found" "$here/corpus/$target" >"$out/$target/log" 2>&1 || status=$?
  echo "$status" >"$out/$target/status"
}

# What libFuzzer says at its end: `#12345 DONE cov: 12 ft: 34 corp: …`.
table() {
  local target line failed=0
  printf '%-16s %12s %8s %9s %8s\n' target executions edges features seconds
  for target in "${targets[@]}"; do
    line=$(sed -nE 's/^#([0-9]+)\s.* cov: ([0-9]+) ft: ([0-9]+).*/\1 \2 \3/p' "$out/$target/log" | tail -1)
    # shellcheck disable=SC2086 # three words
    printf '%-16s %12s %8s %9s %8s\n' "$target" ${line:-0 0 0} "$1"
    [ "$(cat "$out/$target/status")" = 0 ] || failed=1
  done | tee "$out/statistics"
  for target in "${targets[@]}"; do
    if [ "$(cat "$out/$target/status")" != 0 ]; then
      failed=1
      echo
      echo "$target failed:"
      grep -nE -A 3 -m 1 'panicked at|more memory than|ERROR: libFuzzer|^there is no' "$out/$target/log" ||
        tail -n 20 "$out/$target/log"
      for input in "$out/$target"/reproducer-*; do
        [ ! -f "$input" ] || echo "again: FUZZ_TARGET=$target $binary $input"
      done
    fi
  done
  return "$failed"
}

each=$((seconds * jobs / ${#targets[@]}))
[ "$each" -gt 0 ] || each=1
for target in "${targets[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
    wait -n || true
  done
  run "$target" "$each" &
done
wait
table "$each"
