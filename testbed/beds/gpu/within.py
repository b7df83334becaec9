"""Before runc makes a container: what is asked for is cut to the rights that this machine's root has itself to give."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from testbed.beds.gpu.container import NUMBERS


def main(words: list[str]) -> None:
    bundle = next((Path(words[at + 1]) for at, word in enumerate(words) if word in ("--bundle", "-b")), Path())
    file = bundle / "config.json"
    spec = json.loads(file.read_text())
    bounding = int(Path("/proc/self/status").read_text().split("CapBnd:")[1].split()[0], 16)
    have = {f"CAP_{name}" for name, number in NUMBERS.items() if bounding >> number & 1}
    told = spec["process"].get("capabilities", {})
    spec["process"]["capabilities"] = {kind: [one for one in asked if one in have] for kind, asked in told.items()}
    file.write_text(json.dumps(spec))


if __name__ == "__main__":
    main(sys.argv[1:])
