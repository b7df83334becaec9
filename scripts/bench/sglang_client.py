#!/usr/bin/env python3
"""sglang's bench_serving without the engine in whose package it lives: run by load.py inside sglang's environment.

The package's own `__init__` files load the engine (torch, CUDA kernels), of which the client uses nothing. Here these
packages are folders only; every module of the client is sglang's own. One constant comes from a module of the engine
that cannot be loaded: it is read from that module's text.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

FOLDERS = ("sglang", "sglang.srt", "sglang.srt.utils", "sglang.srt.disaggregation")
CONSTANT = ("sglang.srt.disaggregation.utils", "FAKE_BOOTSTRAP_HOST")


def main() -> None:
    spec = importlib.util.find_spec("sglang")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("sglang is not installed here; scripts/bench/load.py --install does it")
    root = Path(spec.submodule_search_locations[0]).parent
    for name in FOLDERS:
        folder = sys.modules[name] = ModuleType(name)
        folder.__path__ = [str(root.joinpath(*name.split(".")))]
    name, constant = CONSTANT
    text = root.joinpath(*name.split(".")).with_suffix(".py").read_text(encoding="utf-8")
    module = sys.modules[name] = ModuleType(name)
    match = re.search(rf'^{constant} = "(.*)"$', text, re.M)
    if not match:
        raise SystemExit(f"{name} has no {constant} any more; this script knows sglang 0.5.23")
    setattr(module, constant, match[1])
    if sys.argv[1:2] == ["native"]:  # its newer client, written in Rust; it needs none of the modules above
        from sglang.benchmark import rust_client  # type: ignore[import-not-found]

        raise SystemExit(rust_client.main(["sglang-bench", *sys.argv[2:]]))
    from sglang.benchmark import serving  # type: ignore[import-not-found]

    sys.argv[0] = "sglang.bench_serving"
    serving.cli_main()


if __name__ == "__main__":
    main()
