#!/usr/bin/env bash
# Writes FILE as a comment on a pull request. Later runs update the same comment: the one by
# $COMMENT_AUTHOR that begins with the marker. Needs gh with GH_TOKEN, and GITHUB_REPOSITORY.
set -euo pipefail
number=${1:?usage: comment.sh PULL_REQUEST FILE}
file=${2:?usage: comment.sh PULL_REQUEST FILE}
export COMMENT_AUTHOR=${COMMENT_AUTHOR:-github-actions[bot]}
export MARKER='<!-- sparsek-gate -->'
# GitHub accepts 65,536 characters.
most=60000

if ! [[ $number =~ ^[0-9]{1,9}$ ]]; then
  echo "comment.sh: '$number' is not the number of a pull request" >&2
  exit 2
fi
body=$(mktemp)
trap 'rm -f "$body"' EXIT
{
  echo "$MARKER"
  # Names of kernels come from the pull request, and must not notify anybody.
  head -c "$most" "$file" | iconv -f UTF-8 -t UTF-8 -c | sed 's/@/@\xe2\x80\x8b/g'
  if [ "$(wc -c <"$file")" -gt "$most" ]; then
    printf '\n\n…cut here; the artifacts of the run contain the whole report.\n'
  fi
} >"$body"

comments="repos/$GITHUB_REPOSITORY/issues/$number/comments"
# Anybody can write the marker, so only a comment by this author is replaced.
own=$(gh api --paginate "$comments?per_page=100" --jq \
  '.[] | select(.user.login == env.COMMENT_AUTHOR and .user.type == "Bot" and (.body | startswith(env.MARKER))) | .id')
first=${own%%$'\n'*}
if [ -n "$first" ]; then
  gh api --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$first" -F "body=@$body" --silent
else
  gh api --method POST "$comments" -F "body=@$body" --silent
fi
