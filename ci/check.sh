#!/usr/bin/env bash
# `sparsek-gate check` for any CI service, cron or shell. Keeps the reports in FOLDER, prints what the
# exit code means, and exits with it. It repeats nothing: after a failure of the machine the tool
# itself measures again, at most `profile.retries` times.
#
#   ci/check.sh FOLDER [ARGUMENT OF check...]
#   ci/check.sh reports --against refs/remotes/origin/main
#   ci/check.sh reports --from profiles
#
# Where changes of others are judged, run a copy that the machine has (docs/ci.md: sparsek-gate-check),
# never that of the checkout, which a change can edit.
#
# In a pull request the rules come from the tip of the target branch. If the service does not name it,
# the check exits with 4: add --baseline-ref refs/remotes/origin/main.
#
# If the program is not on the PATH, set $SPARSEK_GATE to its path. `ci/install.sh FOLDER` downloads the
# released one and verifies it.
set -euo pipefail
reports=${1:-}
if [[ ! $reports || $reports == -* ]] || [[ -e $reports && ! -d $reports ]]; then
  echo 'usage: ci/check.sh FOLDER [ARGUMENT OF check...]: the reports are written into FOLDER' >&2
  exit 2
fi
shift
gate=${SPARSEK_GATE:-sparsek-gate}

mkdir -p "$reports"
# Reports of an earlier run must not be read as those of this run.
rm -f "$reports"/{outcome.json,report.md,report.txt,report.html,junit.xml,report.sarif}
code=0
"$gate" check --report "$reports/outcome.json" --report "$reports/report.md" \
  --report "$reports/report.txt" "$@" || code=$?

if [ -f "$reports/outcome.json" ]; then
  for form in junit:junit.xml sarif:report.sarif html:report.html; do
    "$gate" report "$reports/outcome.json" --format "${form%%:*}" >"$reports/${form#*:}" || {
      rm -f "$reports/${form#*:}"
      echo "ci/check.sh: the report in the format ${form%%:*} could not be written" >&2
    }
  done
fi

case $code in
0) meaning='every gate passed' ;;
1) meaning='a gated metric regressed: fix the kernel, or lock a new baseline with a reason' ;;
2) meaning='usage or configuration: fix what the message names' ;;
3) meaning='a tool, the GPU or a permission is missing, or the base revision (see the message above); to see how to fix the machine: sparsek-gate doctor' ;;
4) meaning='a baseline is missing, tampered with or not comparable, the kernel does different work, or the base revision does not fit: see the message above' ;;
5) meaning='a variant failed: build, wrong numbers, crash, time-out, unreadable output' ;;
6) meaning='inconclusive or not measured, and nothing worse' ;;
70) meaning='an error of sparsek-gate itself: please report it' ;;
126 | 127) meaning="there is no program $gate: set SPARSEK_GATE to its path; ci/install.sh FOLDER downloads the released one" ;;
130 | 143) meaning='interrupted' ;;
*) meaning='not an exit code of sparsek-gate: a signal ended it' ;;
esac
printf '\nexit code %s: %s\nreports: %s\n' "$code" "$meaning" "$reports"
exit "$code"
