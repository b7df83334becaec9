"""`python -m testbed.engine build|load|image-names`: the stand-in engine's images."""

from __future__ import annotations

import argparse
import sys

from testbed.engine import image
from testbed.rack import load, rootfs, steps
from testbed.rack.shell import RackError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m testbed.engine", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="pack the images (cached by content)")
    commands.add_parser("load", help="build, then give the images to every node of the rack")
    commands.add_parser("image-names", help="which profile images the stand-in answers for")
    command = parser.parse_args().command
    try:
        if command == "image-names":
            for (engine, version), references in image.image_names().items():
                print(f"{engine} {version}: {', '.join(references)}")
            return 0
        steps.perform([*rootfs.steps(), *image.steps()])
        if command == "load":
            for node, done in load.load(image.archive()).items():
                print(f"{node}: {done}")
    except RackError as error:
        print(f"engine: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
