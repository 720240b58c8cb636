#!/usr/bin/env bash
# Puts sparsek-gate on the PATH of the following steps: $BINARY; with BUILD=true, or with a $VERSION
# from crates.io, a program that is built here; otherwise the released program, by the checksum that
# this action has (ci/install.sh). Of an earlier run nothing is used: FOLDER is removed first. With
# CUDA=true, also the CUDA compiler that this action pins (ci/install-cuda.sh).
#
# The folder where a job starts is the checkout of a change. A `rust-toolchain.toml` or a
# `.cargo/config.toml` there chooses the cargo and the compiler. So the build happens in a folder of
# its own, on a copy of the action's sources, with an environment of its own.
set -euo pipefail
unset CDPATH
folder=${1:?usage: install.sh FOLDER}

fail() {
  echo "::error title=sparsek-gate::$1"
  exit 3
}

# A folder without links; nothing where there is none.
real() {
  (cd -P -- "$1" 2>/dev/null && pwd -P) || true
}

# Whether a folder is in the checkout of the change.
in_checkout() {
  [ -n "$workspace" ] || return 1
  case "$(real "$1")/" in "$workspace"/*) return 0 ;; esac
  return 1
}

# The PATH without relative parts and without folders of the checkout. Nothing is run for it: a
# planted program could be what is run.
safe_path() {
  local part kept=() parts
  IFS=: read -ra parts <<<"$PATH"
  for part in "${parts[@]}"; do
    case $part in /*) ;; *) continue ;; esac
    in_checkout "$part" || kept+=("$part")
  done
  (IFS=: && echo "${kept[*]}")
}

workspace=$([ -z "${GITHUB_WORKSPACE-}" ] || real "$GITHUB_WORKSPACE")
sources=$(real "${BASH_SOURCE[0]%/*}/../..")
PATH=$(safe_path)
export PATH

# Whether the action's files may choose the program: in a pull request not those that it brings itself.
refuse_files_of_change() {
  case "${GITHUB_EVENT_NAME-}" in pull_request*) ;; *) return 0 ;; esac
  in_checkout "$sources" || return 0
  local commit
  commit=$(git -C "$sources" rev-parse --verify --quiet HEAD || true)
  [ -n "$commit" ] && [ "$commit" = "${BASE_SHA-}" ] && return 0
  # shellcheck disable=SC2016
  fail 'the files of this action are those of the pull request, which would choose what judges it; check out the base (`ref: ${{ github.event.pull_request.base.sha }}`, with a `path` of its own) and use the action from there'
}

# Runs a program in a folder of its own with what cargo needs, and nothing else of the job's
# environment: no CARGO_*, no RUSTC*, no RUSTUP_TOOLCHAIN, no token.
isolated() {
  local name kept=("PATH=$PATH" "CARGO_HOME=$work/cargo")
  for name in HOME TMPDIR LANG SPARSEK_GATE_REVISION SSL_CERT_FILE SSL_CERT_DIR \
    http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    [ -z "${!name-}" ] || kept+=("$name=${!name}")
  done
  # Where rustup keeps its toolchains, as images for containers set it.
  if [ -n "${RUSTUP_HOME-}" ] && ! in_checkout "$RUSTUP_HOME"; then
    kept+=("RUSTUP_HOME=$RUSTUP_HOME")
  fi
  [ -z "${toolchain-}" ] || kept+=("RUSTUP_TOOLCHAIN=$toolchain")
  (cd "$work/sources" && env -i "${kept[@]}" "$@")
}

# The commit of the action's sources, if they are a checkout of their own; else $ACTION_REF.
revision() {
  if [ "$(real "$(git -C "$sources" rev-parse --show-toplevel 2>/dev/null || echo /nonexistent)")" = "$sources" ]; then
    git -C "$sources" describe --always --abbrev=10 --exclude='*' --dirty=+changes
  else
    echo "${ACTION_REF-}"
  fi
}

build() {
  work=$(mktemp -d "${RUNNER_TEMP:-/tmp}/sparsek-gate-build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  mkdir "$work/cargo" "$work/sources"
  # The toolchain that the owner of the machine chose. No file of the checkout changes it.
  toolchain=$(isolated rustup default 2>/dev/null | cut -d' ' -f1) || toolchain=
  toolchain=${toolchain:-stable}
  local what=(--path .) root
  mkdir -p "$folder"
  root=$(real "$folder")
  if [ -n "${VERSION-}" ]; then
    what=(--version "$VERSION" sparsek-gate)
  else
    refuse_files_of_change
    # The copy has no git, so this variable gives the build what `--version` prints: the commit of the
    # checkout, or else the reference of the action in the workflow.
    SPARSEK_GATE_REVISION=$(revision)
    export SPARSEK_GATE_REVISION
    while read -r path; do
      (cd "$sources" && cp -R --parents "$path" "$work/sources")
    done <"$sources/ci/sources.txt"
    find "$work/sources" \( -name 'rust-toolchain*' -o -name .cargo -o -name target \) -prune -exec rm -rf {} +
  fi
  isolated cargo install --locked --root "$root" "${what[@]}"
}

rm -rf "$folder"
if [ -n "${BINARY-}" ]; then
  program=$(command -v "$BINARY") || fail "there is no program $BINARY (input 'binary')"
  mkdir -p "$folder/bin"
  ln -sf "$(realpath "$program")" "$folder/bin/sparsek-gate"
elif [ "${BUILD-}" = true ] || [ -n "${VERSION-}" ]; then
  command -v cargo >/dev/null ||
    fail "building it needs Rust (https://rustup.rs) on this runner; or name an existing program with the input 'binary'"
  build
else
  refuse_files_of_change
  said=$("$sources/ci/install.sh" "$folder/bin" 2>&1) || {
    echo "$said"
    fail "${said##*ci/install.sh: } With the input 'build: true' the action builds it, which needs Rust on the runner and takes minutes; with 'binary' it takes a program that is there."
  }
  echo "$said"
fi
"$folder/bin/sparsek-gate" --version
echo "$folder/bin" >>"$GITHUB_PATH"

if [ "${CUDA-}" = true ]; then
  refuse_files_of_change
  "$sources/ci/install-cuda.sh" "$folder/cuda"
  # shellcheck disable=SC1091
  source "$folder/cuda/env.sh"
  echo "CUDA_HOME=$CUDA_HOME" >>"$GITHUB_ENV"
  echo "$CUDA_HOME/bin" >>"$GITHUB_PATH"
fi
