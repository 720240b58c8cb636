#!/usr/bin/env bash
# The pull request that FILE claims, if GitHub says that COMMIT is its head. What the file holds was
# written by the change, and is nothing but a hint. Where $EXPECTED is set, it must be that number.
# Leaves number, head, base and target, the branch, as outputs.
set -euo pipefail
usage='usage: find-pull-request.sh FILE COMMIT'
file=${1:?$usage} commit=${2:?$usage}

number=$(head -c 16 "$file" | tr -d '\n')
if ! [[ $number =~ ^[0-9]{1,9}$ ]]; then
  echo "::error title=sparsek-gate::the run names no pull request"
  exit 1
fi
if [ -n "${EXPECTED-}" ] && [ "$number" != "$EXPECTED" ]; then
  # Two pull requests may have the same head, and other targets.
  echo "::error title=sparsek-gate::the run is that of #$number, not of #$EXPECTED"
  exit 1
fi
if ! [[ $commit =~ ^[0-9a-f]{40}$ ]]; then
  echo "::error title=sparsek-gate::the run has no commit"
  exit 1
fi
pull="repos/$GITHUB_REPOSITORY/pulls/$number"
read -r state head tip target < <(gh api "$pull" --jq '[.state, .head.sha, .base.sha, .base.ref] | join(" ")')
if [ "$state" != open ] || [ "$head" != "$commit" ]; then
  # Somebody else's pull request, or one that went on meanwhile.
  echo "::error title=sparsek-gate::the run of $commit is not that of the head of #$number"
  exit 1
fi
base=$(gh api "repos/$GITHUB_REPOSITORY/compare/$tip...$head" --jq .merge_base_commit.sha)
# Without a base the change would be judged by its own rules.
if ! [[ $base =~ ^[0-9a-f]{40}$ ]]; then
  echo "::error title=sparsek-gate::where #$number left its target is not known"
  exit 1
fi
{
  echo "number=$number"
  echo "head=$head"
  echo "base=$base"
  echo "target=$target"
} >>"$GITHUB_OUTPUT"
