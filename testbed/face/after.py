"""What a person may type once `make demo` has ended: each command as it works from this folder, none wider than 80."""

from __future__ import annotations

import shlex
from pathlib import Path

from sparkloom import case
from sparkloom.base.repository import WORK
from sparkloom.site import endpoint
from testbed.base import names
from testbed.standins.hub import tiny

ASKED = "Name the capital of France."
OWN = "/tmp/openai"  # a venv of the person's own, to be thrown away


def text(inventory: Path, profile: str, model: str) -> str:
    where = endpoint.reach(case.cluster(inventory), inventory)
    site = inventory.relative_to(WORK)
    rack = "" if names.CLUSTER == "sparkloom" else f"SPARKLOOM_RACK={shlex.quote(names.CLUSTER)} "
    testbed = f"{rack}.venv/bin/python -m testbed"
    return f"""
Now, in this folder (a block may be pasted whole):
  # ask it again, by curl
  G={names.STATE.relative_to(WORK)}/gateway; export OPENAI_BASE_URL={where.url}/v1
  export OPENAI_API_KEY=$(cat $G/api-key)
  curl --cacert $G/ca.pem $OPENAI_BASE_URL/chat/completions \\
    -H "Authorization: Bearer $OPENAI_API_KEY" \\
    -H 'Content-Type: application/json' \\
    -d '{{"messages":[{{"role":"user","content":"{ASKED}"}}]}}'
  # by openai's package
  python3 -m venv {OWN} && {OWN}/bin/pip install -q openai
  SSL_CERT_FILE=$G/ca.pem {OWN}/bin/python -c 'import openai; print(
    openai.OpenAI().responses.create(model="{model}",
    input="{ASKED}").output_text)'
  # open a page, {where.url}/, which asks for the key shown here
  .venv/bin/sparkloom keys add me -i {site}
  SPARKLOOM_PROFILES={tiny.PROFILES.relative_to(WORK)} .venv/bin/ansible-playbook \\
    -i {site} playbooks/gateway.yml \\
    -e profile={profile}
  # kill a rank; see it come back, in another terminal
  {testbed} kills engine --rounds 1
  .venv/bin/sparkloom status -i {site} --watch
  # take it down
  {testbed} rack down"""
