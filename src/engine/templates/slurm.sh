#!/bin/sh
# Measures in @N@ slices on Slurm, each with one GPU of its own. Made by
#   @MADE@
# Runs on a machine with sbatch, nvcc and git, in a folder that the nodes see under the same path. Its
# arguments are options of sbatch: sh gate.sh --partition=h200 --account=kernels. It exits with the
# code of the check, and cancels its jobs when it is interrupted. See docs/many-gpus.md.
set -eu
here=
for name in slices logs gate.tar.zst; do
  if [ -e "$name" ]; then here="$here $name"; fi
done
if [ -n "$here" ]; then
  echo "here already:$here; if an earlier run made them: rm -r$here" >&2
  exit 2
fi
sbatch=
cancel() {
  IFS=';' read -r job cluster <logs/job && scancel ${cluster:+"--clusters=$cluster"} "$job"
}
interrupted() {
  trap '' HUP INT TERM
  if [ -n "$sbatch" ]; then
    # sbatch ignores these signals, so that it is known whether there is a job. It ends soon after it.
    until [ -s logs/job ] || [ -e logs/ended ]; do sleep 1; done
    until cancel || [ -e logs/ended ]; do sleep 5; done
  fi
  exit 130
}
trap interrupted HUP INT TERM
mkdir slices logs
# A variant that cannot be built is reported by the check.
@ARCHIVE@
SHA256=$(sha256sum gate.tar.zst | cut -d ' ' -f 1)
# What a slice runs. Modules and containers belong here.
cat >logs/slice.sh <<'SLICE'
#!/bin/sh
exec sparsek-gate profile --archive gate.tar.zst --slice "$SLURM_ARRAY_TASK_ID/@N@" --output "slices/$SLURM_ARRAY_TASK_ID"
SLICE
(
  trap '' HUP INT TERM
  sbatch --job-name=sparsek-gate --nodes=1 --ntasks=1 --gres=gpu:1 "$@" \
    --parsable --wait --no-requeue --array=1-@N@ --output=logs/slice-%a.log logs/slice.sh >logs/job || true
  : >logs/ended
) &
sbatch=$!
# Which tasks failed is no verdict: the check judges what they left.
wait "$sbatch" || true
if [ ! -s logs/job ]; then
  echo "Slurm took no job" >&2
  exit 3
fi
# Nothing is left, unless sbatch was killed.
cancel 2>/dev/null || true
trap - HUP INT TERM
exec sparsek-gate check --from slices --archive gate.tar.zst --archive-sha256 "$SHA256"
