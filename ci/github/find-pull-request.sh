#!/usr/bin/env bash
# The pull request that FILE claims, if GitHub says that COMMIT is its head. What the file holds was
# written by the change, and is nothing but a hint. Leaves number, head and base as outputs.
set -euo pipefail
usage='usage: find-pull-request.sh FILE COMMIT'
file=${1:?$usage} commit=${2:?$usage}

number=$(head -c 16 "$file" | tr -d '\n')
if ! [[ $number =~ ^[0-9]{1,9}$ ]]; then
  echo "::error title=sparsek-gate::the run names no pull request"
  exit 1
fi
if ! [[ $commit =~ ^[0-9a-f]{40}$ ]]; then
  echo "::error title=sparsek-gate::the run has no commit"
  exit 1
fi
pull="repos/$GITHUB_REPOSITORY/pulls/$number"
read -r state head target < <(gh api "$pull" --jq '[.state, .head.sha, .base.sha] | join(" ")')
if [ "$state" != open ] || [ "$head" != "$commit" ]; then
  # Somebody else's pull request, or one that went on meanwhile.
  echo "::error title=sparsek-gate::the run of $commit is not that of the head of #$number"
  exit 1
fi
base=$(gh api "repos/$GITHUB_REPOSITORY/compare/$target...$head" --jq .merge_base_commit.sha)
{
  echo "number=$number"
  echo "head=$head"
  echo "base=$base"
} >>"$GITHUB_OUTPUT"
