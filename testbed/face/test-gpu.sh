#!/usr/bin/env bash
# make test-gpu: lays the pack out and shows on a GPU what racks cannot (tests/gpu). On the machine with the GPU, where
# there is no checkout: bash PACK/test-gpu.sh. Arguments go to pytest; logs and run.json go to $OUT.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
pack=$here
[[ -e $pack/site.tar.xz ]] || pack=$here/../../.build/gpu/pack
export SPARKLOOM_GPU_ROOT=${SPARKLOOM_GPU_ROOT:-/opt/sparkloom-gpu} PYTHONDONTWRITEBYTECODE=1

if [[ -e $pack/site.tar.xz ]] && command -v nvidia-smi >/dev/null; then
  mkdir -p "$SPARKLOOM_GPU_ROOT/site" "$SPARKLOOM_GPU_ROOT/product"
  [[ -e $SPARKLOOM_GPU_ROOT/site/sglang ]] || tar -C "$SPARKLOOM_GPU_ROOT/site" -xJf "$pack/site.tar.xz" &
  tar -C "$SPARKLOOM_GPU_ROOT" -xJf "$pack/programs.tar.xz"
  tar -C "$SPARKLOOM_GPU_ROOT" -xJf "$pack/rendered.tar.xz"
  tar -C "$SPARKLOOM_GPU_ROOT/product" -xJf "$pack/product.tar.xz"
  for more in "$pack"/../cluster/cluster.tar.xz; do
    [[ ! -e $more ]] || cp "$more" "$SPARKLOOM_GPU_ROOT"
  done
  wait
  export SPARKLOOM_GPU_PACK=$pack
  cd "$SPARKLOOM_GPU_ROOT/product"
  set -- -p no:cacheprovider "$@"
  export PYTHONPATH=$PWD/scripts
  python=python3
else
  cd "$here/../.."
  python=$PWD/.venv/bin/python
fi
exec "$python" -m pytest -q -rs --durations=0 --durations-min=1 --override-ini=addopts=--import-mode=importlib tests/gpu "$@"
