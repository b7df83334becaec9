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

from sparkloom.onnode.functions import common, hotplug, lossless, pods, rail
from sparkloom.onnode.functions.common import FunctionsError, Steps, applied
from sparkloom.onnode.host import pci
from sparkloom.onnode.host.read import number

PLAN = Path("/etc/sparkloom/functions.json")


def recover(rails: list[rail.Rail], young: float) -> Steps:
    """Planned functions that are missing on the host and that a dead namespace holds."""
    missing = [(r, f) for r in rails for f in r.plan["functions"] if not r.address(f["interface"])]
    by_mac = {f["mac"].lower(): f["interface"] for _, f in missing}
    by_pci = {(r.pf / f"device/virtfn{f['vf']}").resolve().name: f["interface"] for r, f in missing}
    yield from back(by_mac, by_pci, young)


def port_home(each: rail.Rail, young: float) -> Steps:
    """A port that pods get whole is in a living pod, or comes back from a dead one; its read-back misses it else."""
    yield from back({}, {each.plan["pci"]: each.plan["pf"]}, young)


def back(by_mac: dict[str, str], by_pci: dict[str, str], young: float) -> Steps:
    for namespace, there, name in rail.find(by_mac, by_pci, young) if by_pci else ():
        text = f"{name}: back from {namespace}, whose pod is gone"
        yield text, partial(rail.bring_home, namespace, there, name)


def as_planned(plan: dict[str, Any], rails: list[rail.Rail], args: argparse.Namespace) -> Steps:
    yield from hotplug.as_planned(plan, args.sysfs)
    for each in rails:
        if rail.wait_for(each.pf, args.wait):
            yield from of_port(each, args.pod_start)
        elif each.plan.get("whole"):
            yield from port_home(each, args.pod_start)
        else:
            raise FunctionsError(f"no {each.plan['pf']}: {why_not(args.sysfs)}")


def why_not(sysfs: Path) -> str:
    told = pci.hotplug(sysfs)
    if told.get("enabled") and not told["cable"]:
        return "hot-plug took the card off the bus, as it sees no cable; with the cable it comes back, and this with it"
    return "fabric.rails[].pf in the inventory's fabric.yml, or the card is gone"


def of_port(each: rail.Rail, young: float) -> Steps:
    if number(each.pf / "device/sriov_numvfs"):
        yield from recover([each], young)
    yield from each.as_planned()
    yield from lossless.as_planned(each.plan)


def as_before(rails: list[rail.Rail], args: argparse.Namespace) -> list[str]:
    dry, young = args.check, args.pod_start
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
    changes += applied(hotplug.as_before(args.sysfs), dry)
    if not dry:
        common.ORIGIN.unlink(missing_ok=True)
    return changes


def repaired(plan: dict[str, Any], rails: list[rail.Rail], args: argparse.Namespace) -> list[str]:
    """Only what a pod left behind, and only what is still so after a while: CNI renames what it gives back itself.

    A port without functions came back to the bus: it gets them at once. Everything else that a hand has changed is for
    the role to mend, and for the doctor to see.
    """
    young = args.pod_start

    def mend(dry: bool) -> list[str]:
        ports = [each for each in rails if each.pf.exists()]
        found = [each for each in ports if number(each.pf / "device/sriov_numvfs")]
        bare = [each for each in ports if each not in found and (args.back or not each.plan.get("whole"))]
        changes = [change for each in bare for change in applied(of_port(each, young), dry)]
        everything = all(each in ports or each.plan.get("whole") for each in rails)
        if everything and (changes or args.back):
            changes += applied(pods.without_functions(plan.get("runtimes", ())), dry)
        changes += applied(recover(found, young), dry)
        for each in found:
            renamed = applied(each.name_functions(), dry)
            changes += renamed + (applied(each.set_macs(), dry) if renamed and not dry else [])
            changes += applied(each.settle_in(), dry)
        return changes

    if args.back:
        return mend(args.check)
    first = mend(True)
    if not first:
        return []
    time.sleep(args.steady)
    return mend(args.check) if mend(True) == first else []


def run(args: argparse.Namespace, plan: dict[str, Any]) -> list[str]:
    rails = [rail.Rail(each, args.sysfs) for each in plan["rails"]]
    if args.undo:
        return as_before(rails, args)
    if args.back and not common.remembered():
        return []  # undone: a port also comes to udev when its functions go
    if args.steady or args.back:
        return repaired(plan, rails, args)
    return applied(as_planned(plan, rails, args), args.check)


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
    parser.add_argument("--back", action="store_true", help="what a port lacks that came back to the bus, and its pods")
    parser.add_argument("--check", action="store_true", help="say what would change, change nothing")
    parser.add_argument("--undo", action="store_true", help="back to the functions of before the first run")
    args = parser.parse_args(words)
    try:
        with PLAN.open() as plan:
            fcntl.flock(plan, fcntl.LOCK_EX)  # the timer's run and the role's do not meet
            changes = run(args, json.load(plan))
    except (FunctionsError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(f"changed: {change}" for change in changes) or "as planned")
    for note in (*lossless.notes, *common.notes):
        print(f"note: {note}")
    return 0
