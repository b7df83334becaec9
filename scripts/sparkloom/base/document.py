"""YAML with positions: reads a file into plain data and remembers the line and column of every key.

PyYAML's composer (libyaml when it is there) keeps marks on each node and is ten times faster than a
round-trip loader, which matters because `lint` reads every profile on every call.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from unicodedata import category

import yaml
from pydantic import BaseModel, ValidationError

from sparkloom.base.errors import InputError, Problem, did_you_mean
from sparkloom.base.visible import cut

if TYPE_CHECKING:
    from ruamel.yaml import YAML

Loc = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)
MAX_DEPTH = 40
MAX_NODES = 20_000  # aliases can multiply a small file into a huge one; no profile comes near this
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class Document:
    """Plain data of one YAML file and where each part of it stands (1-based line and column)."""

    file: str
    data: Any
    marks: dict[Loc, tuple[int, int]] = field(default_factory=dict)
    # where a value came from when files were merged: location -> file
    files: dict[Loc, str] = field(default_factory=dict)
    nodes: int = 0
    doubles: list[Problem] | None = None  # keys that stand twice, where that is told and not refused: the last counts

    def position(self, loc: Loc) -> tuple[str, int, int]:
        """File, line and column of `loc`, or of its nearest known parent."""
        for length in range(len(loc), -1, -1):
            mark = self.marks.get(loc[:length])
            if mark:
                return self.files.get(loc[:length], self.file), *mark
        return self.file, 1, 1

    def problem(self, loc: Loc, message: str, rule: str = "input") -> Problem:
        return Problem(*self.position(loc), message, rule)

    def refusal(self, loc: Loc, message: str, rule: str) -> InputError:
        """To be raised: this one problem makes the file unusable."""
        return InputError([self.problem(loc, message, rule)])

    def where(self, loc: Loc) -> str:
        file, line, _ = self.position(loc)
        return f"{file}:{line}"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that cannot be, or should not, and the key of the file to change."""

    loc: Loc
    message: str

    def __str__(self) -> str:
        return f"{'.'.join(str(part) for part in self.loc)}: {self.message}"


MOST = 16 << 20  # bytes of a file that people write


class PlainDumper(yaml.SafeDumper):
    """Without anchors: the same mapping twice is written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class Dumper(PlainDumper):
    """Writes as people do: lists below their key, as yamllint has them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def own(text: str) -> Any:
    """YAML that comes with the product, as plain data: nobody needs to be told where it is wrong."""
    return yaml.load(text, Loader=_Loader)


def edited(*, begins: bool = False) -> YAML:
    """A file of a person's, changed: comments, quotes and indents as they are. `begins`: with the line of dashes."""
    from ruamel.yaml import YAML

    editor = YAML()
    editor.width, editor.preserve_quotes, editor.explicit_start = 120, True, begins
    editor.indent(mapping=2, sequence=4, offset=2)
    return editor


def owns(text: str) -> list[Any]:
    """Likewise, where one file has several documents."""
    return list(yaml.load_all(text, Loader=_Loader))


def places(folder: Path, more: str) -> list[Path]:
    """A folder, and the one that the variable `more` names."""
    return [folder, *map(Path, filter(None, [os.environ.get(more)]))]


def find(named: str, folder: Path, more: str) -> Path | None:
    """A path as it is, or the file of that name in a folder, or in the one that the variable `more` names."""
    if "/" in named or named.endswith((".yml", ".yaml")):
        return Path(named)
    files = (place / f"{named}.yml" for place in places(folder, more))
    return next((file for file in files if os.path.isfile(file)), None)  # noqa: PTH113 - False of a name too long


def load(path: Path, *, shown: str | None = None) -> Document:
    """Reads one YAML mapping; InputError names file, line and column of what is wrong."""
    file = shown or str(path)
    try:
        with path.open("rb") as source:
            read = source.read(MOST + 1)
        if len(read) > MOST:  # a device that never ends, named by somebody else's file
            message = f"holds more than {MOST >> 20} MiB, or never ends; expected a YAML file"
            raise InputError.single(file, message, rule="unreadable")
        text = _decoded(read, file).replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise InputError.single(file, "no such file", rule="missing-file") from None
    except IsADirectoryError:
        raise InputError.single(file, "is a folder; expected a YAML file", rule="missing-file") from None
    except OSError as error:
        raise InputError.single(file, f"cannot be read: {error.strerror or error}", rule="unreadable") from None
    return parse(text, file)


