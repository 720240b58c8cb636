#!/usr/bin/env bash
# Sets the check $CHECK_NAME, or else `sparsek-gate`, on a commit, according to the exit code. Needs gh
# with GH_TOKEN and `checks: write`, and GITHUB_REPOSITORY. $OPEN=neutral: inconclusive does not fail.
set -euo pipefail
usage='usage: set-check.sh COMMIT EXIT_CODE FILE'
commit=${1:?$usage} code=${2:?$usage} file=${3:?$usage}
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=SCRIPTDIR/words.sh
source "$here/words.sh"

if ! [[ $commit =~ ^[0-9a-f]{40}$ && $code =~ ^[0-9]{1,3}$ ]]; then
  echo "set-check.sh: '$commit' is not a commit, or '$code' is not an exit code" >&2
  exit 2
fi
case $code in
0) conclusion=success ;;
6) [ "${OPEN-}" = neutral ] && conclusion=neutral || conclusion=failure ;;
130) conclusion=cancelled ;;
*) conclusion=failure ;;
esac
summary=$(mktemp)
trap 'rm -f "$summary"' EXIT
head -c 60000 "$file" | iconv -f UTF-8 -t UTF-8 -c >"$summary"
gh api --method POST "repos/$GITHUB_REPOSITORY/check-runs" --silent \
  -f "name=${CHECK_NAME:-sparsek-gate}" -f "head_sha=$commit" -f status=completed -f "conclusion=$conclusion" \
  -f "output[title]=$(word_of "$code") (exit code $code)" -F "output[summary]=@$summary"
