#!/usr/bin/env bash
# make demo: from this checkout to streamed answers on the virtual rack, through TLS and with a key: of one model, of
# another, and of SmolLM2, a small real one, that llama.cpp itself serves over two nodes. PROFILE=name and OTHER=name choose the first
# two; an empty PROFILE, OTHER or REAL leaves that one out.
set -euo pipefail
source "$(dirname "$0")/../../scripts/setup/step.sh"
cd "$REPO"
scripts/setup/setup.sh
export PATH=$REPO/.venv/bin:$PATH
inventory=$("$PY" -m testbed rack inventory)
profile=${PROFILE-$(sed -n 's/^profile: *\([^ #]*\).*/\1/p' "$inventory/group_vars/all/cluster.yml")}
other=${OTHER-nvidia--nemotron-3-super-120b-a12b-nvfp4}
real=${REAL-smollm2-135m-instruct--llamacpp-2node}

step rack "bringing up the virtual rack (4 nodes, 2 rails, Traefik)" "$PY" -m testbed rack up --lean \
  ${profile:+--serving "$profile"} ${other:+--serving "$other"}
if [[ -n $profile$other ]]; then # an empty one names none
  step engine "building the stand-in engine's images" "$PY" -m testbed engine build $profile $other
  step engine "loading them into the nodes" "$PY" -m testbed engine load $profile $other
fi
if [[ -n $profile ]]; then
  step plan "what $profile will do on these four nodes" sparkloom plan "$profile" -i "$inventory"
  step site "ansible-playbook -i $inventory site.yml -e profile=$profile" \
    ansible-playbook -i "$inventory" site.yml -e "profile=$profile"
  "$PY" -m testbed.face.summary "$inventory" "$profile"
fi
if [[ -n $other ]]; then
  step switch "ansible-playbook -i $inventory playbooks/switch.yml -e profile=$other" \
    ansible-playbook -i "$inventory" playbooks/switch.yml -e "profile=$other"
  "$PY" -m testbed.face.summary "$inventory" "$other"
fi
if [[ -n $real ]]; then
  export SPARKLOOM_PROFILES=$REPO/testbed/make/real/profiles
  step real "giving llama.cpp itself, on CPU, to two nodes" "$PY" -m testbed engine real llamacpp spark1 spark2
  step switch "ansible-playbook -i $inventory playbooks/switch.yml -e profile=$real" \
    ansible-playbook -i "$inventory" playbooks/switch.yml -e "profile=$real"
  "$PY" -m testbed.face.summary "$inventory" "$real"
fi
say demo "finished in $(seconds_since "$SPARKLOOM_STARTED") s"
