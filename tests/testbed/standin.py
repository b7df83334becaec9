"""The stand-in engine under test: importable as it is inside its image, with the data that its image carries."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from scripts.oracle import fetch
from testbed.make import engine_image
from tests.places import REPO

ROOT = REPO
ENGINE = ROOT / "testbed" / "standins" / "engine"
DATA = Path(tempfile.mkdtemp(prefix="stand-in-")) / "data"
os.environ["STANDIN_DATA"] = str(DATA)
os.environ.setdefault("HF_HUB_CACHE", str(DATA / "no-weights"))
os.environ["STANDIN_RELEASES"] = str(fetch.cache_root())
sys.path.insert(0, str(ENGINE))
engine_image.write_data(DATA)

from standin import (  # noqa: E402
    catalog,
    conduct,
    fabric,
    facts,
    generate,
    group,
    judge,
    main,
    pace,
    precedents,
    refuse,
    rpc,
    serve,
    stages,
    symptoms,
    trouble,
    web,
)  # fmt: skip
from standin.config import Config, Speculation  # noqa: E402

__all__ = [
    "Config", "Speculation", "catalog", "fabric", "facts", "group", "judge", "main", "pace", "precedents",
    "refuse", "rpc", "stages", "symptoms", "trouble",
]  # fmt: skip

ULTRA = "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4"


def environment(**more: str) -> dict[str, str]:
    """For a stand-in in a process of its own."""
    paths = os.pathsep.join(map(str, (ENGINE, ENGINE / "entry", ROOT / "scripts")))
    return {**os.environ, "PYTHONPATH": paths, "STANDIN_LOAD_SECONDS": "0.2", **more}


def config(engine: str = "sglang", **settings: Any) -> Config:
    base: dict[str, Any] = {
        "engine": engine, "release": "0.5.12", "model": ULTRA, "served_name": ULTRA,
        "host": "127.0.0.1", "port": 0, "context": 4096, "max_running": 4,
    }  # fmt: skip
    return Config(**base | settings)


def clean() -> None:
    shutil.rmtree(DATA.parent, ignore_errors=True)


@asynccontextmanager
async def served(cfg: Config, speed: float = 2000.0, precedent: Any = None) -> AsyncIterator[tuple[Any, str]]:
    """(model, base URL) of a rank 0 that has finished loading, much faster than a real one."""
    behaviour = conduct.Conduct(cfg, precedent or precedents.Precedent())
    model = generate.Model(pace.Pace({1: speed}, 1.0, first=0.001), behaviour, cfg.max_running or 4)
    server = await web.start(serve.Server(cfg, facts.of(cfg.model), model).handle, "127.0.0.1", 0)
    async with server:
        yield model, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))
