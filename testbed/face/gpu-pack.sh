#!/usr/bin/env bash
# make gpu-pack: .build/gpu/pack, at most 60 MB, for a machine with an NVIDIA GPU and no way out (docs/reference/gpu.md).
set -euo pipefail
source "$(dirname "$0")/../../scripts/setup/step.sh"
cd "$REPO"
scripts/setup/setup.sh
step pack "SGLang, NVIDIA's runtime, the product and its pods as one folder" "$PY" -m testbed gpu pack
say gpu-pack "finished in $(seconds_since "$SPARKLOOM_STARTED") s"
