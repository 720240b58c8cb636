#!/usr/bin/env bash
# The wheel and the archive of one target, with its list of components (SBOM), in FOLDER. Both have
# the same program, which needs glibc 2.28 or newer. Needs Rust with that target, and from PyPI:
# pip install --require-hashes -r ci/release/requirements.txt
#
#   ci/release/build.sh FOLDER [x86_64-unknown-linux-gnu | aarch64-unknown-linux-gnu]
set -euo pipefail
unset CDPATH
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
mkdir -p "${1:?usage: build.sh FOLDER [TARGET]}"
folder=$(cd "$1" && pwd -P)
target=${2:-$(uname -m)-unknown-linux-gnu}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What is in the files depends on the commit alone.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

# The same calls as `maturin build` makes when pip builds the sources, and zig for the older glibc.
# It fails if the program needs more than pyproject.toml promises.
maturin build --zig --target "$target" --out "$work/wheel"
(cd "$work" && python3 -m zipfile -e wheel/*.whl unpacked)

version=$(sed -n 's/^Version: //p' "$work"/unpacked/*.dist-info/METADATA)
name=sparsek-gate-$version-$target
mkdir "$work/$name"
cp "$work"/unpacked/*.data/scripts/sparsek-gate LICENSE README.md CHANGELOG.md "$work/$name"
chmod 755 "$work/$name/sparsek-gate"
tar --create --directory "$work" --sort=name --owner=0 --group=0 --numeric-owner \
  --mode=go=rX,u+rw,a-s --mtime="@$SOURCE_DATE_EPOCH" "$name" | gzip -n9 >"$folder/$name.tar.gz"
cp "$work"/unpacked/*.dist-info/sboms/*.json "$folder/$name.cyclonedx.json"
cp "$work"/wheel/*.whl "$folder"
ls -l "$folder"