def _decoded(read: bytes, file: str) -> str:
    try:
        return read.decode("utf-8")
    except UnicodeDecodeError as error:
        before = read[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        message = f"byte 0x{read[error.start]:02x} is no UTF-8 text; save the file as UTF-8"
        raise InputError.single(file, message, line=line, column=column, rule="unreadable") from None


def parse(text: str, file: str, *, doubles: bool = False) -> Document:
    """As `load`, from text; `doubles`: of somebody else's, in which a key that stands twice is no reason to stop."""
    document = Document(file, None, doubles=[] if doubles else None)
    try:
        _refuse_flood(text, file)
        _refuse_abyss(text, file)
        node = yaml.compose(text, Loader=_Loader)
        document.data = _build(node, (), document) if node is not None else None
    except InputError:
        raise
    except yaml.MarkedYAMLError as error:
        raise InputError([_unparsed(error, text, file)]) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError.single(file, f"not valid YAML: {error}".splitlines()[0], line=1, rule="bad-yaml") from None
    if not isinstance(document.data, dict):
        kind = "nothing" if document.data is None else "a list" if isinstance(document.data, list) else "one word"
        message = f"expected `key: value` lines at the top, found {kind}"
        raise InputError.single(file, message, line=1, rule="wrong-type")
    return document


def _unparsed(error: yaml.MarkedYAMLError, text: str, file: str) -> Problem:
    """The parser's own words, and what to write where it means one of four slips that everybody makes."""
    what = " ".join(str(part) for part in (error.context, error.problem) if part)
    mark = error.problem_mark or error.context_mark
    if "quoted scalar" in what and error.context_mark:
        mark, what = error.context_mark, "this quote is never closed"
    line, column = (mark.line, mark.column) if mark else (0, 0)
    begun = (text.split("\n")[line : line + 1] or [""])[0][column:]
    if begun.startswith("\t"):
        what = "a tab; indent with spaces"
    elif begun.startswith("*"):
        what = f"{begun.split()[0]} names no anchor; a value that begins with * needs quotes"
    elif what.startswith("mapping values"):
        what += "; a value with ': ' in it needs quotes"
    return Problem(file, line + 1, column + 1, f"not valid YAML: {what}", "bad-yaml")


def _refuse_flood(text: str, file: str) -> None:
    """Too large is said after the first nodes that are too many: to compose 300,000 keys takes seconds.

    Before each node of a collection stands one of four characters, so that no file of usual size is read twice.
    """
    if sum(map(text.count, ":,-?")) < MAX_NODES:
        return
    nodes = 0
    for event in yaml.parse(text, Loader=_Loader):
        nodes += isinstance(event, yaml.NodeEvent)
        if nodes > 2 * MAX_NODES:  # keys are nodes too
            mark = event.start_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            message = f"more than {MAX_NODES:,} values: too large for a profile or an inventory"
            raise InputError.single(file, message, line=line, column=column, rule="bad-yaml")


def _refuse_abyss(text: str, file: str) -> None:
    """The YAML library's C parser nests on the C stack: a few thousand levels end the process without a word.

    Brackets, dashes in one line and indentation each bound the depth from above; no profile comes near the limit.
    """
    open_brackets = 0
    for number, line in enumerate(text.splitlines(), 1):
        open_brackets += line.count("[") + line.count("{") - line.count("]") - line.count("}")
        indent = len(line) - len(line.lstrip(" -?:"))
        if max(open_brackets, indent, line.count("["), line.count("{")) > 10 * MAX_DEPTH:
            raise InputError.single(file, "nested too deep or too large for a profile", line=number, rule="bad-yaml")


def _build(node: Any, loc: Loc, document: Document, depth: int = 0) -> Any:
    mark = (node.start_mark.line + 1, node.start_mark.column + 1)
    document.marks.setdefault(loc, mark)
    document.nodes += 1
    if depth > MAX_DEPTH or document.nodes > MAX_NODES:
        raise document.refusal(loc, "nested too deep or too large for a profile", "bad-yaml")
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, loc, document, depth)
    if isinstance(node, yaml.SequenceNode):
        return [_build(item, (*loc, index), document, depth + 1) for index, item in enumerate(node.value)]
    return _scalar(node, loc, document)


