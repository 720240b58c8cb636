#!/usr/bin/env bash
# Puts sparsek-gate on the PATH of the following steps. Uses $BINARY, else the program in FOLDER from
# an earlier run. Otherwise builds $VERSION from crates.io, or the sources of this repository.
set -euo pipefail
folder=${1:?usage: install.sh FOLDER}
sources=$(cd "$(dirname "$0")/../.." && pwd)

if [ -n "${BINARY-}" ]; then
  program=$(command -v "$BINARY") || {
    echo "::error title=sparsek-gate::there is no program $BINARY (input 'binary')"
    exit 3
  }
  mkdir -p "$folder/bin"
  ln -sf "$(realpath "$program")" "$folder/bin/sparsek-gate"
elif [ ! -x "$folder/bin/sparsek-gate" ]; then
  if ! command -v cargo >/dev/null; then
    echo "::error title=sparsek-gate::building it needs Rust (https://rustup.rs) on this runner; or name an existing program with the input 'binary'"
    exit 3
  fi
  if [ -n "${VERSION-}" ]; then
    cargo install --locked --root "$folder" --version "$VERSION" sparsek-gate
  else
    cargo install --locked --root "$folder" --path "$sources"
  fi
fi
"$folder/bin/sparsek-gate" --version
echo "$folder/bin" >>"$GITHUB_PATH"
