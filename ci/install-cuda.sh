#!/usr/bin/env bash
# Installs the pinned CUDA compiler from PyPI, or another RELEASE, into FOLDER, and writes FOLDER/env.sh, a file
# to source.
set -euo pipefail
folder=${1:?usage: ci/install-cuda.sh FOLDER [RELEASE]}
pins=("cuda-toolkit[nvcc,nvvm,crt,cudart,cccl]==${2:-13.0.2}" nvidia-cuda-cuobjdump==13.2.86 nvidia-cuda-nvdisasm==13.2.86)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
if [ "$(cat "$folder/pins" 2>/dev/null)" != "${pins[*]}" ]; then
  # -I: no module of the folder where this starts, which may be the checkout of a change.
  python3 -I -m venv "$folder/venv"
  "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "${pins[@]}"
  echo "${pins[*]}" >"$folder/pins"
fi
home=$(echo "$folder"/venv/lib/python3.*/site-packages/nvidia/cu13)
# The name by which a linker that CMake calls looks for the libraries.
ln -sfn lib "$home/lib64"
printf 'export CUDA_HOME=%q\nexport PATH="$CUDA_HOME/bin:$PATH"\n' "$home" >"$folder/env.sh"
"$home/bin/nvcc" --version | tail -2
