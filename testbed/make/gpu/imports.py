"""Imports what the engine imports, as on an H100; there is none, so torch is told of one. One line a module."""

from __future__ import annotations

import importlib
import traceback
from types import SimpleNamespace
from typing import Any

torch: Any = importlib.import_module("torch")
MODULES = (
    "server_args", "entrypoints.http_server", "managers.scheduler", "managers.detokenizer_manager", "models.qwen2",
    "models.llama", "models.registry", "model_executor.model_runner", "model_executor.cuda_graph_runner",
    "layers.attention.triton_backend",
)  # fmt: skip
H100 = SimpleNamespace(
    name="NVIDIA H100 80GB HBM3", multi_processor_count=132, total_memory=80 << 30, major=9, minor=0, warp_size=32,
    shared_memory_per_block_optin=232448, L2_cache_size=50 << 20,
)  # fmt: skip


def main() -> int:
    told = {
        "is_available": True, "device_count": 1, "current_device": 0, "get_device_capability": (9, 0),
        "get_device_name": H100.name, "get_device_properties": H100,
    }  # fmt: skip
    for name, answer in told.items():
        setattr(torch.cuda, name, lambda *_, answer=answer, **__: answer)
    failed = 0
    for module in MODULES:
        try:
            importlib.import_module(f"sglang.srt.{module}")
            print("ok", module)
        except BaseException:  # whatever it is, the next one may say more
            failed += 1
            print("FAILED", module, " ".join(traceback.format_exc().split())[-300:])
    return min(failed, 1)


if __name__ == "__main__":
    raise SystemExit(main())
