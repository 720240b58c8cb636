#!/usr/bin/env bash
# Whether this commit can be released as TAG: the versions agree, the changelog has its day, and
# somebody is named who publishes it. Prints every fault, and exits with 1 if there is one.
#
#   ci/release/ready.sh v0.2.0
set -euo pipefail
tag=${1:?usage: ready.sh TAG}
version=${tag#v}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
faults=0
fault() {
  echo "not ready: $1"
  faults=1
}

[[ $tag =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ ]] || fault "the tag $tag is not v and a version of three numbers"
stated=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
[ "$stated" = "$version" ] || fault "Cargo.toml has the version $stated, the tag $version"
grep -q "^ncu-report = { version = \"$version\"," Cargo.toml ||
  fault "sparsek-gate does not depend on ncu-report $version (Cargo.toml)"
grep -Eq "^## \[${version//./\\.}\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md ||
  fault "CHANGELOG.md has no line '## [$version] - YYYY-MM-DD'"
owner=${GITHUB_REPOSITORY:-OWNER/}
owner=${owner%%/*}
# Elsewhere an owner that is not replaced would be somebody's name.
if [ "$owner" = OWNER ] || grep -rq 'OWNER/sparsek-gate' Cargo.toml ci/install.sh; then
  fault "Cargo.toml and ci/install.sh name OWNER: write who publishes it (sed -i 's|OWNER/sparsek-gate|NAME/sparsek-gate|')"
fi
exit "$faults"
