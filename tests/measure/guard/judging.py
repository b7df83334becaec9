"""Judges the guard by labelled cases and by generated sane streams."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparkloom.measure.guard.batch import judge_batch
from sparkloom.measure.guard.record import judge_stream
from sparkloom.measure.guard.stream import Guard
from testbed.standins.pacing import samples

CASES = Path(__file__).with_name("cases.jsonl")


def cases(path: Path = CASES) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def text_of(part: dict[str, Any]) -> str:
    """`{text}`, `{repeat, times}`, `{sane, seed, size}` or `{shuffle, times, seed}` (random picks from a list)."""
    if "text" in part:
        return str(part["text"])
    if "repeat" in part:
        return str(part["repeat"]) * int(part["times"])
    if "count" in part:
        return "".join(str(part["count"]).replace("{}", str(number)) for number in range(1, part["times"] + 1))
    if "sane" in part:
        return samples.make(part["sane"], part["seed"], part["size"])
    rng = random.Random(part["seed"])
    return "".join(rng.choice(part["shuffle"]) for _ in range(part["times"]))


def pieces(text: str, rng: random.Random, widest: int) -> Iterator[str]:
    at = 0
    while at < len(text):
        step = rng.randint(1, widest)
        yield text[at : at + step]
        at += step


def lines_of(case: dict[str, Any]) -> list[str]:
    """The stream of a case as JSON lines, cut into pieces like tokens."""
    rng = random.Random(case["id"])
    lines = []
    for channel in ("reasoning_content", "content"):
        text = "".join(text_of(part) for part in case.get(channel, []))
        lines += [json.dumps({channel: piece}) for piece in pieces(text, rng, case.get("widest", 7))]
    tokens = case.get("completion_tokens", len(lines))
    return [*lines, json.dumps({"usage": {"completion_tokens": tokens}})]


def judged(case: dict[str, Any]) -> dict[str, Any]:
    if "requests" in case:
        return judge_batch(case["requests"])
    return judge_stream(lines_of(case), name=case["id"]).as_dict()


def sane_stream(seed: int) -> dict[str, Any]:
    rng = random.Random(f"sane/{seed}")
    lines = [json.dumps({"content": piece}) for piece in pieces(samples.document(seed), rng, rng.choice((4, 7, 30)))]
    return judge_stream(lines, name=f"sane {seed}").as_dict()


def cost(tokens: int) -> float:
    """Microseconds per chunk of four characters, over one sane stream of this many."""
    texts, seed = [""], 0
    while sum(map(len, texts)) < 4 * tokens:
        texts.append(samples.make("prose", seed, 8000) + samples.make("code", seed, 8000))
        seed += 1
    text = "".join(texts)
    chunks, guard = [text[at : at + 4] for at in range(0, 4 * tokens, 4)], Guard()
    started = time.process_time()
    for chunk in chunks:
        guard.feed(chunk)
    spent = time.process_time() - started
    if guard.verdict is not None:
        raise AssertionError(f"the measured stream is sane, the guard says {guard.verdict}")
    return spent / tokens * 1e6
