"""Command lines of engines whose own parser cannot run here, judged by a list of their flags kept by hand.

TensorRT-LLM's words are click's, llama.cpp's are its own.
"""

from __future__ import annotations

import json
from typing import Any

from standin import facts

USAGE = "Usage: trtllm-serve serve [OPTIONS] MODEL\nTry 'trtllm-serve serve --help' for help.\n\nError: "
NUMBERS: dict[str, type] = {"int": int, "float": float}


class BadLine(Exception):
    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


def parse(engine: str, release: str, argv: list[str]) -> dict[str, Any]:
    listed = json.loads((facts.DATA / f"{engine}-{release}.json").read_text())
    if engine == "llamacpp" and argv[:1] == ["rpc-server"]:
        listed, argv = listed["others"]["rpc-server"], argv[1:]
    words = list(argv[1:] if engine == "trtllm" and argv[:1] == ["serve"] else argv)
    flags = {spelled: (name, flag) for name, flag in listed["flags"].items() for spelled in _spellings(name, flag)}
    values = {_dest(name, flag): flag.get("default") for name, flag in listed["flags"].items()}
    positionals: list[str] = []
    while words:
        word = words.pop(0)
        name, equals, attached = word.partition("=")
        if not word.startswith("-") or word == "-":
            positionals.append(word)
        elif name not in flags or (equals and engine == "llamacpp"):
            raise _unknown(engine, word if engine == "llamacpp" else name)
        else:
            spelled, flag = flags[name]
            if flag.get("action") == "exit":
                raise BadLine(f"{name} prints its text and exits", 0)
            if flag.get("action") in ("true", "toggle"):
                values[_dest(spelled, flag)] = name not in flag.get("off", ())
                continue
            if not equals and not words:
                raise _without_value(engine, name)
            values[_dest(spelled, flag)] = _value(engine, name, flag, attached if equals else words.pop(0))
    return values | _seated(engine, listed.get("positionals", []), positionals)


def _spellings(name: str, flag: dict[str, Any]) -> list[str]:
    return [name, *flag.get("also", ()), *flag.get("off", ())]


def _dest(name: str, flag: dict[str, Any]) -> str:
    return str(flag.get("dest") or name.lstrip("-").replace("-", "_"))


def _value(engine: str, name: str, flag: dict[str, Any], word: str) -> Any:
    kind = flag.get("type", "")
    try:
        if kind in NUMBERS:
            return NUMBERS[kind](word)
        if kind.startswith("json"):
            return json.loads(word)
    except ValueError:
        if engine == "trtllm":
            what = {"int": "integer", "float": "float"}.get(kind, "JSON text")
            raise BadLine(f"{USAGE}Invalid value for '{name}': '{word}' is not a valid {what}.", 2) from None
        raise BadLine(f'error while handling argument "{name}": stoi', 1) from None
    if flag.get("choices") and word not in flag["choices"]:
        if engine == "trtllm":
            listed = ", ".join(f"'{choice}'" for choice in flag["choices"])
            raise BadLine(f"{USAGE}Invalid value for '{name}': '{word}' is not one of {listed}.", 2)
        raise BadLine(f'error while handling argument "{name}": unknown value "{word}"', 1)
    return word


def _unknown(engine: str, word: str) -> BadLine:
    if engine == "trtllm":
        return BadLine(f"{USAGE}No such option: {word}", 2)
    return BadLine(f"error: invalid argument: {word}", 1)


def _without_value(engine: str, name: str) -> BadLine:
    if engine == "trtllm":
        return BadLine(f"{USAGE}Option '{name}' requires an argument.", 2)
    return BadLine(f'error while handling argument "{name}": expected value for argument', 1)


def _seated(engine: str, seats: list[str], words: list[str]) -> dict[str, Any]:
    if len(words) > len(seats):
        if engine == "trtllm":
            raise BadLine(f"{USAGE}Got unexpected extra argument ({words[len(seats)]})", 2)
        raise _unknown(engine, words[len(seats)])
    if len(words) < len(seats):
        raise BadLine(f"{USAGE}Missing argument '{seats[len(words)].upper()}'.", 2)
    return dict(zip(seats, words, strict=True))
