"""One engine release, loaded into this process behind its stubs."""

from __future__ import annotations

import sys
import sysconfig
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

from . import engine_sglang, engine_vllm, stubs, verdict

ENGINES: dict[str, ModuleType] = {"sglang": engine_sglang, "vllm": engine_vllm}


class Release:
    """``argv`` judged by the release's own parser. Loading changes the process for good: one release per process."""

    def __init__(self, name: str, version: str, folder: Path) -> None:
        kind = ENGINES[name]
        self.name, self.version, self.entry = name, version, kind.ENTRY
        stubs.install(kind.STUBBED, kind.ANSWERS, kind.replaced(folder), getattr(kind, "VERSIONS", None))
        sys.path.insert(0, str(folder))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.engine: Any = kind.Engine(folder)

    def judge(self, argv: list[str]) -> verdict.Verdict:
        return verdict.judge(self.engine.parsers, self.engine.parse, argv)


def isolate(dependencies: Path) -> None:
    """Leaves only the standard library and the given folder importable, so that nothing installed here has a say."""
    keep = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    library = [path for path in sys.path if path.endswith(".zip") or any(_below(path, base) for base in keep)]
    sys.path[:] = [
        str(dependencies),
        *(path for path in library if "site-packages" not in path and "dist-packages" not in path),
    ]


def _below(path: str, base: str) -> bool:
    return path == base or path.startswith(base + "/")
