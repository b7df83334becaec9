"""What vLLM's own parser does to a command line before argparse sees it."""

from __future__ import annotations

import json
from typing import Any

from sparkloom.inputs.catalogs.flagtypes import Dialect, FlagProblem, parse_json


def normalise(words: list[str]) -> tuple[list[str], list[FlagProblem]]:
    words, problems = _model_first(words)
    joined, more = _join_dotted(_optimization([_dashed(word) for word in words]))
    return joined, problems + more


def _model_first(words: list[str]) -> tuple[list[str], list[FlagProblem]]:
    """`vllm serve` moves --model to the front; without any model it would serve a small default one."""
    problems: list[FlagProblem] = []
    at = next((i for i, word in enumerate(words) if word == "--model" or word.startswith("--model=")), None)
    if at is not None:
        length = 1 if words[at].startswith("--model=") else 2
        model = words[at].removeprefix("--model=") if length == 1 else "".join(words[at + 1 : at + 2])
        if len(words) < at + length:
            return words[:at], [FlagProblem("--model", "--model needs a value", "missing-value")]
        words = [model, *words[:at], *words[at + length :]]
        text = "--model is deprecated; write the model as the first word after vllm serve"
        problems.append(FlagProblem("--model", text, "deprecated"))
    if not words or words[0].startswith("-"):
        named = any(word.split("=")[0].replace("_", "-") == "--served-model-name" for word in words)
        kind, text = "missing-model", "vllm would serve its small default model"
        if named:
            kind, text = "required", "vllm refuses --served-model-name without it"
        problems.append(FlagProblem("model", f"no model as the first word; {text}", kind))
    return words, problems


def _dashed(word: str) -> str:
    """Underscores count as dashes in a flag's name, up to the first dot."""
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    head, dot, rest = name.partition(".")
    return head.replace("_", "-") + dot + rest + equals + value


def _optimization(words: list[str]) -> list[str]:
    """`-O3`, `-O=3` and `-O 3` are one flag with a value."""
    result: list[str] = []
    for word, follower in zip(words, [*words[1:], ""], strict=False):
        if word == "-O" and follower in ("0", "1", "2", "3"):
            result.append("--optimization-level")
        elif word.startswith("-O") and word != "-O":
            result += ["--optimization-level", word[2:].removeprefix("=")]
        else:
            result.append(word)
    return result


def _join_dotted(words: list[str]) -> tuple[list[str], list[FlagProblem]]:
    """`--config.key value` words collected into one JSON value per flag, at the end of the line."""
    kept: list[str] = []
    objects: dict[str, dict[str, Any]] = {}
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        name, equals, value = word.partition("=")
        if not word.startswith("-") or "." not in name:
            kept.append(word)
            continue
        if not equals:
            if at == len(words):
                return kept, [FlagProblem(name, f"{name} needs a value", "missing-value")]
            value = words[at]
            at += 1
        flag, *keys = name.rstrip("+").split(".")
        _put(objects.setdefault(flag, {}), keys, value.split(",") if name.endswith("+") else _plain(value))
    for flag, content in objects.items():
        kept += [flag, json.dumps(content)]
    return kept, []


def _put(target: dict[str, Any], keys: list[str], value: object) -> None:
    for key in keys[:-1]:
        inner = target.setdefault(key, {})
        if not isinstance(inner, dict):
            inner = target[key] = {}
        target = inner
    target[keys[-1]] = value


def _plain(value: str) -> object:
    try:
        return parse_json(value)
    except ValueError:
        return value


DIALECT = Dialect(
    prefixes=("VLLM_",),
    # k is 1000 and K is 1024
    suffixes={s: 1000 ** (i + 1) for i, s in enumerate("kmgt")} | {s: 1024 ** (i + 1) for i, s in enumerate("KMGT")},
    lora_must=frozenset({"name", "path"}),
    lora_may=frozenset({"name", "path", "base_model_name", "is_3d_lora_weight"}),
    lora_path=False,
    normalise=normalise,
)
