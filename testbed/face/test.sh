#!/usr/bin/env bash
# make test: every test of the project, in three lanes (tests/conftest.py): the rack, the virtual machines, and what needs
# neither and waits more than it computes. Arguments go to pytest; `-m "not rack"` leaves the rack alone, `-n 0` the lanes.
set -euo pipefail
source "$(dirname "$0")/../../scripts/setup/step.sh"
cd "$REPO"
scripts/setup/setup.sh
export PATH=$REPO/.venv/bin:$PATH

[[ " $* " == *"not rack"* ]] || step rack "bringing up the virtual rack (4 nodes, 2 rails)" "$PY" -m testbed rack up
# The fabric on a kernel of its own: two minutes to build once, then seven. SPARKLOOM_VM= leaves it out.
if [[ -n ${SPARKLOOM_VM-1} && " $* " != *"not rack"* ]] && "$PY" -m testbed vm able; then
  step machines "building and booting what the virtual machines need" "$PY" -m testbed vm build
  export SPARKLOOM_VM=1
fi
lanes=(-n 3 --durations 15)
step pytest "running the tests" "$PY" -m pytest "${lanes[@]}" "$@"
say test "finished in $(seconds_since "$SPARKLOOM_STARTED") s"
