"""The two archives that a node needs: our program, and for the first node the pinned huggingface_hub.

Both are plain Python, so one archive serves any machine; nothing is installed on a node.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from sparkloom.base.errors import InputError

PACKAGE = Path(__file__).resolve().parents[1]
START = b"import sys\n\nfrom sparkloom.onnode.weights.main import main\n\nsys.exit(main(sys.argv[1:]))\n"
OPTIONAL = {"hf-xet"}  # compiled for one machine; plain downloads do without it
STAMP = (2000, 1, 1, 0, 0, 0)  # the same content is the same archive


def program(folder: Path) -> Path:
    files = [*(PACKAGE / name for name in ("__init__.py", "onnode/__init__.py")), *PACKAGE.glob("onnode/weights/*.py")]
    parts = {f"sparkloom/{path.relative_to(PACKAGE)}": path.read_bytes() for path in files}
    return _keep(folder, "store", {"__main__.py": START, **parts})


def client(folder: Path) -> Path:
    """huggingface_hub as this controller has it, with everything it imports."""
    parts: dict[str, bytes] = {}
    for distribution in _closure("huggingface_hub"):
        for file in distribution.files or ():
            path = Path(str(distribution.locate_file(file)))
            if ".." not in file.parts and path.is_file() and path.suffix not in {".pyc", ".so", ".pyd"}:
                parts[str(file)] = path.read_bytes()
    return _keep(folder, "hub-client", parts)


def _closure(name: str) -> Iterator[metadata.Distribution]:
    waiting, seen = [name], set(OPTIONAL)
    while waiting:
        current = waiting.pop().lower().replace("_", "-")
        if current in seen:
            continue
        seen.add(current)
        try:
            distribution = metadata.distribution(current)
        except metadata.PackageNotFoundError:
            raise InputError.single(
                ".venv", f"{current} is not installed, which huggingface_hub needs; run `make setup`", rule="setup"
            ) from None
        yield distribution
        for text in distribution.requires or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(needed.name)


def _keep(folder: Path, name: str, parts: dict[str, bytes]) -> Path:
    """The archive, named by what is in it; made when it is not there yet."""
    digest = hashlib.sha256()
    for part, content in sorted(parts.items()):
        digest.update(f"{part}\0{len(content)}\0".encode() + content)
    target = folder / f"{name}-{digest.hexdigest()[:12]}.zip"
    if not target.exists():
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for part, content in sorted(parts.items()):
                archive.writestr(zipfile.ZipInfo(part, STAMP), content, zipfile.ZIP_DEFLATED)
        folder.mkdir(parents=True, exist_ok=True)
        scratch = target.with_name(f".{target.name}.new")
        scratch.write_bytes(buffer.getvalue())
        scratch.replace(target)
    return target
