"""Keep the rails' functions as /etc/sparkloom/functions.json plans them. Prints what it changed.

Runs at boot before the network, whenever the fabric role runs, and every minute; does nothing when all is as planned. A
function in a living pod is left alone, one that a dead pod left behind comes back.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from sparkloom.onnode.functions import common, lossless, rail
from sparkloom.onnode.functions.common import FunctionsError, Steps, applied
from sparkloom.onnode.host.read import number

PLAN = Path("/etc/sparkloom/functions.json")


def recover(rails: list[rail.Rail], young: float) -> Steps:
    """Planned functions that are missing on the host and that a dead namespace holds."""
    missing = {
        f["mac"].lower(): (f["interface"], (each.pf / f"device/virtfn{f['vf']}").resolve().name)
        for each in rails
        for f in each.plan["functions"]
        if not each.address(f["interface"])
    }
    wanted = {mac: name for mac, (name, _) in missing.items()}
    yield from back(wanted, {place: name for name, place in missing.values()}, young)


def port_home(each: rail.Rail, young: float) -> Steps:
    """A port that pods get whole is in a living pod, or comes back from a dead one; its read-back misses it else."""
    yield from back({}, {each.plan["pci"]: each.plan["pf"]}, young)


def back(by_mac: dict[str, str], by_pci: dict[str, str], young: float) -> Steps:
    for namespace, there, name in rail.find(by_mac, by_pci, young) if by_pci else ():
        text = f"{name}: back from {namespace}, whose pod is gone"
        yield text, partial(rail.bring_home, namespace, there, name)


def as_planned(rails: list[rail.Rail], wait: float, young: float) -> Steps:
    for each in rails:
        if not rail.wait_for(each.pf, wait):
            if not each.plan.get("whole"):
                name = each.plan["pf"]
                raise FunctionsError(f"no {name}: fabric.rails[].pf in the inventory's fabric.yml, or the card is gone")
            yield from port_home(each, young)
            continue
        if number(each.pf / "device/sriov_numvfs"):
            yield from recover([each], young)
        yield from each.as_planned()
        yield from lossless.as_planned(each.plan)


def as_before(rails: list[rail.Rail], dry: bool, young: float) -> list[str]:
    changes = applied(recover([each for each in rails if not each.plan.get("whole")], young), dry)
    for each in rails:
        if each.plan.get("whole") and not rail.wait_for(each.pf, 0):
            changes += applied(port_home(each, young), dry)
    if held := [name for each in rails for name in each.in_use()] if not (changes and dry) else []:
        raise FunctionsError(
            f"{', '.join(held)}: in a pod, nothing was changed; stop what is served first, then undo again"
        )
    for each in rails:
        changes += applied(lossless.as_before(each.plan), dry)
        changes += applied(each.as_before(), dry)
    if not dry:
        common.ORIGIN.unlink(missing_ok=True)
    return changes


def repaired(rails: list[rail.Rail], dry: bool, steady: float, young: float) -> list[str]:
    """Only what a pod left behind, and only what is still so after a while: CNI renames what it gives back itself.

    Everything else that a hand has changed is for the role to mend, and for the doctor to see.
    """

    def mend(dry: bool) -> list[str]:
        found = [each for each in rails if number(each.pf / "device/sriov_numvfs")]
        changes = applied(recover(found, young), dry)
        for each in found:
            renamed = applied(each.name_functions(), dry)
            changes += renamed + (applied(each.set_macs(), dry) if renamed and not dry else [])
            changes += applied(each.settle_in(), dry)
        return changes

    if not (first := mend(True)):
        return []
    time.sleep(steady)
    return mend(dry) if mend(True) == first else []


def run(args: argparse.Namespace, plans: list[dict[str, Any]]) -> list[str]:
    rails = [rail.Rail(plan, args.sysfs) for plan in plans]
    if args.undo:
        return as_before(rails, args.check, args.pod_start)
    if args.steady:
        return repaired(rails, args.check, args.steady, args.pod_start)
    return applied(as_planned(rails, args.wait, args.pod_start), args.check)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("sparkloom-functions", description=__doc__)
    parser.add_argument("--sysfs", type=Path, default=Path("/sys"), help="where sysfs is mounted")
    parser.add_argument("--wait", type=float, default=0, help="seconds to wait for the parents to appear")
    parser.add_argument(
        "--pod-start", type=float, default=120, help="seconds for which a namespace without a process may be a pod's"
    )
    parser.add_argument(
        "--steady",
        type=float,
        default=0,
        help="act on what is still so after these seconds: a pod that ends is not in the way",
    )
    parser.add_argument("--check", action="store_true", help="say what would change, change nothing")
    parser.add_argument("--undo", action="store_true", help="back to the functions of before the first run")
    args = parser.parse_args(words)
    try:
        with PLAN.open() as plan:
            fcntl.flock(plan, fcntl.LOCK_EX)  # the timer's run and the role's do not meet
            changes = run(args, json.load(plan)["rails"])
    except (FunctionsError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(f"changed: {change}" for change in changes) or "as planned")
    for note in (*lossless.notes, *common.notes):
        print(f"note: {note}")
    return 0
