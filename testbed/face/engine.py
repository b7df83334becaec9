"""`python -m testbed engine build|load|image-names|fault|mend`: the stand-in engine's images, and its faults."""

from __future__ import annotations

import argparse
import json
import sys

from testbed.base import steps
from testbed.base.shell import RackError
from testbed.beds.rack import load
from testbed.make import engine_image, rootfs
from testbed.trials import engine_faults


def main() -> int:
    args = _parser().parse_args()
    try:
        return int(args.run(args))
    except RackError as error:
        print(f"engine: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("engine: stopped; what was built stays, type it again to go on", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m testbed engine", description=__doc__, epilog="docs/stand-in-engine.md tells what is real."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="pack the images (cached by content)").set_defaults(run=_build)
    commands.add_parser("load", help="build, then give the images to every node").set_defaults(run=_load)
    listed = commands.add_parser("image-names", help="which profile images the stand-in answers for")
    listed.add_argument("--json", action="store_true")
    listed.set_defaults(run=_names)
    kinds = "\n".join(f"  {name:<20} {meaning}" for name, meaning in engine_faults.KINDS.items())
    fault = commands.add_parser(
        "fault",
        help="make the engine of one node, or of all, misbehave",
        description=f"Faults, with their settings as words NAME=VALUE:\n{kinds}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    fault.add_argument("node", help="spark1..spark4, or all")
    fault.add_argument("name", metavar="FAULT", choices=list(engine_faults.KINDS))
    fault.add_argument("settings", nargs="*", metavar="NAME=VALUE")
    fault.set_defaults(run=_fault)
    mend = commands.add_parser("mend", help="take faults back; a rank that died is started again by Kubernetes")
    mend.add_argument("node", help="spark1..spark4, or all")
    mend.add_argument("name", metavar="FAULT", nargs="?", choices=list(engine_faults.KINDS))
    mend.set_defaults(run=_mend)
    return parser


def _build(_: argparse.Namespace) -> int:
    steps.perform([*rootfs.steps(), *engine_image.steps()])
    return 0


def _load(args: argparse.Namespace) -> int:
    _build(args)
    for node, done in load.load(engine_image.archive()).items():
        print(f"{node}: {done}")
    return 0


def _names(args: argparse.Namespace) -> int:
    if args.json:
        print(json.dumps([vars(one) for one in engine_image.wanted()], indent=1))
        return 0
    for one in engine_image.wanted():
        print(f"{one.engine} {one.release}: {one.reference}")
    return 0


def _fault(args: argparse.Namespace) -> int:
    print(json.dumps(engine_faults.add(args.node, args.name, args.settings)))
    return 0


def _mend(args: argparse.Namespace) -> int:
    print(json.dumps(engine_faults.mend(args.node, args.name)))
    return 0
