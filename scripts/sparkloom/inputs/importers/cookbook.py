"""Cells of SGLang's cookbook: a page's configuration, or one cell as people post it.

Their form is read from the cookbook's authoring guide (sgl-project/sglang, docs_new/src/snippets/_AUTHORING.md, 2026):
`match` says for which machine and how many nodes, `env` and `flags` are literal words; the page adds the program, the
nodes and the addresses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.inputs.importers import containers, vocabulary
from sparkloom.inputs.importers.expansion import split
from sparkloom.inputs.importers.found import Found, Leftover, Leftovers, Started, short

SPARK = "dgx-spark"
_CELL = re.compile(r"\{\s*match\s*:")
_FIELD = re.compile(r"\b(modelNames|dockerImages|placeholders|multiNodeHints)\s*:\s*\{")
_MODEL = re.compile(r"^### Cookbook model\s+(\S+/\S+)\s*$", re.MULTILINE)
_NODES = re.compile(r"multi-(\d+)")
ADDED = {"HOST_IP": "0.0.0.0", "PORT": "30000"}


def fits(text: str) -> bool:
    return bool(_CELL.search(text)) and "flags" in text


def read(text: str, file: str, pick: str = "") -> Found:
    cells = list(_cells(text, file))
    if not cells:
        raise InputError.single(file, "no cell {match: {...}, env: [...], flags: [...]} in it", rule="no-engine")
    wanted = [cell for cell in cells if pick in _said(cell[1])] if pick else cells
    if not wanted:
        known = "; ".join(sorted({_said(cell) for _, cell in cells})[:12])
        message = f"--pick {pick}: no cell has that in its match; cells: {known}"
        raise InputError.single(file, message, rule="no-such-cell")
    line, cell = next((entry for entry in wanted if entry[1]["match"].get("hw") == SPARK), wanted[0])
    match = cell["match"]
    fields = dict(_fields(text))
    model, image = _name(fields, match) or _posted(text), str(fields.get("dockerImages", {}).get(match.get("hw"), ""))
    leftover = Leftovers()
    for _, other in cells:
        if other is not cell:
            leftover.add(f"another cell: {_said(other)}", "one cell is read at a time; --pick WORDS takes another")
    if match.get("hw") not in (SPARK, None):
        leftover.add(f"match: hw {match['hw']}", "a cell for another machine than a DGX Spark")
    for hint in fields.get("multiNodeHints", {}).get(match.get("hw"), []):
        leftover.add(f"hint: {short(str(hint))}", "a remark of the page for several nodes")
    nodes = _NODES.fullmatch(str(match.get("nodes")))
    count = int(nodes[1]) if nodes else 1
    claim = "verified" if cell.get("verified") else ""
    summary = f"SGLang cookbook: {_said(cell)}"
    start = _start(cell, model, f"{file}:{line}", image)
    return Found(
        "SGLang cookbook cell",
        file,
        [start],
        model=model,
        least_nodes=count,
        summary=summary,
        claim=claim,
        leftover=leftover,
    )


def _cells(text: str, file: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for match in _CELL.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        try:
            cell, _ = literal(text, match.start())
        except NoLiteral as error:
            line = text.count("\n", 0, error.at) + 1
            raise InputError.single(file, f"a cell that is no literal: {error}", line=line, rule="bad-cell") from None
        if isinstance(cell.get("match"), dict) and isinstance(cell.get("flags"), list):
            yield line, cell


def _fields(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for match in _FIELD.finditer(text):
        try:
            value, _ = literal(text, match.end() - 1)
        except NoLiteral:
            continue
        if isinstance(value, dict):
            yield match[1], value


def _name(fields: dict[str, dict[str, Any]], match: dict[str, Any]) -> str:
    names = fields.get("modelNames", {})
    hw, variant, quant = (str(match.get(key)) for key in ("hw", "variant", "quant"))
    return str(names.get(f"{hw}|{variant}|{quant}") or names.get(f"{variant}|{quant}") or "")


def _posted(text: str) -> str:
    """In a report of the playground: the model's page, which is near its name on the hub."""
    found = _MODEL.search(text)
    return found[1] if found else ""


