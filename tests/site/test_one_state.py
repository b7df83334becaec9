"""One state of a group: whoever tells it (status, page, `--watch`, doctor, alerts) tells the same of the same pods."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sparkloom import case
from sparkloom.cli import watching
from sparkloom.onnode.now.gather import Gatherer
from sparkloom.onnode.now.groups import WORDS
from sparkloom.onnode.now.picture import FIGURES
from sparkloom.onnode.rank import exposition
from sparkloom.render.metrics.alerts import every
from sparkloom.site import facts, now, status
from sparkloom.site.doctor import look
from sparkloom.site.groups.group import RenderedGroup
from tests import inventories
from tests.fleet_cluster import FleetCluster, installed

GLM, OSS = "nvidia--glm-5.3-flash-nvfp4", "openai--gpt-oss-120b"
PODS = ("glm-rank0-0", "glm-rank1-0", f"{OSS}-rank0-0")
SUPERVISED = ("peers", "engine", "down", "refused", "missing", "failed")
WAITS = ("ImagePullBackOff", "ContainerCreating", "CreateContainerConfigError", "CrashLoopBackOff")
THROWS = 200
BY = "anna@laptop, 2026-11-26 11:20 UTC"


class Made:
    """The site, with glm on demand or not: what was rendered, and what the controller knows."""

    def __init__(self, folder: Path, *, demand: bool) -> None:
        more = ", idle_minutes: 10" if demand else ""
        text = f"serve:\n  - {{profile: {GLM}, name: glm, alias: a{more}}}\n  - {{profile: {OSS}, alias: b}}\n"
        self.demand, self.folder = demand, inventories.serving(folder, text)
        rendered = {name: case.render_group(name, self.folder, force=True) for name in ("glm", OSS)}
        self.groups = {name: RenderedGroup(one, "refuse") for name, one in rendered.items()}
        self.objects = [item for one in rendered.values() for item in one.objects]
        self.planned = facts.planned(self.folder, {})
        self.facts = self.planned.facts()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Made]:
    return {demand: Made(tmp_path_factory.mktemp("site"), demand=demand) for demand in (False, True)}


def thrown(dice: random.Random, site: Made) -> FleetCluster:
    cluster = FleetCluster(site.objects)
    cluster.lost = [pod for pod in PODS if dice.random() < 0.25]
    cluster.ill = [pod for pod in PODS if dice.random() < 0.5]
    cluster.waiting = {pod: dice.choice(WAITS) for pod in PODS if dice.random() < 0.2}
    ill = {pod: dice.choice(SUPERVISED) if pod in cluster.ill else "serving" for pod in PODS}
    cluster.supervisors = {pod: {"phase": phase} for pod, phase in ill.items() if dice.random() < 0.7}
    cluster.asleep = ["glm"] if dice.random() < 0.2 else []
    cluster.stopped = {label: BY for label in ("glm", OSS) if dice.random() < 0.1}
    if dice.random() < 0.1:
        cluster.objects = [item for item in site.objects if item["kind"] != "StatefulSet"]
    return cluster


def doctor(cluster: Any, site: Made, name: str) -> set[str]:
    """What it says of a group that is not as it should be."""
    found = look.judged(cluster, site.groups[name], listed=True, on_demand=site.demand and name == "glm")
    told = {WORDS["down"] if one.message.startswith("nothing served") else one.message for one in found}
    return {word for word in WORDS.values() for text in told if text.startswith((word, f"the group {word}:"))}


def alerted(cluster: FleetCluster, name: str) -> bool:
    """Whether the alert on groups that do not mend themselves fires, by what their ranks' supervisors expose."""
    (rule,) = [one for one in every() if one["alert"] == "SparkloomStaysDown"]
    (phases,) = re.findall(r'phase=~"([a-z|]+)"', rule["expr"])
    there = {pod.metadata.name for pod in cluster.pods({})} - set(cluster.waiting)
    told = [one for pod, one in cluster.supervisors.items() if pod in there and pod.startswith(f"{name}-rank")]
    return any(re.fullmatch(phases, exposition.phase({"serving": False, "compiling": False, **one})) for one in told)


def test_everybody_says_one_state(monkeypatch: pytest.MonkeyPatch, made: dict[bool, Made]) -> None:
    """On the old code: failed there where it was `starts` here, wakes where it was `down`."""
    monkeypatch.setattr(status, "_operation", lambda *_: None)
    monkeypatch.setattr(status, "_current", lambda *_: None)
    met = set()
    for throw in range(THROWS):
        dice = random.Random(throw)
        site = made[dice.random() < 0.5]
        cluster = thrown(dice, site)
        installed(cluster, monkeypatch)
        monkeypatch.setattr(now.facts, "planned", lambda *_, there=site: there.planned)
        shown: Mapping[str, Any] = status.status(site.folder)
        page = Gatherer(cluster, "sparkloom", site.facts).look()
        told, line = status.text(dict(shown)), watching.line(page)
        assert len(shown["groups"]) == len(page["groups"]) == 2
        for here, there in zip(shown["groups"], page["groups"], strict=True):
            name, state = here["name"], here["state"]
            said = f"throw {throw}: {name} {state}"
            by = f" by {BY}" if state == "stopped" else ""
            assert (there["name"], there["state"], there["word"]) == (name, state, WORDS[state] + by), said
            well = state in ("serves", "asleep")
            assert re.search(rf"^  {name} .*\n    {re.escape(status.STATES[state] + by)}", told, re.M), said
            assert (f"{name} {WORDS[state]}{by}" in line) is not well, said
            assert doctor(cluster, site, name) == (set() if well else {WORDS[state]}), said
            assert state == "failed" or not alerted(cluster, name), said
            assert set(there) - set(here) == set(FIGURES), "no other field is the page's alone"
            met.add(state)
    assert met == set(WORDS) - {"gone"}, "the dice met every state of a group in the list"
