#!/usr/bin/env bash
# Builds the site from README.md and docs/ into FOLDER, and checks it: every link and anchor, and that
# no page loads anything from another host. Needs Python 3.10 or newer with the packages that
# ci/site/requirements.txt names.
#
#   ci/site.sh FOLDER
#   python3 -m http.server --directory FOLDER     # to look at it; the search needs a server
#
# $PYTHON is the interpreter; by default python3.
set -euo pipefail
out=${1:?usage: ci/site.sh FOLDER}
python=${PYTHON:-python3}
mkdir -p "$out"
out=$(cd "$out" && pwd)
if [ -n "$(ls -A "$out")" ] && [ ! -f "$out/sitemap.xml" ]; then
  echo "ci/site.sh: $out has other files than a site: name an empty folder" >&2
  exit 2
fi
cd "$(dirname "$0")/.."

if ! "$python" -c 'import zensical, latex2mathml' 2>/dev/null; then
  echo "ci/site.sh: a package is missing: $python -m pip install -r ci/site/requirements.txt" >&2
  exit 3
fi
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
"$python" -B ci/site/stage.py "$stage"
(cd "$stage" && "$python" -B -m zensical build --config-file mkdocs.yml >"$stage/log" 2>&1) || {
  cat "$stage/log" >&2
  exit 5
}
# Of an earlier build nothing is left.
find "$out" -mindepth 1 -delete
cp -R "$stage/site/." "$out"
"$python" -B ci/site/check.py "$out"
