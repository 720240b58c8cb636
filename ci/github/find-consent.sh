#!/usr/bin/env bash
# Finds the tokens that the consent label on a pull request accepts: those in the outcome of the
# report on COMMIT, if WHO, who set the label, has write access. A token is valid for one action on one
# path, from one content to another, in this pull request. Sets the outputs run (of the
# profiles), head and accept. Needs gh with GH_TOKEN, GITHUB_REPOSITORY, DEFAULT_BRANCH, and
# REPORT_WORKFLOW, the path of the workflow's file.
set -euo pipefail
usage='usage: find-consent.sh PULL_REQUEST COMMIT WHO FOLDER'
number=${1:?$usage} commit=${2:?$usage} who=${3:?$usage} folder=${4:?$usage}

refuse() {
  echo "::error title=sparsek-gate::$1"
  exit 1
}
[[ $number =~ ^[0-9]{1,9}$ && $commit =~ ^[0-9a-f]{40}$ && $who =~ ^[A-Za-z0-9-]+(\[bot\])?$ ]] ||
  refuse 'the number, the commit or the name is invalid'

right=$(gh api "repos/$GITHUB_REPOSITORY/collaborators/$who/permission" --jq .permission)
case $right in
admin | write) ;;
*) refuse "$who may not write here, so their consent is rejected" ;;
esac
head=$(gh api "repos/$GITHUB_REPOSITORY/pulls/$number" --jq .head.sha)
[ "$head" = "$commit" ] || refuse "#$number went on to $head: review it, and set the label again"

# A run of the pull request can upload an artifact of any name. Only an artifact of the report's own
# workflow, as it is on the default branch, is used.
export COMMIT=$commit
found=
while read -r artifact run; do
  [[ $artifact =~ ^[0-9]+$ && $run =~ ^[0-9]+$ ]] || continue
  read -r path event branch < <(gh api "repos/$GITHUB_REPOSITORY/actions/runs/$run" \
    --jq '[.path, .event, .head_branch] | join(" ")')
  if [ "$event" = workflow_run ] && [ "${path%%@*}" = "$REPORT_WORKFLOW" ] &&
    [ "$branch" = "$DEFAULT_BRANCH" ]; then
    found=$artifact
    break
  fi
done < <(gh api "repos/$GITHUB_REPOSITORY/actions/artifacts?name=sparsek-gate-outcome-$commit&per_page=100" \
  --jq '.artifacts | sort_by(.id) | reverse | .[] | select(.expired | not) | [.id, .workflow_run.id] | join(" ")')
[ -n "$found" ] || refuse "there is no report on $commit yet: wait for it, and set the label again"

mkdir -p "$folder"
gh api "repos/$GITHUB_REPOSITORY/actions/artifacts/$found/zip" >"$folder/outcome.zip"
unzip -q -o "$folder/outcome.zip" outcome.json profiles-run -d "$folder"
profiles=$(head -c 24 "$folder/profiles-run" | tr -d '\n')
[[ $profiles =~ ^[0-9]+$ ]] || refuse 'the report does not name the run that made the profiles'
accept=$(jq -r '[.findings[] | select(.severity == "deny") | .accept // empty
  | select(test("^[0-9a-f]{64}$"))] | unique | join(",")' "$folder/outcome.json")
[ -n "$accept" ] || echo "::warning title=sparsek-gate::the report on $commit does not ask for consent"
{
  echo "run=$profiles"
  echo "head=$commit"
  echo "accept=$accept"
} >>"$GITHUB_OUTPUT"
