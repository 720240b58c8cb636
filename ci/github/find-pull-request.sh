#!/usr/bin/env bash
# Finds the pull request that FILE claims, if GitHub confirms that COMMIT is its head. The untrusted
# run wrote the file, so its content is only a hint. If $EXPECTED is set, the number must equal it.
# Sets the outputs number, head, target (the branch) and base (its reference in a clone).
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
read -r state head target < <(gh api "$pull" --jq '[.state, .head.sha, .base.ref] | join(" ")')
if [ "$state" != open ] || [ "$head" != "$commit" ]; then
  # The pull request of somebody else, or one that got a new push in the meantime.
  echo "::error title=sparsek-gate::the commit of the run, $commit, is not the head of #$number"
  exit 1
fi
# Without a target the pull request would be judged by its own rules.
if ! git check-ref-format "refs/heads/$target"; then
  echo "::error title=sparsek-gate::the target branch of #$number is not known"
  exit 1
fi
{
  echo "number=$number"
  echo "head=$head"
  echo "base=refs/remotes/origin/$target"
  echo "target=$target"
} >>"$GITHUB_OUTPUT"
