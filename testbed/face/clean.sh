#!/usr/bin/env bash
# make clean: the rack, then everything built in this checkout. The caches in ~/.cache/sparkloom stay.
set -euo pipefail
source "$(dirname "$0")/../../scripts/setup/step.sh"
cd "$REPO"

# The rack's own code needs the venv; without one there was never a rack from this checkout.
[[ ! -x $PY || ! -d testbed/beds ]] || step rack "taking down the virtual rack" "$PY" -m testbed rack down
[[ ! -x $PY || ! -d .build/bare ]] || step bare "taking down the bare machines" "$PY" -m testbed bare down
[[ ! -x $PY || ! -d .build/vm ]] || step vm "stopping the virtual machines" "$PY" -m testbed vm down
step files "removing .venv, .build, .cache and build/" rm -rf .venv .build build .cache scripts/sparkloom.egg-info
say clean "kept: ~/.cache/sparkloom (binaries and images; remove it by hand to start cold)"
