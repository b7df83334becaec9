"""Every shipped profile, one after the other by switch.yml: planned, stored, started, answered through TLS.

By its stand-in: the release's own parser judges each rank's command, a fork's own flags are named as not judged, and no
number of its pace means anything. What it shows is that a profile goes the whole way of the product.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkloom import case
from sparkloom.inputs import profile
from testbed.beds.rack import inventory
from testbed.face import summary
from tests.places import REPO
from tests.rack.running import by_tag, run

ASKED = pytest.mark.skipif(not os.environ.get("SPARKLOOM_SERVED"), reason="make test-profiles, or SPARKLOOM_SERVED=1")
pytestmark = [pytest.mark.rack, pytest.mark.slow, pytest.mark.served, ASKED]
JUDGED = re.compile(r"accepted the command line(, but for what its fork adds: --.+)?$")


@pytest.fixture(scope="module", autouse=True)
def images() -> Iterator[None]:
    """One under each profile's image name, on every node; and whatever a first model needs of the nodes."""
    loaded = run(".venv/bin/python", "-m", "testbed", "engine", "load")
    assert loaded.returncode == 0, loaded.stderr[-3000:]
    first = run("ansible-playbook", "-i", str(inventory.path()), "site.yml", "-e", "model_serving_replace=true")
    assert first.returncode == 0, first.stdout[-4000:] + first.stderr[-2000:]
    yield
    stopped = ["playbooks/teardown.yml", "-e", "teardown_serving=true"]
    run("ansible-playbook", "-i", str(inventory.path()), *stopped)


@pytest.fixture
def name(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return by_tag(str(request.param), tmp_path)


@pytest.mark.parametrize("name", profile.names(), indirect=True)
def test_it_goes_the_whole_way(name: str) -> None:
    site = ["playbooks/switch.yml", "-e", f"profile={name}"]
    done = run("ansible-playbook", "-i", str(inventory.path()), *site, ANSIBLE_NOCOLOR="1")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    launch = case.judge(name).launch
    ranks = len(launch.ranks)
    assert re.search(rf"{ranks} ranks? ready after", done.stdout), done.stdout[-3000:]
    answer = json.loads((REPO / "build/kind" / f"{profile.load(name).name}.answer.json").read_text())
    assert answer["tokens"] > 0 and (answer["text"] or answer["reasoning"])
    words = summary.parsers(str(inventory.path()))
    assert len(words) == ranks and all(JUDGED.search(said) for said in words.values()), words
