#!/usr/bin/env bash
# Downloads the released program into FOLDER/sparsek-gate. Installs only an archive whose SHA-256 is in
# ci/release.sha256, beside this script, so a job that pins both files pins the program. With
# `gh` and GH_TOKEN it also asks GitHub whether this project's own workflow built the archive.
#
#   ci/install.sh FOLDER
#
# SPARSEK_GATE_MIRROR   another place of the archives: https://…, or the path of a folder
set -euo pipefail
unset CDPATH
folder=${1:?usage: install.sh FOLDER}
repository=OWNER/sparsek-gate
here=$(cd -P -- "${BASH_SOURCE[0]%/*}" && pwd -P)
sums=$here/release.sha256
# Of a program of 20 MB; an archive is about a third of that.
most_bytes=100000000

fail() {
  printf 'ci/install.sh: %s\n' "$1" >&2
  exit 3
}

case $(uname -s)-$(uname -m) in
Linux-x86_64) target=x86_64-unknown-linux-gnu ;;
Linux-aarch64 | Linux-arm64) target=aarch64-unknown-linux-gnu ;;
*) fail "there is no archive for $(uname -s) on $(uname -m); build it: cargo install --locked --path ." ;;
esac

[ -f "$sums" ] || fail "ci/release.sha256 is missing beside it: without the checksum nothing is installed"
lines=$(sed -n "/^[0-9a-f]\{64\}  sparsek-gate-[0-9.]*-$target\.tar\.gz\$/p" "$sums")
case $(printf '%s' "$lines" | grep -c . || true) in
0) fail "no version of sparsek-gate is published for $target yet, so there is nothing to download; build it from the sources, with Rust: cargo install --locked --path ." ;;
1) ;;
*) fail "ci/release.sha256 has several archives for $target" ;;
esac
sum=${lines%% *}
archive=${lines##* }
name=${archive%.tar.gz}
version=${name#sparsek-gate-}
version=${version%-"$target"}
from=${SPARSEK_GATE_MIRROR:-https://github.com/$repository/releases/download/v$version}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $from in
/*) cp "$from/$archive" "$work/$archive" || fail "$from has no $archive" ;;
https://*)
  # --disable: no options from a file of the machine.
  curl --disable --fail --silent --show-error --location --proto '=https' --retry 2 \
    --max-time 300 --max-filesize "$most_bytes" --output "$work/$archive" "$from/$archive" ||
    fail "$from/$archive cannot be downloaded; with SPARSEK_GATE_MIRROR it comes from another place"
  ;;
*) fail "SPARSEK_GATE_MIRROR is neither https://… nor the path of a folder: $from" ;;
esac

found=$(sha256sum "$work/$archive")
found=${found%% *}
[ "$found" = "$sum" ] ||
  fail "$archive from $from is not what was released: its SHA-256 is $found, ci/release.sha256 has $sum"

# github.com accepts no token of another server.
if [ -z "${SPARSEK_GATE_MIRROR-}" ] && [ "${GITHUB_SERVER_URL-https://github.com}" = https://github.com ] &&
  [ -n "${GH_TOKEN-}" ] && command -v gh >/dev/null; then
  gh attestation verify "$work/$archive" --repo "$repository" \
    --signer-workflow "$repository/.github/workflows/release.yml" >/dev/null ||
    fail "GitHub does not attest that the release workflow of $repository built $archive"
  attested='its checksum and its attestation are verified'
else
  attested='its checksum is verified; its attestation is not, which needs gh and GH_TOKEN'
fi

mkdir -p "$folder"
# Extracts one file only. The program appears complete or not at all.
tar --extract --gzip --to-stdout --file "$work/$archive" "$name/sparsek-gate" >"$work/program"
chmod 755 "$work/program"
mv "$work/program" "$folder/.sparsek-gate.new"
mv "$folder/.sparsek-gate.new" "$folder/sparsek-gate"
echo "$folder/sparsek-gate is $version: $attested"
