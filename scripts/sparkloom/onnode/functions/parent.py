"""The MACs that a port keeps for its functions, beside those that the functions have themselves.

A function that starts anew has the MAC that its port gives it: after a reset, a new start of its driver, in a virtual
machine. Without one it is another at each time.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from sparkloom.onnode.functions import common
from sparkloom.onnode.functions.common import FunctionsError, Steps

notes: list[str] = []


def held(port: str) -> dict[int, str]:
    """By the number of the function; nothing where the driver keeps none."""
    shown = common.ask("ip", "-json", "link", "show", "dev", port) or [{}]
    return {int(entry["vf"]): str(entry.get("address", "")).lower() for entry in shown[0].get("vfinfo_list", ())}


def as_planned(plan: dict[str, Any], here: Iterable[dict[str, Any]]) -> Steps:
    """Only of functions that are `here` on the host: what serves in a pod is left alone."""
    known, port = held(plan["pf"]), plan["pf"]
    before = {"parents_macs": {str(n): address for n, address in known.items()}}

    def give(vf: int, mac: str) -> None:
        common.remember(port, before)
        tell(port, vf, mac)

    for function in here:
        vf, mac = function["vf"], function["mac"]
        if known.get(vf) not in (None, mac):
            yield f"{port}: MAC {mac} for its function {vf}", partial(give, vf, mac)


def as_before(plan: dict[str, Any], was: dict[str, Any], there: int) -> Steps:
    """Functions that are gone took theirs along."""
    port = plan["pf"]
    for vf, mac in held(port).items():
        before = was.get("parents_macs", {}).get(str(vf), mac)
        if before != mac and vf < there:
            yield f"{port}: MAC {before} for its function {vf}, as before", partial(tell, port, vf, before)


def tell(port: str, vf: int, mac: str) -> None:
    try:
        common.ip("link", "set", port, "vf", str(vf), "mac", mac)
    except FunctionsError as error:
        notes.append(f"{port}: its driver takes no MAC for a function ({error}), so it stays as it is")