def _mapping(node: yaml.MappingNode, loc: Loc, document: Document, depth: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line, column = key_node.start_mark.line + 1, key_node.start_mark.column + 1
        here = partial(Problem, document.file, line, column)
        if not isinstance(key_node, yaml.ScalarNode):
            raise InputError([here("a key must be a plain word", "bad-key")])
        key = str(key_node.value)
        if strange := _strange(key):
            raise InputError([here(f"a key holds {strange}; write plain text", "bad-key")])
        if key in result:
            double = here(f"key '{key}' stands twice; keep one", "duplicate-key")
            if document.doubles is None:
                raise InputError([double])
            document.doubles.append(double)
        document.marks[(*loc, key)] = (line, column)
        result[key] = _build(value_node, (*loc, key), document, depth + 1)
    return result


_SCALARS = yaml.constructor.SafeConstructor()  # PyYAML's own rules of scalars


def _scalar(node: yaml.ScalarNode, loc: Loc, document: Document) -> Any:
    if node.tag == "tag:yaml.org,2002:timestamp":  # dates stay text: evidence dates are compared as ISO strings
        return str(node.value)
    constructor = _SCALARS.yaml_constructors.get(node.tag)
    if constructor is None:
        raise document.refusal(loc, f"tag '{node.tag}' is not allowed; write plain data", "bad-yaml")
    if strange := _strange(node.value):
        raise document.refusal(loc, f"the text holds {strange}; write plain text", "bad-yaml")
    try:
        return constructor(_SCALARS, node)
    except (ValueError, KeyError, yaml.YAMLError) as error:
        raise document.refusal(loc, f"{_short(node.value)} is no valid value: {error}", "bad-yaml") from None


def _strange(text: str) -> str:
    """Names the first character that no command line, variable or terminal can carry."""
    if text.isprintable():
        return ""
    character = next((c for c in text if category(c) in ("Cc", "Cs") and c not in "\n\t"), None)
    return f"the character U+{ord(character):04X}" if character else ""


def validate(model: type[Model], document: Document) -> Model:
    """Validates `document.data` and turns each pydantic error into one positioned problem."""
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        raise InputError(_translate(model, document, dict(item)) for item in error.errors()) from None


def _translate(model: type[BaseModel], document: Document, error: dict[str, Any]) -> Problem:
    loc: Loc = tuple(part for part in error["loc"] if part != "[key]")
    shown = ".".join(str(part) for part in loc) or "the file"
    kind = str(error["type"])
    if kind == "extra_forbidden":
        hint = did_you_mean(str(loc[-1]), _keys(model, loc[:-1]))
        return document.problem(loc, f"unknown key '{shown}'{hint}", "unknown-key")
    if kind == "missing":
        return document.problem(loc[:-1], f"key '{shown}' is missing", "missing-key")
    message = str(error["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if kind in {"value_error", "assertion_error"}:
        named: Loc = tuple(message.split(" ", 1)[0].split("."))  # validators begin with the key they blame
        if len(named) > len(loc) and named in document.marks:
            return document.problem(named, message, "inconsistent")
        return document.problem(loc, f"{shown}: {message}" if loc else message, "inconsistent")
    return document.problem(loc, f"{shown}: {message} (found {_short(error.get('input'))})", "wrong-type")


def _short(value: Any) -> str:
    return cut(repr(value), 60)


def _keys(model: type[BaseModel], loc: Loc) -> list[str]:
    """Names allowed at `loc` inside `model`, for the did-you-mean hint."""
    current: Any = model
    for part in loc:
        fields: Mapping[str | int, Any] = getattr(current, "model_fields", {})
        if part in fields:
            current = _model_in(fields[part].annotation) or current
    return [info.alias or name for name, info in getattr(current, "model_fields", {}).items()]


def _model_in(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inside = map(_model_in, getattr(annotation, "__args__", ()))
    return next((model for model in inside if model is not None), None)
