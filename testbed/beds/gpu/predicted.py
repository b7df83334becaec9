"""What the product's own arithmetic says of a rendered launch on this card: run with the pack's packages on the path.

`memory CONTEXT FREE_GIB`: the plan's memory. `time ROWS`: how well measured steps fit bytes / (share x bandwidth) +
layers x their own time, whose two constants are the card's and are fitted here; the form alone is judged.
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
BANDWIDTH = 3352e9  # bytes a second of an H100's HBM3, by NVIDIA's data sheet


def view(free: float = 78.0) -> ModelView:
    launch = resolve(profile.load(str(PROFILE)), inventory(REPO / "inventories/gb10"))
    usable = free + constants.TAKEN_BEFORE_LOAD_GIB.number  # of a Spark; here what is free was read
    card = replace(GB10, name="H100", usable_gib=usable, bandwidth_gb_s=BANDWIDTH / 1e9)
    return launch.view(card)


def memory(context: int, free: float) -> dict[str, float]:
    flags = {"context_length": context, **({"max_total_tokens": 16 * context} if context < 32768 else {})}
    one = view(free)
    one = replace(one, flags={**one.flags, **flags})
    known = engines.fit(one).memory.items()
    return {name: float(figure.value) for name, figure in known if figure.value is not None}


def time(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Least squares of the relative error, over share and layer's own time."""
    one = view()
    needs, layers = engines.requirements(one), traffic.layers(one.model)
    told = [(traffic.step_bytes(one, needs, row["batch"], 1, row["context"]), row["seconds"]) for row in rows]
    a = [(bytes_ / seconds, layers / seconds) for bytes_, seconds in told]
    xx, xy, yy = (sum(f(*pair) for pair in a) for f in (lambda x, y: x * x, lambda x, y: x * y, lambda x, y: y * y))
    x1, y1 = sum(x for x, _ in a), sum(y for _, y in a)
    whole = xx * yy - xy * xy
    per_byte, per_layer = (x1 * yy - y1 * xy) / whole, (xx * y1 - xy * x1) / whole
    fitted = [bytes_ * per_byte + layers * per_layer for bytes_, _ in told]
    errors = [guess / seconds - 1 for guess, (_, seconds) in zip(fitted, told, strict=True)]
    return {
        "share": 1 / (per_byte * BANDWIDTH), "layer_us": per_layer * 1e6, "fitted": fitted, "errors": errors,
        "by_context": by_context(rows),
        "rms": (sum(error**2 for error in errors) / len(errors)) ** 0.5,
        "bytes": [bytes_ for bytes_, _ in told],
    }  # fmt: skip


def by_context(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The same for a + b x context, whatever the batch: what a kernel does that a request's length alone decides."""
    told = [(row["context"], row["seconds"]) for row in rows]
    ones, cross, squares = (sum(x**power / y**2 for x, y in told) for power in (0, 1, 2))
    first, second = (sum(x**power / y for x, y in told) for power in (0, 1))
    whole = ones * squares - cross * cross
    own, each = (first * squares - second * cross) / whole, (ones * second - cross * first) / whole
    errors = [(own + each * x) / y - 1 for x, y in told]
    rms = (sum(error**2 for error in errors) / len(errors)) ** 0.5
    return {"own_ms": own * 1e3, "token_ns": each * 1e9, "rms": rms}


if __name__ == "__main__":
    if sys.argv[1] == "memory":
        print(json.dumps(memory(int(sys.argv[2]), float(sys.argv[3]))))
    else:
        print(json.dumps(time(json.loads(sys.argv[2]))))
