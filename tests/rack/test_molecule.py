"""Every molecule scenario, as part of the one test run."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from testbed.beds.rack import inventory
from tests.later import LATER
from tests.places import REPO

SCENARIOS = sorted(path.parent.name for path in REPO.glob("molecule/*/molecule.yml") if path.parent.name != "default")
# Beyond the time that `make test` has: `make test-more` runs these. What the last seven set up, tests/rack/test_site.py
# sets up too, twice; they add what comes back after drift by hand, and refusals in words. `k3s` has K3s itself there.
MORE = {
    "doctor", "fabric_adopt", "fabric_check", "gateway_key", "k3s_preflight", "k3s_refusals", "k3s_servers", "llamacpp",
    "switch", "k3s", "gateway", "gpu_runtime", "models", "multus", "node_base", "preflight_refusals",
}  # fmt: skip
ASKED = [pytest.param(name, marks=LATER if name in MORE else []) for name in SCENARIOS]
ESCAPES = re.compile(r"\x1b(\[[0-9;]*m|\]8;[^\x1b]*\x1b\\)")


def test_the_table_names_every_scenario() -> None:
    table = (REPO / "molecule/README.md").read_text()
    assert {"fabric", "fabric_refusals"} | MORE <= set(SCENARIOS)
    assert all(f"| `{scenario}` |" in table for scenario in ["default", *SCENARIOS])


@pytest.mark.rack
@pytest.mark.slow
@pytest.mark.parametrize("scenario", ASKED)
def test_scenario(scenario: str) -> None:
    env = {**os.environ, "NO_COLOR": "1", "SPARKLOOM_INVENTORY": str(inventory.path().relative_to(REPO))}
    command = [sys.executable, "-m", "testbed", "scenario", scenario]
    done = subprocess.run(command, cwd=REPO, env=env, capture_output=True, text=True)
    said = ESCAPES.sub("", done.stdout + done.stderr)
    whole = REPO / f".build/scenarios/{scenario}.log"
    whole.parent.mkdir(parents=True, exist_ok=True)
    whole.write_text(said)
    # The first failure; what a scenario's cleanup says after it is in the file.
    start = max(0, min((at for word in ("fatal: ", "failed: ") if (at := said.find(word)) >= 0), default=0) - 2000)
    assert done.returncode == 0, f"all of it: {whole}\n{said[start : start + 8000]}"
