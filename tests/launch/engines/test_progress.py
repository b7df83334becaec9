"""Where a start is, read from an engine's own lines by the patterns in its folder."""

from __future__ import annotations

import pytest

from sparkloom.launch import engines
from sparkloom.onnode.rank import causes


@pytest.mark.parametrize(
    ("engine", "line", "stage"),
    [
        ("sglang", "[TP0 EP0] Init torch distributed ends. mem usage=1.20 GB", "ranks have met"),
        ("sglang", "Loading shards:  7% Completed | 3/45 [00:12<02:48]", "loading weights, shard 3 of 45"),
        ("sglang", "[TP0] Capture cuda graph begin. This can take up to several minutes.", "capturing graphs"),
        ("vllm", "Model loading took 31.5 GiB memory and 81.2 seconds", "weights loaded"),
        ("vllm", "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  12%", "capturing graphs"),
        ("vllm", "Load weight begin. avail mem=101 GB", ""),
        ("llamacpp", "srv  load_model: loading model", ""),
    ],
)  # fmt: skip
def test_a_line_tells_where_the_start_is(engine: str, line: str, stage: str) -> None:
    assert causes.stage(line, engines.get(engine).progress) == stage
