#!/usr/bin/env bash
# Records the profiles that this repository ships, on a GPU machine, with a prebuilt binary:
#
#     ci/record.sh BINARY locked    # profiles, and baselines locked from them
#     ci/record.sh BINARY current   # a later run, best on another GPU of the model, and a worse one
#
# Works in the checkout; commit what it leaves under ci/recordings and baselines.
set -eu
gate=$(realpath "${1:?usage: ci/record.sh BINARY locked|current}")
cd "$(dirname "$0")/.."
unset CI
case ${2:?locked or current} in
  locked)
    "$gate" profile --output ci/recordings/h200-locked
    "$gate" baseline --lock --from ci/recordings/h200-locked \
      --reason "${REASON:-first measurement on an NVIDIA H200}" --who "${WHO:-maintainers}"
    ;;
  current)
    "$gate" profile --output ci/recordings/h200
    # Without padding the loads of a warp meet in the same banks.
    "$gate" profile --output ci/recordings/h200-worse --define SMEM_PAD=0 bsr_gemm/cp_async
    ;;
esac
find ci/recordings -name '*.import.log' -empty -delete
