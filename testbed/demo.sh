#!/usr/bin/env bash
# make demo: from this checkout to a streamed answer on the virtual rack. PROFILE=name chooses what is served.
set -euo pipefail
source "$(dirname "$0")/../scripts/setup/step.sh"
cd "$REPO"
scripts/setup/setup.sh
export PATH=$REPO/.venv/bin:$PATH
inventory=inventories/kind
profile=${PROFILE:-$(sed -n 's/^profile: *\([^ #]*\).*/\1/p' "$inventory/group_vars/all/cluster.yml")}

step rack "bringing up the virtual rack (4 nodes, 2 rails)" "$PY" -m testbed.rack up
step engine "building the stand-in engine's image" "$PY" -m testbed.engine build
step engine "loading it into the nodes" "$PY" -m testbed.engine load
step plan "what $profile will do on these four nodes" sparkloom plan "$profile" -i "$inventory"
step site "ansible-playbook -i $inventory site.yml -e profile=$profile" \
  ansible-playbook -i "$inventory" site.yml -e "profile=$profile"
"$PY" testbed/summary.py "build/$(basename "$inventory")" "$profile"
say demo "finished in $(seconds_since "$SPARKLOOM_STARTED") s"
