"""What a recipe says to run, made without any of the importer's code: its formats' own rules and the standard library.

Version 1 (spark-vllm-docker) is Python's `str.format` over `defaults`; version 2 (sparkrun) replaces `{key}` where the
key is known and leaves the rest. A command line becomes a table: a flag's longest name, and its values as text. A
model at its place in the hub's cache is the hub's id at that commit, as huggingface_hub documents the cache.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import yaml

SAME = {
    "-tp": "--tensor-parallel-size", "-pp": "--pipeline-parallel-size", "-cc": "--compilation-config",
    "-O": "--optimization-level", "--tp": "--tp-size", "--disable-log-requests": "--no-enable-log-requests",
}  # fmt: skip
ONE = {("--max-model-len", "auto"): "-1"}  # two words for one value
CACHED = re.compile(r"(?:.*/)?models--([\w.-]+?)--([\w.-]+)/snapshots/([0-9a-f]{40})/?")
CATALOGS = Path(__file__).parents[1] / "sparkloom/inputs/catalogs/data"
STARTS = (["vllm", "serve"], ["sglang", "serve"], ["python3", "-m", "sglang.launch_server"])


def command(path: Path) -> list[str] | None:
    """The words of a recipe's command; None where it has none, or where this reference cannot make them."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    text = data.get("command") if isinstance(data, dict) else None
    if not text:
        return None
    values = {"model": data.get("model", ""), **(data.get("defaults") or {})}
    filled = _formatted(text, values) if str(data.get("recipe_version", "2")) == "1" else None
    if filled is not None:
        text = filled
    else:
        for _ in range(3):
            text = re.sub(r"\{(\w+)\}", lambda m: str(values.get(m[1], m[0])), text)
        if "{{" in text:
            text = text.replace("{{", "{").replace("}}", "}")
    text = re.sub(r"\\[ \t]*\n", " ", text)
    served = values.get("served_model_name")
    if served and "--served-model-name" not in text:
        text = f"{text.rstrip()} --served-model-name {served}"
    return shlex.split(text, comments=True)


def renamed(engine: str) -> dict[str, str]:
    """Flags that some release takes by an older name, too, as its own parser says: the catalogs' data, read anew."""
    said: dict[str, str] = {}
    for file in sorted(CATALOGS.glob(f"{engine}-*.json")):
        flags = json.loads(file.read_text())["flags"]
        said |= {name: facts["deprecated"] for name, facts in flags.items() if isinstance(facts.get("deprecated"), str)}
    return said


def _formatted(text: str, values: dict[str, Any]) -> str | None:
    """None where the recipe breaks its own format's rule: braces that are not doubled."""
    try:
        return text.format(**values)
    except (KeyError, ValueError, IndexError):
        return None


def table(words: list[str]) -> dict[str, str]:
    """Flags by name, with values made alike: numbers as numbers, JSON with sorted keys, dotted flags as JSON."""
    rest = list(words)
    for start in STARTS:
        if [rest[0].rsplit("/", 1)[-1], *rest[1 : len(start)]] == start:
            rest = rest[len(start) :]
    found: dict[str, Any] = {}
    at = 0
    while at < len(rest):
        word = rest[at]
        at += 1
        if not _flag(word):
            found["model"] = word
            continue
        name, equals, attached = word.partition("=")
        values = [attached] if equals else []
        while not equals and at < len(rest) and not _flag(rest[at]):
            values.append(rest[at])
            at += 1
        _put(found, name, values)
    alike = {name: _alike(value) for name, value in found.items()}
    if cached := CACHED.fullmatch(alike.get("model", "")):
        alike |= {"model": f"{cached[1]}/{cached[2]}", "--revision": cached[3]}
    return {name: ONE.get((name, value), value) for name, value in alike.items()}


def _flag(word: str) -> bool:
    return bool(re.match(r"--?[A-Za-z]", word))


def _put(found: dict[str, Any], name: str, values: list[str]) -> None:
    head, *keys = name.split(".")
    head = head if head in SAME or not head.startswith("--") else "--" + head[2:].replace("_", "-")
    head = SAME.get(head, head)
    if head == "--model-path":
        found["model"] = values[0]
        return
    if not keys:
        found[head] = values
        return
    inner = found.setdefault(head, {})
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
    inner[keys[-1]] = _read(values[0])


def _read(text: str) -> Any:
    """JSON, and vLLM's sizes: `1k` is 1000 and `1K` is 1024 (its --help says so)."""
    if size := re.fullmatch(r"(\d+(?:\.\d+)?)([kmgtKMGT])", text):
        return float(size[1]) * (1000 if size[2].islower() else 1024) ** ("kmgt".index(size[2].lower()) + 1)
    try:
        return json.loads(text)
    except ValueError:
        return text


def _alike(value: Any) -> str:
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    if isinstance(value, list):
        return " ".join(_alike(_read(item)) for item in value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, sort_keys=True) if not isinstance(value, str) else value
