"""What the product's own arithmetic says of a rendered launch on this card: run with the pack's packages on the path.

`memory CONTEXT FREE_GIB KERNEL`: the plan's memory. `time ROWS KERNEL`: how well measured steps fit bytes / (share x
bandwidth) + layers x their own time; the constants are the card's and are fitted here, the form alone is judged.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparkloom.inputs import profile
from sparkloom.inputs.inventory import load as inventory
from sparkloom.inputs.platform import GB10
from sparkloom.judge.capacity import traffic
from sparkloom.launch import engines
from sparkloom.launch.memory import constants
from sparkloom.launch.resolve import resolve
from sparkloom.launch.view import ModelView

REPO = Path(__file__).resolve().parents[3]
PROFILE = REPO / "testbed/make/gpu/profiles/gpu-shape--sglang-1node.yml"
FP8 = {"quantization": "fp8", "kv_cache_dtype": "fp8_e4m3"}
BANDWIDTH = 3352e9  # bytes a second of an H100's HBM3, by NVIDIA's data sheet


def view(free: float = 78.0, kernel: str = "triton") -> ModelView:
    launch = resolve(profile.load(str(PROFILE)), inventory(REPO / "inventories/gb10"))
    usable = free + constants.TAKEN_BEFORE_LOAD_GIB.number  # of a Spark; here what is free was read
    card = replace(GB10, usable_gib=usable, bandwidth_gb_s=BANDWIDTH / 1e9)
    one = launch.view(card)
    return replace(one, flags={**one.flags, **FP8}) if kernel == "fp8" else one


def memory(context: int, free: float, kernel: str) -> dict[str, float]:
    flags = {"context_length": context, **({"max_total_tokens": 16 * context} if context < 32768 else {})}
    one = view(free, kernel)
    one = replace(one, flags={**one.flags, **flags})
    known = engines.fit(one).memory.items()
    return {name: float(figure.value) for name, figure in known if figure.value is not None}


def time(rows: list[dict[str, Any]], kernel: str) -> dict[str, Any]:
    """The constants by which the form misses these steps least, and by how much it then misses each.

    A step is its layers' own time, the weights / (share x bandwidth), and the cache: its bytes / (share x bandwidth),
    but never less than one piece of the longest request takes, where a kernel cuts a request into a fixed number."""
    one = view(kernel=kernel)
    needs, layers = engines.requirements(one), traffic.layers(one.model)
    weights = traffic.step_bytes(one, needs, 0, 1, 0)
    told = []
    for row in rows:
        cache = traffic.step_bytes(one, needs, row["batch"], 1, row["context"]) - weights
        told.append((cache, row["context"] / row["splits"] if row["splits"] else 0.0, row["seconds"]))
    best: dict[str, Any] = {}
    for token_ns in range(0, 6000, 20) if any(row["splits"] for row in rows) else (0,):
        for share in range(30, 111):
            rate = share / 100 * BANDWIDTH
            rest = [weights / rate + max(cache / rate, piece * token_ns / 1e9) for cache, piece, _ in told]
            own = sum((1 - part / seconds) / seconds for part, (_, _, seconds) in zip(rest, told, strict=True))
            own /= sum(seconds**-2 for _, _, seconds in told)
            fitted = [own + part for part in rest]
            errors = [guess / seconds - 1 for guess, (_, _, seconds) in zip(fitted, told, strict=True)]
            rms = (sum(error**2 for error in errors) / len(errors)) ** 0.5
            if not best or rms < best["rms"]:
                best = {"rms": rms, "share": share / 100, "layer_us": own / layers * 1e6, "token_ns": token_ns,
                        "fitted": fitted, "errors": errors}  # fmt: skip
    return best


if __name__ == "__main__":
    if sys.argv[1] == "memory":
        print(json.dumps(memory(int(sys.argv[2]), float(sys.argv[3]), sys.argv[4])))
    else:
        print(json.dumps(time(json.loads(sys.argv[2]), sys.argv[3])))
