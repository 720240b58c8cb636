#!/usr/bin/env bash
# Finds the pull request that FILE claims, if GitHub confirms that COMMIT is its head. The untrusted
# run wrote the file, so its content is only a hint. If $EXPECTED is set, the number must equal it.
# Sets the outputs number, head, base and target (the branch).
set -euo pipefail
usage='usage: find-pull-request.sh FILE COMMIT'
file=${1:?$usage} commit=${2:?$usage}

number=$(head -c 16 "$file" | tr -d '\n')
if ! [[ $number =~ ^[0-9]{1,9}$ ]]; then
  echo "::error title=sparsek-gate::the run does not name a pull request"
  exit 1
fi
if [ -n "${EXPECTED-}" ] && [ "$number" != "$EXPECTED" ]; then
  # Two pull requests may have the same head and different targets.
  echo "::error title=sparsek-gate::the run is that of #$number, not of #$EXPECTED"
  exit 1
fi
if ! [[ $commit =~ ^[0-9a-f]{40}$ ]]; then
  echo "::error title=sparsek-gate::the commit of the run is invalid"
  exit 1
fi
pull="repos/$GITHUB_REPOSITORY/pulls/$number"
read -r state head tip target < <(gh api "$pull" --jq '[.state, .head.sha, .base.sha, .base.ref] | join(" ")')
if [ "$state" != open ] || [ "$head" != "$commit" ]; then
  # The pull request of somebody else, or one that got a new push in the meantime.
  echo "::error title=sparsek-gate::the commit of the run, $commit, is not the head of #$number"
  exit 1
fi
base=$(gh api "repos/$GITHUB_REPOSITORY/compare/$tip...$head" --jq .merge_base_commit.sha)
# Without a base the pull request would be judged by its own rules.
if ! [[ $base =~ ^[0-9a-f]{40}$ ]]; then
  echo "::error title=sparsek-gate::the merge base of #$number and its target is not known"
  exit 1
fi
{
  echo "number=$number"
  echo "head=$head"
  echo "base=$base"
  echo "target=$target"
} >>"$GITHUB_OUTPUT"
