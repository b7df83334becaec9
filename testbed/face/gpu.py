"""The pack for a machine with a GPU: made here, where there is none."""

from __future__ import annotations

import argparse
import sys

from testbed.base import steps
from testbed.face.console import Console
from testbed.make.gpu import pack

DESCRIPTION = "One folder with all that a rendered rank needs on a machine with a GPU and no way out."
EPILOG = "docs/reference/gpu.md says what ran on one, and what that does not prove."


def make(_: argparse.Namespace) -> int:
    steps.perform(pack.steps())
    print(f"bring {pack.ENGINE} to a machine with a GPU and run bash {pack.SCRIPT} there", file=sys.stderr)
    return 0


def main() -> int:
    console = Console("gpu", DESCRIPTION, EPILOG)
    console.command("pack", make, "make the folder, at most 60 MB")
    return console.main()
