"""What the parts of this program share, and the MACs that a port keeps for its functions, beside their own.

A function that starts anew has the MAC that its port gives it: after a reset, a new start of its driver, in a virtual
machine. Without one it is another at each time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from sparkloom.onnode.host import backup
from sparkloom.onnode.host.read import outcome, text

Step = tuple[str, Callable[[], object]]  # what changes, and what does it
Steps = Iterator[Step]
ORIGIN = Path("/var/lib/sparkloom/origin/functions.json")
notes: list[str] = []


class FunctionsError(Exception):
    """The plan cannot be met; the message says what was found and what to change."""


def applied(steps: Iterable[Step], dry: bool) -> list[str]:
    """What was changed, or would be; each step is done before the next one is looked for."""
    changes = []
    for what, act in steps:
        changes.append(what)
        if not dry:
            act()
    return changes


def ip(*args: str) -> None:
    call("ip", *args)


def call(*argv: str) -> None:
    if why := outcome(*argv, timeout=300)[1]:
        raise FunctionsError(f"{' '.join(argv)}: {why}")


def ask(*argv: str) -> Any:
    """What a program that speaks JSON says; None where it is missing or refuses."""
    told, why = outcome(*argv, timeout=20)
    try:
        return None if why else json.loads(told or "[]")
    except ValueError:
        return None


def remembered() -> dict[str, dict[str, Any]]:
    """How each port was before the first change."""
    return dict(json.loads(text(ORIGIN) or "{}"))


def remember(port: str, facts: dict[str, Any]) -> None:
    """Once: what a later run finds is what an earlier one made."""
    kept = remembered()
    was = kept.get(port, {})
    merged = {**facts, **was}
    if "files" in facts:
        merged["files"] = {**facts["files"], **was.get("files", {})}
    if kept.get(port) == merged:
        return
    ORIGIN.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    backup.write(ORIGIN, json.dumps({**kept, port: merged}, indent=1) + "\n", 0o644)


def remember_first(port: str, facts: dict[str, Any], act: Callable[[], object]) -> None:
    remember(port, facts)
    act()


def held(port: str) -> dict[int, str]:
    """By the number of the function; nothing where the driver keeps none."""
    shown = ask("ip", "-json", "link", "show", "dev", port) or [{}]
    return {int(entry["vf"]): str(entry.get("address", "")).lower() for entry in shown[0].get("vfinfo_list", ())}


def as_planned(plan: dict[str, Any], here: Iterable[dict[str, Any]]) -> Steps:
    """Only of functions that are `here` on the host: what serves in a pod is left alone."""
    known, port = held(plan["pf"]), plan["pf"]
    before = {"parents_macs": {str(n): address for n, address in known.items()}}

    for function in here:
        vf, mac = function["vf"], function["mac"]
        if known.get(vf) not in (None, mac):
            give = partial(remember_first, port, before, partial(tell, port, vf, mac))
            yield f"{port}: MAC {mac} for its function {vf}", give


def as_before(plan: dict[str, Any], was: dict[str, Any], there: int) -> Steps:
    """Functions that are gone took theirs along."""
    port = plan["pf"]
    for vf, mac in held(port).items():
        before = was.get("parents_macs", {}).get(str(vf), mac)
        if before != mac and vf < there:
            yield f"{port}: MAC {before} for its function {vf}, as before", partial(tell, port, vf, before)


def tell(port: str, vf: int, mac: str) -> None:
    try:
        ip("link", "set", port, "vf", str(vf), "mac", mac)
    except FunctionsError as error:
        notes.append(f"{port}: its driver takes no MAC for a function ({error}), so it stays as it is")
