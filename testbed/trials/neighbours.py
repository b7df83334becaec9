"""Kills one group of several, again and again, while the others are asked through the endpoint all the time.

    python -m testbed neighbours chat --key pair=FILE --key oss=FILE          20 kills of the group chat
    python -m testbed neighbours chat --key pair=FILE --rounds 5 --at-once 2  fewer

`--key MODEL=FILE`: a model's name at the endpoint and the file with the key of a person who may ask it. What is asked
of the group that is killed is counted too: it must be answered whole, or refused in plain words, and never hang.
"""

from __future__ import annotations

import argparse
import json
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any

from testbed.trials import kills

CHAT = "/v1/chat/completions"
SILENCE = 90.0  # seconds without a byte: longer than a router waits for an engine that is gone
WHOLE = "whole"
# A group that fails by itself more than five times in ten minutes stays down, on purpose; a pod that is deleted counts
# for nothing.
KINDS = ("engine", "pod", "pod", "pod", "container", "pod", "pod", "pod")


@dataclass
class Asked:
    """What became of the requests for one model: whole, or the words of what came instead, each with its count."""

    model: str
    key: str
    answers: Counter[str] = field(default_factory=Counter)
    longest: float = 0.0

    @property
    def lost(self) -> int:
        return sum(count for what, count in self.answers.items() if what != WHOLE)

    def line(self) -> str:
        counts = ", ".join(f"{count} {what}" for what, count in self.answers.most_common())
        return f"| {self.model} | {self.answers.total()} | {self.lost} | {self.longest:.1f} | {counts} |"


@dataclass(frozen=True)
class Endpoint:
    address: str
    trust: Path

    def connect(self) -> HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self.trust))
        return HTTPSConnection(self.address, timeout=SILENCE, context=context)

    def once(self, model: str, key: str) -> str:
        """One streamed answer, to its end."""
        body = {
            "model": model,
            "messages": [{"role": "user", "content": "Say something about rails."}],
            "max_tokens": 24,
            "stream": True,
        }
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        try:
            with closing(self.connect()) as connection:
                connection.request("POST", CHAT, json.dumps(body), headers)
                response = connection.getresponse()
                text = response.read().decode(errors="replace")
        except TimeoutError:
            return "silence"
        except (OSError, HTTPException) as error:
            return f"cut ({type(error).__name__})"
        if response.status != 200:
            return f"{response.status} {_code(text)}"
        if "data: [DONE]" not in text:
            return "an end without [DONE]"
        return WHOLE if '"content"' in text or '"reasoning' in text else "no token"


def _code(text: str) -> str:
    try:
        return str(json.loads(text)["error"]["code"])
    except (ValueError, KeyError, TypeError):
        return text[:60].strip() or "without words"


@contextmanager
def asking(endpoint: Endpoint, asked: Sequence[Asked], at_once: int) -> Iterator[None]:
    """So many askers of each model until the block ends; what is on its way then is waited for."""
    over = threading.Event()

    def ask(one: Asked) -> None:
        while not over.is_set():
            begun = time.monotonic()
            what = endpoint.once(one.model, one.key)
            one.longest = max(one.longest, time.monotonic() - begun)
            one.answers[what] += 1
            if what != WHOLE:
                over.wait(0.5)

    threads = [threading.Thread(target=ask, args=(one,), daemon=True) for one in asked for _ in range(at_once)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(SILENCE + 10)


def table(asked: Sequence[Asked]) -> str:
    head = "| model | requests | not whole | longest, s | what came |\n|--|--|--|--|--|"
    return "\n".join([head, *(one.line() for one in asked)])


def perform(victim: str, endpoint: Endpoint, people: Mapping[str, str], rounds: int, at_once: int) -> dict[str, Any]:
    """`people`: by model, the key of somebody who may ask it; the kinds of kill take turns, so do the ranks."""
    group = kills.ServedGroup.of(victim)
    if not group.serves(0):
        raise SystemExit(f"{victim} does not serve on the rack")
    asked = [Asked(model, key) for model, key in people.items()]
    ranks = len(group.pods())
    planned = [(KINDS[number % len(KINDS)], number % ranks) for number in range(rounds)]
    with asking(endpoint, asked, at_once):
        time.sleep(2)
        done = kills.perform(group, planned)
        time.sleep(2)
    print(kills.table(done))
    print(table(asked))
    return {"kills": done, "asked": {one.model: one for one in asked}}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m testbed neighbours", description=__doc__.split("\n")[0])
    parser.add_argument("group", help="the one that is killed, by its name in the list")
    parser.add_argument("--key", action="append", required=True, metavar="MODEL=FILE", help="who asks what")
    parser.add_argument("--address", required=True, help="of the endpoint")
    parser.add_argument("--trust", type=Path, required=True, help="the authority that vouches for it (ca.pem)")
    parser.add_argument("--model", help="the name of what is killed at the endpoint; its losses do not count")
    parser.add_argument("--rounds", type=int, default=20, help="how many kills (default: 20)")
    parser.add_argument("--at-once", type=int, default=2, help="askers of each model (default: 2)")
    options = parser.parse_args()
    people = {model: Path(file).read_text().strip() for model, _, file in (k.partition("=") for k in options.key)}
    found = perform(options.group, Endpoint(options.address, options.trust), people, options.rounds, options.at_once)
    lost = sum(one.lost for model, one in found["asked"].items() if model != options.model)
    return 0 if lost == 0 and all(done.good for done in found["kills"]) else 1
