#!/bin/sh
# Measures in @N@ slices on Slurm, each with one GPU of its own. Made by
#   @MADE@
# Runs on a machine with sbatch, nvcc and git, in a folder that the nodes see under the same path.
# `sparsek-gate check --on slurm` does the same, shows progress, and cancels when it is interrupted.
set -eu
for name in slices logs gate.tar.zst; do
  if [ -e "$name" ]; then
    echo "$name is here already; remove it if an earlier run made it" >&2
    exit 2
  fi
done
mkdir slices logs
# A variant that cannot be built is reported by the merge.
@ARCHIVE@ || [ -f gate.tar.zst ]
SHA256=$(sha256sum gate.tar.zst | cut -d ' ' -f 1)
# Which tasks failed is no verdict: the merge judges what they left.
@SBATCH@ <<'SLICE' || true
@SLICE@
SLICE
@MERGE@
