"""From an engine's last lines to a cause with its cure: the rules' own patterns, else the line that says most."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sparkloom.base.finding import ORDER
from sparkloom.onnode import loglines


def named(lines: Iterable[str], patterns: Iterable[Mapping[str, str]]) -> str:
    """`rule: the line; fix`, or the most telling line, or nothing."""
    clean = list(loglines.clean("\n".join(lines)))
    text = "\n".join(clean)
    for entry in sorted(patterns, key=lambda pattern: ORDER.get(pattern["severity"], 3)):
        if match := re.search(entry["pattern"], text):
            line = clean[text.count("\n", 0, match.start())].strip()
            return f"{entry['rule']}: {line[:200]}; fix: {entry['fix']}"
    told = loglines.telling(clean, 1)
    return told[0][:300] if told else ""


# Where a start is, in words of the engines: SGLang and vLLM. A line that matches is progress to show.
STAGES = (
    (re.compile(r"Completed \| (\d+)/(\d+)"), "loading weights, shard {0} of {1}"),
    (re.compile(r"Load weight begin|Starting to load model"), "loading weights"),
    (re.compile(r"Load weight end|Model loading took"), "weights loaded"),
    (re.compile(r"KV Cache is allocated|KV cache size"), "KV cache allocated"),
    (re.compile(r"Capture cuda graph begin|Capturing CUDA graph"), "capturing graphs"),
    (re.compile(r"Capture cuda graph end|Graph capturing finished"), "graphs captured"),
    (re.compile(r"Init torch distributed ends"), "ranks have met"),
)


def stage(line: str) -> str:
    for pattern, words in STAGES:
        if match := pattern.search(line):
            return words.format(*match.groups())
    return ""
