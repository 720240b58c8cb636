#!/usr/bin/env bash
# Uploads a SARIF file to code scanning. Needs gh with GH_TOKEN and `security-events: write`.
set -euo pipefail
file=${1:?usage: sarif.sh FILE}
if [ ! -f "$file" ]; then
  echo "::warning title=sparsek-gate::there is no SARIF to upload: add sarif to the input 'reports'"
  exit 0
fi
packed=$(mktemp)
trap 'rm -f "$packed"' EXIT
gzip -c "$file" | base64 -w0 >"$packed"
gh api --method POST "repos/$GITHUB_REPOSITORY/code-scanning/sarifs" --silent \
  -f "commit_sha=$GITHUB_SHA" -f "ref=$GITHUB_REF" -F "sarif=@$packed"
