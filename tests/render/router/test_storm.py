"""A storm over three models: every answer right or a clear error, nobody unknown reaches an engine, nothing leaks.

SPARKLOOM_STORM=10000 is the issue's number; 1,200 fit into a test run.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path

import pytest

from testbed.standins.pacing.process import Engine
from tests.render.router.running import Router, running
from tests.render.router.storm import MODELS, Storm, run

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
COUNT = int(os.environ.get("SPARKLOOM_STORM", "1200"))
WARM = 300


def held(router: Router) -> tuple[int, float]:
    """Descriptors and MB of the router, once it has nothing to do."""
    time.sleep(4)  # connections to engines that idle for 3 s are closed
    process = Path(f"/proc/{router.process.pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    return len(list((process / "fd").iterdir())), int(status["VmRSS"].split()[0]) / 1024


def test_a_storm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engines = {name: Engine(name, "ttft=0.02", "rate=400") for name in MODELS}
    try:
        with running(tmp_path, engines) as router:
            storm = Storm(router, random.Random(20261125))
            asyncio.run(run(storm, 0, WARM))
            before, begun = held(router), time.monotonic()
            asyncio.run(run(storm, WARM, COUNT))
            took, after = time.monotonic() - begun, held(router)
            told = {name: engine.truth() for name, engine in engines.items()}
            series = router.series()
    finally:
        for engine in engines.values():
            engine.down()
    heard = {" ".join(one["prompt"].split()[:2]) for listed in told.values() for one in listed} - {"hello"}
    with capsys.disabled():
        print(f"\n{COUNT} requests in {took:.0f} s; descriptors, MB {before} -> {after}; {dict(storm.done)}")
    assert not storm.wrong, storm.wrong[:5]
    assert sum(storm.done.values()) == WARM + COUNT
    assert heard <= storm.may_reach, "who was refused reached an engine"
    for model, listed in told.items():  # what people left early is counted by events
        counted = series[f'sparkloom_router_completion_tokens_total{{person="alice",model="{model}"}}']
        assert storm.whole[model] <= counted <= sum(sum(one["tokens"]) for one in listed)
    assert after[0] <= before[0] + 8 and after[1] < before[1] * 1.3 + 40
