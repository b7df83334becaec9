"""The one way in which our Python reaches a node or a pod: an archive that `python3 FILE` starts.

A program is a module of onnode/, or a package with a `main.py`, that has `main(words)` and returns an exit status. Its
archive holds it and what it imports, plain and with one time of change: the same sources are the same bytes everywhere,
and nothing is installed where it runs. huggingface_hub, which a node needs to ask the hub, goes the same way.
"""

from __future__ import annotations

import io
import re
import zipfile
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from sparkloom.base import files
from sparkloom.base.errors import InputError
from sparkloom.onnode.rank.reading import digest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = (
    "allreduce", "functions", "host_metrics", "images", "memory_guard", "page", "patch_image", "rails_table", "rank",
    "tasks", "waker", "weights",
)  # fmt: skip
# What `tasks` imports by its name, when it is asked for.
TASKS = sorted(path.stem for path in (ROOT / "sparkloom/onnode/tasks").glob("[a-z]*.py"))
START = "import sys\n\nfrom {} import main\n\nsys.exit(main(sys.argv[1:]))\n"
# Read as text: to parse every file takes longer than to render a profile.
IMPORT = re.compile(r"^\s*(?:from (sparkloom[\w.]*) import (\([^)]*\)|.*)|import (sparkloom[\w.]*))", re.M)
DATA = re.compile(r'get_data\(__package__, "([^"]+)"\)')  # a file beside a module that it reads
OPTIONAL = {"hf-xet"}  # compiled for one machine; plain downloads do without it
TIME = (2000, 1, 1, 0, 0, 0)
STAMP = 12  # digits of a hash over all parts


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    stamp: str  # over all that is in it
    archive: bytes

    @property
    def base64(self) -> str:
        """As a ConfigMap and a module's arguments take it."""
        return b64encode(self.archive).decode()

    def keep(self, folder: Path) -> Path:
        """As a file that bears the stamp."""
        return _keep(folder / f"{self.name}-{self.stamp}.pyz", lambda: self.archive)


@cache
def program(name: str) -> Program:
    module = f"sparkloom.onnode.{name}"
    module += ".main" if (ROOT / module.replace(".", "/")).is_dir() else ""
    parts = {"__main__.py": START.format(module).encode(), **sources(module)}
    for task in TASKS if name == "tasks" else ():
        parts |= sources(f"sparkloom.onnode.tasks.{task}")
    compression = zipfile.ZIP_DEFLATED if name == "tasks" else zipfile.ZIP_STORED  # one travels with each task
    return Program(name, digest(parts, STAMP), _archive(parts, compression))


def sources(module: str) -> dict[str, bytes]:
    """Path in an archive -> contents: of a module of ours, of the packages it is in, and of all that these import."""
    waiting, parts = [module], {}
    while waiting:
        name = waiting.pop()
        path = name.replace(".", "/")
        path += "/__init__.py" if (ROOT / path).is_dir() else ".py"
        if path in parts or not (ROOT / path).is_file():  # else it names something inside a module
            continue
        parts[path] = (ROOT / path).read_bytes()
        text = parts[path].decode()
        beside = [path.rpartition("/")[0] + f"/{file}" for file in DATA.findall(text)]
        parts |= {file: (ROOT / file).read_bytes() for file in beside}
        waiting += [name.rpartition(".")[0] or name, *_imported(text)]
    return parts


def _imported(text: str) -> Iterator[str]:
    """Every module that a text may mean: `from a import b` is a.b where that is a module, and a."""
    for package, names, whole in IMPORT.findall(text):
        yield package or whole
        yield from (f"{package}.{words.split()[0]}" for words in names.strip("()").split(",") if words.strip())


def client(folder: Path) -> Path:
    """huggingface_hub as this controller has it, with everything it imports."""
    parts: dict[str, bytes] = {}
    for distribution in _closure("huggingface_hub"):
        for file in distribution.files or ():
            path = Path(str(distribution.locate_file(file)))
            if ".." not in file.parts and path.is_file() and path.suffix not in {".pyc", ".so", ".pyd"}:
                parts[str(file)] = path.read_bytes()
    return _keep(folder / f"hub-client-{digest(parts, STAMP)}.zip", lambda: _archive(parts, zipfile.ZIP_DEFLATED))


def _closure(name: str) -> Iterator[metadata.Distribution]:
    from packaging.requirements import Requirement  # every render imports this module, and needs none of it

    waiting, seen = [name], set(OPTIONAL)
    while waiting:
        current = waiting.pop().lower().replace("_", "-")
        if current in seen:
            continue
        seen.add(current)
        try:
            distribution = metadata.distribution(current)
        except metadata.PackageNotFoundError:
            message = f"{current} is not installed, which huggingface_hub needs; run `make setup`"
            raise InputError.single(".venv", message, rule="setup") from None
        yield distribution
        for text in distribution.requires or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(needed.name)


def _archive(parts: Mapping[str, bytes], compression: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for part, content in sorted(parts.items()):
            archive.writestr(zipfile.ZipInfo(part, TIME), content, compression)
    return buffer.getvalue()


def _keep(target: Path, made: Callable[[], bytes]) -> Path:
    """Made when it is not there yet; and then whole."""
    if not target.exists():
        files.write(target, made())
    return target
