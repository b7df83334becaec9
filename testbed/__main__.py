"""`python -m testbed NAME COMMAND`: every command of the test bed by its name."""

from __future__ import annotations

import sys
from importlib import import_module

from sparkloom.base.errors import InputError
from sparkloom.cli import streams
from testbed.base.shell import RackError

COMMANDS = {
    "demo": ("testbed.face.demo", "the demo on one screen, as `make demo` runs it"),
    "rack": ("testbed.face.rack", "the virtual rack: four GB10-shaped Kubernetes nodes with two rails"),
    "bare": ("testbed.face.bare", "bare machines, on which the roles make a K3s cluster"),
    "vm": ("testbed.face.vm", "virtual machines with a kernel of their own"),
    "engine": ("testbed.face.engine", "the stand-in engine's images, and faults for it"),
    "gpu": ("testbed.face.gpu", "one folder for a machine with a GPU, where tests/gpu runs"),
    "scenario": ("testbed.face.scenario", "one molecule scenario, or one step of it"),
    "kills": ("testbed.trials.kills", "kill ranks of a served model, measure until it serves again"),
    "neighbours": ("testbed.trials.neighbours", "kill one group of several, count what the others lose"),
    "refusals": ("testbed.trials.refusals", "break what ranks need, measure until each fault is named"),
    "claims": ("testbed.face.claims", "when each claim was judged, by a stand-in and by the real part"),
    "race": ("testbed.trials.race", "time several ways to bring weights to the nodes"),
    "hub": ("testbed.standins.hub.__main__", "only the stand-in model hub"),
    "pacing": ("testbed.standins.pacing.__main__", "only a stand-in server that logs when it sent each token"),
}


def main() -> int:
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in COMMANDS:
        lines = ["usage: python -m testbed NAME ...   (python -m testbed NAME -h says more)", ""]
        lines += [f"  {known:<12}{text}" for known, (_, text) in COMMANDS.items()]
        asked = name in ("", "-h", "--help")
        print(*lines, sep="\n", file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    del sys.argv[1]
    streams.wrap()  # engines, nodes and tools of others are quoted here too
    try:
        return int(import_module(COMMANDS[name][0]).main())
    except (RackError, InputError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
