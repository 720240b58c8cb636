#!/usr/bin/env bash
# Compares the shipped kernels with the libraries of their fields (cuBLAS, Triton, torch.compile,
# cuDNN, flash attention) side by side on one GPU:
#
#     kernels/peers/run.sh [--only FAMILY[/VARIANT]] [--sweep] [--targets] [--prebuilt FOLDER] [OUTPUT]
#
# Prints a table on the standard output, and writes every sample to OUTPUT as JSON. Needs an H100 or
# H200, nvcc, and a Python with PyTorch and Triton: $PYTHON, or else python3. See also --help.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
  echo "kernels/peers/run.sh: $python is not Python 3.10 or later: install it, or set PYTHON to one" >&2
  exit 2
fi
exec "$python" "$root/kernels/peers" "$@"
