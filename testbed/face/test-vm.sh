#!/usr/bin/env bash
# make test-vm: the fabric on virtual machines with a kernel of their own. Arguments go to pytest.
set -euo pipefail
source "$(dirname "$0")/../../scripts/setup/step.sh"
cd "$REPO"
scripts/setup/setup.sh
export PATH=$REPO/.venv/bin:$PATH

step machines "building and booting what the virtual machines need" "$PY" -m testbed vm build
step k3s "building K3s itself, once (25 minutes of one core)" "$PY" -m testbed bare build
step pytest "the fabric's story on two machines" "$PY" -m pytest -m vm --durations=0 "$@"
say test-vm "finished in $(seconds_since "$SPARKLOOM_STARTED") s"
