"""What a run is told to do, checked before anything is sent."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from sparkloom.base import amount, json_text
from sparkloom.base.errors import InputError
from sparkloom.measure.bench import tools
from sparkloom.measure.bench.exchange import Limits

PROMPTS = Path(__file__).with_name("prompts.json")
MOST_STREAMS = 1024
EXPECTED = 'expected {"prompts": {"name": "text", ...}, "warmup": {...}}'


class Settings(NamedTuple):
    """`streams` are the levels of the closed loop, `rates` those of the open one."""

    url: str
    model: str | None = None
    streams: tuple[int, ...] = (1, 4, 8)
    rates: tuple[float, ...] = ()
    requests: int | None = None
    max_tokens: int = 3072
    thinking: bool | None = None
    temperature: float | None = None
    ignore_eos: bool = False
    token_counts: bool = False
    seed: int = 1
    warmup_tokens: int = 32
    most_in_flight: int = 256
    limits: Limits = Limits()
    prompts: Path = PROMPTS
    depths: tuple[int, ...] = ()
    prefix: float = 0.0
    prompt_tokens: int = 0
    tools: bool = False

    def shown(self) -> dict[str, Any]:
        """For the result file: everything that decides what was sent."""
        told = {name: list(value) if isinstance(value, tuple) else value for name, value in self._asdict().items()}
        for name in ("url", "model", "most_in_flight", "limits", "prompts"):
            del told[name]
        return told | {"first_token_timeout_s": self.limits.first_s, "stall_timeout_s": self.limits.stall_s}


class Prompts(NamedTuple):
    name: str
    crc32: str
    measured: list[tuple[str, str]]
    warmup: list[tuple[str, str]]

    def pick(self, number: int, *, warmup: bool = False) -> tuple[str, str]:
        """Another one for every request of a level, the same ones in every run with the same seed."""
        chosen = self.warmup if warmup and self.warmup else self.measured
        return chosen[number % len(chosen)]


def asked(what: Settings) -> Prompts:
    """What is asked: prompts of a file, or the questions that want a tool."""
    chosen = prompts(what.prompts, what.seed)
    return chosen._replace(name="tools", crc32="", measured=tools.QUESTIONS) if what.tools else chosen


def prompts(file: Path, seed: int) -> Prompts:
    """The prompts in the order that the seed gives."""
    data = json_text.load(file, EXPECTED)
    lists = [_pairs(file, data, key) for key in ("prompts", "warmup")]
    if not lists[0]:
        raise InputError.single(str(file), f"holds no prompts; {EXPECTED}", rule="empty-input")
    random.Random(seed).shuffle(lists[0])
    return Prompts(file.name, f"{crc32(file.read_bytes()):08x}", *lists)


def _pairs(file: Path, data: Any, key: str) -> list[tuple[str, str]]:
    pairs = data.get(key, {}) if isinstance(data, dict) else None
    if not isinstance(pairs, dict) or not all(isinstance(value, str) and value.strip() for value in pairs.values()):
        raise InputError.single(str(file), f'"{key}" is no object of texts', rule="wrong-type")
    return list(pairs.items())


def numbers(option: str, text: str) -> tuple[int, ...]:
    """`1,4,8` as whole numbers between 1 and 1024."""
    streams = []
    for word in text.split(","):
        if not word.strip().isascii() or not word.strip().isdigit() or not 1 <= int(word) <= MOST_STREAMS:
            message = f"'{word.strip()}' is no number of streams; expected 1 to {MOST_STREAMS}, as 1,4,8"
            raise InputError.single(option, message, rule="bad-number")
        streams.append(int(word))
    return tuple(streams)


def depths(option: str, text: str) -> tuple[int, ...]:
    """`0,8k,128k` as tokens."""
    try:
        return tuple(0 if word.strip() == "0" else amount.tokens(word) for word in text.split(","))
    except ValueError as error:
        raise InputError.single(option, str(error), rule="bad-number") from None


def rates(option: str, text: str) -> tuple[float, ...]:
    """`0.5,2` as requests a second."""
    values = []
    for word in text.split(","):
        try:
            value = float(word)
        except ValueError:
            value = -1.0
        if not 0 < value <= 10_000:
            raise InputError.single(option, f"'{word.strip()}' is no rate; expected requests a second, as 0.5,2")
        values.append(value)
    return tuple(values)


def body(settings: Settings, model: str, prompt: str, max_tokens: int) -> bytes:
    """One chat completion, streamed, with the engine's own counts at the end."""
    options: dict[str, Any] = {"include_usage": True}
    if settings.token_counts:
        options["continuous_usage_stats"] = True
    asked: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": max_tokens,
        "stream": True,
        "stream_options": options,
        "seed": settings.seed,
    }
    if settings.tools:
        asked |= {"tools": tools.TOOLS, "tool_choice": "auto"}
    if settings.temperature is not None:
        asked["temperature"] = settings.temperature
    if settings.ignore_eos:
        asked["ignore_eos"] = True
    if settings.thinking is not None:  # chat templates read the one or the other name
        asked["chat_template_kwargs"] = {"enable_thinking": settings.thinking, "thinking": settings.thinking}
    return json.dumps(asked).encode()
