#!/usr/bin/env bash
# make test: every test of the project. Arguments go to pytest, and `-m "not rack"` leaves the rack alone.
set -euo pipefail
source "$(dirname "$0")/../scripts/setup/step.sh"
cd "$REPO"
scripts/setup/setup.sh
export PATH=$REPO/.venv/bin:$PATH

[[ " $* " == *"not rack"* ]] || step rack "bringing up the virtual rack (4 nodes, 2 rails)" "$PY" -m testbed.rack up
step pytest "running the tests" "$PY" -m pytest "$@"
say test "finished in $(seconds_since "$SPARKLOOM_STARTED") s"
