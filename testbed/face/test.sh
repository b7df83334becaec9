#!/usr/bin/env bash
# make test: every test of the project, in three lanes (tests/conftest.py): the rack, the virtual machines, and what needs
# neither and waits more than it computes. Arguments go to pytest; `-m "not rack"` leaves the rack alone, `-n 0` the lanes.
set -euo pipefail
source "$(dirname "$0")/../../scripts/setup/step.sh"
cd "$REPO"
scripts/setup/setup.sh
export PATH=$REPO/.venv/bin:$PATH

[[ " $* " == *"not rack"* ]] || step rack "bringing up the virtual rack (4 nodes, 2 rails)" "$PY" -m testbed rack up
if [[ -n ${SPARKLOOM_MORE-} ]]; then
  step k3s "building K3s itself, once (25 minutes of one core)" "$PY" -m testbed bare build
fi
# The fabric on a kernel of its own is emulated and takes a quarter of an hour: `make test-vm`, or here with SPARKLOOM_VM=1.
if [[ -n ${SPARKLOOM_VM-} ]]; then
  step machines "building and booting what the virtual machines need" "$PY" -m testbed vm build
fi
command -v chromium >/dev/null || step browser "installing Chromium, once: 110 MB to fetch, 400 on disk, a minute" \
  "$PY" -c 'from testbed.base.machine import browser; browser(print)'
{ command -v zsh && command -v fish; } >/dev/null || step shells "installing zsh and fish, once: completion is typed in them" \
  "$PY" -c 'from testbed.base.machine import shells; shells(print)'
lanes=(-n 3 --durations 15)
step pytest "running the tests" "$PY" -m pytest "${lanes[@]}" "$@"
say test "finished in $(seconds_since "$SPARKLOOM_STARTED") s"
