"""Memory and time: what `plan` computes for a model of 3 billion parameters, against what the card shows."""

from __future__ import annotations

import json
import random
import re
import statistics
import sys
import threading
import time
from typing import Any

import pytest

from testbed.beds.gpu import models, place
from testbed.beds.gpu.pod import Pod

# Its words mean nothing to its tokenizer, so that no supervisor sees a token: the engine itself is asked.
SHAPE = "gpu-shape--sglang-1node"
CONTEXTS, BATCHES, TOKENS = (1024, 8192, 31744), (1, 2, 4, 8, 16), 48
PREDICT = place.PRODUCT / "testbed/beds/gpu/predicted.py"
LOGGED = {
    "weights_gib": r"Load weight end\..*?mem usage=([\d.]+) GB",
    "before_gib": r"Load weight begin\. avail mem=([\d.]+) GB",
    "k_gib": r"K size: ([\d.]+) GB", "v_gib": r"V size: ([\d.]+) GB", "tokens": r"#tokens: (\d+)",
    "graphs_gib": r"Capture cuda graph end\..*?mem usage=([\d.]+) GB",
    "after_gib": r"Capture cuda graph end\..*?avail mem=([\d.]+)",
}  # fmt: skip


@pytest.fixture(autouse=True)
def shape(runtime: str, nets: None) -> None:
    models.provide(models.SHAPE)


def predicted(*words: str) -> dict[str, Any]:
    paths = {"PYTHONPATH": f"{place.PRODUCT / 'scripts'}:{place.SITE}:{place.PRODUCT}"}
    code, said = place.done([sys.executable, PREDICT, *words], 60, **paths)
    assert code == 0, said
    return dict(json.loads(said.splitlines()[-1]))


def generate(pod: Pod, prompt: list[int], seen: list[tuple[float, int]]) -> None:
    """One request by its token numbers; when each answer came, and how many tokens there were then."""
    import urllib.request

    body = {"input_ids": prompt, "stream": True,
            "sampling_params": {"max_new_tokens": TOKENS, "ignore_eos": True, "temperature": 0}}  # fmt: skip
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {'k' * 40}"}
    asked = urllib.request.Request(f"http://{pod.address}:30000/generate", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(asked, timeout=200) as answer:
        for line in answer:
            if line.startswith(b"data: {"):
                seen.append((time.monotonic(), json.loads(line[6:])["meta_info"]["completion_tokens"]))


def step(pod: Pod, batch: int, context: int) -> float:
    """Seconds of a decode step, of the steps in which all of the batch were at it; 0 where these were too few."""
    dice = random.Random(f"{batch} {context}")
    prompts = [[dice.randrange(1000, 150000) for _ in range(context)] for _ in range(batch)]
    seen: list[list[tuple[float, int]]] = [[] for _ in prompts]
    threads = [threading.Thread(target=generate, args=(pod, *both)) for both in zip(prompts, seen, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    begin, end = max(one[1][0] for one in seen), min(one[-1][0] for one in seen)
    own = []
    for one in seen:
        within = [(at, count) for at, count in one if begin <= at <= end]
        if len(within) > 4:
            own.append((within[-1][0] - within[0][0]) / (within[-1][1] - within[0][1]))
    return statistics.median(own) if own else 0.0


def logged(pod: Pod) -> dict[str, float]:
    found = {name: re.findall(pattern, pod.said) for name, pattern in LOGGED.items()}
    return {name: float(values[-1]) for name, values in found.items() if values}


@pytest.mark.takes(260)
def test_the_time_of_a_decode_step_has_the_form_that_plan_computes() -> None:
    pod = Pod(SHAPE, 0, "shape")
    try:
        first = pod.until(lambda: pod.ask("/v1/models", timeout=3)[0] == 200, 240)
        step(pod, 2, 256)  # the first of anything compiles
        rows = []
        for context in CONTEXTS:
            for batch in BATCHES:
                if place.left() > 40 and (seconds := step(pod, batch, context)):
                    rows.append({"batch": batch, "context": context, "seconds": seconds})
                    place.tell("time", {"rows": rows})
        place.tell("time", {"first_token_s": round(first, 1), "rows": rows})
        place.tell("time", predicted("time", json.dumps(rows)))
        place.tell("memory", {"32768": _row(pod, 32768)})
        told = json.loads(place.RUN.read_text())["time"]
        assert len(rows) >= 9 and told["rms"] < 0.5, told  # what it is stands in docs/reference/gpu.md
    finally:
        pod.stop()


def _row(pod: Pod, context: int) -> dict[str, Any]:
    held = place.done("nvidia-smi --query-compute-apps=used_memory --format=csv,noheader,nounits")[1].split()
    seen = logged(pod)
    free = seen.get("before_gib", 0.0)
    return {"plan": predicted("memory", str(context), str(free)), "logged": seen, "smi_mib": sum(map(int, held))}


@pytest.mark.takes(80)
@pytest.mark.parametrize("context", [4096, 16384])
def test_memory_is_what_plan_computes(context: int) -> None:
    def shorter(words: list[str]) -> list[str]:
        at = words.index("--context-length")
        return [*words[: at + 1], str(context), *words[at + 2 :], "--max-total-tokens", str(16 * context)]

    pod = Pod(SHAPE, 0, "shape", words=shorter)
    try:
        pod.until(lambda: pod.ask("/v1/models", timeout=3)[0] == 200, 120)
        row = _row(pod, context)
        place.tell("memory", {str(context): row})
        kv = row["logged"]["k_gib"] + row["logged"]["v_gib"]
        beside = row["plan"]["weights_gib_per_rank"] - row["logged"]["weights_gib"]
        assert 0 <= beside < 1.3, row  # of which 1.2 are what a load takes beside the tensors on a Spark
        assert row["plan"]["kv_pool_gib"] == pytest.approx(kv, rel=0.1)
    finally:
        pod.stop()
