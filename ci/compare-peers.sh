#!/usr/bin/env bash
# Compares the shipped kernels with the libraries of their fields (cuBLAS, Triton, torch.compile,
# cuDNN, flash attention) side by side on one GPU:
#
#     ci/compare-peers.sh [--only FAMILY[/VARIANT]] [--sweep] [--targets] [--prebuilt FOLDER] [OUTPUT]
#
# A table goes to the standard output, every sample to OUTPUT as JSON. Needs an H100 or H200, nvcc,
# and a Python with PyTorch and Triton: that of $PYTHON, or python3. --help tells more.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
  echo "ci/compare-peers.sh: $python is no Python 3.10 or later: install one, or name one in PYTHON" >&2
  exit 2
fi
exec "$python" "$root/ci/peers" "$@"
