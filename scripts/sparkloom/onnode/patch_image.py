"""Changes the packages installed here as the patches of one file say, all or none: a step of an image's build.

`python3 apply.pyz patches.json`. A rank that starts from such an image finds its patches applied and leaves them alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from sparkloom.onnode.rank import patching


def main(words: list[str]) -> int:
    patches = json.loads(Path(words[0]).read_text())
    try:
        changed = patching.prepare(patches, patching.find_package)
    except patching.PatchError as refusal:
        print(f"sparkloom: {refusal}", file=sys.stderr)
        return 1
    for (folder, inner), text in changed.items():
        (folder / inner).write_text(text)
        for stale in (folder / inner).parent.glob(f"__pycache__/{Path(inner).stem}.*.pyc"):
            stale.unlink()
    print(f"sparkloom: {len(changed)} files changed for {len(patches)} patches")
    return 0
