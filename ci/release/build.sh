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
SPARSEK_GATE_REVISION="$(git describe --always --abbrev=10 --exclude='*' --dirty=+changes) $(git log -1 --format=%cs)"
export SOURCE_DATE_EPOCH SPARSEK_GATE_REVISION
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}

# A copy of the sources: PyPI's page of the readme has no files beside it, so its links are absolute.
mkdir "$work/sources"
while read -r path; do cp -R --parents "$path" "$work/sources"; done <ci/sources.txt
cp pyproject.toml CHANGELOG.md "$work/sources"
of_workspace() { sed -n "/^\[workspace.package\]/,/^\[/s/^$1 = \"\(.*\)\"/\1/p" Cargo.toml; }
python3 -B ci/release/readme.py "$(of_workspace repository)" "v$(of_workspace version)" <README.md >"$work/sources/README.md"

# The same calls as `maturin build` makes when pip builds the sources, and zig for the older glibc.
# It fails if the program needs more than pyproject.toml promises.
(cd "$work/sources" && maturin build --zig --target "$target" --out "$work/wheel")
promised=$(sed -n 's/^compatibility = "\(.*\)"/\1/p' pyproject.toml)
case $(echo "$work"/wheel/*.whl) in
*-py3-none-"${promised}_${target%%-*}".whl) ;;
*)
  echo "ci/release/build.sh: $(basename "$work"/wheel/*.whl) is not for $promised on ${target%%-*}" >&2
  exit 1
  ;;
esac
(cd "$work" && python3 -m zipfile -e wheel/*.whl unpacked)

version=$(sed -n 's/^Version: //p' "$work"/unpacked/*.dist-info/METADATA)
name=sparsek-gate-$version-$target
mkdir "$work/$name"
cp "$work"/unpacked/*.data/scripts/sparsek-gate LICENSE "$work/sources/README.md" CHANGELOG.md "$work/$name"
chmod 755 "$work/$name/sparsek-gate"
tar --create --directory "$work" --sort=name --owner=0 --group=0 --numeric-owner \
  --mode=go=rX,u+rw,a-s --mtime="@$SOURCE_DATE_EPOCH" "$name" | gzip -n >"$folder/$name.tar.gz"
cp "$work"/unpacked/*.dist-info/sboms/*.json "$folder/$name.cyclonedx.json"
cp "$work"/wheel/*.whl "$folder"
ls -l "$folder"
