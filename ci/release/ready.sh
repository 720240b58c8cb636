#!/usr/bin/env bash
# Whether this commit can be released as TAG: the versions agree, the changelog has its day, somebody is
# named who publishes it, and no text says that nothing is published. Prints every fault, and exits with
# 1 if there is one. ci/release/prepare.py makes a commit ready.
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
for lock in Cargo.lock fuzz/Cargo.lock; do
  for crate in sparsek-gate ncu-report; do
    grep -A1 "^name = \"$crate\"$" "$lock" | grep -qx "version = \"$version\"" ||
      fault "$lock has another version of $crate than $version"
  done
done
grep -Eq "^## \[${version//./\\.}\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md ||
  fault "CHANGELOG.md has no line '## [$version] - YYYY-MM-DD'"
publisher=$(sed -n 's|^repository = "https://github.com/\(.*\)"|\1|p' Cargo.toml)
[ "${GITHUB_REPOSITORY-$publisher}" = "$publisher" ] ||
  fault "Cargo.toml names the repository $publisher, and this is $GITHUB_REPOSITORY"

# An owner that is not replaced would be somebody's name, and what a page says of the time before the
# first release would be wrong.
while IFS=: read -r file line text; do
  fault "$file:$line is of the time before the first release: $text"
done < <(grep -rnE '\bOWNER\b|[Nn]othing is published|published yet|one is published|[Ff]irst release' \
  README.md CHANGELOG.md Cargo.toml action.yml docs ci src crates .github \
  --include='*.md' --include='*.toml' --include='*.yml' --include='*.sh' --include='*.rs' \
  --include='Containerfile' --include='*.sha256' --include='*.json' --include='*.svg' \
  --exclude-dir=recordings --exclude-dir=release || true)
exit "$faults"
