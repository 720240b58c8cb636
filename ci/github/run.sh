#!/usr/bin/env bash
# Runs `sparsek-gate check` with the inputs of the action, keeps its reports in $REPORTS, and sets the
# outputs exit-code and verdict. It always exits with 0, so that the next steps upload the reports;
# the last step of the action exits with the result.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=SCRIPTDIR/words.sh
source "$here/words.sh"

mkdir -p "$REPORTS"
rm -f "$REPORTS"/outcome.json "$REPORTS"/report.*
read -ra variants <<<"${VARIANTS-}"
read -ra further <<<"${ARGS-}"
arguments=()
[ -z "${AGAINST-}" ] || arguments+=(--against "$AGAINST")
[ -z "${FROM-}" ] || arguments+=(--from "$FROM")
[ "${STATIC-}" != true ] || arguments+=(--static)
[ -z "${BASELINE_REF-}" ] || arguments+=(--baseline-ref "$BASELINE_REF")
[ -z "${ACCEPT-}" ] || arguments+=(--accept "$ACCEPT")
# The tokens of consent are valid for one pull request.
[ -z "${PULL_REQUEST-}" ] || arguments+=(--pull-request "$PULL_REQUEST")

code=0
sparsek-gate check --config "${CONFIG:-config.toml}" --format "${FORMAT:-text}" \
  --report "$REPORTS/outcome.json" --report "$REPORTS/report.md" \
  "${arguments[@]}" "${further[@]}" "${variants[@]}" || code=$?
verdict=$(word_of "$code")

if [ -f "$REPORTS/outcome.json" ]; then
  for format in ${FORMATS-}; do
    case $format in
    markdown) continue ;;
    text) file=report.txt ;;
    junit) file=junit.xml ;;
    gitlab) file='code-quality.json' ;;
    *) file=report.$format ;;
    esac
    sparsek-gate report "$REPORTS/outcome.json" --format "$format" >"$REPORTS/$file" || {
      echo "::warning title=sparsek-gate::the report in the format $format could not be written"
      rm -f "$REPORTS/$file"
    }
  done
else
  # An error in the command line or the configuration ends the run before there is a report.
  printf '**sparsek-gate** could not begin (%s, exit code %s): see the log of the job.\n' \
    "$verdict" "$code" >"$REPORTS/report.md"
fi
if [ -n "${GITHUB_STEP_SUMMARY-}" ]; then
  # The summary of a step is limited to one megabyte.
  head -c 900000 "$REPORTS/report.md" >>"$GITHUB_STEP_SUMMARY"
fi
{
  echo "exit-code=$code"
  echo "verdict=$verdict"
  echo "reports=$REPORTS"
} >>"$GITHUB_OUTPUT"