def _said(cell: dict[str, Any]) -> str:
    return " ".join(str(value) for value in cell["match"].values() if value is not None)


def _start(cell: dict[str, Any], model: str, where: str, image: str) -> Started:
    words = [word for flag in cell["flags"] for word in split(_placed(str(flag), model))]
    start = Started(vocabulary.COOKBOOK, words, where, image)
    for said in cell.get("env") or []:
        start.leftover += containers.environment(start.env, _placed(str(said), model))
    start.leftover += [
        Leftover(f"{key}: {short(str(value))}", "a field of the cell that is not known here")
        for key, value in cell.items()
        if key not in ("match", "env", "flags", "verified")
    ]
    return start


def _placed(text: str, model: str) -> str:
    """`{{PORT}}` as the page fills it; what it leaves to the reader stays open."""
    values = {"MODEL_NAME": model, **ADDED}
    return re.sub(r"\{\{(\w+)\}\}", lambda m: values.get(m[1]) or f"${{{m[1]}}}", text)


_TOKEN = re.compile(
    r"""(?P<blank>(?:\s|//[^\n]*|/\*.*?\*/)+)
    |(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`)
    |(?P<number>-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?))
    |(?P<name>[A-Za-z_$][\w$.-]*)
    |(?P<sign>[][{}:,])""",
    re.DOTALL | re.VERBOSE,
)
_KEY = re.compile(r"(\s|//[^\n]*|/\*.*?\*/)*:", re.DOTALL)
_WORDS = {"true": "true", "false": "false", "null": "null", "undefined": "null"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\n": ""}
DEPTH = 60


class NoLiteral(ValueError):
    """Where the text is no literal; `at` counts characters."""

    def __init__(self, message: str, at: int) -> None:
        self.at = at
        super().__init__(message)


def literal(text: str, at: int) -> tuple[Any, int]:
    """The object that begins at `at`, and where it ends."""
    pieces: list[tuple[str, int]] = []  # of JSON, each with where it stands in the text
    depth = 0
    while not pieces or depth > 0:
        match = _TOKEN.match(text, at)
        if match is None or depth > DEPTH:
            raise NoLiteral(f"'{text[at : at + 20]}' is no literal, does not end, or nests too deep", at)
        if match.lastgroup != "blank":
            depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(match[0], 0)
            if match[0] in ("}", "]") and pieces and pieces[-1][0] == ",":  # JSON has no comma before an end
                pieces.pop()
            pieces.append((_spelled(text, match), at))
        at = match.end()
    return _parsed(pieces), at


def _spelled(text: str, match: re.Match[str]) -> str:
    """One sign, word, number or text as JSON has it."""
    written = match[0]
    if match.lastgroup == "text":
        return json.dumps(re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), written[1:-1], flags=re.DOTALL))
    if match.lastgroup == "number":
        if "x" in written:
            return str(int(written, 16))
        return written if re.fullmatch(r"-?(0|[1-9]\d*)", written) else repr(float(written))
    if match.lastgroup == "sign":
        return written
    if _KEY.match(text, match.end()):
        return json.dumps(written)
    if written not in _WORDS:
        raise NoLiteral(f"'{text[match.start() : match.start() + 20]}' is no literal", match.start())
    return _WORDS[written]


def _parsed(pieces: list[tuple[str, int]]) -> Any:
    try:
        return json.loads(" ".join(piece for piece, _ in pieces))
    except json.JSONDecodeError as error:
        ends = accumulate(len(piece) + 1 for piece, _ in pieces)
        at = next((place for end, (_, place) in zip(ends, pieces, strict=True) if end > error.pos), pieces[-1][1])
        raise NoLiteral(error.msg.lower(), at) from None
    except ValueError as error:  # a number of more digits than Python reads
        raise NoLiteral(str(error), pieces[0][1]) from None
