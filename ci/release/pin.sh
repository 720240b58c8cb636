#!/usr/bin/env bash
# Pins the archives of a release: writes ci/release.sha256 from the release's SHA256SUMS. From then on
# action, image and ci/install.sh take this version.
#
#   ci/release/pin.sh SHA256SUMS
set -euo pipefail
sums=${1:?usage: pin.sh SHA256SUMS}
out=$(dirname "${BASH_SOURCE[0]}")/../release.sha256
archives=$(sed -n '/^[0-9a-f]\{64\}  sparsek-gate-[0-9.]*-[a-z0-9_]*-unknown-linux-gnu\.tar\.gz$/p' "$sums")
for machine in x86_64 aarch64; do
  found=$(printf '%s\n' "$archives" | grep -c -- "-$machine-" || true)
  [ "$found" = 1 ] || {
    echo "ci/release/pin.sh: $sums has $found archives for $machine instead of one" >&2
    exit 1
  }
done
{
  sed '/^[^#]/,$d' "$out"
  printf '%s\n' "$archives"
} >"$out.new"
mv "$out.new" "$out"
