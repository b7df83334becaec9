"""The two archives that a node needs: our program, and for the first node the pinned huggingface_hub.

Both are plain Python, so one archive serves any machine; nothing is installed on a node.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from sparkloom.errors import InputError

NODE = Path(__file__).resolve().parent / "node"
START = b"import sys\n\nfrom store_node.main import main\n\nsys.exit(main(sys.argv[1:]))\n"
OPTIONAL = {"hf-xet"}  # compiled for one machine; plain downloads do without it
STAMP = (2000, 1, 1, 0, 0, 0)  # the same content is the same archive


def program(folder: Path) -> Path:
    parts = {f"store_node/{path.name}": path.read_bytes() for path in sorted(NODE.glob("*.py"))}
    return _keep(folder / "store.pyz", {"__main__.py": START, **parts})


def client(folder: Path) -> Path:
    """huggingface_hub as this controller has it, with everything it imports."""
    target = folder / f"hub-client-{metadata.version('huggingface_hub')}.zip"
    if target.exists():
        return target
    parts: dict[str, bytes] = {}
    for distribution in _closure("huggingface_hub"):
        for file in distribution.files or ():
            path = Path(str(distribution.locate_file(file)))
            if ".." not in file.parts and path.is_file() and path.suffix not in {".pyc", ".so", ".pyd"}:
                parts[str(file)] = path.read_bytes()
    return _keep(target, parts)


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


def _keep(target: Path, parts: dict[str, bytes]) -> Path:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(parts.items()):
            archive.writestr(zipfile.ZipInfo(name, STAMP), content, zipfile.ZIP_DEFLATED)
    if not target.exists() or target.read_bytes() != buffer.getvalue():
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = target.with_name(f".{target.name}.new")
        scratch.write_bytes(buffer.getvalue())
        scratch.replace(target)
    return target
