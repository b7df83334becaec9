"""`make demo`: from this checkout to streamed answers on the virtual rack, on one screen.

Of one model and of another, both by stand-ins, and of a real one that llama.cpp itself serves over two nodes.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

from sparkloom import case
from sparkloom.base import document
from sparkloom.base.repository import REPO
from sparkloom.cli import upping
from sparkloom.site import up as runs
from testbed.base import names, steps
from testbed.base.screen import log_file, row
from testbed.base.shell import RackError, answer
from testbed.beds.rack import inventory, load
from testbed.face import after, rack, summary
from testbed.make import engine_image
from testbed.make.real import llamacpp
from testbed.standins.hub import tiny

OTHER = "nvidia--nemotron-3-super-120b-a12b-nvfp4"
REAL = "smollm2-135m-instruct--llamacpp-2node"
REAL_NODES = ("spark1", "spark2")
PLAYBOOKS = {"site": REPO / "site.yml", "switch": REPO / "playbooks/switch.yml"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m testbed demo", description=(__doc__ or "").split("\n")[0])
    for name, default, what in (
        ("PROFILE", _of(inventory.KIND), "the first model, by site.yml"),
        ("OTHER", OTHER, "the second, by switch.yml"),
        ("REAL", REAL, "the one that an engine itself serves"),
    ):
        help_text = f"{what}; an empty name leaves it out (default: ${name}, or {default})"
        parser.add_argument(f"--{name.lower()}", default=os.environ.get(name, default), help=help_text)
    args = parser.parse_args()
    return answer(lambda: _demo(args.profile, args.other, args.real), names.CACHE / "logs/demo-error.log")


def _of(site: Path) -> str:
    """The inventory's own profile."""
    return str(document.load(site / "group_vars/all/cluster.yml").data["profile"])


def _demo(profile: str, other: str, real: str) -> int:
    site = inventory.path()
    standins = [name for name in (profile, other) if name]
    begun = time.monotonic()
    rack.bring_up(lean=True, serving=standins, images_beside=llamacpp.steps()[-1:] if real else [])
    steps.perform(_engines(standins, real))
    print(row("all of the rack", time.monotonic() - begun, "four nodes, two rails, TLS endpoint, engines"))
    summary.tell(f"\nEach model is asked: {summary.QUESTION}")
    name = model = ""
    for number, name in enumerate(one for one in (profile, other, real) if one):
        if name == real:
            os.environ["SPARKLOOM_PROFILES"] = str(tiny.PROFILES)
        parts: list[str] = []
        steps.perform([_serves(site, name, "switch" if number else "site", parts)])
        summary.tell(", ".join(parts), "  ")
        model = summary.answer(case.cluster(site).name, site, name)
        if not number:
            summary.memory(site)
    if model:
        print(after.text(site, name, model))
    return 0


def _engines(standins: list[str], real: str) -> list[steps.Step]:
    """Images of what is served, then given to the nodes."""
    made: list[steps.Step] = []
    brought: list[steps.Step] = []
    if standins:
        chosen = tuple(standins)
        made += engine_image.steps(chosen)
        title = "gives the stand-in engines to every node"
        brought.append(_brought("engines", title, lambda: engine_image.archive(chosen)))
    if real:
        brought.append(_brought("llama.cpp", "gives llama.cpp itself to two nodes", llamacpp.archive, REAL_NODES))
    return [*made, *brought]


def _brought(name: str, title: str, archive: Callable[[], Path], only: tuple[str, ...] = ()) -> steps.Step:
    return steps.Step(name, title, lambda: False, lambda say: say(str(load.load(archive(), only, unpack=bool(only)))))


def _serves(site: Path, profile: str, how: str, took: list[str]) -> steps.Step:
    """By the playbook that a person with Sparks would run, of whose parts it is told how long each took."""

    def act(say: steps.Say) -> None:
        log, shown, begun = log_file().with_name(f"demo-{profile}.log"), "", time.time()

        def show(progress: runs.Progress) -> None:
            nonlocal shown
            part = next((part.tag for part in progress.parts if part.state == "runs"), how)
            if (now := f"{part}: {upping.plain(progress.task)}") != shown:
                shown = now
                say(now)

        words = ["-e", f"profile={profile}", "-e", "model_serving_replace=true"]
        ended = runs.run(site, words, log, show, PLAYBOOKS[how])
        if ended.interrupted:
            raise KeyboardInterrupt
        if not ended.good:
            raise RackError(upping.failure(ended, time.time() - begun, log).strip())
        took.extend(f"{part.tag} {part.seconds(0):.0f} s" for part in ended.parts if how == "site" and part.ended)

    return steps.Step(f"{how}.yml", f"serves {profile}", lambda: False, act)
